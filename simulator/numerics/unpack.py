"""From codes to sign, exponent and significand."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from castsim.isa.formats import FloatFormat, Format, IntFormat, Specials, TaperedFormat
from castsim.numerics.rounding import I64, U64

Mask = NDArray[np.bool_]

TOP = np.uint64(1 << 63)
"""The bit that leads a normalised significand."""

LOWEST_EXPONENT = -(1 << 20)
"""Exponent given to zero when significands are normalised: below every format's range."""


@dataclass(frozen=True, slots=True)
class Unpacked:
    """Numbers as `(-1)**negative * significand * 2**(exponent - 63)`, one per element.

    `negative` is 0 or 1 in uint64, `exponent` int64 (0-d if all elements share it). A significand need not have its
    top bit set; see `normalise`. `nan` and `infinite` mark elements whose other fields mean nothing but the sign;
    None: there are none.
    """

    negative: U64
    exponent: I64
    significand: U64
    nan: Mask | None = None
    infinite: Mask | None = None


def code_bits(fmt: Format) -> int:
    """Return the number of storage bits that a code uses.

    Codes below a byte leave the upper bits 0; a wider integer that does not fill its storage (i48) is sign-extended.
    """
    return fmt.storage_bits if isinstance(fmt, IntFormat) and fmt.bits > 8 else fmt.bits


def unpack(codes: U64, fmt: Format, flush: bool = False) -> Unpacked:
    """Take codes of `fmt`, as uint64, apart; with `flush` subnormal numbers become zero of their sign."""
    if isinstance(fmt, IntFormat):
        return _unpack_integer(codes, fmt)
    if isinstance(fmt, TaperedFormat):
        return _unpack_tapered(codes, fmt)
    return _unpack_float(codes, fmt, flush)


def _unpack_integer(codes: U64, fmt: IntFormat) -> Unpacked:
    exponent = np.array(63)
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
