"""The parameters of a compiled kernel: formats and policy of a cast as plain integers.

The codes of special results come from the functions the reference uses, so there is one definition of each.
"""

from __future__ import annotations

from enum import IntEnum
from math import isqrt
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from castsim.isa.formats import FloatFormat, Format, IntFormat, Overflow, Rounding, Specials, TaperedFormat
from castsim.numerics.pack import code_bits, infinity_codes, nan_codes, overflow_codes, tapered_layout, tapered_tables
from castsim.numerics.policy import HYBRID_WORDS, E8M0Rule, NanToFloat, Policy, is_power_format
from castsim.numerics.rounding import U64, UNGUARDED, rule_of

EXPONENT_ZERO = 1 << 13
"""Exponents are kept above zero by this much, beyond the range of f64 scaled by any shift."""


class FormatFamily(IntEnum):
    """Families of formats that unpack or pack alike."""

    FLOAT = 0
    INTEGER = 1
    TAPERED = 2
    POWER = 3
    BOOLEAN = 4


class Fields(NamedTuple):
    """One cast, for words of a given width. Names say which side; `rule` and codes as in the reference."""

    src_width: int = 0
    src_signed: int = 0
    src_magnitude: int = 0
    src_fraction: int = 0
    src_fraction_mask: int = 0
    src_left: int = 0
    src_hidden: int = 0
    src_first: int = 0
    src_offset: int = 0
    src_flush: int = 0
    src_infinity: int = 0
    src_nan_above: int = 0
    src_nan_exact: int = 0
    src_nan_signed: int = 0
    src_one: int = 0
    normalise: int = 1
    dst_width: int = 0
    dst_fraction: int = 0
    dst_lowest: int = 0
    dst_highest: int = 0
    dst_largest: int = 0
    dst_signed_zero: int = 0
    dst_one: int = 0
    dst_cut: int = 0
    dst_flush: int = 0
    dst_clamps: int = 0
    dst_limit: int = 0
    dst_limit_negative: int = 0
    dst_mask: int = 0
    dst_extend: int = 0
    rule: int = 0
    rule_tiny: int = 0
    rule_widest: int = 0
    widest: int = 0
    draws: int = 0
    draw_mask: int = 0
    draw_left: int = 0
    draw_low: int = 0
    far_is_zero: int = 0
    over: int = 0
    over_negative: int = 0
    infinity: int = 0
    infinity_negative: int = 0
    nan: int = 0
    nan_negative: int = 0
    payload: int = 0
    payload_right: int = 0
    payload_left: int = 0
    payload_code: int = 0
    asl: int = 0
    saturates: int = 0
    root_of_two: int = 0


def family_of(fmt: Format) -> FormatFamily:
    """Return the family of a format as a destination; as a source, powers are floats."""
    if isinstance(fmt, IntFormat):
        return FormatFamily.BOOLEAN if fmt.boolean else FormatFamily.INTEGER
    if isinstance(fmt, TaperedFormat):
        return FormatFamily.TAPERED
    return FormatFamily.POWER if is_power_format(fmt) else FormatFamily.FLOAT


def word_bits(src: Format, dst: Format, policy: Policy) -> int:
    """Return the width of the words in which a cast is computed: 32 wherever everything fits."""
    wide = max(src.storage_bits, dst.storage_bits) > 32 or (policy.wrap_bits or 0) > 32
    return 64 if wide else 32


def fields_of(src: Format, dst: Format, policy: Policy) -> Fields:
    """Return the integers that describe a legal cast to the kernels."""
    bits = word_bits(src, dst, policy)
    found = _source(src, policy, bits)
    found |= _destination(dst, policy, bits)
    found |= _rules(src, dst, policy)
    found |= _special_codes(src, dst, policy)
    if isinstance(src, FloatFormat) and isinstance(dst, FloatFormat) and dst.has_zero:
        # Subnormal sources all lie among the destination's: the rounding position does not depend on their size.
        found["normalise"] = int(src.min_exponent > dst.min_exponent)
    return Fields(**found)


def _source(src: Format, policy: Policy, bits: int) -> dict[str, int]:
    ones = (1 << bits) - 1
    if isinstance(src, IntFormat):
        width = code_bits(src)
        return {"src_width": width, "src_signed": int(src.signed), "src_magnitude": (1 << width) - 1}
    found = {
        "src_width": src.bits,
        "src_signed": int(src.signed),
        "src_magnitude": (1 << src.bits) - 1 - (src.sign_bit if src.signed else 0),
        "src_nan_signed": int(src.nan_has_sign),
        "src_infinity": ones if src.infinity_code is None else src.infinity_code,
        "src_nan_above": ones,
        "src_nan_exact": ones,
    }
    if isinstance(src, TaperedFormat):
        return found | {"src_nan_exact": src.nan_code}
    if src.specials is Specials.NAN_NEGATIVE_ZERO:
        found["src_nan_exact"] = src.sign_bit
    elif src.has_nan:
        found["src_nan_above"] = src.infinity_code if src.infinity_code is not None else src.max_finite_code
    return found | {
        "src_fraction": src.fraction_bits,
        "src_fraction_mask": src.fraction_mask,
        "src_left": bits - 1 - src.fraction_bits,
        "src_hidden": 1 << src.fraction_bits,
        "src_first": int(src.has_zero),
        "src_offset": EXPONENT_ZERO - src.bias,
        "src_one": _single_precision(src.min_exponent),
        "src_flush": int(policy.flush_source and src.has_zero),
    }


def _destination(dst: Format, policy: Policy, bits: int) -> dict[str, int]:
    found = {"dst_width": dst.bits, "saturates": int(policy.overflow is Overflow.SATURATE)}
    if isinstance(dst, IntFormat):
        return found | _integer_destination(dst, policy, bits)
    found["dst_largest"] = dst.max_finite_code
    found["dst_signed_zero"] = int(dst.has_negative_zero and not policy.drop_negative_zero)
    if isinstance(dst, TaperedFormat):
        lowest, highest = dst.binades[0].exponent, dst.binades[-1].exponent
        return found | {"dst_lowest": EXPONENT_ZERO + lowest, "dst_highest": EXPONENT_ZERO + highest}
    return found | {
        "dst_fraction": dst.fraction_bits,
        "dst_lowest": EXPONENT_ZERO + dst.min_exponent,
        "dst_one": _single_precision(dst.min_exponent),
        "dst_cut": _first_cut(dst),
        "dst_flush": int(policy.flush_result),
        "asl": int(policy.e8m0_rule is E8M0Rule.ASL),
        "root_of_two": isqrt(1 << (2 * bits - 1)),
    }


def _single_precision(exponent: int) -> int:
    """Return the f32 bits of a power of two, 0 beyond its normal range."""
    return (exponent + 127) << 23 if -126 <= exponent <= 127 else 0


def _first_cut(dst: FloatFormat) -> int:
    """Return the f32 bits of the largest finite number, if f32 holds it with room to spare.

    For small formats a number that overflows instead: the power of two beyond all exponents.
    """
    if dst.bits <= 8:
        return _single_precision(dst.exponent_mask + 1 - dst.bias)
    exponent = (dst.max_finite_code >> dst.fraction_bits) - dst.bias
    fraction = (dst.max_finite_code & dst.fraction_mask) << 23 >> dst.fraction_bits
    return _single_precision(exponent) + fraction


def _integer_destination(dst: IntFormat, policy: Policy, bits: int) -> dict[str, int]:
    limits: tuple[int, int] | None = (dst.maximum, -dst.minimum)
    if policy.overflow is Overflow.WRAP:
        half = 1 << (policy.wrap_bits or 1) - 1
        limits = (half - 1, half) if policy.wrap_bits else None
    ones = (1 << bits) - 1
    positive, negative = limits or (ones, ones)
    return {
        "dst_clamps": int(limits is not None),
        "dst_limit": positive,
        "dst_limit_negative": negative,
        "dst_mask": (1 << dst.bits) - 1,
        "dst_extend": -dst.minimum if code_bits(dst) > dst.bits else 0,
    }


def _rules(src: Format, dst: Format, policy: Policy) -> dict[str, int]:
    rounding = policy.rounding
    rule = UNGUARDED if rounding is Rounding.STOCHASTIC and not policy.stochastic_guard else rule_of(rounding)
    tiny, widest_rule, widest = rule, rule, 0
    if isinstance(dst, TaperedFormat):
        widest = max(binade.fraction_bits for binade in dst.binades)
        if rounding is Rounding.HYBRID:
            # As the reference: ties away where the fraction is widest, nothing below the smallest number's half.
            tiny, widest_rule = rule_of(Rounding.TRUNC), rule_of(Rounding.ROUND)
    elif policy.subnormal_rounding is not None:
        tiny = rule_of(policy.subnormal_rounding)
    mask, left, low = (0, 0, 0)
    if rounding is Rounding.HYBRID:
        mask, left, low = HYBRID_WORDS[src.name]
    return {
        "rule": rule,
        "rule_tiny": tiny,
        "rule_widest": widest_rule,
        "widest": widest,
        "draws": int(rounding in (Rounding.STOCHASTIC, Rounding.HYBRID)),
        "draw_mask": mask,
        "draw_left": left,
        "draw_low": low,
        "far_is_zero": int(policy.stochastic_far_zero),
    }


def _special_codes(src: Format, dst: Format, policy: Policy) -> dict[str, int]:
    found: dict[str, int] = {}
    found["infinity"], found["infinity_negative"] = infinity_codes(dst, policy)
    found["nan"], found["nan_negative"] = nan_codes(dst, policy)
    if isinstance(dst, FloatFormat) and not dst.has_zero:
        assert dst.nan_code is not None
        found["over"] = dst.nan_code  # of negative numbers too
    elif not isinstance(dst, IntFormat):
        found["over"], found["over_negative"] = overflow_codes(dst, policy)
    ieee = all(isinstance(fmt, FloatFormat) and fmt.specials is Specials.IEEE for fmt in (src, dst))
    if ieee and policy.nan_to_float is NanToFloat.PAYLOAD:
        source, destination = cast(FloatFormat, src), cast(FloatFormat, dst)
        narrowing = source.fraction_bits - destination.fraction_bits
        found["payload"] = 1
        found["payload_right"], found["payload_left"] = max(narrowing, 0), max(-narrowing, 0)
        found["payload_code"] = destination.exponent_mask << destination.fraction_bits
    return found


TABLE_WIDTH = 1 << 8
"""Entries of a row of `tables_of`: codes of a tapered format without their sign, or its binades."""


def tables_of(src: Format | None, dst: Format | None, bits: int) -> U64 | NDArray[np.uint32]:
    """Return the rows that tapered formats need, as words: significand and exponent by source code without sign,
    first code and fraction bits by destination binade.
    """
    rows = np.zeros((4, TABLE_WIDTH), np.uint64)
    if isinstance(src, TaperedFormat):
        significands, exponents = tapered_tables(src)
        rows[0, : significands.size] = significands >> np.uint64(64 - bits)
        rows[1, : exponents.size] = np.maximum(exponents + EXPONENT_ZERO, 0).view(np.uint64)
    if isinstance(dst, TaperedFormat):
        first, fraction_bits = tapered_layout(dst)
        rows[2, : first.size] = first
        rows[3, : fraction_bits.size] = fraction_bits
    return rows.astype(np.dtype(f"u{bits // 8}"))
