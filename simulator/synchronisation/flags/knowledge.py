"""The items that pipes have waited for at each item of a block, directly or transitively."""

from __future__ import annotations

from dataclasses import dataclass, field

Clock = dict[str, int]
"""Per pipe the last item of it that has ended."""


@dataclass(slots=True)
class Knowledge:
    """Clocks of all pipes, item by item; `always` is what a pipe knows from the first item on."""

    always: dict[str, Clock] = field(default_factory=dict)
    _changes: dict[str, list[tuple[int, Clock]]] = field(default_factory=dict)

    def of(self, pipe: str, number: int, other: str) -> int:
        """Return the last item of `other` that has ended when `pipe` comes to item `number`; -1 for none."""
        return max(self._at(pipe, number).get(other, -1), self.always.get(pipe, {}).get(other, -1))

    def learn(self, waiter: str, number: int, signaller: str, item: int, *, itself: bool = True) -> None:
        """Note that `waiter` waits before item `number` for a signal set behind `item`.

        `itself` says whether the signal covers `item` of its own pipe, beside what that knows of others.
        """
        clock = dict(self._at(waiter, number))
        for other, last in (*self._at(signaller, item).items(), *self.always.get(signaller, {}).items()):
            clock[other] = max(last, clock.get(other, -1))
        if itself:
            clock[signaller] = max(item, clock.get(signaller, -1))
        self._changes.setdefault(waiter, []).append((number, clock))

    def drain(self, pipe: str, number: int) -> None:
        """Note a barrier of `pipe` before item `number`."""
        self._changes.setdefault(pipe, []).append((number, {**self._at(pipe, number), pipe: number - 1}))

    def _at(self, pipe: str, number: int) -> Clock:
        """Return the clock of a pipe from item `number` on; changes come in the order of items."""
        return next((clock for since, clock in reversed(self._changes.get(pipe, ())) if since <= number), {})
