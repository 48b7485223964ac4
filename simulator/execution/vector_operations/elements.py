"""Elements of tiles in the buffer, and the numbers that their codes stand for."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from castsim.execution.tiles import Tile
from castsim.execution.vector_operations.shapes import is_column
from castsim.isa.codes import Codes
from castsim.isa.formats import FloatFormat, Format, IntFormat, format_named
from castsim.isa.modes import Overflow
from castsim.numerics import NanToFloat, Policy, abstract_policy, code_dtype, convert_codes

Bytes = NDArray[np.uint8]
Numbers = Codes

DOUBLE = format_named("f64")
"""Format in which 16-bit floats are computed: wide enough that rounding its result once more changes nothing.

A sum, product, quotient or root of numbers of p bits rounded to 2p + 2 bits or more and then to p bits is the one
rounded once; subnormal results of 16-bit formats are exact multiples of what a double holds.
"""


def tile_view(buffer: Bytes, tile: Tile, rows: int, cols: int) -> Codes:
    """Return a writable view of the first rows and columns of a tile as codes."""
    size = tile.element_bits // 8
    down, across = (size, tile.rows * size) if is_column(tile) else (tile.row_pitch, size)
    if not rows or not cols:
        return np.empty((rows, cols), code_dtype(tile.format))
    first = buffer[tile.address : tile.address + size].view(f"<u{size}")
    return as_strided(first, (rows, cols), (down, across), writeable=True)


def valid_codes(buffer: Bytes, tile: Tile) -> Codes:
    """Return a copy of the codes of a tile's valid region."""
    return tile_view(buffer, tile, tile.valid_rows, tile.valid_cols).copy()


def numbers(codes: Codes, fmt: Format) -> Numbers:
    """Return what codes stand for: integers of their own width, f32 as float32, 16-bit floats as float64.

    Raises:
        TypeError: a format in which nothing is computed.
    """
    plain = np.ascontiguousarray(codes)
    if isinstance(fmt, IntFormat):
        return plain.view(f"<{'i' if fmt.signed else 'u'}{fmt.bits // 8}")
    if isinstance(fmt, FloatFormat) and fmt.fraction_bits == 23:
        return plain.view("<f4")
    if isinstance(fmt, FloatFormat) and fmt.bits == 16:
        widened = convert_codes(plain, fmt, DOUBLE, abstract_policy(fmt, DOUBLE))
        return widened.view("<f8")
    raise TypeError(f"nothing is computed in {fmt.name}")


def encoded(values: Numbers, fmt: Format, *, saturates: bool = False) -> Codes:
    """Return the codes of computed numbers, rounded to nearest, ties to even; every NaN is the canonical one.

    `saturates` clamps overflow and infinity to the largest finite number and turns NaN into 0.
    """
    if isinstance(fmt, IntFormat):
        return np.ascontiguousarray(values).view(f"<u{fmt.bits // 8}")
    assert isinstance(fmt, FloatFormat) and fmt.nan_code is not None
    if values.dtype.itemsize * 8 == fmt.bits:
        codes: Codes = np.ascontiguousarray(values).view(f"<u{fmt.bits // 8}").copy()
        codes[np.isnan(values)] = fmt.nan_code
        return codes
    wide = np.ascontiguousarray(values, "<f8").view("<u8")
    return convert_codes(wide, DOUBLE, fmt, _result_policy(fmt, saturates=saturates))


@cache
def _result_policy(fmt: FloatFormat, *, saturates: bool) -> Policy:
    plain = abstract_policy(DOUBLE, fmt)
    if saturates:
        return Policy(plain.rounding, Overflow.SATURATE, nan_to_float=NanToFloat.ZERO)
    return Policy(plain.rounding, Overflow.SPECIAL, nan_to_float=NanToFloat.FIXED, nan_code=fmt.nan_code)
