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
from castsim.isa.formats import (
    DETERMINISTIC,
    FORMATS,
    FloatFormat,
    Format,
    IntFormat,
    Overflow,
    Rounding,
    Saturation,
    TaperedFormat,
    format_named,
)

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
