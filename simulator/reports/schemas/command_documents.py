"""Documents that commands build themselves."""

from __future__ import annotations

from castsim.reports.documents import CommandDocument, Keys, says
from castsim.reports.schemas.keys import (
    Cycles,
    ErrorEntry,
)


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
