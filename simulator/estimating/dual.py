"""Kernels whose loads read every block group twice: a load that meets a store waits for one cycle.

Whether it does depends on the trips before, so trips are counted one after the other, once for all shapes that share
them: rows of equal length have their beginnings in common.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import numpy as np

from castsim.estimating.arithmetic import SCALAR, Number, NumberFunctions
from castsim.execution.dataflow.timing import NO_TICK, TICKS, cycle_from
from castsim.machines.vector_function.nest_plan import NestPlan
from castsim.machines.vector_function.timing import path_through, store_asked, store_start
from castsim.targets.vector_function import VectorFunctionTarget

Row = tuple[int, int, int, int]
"""The last store of a row: when it leaves, and its waits for the memory path, a barrier (none), its load."""


@dataclass(slots=True)
class _Progress:
    """Trips counted so far of nests with rows of equal length: the last stores of all rows, and what comes after."""

    rows: list[Row] = field(default_factory=list)
    writes: deque[int] = field(default_factory=deque)
    left: int = NO_TICK
    through: int = NO_TICK


@dataclass(frozen=True, slots=True)
class DualTrips:
    """Trips of one load and one store each. `arrival` and `data` are those of a trip that is sent at tick 0, without
    and with a wait of its load.
    """

    plan: NestPlan
    arrival: tuple[int, int]
    data: tuple[int, int]
    interval: int
    known: dict[tuple[int, int], _Progress] = field(default_factory=dict, compare=False)

    @classmethod
    def of(
        cls,
        target: VectorFunctionTarget,
        plan: NestPlan,
        free: tuple[int, int],
        waiting: tuple[int, int],
        intervals: tuple[int, ...],
    ) -> DualTrips | None:
        """Return the trips of a nest, from arrival and data of a load that need not wait and of one that does.

        None if more can happen than that a load meets one store.
        """
        shape = plan.shape
        simple = len(intervals) == 1 and not plan.branches and not shape.stores[0].barrier
        # Stores stand in their cycle before the loads of that cycle are sent; a late half is gone before the next load.
        ordered = free[1] >= TICKS and shape.hold >= 2 * TICKS
        if not (simple and ordered and target.banks.reads_beside_write == 1):
            return None
        return cls(plan, (free[0], waiting[0]), (free[1], waiting[1]), intervals[0])

    def last_store(self, rows: Number, trips: Number, first: Number, arithmetic: NumberFunctions) -> tuple[Number, ...]:
        """Return the last store of `rows` rows of `trips` trips, the first of which is sent at tick `first`."""
        if arithmetic is SCALAR:
            return self._row(rows, trips, first)
        found = np.zeros((4, len(trips)), np.int64)
        width = int(np.max(first)) + 1
        keys, places = np.unique(trips * width + first, return_inverse=True)
        order = np.argsort(places, kind="stable")
        bounds = np.searchsorted(places[order], np.arange(len(keys) + 1))
        for number, key in enumerate(keys.tolist()):
            part = order[bounds[number] : bounds[number + 1]]
            counts = rows[part]
            most = int(counts.max())
            if most > 0:
                each, begun = divmod(key, width)
                self._row(most, each, begun)
                table = np.array(self.known[each, begun].rows[:most])
                found[:, part] = table[np.maximum(counts, 1) - 1].T
        return tuple(found)

    def _row(self, rows: int, trips: int, first: int) -> Row:
        if rows <= 0:
            return (0, 0, 0, 0)
        progress = self.known.setdefault((trips, first), _Progress())
        while len(progress.rows) < rows:
            self._count(progress, trips, first)
        return progress.rows[rows - 1]

    def _count(self, progress: _Progress, trips: int, first: int) -> None:
        """Count the trips of one more row."""
        hold, path_hold = self.plan.shape.hold, self.plan.path_hold
        sent = first + len(progress.rows) * (self.plan.next_row + trips * hold)
        writes, left, through = progress.writes, progress.left, progress.through
        waits = data = there = 0
        for _ in range(trips):
            asked = cycle_from(sent)
            while writes and writes[0] < asked:
                writes.popleft()
            waits = int(bool(writes) and writes[0] == asked)
            there = data = sent + self.data[waits]
            if path_hold:
                arrival = sent + self.arrival[waits]
                through = path_through(through, arrival, path_hold, opened=False)
                there = max(data, through)
            left = store_start(there, left, self.interval, NO_TICK, 0)
            writes.append(store_asked(left))
            sent += hold
        progress.left, progress.through = left, through
        progress.rows.append((left, there - data, 0, waits * TICKS))
