"""Whole instructions as slices of tracks by pipe: when each was executed, and what it waited for until then.

An execution is what the report's table says of it: from its first cycle of work to the end of its last effect. Slices
of one track never overlap: a second instruction at the same time goes to another track of the pipe.

What an instruction waits for is not its own time and stands on a track of its own, cut where the cause changes: from
its first sign, or the start of the instruction before it on the pipe, to its own start, without the cycles in which the
pipe works. What only synchronises has no execution: its waits are those of the pipe, and of the instruction behind it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import islice

from castsim.reports.views.recording import PipeSegment
from castsim.reports.views.timeline import ExecutionSpan, Timeline
from castsim.timing import Cause

ISSUE = "issue"
"""The pipe has nothing to do: the instruction has not come to it yet."""
_WAITS = (Cause.FLAG_WAIT, Cause.OPERAND_WAIT, Cause.BARRIER)


@dataclass(frozen=True, slots=True)
class InstructionSlice:
    """Cycles [start, end) of an instruction on a track; `cause` is None where it was executed."""

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
        for track, span in _tracks(f"{pipe} instructions", [(span.start, span.end, span) for span in working]):
            found += _cut(timeline, track, span)
        before: ExecutionSpan | None = None
        for span in working:
            lower = span.since if before is None else max(span.since, before.start)
            found += _waited(timeline, f"{pipe} waits", span, lower, segments)
            before = span
    return tuple(found)


def _tracks(name: str, wanted: Sequence[tuple[int, int, ExecutionSpan]]) -> Iterator[tuple[str, ExecutionSpan]]:
    """Yield on which track each stands, in order of start: the lowest that is free."""
    free: list[int] = []
    taken: list[tuple[int, int]] = []
    made = 0
    for start, end, span in wanted:
        while taken and taken[0][0] <= start:
            heappush(free, heappop(taken)[1])
        if not free:
            made += 1
            heappush(free, made)
        number = heappop(free)
        heappush(taken, (max(end, start + 1), number))
        yield name if number == 1 else f"{name} ({number})", span


def _cut(timeline: Timeline, track: str, span: ExecutionSpan) -> Iterator[InstructionSlice]:
    """Yield what of an execution lies in the window; of one without length, its moment."""
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
