"""Estimates of casts from tile to tile: by a closed form if one applies, otherwise by simulation."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, overload

import numpy as np

from castsim.engines import simulate
from castsim.execution.pipe_operations import BLOCK, FlagSignal, FlagWait, Transfer
from castsim.execution.timing import Cause
from castsim.execution.tree import (
    Access,
    Block,
    GlobalSpace,
    Instruction,
    Lowered,
    Node,
    Part,
    Tile,
    TileTransfer,
    Tree,
    loop_of,
)
from castsim.isa.errors import CastsimError, ReadError, ScratchError, Span, TileError, arguments_checked
from castsim.isa.formats import Saturation, format_named
from castsim.isa.pto.program import TileType
from castsim.isa.value_expressions import format_spelled
from castsim.machines.mechanisms import CastAsked, lowerer_of
from castsim.machines.registry import MachinePart
from castsim.numerics.codec import FormatLike, format_name
from castsim.reports.cycle_evidence import BUNDLES, OperationKindWork, Sensitivity, Trust, sensitivities, trust_of_works
from castsim.targets.description import with_cores, with_options
from castsim.targets.loader import CAST, Target, TileTarget, load_target
from castsim.tools.estimate.cast_estimates import (
    HERE,
    SCALAR,
    CastCycles,
    CastShape,
    Estimate,
    EstimateBasis,
    Estimates,
    Number,
    NumberFunctions,
    OperandPlacement,
    TileCastRequest,
    of_arrays,
    timed_alone,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Integers = NDArray[np.int64]
    Extents = ArrayLike


# Estimates of many shapes: arguments made columns, columns worked on in chunks, results put together.

_CHUNK = 1 << 14
"""Number of shapes of an array that are processed together: their columns stay in the processor's cache."""

PLACE = {cause: place for place, cause in enumerate(Cause)}
"""The row of every cause."""

_NAMES = ("rows", "cols", "row_stride", "dst_row_stride", "valid_rows", "valid_cols")


class ArrayEstimator(ABC):
    """Estimator of one request on one target."""

    @abstractmethod
    def one(self, *extents: int | None, asked: EstimateBasis | None = None) -> Estimate:
        """Return the estimate of one shape, which records `asked`; the order of its extents is that of `estimate`."""

    @abstractmethod
    def simulate(self, *extents: int | None) -> Estimate:
        """Return the same as `one`, simulated by the engine even if there is a closed form."""

    @abstractmethod
    def fill(
        self, start: int, shape: CastShape, cycles: Integers, causes: Integers, arithmetic: NumberFunctions
    ) -> None:
        """Estimate a chunk of shapes, the first being number `start`, into the columns of `cycles` and `causes`.

        `causes` has a row for every `Cause`, in that order, and contains zeros.
        """

    def placement(self, *_extents: int | None) -> str:
        """Return the placement of the tiles of one shape in the buffer, '' if there are none."""
        return ""

    def many(self, *extents: Any) -> Estimates:
        """Return the estimates of the shapes to which the arguments broadcast."""
        given = [_integers(name, value) for name, value in zip(_NAMES, extents, strict=True)]
        try:
            arrays = np.broadcast_arrays(*(value for value in given if value is not None))
        except ValueError:
            shapes = ", ".join(str(value.shape) for value in given if value is not None)
            raise ReadError(f"extents of shapes {shapes} do not broadcast to one shape") from None
        columns, extent = iter(value.reshape(-1) for value in arrays), arrays[0].shape
        flat = [None if value is None else next(columns) for value in given]
        size, arithmetic = arrays[0].size, of_arrays()
        cycles = np.zeros(size, np.int64)
        causes = np.zeros((len(Cause), size), np.int64)
        reasons = np.full(size, None, object)

        def estimated(start: int, stop: int) -> None:
            """Estimate shapes together; if one is refused, estimate each half separately, down to that shape."""
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
            dict(
                zip((name for name, value in zip(_NAMES, given, strict=True) if value is not None), arrays, strict=True)
            ),
        )


def shape_of(
    rows: Number,
    cols: Number,
    row_stride: Number | None,
    dst_row_stride: Number | None,
    valid_rows: Number | None,
    valid_cols: Number | None,
) -> CastShape:
    """Return a shape, with None replaced by the tile's extents."""
    return CastShape(
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
        ReadError: the argument is not an integer or an array of integers.
    """
    if value is None:
        return None
    integers = np.asarray(value)
    if integers.dtype.kind not in "iu":
        raise ReadError(f"{name}: must be integers, not {integers.dtype}")
    return integers.astype(np.int64, copy=False)


# Estimates of casts: a pair of formats on a target is resolved once, for any shape, single or in arrays.

_RESOLVED = 256
"""Maximum number of resolved requests in the cache."""

ESTIMATORS: MachinePart[Callable[[Target, CastAsked], ArrayEstimator]] = MachinePart(
    "estimates",
    {
        "strided-repeat": "castsim.tools.estimate.strided:estimator",
        "vector-function": "castsim.tools.estimate.function_estimate:estimator",
        "vliw": "castsim.tools.estimate.vliw_estimate:KernelEstimator",
    },
)
"""Function that builds the estimator of one request, by mechanism."""


def estimator_of(
    target: str | Path | Target, src: str, dst: str, rounding: str | None, saturation: str | None, scratch: bool
) -> ArrayEstimator:
    """Return the estimator of one request, cached for shipped targets and for the same target object.

    Raises:
        ReadError: the target, format, mode or saturation is unknown. IllegalError: see `castsim.isa.errors`.
    """
    if isinstance(target, str | Path) and str(target).endswith(".toml"):
        return _resolve(load_target(target), src, dst, rounding, saturation, scratch)
    key = str(target) if isinstance(target, str | Path) else _Identity(target)
    return _kept(key, src, dst, rounding, saturation, scratch)


class _Identity:
    """A target as a cache key: equal only to itself."""

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
            raise ReadError(f"unknown saturation '{saturation}'", legal=[str(choice) for choice in Saturation])
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
    options: Mapping[str, int | str] | None = None,
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
    options: Mapping[str, int | str] | None = None,
) -> Estimates:
    """Return the cycles of many shapes."""


@arguments_checked
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
    options: Mapping[str, int | str] | None = None,
) -> Estimate | Estimates:
    """Return the cycles and the limit of one cast of a `rows` x `cols` tile; of many, given arrays.

    The result is that of simulating the lowered cast. Tiles lie in banks that they share with no other if the
    buffer is large enough (see `cast_estimates`); a closed form then gives the result at once, and other shapes
    are simulated and cached.

    Args:
        src, dst: format names, or dtypes as for `castsim.cast`.
        rows, cols: extents of both tiles, in elements. These and the four below may be arrays, which broadcast.
        target: a chip. If casts are instructions on registers, see `castsim.tools.estimate.vliw_estimate`.
        row_stride, dst_row_stride: elements from row to row of source and destination, if not `cols`.
        valid_rows, valid_cols: valid region, if not the whole tile.
        rounding: a mode of the chip, or none; None takes the default.
        saturation: on, off or None.
        scratch: whether a tmp tile is given; it then has the size of an int32 tile of the source's shape, which
            always suffices (docs/reference/a2a3.md section 3.5), or of the rest of the buffer.
        options: values of the target's options, by name; the others keep their defaults.

    Returns:
        Cycles, and the causes that they add up to; an `Estimates` of arrays if an extent or stride is an array.

    Raises:
        ReadError, IllegalError, TileError, ScratchError: see `castsim.isa.errors`. Given arrays, an invalid shape
            raises nothing: its cycles are NaN, and `reasons` says why.
    """
    names = format_spelled(format_name(src)).name, format_spelled(format_name(dst)).name
    if options:
        target = _with_options(target, tuple(sorted(options.items())))
    estimator = estimator_of(target, *names, rounding, saturation, scratch)
    extents = (rows, cols, row_stride, dst_row_stride, valid_rows, valid_cols)
    if any(extent is None for extent in extents[:2]):
        raise ReadError("rows and cols must be integers or arrays of integers, not None")
    if any(hasattr(extent, "__len__") for extent in extents):
        return estimator.many(*extents)
    places = tuple(map(_as_integer, extents))
    return estimator.one(*places, asked=EstimatedCast(target, *names, rounding, saturation, scratch, places))


@lru_cache(_RESOLVED)
def _target_with_options(name: str, options: tuple[tuple[str, int | str], ...]) -> Target:
    return with_options(load_target(name), dict(options))


def _with_options(target: str | Path | Target, options: tuple[tuple[str, int | str], ...]) -> Target:
    """Return the target with options set: the same object for a shipped one, so its estimators stay cached."""
    if isinstance(target, str) and not target.endswith(".toml"):
        return _target_with_options(target, options)
    return with_options(load_target(target), dict(options))


class EstimatedCast(NamedTuple):
    """A cast that was estimated, from which its evidence is derived later."""

    target: str | Path | Target
    src: str
    dst: str
    rounding: str | None
    saturation: str | None
    scratch: bool
    extents: tuple[int | None, ...]

    def trust(self, cycles: int) -> Trust:
        """Return the evidence for its cycles."""
        chip, name = self._chip(), f"tcvt {self.src} -> {self.dst}"
        work = (
            OperationKindWork(CAST, name, "tcvt", self.src, self.dst)
            if chip.has_tiles
            else OperationKindWork(BUNDLES, BUNDLES)
        )
        return trust_of_works(chip, {work: cycles}, cycles, self._facts())

    def sensitivities(self, cycles: int) -> tuple[Sensitivity, ...]:
        """Return the weight of numbers in the target's doubtful timing facts."""
        chip = self._chip()

        def again(change: Callable[[Target], Target]) -> int:
            estimator = _resolve(change(chip), self.src, self.dst, self.rounding, self.saturation, self.scratch)
            return estimator.one(*self.extents).cycles

        return sensitivities(chip, self._facts(), cycles, again)

    def placement(self) -> str:
        """Return the placement of its tiles in the buffer, '' if its cast has none."""
        estimator = estimator_of(self.target, self.src, self.dst, self.rounding, self.saturation, self.scratch)
        return estimator.placement(*self.extents)

    def _facts(self) -> frozenset[str]:
        """Return the timing facts behind the cast, which a simulation collects."""
        estimator = estimator_of(self.target, self.src, self.dst, self.rounding, self.saturation, self.scratch)
        return estimator.simulate(*self.extents).facts

    def _chip(self) -> Target:
        return load_target(self.target)


def _as_integer(value: Any) -> int | None:
    if value is None or type(value) is int:
        return value
    try:
        return operator.index(value)
    except TypeError:
        raise ReadError(f"an extent must be an integer or an array of integers, not {value!r}") from None


_SIMULATED = 1 << 16
"""Maximum number of simulated shapes that one estimator caches."""


class ClosedForm(Protocol):
    """The closed form of one request on one target."""

    @property
    def uses_scratch(self) -> bool:
        """Whether the cast needs its tmp tile."""
        ...

    @property
    def needs_apart(self) -> bool:
        """Whether the closed form applies only to operands in different banks."""
        ...

    @property
    def even_columns(self) -> bool:
        """Whether odd numbers of columns are refused."""
        ...

    def reach(self, shape: CastShape) -> Number:
        """Return how many bytes from the start of the destination are written outside its rows, or 0."""
        ...

    def account(self, shape: CastShape, arithmetic: NumberFunctions) -> CastCycles:
        """Return the cycles of a shape."""
        ...


class TileEstimator(ArrayEstimator):
    """Estimator of casts from tile to tile: a closed form if one applies, otherwise cached simulations."""

    def __init__(self, target: TileTarget, request: TileCastRequest, form: ClosedForm | None) -> None:
        self._target = target
        self._request = request
        self._lowerer = lowerer_of(target)
        self._placement = OperandPlacement.of(target, self._lowerer, request)
        self._form = form
        self.simulated: Callable[[CastShape], Estimate] = lru_cache(_SIMULATED)(self._simulate)
        """Simulates one shape."""

    def one(self, *extents: int | None, asked: EstimateBasis | None = None) -> Estimate:
        """Return the estimate of one shape."""
        shape = shape_of(*extents)
        if self._form is None or not self.is_closed(shape, SCALAR):
            simulated = self.simulated(shape)
            return Estimate(simulated.cycles, simulated.bound_by, simulated.causes, asked)
        return _estimate(self._form.account(shape, SCALAR), asked)

    def simulate(self, *extents: int | None) -> Estimate:
        """Return the same by simulating the lowered cast."""
        return self.simulated(shape_of(*extents))

    def placement(self, *extents: int | None) -> str:
        """Return the placement of the tiles of one shape in the buffer."""
        return self._placement.name(shape_of(*extents))

    def is_closed(self, shape: CastShape, arithmetic: NumberFunctions) -> Number:
        """Return whether the closed form gives the cycles of a shape."""
        form, placement = self._form, self._placement
        if form is None:
            return shape.rows != shape.rows  # nowhere
        closed = placement.fits(shape, form.reach(shape), arithmetic)
        if form.even_columns:
            closed = closed & (shape.valid_cols % 2 == 0)
        if form.needs_apart:
            closed = closed & placement.apart(shape, arithmetic, scratch=form.uses_scratch)
        if form.uses_scratch:
            closed = closed & placement.holds_scratch(shape, arithmetic)
        elif self._request.scratch:
            closed = closed & placement.leaves_scratch(shape, arithmetic)
        return closed & (shape.rows > 0) & (shape.cols > 0)  # a tile without elements is refused where it is simulated

    def _simulate(self, shape: CastShape) -> Estimate:
        cast = self._placement.cast(self._lowerer, shape)
        text = f"tcvt {self._request.src.name} -> {self._request.dst.name}"
        return timed_alone(self._target, lowerer_of(self._target).cast(cast), text)

    def fill(
        self, start: int, shape: CastShape, cycles: Integers, causes: Integers, arithmetic: NumberFunctions
    ) -> None:
        """Estimate a chunk of shapes, the first being number `start`, into the columns of `cycles` and `causes`."""
        closed = self.is_closed(shape, arithmetic)
        if self._form is not None and closed.any():
            # Shapes that are not closed yield numbers that are not read.
            account = self._form.account(shape, arithmetic)
            np.copyto(cycles, account.cycles)
            for cause, row in _split(account, arithmetic).items():
                causes[PLACE[cause]] = row
        for index in np.flatnonzero(~closed).tolist():
            try:
                simulated = self.simulated(CastShape(*(int(column[index]) for column in shape)))
            except CastsimError as error:
                error.span = Span(f"<estimate of shape {start + index}>", 1, 1)
                raise
            cycles[index] = simulated.cycles
            causes[:, index] = [simulated.causes.get(cause, 0) for cause in Cause]


def _estimate(account: CastCycles, asked: EstimateBasis | None) -> Estimate:
    """Return the estimate of one shape, for the pipe that is occupied longer: the scalar or the converting one."""
    causes = {cause: cycles for cause, cycles in account.converting if cycles}
    occupied = sum(causes.values())
    if account.scalar >= occupied:
        occupied = account.scalar
        causes = {Cause.BUSY: occupied} if occupied else {}
    if occupied < account.cycles:
        causes[Cause.EMPTY] = account.cycles - occupied
    # They are in the order of `Cause`, and of equals max takes the first: as `bound_by`, without looking them up.
    return Estimate(account.cycles, max(causes, key=causes.__getitem__, default=Cause.EMPTY), causes, asked)


def _split(account: CastCycles, arithmetic: NumberFunctions) -> dict[Cause, Number]:
    """Return the same of many shapes: their cycles by cause."""
    choose, scalar = arithmetic.choose, account.scalar
    converting = dict(account.converting)
    occupied = sum(converting.values())
    by_scalar = scalar >= occupied
    causes = {cause: choose(by_scalar, 0, cycles) for cause, cycles in converting.items()}
    causes[Cause.BUSY] = choose(by_scalar, scalar, converting.get(Cause.BUSY, 0))
    causes[Cause.EMPTY] = account.cycles - choose(by_scalar, scalar, occupied)
    return causes


# Estimating the cycles of one tile load or store without writing a program.


def estimate_load(
    element: str,
    rows: int,
    cols: int,
    *,
    target: str | Path | Target,
    transfers: int = 1,
    by_column: bool = False,
    cores: int | None = None,
    store: bool = False,
) -> Estimate:
    """Simulate the load of `rows` x `cols` elements that are adjacent in global memory and return its cycles.

    Args:
        element: name of the element format.
        rows, cols: extents of the loaded elements; lines of the tile are padded to whole blocks.
        target: a chip.
        transfers: leading extent of the view, and so the number of transfer instructions; each takes an equal share.
        cores: number of cores that load at once; None: one, or the number in the target's description.
        store: whether they are stored instead.
        by_column: whether view and tile are column-major (`dn`) and the transfers share the columns.

    Raises:
        TileError: the lines cannot be shared equally; see also `castsim.isa.errors`.
    """
    chip = load_target(target)
    if cores is not None:
        chip = with_cores(chip, cores)
    lines, length = (cols, rows) if by_column else (rows, cols)
    if lines % transfers:
        raise TileError(f"{lines} lines cannot be shared by {transfers} transfers")
    lowerer, fmt, line_elements = lowerer_of(chip), format_named(element), lines // transfers
    bits = lowerer.element_bits(fmt)
    per_block = max(1, chip.memories["ub"].alignment_bytes * 8 // bits)
    padded = -(-length // per_block) * per_block
    if by_column:
        # A tile counts every part of a view as further rows of the same columns.
        padded_rows = -(-transfers * length // per_block) * per_block
        kind = TileType(
            "vec", fmt.name, padded_rows, line_elements, transfers * length, line_elements, block_layout="col_major"
        )
        sizes, strides = (1, 1, transfers, length, line_elements), (0, 0, line_elements * length, 1, length)
    else:
        kind = TileType("vec", fmt.name, lines, padded, lines, length)
        sizes, strides = (1, 1, transfers, line_elements, length), (0, 0, line_elements * length, length, 1)
    tile = Tile("dst", fmt, kind, 0, kind.valid_rows or 0, kind.valid_cols or 0, bits)
    lowerer.check_tile(tile, HERE)
    part = Part("src", fmt, 0, sizes, strides, "dn" if by_column else "nd")
    moved = lowerer.transfer(TileTransfer(tile, part, load=not store, span=HERE))
    return timed_alone(chip, moved, f"{'tstore' if store else 'tload'} {element}")


# Launches on many cores that stream tiles through their buffers.

_BUFFERS, _LEAD = 4, 2
"""Buffers of a core, and the number of tiles by which loads run ahead of stores."""


def stream_cycles(chip: TileTarget, tiles: int, loaded: int, stored: int) -> int:
    """Return the cycles of a launch, back to back with others, each of whose cores loads and stores a number of tiles.

    Every tile takes `loaded` and `stored` bytes; the vector unit's work is left out. A launch takes at least
    the chip's launch interval.
    """
    bytes_apart = -(-max(loaded, stored) // BLOCK) * BLOCK

    def step(pipe: str, tile: int) -> Lowered:
        load = pipe == chip.pipes.load
        other, size, name = (chip.pipes.store, loaded, "x") if load else (chip.pipes.load, stored, "y")
        buffer = tile % _BUFFERS
        moved = Transfer(pipe, load, name, tile * size, size, buffer * bytes_apart, size, 1, size)
        body = (FlagWait(pipe, other, buffer), moved, FlagSignal(pipe, other, buffer))
        space = GlobalSpace.of(name)
        return Lowered(0, Block(body), (Access(space, tile * size, (tile + 1) * size, write=not load),))

    def trip(tile: int) -> Iterator[Lowered]:
        if tile + _LEAD < tiles:
            yield step(chip.pipes.load, tile + _LEAD)
        yield step(chip.pipes.store, tile)

    def turn(number: int) -> Block:
        return Block(tuple(item for k in range(_BUFFERS) for item in trip(number * _BUFFERS + k)))

    turns = max(0, tiles - _LEAD) // _BUFFERS
    free = (FlagSignal(chip.pipes.store, chip.pipes.load, buffer) for buffer in range(_BUFFERS))
    items: list[Node] = [Lowered(0, Block(tuple(free)))]
    items += [step(chip.pipes.load, tile) for tile in range(min(_LEAD, tiles))]
    items += loop_of(turns, turn)
    items += [item for tile in range(turns * _BUFFERS, tiles) for item in trip(tile)]
    tree = Tree(Block(tuple(items)), (Instruction("launch", chip.pipes.load, HERE),), interlocked=False)
    cycles = simulate(tree, chip, record_operations=False).total
    launch, interval = chip.kernel_launch, chip.launch_interval
    whole = cycles + (0 if launch is None else int(launch.cycles))
    return max(whole, 0 if interval is None else round(interval.microseconds * chip.frequency.megahertz))
