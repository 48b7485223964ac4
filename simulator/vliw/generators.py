"""The random generators as state of the machine: uses step them at once, a reseed is seen later."""

from __future__ import annotations

from typing import Generic, TypeVar

from simulator.vliw.findings import Findings, Kind, Site

_State = TypeVar("_State")


class Generator(Generic[_State]):
    """One random generator.

    Uses in the window between a reseed and its effect go on with the old sequence (tpc.md section 6.1, reseed 4).
    """

    def __init__(self, name: str, state: _State, delay: int) -> None:
        self.name = name
        self._state = state
        self._delay = delay
        self._seed: tuple[int, _State, Site] | None = None
        self._seeded = False

    def state(self, now: int) -> _State:
        """Return the state that bundle number `now` sees."""
        if self._seed is not None and now - self._seed[0] >= self._delay:
            self._state, self._seed = self._seed[1], None
        return self._state

    def used(self, reader: Site, now: int, findings: Findings) -> None:
        """Tell of a use that misses a reseed, or of one before any."""
        self.state(now)
        if self._seed is not None:
            time, _, writer = self._seed
            kind = Kind.SAME_BUNDLE if time == now else Kind.EARLY
            findings.add(kind, self.name, "random", reader, now, writer, now - time, self._delay)
        elif not self._seeded:
            findings.add(Kind.UNWRITTEN, self.name, "random", reader, now)

    def step(self, state: _State) -> None:
        """Go on to the state after a use."""
        self._state = state

    def reseed(self, state: _State, writer: Site, now: int) -> None:
        """Put a new state on its way."""
        self.state(now)
        self._seed = (now, state, writer)
        self._seeded = True
