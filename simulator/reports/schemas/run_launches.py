"""Inside of the launches of vector functions."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from castsim.reports.schemas.keys import CauseName, Cycles, Keys, Line


class Wait(Keys):
    """What the executions of a line waited for, all together."""

    cause: CauseName
    """The cause."""
    cycles: Annotated[float, Field(json_schema_extra={"unit": "cycles"})]
    """How long; waits overlap each other."""
    for_line: Line | None
    """The line that makes what was waited for; null if it is not one line."""
    for_op: str | None
    """The instruction of that line; null as `for_line`."""


class LaunchLine(Keys):
    """One line of a launch."""

    line: Line | None
    """Line of the source, or number in the kernel of a tile operation; null for what belongs to the launch itself."""
    op: str
    """The instruction."""
    executions: int
    """How often it was executed."""
    cycles: Cycles
    """Cycles of the launches that went to it."""
    causes: dict[CauseName, Cycles]
    """The same by cause."""
    waits: list[Wait]
    """What its executions waited for, the longest first."""


class Launches(Keys):
    """All launches of one instruction of the source; of a tile operation, the first."""

    line: Line
    """Line of the source."""
    op: str
    """The instruction."""
    pipe: str
    """Its pipe."""
    executions: int
    """How many launches."""
    cycles: Cycles
    """Their cycles, those of the lines added up."""
    pipe_cycles: Cycles
    """What the engine counts of them."""
    lines: list[LaunchLine]
    """The lines."""


class LineCycles(Keys):
    """Cycles of a line."""

    line: Line | None
    """As in `lines`."""
    op: str
    """The instruction."""
    cycles: Cycles
    """Its cycles."""


class LaunchesByCause(Launches):
    """All launches of one instruction of the source, with the lines behind each cause."""

    behind_causes: dict[CauseName, list[LineCycles]]
    """The lines with cycles of each cause, most first."""
