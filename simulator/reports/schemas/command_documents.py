"""Documents that commands build themselves."""

from __future__ import annotations

from castsim.isa.errors import Severity
from castsim.reports.documents import CommandDocument, Keys, says
from castsim.reports.schemas.keys import (
    Column,
    Cycles,
    ErrorEntry,
    Line,
)

# What every command that fails writes; `castsim check`, `run --all-entries`, `expand`.


class FindingEntry(Keys):
    """An error, warning or note about a file."""

    severity: Severity = says("Severity of the finding.")
    kind: str = says("Its kind.")
    message: str = says("The finding in words.")
    file: str = says("The file.")
    line: Line | None = says("Line, from 1; null if it is about the whole file.")
    column: Column | None = says("Column in code points, from 1; null as `line`.")
    end_column: Column | None = says("Column after the last character; null if it is about the whole file.")
    help: str | None = says("The fix; null if there is no single one.", lambda found: found.help or None)
    legal: list[str] = says("Valid alternatives.")


class Check(CommandDocument, name="check"):
    """All findings of files."""

    findings: list[FindingEntry] = says("The findings, file by file.")


class Failure(CommandDocument, name="errors"):
    """The document of a command that fails; the exit code is 1 or 2."""

    errors: list[ErrorEntry] = says("The errors.")


class Entry(Keys):
    """A function of a file."""

    entry: str = says("Name of the function.")
    cycles: Cycles | None = says("Its cycles; null if it cannot be run, or they are not modelled.")
    error: str | None = says("The reason why it cannot be run; null if it can.")


class AllEntries(CommandDocument, name="run-all-entries"):
    """Every function of a file, run separately; with `--all-entries`."""

    program: str = says("The file.")
    entries: list[Entry] = says("The functions.")
    failed: int = says("Number of functions that cannot be run.")
