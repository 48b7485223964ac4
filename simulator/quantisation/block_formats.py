"""Block formats as rows: an element format, a scale format, a block size and the usual rule of the scale.

Sources: OCP Microscaling Formats (MX) 1.0, section 5, for the names that begin with mx, all with blocks of 32 and
e8m0 scales; NVFP4 has blocks of 16 and e4m3 scales. TOSA 1.1 has the same MX types (docs/reference/semantics.md).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from castsim.isa.errors import IllegalError, ReadError
from castsim.isa.formats import FORMATS, Format, IntFormat, TaperedFormat, format_named
from castsim.quantisation.rules import ScaleRule

_WIDEST_FLOAT, _WIDEST_INTEGER = 8, 16
"""Bits of an element: wider ones would need no scale."""


@dataclass(frozen=True, slots=True)
class BlockFormat:
    """Elements that share scales.

    An element stands for its own value times `2**unit_exponent`: MXINT8 counts in 64ths. `block` is the number of
    elements along the axis, None: all of them.
    """

    name: str
    element: Format
    scale: Format
    block: int | None
    rule: ScaleRule
    unit_exponent: int = 0

    def with_scale(self, scale: Format) -> BlockFormat:
        """Return the format with other scales.

        Raises:
            IllegalError: scales in an integer or tapered format, which have neither a NaN nor exact powers of two.
        """
        if isinstance(scale, IntFormat | TaperedFormat) or not scale.has_nan:
            legal = [
                name for name, row in FORMATS.items() if not isinstance(row, IntFormat | TaperedFormat) and row.has_nan
            ]
            raise IllegalError(f"scales cannot be {scale.name}: they need a NaN", legal=legal)
        usual = ScaleRule.FLOOR if not scale.has_zero else ScaleRule.NEAREST
        return replace(self, scale=scale, rule=self.rule if scale == self.scale else usual)


def _mx(name: str, element: str, unit_exponent: int = 0) -> BlockFormat:
    return BlockFormat(name, FORMATS[element], FORMATS["e8m0"], 32, ScaleRule.FLOOR, unit_exponent)


BLOCK_FORMATS: dict[str, BlockFormat] = {
    row.name: row
    for row in (
        _mx("mxfp8_e4m3", "e4m3fn"),
        _mx("mxfp8_e5m2", "e5m2"),
        _mx("mxfp6_e3m2", "e3m2"),
        _mx("mxfp6_e2m3", "e2m3"),
        _mx("mxfp4_e2m1", "e2m1"),
        _mx("mxint8", "i8", -6),
        BlockFormat("nvfp4", FORMATS["e2m1"], FORMATS["e4m3fn"], 16, ScaleRule.NEAREST),
    )
}
"""Every named block format."""

_ALIASES = {
    "mxfp8": "mxfp8_e4m3",
    "mxfp8e4m3": "mxfp8_e4m3",
    "mxfp8_e4m3fn": "mxfp8_e4m3",
    "mxfp8e5m2": "mxfp8_e5m2",
    "mxfp6e3m2": "mxfp6_e3m2",
    "mxfp6e2m3": "mxfp6_e2m3",
    "mxfp4": "mxfp4_e2m1",
    "mxfp4e2m1": "mxfp4_e2m1",
}


def block_format(text: str) -> BlockFormat:
    """Return the block format that a text names; an element format alone has f32 scales, one for each row.

    Raises:
        ReadError: no such format.
        IllegalError: elements without a sign, or wide ones.
    """
    name = text.strip().lower()
    name = _ALIASES.get(name, name)
    if name in BLOCK_FORMATS:
        return BLOCK_FORMATS[name]
    try:
        element = format_named(text)
    except ReadError as error:
        raise ReadError(f"unknown block format '{text}'", legal=(*BLOCK_FORMATS, *error.legal)) from None
    widest = _WIDEST_INTEGER if isinstance(element, IntFormat) else _WIDEST_FLOAT
    if not element.signed or element.bits > widest:
        why = "they have no sign" if not element.signed else f"they have more than {widest} bits"
        legal = [*BLOCK_FORMATS, *(row.name for row in FORMATS.values() if _is_element(row))]
        raise IllegalError(f"elements cannot be {element.name}: {why}", legal=legal)
    return BlockFormat(element.name, element, FORMATS["f32"], None, ScaleRule.NEAREST)


def _is_element(row: Format) -> bool:
    return row.signed and row.bits <= (_WIDEST_INTEGER if isinstance(row, IntFormat) else _WIDEST_FLOAT)
