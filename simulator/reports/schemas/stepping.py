"""The document of `castsim debug`."""

from __future__ import annotations

from typing import ClassVar

from castsim.reports.schemas.keys import Cycles, Form, Keys, Line


class Stop(Keys):
    """A place at which the program stood."""

    line: Line
    """The line of the operation about to be executed; at the end that of the last."""
    cycle: Cycles | None
    """The cycle in which it starts, at the end the cycles of the run; null if none are modelled."""
    ended: bool
    """Whether every operation had been executed."""


class Debug(Form):
    """The stops of a session, in their order."""

    NAME: ClassVar[str] = "debug"

    file: str
    """The program."""
    entry: str
    """The part of it that was run."""
    target: str
    """The target's name."""
    operations: int
    """How many operations were executed in all, which `step` goes through."""
    stops: list[Stop]
    """The first stop, and that of each command that moved the program."""
    failed: int
    """Commands that could not be carried out."""
