"""What a trip of a loop nest asks of the machine: the same for all trips, so it is worked out once per nest."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from simulator.vector_function.operations import (
    Bitwise,
    Convert,
    Gather,
    Interleave,
    Load,
    MemoryBarrier,
    Nest,
    RegisterOperation,
    Spread,
    Store,
)
from simulator.vector_function.profile import mnemonic
from targets.vector_function_timing import VectorFunctionTiming

TICKS = 100
"""Ticks per cycle: facts have at most two decimals."""

_UNPACKING = "UNPK"
_DEINTERLEAVING = "DINTLV"
_PACKING = {"PK": 2, "PK4": 4}
"""Parts of a register that a packing store leaves out of one: the distribution's own definition."""


def ticks(cycles: Decimal | int) -> int:
    """Return a fact in ticks."""
    return int(cycles * TICKS)


@dataclass(frozen=True, slots=True)
class Step:
    """One compute instruction of a trip: its results are ready `latency` ticks after its start.

    `occupancy` is how long it holds the serial port, None for what does not pass it.
    """

    sources: tuple[str, ...]
    results: tuple[str, ...]
    latency: int
    occupancy: int | None


@dataclass(frozen=True, slots=True)
class StoreStep:
    """One store: `barrier` if an earlier-stores-first barrier precedes it, `size` its bytes when the trip is full."""

    source: str
    predicate: str
    offset: int
    size: int
    barrier: bool


@dataclass(frozen=True, slots=True)
class TripShape:
    """A trip: `loaded` are the registers that its load of `load_bytes` fills (0: no load).

    `hold` are the ticks for which it holds the serial port.
    """

    loaded: tuple[str, ...]
    load_bytes: int
    steps: tuple[Step, ...]
    stores: tuple[StoreStep, ...]
    hold: int


Computing = Bitwise | Convert | Gather | Interleave | Spread
"""Instructions that take time; predicates by counters and constants are ready when wanted (a5.md section 7)."""


def trip_shape(nest: Nest, timing: VectorFunctionTiming, register_bytes: int) -> TripShape:
    """Work out the trips of a nest.

    A row loop around single trips has no inner loop: its predicates do not change from row to row, so they are made
    before the loop (a5.md section 6.2, rule 3).
    """
    single = nest.row_loop and nest.trips == 1
    operations = tuple(item for item in nest.trip if not (single and isinstance(item, Spread)))
    load = next((item for item in operations if isinstance(item, Load)), None)
    steps = tuple(_steps(operations, timing))
    stores = tuple(_stores(operations, register_bytes, nest))
    return TripShape(
        loaded=load.results if load is not None else (),
        load_bytes=_load_bytes(load, register_bytes) if load is not None else 0,
        steps=steps,
        stores=stores,
        hold=sum(step.occupancy or 0 for step in steps),
    )


def _steps(operations: Iterable[RegisterOperation], timing: VectorFunctionTiming) -> Iterable[Step]:
    for item in operations:
        if isinstance(item, Computing):
            name = mnemonic(item)
            occupancy = timing.port.occupancy_cycles.get(name)
            held = None if occupancy is None else ticks(occupancy)
            yield Step(*_registers(item), ticks(timing.chain.latency_cycles[name]), held)


def _registers(operation: Computing) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what a compute instruction reads and what it writes."""
    match operation:
        case Bitwise():
            return (*operation.sources, operation.predicate), (operation.result,)
        case Interleave():
            return operation.sources, operation.results
        case Gather():
            return (operation.source, operation.index), (operation.result,)
        case Convert():
            return (operation.source, operation.predicate), (operation.result,)
        case Spread():
            return (operation.source,), (operation.result,)


def _load_bytes(load: Load, register_bytes: int) -> int:
    if load.distribution.startswith(_UNPACKING):
        return register_bytes // 2
    return register_bytes * (2 if load.distribution.startswith(_DEINTERLEAVING) else 1)


def _stores(operations: Iterable[RegisterOperation], register_bytes: int, nest: Nest) -> Iterable[StoreStep]:
    barrier = False
    for item in operations:
        if isinstance(item, MemoryBarrier):
            barrier = True
        elif isinstance(item, Store):
            size = register_bytes // _PACKING.get(item.distribution.split("_")[0], 1)
            yield StoreStep(
                item.source, item.predicate, item.offset, min(size, nest.destination_trip - item.offset), barrier
            )
            barrier = False
