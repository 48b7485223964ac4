"""Estimates of casts: a pair of formats on a target is resolved once, for any shape, single or in arrays."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, overload

from castsim.estimating.arrays import ArrayEstimator
from castsim.estimating.estimates import Estimate, Estimates
from castsim.estimating.trust import (
    BUNDLES,
    Sensitivity,
    Trust,
    Work,
    sensitivities,
    trust_of_works,
)
from castsim.isa.errors import ReadError
from castsim.isa.formats import format_named
from castsim.isa.modes import Saturation
from castsim.isa.spellings import format_spelled
from castsim.machines.registry import Parts
from castsim.machines.target_cast import CastAsked
from castsim.numerics import FormatLike, format_name
from castsim.targets import Target, load_target
from castsim.targets.residuals import CAST

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    Extents = ArrayLike

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
