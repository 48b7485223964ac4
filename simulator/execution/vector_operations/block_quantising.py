"""Quantisation of groups of 32 columns to e4m3fn with shared exponents, step by step as the A5's library computes it.

Source: docs/reference/pto.md section 7.12. All steps but the product and its rounding are on integers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from castsim.execution.tiles import TileWork
from castsim.execution.vector_operations.elements import Bytes, numbers, tile_view, valid_codes
from castsim.execution.vector_operations.shapes import MX_GROUP, stored_groups
from castsim.isa.codes import Codes
from castsim.isa.formats import Format, format_named
from castsim.isa.modes import Overflow, Rounding
from castsim.numerics import Policy, convert_codes

SINGLE, BRAIN, RESULT = format_named("f32"), format_named("bf16"), format_named("e4m3fn")

_LARGEST_EXPONENT = 8
"""Of e4m3fn: 448 is 1.75 * 2**8."""

_RECIPROCAL = np.float32(1 / np.float64(448))
"""By which the rule nv multiplies the largest magnitude."""

_CASTS = Policy(Rounding.RINT, Overflow.SATURATE)

U32 = NDArray[np.uint32]


def quantise_blocks(buffer: Bytes, work: TileWork) -> None:
    """Write codes, exponents (e8m0), largest magnitudes and reciprocals of scales."""
    source, dst = work.sources[0], work.dst
    exponents, maxima, scaling = work.further
    codes = valid_codes(buffer, source)
    groups = codes.reshape(len(codes), -1, MX_GROUP)
    greatest = _greatest(groups, source.format, work.mode)
    wide = _widened(greatest, BRAIN if work.mode == "ocp" and source.format.name == "f16" else source.format)
    shared, reciprocal = _ceiling(wide) if work.mode == "nv" else _floor(wide)
    values = numbers(codes, source.format).astype(np.float32)
    factors = np.repeat(reciprocal, MX_GROUP, axis=1).view(np.float32)
    with np.errstate(all="ignore"):
        products = np.ascontiguousarray(values * factors).view(np.uint32)
    results = convert_codes(products, SINGLE, RESULT, _CASTS)
    results[np.isnan(products.view(np.float32))] = 0x7F
    tile_view(buffer, dst, dst.valid_rows, dst.valid_cols)[...] = results
    half = source.element_bits == 16
    stored = np.where(reciprocal == 0x7FC00000, 0x7F81, reciprocal >> 16) if half else reciprocal
    _, _, twice = stored_groups(work)
    repeated = np.repeat(stored.reshape(-1), twice // stored.size)
    view = tile_view(buffer, exponents, exponents.valid_rows, exponents.valid_cols)
    view[...] = shared.reshape(view.shape).astype(view.dtype)
    for tile, held in ((maxima, greatest.reshape(-1)), (scaling, repeated)):
        data = held.astype(f"<u{tile.element_bits // 8}").view(np.uint8)
        buffer[tile.address : tile.address + data.size] = data


def _greatest(groups: Codes, fmt: Format, mode: str | None) -> Codes:
    """Return the codes of the largest magnitudes, by which a NaN is larger than all else.

    By ocp, f16 elements are first cut to bf16, toward zero.
    """
    if fmt.name == "f16" and mode == "ocp":
        cut = Policy(Rounding.TRUNC, Overflow.SPECIAL)
        groups = convert_codes(np.ascontiguousarray(groups), fmt, BRAIN, cut)
    bits = groups & groups.dtype.type((1 << (fmt.bits - 1)) - 1)
    greatest: Codes = bits.max(axis=2)
    if fmt.name == "f32":  # the largest of numbers with a NaN is the canonical one
        greatest[greatest > 0x7F800000] = 0x7FC00000
    return greatest


def _widened(codes: Codes, fmt: Format) -> U32:
    wide = codes if fmt.name == "f32" else convert_codes(codes, fmt, SINGLE, Policy(Rounding.RINT, Overflow.SPECIAL))
    return np.ascontiguousarray(wide).view(np.uint32)


def _floor(greatest: U32) -> tuple[U32, U32]:
    """Return exponents and reciprocals by the rule ocp: that of the largest magnitude, less that of the format."""
    field = greatest >> 23
    shared = np.where(field <= _LARGEST_EXPONENT, 0, field - np.minimum(field, _LARGEST_EXPONENT))
    reciprocal = ((254 - shared) << 23).astype(np.uint32)
    return _with_nan(shared.astype(np.uint32), reciprocal, greatest)


def _ceiling(greatest: U32) -> tuple[U32, U32]:
    """Return exponents and reciprocals by the rule nv: the next power of two above the product with 1/448."""
    with np.errstate(all="ignore"):
        product = np.ascontiguousarray(greatest.view(np.float32) * _RECIPROCAL).view(np.uint32)
    field, fraction = product >> 23, product & 0x7FFFFF
    up = ((field > 0) & (field < 254) & (fraction != 0)) | ((field == 0) & (fraction > 0x400000))
    shared = (field + up).astype(np.uint32)
    infinite = product == 0x7F800000
    shared = np.where(infinite, 0xFE, shared).astype(np.uint32)
    reciprocal = np.where(shared == 0xFE, 0x00400000, (254 - np.minimum(shared, 254)) << 23).astype(np.uint32)
    return _with_nan(shared, reciprocal, product)


def _with_nan(shared: U32, reciprocal: U32, of: U32) -> tuple[U32, U32]:
    nan = of > 0x7F800000
    return np.where(nan, 0xFF, shared).astype(np.uint32), np.where(nan, 0x7FC00000, reciprocal).astype(np.uint32)
