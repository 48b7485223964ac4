"""Reading the `arith` and `math` operations: constants, arithmetic, comparisons, changes of type.

A closed list (docs/reference/pto.md section 7.6, castsim's extensions included). Results that follow from constants
alone are known numbers to the checks.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from castsim.isa.pto.lexer import TokenKind
from castsim.isa.pto.program import Arith, Compare, Constant, Convert, If, Operation, ScalarType, Yield
from castsim.isa.pto.statement_reader import Handler, PtoReader, Statement

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


def _read_constant(reader: PtoReader, statement: Statement) -> Operation:
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


def _read_binary(reader: PtoReader, statement: Statement) -> Operation:
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


def _read_floats(reader: PtoReader, statement: Statement) -> Operation:
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


def _read_unary(reader: PtoReader, statement: Statement) -> Operation:
    operand = reader.operand()
    _skip_flags(reader)
    reader.expect(":")
    operation = statement.name.removeprefix("arith.")
    read = _integer_type if operation in INTEGER_UNARY else _float_type
    kind = read(reader, statement.name)
    reader.check_use(operand, kind)
    return Arith(statement.define_one(reader, kind), operation, (operand[0],), kind, span=statement.span)


def _read_power(reader: PtoReader, statement: Statement) -> Operation:
    first = reader.operand()
    reader.expect(",")
    second = reader.operand()
    reader.expect(":")
    kind = _integer_type(reader, statement.name)
    for use in (first, second):
        reader.check_use(use, kind)
    return Arith(statement.define_one(reader, kind), POWER, (first[0], second[0]), kind, span=statement.span)


def _read_test(reader: PtoReader, statement: Statement) -> Operation:
    operand = reader.operand()
    _skip_flags(reader)
    reader.expect(":")
    kind = _float_type(reader, statement.name)
    reader.check_use(operand, kind)
    return Arith(statement.define_one(reader, _I1), statement.name, (operand[0],), kind, span=statement.span)


def _refuse_inexact(reader: PtoReader, statement: Statement) -> Operation:
    raise reader.error(
        f"{statement.name}: no definition gives the bits of its result", statement.index, (*FLOAT_UNARY, *FLOAT_BINARY)
    )


def _read_core_number(reader: PtoReader, statement: Statement) -> Operation:
    """Read `%b = pto.get_block_idx [-> i64]`; some texts have a colon for the arrow."""
    kind, index = ScalarType("i64"), reader.position
    if reader.take("->") or reader.take(":"):
        index = reader.position
        kind = _integer_type(reader, statement.name)
    if kind.name != "i64":
        raise reader.error(f"{statement.name} is of type i64", index, ("i64",))
    return Arith(statement.define_one(reader, kind), statement.name, (), kind, span=statement.span)


def _read_select(reader: PtoReader, statement: Statement) -> Operation:
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


def _read_compare(reader: PtoReader, statement: Statement) -> Operation:
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


def _read_conversion(reader: PtoReader, statement: Statement) -> Operation:
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
