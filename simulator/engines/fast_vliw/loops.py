"""Loops: trips are stepped through until the state of the core repeats; those that only repeat it are skipped. Bundles
that repeat in a row are a loop that the program has unrolled.

The state is taken relative to now behind every trip. When it equals an earlier one, the trips in between are a period:
all further periods take the same cycles for the same reasons. The last effects of a period may happen in later ones, so
stepping goes on until all of them have; then whole periods are skipped and the rest is stepped through.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from castsim.engines.fast_vliw.bundle_recurrence import RecurrenceCore, Totals
from castsim.engines.fast_vliw.history import Kinds, Repetition
from castsim.execution.tree import Block, Loop, Lowered, Node

_LOOK = 256
"""Bundles of straight-line code that are looked at together for repetition."""
_LONGEST = 64
"""Bundles after which they may repeat, at most."""
_TRIP = 16
"""Bundles that a trip of straight-line code has at least: before every trip there is a look at the core."""


@dataclass(frozen=True, slots=True)
class _Mark:
    """The run behind a trip; `rows` are those stepped through, `real_rows` and `real_now` count skipped ones too."""

    trip: int
    rows: int
    real_rows: int
    real_now: int
    clock: int
    totals: Totals


class Stepper:
    """Walks a tree. `skip` False steps through every trip."""

    def __init__(self, core: RecurrenceCore, kinds: Kinds, reach: int, *, skip: bool) -> None:
        self._core = core
        self._kinds = kinds
        self._reach = reach
        self._skip = skip
        self._skipped_rows = 0

    def walk(self, node: Node) -> None:
        """Issue everything in a node.

        Raises:
            EngineError: the cycle limit is reached.
        """
        if isinstance(node, Block):
            for part in self._kinds.parts(node):
                if isinstance(part, array):
                    self._straight(part)
                else:
                    self.walk(part)
        elif isinstance(node, Loop):
            self._trips(node.trips, partial(self.walk, node.body))
        elif isinstance(node, Lowered):
            self._core.issue_all(self._kinds.of(node))
        else:
            raise TypeError("an operation outside an instruction")

    def _straight(self, numbers: Sequence[int]) -> None:
        """Issue bundles in a row, what repeats as a loop."""
        first = 0
        while first < len(numbers):
            size, end = _repetition(numbers, first) if self._skip else (0, len(numbers))
            if size:
                trips = (end - first) // size
                self._trips(trips, partial(self._core.issue_all, numbers[first : first + size]))
                first += trips * size
            else:
                self._core.issue_all(numbers[first:end])
                first = end

    def _trips(self, trips: int, walk: Callable[[], None]) -> None:
        """Walk so many trips of a loop."""
        seen: dict[tuple[object, ...], list[_Mark]] = {}
        trip = 0
        while trip < trips:
            walk()
            trip += 1
            if not self._skip or trips - trip < 1:
                continue
            marks = seen.setdefault(self._core.state(), [])
            if len(marks) < 2:
                marks.append(self._mark(trip))
            elif self._core.clock - marks[1].clock >= self._reach:
                skipped = self._repeat(marks[0], marks[1], trips - trip)
                if skipped:
                    trip += skipped
                    seen.clear()

    def _mark(self, trip: int) -> _Mark:
        core = self._core
        rows = len(core.history.kind)
        return _Mark(trip, rows, rows + self._skipped_rows, core.now + core.skipped, core.clock, core.totals.copy())

    def _repeat(self, first: _Mark, second: _Mark, left: int) -> int:
        """Skip as many periods as fit into the trips and cycles that are left; return the number of trips skipped."""
        core = self._core
        period, cycles = second.trip - first.trip, second.real_now - first.real_now
        times = min(left // period, (core.max_cycles - core.now - core.skipped) // cycles)
        if times < 1:
            return 0
        rows = second.real_rows - first.real_rows
        kinds = core.history.kinds
        operations = second.totals.operations(kinds) - first.totals.operations(kinds)
        core.history.repetitions.append(Repetition(first.rows, second.rows, times, rows, cycles, operations))
        core.totals.repeat(first.totals, second.totals, times)
        core.skipped += times * cycles
        self._skipped_rows += times * rows
        return times * period


def _repetition(numbers: Sequence[int], first: int) -> tuple[int, int]:
    """Return how many bundles from `first` on repeat, and where that ends; 0 and the next place to look."""
    ahead = numbers[first : first + _LOOK]
    end = first + len(ahead)
    for period in range(1, min(_LONGEST, len(ahead) // _TRIP) + 1):
        if ahead[period] == ahead[0] and ahead[period:] == ahead[:-period]:
            while end < len(numbers):
                following = numbers[end : end + _LOOK]
                if following != numbers[end - period : end - period + len(following)]:
                    break
                end += len(following)
            return period * -(-_TRIP // period), end
    return 0, end
