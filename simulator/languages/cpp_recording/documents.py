"""The JSON document of a recorded kernel."""

from __future__ import annotations

from typing import Annotated

from castsim.reports.documents import CommandDocument, says


class Recorded(CommandDocument, name="record"):
    """A kernel in C++ as a `.pto` program of its recorded operations."""

    program: str = says("The kernel.")
    blocks: Annotated[int, ("minimum", 1)] = says("The number of cores that the kernel sees.")
    statements: Annotated[int, ("minimum", 0)] = says("Number of statements in the function of the program.")
    text: str = says("The program.")
    output: str | None = says("The output file; null if none was written.")
