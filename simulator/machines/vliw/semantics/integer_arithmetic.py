"""Arithmetic of integer elements: sums, products, shifts (docs/reference/tpc.md section 5.1)."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from castsim.isa.codes import Codes
from castsim.isa.formats import Format, IntFormat
from castsim.isa.modes import Overflow, Rounding
from castsim.machines.vliw.semantics.lanes import WORD_MASK, codes_of, integers
from castsim.numerics import Policy, Scale, code_dtype, scaled_cast_codes

Numbers = NDArray[np.int64]


def settle(numbers: Numbers, fmt: Format, saturate: bool) -> Codes:
    """Return numbers as elements: the nearest bound, or the low bits."""
    assert isinstance(fmt, IntFormat)
    return codes_of(np.clip(numbers, fmt.minimum, fmt.maximum) if saturate else numbers, fmt)


def total(a: Codes, b: Codes, fmt: Format, *, sign: int, negate: bool, saturate: bool) -> Codes:
    """Return a + sign * b, or its negative."""
    numbers = integers(a, fmt) + sign * integers(b, fmt)
    return settle(-numbers if negate else numbers, fmt, saturate)


def product_bits(a: Codes, b: Codes, fmt: Format, *, negate: bool) -> NDArray[np.uint64]:
    """Return the whole products, or their negatives, as 64-bit patterns: no product of 32-bit integers needs more."""
    numbers = integers(a, fmt).view(np.uint64) * integers(b, fmt).view(np.uint64)
    return np.uint64(0) - numbers if negate else numbers


def scalar_product(a: Codes, b: Codes, fmt: Format, *, negate: bool, upper: bool) -> Codes:
    """Return the lower or upper 32 bits of the products."""
    bits = product_bits(a, b, fmt, negate=negate)
    return (bits >> np.uint64(32 if upper else 0) & np.uint64(WORD_MASK)).astype(np.uint32)


def doubled_upper_half(a: Codes, b: Codes, fmt: IntFormat) -> tuple[Codes, NDArray[np.bool_]]:
    """Return the upper half of twice the products, rounded half up and saturated, and where that was beyond the range.

    One bit less is dropped than the half has: twice a product is never formed.
    """
    bits = product_bits(a, b, fmt, negate=False) + np.uint64(1 << (fmt.bits - 2))
    dropped = fmt.bits - 1
    if fmt.signed:
        numbers = bits.view(np.int64) >> dropped
    else:
        numbers = (bits >> np.uint64(dropped)).view(np.int64)
    beyond = (numbers > fmt.maximum) | (numbers < fmt.minimum)
    return settle(numbers, fmt, saturate=True), beyond


def shift_logical(codes: Codes, amounts: NDArray[np.uint64], fmt: Format, *, left: bool) -> Codes:
    """Return bit patterns shifted, zeros coming in; amounts of the width and above give 0."""
    bits = codes.astype(np.uint64)
    near = np.minimum(amounts, np.uint64(fmt.bits))
    shifted = bits << near if left else bits >> near
    return (shifted & np.uint64((1 << fmt.bits) - 1)).astype(code_dtype(fmt))


@lru_cache(maxsize=8)
def _shift_policy(rounding: Rounding, saturate: bool) -> Policy:
    return Policy(rounding, Overflow.SATURATE if saturate else Overflow.WRAP)


def shift_arithmetic(codes: Codes, amounts: Numbers, fmt: IntFormat, rounding: Rounding, *, saturate: bool) -> Codes:
    """Return codes * 2**amounts, exact before the one rounding."""
    return scaled_cast_codes(codes, fmt, fmt, Scale(1), _shift_policy(rounding, saturate), shifts=amounts)


def absolute(codes: Codes, fmt: Format) -> Codes:
    """Return magnitudes; that of the smallest number wraps to itself, as sums do."""
    return codes_of(np.abs(integers(codes, fmt)), fmt)
