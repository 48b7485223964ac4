"""The instructions of one trip after each other: when each starts, by the rules of `timing`, registers by name.

The event engine follows every trip with this, the closed forms follow one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from castsim.execution.dataflow.timing import NO_TICK
from castsim.machines.vector_function.timing import accumulation_start, path_through, result_ready
from castsim.machines.vector_function.trip_shape import Step


class MemoryPath:
    """What the lines of a function pass between load and store, nest after nest."""

    def __init__(self) -> None:
        self._free = 0

    def take(self, arrival: int, hold: int, opened: int | None) -> int:
        """Pass a line that arrives at tick `arrival` and return when it is through, `hold` ticks each (0: at once).

        A nest may have `opened` the path at some tick (`timing.path_through`).
        """
        if not hold:
            return arrival
        self._free = path_through(max(self._free, opened or 0), arrival, hold, opened is not None)
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


@dataclass(slots=True)
class Computation:
    """A trip that was sent at tick `sent`; `ready` says when each of its registers can be used."""

    sent: int
    ready: dict[str, int]
    row: RowState
    special: SpecialPorts
    forwarding: int

    def follow(self, steps: Iterable[Step]) -> ComputeWaits:
        """Execute instructions, adding to `ready`.

        One starts when its operands are there; those that pass the serial port keep their order.
        """
        ready, started = self.ready, self.row.started
        waits = ComputeWaits(self.sent)
        port = self.sent
        for step in steps:
            start = max([self.sent, *(self.of(name) for name in step.sources if name not in step.results)])
            if step.again is not None:
                begun = start
                for name in step.results:
                    start = accumulation_start(start, started.get(name, NO_TICK), step.again)
                waits.operand += start - begun
            if step.occupancy is not None:
                start = max(start, port)
                port = start + step.occupancy
            if step.special is not None:
                begun, start = start, self.special.take(start, step.special)
                waits.port += start - begun
            waits.last = max(waits.last, start)
            ready.update(dict.fromkeys(step.results, result_ready(start, step.latency, self.forwarding)))
            if step.again is not None:
                started.update(dict.fromkeys(step.results, start))
        return waits

    def of(self, name: str) -> int:
        """Return when a register of the trip or of its row can be used; predicates and constants always can."""
        return self.ready.get(name, self.row.ready.get(name, self.sent))
