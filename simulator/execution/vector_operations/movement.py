"""Moves and fills: bytes copied, and the pad value around them (docs/reference/pto.md section 7.2)."""

from __future__ import annotations

from castsim.execution.dataflow.transfers import pad_code
from castsim.execution.tiles import ResolvedTileOp
from castsim.execution.vector_operations.behaviour import Behaviour
from castsim.execution.vector_operations.elements import Bytes, tile_view
from castsim.execution.vector_operations.shapes import BLOCK, moved_columns, padded_rows, whole_units


def move(buffer: Bytes, work: ResolvedTileOp, behaviour: Behaviour) -> None:
    """Copy what both tiles have; where the target copies whole blocks, the end of the last one too."""
    (source,) = work.sources
    rows = min(source.valid_rows, work.dst.valid_rows)
    cols = moved_columns(work, behaviour.facts.move_bytes)
    tile_view(buffer, work.dst, rows, cols)[...] = tile_view(buffer, source, rows, cols).copy()


def fill(buffer: Bytes, work: ResolvedTileOp, behaviour: Behaviour) -> None:
    """Copy the source's valid region and write the pad value right of it and below it.

    Where both tiles declare one pad value, a target may take the rest of each row's last block from the source.
    """
    (source,) = work.sources
    dst = work.dst
    rows, cols = source.valid_rows, kept_columns(work, behaviour)
    kept = tile_view(buffer, source, rows, cols).copy()
    tile_view(buffer, dst, padded_rows(work), dst.cols)[...] = pad_code(dst.format, dst.type.pad)
    tile_view(buffer, dst, rows, cols)[...] = kept


def kept_columns(work: ResolvedTileOp, behaviour: Behaviour) -> int:
    """Return the columns of a fill that come from its source."""
    (source,) = work.sources
    cols = source.valid_cols
    if behaviour.facts.equal_pad_keeps_source and source.type.pad == work.dst.type.pad:
        return whole_units(cols, source.element_bits, BLOCK)
    return cols
