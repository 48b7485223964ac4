"""Proof that a tile cast may be converted in one call: its operations together are the tile's natural map.

The natural map takes element (i, j) of the source tile to element (i, j) of the destination for the whole valid
region. The proof looks at what the operations address, not at how they came about, so a wrong lowering fails it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from castsim.execution.tiles import Tile
from castsim.execution.tree import Operation
from castsim.machines.strided.geometry import element_bits
from castsim.machines.strided.operations import BLOCK, Action, Stream, VectorOperation


@dataclass(frozen=True, slots=True)
class NaturalMap:
    """The whole valid region as one operation."""

    source: Stream
    destination: Stream
    rows: int
    cols: int
    action: Action


def natural_map(operations: Iterable[Operation], src: Tile, dst: Tile) -> NaturalMap | None:
    """Return the tile's natural map if the operations' element maps add up to exactly it, else None.

    Required: one action and the tiles' formats throughout, every element of the valid region written exactly once from
    its own source element, nothing else written, and no overlap of source and destination (tiles of equal element
    width and pitch in place are fine: every element is then read before it is written).
    """
    rows, cols = dst.valid_rows, dst.valid_cols
    in_place = (src.address, src.element_bits, src.row_pitch) == (dst.address, dst.element_bits, dst.row_pitch)
    if src.address < dst.end and dst.address < src.end and not in_place:
        return None
    written = np.zeros((rows, cols), np.uint8)
    action: Action | None = None
    for operation in operations:
        if not isinstance(operation, VectorOperation):
            continue
        if len(operation.sources) != 1 or (action is not None and operation.action != action):
            return None
        if (operation.sources[0].format, operation.destination.format) != (src.format, dst.format):
            return None
        action = operation.action
        if not _mark(operation, src, dst, written):
            return None
    if action is None or not np.all(written == 1):
        return None
    block = _pitch_blocks
    return NaturalMap(
        source=Stream(src.address, src.format, 1, block(src)),
        destination=Stream(dst.address, dst.format, 1, block(dst)),
        rows=rows,
        cols=cols,
        action=action,
    )


def _mark(
    operation: VectorOperation, src: Tile, dst: Tile, written: np.ndarray[tuple[int, int], np.dtype[np.uint8]]
) -> bool:
    """Count the destination elements of one operation; False unless each comes from its own source element."""
    source = operation.sources[0]
    count = min(operation.lanes, operation.mask.bit_length())
    if operation.mask & ((1 << count) - 1) != (1 << count) - 1 or not _one_row(source, count) & _one_row(
        operation.destination, count
    ):
        return False
    for repeat in range(operation.repeats):
        place = _element(operation.destination, dst, repeat)
        if place is None or place != _element(source, src, repeat):
            return False
        row, col = place
        if row >= written.shape[0] or col + count > written.shape[1]:
            return False
        written[row, col : col + count] += 1
    return True


def _one_row(stream: Stream, count: int) -> bool:
    """Whether the active lanes of a repeat are adjacent in memory."""
    return stream.block_stride == 1 or count * element_bits(stream) <= 8 * BLOCK


def _element(stream: Stream, tile: Tile, repeat: int) -> tuple[int, int] | None:
    """Return row and column of the first lane of a repeat in the tile, None if it starts between elements."""
    row, offset = divmod(stream.address + repeat * stream.repeat_stride * BLOCK - tile.address, tile.row_pitch)
    column, rest = divmod(offset * 8, element_bits(stream))
    return None if rest or row < 0 else (row, column)


def _pitch_blocks(tile: Tile) -> int:
    return tile.row_pitch // BLOCK
