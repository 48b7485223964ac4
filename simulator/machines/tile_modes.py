"""Rounding modes of tile instructions by the words that a user types."""

from __future__ import annotations

from collections.abc import Sequence

from castsim.isa.errors import IllegalError, ReadError
from castsim.isa.formats import FloatFormat, Format, IntFormat
from castsim.isa.modes import Rounding
from castsim.isa.pto.packed import element_format
from castsim.isa.pto.program import RoundMode

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
        if _holds(middle, before):
            exact.append(f"{src} -> {name} -> {dst}")
        elif _holds(middle, after):  # all that the destination may become is still there
            twice.append(f"{src} -> {name} -> {dst}")
    detours = exact or twice
    if detours:
        message += f"; in two steps: {' or '.join(detours)}"
        message += " (the first is exact)" if exact else " (rounds twice)"
    return IllegalError(message, legal=[*(f"{src} -> {other}" for other in from_source), *detours])


def _holds(wide: Format, narrow: Format) -> bool:
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
