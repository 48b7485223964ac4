"""Casts of code arrays: exact for every pair of formats, in integers only."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import numpy as np
from numpy.typing import NDArray

from castsim.isa.errors import IllegalError, ReadError
from castsim.isa.formats import Codes, FloatFormat, Format, IntFormat, Rounding, Specials
from castsim.numerics.blocks import check_codes, code_dtype, convert_blocks
from castsim.numerics.pack import Unpacked, pack, payload_nan_codes, round_to_integer, unpack
from castsim.numerics.policy import HYBRID_WORDS, NanToFloat, Policy, check_policy
from castsim.numerics.rounding import U64


def cast_codes(
    codes: Codes,
    src: Format,
    dst: Format,
    policy: Policy,
    *,
    random: NDArray[np.uint32] | None = None,
    out: Codes | None = None,
) -> Codes:
    """Convert codes of `src` to codes of `dst`, rounding once from the exact value.

    Args:
        codes: unsigned integers of `src`'s storage width, any shape and layout.
        src: format of the codes.
        dst: format of the result.
        policy: rounding, overflow and special values; `abstract_policy` returns the one without a chip.
        random: for stochastic rounding, one uint32 word per element, of the shape of `codes`.
        out: array of the same shape for the result; may be `codes` itself if the widths agree.

    Raises:
        ReadError: an array has a wrong dtype or shape, a code exceeds the format, or random words are missing or idle.
        IllegalError: the policy does not apply to the pair.
    """
    check_policy(src, dst, policy)
    check_random(codes, policy, random)
    return convert_blocks(
        check_codes(codes, src), dst, lambda block, words: cast_block(block, src, dst, policy, words), random, out
    )


def cast_block(block: U64, src: Format, dst: Format, policy: Policy, words: U64 | None) -> U64:
    """Convert one block of checked uint64 codes; `words` are the random words, if any."""
    if policy.rounding is Rounding.HYBRID:
        mask, left, low = HYBRID_WORDS[src.name]
        words = (block & np.uint64(mask)) << np.uint64(left) | np.uint64(low)
    value = unpack(block, src, policy.flush_source)
    result = pack(value, dst, policy, words)
    if policy.nan_to_float is NanToFloat.PAYLOAD and value.nan is not None and _is_ieee(src) and _is_ieee(dst):
        kept = payload_nan_codes(block, cast(FloatFormat, src), cast(FloatFormat, dst), result)
        np.copyto(result, kept, where=value.nan)
    return result


def _is_ieee(fmt: Format) -> bool:
    return isinstance(fmt, FloatFormat) and fmt.specials is Specials.IEEE


def check_random(codes: Codes, policy: Policy, random: NDArray[np.uint32] | None) -> None:
    """Reject stochastic rounding without words, and words that are unused or do not fit.

    Raises:
        ReadError: the words are missing, unused or do not fit.
    """
    if (policy.rounding is Rounding.STOCHASTIC) != (random is not None):
        need = "needs random words" if random is None else "takes no random words"
        raise ReadError(f"rounding '{policy.rounding}' {need}")
    if random is None:
        return
    if not isinstance(random, np.ndarray) or random.dtype.kind != "u" or random.dtype.itemsize != 4:
        shown = getattr(random, "dtype", type(random).__name__)
        raise ReadError(f"random words come as an array of uint32, not {shown}", legal=("uint32",))
    if random.shape != np.shape(codes):
        raise ReadError(f"random words of shape {random.shape} for codes of shape {np.shape(codes)}")


def round_to_integral_codes(
    codes: Codes,
    fmt: Format,
    policy: Policy,
    *,
    random: NDArray[np.uint32] | None = None,
    out: Codes | None = None,
) -> Codes:
    """Round numbers of a float format to integral values of the same format; the sign of zero is kept.

    Infinities and NaN follow the policy, as does a result beyond the finite range.

    Raises:
        ReadError: see `cast_codes`.
        IllegalError: the format is an integer or has no zero, or the policy does not apply to it.
    """
    if isinstance(fmt, IntFormat) or not fmt.has_zero:
        raise IllegalError(f"{fmt.name} cannot be rounded to integral values", legal=("float formats with a zero",))
    if policy.rounding is Rounding.HYBRID:
        raise IllegalError("rounding 'hybrid' is not defined for integral values")
    check_policy(fmt, fmt, replace(policy, rounding=Rounding.TRUNC))
    check_random(codes, policy, random)

    def convert(block: U64, words: U64 | None) -> U64:
        value = unpack(block, fmt, policy.flush_source)
        return pack(_rounded_to_integral(value, policy, words), fmt, policy)

    return convert_blocks(check_codes(codes, fmt), fmt, convert, random, out)


def _rounded_to_integral(value: Unpacked, policy: Policy, words: U64 | None) -> Unpacked:
    magnitude = round_to_integer(value, policy, words)[0]
    # Where the lowest bit of the significand weighs 1 or more there is nothing to round.
    integral = value.exponent >= 63
    return replace(
        value,
        significand=np.where(integral, value.significand, magnitude),
        exponent=np.where(integral, value.exponent, 63),
    )


@dataclass(frozen=True, slots=True)
class Scale:
    """An exact factor `significand * 2**exponent`."""

    significand: int
    exponent: int = 0


def scale_of(code: int, fmt: Format) -> Scale:
    """Return the finite number of a float code, as a scale.

    Raises:
        ReadError: it is not a code of the format, or is infinity or NaN.
    """
    value = unpack(check_codes(np.array([code], code_dtype(fmt)), fmt).astype(np.uint64), fmt)
    for special in (value.nan, value.infinite):
        if special is not None and special.any():
            raise ReadError(f"{fmt.name} code {code:#x} is not a finite scale")
    significand, exponent = int(value.significand[0]), int(np.ravel(value.exponent)[0]) - 63
    if significand == 0:
        return Scale(0)
    trailing = (significand & -significand).bit_length() - 1
    sign = -1 if value.negative[0] else 1
    return Scale(sign * (significand >> trailing), exponent + trailing)


def scaled_cast_codes(
    codes: Codes,
    src: IntFormat,
    dst: Format,
    scale: Scale,
    policy: Policy,
    *,
    shifts: Codes | None = None,
    random: NDArray[np.uint32] | None = None,
    out: Codes | None = None,
) -> Codes:
    """Convert `integer * scale` to `dst`, rounding once from the exact product.

    `shifts` optionally has one signed integer per element, added to the scale's exponent: negative ones shift
    right. For other arguments and errors see `cast_codes`.

    Raises:
        IllegalError: the product could need more than 64 bits; see also `cast_codes`.
    """
    check_policy(src, dst, policy)
    check_random(codes, policy, random)
    factor = abs(scale.significand)
    room = 64 - src.bits + src.signed  # the magnitude of an n-bit signed integer reaches 2**(n-1)
    if factor.bit_length() > room:
        message = f"{src.name} times {scale.significand} may need more than 64 bits"
        raise IllegalError(message, legal=(f"scales of up to {room} bits",))
    if shifts is not None and (shifts.dtype.kind not in "iu" or shifts.shape != np.shape(codes)):
        raise ReadError(f"shifts must be integers of shape {np.shape(codes)}, not {shifts.dtype} of {shifts.shape}")

    def convert(block: U64, words: U64 | None, shift: U64 | None = None) -> U64:
        value = unpack(block, src)
        exponent = value.exponent + scale.exponent
        scaled = replace(
            value,
            negative=value.negative ^ np.uint64(scale.significand < 0),
            significand=value.significand * np.uint64(factor),
            exponent=exponent if shift is None else exponent + shift.view(np.int64),
        )
        return pack(scaled, dst, policy, words)

    return convert_blocks(check_codes(codes, src), dst, convert, random, out, shifts)
