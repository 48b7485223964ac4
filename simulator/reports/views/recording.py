"""Listening to an engine: which cycles of which pipe went to what."""

from __future__ import annotations

from dataclasses import dataclass

from castsim.reports.views.window import Window
from castsim.timing import Cause, IgnoresBlocks, Listener

LIMIT = 500_000
"""Segments kept at the most: about 100 MB, and more than any viewer shows in comfort."""


@dataclass(frozen=True, slots=True)
class PipeSegment:
    """Cycles [start, end) of a pipe, spent for `cause` on behalf of operation number `operation`."""

    pipe: str
    start: int
    end: int
    cause: Cause
    operation: int | None


class Recorder(IgnoresBlocks):
    """An observer that keeps the segments of a window, and passes progress on to another listener.

    `cut` is the cycle from which segments are missing because there were more than `limit`, None if none are. `first`
    is the earliest segment of every operation, in the window or before it: who sent it, and when. `issued` bounds the
    numbers of operations that were issued in the window or before it, None if that is not known.
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
        """Pass it on."""
        if self._listener is not None:
            self._listener.progress(cycle, operations)

    def segment(self, pipe: str, start: int, end: int, cause: Cause, operation: int | None) -> None:
        """Keep a segment that reaches into the window."""
        if self.until is not None and start >= self.until:
            return
        found = PipeSegment(pipe, start, end, cause, operation)
        if operation is not None:
            # Pipes report when a segment ends, so the earliest need not come first.
            known = self.first.get(operation)
            if known is None or start < known.start:
                self.first[operation] = found
        if end <= self._window.start:
            return
        self.segments.append(found)
        # A quarter more at times, so that sorting is rare.
        if len(self.segments) > self._limit + self._limit // 4:
            self._drop()

    def block(self, cycle: int, pipe: str, operation: int, address: int, write: bool, asked: int) -> None:
        """Blocks are not shown."""

    def _drop(self) -> None:
        """Keep the earliest segments: long ones are reported late, so the latest to come are not those to drop."""
        self.segments.sort(key=lambda segment: segment.start)
        self.cut = self.segments[self._limit].start
        self.segments = [segment for segment in self.segments if segment.start < (self.cut or 0)]
