"""Which bytes a vector operation touches, operand by operand."""

from __future__ import annotations

from simulator.byte_sets import strided
from simulator.tiles import Tile, TileWork
from simulator.tree import Access

BUFFER = "ub"
"""Address space of tiles."""


def work_accesses(work: TileWork) -> tuple[Access, ...]:
    """Return the bytes of an operation: dst (written), every source, tmp (read, then written), mask, in this order.

    A loop that moves the operation moves tile n of `TileEffect.tiles` with its access, so none is ever left out: an
    empty valid region gives an empty access.
    """
    found = [tile_bytes(work.dst, write=True), *(tile_bytes(source, write=False) for source in work.sources)]
    if work.tmp is not None:
        found += [Access(BUFFER, work.tmp.address, work.tmp.end, write) for write in (False, True)]
    if work.mask is not None:
        found.append(tile_bytes(work.mask, write=False))
    return tuple(found)


def tile_bytes(tile: Tile, *, write: bool) -> Access:
    """Return the bytes of the valid elements of a tile, row by row (column by column if it is column-major)."""
    if not tile.valid_rows or not tile.valid_cols:
        return Access(BUFFER, tile.address, tile.address, write)
    if tile.type.block_layout == "row_major":
        lines, length, pitch = tile.valid_rows, tile.valid_cols, tile.row_pitch
    else:
        lines, length, pitch = tile.valid_cols, tile.valid_rows, tile.rows * tile.element_bits // 8
    return strided(BUFFER, tile.address, ((lines, pitch),), (length * tile.element_bits + 7) // 8, write=write)
