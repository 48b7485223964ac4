"""What a chip's cast of loose elements takes and gives: question and answer of every mechanism's `cast_elements`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from castsim.isa.codes import Codes
from castsim.isa.formats import Format
from castsim.isa.modes import Overflow, Saturation
from castsim.isa.pto.program import TileType
from castsim.isa.warning_text import Warnings

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
    """Codes that a chip makes, and the modes that were in force after its fallbacks and overrides."""

    codes: Codes
    rounding: str
    saturation: Saturation
    overflow: Overflow
    warnings: Warnings


def form_of(src: TileType, dst: TileType) -> CastForm:
    """Return the form of a cast between tiles: 1-D if by their types all rows are full, or there is a single row.

    A dynamic valid extent counts as partial, whatever its value.
    """
    full = all(tile.valid_cols == tile.cols for tile in (src, dst))
    return "1d" if full or src.rows == dst.rows == 1 else "2d"
