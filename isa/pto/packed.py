"""Elements that hold two values: how many columns a tile of them stands for, and what it holds.

Spelled with the prefix `!pto.`, a column of 4-bit values counts bytes, that is pairs; the value in the low half is the
one of the even column. Everything but a cast treats such an element as one thing. Source: docs/reference/pto.md
section 2.4.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from castsim.isa.formats import FloatFormat, Format, Specials, format_named
from castsim.isa.pto.value_types import TileType


@dataclass(frozen=True)
class PairFormat(FloatFormat):
    """Two values of the format `held` in one storage unit; its own fields only give it its width."""

    held: str = ""


PAIRS: Mapping[str, PairFormat] = {
    f"{held}_pair": PairFormat(f"{held}_pair", exponent, fraction, 0, Specials.NONE, held=held)
    for held, exponent, fraction in (("e2m1", 4, 3), ("e1m2", 4, 3), ("hif8", 8, 7), ("bf16", 8, 23))
}
"""Every element that holds two values, by the name that types of programs have for it."""


def element_format(name: str) -> Format:
    """Return the format of an element type, as tiles and views of programs name it.

    Raises:
        ReadError: there is none of that name.
    """
    return PAIRS.get(name) or format_named(name)


def held_format(fmt: Format) -> tuple[Format, int]:
    """Return the format of the values in an element, and how many of them it holds."""
    return (format_named(fmt.held), 2) if isinstance(fmt, PairFormat) else (fmt, 1)


def held_element(name: str) -> str:
    """Return the name of the 4-bit format whose pairs an element holds, as casts of registers name it; else its own."""
    pair = PAIRS.get(name)
    return name if pair is None or pair.bits != 8 else pair.held


def unpacked(kind: TileType) -> TileType:
    """Return the type of a tile as casts see it: two columns (rows if column-major) for each of 4-bit pairs."""
    pair = PAIRS.get(kind.element)
    if pair is None or pair.bits != 8:
        return kind
    if kind.block_layout == "row_major":
        return replace(kind, element=pair.held, cols=2 * kind.cols, valid_cols=_twice(kind.valid_cols))
    return replace(kind, element=pair.held, rows=2 * kind.rows, valid_rows=_twice(kind.valid_rows))


def _twice(extent: int | None) -> int | None:
    return None if extent is None else 2 * extent
