"""The cycles of pipes operation by operation, from what every engine tells of an operation.

An engine that tells each cycle of a pipe takes more time than a long run allows. An operation's cycles by cause, and
the cycle in which its pipe begins to work for it, say nearly as much: what it waits for comes before its work, and the
fill of a pipe before its work as the drain comes behind it. The order of other causes within an operation is not known.
"""

from __future__ import annotations

from collections.abc import Iterator

from castsim.reports.views.recording import PipeSegment
from castsim.timing import WAITING, Cause, OperationTiming, Timing

_WORK = tuple(cause for cause in Cause if cause not in WAITING and cause is not Cause.DRAIN)
_ORDER = (Cause.FILL, *(cause for cause in _WORK if cause is not Cause.FILL), Cause.DRAIN)
"""The order in which the cycles of an operation's work are told."""

_WAITS = tuple(cause for cause in Cause if cause in WAITING)


def operation_segments(timing: Timing, start: int, end: int) -> Iterator[PipeSegment]:
    """Yield the cycles of every operation that began before `end` and did not end before `start`, on its own pipe."""
    free = dict.fromkeys(timing.pipes, 0)
    for operation in timing.operations:
        spent = sum(operation.causes.values())
        if not spent:  # its end is an effect, and none of its pipe's cycles
            continue
        at = _begin(operation, spent, free[operation.pipe])
        free[operation.pipe] = at + spent
        if at >= end or at + spent < start:
            continue
        waits_first = at < operation.start
        for cause in (*_WAITS, *_ORDER) if waits_first else (*_ORDER, *_WAITS):
            cycles = operation.causes.get(cause, 0)
            if cycles:
                yield PipeSegment(operation.pipe, at, at + cycles, cause, operation.index)
            at += cycles


def _begin(operation: OperationTiming, spent: int, free: int) -> int:
    """Return the first cycle that the pipe, which is free from cycle `free` on, spent on behalf of an operation.

    Waits are before its work, unless the pipe was not free then: the unit that sends a barrier works first.
    """
    waited = sum(operation.causes.get(cause, 0) for cause in WAITING)
    if waited == spent:
        return max(free, operation.end - spent)
    before = operation.start - waited
    return before if before >= free else max(free, operation.start)
