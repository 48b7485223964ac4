"""Rounding modes of tile instructions by the words that a user types."""

from __future__ import annotations

from castsim.isa.errors import IllegalError, ReadError
from castsim.isa.modes import Rounding
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
