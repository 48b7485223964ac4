"""Which bytes a vector operation touches, operand by operand."""

from __future__ import annotations

from castsim.execution.byte_sets import strided
from castsim.execution.tiles import ResolvedTileOp, Tile
from castsim.execution.tree import Access
from castsim.execution.vector_operations.behaviour import Behaviour, float_route
from castsim.execution.vector_operations.block_groups import group_bytes
from castsim.execution.vector_operations.movement import kept_columns
from castsim.execution.vector_operations.quantising import (
    QUANTISING,
    bytes_to_quantise,
    clobbered_bytes,
    quantised_bytes,
)
from castsim.execution.vector_operations.rearranging import REARRANGING, read_bytes, written_bytes
from castsim.execution.vector_operations.shapes import BUFFER, compared_bytes, is_column, moved_columns, padded_rows
from castsim.execution.vector_operations.sorting import pairs_of
from castsim.isa.pto.vector_operations import PAIR_BYTES, VECTOR_OPERATIONS, Kind


def work_accesses(work: ResolvedTileOp, behaviour: Behaviour) -> tuple[Access, ...]:
    """Return the bytes of an operation: dst (written), every source, tmp (read, then written), mask, in this order.

    A loop that moves the operation moves tile n of a `TileEffect` with its access, so none of these is ever left out.
    What a target touches besides follows: a source that is converted in place, scratch that nobody gave.
    """
    found = [_written(work, behaviour), *_read(work, behaviour)]
    if work.tmp is not None:
        found += [Access(BUFFER, work.tmp.address, work.tmp.end, write) for write in (False, True)]
    if work.mask is not None:
        found.append(_rows(work.mask, work.dst.valid_rows, (work.dst.valid_cols + 7) // 8, write=False))
    if work.counts is not None:
        found.append(count_bytes(work, work.counts))
    found += group_bytes(work)
    if VECTOR_OPERATIONS[work.mnemonic].accumulates:
        found.append(tile_bytes(work.dst, write=False))
    if float_route(work, behaviour.facts) is not None:
        found.append(tile_bytes(work.sources[0], write=True))
    found += clobbered_bytes(work, behaviour)
    if behaviour.window is not None:
        found += [Access(BUFFER, *behaviour.window, write) for write in (False, True)]
    return tuple(found)


def count_bytes(work: ResolvedTileOp, counts: Tile) -> Access:
    """Return the bytes of the counts of a gather by comparison: one element per row, in a column or in one row."""
    rows, size = work.dst.valid_rows, counts.element_bits // 8
    if is_column(counts) or (counts.valid_rows, counts.valid_cols) == (1, rows):
        return Access(BUFFER, counts.address, counts.address + rows * size, write=True)
    return _rows(counts, rows, size, write=True)


def tile_bytes(tile: Tile, *, write: bool) -> Access:
    """Return the bytes of the valid elements of a tile, row by row (column by column if it is column-major)."""
    if is_column(tile):
        lines, length, pitch = tile.valid_cols, tile.valid_rows, tile.rows * tile.element_bits // 8
    else:
        lines, length, pitch = tile.valid_rows, tile.valid_cols, tile.row_pitch
    if not lines or not length:
        return Access(BUFFER, tile.address, tile.address, write)
    return strided(BUFFER, tile.address, ((lines, pitch),), (length * tile.element_bits + 7) // 8, write=write)


def _rows(tile: Tile, rows: int, length: int, *, write: bool) -> Access:
    """Return the first `length` bytes of the first rows of a row-major tile."""
    if not rows or not length:
        return Access(BUFFER, tile.address, tile.address, write)
    return strided(BUFFER, tile.address, ((rows, tile.row_pitch),), length, write=write)


def _written(work: ResolvedTileOp, behaviour: Behaviour) -> Access:
    dst, facts = work.dst, behaviour.facts
    match VECTOR_OPERATIONS[work.mnemonic].kind:
        case Kind.MOVE:
            rows = min(work.sources[0].valid_rows, dst.valid_rows)
            return _rows(dst, rows, moved_columns(work, facts.move_bytes) * dst.element_bits // 8, write=True)
        case Kind.FILL:
            return _rows(dst, padded_rows(work), dst.row_pitch, write=True)
        case Kind.COMPARE:
            if facts.inverts_whole_mask and work.mode == "ne":
                return Access(BUFFER, dst.address, dst.end, write=True)
            return _rows(dst, dst.valid_rows, compared_bytes(work, facts.compare_bytes)[1], write=True)
        case Kind.COLUMN_REDUCE | Kind.COLUMN_ARGUMENT:
            return _rows(dst, 1, dst.valid_cols * dst.element_bits // 8, write=True)
        case Kind.SORT:
            return _rows(dst, dst.valid_rows, work.sources[0].valid_cols * PAIR_BYTES, write=True)
        case Kind.MERGE:
            return _rows(dst, dst.valid_rows, sum(map(pairs_of, work.sources)) * PAIR_BYTES, write=True)
        case kind if kind in QUANTISING:
            return quantised_bytes(work, behaviour)
        case kind if kind in REARRANGING:
            return written_bytes(work, behaviour)
        case _:
            return tile_bytes(dst, write=True)


def _read(work: ResolvedTileOp, behaviour: Behaviour) -> list[Access]:
    kind = VECTOR_OPERATIONS[work.mnemonic].kind
    if kind in QUANTISING:
        return bytes_to_quantise(work, behaviour)
    if kind in REARRANGING:
        return read_bytes(work, behaviour)
    found = [tile_bytes(source, write=False) for source in work.sources]
    first = work.sources[0] if work.sources else None
    if first is None:
        return found
    if kind is Kind.MOVE:
        rows = min(first.valid_rows, work.dst.valid_rows)
        length = moved_columns(work, behaviour.facts.move_bytes) * first.element_bits // 8
        return [_rows(first, rows, length, write=False)]
    if kind is Kind.FILL:
        length = kept_columns(work, behaviour) * first.element_bits // 8
        return [_rows(first, first.valid_rows, length, write=False)]
    if kind is Kind.COMPARE:
        length = compared_bytes(work, behaviour.facts.compare_bytes)[0]
        return [_rows(source, source.valid_rows, length, write=False) for source in work.sources]
    if kind is Kind.ROW_EXPAND:
        return [_rows(first, first.valid_rows, first.element_bits // 8, write=False)]
    if kind in (Kind.COLUMN_EXPAND, Kind.COLUMN_BROADCAST):
        vector = work.sources[-1]
        found[-1] = _rows(vector, 1, vector.valid_cols * vector.element_bits // 8, write=False)
    return found
