"""Ramps, gathers, transpositions and concatenations: elements put in order, none of them computed.

Source: docs/reference/pto.md section 7.7.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from castsim.execution.byte_sets import strided
from castsim.execution.tiles import ResolvedTileOp, Tile
from castsim.execution.tree import Access
from castsim.execution.vector_operations.behaviour import Behaviour
from castsim.execution.vector_operations.elements import Bytes, numbers, tile_view, valid_codes
from castsim.execution.vector_operations.shapes import BUFFER, block_end, transposes_by_blocks
from castsim.isa.codes import Codes
from castsim.isa.errors import TileError
from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS, Kind

REARRANGING = (Kind.RAMP, Kind.GATHER, Kind.TRANSPOSE, Kind.CONCATENATE, Kind.COUNTED_CONCATENATE, Kind.PATTERN_GATHER)
"""The kinds of operations that are all of this module."""


def rearrange(buffer: Bytes, work: ResolvedTileOp, behaviour: Behaviour) -> None:
    """Run an operation of one of these kinds on the unified buffer.

    Raises:
        TileError: a gather asks for an element outside its tile; names both.
    """
    match VECTOR_OPERATIONS[work.mnemonic].kind:
        case Kind.RAMP:
            _ramp(buffer, work, behaviour)
        case Kind.GATHER:
            _gather(buffer, work)
        case Kind.TRANSPOSE:
            (source,) = work.sources
            codes = valid_codes(buffer, source)
            tile_view(buffer, work.dst, source.valid_cols, source.valid_rows)[...] = codes.T
        case Kind.PATTERN_GATHER:
            (source,) = work.sources
            chosen = pattern_places(work)
            codes = valid_codes(buffer, source)
            kept = codes[chosen] if work.by_columns else codes[:, chosen]
            tile_view(buffer, work.dst, work.dst.valid_rows, work.dst.valid_cols)[...] = kept
        case Kind.COUNTED_CONCATENATE:
            _concatenate_counted(buffer, work)
        case _:
            _concatenate(buffer, work, behaviour)


def written_bytes(work: ResolvedTileOp, behaviour: Behaviour) -> Access:
    """Return the bytes of the destination that an operation of one of these kinds writes."""
    dst, size = work.dst, work.dst.element_bits // 8
    unit = behaviour.facts.move_bytes
    match VECTOR_OPERATIONS[work.mnemonic].kind:
        case Kind.RAMP:
            return _rows(dst, 1, dst.valid_cols * size, write=True)
        case Kind.TRANSPOSE:
            (source,) = work.sources
            length = source.valid_rows * size
            if unit is not None and transposes_by_blocks(work):
                length = block_end(length, unit)
            return _rows(dst, source.valid_cols, length, write=True)
        case Kind.CONCATENATE:
            return _rows(dst, dst.valid_rows, _joined_bytes(work, unit), write=True)
        case _:
            return _rows(dst, dst.valid_rows, dst.valid_cols * size, write=True)


def read_bytes(work: ResolvedTileOp, behaviour: Behaviour) -> list[Access]:
    """Return the bytes that each source is read at.

    Of what a gather takes elements from, these are the valid ones: which are read only the numbers tell, and those
    outside the valid region are nobody's to order.
    """
    kind, unit = VECTOR_OPERATIONS[work.mnemonic].kind, behaviour.facts.move_bytes
    if kind is Kind.RAMP:
        return []
    if kind is Kind.GATHER:
        source, places = work.sources
        length = work.dst.valid_cols * places.element_bits // 8
        return [
            _rows(source, source.valid_rows, source.valid_cols * source.element_bits // 8, write=False),
            _rows(places, work.dst.valid_rows, length, write=False),
        ]
    if kind is Kind.COUNTED_CONCATENATE:
        rows = work.dst.valid_rows
        lengths = [source.valid_cols * source.element_bits // 8 for source in work.sources[:2]]
        lengths += [source.element_bits // 8 for source in work.sources[2:]]
        return [_rows(source, rows, length, write=False) for source, length in zip(work.sources, lengths, strict=True)]
    if kind in (Kind.TRANSPOSE, Kind.PATTERN_GATHER):
        (source,) = work.sources
        return [_rows(source, source.valid_rows, source.valid_cols * source.element_bits // 8, write=False)]
    lengths = [source.valid_cols * source.element_bits // 8 for source in work.sources]
    if unit is not None:
        lengths[0] = block_end(lengths[0], unit)
        lengths[1] = block_end(lengths[1], unit) if _by_blocks(work, unit) else lengths[1]
    rows = work.dst.valid_rows
    return [_rows(source, rows, length, write=False) for source, length in zip(work.sources, lengths, strict=True)]


def _rows(tile: Tile, rows: int, length: int, *, write: bool) -> Access:
    if not rows or not length:
        return Access(BUFFER, tile.address, tile.address, write)
    return strided(BUFFER, tile.address, ((rows, tile.row_pitch),), length, write=write)


def _ramp(buffer: Bytes, work: ResolvedTileOp, behaviour: Behaviour) -> None:
    """Write start, start + 1, ... into the valid columns of the first row, low bits kept."""
    dst, ((start, _),) = work.dst, work.scalars
    numbers_of = np.arange(dst.valid_cols, dtype=np.uint64)
    first = np.uint64(start)
    if not work.descending:
        values = first + numbers_of
    elif behaviour.uses_tmp and behaviour.facts.ramp_negates_sum:
        values = np.uint64(0) - (first + numbers_of)
    else:
        values = first - numbers_of
    tile_view(buffer, dst, 1, dst.valid_cols)[0] = values.astype(f"<u{dst.element_bits // 8}")


def _gather(buffer: Bytes, work: ResolvedTileOp) -> None:
    source, places = work.sources
    dst, size = work.dst, source.element_bits // 8
    chosen = numbers(tile_view(buffer, places, dst.valid_rows, dst.valid_cols).copy(), places.format).astype(np.int64)
    count = source.rows * source.cols
    outside = np.argwhere((chosen < 0) | (chosen >= count))
    if outside.size:
        row, column = outside[0]
        raise TileError(
            f"{work.mnemonic}: element ({row}, {column}) of %{places.name} is {chosen[row, column]}, "
            f"%{source.name} has elements 0 .. {count - 1}",
            span=work.span,
        )
    elements: Codes = buffer[source.address : source.end].view(f"<u{size}").copy()
    tile_view(buffer, dst, dst.valid_rows, dst.valid_cols)[...] = elements[chosen]


def _concatenate(buffer: Bytes, work: ResolvedTileOp, behaviour: Behaviour) -> None:
    """Copy the rows of the first tile, then those of the second behind them; where in whole blocks, these."""
    unit, dst = behaviour.facts.move_bytes, work.dst
    rows, (first, second) = dst.valid_rows, work.sources
    size = dst.element_bits // 8
    widths = [first.valid_cols, second.valid_cols]
    if unit is not None:
        widths[0] = block_end(widths[0] * size, unit) // size
        widths[1] = block_end(widths[1] * size, unit) // size if _by_blocks(work, unit) else widths[1]
    parts = [tile_view(buffer, source, rows, width).copy() for source, width in zip(work.sources, widths, strict=True)]
    whole = tile_view(buffer, dst, rows, dst.cols)
    for start, part in zip((0, first.valid_cols), parts, strict=True):
        whole[:, start : start + part.shape[1]] = part


def _concatenate_counted(buffer: Bytes, work: ResolvedTileOp) -> None:
    """Copy as much of each row as the counts in column 0 say, no more than source and result have; the rest stays.

    What neither part reaches is not written; a count below 0 is one of 0.
    """
    dst, (first, second, *counting) = work.dst, work.sources
    counts = [numbers(tile_view(buffer, tile, dst.valid_rows, 1).copy(), tile.format)[:, 0] for tile in counting]
    rows = [valid_codes(buffer, source) for source in (first, second)]
    whole = tile_view(buffer, dst, dst.valid_rows, dst.valid_cols)
    for row, (one, two) in enumerate(zip(*counts, strict=True)):
        here = max(0, min(int(one), first.valid_cols, dst.valid_cols))
        there = max(0, min(int(two), second.valid_cols, dst.valid_cols - here))
        whole[row, :here] = rows[0][row, :here]
        whole[row, here : here + there] = rows[1][row, :there]


def pattern_places(work: ResolvedTileOp) -> NDArray[np.intp]:
    """Return the columns, or rows, that a gather by pattern keeps."""
    assert work.pattern is not None
    (source,) = work.sources
    bits = [digit == "1" for digit in reversed(work.pattern)]
    places = np.arange(source.valid_rows if work.by_columns else source.valid_cols)
    kept: NDArray[np.intp] = places[np.array(bits)[places % len(bits)]]
    return kept


def _by_blocks(work: ResolvedTileOp, unit: int) -> bool:
    """Whether the second tile begins at a block of the destination, so that it is copied in whole ones."""
    first = work.sources[0]
    return first.valid_cols * first.element_bits // 8 % unit == 0


def _joined_bytes(work: ResolvedTileOp, unit: int | None) -> int:
    """Return the bytes of each row that a concatenation writes."""
    one, two = (source.valid_cols * source.element_bits // 8 for source in work.sources)
    if unit is None:
        return one + two
    return one + block_end(two, unit) if _by_blocks(work, unit) else max(block_end(one, unit), one + two)
