"""Codes of results that are not a rounded number: NaN, infinity, overflow. Each is a pair (positive, negative)."""

from __future__ import annotations

import numpy as np

from castsim.isa.formats import FloatFormat, Format, IntFormat, TaperedFormat
from castsim.isa.modes import Overflow, Rounding
from castsim.numerics.policy import InfinityWrap, NanToFloat, NanToInteger, Policy
from castsim.numerics.rounding import U64
from castsim.numerics.unpack import code_bits

CodePair = tuple[int, int]


def nan_codes(dst: Format, policy: Policy) -> CodePair:
    """Return the codes that NaN of either sign becomes."""
    if isinstance(dst, IntFormat):
        value = {
            NanToInteger.ZERO: 0,
            NanToInteger.MAXIMUM: dst.maximum,
            NanToInteger.MINIMUM: dst.minimum,
        }[policy.nan_to_integer]
        return (_low_bits(value, dst),) * 2
    if policy.nan_to_float is NanToFloat.FIXED and policy.nan_code is not None:
        return policy.nan_code, policy.nan_code
    if dst.nan_code is None or (policy.nan_to_float is NanToFloat.ZERO and dst.has_zero):
        return 0, 0
    return dst.nan_code, dst.nan_code | (dst.sign_bit if dst.nan_has_sign else 0)


def infinity_codes(dst: Format, policy: Policy) -> CodePair:
    """Return the codes that an infinity of either sign becomes."""
    if isinstance(dst, IntFormat):
        return _infinity_to_integer(dst, policy)
    finite = policy.infinity_to_max if policy.overflow is Overflow.SPECIAL else not policy.keep_infinity
    positive, negative = _largest(dst) if finite else _beyond_finite(dst)
    if not dst.signed and dst.nan_code is not None:
        negative = dst.nan_code
    return positive, negative


def overflow_codes(dst: FloatFormat | TaperedFormat, policy: Policy) -> CodePair:
    """Return the codes that a finite number beyond the destination's range becomes.

    IEEE 754: modes that round toward zero stop at the largest finite value, all others go on to infinity.
    """
    largest = _largest(dst)
    if policy.overflow is Overflow.SATURATE or policy.rounding in (Rounding.TRUNC, Rounding.ODD):
        return largest
    beyond = _beyond_finite(dst)
    if policy.rounding is Rounding.FLOOR:
        return largest[0], beyond[1]
    if policy.rounding is Rounding.CEIL:
        return beyond[0], largest[1]
    return beyond


def payload_nan_codes(codes: U64, src: FloatFormat, dst: FloatFormat, fallback: U64) -> U64:
    """Return NaN codes of `dst` with sign and fraction of the NaN codes of `src`, the fraction left-aligned.

    `fallback` is taken where the kept fraction would be 0, which is not a NaN.
    """
    narrowing = src.fraction_bits - dst.fraction_bits
    fraction = codes & np.uint64(src.fraction_mask)
    fraction = fraction >> np.uint64(narrowing) if narrowing >= 0 else fraction << np.uint64(-narrowing)
    sign = (codes >> np.uint64(src.bits - 1)) << np.uint64(dst.bits - 1)
    quiet = sign | np.uint64(dst.exponent_mask << dst.fraction_bits) | fraction
    return np.where(fraction == 0, fallback, quiet)


def _infinity_to_integer(dst: IntFormat, policy: Policy) -> CodePair:
    extremes = (dst.maximum, dst.minimum)
    if policy.overflow is Overflow.WRAP and policy.infinity_wrap is not InfinityWrap.EXTREME:
        half = 1 << ((policy.wrap_bits or 1) - 1)
        extremes = (half - 1, -half) if policy.infinity_wrap is InfinityWrap.CLAMP else (0, 0)
    return _low_bits(extremes[0], dst), _low_bits(extremes[1], dst)


def _low_bits(value: int, dst: IntFormat) -> int:
    wrapped = value & ((1 << dst.bits) - 1)
    if wrapped > dst.maximum:  # negative: in two's complement of the code's width
        wrapped += (1 << code_bits(dst)) - (1 << dst.bits)
    return wrapped


def _largest(dst: FloatFormat | TaperedFormat) -> CodePair:
    return dst.max_finite_code, dst.max_finite_code | dst.sign_bit


def _beyond_finite(dst: FloatFormat | TaperedFormat) -> CodePair:
    """Return infinity, or NaN in a format without it, or the largest finite value in a format with neither."""
    if dst.infinity_code is not None:
        return dst.infinity_code, dst.infinity_code | dst.sign_bit
    if dst.nan_code is not None:
        return dst.nan_code, dst.nan_code | (dst.sign_bit if dst.nan_has_sign else 0)
    return _largest(dst)
