"""Quantisation to 8-bit integers and of blocks, dequantisation, and packing: values, and the bytes that they touch.

Source: docs/reference/pto.md section 7.12.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from castsim.execution.outcomes import Judge, tell_change
from castsim.execution.tree import Access, ResolvedTileOp, Tile, strided
from castsim.execution.vector_operations.shapes import (
    BLOCK,
    BUFFER,
    Bytes,
    block_end,
    encoded,
    is_column,
    numbers,
    region,
    row_bytes,
    shape_text,
    tile_error,
    tile_view,
    valid_codes,
)
from castsim.execution.vector_operations.target_rules import (
    Behaviour,
    boxed_bytes,
    bytes_to_box,
    cleared_bytes,
    fill_boxes,
)
from castsim.isa.dataclass import dataclass
from castsim.isa.errors import IllegalError, TileError
from castsim.isa.formats import Codes, Format, Overflow, Rounding, format_named
from castsim.isa.pto.value_types import held_format
from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS, Kind
from castsim.numerics.policy import Policy
from castsim.numerics.tiers import convert_codes
from castsim.targets.dataflow import TileArithmetic

# The groups of a block quantisation: how many there are, where their exponents, maxima and reciprocals lie.
#
# Groups are 32 neighbouring columns of a row (axis1), or 32 neighbouring rows of a column (axis0). Source:
# docs/reference/pto.md section 7.12.

MX_GROUP = 32
"""Number of elements that share an exponent."""

NARROW = format_named("e2m1")
"""The elements of MXFP4, two per byte."""

_UNROLLED = 256
"""Number of f32 elements in a trip of the longer passes, which store every reciprocal twice."""

_SINGLE_LANES, _HALF_LANES = 64, 128
"""Number of groups that a pass over exponents and reciprocals stores at once."""

FORMS = "tquant_mx_forms"
"""The option for the rules on operands: the assembler's or the library's."""

FLAT_NV = "nv_flat_fp4"
"""The option for exponents in one line of MXFP4 under the rule nv."""


@dataclass(frozen=True, slots=True)
class Grouping:
    """`down` x `across` groups; `by_rows`: a row of exponents for each row of elements, instead of one line of all."""

    down: int
    across: int
    columns: bool
    interleaved: bool
    by_rows: bool

    @property
    def count(self) -> int:
        """Number of all groups."""
        return self.down * self.across

    @property
    def exponent_region(self) -> tuple[int, int]:
        """Valid rows and columns of the exponents."""
        if self.interleaved:
            return self.down // 2, 2 * self.across
        return (self.down, self.across) if self.columns or self.by_rows else (1, self.count)

    def split(self, codes: Codes) -> Codes:
        """Return the codes of a tile by groups: down, across, element."""
        if self.columns:
            return codes.reshape(self.down, MX_GROUP, self.across).transpose(0, 2, 1)
        return codes.reshape(self.down, self.across, MX_GROUP)

    def joined(self, groups: Codes) -> Codes:
        """Return the codes of a tile from those of its groups."""
        if self.columns:
            return groups.transpose(0, 2, 1).reshape(self.down * MX_GROUP, self.across)
        return groups.reshape(self.down, self.across * MX_GROUP)

    def exponents(self, shared: Codes) -> Codes:
        """Return the exponents of all groups in the layout of their tile."""
        if self.interleaved:
            shared = shared.reshape(self.down // 2, 2, self.across).transpose(0, 2, 1)
        return shared.reshape(self.exponent_region)


def grouping_of(work: ResolvedTileOp) -> Grouping:
    """Return the groups of a block quantisation."""
    (source,) = work.sources
    rows, cols = source.valid_rows, source.valid_cols
    if work.by_columns:
        return Grouping(rows // MX_GROUP, cols, True, work.interleaved, False)
    by_rows = bool(work.further) and work.further[0].rows > 1
    return Grouping(rows, cols // MX_GROUP, False, False, by_rows)


def is_narrow(work: ResolvedTileOp) -> bool:
    """Return whether the results are 4-bit elements."""
    return held_format(work.dst.format)[0] == NARROW


def code_bytes(work: ResolvedTileOp) -> int:
    """Return the bytes of a row of results."""
    return work.sources[0].valid_cols // (2 if is_narrow(work) else 1)


def repeats_scaling(work: ResolvedTileOp) -> bool:
    """Return whether every reciprocal is stored twice, as in the longer passes over f32 with groups in one line."""
    (source,) = work.sources
    if source.element_bits != 32 or work.by_columns or grouping_of(work).by_rows:
        return False
    whole = source.rows * source.cols
    return whole > 4 * _UNROLLED and whole % _UNROLLED == 0 and source.valid_rows * source.cols % _UNROLLED == 0


def group_bytes(work: ResolvedTileOp) -> list[Access]:
    """Return the bytes that a block quantisation writes in addition to its codes.

    Exponents are in their valid region. So are maxima and reciprocals of groups of rows; others are in one line.
    """
    if not work.further:
        return []
    groups, (exponents, maxima, scaling) = grouping_of(work), work.further
    rows, cols = groups.exponent_region
    accesses = [row_bytes(exponents, rows, cols * exponents.element_bits // 8, write=True)]
    for tile, twice in ((maxima, False), (scaling, repeats_scaling(work))):
        if groups.columns:
            accesses.append(row_bytes(tile, groups.down, groups.across * tile.element_bits // 8, write=True))
        else:
            length = groups.count * (1 + twice) * tile.element_bits // 8
            accesses.append(Access(BUFFER, tile.address, tile.address + length, write=True))
    return accesses


def put_groups(buffer: Codes, work: ResolvedTileOp, tile: Tile, codes: Codes, *, twice: bool = False) -> None:
    """Write maxima or reciprocals of all groups to their tile."""
    groups, kind = grouping_of(work), f"<u{tile.element_bits // 8}"
    lines = codes.reshape(groups.down, groups.across) if groups.columns else codes.reshape(1, -1)
    for row, line in enumerate(np.repeat(lines, 1 + twice, axis=1).astype(kind)):
        data = line.view(np.uint8)
        start = tile.address + row * tile.row_pitch
        buffer[start : start + data.size] = data


# ------------------------------------------------------------------------------------------------------------- checks


def check_block_quantisation(work: ResolvedTileOp, forms: str, flat_nv: str) -> None:
    """Reject operands that do not fit together.

    Args:
        work: the operation.
        forms: the option `tquant_mx_forms`: `assembler`, or `library`, which requires less.
        flat_nv: the option `nv_flat_fp4`: `refuse`, `nv` or `as_library`.

    Raises:
        TileError: operands do not fit; the message names the tile and its extents. IllegalError: an option is required.
    """
    _check_groups(work)
    groups = grouping_of(work)
    _check_forms(work, groups, forms, flat_nv)
    exponents, *others = work.further
    if region(exponents) != groups.exponent_region:
        raise _extents(work, exponents, groups, (groups.exponent_region,))
    plain = (groups.down, groups.across), (1, groups.count)
    for tile in others:
        if region(tile) not in (plain[:1] if groups.columns else plain):
            raise _extents(work, tile, groups, plain[:1] if groups.columns else plain)
    if groups.columns:
        _check_pitches(work, groups)
        return
    need = groups.count * (1 + repeats_scaling(work))
    for tile, wanted in zip(others, (groups.count, need), strict=True):
        if tile.rows * tile.cols < wanted:
            raise tile_error(work, f"%{tile.name} must have room for {wanted} elements")
    if forms == "assembler" and not groups.by_rows:
        _check_room(work, others[1], need)


def _check_groups(work: ResolvedTileOp) -> None:
    (source,), dst = work.sources, work.dst
    across = 2 if work.dst.element_bits == 8 and is_narrow(work) else 1
    if (dst.valid_rows, dst.valid_cols * across) != region(source):
        actual, wanted = (
            shape_text(shape) for shape in (region(dst), (source.valid_rows, source.valid_cols // across))
        )
        raise tile_error(
            work,
            f"valid region of %{dst.name} is {actual}, of %{source.name} {shape_text(region(source))}"
            + (", two columns for each byte" if across > 1 else ""),
            wanted,
        )
    step = (2 if work.interleaved else 1) * MX_GROUP
    if work.by_columns:
        if source.valid_rows % step or (work.interleaved and source.rows % step):
            raise tile_error(
                work,
                f"%{source.name} must have whole groups of {step} rows; it has {source.rows}, "
                f"of which {source.valid_rows} are valid",
            )
        if is_narrow(work) and source.valid_cols % 2:
            raise tile_error(
                work, f"%{source.name} has {source.valid_cols} columns; two share a byte, so the number must be even"
            )
        return
    if work.interleaved:
        raise IllegalError(
            f"{work.mnemonic} interleaves exponents only for groups of rows",
            span=work.span,
            legal=("grpAxis = #pto<mx_group_axis axis0>",),
        )
    ragged = source.valid_cols % MX_GROUP
    if ragged or (source.cols != source.valid_cols and work.further[0].rows == 1):
        raise tile_error(
            work,
            f"rows of %{source.name} must be whole groups of {MX_GROUP} elements"
            + ("" if ragged else ", all valid where exponents are one line"),
        )


def _check_forms(work: ResolvedTileOp, groups: Grouping, forms: str, flat_nv: str) -> None:
    (source,), half = work.sources, work.sources[0].element_bits == 16
    width = source.cols // (2 if is_narrow(work) and work.dst.element_bits == 8 else 1)
    if work.dst.cols != width and not (groups.columns and not is_narrow(work)):
        raise tile_error(
            work,
            f"%{work.dst.name} has rows of {work.dst.cols} elements, %{source.name} of {source.cols}",
            f"{work.dst.rows}x{width}",
        )
    flat = not groups.columns and not groups.by_rows
    if is_narrow(work) and not half:
        raise IllegalError(f"{work.mnemonic} to MXFP4 takes 16-bit elements", span=work.span, legal=("bf16", "f16"))
    if flat and is_narrow(work) and work.mode == "nv":
        if flat_nv == "refuse":
            raise IllegalError(
                f"{work.mnemonic}: with exponents in one line, the library computes MXFP4 by rule ocp instead of nv",
                span=work.span,
                legal=("quantScaleAlg = #pto<quant_scale_alg ocp>", f"option {FLAT_NV}=nv", f"{FLAT_NV}=as_library"),
            )
        return
    refused = None
    if half and groups.by_rows:
        refused = f"{source.format.name} with rows of exponents"
    elif half and flat and work.mode == "nv":
        refused = f"{source.format.name} with exponents in one line by the rule nv"
    elif groups.interleaved and not half:
        refused = "f32 with interleaved exponents"
    if refused is not None and forms == "assembler":
        raise IllegalError(
            f"{work.mnemonic} of {refused} is rejected by the assembler; the library accepts it",
            span=work.span,
            legal=(f"option {FORMS}=library",),
        )


def _check_pitches(work: ResolvedTileOp, groups: Grouping) -> None:
    """Tiles of groups of rows have the columns of the source; interleaved exponents twice as many."""
    (source,), (exponents, *others) = work.sources, work.further
    if groups.interleaved:
        shape = source.rows // 64, block_end(2 * source.cols, 32)
        if (exponents.rows, exponents.cols) != shape:
            raise tile_error(
                work,
                f"interleaved exponents %{exponents.name} are {exponents.rows} x {exponents.cols}",
                shape_text(shape),
            )
    for tile in others if groups.interleaved else work.further:
        if tile.cols != source.cols:
            raise tile_error(
                work,
                f"%{tile.name} has {tile.cols} columns, %{source.name} {source.cols}",
                f"{tile.rows}x{source.cols}",
            )


def _check_room(work: ResolvedTileOp, scaling: Tile, need: int) -> None:
    """The assembler asks for room for whole registers of reciprocals; the vendor's own kernel has 32 in a tile of 32.

    Stores beyond such a tile cause a warning (`block_surprises`).
    """
    if (scaling.element_bits == 16 and work.mode != "ocp") or need % MX_GROUP == 0:
        return
    lanes = _SINGLE_LANES if scaling.element_bits == 32 else _HALF_LANES
    wanted = block_end(need, lanes) * scaling.element_bits // 8
    if scaling.size < wanted:
        raise tile_error(
            work,
            f"%{scaling.name} has {scaling.size} bytes, but reciprocals are stored in whole registers: {wanted} bytes",
            f"1x{wanted * 8 // scaling.element_bits}",
            f"option {FORMS}=library",
        )


def _extents(work: ResolvedTileOp, tile: Tile, groups: Grouping, legal: tuple[tuple[int, int], ...]) -> TileError:
    return tile_error(
        work,
        f"%{tile.name} has {shape_text(region(tile))} valid elements, the groups are {groups.down} x {groups.across}",
        *tuple(dict.fromkeys(map(shape_text, legal))),
    )


def block_surprises(work: ResolvedTileOp, flat_nv: str, written: str) -> Iterator[str]:
    """Yield warnings about differences of the library from its documents (docs/reference/pto.md section 7.12)."""
    groups, (source,), name = grouping_of(work), work.sources, f"pto.{work.mnemonic}"
    exponents, maxima, scaling = work.further
    if written == "written":
        yield f"{name} leaves CTRL at 1 << 50, because the library does not restore it"
    half = source.element_bits == 16
    if groups.by_rows and half:
        yield f"{name} uses %{maxima.name} as scratch: the library leaves other values in its first eight elements"
    if groups.interleaved and not half:
        yield f"{name} works in %{work.dst.name} before it writes the codes"
    flat = not groups.columns and not groups.by_rows
    if flat and is_narrow(work) and work.mode == "nv" and flat_nv == "as_library":
        as_halves = " of its bits read as bf16" if source.format.name == "f16" else ""
        yield f"{name} with rule nv produces the exponents of rule ocp{as_halves}"
    lanes = _HALF_LANES if half and work.mode == "ocp" else _SINGLE_LANES
    twice = 1 + repeats_scaling(work)
    if flat and groups.count * twice % lanes:
        whole, repeated = block_end(groups.count, lanes), block_end(groups.count * twice, lanes)
        for tile, size in ((exponents, whole), (scaling, repeated * scaling.element_bits // 8)):
            if tile.address + size > tile.end:
                yield (
                    f"{name} stores registers of {lanes} groups: bytes {tile.end} .. {tile.address + size - 1} behind "
                    f"%{tile.name} are overwritten by what follows from the bytes behind the {groups.count} maxima, "
                    f"which is not claimed"
                )
        if not half and groups.count % 2 and maxima.size < 4 * (groups.count + 1):
            yield f"{name} stores one maximum of 0 after %{maxima.name}"


# Quantisation of groups of 32 elements to e4m3fn or e2m1 with shared exponents, as the A5's library computes it.
#
# Source: docs/reference/pto.md section 7.12. All steps but the products and their rounding are on integers.

BRAIN, BYTE = format_named("bf16"), format_named("e4m3fn")

_LARGEST_EXPONENT = {BYTE: 8, NARROW: 2}
"""448 is 1.75 * 2**8, 6 is 1.5 * 2**2."""

_RECIPROCAL = {BYTE: np.float32(1 / np.float64(448)), NARROW: np.float32(1 / np.float64(6))}
"""The factor of the largest magnitude in the rule nv."""

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
    """Return the codes of the largest magnitudes; those of 16 bits are compared as integers, so NaN is above all.

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
    largest = bits[..., 0].copy()
    for other in np.moveaxis(bits, 2, 0)[1:]:
        larger = (other <= 0x7F800000) & ((other > largest) | ((largest > 0x7F800000) & (not first)))
        largest = np.where(larger & ~((largest > 0x7F800000) & first), other, largest)
    return largest


def _widened(codes: Codes, fmt: Format) -> U32:
    wide = codes if fmt.name == "f32" else convert_codes(codes, fmt, SINGLE, Policy(Rounding.RINT, Overflow.SPECIAL))
    return np.ascontiguousarray(wide).view(np.uint32)


def _flushed(values: NDArray[np.float32], *, flushes: bool) -> NDArray[np.float32]:
    if not flushes:
        return values
    tiny = np.abs(values) < np.finfo(np.float32).tiny
    flushed: NDArray[np.float32] = np.where(tiny, np.copysign(np.float32(0), values), values).astype(np.float32)
    return flushed


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
    """Return the codes of products, rounded to nearest even and clamped; for NaN the format's, or the largest number.

    For e2m1 the steps of f16 and the instruction of bf16, which receives infinity for NaN, agree (section 7.12).
    """
    codes = convert_codes(np.ascontiguousarray(products), SINGLE, result, _CASTS).astype(np.uint8)
    nan = (products & 0x7FFFFFFF) > 0x7F800000
    if result is NARROW:
        codes[nan] = 7
    else:
        signed = behaviour.choice("e4m3_nan") == "sign"
        codes[nan] = (0x7F | (signs << 7 if signed else signs * 0)).astype(np.uint8)[nan]
    tell_change(Judge(SINGLE, result, _CASTS.rounding), products, codes)
    return codes


QUANTISING = (Kind.QUANTISE, Kind.DEQUANTISE, Kind.PACK, Kind.BLOCK_QUANTISE, Kind.BOX)
"""The kinds of operations that this module implements."""

SINGLE, INTEGER, HALF = format_named("f32"), format_named("i32"), format_named("f16")

LANES = 64
"""Number of f32 elements in a register: a whole one is stored at the end of a dequantised row."""

_SPREAD_ROWS = 8
"""Number of rows whose parameters one repeat spreads to blocks."""

Single = NDArray[np.float32]


def quantise_tiles(buffer: Bytes, work: ResolvedTileOp, behaviour: Behaviour) -> None:
    """Run an operation of one of these kinds on the unified buffer."""
    match VECTOR_OPERATIONS[work.mnemonic].kind:
        case Kind.QUANTISE:
            _quantise(buffer, work, behaviour)
        case Kind.DEQUANTISE:
            _dequantise(buffer, work, behaviour)
        case Kind.BLOCK_QUANTISE:
            quantise_blocks(buffer, work, behaviour)
        case Kind.BOX:
            fill_boxes(buffer, work)
        case _:
            narrow = np.dtype(f"<u{work.dst.element_bits // 8}")
            codes = valid_codes(buffer, work.sources[0])
            tile_view(buffer, work.dst, work.dst.valid_rows, work.dst.valid_cols)[...] = codes.astype(narrow)


def quantised_bytes(work: ResolvedTileOp, behaviour: Behaviour) -> Access:
    """Return the bytes of the destination that an operation of one of these kinds writes."""
    dst = work.dst
    if VECTOR_OPERATIONS[work.mnemonic].kind is Kind.BOX:
        return boxed_bytes(work)
    return _valid_row_bytes(dst, _columns(work, behaviour), write=True)


def bytes_to_quantise(work: ResolvedTileOp, behaviour: Behaviour) -> list[Access]:
    """Return the bytes read from each source; parameters are contiguous, or one per row."""
    source, *parameters = work.sources
    if VECTOR_OPERATIONS[work.mnemonic].kind is Kind.BOX:
        return bytes_to_box(work)
    blocks = VECTOR_OPERATIONS[work.mnemonic].kind is Kind.BLOCK_QUANTISE
    accesses = [_valid_row_bytes(source, source.valid_cols if blocks else _columns(work, behaviour), write=False)]
    rows = work.dst.valid_rows
    for tile in parameters:
        if VECTOR_OPERATIONS[work.mnemonic].kind is Kind.QUANTISE:
            read = -(-rows // _SPREAD_ROWS) * _SPREAD_ROWS if behaviour.uses_tmp else rows
            accesses.append(Access(BUFFER, tile.address, tile.address + 4 * read, write=False))
        else:
            pitch = 4 if is_column(tile) else tile.row_pitch
            accesses.append(strided(BUFFER, tile.address, ((rows, pitch),), 4, write=False))
    return accesses


def clobbered_bytes(work: ResolvedTileOp, behaviour: Behaviour) -> list[Access]:
    """Return the additional bytes that a quantisation changes: its source, used as scratch, and those after tmp."""
    kind = VECTOR_OPERATIONS[work.mnemonic].kind
    if kind is Kind.BOX:
        return cleared_bytes(work)
    if kind is not Kind.QUANTISE or not behaviour.uses_tmp:
        return []
    source = work.sources[0]
    accesses = [_valid_row_bytes(source, source.valid_cols, write=True)]
    if source.valid_rows and source.valid_cols:
        pitch, length = _half_pitch(source), 2 * source.valid_cols
        accesses.append(strided(BUFFER, source.address, ((source.valid_rows, pitch),), length, write=True))
    behind = spread_end(work, behaviour.facts)
    if work.tmp is not None and behind > work.tmp.end:
        accesses.append(Access(BUFFER, work.tmp.end, behind, write=True))
    return accesses


def _half_pitch(source: Tile) -> int:
    """Return the bytes from row to row of the halves that a quantisation keeps in its source."""
    return block_end(source.cols * 2, BLOCK)


def spread_end(work: ResolvedTileOp, facts: TileArithmetic) -> int:
    """Return the end of the bytes of tmp to which parameters are spread: a block for each whole group of rows."""
    assert work.tmp is not None
    rows = work.dst.valid_rows
    spread = rows if rows < facts.spread_rows_limit else facts.spread_rows_most
    return work.tmp.address + block_end(spread, _SPREAD_ROWS) * BLOCK


def _columns(work: ResolvedTileOp, behaviour: Behaviour) -> int:
    """Return the columns of a row that are computed: of a dequantisation perhaps all of the last register."""
    cols = work.dst.valid_cols
    if VECTOR_OPERATIONS[work.mnemonic].kind is not Kind.DEQUANTISE or not behaviour.facts.dequantises_whole_registers:
        return cols
    whole = cols > LANES and behaviour.choice("tdequant_tail") == "library"
    return -(-cols // LANES) * LANES if whole else cols


def _valid_row_bytes(tile: Tile, cols: int, *, write: bool) -> Access:
    return row_bytes(tile, tile.valid_rows, cols * tile.element_bits // 8, write=write)


def _quantise(buffer: Bytes, work: ResolvedTileOp, behaviour: Behaviour) -> None:
    """Multiply, optionally add, each rounded to f32; round to nearest even, clamp; NaN gives 0.

    The path through f16 loses nothing more: integers up to 2048 are exact there, and others clamp.
    """
    source, *parameters = work.sources
    rows, cols = work.dst.valid_rows, work.dst.valid_cols
    product: Single = numbers(valid_codes(buffer, source), SINGLE)
    for tile, function in zip(parameters, (np.multiply, np.add), strict=False):
        factors = buffer[tile.address : tile.address + 4 * rows].view("<f4").reshape(rows, 1)
        with np.errstate(all="ignore"):
            product = function(product, factors)
    with np.errstate(invalid="ignore"):
        rounded = np.clip(np.nan_to_num(np.rint(product.astype(float)), nan=0.0), -(2.0**31), 2.0**31 - 1)
    if behaviour.uses_tmp and work.tmp is not None:
        _leave_steps(buffer, work, behaviour, product, rounded)
    low, high = (-128, 127) if len(parameters) == 1 else (0, 255)
    codes = np.clip(rounded, low, high).astype(np.int64).astype(np.uint8)
    judge = Judge(SINGLE, format_named("u8" if low == 0 else "i8"), Rounding.RINT, wraps=False)
    tell_change(judge, np.ascontiguousarray(product, "<f4").view("<u4"), codes)
    tile_view(buffer, work.dst, rows, cols)[...] = codes


def _leave_steps(
    buffer: Bytes, work: ResolvedTileOp, behaviour: Behaviour, product: Single, rounded: NDArray[np.float64]
) -> None:
    """Write the intermediate results of the steps to source and scratch: parameters, products, integers, halves."""
    source, *parameters = work.sources
    tmp, rows = work.tmp, source.valid_rows
    assert tmp is not None
    chunk = rows if rows < behaviour.facts.spread_rows_limit else behaviour.facts.spread_rows_most
    for tile in parameters:
        for first in range(0, rows, max(1, chunk)):
            count = -(-min(chunk, rows - first) // _SPREAD_ROWS) * _SPREAD_ROWS
            start = tile.address + 4 * first
            blocks = np.repeat(buffer[start : start + 4 * count].view("<u4"), 8).view(np.uint8)
            room = buffer[tmp.address : tmp.address + blocks.size]
            room[...] = blocks[: room.size]
    tile_view(buffer, source, rows, source.valid_cols)[...] = encoded(product, SINGLE)
    tile_view(buffer, tmp, rows, source.valid_cols)[...] = rounded.astype(np.int64).astype(np.int32).view("<u4")
    limited = np.clip(rounded, -65504, 65504) if behaviour.choice("float_saturation_off_at_start") == 0 else rounded
    with np.errstate(over="ignore"):
        halves = limited.astype(np.float16).view(np.uint8).reshape(rows, -1)
    for row in range(rows):
        buffer[source.address + row * _half_pitch(source) :][: halves.shape[1]] = halves[row]


def _dequantise(buffer: Bytes, work: ResolvedTileOp, behaviour: Behaviour) -> None:
    """Subtract the offset, then multiply by the scale, each rounded to f32; rows in order if they spill."""
    source, scale, offset = work.sources
    dst, cols = work.dst, _columns(work, behaviour)
    scales, offsets = (numbers(tile_view(buffer, tile, dst.valid_rows, 1).copy(), SINGLE) for tile in (scale, offset))
    signed = np.dtype(f"<i{source.element_bits // 8}")
    results = []
    for row in range(dst.valid_rows):
        start = source.address + row * source.row_pitch
        read = buffer[start : start + cols * signed.itemsize].view(signed).astype(np.float32)
        with np.errstate(all="ignore"):
            results.append(encoded((read - offsets[row]) * scales[row], SINGLE))
    for row, codes in enumerate(results):
        room = buffer[dst.address + row * dst.row_pitch :][: 4 * codes.size]
        room[...] = codes.view(np.uint8)[: room.size]
