"""Estimates of casts: a pair of formats on a target is resolved once, for any shape, single or in arrays."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, overload

import numpy as np

from castsim.estimating.arithmetic import SCALAR, Account, Arithmetic, Number, Shape
from castsim.estimating.arrays import PLACE, ArrayEstimator, shape_of
from castsim.estimating.estimates import Estimate, Estimates, timed_alone
from castsim.estimating.placement import Placement, Request
from castsim.isa.errors import CastsimError, ReadError, Span
from castsim.isa.formats import format_named
from castsim.isa.modes import Saturation
from castsim.isa.pto.program import RoundMode
from castsim.machines.mechanisms import lowerer_of
from castsim.machines.tile_modes import bare_mode
from castsim.numerics import FormatLike, format_name
from castsim.targets import Target, load_target
from castsim.targets.strided_repeat import StridedRepeatTarget
from castsim.targets.vector_function import VectorFunctionTarget
from castsim.targets.vliw import VliwTarget
from castsim.timing import Cause

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from castsim.estimating.arrays import Integers

    Extents = ArrayLike

_SIMULATED = 1 << 16
"""Simulated shapes that one estimator remembers."""

_RESOLVED = 256
"""Requests that are kept resolved."""


class Form(Protocol):
    """The closed form of one request on one target."""

    @property
    def uses_scratch(self) -> bool:
        """Whether the cast needs its tmp tile."""
        ...

    @property
    def needs_apart(self) -> bool:
        """Whether the closed form holds only for operands that lie apart."""
        ...

    def reach(self, shape: Shape) -> Number:
        """Return how many bytes from the start of the destination on are written outside its rows' own, or 0."""
        ...

    def account(self, shape: Shape, arithmetic: Arithmetic) -> Account:
        """Return the cycles of a shape."""
        ...


class TileEstimator(ArrayEstimator):
    """Casts from tile to tile: a closed form where one holds, simulations that are remembered elsewhere."""

    def __init__(self, target: StridedRepeatTarget | VectorFunctionTarget, request: Request) -> None:
        self._target = target
        self._request = request
        self._lowerer = lowerer_of(target)
        self._placement = Placement.of(target, self._lowerer, request)
        self._form = _form_of(target, request)
        self.simulated: Callable[[Shape], Estimate] = lru_cache(_SIMULATED)(self._simulate)
        """Simulates one shape."""

    def one(self, *extents: int | None) -> Estimate:
        """Return the estimate of one shape."""
        shape = shape_of(*extents)
        if not self.is_closed(shape, SCALAR):
            return self.simulated(shape)
        assert self._form is not None
        return _estimate(self._form.account(shape, SCALAR))

    def is_closed(self, shape: Shape, arithmetic: Arithmetic) -> Number:
        """Whether the closed form gives the cycles of a shape."""
        form, placement = self._form, self._placement
        if form is None:
            return shape.rows != shape.rows  # nowhere
        closed = placement.fits(shape, form.reach(shape), arithmetic)
        if form.needs_apart:
            closed = closed & placement.apart(shape, arithmetic, scratch=form.uses_scratch)
        if form.uses_scratch:
            closed = closed & placement.holds_scratch(shape, arithmetic)
        return closed

    def _simulate(self, shape: Shape) -> Estimate:
        cast = self._placement.cast(self._lowerer, shape)
        text = f"tcvt {self._request.src.name} -> {self._request.dst.name}"
        return timed_alone(self._target, lowerer_of(self._target).cast(cast), text)

    def fill(self, start: int, shape: Shape, cycles: Integers, causes: Integers, arithmetic: Arithmetic) -> None:
        """Estimate a chunk of shapes, the first being number `start`, into the columns of `cycles` and `causes`."""
        closed = self.is_closed(shape, arithmetic)
        if self._form is not None and closed.any():
            # Shapes that are not closed yield numbers that nobody reads.
            account = self._form.account(shape, arithmetic)
            np.copyto(cycles, account.cycles)
            for cause, row in _split(account, arithmetic).items():
                causes[PLACE[cause]] = row
        for index in np.flatnonzero(~closed).tolist():
            try:
                found = self.simulated(Shape(*(int(column[index]) for column in shape)))
            except CastsimError as error:
                error.span = Span(f"<estimate of shape {start + index}>", 1, 1)
                raise
            cycles[index] = found.cycles
            causes[:, index] = [found.causes.get(cause, 0) for cause in Cause]


def estimator_of(
    target: str | Path | Target, src: str, dst: str, rounding: str | None, saturation: str | None, scratch: bool
) -> ArrayEstimator:
    """Return the estimator of one request; those of shipped targets and of the same target object are kept.

    Raises:
        ReadError: unknown target, format, mode or saturation. IllegalError: see `castsim.isa.errors`.
    """
    if isinstance(target, str | Path):
        if str(target).endswith(".toml"):
            return _resolve(load_target(target), src, dst, rounding, saturation, scratch)
        return _of_shipped(str(target), src, dst, rounding, saturation, scratch)
    return _of_object(_Identity(target), src, dst, rounding, saturation, scratch)


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
def _of_shipped(
    name: str, src: str, dst: str, rounding: str | None, saturation: str | None, scratch: bool
) -> ArrayEstimator:
    return _resolve(load_target(name), src, dst, rounding, saturation, scratch)


@lru_cache(_RESOLVED)
def _of_object(
    key: _Identity, src: str, dst: str, rounding: str | None, saturation: str | None, scratch: bool
) -> ArrayEstimator:
    return _resolve(key.target, src, dst, rounding, saturation, scratch)


def _resolve(
    target: Target, src: str, dst: str, rounding: str | None, saturation: str | None, scratch: bool
) -> ArrayEstimator:
    wanted = None
    if saturation is not None:
        if saturation not in tuple(Saturation):
            raise ReadError(f"unknown saturation '{saturation}'", legal=[str(each) for each in Saturation])
        wanted = Saturation(saturation)
    formats = format_named(src), format_named(dst)
    if isinstance(target, VliwTarget):
        from castsim.estimating.vliw import KernelEstimator  # noqa: PLC0415 - only its mechanism is loaded

        return KernelEstimator(target, *formats, rounding)
    mode = None if rounding is None else _mode(rounding)
    return TileEstimator(target, Request(*formats, mode, wanted, bool(scratch)))


def _mode(rounding: str) -> RoundMode:
    name = bare_mode(rounding)
    if name not in RoundMode.__members__:
        raise ReadError(f"unknown rounding mode '{rounding}'", legal=[mode.name.lower() for mode in RoundMode])
    return RoundMode[name]


def _form_of(target: StridedRepeatTarget | VectorFunctionTarget, request: Request) -> Form | None:
    # Only the mechanism in use is loaded.
    if isinstance(target, VectorFunctionTarget):
        from castsim.estimating.function import FunctionForm  # noqa: PLC0415 - only the mechanism in use

        return FunctionForm.of(target, request)
    from castsim.estimating.strided import StridedForm  # noqa: PLC0415 - as above

    return StridedForm.of(target, request)


def _estimate(account: Account) -> Estimate:
    """Return the estimate of one shape, in whichever pipe is occupied longer: the scalar one or that which converts."""
    found = [item for item in account.converting if item[1]]
    occupied = sum(cycles for _, cycles in found)
    if account.scalar >= occupied:
        occupied = account.scalar
        found = [(Cause.BUSY, occupied)] if occupied else []
    if occupied < account.cycles:
        found.append((Cause.EMPTY, account.cycles - occupied))
    # They are in the order of `Cause`, and of equals max takes the first: as `bound_by`, without looking them up.
    most = max(found, key=_cycles)[0] if found else Cause.EMPTY
    return Estimate(account.cycles, most, dict(found))


def _cycles(item: tuple[Cause, int]) -> int:
    return item[1]


def _split(account: Account, arithmetic: Arithmetic) -> dict[Cause, Number]:
    """Return the same of many shapes: their cycles by cause."""
    choose, scalar = arithmetic.choose, account.scalar
    converting = dict(account.converting)
    occupied = sum(converting.values())
    by_scalar = scalar >= occupied
    causes = {cause: choose(by_scalar, 0, cycles) for cause, cycles in converting.items()}
    causes[Cause.BUSY] = choose(by_scalar, scalar, converting.get(Cause.BUSY, 0))
    causes[Cause.EMPTY] = account.cycles - choose(by_scalar, scalar, occupied)
    return causes


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
    buffer is large enough (`castsim.estimating.placement`); a closed form then gives the result at once, and shapes
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

    Raises:
        ReadError, IllegalError, TileError, ScratchError: see `castsim.isa.errors`. Of arrays, the first shape that is
        refused.
    """
    estimator = estimator_of(target, format_name(src), format_name(dst), rounding, saturation, scratch)
    extents = (rows, cols, row_stride, dst_row_stride, valid_rows, valid_cols)
    for each in extents:
        if hasattr(each, "__len__"):
            return estimator.many(*extents)
    return estimator.one(*map(_as_integer, extents))


def _as_integer(value: Any) -> int | None:
    if value is None or type(value) is int:
        return value
    try:
        return operator.index(value)
    except TypeError:
        raise ReadError(f"an extent is an integer or an array of them, not {value!r}") from None
