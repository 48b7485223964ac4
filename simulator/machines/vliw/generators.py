"""The random generators as state of the machine: uses step them, reseeds replace it; both are seen later."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from castsim.machines.vliw.findings import Findings, Site, StaleReadKind
from castsim.machines.vliw.latency import Distances
from castsim.targets.vliw_latency import Commit

_State = TypeVar("_State")


@dataclass(frozen=True, slots=True)
class Use:
    """The use of a generator by an instruction: when the state that it steps is committed, and which states it sees."""

    commit: Commit
    distances: Distances

    def distance_from(self, commit: Commit) -> int:
        """Return how far behind an earlier use's commit it sees that use's state; 0 where no table lists the use."""
        return 0 if commit.key is None else self.distances[commit]


@dataclass(frozen=True, slots=True)
class _Pending(Generic[_State]):
    """A state on its way; a reseed has no commit stage, its distance is the same for all."""

    time: int
    commit: Commit | None
    state: _State
    writer: Site


class Generator(Generic[_State]):
    """One random generator.

    Uses in the window between a reseed and its effect go on with the old sequence (docs/reference/tpc.md section 6.1,
    reseed 4); uses closer to each other than the stage tables say draw from the same state (docs/reference/tpc.md
    section 6.1).
    """

    def __init__(self, name: str, state: _State, delay: int, horizon: int) -> None:
        self.name = name
        self._state = state
        self._delay = delay
        self._horizon = max(delay, horizon)
        self._pending: list[_Pending[_State]] = []
        self._seeded = False

    def state(self, now: int, use: Use) -> _State:
        """Return the state that a use in bundle number `now` sees."""
        self._settle(now)
        for pending in reversed(self._pending):
            if now - pending.time >= self._needed(pending, use):
                return pending.state
        return self._state

    def used(self, reader: Site, use: Use, now: int, findings: Findings) -> None:
        """Report a use that misses a reseed or an earlier use, or of one before any reseed."""
        self._settle(now)
        if not self._seeded:
            findings.add(StaleReadKind.UNWRITTEN, self.name, "random", reader, now)
        for pending in reversed(self._pending):
            needed = self._needed(pending, use)
            distance = now - pending.time
            if distance >= needed:
                return
            kind = StaleReadKind.SAME_BUNDLE if distance == 0 else StaleReadKind.EARLY
            findings.add(kind, self.name, "random", reader, now, pending.writer, distance, needed)
            if distance:
                return

    def step(self, state: _State, writer: Site, use: Use, now: int) -> None:
        """Put the state after a use on its way; it lands before a reseed that the use has missed."""
        place = len(self._pending)
        while place and self._pending[place - 1].commit is None:
            if now - self._pending[place - 1].time >= self._delay:
                break
            place -= 1
        self._pending.insert(place, _Pending(now, use.commit, state, writer))

    def reseed(self, state: _State, writer: Site, now: int) -> None:
        """Put a new state on its way."""
        self._pending.append(_Pending(now, None, state, writer))
        self._seeded = True

    def _needed(self, pending: _Pending[_State], use: Use) -> int:
        return self._delay if pending.commit is None else use.distance_from(pending.commit)

    def _settle(self, now: int) -> None:
        while self._pending and now - self._pending[0].time >= self._horizon:
            self._state = self._pending.pop(0).state
