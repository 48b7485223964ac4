"""Scalar arithmetic of `.pto` programs: the values that decide the path or an address.

Integers are stored modulo 2^width (`index` has 64 bits, docs/reference/pto.md section 7.6) and read as signed. Every
value also has its dependence on loops of which only some trips are walked (`rerolling.LoopDependence`).
"""

from __future__ import annotations

import math
import operator
import struct
import sys
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import partial
from math import gcd

import numpy as np

from castsim.execution.interpreter.rerolling import Bounds, DependentScalar, LoopDependence, affine, unknown
from castsim.isa.dataclass import replace
from castsim.isa.errors import ReadError, Span
from castsim.isa.formats import format_named
from castsim.isa.pto import program as pto
from castsim.isa.pto.pto_scalars import (
    CAST,
    FLOAT_BINARY,
    FLOAT_CONVERSIONS,
    FLOAT_TERNARY,
    FLOAT_TESTS,
    FLOAT_UNARY,
    INTEGER_UNARY,
    POWER,
    UNSIGNED,
)
from castsim.numerics.cast import cast_codes
from castsim.numerics.policy import abstract_policy

# Scalar arithmetic on floats: IEEE 754, rounding to nearest, ties to even; infinities and NaN are results.
#
# Operands are values of their type, held as Python floats. Sums, products, quotients and roots of types of up to 32
# bits are computed in f64 and rounded once more, which cannot change them: 53 bits are at least twice 24 and two more.

# Integers of a fixed number of bits.


def signed(value: int, width: int) -> int:
    """Return the low `width` bits of `value` read as two's complement; one bit is read as 0 or 1."""
    value &= (1 << width) - 1
    return value - (1 << width) if width > 1 and value >> (width - 1) else value


def unsigned(value: int, width: int) -> int:
    """Return the low `width` bits of `value` read as unsigned."""
    return value & ((1 << width) - 1)


_CODES = {"f16": ("<e", "<H"), "f32": ("<f", "<I"), "f64": ("<d", "<Q")}
"""struct codes of a float and of the integer of its width; bf16 is the upper half of f32."""

FLOATS = (*_CODES, "bf16")

SATURATE = "saturate"
"""Handler for a float beyond an integer type: the nearest integer of the type, 0 for NaN."""


def width_of(kind: str) -> int:
    """Return the bit width of a scalar type; `index` has 64."""
    return 64 if kind == "index" else int(kind.lstrip("bfiu"))


def bits_of(value: int | float, kind: str) -> int:
    """Return the code of a value in a scalar type; a float is rounded to nearest, ties to even."""
    if kind in FLOATS:
        if kind == "f64" or (kind in _CODES and math.isfinite(value)):
            as_float, as_int = _CODES[kind]
            try:
                return int(struct.unpack(as_int, struct.pack(as_float, float(value)))[0])
            except OverflowError:  # it rounds to infinity
                pass
        wide, fmt = format_named("f64"), format_named(kind)
        (code,) = struct.unpack("<Q", struct.pack("<d", value))
        return int(cast_codes(np.array([code], "<u8"), wide, fmt, abstract_policy(wide, fmt))[0])
    return unsigned(int(value), width_of(kind))


def from_bits(bits: int, kind: str) -> int | float:
    """Return the value of a code."""
    if kind == "bf16":
        return from_bits(bits << 16, "f32")
    if kind in _CODES:
        as_float, as_int = _CODES[kind]
        return float(struct.unpack(as_float, struct.pack(as_int, bits))[0])
    return signed(bits, width_of(kind))


def rounded(value: int | float, kind: str) -> float:
    """Return the value of a float type that is nearest, ties to even."""
    if isinstance(value, int):
        value = _from_integer(value, kind)
    if math.isnan(value) or kind == "f64":
        return value
    return float(from_bits(bits_of(value, kind), kind))


def float_arithmetic(operation: str, operands: list[int | float], kind: str) -> float:
    """Evaluate an operation of floats of one type: `addf`, `negf`, `math.sqrt`, ... ."""
    values = [rounded(value, kind) for value in operands]
    if operation == "math.fma":
        return rounded(_fused(kind, *values), kind)
    return rounded(_OPERATIONS[operation](*values), kind)


def float_comparison(predicate: str, left: int | float, right: int | float, kind: str) -> bool:
    """Evaluate `arith.cmpf`: ordered predicates are false of NaN, unordered ones true."""
    a, b = rounded(left, kind), rounded(right, kind)
    if predicate in ("false", "true"):
        return predicate == "true"
    apart = math.isnan(a) or math.isnan(b)
    if predicate in ("ord", "uno"):
        return apart == (predicate == "uno")
    return predicate[0] == "u" if apart else _ORDER[predicate[1:]](a, b)


def float_conversion(
    operation: str, value: int | float, from_kind: str, to_kind: str, saturates: Callable[[str], bool]
) -> int | float:
    """Return the result of a conversion from or to a float; `saturates` handles floats that an integer type cannot
    represent.

    Raises:
        ReadError: NaN or a value beyond the integer type, unless the conversion saturates.
    """
    if operation in ("extf", "truncf"):
        return rounded(rounded(value, from_kind), to_kind)
    if operation in ("sitofp", "uitofp"):
        width = width_of(from_kind)
        whole = unsigned(int(value), width) if operation == "uitofp" else int(value)
        return rounded(-whole if width == 1 and operation == "sitofp" else whole, to_kind)
    return _to_integer(operation, rounded(value, from_kind), (from_kind, to_kind), saturates)


def _to_integer(operation: str, value: float, kinds: tuple[str, str], saturates: Callable[[str], bool]) -> int:
    from_kind, to_kind = kinds
    width, is_signed = width_of(to_kind), operation == "fptosi"
    low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if is_signed else (0, (1 << width) - 1)
    if math.isfinite(value) and low <= math.trunc(value) <= high:
        return signed(math.trunc(value), width)
    text = f"arith.{operation}: {value} of type {from_kind} is out of range for {to_kind}, so the result is undefined"
    if saturates(text):
        return signed(0 if math.isnan(value) else high if value > 0 else low, width)
    raise ReadError(text, legal=(f"{low} .. {high}", "--option scalar_float_to_integer=saturate"))


def _from_integer(value: int, kind: str) -> float:
    """Return an integer rounded to odd where f64 cannot hold it, so that rounding it again rounds it once."""
    if kind == "f64" or abs(value) < 1 << 53:
        return float(value)
    shift = abs(value).bit_length() - 54
    kept = abs(value) >> shift
    kept |= int(kept << shift != abs(value))
    # 54 bits with the lowest set would round again: the lowest of 53 takes its place.
    kept = (kept >> 1) | (kept & 1)
    return math.copysign(math.ldexp(kept, shift + 1), value)


def _quotient(a: float, b: float) -> float:
    if b:
        return a / b
    if not a or math.isnan(a):
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)


def _remainder(a: float, b: float) -> float:
    """The remainder of a division truncated toward zero, as C's fmod."""
    if math.isinf(a) or not b or math.isnan(a) or math.isnan(b):
        return math.nan
    return math.fmod(a, b)


def _key(value: float) -> tuple[float, float]:
    """Order -0 below +0."""
    return value, math.copysign(1.0, value)


def _choosing(choose: Callable[..., float], *, of_numbers: bool) -> Callable[[float, float], float]:
    """Return a function that selects the larger or smaller one: with one NaN the NaN, or (`of_numbers`) the number."""

    def apply(a: float, b: float) -> float:
        if not math.isnan(a) and not math.isnan(b):
            return choose(a, b, key=_key)
        return math.nan if not of_numbers else b if math.isnan(a) else a

    return apply


def _whole(rule: Callable[[float], int]) -> Callable[[float], float]:
    """Return a rounding to integers that keeps the sign of zero, infinities and NaN."""

    def apply(value: float) -> float:
        if not math.isfinite(value) or abs(value) >= 1 << 53:
            return value
        return math.copysign(float(rule(value)), value)

    return apply


def _half_away(value: float) -> int:
    whole = math.trunc(value)
    return whole + (abs(value - whole) >= 0.5) * (1 if value > 0 else -1)


def _fused(kind: str, a: float, b: float, c: float) -> float:
    """Return a * b + c of values of a type, rounded such that rounding to the type equals one rounding of the exact
    sum."""
    exact = None
    if all(map(math.isfinite, (a, b, c))):
        exact = Fraction(a) * Fraction(b) + Fraction(c)
    if not exact:
        return a * b + c  # infinities, NaN, and zeros with their signs: no rounding takes place
    try:
        near = float(exact)
    except OverflowError:
        return math.copysign(math.inf, exact)
    (code,) = struct.unpack("<Q", struct.pack("<d", near))
    if kind == "f64" or Fraction(near) == exact or code & 1:
        return near
    return math.nextafter(near, math.inf if exact > Fraction(near) else -math.inf)  # rounded to odd


_ORDER: dict[str, Callable[[float, float], bool]] = {
    name: getattr(operator, name) for name in ("eq", "gt", "ge", "lt", "le", "ne")
}

_OPERATIONS: dict[str, Callable[..., float]] = {
    "addf": lambda a, b: a + b,
    "subf": lambda a, b: a - b,
    "mulf": lambda a, b: a * b,
    "divf": _quotient,
    "remf": _remainder,
    "maximumf": _choosing(max, of_numbers=False),
    "minimumf": _choosing(min, of_numbers=False),
    "maxnumf": _choosing(max, of_numbers=True),
    "minnumf": _choosing(min, of_numbers=True),
    "negf": lambda a: -a,
    "math.copysign": math.copysign,
    "math.absf": abs,
    "math.sqrt": lambda value: math.nan if value < 0 else math.sqrt(value),
    "math.ceil": _whole(math.ceil),
    "math.floor": _whole(math.floor),
    "math.trunc": _whole(math.trunc),
    "math.round": _whole(_half_away),
    "math.roundeven": _whole(round),
}


def is_of_class(operation: str, value: int | float, kind: str) -> bool:
    """Return the result of `math.isnan`, `isinf`, `isfinite` or `isnormal` for a value of a float type."""
    match operation:
        case "math.isnan":
            return math.isnan(value)
        case "math.isinf":
            return math.isinf(value)
        case "math.isfinite":
            return math.isfinite(value)
        case _:
            least = {"f16": -14, "f32": -126, "bf16": -126, "f64": -1022}[kind]
            return math.isfinite(value) and abs(value) >= math.ldexp(1.0, least)


# What scalar operations make of values that depend on loops: which results are affine, which may become so.
#
# A quotient or remainder by a constant is affine where the slopes are multiples of the divisor, and so are bits of a
# number where they are multiples of the next power of two. Otherwise enough units walked together make them so.
#
# A value counts as affine only where no wrap-around stands behind it, and as a dividend only where it is not negative.
# That is asked at every unit walked: what holds at both ends of a range holds everywhere in it.

_QUOTIENTS = ("divui", "divsi", "shrui", "shrsi")
_AFFINE_DIVISIONS = (*_QUOTIENTS, "remui", "remsi")
_BITWISE = ("andi", "ori", "xori")
_EXTREMES = {"minsi": ("slt", True), "maxsi": ("slt", False), "minui": ("ult", True), "maxui": ("ult", False)}
"""The smaller or larger of two: the deciding comparison, and whether the smaller is selected."""


def arithmetic_result(
    operation: str, left: DependentScalar, right: DependentScalar, width: int, value: int, loops: LoopDependence
) -> DependentScalar:
    """Return the `value` of an operation on two integers of `width` bits, one of which depends on a loop."""
    if left.periods is not None or right.periods is not None:
        return unknown(value, (left, right))
    result: DependentScalar | None = None
    if operation in ("addi", "subi"):
        sign = 1 if operation == "addi" else -1
        result = reduced(int(left.value) + sign * int(right.value), _sum(left, right, sign), width)
    elif operation in ("muli", "shli"):
        result = _product(operation, left, right, width)
    elif operation in _AFFINE_DIVISIONS:
        result = _division(operation, left, right, width, value)
    elif operation in _BITWISE:
        result = _bits(operation, left, right, value)
    elif operation in _EXTREMES:
        result = _extreme(operation, left, right, width, loops)
    return unknown(value, (left, right)) if result is None else result


def comparison_result(
    predicate: str, left: DependentScalar, right: DependentScalar, width: int, value: int, loops: LoopDependence
) -> DependentScalar:
    """Return the truth `value` of a comparison of two integers of `width` bits, one of which depends on a loop.

    It is constant if it stays unchanged up to some unit; the loop is then cut there.
    """
    if left.periods is not None or right.periods is not None:
        return unknown(value, (left, right))
    slopes = _sum(left, right, -1)
    if predicate in UNSIGNED:
        if min(left.value, right.value) < 0:
            return unknown(value, (left, right))
        predicate = UNSIGNED[predicate]
    if width == 1:
        return unknown(value, (left, right))
    difference = int(left.value) - int(right.value)
    if not slopes or loops.stays(difference, slopes, _bounds(predicate, difference)):
        return DependentScalar(value)
    return DependentScalar(value, None, dict.fromkeys(slopes, 0))


def reduced(exact: int, slopes: Mapping[int, int], width: int) -> DependentScalar:
    """Return the low bits of an affine value; a wrapped value is no longer affine."""
    kept, modulus = signed(exact, width), 1 << width
    if all(slope % modulus == 0 for slope in slopes.values()):
        return DependentScalar(kept)
    if kept == exact and width > 1:
        return affine(kept, slopes)
    return DependentScalar(kept, None, _periods(slopes, modulus))


def _periods(slopes: Mapping[int, int], modulus: int) -> Mapping[int, int]:
    """Return the number of units that make every slope a multiple of `modulus`, for the loops in which it is not."""
    return {loop: modulus // gcd(slope, modulus) for loop, slope in slopes.items() if slope % modulus}


def _sum(left: DependentScalar, right: DependentScalar, sign: int) -> dict[int, int]:
    """Return the slopes of a sum or difference, without those that cancel."""
    slopes = dict(left.slopes or {})
    for loop, slope in (right.slopes or {}).items():
        slopes[loop] = slopes.get(loop, 0) + sign * slope
    return {loop: slope for loop, slope in slopes.items() if slope}


def _product(operation: str, left: DependentScalar, right: DependentScalar, width: int) -> DependentScalar | None:
    if operation == "muli" and left.constant:
        left, right = right, left
    if not right.constant:
        return None
    factor = int(right.value)
    if operation == "shli":
        if not 0 <= factor < width:
            return None
        factor = 1 << factor
    return reduced(int(left.value) * factor, {loop: slope * factor for loop, slope in _slopes(left)}, width)


def _division(
    operation: str, left: DependentScalar, right: DependentScalar, width: int, value: int
) -> DependentScalar | None:
    if not right.constant or left.value < 0:
        return None
    divisor = int(right.value)
    if operation in ("shrui", "shrsi"):
        if not 0 <= divisor < width:
            return None
        divisor = 1 << divisor
    if divisor <= 0:
        return None
    slopes = dict(_slopes(left))
    periods = _periods(slopes, divisor)
    if periods:
        return DependentScalar(value, None, periods)
    if operation not in _QUOTIENTS:
        return DependentScalar(value)
    return affine(value, {loop: slope // divisor for loop, slope in slopes.items()})


def _bits(operation: str, left: DependentScalar, right: DependentScalar, value: int) -> DependentScalar | None:
    """Return the result if a constant changes or selects only the bits below its highest one; slopes may be multiples
    of higher bits."""
    if left.constant:
        left, right = right, left
    if not right.constant or right.value < 0:
        return None
    slopes = dict(_slopes(left))
    periods = _periods(slopes, 1 << int(right.value).bit_length())
    if periods:
        return DependentScalar(value, None, periods)
    return DependentScalar(value) if operation == "andi" else affine(value, slopes)


def _extreme(
    operation: str, left: DependentScalar, right: DependentScalar, width: int, loops: LoopDependence
) -> DependentScalar | None:
    """Return the smaller or larger of two, which is one of them up to some unit."""
    is_less, wants_less = _EXTREMES[operation]
    order = comparison_result(is_less, left, right, width, int(left.value < right.value), loops)
    if not order.constant:
        return None
    return left if bool(order.value) == wants_less else right


def _slopes(scalar: DependentScalar) -> list[tuple[int, int]]:
    return list((scalar.slopes or {}).items())


def _bounds(predicate: str, difference: int) -> Bounds:
    """Return bounds of a difference within which a comparison keeps its result."""
    if predicate in ("eq", "ne"):
        return (0, 0) if difference == 0 else (1, None) if difference > 0 else (None, -1)
    least = 0 if predicate in ("slt", "sge") else 1
    return (least, None) if difference >= least else (None, least - 1)


_DIVISIONS = ("divsi", "remsi", "divui", "remui", "ceildivsi", "ceildivui", "floordivsi")

_OF_FLOATS = frozenset((*FLOAT_UNARY, *FLOAT_BINARY, *FLOAT_TERNARY))

_PREDICATES = {name if name in ("eq", "ne") else f"s{name}": test for name, test in _ORDER.items()}


def constant(value: int | float, kind: str) -> int | float:
    """Return the value of a constant; an integer with a float type is a bit pattern."""
    is_pattern = not isinstance(value, float) and kind in FLOATS
    return from_bits(int(value), kind) if is_pattern else value


def argument_value(name: str, value: int | float, kind: str) -> int | float:
    """Return the value of a scalar argument of type `kind`; integers may be given as signed or as unsigned.

    Raises:
        ReadError: the value is not an integer, or the type cannot represent it.
    """
    if kind in FLOATS:
        if isinstance(value, int) and abs(value) > sys.float_info.max:
            raise ReadError(f"argument %{name} is {kind}; a number of {len(str(abs(value)))} digits is out of range")
        return value
    width = width_of(kind)
    low = 0 if kind[0] == "u" or width == 1 else -(1 << (width - 1))
    if (isinstance(value, float) and not value.is_integer()) or not low <= value < 1 << width:
        raise ReadError(
            f"argument %{name} is {kind}, not {value}", legal=(f"whole numbers {low} .. {(1 << width) - 1}",)
        )
    return signed(int(value), width)


Node = pto.Arith | pto.Compare | pto.Convert


Beyond = Callable[[pto.Convert, str], bool]
"""Handler for floats beyond an integer type; it returns whether the conversion saturates."""


def evaluate(
    node: Node, scalar_of: Callable[[str], DependentScalar], loops: LoopDependence, beyond: Beyond
) -> DependentScalar:
    """Return the result of a scalar operation whose operands `scalar_of` finds by name.

    Raises:
        ReadError: division by zero, or a float beyond an integer type. DependentError: a divisor depends on a loop.
    """
    if isinstance(node, pto.Arith) and not node.operands:
        return scalar_of(node.operation)  # a number of the core
    names = (node.operand,) if isinstance(node, pto.Convert) else node.operands
    operands = [scalar_of(name) for name in names]
    result = _evaluated(node, operands, loops, beyond)
    if not any(operand.reads for operand in operands):
        return result
    return replace(result, reads=frozenset[int]().union(*(operand.reads for operand in operands)))


def _evaluated(node: Node, operands: list[DependentScalar], loops: LoopDependence, beyond: Beyond) -> DependentScalar:
    if isinstance(node, pto.Convert):
        source, target = node.from_type.name, node.to_type.name
        if node.operation in FLOAT_CONVERSIONS:
            saturates = partial(beyond, node)
            converted = float_conversion(node.operation, operands[0].value, source, target, saturates)
            return _of_one(converted, operands[0])
        return convert(node.operation, operands[0], source, target)
    kind = node.type.name
    if isinstance(node, pto.Compare):
        if kind in FLOATS:
            return _of(int(float_comparison(node.predicate, operands[0].value, operands[1].value, kind)), operands)
        return compare(node.predicate, operands[0], operands[1], width_of(kind), loops)
    if node.operation in _OF_FLOATS:
        return _of(float_arithmetic(node.operation, [scalar.value for scalar in operands], kind), operands)
    if node.operation in FLOAT_TESTS:
        return _of_one(int(is_of_class(node.operation, operands[0].value, kind)), operands[0])
    width = width_of(kind) if kind not in FLOATS else 0
    if node.operation in INTEGER_UNARY:
        return _of_one(signed(_counted(node.operation, int(operands[0].value), width), width), operands[0])
    if node.operation == POWER:
        base, exponent = (int(operand.value) for operand in operands)
        return _of(signed(_power(base, exponent, width, node.span), width), operands)
    return arithmetic(node.operation, operands, width, node.span, loops)


def _power(base: int, exponent: int, width: int, span: Span) -> int:
    """Return a power modulo 2^width; negative exponents give the quotient of 1, truncated."""
    if exponent >= 0:
        return pow(base, exponent, 1 << width)
    if base == 0:
        raise ReadError(f"{POWER}: division by zero", span=span)
    return base ** (-exponent % 2) if abs(base) == 1 else 0


def _counted(operation: str, value: int, width: int) -> int:
    """Evaluate `math.absi`, or count bits: leading zeros, trailing zeros, ones."""
    bits = unsigned(value, width)
    match operation:
        case "math.absi":
            return abs(value)
        case "math.ctlz":
            return width - bits.bit_length()
        case "math.cttz":
            return (bits & -bits).bit_length() - 1 if bits else width
        case _:
            return bits.bit_count()


def compare(
    predicate: str, left: DependentScalar, right: DependentScalar, width: int, loops: LoopDependence | None = None
) -> DependentScalar:
    """Evaluate `arith.cmpi`. `loops` are those that operands depend on."""
    a, b = int(left.value), int(right.value)
    if predicate in UNSIGNED:
        a, b = unsigned(a, width), unsigned(b, width)
    elif width == 1:
        a, b = -a, -b  # the one bit of a truth value is its sign
    value = int(_PREDICATES[UNSIGNED.get(predicate, predicate)](a, b))
    if loops is None or (left.constant and right.constant):
        return DependentScalar(value)
    return comparison_result(predicate, left, right, width, value, loops)


def arithmetic(
    operation: str, operands: list[DependentScalar], width: int, span: Span, loops: LoopDependence | None = None
) -> DependentScalar:
    """Evaluate an integer operation of the `arith` dialect, modulo 2^width. `loops` are those that operands depend on.

    Raises:
        ReadError: division by zero.
        DependentError: a divisor depends on a loop: it may be zero in a trip that is not walked.
    """
    if operation == "select":
        condition, yes, no = operands
        chosen = yes if condition.value else no
        return chosen if condition.constant else unknown(chosen.value, operands)
    left, right = operands
    a, b = int(left.value), int(right.value)
    if operation in _DIVISIONS:
        if b == 0:
            raise ReadError(f"arith.{operation}: division by zero", span=span)
        if loops is not None and not right.constant:
            raise loops.refusal(right)
    value = signed(_integer(operation, a, b, width), width)
    if loops is None or (left.constant and right.constant):
        return DependentScalar(value)
    return arithmetic_result(operation, left, right, width, value, loops)


def _truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


_OF_SIGNED: dict[str, Callable[[int, int], int]] = {
    "addi": operator.add,
    "subi": operator.sub,
    "muli": operator.mul,
    "divsi": _truncated,
    "remsi": lambda a, b: a - b * _truncated(a, b),
    "ceildivsi": lambda a, b: -(-a // b),
    "floordivsi": operator.floordiv,
    "minsi": min,
    "maxsi": max,
}
_OF_UNSIGNED: dict[str, Callable[[int, int], int]] = {
    "divui": operator.floordiv,
    "remui": operator.mod,
    "ceildivui": lambda a, b: -(-a // b),
    "minui": min,
    "maxui": max,
    "andi": operator.and_,
    "ori": operator.or_,
    "xori": operator.xor,
}


def _integer(operation: str, a: int, b: int, width: int) -> int:
    """Shifts by the width or more give 0, or the sign for `shrsi` (MLIR leaves them undefined)."""
    if operation in _OF_SIGNED:
        return _OF_SIGNED[operation](a, b)
    ua, ub = unsigned(a, width), unsigned(b, width)
    if operation in _OF_UNSIGNED:
        return _OF_UNSIGNED[operation](ua, ub)
    match operation:
        case "shli":
            return ua << ub if ub < width else 0
        case "shrui":
            return ua >> ub if ub < width else 0
        case "shrsi":
            return a >> min(ub, width - 1)
        case _:
            raise AssertionError(f"the parser let arith.{operation} through")


def convert(operation: str, operand: DependentScalar, from_kind: str, to_kind: str) -> DependentScalar:
    """Evaluate a width or type change.

    `index_cast`, `extsi` and `trunci` sign-extend or truncate, `extui` and `index_castui` zero-extend, `bitcast` keeps
    the bits.
    """
    if operation == "bitcast":
        converted = from_bits(bits_of(operand.value, from_kind), to_kind)
        return _as_before(converted, operand) if from_kind[0] == to_kind[0] else _of_one(converted, operand)
    value = int(operand.value)
    if operation in ("extui", "index_castui") or (operation == CAST and from_kind[0] == "u"):
        value = unsigned(value, width_of(from_kind))
    elif width_of(from_kind) == 1:
        value = -value  # the one bit of a truth value is its sign
    if operand.slopes is None or value != operand.value or width_of(from_kind) == 1:
        return _of_one(signed(value, width_of(to_kind)), operand)
    return reduced(value, operand.slopes, width_of(to_kind))


def _of_one(value: int | float, operand: DependentScalar) -> DependentScalar:
    """Return a non-affine value computed from one operand."""
    return DependentScalar(value) if operand.constant else unknown(value, (operand,))


def _of(value: int | float, operands: list[DependentScalar]) -> DependentScalar:
    """Return a value computed from several operands in a way that is not affine."""
    return DependentScalar(value) if all(operand.constant for operand in operands) else unknown(value, operands)


def _as_before(value: int | float, operand: DependentScalar) -> DependentScalar:
    return DependentScalar(value, operand.slopes, operand.periods)
