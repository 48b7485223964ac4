"""The helper functions of the TOSA specification, as its introduction writes them, and TABLE.

Source: TOSA 1.0, introduction: scaling helpers and general unary functions; operator TABLE. Arguments outside what a
function requires make its result unpredictable, which is an error here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from castsim.isa.errors import IllegalError, ReadError

LOOKUP_ENTRIES = 513
"""Entries of 16 bits of a table that is interpolated."""

BYTE_ENTRIES = 256
"""Entries of a table of bytes, one for each source."""

_LOW, _HIGH = -32768, 32767


class ScaleT(NamedTuple):
    """A scale of `multiplier * 2**-shift`, the specification's `scale_t`."""

    multiplier: int
    shift: int


def reciprocal_scale(value: int) -> ScaleT:
    """Return the scale by which a product is a quotient by `value`, an unsigned integer of 32 bits.

    Raises:
        IllegalError: 0, no such integer, or one of the few (2**30 + 1, 2**31 + 1) whose multiplier is no i32.
    """
    _require(0 < value < 1 << 32, f"value {value} is not from 1 to 2**32 - 1")
    k = (value - 1).bit_length()  # (1 << k) / 2 < value <= (1 << k)
    multiplier = (((1 << 30) + 1) << k) // value
    _require(multiplier < 1 << 31, f"the multiplier for {value}, {multiplier}, is no i32")
    return ScaleT(multiplier, 30 + k)


def apply_scale_32(value: int, multiplier: int, shift: int, *, double_round: bool = False) -> int:
    """Return `value * multiplier * 2**-shift`, rounded half up, or in two steps with `double_round`.

    Raises:
        IllegalError: what the function requires does not hold.
    """
    _check_scale(multiplier, shift, 32)
    _require(-(1 << (shift - 1)) <= value < 1 << (shift - 1), f"value {value} is outside of shift - 1 bits and a sign")
    _require(-(1 << 31) <= value < 1 << 31, f"value {value} is no i32")
    rounding = 1 << (shift - 1)
    if double_round and shift > 31:
        rounding += 1 << 30 if value >= 0 else -(1 << 30)
    return (value * multiplier + rounding) >> shift


def apply_scale_16(value: int, multiplier: int, shift: int) -> int:
    """Return `value * multiplier * 2**-shift` of a value of 48 bits and a multiplier of 15, rounded half up.

    Raises:
        IllegalError: what the function requires does not hold.
    """
    _check_scale(multiplier, shift, 16)
    _require(-(1 << 47) <= value < 1 << 47, f"value {value} is no i48")
    result = (value * multiplier + (1 << (shift - 1))) >> shift
    _require(-(1 << 31) <= result < 1 << 31, f"result {result} is no i32")
    return result


def _check_scale(multiplier: int, shift: int, bits: int) -> None:
    _require(0 <= multiplier < 1 << (bits - 1), f"multiplier {multiplier} is not from 0 to 2**{bits - 1} - 1")
    _require(2 <= shift <= 62, f"shift {shift} is not from 2 to 62")


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise IllegalError(f"unpredictable: {what}")


def generate_lookup_table(reference: Callable[[int], int]) -> NDArray[np.int16]:
    """Return the table of 513 entries of a function of -256 to 256, its values clipped to i16."""
    values = (max(_LOW, min(_HIGH, int(reference(at)))) for at in range(-256, 257))
    return np.fromiter(values, np.int16, LOOKUP_ENTRIES)


def apply_lookup_s(table: NDArray[np.int16], value: NDArray[np.integer] | int) -> NDArray[np.int32]:
    """Return what a table of 513 entries gives for values, clipped to i16: 16 bits, and 7 of interpolation.

    Raises:
        ReadError: not such a table.
        IllegalError: two neighbouring entries that are farther apart than i16 reaches.
    """
    entries = _entries(table, np.int16, LOOKUP_ENTRIES)
    clipped = np.clip(np.asarray(value, np.int64), _LOW, _HIGH)
    index, fraction = (clipped - _LOW) >> 7, clipped & 0x7F
    base = entries[index]
    slope = entries[index + 1] - base
    far = (slope < _LOW) | (slope > _HIGH)
    if far.any():
        _require(False, f"a step of {int(np.ravel(slope)[np.ravel(far)][0])} between two entries is no i16")
    found: NDArray[np.int32] = np.asarray((base << 7) + slope * fraction, np.int32)
    return found


def table(values: NDArray[np.integer], entries: NDArray[np.integer]) -> NDArray[np.integer]:
    """Return TABLE of integers: of i8 by 256 entries of i8, of i16 by 513 of i16, interpolated, to i32.

    Raises:
        ReadError: values of another type, or not the table that they need.
        IllegalError: as `apply_lookup_s`.
    """
    if values.dtype == np.int8:
        chosen: NDArray[np.integer] = _entries(entries, np.int8, BYTE_ENTRIES)[values.astype(np.int64) + 128]
        return chosen.astype(np.int8)
    if values.dtype == np.int16:
        return apply_lookup_s(entries.astype(np.int16, casting="safe"), values)
    raise ReadError(f"TABLE takes no values of {values.dtype}", legal=("int8", "int16"))


def _entries(given: NDArray[np.integer], dtype: type[np.integer], count: int) -> NDArray[np.int64]:
    if not isinstance(given, np.ndarray) or given.dtype != dtype or given.shape != (count,):
        shown = f"{getattr(given, 'dtype', type(given).__name__)}{list(np.shape(given))}"
        raise ReadError(f"the table is {shown}", legal=(f"{count} entries of {np.dtype(dtype)}",))
    return given.astype(np.int64)
