"""The JSON document of a scheduled program."""

from __future__ import annotations

from castsim.reports.documents import CommandDocument, Keys, says
from castsim.reports.schemas.keys import (
    Bundles,
    Line,
    Name,
)


class Length(Keys):
    """A number of bundles."""

    static: Bundles = says("Length of the text.")
    executed: Bundles | None = says("Length of a run; null if it is unknown.")


class Removed(Keys):
    """An instruction that was left out."""

    line: Line = says("Line of the source.")
    instruction: str = says("The instruction.")


class Schedule(CommandDocument, name="schedule", version=2):
    """A scheduled program."""

    file: str = says("The source.")
    target: str = says("Name of the target.")
    output: str | None = says("The output file; null if none was written.")
    method: str = says("Method of scheduling the loops.")
    bundles: Length = says("Its length.")
    padding: Length = says("The length with one instruction a bundle and NOPs.")
    registers: dict[Name, list[str]] = says("The registers of each virtual one.")
    removed: list[Removed] = says("Removed instructions.")
    spilled: list[str] = says("Virtual registers whose values are spilled to local memory or recomputed.")
    program: str = says("The text.")
