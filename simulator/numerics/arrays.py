"""The boundary between users' arrays and codes, and the packing of sub-byte codes into bytes.

ml_dtypes is imported only when a result needs one of its dtypes; arrays of its dtypes are known by their names.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from castsim.isa.errors import ReadError
from castsim.isa.formats import FORMATS, Codes, Format, IntFormat
from castsim.numerics.blocks import check_codes, check_out, check_values, code_dtype, walk
from castsim.numerics.cast import check_random
from castsim.numerics.policy import Policy
from castsim.numerics.tiers import Tier, convert_codes

FormatLike = str | np.dtype[Any] | type[Any]
"""A format in the Python interface: its name, or a dtype of NumPy or ml_dtypes, as an object or a class."""

_OF_DTYPES = {fmt.dtype: name for name, fmt in reversed(FORMATS.items()) if fmt.dtype is not None}
"""The format whose own numbers a dtype holds: of several, as of integers of 48 and 64 bits, the first."""


def format_name(given: FormatLike) -> str:
    """Return the name of a format: as it is, or that of the only format whose own numbers a dtype holds.

    Classes of Python itself are rejected: `float` is f64 to NumPy and f32 to most others.

    Raises:
        ReadError: neither a name nor such a dtype.
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
    """Whether an array holds codes of a float format rather than numbers: unsigned, of its storage width."""
    is_unsigned = array.dtype.kind == "u" and array.dtype.itemsize * 8 == fmt.storage_bits
    return is_unsigned and not isinstance(fmt, IntFormat)


def codes_from_array(array: Codes, fmt: Format) -> Codes:
    """Return the codes of an array's elements, without a copy where the memory holds them already.

    Accepted are the native dtype of the format; for float formats unsigned integers of the storage width, which are
    codes; for integers of 2 and 4 bits and bool also NumPy integers of 8 bits, which are values if signed and codes
    if unsigned.

    Raises:
        ReadError: not an array, another dtype, or a value outside the format.
    """
    _check_array(array, fmt)
    if is_codes(array, fmt):
        return check_codes(array, fmt)
    native = fmt.dtype
    if isinstance(fmt, IntFormat) and fmt.bits < 8:
        return _narrow_integer_codes(array, fmt)
    if native is None or array.dtype.name != native:
        raise _wrong_dtype(array, fmt)
    return check_codes(_unsigned_view(array), fmt)


def _check_array(array: object, fmt: Format) -> None:
    if not isinstance(array, np.ndarray | np.generic):
        raise ReadError(f"{fmt.name} comes as a NumPy array, not as {type(array).__name__}", legal=("numpy.ndarray",))


def _wrong_dtype(array: Codes, fmt: Format) -> ReadError:
    takes_codes = not isinstance(fmt, IntFormat) or fmt.bits < 8
    legal = [fmt.dtype, str(code_dtype(fmt)) if takes_codes else None]
    return ReadError(
        f"an array of {fmt.name} cannot have dtype {array.dtype}",
        legal=dict.fromkeys(name for name in legal if name is not None),
    )


def _narrow_integer_codes(array: Codes, fmt: IntFormat) -> Codes:
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
    _narrow_integer_range(array, fmt)
    masked: Codes = _unsigned_view(array) & np.uint8((1 << fmt.bits) - 1)
    return masked


def _narrow_integer_range(array: Codes, fmt: IntFormat) -> None:
    """Reject values outside the format; any is a truth value."""
    if array.size and not fmt.boolean:
        check_values(array, fmt)


def array_from_codes(codes: Codes, fmt: Format) -> Codes:
    """Return codes as an array of the format's native dtype, or the codes themselves where there is none.

    Shares memory wherever dtype and codes have the same bits.
    """
    dtype = native_dtype(fmt)
    if dtype is None:
        return codes
    return codes.astype(code_dtype(fmt), copy=False).view(dtype)


def cast_array(
    array: Codes,
    src: Format,
    dst: Format,
    policy: Policy,
    *,
    random: NDArray[np.uint32] | None = None,
    tier: Tier | None = None,
    out: Codes | None = None,
) -> Codes:
    """Convert an array of numbers or codes of `src`.

    Codes of a float format give codes; everything else gives the native dtype of `dst`, or codes if it has none.
    `out` may have either dtype of `dst`; it is returned. Errors as `convert_codes` and `codes_from_array`.
    """
    _check_array(array, src)
    if array.dtype == np.int8 and array.size > _BLOCK and isinstance(src, IntFormat) and src.bits < 8:
        return _cast_values_below_a_byte(array, src, dst, policy, random, tier, out)
    codes = codes_from_array(array, src)
    if out is None:
        result = convert_codes(codes, src, dst, policy, random=random, tier=tier)
        return result if is_codes(array, src) else array_from_codes(result, dst)
    convert_codes(codes, src, dst, policy, random=random, tier=tier, out=codes_of_out(out, dst))
    finish_out(out, dst)
    return out


_BLOCK = 1 << 16
"""Elements at a time of values that must be copied to become codes."""


def codes_of_out(out: Codes, fmt: Format) -> Codes:
    """Return the memory of a result array as codes of `fmt` to write; `finish_out` makes them its numbers.

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
    """Turn codes that were written to `codes_of_out` into values where the array holds values of more bits."""
    if _holds_signed_bytes(out, fmt):
        unused = 8 - fmt.bits
        np.left_shift(out, np.int8(unused), out=out)
        np.right_shift(out, np.int8(unused), out=out)


def _cast_values_below_a_byte(
    array: Codes,
    src: IntFormat,
    dst: Format,
    policy: Policy,
    random: NDArray[np.uint32] | None,
    tier: Tier | None,
    out: Codes | None,
) -> Codes:
    """Convert values in int8, which are not codes yet, without a copy of them all."""
    check_random(array, policy, random)
    words = () if random is None else (random,)
    target = check_out(None if out is None else codes_of_out(out, dst), array, dst, *words)

    def fill(result: Codes, block: Codes, *drawn: NDArray[np.uint32]) -> None:
        codes = _narrow_integer_codes(block, src)
        convert_codes(codes, src, dst, policy, random=drawn[0] if drawn else None, tier=tier, out=result)

    _narrow_integer_range(array, src)
    walk(fill, target, array, *words, size=_BLOCK)
    if out is None:
        return array_from_codes(target, dst)
    finish_out(out, dst)
    return out


def _check_packable(fmt: Format) -> None:
    if fmt.bits >= 8 or (isinstance(fmt, IntFormat) and fmt.boolean):
        raise ReadError(f"{fmt.name} is not packed", legal=("formats of 2, 4 and 6 bits",))


def pack_codes(codes: Codes, fmt: Format) -> NDArray[np.uint8]:
    """Pack the last axis of sub-byte codes into bytes, the first element in the lowest bits (docs/reference/formats.md
    section 1).

    The unused high bits of the last byte of a row are 0. Shape (..., n) becomes (..., ceil(n * bits / 8)).

    Raises:
        ReadError: the format fills bytes, or the codes do not belong to it.
    """
    _check_packable(fmt)
    codes = np.atleast_1d(check_codes(codes, fmt))
    bits = np.unpackbits(codes[..., None], axis=-1, count=fmt.bits, bitorder="little")
    return np.packbits(bits.reshape(*codes.shape[:-1], codes.shape[-1] * fmt.bits), axis=-1, bitorder="little")


def unpack_codes(packed: NDArray[np.uint8], fmt: Format, count: int) -> NDArray[np.uint8]:
    """Take the first `count` sub-byte codes out of the last axis of bytes: the inverse of `pack_codes`.

    Raises:
        ReadError: the format fills bytes, or there are fewer bytes than `count` codes need.
    """
    _check_packable(fmt)
    packed = np.atleast_1d(packed)
    if packed.dtype != np.uint8 or not 0 <= count * fmt.bits <= packed.shape[-1] * 8:
        raise ReadError(f"{packed.shape[-1]} elements of {packed.dtype} do not hold {count} codes of {fmt.name}")
    bits = np.unpackbits(packed, axis=-1, count=count * fmt.bits, bitorder="little")
    fields = bits.reshape(*packed.shape[:-1], count, fmt.bits)
    padded = np.packbits(fields, axis=-1, bitorder="little")
    return padded[..., 0]
