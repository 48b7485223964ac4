"""Sorting elements with their numbers, and merging sorted lists (docs/reference/pto.md section 7.7).

A pair takes eight bytes: the element, zeros up to the fourth byte, the number. Greater elements come first; of equal
ones the smaller number when sorting, the earlier list when merging. NaN, of which no source speaks, counts as less than
everything: assumed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from castsim.execution.tiles import ResolvedTileOp, Tile
from castsim.execution.vector_operations.elements import Bytes, numbers, valid_codes
from castsim.isa.codes import Codes
from castsim.isa.formats import Format
from castsim.isa.pto.vector_operations import PAIR_BYTES

GROUP = 32
"""Elements that are sorted among themselves."""

Pairs = NDArray[np.uint64]


def sort_groups(buffer: Bytes, work: ResolvedTileOp) -> None:
    """Sort every 32 elements of every row; the last group of a row may be shorter."""
    source, places = work.sources
    codes = valid_codes(buffer, source)
    given = np.broadcast_to(valid_codes(buffer, places).astype(np.uint64), codes.shape)
    ranks = _ranks(codes, source.format)
    groups = np.broadcast_to(np.arange(codes.shape[1]) // GROUP, codes.shape)
    order = np.lexsort((given, -ranks, groups), axis=1)
    pairs = codes.astype(np.uint64) | given << np.uint64(32)
    pairs_view(buffer, work.dst, codes.shape[1])[...] = np.take_along_axis(pairs, order, axis=1)


def merge_lists(buffer: Bytes, work: ResolvedTileOp) -> None:
    """Merge the lists of several tiles, or each four neighbouring blocks of one, whose length the scalar says."""
    if not work.scalars:
        lists = [pairs_view(buffer, source, pairs_of(source)).copy() for source in work.sources]
        merged = _merged(lists, work.dst.format)
        pairs_view(buffer, work.dst, merged.shape[1])[...] = merged
        return
    (source,), length = work.sources, block_pairs(work)
    whole = pairs_view(buffer, source, pairs_of(source)).copy()
    blocks = whole.reshape(-1, 4, length)
    merged = _merged([blocks[:, number] for number in range(4)], work.dst.format)
    pairs_view(buffer, work.dst, whole.shape[1])[...] = merged.reshape(whole.shape)


def block_pairs(work: ResolvedTileOp) -> int:
    """Return the pairs of a block that is merged with its neighbours; the scalar counts elements of the tile."""
    return block_elements(work) * work.dst.element_bits // 8 // PAIR_BYTES


def block_elements(work: ResolvedTileOp) -> int:
    """Return the scalar that says how long the blocks of one tile are, as a signed number."""
    ((code, fmt),) = work.scalars
    return code - (1 << fmt.bits) if code >> (fmt.bits - 1) else code


def pairs_of(tile: Tile) -> int:
    """Return the pairs that the valid columns of a list hold."""
    return tile.valid_cols * tile.element_bits // 8 // PAIR_BYTES


def pairs_view(buffer: Bytes, tile: Tile, count: int) -> Pairs:
    """Return a writable view of the first pairs of every row of a list."""
    rows = tile.valid_rows
    if not rows or not count:
        return np.empty((rows, count), np.uint64)
    first = buffer[tile.address : tile.address + PAIR_BYTES].view("<u8")
    return as_strided(first, (rows, count), (tile.row_pitch, PAIR_BYTES), writeable=True)


def _merged(lists: Sequence[Pairs], fmt: Format) -> Pairs:
    """Take the greatest of the first pairs left, again and again.

    An element behind a smaller one in its list comes directly after that: it is as great as the least up to it.
    """
    keys = [np.minimum.accumulate(_ranks(_elements(one, fmt), fmt), axis=1) for one in lists]
    order = np.argsort(-np.concatenate(keys, axis=1), axis=1, kind="stable")
    return np.take_along_axis(np.concatenate(lists, axis=1), order, axis=1)


def _elements(pairs: Pairs, fmt: Format) -> Codes:
    codes: Codes = pairs.astype(f"<u{fmt.storage_bits // 8}")
    return codes


def _ranks(codes: Codes, fmt: Format) -> NDArray[np.float64]:
    """Return what orders elements: their values, NaN below all others."""
    values = numbers(codes, fmt).astype(np.float64).reshape(codes.shape)
    ranks = np.where(np.isinf(values), np.copysign(1e300, values), values)
    return np.where(np.isnan(values), -np.inf, ranks)
