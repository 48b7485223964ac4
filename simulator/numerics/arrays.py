"""The boundary between users' arrays and codes, and the packing of sub-byte codes into bytes.

ml_dtypes is imported only when a result needs one of its dtypes; arrays of its dtypes are known by their names.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from isa.errors import ReadError
from isa.formats import Format, IntFormat
from simulator.numerics.blocks import Codes, check_codes, code_dtype
from simulator.numerics.policy import Policy
from simulator.numerics.tiers import Tier, convert_codes

_NUMPY_DTYPES = {
    "f64": "float64", "f32": "float32", "f16": "float16",
    "i8": "int8", "u8": "uint8", "i16": "int16", "u16": "uint16",
    "i32": "int32", "u32": "uint32", "i64": "int64", "u64": "uint64",
    "i48": "int64", "bool": "bool",
}  # fmt: skip
_ML_DTYPES = {
    "bf16": "bfloat16", "e4m3fn": "float8_e4m3fn", "e4m3fnuz": "float8_e4m3fnuz",
    "e5m2": "float8_e5m2", "e5m2fnuz": "float8_e5m2fnuz", "e8m0": "float8_e8m0fnu",
    "e3m2": "float6_e3m2fn", "e2m3": "float6_e2m3fn", "e2m1": "float4_e2m1fn",
    "i2": "int2", "u2": "uint2", "i4": "int4", "u4": "uint4",
}  # fmt: skip


def native_dtype(fmt: Format) -> np.dtype[Any] | None:
    """Return the NumPy or ml_dtypes dtype of a format's numbers, None if neither library has one."""
    if fmt.name in _NUMPY_DTYPES:
        return np.dtype(_NUMPY_DTYPES[fmt.name])
    if fmt.name in _ML_DTYPES:
        import ml_dtypes  # noqa: PLC0415  # its import takes longer than most casts

        dtype: np.dtype[Any] = np.dtype(getattr(ml_dtypes, _ML_DTYPES[fmt.name]))
        return dtype
    return None


def _native_name(fmt: Format) -> str | None:
    return _NUMPY_DTYPES.get(fmt.name) or _ML_DTYPES.get(fmt.name)


def _unsigned_view(array: NDArray[Any]) -> Codes:
    """Return the same memory as unsigned integers of the same width and byte order."""
    codes: Codes = array.view(np.dtype(f"u{array.dtype.itemsize}").newbyteorder(array.dtype.byteorder))
    return codes


def is_codes(array: NDArray[Any], fmt: Format) -> bool:
    """Whether an array holds codes of a float format rather than numbers: unsigned, of its storage width."""
    is_unsigned = array.dtype.kind == "u" and array.dtype.itemsize * 8 == fmt.storage_bits
    return is_unsigned and not isinstance(fmt, IntFormat)


def codes_from_array(array: NDArray[Any], fmt: Format) -> Codes:
    """Return the codes of an array's elements, without a copy where the memory holds them already.

    Accepted are the native dtype of the format; for float formats unsigned integers of the storage width, which are
    codes; for integers of 2 and 4 bits and bool also NumPy integers of 8 bits, which are values if signed and codes
    if unsigned.

    Raises:
        ReadError: another dtype, or a value outside the format.
    """
    if is_codes(array, fmt):
        return check_codes(array, fmt)
    native = _native_name(fmt)
    if isinstance(fmt, IntFormat) and fmt.bits < 8:
        return _narrow_integer_codes(array, fmt)
    if native is None or array.dtype.name != native:
        raise _wrong_dtype(array, fmt)
    return check_codes(_unsigned_view(array), fmt)


def _wrong_dtype(array: NDArray[Any], fmt: Format) -> ReadError:
    takes_codes = not isinstance(fmt, IntFormat) or fmt.bits < 8
    legal = [_native_name(fmt), str(code_dtype(fmt)) if takes_codes else None]
    return ReadError(
        f"an array of {fmt.name} cannot have dtype {array.dtype}",
        legal=dict.fromkeys(name for name in legal if name is not None),
    )


def _narrow_integer_codes(array: NDArray[Any], fmt: IntFormat) -> Codes:
    """Return codes of integers below a byte."""
    if array.dtype.name == _ML_DTYPES.get(fmt.name):
        codes: Codes = _unsigned_view(array) & np.uint8((1 << fmt.bits) - 1)
        return codes
    if array.dtype == np.bool_ and fmt.boolean:
        return _unsigned_view(array)
    if array.dtype.itemsize * 8 != fmt.storage_bits or array.dtype.kind not in "iu":
        raise _wrong_dtype(array, fmt)
    if array.dtype.kind == "u":
        return check_codes(array, fmt)
    if fmt.boolean:
        truth: Codes = (array != 0).astype(np.uint8)
        return truth
    if array.size and not (fmt.minimum <= int(array.min()) and int(array.max()) <= fmt.maximum):
        outside = int(array.min()) if int(array.min()) < fmt.minimum else int(array.max())
        raise ReadError(f"{outside} is no value of {fmt.name}", legal=(f"{fmt.minimum} to {fmt.maximum}",))
    masked: Codes = _unsigned_view(array) & np.uint8((1 << fmt.bits) - 1)
    return masked


def array_from_codes(codes: Codes, fmt: Format) -> NDArray[Any]:
    """Return codes as an array of the format's native dtype, or the codes themselves where there is none.

    Shares memory wherever dtype and codes have the same bits.
    """
    dtype = native_dtype(fmt)
    if dtype is None:
        return codes
    return codes.astype(code_dtype(fmt), copy=False).view(dtype)


def _signed_bytes(codes: Codes, fmt: Format) -> NDArray[np.int8]:
    """Return codes of a signed integer format below a byte as values."""
    unused = 8 - fmt.bits
    return (codes << np.uint8(unused)).view(np.int8) >> np.int8(unused)


def cast_array(
    array: NDArray[Any],
    src: Format,
    dst: Format,
    policy: Policy,
    *,
    random: NDArray[np.uint32] | None = None,
    tier: Tier | None = None,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]:
    """Convert an array of numbers or codes of `src`.

    Codes of a float format give codes; everything else gives the native dtype of `dst`, or codes if it has none.
    `out` may have either dtype of `dst`; it is returned. Errors as `convert_codes` and `codes_from_array`.
    """
    codes = codes_from_array(array, src)
    if out is None:
        result = convert_codes(codes, src, dst, policy, random=random, tier=tier)
        return result if is_codes(array, src) else array_from_codes(result, dst)
    if isinstance(dst, IntFormat) and dst.signed and dst.bits < 8 and out.dtype == np.int8:
        out[...] = _signed_bytes(convert_codes(codes, src, dst, policy, random=random, tier=tier), dst)
        return out
    if out.dtype != code_dtype(dst) and out.dtype.name != _native_name(dst):
        raise _wrong_dtype(out, dst)
    convert_codes(codes, src, dst, policy, random=random, tier=tier, out=_unsigned_view(out))
    return out


def _check_packable(fmt: Format) -> None:
    if fmt.bits >= 8 or (isinstance(fmt, IntFormat) and fmt.boolean):
        raise ReadError(f"{fmt.name} is not packed", legal=("formats of 2, 4 and 6 bits",))


def pack_codes(codes: Codes, fmt: Format) -> NDArray[np.uint8]:
    """Pack the last axis of sub-byte codes into bytes, the first element in the lowest bits (formats.md section 1).

    The unused high bits of the last byte of a row are 0. Shape (..., n) becomes (..., ceil(n * bits / 8)).

    Raises:
        ReadError: the format fills bytes, or the codes are not its.
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
