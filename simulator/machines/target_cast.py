"""What a chip's cast of loose elements takes and gives: question and answer of every mechanism's `cast_elements`."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Literal

from castsim.isa.codes import Codes
from castsim.isa.formats import FloatFormat, Format, IntFormat, TaperedFormat
from castsim.isa.modes import Overflow, Saturation
from castsim.isa.pto.program import TileType
from castsim.isa.warning_text import Warnings
from castsim.numerics import value_of

CastForm = Literal["1d", "2d"]
"""Code of a tile cast: one loop over all elements, or one over rows that go on behind their valid columns."""


@dataclass(frozen=True, slots=True)
class CastAsked:
    """A pair of formats with the modes asked for; `rounding` in the chip's words, `scratch`: whether there is a tmp.

    `form` chooses among the forms that the chip's casts have; None: the first.
    """

    src: Format
    dst: Format
    rounding: str | None = None
    saturation: Saturation | None = None
    scratch: bool = False
    form: CastForm | None = None


@dataclass(frozen=True, slots=True)
class TargetCast:
    """Codes that a chip makes, and the modes that were in force after its fallbacks and overrides.

    `saturation` is in the words of `saturation_in_force`.
    """

    codes: Codes
    rounding: str
    saturation: str
    overflow: Overflow
    warnings: Warnings


def form_of(src: TileType, dst: TileType) -> CastForm:
    """Return the form of a cast between tiles: 1-D if by their types all rows are full, or there is a single row.

    A dynamic valid extent counts as partial, whatever its value.
    """
    full = all(tile.valid_cols == tile.cols for tile in (src, dst))
    return "1d" if full or src.rows == dst.rows == 1 else "2d"


def saturation_in_force(src: Format, dst: Format, overflow: Overflow, switch: Saturation | None) -> str:
    """Return how a cast saturates: `on` or `off` where the switch of the instruction makes a difference.

    Elsewhere (`switch` None) what becomes of numbers out of range under the target's options: `clamps`, `none: inf`,
    `none: NaN`, `none: low bits`; or `not needed`.
    """
    clamps_infinity = overflow is Overflow.SATURATE and isinstance(dst, FloatFormat | TaperedFormat)
    if _holds(dst, src) and not (clamps_infinity and _has_infinity(src)):
        return "not needed"
    if switch is not None:
        return switch.value
    if overflow is not Overflow.SPECIAL:
        return "clamps" if overflow is Overflow.SATURATE else "none: low bits"
    return "none: inf" if _has_infinity(dst) else "none: NaN"


@lru_cache(maxsize=1024)
def _holds(dst: Format, src: Format) -> bool:
    """Whether no number of `src`, infinities included, lies beyond the range of `dst`."""
    if _has_infinity(src) and not _has_infinity(dst):
        return False
    (low, high), (least, most) = _range(src), _range(dst)
    return least <= low and high <= most


def _has_infinity(fmt: Format) -> bool:
    return not isinstance(fmt, IntFormat) and fmt.has_infinity


def _range(fmt: Format) -> tuple[Fraction, Fraction]:
    if isinstance(fmt, IntFormat):
        return Fraction(fmt.minimum), Fraction(fmt.maximum)
    largest = Fraction(value_of(fmt.max_finite_code, fmt))
    return -largest if fmt.signed else Fraction(0), largest
