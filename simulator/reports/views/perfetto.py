"""The trace as Chrome/Perfetto JSON.

There is one process per core, with threads for each pipe, its instructions, and their waits.

Times are cycles: the format counts microseconds, so one cycle is written as one microsecond, and
`otherData.time_unit` records this. Every cycle of a pipe belongs to one slice, named after the instruction it works
for or the reason for its wait; the cycles of launches are on an additional thread, by line. Whole instructions have
threads of their own: their executions as in the report's table, and separately their waits.
Flows are dependences, counters are queues and buffers. Everything is cut to the window; an arrow is present if the
last slice of its producer and the first slice of its consumer are.

Source: the Trace Event Format (phases X, M, s/f, C). To some readers, process and thread 0 mean 'none', so numbers
start at 1.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from castsim.execution.timing import Cause, Timing
from castsim.execution.tree import Access, Block, Deltas, Loop, Lowered, Node, Tree, accesses, instances, width
from castsim.isa.dataclass import dataclass
from castsim.reports.launches import LaunchSlice
from castsim.reports.views.recording import PipeSegment, free_tracks
from castsim.reports.views.timeline import Dependence, DrawnOperation, ExecutionSpan, Timeline
from castsim.targets.dataflow import BLOCK_BYTES

# The first use of bytes by the rest of a program, found without running it.

_Moved = Sequence[Deltas] | None


class ReadAhead:
    """Search for the first access to each block of one address space, starting at an instruction execution.

    Loops are unrolled only as long as they may touch a block whose first access is still unknown.
    """

    def __init__(self, tree: Tree, space: str, block: int) -> None:
        self._tree = tree
        self._space = space
        self._block = block
        self._counts: dict[int, int] = {}
        self._open = np.zeros(0, np.bool_)
        self._read = np.zeros(0, np.bool_)

    def first_is_read(self, executions: int, asked: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return those of the `asked` blocks that are read before they are written, after the first `executions`.

        An instruction that does both reads first.
        """
        self._open, self._read = asked.copy(), np.zeros_like(asked)
        self._walk(self._tree.root, None, executions)
        return self._read

    def _walk(self, node: Node, moved: _Moved, skip: int) -> int:
        """Examine all executions in `node` after the first `skip`; return how many are still to be skipped after it."""
        count = self._count(node)
        if skip >= count:
            return skip - count
        if not self._open.any():
            return 0
        if isinstance(node, Block):
            start = 0
            for item in node.items:
                end = start + width(item)
                skip = self._walk(item, None if moved is None else moved[start:end], skip)
                start = end
        elif isinstance(node, Loop):
            self._walk_loop(node, moved, skip)
            return 0
        elif isinstance(node, Lowered):
            self._see(accesses(node, moved))
        return skip

    def _walk_loop(self, loop: Loop, moved: _Moved, skip: int) -> None:
        done, skip = divmod(skip, self._count(loop.body))
        for looked, trip in enumerate(range(done, loop.trips)):
            # Looking at the rest costs as much as a trip, so it is not done in every one.
            if looked & (looked - 1) == 0 and not self._touches(loop, moved, trip):
                return
            skip = self._walk(loop.body, _advanced(moved, loop, trip), skip)

    def _see(self, touched: Sequence[Access]) -> None:
        for write in (False, True):
            for access in touched:
                if access.space == self._space and access.write == write:
                    part = slice(access.start // self._block, -(-access.end // self._block))
                    if not write:
                        self._read[part] |= self._open[part]
                    self._open[part] = False

    def _touches(self, loop: Loop, moved: _Moved, trip: int) -> bool:
        """Return whether an access of the trips from `trip` on may meet an open block; the extents are hulls."""
        return any(
            self._open[low // self._block : -(-high // self._block)].any()
            for low, high in self._loop_extents(loop, moved, trip)
        )

    def _extents(self, node: Node, moved: _Moved) -> Iterator[tuple[int, int]]:
        """Yield the hull of each access over all trips of the surrounding loops."""
        if isinstance(node, Block):
            start = 0
            for item in node.items:
                end = start + width(item)
                yield from self._extents(item, None if moved is None else moved[start:end])
                start = end
        elif isinstance(node, Loop):
            yield from self._loop_extents(node, moved, 0)
        elif isinstance(node, Lowered):
            yield from ((each.start, each.end) for each in accesses(node, moved) if each.space == self._space)

    def _loop_extents(self, loop: Loop, moved: _Moved, trip: int) -> Iterator[tuple[int, int]]:
        """Yield the same for a loop: addresses are affine in the trip, so the first and last ones bound the others."""
        ends = (self._extents(loop.body, _advanced(moved, loop, each)) for each in (trip, loop.trips - 1))
        for one, other in zip(*ends, strict=True):
            yield min(one[0], other[0]), max(one[1], other[1])

    def _count(self, node: Node) -> int:
        """Return the number of instructions that `node` executes."""
        if isinstance(node, Lowered):
            return 1
        if id(node) not in self._counts:
            count = 0
            if isinstance(node, Loop):
                count = node.trips * self._count(node.body)
            elif isinstance(node, Block):
                count = sum(map(self._count, node.items))
            self._counts[id(node)] = count
        return self._counts[id(node)]


def _advanced(moved: _Moved, loop: Loop, trip: int) -> _Moved:
    """Return the distance that the elements of the body move in a trip, `moved` of it by outer loops."""
    if moved is None:
        return [tuple(trip * step for step in row) for row in loop.steps]
    return [
        tuple(delta + trip * step for delta, step in zip(before, row, strict=True))
        for before, row in zip(moved, loop.steps, strict=True)
    ]


# Quantities over the cycles of a window: operations waiting in queues, bytes of buffers that are still needed.

BLOCK = BLOCK_BYTES
"""Bytes of a buffer that are counted together, the unit of strides of the instruction set."""


@dataclass(frozen=True, slots=True)
class CounterTrack:
    """A counter: `values` are (cycle, value) where the value changes; each lasts until the next one.

    `of` is a pipe or a buffer, `unit` operations or bytes.
    """

    name: str
    values: tuple[tuple[int, int], ...]
    of: str
    unit: str


def counters(tree: Tree, timing: Timing, timeline: Timeline, capacities: Mapping[str, int]) -> tuple[CounterTrack, ...]:
    """Return the queue of every pipe with one, and every buffer of `capacities` (bytes by name) that was used.

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
    """Return the changes of the bytes in use: blocks appear with the write and disappear with the last read.

    For instructions that start after the window, only their reads of existing blocks matter.
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
    """Count the blocks whose lives end here; blocks that nothing read were never in use."""
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


# Whole instructions as slices of tracks by pipe: when each was executed, and what it waited for until then.
#
# An execution is what the report's table says of it: from its first cycle of work to the end of its last effect. Slices
# of one track never overlap: a second instruction at the same time goes to another track of the pipe.
#
# What an instruction waits for is not its own time and stands on a track of its own, cut where the cause changes: from
# its first sign, or the start of the instruction before it on the pipe, to its own start, without the cycles in which
# the pipe works. What only synchronises has no execution: its waits are those of the pipe, and of the instruction
# behind it.

ISSUE = "issue"
"""Cause of a cycle in which the pipe has nothing to do, because the instruction has not reached it yet."""
_WAITS = (Cause.FLAG_WAIT, Cause.OPERAND_WAIT, Cause.BARRIER)


@dataclass(frozen=True, slots=True)
class InstructionSlice:
    """Cycles [start, end) of an instruction on a track; `cause` is None if it was executed."""

    track: str
    start: int
    end: int
    span: ExecutionSpan
    cause: str | None


def instruction_slices(timeline: Timeline) -> tuple[InstructionSlice, ...]:
    """Return the slices of all instructions of a window, cut to it, in order of pipe, track and start."""
    found: list[InstructionSlice] = []
    for pipe in timeline.pipes:
        working = [span for span in timeline.spans if span.pipe == pipe and not span.synchronises]
        working.sort(key=lambda span: (span.start, span.end))
        segments = [segment for segment in timeline.segments if segment.pipe == pipe]
        name = f"{pipe} instructions"
        tracks = free_tracks((span.start, max(span.end, span.start + 1)) for span in working)
        for number, span in zip(tracks, working, strict=True):
            found += _cut(timeline, name if number == 1 else f"{name} ({number})", span)
        before: ExecutionSpan | None = None
        for span in working:
            lower = span.since if before is None else max(span.since, before.start)
            found += _waited(timeline, f"{pipe} waits", span, lower, segments)
            before = span
    return tuple(found)


def _cut(timeline: Timeline, track: str, span: ExecutionSpan) -> Iterator[InstructionSlice]:
    """Yield the part of an execution inside the window; for one of zero length, its moment."""
    start, end = max(span.start, timeline.start), min(span.end, timeline.end)
    if start < end or (span.start == span.end and timeline.holds(span.end)):
        yield InstructionSlice(track, start, end, span, None)


def _waited(
    timeline: Timeline, track: str, span: ExecutionSpan, lower: int, segments: Sequence[PipeSegment]
) -> Iterator[InstructionSlice]:
    """Yield the cycles from `lower` to the start of an instruction in which its pipe does not work, by cause."""
    first, last = max(lower, timeline.start), min(span.start, timeline.end)
    begin = bisect_right(segments, first, key=lambda segment: segment.end)
    for segment in islice(segments, begin, None):
        if segment.start >= last:
            break
        cause = ISSUE if segment.cause is Cause.EMPTY else str(segment.cause)
        start, end = max(segment.start, first), min(segment.end, last)
        stands = segment.cause is Cause.EMPTY or segment.cause in _WAITS or segment.operation == span.first
        if start < end and stands:
            yield InstructionSlice(track, start, end, span, cause)


_PROCESS = 1
_APART = 1000
"""Distance between the numbers of two pipes; viewers treat the thread with the process number as the main one."""
_LINES = "inside launches"
_PIECE = 4096
"""Number of events that are written together."""
Event = dict[str, Any]


def perfetto_text(
    timeline: Timeline,
    found: Iterable[Dependence],
    counters: Iterable[CounterTrack],
    target: str,
    inside: Iterable[LaunchSlice] = (),
) -> Iterator[str]:
    """Yield the JSON document of a window piece by piece: as a whole, it would need several times the memory.

    `inside` are the cycles of launches by line, on a separate thread.
    """
    write = json.JSONEncoder(allow_nan=False).encode
    yield '{"traceEvents": ['
    events = _events(timeline, found, counters, target, inside)
    first = True
    while piece := [*islice(events, _PIECE)]:
        yield ("" if first else ", ") + write(piece)[1:-1]
        first = False
    yield "], " + write(_about(timeline, target))[1:]


def _about(timeline: Timeline, target: str) -> Mapping[str, Any]:
    """Return the track data that follows the events."""
    return {
        "displayTimeUnit": "ns",
        "otherData": {
            "program": timeline.title,
            "target": target,
            "time_unit": "1 us represents 1 cycle",
            "first_cycle": timeline.start,
            "end_cycle": timeline.end,
            "total_cycles": timeline.total,
            "cut": timeline.cut is not None,
        },
    }


def _events(
    timeline: Timeline,
    found: Iterable[Dependence],
    counters: Iterable[CounterTrack],
    target: str,
    inside: Iterable[LaunchSlice],
) -> Iterator[Event]:
    instructions = instruction_slices(timeline)
    threads = _threads(timeline, instructions)
    lines = [each for each in inside if each.start < timeline.end and each.end > timeline.start]
    threads |= {_LINES: _APART * (len(timeline.pipes) + 1)} if lines else {}
    yield from _names(threads, target)
    yield from _slices(timeline, threads)
    yield from _moments((row for row in timeline.rows if row.start == row.end and timeline.holds(row.end)), threads)
    yield from (_instruction(each, threads[each.track]) for each in instructions)
    yield from (_line_of_launch(each, timeline, threads[_LINES]) for each in lines)
    yield from _flows(timeline, found, threads)
    for counter in counters:
        for cycle, value in counter.values:
            yield {"ph": "C", "pid": _PROCESS, "ts": cycle, "name": counter.name, "args": {"value": value}}


def _threads(timeline: Timeline, instructions: Iterable[InstructionSlice]) -> dict[str, int]:
    """Return the number of every track by name, in the order of display: each pipe, then its own tracks.

    Viewers that ignore the order of threads sort them by number. The numbers of pipes do not depend on the window.
    """
    tracks = sorted({(each.span.pipe, each.cause is not None, len(each.track), each.track) for each in instructions})
    return {
        name: _APART * place + number
        for place, pipe in enumerate(timeline.pipes, 1)
        for number, name in enumerate((pipe, *(each[-1] for each in tracks if each[0] == pipe)))
    }


def _names(threads: Mapping[str, int], target: str) -> Iterator[Event]:
    yield {"ph": "M", "pid": _PROCESS, "name": "process_name", "args": {"name": f"core 0 ({target})"}}
    for place, (track, number) in enumerate(threads.items()):
        about = {"ph": "M", "pid": _PROCESS, "tid": number}
        yield {**about, "name": "thread_name", "args": {"name": track}}
        yield {**about, "name": "thread_sort_index", "args": {"sort_index": place}}


def _slice(thread: int, start: int, end: int, name: str, kind: str, about: Event) -> Event:
    """Return cycles [start, end) of a thread as an event."""
    return {
        "ph": "X", "pid": _PROCESS, "tid": thread, "ts": start, "dur": end - start, "name": name, "cat": kind,
        "args": about,
    }  # fmt: skip


def _slices(timeline: Timeline, threads: Mapping[str, int]) -> Iterator[Event]:
    rows = {row.index: row for row in (*timeline.rows, *timeline.sent)}
    for segment in timeline.segments:
        if segment.cause is Cause.EMPTY:
            continue
        row = None if segment.operation is None else rows.get(segment.operation)
        working = segment.cause is Cause.BUSY and row is not None
        arguments: Event = {"cause": str(segment.cause)}
        if row is not None:
            arguments |= {"operation": row.index, "name": row.name, "instruction": row.text, "line": row.line}
        name = row.name if working and row is not None else str(segment.cause)
        kind = "work" if working else "stall"
        yield _slice(threads[segment.pipe], segment.start, segment.end, name, kind, arguments)


def _moments(rows: Iterable[DrawnOperation], threads: Mapping[str, int]) -> Iterator[Event]:
    """Yield a slice of zero length for every operation that takes no time, as an anchor for flows."""
    for row in rows:
        about = {"operation": row.index, "line": row.line}
        yield _slice(threads[row.pipe], row.end, row.end, row.name, "moment", about)


def _line_of_launch(each: LaunchSlice, timeline: Timeline, thread: int) -> Event:
    """Return the slice of a line of a launch, cut to the window."""
    start, end = max(each.start, timeline.start), min(each.end, timeline.end)
    return _slice(thread, start, end, each.text, "launch", {"cause": str(each.cause), "line": each.number})


def _instruction(each: InstructionSlice, thread: int) -> Event:
    """Return the slice of an instruction, executing or waiting; a wait is named after its cause."""
    span = each.span
    name, kind = (span.text, "instruction") if each.cause is None else (each.cause, "wait")
    about = {"execution": span.execution, "instruction": span.text, "line": span.line}
    return _slice(thread, each.start, each.end, name, kind, about)


def _flows(timeline: Timeline, found: Iterable[Dependence], threads: Mapping[str, int]) -> Iterator[Event]:
    """Yield both ends of every arrow: from the last cycle of the producer to the first of the consumer."""
    rows = {row.index: row for row in timeline.rows}
    own = timeline.by_operation()
    for number, dependence in enumerate(found, 1):
        producer, consumer = rows[dependence.producer], rows[dependence.consumer]
        leaves = _leaves(timeline, producer, own.get(producer.index, ()))
        arrives = _arrives(timeline, consumer, own.get(consumer.index, ()))
        # A program may read too early; no arrow leads back in time.
        if leaves is None or arrives is None or arrives < leaves:
            continue
        about = {"pid": _PROCESS, "cat": "dependence", "id": number, "name": dependence.why}
        yield {"ph": "s", "tid": threads[producer.pipe], "ts": leaves, **about}
        yield {"ph": "f", "bp": "e", "tid": threads[consumer.pipe], "ts": arrives, **about}


def _leaves(timeline: Timeline, row: DrawnOperation, own: Sequence[PipeSegment]) -> int | None:
    """Return the last cycle of an operation's last slice, its moment if it takes no time; None outside the window."""
    if row.start == row.end:
        return row.end if timeline.holds(row.end) else None
    return own[-1].end - 1 if own and row.end <= timeline.end else None


def _arrives(timeline: Timeline, row: DrawnOperation, own: Sequence[PipeSegment]) -> int | None:
    """Return the first cycle of an operation's work, its moment if it takes no time; None outside the window."""
    if row.start == row.end:
        return row.end if timeline.holds(row.end) else None
    return row.start if any(segment.start <= row.start < segment.end for segment in own) else None
