"""How many bundles a machine executes one by one before it gives up."""

from __future__ import annotations

from castsim.execution.limits import walk_limit
from castsim.machines.vliw.control import RunningLoop
from castsim.machines.vliw.plans import InstructionPlan
from castsim.machines.vliw.structure import Structure
from castsim.machines.vliw.trips import trips_left

_MAY_SKIP = frozenset(("halt", "jmpr", "jmpa"))
"""What can end a trip before its last bundle."""


class WalkBudget:
    """The rest of a limit; None means no limit."""

    def __init__(self, limit: int | None, structure: Structure, plans: tuple[tuple[InstructionPlan, ...], ...]) -> None:
        self._limit = limit
        self._left = limit
        self._structure = structure
        self._plans = plans

    def spend(self, pc: int) -> None:
        """Take off the bundle that is about to be executed.

        Raises:
            LimitError: nothing is left; the place is that of the outermost loop around the bundle, else its own.
        """
        if self._limit is None or self._left is None:
            return
        if self._left == 0:
            around = [shape for shape in self._structure.by_head.values() if shape.holds(pc)]
            place = min((shape.head for shape in around), default=pc)
            raise walk_limit(self._limit, "bundles executed one by one", self._structure.bundles[place].span)
        self._left -= 1

    def foresee(self, plan: InstructionPlan, turn: RunningLoop) -> None:
        """Reject a loop that begins and none of whose trips is going to be skipped, if it is longer than what is left.

        Raises:
            LimitError: it is; the place is that of LOOP.
        """
        if self._limit is None or self._left is None:
            return
        body = range(turn.shape.start, turn.shape.end)
        if any(each.instruction.mnemonic in _MAY_SKIP for index in body for each in self._plans[index]):
            return
        bundles = (trips_left(turn) + 1) * len(body)
        if bundles > self._left:
            raise walk_limit(self._limit, f"{bundles} bundles of this loop to be executed one by one", plan.site.span)
