"""What `castsim run --report kernel` adds."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from castsim.reports.schemas.keys import Bytes, CauseName, Cycles, Keys, Line, Name
from castsim.reports.schemas.run_launches import LaunchesByCause

_CYCLES_OF = Field(min_length=2, max_length=2, json_schema_extra={"unit": "cycles"})


class KernelLine(Keys):
    """The cost of a source line to its pipe."""

    line: Line
    """Line of the source."""
    op: str
    """The instruction."""
    pipe: str
    """Its pipe."""
    executions: int
    """How often it was executed."""
    cycles: Cycles
    """Cycles from start to end of its executions, which may overlap."""
    pipe_cycles: Cycles
    """Cycles that its pipe spent on it."""
    share_of_pipe: float
    """Part of its pipe's occupied cycles, from 0 to 1."""
    causes: dict[CauseName, Cycles]
    """The pipe's cycles by cause."""


class PipesAtWork(Keys):
    """The cycles in which so many pipes worked at once."""

    pipes: int
    """Number of pipes."""
    cycles: Cycles
    """Cycles in which exactly so many worked."""


class Overlap(Keys):
    """How far the pipes work at the same time."""

    work_cycles: dict[Name, Cycles]
    """Cycles in which each pipe has an instruction at work."""
    serial_cycles: Cycles
    """Their sum: one pipe after the other."""
    covered_cycles: Cycles
    """Cycles in which some pipe works."""
    cycles_with_pipes_at_work: list[PipesAtWork]
    """The same by the number of pipes at work."""
    achieved: float | None
    """Part of what the busiest pipe could hide that is hidden, from 0 to 1; null if only one pipe works."""


class Bound(Keys):
    """The bottleneck."""

    pipe: str
    """The pipe with the most occupied cycles."""
    cause: CauseName
    """The cause of most of them."""
    cycles: Cycles
    """Cycles of that cause."""
    occupied_cycles: Cycles
    """Cycles in which the pipe is occupied."""


class Stretch(Keys):
    """Bytes of a buffer that instructions treat alike. Pairs are cycles from the first to the one behind the last."""

    first_byte: int
    """Address of the first byte."""
    last_byte: int
    """Address of the last byte."""
    scratch: bool
    """Whether it is some instruction's scratch tile."""
    written_by_lines: list[Line]
    """Lines that write it."""
    read_by_lines: list[Line]
    """Lines that read it."""
    live_cycles: Cycles
    """Cycles in which its content is still needed."""
    live: list[Annotated[list[int], _CYCLES_OF]]
    """When its content is needed."""
    writes: list[Annotated[list[int], _CYCLES_OF]]
    """When it is written."""
    reads: list[Annotated[list[int], _CYCLES_OF]]
    """When it is read."""


class Buffer(Keys):
    """A buffer over time."""

    name: str
    """Name of the memory."""
    capacity_bytes: Bytes
    """Its size."""
    peak_live_bytes: Bytes
    """The most bytes that live at once."""
    peak_cycle: Cycles
    """The first cycle in which they do."""
    stretches: list[Stretch]
    """Its stretches, by address."""


class Kernel(Keys):
    """A whole kernel."""

    lines: list[KernelLine]
    """The lines of the source."""
    overlap: Overlap
    """The overlap of the pipes."""
    bound: Bound | None
    """The bottleneck; null if no pipe did anything."""
    launches: list[LaunchesByCause]
    """Inside of launches."""
    buffers: list[Buffer]
    """The on-chip buffers."""
