"""The launches of vector functions: where their cycles went, instruction by instruction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import ModuleType

from castsim.execution.timing import Cause, Timing
from castsim.execution.tree import Lowered, Tree
from castsim.isa.dataclass import dataclass
from castsim.machines.registry import MachinePart
from castsim.targets.loader import Target

LAUNCH = "vecscope"
"""The report name of instructions that launch vector instructions of a program."""


@dataclass(frozen=True, slots=True)
class LineWait:
    """The waits of all executions of a line after their dispatch, which overlap.

    `number` and `text` are those of the line waited for; None if it is not a single line.
    """

    cause: Cause
    cycles: float
    number: int | None
    text: str | None


@dataclass(frozen=True, slots=True)
class LineLaunches:
    """One line of a launch: its executions, and the launches' cycles attributed to it, by cause.

    `number` is a source line, or counts the instructions and loops of a tile operation's kernel; None for the
    launch itself. `waits` are sorted, the longest first.
    """

    number: int | None
    text: str
    executions: int
    cycles: int
    causes: Mapping[Cause, int]
    waits: tuple[LineWait, ...]


@dataclass(frozen=True, slots=True)
class InstructionLaunches:
    """All launches of one source instruction; the `cycles` of its lines add up to the total.

    For a tile operation it is the first launch; `pipe_cycles` are the engines' cycles for it, usually the same.
    """

    line: int
    text: str
    pipe: str
    executions: int
    cycles: int
    pipe_cycles: int
    lines: tuple[LineLaunches, ...]

    def behind_causes(self) -> Iterator[tuple[Cause, Sequence[tuple[LineLaunches, int]]]]:
        """Yield every cause with the lines that had such cycles, most first."""
        for cause in Cause:
            lines = [(line, line.causes[cause]) for line in self.lines if line.causes.get(cause)]
            if lines:
                yield cause, sorted(lines, key=lambda entry: -entry[1])


@dataclass(frozen=True, slots=True)
class LaunchSlice:
    """Cycles [start, end) of a run for one cause of one line of a launch, None for the launch itself."""

    start: int
    end: int
    cause: Cause
    number: int | None
    text: str


LAUNCHES: MachinePart[ModuleType] = MachinePart(
    "launches", {"vector-function": "castsim.reports.launches_vector_function"}
)
"""The module that attributes the cycles of launches, by mechanism; the others launch nothing."""


def written_launches(tree: Tree, target: Target) -> Sequence[InstructionLaunches]:
    """Return the launches written in a program; empty for programs of tile operations or bundles."""
    found: Sequence[InstructionLaunches] = LAUNCHES.of(target).written(tree, target) if _has_launches(tree) else ()
    return found


def launch_slices(tree: Tree, timing: Timing, target: Target) -> Sequence[LaunchSlice]:
    """Return the cycles of the launches written in a program, in order."""
    found: Sequence[LaunchSlice] = LAUNCHES.of(target).slices(tree, timing, target) if _has_launches(tree) else ()
    return found


def sent_cycles(lowered: Lowered, target: Target) -> Sequence[int]:
    """Return the cycles, from the start of a launch written in a program, in which the front end sends its
    instructions, in program order; empty for any other node."""
    if target.mechanism not in LAUNCHES.places:
        return ()
    found: Sequence[int] = LAUNCHES.of(target).sent(lowered, target)
    return found


def all_launches(tree: Tree, timing: Timing, target: Target) -> Sequence[InstructionLaunches]:
    """Return the launches in a program, or those of its tile operations if its target has launches."""
    if target.mechanism not in LAUNCHES.places:
        return ()
    found: Sequence[InstructionLaunches]
    found = written_launches(tree, target) or LAUNCHES.of(target).lowered(tree, timing, target)
    return found


def _has_launches(tree: Tree) -> bool:
    return any(instruction.mnemonic == LAUNCH for instruction in tree.instructions)
