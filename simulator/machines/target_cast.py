"""What a chip's cast of loose elements gives: the answer of every mechanism to `cast_elements`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from castsim.isa.modes import Overflow, Saturation


@dataclass(frozen=True, slots=True)
class TargetCast:
    """Codes that a chip makes, and the modes that were in force after its fallbacks and overrides."""

    codes: NDArray[Any]
    rounding: str
    saturation: Saturation
    overflow: Overflow
    warnings: tuple[str, ...]
