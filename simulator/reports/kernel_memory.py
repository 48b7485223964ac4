"""The content of the on-chip buffers of a program, cycle by cycle.

The bytes from the first to the last that an access touches are taken as one stretch. Data live from the start of the
instruction that writes them until the end of the last one that reads them before they are written again.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from castsim.execution.tree import Access, Tree, accesses, instances, scratch_reads
from castsim.reports.buffers import moved_accesses
from castsim.targets import Target
from castsim.timing import Timing

_MOST_PLACES = 512
"""Different places of accesses that are kept apart; beyond, all places of an operand count as one stretch."""

Interval = tuple[int, int]
"""Cycles [start, end)."""


@dataclass(frozen=True, slots=True)
class BufferStretch:
    """Bytes [start, end) of a buffer that instructions treat alike.

    `writes` and `reads` are the cycles in which an instruction does so, `live` those in which their content is still
    needed, all in order and without overlap; `written_by` and `read_by` are source lines. `scratch` marks bytes that
    are some instruction's scratch tile.
    """

    start: int
    end: int
    written_by: tuple[int, ...]
    read_by: tuple[int, ...]
    writes: tuple[Interval, ...]
    reads: tuple[Interval, ...]
    live: tuple[Interval, ...]
    scratch: bool

    @property
    def last_byte(self) -> int:
        """Address of its last byte."""
        return self.end - 1

    @property
    def live_cycles(self) -> int:
        """Cycles in which the content is needed."""
        return sum(end - start for start, end in self.live)


@dataclass(frozen=True, slots=True)
class BufferMap:
    """A buffer: its stretches in address order, and the most bytes that live at once, first in cycle `peak_cycle`."""

    name: str
    capacity: int
    stretches: tuple[BufferStretch, ...]
    peak_bytes: int
    peak_cycle: int


@dataclass(slots=True)
class _Use:
    """The accesses to one stretch: (start, end, write) in cycles, the lines that do it."""

    events: list[tuple[int, int, bool]] = field(default_factory=list)
    written_by: set[int] = field(default_factory=set)
    read_by: set[int] = field(default_factory=set)
    scratch: bool = False


def buffer_maps(tree: Tree, timing: Timing, target: Target) -> tuple[BufferMap, ...]:
    """Return the map of every buffer that the program touches."""
    found = []
    for name, memory in target.memories.items():
        uses = _uses(tree, timing, name)
        if uses:
            stretches = tuple(_merged(uses))
            peak, cycle = _peak(stretches)
            found.append(BufferMap(name, memory.capacity_bytes, stretches, peak, cycle))
    return tuple(found)


def _uses(tree: Tree, timing: Timing, space: str) -> dict[Interval, _Use]:
    """Return the accesses to each elementary stretch of a buffer."""
    places = _Places(tree, space)
    uses: dict[Interval, _Use] = {}
    for (lowered, deltas), execution in zip(instances(tree), timing.executions, strict=True):
        line = tree.instructions[lowered.instruction].span.line
        scratch = scratch_reads(lowered.accesses)
        for number, access in enumerate(accesses(lowered, deltas)):
            if access.space != space or access.start >= access.end:
                continue
            for piece in places.pieces((lowered.instruction, number), access):
                use = uses.setdefault(piece, _Use())
                use.events.append((execution.start, execution.end, access.write))
                (use.written_by if access.write else use.read_by).add(line)
                use.scratch |= number in scratch
    return uses


class _Places:
    """The elementary stretches of a buffer: no access begins or ends inside one."""

    def __init__(self, tree: Tree, space: str) -> None:
        self._whole: dict[tuple[int, int], Interval] = {}
        edges = set()
        for lowered, deltas in instances(tree):
            edges |= {edge for a in accesses(lowered, deltas) if a.space == space for edge in (a.start, a.end)}
            if len(edges) > 2 * _MOST_PLACES:
                self._widen(tree, space)
                edges = {edge for stretch in self._whole.values() for edge in stretch}
                break
        self._edges = sorted(edges)

    def _widen(self, tree: Tree, space: str) -> None:
        """Take all places of an operand as one stretch."""
        for key, access, (down, up) in moved_accesses(tree.root):
            if access.space == space:
                start, end = access.start + down, access.end + up
                low, high = self._whole.get(key, (start, end))
                self._whole[key] = (min(low, start), max(high, end))

    def pieces(self, key: tuple[int, int], access: Access) -> Iterator[Interval]:
        """Yield the elementary stretches of an access, which is operand `key[1]` of instruction `key[0]`."""
        start, end = self._whole.get(key, (access.start, access.end))
        first, last = bisect_left(self._edges, start), bisect_left(self._edges, end)
        edges = self._edges[first : last + 1]
        yield from pairwise(edges)


def _merged(uses: dict[Interval, _Use]) -> Iterator[BufferStretch]:
    """Yield the stretches in address order; neighbours to which the same happens are one."""
    open_at: Interval | None = None
    open_use = _Use()
    for (start, end), use in sorted(uses.items()):
        if open_at is not None and open_at[1] == start and open_use == use:
            open_at = (open_at[0], end)
            continue
        if open_at is not None:
            yield _stretch(open_at, open_use)
        open_at, open_use = (start, end), use
    if open_at is not None:
        yield _stretch(open_at, open_use)


def _stretch(place: Interval, use: _Use) -> BufferStretch:
    return BufferStretch(
        *place,
        tuple(sorted(use.written_by)),
        tuple(sorted(use.read_by)),
        tuple(joined((start, end) for start, end, write in use.events if write)),
        tuple(joined((start, end) for start, end, write in use.events if not write)),
        tuple(joined(_lives(use.events))),
        use.scratch,
    )


def _lives(events: Sequence[tuple[int, int, bool]]) -> Iterator[Interval]:
    """Yield from when to when contents are needed; what an instruction reads and overwrites, it reads first."""
    born: int | None = None
    needed = 0
    for start, end, write in sorted(events, key=lambda event: (event[0], event[2])):
        if not write:
            needed = max(needed, end)
        else:
            if born is not None:
                yield born, needed
            born, needed = start, end
    if born is not None:
        yield born, needed


def joined(intervals: Iterator[Interval] | Sequence[Interval]) -> Iterator[Interval]:
    """Yield the union of intervals, in order."""
    current: Interval | None = None
    for start, end in sorted(each for each in intervals if each[0] < each[1]):
        if current is not None and start <= current[1]:
            current = (current[0], max(current[1], end))
            continue
        if current is not None:
            yield current
        current = (start, end)
    if current is not None:
        yield current


def _peak(stretches: Sequence[BufferStretch]) -> Interval:
    """Return the most bytes that live at once, and the first cycle in which they do."""
    changes: dict[int, int] = {}
    for stretch in stretches:
        for start, end in stretch.live:
            changes[start] = changes.get(start, 0) + stretch.end - stretch.start
            changes[end] = changes.get(end, 0) - stretch.end + stretch.start
    most, when, live = 0, 0, 0
    for cycle in sorted(changes):
        live += changes[cycle]
        if live > most:
            most, when = live, cycle
    return most, when
