"""Reading what the scalar unit does: `arith`, `math` and `index` operations, single elements of memory.

A closed list (docs/reference/pto.md section 7.6, castsim's extensions included). Results that follow from constants
alone are known numbers to the checks.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from castsim.isa.pto.lexer import TokenKind
from castsim.isa.pto.program import (
    AddPointer,
    Arith,
    CacheOperation,
    Compare,
    Constant,
    Convert,
    If,
    Operation,
    PointerType,
    ScalarAccess,
    ScalarType,
    TileType,
    Yield,
)
from castsim.isa.pto.statement_reader import Handler, NamedOperation, PtoReader

_INDEX_BITS = 64
_BITS = {"index": _INDEX_BITS, "i1": 1, "bf16": 16} | {f"{k}{n}": n for k in "iuf" for n in (8, 16, 32, 64)}
FLOATS = ("f16", "bf16", "f32", "f64")
"""Scalar types that are floats."""
_SIGNLESS = ("index", "i1", "i8", "i16", "i32", "i64")
_I1 = ScalarType("i1")
_INDEX = ScalarType("index")

_Fold = Callable[[int, int], int]
_FOLDS: dict[str, _Fold | None] = {
    "addi": lambda a, b: a + b,
    "subi": lambda a, b: a - b,
    "muli": lambda a, b: a * b,
    "minsi": min,
    "maxsi": max,
    "andi": lambda a, b: a & b,
    "ori": lambda a, b: a | b,
    "xori": lambda a, b: a ^ b,
}
# The executor computes these; no check rests on them.
_FOLDS |= dict.fromkeys(("minui", "maxui", "divsi", "divui", "remsi", "remui", "shli", "shrsi", "shrui"))
UNSIGNED = {"ult": "slt", "ule": "sle", "ugt": "sgt", "uge": "sge"}
"""Comparisons of unsigned numbers, and what signed ones of the same order are called."""
PREDICATES = ("eq", "ne", *UNSIGNED.values(), *UNSIGNED)
INDEX_CASTS = ("index_cast", "index_castui")
CONVERSIONS = (*INDEX_CASTS, "extui", "extsi", "trunci", "bitcast")
CAST = "unrealized_conversion_cast"
"""What is left between two dialects: of integers, a change of signedness or of width."""
_FOLDS |= dict.fromkeys(("ceildivsi", "ceildivui", "floordivsi"))
FLOAT_BINARY = (
    "addf", "subf", "mulf", "divf", "remf", "maximumf", "minimumf", "maxnumf", "minnumf", "math.copysign",
)  # fmt: skip
FLOAT_UNARY = (
    "negf", "math.absf", "math.ceil", "math.floor", "math.trunc", "math.round", "math.roundeven", "math.sqrt",
)  # fmt: skip
FLOAT_TERNARY = ("math.fma",)
FLOAT_TESTS = ("math.isnan", "math.isinf", "math.isfinite", "math.isnormal")
"""Operations that give a truth value of a float."""
POWER = "math.ipowi"
"""An integer to the power of another."""
INTEGER_UNARY = ("math.absi", "math.ctlz", "math.cttz", "math.ctpop")
_INEXACT = (
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "tanh", "erf", "powf", "rsqrt",
    "atan", "atan2", "cbrt",
)  # fmt: skip
_ORDERED = ("eq", "gt", "ge", "lt", "le", "ne")
FLOAT_PREDICATES = (
    "false", *(f"o{name}" for name in _ORDERED), "ord", *(f"u{name}" for name in _ORDERED), "uno", "true",
)  # fmt: skip
FLOAT_CONVERSIONS = ("fptosi", "fptoui", "sitofp", "uitofp", "extf", "truncf")

CORE_NUMBERS = {"pto.get_block_idx": 0, "pto.get_block_num": 1, "pto.get_subblock_idx": 0, "pto.get_subblock_num": 1}
"""What a kernel asks of where it runs, and the answers that one core gives where none are set (assumed)."""

_DECIMAL_FLOAT = re.compile(r"-?\d+(?:\.\d*(?:[eE][-+]?\d+)?|[eE][-+]?\d+)")
_LONGEST_NUMBER = 400  # characters; a double printed in full stays below


def bits_of(kind: ScalarType) -> int:
    """Return the width of a scalar; `index` has 64 bits."""
    return _BITS[kind.name]


def _scalar_type(reader: PtoReader) -> tuple[ScalarType, int]:
    index = reader.position
    kind = reader.type()
    if not isinstance(kind, ScalarType):
        raise reader.error("expected a scalar type", index, _BITS)
    return kind, index


def _integer_type(reader: PtoReader, owner: str) -> ScalarType:
    kind, index = _scalar_type(reader)
    if kind.name not in _SIGNLESS:
        raise reader.error(f"{owner} works on signless integers, not {reader.texts[index]}", index, _SIGNLESS)
    return kind


def _float_type(reader: PtoReader, owner: str) -> ScalarType:
    kind, index = _scalar_type(reader)
    if kind.name not in FLOATS:
        raise reader.error(f"{owner} works on floats, not {reader.texts[index]}", index, FLOATS)
    return kind


def _skip_flags(reader: PtoReader) -> None:
    """Go past `fastmath<...>` and `overflow<...>`, which allow a compiler what is not done here."""
    while reader.at("fastmath") or reader.at("overflow"):
        reader.position += 1
        reader.expect("<")
        reader.listed(lambda: reader.next_of(TokenKind.WORD, "a flag"), ">")


def _wrapped(value: int, bits: int) -> int:
    """Return the signed number of the low bits."""
    return ((value + (1 << (bits - 1))) & ((1 << bits) - 1)) - (1 << (bits - 1))


def _read_constant(reader: PtoReader, statement: NamedOperation) -> Operation:
    index = reader.position
    text = reader.texts[index]
    if text in ("true", "false"):
        reader.position += 1
        kind = _scalar_type(reader)[0] if reader.take(":") else _I1
        if kind != _I1:
            raise reader.error(f"'{text}' is of type i1", index, ("i1",))
        statement.define_one(reader, kind, int(text == "true"))
        return Constant(statement.results[0].base, text == "true", kind, span=statement.span)
    if text == "dense":
        raise reader.error("dense constants belong to vector-level programs and are not supported", index)
    reader.next_of(TokenKind.NUMBER, "a number, true or false")
    if len(text) > _LONGEST_NUMBER:
        raise reader.error("the number is too long", index)
    reader.expect(":")
    kind, type_index = _scalar_type(reader)
    if kind.name in FLOATS:
        value: int | float = _float_value(reader, index, kind)
        statement.define_one(reader, kind)
    elif kind.name in _SIGNLESS:
        value = constant_value(reader, index, kind)
        statement.define_one(reader, kind, value)
        value = bool(value) if kind == _I1 else value
    else:
        raise reader.error(f"a constant is signless, not {reader.texts[type_index]}", type_index, (*_SIGNLESS, *FLOATS))
    return Constant(statement.results[0].base, value, kind, span=statement.span)


def _float_value(reader: PtoReader, index: int, kind: ScalarType) -> int | float:
    """Return a decimal number as written, or a bit pattern as an int."""
    text = reader.texts[index]
    if "x" in text:
        pattern = int(text, 16)
        if not 0 <= pattern < 1 << bits_of(kind):
            raise reader.error(f"bit pattern {text} does not fit the {bits_of(kind)} bits of {kind.name}", index)
        return pattern
    if not _DECIMAL_FLOAT.fullmatch(text):
        raise reader.error(f"a constant of type {kind.name} needs a decimal point", index, (f"{text}.0",))
    value = float(text)
    if value - value != 0.0:
        raise reader.error(f"{text} is beyond every float type; write an infinity as its bit pattern", index)
    return value


def constant_value(reader: PtoReader, index: int, kind: ScalarType) -> int:
    """Return the number of a token as one of an integer type; ReadError if it is none."""
    text, bits = reader.texts[index], bits_of(kind)
    negative_hex = "x" in text and text.startswith("-")
    if negative_hex or not re.fullmatch(r"-?\d+|0x[0-9A-Fa-f]+", text):
        raise reader.error(f"a constant of type {kind.name} is a whole number, found {text}", index)
    value = int(text, 16 if "x" in text else 10)
    if not -(1 << (bits - 1)) <= value < 1 << bits:
        raise reader.error(f"{text} does not fit the {bits} bits of {kind.name}", index)
    return value & 1 if bits == 1 else _wrapped(value, bits)


def folded(operation: str, a: int | None, b: int | None, kind: ScalarType) -> int | None:
    """Return the result of an operation on constants if checks may rest on it, None if it or they are not known."""
    fold = _FOLDS[operation]
    if fold is None or a is None or b is None:
        return None
    known = fold(a, b)
    return known & 1 if kind == _I1 else _wrapped(known, bits_of(kind))


def _read_binary(reader: PtoReader, statement: NamedOperation) -> Operation:
    first = reader.operand()
    reader.expect(",")
    second = reader.operand()
    _skip_flags(reader)
    reader.expect(":")
    kind = _integer_type(reader, statement.name)
    operation = statement.operation
    reader.check_use(first, kind)
    reader.check_use(second, kind)
    known = folded(operation, reader.definition(first).constant, reader.definition(second).constant, kind)
    result = statement.define_one(reader, kind, known)
    return Arith(result, operation, (first[0], second[0]), kind, span=statement.span)


def _read_floats(reader: PtoReader, statement: NamedOperation) -> Operation:
    """Read an operation of two floats, or of three."""
    operation = statement.name.removeprefix("arith.")
    uses = [reader.operand()]
    for _ in range(2 if operation in FLOAT_TERNARY else 1):
        reader.expect(",")
        uses.append(reader.operand())
    _skip_flags(reader)
    reader.expect(":")
    kind = _float_type(reader, statement.name)
    for use in uses:
        reader.check_use(use, kind)
    result = statement.define_one(reader, kind)
    return Arith(result, operation, tuple(use[0] for use in uses), kind, span=statement.span)


def _read_unary(reader: PtoReader, statement: NamedOperation) -> Operation:
    operand = reader.operand()
    _skip_flags(reader)
    reader.expect(":")
    operation = statement.name.removeprefix("arith.")
    read = _integer_type if operation in INTEGER_UNARY else _float_type
    kind = read(reader, statement.name)
    reader.check_use(operand, kind)
    return Arith(statement.define_one(reader, kind), operation, (operand[0],), kind, span=statement.span)


def _read_power(reader: PtoReader, statement: NamedOperation) -> Operation:
    first = reader.operand()
    reader.expect(",")
    second = reader.operand()
    reader.expect(":")
    kind = _integer_type(reader, statement.name)
    for use in (first, second):
        reader.check_use(use, kind)
    return Arith(statement.define_one(reader, kind), POWER, (first[0], second[0]), kind, span=statement.span)


def _read_test(reader: PtoReader, statement: NamedOperation) -> Operation:
    operand = reader.operand()
    _skip_flags(reader)
    reader.expect(":")
    kind = _float_type(reader, statement.name)
    reader.check_use(operand, kind)
    return Arith(statement.define_one(reader, _I1), statement.name, (operand[0],), kind, span=statement.span)


def _refuse_inexact(reader: PtoReader, statement: NamedOperation) -> Operation:
    raise reader.error(
        f"{statement.name}: no definition gives the bits of its result", statement.index, (*FLOAT_UNARY, *FLOAT_BINARY)
    )


def _read_core_number(reader: PtoReader, statement: NamedOperation) -> Operation:
    """Read `%b = pto.get_block_idx [-> i64]`; some texts have a colon for the arrow."""
    kind, index = ScalarType("i64"), reader.position
    if reader.take("->") or reader.take(":"):
        index = reader.position
        kind = _integer_type(reader, statement.name)
    if kind.name != "i64":
        raise reader.error(f"{statement.name} is of type i64", index, ("i64",))
    return Arith(statement.define_one(reader, kind), statement.name, (), kind, span=statement.span)


def _read_select(reader: PtoReader, statement: NamedOperation) -> Operation:
    """Read `%c, %a, %b : T`; anything but a scalar, such as a pointer or a register, becomes an scf.if."""
    condition = reader.operand()
    reader.expect(",")
    first = reader.operand()
    reader.expect(",")
    second = reader.operand()
    reader.expect(":")
    kind = reader.type()
    reader.check_use(condition, _I1)
    reader.check_use(first, kind)
    reader.check_use(second, kind)
    result = statement.define_one(reader, kind)
    if not isinstance(kind, ScalarType):
        yes, no = (Yield((use[0],), (kind,), span=statement.span) for use in (first, second))
        return If(condition[0], (yes,), (no,), (result,), (kind,), span=statement.span)
    return Arith(result, "select", (condition[0], first[0], second[0]), kind, span=statement.span)


def _read_compare(reader: PtoReader, statement: NamedOperation) -> Operation:
    index = reader.position
    floats = statement.name == "arith.cmpf"
    legal = FLOAT_PREDICATES if floats else PREDICATES
    predicate = reader.next_of(TokenKind.WORD, "a predicate", legal)
    if predicate not in legal:
        raise reader.error(f"unknown predicate '{predicate}'", index, legal)
    reader.expect(",")
    first = reader.operand()
    reader.expect(",")
    second = reader.operand()
    _skip_flags(reader)
    reader.expect(":")
    kind = (_float_type if floats else _integer_type)(reader, statement.name)
    reader.check_use(first, kind)
    reader.check_use(second, kind)
    result = statement.define_one(reader, _I1)
    return Compare(result, predicate, (first[0], second[0]), kind, span=statement.span)


def _read_conversion(reader: PtoReader, statement: NamedOperation) -> Operation:
    operand = reader.operand()
    _skip_flags(reader)
    reader.expect(":")
    source, source_index = _scalar_type(reader)
    reader.expect("to")
    target, target_index = _scalar_type(reader)
    operation = CAST if statement.name == f"builtin.{CAST}" else statement.operation
    reader.check_use(operand, source, source_index)
    problem = _conversion_problem(operation, source, target)
    if problem:
        raise reader.error(f"{statement.name} {problem}", target_index)
    known = reader.definition(operand).constant if operation in ("index_cast", CAST) else None
    if known is not None:
        known = _wrapped(known, bits_of(target))
    result = statement.define_one(reader, target, known)
    return Convert(result, operation, operand[0], source, target, span=statement.span)


def _conversion_problem(operation: str, source: ScalarType, target: ScalarType) -> str | None:
    """Say what is wrong with the types of a conversion, None if nothing is."""
    pair = f"{source.name} to {target.name}"
    if operation == CAST:
        both = all(kind.name[0] in "iu" for kind in (source, target))
        return None if both else f"is between integers here, found {pair}"
    if operation == "bitcast":
        legal = bits_of(source) == bits_of(target) and _INDEX not in (source, target)
        return None if legal else f"keeps the width and takes no index, found {pair}"
    if operation in FLOAT_CONVERSIONS:
        return _float_conversion_problem(operation, source, target)
    if source.name not in _SIGNLESS or target.name not in _SIGNLESS:
        return f"works on signless integers, found {pair}"
    if operation in INDEX_CASTS:
        return (
            None if (source == _INDEX) != (target == _INDEX) else f"is between index and another integer, found {pair}"
        )
    if _INDEX in (source, target):
        return f"takes no index, found {pair}"
    if operation == "trunci":
        return None if bits_of(target) < bits_of(source) else f"needs a narrower result, found {pair}"
    return None if bits_of(target) > bits_of(source) else f"needs a wider result, found {pair}"


def _float_conversion_problem(operation: str, source: ScalarType, target: ScalarType) -> str | None:
    pair = f"{source.name} to {target.name}"
    if operation in ("extf", "truncf"):
        if source.name not in FLOATS or target.name not in FLOATS:
            return f"works on floats, found {pair}"
        wider = bits_of(target) - bits_of(source)
        good = wider > 0 if operation == "extf" else wider < 0
        return None if good else f"needs a {'wider' if operation == 'extf' else 'narrower'} result, found {pair}"
    whole, real = (target, source) if operation.startswith("fp") else (source, target)
    if real.name not in FLOATS or whole.name not in _SIGNLESS or whole == _INDEX:
        return f"is between a float and a signless integer other than index, found {pair}"
    return None


HANDLERS: dict[str, Handler] = {
    "arith.constant": _read_constant,
    **{f"arith.{operation}": _read_binary for operation in _FOLDS},
    "arith.select": _read_select,
    **dict.fromkeys(CORE_NUMBERS, _read_core_number),
    **dict.fromkeys(("arith.cmpi", "arith.cmpf"), _read_compare),
    **{f"arith.{operation}": _read_conversion for operation in (*CONVERSIONS, *FLOAT_CONVERSIONS)},
    f"builtin.{CAST}": _read_conversion,
    **{name if "." in name else f"arith.{name}": _read_floats for name in (*FLOAT_BINARY, *FLOAT_TERNARY)},
    **{name if "." in name else f"arith.{name}": _read_unary for name in (*FLOAT_UNARY, *INTEGER_UNARY)},
    POWER: _read_power,
    **dict.fromkeys(FLOAT_TESTS, _read_test),
    **{f"math.{operation}": _refuse_inexact for operation in _INEXACT},
}
"""Reader of every scalar operation."""


# Reading what the scalar unit does to memory: single elements, pointers, fences and cache operations.
#
# Source: docs/reference/pto.md section 7.9.

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


def _read_load(reader: PtoReader, statement: NamedOperation) -> Operation:
    base, offset = _place(reader)
    reader.expect(":")
    pointer, index = _any_pointer(reader, statement.name)
    reader.check_use(base, pointer, index)
    reader.expect("->")
    kind = _element(reader, statement.name, pointer.element)
    result = statement.define_one(reader, kind)
    return ScalarAccess("load_scalar", base[0], pointer, offset, result, kind, span=statement.span)


def _read_store(reader: PtoReader, statement: NamedOperation) -> Operation:
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


def _read_get(reader: PtoReader, statement: NamedOperation) -> Operation:
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


def _read_set(reader: PtoReader, statement: NamedOperation) -> Operation:
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


def _read_add_pointer(reader: PtoReader, statement: NamedOperation) -> Operation:
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


def _read_fence(reader: PtoReader, statement: NamedOperation) -> Operation:
    statement.no_result(reader)
    index = reader.position
    if reader.kinds[index] is not TokenKind.ATTRIBUTE:
        return CacheOperation("fence.barrier_all", span=statement.span)
    text = reader.next_of(TokenKind.ATTRIBUTE, _FENCE)
    if not text.startswith(_FENCE):
        raise reader.error(f"a fence has a scope, not {text}", index, (f"{_FENCE}<gm>",))
    return CacheOperation("fence.barrier_all", "".join(text.split()), span=statement.span)


def _read_invalidate(reader: PtoReader, statement: NamedOperation) -> Operation:
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


def _read_index_binary(reader: PtoReader, statement: NamedOperation) -> Operation:
    first = reader.operand()
    reader.expect(",")
    second = reader.operand()
    operation = BINARY[statement.operation]
    for use in (first, second):
        reader.check_use(use, _INDEX)
    known = folded(operation, reader.definition(first).constant, reader.definition(second).constant, _INDEX)
    result = statement.define_one(reader, _INDEX, known)
    return Arith(result, operation, (first[0], second[0]), _INDEX, span=statement.span)


def _read_index_compare(reader: PtoReader, statement: NamedOperation) -> Operation:
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


def _read_index_conversion(reader: PtoReader, statement: NamedOperation) -> Operation:
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


def _read_index_constant(reader: PtoReader, statement: NamedOperation) -> Operation:
    index = reader.position
    reader.next_of(TokenKind.NUMBER, "a whole number")
    value = constant_value(reader, index, _INDEX)
    return Constant(statement.define_one(reader, _INDEX, value), value, _INDEX, span=statement.span)


def _read_truth(reader: PtoReader, statement: NamedOperation) -> Operation:
    text = reader.next_of(TokenKind.WORD, "true or false", ("true", "false"))
    if text not in ("true", "false"):
        raise reader.error(f"'{text}' is not a truth value", reader.position - 1, ("true", "false"))
    return Constant(statement.define_one(reader, _I1, int(text == "true")), text == "true", _I1, span=statement.span)


def _read_size(_reader: PtoReader, statement: NamedOperation) -> Operation:
    """Read `index.sizeof`, the bits of an index: 64."""
    return Constant(statement.define_one(_reader, _INDEX, 64), 64, _INDEX, span=statement.span)


INDEX_READERS: dict[str, Handler] = {
    **{f"index.{operation}": _read_index_binary for operation in BINARY},
    "index.cmp": _read_index_compare,
    "index.casts": _read_index_conversion,
    "index.castu": _read_index_conversion,
    "index.constant": _read_index_constant,
    "index.bool.constant": _read_truth,
    "index.sizeof": _read_size,
}
"""Reader of every operation of the `index` dialect."""
