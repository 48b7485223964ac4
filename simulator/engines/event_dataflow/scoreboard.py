"""Which earlier instructions an instruction has to wait for, in programs that synchronise nothing themselves.

Per address space a map of disjoint intervals holds the last writer and the readers since. What a writer replaced it
waited for itself, so the map is enough: what waits for the last writer waits for all before it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

from castsim.engines.event_dataflow.records import ExecutionRecord
from castsim.execution.dataflow.survey import Survey
from castsim.execution.tree import Access, Tree

_FIRST_SWEEP = 64
"""Intervals of a space before ended instructions are looked for."""


@dataclass(slots=True)
class _Interval:
    end: int
    writer: ExecutionRecord | None
    readers: list[ExecutionRecord]


class _Space:
    """One address space: `_starts` is sorted and parallel to `_intervals`, which do not overlap."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._intervals: list[_Interval] = []
        self._sweep_at = _FIRST_SWEEP

    def conflicts(self, access: Access) -> Iterable[ExecutionRecord]:
        """Yield who touched the bytes in a conflicting way."""
        for interval in self._intervals[self._overlapping(access)]:
            if interval.writer is not None:
                yield interval.writer
            if access.write:
                yield from interval.readers

    def enter(self, access: Access, execution: ExecutionRecord, now: int) -> None:
        """Record who touches the bytes now."""
        self._split(access.start)
        self._split(access.end)
        overlapping = self._overlapping(access)
        if access.write:
            self._starts[overlapping] = [access.start]
            self._intervals[overlapping] = [_Interval(access.end, execution, [])]
        else:
            self._add_reader(access, overlapping, execution, now)
        if len(self._starts) > self._sweep_at:
            self._sweep(now)

    def _add_reader(self, access: Access, overlapping: slice, execution: ExecutionRecord, now: int) -> None:
        starts, intervals = [], []
        position = access.start
        known = zip(self._starts[overlapping], self._intervals[overlapping], strict=True)
        for start, interval in known:
            if position < start:
                starts.append(position)
                intervals.append(_Interval(start, None, [execution]))
            interval.readers = [*(reader for reader in interval.readers if not reader.over(now)), execution]
            starts.append(start)
            intervals.append(interval)
            position = interval.end
        if position < access.end:
            starts.append(position)
            intervals.append(_Interval(access.end, None, [execution]))
        self._starts[overlapping] = starts
        self._intervals[overlapping] = intervals

    def _overlapping(self, access: Access) -> slice:
        first = max(0, bisect_right(self._starts, access.start) - 1)
        if first < len(self._starts) and self._intervals[first].end <= access.start:
            first += 1
        return slice(first, max(first, bisect_left(self._starts, access.end)))

    def _split(self, position: int) -> None:
        """Make no interval cross `position`."""
        index = bisect_left(self._starts, position) - 1
        if index < 0 or self._intervals[index].end <= position:
            return
        left = self._intervals[index]
        self._starts.insert(index + 1, position)
        self._intervals.insert(index + 1, _Interval(left.end, left.writer, list(left.readers)))
        left.end = position

    def _sweep(self, now: int) -> None:
        """Forget intervals that nothing could still wait for."""
        kept = [
            (start, interval)
            for start, interval in zip(self._starts, self._intervals, strict=True)
            if not all(record.over(now) for record in (interval.writer, *interval.readers) if record is not None)
        ]
        self._starts = [start for start, _ in kept]
        self._intervals = [interval for _, interval in kept]
        self._sweep_at = max(_FIRST_SWEEP, 2 * len(kept))


class Scoreboard:
    """The bytes in flight, in the address spaces in which they are followed."""

    def __init__(self, tree: Tree) -> None:
        self._spaces = {space: _Space() for space in Survey(tree).followed_spaces()}

    def enter(self, execution: ExecutionRecord, accesses: tuple[Access, ...], now: int) -> tuple[ExecutionRecord, ...]:
        """Record the accesses of the next execution in program order; return the earlier ones it has to wait for."""
        followed = [
            (self._spaces[access.space], access)
            for access in accesses
            if access.space in self._spaces and access.start < access.end
        ]
        needs = {id(record): record for space, access in followed for record in space.conflicts(access)}
        for space, access in followed:
            space.enter(access, execution, now)
        return tuple(record for record in needs.values() if not record.over(now))
