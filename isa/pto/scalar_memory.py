"""Reading what the scalar unit does to memory: single elements, pointers, fences and cache operations.

Source: docs/reference/pto.md section 7.9.
"""

from __future__ import annotations

from castsim.isa.pto.lexer import TokenKind
from castsim.isa.pto.program import (
    AddPointer,
    Arith,
    CacheOperation,
    Compare,
    Constant,
    Convert,
    Operation,
    PointerType,
    ScalarAccess,
    ScalarType,
    TileType,
)
from castsim.isa.pto.pto_scalars import PREDICATES, constant_value, folded
from castsim.isa.pto.statement_reader import Handler, PtoReader, Statement

_INDEX = ScalarType("index")
_POINTER = ("!pto.ptr<...>",)
_FENCE = "#pto.fence_scope"


def _any_pointer(reader: PtoReader, owner: str) -> tuple[PointerType, int]:
    """Take a type that must be that of a pointer."""
    index = reader.position
    kind = reader.type()
    if not isinstance(kind, PointerType):
        raise reader.error(f"{owner} works on pointers, not on {reader.texts[index]}", index, _POINTER)
    return kind, index


def _element(reader: PtoReader, owner: str, element: str) -> ScalarType:
    """Take the type of a value, which must be the element type."""
    index = reader.position
    kind = reader.type()
    if not isinstance(kind, ScalarType) or kind.name != element:
        raise reader.error(
            f"{owner}: the value is of the element type {element}, not {reader.texts[index]}", index, (element,)
        )
    return kind


def _place(reader: PtoReader) -> tuple[tuple[str, int], str]:
    """Take `%p[%i]`."""
    pointer = reader.operand()
    reader.expect("[")
    offset = reader.operand()
    reader.check_use(offset, _INDEX)
    reader.expect("]")
    return pointer, offset[0]


def _read_load(reader: PtoReader, statement: Statement) -> Operation:
    base, offset = _place(reader)
    reader.expect(":")
    pointer, index = _any_pointer(reader, statement.name)
    reader.check_use(base, pointer, index)
    reader.expect("->")
    kind = _element(reader, statement.name, pointer.element)
    result = statement.define_one(reader, kind)
    return ScalarAccess("load_scalar", base[0], pointer, offset, result, kind, span=statement.span)


def _read_store(reader: PtoReader, statement: Statement) -> Operation:
    statement.no_result(reader)
    value = reader.operand()
    reader.expect(",")
    base, offset = _place(reader)
    reader.expect(":")
    pointer, index = _any_pointer(reader, statement.name)
    reader.check_use(base, pointer, index)
    reader.expect(",")
    kind = _element(reader, statement.name, pointer.element)
    reader.check_use(value, kind)
    return ScalarAccess("store_scalar", base[0], pointer, offset, value[0], kind, span=statement.span)


def _tile(reader: PtoReader, owner: str) -> tuple[TileType, int]:
    index = reader.position
    kind = reader.type()
    if not isinstance(kind, TileType):
        raise reader.error(f"{owner} works on tiles, not on {reader.texts[index]}", index, ("!pto.tile_buf<vec, ...>",))
    if kind.location != "vec":
        raise reader.error(f"{owner} reaches vec tiles only, not {kind.location}", index, ("vec",))
    return kind, index


def _index_type(reader: PtoReader, owner: str) -> None:
    index = reader.position
    if reader.type() != _INDEX:
        raise reader.error(f"{owner}: the offset is of type index, not {reader.texts[index]}", index, ("index",))


def _read_get(reader: PtoReader, statement: Statement) -> Operation:
    """Read `%x = pto.tgetval ins(%t, %k : T, index) outs : E`."""
    reader.expect("ins")
    reader.expect("(")
    base = reader.operand()
    reader.expect(",")
    offset = reader.operand()
    reader.check_use(offset, _INDEX)
    reader.expect(":")
    tile, index = _tile(reader, statement.name)
    reader.check_use(base, tile, index)
    reader.expect(",")
    _index_type(reader, statement.name)
    reader.expect(")")
    reader.expect("outs")
    reader.expect(":")
    kind = _element(reader, statement.name, tile.element)
    result = statement.define_one(reader, kind)
    return ScalarAccess("tgetval", base[0], tile, offset[0], result, kind, span=statement.span)


def _read_set(reader: PtoReader, statement: Statement) -> Operation:
    """Read `pto.tsetval ins(%k, %x : index, E) outs(%t : T)`."""
    statement.no_result(reader)
    reader.expect("ins")
    reader.expect("(")
    offset = reader.operand()
    reader.check_use(offset, _INDEX)
    reader.expect(",")
    value = reader.operand()
    reader.expect(":")
    _index_type(reader, statement.name)
    reader.expect(",")
    value_index = reader.position
    reader.check_use(value, reader.type(), value_index)
    reader.expect(")")
    reader.expect("outs")
    reader.expect("(")
    base = reader.operand()
    reader.expect(":")
    tile, index = _tile(reader, statement.name)
    reader.check_use(base, tile, index)
    reader.expect(")")
    after, reader.position = reader.position, value_index
    kind = _element(reader, statement.name, tile.element)
    reader.position = after
    return ScalarAccess("tsetval", base[0], tile, offset[0], value[0], kind, span=statement.span)


def _read_add_pointer(reader: PtoReader, statement: Statement) -> Operation:
    base = reader.operand()
    reader.expect(",")
    offset = reader.operand()
    reader.check_use(offset, _INDEX)
    reader.expect(":")
    pointer, index = _any_pointer(reader, statement.name)
    reader.check_use(base, pointer, index)
    reader.expect("->")
    result_type, result_index = _any_pointer(reader, statement.name)
    if result_type != pointer:
        raise reader.error(f"{statement.name} keeps the type of its pointer", result_index)
    result = statement.define_one(reader, pointer)
    return AddPointer(result, base[0], offset[0], pointer, span=statement.span)


def _read_fence(reader: PtoReader, statement: Statement) -> Operation:
    statement.no_result(reader)
    index = reader.position
    if reader.kinds[index] is not TokenKind.ATTRIBUTE:
        return CacheOperation("fence.barrier_all", span=statement.span)
    text = reader.next_of(TokenKind.ATTRIBUTE, _FENCE)
    if not text.startswith(_FENCE):
        raise reader.error(f"a fence has a scope, not {text}", index, (f"{_FENCE}<gm>",))
    return CacheOperation("fence.barrier_all", "".join(text.split()), span=statement.span)


def _read_invalidate(reader: PtoReader, statement: Statement) -> Operation:
    """Read `pto.cmo.cacheinvalid` and whatever names the lines: they have no effect that is modelled."""
    statement.no_result(reader)
    texts: list[str] = []
    depth = 0
    while _belongs(reader, depth):
        if reader.kinds[reader.position] is TokenKind.VALUE:
            texts.append(f"%{reader.operand()[0]}")
            continue
        text = reader.texts[reader.position]
        depth += (text == "{") - (text == "}")
        texts.append(text)
        reader.position += 1
    return CacheOperation("cmo.cacheinvalid", " ".join(texts), span=statement.span)


def _belongs(reader: PtoReader, depth: int) -> bool:
    """Whether the next token is still of the operation: no result, name or end of what follows."""
    index = reader.position
    kind, text = reader.kinds[index], reader.texts[index]
    if kind is TokenKind.VALUE:
        return ":" not in text and not _begins_results(reader, index)
    if kind is TokenKind.WORD:
        return "." not in text and text not in ("return", "call")
    return kind in (TokenKind.ATTRIBUTE, TokenKind.TYPE, TokenKind.NUMBER) or (
        kind is TokenKind.PUNCTUATION and (depth > 0 or text != "}")
    )


def _begins_results(reader: PtoReader, index: int) -> bool:
    """Whether `%a, %b =` begins here."""
    while reader.kinds[index] is TokenKind.VALUE and reader.texts[index + 1] == ",":
        index += 2
    return reader.kinds[index] is TokenKind.VALUE and reader.texts[index + 1] == "="


MEMORY_READERS: dict[str, Handler] = {
    "pto.load_scalar": _read_load,
    "pto.store_scalar": _read_store,
    "pto.tgetval": _read_get,
    "pto.tsetval": _read_set,
    "pto.addptr": _read_add_pointer,
    "pto.fence.barrier_all": _read_fence,
    "pto.cmo.cacheinvalid": _read_invalidate,
}
"""PtoReader of every scalar access to memory."""


# Reading the `index` dialect: the operations of `arith` on the type index, without types in the text.
#
# They are kept as those of `arith` (docs/reference/pto.md section 7.6).

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
