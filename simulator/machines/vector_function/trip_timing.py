"""The instructions of one trip after each other: when each starts, by the rules of `timing`, registers by name.

The event engine follows every trip with this, the closed forms follow one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from castsim.execution.transfer_timing import NO_TICK, TICKS, ticks
from castsim.machines.vector_function.function_operations import (
    INTEGER_DIVISION,
    LONG_DIVISION,
    Compute,
    Computing,
    ConvertLanes,
    Load,
    MemoryBarrier,
    Nest,
    RegisterOperation,
    StoreLanes,
    VectorFunction,
    of_every_trip,
    profile,
)
from castsim.machines.vector_function.function_timing import (
    accumulation_start,
    head_penalty,
    path_through,
    result_ready,
    row_turn,
)
from castsim.targets.vector_function import DistributionMode, NamedDistribution, VectorFunctionTarget, distribution_of

# What a trip of a loop nest asks of the machine: the same for all trips, so it is worked out once per nest.

_PARTS = {DistributionMode.UNPK: 2, DistributionMode.UNPK4: 4, DistributionMode.PK: 2, DistributionMode.PK4: 4}
"""Parts of a register of which an access by this distribution touches one: the distribution's own definition."""

_ONE_ELEMENT = (DistributionMode.BRC, DistributionMode.ONEPT)
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
class ComputeStep:
    """One compute instruction of a trip: its results are ready `latency` ticks after its start.

    `occupancy` is how long it holds the serial port, `special` how long a port of the special functions, None for
    instructions that use neither. `again` is the distance to its execution in the previous trip, None unless it
    accumulates.
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

    `closing`: it belongs to the row, after its last trip.
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

    `row_loads` precede those of the first trip of each row and serve all its trips; `close_loads`, `closing` and the
    stores so marked follow the last trip. `hold` are the ticks for which a trip keeps the front end.
    """

    row_loads: tuple[LoadStep, ...]
    loads: tuple[LoadStep, ...]
    close_loads: tuple[LoadStep, ...]
    steps: tuple[ComputeStep, ...]
    closing: tuple[ComputeStep, ...]
    stores: tuple[StoreStep, ...]
    hold: int


def trip_shape(nest: Nest, target: VectorFunctionTarget) -> TripShape:
    """Work out the trips of a nest.

    A trip keeps the front end while its converts pass the serial port, and as long as its loads and stores take to
    issue (docs/reference/a5.md section 6.2, rules 3 and 5); the store queue paces trips that only store.
    """
    timing, register_bytes = target.timing, target.registers.register_bytes
    operations = of_every_trip(nest)
    loads = tuple(_loads(operations, nest, target))
    steps = _steps(operations, target)
    stores = tuple(_stores(operations, register_bytes, nest))
    lines = sum(load.size >= register_bytes for load in loads)
    issue = issue_ticks(max(len(loads), min(1, len(nest.row))), lines, len(stores), target)
    if nest.paced is not None:
        issue = max(issue, ticks(timing.paced[nest.paced].trip(nest.trips)))
    return TripShape(
        row_loads=tuple(_loads(nest.row, nest, target)),
        loads=loads,
        close_loads=tuple(_loads(nest.close, nest, target)),
        steps=steps,
        closing=_steps(nest.close, target),
        stores=(*stores, *_closing_stores(nest, register_bytes)),
        hold=max(sum(step.occupancy or 0 for step in steps), issue, _exclusive(operations, target)),
    )


def _loads(operations: Iterable[RegisterOperation], nest: Nest, target: VectorFunctionTarget) -> Iterable[LoadStep]:
    for item in operations:
        if isinstance(item, Load):
            steps = (nest.source_row, nest.source_trip) if item.steps is None else item.steps
            read = distribution_of(item.distribution)
            mask = read.mode is DistributionMode.MASK
            yield LoadStep(item.results, item.operand, steps, _load_bytes(read, target), mask)


def _load_bytes(distribution: NamedDistribution, target: VectorFunctionTarget) -> int:
    if distribution.mode is DistributionMode.BLK:
        return target.registers.block_bytes
    if distribution.mode is DistributionMode.DINTLV:
        return target.registers.register_bytes * 2
    return _access_bytes(distribution, target.registers.register_bytes)


def _access_bytes(distribution: NamedDistribution, register_bytes: int) -> int:
    """Return the bytes that an access touches when all lanes take part."""
    mode, bits = distribution.mode, distribution.bits or 0
    if mode is DistributionMode.MASK:
        return max(1, register_bytes // bits)
    if mode in _ONE_ELEMENT:
        return bits // 8
    return register_bytes // _PARTS.get(mode, 1)


def _steps(operations: Iterable[RegisterOperation], target: VectorFunctionTarget) -> tuple[ComputeStep, ...]:
    return tuple(compute_step(item, target) for item in operations if isinstance(item, Computing))


def issue_ticks(loads: int, lines: int, stores: int, target: VectorFunctionTarget) -> int:
    """Return the ticks for which a trip's accesses hold the front end; the queue paces trips that only store.

    A cycle takes two loads, or a load and a store (docs/reference/a5.md section 1). `lines` of the loads fill a
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


def division_ticks(mnemonic: str, width: int, target: VectorFunctionTarget) -> tuple[int, int] | None:
    """Return how late the results of a division that is timed as a whole are, and how long it holds the serial port.

    The long body of the high-precision division, and that of integers, keeps the front end for a whole trip; its end
    overlaps with later work (docs/reference/a5.md section 6.3). None: another instruction.
    """
    if mnemonic not in (LONG_DIVISION, INTEGER_DIVISION):
        return None
    bits = 32 if width >= 32 else 16
    division = target.timing.division
    held = division.trip_cycles[f"{'f' if mnemonic == LONG_DIVISION else 'i'}{bits}"]
    return ticks(held - division.overlap_cycles), ticks(held)


def compute_step(item: Computing, target: VectorFunctionTarget) -> ComputeStep:
    """Return the timing step of a compute instruction."""
    timing, kind = target.timing, "f32" if item.width >= 32 else "f16"
    division = division_ticks(item.mnemonic, item.width, target)
    if division is not None:
        return ComputeStep(item.sources, item.results, *division)
    row = target.arithmetic.get(item.mnemonic)
    latency = target.latency(conversion_row(item, target) or item.mnemonic, item.width)
    assert latency is not None  # checked before the run
    if row is None:
        occupancy = timing.port.occupancy_cycles.get(item.mnemonic)
        return ComputeStep(item.sources, item.results, ticks(latency), None if occupancy is None else ticks(occupancy))
    accumulates = not set(item.results).isdisjoint(item.sources)
    again = latency - timing.chain.forwarding_cycles if row.again is None else row.again
    held_cycles = item.held if isinstance(item, Compute) and item.held is not None else row.held
    return ComputeStep(
        item.sources,
        item.results,
        ticks(latency),
        occupancy=None if held_cycles is None else ticks(held_cycles),
        special=ticks(timing.special_function.port_cycles[kind]) if row.port == "special" else None,
        again=ticks(again) if accumulates else None,
    )


def conversion_row(item: Computing, target: VectorFunctionTarget) -> str:
    """Return the row of the table of instructions that has the latency of a conversion; '' of other instructions."""
    if not isinstance(item, ConvertLanes) or item.integral:
        return ""
    return target.conversion_row(item.src, item.dst, kernel=True)


def _exclusive(operations: Iterable[RegisterOperation], target: VectorFunctionTarget) -> int:
    """Return the ticks for which trips that split a mask over two predicates keep the next one waiting; else 0.

    From the load to the end of the instruction that reads the predicates.
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


def _stores(operations: Iterable[RegisterOperation], register_bytes: int, nest: Nest) -> Iterable[StoreStep]:
    barrier = False
    for item in operations:
        if isinstance(item, MemoryBarrier):
            barrier = True
        elif isinstance(item, StoreLanes):
            size = _access_bytes(distribution_of(item.distribution), register_bytes)
            yield StoreStep(
                item.source, item.predicate, item.offset, min(size, nest.destination_trip - item.offset), barrier
            )
            barrier = False


def _closing_stores(nest: Nest, register_bytes: int) -> Iterable[StoreStep]:
    for item in nest.close:
        if isinstance(item, StoreLanes):
            size = min(_access_bytes(distribution_of(item.distribution), register_bytes), nest.close_bytes)
            yield StoreStep(item.source, item.predicate, item.offset, size, barrier=False, closing=True)


# What a loop nest costs beside its trips' own work: the numbers that every engine takes from the facts, in ticks.


@dataclass(frozen=True, slots=True)
class NestPlan:
    """One nest as the front end walks it.

    `row_loop`, `unpack_head` and `post_update` are spent before its first row, `next_row` from row to row; `first_row`
    is what `row_loop` holds for the address of the first row. `branches`: a serialising branch precedes each row and
    surrounds each trip. Lines hold the memory path for `path_hold` each (0: there is none); if `path_opened` is not
    None they follow each other from that many ticks after the start of the nest, whenever they arrive. `facts` are the
    paths of the facts behind it, beyond those of every function.
    """

    nest: Nest
    shape: TripShape
    row_loop: int
    first_row: int
    unpack_head: int
    post_update: int
    next_row: int
    branches: bool
    path_hold: int
    path_opened: int | None
    facts: frozenset[str]


def plan_nest(function: VectorFunction, nest: Nest, target: VectorFunctionTarget) -> NestPlan:
    """Work out one of the timed nests of a function (docs/reference/a5.md section 6.2)."""
    timing, loops = target.timing, target.timing.loops
    seen = profile(function, nest)
    shape = trip_shape(nest, target)
    facts = set(_told_facts(nest, shape, target))
    unpack_head = between = 0
    first_row = row_address(function, nest, target)
    if seen.barrier:
        facts.add("timing.store_barrier")
    if seen.branch:
        facts.add("timing.branch")
    if seen.unpacks and not seen.row_loop:
        facts.update(HEAD_FACTS)
        unpack_head = head_of(target, seen.source_bytes)
    every = len(shape.row_loads) + len(shape.loads)
    known_late = nest.runtime_trips and nest.row_loop
    ahead = nest.broadcasts * TICKS if known_late else 0
    if nest.paced is not None:
        ahead += ticks(timing.paced[nest.paced].row(nest.trips))
    if (seen.trips > 1 or known_late) and not seen.branch:  # a serialising branch has turned already
        between = row_turn(ticks(loops.turnaround_cycles), ticks(loops.turnaround_hidden_cycles), shape.hold)
    between += first_row + ahead
    hold, opened, path_facts = _memory_path(nest, shape, target)
    if opened is not None and nest is not function.timed[0]:  # the launch hides nothing of a later nest's first line
        opened = ticks(timing.access.load_cycles - timing.chain.forwarding_cycles)
    return NestPlan(
        nest=nest,
        shape=shape,
        row_loop=(ticks(loops.row_loop_cycles) if nest.rows > 1 or known_late else 0) + first_row + ahead,
        first_row=first_row,
        unpack_head=unpack_head,
        post_update=every * ticks(timing.loads.post_update_cycles) if nest.post_update else 0,
        next_row=between,
        branches=seen.branch,
        path_hold=hold,
        path_opened=opened,
        facts=frozenset(facts | path_facts),
    )


def row_address(function: VectorFunction, nest: Nest, target: VectorFunctionTarget) -> int:
    """Return the ticks that the address of each row of a nest takes, the first one included: it counts half bytes.

    Source: docs/reference/a5.md section 6.2, rule 10.
    """
    seen = profile(function, nest)
    if not seen.half_bytes or not seen.loads:
        return 0
    if nest.trips == 1 and (seen.barrier or not nest.row_loop):  # a barrier in each row takes longer and hides it
        return 0
    loops = target.timing.loops
    return ticks(loops.half_byte_row_cycles if nest.trips > 1 else loops.half_byte_trip_row_cycles)


HEAD_FACTS = ("timing.unpack_head", "timing.store_barrier")
"""The facts behind the start of a kernel with an unpacking load."""


def head_of(target: VectorFunctionTarget, source_bytes: int) -> int:
    """Return the ticks by which an unpacking load delays the start of a 1D kernel, by source bytes; also on arrays.

    Source: docs/reference/a5.md section 6.2, rule 9.
    """
    facts, wait = target.timing.unpack_head, ticks(target.timing.store_barrier.cycles)
    return head_penalty(source_bytes, facts.waits, wait, facts.line_bytes, facts.step_bytes, facts.bank_bit)


def _told_facts(nest: Nest, shape: TripShape, target: VectorFunctionTarget) -> Iterator[str]:
    """Yield the paths of the facts that the trips of a nest rest on."""
    steps = (*shape.steps, *shape.closing)
    if nest.post_update or len(shape.row_loads) + len(shape.loads) > 1:
        yield "timing.loads"
    if nest.paced is not None:
        yield f"timing.paced.{nest.paced}"
    if any(step.special is not None for step in steps):
        yield "timing.special_function"
    for item in (*nest.trip, *nest.close):
        if isinstance(item, Compute):
            if item.mnemonic in (LONG_DIVISION, INTEGER_DIVISION):
                yield "timing.division"
            elif item.mnemonic in target.arithmetic:
                yield f"arithmetic.{item.mnemonic}"
        elif isinstance(item, ConvertLanes) and (row := conversion_row(item, target)):
            yield f"arithmetic.{row}"


def _memory_path(nest: Nest, shape: TripShape, target: VectorFunctionTarget) -> tuple[int, int | None, set[str]]:
    """Return the memory path of a nest's lines between load and store (docs/reference/a5.md section 6.2, rule 5).

    The floor of two loads counts from launch to end of a function, less the time around its trips.
    """
    timing = target.timing
    lines = sum(not load.mask for load in shape.loads)
    if all(store.closing for store in shape.stores):
        return 0, None, set()
    if lines == 2:
        floor = timing.memory_floor["two_loads"]
        around = timing.launch.startup_cycles + timing.access.store_cycles + timing.launch.drain_cycles
        return ticks(floor.trip_cycles), ticks(floor.start_cycles - around), {"timing.memory_floor.two_loads"}
    if lines == 1 and nest.row_loop and nest.trips > 1:
        return ticks(timing.memory_path.trip_cycles), None, {"timing.memory_path"}
    return 0, None, set()


class MemoryPath:
    """The memory path of a function's lines between load and store, nest by nest."""

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
        """Return the start tick of an instruction whose operands are ready at tick `ready`."""
        port, self._next = self._next, (self._next + 1) % len(self._free)
        start = max(ready, self._free[port])
        self._free[port] = start + held
        return start


@dataclass(slots=True)
class RowState:
    """The state that the trips of a row share: long-lived registers, and the start of their last accumulation."""

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
    """A trip sent at tick `sent`; `ready` gives the tick at which each of its registers is usable."""

    sent: int
    ready: dict[str, int]
    row: RowState
    special: SpecialPorts
    forwarding: int

    def follow(self, steps: Iterable[ComputeStep]) -> ComputeWaits:
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
