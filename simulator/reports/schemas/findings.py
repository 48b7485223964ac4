"""The documents of failing commands, of `castsim check`, and of `castsim schema`."""

from __future__ import annotations

from pydantic import JsonValue

from castsim.checking.check_finding import Severity
from castsim.reports.schemas.keys import Column, Form, Keys, Line, Sha256, says


class FindingEntry(Keys):
    """Something wrong with a file."""

    severity: Severity = says("How grave it is.")
    kind: str = says("Its kind.")
    message: str = says("The finding in words.")
    file: str = says("The file.")
    line: Line | None = says("Line, from 1; null if it is about the whole file.")
    column: Column | None = says("Column in code points, from 1; null as `line`.")
    end_column: Column | None = says("Column behind the last character; null as `line`.")
    help: str | None = says("The cure; null if there is no one cure.")
    legal: list[str] = says("What would be legal.")


class Check(Form, name="check"):
    """All findings of files."""

    findings: list[FindingEntry] = says("The findings, file by file.")


class ErrorEntry(Keys):
    """An error."""

    kind: str = says("Its kind; `internal error` is castsim's own fault.")
    message: str = says("The error in words.")
    file: str | None = says("The file; null if it has no place.")
    line: Line | None = says("Line, from 1; null if it has no place.")
    column: Column | None = says("Column in code points, from 1; null if it has no place.")
    legal: list[str] = says("What would be legal.")


class Failure(Form, name="errors"):
    """What every command writes that fails; the exit code is 1 or 2."""

    errors: list[ErrorEntry] = says("The errors.")


class FormEntry(Keys):
    """A document that a command may write."""

    name: str = says("Its name.")
    version: int = says("Its `schema_version`.")
    shape_sha256: Sha256 = says("Digest of its schema without descriptions.")
    meaning: str = says("What it tells.")


class CommandSchemas(Keys):
    """A command."""

    command: str = says("Its name.")
    documents: list[FormEntry] = says("What it may write.")


class SchemaList(Form, name="schema-list"):
    """The documents of all commands."""

    commands: list[CommandSchemas] = says("The commands.")


class SchemaEntry(Form, name="schema"):
    """The schema of a command's documents."""

    command: str = says("Its name.")
    schema_: dict[str, JsonValue] = says("The JSON Schema, draft 2020-12.", alias="schema")


class Completion(Form, name="completion"):
    """What `castsim completion` prints."""

    shell: str = says("Name of the shell.")
    script: str = says("The script that completes commands in it.")


class Manual(Form, name="manual"):
    """What `castsim manual` prints."""

    page: str = says("The manual page.")
