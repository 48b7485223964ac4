"""Closed forms for the cycles of vector-function casts.

The front end sends its trips without ever waiting, and a store leaves when its data is there and the store before it is
long enough gone. So the last store leaves at the largest of sums that are linear in the numbers of rows and trips, and
the largest stands at a corner: at the first or last trip of the first or last row (docs/reference/a5.md sections 6.2,
7, 8). Operands cannot hold each other up as long as a trip reads no block group twice; kernels whose loads do are
counted trip by trip (`function_estimate`). Times are ticks of 1/100 cycle, from the launch on.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import gcd
from typing import NamedTuple

import numpy as np

from castsim.execution.timing import Cause
from castsim.execution.transfer_timing import NO_TICK, TICKS, cycle_from, rounded, ticks
from castsim.isa.errors import CastsimError
from castsim.machines.mechanisms import CastAsked, lowerer_of
from castsim.machines.vector_function.function_operations import Nest, profile
from castsim.machines.vector_function.function_timing import (
    FunctionTicks,
    branch_rest,
    busy_of_hold,
    loaded,
    path_through,
    store_asked,
    store_start,
)
from castsim.machines.vector_function.lowering import FunctionCast, lower_cast
from castsim.machines.vector_function.trip_timing import (
    Computation,
    NestPlan,
    RowState,
    SpecialPorts,
    TripShape,
    head_of,
    plan_nest,
)
from castsim.running.estimating.cast_estimates import (
    SCALAR,
    CastCycles,
    CastShape,
    Number,
    NumberFunctions,
    OperandPlacement,
    TileCastRequest,
)
from castsim.running.estimating.tile_estimates import TileEstimator
from castsim.targets.vector_function import VectorFunctionTarget

# Kernels whose loads read every block group twice: a load that meets a store waits for one cycle.
#
# Whether it does depends on the trips before, so trips are counted one after the other, once for all shapes that share
# them: rows of equal length have their beginnings in common.

Row = tuple[int, int, int, int]
"""The last store of a row: when it leaves, and its waits for the memory path, a barrier (none), its load."""


@dataclass(slots=True)
class _Progress:
    """Trips counted so far of nests with rows of equal length: the last stores of all rows, and what comes after."""

    rows: list[Row] = field(default_factory=list)
    writes: deque[int] = field(default_factory=deque)
    left: int = NO_TICK
    through: int = NO_TICK


@dataclass(frozen=True, slots=True)
class DualTrips:
    """Trips of one load and one store each. `arrival` and `data` are those of a trip that is sent at tick 0, without
    and with a wait of its load.
    """

    plan: NestPlan
    arrival: tuple[int, int]
    data: tuple[int, int]
    interval: int
    known: dict[tuple[int, int], _Progress] = field(default_factory=dict, compare=False)

    @classmethod
    def of(
        cls,
        target: VectorFunctionTarget,
        plan: NestPlan,
        free: tuple[int, int],
        waiting: tuple[int, int],
        intervals: tuple[int, ...],
    ) -> DualTrips | None:
        """Return the trips of a nest, from arrival and data of a load that need not wait and of one that does.

        None if more can happen than that a load meets one store.
        """
        shape = plan.shape
        simple = len(intervals) == 1 and not plan.branches and not shape.stores[0].barrier
        # Stores stand in their cycle before the loads of that cycle are sent; a late half is gone before the next load.
        ordered = free[1] >= TICKS and shape.hold >= 2 * TICKS
        if not (simple and ordered and target.banks.reads_beside_write == 1):
            return None
        return cls(plan, (free[0], waiting[0]), (free[1], waiting[1]), intervals[0])

    def last_store(self, rows: Number, trips: Number, first: Number, arithmetic: NumberFunctions) -> tuple[Number, ...]:
        """Return the last store of `rows` rows of `trips` trips, the first of which is sent at tick `first`."""
        if arithmetic is SCALAR:
            return self._row(rows, trips, first)
        found = np.zeros((4, len(trips)), np.int64)
        width = int(np.max(first)) + 1
        keys, places = np.unique(trips * width + first, return_inverse=True)
        order = np.argsort(places, kind="stable")
        bounds = np.searchsorted(places[order], np.arange(len(keys) + 1))
        for number, key in enumerate(keys.tolist()):
            part = order[bounds[number] : bounds[number + 1]]
            counts = rows[part]
            most = int(counts.max())
            if most > 0:
                each, begun = divmod(key, width)
                self._row(most, each, begun)
                table = np.array(self.known[each, begun].rows[:most])
                found[:, part] = table[np.maximum(counts, 1) - 1].T
        return tuple(found)

    def _row(self, rows: int, trips: int, first: int) -> Row:
        if rows <= 0:
            return (0, 0, 0, 0)
        progress = self.known.setdefault((trips, first), _Progress())
        while len(progress.rows) < rows:
            self._count(progress, trips, first)
        return progress.rows[rows - 1]

    def _count(self, progress: _Progress, trips: int, first: int) -> None:
        """Count the trips of one more row."""
        hold, path_hold = self.plan.shape.hold, self.plan.path_hold
        sent = first + len(progress.rows) * (self.plan.next_row + trips * hold)
        writes, left, through = progress.writes, progress.left, progress.through
        waits = data = there = 0
        for _ in range(trips):
            asked = cycle_from(sent)
            while writes and writes[0] < asked:
                writes.popleft()
            waits = int(bool(writes) and writes[0] == asked)
            there = data = sent + self.data[waits]
            if path_hold:
                arrival = sent + self.arrival[waits]
                through = path_through(through, arrival, path_hold, opened=False)
                there = max(data, through)
            left = store_start(there, left, self.interval, NO_TICK, 0)
            writes.append(store_asked(left))
            sent += hold
        progress.left, progress.through = left, through
        progress.rows.append((left, there - data, 0, waits * TICKS))


# What the closed form of vector-function casts needs to know of a kernel, and whether the form covers it at all.

_MOST_PHASES = 4
"""Rows may begin at so many different fractions of a cycle."""


@dataclass(frozen=True, slots=True)
class Chain:
    """A trip that is sent at tick 0: when its loaded registers can be used, and for each store when its data is there
    and what its barrier waits for.
    """

    arrival: int
    data: tuple[int, ...]
    barrier_at: int


@dataclass(frozen=True, slots=True)
class KernelVariant:
    """One code variant with one or several trips per row: all numbers but the extents.

    `branch` is what a serialising branch takes, 0 if there is none. `intervals` are the ticks from the store before to
    each store of a trip, `every` their sum; `effect` is when a trip that is sent at tick 0 lets the first store after
    it leave, less all intervals in between. `filled` is the size of the stores that clear the destination beforehand,
    0 if none do.
    """

    elements: int
    timed_elements: int
    flat: bool
    source_bits: int
    plan: NestPlan
    branch: int
    chain: Chain
    intervals: tuple[int, ...]
    every: int
    effect: int
    filled: int
    fill_is_limited: bool
    restores: int
    trip_ticks: int
    """Ticks from trip to trip of a row."""
    phases: int
    """Fractions of a cycle at which rows begin."""
    last_waits: bool
    """Whether a barrier stands before the last store."""
    dual: DualTrips | None


def kernel_of(target: VectorFunctionTarget, lowered: FunctionCast) -> KernelVariant | None:
    """Return the numbers of a lowered sample, None if the closed form does not cover what it does."""
    function, text = lowered.function, lowered.plan.kernel
    *clearing, nest = function.timed
    plan = plan_nest(function, nest, target)
    seen = profile(function, nest)
    shape, timing = plan.shape, target.timing
    branch = ticks(timing.branch.cycles) if plan.branches else 0
    sent_for = shape.hold + branch_rest(branch, shape.hold)
    chain = chain_of(shape, target, released=sent_for if branch else 0)
    interval, barrier = ticks(timing.port.store_cycles), ticks(timing.store_barrier.cycles)
    intervals = tuple(max(interval, barrier) if store.barrier else interval for store in shape.stores)
    there = (
        max(data, chain.barrier_at + barrier) if store.barrier else data
        for store, data in zip(shape.stores, chain.data, strict=True)
    )
    kernel = KernelVariant(
        elements=text.elements,
        timed_elements=nest.elements,
        flat=not nest.row_loop,
        source_bits=nest.source_trip * 8 // nest.elements,
        plan=replace(plan, unpack_head=int(seen.unpacks and not seen.row_loop)),
        branch=branch,
        chain=chain,
        intervals=intervals,
        every=sum(intervals),
        effect=max(at + sum(intervals[place + 1 :]) for place, at in enumerate(there)),
        filled=clearing[0].elements if clearing else 0,
        fill_is_limited=bool(clearing and clearing[0].counters),
        restores=len(lowered.plan.restores),
        trip_ticks=branch + sent_for,
        last_waits=shape.stores[-1].barrier,
        phases=TICKS // gcd(plan.next_row + branch, TICKS),
        dual=None,
    )
    if not _is_covered(target, kernel) or any(_waits(plan_nest(function, each, target)) for each in clearing):
        return None
    if _reads_per_group(target, nest, shape) <= target.banks.reads_beside_write:
        return kernel
    shifted = chain_of(shape, target, released=0, waited=TICKS)
    dual = DualTrips.of(target, plan, (chain.arrival, chain.data[0]), (shifted.arrival, shifted.data[0]), intervals)
    covered = _reads_per_group(target, nest, shape) == 2 <= target.banks.reads_per_group and not clearing
    return replace(kernel, dual=dual) if dual is not None and covered else None


def _is_covered(target: VectorFunctionTarget, kernel: KernelVariant) -> bool:
    """Whether trips depend on nothing but when they are sent, and no two of them read or write in one cycle."""
    plan = kernel.plan
    shape, nest = plan.shape, plan.nest
    plain = not (shape.row_loads or shape.closing or plan.post_update) and plan.path_opened is None
    plain = plain and len(shape.loads) == 1 and bool(shape.stores)
    plain = plain and all(step.special is None and step.again is None for step in shape.steps)
    apart = shape.hold >= TICKS and ticks(target.timing.port.store_cycles) >= TICKS
    steps = (nest.source_trip, nest.destination_trip, *(store.offset for store in shape.stores))
    aligned = all(step % target.registers.block_bytes == 0 for step in steps)
    few = kernel.trip_ticks % TICKS == 0 and kernel.phases <= _MOST_PHASES
    written = max(store.size for store in shape.stores) // target.registers.block_bytes
    return plain and apart and aligned and few and written <= target.banks.groups


def _waits(plan: NestPlan) -> bool:
    """Whether a loop that clears the destination does more than send its stores at once."""
    shape = plan.shape
    return bool(plan.branches or shape.hold or shape.loads or len(shape.stores) != 1 or shape.stores[0].barrier)


def _reads_per_group(target: VectorFunctionTarget, nest: Nest, shape: TripShape) -> int:
    blocks = -(-shape.loads[0].size // target.registers.block_bytes)
    return -(-blocks // target.banks.groups)


def chain_of(shape: TripShape, target: VectorFunctionTarget, *, released: int, waited: int = 0) -> Chain:
    """Follow one trip that is sent at tick 0, whose load waits so long and whose stores are released then."""
    facts = FunctionTicks.of(target)
    arrival = loaded(0, 0, facts.second_load, waited, facts.load_use)
    ready = {name: arrival for load in shape.loads for name in load.results}
    computation = Computation(0, ready, RowState(), SpecialPorts(facts.special_ports), facts.forwarding)
    waits = computation.follow(shape.steps)
    of = computation.of
    data = tuple(max(released, of(store.source), of(store.predicate)) for store in shape.stores)
    return Chain(arrival, data, max(released, waits.last))


_LONG_AGO = -(1 << 60)
"""A tick before all others."""

_LONG, _SHORT, _PADDING = 1024, 2, 256
"""Columns of the samples that are lowered: several trips, one trip; what makes a tile padded."""


class FinalStore(NamedTuple):
    """The last store: when it leaves, and for how long it has waited for the memory path, its barrier, its load."""

    left: Number
    path: Number
    barrier: Number
    load: Number


@dataclass(frozen=True, slots=True)
class LaunchTimes:
    """The times around the trips: ticks, but for the whole cycles that the scalar unit works `after` the launch."""

    facts: FunctionTicks
    after: int

    @classmethod
    def of(cls, target: VectorFunctionTarget, kernel: KernelVariant) -> LaunchTimes:
        """Return those of a kernel."""
        return cls(FunctionTicks.of(target), kernel.restores * target.timing.scalar.control_write_cycles)


def estimator(target: VectorFunctionTarget, asked: CastAsked) -> TileEstimator:
    """Return the estimator of one request."""
    request = TileCastRequest.of(asked)
    return TileEstimator(target, request, FunctionForm.of(target, request))


@dataclass(frozen=True, slots=True)
class FunctionForm:
    """The closed form of one request: its kernels, by whether tiles are contiguous and rows have several trips."""

    target: VectorFunctionTarget
    bits: tuple[int, int]
    kernels: Mapping[tuple[bool, bool], KernelVariant]
    times: LaunchTimes

    uses_scratch = False
    needs_apart = False
    even_columns = False

    @classmethod
    def of(cls, target: VectorFunctionTarget, request: TileCastRequest) -> FunctionForm | None:
        """Return the closed form of a request, None if the facts leave none."""
        kernels: dict[tuple[bool, bool], KernelVariant] = {}
        lowerer = lowerer_of(target)
        placement = OperandPlacement.of(target, lowerer, replace(request, scratch=False))
        try:
            for contiguous in (True, False):
                for several in (True, False):
                    cols = _LONG if several else _SHORT
                    rows, stride = (1, _LONG) if contiguous else (2, _LONG + _PADDING)
                    sample = placement.cast(lowerer, CastShape(rows, stride, stride, rows, cols, stride))
                    kernel = kernel_of(target, lower_cast(target, sample))
                    if kernel is None:
                        return None
                    kernels[contiguous, several] = kernel
        except CastsimError:
            return None
        return cls(target, placement.bits, kernels, LaunchTimes.of(target, kernels[True, True]))

    def reach(self, shape: CastShape) -> Number:
        """Return the bytes from the start of the destination on that are cleared beforehand."""
        kernel = self.kernels[True, True]
        if not kernel.filled:
            return 0
        needed = shape.valid_rows * (shape.dst_stride * self.bits[1] // 8)
        return needed if kernel.fill_is_limited else -(-needed // kernel.filled) * kernel.filled

    def account(self, shape: CastShape, arithmetic: NumberFunctions) -> CastCycles:
        """Return the cycles of a shape."""
        padded = (shape.valid_cols != shape.src_stride) | (shape.valid_cols != shape.dst_stride)
        contiguous = (padded == 0) | (shape.rows == 1)
        if arithmetic is SCALAR:
            kernel = self.kernels[bool(contiguous), True]
            return self._account(self.kernels[bool(contiguous), bool(_trips(kernel, shape) > 1)], shape, arithmetic)
        return self._by_kernel(shape, contiguous, arithmetic)

    def _by_kernel(self, shape: CastShape, contiguous: Number, arithmetic: NumberFunctions) -> CastCycles:
        """Return the cycles of many shapes, those of one kernel after those of another."""
        size = contiguous.size
        fields = {name: np.zeros(size, np.int64) for name in ("cycles", "scalar")}
        causes = {cause: np.zeros(size, np.int64) for cause in Cause}
        for is_contiguous in (True, False):
            several = _trips(self.kernels[is_contiguous, True], shape) > 1
            for has_several in (True, False):
                places = np.flatnonzero((contiguous == is_contiguous) & (several == has_several))
                if not places.size:
                    continue
                part = CastShape(*(column[places] for column in shape))
                found = self._account(self.kernels[is_contiguous, has_several], part, arithmetic)
                for name, column in fields.items():
                    column[places] = getattr(found, name)
                for cause, cycles in found.converting:
                    causes[cause][places] = cycles
        return CastCycles(fields["cycles"], tuple(causes.items()), fields["scalar"])

    def _account(self, kernel: KernelVariant, shape: CastShape, arithmetic: NumberFunctions) -> CastCycles:
        """Return the cycles of shapes that run one kernel."""
        times, facts, choose, larger = self.times, self.times.facts, arithmetic.choose, arithmetic.larger
        trips = _trips(kernel, shape)
        rows = choose(trips > 0, 1 if kernel.flat else shape.valid_rows, 0)
        clears = 0
        if kernel.filled:
            clears = -(-shape.valid_rows * (shape.dst_stride * self.bits[1] // 8) // kernel.filled)
        spent = _Spent(facts.startup)
        loops = (clears > 1) | ((rows > 0) & ((rows > 1) | (trips > 1)))
        spent.turn = spent.advance(choose(loops, facts.setup, 0))
        cleared = choose(clears > 0, spent.now + (clears - 1) * facts.store_interval, _LONG_AGO)
        spent.turn = spent.turn + spent.advance(
            choose(rows > 1, facts.row_loop, 0) + (rows > 0) * kernel.plan.first_row
        )
        if kernel.plan.unpack_head:
            spent.conflict = spent.advance(choose(rows > 0, self._unpack_head(kernel, shape), 0))
        first = spent.now + 2 * kernel.branch
        _spend_rows(spent, kernel, rows, trips, arithmetic)
        if kernel.dual is not None:
            last = FinalStore(*kernel.dual.last_store(rows, trips, first, arithmetic))
        else:
            last = _last_store(kernel, rows, trips, first, cleared, arithmetic)
        left = choose(rows > 0, last.left, cleared)
        end = larger(left + facts.store_latency, spent.now) + facts.drain
        cycle = rounded(end)
        if kernel.plan.path_hold:
            spent.path = spent.hold(choose(rows > 0, last.path, 0), cycle, arithmetic)
        if kernel.last_waits:
            spent.held = spent.hold(choose(rows > 0, last.barrier, 0), cycle, arithmetic)
        if kernel.dual is not None:
            spent.conflict = spent.conflict + spent.hold(choose(rows > 0, last.load, 0), cycle, arithmetic)
        spent.drain = spent.hold(cycle * TICKS, cycle, arithmetic)
        return CastCycles(larger(cycle, times.after), spent.by_cause(), times.after)

    def _unpack_head(self, kernel: KernelVariant, shape: CastShape) -> Number:
        """Return the ticks by which an unpacking load delays the start."""
        count = shape.valid_rows * shape.valid_cols if kernel.flat else shape.valid_cols
        count = -(-count * kernel.timed_elements // kernel.elements)
        return head_of(self.target, -(-count * kernel.source_bits // 8))


class _Spent:
    """The front end's time, and the whole cycles of the pipe by cause."""

    __slots__ = ("branch", "busy", "conflict", "cursor", "drain", "held", "interval", "now", "path", "start", "turn")

    def __init__(self, startup: int) -> None:
        self.now: Number = startup
        self.start = self.cursor = startup // TICKS
        self.turn: Number = 0
        self.conflict: Number = 0
        self.busy: Number = 0
        self.interval: Number = 0
        self.branch: Number = 0
        self.path: Number = 0
        self.held: Number = 0
        self.drain: Number = 0

    def advance(self, duration: Number) -> Number:
        """Work for so many ticks; return the whole cycles that have passed."""
        before = self.cursor
        self.now = self.now + duration
        self.cursor = self.now // TICKS
        return self.cursor - before

    def hold(self, duration: Number, until: Number, arithmetic: NumberFunctions) -> Number:
        """Wait behind the front end's work, up to cycle `until`; return the whole cycles that have passed."""
        before = self.cursor
        self.cursor = arithmetic.larger(before, arithmetic.smaller(until, before + duration // TICKS))
        return self.cursor - before

    def by_cause(self) -> tuple[tuple[Cause, Number], ...]:
        """Return everything spent, in the order of `Cause`."""
        return (
            (Cause.BUSY, self.busy),
            (Cause.FILL, self.start),
            (Cause.DRAIN, self.drain),
            (Cause.STORE_BARRIER, self.held),
            (Cause.BANK_CONFLICT, self.conflict),
            (Cause.INITIATION_INTERVAL, self.interval),
            (Cause.LOOP_TURNAROUND, self.turn),
            (Cause.SERIALISING_BRANCH, self.branch),
            (Cause.MEMORY_BANDWIDTH, self.path),
        )


def _trips(kernel: KernelVariant, shape: CastShape) -> Number:
    count = shape.valid_rows * shape.valid_cols if kernel.flat else shape.valid_cols
    return -(-count // kernel.elements)


def _spend_rows(spent: _Spent, kernel: KernelVariant, rows: Number, trips: Number, arithmetic: NumberFunctions) -> None:
    """Send all trips: the front end's cycles by cause, row by row of equal fraction of a cycle."""
    branch, hold, turn, phases = kernel.branch, kernel.plan.shape.hold, kernel.plan.next_row, kernel.phases
    begun = spent.now + branch
    for phase in range(phases):
        count = (rows - phase + phases - 1) // phases if phases > 1 else rows
        start = begun + phase * (turn + branch)
        if turn:
            turns = count - (arithmetic.smaller(rows, 1) if phase == 0 else 0)
            spent.turn = spent.turn + turns * ((start - branch) // TICKS - (start - branch - turn) // TICKS)
        sent, held = start + branch, start + branch + hold
        if branch:
            after = arithmetic.larger(held, start + kernel.trip_ticks)
            each = sent // TICKS - start // TICKS + after // TICKS - held // TICKS
            serial = start // TICKS - (start - branch) // TICKS + trips * each
            spent.branch = spent.branch + count * serial
            spent.busy = spent.busy + count * trips * (held // TICKS - sent // TICKS)
        else:
            busy = (sent + busy_of_hold(hold)) // TICKS
            spent.busy = spent.busy + count * trips * (busy - sent // TICKS)
            spent.interval = spent.interval + count * trips * (held // TICKS - busy)
    turns = rows - arithmetic.smaller(rows, 1)
    spent.now = spent.now + turns * turn + rows * (branch + trips * kernel.trip_ticks)
    spent.cursor = spent.now // TICKS


def _last_store(
    kernel: KernelVariant, rows: Number, trips: Number, first: Number, cleared: Number, arithmetic: NumberFunctions
) -> FinalStore:
    """Return when the last store leaves whose trips are sent from tick `first` on."""
    larger, chain, hold = arithmetic.larger, kernel.chain, kernel.plan.path_hold
    row_ticks = kernel.plan.next_row + kernel.branch + trips * kernel.trip_ticks
    every, before, last_row = kernel.every, rows * trips - 1, rows - 1

    def decisive(interval: int) -> Number:
        """Return when a trip was sent and `interval` passed for each one behind it, for the trip with the largest."""
        late_row = larger(0, last_row * (row_ticks - trips * interval))
        return first + before * interval + late_row + (trips - 1) * max(0, kernel.trip_ticks - interval)

    left = larger(cleared + (before + 1) * every, kernel.effect + decisive(every))
    data = there = first + last_row * row_ticks + (trips - 1) * kernel.trip_ticks + chain.data[-1]
    if hold:
        passed = chain.arrival + hold
        there = larger(data, passed + decisive(hold))
        left = larger(left, passed + decisive(max(hold, every)) + every - kernel.intervals[0])
    return FinalStore(left, there - data, left - there if kernel.last_waits else 0, 0)
