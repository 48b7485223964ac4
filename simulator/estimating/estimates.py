"""What an estimate says, and that of one instruction by simulating it alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from castsim.engines import simulate
from castsim.estimating.placement import HERE
from castsim.execution.tree import Block, Instruction, Lowered, Tree
from castsim.execution.walk.lowerer import LoweredInstruction
from castsim.execution.walk.structure import bare
from castsim.isa.pto.program import Pipe
from castsim.targets import Target
from castsim.timing import Cause, Timing

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Estimate:
    """Cycles of an operation alone, as the published convention of its mechanism counts them.

    For strided instructions: from the first control write until the vector pipe is empty; for a vector function: from
    its launch until it has drained, without what the scalar unit does beforehand. `causes` are those of the pipe that
    computes in these cycles and add up to them; `bound_by` is the largest.
    """

    cycles: int
    bound_by: Cause
    causes: Mapping[Cause, int]


@dataclass(frozen=True, slots=True)
class Estimates:
    """Estimates of many shapes: `cycles` and every array of `causes` are int64, `bound_by` holds `Cause`s.

    All have the shape to which the arguments broadcast. A cause that no shape has is missing. Where a shape is refused
    `reasons` says why (elsewhere None), `bound_by` is None and its causes are 0; `cycles` are then float64, NaN where
    refused.
    """

    cycles: NDArray[np.int64] | NDArray[np.float64]
    bound_by: NDArray[np.object_]
    causes: Mapping[Cause, NDArray[np.int64]]
    reasons: NDArray[np.object_]


def timed_alone(chip: Target, lowered: LoweredInstruction, text: str) -> Estimate:
    """Simulate one lowered instruction of the vector pipe and nothing else; `text` names it in messages."""
    body = Lowered(0, lowered.body, lowered.accesses)
    tree = Tree(Block((body,)), (Instruction(text, "V", HERE),), interlocked=False)
    timing = simulate(tree, chip, record_operations=False)
    return of_timing(timing)


def of_timing(timing: Timing) -> Estimate:
    """Return the estimate of the one instruction that was simulated."""
    execution = timing.executions[0]
    found = []
    for name, pipe in timing.pipes.items():
        # Before it starts, as its convention has it, the scalar unit works for it and no other pipe has anything to do.
        spent = Cause.BUSY if name == bare(Pipe.S) else Cause.EMPTY
        left = {cause: cycles - execution.start * (cause is spent) for cause, cycles in pipe.causes.items()}
        found.append({cause: cycles for cause, cycles in left.items() if cycles})
    # The pipe that converts is occupied longest; a pipe may be so without being busy, at a barrier or a branch.
    causes = min(found, key=lambda causes: causes.get(Cause.EMPTY, 0))
    return Estimate(execution.end - execution.start, bound_by(causes), causes)


def bound_by(causes: Mapping[Cause, int]) -> Cause:
    """Return the cause of most cycles, of equals the first one in the order of `Cause`."""
    most = max(causes.values(), default=0)
    return next((cause for cause in Cause if most and causes.get(cause) == most), Cause.EMPTY)
