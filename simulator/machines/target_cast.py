"""What a chip's cast of loose elements takes and gives: question and answer of every mechanism's `cast_elements`."""

from __future__ import annotations

from dataclasses import dataclass

from castsim.isa.codes import Codes
from castsim.isa.formats import Format
from castsim.isa.modes import Overflow, Saturation
from castsim.isa.warning_text import Warnings


@dataclass(frozen=True, slots=True)
class CastAsked:
    """A pair of formats with the modes asked for; `rounding` in the chip's words, `scratch`: whether there is a tmp."""

    src: Format
    dst: Format
    rounding: str | None = None
    saturation: Saturation | None = None
    scratch: bool = False


@dataclass(frozen=True, slots=True)
class TargetCast:
    """Codes that a chip makes, and the modes that were in force after its fallbacks and overrides."""

    codes: Codes
    rounding: str
    saturation: Saturation
    overflow: Overflow
    warnings: Warnings
