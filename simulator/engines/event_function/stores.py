"""The store queue of a running vector function: stores leave in program order, barriers and the buffer hold them."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from simpy import Event

from castsim.engines.event_dataflow.events import At
from castsim.engines.event_dataflow.pipes import DataflowRun
from castsim.engines.event_dataflow.records import Entry, Steps
from castsim.execution.dataflow.operations import BLOCK
from castsim.execution.dataflow.timing import NO_TICK, TICKS
from castsim.machines.vector_function.timing import FunctionTicks, store_asked, store_start
from castsim.timing import Cause


@dataclass(slots=True, eq=False)
class PendingStore:
    """A store in the queue; the times, in ticks, hold once `ready` has happened.

    `data_at`: its register, predicate and place on the memory path are there, the last of these `path_wait` ticks after
    the others; its load waited `load_wait` ticks at the buffer, its instructions `port_wait` for ports of the special
    functions and `operand_wait` for the trip before. `barrier_at`: what precedes its barrier in program
    order has begun; NO_TICK if it has none. `address` and `size` are the bytes it writes (none if empty).
    """

    ready: Event
    address: int
    size: int
    data_at: int = 0
    path_wait: int = 0
    load_wait: int = 0
    port_wait: int = 0
    operand_wait: int = 0
    barrier_at: int = NO_TICK


class StoreQueue:
    """Stores in program order. `held` are the ticks by which each cause delayed the last one.

    The ports of its load and its instructions are included.
    """

    def __init__(self, machine: DataflowRun, entry: Entry, facts: FunctionTicks) -> None:
        self._machine = machine
        self._entry = entry
        self._facts = facts
        self._queue: deque[PendingStore] = deque()
        self._wakeup: Event | None = None
        self._closed = False
        self._latest = NO_TICK
        self.completed_at = 0
        self.held: dict[Cause, int] = {}

    def append(self, store: PendingStore) -> None:
        """Take the next store in program order."""
        self._queue.append(store)
        self._wake()

    def close(self) -> None:
        """Declare that no store follows."""
        self._closed = True
        self._wake()

    def serve(self) -> Steps:
        """Write store after store until the queue is closed and empty."""
        env = self._machine.env
        while self._queue or not self._closed:
            if not self._queue:
                self._wakeup = env.event()
                yield self._wakeup
                continue
            store = self._queue.popleft()
            if not store.ready.processed:
                yield store.ready
            yield from self._write(store)

    def _write(self, store: PendingStore) -> Steps:
        facts, machine = self._facts, self._machine
        start = store_start(store.data_at, self._latest, facts.store_interval, store.barrier_at, facts.store_barrier)
        asked = store_asked(start)
        yield At(machine.env, asked - int(machine.env.now), self._entry.index)
        passed = grant(machine, self._entry, store.address, store.size, write=True, asked=asked)
        self._latest = start + (passed - asked) * TICKS
        self.held = {
            Cause.PORT: store.port_wait,
            Cause.DEPENDENCE: store.operand_wait,
            Cause.MEMORY_BANDWIDTH: store.path_wait,
            Cause.STORE_BARRIER: start - store.data_at if store.barrier_at != NO_TICK else 0,
            Cause.BANK_CONFLICT: (passed - asked) * TICKS + store.load_wait,
        }
        self.completed_at = max(self.completed_at, self._latest + facts.store_latency)

    def _wake(self) -> None:
        if self._wakeup is not None and not self._wakeup.triggered:
            self._wakeup.succeed()


def grant(machine: DataflowRun, entry: Entry, address: int, size: int, *, write: bool, asked: int) -> int:
    """Ask for `size` bytes at `address`; return the cycle in which the last block passes, `asked` if there is none."""
    if size <= 0:
        return asked
    first = address // BLOCK
    blocks = -(-(address + size) // BLOCK) - first
    pattern = machine.ports.pattern(tuple(BLOCK * number for number in range(blocks)), write)
    return machine.ports.grant(asked, pattern, first, entry)
