"""What the forms of gathers other than that by numbers have in the text (docs/reference/pto.md section 7.7)."""

from __future__ import annotations

from castsim.isa.pto.attributes import Attribute, Attributes
from castsim.isa.pto.lexer import TokenKind
from castsim.isa.pto.program import Type
from castsim.isa.pto.reader import PtoReader
from castsim.isa.pto.vector_operations import DIRECTIONS

DIRECTION = "direction"
"""Key under which the direction of a gather by pattern, which has none in the text, stands with the attributes."""


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
