"""One trip of a loop nest in flight: load, compute, hand over to the store queue."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from simpy import Event

from simulator.engines.event_dataflow.machine import At, Machine
from simulator.engines.event_dataflow.records import Entry, Steps
from simulator.engines.event_function.shape import TICKS, LoadStep, Step, TripShape, ticks
from simulator.engines.event_function.stores import PendingStore, grant
from targets.vector_function_timing import VectorFunctionTiming


class MemoryPath:
    """What the lines of a nest pass between load and store, `hold` ticks each; with no hold, none do.

    A path that is `opened` at some tick passes line after line from then on, whenever they arrive: the floor of
    kernels with two loads. Any other passes them as they come.
    """

    def __init__(self, hold: int, opened: int | None = None) -> None:
        self._hold = hold
        self._opened = opened is not None
        self._free = opened or 0

    def take(self, arrival: int) -> int:
        """Pass a line that arrives at tick `arrival`; return when it is through."""
        if not self._hold:
            return arrival
        self._free = (self._free if self._opened else max(self._free, arrival)) + self._hold
        return self._free


class SpecialPorts:
    """Ports of the special functions of one launch: instructions take them in turn, each serves in that order."""

    def __init__(self, ports: int) -> None:
        self._free = [0] * ports
        self._next = 0

    def take(self, ready: int, held: int) -> int:
        """Return the tick at which an instruction starts whose operands are there at tick `ready`."""
        port, self._next = self._next, (self._next + 1) % len(self._free)
        start = max(ready, self._free[port])
        self._free[port] = start + held
        return start


@dataclass(slots=True)
class RowState:
    """What the trips of a row share: registers that outlive a trip, and when their last accumulation started."""

    ready: dict[str, int] = field(default_factory=dict)
    started: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class ComputeWaits:
    """When the last compute instruction of a trip starts, and how long any have waited.

    `port` for a port of the special functions, `operand` for the accumulation of the trip before; in ticks.
    """

    last: int
    port: int = 0
    operand: int = 0


@dataclass(slots=True, eq=False)
class Trip:
    """A trip sent by the front end at tick `sent`; `stores` are in the order of its shape.

    `loads` are the loads to make, with their addresses, `steps` the instructions to execute: a row's first and last
    trip have those of the row as well. `released` happens, with the tick as its value, when the front end lets the
    stores go; None: at once.
    """

    machine: Machine
    entry: Entry
    timing: VectorFunctionTiming
    shape: TripShape
    path: MemoryPath
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
        through = self.path.take(arrival)
        waits = self._compute(ready)
        released = self.sent
        if self.released is not None:
            released = yield self.released
        # A row's last trip is the only one with the stores of the row.
        for store, step in zip(self.stores, self.shape.stores, strict=False):
            data = max(released, self._ready(step.source, ready), self._ready(step.predicate, ready))
            store.data_at = max(data, through)
            store.path_wait = store.data_at - data
            store.load_wait = waited
            store.port_wait, store.operand_wait = waits.port, waits.operand
            store.barrier_at = max(released, waits.last) if step.barrier else None
            store.ready.succeed()

    def _load(self) -> Generator[Event, Any, list[int]]:
        """Ask for the blocks of every load; return the ticks for which the last one of each had to wait."""
        machine = self.machine
        asked = -(-self.sent // TICKS)
        yield At(machine.env, asked - int(machine.env.now), self.entry.index)
        return [
            (grant(machine, self.entry, address, step.size, write=False, asked=asked) - asked) * TICKS
            for step, address in self.loads
        ]

    def _arrivals(self, waits: Iterable[int]) -> dict[str, int]:
        """Return when each loaded register can be used: loads follow each other, a wait may hide behind that."""
        use = ticks(self.timing.access.load_cycles - self.timing.chain.forwarding_cycles)
        later = ticks(self.timing.loads.second_load_cycles)
        ready: dict[str, int] = {}
        for number, ((step, _), wait) in enumerate(zip(self.loads, waits, strict=True)):
            ready.update(dict.fromkeys(step.results, self.sent + max(number * later, wait) + use))
        return ready

    def _compute(self, ready: dict[str, int]) -> ComputeWaits:
        """Add to `ready` when each result can be used.

        An instruction starts when its operands are there; those that pass the serial port keep their order.
        """
        forwarding = ticks(self.timing.chain.forwarding_cycles)
        row = self.row
        for load in self.shape.row_loads:
            row.ready.update({name: ready[name] for name in load.results if name in ready})
        waits = ComputeWaits(self.sent)
        port = self.sent
        for step in self.steps:
            start = max([self.sent, *(self._ready(name, ready) for name in step.sources if name not in step.results)])
            if step.again is not None:
                begun = start
                start = max([start, *(row.started[name] + step.again for name in step.results if name in row.started)])
                waits.operand += start - begun
            if step.occupancy is not None:
                start = max(start, port)
                port = start + step.occupancy
            if step.special is not None:
                begun, start = start, self.special.take(start, step.special)
                waits.port += start - begun
            waits.last = max(waits.last, start)
            ready.update(dict.fromkeys(step.results, start + step.latency - forwarding))
            if step.again is not None:
                row.started.update(dict.fromkeys(step.results, start))
        return waits

    def _ready(self, name: str, ready: Mapping[str, int]) -> int:
        """Return when a register of the trip or of its row can be used; predicates and constants always can."""
        return ready.get(name, self.row.ready.get(name, self.sent))
