"""Global memory: accesses wait in a queue and cross a port one after the other (`vliw.timing`).

Until they are done they hold a place in the queue.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

from simpy import Environment, Event, Store

from castsim.engines.account import PipeAccount
from castsim.machines.vliw.timing import load_cycles
from castsim.timing import Cause


@dataclass(slots=True)
class MemoryRequest:
    """One access: `due` is the number of the bundle slot at which the core needs its data (None: a store)."""

    operation: int
    due: int | None
    done: Event
    crossed_at: int = 0
    done_at: int = 0

    def blame(self, begin: int) -> tuple[Cause, int]:
        """Return why the core stood still for it from `begin` on, and until when that was the reason."""
        if begin < self.crossed_at:
            return Cause.MEMORY_BANDWIDTH, self.crossed_at
        return Cause.MEMORY_LATENCY, self.done_at


class Port:
    """One port of global memory and the accesses that wait for it."""

    def __init__(self, env: Environment, account: PipeAccount, interval: int, latency: int) -> None:
        self.account = account
        self.queue: Store = Store(env)
        self._crossing: MemoryRequest | None = None
        self._env = env
        self._interval = interval
        self._load_cycles = load_cycles(interval, latency)

    def serve(self) -> Generator[Event, Any, None]:
        """Let the accesses cross in order, for ever."""
        while True:
            got: Any = yield self.queue.get()
            request: MemoryRequest = got
            begin = int(self._env.now)
            self.account.charge(Cause.EMPTY, begin)
            self._crossing = request
            request.crossed_at = begin + self._interval
            request.done_at = request.crossed_at
            if request.due is not None:
                request.done_at = begin + self._load_cycles
            yield self._env.timeout(self._interval)
            self.account.charge(Cause.BUSY, request.crossed_at, request.operation)
            self._crossing = None
            self._env.process(self._finish(request))

    def pause(self, until: int) -> None:
        """PipeAccount for the cycles up to `until`, before which no other access begins to cross."""
        if self._crossing is None:
            self.account.charge(Cause.EMPTY, until)
        else:
            self.account.charge(Cause.BUSY, until, self._crossing.operation)

    def _finish(self, request: MemoryRequest) -> Generator[Event, Any, None]:
        """The access ends, while the next one crosses."""
        yield self._env.timeout(request.done_at - int(self._env.now))
        request.done.succeed()
