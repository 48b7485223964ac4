"""Reading the `index` dialect: the operations of `arith` on the type index, without types in the text.

They are kept as those of `arith` (docs/reference/pto.md section 7.6).
"""

from __future__ import annotations

from castsim.isa.pto.lexer import TokenKind
from castsim.isa.pto.program import Arith, Compare, Constant, Convert, Operation, ScalarType
from castsim.isa.pto.reader import PtoReader
from castsim.isa.pto.scalars import PREDICATES, constant_value, folded
from castsim.isa.pto.statement import Handler, Statement

_INDEX = ScalarType("index")
_I1 = ScalarType("i1")
_OTHERS = ("i1", "i8", "i16", "i32", "i64")

BINARY = {
    "add": "addi",
    "sub": "subi",
    "mul": "muli",
    "divs": "divsi",
    "divu": "divui",
    "ceildivs": "ceildivsi",
    "ceildivu": "ceildivui",
    "floordivs": "floordivsi",
    "rems": "remsi",
    "remu": "remui",
    "maxs": "maxsi",
    "maxu": "maxui",
    "mins": "minsi",
    "minu": "minui",
    "shl": "shli",
    "shrs": "shrsi",
    "shru": "shrui",
    "and": "andi",
    "or": "ori",
    "xor": "xori",
}
"""Operation of `index` -> that of `arith`."""


def _read_binary(reader: PtoReader, statement: Statement) -> Operation:
    first = reader.operand()
    reader.expect(",")
    second = reader.operand()
    operation = BINARY[statement.operation]
    for use in (first, second):
        reader.check_use(use, _INDEX)
    known = folded(operation, reader.definition(first).constant, reader.definition(second).constant, _INDEX)
    result = statement.define_one(reader, _INDEX, known)
    return Arith(result, operation, (first[0], second[0]), _INDEX, span=statement.span)


def _read_compare(reader: PtoReader, statement: Statement) -> Operation:
    """Read `slt(%a, %b)`."""
    index = reader.position
    predicate = reader.next_of(TokenKind.WORD, "a predicate", PREDICATES)
    if predicate not in PREDICATES:
        raise reader.error(f"unknown predicate '{predicate}'", index, PREDICATES)
    reader.expect("(")
    first = reader.operand()
    reader.expect(",")
    second = reader.operand()
    reader.expect(")")
    for use in (first, second):
        reader.check_use(use, _INDEX)
    return Compare(statement.define_one(reader, _I1), predicate, (first[0], second[0]), _INDEX, span=statement.span)


def _read_conversion(reader: PtoReader, statement: Statement) -> Operation:
    """Read `%a : index to i32`, or the other way."""
    operand = reader.operand()
    reader.expect(":")
    source = reader.type()
    reader.expect("to")
    index = reader.position
    target = reader.type()
    reader.check_use(operand, source)
    kinds = [kind.name for kind in (source, target) if isinstance(kind, ScalarType)]
    if len(kinds) != 2 or kinds.count("index") != 1 or not {*kinds} <= {"index", *_OTHERS}:
        raise reader.error(f"{statement.name} is between index and another integer", index, _OTHERS)
    assert isinstance(source, ScalarType)
    assert isinstance(target, ScalarType)
    operation = "index_cast" if statement.operation == "casts" else "index_castui"
    result = statement.define_one(reader, target)
    return Convert(result, operation, operand[0], source, target, span=statement.span)


def _read_constant(reader: PtoReader, statement: Statement) -> Operation:
    index = reader.position
    reader.next_of(TokenKind.NUMBER, "a whole number")
    value = constant_value(reader, index, _INDEX)
    return Constant(statement.define_one(reader, _INDEX, value), value, _INDEX, span=statement.span)


def _read_truth(reader: PtoReader, statement: Statement) -> Operation:
    text = reader.next_of(TokenKind.WORD, "true or false", ("true", "false"))
    if text not in ("true", "false"):
        raise reader.error(f"'{text}' is not a truth value", reader.position - 1, ("true", "false"))
    return Constant(statement.define_one(reader, _I1, int(text == "true")), text == "true", _I1, span=statement.span)


def _read_size(_reader: PtoReader, statement: Statement) -> Operation:
    """Read `index.sizeof`, the bits of an index: 64."""
    return Constant(statement.define_one(_reader, _INDEX, 64), 64, _INDEX, span=statement.span)


INDEX_READERS: dict[str, Handler] = {
    **{f"index.{operation}": _read_binary for operation in BINARY},
    "index.cmp": _read_compare,
    "index.casts": _read_conversion,
    "index.castu": _read_conversion,
    "index.constant": _read_constant,
    "index.bool.constant": _read_truth,
    "index.sizeof": _read_size,
}
"""Reader of every operation of the `index` dialect."""
