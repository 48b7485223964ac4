"""What scalar operations make of values that depend on loops: which results are affine, which may become so.

A quotient or remainder by a constant is affine where the slopes are multiples of the divisor, and so are bits of a
number where they are multiples of the next power of two. Otherwise enough units walked together make them so.

A value counts as affine only where no wrap-around stands behind it, and as a dividend only where it is not negative.
That is asked at every unit walked: what holds at both ends of a range holds everywhere in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd

from castsim.execution.interpreter.dependence import Bounds, Loops, Scalar, affine, unknown
from castsim.execution.interpreter.fixed_width import signed
from castsim.isa.pto.scalars import UNSIGNED

_QUOTIENTS = ("divui", "divsi", "shrui", "shrsi")
_DIVISIONS = (*_QUOTIENTS, "remui", "remsi")
_BITWISE = ("andi", "ori", "xori")
_EXTREMES = {"minsi": ("slt", True), "maxsi": ("slt", False), "minui": ("ult", True), "maxui": ("ult", False)}
"""The smaller or larger of two: the comparison that tells them apart, and whether the smaller is wanted."""


def arithmetic_result(operation: str, left: Scalar, right: Scalar, width: int, value: int, loops: Loops) -> Scalar:
    """Return the `value` of an operation on two integers of `width` bits, one of which depends on a loop."""
    if left.periods is not None or right.periods is not None:
        return unknown(value, (left, right))
    found: Scalar | None = None
    if operation in ("addi", "subi"):
        sign = 1 if operation == "addi" else -1
        found = reduced(int(left.value) + sign * int(right.value), _sum(left, right, sign), width)
    elif operation in ("muli", "shli"):
        found = _product(operation, left, right, width)
    elif operation in _DIVISIONS:
        found = _division(operation, left, right, width, value)
    elif operation in _BITWISE:
        found = _bits(operation, left, right, value)
    elif operation in _EXTREMES:
        found = _extreme(operation, left, right, width, loops)
    return unknown(value, (left, right)) if found is None else found


def comparison_result(predicate: str, left: Scalar, right: Scalar, width: int, value: int, loops: Loops) -> Scalar:
    """Return the truth `value` of a comparison of two integers of `width` bits, one of which depends on a loop.

    It is constant if it stays what it is up to some unit; the loop is then cut there.
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
        return Scalar(value)
    return Scalar(value, None, dict.fromkeys(slopes, 0))


def reduced(exact: int, slopes: Mapping[int, int], width: int) -> Scalar:
    """Return the low bits of an affine value; what has wrapped around is no longer affine."""
    kept, modulus = signed(exact, width), 1 << width
    if all(slope % modulus == 0 for slope in slopes.values()):
        return Scalar(kept)
    if kept == exact and width > 1:
        return affine(kept, slopes)
    return Scalar(kept, None, _periods(slopes, modulus))


def _periods(slopes: Mapping[int, int], modulus: int) -> Mapping[int, int]:
    """Return how many units make every slope a multiple of `modulus`, for the loops in which it is none."""
    return {loop: modulus // gcd(slope, modulus) for loop, slope in slopes.items() if slope % modulus}


def _sum(left: Scalar, right: Scalar, sign: int) -> dict[int, int]:
    """Return the slopes of a sum or difference, without those that cancel."""
    slopes = dict(left.slopes or {})
    for loop, slope in (right.slopes or {}).items():
        slopes[loop] = slopes.get(loop, 0) + sign * slope
    return {loop: slope for loop, slope in slopes.items() if slope}


def _product(operation: str, left: Scalar, right: Scalar, width: int) -> Scalar | None:
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


def _division(operation: str, left: Scalar, right: Scalar, width: int, value: int) -> Scalar | None:
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
        return Scalar(value, None, periods)
    if operation not in _QUOTIENTS:
        return Scalar(value)
    return affine(value, {loop: slope // divisor for loop, slope in slopes.items()})


def _bits(operation: str, left: Scalar, right: Scalar, value: int) -> Scalar | None:
    """A constant changes or selects only the bits below its highest one; slopes may be multiples of what is above."""
    if left.constant:
        left, right = right, left
    if not right.constant or right.value < 0:
        return None
    slopes = dict(_slopes(left))
    periods = _periods(slopes, 1 << int(right.value).bit_length())
    if periods:
        return Scalar(value, None, periods)
    return Scalar(value) if operation == "andi" else affine(value, slopes)


def _extreme(operation: str, left: Scalar, right: Scalar, width: int, loops: Loops) -> Scalar | None:
    """The smaller or larger of two is one of them, up to some unit."""
    is_less, wants_less = _EXTREMES[operation]
    order = comparison_result(is_less, left, right, width, int(left.value < right.value), loops)
    if not order.constant:
        return None
    return left if bool(order.value) == wants_less else right


def _slopes(scalar: Scalar) -> list[tuple[int, int]]:
    return list((scalar.slopes or {}).items())


def _bounds(predicate: str, difference: int) -> Bounds:
    """Return bounds of a difference within which a comparison is as true as it is now."""
    if predicate in ("eq", "ne"):
        return (0, 0) if difference == 0 else (1, None) if difference > 0 else (None, -1)
    least = 0 if predicate in ("slt", "sge") else 1
    return (least, None) if difference >= least else (None, least - 1)
