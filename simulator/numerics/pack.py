"""From sign, exponent and significand to codes of a destination: one rounding, then overflow, then special values."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from castsim.isa.formats import FloatFormat, Format, IntFormat, TaperedFormat
from castsim.isa.modes import Overflow, Rounding
from castsim.numerics.e8m0 import pack_power
from castsim.numerics.policy import Policy
from castsim.numerics.rounding import I64, U64, UNGUARDED, Draw, rule_of, shift_round
from castsim.numerics.specials import infinity_codes, nan_codes, overflow_codes
from castsim.numerics.unpack import TOP, Mask, Unpacked, code_bits, normalise


def pack(value: Unpacked, dst: Format, policy: Policy, words: U64 | None = None) -> U64:
    """Return codes of `dst` as uint64.

    `words` holds one 32-bit word per element for the modes that compare (stochastic, hybrid).
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
    """Return the magnitudes rounded to integers, modulo 2**64, and where they reach 2**64."""
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
