"""The documents of `castsim cast`, `scratch`, `diff` and `view`."""

from __future__ import annotations

from typing import Literal

from castsim.reports.documents import CommandDocument, says

# The documents of `castsim diff` and `castsim view`.


class Viewed(CommandDocument, name="view"):
    """A file that was shown."""

    file: str = says("The file.")
    kind: Literal["program", "result", "report", "trace"] = says("What it is; of the first two a report was made.")
    path: str = says("The report or the trace.")
    address: str | None = says("Where a trace was served; null if it was not.")
