"""A cast of loose elements, asked and answered: words of rounding modes, `cast_elements` of every mechanism."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Literal

from castsim.isa.codes import Codes
from castsim.isa.errors import IllegalError, ReadError, Warnings
from castsim.isa.formats import FloatFormat, Format, IntFormat, TaperedFormat
from castsim.isa.modes import Overflow, Rounding, Saturation
from castsim.isa.pto.program import RoundMode, TileType
from castsim.isa.pto.value_types import element_format
from castsim.numerics import value_of
from castsim.targets.dataflow import DataflowTarget

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


# Rounding modes of tile instructions by the words that a user types.

DEFAULT_MODE = RoundMode.RINT
"""What a program that names no mode asks for (docs/reference/pto.md section 1)."""


def bare_mode(word: str) -> str:
    """Return the word for a rounding mode in capitals and without the `CAST_` that the vendor's headers have."""
    return word.upper().removeprefix("CAST_")


def tile_mode(rounding: str | None, chip: str) -> RoundMode | None:
    """Return a mode as the enumeration of the tile instructions names it, None for none.

    Raises:
        ReadError: no rounding mode. IllegalError: one that tile instructions lack; `chip` is named.
    """
    if rounding is None:
        return None
    try:
        return round_mode(rounding)
    except ReadError as error:
        if rounding.lower() in {mode.value for mode in Rounding}:
            raise IllegalError(f"{chip} has no rounding mode {rounding}", legal=error.legal) from None
        raise


def round_mode(rounding: str) -> RoundMode:
    """Return a mode as the enumeration of the tile instructions names it.

    Raises:
        ReadError: no rounding mode of theirs.
    """
    name = bare_mode(rounding)
    if name not in RoundMode.__members__:
        raise ReadError(f"unknown rounding mode '{rounding}'", legal=[mode.name.lower() for mode in RoundMode])
    return RoundMode[name]


# Saying that a chip does not have a type pair, and what it has instead.

Pair = tuple[str, str]


def lacks_pair(target: DataflowTarget, pairs: Sequence[Pair], src: str, dst: str) -> IllegalError:
    """Return the error for a cast that a chip with tiles lacks, or has under option `interface_casts` only."""
    error = no_such_pair(target.name, pairs, src, dst)
    if target.interface_cast(src, dst) is not None:
        error.legal = (*error.legal, "option interface_casts=accept, as the instruction set's interface has it")
    return error


def no_such_pair(target: str, pairs: Sequence[Pair], src: str, dst: str) -> IllegalError:
    """Return the error for a cast that `target` lacks: its destinations for the source, and two-step detours."""
    from_source = [other for source, other in pairs if source == src]
    if not from_source:
        sources = dict.fromkeys(source for source, _ in pairs)
        return IllegalError(f"{target} has no cast from {src}; it casts from: {', '.join(sources)}", legal=sources)
    message = f"{target} has no cast {src} -> {dst}; from {src} it has: {', '.join(from_source)}"
    before, after = element_format(src), element_format(dst)
    exact, twice = list[str](), list[str]()
    for name in dict.fromkeys(from_source):
        middle = element_format(name)
        if (name, dst) not in pairs or name == src:
            continue
        if _mode_holds(middle, before):
            exact.append(f"{src} -> {name} -> {dst}")
        elif _mode_holds(middle, after):  # all that the destination may become is still there
            twice.append(f"{src} -> {name} -> {dst}")
    detours = exact or twice
    if detours:
        message += f"; in two steps: {' or '.join(detours)}"
        message += " (the first is exact)" if exact else " (rounds twice)"
    return IllegalError(message, legal=[*(f"{src} -> {other}" for other in from_source), *detours])


def _mode_holds(wide: Format, narrow: Format) -> bool:
    """Whether every number of one format is one of another's."""
    if isinstance(wide, IntFormat):
        return isinstance(narrow, IntFormat) and wide.minimum <= narrow.minimum and narrow.maximum <= wide.maximum
    if not isinstance(wide, FloatFormat):
        return False
    top = (wide.max_finite_code >> wide.fraction_bits) - wide.bias
    if isinstance(narrow, IntFormat):
        magnitude = narrow.bits - narrow.signed
        return magnitude <= min(wide.fraction_bits + 1, top + 1) and (wide.signed or not narrow.signed)
    if not isinstance(narrow, FloatFormat) or (narrow.signed and not wide.signed):
        return False
    lowest = [fmt.min_exponent - fmt.fraction_bits for fmt in (wide, narrow)]
    reaches = top >= (narrow.max_finite_code >> narrow.fraction_bits) - narrow.bias
    return wide.fraction_bits >= narrow.fraction_bits and lowest[0] <= lowest[1] and reaches
