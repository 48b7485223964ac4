"""What a chip's cast of loose elements gives: the answer of every mechanism to `cast_elements`."""

from __future__ import annotations

from dataclasses import dataclass

from castsim.isa.codes import Codes
from castsim.isa.modes import Overflow, Saturation
from castsim.isa.warning_text import Warnings


@dataclass(frozen=True, slots=True)
class TargetCast:
    """Codes that a chip makes, and the modes that were in force after its fallbacks and overrides."""

    codes: Codes
    rounding: str
    saturation: Saturation
    overflow: Overflow
    warnings: Warnings
