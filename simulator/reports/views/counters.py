"""Quantities over the cycles of a window: operations waiting in queues, bytes of buffers that are still needed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from castsim.execution.tree import Access, Tree, accesses, instances
from castsim.reports.views.first_uses import ReadAhead
from castsim.reports.views.timeline import Timeline
from castsim.targets.dataflow import BLOCK_BYTES
from castsim.timing import Timing

BLOCK = BLOCK_BYTES
"""Bytes of a buffer that are counted together, the unit of strides of the instruction set."""


@dataclass(frozen=True, slots=True)
class CounterTrack:
    """`values` are (cycle, value) where the value changes; it holds until the next one.

    `of` is a pipe or a buffer, `unit` operations or bytes.
    """

    name: str
    values: tuple[tuple[int, int], ...]
    of: str
    unit: str


def counters(tree: Tree, timing: Timing, timeline: Timeline, capacities: Mapping[str, int]) -> tuple[CounterTrack, ...]:
    """Return the queue of every pipe that had one, and every buffer of `capacities` (bytes by name) that was used.

    A block of a buffer is needed from the first cycle of the instruction that writes it until the end of the last one
    that reads it before it is written again, or until that write begins.
    """
    queues = []
    for pipe in timeline.pipes:
        rows = [row for row in timeline.rows if row.pipe == pipe and row.dispatched + 1 < row.start]
        changes = [change for row in rows for change in ((row.dispatched + 1, 1), (row.start, -1))]
        if changes:
            queues.append(CounterTrack(f"{pipe} queue (operations)", _sums(changes, timeline), pipe, "operations"))
    buffers = [
        CounterTrack(f"{space} in use (bytes)", _sums(lives, timeline), space, "bytes")
        for space, size in capacities.items()
        for lives in [_lives(tree, timing, timeline, space, size)]
    ]
    return (*queues, *(buffer for buffer in buffers if any(value for _, value in buffer.values)))


def _sums(changes: Iterable[tuple[int, int]], timeline: Timeline) -> tuple[tuple[int, int], ...]:
    """Add up changes; those before the window count in its first cycle."""
    by_cycle: dict[int, int] = {timeline.start: 0}
    for cycle, change in changes:
        at = max(cycle, timeline.start)
        if timeline.holds(at):
            by_cycle[at] = by_cycle.get(at, 0) + change
    found: list[tuple[int, int]] = []
    value = 0
    for cycle in sorted(by_cycle):
        value += by_cycle[cycle]
        if not found or found[-1][1] != value:
            found.append((cycle, value))
    return tuple(found)


def _lives(tree: Tree, timing: Timing, timeline: Timeline, space: str, size: int) -> list[tuple[int, int]]:
    """Return the changes of the bytes in use: blocks come with the write and go with the last read.

    Of what has not begun by the end of the window it matters only whether it reads what is there.
    """
    blocks = -(-size // BLOCK)
    born, used = np.full(blocks, -1, np.int64), np.full(blocks, -1, np.int64)
    found: dict[tuple[int, int], int] = {}
    begun = zip(instances(tree), islice(timing.executions, timeline.executions), strict=False)
    for (lowered, deltas), execution in begun:
        touched = [access for access in accesses(lowered, deltas) if access.space == space]
        for access in (each for each in touched if not each.write):
            part = _blocks(access)
            used[part] = np.where(born[part] >= 0, np.maximum(used[part], execution.end), -1)
        for access in (each for each in touched if each.write):
            part = _blocks(access)
            # A write may begin before the last read of the same bytes has ended; they are no more bytes for that.
            read = np.maximum(born[part], np.minimum(used[part], execution.start))
            _count(born[part], np.where(used[part] >= 0, read, -1), found)
            born[part], used[part] = execution.start, -1
    if (born >= 0).any():
        later = ReadAhead(tree, space, BLOCK).first_is_read(timeline.executions, born >= 0)
        used[later] = timeline.total
    _count(born, used, found)
    return [
        change for (first, last), count in found.items() for change in ((first, count * BLOCK), (last, -count * BLOCK))
    ]


def _count(born: NDArray[np.int64], used: NDArray[np.int64], found: dict[tuple[int, int], int]) -> None:
    """Add the blocks whose lives end here; what nothing read was never in use."""
    read = used >= 0
    firsts, lasts = born[read], used[read]
    if not len(firsts):
        return
    # Neighbours mostly live alike: sorting all of them, for each instruction, would take longer than all else here.
    bounds = np.flatnonzero((np.diff(firsts) != 0) | (np.diff(lasts) != 0)) + 1
    heads = np.concatenate(([0], bounds))
    counts = np.diff(heads, append=len(firsts))
    for first, last, count in zip(firsts[heads].tolist(), lasts[heads].tolist(), counts.tolist(), strict=True):
        found[first, last] = found.get((first, last), 0) + count


def _blocks(access: Access) -> slice:
    return slice(access.start // BLOCK, -(-access.end // BLOCK))
