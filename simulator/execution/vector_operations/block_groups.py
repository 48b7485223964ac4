"""The groups of a block quantisation: how many there are, where their exponents, maxima and reciprocals lie.

Groups are 32 neighbouring columns of a row (axis1), or 32 neighbouring rows of a column (axis0). Source:
docs/reference/pto.md section 7.12.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from castsim.execution.byte_sets import strided
from castsim.execution.tiles import ResolvedTileOp, Tile
from castsim.execution.tree import Access
from castsim.execution.vector_operations.shapes import BUFFER, block_end, region
from castsim.isa.codes import Codes
from castsim.isa.errors import IllegalError, TileError
from castsim.isa.formats import format_named
from castsim.isa.pto.packed import held_format

MX_GROUP = 32
"""Elements that share an exponent."""

NARROW = format_named("e2m1")
"""Elements of MXFP4, of which a byte holds two."""

_UNROLLED = 256
"""Elements of f32 in a trip of the longer passes, which keep every reciprocal twice."""

_SINGLE_LANES, _HALF_LANES = 64, 128
"""Groups that a pass over exponents and reciprocals stores at once."""

FORMS = "tquant_mx_forms"
"""Option: whose rules on operands hold, the assembler's or the library's."""

FLAT_NV = "nv_flat_fp4"
"""Option: what becomes of exponents in one line of MXFP4 by the rule nv."""


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
        """All groups."""
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
        """Return the exponents of all groups as their tile has them."""
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
    """Whether the results are elements of 4 bits."""
    return held_format(work.dst.format)[0] == NARROW


def code_bytes(work: ResolvedTileOp) -> int:
    """Return the bytes of a row of results."""
    return work.sources[0].valid_cols // (2 if is_narrow(work) else 1)


def repeats_scaling(work: ResolvedTileOp) -> bool:
    """Whether every reciprocal is kept twice: in the longer passes over f32 whose groups lie in one line."""
    (source,) = work.sources
    if source.element_bits != 32 or work.by_columns or grouping_of(work).by_rows:
        return False
    whole = source.rows * source.cols
    return whole > 4 * _UNROLLED and whole % _UNROLLED == 0 and source.valid_rows * source.cols % _UNROLLED == 0


def group_bytes(work: ResolvedTileOp) -> list[Access]:
    """Return the bytes that a block quantisation writes besides its codes.

    Exponents lie in their valid region. Maxima and reciprocals do so of groups of rows; else they lie in one line.
    """
    if not work.further:
        return []
    groups, (exponents, maxima, scaling) = grouping_of(work), work.further
    found = [_rows(exponents, *groups.exponent_region)]
    for tile, twice in ((maxima, False), (scaling, repeats_scaling(work))):
        if groups.columns:
            found.append(_rows(tile, groups.down, groups.across))
        else:
            length = groups.count * (1 + twice) * tile.element_bits // 8
            found.append(Access(BUFFER, tile.address, tile.address + length, write=True))
    return found


def _rows(tile: Tile, rows: int, cols: int) -> Access:
    if not rows or not cols:
        return Access(BUFFER, tile.address, tile.address, write=True)
    return strided(BUFFER, tile.address, ((rows, tile.row_pitch),), cols * tile.element_bits // 8, write=True)


def put_groups(buffer: Codes, work: ResolvedTileOp, tile: Tile, held: Codes, *, twice: bool = False) -> None:
    """Write maxima or reciprocals of all groups to their tile."""
    groups, kind = grouping_of(work), f"<u{tile.element_bits // 8}"
    lines = held.reshape(groups.down, groups.across) if groups.columns else held.reshape(1, -1)
    for row, line in enumerate(np.repeat(lines, 1 + twice, axis=1).astype(kind)):
        data = line.view(np.uint8)
        start = tile.address + row * tile.row_pitch
        buffer[start : start + data.size] = data


# ------------------------------------------------------------------------------------------------------------- checks


def check_block_quantisation(work: ResolvedTileOp, forms: str, flat_nv: str) -> None:
    """Refuse operands that do not belong together.

    Args:
        work: the operation.
        forms: the option `tquant_mx_forms`: `assembler`, or `library`, which asks for less.
        flat_nv: the option `nv_flat_fp4`: `refuse`, `nv` or `as_library`.

    Raises:
        TileError: names the tile and its extents. IllegalError: a form that exists under an option only.
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
            raise TileError(f"{work.mnemonic}: %{tile.name} must have room for {wanted} elements", span=work.span)
    if forms == "assembler" and not groups.by_rows:
        _check_room(work, others[1], need)


def _check_groups(work: ResolvedTileOp) -> None:
    (source,), dst = work.sources, work.dst
    across = 2 if work.dst.element_bits == 8 and is_narrow(work) else 1
    if (dst.valid_rows, dst.valid_cols * across) != region(source):
        found, wanted = (_extent(one) for one in (region(dst), (source.valid_rows, source.valid_cols // across)))
        raise TileError(
            f"{work.mnemonic}: valid region of %{dst.name} is {found}, of %{source.name} {_extent(region(source))}"
            + (", two columns for each byte" if across > 1 else ""),
            span=work.span,
            legal=(wanted,),
        )
    step = (2 if work.interleaved else 1) * MX_GROUP
    if work.by_columns:
        if source.valid_rows % step or (work.interleaved and source.rows % step):
            raise TileError(
                f"{work.mnemonic}: %{source.name} must have whole groups of {step} rows, it has {source.rows}, "
                f"{source.valid_rows} of them valid",
                span=work.span,
            )
        if is_narrow(work) and source.valid_cols % 2:
            raise TileError(
                f"{work.mnemonic}: %{source.name} has {source.valid_cols} columns, of which two share a byte",
                span=work.span,
            )
        return
    if work.interleaved:
        raise IllegalError(
            f"{work.mnemonic} interleaves exponents of groups of rows only",
            span=work.span,
            legal=("grpAxis = #pto<mx_group_axis axis0>",),
        )
    ragged = source.valid_cols % MX_GROUP
    if ragged or (source.cols != source.valid_cols and work.further[0].rows == 1):
        raise TileError(
            f"{work.mnemonic}: rows of %{source.name} must be whole groups of {MX_GROUP} elements"
            + ("" if ragged else ", all valid where exponents are one line"),
            span=work.span,
        )


def _check_forms(work: ResolvedTileOp, groups: Grouping, forms: str, flat_nv: str) -> None:
    (source,), half = work.sources, work.sources[0].element_bits == 16
    width = source.cols // (2 if is_narrow(work) and work.dst.element_bits == 8 else 1)
    if work.dst.cols != width and not (groups.columns and not is_narrow(work)):
        raise TileError(
            f"{work.mnemonic}: %{work.dst.name} has rows of {work.dst.cols} elements, %{source.name} of {source.cols}",
            span=work.span,
            legal=(f"{work.dst.rows}x{width}",),
        )
    flat = not groups.columns and not groups.by_rows
    if is_narrow(work) and not half:
        raise IllegalError(f"{work.mnemonic} to MXFP4 takes elements of 16 bits", span=work.span, legal=("bf16", "f16"))
    if flat and is_narrow(work) and work.mode == "nv":
        if flat_nv == "refuse":
            raise IllegalError(
                f"{work.mnemonic}: of exponents in one line to MXFP4 by the rule nv the library makes those of ocp",
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
            f"{work.mnemonic} of {refused} is refused by the assembler; the library takes it",
            span=work.span,
            legal=(f"option {FORMS}=library",),
        )


def _check_pitches(work: ResolvedTileOp, groups: Grouping) -> None:
    """Tiles of groups of rows have the columns of the source; interleaved exponents twice as many."""
    (source,), (exponents, *others) = work.sources, work.further
    if groups.interleaved:
        shape = source.rows // 64, block_end(2 * source.cols, 32)
        if (exponents.rows, exponents.cols) != shape:
            raise TileError(
                f"{work.mnemonic}: interleaved exponents %{exponents.name} are {exponents.rows} x {exponents.cols}",
                span=work.span,
                legal=(_extent(shape),),
            )
    for tile in others if groups.interleaved else work.further:
        if tile.cols != source.cols:
            raise TileError(
                f"{work.mnemonic}: %{tile.name} has {tile.cols} columns, %{source.name} {source.cols}",
                span=work.span,
                legal=(f"{tile.rows}x{source.cols}",),
            )


def _check_room(work: ResolvedTileOp, scaling: Tile, need: int) -> None:
    """The assembler asks for room for whole registers of reciprocals."""
    if scaling.element_bits == 16 and work.mode != "ocp":
        return
    lanes = _SINGLE_LANES if scaling.element_bits == 32 else _HALF_LANES
    wanted = block_end(need, lanes) * scaling.element_bits // 8
    if scaling.size < wanted:
        raise TileError(
            f"{work.mnemonic}: %{scaling.name} has {scaling.size} bytes, reciprocals are stored in whole registers: "
            f"{wanted} bytes",
            span=work.span,
            legal=(f"1x{wanted * 8 // scaling.element_bits}", f"option {FORMS}=library"),
        )


def _extents(work: ResolvedTileOp, tile: Tile, groups: Grouping, legal: tuple[tuple[int, int], ...]) -> TileError:
    return TileError(
        f"{work.mnemonic}: %{tile.name} has {_extent(region(tile))} valid elements, the groups are "
        f"{groups.down} x {groups.across}",
        span=work.span,
        legal=tuple(dict.fromkeys(map(_extent, legal))),
    )


def _extent(pair: tuple[int, int]) -> str:
    return f"{pair[0]} x {pair[1]}"


def block_surprises(work: ResolvedTileOp, flat_nv: str, written: str) -> Iterator[str]:
    """Yield warnings of what the library does otherwise than its documents say (docs/reference/pto.md section 7.12)."""
    groups, (source,), name = grouping_of(work), work.sources, f"pto.{work.mnemonic}"
    exponents, maxima, scaling = work.further
    if written == "written":
        yield f"{name} leaves CTRL at 1 << 50, which the library writes and does not restore"
    half = source.element_bits == 16
    if groups.by_rows and half:
        yield f"{name} works in %{maxima.name}: the library leaves other values in its first eight elements"
    if groups.interleaved and not half:
        yield f"{name} works in %{work.dst.name} before it writes the codes"
    flat = not groups.columns and not groups.by_rows
    if flat and is_narrow(work) and work.mode == "nv" and flat_nv == "as_library":
        as_halves = " of its bits read as bf16" if source.format.name == "f16" else ""
        yield f"{name} by the rule nv makes the exponents of the rule ocp{as_halves}"
    if flat and not half and not repeats_scaling(work) and groups.count % _SINGLE_LANES:
        whole = block_end(groups.count, _SINGLE_LANES)
        for tile, size in ((exponents, whole), (scaling, 4 * whole)):
            if tile.address + size > tile.end:
                yield (
                    f"{name} stores {whole} groups at once: bytes {tile.end} .. {tile.address + size - 1} behind "
                    f"%{tile.name} are overwritten by what follows from the bytes behind the {groups.count} maxima, "
                    f"which is not claimed"
                )
        if groups.count % 2 and maxima.size < 4 * (groups.count + 1):
            yield f"{name} stores one maximum of 0 behind %{maxima.name}"
