"""Recording of an engine: the cause of every cycle of every pipe."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from typing import Self

from castsim.execution.timing import WAITING, Cause, IgnoresBlocks, Listener, OperationTiming, Timing
from castsim.isa.dataclass import dataclass
from castsim.isa.errors import ReadError

# The part of a run that a view shows.

_FORM = re.compile(r"(\d*):(\d*)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Window:
    """Cycles [start, end); `end` None is the end of the run."""

    start: int = 0
    end: int | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `A:B`, `A:` or `:B`.

        Raises:
            ReadError: the text has another form, or the window is empty.
        """
        match = _FORM.fullmatch(text)
        if match is None:
            raise ReadError(f"--window {text}: expected A:B", legal=("100:200", "100:", ":200"))
        start, end = (int(part) if part else None for part in match.groups())
        if end is not None and end <= (start or 0):
            raise ReadError(f"--window {text}: nothing happens between cycle {start or 0} and cycle {end}")
        return cls(start or 0, end)

    def within(self, total: int) -> tuple[int, int]:
        """Return first cycle and end in a run of `total` cycles.

        Raises:
            ReadError: the window reaches beyond the run.
        """
        end = total if self.end is None else self.end
        if end > total or self.start >= max(total, 1):
            raise ReadError(
                f"--window {self.start}:{'' if self.end is None else self.end}: the run ends at cycle {total}",
                legal=(f"0:{total}",),
            )
        return self.start, end


LIMIT = 500_000
"""Maximum number of segments kept: about 100 MB, and more than viewers handle comfortably."""


@dataclass(frozen=True, slots=True)
class PipeSegment:
    """Cycles [start, end) of a pipe, spent for `cause` on behalf of operation number `operation`."""

    pipe: str
    start: int
    end: int
    cause: Cause
    operation: int | None


class SegmentRecorder(IgnoresBlocks):
    """Observer that keeps the segments of a window, and passes progress on to another listener.

    `cut` is the cycle from which segments are missing because there were more than `limit`, None if none are. `first`
    is the earliest segment of every operation, in the window or before it, with sender and time. `issued` bounds the
    numbers of operations that were issued in the window or before it, None if that is unknown.
    """

    def __init__(self, window: Window, listener: Listener | None = None, limit: int = LIMIT) -> None:
        self.segments: list[PipeSegment] = []
        self.first: dict[int, PipeSegment] = {}
        self.cut: int | None = None
        self.issued: int | None = None
        self._window = window
        self._listener = listener
        self._limit = limit

    @property
    def until(self) -> int | None:
        """The cycle from which on nothing is kept."""
        return self._window.end if self.cut is None else self.cut

    def progress(self, cycle: int, operations: int) -> None:
        """Pass the progress on."""
        if self._listener is not None:
            self._listener.progress(cycle, operations)

    def segment(self, pipe: str, start: int, end: int, cause: Cause, operation: int | None) -> None:
        """Keep a segment that overlaps the window."""
        if self.until is not None and start >= self.until:
            return
        new_segment = PipeSegment(pipe, start, end, cause, operation)
        if operation is not None:
            # Pipes report when a segment ends, so the earliest need not come first.
            first_segment = self.first.get(operation)
            if first_segment is None or start < first_segment.start:
                self.first[operation] = new_segment
        if end <= self._window.start:
            return
        self.segments.append(new_segment)
        # A quarter more at times, so that sorting is rare.
        if len(self.segments) > self._limit + self._limit // 4:
            self._drop()

    def block(self, cycle: int, pipe: str, operation: int, address: int, write: bool, asked: int) -> None:
        """Ignore a block, because blocks are not shown."""

    def _drop(self) -> None:
        """Keep the earliest segments: long ones are reported late, so the last ones reported are not dropped first."""
        self.segments.sort(key=lambda segment: segment.start)
        self.cut = self.segments[self._limit].start
        self.segments = [segment for segment in self.segments if segment.start < (self.cut or 0)]


def free_tracks(spans: Iterable[tuple[int, int]]) -> Iterator[int]:
    """Yield the track, from 1, of each [start, end) in order of start: the lowest free one."""
    free: list[int] = []
    taken: list[tuple[int, int]] = []
    tracks = 0
    for start, end in spans:
        while taken and taken[0][0] <= start:
            heappush(free, heappop(taken)[1])
        if not free:
            tracks += 1
            heappush(free, tracks)
        number = heappop(free)
        heappush(taken, (end, number))
        yield number


def cut_segment(segment: PipeSegment, start: int, end: int) -> PipeSegment:
    """Return the part of a segment inside cycles [start, end)."""
    if segment.start >= start and segment.end <= end:
        return segment
    return PipeSegment(segment.pipe, max(segment.start, start), min(segment.end, end), segment.cause, segment.operation)


# The cycles of pipes operation by operation, from what every engine tells of an operation.
#
# An engine that tells each cycle of a pipe takes more time than a long run allows. An operation's cycles by cause, and
# the cycle in which its pipe begins to work for it, say nearly as much: what it waits for comes before its work, and
# the fill of a pipe before its work as the drain comes behind it. The order of other causes within an operation is not
# known.

_WORK = tuple(cause for cause in Cause if cause not in WAITING and cause is not Cause.DRAIN)
_ORDER = (Cause.FILL, *(cause for cause in _WORK if cause is not Cause.FILL), Cause.DRAIN)
"""Order of the cycles of an operation's work."""

_WAITS = tuple(cause for cause in Cause if cause in WAITING)


def operation_segments(timing: Timing, start: int, end: int) -> Iterator[PipeSegment]:
    """Yield the cycles of every operation that overlaps [`start`, `end`), on its own pipe."""
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
    """Return the first cycle that the pipe, free from cycle `free` on, spent on behalf of an operation.

    Waits precede its work, unless the pipe was not free then: the unit that sends a barrier works first.
    """
    waited = sum(operation.causes.get(cause, 0) for cause in WAITING)
    if waited == spent:
        return max(free, operation.end - spent)
    before = operation.start - waited
    return before if before >= free else max(free, operation.start)
