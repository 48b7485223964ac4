"""Forms of operations that share a name: gathers and moves (docs/reference/pto.md sections 7.7 and 7.12)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from castsim.isa.pto.attributes import Attribute, Attributes, enum_word
from castsim.isa.pto.lexer import TokenKind
from castsim.isa.pto.packed import element_format
from castsim.isa.pto.program import ScalarType, TileType, Type
from castsim.isa.pto.reader import PtoReader
from castsim.isa.pto.vector_operations import CHOOSING, DIRECTIONS

_WHOLE = re.compile(r"-?\d{1,10}")

DIRECTION = "direction"
"""Key under which the direction of a gather by pattern, which has none in the text, stands with the attributes."""


OFFSET = "offset"
"""Attribute of a gather by comparison: what is added to the numbers."""


def variant_of(mnemonic: str, attributes: Attributes, inputs: Sequence[Type], outputs: Sequence[Type]) -> str:
    """Return the mnemonic of the form that an operation is written in: of a gather and of a move there are three."""
    if "maskPattern" in attributes:
        return f"{mnemonic}.mask"
    if mnemonic == "tgather" and (len(outputs) > 1 or any(isinstance(kind, ScalarType) for kind in inputs)):
        return f"{mnemonic}.compare"
    return f"{mnemonic}{_boxes(inputs, outputs)}" if mnemonic == "tmov" else mnemonic


def _boxes(inputs: Sequence[Type], outputs: Sequence[Type]) -> str:
    """Return the end of the mnemonic of a move of bytes into boxes of the vector unit's buffer: none of another move.

    With scratch it is one of shared exponents (ZZ), else one of codes (NZ).
    """
    if not inputs or any(not isinstance(kind, TileType) or kind.foreign for kind in inputs) or len(outputs) != 1:
        return ""
    (dst,) = outputs
    bits = element_format(dst.element).storage_bits if isinstance(dst, TileType) else 0
    if not isinstance(dst, TileType) or dst.location != "vec" or dst.scatter_layout != "row_major" or bits != 8:
        return ""
    boxed = {("row_major", 2): ".zz", ("col_major", 1): ".nz"}
    return boxed.get((dst.block_layout, len(inputs)), "")


def check_comparison(reader: PtoReader, attributes: Attributes) -> None:
    """Reject attributes that a gather by comparison cannot have: another comparison, an offset that is no i32."""
    mode, offset = attributes.get("cmpMode"), attributes.get(OFFSET)
    if mode is not None:
        enum_word(reader, mode, "cmp", CHOOSING)
    if offset is not None and offset_of(offset.text) is None:
        raise reader.error(f"{OFFSET} is a number of type i32, not {offset.text}", offset.value_index, ("0 : i32",))


def offset_of(text: str) -> int | None:
    """Return the number of `5 : i32` or `5`, None if that is none."""
    number, _, kind = text.partition(" : ")
    return int(number) if kind in ("", "i32") and _WHOLE.fullmatch(number) and abs(int(number)) < 1 << 31 else None


def types_by_pattern(reader: PtoReader, attributes: Attributes) -> list[tuple[Type, int]]:
    """Read `type [, "row"]`, what stands behind the colon of a gather by pattern."""
    index = reader.position
    types = [(reader.type(), index)]
    if reader.take(","):
        index = reader.position
        text = reader.next_of(TokenKind.STRING, "a direction", DIRECTIONS)
        if text not in DIRECTIONS:
            raise reader.error(f"unknown direction {text}", index, DIRECTIONS)
        attributes[DIRECTION] = Attribute(text, index, index)
    return types
