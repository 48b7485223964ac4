"""Quantisation of groups of 32 elements to e4m3fn or e2m1 with shared exponents, as the A5's library computes it.

Source: docs/reference/pto.md section 7.12. All steps but the products and their rounding are on integers.
"""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from castsim.execution.tiles import ResolvedTileOp
from castsim.execution.vector_operations.behaviour import Behaviour
from castsim.execution.vector_operations.block_groups import (
    FLAT_NV,
    NARROW,
    code_bytes,
    grouping_of,
    is_narrow,
    put_groups,
    repeats_scaling,
)
from castsim.execution.vector_operations.elements import Bytes, numbers, tile_view, valid_codes
from castsim.isa.codes import Codes
from castsim.isa.formats import Format, format_named
from castsim.isa.modes import Overflow, Rounding
from castsim.numerics import Policy, convert_codes

SINGLE, BRAIN, BYTE = format_named("f32"), format_named("bf16"), format_named("e4m3fn")

_LARGEST_EXPONENT = {BYTE: 8, NARROW: 2}
"""448 is 1.75 * 2**8, 6 is 1.5 * 2**2."""

_RECIPROCAL = {BYTE: np.float32(1 / np.float64(448)), NARROW: np.float32(1 / np.float64(6))}
"""By which the rule nv multiplies the largest magnitude."""

_NAN_SCALE = {BYTE: 0x7F81, NARROW: 0x7FC0}
"""Reciprocals of 16 bits of groups that hold NaN."""

_CASTS = Policy(Rounding.RINT, Overflow.SATURATE)

U32 = NDArray[np.uint32]


def quantise_blocks(buffer: Bytes, work: ResolvedTileOp, behaviour: Behaviour) -> None:
    """Write codes, exponents (e8m0), largest magnitudes and reciprocals of scales."""
    (source,), result, groups = work.sources, NARROW if is_narrow(work) else BYTE, grouping_of(work)
    flushes = behaviour.choice("subnormals") == "flush"
    split = np.ascontiguousarray(groups.split(valid_codes(buffer, source)))
    misread = work.mode == "nv" and result is NARROW and behaviour.choice(FLAT_NV) == "as_library"
    misread = misread and not groups.columns and not groups.by_rows
    cut = source.format.name == "f16" and work.mode == "ocp"
    greatest = _greatest(split, source.format, str(behaviour.choice("maximum_of_nan")), cut=cut)
    wide = _widened(greatest, BRAIN if cut or misread else source.format)
    by_ceiling = work.mode == "nv" and not misread
    shared, reciprocal = _ceiling(wide, result, flushes=flushes) if by_ceiling else _floor(wide, result)
    values = _flushed(numbers(split, source.format).astype(np.float32), flushes=flushes)
    factors = _flushed(reciprocal.view(np.float32), flushes=flushes)[..., None]
    with np.errstate(all="ignore"):
        products = _flushed(values * factors, flushes=flushes).view(np.uint32)
    codes = groups.joined(_rounded(products, split >> (source.element_bits - 1), result, behaviour))
    if result is NARROW:
        codes = codes[:, 0::2] | codes[:, 1::2] << 4
    dst = work.dst
    shape, steps = (dst.valid_rows, code_bytes(work)), (dst.row_pitch, 1)
    if dst.valid_rows:
        as_strided(buffer[dst.address :], shape, steps, writeable=True)[...] = codes
    exponents, maxima, scaling = work.further
    view = tile_view(buffer, exponents, *groups.exponent_region)
    view[...] = groups.exponents(shared).astype(view.dtype)
    half = source.element_bits == 16
    kept = np.where(reciprocal == 0x7FC00000, _NAN_SCALE[result], reciprocal >> 16) if half else reciprocal
    put_groups(buffer, work, maxima, greatest)
    put_groups(buffer, work, scaling, kept, twice=repeats_scaling(work))


def _greatest(groups: Codes, fmt: Format, of_nan: str, *, cut: bool) -> Codes:
    """Return the codes of the largest magnitudes; those of 16 bits are compared as integers: NaN is above all else.

    `cut`: f16 elements become bf16, toward zero, before.
    """
    if cut:
        groups = convert_codes(groups, fmt, BRAIN, Policy(Rounding.TRUNC, Overflow.SPECIAL))
    bits = groups & groups.dtype.type((1 << (fmt.bits - 1)) - 1)
    if fmt.bits == 32 and of_nan != "nan":
        return _among_numbers(bits, first=of_nan == "first")
    greatest: Codes = bits.max(axis=2)
    if fmt.bits == 32:  # the largest of numbers with a NaN is the canonical one
        greatest[greatest > 0x7F800000] = 0x7FC00000
    return greatest


def _among_numbers(bits: Codes, *, first: bool) -> Codes:
    """Return the largest magnitude of f32 where NaN does not win; `first`: it stays where it came first."""
    found = bits[..., 0].copy()
    for other in np.moveaxis(bits, 2, 0)[1:]:
        larger = (other <= 0x7F800000) & ((other > found) | ((found > 0x7F800000) & (not first)))
        found = np.where(larger & ~((found > 0x7F800000) & first), other, found)
    return found


def _widened(codes: Codes, fmt: Format) -> U32:
    wide = codes if fmt.name == "f32" else convert_codes(codes, fmt, SINGLE, Policy(Rounding.RINT, Overflow.SPECIAL))
    return np.ascontiguousarray(wide).view(np.uint32)


def _flushed(values: NDArray[np.float32], *, flushes: bool) -> NDArray[np.float32]:
    if not flushes:
        return values
    tiny = np.abs(values) < np.finfo(np.float32).tiny
    found: NDArray[np.float32] = np.where(tiny, np.copysign(np.float32(0), values), values).astype(np.float32)
    return found


def _floor(greatest: U32, result: Format) -> tuple[U32, U32]:
    """Return exponents and reciprocals by the rule ocp: that of the largest magnitude, less that of the format."""
    field, largest = greatest >> 23, np.uint32(_LARGEST_EXPONENT[result])
    shared = (field - np.minimum(field, largest)).astype(np.uint32)
    reciprocal = ((254 - shared) << 23).astype(np.uint32)
    return _with_nan(shared, reciprocal, greatest)


def _ceiling(greatest: U32, result: Format, *, flushes: bool) -> tuple[U32, U32]:
    """Return exponents and reciprocals by the rule nv: the next power of two above the product with 1/448 or 1/6."""
    with np.errstate(all="ignore"):
        scaled = _flushed(greatest.view(np.float32), flushes=flushes) * _RECIPROCAL[result]
    product = np.ascontiguousarray(_flushed(scaled, flushes=flushes)).view(np.uint32)
    field, fraction = product >> 23, product & 0x7FFFFF
    up = ((field > 0) & (field < 254) & (fraction != 0)) | ((field == 0) & (fraction > 0x400000))
    shared = np.where(product == 0x7F800000, 0xFE, field + up).astype(np.uint32)
    reciprocal = np.where(shared == 0xFE, 0x00400000, (254 - np.minimum(shared, 254)) << 23).astype(np.uint32)
    return _with_nan(shared, reciprocal, product)


def _with_nan(shared: U32, reciprocal: U32, of: U32) -> tuple[U32, U32]:
    nan = of > 0x7F800000
    return np.where(nan, 0xFF, shared).astype(np.uint32), np.where(nan, 0x7FC00000, reciprocal).astype(np.uint32)


def _rounded(products: U32, signs: Codes, result: Format, behaviour: Behaviour) -> NDArray[np.uint8]:
    """Return the codes of products, to nearest even, clamped; of NaN that of the format, or the largest number.

    Of e2m1 the steps of f16 and the instruction of bf16, which is given infinity for NaN, agree (section 7.12).
    """
    codes = convert_codes(np.ascontiguousarray(products), SINGLE, result, _CASTS).astype(np.uint8)
    nan = (products & 0x7FFFFFFF) > 0x7F800000
    if result is NARROW:
        codes[nan] = 7
    else:
        signed = behaviour.choice("e4m3_nan") == "sign"
        codes[nan] = (0x7F | (signs << 7 if signed else signs * 0)).astype(np.uint8)[nan]
    return codes
