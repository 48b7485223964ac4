"""What a trip of a loop nest asks of the machine: the same for all trips, so it is worked out once per nest."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from castsim.execution.dataflow.timing import TICKS, ticks
from castsim.machines.vector_function.operations import (
    INTEGER_DIVISION,
    LONG_DIVISION,
    Bitwise,
    Compute,
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
from castsim.machines.vector_function.profile import mnemonic
from castsim.targets.register_text import Distribution, Mode, distribution_of
from castsim.targets.vector_function import VectorFunctionTarget

_PARTS = {Mode.UNPK: 2, Mode.UNPK4: 4, Mode.PK: 2, Mode.PK4: 4}
"""Parts of a register of which an access by this distribution touches one: the distribution's own definition."""

_ONE_ELEMENT = (Mode.BRC, Mode.ONEPT)
"""Distributions that load one element to all lanes, or store one."""


@dataclass(frozen=True, slots=True)
class LoadStep:
    """One load: the registers it fills from `size` bytes of an operand; `steps` from row to row and trip to trip."""

    results: tuple[str, ...]
    operand: int
    steps: tuple[int, int]
    size: int
    mask: bool


@dataclass(frozen=True, slots=True)
class Step:
    """One compute instruction of a trip: its results are ready `latency` ticks after its start.

    `occupancy` is how long it holds the serial port, `special` how long a port of the special functions, None for what
    does not pass them. `again` is the distance to its execution in the trip before, None unless it accumulates.
    """

    sources: tuple[str, ...]
    results: tuple[str, ...]
    latency: int
    occupancy: int | None
    special: int | None = None
    again: int | None = None


@dataclass(frozen=True, slots=True)
class StoreStep:
    """One store: `barrier` if an earlier-stores-first barrier precedes it, `size` its bytes when the trip is full.

    `closing`: it belongs to the row, behind its last trip.
    """

    source: str
    predicate: str
    offset: int
    size: int
    barrier: bool
    closing: bool = False


@dataclass(frozen=True, slots=True)
class TripShape:
    """A trip: its loads, compute instructions and stores in program order.

    `row_loads` come before those of the first trip of each row and hold for all its trips; `closing` and the stores so
    marked follow the last trip. `hold` are the ticks for which a trip keeps the front end.
    """

    row_loads: tuple[LoadStep, ...]
    loads: tuple[LoadStep, ...]
    steps: tuple[Step, ...]
    closing: tuple[Step, ...]
    stores: tuple[StoreStep, ...]
    hold: int


Computing = Bitwise | Compute | Convert | Gather | Interleave | Spread
"""Instructions that take time; predicates by counters and constants are ready when wanted.

Source: docs/reference/a5.md section 7.
"""


def trip_shape(nest: Nest, target: VectorFunctionTarget) -> TripShape:
    """Work out the trips of a nest.

    A row loop around single trips has no inner loop: its predicates do not change from row to row, so they are made
    before the loop (docs/reference/a5.md section 6.2, rule 3). A trip keeps the front end while its converts pass the
    serial port, and as long as its loads and stores take to issue (rules 3 and 5); what only stores is paced by the
    store queue.
    """
    timing, register_bytes = target.timing, target.registers.register_bytes
    single = nest.row_loop and nest.trips == 1
    operations = tuple(item for item in nest.trip if not (single and isinstance(item, Spread)))
    loads = tuple(_loads(operations, nest, target))
    steps = tuple(_steps(operations, target))
    stores = tuple(_stores(operations, register_bytes, nest))
    lines = sum(load.size >= register_bytes for load in loads)
    issue = issue_ticks(max(len(loads), min(1, len(nest.row))), lines, len(stores), target)
    if nest.paced is not None:
        issue = max(issue, ticks(timing.paced[nest.paced].trip(nest.trips)))
    return TripShape(
        row_loads=tuple(_loads(nest.row, nest, target)),
        loads=loads,
        steps=steps,
        closing=tuple(_steps(nest.close, target)),
        stores=(*stores, *_closing_stores(nest, register_bytes)),
        hold=max(sum(step.occupancy or 0 for step in steps), issue, _exclusive(operations, target)),
    )


def _loads(operations: Iterable[RegisterOperation], nest: Nest, target: VectorFunctionTarget) -> Iterable[LoadStep]:
    for item in operations:
        if isinstance(item, Load):
            steps = (nest.source_row, nest.source_trip) if item.steps is None else item.steps
            read = distribution_of(item.distribution)
            mask = read.mode is Mode.MASK
            yield LoadStep(item.results, item.operand, steps, _load_bytes(read, target), mask)


def _load_bytes(distribution: Distribution, target: VectorFunctionTarget) -> int:
    if distribution.mode is Mode.BLK:
        return target.registers.block_bytes
    if distribution.mode is Mode.DINTLV:
        return target.registers.register_bytes * 2
    return _access_bytes(distribution, target.registers.register_bytes)


def _access_bytes(distribution: Distribution, register_bytes: int) -> int:
    """Return the bytes that an access touches when all lanes take part."""
    mode, bits = distribution.mode, distribution.bits or 0
    if mode is Mode.MASK:
        return max(1, register_bytes // bits)
    if mode in _ONE_ELEMENT:
        return bits // 8
    return register_bytes // _PARTS.get(mode, 1)


def _steps(operations: Iterable[RegisterOperation], target: VectorFunctionTarget) -> Iterable[Step]:
    timing = target.timing
    for item in operations:
        if isinstance(item, Compute):
            yield compute_step(item, target)
        elif isinstance(item, Computing):
            name = mnemonic(item)
            occupancy = timing.port.occupancy_cycles.get(name)
            held = None if occupancy is None else ticks(occupancy)
            yield Step(*_registers(item), ticks(timing.chain.latency_cycles[name]), held)


def issue_ticks(loads: int, lines: int, stores: int, target: VectorFunctionTarget) -> int:
    """Return the ticks for which the accesses of a trip keep the front end; what only stores is paced by the queue.

    A cycle takes two loads, or one beside a store (docs/reference/a5.md section 1). `lines` of the loads fill a
    register each; every two of them take as long as those of a kernel with two, whose trips wait in the memory path
    (timing.memory_floor).
    """
    timing = target.timing
    per_cycle = timing.loads.per_cycle
    if not loads:
        return 0
    alone = max(-(-loads // per_cycle) * TICKS, stores * ticks(timing.port.store_cycles))
    if loads <= 2 or not stores:
        return alone
    together = (loads + stores) * TICKS // per_cycle
    pairs = lines // 2 if lines > 2 else 0
    return max(alone, together, pairs * ticks(timing.memory_floor["two_loads"].trip_cycles))


def compute_step(item: Compute, target: VectorFunctionTarget) -> Step:
    """Return what an instruction of a vector operation asks for.

    The long body of the high-precision division, and that of integers, keeps the front end for a whole trip;
    its end overlaps with what follows (docs/reference/a5.md section 6.3).
    """
    timing, kind = target.timing, "f32" if item.width >= 32 else "f16"
    if item.mnemonic in (LONG_DIVISION, INTEGER_DIVISION):
        kind = kind if item.mnemonic == LONG_DIVISION else f"i{32 if item.width >= 32 else 16}"
        held = timing.division.trip_cycles[kind]
        return Step(item.sources, item.results, ticks(held - timing.division.overlap_cycles), ticks(held))
    latency = target.latency(item.mnemonic, item.width)
    assert latency is not None  # checked before the run
    row = target.arithmetic.get(item.mnemonic)
    if row is None:
        occupancy = timing.port.occupancy_cycles.get(item.mnemonic)
        return Step(item.sources, item.results, ticks(latency), None if occupancy is None else ticks(occupancy))
    accumulates = not set(item.results).isdisjoint(item.sources)
    again = latency - timing.chain.forwarding_cycles if row.again is None else row.again
    held_cycles = row.held if item.held is None else item.held
    return Step(
        item.sources,
        item.results,
        ticks(latency),
        occupancy=None if held_cycles is None else ticks(held_cycles),
        special=ticks(timing.special_function.port_cycles[kind]) if row.port == "special" else None,
        again=ticks(again) if accumulates else None,
    )


def _exclusive(operations: Iterable[RegisterOperation], target: VectorFunctionTarget) -> int:
    """Return the ticks for which trips that split a mask over two predicates keep the next one waiting; else 0.

    From the load to the end of what reads the predicates.
    """
    split: set[str] = set()
    held = 0
    for item in operations:
        if isinstance(item, Compute):
            row = target.arithmetic.get(item.mnemonic)
            if row is not None and row.port == "exclusive":
                split.update(item.results)
            elif not split.isdisjoint(item.sources) and len(item.sources) > 2:  # it chooses between two loaded vectors
                latency = target.latency(item.mnemonic, item.width) or 0
                held = max(held, ticks(target.timing.access.load_cycles + latency))
    return held if held and target.option("predicate_interleave") == "exclusive" else 0


def _registers(operation: Computing) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what a compute instruction reads and what it writes."""
    match operation:
        case Bitwise():
            return (*operation.sources, operation.predicate), (operation.result,)
        case Interleave() | Compute():
            return operation.sources, operation.results
        case Gather():
            return (operation.source, operation.index), (operation.result,)
        case Convert():
            return (operation.source, operation.predicate), (operation.result,)
        case Spread():
            return (operation.source,), (operation.result,)


def _stores(operations: Iterable[RegisterOperation], register_bytes: int, nest: Nest) -> Iterable[StoreStep]:
    barrier = False
    for item in operations:
        if isinstance(item, MemoryBarrier):
            barrier = True
        elif isinstance(item, Store):
            size = _access_bytes(distribution_of(item.distribution), register_bytes)
            yield StoreStep(
                item.source, item.predicate, item.offset, min(size, nest.destination_trip - item.offset), barrier
            )
            barrier = False


def _closing_stores(nest: Nest, register_bytes: int) -> Iterable[StoreStep]:
    for item in nest.close:
        if isinstance(item, Store):
            size = min(_access_bytes(distribution_of(item.distribution), register_bytes), nest.close_bytes)
            yield StoreStep(item.source, item.predicate, item.offset, size, barrier=False, closing=True)
