"""One trip of a loop nest in flight: load, compute, hand over to the store queue."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

from simpy import Event

from simulator.engines.event_dataflow.machine import At, Machine
from simulator.engines.event_dataflow.records import Entry, Steps
from simulator.engines.event_function.shape import TICKS, TripShape, ticks
from simulator.engines.event_function.stores import PendingStore, grant
from targets.vector_function_timing import VectorFunctionTiming


class MemoryPath:
    """What the lines of a row loop pass between load and store, `hold` ticks each; without a row loop, none do."""

    def __init__(self, hold: int) -> None:
        self._hold = hold
        self._free = 0

    def take(self, arrival: int) -> int:
        """Pass a line that arrives at tick `arrival`; return when it is through."""
        if not self._hold:
            return arrival
        self._free = max(self._free, arrival) + self._hold
        return self._free


@dataclass(slots=True, eq=False)
class Trip:
    """A trip sent by the front end at tick `sent`; `stores` are in the order of its shape.

    `released` happens, with the tick as its value, when the front end lets the stores go; None: at once.
    """

    machine: Machine
    entry: Entry
    timing: VectorFunctionTiming
    shape: TripShape
    path: MemoryPath
    source: int
    stores: tuple[PendingStore, ...]
    sent: int
    released: Event | None

    def fly(self) -> Steps:
        """Load, compute, and tell the stores when they may leave."""
        waited = 0
        arrival = self.sent
        if self.shape.load_bytes:
            waited = yield from self._load()
            use = self.timing.access.load_cycles - self.timing.chain.forwarding_cycles
            arrival += waited + ticks(use)
        through = self.path.take(arrival)
        ready, last = self._compute(arrival)
        released = self.sent
        if self.released is not None:
            released = yield self.released
        for store, step in zip(self.stores, self.shape.stores, strict=True):
            data = max(released, ready.get(step.source, released), ready.get(step.predicate, released))
            store.data_at = max(data, through)
            store.path_wait = store.data_at - data
            store.load_wait = waited
            store.barrier_at = max(released, last) if step.barrier else None
            store.ready.succeed()

    def _load(self) -> Generator[Event, Any, int]:
        """Ask for the source's blocks; return the ticks for which the last one had to wait."""
        machine = self.machine
        asked = -(-self.sent // TICKS)
        yield At(machine.env, asked - int(machine.env.now), self.entry.index)
        passed = grant(machine, self.entry, self.source, self.shape.load_bytes, write=False, asked=asked)
        return (passed - asked) * TICKS

    def _compute(self, arrival: int) -> tuple[dict[str, int], int]:
        """Return when each register can be used, and when the last compute instruction starts.

        An instruction starts when its operands are there; those that pass the serial port keep their order.
        """
        forwarding = ticks(self.timing.chain.forwarding_cycles)
        ready = dict.fromkeys(self.shape.loaded, arrival)
        port = last = self.sent
        for step in self.shape.steps:
            start = max([self.sent, *(ready[name] for name in step.sources if name in ready)])
            if step.occupancy is not None:
                start = max(start, port)
                port = start + step.occupancy
            last = max(last, start)
            ready.update(dict.fromkeys(step.results, start + step.latency - forwarding))
        return ready, last
