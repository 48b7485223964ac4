"""Results that lie within a distance of the exact value, in units in the last place (ulps)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from castsim.isa.codes import Codes
from castsim.isa.formats import FORMATS, FloatFormat, Format, IntFormat, Specials
from castsim.isa.modes import Overflow, Rounding
from castsim.numerics import Policy, cast_codes, code_dtype, decode_to_float64
from castsim.specifications.order import order_keys
from castsim.specifications.sets import AcceptanceSets, Mask
from castsim.targets.specification import AcceptanceRule, Beyond

_I64 = NDArray[np.int64]
_HALF = Decimal("0.5")


@dataclass(frozen=True, slots=True)
class _Magnitudes:
    """Exact magnitudes against the destination's numbers.

    `below` is the code of the number at or below, counted on beyond the largest as if exponents had no end. `rest` is
    the way from there to the next number: 0 none, 1 less than half, 2 half, 3 more than half.
    """

    below: _I64
    rest: _I64


def interval_sets(
    codes: Codes, src: Format, dst: FloatFormat, rule: AcceptanceRule, may_flush: tuple[str, ...]
) -> AcceptanceSets:
    """Return the acceptable results of an interval rule; NaN sources give any NaN."""
    negative, magnitude, fmt = _split(codes, src)
    nan, infinite = _specials(codes, src)
    exact = _against(magnitude, fmt, dst)
    low, high, overflows = _ends(exact, dst, rule)
    low, high = np.where(infinite, dst.max_finite_code + 1, low), np.where(infinite, dst.max_finite_code + 1, high)
    overflows = overflows | infinite
    numbers, not_a_number = ~nan, nan
    largest = dst.max_finite_code
    if dst.has_infinity:
        largest += 1  # the code after the largest finite number
        high = np.where(overflows, largest, high)
    elif dst.has_nan:
        not_a_number = nan | overflows
        numbers = numbers & (low <= largest)
    else:
        high = np.where(overflows, largest, high)
    low, high = np.minimum(low, largest), np.minimum(high, largest)
    sign = np.where(negative, np.int64(dst.sign_bit), np.int64(0))
    lowest, highest = np.where(negative, high, low) | sign, np.where(negative, low, high) | sign
    further = lowest
    flushed = ~nan & ~infinite & _flushed(exact, magnitude, fmt, src, dst, rule, may_flush)
    further = np.where(flushed, sign, further)
    if rule.zero_of_either_sign:
        further = np.where((exact.below == 0) & (exact.rest == 0) & ~nan, np.int64(dst.sign_bit), further)
    dtype = code_dtype(dst)
    return AcceptanceSets(
        dst=dst,
        lowest=lowest.astype(dtype),
        highest=highest.astype(dtype),
        further=further.astype(dtype),
        numbers=numbers,
        nan=not_a_number,
        anything=np.zeros(codes.shape, bool),
    )


def _split(codes: Codes, src: Format) -> tuple[Mask, Codes, Format]:
    """Return signs, and magnitudes as codes of a format."""
    if isinstance(src, IntFormat):
        if not src.signed:
            return np.zeros(codes.shape, bool), codes, src
        values = order_keys(codes, src)
        negative = values < 0
        return (
            negative,
            np.where(negative, np.uint64(0) - values.view(np.uint64), values.view(np.uint64)),
            FORMATS["u64"],
        )
    sign = codes.dtype.type(src.sign_bit)
    return (codes & sign) != 0, codes & ~sign, src


def _specials(codes: Codes, src: Format) -> tuple[Mask, Mask]:
    if isinstance(src, IntFormat):
        return np.zeros(codes.shape, bool), np.zeros(codes.shape, bool)
    values = decode_to_float64(codes, src)
    return np.isnan(values), np.isinf(values)


def _against(magnitude: Codes, fmt: Format, dst: FloatFormat) -> _Magnitudes:
    """Place magnitudes among the destination's numbers.

    They are cast to the destination widened by an exponent bit, so that what overflows keeps its place, and by two
    fraction bits, rounding to odd: these are then zero, below half, half or above half. Codes of the widened format
    without those two bits are codes of the destination.
    """
    wide = replace(
        dst,
        name=f"{dst.name} widened",
        exponent_bits=dst.exponent_bits + 1,
        fraction_bits=dst.fraction_bits + 2,
        specials=Specials.NONE,
        nan_override=None,
    )
    found = cast_codes(magnitude, fmt, wide, Policy(Rounding.ODD, Overflow.SATURATE)).astype(np.int64)
    return _Magnitudes(below=found >> 2, rest=found & 3)


def _ends(exact: _Magnitudes, dst: FloatFormat, rule: AcceptanceRule) -> tuple[_I64, _I64, Mask]:
    """Return codes of the smallest and the largest acceptable magnitude, and where overflow is acceptable."""
    below, rest, largest = exact.below, exact.rest, dst.max_finite_code
    low = _low_end(exact, dst, rule.below_ulps)
    high = below + (rest >= 2) if rule.above_ulps == _HALF else below
    if rule.beyond is Beyond.INTERVAL_END:
        reached = rest != 2 if rule.above_ulps == _HALF else rest != 0  # beyond `high`, not on it
        return low, high, (high > largest) | ((high == largest) & reached)
    beyond = (below > largest) | ((below == largest) & (rest != 0))
    return np.where(beyond, below, low), high, high > largest


def _low_end(exact: _Magnitudes, dst: FloatFormat, ulps: Decimal) -> _I64:
    """Return the code of the smallest number within `ulps` below.

    Below a power of two numbers are half as far apart, except at the smallest normal one.
    """
    below, rest = exact.below, exact.rest
    power = ((below & dst.fraction_mask) == 0) & (below >> dst.fraction_bits > 1)
    if ulps == 1:
        low = below - 1 + (rest != 0) - (power & (rest <= 2))
    elif ulps == _HALF:
        low = below + (rest == 3) - (power & (rest == 0))
    else:
        low = below + (rest != 0)
    ends: _I64 = np.maximum(low, 0)
    return ends


def _flushed(
    exact: _Magnitudes,
    magnitude: Codes,
    fmt: Format,
    src: Format,
    dst: FloatFormat,
    rule: AcceptanceRule,
    may_flush: tuple[str, ...],
) -> Mask:
    """Return a mask of the elements where zero is acceptable because a subnormal source or result may be flushed."""
    flushed = np.zeros(magnitude.shape, bool)
    if rule.flush_source and src.name in may_flush and isinstance(fmt, FloatFormat):
        flushed |= magnitude >> fmt.fraction_bits == 0
    if rule.flush_result and dst.name in may_flush:
        flushed |= exact.below >> dst.fraction_bits == 0
    return flushed
