"""The cycles of one pipe, spent in order on causes."""

from __future__ import annotations

from castsim.timing import Cause, Observer, PipeTiming


class PipeAccount:
    """`cursor` is the first cycle not yet accounted for; neighbouring cycles alike are one segment."""

    def __init__(self, pipe: str, observer: Observer | None) -> None:
        self.cursor = 0
        self.causes: dict[Cause, int] = {}
        self.pipe = pipe
        self._observer = observer
        self._open: tuple[int, Cause, int | None] | None = None

    def charge(self, cause: Cause, until: int, operation: int | None = None) -> int:
        """Charge the cycles up to `until` to `cause`, on behalf of an operation; return how many they are."""
        cycles = until - self.cursor
        if cycles <= 0:
            return 0
        self.causes[cause] = self.causes.get(cause, 0) + cycles
        if self._observer is not None and (self._open is None or self._open[1:] != (cause, operation)):
            self._report(self._observer)
            self._open = (self.cursor, cause, operation)
        self.cursor = until
        return cycles

    def close(self) -> PipeTiming:
        """Report the last segment and return the sums."""
        if self._observer is not None:
            self._report(self._observer)
        return PipeTiming(dict(self.causes))

    def _report(self, observer: Observer) -> None:
        if self._open is not None:
            start, cause, operation = self._open
            observer.segment(self.pipe, start, self.cursor, cause, operation)
