"""Conversion between codes and users' values: numbers, singly or as float64, decimal text, arrays of any dtype."""

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
from castsim.isa.formats import DETERMINISTIC, FORMATS, Codes, Format, IntFormat, Overflow, Rounding
from castsim.numerics.blocks import check_codes, check_values, code_dtype
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
    """A code and whether it differs from its original number."""

    code: int
    inexact: bool


def decode_to_float64(codes: Codes, fmt: Format) -> NDArray[np.float64]:
    """Return the numbers of codes.

    The result is exact for formats of up to 53 significant bits; i64 and u64 round to nearest even.

    Raises:
        ReadError: the array does not contain codes of the format.
    """
    policy = Policy(Rounding.RINT, Overflow.SPECIAL)
    decoded: NDArray[np.float64] = cast_codes(codes, fmt, FORMATS["f64"], policy).view(np.float64)
    return decoded


def value_of(code: int, fmt: Format) -> Fraction | float:
    """Return the exact number of one code.

    The result is a fraction, except for NaN, the infinities and minus zero, which are floats.

    Raises:
        ReadError: it is not a code of the format.
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
        policy: how to round and handle overflow; None: to nearest even (ties away in HiFloat8 and e8m0), saturating
            in integers, otherwise as IEEE 754.

    Raises:
        ReadError: the text is not a number.
        IllegalError: the policy does not apply to the format or needs random words.
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
        exponent=np.array([0], np.int64),
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
        if match := _SPECIAL.fullmatch(text):
            return match[1] == "-", float(match[2].lower())
        if (match := _RATIO.fullmatch(text)) and int(match[3]):
            return match[1] == "-", Fraction(int(match[2]), int(match[3]))
        if match := _DECIMAL.fullmatch(text):
            fraction = match[4] or match[5] or ""
            limit = _LARGEST_EXPONENT + _LONGEST_TEXT
            # The exponent's digits alone may be too many to build the power of ten; its sign decides then.
            exponent = max(-limit, min(limit, int(match[6] or 0))) - len(fraction)
            return match[1] == "-", int((match[3] or "") + fraction) * Fraction(10) ** exponent
    shown = text if len(text) <= 40 else text[:37] + "..."
    raise ReadError(f"'{shown}' is not a number", legal=("decimal", "numerator/denominator", "nan", "inf", "-inf"))


def _nearest(fmt: Format) -> Policy:
    rounding = Rounding.ROUND if is_power_format(fmt) else default_rounding(fmt)
    return Policy(rounding, Overflow.SATURATE if isinstance(fmt, IntFormat) else Overflow.SPECIAL)


def _single(negative: bool, exponent: int, significand: int) -> Unpacked:
    return Unpacked(np.array([negative], np.uint64), np.array([exponent], np.int64), np.array([significand], np.uint64))


def _unpack_fraction(negative: bool, magnitude: Fraction, policy: Policy) -> Unpacked:
    """Keep 64 significant bits, the last of them sticky: more than any float format can distinguish."""
    if magnitude == 0:
        return _single(negative, 0, 0)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    if magnitude < Fraction(2) ** exponent:
        exponent -= 1
    scaled = magnitude * Fraction(2) ** (63 - exponent)
    significand = scaled.numerator // scaled.denominator
    return _single(negative, exponent, significand | (scaled.denominator != 1))


def _unpack_integer(negative: bool, magnitude: Fraction, policy: Policy) -> Unpacked:
    """Round to an integer at once: its 64 bits and the dropped ones do not fit one significand."""
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
    """Return the codes of `dst` nearest to the numbers in strings, rounded once from all their digits.

    Args:
        strings: an array of str or UTF-8 bytes, any shape.
        dst: format of the result.
        policy: rounding, overflow and special values, also for the texts that ONNX leaves undefined for an integer:
            fractions, NaN, infinities, numbers beyond its range. None: the abstract cast, which rejects those.

    Raises:
        ReadError: a text is not a number or, without a policy, an integer `dst` cannot represent it.
        IllegalError: the policy does not apply to `dst` or needs random words.
    """
    array = np.asarray(strings)
    if array.dtype.kind not in "USOT":
        raise ReadError(f"strings come as an array of text, not {array.dtype}", legal=("str", "bytes", "object"))
    chosen = abstract_policy(FORMATS["f64"], dst) if policy is None else policy
    codes_by_text: dict[str, int] = {}
    codes = np.empty(array.shape, code_dtype(dst))
    flat = codes.reshape(-1)
    for index, element in enumerate(array.reshape(-1)):
        text = _text(element)
        if text not in codes_by_text:
            codes_by_text[text] = _code(text, dst, chosen, strict=policy is None)
        flat[index] = codes_by_text[text]
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
    """Return numbers as text, an object array of str: plain decimals that convert back to the same code.

    Floats have a decimal point and no exponent (`1000000.0`), and the fewest digits that distinguish a number from its
    neighbours: in float64 for f64, in float32, which contains all other float formats, for the rest. Integers and bool
    are integers; the special values are `NaN`, `INF` and `-INF`.

    Raises:
        ReadError: the array does not contain codes of the format.
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


# The boundary between users' arrays and codes, and the packing of sub-byte codes into bytes.
#
# ml_dtypes is imported only when a result needs one of its dtypes; arrays of its dtypes are known by their names.

FormatLike = str | np.dtype[Any] | type[Any]
"""A format in the Python interface: its name, or a dtype of NumPy or ml_dtypes, as an object or a class."""

_OF_DTYPES = {fmt.dtype: name for name, fmt in reversed(FORMATS.items()) if fmt.dtype is not None}
"""The format whose own numbers a dtype holds: of several, as of integers of 48 and 64 bits, the first."""


def format_name(given: FormatLike) -> str:
    """Return the name of a format: a name unchanged, or that of the only format with a dtype's numbers.

    Classes of Python itself are rejected: `float` is f64 to NumPy and f32 to most others.

    Raises:
        ReadError: it is neither a name nor such a dtype.
    """
    if isinstance(given, str):
        return given
    if isinstance(given, np.dtype) or (isinstance(given, type) and given.__module__.split(".")[0] in _LIBRARIES):
        try:
            name = np.dtype(given).name
        except TypeError:  # a class that is not a scalar's
            name = ""
        if name in _OF_DTYPES:
            return _OF_DTYPES[name]
    shown = given.__name__ if isinstance(given, type) else repr(given)
    raise ReadError(f"{shown[:60]} does not name a format", legal=("a name such as 'f16'", *sorted(_OF_DTYPES)))


_LIBRARIES = ("numpy", "ml_dtypes")


def native_dtype(fmt: Format) -> np.dtype[Any] | None:
    """Return the NumPy or ml_dtypes dtype of a format's numbers, None if neither library has one."""
    if fmt.dtype is None:
        return None
    if not hasattr(np, fmt.dtype):
        import ml_dtypes  # noqa: PLC0415  # its import takes longer than most casts

        dtype: np.dtype[Any] = np.dtype(getattr(ml_dtypes, fmt.dtype))
        return dtype
    return np.dtype(fmt.dtype)


def _unsigned_view(array: Codes) -> Codes:
    """Return the same memory as unsigned integers of the same width and byte order."""
    codes: Codes = array.view(np.dtype(f"u{array.dtype.itemsize}").newbyteorder(array.dtype.byteorder))
    return codes


def is_codes(array: Codes, fmt: Format) -> bool:
    """Return whether an array holds codes of a float format rather than numbers: unsigned, of its storage width."""
    is_unsigned = array.dtype.kind == "u" and array.dtype.itemsize * 8 == fmt.storage_bits
    return is_unsigned and not isinstance(fmt, IntFormat)


def codes_from_array(array: Codes, fmt: Format) -> Codes:
    """Return the codes of an array's elements, without a copy if memory already contains them.

    Accepted dtypes are the native dtype of the format; for float formats unsigned integers of the storage width, which
    codes; for integers of 2 and 4 bits and bool also NumPy integers of 8 bits, which are values if signed and codes
    if unsigned.

    Raises:
        ReadError: it is not an array, has another dtype, or a value is outside the format.
    """
    check_array(array, fmt)
    if is_codes(array, fmt):
        return check_codes(array, fmt)
    native = fmt.dtype
    if isinstance(fmt, IntFormat) and fmt.bits < 8:
        return narrow_integer_codes(array, fmt)
    if native is None or array.dtype.name != native:
        raise _wrong_dtype(array, fmt)
    return check_codes(_unsigned_view(array), fmt)


def check_array(array: object, fmt: Format) -> None:
    """Reject anything but a NumPy array.

    Raises:
        ReadError: it is not an array.
    """
    if not isinstance(array, np.ndarray | np.generic):
        raise ReadError(f"{fmt.name} comes as a NumPy array, not as {type(array).__name__}", legal=("numpy.ndarray",))


def _wrong_dtype(array: Codes, fmt: Format) -> ReadError:
    takes_codes = not isinstance(fmt, IntFormat) or fmt.bits < 8
    legal = [fmt.dtype, str(code_dtype(fmt)) if takes_codes else None]
    return ReadError(
        f"an array of {fmt.name} cannot have dtype {array.dtype}",
        legal=dict.fromkeys(name for name in legal if name is not None),
    )


def narrow_integer_codes(array: Codes, fmt: IntFormat) -> Codes:
    """Return codes of integers below a byte."""
    if array.dtype.name == fmt.dtype and not fmt.boolean:
        codes = _unsigned_view(array)
        # Arithmetic of that library may leave a sign in the unused bits.
        return codes & np.uint8((1 << fmt.bits) - 1) if codes.size and int(codes.max()) >> fmt.bits else codes
    if array.dtype == np.bool_ and fmt.boolean:
        return _unsigned_view(array)
    if array.dtype.itemsize * 8 != fmt.storage_bits or array.dtype.kind not in "iu":
        raise _wrong_dtype(array, fmt)
    if array.dtype.kind == "u":
        return check_codes(array, fmt)
    if fmt.boolean:
        truth: Codes = (array != 0).astype(np.uint8)
        return truth
    narrow_integer_range(array, fmt)
    masked: Codes = _unsigned_view(array) & np.uint8((1 << fmt.bits) - 1)
    return masked


def narrow_integer_range(array: Codes, fmt: IntFormat) -> None:
    """Reject values outside the format; for bool, any value is legal."""
    if array.size and not fmt.boolean:
        check_values(array, fmt)


def array_from_codes(codes: Codes, fmt: Format) -> Codes:
    """Return codes as an array of the format's native dtype, or the codes themselves if there is none.

    The result shares memory if dtype and codes have the same bits.
    """
    dtype = native_dtype(fmt)
    if dtype is None:
        return codes
    return codes.astype(code_dtype(fmt), copy=False).view(dtype)


def codes_of_out(out: Codes, fmt: Format) -> Codes:
    """Return the memory of a result array as codes of `fmt` to write; `finish_out` converts them to its numbers.

    Raises:
        ReadError: the array has neither dtype of the format.
    """
    if not isinstance(out, np.ndarray):
        raise ReadError(f"out must be an array of {fmt.name}, not {type(out).__name__}", legal=(str(code_dtype(fmt)),))
    if out.dtype != code_dtype(fmt) and out.dtype.name != fmt.dtype and not _holds_signed_bytes(out, fmt):
        raise _wrong_dtype(out, fmt)
    return _unsigned_view(out)


def _holds_signed_bytes(out: Codes, fmt: Format) -> bool:
    return isinstance(fmt, IntFormat) and fmt.signed and fmt.bits < 8 and out.dtype == np.int8


def finish_out(out: Codes, fmt: Format) -> None:
    """Convert codes that were written to `codes_of_out` into values if the array has values of more bits."""
    if _holds_signed_bytes(out, fmt):
        unused = 8 - fmt.bits
        np.left_shift(out, np.int8(unused), out=out)
        np.right_shift(out, np.int8(unused), out=out)


def _check_packable(fmt: Format) -> None:
    if fmt.bits >= 8 or (isinstance(fmt, IntFormat) and fmt.boolean):
        raise ReadError(f"{fmt.name} is not packed", legal=("formats of 2, 4 and 6 bits",))


def pack_codes(codes: Codes, fmt: Format) -> NDArray[np.uint8]:
    """Pack the last axis of sub-byte codes into bytes, the first element in the lowest bits (docs/reference/formats.md
    section 1).

    The unused high bits of the last byte of a row are 0. Shape (..., n) becomes (..., ceil(n * bits / 8)).

    Raises:
        ReadError: the format fills whole bytes, or the codes do not belong to it.
    """
    _check_packable(fmt)
    codes = np.atleast_1d(check_codes(codes, fmt))
    bits = np.unpackbits(codes[..., None], axis=-1, count=fmt.bits, bitorder="little")
    return np.packbits(bits.reshape(*codes.shape[:-1], codes.shape[-1] * fmt.bits), axis=-1, bitorder="little")


def unpack_codes(packed: NDArray[np.uint8], fmt: Format, count: int) -> NDArray[np.uint8]:
    """Return the first `count` sub-byte codes in the last axis of bytes: the inverse of `pack_codes`.

    Raises:
        ReadError: the format fills whole bytes, or there are fewer bytes than `count` codes need.
    """
    _check_packable(fmt)
    packed = np.atleast_1d(packed)
    if packed.dtype != np.uint8 or not 0 <= count * fmt.bits <= packed.shape[-1] * 8:
        raise ReadError(f"{packed.shape[-1]} elements of {packed.dtype} do not hold {count} codes of {fmt.name}")
    bits = np.unpackbits(packed, axis=-1, count=count * fmt.bits, bitorder="little")
    fields = bits.reshape(*packed.shape[:-1], count, fmt.bits)
    padded = np.packbits(fields, axis=-1, bitorder="little")
    return padded[..., 0]
