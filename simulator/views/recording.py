"""Listening to the event engine: which cycles of which pipe went to what."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.timing import Cause, Listener
from simulator.views.window import Window

LIMIT = 500_000
"""Segments kept at the most: about 100 MB, and more than any viewer shows in comfort."""


@dataclass(frozen=True, slots=True)
class Segment:
    """Cycles [start, end) of a pipe, spent for `cause` on behalf of operation number `operation`."""

    pipe: str
    start: int
    end: int
    cause: Cause
    operation: int | None


class Recorder:
    """An observer that keeps the segments of a window, and passes progress on to another listener.

    `cut` is the cycle from which segments were dropped because there were more than `limit`, None if none were.
    `first` is the first segment of every operation, in the window or before it: who sent it, and when.
    """

    def __init__(self, window: Window, listener: Listener | None = None, limit: int = LIMIT) -> None:
        self.segments: list[Segment] = []
        self.first: dict[int, Segment] = {}
        self.cut: int | None = None
        self._window = window
        self._listener = listener
        self._limit = limit

    def progress(self, cycle: int, operations: int) -> None:
        """Pass it on."""
        if self._listener is not None:
            self._listener.progress(cycle, operations)

    def segment(self, pipe: str, start: int, end: int, cause: Cause, operation: int | None) -> None:
        """Keep a segment that reaches into the window."""
        if self._window.end is not None and start >= self._window.end:
            return
        found = Segment(pipe, start, end, cause, operation)
        if operation is not None:
            self.first.setdefault(operation, found)
        if end <= self._window.start:
            return
        if len(self.segments) < self._limit:
            self.segments.append(found)
        elif self.cut is None or start < self.cut:
            self.cut = start

    def block(self, cycle: int, pipe: str, operation: int, address: int, write: bool, asked: int) -> None:
        """Blocks are not shown."""
