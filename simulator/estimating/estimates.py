"""What an estimate says, and that of one instruction by simulating it alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

from castsim.engines import simulate
from castsim.estimating.placement import HERE
from castsim.estimating.trust import Sensitivity, Trust
from castsim.execution.interpreter.lowerer import LoweredInstruction
from castsim.execution.interpreter.structure import bare
from castsim.execution.notebook_display import PlotMixin
from castsim.execution.tree import Block, Instruction, Lowered, Tree
from castsim.isa.pto.program import Pipe
from castsim.targets import Target
from castsim.timing import Cause, Timing

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Asked(Protocol):
    """What was estimated, to say later what its cycles rest on."""

    def trust(self, cycles: int) -> Trust:
        """Return what its cycles rest on."""
        ...

    def sensitivities(self, cycles: int) -> tuple[Sensitivity, ...]:
        """Return how much numbers of doubtful facts weigh."""
        ...


@dataclass(frozen=True, slots=True, repr=False)
class Estimate(PlotMixin[Literal["causes"]]):
    """The `cycles` of an operation alone, as the published convention of its mechanism counts them.

    For strided instructions: from the first control write until the vector pipe is empty; for a vector function: from
    its launch until it has drained, without what the scalar unit does beforehand. `causes` are those of the pipe that
    computes in these cycles and add up to them; `bound_by` is the largest.

    `trust` says what the cycles rest on and where measured ones lie, `sensitivities` which doubtful facts weigh most.

    `plot` draws the causes as parts of a bar. The frame `causes` has a row per cause: its `cycles`, and their `share`
    of all.
    """

    cycles: int
    bound_by: Cause
    causes: Mapping[Cause, int]
    asked: Asked | None = field(default=None, repr=False, compare=False)
    """The cast that was estimated; None where it is none from tile to tile."""
    facts: frozenset[str] = field(default=frozenset(), repr=False, compare=False)
    """Paths of the timing facts behind the cycles, if these were simulated; a closed form does not gather them."""

    @property
    def trust(self) -> Trust:
        """What the cycles rest on, and an interval for measured ones."""
        return Trust(self.cycles, (), None) if self.asked is None else self.asked.trust(self.cycles)

    @property
    def sensitivities(self) -> tuple[Sensitivity, ...]:
        """How much numbers of doubtful facts weigh, most first: the cast is estimated anew for each."""
        return () if self.asked is None else self.asked.sensitivities(self.cycles)

    def __repr__(self) -> str:
        return f"<Estimate {self.cycles:,} cycles, bound by {self.bound_by}>"


@dataclass(frozen=True, slots=True, repr=False)
class Estimates(PlotMixin[Literal["shapes"]]):
    """Estimates of many shapes: `cycles` and every array of `causes` are int64, `bound_by` holds `Cause`s.

    All have the shape to which the arguments broadcast. A cause that no shape has is missing. Where a shape is refused
    `reasons` says why (elsewhere None), `bound_by` is None and its causes are 0; `cycles` are then float64, NaN where
    refused.

    `plot` draws cycles over the last index of the arrays, a curve for each value of the others. The frame `shapes` has
    a row per shape, in C order: its number `shape`, `cycles`, `bound_by`, the cycles of each cause, the `reason` of a
    refusal.
    """

    cycles: NDArray[np.int64] | NDArray[np.float64]
    bound_by: NDArray[np.object_]
    causes: Mapping[Cause, NDArray[np.int64]]
    reasons: NDArray[np.object_]

    def __repr__(self) -> str:
        taken = self.cycles[~self.reasons.astype(bool)]
        least, most = (f"{int(found):,}" for found in (taken.min(), taken.max())) if taken.size else ("", "")
        cycles = f": {least} to {most} cycles" if taken.size else ""
        refused = f", {self.cycles.size - taken.size:,} refused" if taken.size < self.cycles.size else ""
        return f"<Estimates {self.cycles.size:,} shapes{cycles}{refused}>"


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
    return Estimate(execution.end - execution.start, bound_by(causes), causes, facts=timing.facts)


def bound_by(causes: Mapping[Cause, int]) -> Cause:
    """Return the cause of most cycles, of equals the first one in the order of `Cause`."""
    most = max(causes.values(), default=0)
    return next((cause for cause in Cause if most and causes.get(cause) == most), Cause.EMPTY)
