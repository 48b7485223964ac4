"""Quantisation to 8-bit integers, the way back, and packing: values, and the bytes that they touch.

Source: docs/reference/pto.md section 7.12.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from castsim.execution.byte_sets import strided
from castsim.execution.tiles import ResolvedTileOp, Tile
from castsim.execution.tree import Access
from castsim.execution.vector_operations.behaviour import Behaviour
from castsim.execution.vector_operations.block_quantising import quantise_blocks
from castsim.execution.vector_operations.elements import Bytes, encoded, numbers, tile_view, valid_codes
from castsim.execution.vector_operations.scratch import boxed_bytes, bytes_to_box, cleared_bytes, fill_boxes
from castsim.execution.vector_operations.shapes import BLOCK, BUFFER, block_end, is_column
from castsim.isa.formats import format_named
from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS, Kind
from castsim.targets.tile_operations import TileArithmetic

QUANTISING = (Kind.QUANTISE, Kind.DEQUANTISE, Kind.PACK, Kind.BLOCK_QUANTISE, Kind.BOX)
"""The kinds of operations that are all of this module."""

SINGLE, INTEGER, HALF = format_named("f32"), format_named("i32"), format_named("f16")

LANES = 64
"""Elements of f32 in a register: a whole one is stored at the end of a dequantised row."""

_SPREAD_ROWS = 8
"""Rows whose parameters one repeat spreads to blocks."""

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
    return _rows(dst, _columns(work, behaviour), write=True)


def bytes_to_quantise(work: ResolvedTileOp, behaviour: Behaviour) -> list[Access]:
    """Return the bytes that each source is read at; parameters lie one behind the other, or one in each row."""
    source, *parameters = work.sources
    if VECTOR_OPERATIONS[work.mnemonic].kind is Kind.BOX:
        return bytes_to_box(work)
    blocks = VECTOR_OPERATIONS[work.mnemonic].kind is Kind.BLOCK_QUANTISE
    found = [_rows(source, source.valid_cols if blocks else _columns(work, behaviour), write=False)]
    rows = work.dst.valid_rows
    for tile in parameters:
        if VECTOR_OPERATIONS[work.mnemonic].kind is Kind.QUANTISE:
            read = -(-rows // _SPREAD_ROWS) * _SPREAD_ROWS if behaviour.uses_tmp else rows
            found.append(Access(BUFFER, tile.address, tile.address + 4 * read, write=False))
        else:
            pitch = 4 if is_column(tile) else tile.row_pitch
            found.append(strided(BUFFER, tile.address, ((rows, pitch),), 4, write=False))
    return found


def clobbered_bytes(work: ResolvedTileOp, behaviour: Behaviour) -> list[Access]:
    """Return the bytes that a quantisation changes besides: its source, in which it works, and those behind tmp."""
    kind = VECTOR_OPERATIONS[work.mnemonic].kind
    if kind is Kind.BOX:
        return cleared_bytes(work)
    if kind is not Kind.QUANTISE or not behaviour.uses_tmp:
        return []
    source = work.sources[0]
    found = [_rows(source, source.valid_cols, write=True)]
    if source.valid_rows and source.valid_cols:
        pitch, length = _half_pitch(source), 2 * source.valid_cols
        found.append(strided(BUFFER, source.address, ((source.valid_rows, pitch),), length, write=True))
    behind = spread_end(work, behaviour.facts)
    if work.tmp is not None and behind > work.tmp.end:
        found.append(Access(BUFFER, work.tmp.end, behind, write=True))
    return found


def _half_pitch(source: Tile) -> int:
    """Return the bytes from row to row of the halves that a quantisation keeps in its source."""
    return block_end(source.cols * 2, BLOCK)


def spread_end(work: ResolvedTileOp, facts: TileArithmetic) -> int:
    """Return the end of the bytes of tmp to which parameters are spread: a block for each of whole groups of rows."""
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


def _rows(tile: Tile, cols: int, *, write: bool) -> Access:
    if not tile.valid_rows or not cols:
        return Access(BUFFER, tile.address, tile.address, write)
    return strided(
        BUFFER, tile.address, ((tile.valid_rows, tile.row_pitch),), cols * tile.element_bits // 8, write=write
    )


def _quantise(buffer: Bytes, work: ResolvedTileOp, behaviour: Behaviour) -> None:
    """Multiply, perhaps add, each rounded to f32; round to nearest even, clamp; NaN gives 0.

    On the way through f16 nothing more is lost: up to 2048 integers are exact there, and others clamp.
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
    tile_view(buffer, work.dst, rows, cols)[...] = codes


def _leave_steps(
    buffer: Bytes, work: ResolvedTileOp, behaviour: Behaviour, product: Single, rounded: NDArray[np.float64]
) -> None:
    """Leave in source and scratch what the steps write there: parameters, products, integers, halves."""
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
    """Subtract the offset, then multiply by the scale, each rounded to f32; rows in order where they spill."""
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
