"""Closed forms for the cycles of vector-function casts.

The front end sends its trips without ever waiting, and a store leaves when its data is there and the store before it is
long enough gone. So the last store leaves at the largest of sums that are linear in the numbers of rows and trips, and
the largest stands at a corner: at the first or last trip of the first or last row (docs/reference/a5.md sections 6.2,
7, 8). Operands cannot hold each other up as long as a trip reads no block group twice; kernels whose loads do are
counted trip by trip (`castsim.estimating.dual`). Times are ticks of 1/100 cycle, from the launch on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from castsim.estimating.arithmetic import SCALAR, CastCycles, Number, NumberFunctions, Shape
from castsim.estimating.kernels import Kernel, kernel_of
from castsim.estimating.placement import OperandPlacement, TileCastRequest
from castsim.estimating.tiles import TileEstimator
from castsim.execution.dataflow.timing import TICKS, rounded
from castsim.isa.errors import CastsimError
from castsim.machines.mechanisms import lowerer_of
from castsim.machines.target_cast import CastAsked
from castsim.machines.vector_function.lowering import lower_cast
from castsim.machines.vector_function.nest_plan import head_of
from castsim.machines.vector_function.timing import FunctionTicks, busy_of_hold
from castsim.targets.vector_function import VectorFunctionTarget
from castsim.timing import Cause

_LONG_AGO = -(1 << 60)
"""A tick before all others."""

_LONG, _SHORT, _PADDING = 1024, 2, 256
"""Columns of the samples that are lowered: several trips, one trip; what makes a tile padded."""


class Stores(NamedTuple):
    """The last store: when it leaves, and for how long it has waited for the memory path, its barrier, its load."""

    left: Number
    path: Number
    barrier: Number
    load: Number


@dataclass(frozen=True, slots=True)
class Times:
    """The times around the trips: ticks, but for the whole cycles that the scalar unit works `after` the launch."""

    facts: FunctionTicks
    after: int

    @classmethod
    def of(cls, target: VectorFunctionTarget, kernel: Kernel) -> Times:
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
    kernels: Mapping[tuple[bool, bool], Kernel]
    times: Times

    uses_scratch = False
    needs_apart = False
    even_columns = False

    @classmethod
    def of(cls, target: VectorFunctionTarget, request: TileCastRequest) -> FunctionForm | None:
        """Return the closed form of a request, None if the facts leave none."""
        kernels: dict[tuple[bool, bool], Kernel] = {}
        lowerer = lowerer_of(target)
        placement = OperandPlacement.of(target, lowerer, replace(request, scratch=False))
        try:
            for contiguous in (True, False):
                for several in (True, False):
                    cols = _LONG if several else _SHORT
                    rows, stride = (1, _LONG) if contiguous else (2, _LONG + _PADDING)
                    sample = placement.cast(lowerer, Shape(rows, stride, stride, rows, cols, stride))
                    kernel = kernel_of(target, lower_cast(target, sample))
                    if kernel is None:
                        return None
                    kernels[contiguous, several] = kernel
        except CastsimError:
            return None
        return cls(target, placement.bits, kernels, Times.of(target, kernels[True, True]))

    def reach(self, shape: Shape) -> Number:
        """Return the bytes from the start of the destination on that are cleared beforehand."""
        kernel = self.kernels[True, True]
        if not kernel.filled:
            return 0
        needed = shape.valid_rows * (shape.dst_stride * self.bits[1] // 8)
        return needed if kernel.fill_is_limited else -(-needed // kernel.filled) * kernel.filled

    def account(self, shape: Shape, arithmetic: NumberFunctions) -> CastCycles:
        """Return the cycles of a shape."""
        padded = (shape.valid_cols != shape.src_stride) | (shape.valid_cols != shape.dst_stride)
        contiguous = (padded == 0) | (shape.rows == 1)
        if arithmetic is SCALAR:
            kernel = self.kernels[bool(contiguous), True]
            return self._account(self.kernels[bool(contiguous), bool(_trips(kernel, shape) > 1)], shape, arithmetic)
        return self._by_kernel(shape, contiguous, arithmetic)

    def _by_kernel(self, shape: Shape, contiguous: Number, arithmetic: NumberFunctions) -> CastCycles:
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
                part = Shape(*(column[places] for column in shape))
                found = self._account(self.kernels[is_contiguous, has_several], part, arithmetic)
                for name, column in fields.items():
                    column[places] = getattr(found, name)
                for cause, cycles in found.converting:
                    causes[cause][places] = cycles
        return CastCycles(fields["cycles"], tuple(causes.items()), fields["scalar"])

    def _account(self, kernel: Kernel, shape: Shape, arithmetic: NumberFunctions) -> CastCycles:
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
            last = Stores(*kernel.dual.last_store(rows, trips, first, arithmetic))
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

    def _unpack_head(self, kernel: Kernel, shape: Shape) -> Number:
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


def _trips(kernel: Kernel, shape: Shape) -> Number:
    count = shape.valid_rows * shape.valid_cols if kernel.flat else shape.valid_cols
    return -(-count // kernel.elements)


def _spend_rows(spent: _Spent, kernel: Kernel, rows: Number, trips: Number, arithmetic: NumberFunctions) -> None:
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
    kernel: Kernel, rows: Number, trips: Number, first: Number, cleared: Number, arithmetic: NumberFunctions
) -> Stores:
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
    return Stores(left, there - data, left - there if kernel.last_waits else 0, 0)
