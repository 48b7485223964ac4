"""The document of `castsim advise`."""

from __future__ import annotations

from typing import Annotated, ClassVar, TypeAlias

from pydantic import Field

from castsim.exploration.advice.suggestion import SuggestionEvidence
from castsim.reports.schemas.keys import Cycles, Form, Keys, Line, Percent

HowKept: TypeAlias = Annotated[str, Field(json_schema_extra={"enum": [how.value for how in SuggestionEvidence]})]
"""How it is known that the outputs stay the same."""


class Change(Keys):
    """A change that keeps the outputs and saves cycles."""

    number: int
    """Its place, from 1; `--apply` takes it."""
    kind: str
    """What is done, in the words of docs/advice.md."""
    title: str
    """What is done where."""
    reason: str
    """Why that saves cycles."""
    line: Line
    """The line where it begins."""
    how: HowKept
    """How it is known that the outputs stay the same."""
    runs: int
    """Inputs on which both programs gave the same bits."""
    cycles: Cycles
    """What the changed program takes."""
    gained: Cycles
    """Cycles saved."""
    gained_percent: Percent
    """Cycles saved, of those of the program as it is."""
    diff: str
    """A unified diff of the file."""


class RejectedChange(Keys):
    """A change that was tried and is not offered."""

    kind: str
    """What was done, in the words of docs/advice.md."""
    title: str
    """What was done where."""
    line: Line
    """The line where it begins."""
    why: str
    """Why it is not offered."""


class Advise(Form):
    """What would make a program faster."""

    NAME: ClassVar[str] = "advise"

    file: str
    """The program."""
    target: str
    """Name of the target."""
    cycles: Cycles
    """What the program takes as it is."""
    looked_at: int
    """Changes that were made and checked."""
    offers: list[Change]
    """Those that hold, most cycles saved first."""
    rejected: list[RejectedChange]
    """Those that are not offered, in the order in which they were made."""
    unfinished: bool
    """Whether the time was over before all changes were tried."""
    applied: int | None
    """The number of the change that was written; null if none was."""
    output: str | None
    """The file that it was written to."""
