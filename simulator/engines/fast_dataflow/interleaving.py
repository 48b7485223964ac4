"""What is reported of a loop whose pipes drifted apart: the trips of each group of pipes repeat for themselves.

What was executed lies in runs of trips: first whole trips, then such of the groups that had fallen behind. Each group
(and the scalar unit, where an execution is nothing but its work) has executed all of its trips in their order, with
jumps of its own; the program's order is that of whole trips.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from castsim.engines.fast_dataflow.records import Copy, Jump, Part, Parts, RecordShift, Stretch, parts_of


@dataclass(frozen=True, slots=True)
class TripRun:
    """Executed records from `first` to before `end`: trips that consist of records of the groups in `pattern`."""

    first: int
    end: int
    pattern: tuple[int, ...]

    def places_of(self, group: int) -> tuple[int, ...]:
        """Return where the records of a group stand in a trip."""
        return tuple(place for place, each in enumerate(self.pattern) if each == group)

    def before(self, row: int, group: int) -> int:
        """Return how many records of a group this has before a row."""
        trips, place = divmod(min(max(row, self.first), self.end) - self.first, len(self.pattern))
        return trips * len(self.places_of(group)) + self.pattern[:place].count(group)


@dataclass(frozen=True, slots=True)
class _GroupRows:
    """The rows of one group by their number among them."""

    group: int
    runs: tuple[TripRun, ...]

    def starts(self) -> list[int]:
        """Return how many rows lie before each run, and in all."""
        return [0, *accumulate(run.before(run.end, self.group) for run in self.runs)]

    def number(self, row: int) -> int:
        """Return how many rows of the group lie before a row."""
        return sum(run.before(row, self.group) for run in self.runs)

    def row(self, starts: Sequence[int], number: int) -> int:
        """Return a row by its number."""
        at = bisect_right(starts, number) - 1
        run = self.runs[at]
        places = run.places_of(self.group)
        trip, place = divmod(number - starts[at], len(places))
        return run.first + trip * len(run.pattern) + places[place]


@dataclass(frozen=True, slots=True)
class Weave:
    """The records of such a loop: `runs` of trips, the jumps of each group in the numbers of its own records.

    `pattern` are the groups of a whole trip's records, for each of which the scalar unit, waiting for nothing, takes
    `cost` cycles; everything behind is later by `offset` cycles.
    """

    runs: tuple[TripRun, ...]
    pattern: tuple[int, ...]
    jumps: tuple[tuple[Jump, ...], ...]
    cost: int
    offset: int

    @property
    def first(self) -> int:
        """The first record."""
        return self.runs[0].first

    @property
    def end(self) -> int:
        """The first record behind."""
        return self.runs[-1].end

    def total(self) -> RecordShift:
        """Return how much later everything behind is than it was executed."""
        return RecordShift(self.offset, self.offset, self.part(RecordShift()).length - (self.end - self.first))

    def part(self, offset: RecordShift) -> Part:
        """Return all trips in the program's order, later by `offset`."""
        return _Woven(self, offset)


class _Woven:
    """The trips of a loop in the program's order."""

    def __init__(self, weave: Weave, offset: RecordShift) -> None:
        self._weave = weave
        self._offset = offset
        self._pattern = weave.pattern
        self._rows = [_GroupRows(group, weave.runs) for group in range(len(weave.jumps))]
        self._starts = [rows.starts() for rows in self._rows]
        self._parts = [
            Parts(parts_of(0, starts[-1], jumps, offset), 1, RecordShift())
            for starts, jumps in zip(self._starts, weave.jumps, strict=True)
        ]
        self._places = [[k for k, each in enumerate(self._pattern) if each == rows.group] for rows in self._rows]
        self._rank = [self._pattern[:place].count(group) for place, group in enumerate(self._pattern)]
        group = self._pattern[0]
        self.length: int = self._parts[group].length // len(self._places[group]) * len(self._pattern)

    def find(self, index: int, shift: RecordShift) -> tuple[int, RecordShift]:
        """Return the row of a record and how much later it is than executed."""
        trip, place = divmod(index, len(self._pattern))
        group = self._pattern[place]
        number, later = self._parts[group].find(trip * len(self._places[group]) + self._rank[place], shift)
        return self._rows[group].row(self._starts[group], number), self._opened(later, index, shift)

    def walk(self, shift: RecordShift) -> Iterator[tuple[int, RecordShift]]:
        """Yield all records in order."""
        walks = [part.walk(shift) for part in self._parts]
        for index in range(self.length):
            group = self._pattern[index % len(self._pattern)]
            number, later = next(walks[group])
            yield self._rows[group].row(self._starts[group], number), self._opened(later, index, shift)

    def repeated(self, first: Copy, last: Copy, times: int) -> Iterator[tuple[int, Copy, Copy, int]]:
        """Yield every executed row with its first and its last copy, and how many there are."""
        for rows, starts, part in zip(self._rows, self._starts, self._parts, strict=True):
            for number, one, other, copies in part.repeated((first[0], 0), (last[0], 0), times):
                begin, end = self._index(rows.group, one[1]), self._index(rows.group, other[1])
                yield (
                    rows.row(starts, number),
                    (self._opened(one[0], begin, first[0]), first[1] + begin),
                    (self._opened(other[0], end, last[0]), last[1] + end),
                    copies,
                )

    def _index(self, group: int, number: int) -> int:
        """Return the number among all records of one of a group."""
        trip, place = divmod(number, len(self._places[group]))
        return trip * len(self._pattern) + self._places[group][place]

    def _opened(self, later: RecordShift, index: int, shift: RecordShift) -> RecordShift:
        """Add when the scalar unit opened a record: so many trips behind that in the same place of the first."""
        trip, place = divmod(index, len(self._pattern))
        cycles = shift.scalar + self._offset.scalar + trip * self._weave.cost
        return replace(later, opened=(self._weave.first + place, cycles))


def jumps_of(group: int, runs: tuple[TripRun, ...], jumps: Sequence[Stretch]) -> tuple[Jump, ...]:
    """Return those jumps over rows that concern a group, in the numbers of its own records."""
    rows = _GroupRows(group, runs)
    found = []
    for jump in jumps:
        first, end = rows.number(jump.first), rows.number(jump.end)
        if first < end and isinstance(jump, Jump):  # nothing is woven inside
            found.append(Jump(first, end, jump.times, jump.shift, jumps_of(group, runs, jump.inner)))
    return tuple(found)
