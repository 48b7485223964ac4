"""Scalar arithmetic on floats: IEEE 754, rounding to nearest, ties to even; infinities and NaN are results.

Operands are values of their type, held as Python floats. Sums, products, quotients and roots of types of up to 32 bits
are computed in f64 and rounded once more, which cannot change them: 53 bits are at least twice 24 and two more.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from castsim.isa.errors import ReadError
from castsim.isa.formats import format_named
from castsim.numerics import abstract_policy, cast_codes

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
"""Answer to a float that an integer type cannot hold: the nearest integer that it can, 0 for NaN."""


def width_of(kind: str) -> int:
    """Return the bits of a scalar type; `index` has 64."""
    return 64 if kind == "index" else int(kind.lstrip("bfiu"))


def bits_of(value: int | float, kind: str) -> int:
    """Return the code of a value in a scalar type; a float is rounded to nearest, ties to even."""
    if kind in FLOATS:
        wide, fmt = format_named("f64"), format_named(kind)
        (code,) = struct.unpack("<Q", struct.pack("<d", value))
        if kind == "f64":
            return int(code)
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
    """Evaluate a conversion from or to a float; `saturates` is asked about what an integer type cannot hold.

    Raises:
        ReadError: NaN or a value beyond the integer type, unless that saturates.
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
    text = f"arith.{operation}: {value} of type {from_kind} is beyond {to_kind}, which leaves the result undefined"
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


def _maximum(a: float, b: float) -> float:
    return math.nan if math.isnan(a) or math.isnan(b) else max(a, b, key=_key)


def _minimum(a: float, b: float) -> float:
    return math.nan if math.isnan(a) or math.isnan(b) else min(a, b, key=_key)


def _one_number(a: float, b: float) -> float | None:
    """Return the other one if one is NaN."""
    return b if math.isnan(a) else a if math.isnan(b) else None


def _maximum_number(a: float, b: float) -> float:
    found = _one_number(a, b)
    return max(a, b, key=_key) if found is None else found


def _minimum_number(a: float, b: float) -> float:
    found = _one_number(a, b)
    return min(a, b, key=_key) if found is None else found


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
    """Return a * b + c, of values of a type, rounded so that rounding it to the type rounds the exact sum once."""
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


def _root(value: float) -> float:
    return math.nan if value < 0 else math.sqrt(value)


_ORDER: dict[str, Callable[[float, float], bool]] = {
    "eq": lambda a, b: a == b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "ne": lambda a, b: a != b,
}

_OPERATIONS: dict[str, Callable[..., float]] = {
    "addf": lambda a, b: a + b,
    "subf": lambda a, b: a - b,
    "mulf": lambda a, b: a * b,
    "divf": _quotient,
    "remf": _remainder,
    "maximumf": _maximum,
    "minimumf": _minimum,
    "maxnumf": _maximum_number,
    "minnumf": _minimum_number,
    "negf": lambda a: -a,
    "math.copysign": math.copysign,
    "math.absf": abs,
    "math.sqrt": _root,
    "math.ceil": _whole(math.ceil),
    "math.floor": _whole(math.floor),
    "math.trunc": _whole(math.trunc),
    "math.round": _whole(_half_away),
    "math.roundeven": _whole(round),
}


def is_of_class(operation: str, value: int | float, kind: str) -> bool:
    """Return what `math.isnan`, `isinf`, `isfinite` or `isnormal` says of a value of a float type."""
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
