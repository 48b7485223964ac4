"""Conversion from codes to sign, exponent and significand (`unpack`), and back to codes of a destination (`pack`).

The way back consists of one rounding, then overflow, then special values.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from castsim.isa.formats import FloatFormat, Format, IntFormat, Overflow, Rounding, Specials, TaperedFormat, code_bits
from castsim.numerics.policy import E8M0Rule, InfinityWrap, NanToFloat, NanToInteger, Policy
from castsim.numerics.rounding import I64, U64, UNGUARDED, Draw, increment, rule_of, shift_round

# From codes to sign, exponent and significand.

Mask = NDArray[np.bool_]

TOP = np.uint64(1 << 63)
"""The leading bit of a normalised significand."""

LOWEST_EXPONENT = -(1 << 20)
"""Exponent of zero among normalised significands: below every format's range."""


@dataclass(frozen=True, slots=True)
class Unpacked:
    """Numbers as `(-1)**negative * significand * 2**(exponent - 63)`, one per element.

    `negative` is 0 or 1 in uint64, `exponent` int64 (0-d if all elements share it). A significand's top bit need not be
    set; see `normalise`. `nan` and `infinite` mark elements of which only the sign is meaningful;
    None: there are none.
    """

    negative: U64
    exponent: I64
    significand: U64
    nan: Mask | None = None
    infinite: Mask | None = None


def unpack(codes: U64, fmt: Format, flush: bool = False) -> Unpacked:
    """Return the parts of uint64 codes of `fmt`; with `flush` subnormal numbers become zero of their sign."""
    if isinstance(fmt, IntFormat):
        return _unpack_integer(codes, fmt)
    if isinstance(fmt, TaperedFormat):
        return _unpack_tapered(codes, fmt)
    return _unpack_float(codes, fmt, flush)


def _unpack_integer(codes: U64, fmt: IntFormat) -> Unpacked:
    exponent = np.array(63, np.int64)
    if fmt.boolean:
        return Unpacked(np.zeros_like(codes), exponent, (codes != 0).astype(np.uint64))
    if not fmt.signed:
        return Unpacked(np.zeros_like(codes), exponent, codes)
    negative = codes >> np.uint64(code_bits(fmt) - 1)
    # Two's complement within the code's width: invert and add one where negative.
    inverted = (np.uint64(0) - negative) & np.uint64((1 << code_bits(fmt)) - 1)
    return Unpacked(negative, exponent, (codes ^ inverted) + negative)


def _unpack_float(codes: U64, fmt: FloatFormat, flush: bool) -> Unpacked:
    fraction_bits = np.uint64(fmt.fraction_bits)
    field = codes >> fraction_bits & np.uint64(fmt.exponent_mask)
    fraction = codes & np.uint64(fmt.fraction_mask)
    negative = codes >> np.uint64(fmt.bits - 1) if fmt.signed else np.zeros_like(codes)
    if fmt.has_zero:
        hidden = (field != 0).astype(np.uint64)
        exponent = np.maximum(field, np.uint64(1)).view(np.int64) - fmt.bias
        significand = (fraction | hidden << fraction_bits) << np.uint64(63 - fmt.fraction_bits)
        if flush:
            significand *= hidden
    else:
        exponent = field.view(np.int64) - fmt.bias
        significand = (fraction << np.uint64(63 - fmt.fraction_bits)) | TOP
    nan = infinite = None
    if fmt.specials is Specials.IEEE:
        special = field == np.uint64(fmt.exponent_mask)
        if special.any():
            infinite = special & (fraction == 0)
            nan = special & (fraction != 0)
    elif fmt.specials is Specials.NAN_ALL_ONES:
        ones = np.uint64((fmt.exponent_mask << fmt.fraction_bits) | fmt.fraction_mask)
        nan = (codes & ones) == ones
    elif fmt.specials is Specials.NAN_NEGATIVE_ZERO:
        nan = codes == np.uint64(fmt.sign_bit)
        negative = negative & ~nan  # its sign bit is part of the NaN code, not a sign
    return Unpacked(negative, exponent, significand, nan, infinite)


@lru_cache(maxsize=8)
def tapered_tables(fmt: TaperedFormat) -> tuple[U64, I64]:
    """Return significand and exponent of every code without its sign bit."""
    significand = np.zeros(fmt.sign_bit, np.uint64)
    exponent = np.full(fmt.sign_bit, LOWEST_EXPONENT, np.int64)
    for binade in fmt.binades:
        for fraction in range(1 << binade.fraction_bits):
            code = binade.first_code + fraction
            significand[code] = TOP | np.uint64(fraction << (63 - binade.fraction_bits))
            exponent[code] = binade.exponent
    return significand, exponent


def _unpack_tapered(codes: U64, fmt: TaperedFormat) -> Unpacked:
    significands, exponents = tapered_tables(fmt)
    magnitude = codes & np.uint64(fmt.sign_bit - 1)
    nan = codes == np.uint64(fmt.nan_code)
    return Unpacked(
        negative=codes >> np.uint64(fmt.bits - 1) & ~nan,
        exponent=exponents[magnitude],
        significand=significands[magnitude],
        nan=nan,
        infinite=magnitude == np.uint64(fmt.infinity_code),
    )


def normalise(value: Unpacked) -> Unpacked:
    """Shift every significand until its top bit is set; zeros get `LOWEST_EXPONENT`."""
    lanes = np.flatnonzero(value.significand < TOP)
    if lanes.size == 0:
        return value
    significand = value.significand[lanes]
    zero = significand == 0
    moved = np.zeros(lanes.size, np.uint64)
    for step in (32, 16, 8, 4, 2, 1):
        distance = (significand < np.uint64(1 << (64 - step))) * np.uint64(step)
        significand = significand << distance
        moved += distance
    exponent = np.array(np.broadcast_to(value.exponent, value.significand.shape))
    exponent[lanes] = np.where(zero, LOWEST_EXPONENT, exponent[lanes] - moved.view(np.int64))
    whole = value.significand.copy()
    whole[lanes] = significand
    return replace(value, exponent=exponent, significand=whole)


# Conversion to a pure power of two (e8m0), by either rule of `policy.E8M0Rule`.

_SQRT_2 = np.uint64(isqrt(2 << 126))
"""floor(sqrt(2) * 2**63): a normalised significand is above the geometric midpoint iff it is greater."""


def pack_power(value: Unpacked, dst: FloatFormat, policy: Policy) -> U64:
    """Return codes of the power-of-two format `dst` for normalised finite numbers.

    Negative numbers give the NaN code. Zero gives the smallest power when saturating by the ONNX rule, otherwise NaN.
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
    """Return masks of the numbers that, before rounding, lie below the smallest and above the largest power."""
    top = dst.max_finite_code + dst.min_exponent
    high = (value.exponent > top) | ((value.exponent == top) & (value.significand > TOP))
    return value.exponent < dst.min_exponent, high


def _rounded_exponent(value: Unpacked, rounding: Rounding) -> I64:
    """Round the significand to one bit; the carry increments the exponent."""
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


# Codes of results that are not a rounded number: NaN, infinity, overflow. Each is a pair (positive, negative).

CodePair = tuple[int, int]


def nan_codes(dst: Format, policy: Policy) -> CodePair:
    """Return the result codes of NaN of either sign."""
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
    """Return the result codes of an infinity of either sign."""
    if isinstance(dst, IntFormat):
        return _infinity_to_integer(dst, policy)
    finite = policy.infinity_to_max if policy.overflow is Overflow.SPECIAL else not policy.keep_infinity
    positive, negative = _largest(dst) if finite else _beyond_finite(dst)
    if not dst.signed and dst.nan_code is not None:
        negative = dst.nan_code
    return positive, negative


def overflow_codes(dst: FloatFormat | TaperedFormat, policy: Policy) -> CodePair:
    """Return the result codes of a finite number beyond the destination's range.

    IEEE 754: modes that round toward zero give the largest finite value, all others infinity.
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

    `fallback` replaces results whose kept fraction is 0, which is not a NaN.
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


def pack(value: Unpacked, dst: Format, policy: Policy, words: U64 | None = None) -> U64:
    """Return codes of `dst` as uint64.

    `words` has one 32-bit word per element for the modes that compare (stochastic, hybrid).
    """
    if isinstance(dst, IntFormat):
        if dst.boolean:
            return _pack_boolean(value)
        codes = _pack_integer(value, dst, policy, words)
    elif not dst.has_zero:
        assert isinstance(dst, FloatFormat)
        codes = pack_power(normalise(value), dst, policy)
    elif isinstance(dst, TaperedFormat):
        codes = _pack_tapered(normalise(value), dst, policy, _draw(policy, words))
    else:
        codes = _pack_float(value, dst, policy, _draw(policy, words))
    return _settle_specials(codes, value, dst, policy)


def _draw(policy: Policy, words: U64 | None) -> Draw | None:
    return None if words is None else Draw(words, policy.stochastic_far_zero)


def _rule(policy: Policy) -> int:
    if policy.rounding is Rounding.STOCHASTIC and not policy.stochastic_guard:
        return UNGUARDED
    return rule_of(policy.rounding)


def _by_sign(negative: U64, codes: tuple[int, int]) -> U64:
    """Choose between the code for positive and the code for negative elements."""
    return np.array(codes, np.uint64)[negative]


def _settle_specials(codes: U64, value: Unpacked, dst: Format, policy: Policy) -> U64:
    if value.infinite is not None and value.infinite.any():
        np.copyto(codes, _by_sign(value.negative, infinity_codes(dst, policy)), where=value.infinite)
    if value.nan is not None and value.nan.any():
        np.copyto(codes, _by_sign(value.negative, nan_codes(dst, policy)), where=value.nan)
    return codes


def _pack_boolean(value: Unpacked) -> U64:
    truth: Mask = value.significand != 0
    for special in (value.nan, value.infinite):
        if special is not None:
            truth = truth | special
    return truth.astype(np.uint64)


def round_to_integer(value: Unpacked, policy: Policy, words: U64 | None) -> tuple[U64, Mask]:
    """Return the magnitudes rounded to integers, modulo 2**64, and a mask of those that reach 2**64."""
    if np.any(value.exponent > 63):  # only a significand with its top bit set is then sure to reach 2**64
        value = normalise(value)
    wide: Mask = value.exponent > 63
    magnitude = shift_round(
        value.significand, np.maximum(63 - value.exponent, 0), value.negative, _rule(policy), _draw(policy, words)
    )
    if np.any(wide):
        left = np.maximum(value.exponent - 63, 0).view(np.uint64)
        magnitude = np.where(wide, value.significand << left, magnitude)
    return magnitude, wide


def _pack_integer(value: Unpacked, dst: IntFormat, policy: Policy, words: U64 | None) -> U64:
    magnitude, wide = round_to_integer(value, policy, words)
    limits: tuple[int, int] | None = (dst.maximum, -dst.minimum)
    if policy.overflow is Overflow.WRAP:
        half = 1 << (policy.wrap_bits or 64) - 1
        limits = (half - 1, half) if policy.wrap_bits else None
    if limits is not None:
        limit = _by_sign(value.negative, limits)
        magnitude = np.where(wide & (value.significand != 0), limit, np.minimum(magnitude, limit))
    signed = (magnitude ^ (np.uint64(0) - value.negative)) + value.negative
    codes = signed & np.uint64((1 << dst.bits) - 1)
    if code_bits(dst) > dst.bits:
        sign = np.uint64(-dst.minimum)
        codes = (codes ^ sign) - sign
    return codes


def _sign_and_overflow(
    codes: U64, over: Mask, value: Unpacked, dst: FloatFormat | TaperedFormat, policy: Policy
) -> U64:
    """Give magnitudes their sign and replace those beyond the finite range."""
    sign = value.negative << np.uint64(dst.bits - 1)
    if policy.drop_negative_zero or not dst.has_negative_zero:
        sign *= codes != 0
    codes = codes | sign
    if over.any():
        np.copyto(codes, _by_sign(value.negative, overflow_codes(dst, policy)), where=over)
    return codes


def _pack_float(value: Unpacked, dst: FloatFormat, policy: Policy, draw: Draw | None) -> U64:
    # Down in the destination's subnormal range the rounding position does not depend on the leading bit.
    if np.any((value.significand < TOP) & (value.exponent > dst.min_exponent)):
        value = normalise(value)
    below = dst.min_exponent - value.exponent
    rule: Any = _rule(policy)
    shift: I64 | np.int64 = np.int64(63 - dst.fraction_bits)
    tiny = below > 0
    if tiny.any():
        shift = np.maximum(below, 0) + shift
    if policy.subnormal_rounding is not None:
        # Subnormals of a source with the same smallest exponent keep that exponent, and have no leading bit.
        tiny = tiny | ((below == 0) & (value.significand < TOP))
        rule = np.where(tiny, np.uint64(rule_of(policy.subnormal_rounding)), np.uint64(rule))
    kept = shift_round(value.significand, shift, value.negative, rule, draw)
    if policy.flush_result:
        kept = kept * (kept >> np.uint64(dst.fraction_bits) != 0)
    # A normal significand carries its hidden bit, which adds one to the exponent field; so does a rounding carry.
    field = np.maximum(-below, 0).view(np.uint64)
    codes = kept + (field << np.uint64(dst.fraction_bits))
    return _sign_and_overflow(codes, codes > np.uint64(dst.max_finite_code), value, dst, policy)


@lru_cache(maxsize=8)
def tapered_layout(dst: TaperedFormat) -> tuple[U64, U64]:
    """Return first code and fraction bits of every binade by rising exponent, and one past the last."""
    first = [binade.first_code for binade in dst.binades] + [dst.infinity_code]
    fraction_bits = [binade.fraction_bits for binade in dst.binades] + [0]
    return np.array(first, np.uint64), np.array(fraction_bits, np.uint64)


def _tapered_rule(binade_bits: U64, exponent: I64, dst: TaperedFormat, policy: Policy) -> Any:
    """Return the rule of every element: hybrid compares only away from the binades of full precision.

    Below the binade that the half of the smallest number opens, hybrid gives zero (docs/reference/formats.md section
    2).
    """
    if policy.rounding is not Rounding.HYBRID:
        return _rule(policy)
    rules = [np.uint64(rule_of(mode)) for mode in (Rounding.ROUND, Rounding.HYBRID, Rounding.TRUNC)]
    widest = max(binade.fraction_bits for binade in dst.binades)
    away = np.where(exponent < dst.binades[0].exponent - 1, rules[2], rules[1])
    return np.where(binade_bits == widest, rules[0], away)


def _pack_tapered(value: Unpacked, dst: TaperedFormat, policy: Policy, draw: Draw | None) -> U64:
    first, fraction_bits = tapered_layout(dst)
    lowest, highest = dst.binades[0].exponent, dst.binades[-1].exponent
    index = np.clip(value.exponent, lowest, highest) - lowest
    bits = fraction_bits[index]
    shift = np.maximum(lowest - value.exponent, 0) + 63 - bits.view(np.int64)
    rule = _tapered_rule(bits, value.exponent, dst, policy)
    kept = shift_round(value.significand, shift, value.negative, rule, draw)
    # A carry out of the fraction opens the next binade, whose fraction is then 0 whatever its width.
    carried = (kept >> (bits + np.uint64(1))) != 0
    codes = np.where(carried, first[index + 1], first[index] + kept - (np.uint64(1) << bits))
    codes *= kept != 0
    last = index == highest - lowest
    over = (value.exponent > highest) | (last & (codes > np.uint64(dst.max_finite_code)))
    return _sign_and_overflow(codes, over, value, dst, policy)
