"""Codes and the numbers they stand for, one at a time or as float64; and the way back from decimal text."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from castsim.isa.errors import IllegalError, ReadError
from castsim.isa.formats import FORMATS, Codes, Format, IntFormat
from castsim.isa.modes import DETERMINISTIC, Overflow, Rounding
from castsim.numerics.blocks import check_codes, code_dtype
from castsim.numerics.cast import cast_codes
from castsim.numerics.pack import Unpacked, pack, unpack
from castsim.numerics.policy import Policy, abstract_policy, check_policy, default_rounding, is_power_format
from castsim.numerics.rounding import increment, rule_of

Number = int | float | Fraction | Decimal

_DECIMAL = re.compile(r"([+-]?)((\d+)(?:\.(\d*))?|\.(\d+))(?:[eE]([+-]?\d+))?", re.ASCII)
_RATIO = re.compile(r"([+-]?)(\d+)/(\d+)", re.ASCII)
_SPECIAL = re.compile(r"([+-]?)(inf|infinity|nan)", re.IGNORECASE)
_LONGEST_TEXT = 4000  # Python itself refuses to read integers much longer than this
_LARGEST_EXPONENT = 8000  # of ten: 10**-8000 .. 10**8000 is beyond every format, also after as many leading zeros


@dataclass(frozen=True, slots=True)
class Encoded:
    """A code and whether it differs from the number it was made from."""

    code: int
    inexact: bool


def decode_to_float64(codes: Codes, fmt: Format) -> NDArray[np.float64]:
    """Return the numbers that codes stand for.

    Exact for formats of up to 53 significant bits; i64 and u64 round to nearest even.

    Raises:
        ReadError: not codes of the format.
    """
    policy = Policy(Rounding.RINT, Overflow.SPECIAL)
    decoded: NDArray[np.float64] = cast_codes(codes, fmt, FORMATS["f64"], policy).view(np.float64)
    return decoded


def value_of(code: int, fmt: Format) -> Fraction | float:
    """Return the exact number that one code stands for.

    A float comes back only for what no fraction can be: NaN, the infinities and minus zero.

    Raises:
        ReadError: not a code of the format.
    """
    if not 0 <= code < 1 << fmt.storage_bits:
        raise ReadError(f"{code:#x} is not a code of {fmt.name}", legal=(f"0 to {(1 << fmt.bits) - 1:#x}",))
    value = unpack(check_codes(np.array([code], code_dtype(fmt)), fmt).astype(np.uint64), fmt)
    sign = -1 if value.negative[0] else 1
    if value.nan is not None and value.nan[0]:
        return math.nan
    if value.infinite is not None and value.infinite[0]:
        return sign * math.inf
    significand = int(value.significand[0])
    if significand == 0:
        return -0.0 if sign < 0 else Fraction(0)
    return sign * significand * Fraction(2) ** (int(value.exponent.flat[0]) - 63)


def encode_value(value: str | Number, fmt: Format, policy: Policy | None = None) -> Encoded:
    """Return the code nearest to a number, rounded once from its exact value.

    Args:
        value: a number, or text: a decimal (`-1.5e-3`), a ratio (`1/3`), `nan`, `inf`, `-inf`.
        fmt: format of the code.
        policy: how to round and settle overflow; None: to nearest even (ties away in HiFloat8 and e8m0), saturating
            in integers, otherwise as IEEE 754.

    Raises:
        ReadError: the text is not a number.
        IllegalError: the policy has no meaning for the format or needs random words.
    """
    negative, magnitude = parse_number(value)
    policy = policy or _nearest(fmt)
    check_policy(FORMATS["f64"], fmt, policy)
    if policy.rounding not in DETERMINISTIC:
        raise IllegalError(f"rounding '{policy.rounding}' cannot encode one number", legal=DETERMINISTIC)
    if isinstance(magnitude, Fraction):
        unpacked = _unpack_integer if isinstance(fmt, IntFormat) and not fmt.boolean else _unpack_fraction
        code = int(pack(unpacked(negative, magnitude, policy), fmt, policy)[0])
        exact: Fraction | float = -magnitude if negative else magnitude
        return Encoded(code, value_of(code, fmt) != exact)
    special = np.array([True])
    source = Unpacked(
        negative=np.array([negative], np.uint64),
        exponent=np.array([0]),
        significand=np.array([0], np.uint64),
        nan=special if math.isnan(magnitude) else None,
        infinite=None if math.isnan(magnitude) else special,
    )
    code = int(pack(source, fmt, policy)[0])
    got = float(value_of(code, fmt))
    return Encoded(code, not (math.isnan(got) if math.isnan(magnitude) else math.isinf(got)))


def parse_number(value: str | Number) -> tuple[bool, Fraction | float]:
    """Return the sign of a number (True: negative, minus zero too) and its magnitude: a Fraction, NaN or infinity.

    Raises:
        ReadError: the text is not a number.
    """
    if isinstance(value, str):
        return _parse_text(value.strip())
    if isinstance(value, float | Decimal) and not math.isfinite(value):
        return math.copysign(1.0, float(value)) < 0, abs(float(value))
    negative = value < 0 or (isinstance(value, float | Decimal) and str(value).startswith("-"))
    return negative, abs(Fraction(value))


def _parse_text(text: str) -> tuple[bool, Fraction | float]:
    if len(text) <= _LONGEST_TEXT:
        if found := _SPECIAL.fullmatch(text):
            return found[1] == "-", float(found[2].lower())
        if (found := _RATIO.fullmatch(text)) and int(found[3]):
            return found[1] == "-", Fraction(int(found[2]), int(found[3]))
        if found := _DECIMAL.fullmatch(text):
            fraction = found[4] or found[5] or ""
            limit = _LARGEST_EXPONENT + _LONGEST_TEXT
            # The exponent's digits alone may be too many to build the power of ten; its sign decides then.
            exponent = max(-limit, min(limit, int(found[6] or 0))) - len(fraction)
            return found[1] == "-", int((found[3] or "") + fraction) * Fraction(10) ** exponent
    shown = text if len(text) <= 40 else text[:37] + "..."
    raise ReadError(f"'{shown}' is not a number", legal=("decimal", "numerator/denominator", "nan", "inf", "-inf"))


def _nearest(fmt: Format) -> Policy:
    rounding = Rounding.ROUND if is_power_format(fmt) else default_rounding(fmt)
    return Policy(rounding, Overflow.SATURATE if isinstance(fmt, IntFormat) else Overflow.SPECIAL)


def _single(negative: bool, exponent: int, significand: int) -> Unpacked:
    return Unpacked(np.array([negative], np.uint64), np.array([exponent]), np.array([significand], np.uint64))


def _unpack_fraction(negative: bool, magnitude: Fraction, policy: Policy) -> Unpacked:
    """Keep 64 significant bits, the last of them sticky: more than any float format can tell apart."""
    if magnitude == 0:
        return _single(negative, 0, 0)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    if magnitude < Fraction(2) ** exponent:
        exponent -= 1
    scaled = magnitude * Fraction(2) ** (63 - exponent)
    significand = scaled.numerator // scaled.denominator
    return _single(negative, exponent, significand | (scaled.denominator != 1))


def _unpack_integer(negative: bool, magnitude: Fraction, policy: Policy) -> Unpacked:
    """Round to an integer here: its 64 bits and the dropped ones would not fit one significand."""
    kept, rest = divmod(magnitude.numerator, magnitude.denominator)
    half, sticky = divmod(2 * rest, magnitude.denominator)
    kept += increment(kept & 1, half, int(sticky != 0), int(negative), 0, rule_of(policy.rounding))
    if kept < 1 << 64:
        return _single(negative, 63, kept)
    if policy.overflow is Overflow.WRAP and policy.wrap_bits is None:
        return _single(negative, 63, kept & ((1 << 64) - 1))
    return _single(negative, 64, 1 << 63)


# Casts between numbers and text as ONNX Cast has them (operator version 9 and later).
#
# Read are plain decimals (`3.14`, `-1000`), scientific notation (`1e-5`) and, in any case, `INF`, `+INF`, `-INF` and
# `NaN`. What the operator leaves undefined is rejected unless a policy defines it.

_LITERAL = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?|[+-]?inf|nan", re.ASCII | re.IGNORECASE)


def codes_from_strings(strings: ArrayLike, dst: Format, policy: Policy | None = None) -> Codes:
    """Return the codes of `dst` nearest to the numbers that strings spell, rounded once from all their digits.

    Args:
        strings: an array of str or UTF-8 bytes, any shape.
        dst: format of the result.
        policy: rounding, overflow and special values, also for the texts that ONNX leaves undefined in an integer:
            fractions, NaN, infinities, numbers beyond its range. None: the abstract cast, which rejects those.

    Raises:
        ReadError: a text that does not spell a number or, without a policy, one that an integer `dst` cannot hold.
        IllegalError: the policy has no meaning for `dst` or needs random words.
    """
    array = np.asarray(strings)
    if array.dtype.kind not in "USOT":
        raise ReadError(f"strings come as an array of text, not {array.dtype}", legal=("str", "bytes", "object"))
    chosen = abstract_policy(FORMATS["f64"], dst) if policy is None else policy
    known: dict[str, int] = {}
    codes = np.empty(array.shape, code_dtype(dst))
    flat = codes.reshape(-1)
    for index, element in enumerate(array.reshape(-1)):
        text = _text(element)
        if text not in known:
            known[text] = _code(text, dst, chosen, strict=policy is None)
        flat[index] = known[text]
    return codes


def _text(element: object) -> str:
    if isinstance(element, bytes):
        return element.decode("utf-8", "replace")
    if isinstance(element, str):
        return str(element)
    raise ReadError(f"{element!r} is not text", legal=("str", "bytes"))


def _code(text: str, dst: Format, policy: Policy, strict: bool) -> int:
    if not _LITERAL.fullmatch(text):
        shown = text if len(text) <= 40 else text[:37] + "..."
        raise ReadError(f"'{shown}' is not a number", legal=("3.14", "-1000", "1e-5", "INF", "+INF", "-INF", "NaN"))
    encoded = encode_value(text, dst, policy)
    if strict and encoded.inexact and isinstance(dst, IntFormat) and not dst.boolean:
        raise ReadError(
            f"'{text}' is not a value of {dst.name}", legal=(f"integers from {dst.minimum} to {dst.maximum}",)
        )
    return encoded.code


def strings_from_codes(codes: Codes, src: Format) -> Codes:
    """Return numbers as text, an object array of str: plain decimals that lead back to the same code.

    Floats have a decimal point and no exponent (`1000000.0`), and the fewest digits that tell a number from its
    neighbours in float64 for f64, in float32, which holds all other float formats, for the rest. Integers and bool are
    whole numbers; the special values are `NaN`, `INF` and `-INF`.

    Raises:
        ReadError: not codes of the format.
    """
    codes = check_codes(codes, src)
    distinct, where = np.unique(codes, return_inverse=True)
    if isinstance(src, IntFormat):
        texts = [str(value_of(int(code), src)) for code in distinct]
    else:
        wide = FORMATS["f64" if src.bits > 32 else "f32"]
        widened = cast_codes(distinct, src, wide, Policy(Rounding.RINT, Overflow.SPECIAL))
        texts = [_float_text(number) for number in widened.view(f"f{wide.bits // 8}")]
    return np.array(texts, object)[where.reshape(-1)].reshape(codes.shape)


def _float_text(number: np.floating[Any]) -> str:
    if np.isnan(number):
        return "NaN"
    if np.isinf(number):
        return "INF" if number > 0 else "-INF"
    return np.format_float_positional(number, unique=True, trim="0")
