"""The launches of vector functions: where their cycles went, instruction by instruction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Annotated

from castsim.execution.timing import Cause, Timing
from castsim.execution.tree import Lowered, Tree
from castsim.isa.dataclass import dataclass
from castsim.machines.registry import MachinePart
from castsim.reports.documents import Keys, record, says
from castsim.reports.schemas.keys import CauseName, Cycles, Line
from castsim.targets.loader import Target

LAUNCH = "vecscope"
"""The report name of instructions that launch vector instructions of a program."""


@record
class LineWait(Keys, title="Wait"):
    """Total waits of a line's executions for one cause."""

    cause: CauseName = says("The cause.")
    cycles: Annotated[float, ("unit", "cycles")] = says("Cycles of waiting; waits overlap.")
    for_line: Line | None = says("The line that computes the awaited value; null if it is not a single line.")
    for_op: str | None = says("The instruction of that line; null if it is not a single line.")


@record
class LaunchLine(Keys):
    """One line of a launch."""

    line: Line | None = says(
        "Line of the source, or number in the kernel of a tile operation; null for cycles of the launch itself."
    )
    op: str = says("The instruction.")
    executions: int = says("Number of executions.")
    cycles: Cycles = says("Cycles of the launches that are attributed to it.")
    causes: Mapping[CauseName, Cycles] = says("Cycles by cause.")
    waits: Sequence[LineWait] = says("Waits of its executions, longest first.")


@record
class Launches(Keys):
    """All launches of one source instruction; for a tile operation, the first."""

    line: Line = says("Line of the source.")
    op: str = says("The instruction.")
    pipe: str = says("Its pipe.")
    executions: int = says("Number of launches.")
    cycles: Cycles = says("Total cycles of the lines.")
    pipe_cycles: Cycles = says("The engine's count of their cycles.")
    lines: Sequence[LaunchLine] = says("The lines.")


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


def written_launches(tree: Tree, target: Target) -> Sequence[Launches]:
    """Return the launches written in a program; empty for programs of tile operations or bundles."""
    launches: Sequence[Launches] = LAUNCHES.of(target).written(tree, target) if _has_launches(tree) else ()
    return launches


def launch_slices(tree: Tree, timing: Timing, target: Target) -> Sequence[LaunchSlice]:
    """Return the cycles of the launches written in a program, in order."""
    slices: Sequence[LaunchSlice] = LAUNCHES.of(target).slices(tree, timing, target) if _has_launches(tree) else ()
    return slices


def sent_cycles(lowered: Lowered, target: Target) -> Sequence[int]:
    """Return the cycles, from the start of a launch written in a program, in which the front end sends its
    instructions, in program order; empty for any other node."""
    if target.mechanism not in LAUNCHES.places:
        return ()
    cycles: Sequence[int] = LAUNCHES.of(target).sent(lowered, target)
    return cycles


def all_launches(tree: Tree, timing: Timing, target: Target) -> Sequence[Launches]:
    """Return the launches in a program, or those of its tile operations if its target has launches."""
    if target.mechanism not in LAUNCHES.places:
        return ()
    launches: Sequence[Launches]
    launches = written_launches(tree, target) or LAUNCHES.of(target).lowered(tree, timing, target)
    return launches


def _has_launches(tree: Tree) -> bool:
    return any(instruction.mnemonic == LAUNCH for instruction in tree.instructions)
