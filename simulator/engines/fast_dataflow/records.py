"""What is reported of executions and operations: worked out from columns when it is read.

A run that skipped trips has executed fewer of them than it reports. Each `Jump` says which part of what was executed
stands for how many repetitions, and how much later each of them is than the one before.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Generic, Protocol, TypeVar, overload

from castsim.execution import timing

Record = TypeVar("Record")


@dataclass(frozen=True, slots=True)
class RecordShift:
    """The distance of a repetition behind what was executed: cycles of the pipes and of the scalar unit, executions."""

    pipes: int = 0
    scalar: int = 0
    executions: int = 0

    def plus(self, other: RecordShift, times: int = 1) -> RecordShift:
        """Return this shift and `times` another one."""
        return RecordShift(
            self.pipes + times * other.pipes,
            self.scalar + times * other.scalar,
            self.executions + times * other.executions,
        )


@dataclass(frozen=True, slots=True)
class Jump:
    """The records from `first` to before `end` happened `times` more times, each `shift` behind the one before.

    `inner` are the jumps among them, in order. What comes behind `end` is later by all of that.
    """

    first: int
    end: int
    times: int
    shift: RecordShift
    inner: tuple[Jump, ...] = ()

    def total(self) -> RecordShift:
        """Return how much later everything behind is than it was executed; the clocks of all units agree there."""
        pipes, executions = self.times * self.shift.pipes, self.times * self.shift.executions
        total = RecordShift(pipes, pipes, executions)
        for jump in self.inner:
            total = total.plus(jump.total())
        return total

    def part(self, offset: RecordShift) -> RecordSequence:
        """Return all repetitions, later by `offset`."""
        return RepeatedRecords(parts_of(self.first, self.end, self.inner, offset), self.times + 1, self.shift)


Copy = tuple[RecordShift, int]
"""How much later a copy is than what was executed, and its number."""


class RecordSequence(Protocol):
    """Records that follow each other."""

    @property
    def length(self) -> int:
        """The number of records."""
        ...

    def find(self, index: int, shift: RecordShift) -> tuple[int, RecordShift]:
        """Return the row of a record and how much later it is than executed."""
        ...

    def walk(self, shift: RecordShift) -> Iterator[tuple[int, RecordShift]]:
        """Yield all records in order."""
        ...

    def repeated(self, first: Copy, last: Copy, times: int) -> Iterator[tuple[int, Copy, Copy, int]]:
        """Yield every executed row with its first and its last copy, and how many there are."""
        ...


@dataclass(frozen=True, slots=True)
class _Plain:
    """Records as they were executed, all later by `offset`."""

    first: int
    end: int
    offset: RecordShift

    @property
    def length(self) -> int:
        return self.end - self.first

    def find(self, index: int, shift: RecordShift) -> tuple[int, RecordShift]:
        return self.first + index, self.offset.plus(shift)

    def walk(self, shift: RecordShift) -> Iterator[tuple[int, RecordShift]]:
        behind = self.offset.plus(shift)
        for row in range(self.first, self.end):
            yield row, behind

    def repeated(self, first: Copy, last: Copy, times: int) -> Iterator[tuple[int, Copy, Copy, int]]:
        one, other = self.offset.plus(first[0]), self.offset.plus(last[0])
        for place, row in enumerate(range(self.first, self.end)):
            yield row, (one, first[1] + place), (other, last[1] + place), times


class RepeatedRecords:
    """Parts one after the other, all of that `times` times, each time `shift` later."""

    def __init__(self, parts: Sequence[RecordSequence], times: int, shift: RecordShift) -> None:
        self._parts = parts
        self._starts = [0, *accumulate(part.length for part in parts)]
        self._times = times
        self._shift = shift
        self.length: int = self._starts[-1] * times

    def find(self, index: int, shift: RecordShift) -> tuple[int, RecordShift]:
        """Return the row of a record and how much later it is than executed."""
        time, place = divmod(index, self._starts[-1])
        number = bisect_right(self._starts, place) - 1
        return self._parts[number].find(place - self._starts[number], shift.plus(self._shift, time))

    def walk(self, shift: RecordShift) -> Iterator[tuple[int, RecordShift]]:
        """Yield all records in order."""
        for time in range(self._times if self.length else 0):
            for part in self._parts:
                yield from part.walk(shift.plus(self._shift, time))

    def repeated(self, first: Copy, last: Copy, times: int) -> Iterator[tuple[int, Copy, Copy, int]]:
        """Yield every executed row with its first and its last copy, and how many there are."""
        later = self._times - 1
        shift, number = last[0].plus(self._shift, later), last[1] + later * self._starts[-1]
        for part, start in zip(self._parts, self._starts, strict=False):
            yield from part.repeated((first[0], first[1] + start), (shift, number + start), times * self._times)


def parts_of(first: int, end: int, jumps: Sequence[Jump], offset: RecordShift) -> list[RecordSequence]:
    """Return the parts of records `first` to before `end`, of which `jumps` stand for more, later by `offset`."""
    found: list[RecordSequence] = []
    for jump in jumps:
        if first < jump.first:
            found.append(_Plain(first, jump.first, offset))
        if jump.first < jump.end:
            found.append(jump.part(offset))
        offset = offset.plus(jump.total())
        first = jump.end
    if first < end:
        found.append(_Plain(first, end, offset))
    return found


class Records(Sequence[Record], Generic[Record]):
    """Records in program order: `count` were executed, `jumps` say which of them stand for more, `make` makes one.

    It gets the row, how much later the record is than that was executed, and its number.
    """

    def __init__(self, count: int, jumps: Sequence[Jump], make: Callable[[int, RecordShift, int], Record]) -> None:
        self._all = RepeatedRecords(parts_of(0, count, jumps, RecordShift()), 1, RecordShift())
        self._make = make

    def __len__(self) -> int:
        return self._all.length

    @overload
    def __getitem__(self, index: int) -> Record: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Record, ...]: ...

    def __getitem__(self, index: int | slice) -> Record | tuple[Record, ...]:
        if isinstance(index, slice):
            return tuple(self[number] for number in range(*index.indices(len(self))))
        number = index + len(self) if index < 0 else index
        if not 0 <= number < len(self):
            raise IndexError(f"record {index} of {len(self)}")
        return self._make(*self._all.find(number, RecordShift()), number)

    def __iter__(self) -> Iterator[Record]:
        for number, (row, shift) in enumerate(self._all.walk(RecordShift())):
            yield self._make(row, shift, number)

    def repeated(self) -> Iterator[tuple[Record, Record, int]]:
        """Yield every executed record: its first and its last copy, and how many there are."""
        for row, first, last, times in self._all.repeated((RecordShift(), 0), (RecordShift(), 0), 1):
            yield self._make(row, *first), self._make(row, *last), times

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str | bytes):
            return NotImplemented
        return len(self) == len(other) and all(one == two for one, two in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]  # as of lists: equal to sequences of other types

    def __repr__(self) -> str:
        return f"<{len(self)} records>"


class Later(Sequence[Record], Generic[Record]):
    """Records that are worked out, all at once, when they are first read."""

    def __init__(self, make: Callable[[], Sequence[Record]]) -> None:
        self._make: Callable[[], Sequence[Record]] | None = make
        self._records: Sequence[Record] = ()

    def _made(self) -> Sequence[Record]:
        if self._make is not None:
            self._records, self._make = self._make(), None
        return self._records

    def __len__(self) -> int:
        return len(self._made())

    @overload
    def __getitem__(self, index: int) -> Record: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Record]: ...

    def __getitem__(self, index: int | slice) -> Record | Sequence[Record]:
        return self._made()[index]

    def __iter__(self) -> Iterator[Record]:
        return iter(self._made())

    def repeated(self) -> Iterator[tuple[Record, Record, int]]:
        """Yield records with their last copies and how many there are (see `castsim.execution.timing.Repeating`)."""
        return timing.repeated(self._made())

    def __eq__(self, other: object) -> bool:
        return bool(self._made() == other) if not isinstance(other, Later) else bool(self._made() == other._made())

    __hash__ = None  # type: ignore[assignment]  # as of lists: equal to sequences of other types

    def __repr__(self) -> str:
        return "<records not worked out>" if self._make is not None else repr(self._records)
