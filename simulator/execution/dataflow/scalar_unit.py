"""What the scalar unit itself spends on an operation, before it executes it or sends it to a pipe."""

from __future__ import annotations

from castsim.execution.dataflow.operations import (
    Barrier,
    ControlWrite,
    Placeholder,
    ScalarAccess,
    ScalarWork,
    SetFlag,
    WaitFlag,
)
from castsim.execution.tree import Operation
from castsim.targets.dataflow import DataflowTarget
from castsim.timing import Cause


def cost_of(operation: Operation, target: DataflowTarget) -> tuple[int, Cause, tuple[str, ...]]:
    """Return the cycles, what they are charged to, and the paths of the facts that they rest on."""
    timing = target.timing.scalar
    match operation:
        case ControlWrite():
            cycles = timing.control_write_cycles
        case ScalarWork(kind):
            cycles, fact = target.timing.scalar_work(kind)
            return cycles, Cause.LOOP_TURNAROUND if kind == "loop" else Cause.BUSY, ("timing.scalar", fact)
        case ScalarAccess(kind):
            cycles, fact = target.timing.cycles_of_access(kind)
            return cycles, Cause.BUSY, ("timing.scalar", fact)
        case Placeholder(pipe=pipe, cycles=stated):
            cycles = stated if pipe == target.pipes.scalar else timing.issue_cycles if stated else 0
        case SetFlag() | WaitFlag() | Barrier():
            cycles = timing.synchronisation_cycles
        case _:
            cycles = timing.issue_cycles
    return cycles, Cause.BUSY, ("timing.scalar",)
