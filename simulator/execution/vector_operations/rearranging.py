"""Rearrangement without arithmetic: ramps, gathers, transpositions, concatenations, sorting, moves, fills.

Source: docs/reference/pto.md sections 7.2 and 7.7.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from castsim.execution.pipe_operations import pad_code
from castsim.execution.tree import Access, ResolvedTileOp, Tile
from castsim.execution.vector_operations.shapes import (
    BLOCK,
    Bytes,
    block_end,
    moved_columns,
    numbers,
    padded_rows,
    row_bytes,
    tile_error,
    tile_view,
    transposes_by_blocks,
    valid_codes,
    whole_units,
)
from castsim.execution.vector_operations.target_rules import Behaviour
from castsim.isa.formats import Codes, Format
from castsim.isa.pto.vector_operations import PAIR_BYTES, VECTOR_OPERATIONS, Kind

REARRANGING = (
    Kind.RAMP, Kind.GATHER, Kind.TRANSPOSE, Kind.CONCATENATE, Kind.COUNTED_CONCATENATE, Kind.PATTERN_GATHER,
    Kind.INTERLEAVE, Kind.BLOCK_GATHER,
)  # fmt: skip
"""The kinds of operations that this module implements."""


def rearrange(buffer: Bytes, work: ResolvedTileOp, behaviour: Behaviour) -> None:
    """Run an operation of one of these kinds on the unified buffer.

    Raises:
        TileError: a gather reads an element outside its tile; the message names both.
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
        case Kind.INTERLEAVE:
            _interleave(buffer, work)
        case Kind.BLOCK_GATHER:
            _gather_blocks(buffer, work)
        case _:
            _concatenate(buffer, work, behaviour)


def written_bytes(work: ResolvedTileOp, behaviour: Behaviour) -> Access:
    """Return the bytes of the destination that an operation of one of these kinds writes."""
    dst, size = work.dst, work.dst.element_bits // 8
    unit = behaviour.facts.move_bytes
    match VECTOR_OPERATIONS[work.mnemonic].kind:
        case Kind.RAMP:
            return row_bytes(dst, 1, dst.valid_cols * size, write=True)
        case Kind.TRANSPOSE:
            (source,) = work.sources
            length = source.valid_rows * size
            if unit is not None and transposes_by_blocks(work):
                length = block_end(length, unit)
            return row_bytes(dst, source.valid_cols, length, write=True)
        case Kind.CONCATENATE:
            return row_bytes(dst, dst.valid_rows, _joined_bytes(work, unit), write=True)
        case _:
            return row_bytes(dst, dst.valid_rows, dst.valid_cols * size, write=True)


def read_bytes(work: ResolvedTileOp, behaviour: Behaviour) -> list[Access]:
    """Return the bytes that are read from each source.

    These are the valid elements that a gather may read: only the indices decide which, and those outside the valid
    region are not ordered.
    """
    kind, unit = VECTOR_OPERATIONS[work.mnemonic].kind, behaviour.facts.move_bytes
    if kind is Kind.RAMP:
        return []
    if kind is Kind.GATHER:
        source, places = work.sources
        length = work.dst.valid_cols * places.element_bits // 8
        return [
            row_bytes(source, source.valid_rows, source.valid_cols * source.element_bits // 8, write=False),
            row_bytes(places, work.dst.valid_rows, length, write=False),
        ]
    if kind is Kind.COUNTED_CONCATENATE:
        rows = work.dst.valid_rows
        lengths = [source.valid_cols * source.element_bits // 8 for source in work.sources[:2]]
        lengths += [source.element_bits // 8 for source in work.sources[2:]]
        return [
            row_bytes(source, rows, length, write=False) for source, length in zip(work.sources, lengths, strict=True)
        ]
    if kind in (Kind.TRANSPOSE, Kind.PATTERN_GATHER, Kind.INTERLEAVE, Kind.BLOCK_GATHER):
        return [
            row_bytes(source, source.valid_rows, source.valid_cols * source.element_bits // 8, write=False)
            for source in work.sources
        ]
    rows, copied = work.dst.valid_rows, _copied_bytes(work, unit)
    return [row_bytes(source, rows, length, write=False) for source, length in zip(work.sources, copied, strict=True)]


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
        raise tile_error(
            work,
            f"element ({row}, {column}) of %{places.name} is {chosen[row, column]}, but "
            f"%{source.name} has elements 0 .. {count - 1}",
        )
    elements: Codes = buffer[source.address : source.end].view(f"<u{size}").copy()
    tile_view(buffer, dst, dst.valid_rows, dst.valid_cols)[...] = elements[chosen]


def _gather_blocks(buffer: Bytes, work: ResolvedTileOp) -> None:
    """Copy blocks, or elements if each has an offset, from byte offsets after the first byte."""
    (source, offsets), dst = work.sources, work.dst
    size = dst.element_bits // 8
    count = gathered_elements(work)
    starts = valid_codes(buffer, offsets)[: dst.valid_rows].astype(np.int64)
    starts = np.repeat(starts, count, axis=1)[:, : dst.valid_cols]
    places = starts + np.arange(dst.valid_cols) % count * size
    outside = np.argwhere(places > source.size - size)
    if outside.size:
        row, column = outside[0]
        raise tile_error(
            work,
            f"offset ({row}, {column // count}) of %{offsets.name} is {starts[row, column]}: outside "
            f"%{source.name}, which has {source.size} bytes",
        )
    bytes_read = buffer[source.address : source.end][places[..., None] + np.arange(size)]
    codes = np.ascontiguousarray(bytes_read).view(f"<u{size}")[..., 0]
    tile_view(buffer, dst, dst.valid_rows, dst.valid_cols)[...] = codes


def gathered_elements(work: ResolvedTileOp) -> int:
    """Return the number of elements per offset of a block gather: one, or those of a block."""
    return 1 if work.sources[1].valid_cols >= work.dst.valid_cols else BLOCK * 8 // work.dst.element_bits


def _interleave(buffer: Bytes, work: ResolvedTileOp) -> None:
    """Write alternating elements of both tiles across both results; or even columns to one, odd ones to the other."""
    rows = [valid_codes(buffer, source) for source in work.sources]
    dst, other = work.dst, work.further[0]
    if VECTOR_OPERATIONS[work.mnemonic].function == "interleave":
        turns = np.stack(rows, axis=2).reshape(len(rows[0]), -1)
        parts = turns[:, : dst.valid_cols], turns[:, dst.valid_cols :]
    else:
        joined = np.concatenate(rows, axis=1)
        parts = joined[:, ::2], joined[:, 1::2]
    for tile, part in zip((dst, other), parts, strict=True):
        tile_view(buffer, tile, tile.valid_rows, tile.valid_cols)[...] = part


def _concatenate(buffer: Bytes, work: ResolvedTileOp, behaviour: Behaviour) -> None:
    """Copy the rows of the first tile, then those of the second after them, in whole blocks where the target does."""
    dst, lengths = work.dst, _copied_bytes(work, behaviour.facts.move_bytes)
    rows, size = dst.valid_rows, dst.element_bits // 8
    parts = [
        tile_view(buffer, source, rows, length // size).copy()
        for source, length in zip(work.sources, lengths, strict=True)
    ]
    whole = tile_view(buffer, dst, rows, dst.cols)
    for start, part in zip((0, work.sources[0].valid_cols), parts, strict=True):
        whole[:, start : start + part.shape[1]] = part


def _concatenate_counted(buffer: Bytes, work: ResolvedTileOp) -> None:
    """Copy each row up to its count in column 0, at most the columns of source and result; the rest stays.

    Elements beyond both parts are not written; a count below 0 counts as 0.
    """
    dst, (first, second, *counting) = work.dst, work.sources
    counts = [numbers(tile_view(buffer, tile, dst.valid_rows, 1).copy(), tile.format)[:, 0] for tile in counting]
    rows = [valid_codes(buffer, source) for source in (first, second)]
    whole = tile_view(buffer, dst, dst.valid_rows, dst.valid_cols)
    for row, (first_count, second_count) in enumerate(zip(*counts, strict=True)):
        here = max(0, min(int(first_count), first.valid_cols, dst.valid_cols))
        there = max(0, min(int(second_count), second.valid_cols, dst.valid_cols - here))
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


def _copied_bytes(work: ResolvedTileOp, unit: int | None) -> tuple[int, int]:
    """Return the bytes of a row of each tile that a concatenation copies: of the second in whole blocks if it begins
    at a block of the destination."""
    first, second = (source.valid_cols * source.element_bits // 8 for source in work.sources)
    if unit is None:
        return first, second
    return block_end(first, unit), second if first % unit else block_end(second, unit)


def _joined_bytes(work: ResolvedTileOp, unit: int | None) -> int:
    """Return the bytes of each row that a concatenation writes."""
    first, (left_bytes, right_bytes) = work.sources[0], _copied_bytes(work, unit)
    return max(left_bytes, first.valid_cols * first.element_bits // 8 + right_bytes)


# Sorting elements with their numbers, and merging sorted lists (docs/reference/pto.md section 7.7).
#
# A pair takes eight bytes: the element, zeros up to the fourth byte, the number. Greater elements come first; of equal
# ones the smaller number when sorting, the earlier list when merging. NaN, of which no source speaks, counts as less
# than everything: assumed.

GROUP = 32
"""Number of elements that are sorted together."""

Pairs = NDArray[np.uint64]


def sort_groups(buffer: Bytes, work: ResolvedTileOp, _: Behaviour) -> None:
    """Sort every 32 elements of every row; the last group of a row may be shorter."""
    source, places = work.sources
    codes = valid_codes(buffer, source)
    given = np.broadcast_to(valid_codes(buffer, places).astype(np.uint64), codes.shape)
    ranks = ranks_of(codes, source.format)
    groups = np.broadcast_to(np.arange(codes.shape[1]) // GROUP, codes.shape)
    order = np.lexsort((given, -ranks, groups), axis=1)
    pairs = codes.astype(np.uint64) | given << np.uint64(32)
    pairs_view(buffer, work.dst, codes.shape[1])[...] = np.take_along_axis(pairs, order, axis=1)


def merge_lists(buffer: Bytes, work: ResolvedTileOp, _: Behaviour) -> None:
    """Merge the lists of several tiles, or every four neighbouring blocks of one, whose length the scalar gives."""
    if not work.scalars:
        lists = [pairs_view(buffer, source, pairs_of(source)).copy() for source in work.sources]
        merged = merged_pairs(lists, work.dst.format)[0]
        pairs_view(buffer, work.dst, merged.shape[1])[...] = merged
        return
    (source,), length = work.sources, block_pairs(work)
    whole = pairs_view(buffer, source, pairs_of(source)).copy()
    blocks = whole.reshape(-1, 4, length)
    merged = merged_pairs([blocks[:, number] for number in range(4)], work.dst.format)[0]
    pairs_view(buffer, work.dst, whole.shape[1])[...] = merged.reshape(whole.shape)


def block_pairs(work: ResolvedTileOp) -> int:
    """Return the number of pairs in a block that is merged with its neighbours; the scalar counts elements."""
    return block_elements(work) * work.dst.element_bits // 8 // PAIR_BYTES


def block_elements(work: ResolvedTileOp) -> int:
    """Return the scalar with the block length of one tile, as a signed number."""
    ((code, fmt),) = work.scalars
    return code - (1 << fmt.bits) if code >> (fmt.bits - 1) else code


def pairs_of(tile: Tile) -> int:
    """Return the number of pairs in the valid columns of a list."""
    return tile.valid_cols * tile.element_bits // 8 // PAIR_BYTES


def pairs_view(buffer: Bytes, tile: Tile, count: int) -> Pairs:
    """Return a writable view of the first pairs of every row of a list."""
    rows = tile.valid_rows
    if not rows or not count:
        return np.empty((rows, count), np.uint64)
    first = buffer[tile.address : tile.address + PAIR_BYTES].view("<u8")
    return as_strided(first, (rows, count), (tile.row_pitch, PAIR_BYTES), writeable=True)


def merged_pairs(lists: Sequence[Pairs], fmt: Format) -> tuple[Pairs, NDArray[np.intp]]:
    """Repeatedly take the greatest of the remaining first pairs; return all, and where the first list ends.

    An element after a smaller one in its list comes directly after that: its key is the least element up to it.
    """
    keys = [np.minimum.accumulate(ranks_of(_elements(source, fmt), fmt), axis=1) for source in lists]
    order = np.argsort(-np.concatenate(keys, axis=1), axis=1, kind="stable")
    last = np.cumsum([keys_row.shape[1] for keys_row in lists]) - 1
    ends = np.min([np.argmax(order == end_index, axis=1) for end_index in last], axis=0)
    return np.take_along_axis(np.concatenate(lists, axis=1), order, axis=1), ends


def _elements(pairs: Pairs, fmt: Format) -> Codes:
    codes: Codes = pairs.astype(f"<u{fmt.storage_bits // 8}")
    return codes


def ranks_of(codes: Codes, fmt: Format) -> NDArray[np.float64]:
    """Return sort keys of elements: their values, NaN below all others."""
    values = numbers(codes, fmt).astype(np.float64).reshape(codes.shape)
    ranks = np.where(np.isinf(values), np.copysign(1e300, values), values)
    return np.where(np.isnan(values), -np.inf, ranks)


# Moves and fills: bytes copied, and the pad value around them (docs/reference/pto.md section 7.2).


def move(buffer: Bytes, work: ResolvedTileOp, behaviour: Behaviour) -> None:
    """Copy the elements that both tiles have; a target that copies whole blocks also copies the rest of one."""
    (source,) = work.sources
    rows = min(source.valid_rows, work.dst.valid_rows)
    cols = moved_columns(work, behaviour.facts.move_bytes)
    tile_view(buffer, work.dst, rows, cols)[...] = tile_view(buffer, source, rows, cols).copy()


def fill(buffer: Bytes, work: ResolvedTileOp, behaviour: Behaviour) -> None:
    """Copy the source's valid region and write the pad value right of it and below it.

    If both tiles declare the same pad value, a target may take the rest of each row's last block from the source.
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
