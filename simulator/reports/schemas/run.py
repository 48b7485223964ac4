"""The documents of failing commands, `castsim run --all-entries`, `check`, `schema`, `completion` and `manual`."""

from __future__ import annotations

from castsim.checking.check_finding import Severity
from castsim.reports.documents import CommandDocument, Keys, says
from castsim.reports.schemas.keys import (
    Column,
    Cycles,
    ErrorEntry,
    Line,
    Sha256,
)

# The documents of failing commands, of `castsim check`, and of `castsim schema`.


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


class Check(CommandDocument, name="check"):
    """All findings of files."""

    findings: list[FindingEntry] = says("The findings, file by file.")


class Failure(CommandDocument, name="errors"):
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


class SchemaList(CommandDocument, name="schema-list"):
    """The documents of all commands."""

    commands: list[CommandSchemas] = says("The commands.")


class SchemaEntry(CommandDocument, name="schema"):
    """The schema of a command's documents."""

    command: str = says("Its name.")
    schema_: dict[str, object] = says("The JSON Schema, draft 2020-12.", alias="schema")


class Completion(CommandDocument, name="completion"):
    """What `castsim completion` prints."""

    shell: str = says("Name of the shell.")
    script: str = says("The script that completes commands in it.")


class Manual(CommandDocument, name="manual"):
    """What `castsim manual` prints."""

    page: str = says("The manual page.")


# The document of `castsim run --all-entries`.


class Entry(Keys):
    """A function of a file."""

    entry: str = says("Name of the function.")
    cycles: Cycles | None = says("Its cycles; null if it cannot be run, or they are not modelled.")
    error: str | None = says("Why it cannot be run; null if it can.")


class AllEntries(CommandDocument, name="run-all-entries"):
    """With `--all-entries`: every function of a file by itself."""

    program: str = says("The file.")
    entries: list[Entry] = says("The functions.")
    failed: int = says("How many cannot be run.")
