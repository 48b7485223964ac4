"""The store queue of a running vector function: stores leave in program order, barriers and the buffer hold them."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from simpy import Event

from simulator.dataflow.operations import BLOCK
from simulator.engines.event_dataflow.machine import At, Machine
from simulator.engines.event_dataflow.records import Entry, Steps
from simulator.engines.event_function.shape import TICKS, ticks
from simulator.timing import Cause
from targets.vector_function_timing import VectorFunctionTiming


@dataclass(slots=True, eq=False)
class PendingStore:
    """A store in the queue; the times, in ticks, hold once `ready` has happened.

    `data_at`: its register, predicate and place on the memory path are there, the last of these `path_wait` ticks after
    the others; its load waited `load_wait` ticks at the buffer, its instructions `port_wait` for ports of the special
    functions and `operand_wait` for the trip before. `barrier_at`: what precedes its barrier in program
    order has begun; None if it has none. `address` and `size` are the bytes it writes (none if empty).
    """

    ready: Event
    address: int
    size: int
    data_at: int = 0
    path_wait: int = 0
    load_wait: int = 0
    port_wait: int = 0
    operand_wait: int = 0
    barrier_at: int | None = None


class StoreQueue:
    """Stores in program order, `interval` ticks apart at least.

    `held` are the ticks by which each cause delayed the last store; the ports of its load and its instructions
    included.
    """

    def __init__(self, machine: Machine, entry: Entry, timing: VectorFunctionTiming) -> None:
        self._machine = machine
        self._entry = entry
        self._interval = ticks(timing.port.store_cycles)
        self._barrier = ticks(timing.store_barrier.cycles)
        self._latency = ticks(timing.access.store_cycles)
        self._queue: deque[PendingStore] = deque()
        self._wakeup: Event | None = None
        self._closed = False
        self._latest: int | None = None
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
        free = store.data_at if self._latest is None else max(store.data_at, self._latest + self._interval)
        start = free
        if store.barrier_at is not None:
            taken = store.barrier_at if self._latest is None else max(store.barrier_at, self._latest)
            start = max(free, taken + self._barrier)
        asked = -(-start // TICKS)
        machine = self._machine
        yield At(machine.env, asked - int(machine.env.now), self._entry.index)
        passed = grant(machine, self._entry, store.address, store.size, write=True, asked=asked)
        self._latest = start + (passed - asked) * TICKS
        self.held = {
            Cause.PORT: store.port_wait,
            Cause.OPERAND_WAIT: store.operand_wait,
            Cause.MEMORY_BANDWIDTH: store.path_wait,
            Cause.BARRIER: start - store.data_at if store.barrier_at is not None else 0,
            Cause.BANK_CONFLICT: (passed - asked) * TICKS + store.load_wait,
        }
        self.completed_at = max(self.completed_at, self._latest + self._latency)

    def _wake(self) -> None:
        if self._wakeup is not None and not self._wakeup.triggered:
            self._wakeup.succeed()


def grant(machine: Machine, entry: Entry, address: int, size: int, *, write: bool, asked: int) -> int:
    """Ask for `size` bytes at `address`; return the cycle in which the last block passes, `asked` if there is none."""
    if size <= 0:
        return asked
    first = address // BLOCK
    blocks = -(-(address + size) // BLOCK) - first
    pattern = machine.ports.pattern(tuple(BLOCK * number for number in range(blocks)), write)
    return machine.ports.grant(asked, pattern, first, entry)
