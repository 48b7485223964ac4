"""One trip of a loop nest in flight: load, compute, hand over to the store queue."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import dataclass
from typing import Any

from simpy import Event

from castsim.engines.event_dataflow.events import At
from castsim.engines.event_dataflow.pipes import DataflowRun
from castsim.engines.event_dataflow.records import Entry, Steps
from castsim.engines.event_function.stores import PendingStore, grant
from castsim.execution.dataflow.timing import NO_TICK, TICKS, cycle_from
from castsim.machines.vector_function.timing import FunctionTicks, loaded
from castsim.machines.vector_function.trip_shape import LoadStep, Step, TripShape
from castsim.machines.vector_function.trip_timing import Computation, MemoryPath, RowState, SpecialPorts


@dataclass(slots=True, eq=False)
class Trip:
    """A trip sent by the front end at tick `sent`; `stores` are in the order of its shape.

    `loads` are the loads to make, with their addresses, `steps` the instructions to execute: a row's first and last
    trip have those of the row as well. `released` happens, with the tick as its value, when the front end lets the
    stores go; None: at once.
    """

    machine: DataflowRun
    entry: Entry
    facts: FunctionTicks
    shape: TripShape
    path: MemoryPath
    path_hold: int
    path_opened: int | None
    special: SpecialPorts
    row: RowState
    loads: tuple[tuple[LoadStep, int], ...]
    steps: tuple[Step, ...]
    stores: tuple[PendingStore, ...]
    sent: int
    released: Event | None

    def fly(self) -> Steps:
        """Load, compute, and tell the stores when they may leave."""
        ready: dict[str, int] = {}
        waited = 0
        arrival = self.sent
        if self.loads:
            loading = yield from self._load()
            waited = max(loading)
            ready = self._arrivals(loading)
            arrival = max(ready.values())
        through = self.path.take(arrival, self.path_hold, self.path_opened)
        for load in self.shape.row_loads:
            self.row.ready.update({name: ready[name] for name in load.results if name in ready})
        computation = Computation(self.sent, ready, self.row, self.special, self.facts.forwarding)
        waits = computation.follow(self.steps)
        released = self.sent
        if self.released is not None:
            released = yield self.released
        # A row's last trip is the only one with the stores of the row.
        for store, step in zip(self.stores, self.shape.stores, strict=False):
            data = max(released, computation.of(step.source), computation.of(step.predicate))
            store.data_at = max(data, through)
            store.path_wait = store.data_at - data
            store.load_wait = waited
            store.port_wait, store.operand_wait = waits.port, waits.operand
            store.barrier_at = max(released, waits.last) if step.barrier else NO_TICK
            store.ready.succeed()

    def _load(self) -> Generator[Event, Any, list[int]]:
        """Ask for the blocks of every load; return the ticks for which the last one of each had to wait."""
        machine = self.machine
        asked = cycle_from(self.sent)
        yield At(machine.env, asked - int(machine.env.now), self.entry.index)
        return [
            (grant(machine, self.entry, address, step.size, write=False, asked=asked) - asked) * TICKS
            for step, address in self.loads
        ]

    def _arrivals(self, waits: Iterable[int]) -> dict[str, int]:
        """Return when each loaded register can be used."""
        facts = self.facts
        ready: dict[str, int] = {}
        for number, ((step, _), wait) in enumerate(zip(self.loads, waits, strict=True)):
            there = loaded(self.sent, number, facts.second_load, wait, facts.load_use)
            ready.update(dict.fromkeys(step.results, there))
        return ready
