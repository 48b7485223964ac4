"""Inside of the launches of vector functions: where their cycles went, instruction by instruction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from castsim.execution.tree import Lowered, Tree
from castsim.targets import Target
from castsim.timing import Cause, Timing

_KEY = "json"
"""Metadata of a field whose key in JSON is not its name; see `castsim.reports.documents`."""

LAUNCH = "vecscope"
"""The instruction whose executions are launches of a program's own vector instructions."""


@dataclass(frozen=True, slots=True)
class LineWait:
    """What the executions of a line waited for, all together, after the front end had sent them: these overlap.

    `number` and `text` are of the line that makes what was waited for, None where it is not one line.
    """

    cause: Cause
    cycles: float
    number: int | None = field(metadata={_KEY: "for_line"})
    text: str | None = field(metadata={_KEY: "for_op"})


@dataclass(frozen=True, slots=True)
class LaunchLine:
    """One line of a launch: its executions, and the cycles of the launches that went to it, by cause.

    `number` is a line of the source, or counts the instructions and loops of a tile operation's kernel; None for what
    belongs to the launch itself. `waits` come with the longest first.
    """

    number: int | None = field(metadata={_KEY: "line"})
    text: str = field(metadata={_KEY: "op"})
    executions: int
    cycles: int
    causes: Mapping[Cause, int]
    waits: tuple[LineWait, ...]


@dataclass(frozen=True, slots=True)
class Launches:
    """All launches of one source instruction; the `cycles` of its lines add up to its own.

    Of a tile operation it is the first one, and `pipe_cycles` are what the engines count of it: mostly the same.
    """

    line: int
    text: str = field(metadata={_KEY: "op"})
    pipe: str
    executions: int
    cycles: int
    pipe_cycles: int
    lines: tuple[LaunchLine, ...]

    def behind_causes(self) -> Iterator[tuple[Cause, Sequence[tuple[LaunchLine, int]]]]:
        """Yield every cause with the lines that had cycles of it, most first."""
        for cause in Cause:
            lines = [(line, line.causes[cause]) for line in self.lines if line.causes.get(cause)]
            if lines:
                yield cause, sorted(lines, key=lambda each: -each[1])


@dataclass(frozen=True, slots=True)
class LaunchSlice:
    """Cycles [start, end) of a run that went to one cause of one line of a launch, None of the launch itself."""

    start: int
    end: int
    cause: Cause
    number: int | None
    text: str


class LaunchReport(Protocol):
    """What a mechanism tells of its launches."""

    def written(self, tree: Tree, target: Target) -> Sequence[Launches]:
        """Return the launches that a program writes itself."""
        ...

    def slices(self, tree: Tree, timing: Timing, target: Target) -> Sequence[LaunchSlice]:
        """Return the cycles of the launches that a program writes itself, in order."""
        ...

    def sent(self, lowered: Lowered, target: Target) -> Sequence[int]:
        """Return the cycles, from the start of a launch that a program writes itself, in which the front end sends its
        instructions, in program order; none for anything else.
        """
        ...

    def lowered(self, tree: Tree, timing: Timing, target: Target) -> Sequence[Launches]:
        """Return the first launch of each tile operation as the instructions of its kernel."""
        ...
