"""The documents of failing commands, of `castsim check`, and of `castsim schema`."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field, JsonValue

from castsim.checking.check_finding import Severity
from castsim.reports.schemas.keys import Column, Form, Keys, Line, Sha256


class FindingEntry(Keys):
    """Something wrong with a file."""

    severity: Severity
    """How grave it is."""
    kind: str
    """Its kind."""
    message: str
    """The finding in words."""
    file: str
    """The file."""
    line: Line | None
    """Line, from 1; null if it is about the whole file."""
    column: Column | None
    """Column in code points, from 1; null as `line`."""
    end_column: Column | None
    """Column behind the last character; null as `line`."""
    help: str | None
    """The cure; null if there is no one cure."""
    legal: list[str]
    """What would be legal."""


class Check(Form):
    """All findings of files."""

    NAME: ClassVar[str] = "check"

    findings: list[FindingEntry]
    """The findings, file by file."""


class ErrorEntry(Keys):
    """An error."""

    kind: str
    """Its kind; `internal error` is castsim's own fault."""
    message: str
    """The error in words."""
    file: str | None
    """The file; null if it has no place."""
    line: Line | None
    """Line, from 1; null if it has no place."""
    column: Column | None
    """Column in code points, from 1; null if it has no place."""
    legal: list[str]
    """What would be legal."""


class Failure(Form):
    """What every command writes that fails; the exit code is 1 or 2."""

    NAME: ClassVar[str] = "errors"

    errors: list[ErrorEntry]
    """The errors."""


class FormEntry(Keys):
    """A document that a command may write."""

    name: str
    """Its name."""
    version: int
    """Its `schema_version`."""
    shape_sha256: Sha256
    """Digest of its schema without descriptions."""
    meaning: str
    """What it tells."""


class CommandSchemas(Keys):
    """A command."""

    command: str
    """Its name."""
    documents: list[FormEntry]
    """What it may write."""


class SchemaList(Form):
    """The documents of all commands."""

    NAME: ClassVar[str] = "schema-list"

    commands: list[CommandSchemas]
    """The commands."""


class SchemaEntry(Form):
    """The schema of a command's documents."""

    NAME: ClassVar[str] = "schema"

    command: str
    """Its name."""
    schema_: dict[str, JsonValue] = Field(alias="schema")
    """The JSON Schema, draft 2020-12."""


class Completion(Form):
    """What `castsim completion` prints."""

    NAME: ClassVar[str] = "completion"

    shell: str
    """Name of the shell."""
    script: str
    """The script that completes commands in it."""


class Manual(Form):
    """What `castsim manual` prints."""

    NAME: ClassVar[str] = "manual"

    page: str
    """The manual page."""
