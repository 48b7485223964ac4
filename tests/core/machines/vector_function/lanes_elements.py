"""What functions make of single elements: exact fractions, rounded once (docs/reference/micro.md section 3.6).

Elements are codes. Nothing here is read from the product.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction
from math import isqrt

import oracle
from oracle import Value
from oracle_scalar import encode

CONTEXT = Context(prec=60, Emax=10**6, Emin=-(10**6))


def is_integer(name: str) -> bool:
    return name in oracle.INTS


def number(code: int, name: str) -> int:
    """The integer that a code stands for."""
    row = oracle.fmt(name)
    return code - (1 << row.bits) if row.signed and code >> (row.bits - 1) else code


def low(value: int, name: str) -> int:
    return value & ((1 << oracle.fmt(name).bits) - 1)


def nan(name: str) -> int:
    return oracle.fmt(name).nan


def infinity(name: str, *, negative: bool) -> int:
    row = oracle.fmt(name)
    return row.inf | (row.sign_code if negative else 0)


def rounded(exact: Fraction, name: str, *, zero_is_negative: bool = False) -> int:
    """The code nearest to a number, ties to even."""
    negative = exact < 0 or (exact == 0 and zero_is_negative)
    return encode(Value("finite", negative, abs(exact)), oracle.fmt(name), "rint", "special")


def exact(value: Value) -> Fraction:
    return -value.magnitude if value.negative else value.magnitude


def negated(code: int, name: str) -> int:
    return low(-number(code, name), name) if is_integer(name) else code ^ oracle.fmt(name).sign_code


def add(a: int, b: int, name: str) -> int:
    if is_integer(name):
        return low(a + b, name)
    one, two = oracle.decode(a, name), oracle.decode(b, name)
    if "nan" in (one.kind, two.kind):
        return nan(name)
    if "inf" in (one.kind, two.kind):
        if one.kind == two.kind and one.negative != two.negative:
            return nan(name)
        return infinity(name, negative=one.negative if one.kind == "inf" else two.negative)
    return rounded(exact(one) + exact(two), name, zero_is_negative=one.negative and two.negative)


def sub(a: int, b: int, name: str) -> int:
    if is_integer(name):
        return low(a - b, name)
    return add(a, negated(b, name), name)


def mul(a: int, b: int, name: str) -> int:
    if is_integer(name):
        return low(a * b, name)
    one, two = oracle.decode(a, name), oracle.decode(b, name)
    kinds, negative = {one.kind, two.kind}, one.negative != two.negative
    zero = any(each.kind == "finite" and each.magnitude == 0 for each in (one, two))
    if "nan" in kinds or ("inf" in kinds and zero):
        return nan(name)
    if "inf" in kinds:
        return infinity(name, negative=negative)
    return rounded(exact(one) * exact(two), name, zero_is_negative=negative)


def div(a: int, b: int, name: str) -> int:
    one, two = oracle.decode(a, name), oracle.decode(b, name)
    negative = one.negative != two.negative
    if "nan" in (one.kind, two.kind) or one.kind == two.kind == "inf":
        return nan(name)
    if one.kind == "inf":
        return infinity(name, negative=negative)
    if two.kind == "inf":
        return rounded(Fraction(0), name, zero_is_negative=negative)
    if two.magnitude == 0:
        return nan(name) if one.magnitude == 0 else infinity(name, negative=negative)
    return rounded(exact(one) / exact(two), name, zero_is_negative=negative)


def sqrt(code: int, name: str) -> int:
    value = oracle.decode(code, name)
    if value.kind == "finite" and value.magnitude == 0:
        return code
    if value.kind == "nan" or value.negative:
        return nan(name)
    if value.kind == "inf":
        return code
    scaled = value.magnitude * 4**300
    root = isqrt(scaled.numerator // scaled.denominator)
    inexact = root * root != scaled
    return rounded(Fraction(2 * root + inexact, 2**301), name)


def transcendental(function: str, code: int, name: str) -> int | None:
    """Exponential or logarithm to 60 digits, rounded; None: NaN."""
    value = oracle.decode(code, name)
    if value.kind == "nan":
        return None
    if function == "exp":
        if value.kind == "inf":
            return 0 if value.negative else code
        if value.magnitude > 2000:
            return 0 if value.negative else infinity(name, negative=False)
        return rounded(Fraction(CONTEXT.exp(decimal(exact(value)))), name)
    if value.kind == "finite" and value.magnitude == 0:
        return infinity(name, negative=True)
    if value.negative:
        return None
    return code if value.kind == "inf" else rounded(Fraction(CONTEXT.ln(decimal(exact(value)))), name)


def decimal(value: Fraction) -> Decimal:
    return CONTEXT.divide(Decimal(value.numerator), Decimal(value.denominator))


def is_nan(code: int, name: str) -> bool:
    return not is_integer(name) and oracle.decode(code, name).kind == "nan"


def key(code: int, name: str) -> tuple[int, Fraction, bool]:
    """A number in the order in which -inf < finite < inf and -0 < +0."""
    if is_integer(name):
        return (0, Fraction(number(code, name)), True)
    value = oracle.decode(code, name)
    if value.kind == "inf":
        return (-1 if value.negative else 1, Fraction(0), True)
    return (0, exact(value), not value.negative)


def extreme(a: int, b: int, name: str, *, largest: bool) -> int:
    """NaN wins, +0 is above -0."""
    if is_nan(a, name) or is_nan(b, name):
        return nan(name)
    above = key(b, name) > key(a, name)
    return b if above == largest else a


def absolute(code: int, name: str) -> int:
    return low(abs(number(code, name)), name) if is_integer(name) else code & ~oracle.fmt(name).sign_code


def is_positive(code: int, name: str) -> bool:
    return not is_nan(code, name) and key(code, name)[:2] > (0, Fraction(0))


def relu(code: int, name: str) -> int:
    return nan(name) if is_nan(code, name) else code if is_positive(code, name) else 0


def leaky(code: int, factor: int, name: str) -> int:
    """The sign bit decides, of zeros too."""
    if is_nan(code, name):
        return nan(name)
    return mul(code, factor, name) if code & oracle.fmt(name).sign_code else code


def fused(before: int, a: int, b: int, name: str) -> int:
    """before + a * b, rounded once."""
    if is_integer(name):
        return low(before + a * b, name)
    values = [oracle.decode(code, name) for code in (before, a, b)]
    sign = values[1].negative != values[2].negative
    if any(value.kind != "finite" for value in values):
        product = mul(a, b, name)
        if all(value.kind == "finite" for value in values[1:]):  # an infinite sum of a finite product
            product = rounded(Fraction(0), name)
        return add(before, product, name)
    first, one, two = map(exact, values)
    return rounded(first + one * two, name, zero_is_negative=values[0].negative and sign)


def compare(word: str, a: int, b: int, name: str) -> bool:
    if is_nan(a, name) or is_nan(b, name):
        return word == "ne"
    rules: dict[str, Callable[[object, object], bool]] = {
        "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt,
        "ge": operator.ge,
    }  # fmt: skip
    return rules[word](key(a, name)[:2], key(b, name)[:2])


def shift(function: str, a: int, amount: int, name: str) -> int:
    """A shift by less than the width; `shr` keeps the sign of signed integers."""
    return low(number(a, name) << amount if function == "shl" else number(a, name) >> amount, name)
