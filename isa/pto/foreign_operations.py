"""Reading what belongs to several cores: queues between them, exchange between devices, the buffers that they share.

Nothing is known of these but their names and values, and no sheet has their grammar: a statement is all tokens up to
the end of its line, or of a bracket that is open there; printers also break it before its operands. A line that begins
with a sign that begins no statement goes on with it, and so does one behind a sign that ends none.

Source: docs/reference/pto.md section 9.
"""

from __future__ import annotations

from castsim.isa.pto.lexer import TokenKind
from castsim.isa.pto.program import ForeignOperation, Operation, ScalarType, TileType, Type
from castsim.isa.pto.reader import PtoReader
from castsim.isa.pto.statement import Statement

NAMES = (
    "pto.reserve_buffer",
    "pto.import_reserved_buffer",
    "pto.aic_initialize_pipe",
    "pto.aiv_initialize_pipe",
    "pto.initialize_l2g2l_pipe",
    "pto.initialize_l2l_pipe",
)
PREFIXES = ("pto.tpush", "pto.tpop", "pto.tfree", "pto.comm.")
"""Beginnings of names."""

_OPENING, _CLOSING = "([{", ")]}"
_CONTINUING = ("(", "[", "{", ",", ":", "=", "->")
"""Signs that a line goes on with, or that another one must follow."""


def is_foreign_name(name: str) -> bool:
    """Whether a name is that of such an operation."""
    return name in NAMES or name.startswith(PREFIXES)


def read_foreign_operation(reader: PtoReader, statement: Statement) -> Operation:
    """Read one; its results are scalars and tiles, whose types stand last, behind `->` or `:`.

    Raises:
        ReadError: an undefined value, results without types, or of another type.
    """
    start, end = reader.position, _end(reader)
    operands: list[str] = []
    tokens: list[str] = []
    while reader.position < end:
        text = reader.texts[reader.position]
        if reader.kinds[reader.position] is TokenKind.VALUE:
            operands.append(reader.operand()[0])
            tokens.append("%")
        else:
            tokens.append(text)
            reader.position += 1
    types = _result_types(reader, statement, start, end) if statement.results else ()
    results = statement.define(reader, types) if types else ()
    return ForeignOperation(statement.operation, tuple(operands), tuple(tokens), results, types, span=statement.span)


def _end(reader: PtoReader) -> int:
    """Return the token behind the statement."""
    depth, line = 0, reader.span(reader.position - 1).line
    for index in range(reader.position, len(reader.texts)):
        text, kind = reader.texts[index], reader.kinds[index]
        if kind is TokenKind.END or (not depth and text in _CLOSING):
            return index
        here = reader.span(index).line
        if not depth and here != line and text not in _CONTINUING and reader.texts[index - 1] not in _CONTINUING:
            return index
        line = here
        if kind is TokenKind.PUNCTUATION and text in _OPENING:
            depth += 1
        elif kind is TokenKind.PUNCTUATION and text in _CLOSING:
            depth -= 1
    return len(reader.texts)


def _result_types(reader: PtoReader, statement: Statement, start: int, end: int) -> tuple[Type, ...]:
    signs = [index for index in range(start, end) if reader.texts[index] in ("->", ":")]
    arrows = [index for index in signs if reader.texts[index] == "->"]
    if not signs:
        raise reader.error(
            f"{statement.name}: its results have no type", statement.index, (f"{statement.name} ... -> T",)
        )
    reader.position = (arrows or signs)[-1] + 1
    types = reader.type_list()
    for kind in types:
        if not isinstance(kind, ScalarType | TileType):
            raise reader.error(f"{statement.name} gives scalars and tiles", reader.position - 1)
    reader.position = end
    return types
