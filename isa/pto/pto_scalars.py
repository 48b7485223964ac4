"""Reader of the scalar unit's operations: `arith`, `math` and `index`, and single elements of memory.

The list is closed (docs/reference/pto.md section 7.6, including castsim's extensions). The checks know results that
depend only on constants.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

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
    ScalarAccess,
    ScalarType,
    Yield,
)
from castsim.isa.pto.statement_forms import (
    FLOATS,
    INDEX,
    SCALAR_BITS,
    SIGNLESS,
    FormWord,
    StatementForm,
    StatementReading,
    handlers_of,
)
from castsim.isa.pto.statement_reader import Handler, NamedOperation, PtoReader
from castsim.isa.pto.types import format_type

_I1 = ScalarType("i1")

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
"""The unsigned comparisons, with the signed ones of the same order."""
PREDICATES = ("eq", "ne", *UNSIGNED.values(), *UNSIGNED)
INDEX_CASTS = ("index_cast", "index_castui")
CONVERSIONS = (*INDEX_CASTS, "extui", "extsi", "trunci", "bitcast")
CAST = "unrealized_conversion_cast"
"""A cast that remains between two dialects: a change of the signedness or width of integers."""
_FOLDS |= dict.fromkeys(("ceildivsi", "ceildivui", "floordivsi"))
FLOAT_BINARY = (
    "addf", "subf", "mulf", "divf", "remf", "maximumf", "minimumf", "maxnumf", "minnumf", "math.copysign",
)  # fmt: skip
FLOAT_UNARY = (
    "negf", "math.absf", "math.ceil", "math.floor", "math.trunc", "math.round", "math.roundeven", "math.sqrt",
)  # fmt: skip
FLOAT_TERNARY = ("math.fma",)
FLOAT_TESTS = ("math.isnan", "math.isinf", "math.isfinite", "math.isnormal")
"""Operations that return a truth value for a float."""
POWER = "math.ipowi"
"""The power of integers."""
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
"""The core numbers that a kernel can read, with the default answers of a single core (assumed)."""

_DECIMAL_FLOAT = re.compile(r"-?\d+(?:\.\d*(?:[eE][-+]?\d+)?|[eE][-+]?\d+)")
_LONGEST_NUMBER = 400  # characters; a double printed in full stays below


def bits_of(kind: ScalarType) -> int:
    """Return the width of a scalar; `index` has 64 bits."""
    return SCALAR_BITS[kind.name]


def _scalar_type(reader: PtoReader) -> tuple[ScalarType, int]:
    index = reader.position
    kind = reader.type()
    if not isinstance(kind, ScalarType):
        raise reader.error("expected a scalar type", index, SCALAR_BITS)
    return kind, index


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
            raise reader.error(f"'{text}' has type i1", index, ("i1",))
        statement.define_one(reader, kind, int(text == "true"))
        return Constant(statement.results[0].base, text == "true", kind, span=statement.span)
    if text == "dense":
        raise reader.error("dense constants are not supported in tile programs", index)
    reader.next_of(TokenKind.NUMBER, "a number, true or false")
    if len(text) > _LONGEST_NUMBER:
        raise reader.error("the number is too long", index)
    reader.expect(":")
    kind, type_index = _scalar_type(reader)
    if kind.name in FLOATS:
        value: int | float = _float_value(reader, index, kind)
        statement.define_one(reader, kind)
    elif kind.name in SIGNLESS:
        value = constant_value(reader, index, kind)
        statement.define_one(reader, kind, value)
        value = bool(value) if kind == _I1 else value
    else:
        raise reader.error(
            f"a constant must have a signless type, not {reader.texts[type_index]}", type_index, (*SIGNLESS, *FLOATS)
        )
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
        raise reader.error(f"{text} is too large for any float type; write an infinity as its bit pattern", index)
    return value


def constant_value(reader: PtoReader, index: int, kind: ScalarType) -> int:
    """Return the number of a token as one of an integer type; raise ReadError if it is none."""
    text, bits = reader.texts[index], bits_of(kind)
    negative_hex = "x" in text and text.startswith("-")
    if negative_hex or not re.fullmatch(r"-?\d+|0x[0-9A-Fa-f]+", text):
        raise reader.error(f"a constant of type {kind.name} must be an integer, found {text}", index)
    value = int(text, 16 if "x" in text else 10)
    if not -(1 << (bits - 1)) <= value < 1 << bits:
        raise reader.error(f"{text} does not fit the {bits} bits of {kind.name}", index)
    return value & 1 if bits == 1 else _wrapped(value, bits)


def _folded(operation: str, numbers: Sequence[int | None], kind: ScalarType) -> int | None:
    """Return the result of an operation on constants if checks may use it, None if it or they are unknown."""
    fold, (a, b) = _FOLDS[operation], numbers
    if fold is None or a is None or b is None:
        return None
    result = fold(a, b)
    return result & 1 if kind == _I1 else _wrapped(result, bits_of(kind))


def _arith(reading: StatementReading) -> None:
    """Store the operation under its name in `arith`, and its result if it is constant."""
    operation = reading.statement.name.removeprefix("arith.")
    reading.values["operation"] = operation
    if operation in _FOLDS:
        reading.known = _folded(operation, reading.constants("operands"), reading.values["type"])
    elif operation in FLOAT_TESTS:
        reading.result = _I1


def _index_arith(reading: StatementReading) -> None:
    """Read an operation of `index` as that of `arith` on the type index."""
    operation = BINARY[reading.statement.operation]
    reading.check_uses("operands", INDEX)
    reading.known = _folded(operation, reading.constants("operands"), INDEX)
    reading.values |= {"operation": operation, "type": INDEX}


def _arith_name(node: Arith) -> str:
    return node.operation if "." in node.operation else f"arith.{node.operation}"


def _refuse_inexact(reader: PtoReader, statement: NamedOperation) -> Operation:
    raise reader.error(f"{statement.name}: the result is not defined", statement.index, (*FLOAT_UNARY, *FLOAT_BINARY))


def _read_core_type(reading: StatementReading, _: str) -> ScalarType:
    """Read `[-> i64]`; some texts have a colon for the arrow."""
    reader, name = reading.reader, reading.statement.name
    if reader.take("->") or reader.take(":"):
        kind, index = _scalar_type(reader)
        if kind.name not in SIGNLESS:
            raise reader.error(f"{name} needs signless integers, not {reader.texts[index]}", index, SIGNLESS)
        if kind.name != "i64":
            raise reader.error(f"{name} must have type i64", index, ("i64",))
    return ScalarType("i64")


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


def _read_predicate(reading: StatementReading, _: str) -> str:
    reader, index = reading.reader, reading.reader.position
    legal = FLOAT_PREDICATES if reading.statement.name == "arith.cmpf" else PREDICATES
    predicate = reader.next_of(TokenKind.WORD, "a predicate", legal)
    if predicate not in legal:
        raise reader.error(f"unknown predicate '{predicate}'", index, legal)
    return predicate


def _compare(reading: StatementReading) -> None:
    if reading.statement.name == "index.cmp":
        reading.values["type"] = INDEX
        reading.check_uses("operands", INDEX)
    reading.result = _I1


def _convert(reading: StatementReading) -> None:
    """Reject types without such a conversion."""
    source, target = reading.values["from_type"], reading.values["to_type"]
    name = reading.statement.name
    reading.result = target
    if name.startswith("index."):
        reading.check_uses("operand", source)
        kinds = [kind.name for kind in (source, target) if isinstance(kind, ScalarType)]
        if len(kinds) != 2 or kinds.count("index") != 1 or not {*kinds} <= {*SIGNLESS}:
            message = f"{name} converts between index and another integer"
            raise reading.reader.error(message, reading.tokens["to_type"], SIGNLESS[1:])
        reading.values["operation"] = "index_cast" if name == "index.casts" else "index_castui"
        return
    operation = reading.values["operation"] = CAST if name == f"builtin.{CAST}" else reading.statement.operation
    reading.check_uses("operand", source, reading.tokens["from_type"])
    problem = _conversion_problem(operation, source, target)
    if problem:
        raise reading.reader.error(f"{name} {problem}", reading.tokens["to_type"])
    (constant,) = reading.constants("operand") if operation in ("index_cast", CAST) else (None,)
    if constant is not None:
        reading.known = _wrapped(constant, bits_of(target))


def _convert_name(node: Convert) -> str:
    return f"{'builtin' if node.operation == CAST else 'arith'}.{node.operation}"


def _conversion_problem(operation: str, source: ScalarType, target: ScalarType) -> str | None:
    """Return the error of a conversion's types; None if there is none."""
    pair = f"{source.name} to {target.name}"
    if operation == CAST:
        both = all(kind.name[0] in "iu" for kind in (source, target))
        return None if both else f"converts between integers here, found {pair}"
    if operation == "bitcast":
        legal = bits_of(source) == bits_of(target) and INDEX not in (source, target)
        return None if legal else f"cannot change the width or take an index, found {pair}"
    if operation in FLOAT_CONVERSIONS:
        return _float_conversion_problem(operation, source, target)
    if source.name not in SIGNLESS or target.name not in SIGNLESS:
        return f"needs signless integers, found {pair}"
    if operation in INDEX_CASTS:
        return (
            None
            if (source == INDEX) != (target == INDEX)
            else f"converts between index and another integer, found {pair}"
        )
    if INDEX in (source, target):
        return f"does not take an index, found {pair}"
    if operation == "trunci":
        return None if bits_of(target) < bits_of(source) else f"needs a narrower result, found {pair}"
    return None if bits_of(target) > bits_of(source) else f"needs a wider result, found {pair}"


def _float_conversion_problem(operation: str, source: ScalarType, target: ScalarType) -> str | None:
    pair = f"{source.name} to {target.name}"
    if operation in ("extf", "truncf"):
        if source.name not in FLOATS or target.name not in FLOATS:
            return f"needs floats, found {pair}"
        wider = bits_of(target) - bits_of(source)
        good = wider > 0 if operation == "extf" else wider < 0
        return None if good else f"needs a {'wider' if operation == 'extf' else 'narrower'} result, found {pair}"
    whole, real = (target, source) if operation.startswith("fp") else (source, target)
    if real.name not in FLOATS or whole.name not in SIGNLESS or whole == INDEX:
        return f"converts between a float and a signless integer other than index, found {pair}"
    return None


# Reading what the scalar unit does to memory: single elements, pointers, fences and cache operations.
#
# Source: docs/reference/pto.md section 7.9.

_FENCE = "#pto.fence_scope"


def _set_value(reading: StatementReading) -> None:
    """Reject a value of another type than the tile's elements; the tile follows it."""
    kind, index = reading.values["type"], reading.tokens["type"]
    if not isinstance(kind, ScalarType) or kind.name != reading.element:
        message = f"{reading.statement.name}: the value must have the element type {reading.element}"
        raise reading.reader.error(f"{message}, not {reading.reader.texts[index]}", index, (reading.element,))


def _read_fence(reader: PtoReader, statement: NamedOperation) -> Operation:
    statement.no_result(reader)
    index = reader.position
    if reader.kinds[index] is not TokenKind.ATTRIBUTE:
        return CacheOperation("fence.barrier_all", span=statement.span)
    text = reader.next_of(TokenKind.ATTRIBUTE, _FENCE)
    if not text.startswith(_FENCE):
        raise reader.error(f"expected the scope of the fence, found {text}", index, (f"{_FENCE}<gm>",))
    return CacheOperation("fence.barrier_all", "".join(text.split()), span=statement.span)


def _read_invalidate(reader: PtoReader, statement: NamedOperation) -> Operation:
    """Read `pto.cmo.cacheinvalid` and its operands, whose effect is not modelled."""
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
    """Return whether the next token belongs to the operation, instead of a result, name or end."""
    index = reader.position
    kind, text = reader.kinds[index], reader.texts[index]
    if kind is TokenKind.VALUE:
        return ":" not in text and reader.equals_behind(index) is None
    if kind is TokenKind.WORD:
        return "." not in text and text not in ("return", "call")
    return kind in (TokenKind.ATTRIBUTE, TokenKind.TYPE, TokenKind.NUMBER) or (
        kind is TokenKind.PUNCTUATION and (depth > 0 or text != "}")
    )


# Reading the `index` dialect: the operations of `arith` on the type index, without types in the text.
#
# They are kept as those of `arith` (docs/reference/pto.md section 7.6).

BINARY = {
    name: f"{name}i"
    for name in (
        *("add", "sub", "mul", "divs", "divu", "ceildivs", "ceildivu", "floordivs", "rems", "remu"),
        *("maxs", "maxu", "mins", "minu", "shl", "shrs", "shru", "and", "or", "xor"),
    )
}
"""The `arith` operation for each operation of `index`."""


def _read_index_constant(reader: PtoReader, statement: NamedOperation) -> Operation:
    index = reader.position
    reader.next_of(TokenKind.NUMBER, "a whole number")
    value = constant_value(reader, index, INDEX)
    return Constant(statement.define_one(reader, INDEX, value), value, INDEX, span=statement.span)


def _read_truth(reader: PtoReader, statement: NamedOperation) -> Operation:
    text = reader.next_of(TokenKind.WORD, "true or false", ("true", "false"))
    if text not in ("true", "false"):
        raise reader.error(f"'{text}' is not a boolean", reader.position - 1, ("true", "false"))
    return Constant(statement.define_one(reader, _I1, int(text == "true")), text == "true", _I1, span=statement.span)


def _read_size(_reader: PtoReader, statement: NamedOperation) -> Operation:
    """Read `index.sizeof`, the bits of an index: 64."""
    return Constant(statement.define_one(_reader, INDEX, 64), 64, INDEX, span=statement.span)


def _of_arith(*names: str) -> list[str]:
    return [name if "." in name else f"arith.{name}" for name in names]


FORMS = (
    StatementForm(
        "%result = NAME {type:core}", Arith, CORE_NUMBERS, _arith, name=_arith_name, operands=(),
        words={"core": FormWord(_read_core_type, lambda node, _: f"-> {format_type(node.type)}")},
    ),
    *(
        StatementForm(f"%result = NAME {form}", Arith, _of_arith(*names), _arith, name=_arith_name)
        for form, names in (
            ("%operands*2 {:flags} : $type:integer@operands", _FOLDS),
            ("%operands*2 : $type:integer@operands", (POWER,)),
            ("%operands*2 {:flags} : $type:float@operands", FLOAT_BINARY),
            ("%operands*3 {:flags} : $type:float@operands", FLOAT_TERNARY),
            ("%operands*1 {:flags} : $type:float@operands", (*FLOAT_UNARY, *FLOAT_TESTS)),
            ("%operands*1 {:flags} : $type:integer@operands", INTEGER_UNARY),
        )
    ),
    StatementForm("%result = NAME %operands*2", Arith, [f"index.{name}" for name in BINARY], _index_arith),
    *(
        StatementForm(
            f"%result = NAME {{predicate:predicate}}{form}", Compare, (name,), _compare,
            name=lambda node: "arith.cmpf" if node.type.name in FLOATS else "arith.cmpi",
            words={"predicate": FormWord(_read_predicate, lambda node, _: node.predicate)},
        )
        for form, name in (
            (", %operands*2 {:flags} : $type:integer@operands", "arith.cmpi"),
            (", %operands*2 {:flags} : $type:float@operands", "arith.cmpf"),
            ("(%operands*2)", "index.cmp"),
        )
    ),
    StatementForm(
        "%result = NAME %operand {:flags} : $from_type:scalar to $to_type:scalar", Convert,
        [f"builtin.{CAST}", *_of_arith(*CONVERSIONS, *FLOAT_CONVERSIONS)], _convert, name=_convert_name,
    ),
    StatementForm(
        "%result = NAME %operand : $from_type:any to $to_type:any", Convert, ("index.casts", "index.castu"), _convert
    ),
    StatementForm(
        "%value = pto.load_scalar %base[%offset:index] : $base_type:pointer=base -> $type:element",
        ScalarAccess, mnemonic="load_scalar",
    ),
    StatementForm(
        "pto.store_scalar %value, %base[%offset:index] : $base_type:pointer=base, $type:element@value",
        ScalarAccess, mnemonic="store_scalar",
    ),
    StatementForm(
        "%value = pto.tgetval ins(%base, %offset:index : $base_type:vec_tile=base, $:index) outs : $type:element",
        ScalarAccess, mnemonic="tgetval",
    ),
    StatementForm(
        "pto.tsetval ins(%offset:index, %value : $:index, $type:any=value) outs(%base : $base_type:vec_tile=base)",
        ScalarAccess, (), _set_value, mnemonic="tsetval",
    ),
    StatementForm("%result = pto.addptr %pointer, %offset:index : $type:pointer=pointer -> $type:same", AddPointer),
)  # fmt: skip
"""Spellings of scalar operations and accesses to memory."""

HANDLERS: dict[str, Handler] = {
    **handlers_of(FORMS),
    "arith.constant": _read_constant,
    "arith.select": _read_select,
    **{f"math.{operation}": _refuse_inexact for operation in _INEXACT},
    "pto.fence.barrier_all": _read_fence,
    "pto.cmo.cacheinvalid": _read_invalidate,
    "index.constant": _read_index_constant,
    "index.bool.constant": _read_truth,
    "index.sizeof": _read_size,
}
"""Readers of scalar operations, by name."""
