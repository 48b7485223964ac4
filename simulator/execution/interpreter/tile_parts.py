"""Tiles made of other tiles' bytes: parts of a tile, and one of several that lie one behind the other.

Source: docs/reference/pto.md section 7.8.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from castsim.execution.tiles import ResolvedTileOp, Tile
from castsim.isa.errors import Span, TileError
from castsim.isa.formats import Format
from castsim.isa.pto import program as pto
from castsim.isa.pto.packed import held_format, unpacked
from castsim.isa.pto.tile_types import format_tile


@dataclass(frozen=True, slots=True)
class TileSlots:
    """Several tiles of one type: the first one, and the bytes from one to the next."""

    first: Tile
    count: int
    distance: int

    def tile(self, name: str, slot: int, span: Span) -> Tile:
        """Return the tile in a slot, called `name`.

        Raises:
            TileError: there is no such slot.
        """
        if not 0 <= slot < self.count:
            raise TileError(f"slot {slot} of %{self.first.name}, which has {self.count}", span=span)
        return replace(self.first, name=name, address=self.first.address + slot * self.distance)


def part_of(node: pto.Subview, source: Tile, offsets: tuple[int, int], extents: tuple[int, int]) -> Tile:
    """Return a part of a tile, which keeps its pitch; `offsets` and `extents` are rows and columns.

    It is a tile of its own shape where that has the pitch of the whole, otherwise one of the shape of the whole of
    which only the part is valid.

    Raises:
        TileError: it begins before its tile or its valid region reaches behind it; a begin inside a byte.
    """
    sizes, whole = (node.type.rows, node.type.cols), (node.source_type.rows, node.source_type.cols)
    for axis, offset, extent, size, physical in zip(("row", "column"), offsets, extents, sizes, whole, strict=True):
        if not 0 <= extent <= size:
            raise TileError(f"%{node.result}: {extent} valid {axis}s of a part of {size}", span=node.span)
        if offset < 0 or offset + extent > physical:
            raise TileError(
                f"%{node.result}: {extent} valid {axis}s from {axis} {offset} on leave %{node.source}, a tile of "
                f"{physical} {axis}s",
                span=node.span,
                legal=(f"0 to {physical - extent}",),
            )
    down, across = _strides(source.type)
    bits = (offsets[0] * down + offsets[1] * across) * source.element_bits
    if bits % 8:
        raise TileError(f"%{node.result} begins inside a byte of %{node.source}", span=node.span)
    dense = _strides(node.type) == (down, across)
    kind = node.type if dense else _of_parent(node.type, source.type)
    held = [max(min(size, physical - offset), 0) for size, physical, offset in zip(sizes, whole, offsets, strict=True)]
    last = (held[0] - 1) * down + (held[1] - 1) * across + 1 if min(held) else 0
    return Tile(
        name=node.result,
        format=source.format,
        type=kind,
        address=source.address + bits // 8,
        valid_rows=extents[0],
        valid_cols=extents[1],
        element_bits=source.element_bits,
        reach=(last * source.element_bits + 7) // 8,
    )


def part_move(
    node: pto.TileOperation, tile_of: Callable[[str], Tile], number_of: Callable[[str], int]
) -> ResolvedTileOp:
    """Return a textract or tinsert between tiles of the buffer: a copy whose source, or destination, is a part.

    An extraction fills the destination's valid region, an insertion copies the source's.

    Raises:
        TileError: the part leaves its tile.
    """
    source, dst = tile_of(node.inputs[0]), tile_of(node.outputs[0])
    offsets = number_of(node.inputs[1]), number_of(node.inputs[2])
    whole, other = (source, dst) if node.mnemonic == "textract" else (dst, source)
    extents = other.valid_rows, other.valid_cols
    kind = replace(whole.type, rows=other.rows, cols=other.cols, valid_rows=extents[0], valid_cols=extents[1])
    view = pto.Subview(whole.name, whole.name, (node.inputs[1], node.inputs[2]), whole.type, kind, span=node.span)
    part = part_of(view, whole, offsets, extents)
    source, dst = (part, other) if whole is source else (other, part)
    return ResolvedTileOp("tmov", dst, (source,), node.span, part=True)


def tile_of_values(tile: Tile, element_bits: Callable[[Format], int]) -> Tile:
    """Return a tile as a cast sees it: one of 4-bit pairs has an element for each of their values."""
    kind = unpacked(tile.type)
    if kind is tile.type:
        return tile
    fmt, count = held_format(tile.format)
    rows, cols = (1, count) if kind.block_layout == "row_major" else (count, 1)
    return replace(
        tile,
        format=fmt,
        type=kind,
        valid_rows=tile.valid_rows * rows,
        valid_cols=tile.valid_cols * cols,
        element_bits=element_bits(fmt),
    )


def check_dense(node: pto.TileOperation, source: Tile) -> None:
    """Refuse another type for the bytes of a part that has gaps between its lines.

    Raises:
        TileError: it has some.
    """
    kind = node.input_types[0]
    assert isinstance(kind, pto.TileType)
    if _strides(kind) != _strides(source.type) and min(kind.rows, kind.cols) > 1:
        element = kind.element
        raise TileError(
            f"pto.{node.mnemonic}: %{source.name} ({format_tile(kind, element)}) is a part whose lines are "
            f"{source.row_pitch if kind.block_layout == 'row_major' else source.rows * source.element_bits // 8} bytes "
            f"apart; another type cannot say that",
            span=node.span,
            legal=("a part of whole lines",),
        )


def _strides(kind: pto.TileType) -> tuple[int, int]:
    """Return how many elements lie from one row to the next, and from one column to the next."""
    return (kind.cols, 1) if kind.block_layout == "row_major" else (1, kind.rows)


def _of_parent(part: pto.TileType, whole: pto.TileType) -> pto.TileType:
    return replace(whole, valid_rows=part.valid_rows, valid_cols=part.valid_cols)
