"""Conversion to a pure power of two (e8m0), by either rule of `policy.E8M0Rule`."""

from __future__ import annotations

from math import isqrt

import numpy as np
from numpy.typing import NDArray

from castsim.isa.formats import FloatFormat
from castsim.isa.modes import Overflow, Rounding
from castsim.numerics.policy import E8M0Rule, Policy
from castsim.numerics.rounding import I64, U64, increment, rule_of, shift_round
from castsim.numerics.unpack import TOP, Mask, Unpacked

_SQRT_2 = np.uint64(isqrt(2 << 126))
"""floor(sqrt(2) * 2**63): a normalised significand is above the geometric midpoint iff it is greater."""

INVALID, OVERFLOW, UNDERFLOW, INEXACT = 0x01, 0x04, 0x08, 0x10
"""Sticky flags of the ASL rule (docs/reference/pto.md section 6.1)."""


def pack_power(value: Unpacked, dst: FloatFormat, policy: Policy) -> U64:
    """Return codes of the power-of-two format `dst` for normalised finite numbers.

    Negative numbers give the NaN code. Zero: the smallest power when saturating by the ONNX rule, else NaN.
    """
    assert dst.nan_code is not None
    highest = dst.max_finite_code
    zero = value.significand == 0
    rounded = _rounded_exponent_asl if policy.e8m0_rule is E8M0Rule.ASL else _rounded_exponent
    field = rounded(value, policy.rounding) - dst.min_exponent
    invalid = (value.negative != 0) & ~zero
    if policy.e8m0_rule is E8M0Rule.ASL:
        invalid |= zero
    low, high = _out_of_range(value, dst)
    if policy.overflow is Overflow.SATURATE:
        field = np.where(low, 0, np.where(high, highest, np.clip(field, 0, highest)))
    else:
        invalid |= zero | low | high | (field < 0) | (field > highest)
    return np.where(invalid, np.uint64(dst.nan_code), np.clip(field, 0, highest).view(np.uint64))


def _out_of_range(value: Unpacked, dst: FloatFormat) -> tuple[Mask, Mask]:
    """Tell which numbers, before any rounding, lie below the smallest and above the largest power."""
    top = dst.max_finite_code + dst.min_exponent
    high = (value.exponent > top) | ((value.exponent == top) & (value.significand > TOP))
    return value.exponent < dst.min_exponent, high


def _rounded_exponent(value: Unpacked, rounding: Rounding) -> I64:
    """Round the significand to one bit; the exponent grows with the carry."""
    leading = shift_round(value.significand, np.int64(63), value.negative, rule_of(rounding))
    rounded: I64 = value.exponent + (leading == 2)
    return rounded


def _rounded_exponent_asl(value: Unpacked, rounding: Rounding) -> I64:
    """Round log2 of the number to an integer. Ties cannot occur: no such logarithm is half an odd number."""
    sticky = (value.significand != TOP).astype(np.uint64)
    above = (value.significand > _SQRT_2).astype(np.uint64)
    negative = ((value.exponent < 0) & (sticky != 0)).astype(np.uint64)
    # The logarithm is e plus a fraction; its magnitude, for negative e, is -e-1 plus one minus that fraction.
    kept = np.where(negative != 0, -value.exponent - 1, value.exponent)
    last = (kept & 1).astype(np.uint64)
    half = (above ^ negative) & sticky
    up = increment(last, half, sticky, negative, np.uint64(0), np.uint64(rule_of(rounding)))
    magnitude = kept + up.astype(np.int64)
    rounded: I64 = np.where(negative != 0, -magnitude, magnitude)
    return rounded


def asl_flags(value: Unpacked, dst: FloatFormat) -> NDArray[np.uint8]:
    """Return the flags that the ASL rule raises for each normalised number; they depend on no mode."""
    infinite = value.infinite if value.infinite is not None else np.zeros(value.significand.shape, bool)
    nan = value.nan if value.nan is not None else np.zeros(value.significand.shape, bool)
    low, high = _out_of_range(value, dst)
    invalid = nan | (value.negative != 0) | ((value.significand == 0) & ~infinite)
    flags = np.where(value.significand != TOP, INEXACT, 0)
    flags = np.where(low, UNDERFLOW | INEXACT, flags)
    flags = np.where(high | infinite, OVERFLOW | INEXACT, flags)
    return np.where(invalid, INVALID, flags).astype(np.uint8)
