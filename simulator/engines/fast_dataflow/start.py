"""A machine at the start of a program."""

from __future__ import annotations

from collections.abc import Mapping

from simulator.engines.fast_dataflow.encoding import Encoder
from simulator.engines.fast_dataflow.function_layout import (
    FLIGHT_WIDTH,
    NO_TICK,
    STORE_WIDTH,
)
from simulator.engines.fast_dataflow.layout import (
    BANK_FREE,
    BANK_OF,
    BANKS,
    BEYOND,
    BLOCKED_ENTRY,
    ENTRY_FREE,
    EXCLUSIVE_BANKS,
    EXCLUSIVE_PORTS,
    EXECUTION,
    FLIGHTS,
    GROUPED,
    INTERLOCKED,
    LATEST,
    MAXIMUM,
    MOST_ACCESSES,
    NEVER,
    NO_TIME,
    NODE_FREE,
    NONE,
    P_ACTION,
    P_ACTION_END,
    P_BEGAN,
    P_CURRENT,
    P_DRAIN_END,
    P_DRAINING,
    P_FLIGHT,
    P_FLIGHT_END,
    P_LATEST,
    P_LATEST_END,
    P_QUEUE,
    P_QUEUE_END,
    P_REMAINING,
    P_REQUEST,
    PATIENCE,
    PENDING,
    PERIOD,
    PIPES,
    PORT_FREE,
    PORT_OF,
    READS_BESIDE_WRITE,
    READS_PER_GROUP,
    READY,
    RECORDING,
    REMAINING,
    RESUMED_AT,
    SPECIAL,
    WRITES_PER_GROUP,
)

_NONE_AT_FIRST = (
    P_ACTION, P_ACTION_END, P_BEGAN, P_CURRENT, P_DRAINING, P_FLIGHT, P_FLIGHT_END, P_LATEST, P_QUEUE, P_QUEUE_END,
)  # fmt: skip


def start(encoder: Encoder, remaining: Mapping[str, int], max_cycles: int, *, recording: bool, patience: int) -> None:
    """Set up the registers, pipes and ports; `remaining` is the number of the program's operations by pipe."""
    heap, banking, pipes = encoder.heap, encoder.unit.banking, len(encoder.pipes)
    m = heap.cells
    for register in (BLOCKED_ENTRY, RESUMED_AT, BEYOND, ENTRY_FREE, NODE_FREE, EXECUTION):
        m[register] = NONE
    m[LATEST] = NO_TIME
    m[MAXIMUM], m[RECORDING], m[INTERLOCKED] = max_cycles, int(recording), int(encoder.tree.interlocked)
    m[PIPES], m[PATIENCE] = pipes, patience
    for p, name in enumerate(encoder.pipes):
        for cell in _NONE_AT_FIRST:
            m[cell + p] = NONE
        m[P_DRAIN_END + p] = m[P_LATEST_END + p] = NO_TIME
        m[P_REQUEST + p] = NEVER
        m[P_REMAINING + p] = remaining.get(name, 0) if p else 0
        m[REMAINING] += m[P_REMAINING + p]
    m[BANKS] = banking.banks
    m[PERIOD], m[GROUPED] = banking.period, int(banking.grouped)
    m[EXCLUSIVE_PORTS], m[EXCLUSIVE_BANKS] = int(banking.exclusive_ports), int(banking.exclusive_banks)
    m[READS_PER_GROUP], m[READS_BESIDE_WRITE] = banking.reads_per_group, banking.reads_beside_write
    m[WRITES_PER_GROUP] = banking.writes_per_group
    tables = (
        (PORT_OF, heap.put(banking.port_of)),
        (BANK_OF, heap.put(banking.bank_of)),
        (PORT_FREE, heap.take(banking.ports, NONE if banking.grouped else 0)),
        (BANK_FREE, heap.take(2 * banking.banks)),
    )
    for register, place in tables:
        heap.cells[register] = place
    heap.make_room()


class FunctionRoom:
    """Room for the vector function at work; grows with the largest one that the program has shown so far."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._sizes = [0, 0, 0, 0]

    def make(self) -> None:
        """See to it that there is room for what was encoded last; what is at work keeps its cells."""
        heap = self._encoder.heap
        heap.cells[MOST_ACCESSES] = self._encoder.most_accesses
        widths = (FLIGHT_WIDTH, STORE_WIDTH, 1, 1)
        for number, register in enumerate((FLIGHTS, PENDING, READY, SPECIAL)):
            size = (self._encoder.room[number] + 1) * widths[number]
            if size > self._sizes[number]:
                old, kept = int(heap.cells[register]), self._sizes[number]
                new = heap.take(2 * size, NO_TICK)
                if kept:
                    heap.cells[new : new + kept] = heap.cells[old : old + kept]
                heap.cells[register] = new
                self._sizes[number] = 2 * size
