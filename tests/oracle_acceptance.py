"""What TOSA accepts, judged one result at a time in rational arithmetic from the wording of the specification.

Sources: type_conversion.adoc and the pseudocode of tosa_reference_check_fp (docs/reference/semantics.md sections 1.2,
1.3 and 2.3). Nothing here is shared with the product.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor

from oracle_formats import FLOATS, Float, Value, decode, fmt
from oracle_scalar import floor_log2

MAY_FLUSH = ("bf16", "f16", "f32")


def largest(row: Float) -> Fraction:
    return decode(row.max_code, row.name).magnitude


def smallest_normal(row: Float) -> Fraction:
    return Fraction(2) ** (1 - row.bias)


def ulp(magnitude: Fraction, row: Float) -> Fraction:
    """tosa_reference_ulp of a nonzero number."""
    exponent = max(floor_log2(magnitude), 1 - row.bias)
    return Fraction(2) ** (exponent - row.fraction_bits)


def float_to_float(code: int, out: int, src: str, dst: str) -> bool:
    """CAST between float types: at most 1 ulp below or half an ulp above; overflow after rounding; flushing allowed."""
    value, result, row = decode(code, src), decode(out, dst), FLOATS[dst]
    if value.kind == "nan":
        return result.kind == "nan"
    if value.kind == "inf":
        return overflowed(result, value.negative, row)
    if is_zero(result, value.negative) and may_be_zero(value.magnitude, src, dst):
        return True
    if value.magnitude <= largest(row):
        if result.kind != "finite" or result.negative != value.negative:
            return False
        unit = ulp(value.magnitude, row) if value.magnitude else Fraction(0)
        return value.magnitude - unit <= result.magnitude <= value.magnitude + unit / 2
    unit = ulp(value.magnitude, row)
    down = floor(value.magnitude / unit) * unit
    roundings = [down]
    if down != value.magnitude and down + unit - value.magnitude <= unit / 2:
        roundings.append(down + unit)
    for rounded in roundings:
        if rounded > largest(row):
            if overflowed(result, value.negative, row):
                return True
        elif result == Value("finite", value.negative, rounded):
            return True
    return False


def overflowed(result: Value, negative: bool, row: Float) -> bool:
    """Infinity of the sign, or any NaN in a format without."""
    return result.kind == "nan" if row.inf is None else result == Value("inf", negative)


def is_zero(result: Value, negative: bool) -> bool:
    return result == Value("finite", negative, Fraction(0))


def may_be_zero(magnitude: Fraction, src: str, dst: str) -> bool:
    """Whether source or result is in the subnormal range of a type that may be flushed."""
    return any(name in MAY_FLUSH and 0 <= magnitude < smallest_normal(FLOATS[name]) for name in (src, dst))


def check_fp(out: int, exact: Fraction, units: Fraction, dst: str) -> bool:
    """tosa_reference_check_fp, step by step, for a finite reference."""
    result, row = decode(out, dst), FLOATS[dst]
    error = units * ulp(abs(exact), row) if exact else Fraction(0)
    sign = -1 if exact < 0 else 1
    low, high = abs(exact) - error, abs(exact) + error
    limit = largest(row)
    if result.kind == "nan":
        return row.inf is None and high > limit
    if result.kind == "inf":
        return high > limit and (result.negative == (sign < 0))
    got = sign * (-result.magnitude if result.negative else result.magnitude)
    if dst in MAY_FLUSH and got == 0:
        return low < smallest_normal(row)
    return low <= limit and low <= got <= high


def accepts(code: int, out: int, src: str, dst: str) -> bool:
    """Judge a TOSA CAST."""
    value = decode(code, src)
    number = -value.magnitude if value.negative else value.magnitude
    if dst == "bool":
        return out == int(value.kind != "finite" or value.magnitude != 0)
    if dst in FLOATS and src in FLOATS:
        return float_to_float(code, out, src, dst)
    if dst in FLOATS:
        return (
            check_fp(out, number, Fraction(1, 2), dst)
            if src != "bool"
            else decode(out, dst) == Value("finite", False, number)
        )
    row, got = fmt(dst), signed(out, dst)
    if src in FLOATS:
        if value.kind == "nan":
            return True
        if value.kind == "inf":
            return got == (row.low if value.negative else row.high)
        below = floor(number)
        rest = number - below
        rounded = below + (rest > Fraction(1, 2) or (rest == Fraction(1, 2) and below % 2))
        return got == max(row.low, min(row.high, rounded))
    return (got - number) % (1 << row.bits) == 0


def signed(out: int, dst: str) -> int:
    value = decode(out, dst)
    return int(-value.magnitude if value.negative else value.magnitude)


def inexact_bounds(product: int, shift: int, zero_point: int) -> tuple[int, int]:
    """INEXACT_ROUND: the acceptable integers before clipping, in rational instead of float64 arithmetic."""
    exact = Fraction(product, 1 << shift)
    error = Fraction(1, 2) + 3 * abs(exact) / (1 << 24)
    return ceil(exact - error + zero_point), floor(exact + error + zero_point)
