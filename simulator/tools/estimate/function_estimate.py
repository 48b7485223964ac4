"""Cycles of vector-function casts for many shapes: one launch is timed for all shapes with equivalent launches.

The cycles of a launch depend on the loops that run, on the blocks that its stores touch, and on the bank groups of its
addresses (docs/reference/a5.md sections 6.2 and 8). So shapes are reduced to the smallest one with the same
properties. Shapes that differ in the trips of the loop over rows, or over a contiguous tile, share one launch of many
trips, which is timed as if it ended with each of them. All other cases, such as operands elsewhere in
the banks and kernels that first clear their destination, are simulated shape by shape and cached.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from castsim.execution.pipe_operations import BLOCK
from castsim.execution.timing import Cause
from castsim.isa.dataclass import dataclass, field, replace
from castsim.isa.errors import CastsimError
from castsim.machines.mechanisms import CastAsked, lowerer_of
from castsim.machines.vector_function.front_end import EarlyEnd, time_trips
from castsim.machines.vector_function.function_launches import FunctionLaunch
from castsim.machines.vector_function.lowering import lower_cast
from castsim.targets.vector_function import VectorFunctionTarget
from castsim.tools.estimate.cast_estimates import (
    SCALAR,
    CastCycles,
    CastShape,
    Estimate,
    Number,
    NumberFunctions,
    OperandPlacement,
    TileCastRequest,
    bound_by,
    timed_alone,
    up,
)
from castsim.tools.estimate.tile_estimates import TileEstimator

_SAMPLES = CastShape(1, 1024, 1024, 1, 1024, 1024), CastShape(2, 1280, 1280, 2, 1024, 1024)
"""A contiguous tile and a padded one: one for each kernel of a request."""


def estimator(target: VectorFunctionTarget, asked: CastAsked) -> TileEstimator:
    """Return the estimator of one request."""
    request = TileCastRequest.of(asked)
    return TileEstimator(target, request, LikeLaunches.of(target, request))


@dataclass(frozen=True, slots=True)
class LikeLaunches:
    """The simulated launches of one request, by shape.

    `elements` of a trip of the contiguous and of the padded kernel; 0: it has several loops, and no shape is equivalent
    to another. An unpacking load may delay the start of a contiguous tile of fewer than `headed`. `restores` are the
    cycles for which the scalar unit works after the launch. `ends` are launches of many trips, by the properties that
    decide the time of a trip.
    """

    target: VectorFunctionTarget
    placement: OperandPlacement
    elements: tuple[int, int]
    headed: int
    restores: int
    known: dict[tuple[int, ...], Estimate] = field(default_factory=dict, compare=False)
    ends: dict[tuple[int, ...], Sequence[EarlyEnd]] = field(default_factory=dict, compare=False)

    uses_scratch = False
    needs_apart = False
    even_columns = False

    @classmethod
    def of(cls, target: VectorFunctionTarget, request: TileCastRequest) -> LikeLaunches | None:
        """Return the launches of one request, None if it is refused for every shape."""
        lowerer = lowerer_of(target)
        placement = OperandPlacement.of(target, lowerer, request)
        elements, restores, headed, head = [], 0, 0, target.timing.unpack_head
        for sample in _SAMPLES:
            try:
                lowered = lower_cast(target, placement.cast(lowerer, sample))
            except CastsimError:
                return None
            nests = lowered.function.timed
            elements.append(sample.cols // nests[0].trips if len(nests) == 1 else 0)
            if sample.rows == 1:
                row_bytes = nests[-1].count * nests[-1].source_trip // nests[-1].elements
                headed = -(-sample.cols * head.waits * head.step_bytes // row_bytes)
            restores = len(lowered.plan.restores) * target.timing.scalar.control_write_cycles
        return cls(target, placement, (elements[0], elements[1]), headed, restores)

    def reach(self, shape: CastShape) -> Number:
        """Return 0: the simulation rejects writes outside the tile."""
        del shape
        return 0

    def account(self, shape: CastShape, arithmetic: NumberFunctions) -> CastCycles:
        """Return the cycles of a shape.

        Raises:
            TileError, ScratchError: see `castsim.isa.errors`.
        """
        if arithmetic is SCALAR:
            return _account(self._simulated(tuple(self._smallest(shape, arithmetic)), shape))
        smallest = np.stack([np.broadcast_to(column, shape.rows.shape) for column in self._smallest(shape, arithmetic)])
        key = np.zeros(smallest.shape[1], np.int64)
        for column in smallest:  # the digits of one number
            key = key * (int(column.max(initial=0)) + 1) + column
        _, first, places = np.unique(key, return_index=True, return_inverse=True)
        keys = map(tuple, smallest[:, first].T.tolist())
        given = np.stack(shape)[:, first].T
        estimates = [
            self._simulated(launch_key, CastShape(*sizes))
            for launch_key, sizes in zip(keys, given.tolist(), strict=True)
        ]
        rows = np.array([[estimate.causes.get(cause, 0) for cause in Cause] for estimate in estimates], np.int64).T
        causes = tuple((cause, rows[number][places]) for number, cause in enumerate(Cause) if cause is not Cause.EMPTY)
        return CastCycles(np.array([estimate.cycles for estimate in estimates], np.int64)[places], causes, 0)

    def _smallest(self, shape: CastShape, arithmetic: NumberFunctions) -> CastShape:
        """Return the smallest shape with an equivalent launch."""
        choose, larger = arithmetic.choose, arithmetic.larger
        bits, turn = self.placement.bits, 8 * self.target.banks.groups * self.target.registers.block_bytes
        block = 8 * self.target.registers.block_bytes
        padded = ((shape.valid_cols != shape.src_stride) | (shape.valid_cols != shape.dst_stride)) & (shape.rows != 1)
        count = choose(padded, shape.valid_cols, shape.valid_rows * shape.valid_cols)
        headed = (padded == 0) & (count < self.headed)
        cols = choose(headed, count, up(count, block // bits[1]))  # stores touch whole blocks
        wide = up(cols, block // min(bits))
        rows = choose(padded, larger(shape.valid_rows, 2), 1)
        strides = []
        for stride, width in zip((shape.src_stride, shape.dst_stride), bits, strict=True):
            period = turn // width
            same = stride % period
            more = up(larger(wide + 1 - same, 0), period) + same
            strides.append(choose(padded, more, wide))
        like = CastShape(rows, strides[0], strides[1], choose(padded, shape.valid_rows, 1), cols, cols)
        alike = choose(padded, self.elements[1], self.elements[0]) > 0
        alike = alike & (count > 0) & (self.placement.second(shape, arithmetic) % (turn // 8) == 0)
        return CastShape._make(choose(alike, other, extent) for extent, other in zip(shape, like, strict=True))

    def _simulated(self, key: tuple[int, ...], shape: CastShape) -> Estimate:
        """Return the estimate of a shape from that of the smallest equivalent one, or its own if that does not fit."""
        estimate = self.known.get(key)
        if estimate is None:
            smallest = CastShape(*key)
            try:
                estimate = self._early_end(smallest) or self._simulate(smallest)
            except CastsimError:
                estimate = self._simulate(shape)
            self.known[key] = estimate
        return estimate

    def _early_end(self, shape: CastShape) -> Estimate | None:
        """Return the estimate of a shape from the launch of many trips; None if it has none."""
        padded, per_trip, count = (
            shape.rows > 1,
            self.elements[shape.rows > 1],
            shape.valid_cols * min(shape.valid_rows, 1),
        )
        if not (per_trip and count) or self.placement.second(shape, SCALAR) % (self.target.banks.groups * BLOCK):
            return None
        trips = shape.valid_rows if padded else -(-count // per_trip)
        kind = shape[1:3] + shape[4:] if padded else ()
        if trips < 2 or (not padded and count < self.headed):
            return None
        ends = self.ends.get(kind, ())
        if len(ends) < trips - 1:
            ends = self.ends[kind] = self._ends(shape, 1 << trips.bit_length())
        end = ends[trips - 2]
        if end.cycles <= self.restores or (end.waited and not padded and count % per_trip):
            return None
        return Estimate(end.cycles, bound_by(end.causes), end.causes)

    def _ends(self, shape: CastShape, trips: int) -> Sequence[EarlyEnd]:
        """Time the launch of a shape as if its loop ended with any trip from the second up to a given number."""
        function = lower_cast(self.target, self.placement.cast(lowerer_of(self.target), shape)).function
        (nest,) = function.timed
        if nest.row_loop:
            longer = replace(nest, rows=trips)
        else:
            longer = replace(nest, trips=trips, count=trips * nest.elements)
        return time_trips(FunctionLaunch(replace(function, timed=(longer,)), self.target).scope, self.target)

    def _simulate(self, shape: CastShape) -> Estimate:
        lowerer, request = lowerer_of(self.target), self.placement.request
        text = f"tcvt {request.src.name} -> {request.dst.name}"
        return timed_alone(self.target, lowerer.cast(self.placement.cast(lowerer, shape)), text)


def _account(estimate: Estimate) -> CastCycles:
    causes = tuple((cause, estimate.causes.get(cause, 0)) for cause in Cause if cause is not Cause.EMPTY)
    return CastCycles(estimate.cycles, causes, 0)
