"""Contents of an estimate, and the estimate of one instruction by simulating it alone."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

import numpy as np

from castsim.engines import simulate
from castsim.execution.interpreter.lowerer import LoweredInstruction, Lowerer, bare
from castsim.execution.outcomes import PlotMixin
from castsim.execution.timing import Cause, Timing
from castsim.execution.tree import Block, Instruction, Lowered, Tile, TileCast, Tree
from castsim.isa.dataclass import dataclass, field, replace
from castsim.isa.errors import Span, TileError
from castsim.isa.formats import Format, Saturation, format_named
from castsim.isa.pto.program import Pipe, RoundMode, TileType
from castsim.machines.mechanisms import CastAsked, round_mode
from castsim.reports.cycle_evidence import Sensitivity, Trust
from castsim.targets.dataflow import APART, CONSECUTIVE, DataflowTarget
from castsim.targets.loader import Target

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


# One source for formulas on single integers and on arrays of them.

Number = Any
"""An int, or an array of int64; conditions are bools, or arrays of them."""


@dataclass(frozen=True, slots=True)
class NumberFunctions:
    """Functions that differ between Python and NumPy.

    These are the larger and the smaller of two, a choice by a condition, an entry of a table by its index.
    """

    larger: Callable[[Number, Number], Number]
    smaller: Callable[[Number, Number], Number]
    choose: Callable[[Number, Number, Number], Number]
    look_up: Callable[[tuple[int, ...], Number], Number]


def _choose(condition: bool, yes: int, no: int) -> int:
    return yes if condition else no


SCALAR = NumberFunctions(max, min, _choose, operator.getitem)


def _look_up(table: tuple[int, ...], places: Number) -> Number:
    return np.asarray(table, np.int64)[places]


def of_arrays() -> NumberFunctions:
    """Return the arithmetic of NumPy arrays."""
    return NumberFunctions(np.maximum, np.minimum, np.where, _look_up)


class CastShape(NamedTuple):
    """The shape that decides the cycles of a cast: extents in elements, row strides of both tiles.

    Every field is an int, or an array of int64; all arrays have one length.
    """

    rows: Number
    src_stride: Number
    dst_stride: Number
    valid_rows: Number
    valid_cols: Number
    cols: Number


class CastCycles(NamedTuple):
    """Cycles of a cast alone, those of the converting pipe by cause, busy ones of the scalar unit.

    `converting` is in the order of `Cause`, without the empty cycles. All three count the cycles of the cast, without
    those that its convention leaves out.
    """

    cycles: Number
    converting: tuple[tuple[Cause, Number], ...]
    scalar: Number


def up(number: Number, step: int) -> Number:
    """Return the next multiple of `step`."""
    return -(-number // step) * step


# Where the operands of an estimated cast lie: apart from each other where the buffer is large enough.
#
# Operands that share no bank cannot hold each other up, so a cast's cycles follow from its extents alone.

HERE = Span("<estimate>", 1, 1)
_WORD_BYTES = 4
"""Number of bytes of an element of the tmp tile, int32."""


@dataclass(frozen=True, slots=True)
class TileCastRequest:
    """The requested cast, independent of the shape."""

    src: Format
    dst: Format
    rounding: RoundMode | None
    saturation: Saturation | None
    scratch: bool

    @classmethod
    def of(cls, asked: CastAsked) -> TileCastRequest:
        """Return the request for a cast given by names.

        Raises:
            ReadError: the rounding mode is unknown.
        """
        mode = None if asked.rounding is None else round_mode(asked.rounding)
        return cls(asked.src, asked.dst, mode, asked.saturation, asked.scratch)


@dataclass(frozen=True, slots=True)
class OperandPlacement:
    """Placement of operands for one pair of formats.

    `region` is the distance after which other banks begin, `capacity` the space for tiles, `limit` the buffer's size;
    all in bytes. `consecutive` tiles are adjacent.
    """

    request: TileCastRequest
    consecutive: bool
    bits: tuple[int, int]
    region: int
    alignment: int
    capacity: int
    limit: int
    line: int

    @classmethod
    def of(cls, target: DataflowTarget, lowerer: Lowerer, request: TileCastRequest) -> OperandPlacement:
        """Return the placement on a target."""
        _, capacity, _ = lowerer.buffer()
        return cls(
            request=request,
            consecutive=target.consecutive,
            bits=(lowerer.element_bits(request.src), lowerer.element_bits(request.dst)),
            region=target.group_bytes,
            alignment=target.estimated_alignment,
            capacity=capacity,
            limit=target.memories["ub"].capacity_bytes,
            line=8 * target.block_bytes,
        )

    def cast(self, lowerer: Lowerer, shape: CastShape) -> TileCast:
        """Return the cast of one shape.

        Raises:
            TileError: an extent is negative; see `castsim.execution.pipe_operations.check_tile`.
        """
        for name in ("rows", "cols", "src_stride", "dst_stride", "valid_rows", "valid_cols"):
            if getattr(shape, name) < 0:
                raise TileError(f"{name} {getattr(shape, name)} is negative")
        if shape.valid_cols > shape.cols:
            raise TileError(f"{shape.valid_cols} valid columns: the tile has {shape.cols}")
        request = self.request
        source = self._tile(lowerer, "src", request.src, shape.src_stride, shape, 0)
        at = self.second(shape, SCALAR)
        destination = self._tile(lowerer, "dst", request.dst, shape.dst_stride, shape, at)
        tmp = self._scratch(shape, destination.end) if request.scratch else None
        return TileCast(source, destination, tmp, request.rounding, request.saturation, HERE)

    def fits(self, shape: CastShape, reach: Number, arithmetic: NumberFunctions) -> Number:
        """Return whether all tiles of a shape are accepted, the destination being written up to `reach` bytes."""
        rows, src, dst = shape.rows, shape.src_stride * self.bits[0], shape.dst_stride * self.bits[1]
        good = (rows >= 0) & (shape.valid_rows >= 0) & (shape.valid_cols >= 0) & (src >= 0) & (dst >= 0)
        good &= (shape.valid_rows <= rows) & (shape.valid_cols <= shape.cols)
        good &= (shape.valid_cols <= shape.src_stride) & (shape.valid_cols <= shape.dst_stride)
        good &= (src % self.line == 0) & (dst % self.line == 0)
        good &= up(rows * (src // 8), self.alignment) + rows * (dst // 8) <= self.limit
        good &= self.second(shape, arithmetic) + reach <= self.limit
        return good

    def apart(self, shape: CastShape, arithmetic: NumberFunctions, *, scratch: bool) -> Number:
        """Whether all operands of a shape that `fits` are in different banks, with `scratch` also the tmp tile."""
        dst = shape.rows * (shape.dst_stride * self.bits[1] // 8)
        at = self.second(shape, arithmetic)
        apart = at % self.region == 0
        if scratch:
            behind = up(at + dst, self.region)
            apart &= behind + self._reserve(shape) <= self.capacity
        return apart

    def name(self, shape: CastShape) -> str:
        """Return the name of the placement of one shape."""
        return CONSECUTIVE if self.consecutive or not self.apart(shape, SCALAR, scratch=False) else APART

    def holds_scratch(self, shape: CastShape, arithmetic: NumberFunctions) -> Number:
        """Return whether a tmp tile of sufficient size fits after the tiles of a shape that `fits`."""
        return self._behind(shape, arithmetic) + self._reserve(shape) <= self.capacity

    def leaves_scratch(self, shape: CastShape, arithmetic: NumberFunctions) -> Number:
        """Return whether any bytes remain for a tmp tile; an empty one is rejected by the simulation."""
        return self._behind(shape, arithmetic) + self.alignment <= self.capacity

    def _behind(self, shape: CastShape, arithmetic: NumberFunctions) -> Number:
        dst = shape.rows * (shape.dst_stride * self.bits[1] // 8)
        return up(self.second(shape, arithmetic) + dst, self.alignment)

    def second(self, shape: CastShape, arithmetic: NumberFunctions) -> Number:
        """Return the address of the destination."""
        src = shape.rows * (shape.src_stride * self.bits[0] // 8)
        if self.consecutive:
            return up(src, self.alignment)
        at = up(src, self.region)
        needed = up(shape.rows * (shape.dst_stride * self.bits[1] // 8), self.alignment) + self._reserve(shape)
        return arithmetic.choose(at + needed <= self.capacity, at, up(src, self.alignment))

    def _reserve(self, shape: CastShape) -> Number:
        """Return the bytes of a tmp tile that always suffices, 0 if none is requested."""
        return shape.rows * shape.src_stride * _WORD_BYTES if self.request.scratch else 0

    def _tile(self, lowerer: Lowerer, name: str, fmt: Format, stride: int, shape: CastShape, at: int) -> Tile:
        kind = TileType("vec", fmt.name, shape.rows, stride, shape.valid_rows, shape.valid_cols)
        tile = Tile(name, fmt, kind, at, shape.valid_rows, shape.valid_cols, lowerer.element_bits(fmt))
        lowerer.check_tile(tile, HERE)
        return tile

    def _scratch(self, shape: CastShape, behind: int) -> Tile:
        """Return an int32 tile of the source's shape, limited to the rest of the buffer."""
        words = shape.rows * shape.src_stride
        at: int = up(behind, self.region)
        if at + words * _WORD_BYTES > self.capacity:
            at = up(behind, self.alignment)
        words = max(0, min(words, (self.capacity - at) // _WORD_BYTES))
        words -= words % (self.line // 8 // _WORD_BYTES)
        return Tile("tmp", format_named("i32"), TileType("vec", "i32", 1, words, 1, words), at, 1, words, 32)


class EstimateBasis(Protocol):
    """Subject of an estimate, from which its evidence is derived later."""

    def trust(self, cycles: int) -> Trust:
        """Return the evidence for its cycles."""
        ...

    def sensitivities(self, cycles: int) -> tuple[Sensitivity, ...]:
        """Return the weight of numbers in doubtful facts."""
        ...

    def placement(self) -> str:
        """Return the placement of its tiles in the buffer."""
        ...


@dataclass(frozen=True, slots=True, repr=False)
class Estimate(PlotMixin[Literal["causes"]]):
    """The `cycles` of an operation alone, counted by the published convention of its mechanism.

    For strided instructions, they run from the first control write until the vector pipe is empty; for vector functions
    from its launch until it has drained, without earlier work of the scalar unit. `causes` are those of the pipe that
    computes in these cycles and add up to them; `bound_by` is the largest.

    `trust` is the evidence for the cycles and the range of measured ones, `sensitivities` the main doubtful facts.

    `plot` draws the causes as parts of a bar. The frame `causes` has a row per cause: its `cycles`, and their `share`
    of all.
    """

    cycles: int
    bound_by: Cause
    causes: Mapping[Cause, int]
    asked: EstimateBasis | None = field(default=None, repr=False, compare=False)
    """The cast that was estimated; None if it is not from tile to tile."""
    facts: frozenset[str] = field(default=frozenset(), repr=False, compare=False)
    """Paths of the timing facts behind the cycles, if these were simulated; a closed form does not collect them."""
    placed: str = field(default="", repr=False, compare=False)
    """The placement of an operation other than a cast."""

    @property
    def placement(self) -> str:
        """Placement of its tiles in the buffer: apart, partly apart, consecutive or in place; '' if it has no tiles.

        Tiles that lie apart share no bank with others of the operation.
        """
        return self.placed if self.asked is None else self.asked.placement()

    @property
    def trust(self) -> Trust:
        """The evidence behind the cycles, and an interval if there are measurements."""
        return Trust(self.cycles, (), None) if self.asked is None else self.asked.trust(self.cycles)

    @property
    def sensitivities(self) -> tuple[Sensitivity, ...]:
        """The weight of numbers in doubtful facts, largest first: the cast is estimated again for each."""
        return () if self.asked is None else self.asked.sensitivities(self.cycles)

    def __repr__(self) -> str:
        return f"<Estimate {self.cycles:,} cycles, bound by {self.bound_by}>"


@dataclass(frozen=True, slots=True, repr=False)
class Estimates(PlotMixin[Literal["shapes"]]):
    """Estimates of many shapes: `cycles` and every array of `causes` are int64, `bound_by` holds `Cause`s.

    All have the shape to which the arguments broadcast. A cause that no shape has is missing. For a refused shape
    `reasons` says why (otherwise None), `bound_by` is None and its causes are 0; `cycles` are then float64, NaN where
    refused. `extents` are the extents and strides that were given, by the names of the arguments, in the same shape.

    `plot` draws cycles over the argument that varies along the last index, a curve for each value of the others. The
    frame `shapes` has
    a row per shape, in C order: its number `shape`, `cycles`, `bound_by`, the cycles of each cause, the `reason` of a
    refusal.
    """

    cycles: NDArray[np.int64] | NDArray[np.float64]
    bound_by: NDArray[np.object_]
    causes: Mapping[Cause, NDArray[np.int64]]
    reasons: NDArray[np.object_]
    extents: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)

    def __repr__(self) -> str:
        taken = self.cycles[~self.reasons.astype(bool)]
        least, most = (f"{int(extreme):,}" for extreme in (taken.min(), taken.max())) if taken.size else ("", "")
        cycles = f": {least} to {most} cycles" if taken.size else ""
        refused = f", {self.cycles.size - taken.size:,} rejected" if taken.size < self.cycles.size else ""
        return f"<Estimates {self.cycles.size:,} shapes{cycles}{refused}>"


def timed_alone(chip: Target, lowered: LoweredInstruction, text: str, placement: str = "") -> Estimate:
    """Simulate one lowered instruction of the vector pipe and nothing else.

    Args:
        chip: the target.
        lowered: the instruction.
        text: its name in messages.
        placement: placement of its tiles in the buffer.
    """
    body = Lowered(0, lowered.body, lowered.accesses)
    tree = Tree(Block((body,)), (Instruction(text, "V", HERE),), interlocked=False)
    return replace(of_timing(simulate(tree, chip, record_operations=False)), placed=placement)


def of_timing(timing: Timing) -> Estimate:
    """Return the estimate of the single simulated instruction."""
    execution = timing.executions[0]
    remaining = []
    for name, pipe in timing.pipes.items():
        # Before it starts, as its convention has it, the scalar unit works for it and no other pipe has anything to do.
        spent = Cause.BUSY if name == bare(Pipe.S) else Cause.EMPTY
        left = {cause: cycles - execution.start * (cause is spent) for cause, cycles in pipe.causes.items()}
        remaining.append({cause: cycles for cause, cycles in left.items() if cycles})
    # The pipe that converts is occupied longest; a pipe may be so without being busy, at a barrier or a branch.
    causes = min(remaining, key=lambda causes: causes.get(Cause.EMPTY, 0))
    return Estimate(execution.end - execution.start, bound_by(causes), causes, facts=timing.facts)


def bound_by(causes: Mapping[Cause, int]) -> Cause:
    """Return the cause of most cycles, the first in the order of `Cause` if equal."""
    most = max(causes.values(), default=0)
    return next((cause for cause in Cause if most and causes.get(cause) == most), Cause.EMPTY)
