"""The JSON document of a file that was shown."""

from __future__ import annotations

from typing import Literal

from castsim.reports.documents import CommandDocument, says


class Viewed(CommandDocument, name="view"):
    """A file that was shown."""

    file: str = says("The file.")
    kind: Literal["program", "result", "report", "trace"] = says(
        "Kind of the file; a report is made of the first two kinds."
    )
    path: str = says("The report or the trace.")
    address: str | None = says("Address of a served trace; null if it was not served.")
