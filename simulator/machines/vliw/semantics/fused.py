"""Products of floats added to an accumulator with one rounding (docs/reference/tpc.md section 5.3).

The sum follows that of `float_arithmetic`, on a whole product in place of one operand.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from castsim.isa.codes import Codes
from castsim.isa.formats import FloatFormat
from castsim.isa.modes import Rounding
from castsim.machines.vliw.semantics import float_arithmetic
from castsim.machines.vliw.semantics.float_arithmetic import FloatRules, add, multiply
from castsim.numerics.unpack import Unpacked, normalise, unpack

_HALF = np.uint64(32)
_Bools = NDArray[np.bool_]


def multiply_add(a: Codes, b: Codes, c: Codes, fmt: FloatFormat, rules: FloatRules, *, negate: bool) -> Codes:
    """Return c + a * b, or c - a * b: exact, then rounded once."""
    product = _product(a, b, fmt, rules)
    if negate:
        product = _signed(product, product.negative ^ np.uint64(1))
    return _packed(_sum(product, normalise(_unpacked(c, fmt, rules))), fmt, rules)


def multiply_then_add(a: Codes, b: Codes, c: Codes, fmt: FloatFormat, rules: FloatRules, *, negate: bool) -> Codes:
    """Return the same with the product rounded on its own."""
    product = multiply(a, b, fmt, rules)
    return add(c, product ^ product.dtype.type(fmt.sign_bit) if negate else product, fmt, rules)


def _unpacked(codes: Codes, fmt: FloatFormat, rules: FloatRules) -> Unpacked:
    return unpack(codes.astype(np.uint64), fmt, rules.flush_operands)


def _signed(value: Unpacked, negative: NDArray[np.uint64]) -> Unpacked:
    return Unpacked(negative, value.exponent, value.significand, value.nan, value.infinite)


def _marked(found: _Bools | None, like: NDArray[np.uint64]) -> _Bools:
    return np.zeros(like.shape, np.bool_) if found is None else found


def _product(a: Codes, b: Codes, fmt: FloatFormat, rules: FloatRules) -> Unpacked:
    """Return whole products: the upper halves of two significands hold all of their bits."""
    first, second = _unpacked(a, fmt, rules), _unpacked(b, fmt, rules)
    significand = (first.significand >> _HALF) * (second.significand >> _HALF)
    nan, infinite = (
        _marked(one, first.significand) | _marked(other, first.significand)
        for one, other in ((first.nan, second.nan), (first.infinite, second.infinite))
    )
    zeros = [
        (one.significand == 0) & ~_marked(one.nan, one.significand) & ~_marked(one.infinite, one.significand)
        for one in (first, second)
    ]
    nan = nan | infinite & (zeros[0] | zeros[1])
    exponent = first.exponent + second.exponent + 1
    return normalise(Unpacked(first.negative ^ second.negative, exponent, significand, nan, infinite & ~nan))


def _sum(first: Unpacked, second: Unpacked) -> tuple[Unpacked, _Bools, NDArray[np.uint64]]:
    """Return the sum, where it is exactly zero, and whether both signs there are negative."""
    swap = second.exponent > first.exponent
    low, high = np.where(swap, first.exponent, second.exponent), np.where(swap, second.exponent, first.exponent)
    large, small = (
        np.where(swap, *pair) >> np.uint64(1)  # room for the carry
        for pair in ((second.significand, first.significand), (first.significand, second.significand))
    )
    distance = np.minimum(high - low, 63).view(np.uint64)
    shifted = small >> distance
    # What falls off is one bit far below the last one kept: a product has 48 bits, and cancels only near by.
    shifted |= (shifted << distance) != small
    opposite = first.negative != second.negative
    below = opposite & (shifted > large)
    magnitude = np.where(opposite, np.where(below, shifted - large, large - shifted), large + shifted)
    negative = np.where(swap, second.negative, first.negative) ^ below
    infinite, other = _marked(first.infinite, large), _marked(second.infinite, large)
    negative = np.where(infinite, first.negative, np.where(other, second.negative, negative))
    nan = _marked(first.nan, large) | _marked(second.nan, large) | (infinite & other & opposite)
    total = Unpacked(negative, high + 1, magnitude, nan, (infinite | other) & ~nan)
    return total, opposite, first.negative


def _packed(found: tuple[Unpacked, _Bools, NDArray[np.uint64]], fmt: FloatFormat, rules: FloatRules) -> Codes:
    """Round the sum; an exact zero is negative if both addends are, or if rounding goes down and they differ."""
    total, opposite, first = found
    zero_sign = np.where(opposite, np.uint64(rules.rounding is Rounding.FLOOR), first)
    special = _marked(total.nan, total.significand) | _marked(total.infinite, total.significand)
    nothing = (total.significand == 0) & ~special
    return float_arithmetic._packed(_signed(total, np.where(nothing, zero_sign, total.negative)), fmt, rules)
