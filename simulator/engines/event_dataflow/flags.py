"""Flags between pipes: counters, one per ordered pair of pipes and event id.

Source: docs/reference/a2a3.md sections 6.4 and 7.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

Key = tuple[str, str, int]
"""Signaller, waiter, event id."""


class Flags:
    """Signals that were set and not yet consumed, each with the cycle in which it was set.

    A flag has one signaller, which sets it in order, and one waiter, which consumes in order; so the k-th wait gets
    the k-th signal, and a signal of the scalar unit may be entered ahead of its time.
    """

    def __init__(self) -> None:
        self._set: dict[Key, deque[int]] = {}
        self._waiters: dict[Key, Callable[[int], object]] = {}

    def fire(self, key: Key, cycle: int) -> bool:
        """Set the flag in `cycle`; return whether its waiter was already waiting."""
        waiter = self._waiters.pop(key, None)
        if waiter is None:
            self._set.setdefault(key, deque()).append(cycle)
            return False
        waiter(cycle)
        return True

    def take(self, key: Key) -> int | None:
        """Consume the oldest signal and return its cycle, None if there is none."""
        signals = self._set.get(key)
        return signals.popleft() if signals else None

    def wait(self, key: Key, waiter: Callable[[int], object]) -> None:
        """Have `waiter` called with the cycle of the next signal, which is thereby consumed."""
        self._waiters[key] = waiter
