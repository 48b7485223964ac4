"""Number formats, modes, programs and the errors they raise, independent of any chip."""

from castsim.isa.errors import (
    CastsimError,
    EngineError,
    IllegalError,
    ReadError,
    ScratchError,
    Span,
    TargetDataError,
    TileError,
)
from castsim.isa.formats import FORMATS, FloatFormat, Format, IntFormat, TaperedFormat, format_named
from castsim.isa.modes import DETERMINISTIC, Overflow, Rounding, Saturation

__all__ = [
    "DETERMINISTIC",
    "FORMATS",
    "CastsimError",
    "EngineError",
    "FloatFormat",
    "Format",
    "IllegalError",
    "IntFormat",
    "Overflow",
    "ReadError",
    "Rounding",
    "Saturation",
    "ScratchError",
    "Span",
    "TaperedFormat",
    "TargetDataError",
    "TileError",
    "format_named",
]
