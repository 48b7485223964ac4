"""Shorter paths through single precision, for casts that the general steps do more slowly than memory.

Exact on the way in (every source value is an f32), one rounding on the way out: to nearest even by the processor or
by adding a constant, or to an integral value. Each is the same function as the reference's; `castsim verify` and the
tests compare all codes. No other module lets floating point decide a bit.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from castsim.isa.codes import Codes
from castsim.isa.formats import FloatFormat, Format, IntFormat
from castsim.isa.modes import Overflow, Rounding
from castsim.numerics.compiled.fields import Fields
from castsim.numerics.compiled.steps import inline, settle_sign
from castsim.numerics.compiled.words import (
    KernelFunction,
    Word,
    above,
    add,
    band,
    bits_of_float,
    bor,
    double_bits_of_float,
    equal,
    float_at_least,
    float_bits_of_double_bits,
    float_of_bits,
    float_of_half_bits,
    float_of_signed,
    float_of_unsigned,
    greater,
    greater_float,
    half_bits_of_float,
    lesser,
    lesser_float,
    like,
    pick,
    sar,
    shl,
    shr,
    signed_of_float,
    sub,
    to_ceil,
    to_floor,
    to_nearest,
    to_zero,
    unsigned_of_float,
)
from castsim.numerics.policy import NanToFloat, Policy

_INFINITY = 0x7F800000
_QUIET = 0x7FC00000
_SIGN = 0x80000000
_MAGNITUDE = 0x7FFFFFFF


class F32Path(IntEnum):
    """A path between a format and single precision, in either direction."""

    SINGLE = 0
    HALF = 1
    BRAIN = 2
    SMALL = 3
    SIGNED = 4
    UNSIGNED = 5
    DOUBLE = 6


_SINGLE, _HALF, _BRAIN, _SMALL, _SIGNED, _UNSIGNED, _DOUBLE = (int(path) for path in F32Path)

TO_INTEGRAL = {Rounding.RINT: 0, Rounding.FLOOR: 1, Rounding.CEIL: 2, Rounding.TRUNC: 3}
"""Modes that processors have for rounding to integral values."""


def _layout(fmt: Format) -> tuple[int, int, int] | None:
    return (fmt.exponent_bits, fmt.fraction_bits, fmt.bias) if isinstance(fmt, FloatFormat) and fmt.signed else None


_PATHS = {
    (8, 23, 127): F32Path.SINGLE,
    (5, 10, 15): F32Path.HALF,
    (8, 7, 127): F32Path.BRAIN,
    (11, 52, 1023): F32Path.DOUBLE,
}


def path_to_f32(src: Format, dst: Format) -> F32Path | None:
    """Return the path from `src` to f32, None if f32 cannot hold every number.

    The value stays the same, except where `rounds_to_f32` says so and the f32 is the result.
    """
    layout = _layout(src)
    if isinstance(src, IntFormat):
        exact = src.bits <= 16 or (src.bits == 32 and _PATHS.get(_layout(dst) or (0, 0, 0)) is F32Path.SINGLE)
        return (F32Path.SIGNED if src.signed else F32Path.UNSIGNED) if exact and not src.boolean else None
    if layout is None or not isinstance(src, FloatFormat):
        return None
    known = _PATHS.get(layout) if src.has_infinity else None
    if known is F32Path.DOUBLE and _PATHS.get(_layout(dst) or (0, 0, 0)) is not F32Path.SINGLE:
        return None  # the way in may round only if nothing rounds after it
    return known if known is not None else F32Path.SMALL if src.bits <= 8 else None


def rounds_to_f32(src: Format) -> bool:
    """Whether becoming an f32 rounds, to nearest even."""
    return src.bits > 16 and (isinstance(src, IntFormat) or src.bits > 32)


def path_from_f32(dst: Format, policy: Policy) -> F32Path | None:
    """Return the path from f32 to the result, None if only the general steps have it."""
    if isinstance(dst, IntFormat):
        clamps = policy.overflow is Overflow.SATURATE and policy.rounding in TO_INTEGRAL
        narrow = dst.bits <= 32 and not dst.boolean
        return (F32Path.SIGNED if dst.signed else F32Path.UNSIGNED) if clamps and narrow else None
    layout = _layout(dst)
    plain = policy.nan_to_float is not NanToFloat.PAYLOAD and not (policy.flush_source or policy.flush_result)
    plain = plain and policy.stochastic_guard  # without it exact values move
    if layout is None or not isinstance(dst, FloatFormat) or not plain:
        return None
    known = _PATHS.get(layout) if dst.has_infinity else None
    if policy.rounding is not Rounding.RINT or policy.subnormal_rounding not in (None, Rounding.RINT):
        return (
            known if known in (F32Path.SINGLE, F32Path.DOUBLE) else None
        )  # nothing is rounded from single precision up
    return known if known is not None else F32Path.SMALL if dst.bits <= 8 else None


@inline
def widen(code: Word, p: Fields, path: int) -> Word:
    """Return the f32 bits of a source code; a NaN stays some NaN of its sign."""
    if path == _HALF:
        return bits_of_float(float_of_half_bits(code))
    if path == _BRAIN:
        return shl(code, 16)
    if path == _SIGNED:
        return bits_of_float(float_of_signed(sar(shl(code, 32 - p.src_width), 32 - p.src_width)))
    if path == _UNSIGNED:
        return bits_of_float(float_of_unsigned(code))
    if path == _SMALL:
        return _widen_small(code, p)
    return code


@inline
def _widen_small(code: Word, p: Fields) -> Word:
    """Move the fields of a float of up to 8 bits into place; subnormal numbers by an exact subtraction."""
    magnitude = band(code, p.src_magnitude)
    placed = shl(magnitude, 23 - p.src_fraction)
    one = like(p.src_one, code)  # exponent field of the smallest normal number, as f32 bits
    normal = add(placed, sub(one, 1 << 23))
    tiny = bits_of_float(float_of_bits(add(placed, one)) - float_of_bits(one))
    bits = pick(shr(magnitude, p.src_fraction), normal, tiny)
    nan = bor(above(magnitude, p.src_nan_above), equal(code, p.src_nan_exact))
    sign = band(shr(code, p.src_width - 1), pick(nan, p.src_nan_signed, 1))
    bits = pick(equal(magnitude, p.src_infinity), _INFINITY, pick(nan, _QUIET, bits))
    return bor(bits, shl(sign, 31))


@inline
def narrow(
    bits: Word, p: Fields, path: int, natural: bool, settled: bool, integral: int, largest: Word, beyond: Word
) -> Word:
    """Return the result's code for f32 bits.

    `natural`: infinities and overflow need no care, or only a clamp, see `is_natural`. `settled`: f32 results have
    their infinities and NaN already. The last three concern integer results; `integral` is from `TO_INTEGRAL`.
    """
    magnitude = band(bits, _MAGNITUDE)
    if path in (_SIGNED, _UNSIGNED):
        code = _narrow_integer(float_of_bits(bits), p, path, integral, largest, beyond)
        return pick(above(magnitude, _INFINITY), p.nan, code)
    negative = shr(bits, 31)
    if path == _DOUBLE:
        wide = double_bits_of_float(float_of_bits(bits))
        return _settle(wide, like(magnitude, wide), like(negative, wide), p)
    if path == _SINGLE:
        signed = pick(bor(magnitude, p.dst_signed_zero), bits, 0)
        if natural:
            return _settle_nan(signed, magnitude, negative, p)
        return signed if settled else _settle(signed, magnitude, negative, p)
    if path == _SMALL:
        code = _narrow_small(magnitude, p)
        signed = settle_sign(code, above(code, p.dst_largest), negative, p)
        return _settle(signed, magnitude, negative, p)
    if natural:
        inside = bor(lesser(magnitude, p.dst_cut), shl(negative, 31)) if p.saturates else bits
        return _settle_nan(_narrow_wide(inside, path), magnitude, negative, p)
    code = _narrow_wide(magnitude, path)
    signed = settle_sign(code, above(code, p.dst_largest), negative, p)
    return _settle(signed, magnitude, negative, p)


@inline
def _narrow_wide(bits: Word, path: int) -> Word:
    """Round to nearest even in f16 or bf16; overflow gives infinity, NaN something."""
    if path == _HALF:
        return half_bits_of_float(float_of_bits(bits))
    return shr(add(add(bits, 0x7FFF), band(shr(bits, 16), 1)), 16)


@inline
def _narrow_small(magnitude: Word, p: Fields) -> Word:
    """Round to nearest even by an addition whose result has its last place where the result's is.

    Numbers far above the range are cut to one that still overflows, so that the constant stays a number.
    """
    low, dropped = like(p.dst_one, magnitude), 23 - p.dst_fraction
    inside = lesser(magnitude, p.dst_cut)
    exponent = greater(band(inside, _INFINITY), low)
    constant = add(exponent, dropped << 23)
    kept = sub(bits_of_float(float_of_bits(inside) + float_of_bits(constant)), constant)
    return add(kept, shr(sub(exponent, low), dropped))


@inline
def _settle(code: Word, magnitude: Word, negative: Word, p: Fields) -> Word:
    """Replace infinities and NaN by their codes under the policy."""
    code = pick(equal(magnitude, _INFINITY), pick(negative, p.infinity_negative, p.infinity), code)
    return _settle_nan(code, magnitude, negative, p)


@inline
def _settle_nan(code: Word, magnitude: Word, negative: Word, p: Fields) -> Word:
    return pick(above(magnitude, _INFINITY), pick(negative, p.nan_negative, p.nan), code)


@inline
def _narrow_integer(value: Word, p: Fields, path: int, integral: int, largest: Word, beyond: Word) -> Word:
    """Round to an integral f32 and clamp; `largest` is the last f32 inside the range, `beyond` the first outside."""
    if integral == 0:
        rounded = to_nearest(value)
    elif integral == 1:
        rounded = to_floor(value)
    elif integral == 2:
        rounded = to_ceil(value)
    else:
        rounded = to_zero(value)
    # The comparison fails for NaN, which so becomes a number; what NaN gives is settled by the caller.
    clamped = lesser_float(rounded, largest)
    if path == _SIGNED:
        code = signed_of_float(greater_float(clamped, -beyond))
    else:
        code = unsigned_of_float(greater_float(clamped, largest - largest))
    code = pick(float_at_least(rounded, beyond), p.dst_limit, code)
    return band(code, p.dst_mask)


def constants(dst: Format) -> tuple[np.float32, np.float32]:
    """Return the last f32 inside the range of an integer format and the first beyond it; zeros for other formats."""
    if not isinstance(dst, IntFormat):
        return np.float32(0), np.float32(0)
    beyond = np.float32(dst.maximum + 1)
    return np.float32(min(dst.maximum, int(np.nextafter(beyond, np.float32(0))))), beyond


def takes_low_bits(src: Format, dst: Format, policy: Policy) -> bool:
    """Whether a cast between integers is their low bits, in a code without bits of its own."""
    integers = [fmt for fmt in (src, dst) if isinstance(fmt, IntFormat) and not fmt.boolean]
    exact = policy.overflow is Overflow.WRAP and policy.wrap_bits is None
    return len(integers) == 2 and exact and (dst.bits <= 8 or dst.bits == dst.storage_bits)


def low_bits_kernel(p: Fields, width: int, model: Word, stamp: int) -> KernelFunction:
    """Make the loop that takes the low bits of integers; `width` is that of the word `model`."""
    unused = width - p.src_width if p.src_signed else 0

    def kernel(codes: Codes, results: Codes, random: Codes, fields: Codes) -> None:
        if stamp < 0:
            return
        for index in range(codes.size):
            code = like(codes[index], model)
            results[index] = band(sar(shl(code, unused), unused) if unused else code, p.dst_mask)

    return kernel


def is_natural(p: Fields) -> bool:
    """Whether results beyond the range of a wide float are what rounding gives: infinity, or after a clamp the largest.

    Infinity is then the code after the largest finite one, and the signs of all codes are a bit.
    """
    sign = 1 << (p.dst_width - 1)
    last = p.dst_largest if p.saturates else p.dst_largest + 1
    clamps = p.dst_cut > 0 and p.dst_width < 32
    pairs = (p.infinity, p.infinity_negative), (p.over, p.over_negative)
    alike = all(pair == (last, last | sign) for pair in pairs)
    return alike and bool(p.dst_signed_zero) and (not p.saturates or clamps)


def single_precision_kernel(
    source: int, destination: int, integral: int, p: Fields, largest: Word, beyond: Word, model: Word, stamp: int
) -> KernelFunction:
    """Make the loop that casts through f32; arguments as for the other kernels, `model` is a 32-bit word."""

    specials = (p.infinity, p.infinity_negative, p.nan, p.nan_negative)
    usual = specials == (_INFINITY, _INFINITY | _SIGN, _QUIET, _QUIET | _SIGN)
    settled = usual and source in (_SMALL, _SIGNED, _UNSIGNED)
    natural = is_natural(p) and not settled

    def kernel(codes: Codes, results: Codes, random: Codes, fields: Codes) -> None:
        if stamp < 0:
            return
        for index in range(codes.size):
            bits = widen(like(codes[index], model), p, source)
            results[index] = narrow(bits, p, destination, natural, settled, integral, largest, beyond)

    return kernel


def double_precision_kernel(p: Fields, model: Word, stamp: int) -> KernelFunction:
    """Make the loop from f64 to f32, where infinity is natural; `model` is a 64-bit word."""

    def kernel(codes: Codes, results: Codes, random: Codes, fields: Codes) -> None:
        if stamp < 0:
            return
        for index in range(codes.size):
            bits = float_bits_of_double_bits(like(codes[index], model))
            results[index] = _settle_nan(bits, band(bits, _MAGNITUDE), shr(bits, 31), p)

    return kernel
