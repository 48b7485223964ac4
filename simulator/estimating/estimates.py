"""What an estimate says, and that of one instruction by simulating it alone."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, overload

import numpy as np

from castsim.engines import simulate
from castsim.estimating.trust import (
    BUNDLES,
    Sensitivity,
    Trust,
    Work,
    sensitivities,
    trust_of_works,
)
from castsim.execution.interpreter import Lowerer
from castsim.execution.interpreter.lowerer import LoweredInstruction
from castsim.execution.interpreter.structure import bare
from castsim.execution.notebook_display import PlotMixin
from castsim.execution.tiles import Tile, TileCast
from castsim.execution.tree import Block, Instruction, Lowered, Tree
from castsim.isa.errors import ReadError, ScratchError, Span, TileError
from castsim.isa.formats import Format, format_named
from castsim.isa.modes import Saturation
from castsim.isa.pto.program import Pipe, RoundMode, TileType
from castsim.isa.spellings import format_spelled
from castsim.machines.registry import Parts
from castsim.machines.target_cast import CastAsked
from castsim.machines.tile_modes import round_mode
from castsim.numerics import FormatLike, format_name
from castsim.targets import Target, load_target
from castsim.targets.dataflow import DataflowTarget
from castsim.targets.residuals import CAST
from castsim.timing import Cause, Timing

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Integers = NDArray[np.int64]
    Extents = ArrayLike


# One source for formulas on single integers and on arrays of them.

Number = Any
"""An int, or an array of int64; conditions are bools, or arrays of them."""


@dataclass(frozen=True, slots=True)
class NumberFunctions:
    """Functions that Python and NumPy spell differently.

    The larger and the smaller of two, a choice by a condition, an entry of a table by its place.
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


class Shape(NamedTuple):
    """The shape on which the cycles of a cast depend: extents in elements, strides from row to row of both tiles.

    Every field is an int, or an array of int64; all arrays have one length.
    """

    rows: Number
    src_stride: Number
    dst_stride: Number
    valid_rows: Number
    valid_cols: Number
    cols: Number


class CastCycles(NamedTuple):
    """Cycles of a cast alone, those of the pipe that converts by cause, busy ones of the scalar unit.

    `converting` is in the order of `Cause`, without the empty cycles. All three count the cycles of the cast and none
    that its convention leaves out.
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
"""Bytes of an element of the tmp tile, int32."""


@dataclass(frozen=True, slots=True)
class TileCastRequest:
    """The cast that is asked for, whatever the shape."""

    src: Format
    dst: Format
    rounding: RoundMode | None
    saturation: Saturation | None
    scratch: bool

    @classmethod
    def of(cls, asked: CastAsked) -> TileCastRequest:
        """Return the request that is made in words.

        Raises:
            ReadError: unknown rounding mode.
        """
        mode = None if asked.rounding is None else round_mode(asked.rounding)
        return cls(asked.src, asked.dst, mode, asked.saturation, asked.scratch)


@dataclass(frozen=True, slots=True)
class OperandPlacement:
    """Places operands for one pair of formats.

    `region` is the distance after which other banks begin, `capacity` what tiles may take, `limit` what the buffer has;
    all in bytes.
    """

    request: TileCastRequest
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
            bits=(lowerer.element_bits(request.src), lowerer.element_bits(request.dst)),
            region=target.group_bytes,
            alignment=target.estimated_alignment,
            capacity=capacity,
            limit=target.memories["ub"].capacity_bytes,
            line=8 * target.block_bytes,
        )

    def cast(self, lowerer: Lowerer, shape: Shape) -> TileCast:
        """Return the cast of one shape.

        Raises:
            TileError: an extent is negative; see `castsim.execution.dataflow.transfers.check_tile`.
        """
        for name in ("rows", "cols", "src_stride", "dst_stride", "valid_rows", "valid_cols"):
            if getattr(shape, name) < 0:
                raise TileError(f"{name} {getattr(shape, name)} is negative")
        if shape.valid_cols > shape.cols:
            raise TileError(f"{shape.valid_cols} valid columns: the tile has {shape.cols}")
        request = self.request
        source = self._tile(lowerer, "src", request.src, shape.src_stride, shape, 0)
        at = self._second(shape, SCALAR)
        destination = self._tile(lowerer, "dst", request.dst, shape.dst_stride, shape, at)
        tmp = self._scratch(shape, destination.end) if request.scratch else None
        return TileCast(source, destination, tmp, request.rounding, request.saturation, HERE)

    def fits(self, shape: Shape, reach: Number, arithmetic: NumberFunctions) -> Number:
        """Whether no tile of a shape would be refused, the destination being written as far as `reach` bytes."""
        rows, src, dst = shape.rows, shape.src_stride * self.bits[0], shape.dst_stride * self.bits[1]
        good = (rows >= 0) & (shape.valid_rows >= 0) & (shape.valid_cols >= 0) & (src >= 0) & (dst >= 0)
        good &= (shape.valid_rows <= rows) & (shape.valid_cols <= shape.cols)
        good &= (shape.valid_cols <= shape.src_stride) & (shape.valid_cols <= shape.dst_stride)
        good &= (src % self.line == 0) & (dst % self.line == 0)
        good &= up(rows * (src // 8), self.alignment) + rows * (dst // 8) <= self.limit
        good &= self._second(shape, arithmetic) + reach <= self.limit
        return good

    def apart(self, shape: Shape, arithmetic: NumberFunctions, *, scratch: bool) -> Number:
        """Whether all operands of a shape that `fits` lie in different banks; with `scratch` the tmp tile as well."""
        dst = shape.rows * (shape.dst_stride * self.bits[1] // 8)
        at = self._second(shape, arithmetic)
        apart = at % self.region == 0
        if scratch:
            behind = up(at + dst, self.region)
            apart &= behind + self._reserve(shape) <= self.capacity
        return apart

    def holds_scratch(self, shape: Shape, arithmetic: NumberFunctions) -> Number:
        """Whether a tmp tile that always suffices is left room for behind the tiles of a shape that `fits`."""
        return self._behind(shape, arithmetic) + self._reserve(shape) <= self.capacity

    def leaves_scratch(self, shape: Shape, arithmetic: NumberFunctions) -> Number:
        """Whether any bytes are left for a tmp tile; one without any is refused where it is simulated."""
        return self._behind(shape, arithmetic) + self.alignment <= self.capacity

    def _behind(self, shape: Shape, arithmetic: NumberFunctions) -> Number:
        dst = shape.rows * (shape.dst_stride * self.bits[1] // 8)
        return up(self._second(shape, arithmetic) + dst, self.alignment)

    def _second(self, shape: Shape, arithmetic: NumberFunctions) -> Number:
        """Return where the destination lies."""
        src = shape.rows * (shape.src_stride * self.bits[0] // 8)
        at = up(src, self.region)
        needed = up(shape.rows * (shape.dst_stride * self.bits[1] // 8), self.alignment) + self._reserve(shape)
        return arithmetic.choose(at + needed <= self.capacity, at, up(src, self.alignment))

    def _reserve(self, shape: Shape) -> Number:
        """Return the bytes of a tmp tile that always suffices, 0 if none is wanted."""
        return shape.rows * shape.src_stride * _WORD_BYTES if self.request.scratch else 0

    def _tile(self, lowerer: Lowerer, name: str, fmt: Format, stride: int, shape: Shape, at: int) -> Tile:
        kind = TileType("vec", fmt.name, shape.rows, stride, shape.valid_rows, shape.valid_cols)
        tile = Tile(name, fmt, kind, at, shape.valid_rows, shape.valid_cols, lowerer.element_bits(fmt))
        lowerer.check_tile(tile, HERE)
        return tile

    def _scratch(self, shape: Shape, behind: int) -> Tile:
        """Return an int32 tile of the source's shape, cut to what is left of the buffer."""
        words = shape.rows * shape.src_stride
        at: int = up(behind, self.region)
        if at + words * _WORD_BYTES > self.capacity:
            at = up(behind, self.alignment)
        words = max(0, min(words, (self.capacity - at) // _WORD_BYTES))
        words -= words % (self.line // 8 // _WORD_BYTES)
        return Tile("tmp", format_named("i32"), TileType("vec", "i32", 1, words, 1, words), at, 1, words, 32)


class Asked(Protocol):
    """What was estimated, to say later what its cycles rest on."""

    def trust(self, cycles: int) -> Trust:
        """Return what its cycles rest on."""
        ...

    def sensitivities(self, cycles: int) -> tuple[Sensitivity, ...]:
        """Return how much numbers of doubtful facts weigh."""
        ...


@dataclass(frozen=True, slots=True, repr=False)
class Estimate(PlotMixin[Literal["causes"]]):
    """The `cycles` of an operation alone, as the published convention of its mechanism counts them.

    For strided instructions: from the first control write until the vector pipe is empty; for a vector function: from
    its launch until it has drained, without what the scalar unit does beforehand. `causes` are those of the pipe that
    computes in these cycles and add up to them; `bound_by` is the largest.

    `trust` says what the cycles rest on and where measured ones lie, `sensitivities` which doubtful facts weigh most.

    `plot` draws the causes as parts of a bar. The frame `causes` has a row per cause: its `cycles`, and their `share`
    of all.
    """

    cycles: int
    bound_by: Cause
    causes: Mapping[Cause, int]
    asked: Asked | None = field(default=None, repr=False, compare=False)
    """The cast that was estimated; None where it is none from tile to tile."""
    facts: frozenset[str] = field(default=frozenset(), repr=False, compare=False)
    """Paths of the timing facts behind the cycles, if these were simulated; a closed form does not gather them."""

    @property
    def trust(self) -> Trust:
        """What the cycles rest on, and an interval for measured ones."""
        return Trust(self.cycles, (), None) if self.asked is None else self.asked.trust(self.cycles)

    @property
    def sensitivities(self) -> tuple[Sensitivity, ...]:
        """How much numbers of doubtful facts weigh, most first: the cast is estimated anew for each."""
        return () if self.asked is None else self.asked.sensitivities(self.cycles)

    def __repr__(self) -> str:
        return f"<Estimate {self.cycles:,} cycles, bound by {self.bound_by}>"


@dataclass(frozen=True, slots=True, repr=False)
class Estimates(PlotMixin[Literal["shapes"]]):
    """Estimates of many shapes: `cycles` and every array of `causes` are int64, `bound_by` holds `Cause`s.

    All have the shape to which the arguments broadcast. A cause that no shape has is missing. Where a shape is refused
    `reasons` says why (elsewhere None), `bound_by` is None and its causes are 0; `cycles` are then float64, NaN where
    refused.

    `plot` draws cycles over the last index of the arrays, a curve for each value of the others. The frame `shapes` has
    a row per shape, in C order: its number `shape`, `cycles`, `bound_by`, the cycles of each cause, the `reason` of a
    refusal.
    """

    cycles: NDArray[np.int64] | NDArray[np.float64]
    bound_by: NDArray[np.object_]
    causes: Mapping[Cause, NDArray[np.int64]]
    reasons: NDArray[np.object_]

    def __repr__(self) -> str:
        taken = self.cycles[~self.reasons.astype(bool)]
        least, most = (f"{int(found):,}" for found in (taken.min(), taken.max())) if taken.size else ("", "")
        cycles = f": {least} to {most} cycles" if taken.size else ""
        refused = f", {self.cycles.size - taken.size:,} refused" if taken.size < self.cycles.size else ""
        return f"<Estimates {self.cycles.size:,} shapes{cycles}{refused}>"


def timed_alone(chip: Target, lowered: LoweredInstruction, text: str) -> Estimate:
    """Simulate one lowered instruction of the vector pipe and nothing else; `text` names it in messages."""
    body = Lowered(0, lowered.body, lowered.accesses)
    tree = Tree(Block((body,)), (Instruction(text, "V", HERE),), interlocked=False)
    timing = simulate(tree, chip, record_operations=False)
    return of_timing(timing)


def of_timing(timing: Timing) -> Estimate:
    """Return the estimate of the one instruction that was simulated."""
    execution = timing.executions[0]
    found = []
    for name, pipe in timing.pipes.items():
        # Before it starts, as its convention has it, the scalar unit works for it and no other pipe has anything to do.
        spent = Cause.BUSY if name == bare(Pipe.S) else Cause.EMPTY
        left = {cause: cycles - execution.start * (cause is spent) for cause, cycles in pipe.causes.items()}
        found.append({cause: cycles for cause, cycles in left.items() if cycles})
    # The pipe that converts is occupied longest; a pipe may be so without being busy, at a barrier or a branch.
    causes = min(found, key=lambda causes: causes.get(Cause.EMPTY, 0))
    return Estimate(execution.end - execution.start, bound_by(causes), causes, facts=timing.facts)


def bound_by(causes: Mapping[Cause, int]) -> Cause:
    """Return the cause of most cycles, of equals the first one in the order of `Cause`."""
    most = max(causes.values(), default=0)
    return next((cause for cause in Cause if most and causes.get(cause) == most), Cause.EMPTY)


# Estimates of many shapes: arguments made columns, columns worked on in chunks, results put together.

_CHUNK = 1 << 14
"""Shapes of an array that are worked on together: their columns stay in the processor's cache."""

PLACE = {cause: place for place, cause in enumerate(Cause)}
"""The row of every cause."""

_NAMES = ("rows", "cols", "row_stride", "dst_row_stride", "valid_rows", "valid_cols")


class ArrayEstimator(ABC):
    """Estimates of one request on one target."""

    @abstractmethod
    def one(self, *extents: int | None) -> Estimate:
        """Return the estimate of one shape; the order of its extents is that of `estimate`."""

    @abstractmethod
    def simulate(self, *extents: int | None) -> Estimate:
        """Return what `one` returns, simulated by the engine even where there is a closed form."""

    @abstractmethod
    def fill(self, start: int, shape: Shape, cycles: Integers, causes: Integers, arithmetic: NumberFunctions) -> None:
        """Estimate a chunk of shapes, the first being number `start`, into the columns of `cycles` and `causes`.

        `causes` has a row for every `Cause`, in that order, and holds zeroes.
        """

    def many(self, *extents: Any) -> Estimates:
        """Return the estimates of the shapes to which the arguments broadcast."""
        given = [_integers(name, value) for name, value in zip(_NAMES, extents, strict=True)]
        known = np.broadcast_arrays(*(value for value in given if value is not None))
        columns, extent = iter(value.reshape(-1) for value in known), known[0].shape
        flat = [None if value is None else next(columns) for value in given]
        size, arithmetic = known[0].size, of_arrays()
        cycles = np.zeros(size, np.int64)
        causes = np.zeros((len(Cause), size), np.int64)
        reasons = np.full(size, None, object)

        def estimated(start: int, stop: int) -> None:
            """Estimate shapes together; if one is refused, each half by itself, down to the shape that is."""
            part = slice(start, stop)
            shape = shape_of(*(None if value is None else value[part] for value in flat))
            try:
                self.fill(start, shape, cycles[part], causes[:, part], arithmetic)
            except (TileError, ScratchError) as error:
                cycles[part], causes[:, part] = 0, 0
                if stop - start == 1:
                    reasons[start] = error.message
                    return
                middle = (start + stop) // 2
                estimated(start, middle)
                estimated(middle, stop)

        for start in range(0, size, _CHUNK):
            estimated(start, min(size, start + _CHUNK))
        refused = reasons != None  # noqa: E711 - element by element
        bounds = np.array(list(Cause), object)[np.where(causes.any(0), causes.argmax(0), PLACE[Cause.EMPTY])]
        bounds[refused] = None
        return Estimates(
            (np.where(refused, np.nan, cycles) if refused.any() else cycles).reshape(extent),
            bounds.reshape(extent),
            {cause: row.reshape(extent) for cause, row in zip(Cause, causes, strict=True) if row.any()},
            reasons.reshape(extent),
        )


def shape_of(
    rows: Number,
    cols: Number,
    row_stride: Number | None,
    dst_row_stride: Number | None,
    valid_rows: Number | None,
    valid_cols: Number | None,
) -> Shape:
    """Return a shape, what is None taken from the tile's extents."""
    return Shape(
        rows=rows,
        src_stride=cols if row_stride is None else row_stride,
        dst_stride=cols if dst_row_stride is None else dst_row_stride,
        valid_rows=rows if valid_rows is None else valid_rows,
        valid_cols=cols if valid_cols is None else valid_cols,
        cols=cols,
    )


def _integers(name: str, value: Any) -> Integers | None:
    """Return an argument as int64.

    Raises:
        ReadError: it holds something else.
    """
    if value is None:
        return None
    found = np.asarray(value)
    if found.dtype.kind not in "iu":
        raise ReadError(f"{name}: integers are wanted, not {found.dtype}")
    return found.astype(np.int64, copy=False)


# Estimates of casts: a pair of formats on a target is resolved once, for any shape, single or in arrays.

_RESOLVED = 256
"""Requests that are kept resolved."""

ESTIMATORS: Parts[Callable[[Target, CastAsked], ArrayEstimator]] = Parts(
    "estimates",
    {
        "strided-repeat": "castsim.estimating.strided:estimator",
        "vector-function": "castsim.estimating.function:estimator",
        "vliw": "castsim.estimating.vliw:KernelEstimator",
    },
)
"""What makes the estimator of one request."""


def estimator_of(
    target: str | Path | Target, src: str, dst: str, rounding: str | None, saturation: str | None, scratch: bool
) -> ArrayEstimator:
    """Return the estimator of one request; those of shipped targets and of the same target object are kept.

    Raises:
        ReadError: unknown target, format, mode or saturation. IllegalError: see `castsim.isa.errors`.
    """
    if isinstance(target, str | Path) and str(target).endswith(".toml"):
        return _resolve(load_target(target), src, dst, rounding, saturation, scratch)
    key = str(target) if isinstance(target, str | Path) else _Identity(target)
    return _kept(key, src, dst, rounding, saturation, scratch)


class _Identity:
    """A target as the key of a cache: equal only to itself."""

    __slots__ = ("target",)

    def __init__(self, target: Target) -> None:
        self.target = target

    def __hash__(self) -> int:
        return id(self.target)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and other.target is self.target


@lru_cache(_RESOLVED)
def _kept(
    key: str | _Identity, src: str, dst: str, rounding: str | None, saturation: str | None, scratch: bool
) -> ArrayEstimator:
    target = load_target(key) if isinstance(key, str) else key.target
    return _resolve(target, src, dst, rounding, saturation, scratch)


def _resolve(
    target: Target, src: str, dst: str, rounding: str | None, saturation: str | None, scratch: bool
) -> ArrayEstimator:
    wanted = None
    if saturation is not None:
        if saturation not in tuple(Saturation):
            raise ReadError(f"unknown saturation '{saturation}'", legal=[str(each) for each in Saturation])
        wanted = Saturation(saturation)
    asked = CastAsked(format_named(src), format_named(dst), rounding, wanted, bool(scratch))
    return ESTIMATORS.of(target)(target, asked)


@overload
def estimate(
    src: FormatLike,
    dst: FormatLike,
    rows: int,
    cols: int,
    *,
    target: str | Path | Target,
    row_stride: int | None = None,
    dst_row_stride: int | None = None,
    valid_rows: int | None = None,
    valid_cols: int | None = None,
    rounding: str | None = None,
    saturation: str | None = None,
    scratch: bool = False,
) -> Estimate:
    """Return the cycles of one shape."""


@overload
def estimate(
    src: FormatLike,
    dst: FormatLike,
    rows: Extents,
    cols: Extents,
    *,
    target: str | Path | Target,
    row_stride: Extents | None = None,
    dst_row_stride: Extents | None = None,
    valid_rows: Extents | None = None,
    valid_cols: Extents | None = None,
    rounding: str | None = None,
    saturation: str | None = None,
    scratch: bool = False,
) -> Estimates:
    """Return the cycles of many shapes."""


def estimate(
    src: FormatLike,
    dst: FormatLike,
    rows: Any,
    cols: Any,
    *,
    target: str | Path | Target,
    row_stride: Any = None,
    dst_row_stride: Any = None,
    valid_rows: Any = None,
    valid_cols: Any = None,
    rounding: str | None = None,
    saturation: str | None = None,
    scratch: bool = False,
) -> Estimate | Estimates:
    """Return the cycles of one cast of a `rows` x `cols` tile and what bounds it; of many, given arrays.

    The result is that of simulating the lowered cast. Tiles lie in banks that they share with no other where the
    buffer is large enough (`castsim.estimating.estimates`); a closed form then gives the result at once, and shapes
    for which there is none are simulated and remembered.

    Args:
        src, dst: format names, or dtypes as `castsim.cast` takes them.
        rows, cols: extents of both tiles, in elements. These and the four below may be arrays, which broadcast.
        target: a chip. Where casts are instructions on registers: see `castsim.estimating.vliw`.
        row_stride, dst_row_stride: elements from row to row of source and destination, if not `cols`.
        valid_rows, valid_cols: valid region, if not the whole tile.
        rounding: a mode of the chip, or none; None takes the default.
        saturation: on, off or None.
        scratch: whether a tmp tile is given; it then has the size of an int32 tile of the source's shape, which
            always suffices (docs/reference/a2a3.md section 3.5), or what is left of the buffer.

    Returns:
        Cycles, and the causes that they add up to; an `Estimates` of arrays where an extent or stride is an array.

    Raises:
        ReadError, IllegalError, TileError, ScratchError: see `castsim.isa.errors`. Given arrays, a shape that does not
            fit raises nothing: its cycles are NaN, and `reasons` says why.
    """
    names = format_spelled(format_name(src)).name, format_spelled(format_name(dst)).name
    estimator = estimator_of(target, *names, rounding, saturation, scratch)
    extents = (rows, cols, row_stride, dst_row_stride, valid_rows, valid_cols)
    for each in extents:
        if hasattr(each, "__len__"):
            return estimator.many(*extents)
    places = tuple(map(_as_integer, extents))
    found = estimator.one(*places)
    asked = EstimatedCast(target, *names, rounding, saturation, scratch, places)
    return Estimate(found.cycles, found.bound_by, found.causes, asked)


class EstimatedCast(NamedTuple):
    """A cast that was estimated, to say later what its cycles rest on."""

    target: str | Path | Target
    src: str
    dst: str
    rounding: str | None
    saturation: str | None
    scratch: bool
    extents: tuple[int | None, ...]

    def trust(self, cycles: int) -> Trust:
        """Return what its cycles rest on."""
        chip, name = self._chip(), f"tcvt {self.src} -> {self.dst}"
        work = Work(CAST, name, "tcvt", self.src, self.dst) if chip.has_tiles else Work(BUNDLES, BUNDLES)
        return trust_of_works(chip, {work: cycles}, cycles, self._facts())

    def sensitivities(self, cycles: int) -> tuple[Sensitivity, ...]:
        """Return how much numbers of the target's doubtful timing facts weigh."""
        chip = self._chip()

        def again(change: Callable[[Target], Target]) -> int:
            estimator = _resolve(change(chip), self.src, self.dst, self.rounding, self.saturation, self.scratch)
            return estimator.one(*self.extents).cycles

        return sensitivities(chip, self._facts(), cycles, again)

    def _facts(self) -> frozenset[str]:
        """Return the timing facts that the cast rests on: a simulation gathers them."""
        estimator = estimator_of(self.target, self.src, self.dst, self.rounding, self.saturation, self.scratch)
        return estimator.simulate(*self.extents).facts

    def _chip(self) -> Target:
        return load_target(self.target) if isinstance(self.target, str | Path) else self.target


def _as_integer(value: Any) -> int | None:
    if value is None or type(value) is int:
        return value
    try:
        return operator.index(value)
    except TypeError:
        raise ReadError(f"an extent is an integer or an array of them, not {value!r}") from None
