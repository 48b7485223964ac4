"""A tile cast in one call: what is done to every element, once `trace` has proven that the operations do the same."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.lib.stride_tricks import as_strided

from castsim.execution.dataflow.values import Bytes, pack_nibbles, unpack_nibbles
from castsim.execution.tiles import Tile
from castsim.isa.codes import Codes
from castsim.isa.formats import Format
from castsim.machines.vector_function.machine import RegisterState, run_nest
from castsim.machines.vector_function.operations import VectorFunction
from castsim.machines.vector_function.trace import Chain, ConvertStep, IntegralStep, MaskStep, trace_nest
from castsim.numerics import convert_codes, round_to_integral_codes


@dataclass(frozen=True, slots=True)
class Side:
    """Rows of packed elements in the buffer; `pitch` in bytes."""

    address: int
    pitch: int
    format: Format


@dataclass(frozen=True, slots=True)
class WholeTile:
    """Element (i, j) of the destination is `chain` of element (i, j) of the source, after `filled` bytes of zeros."""

    source: Side
    destination: Side
    rows: int
    cols: int
    chain: Chain
    filled: int


def whole_tile(function: VectorFunction, src: Tile, dst: Tile) -> WholeTile | None:
    """Return the tile cast as one call if the function's operations add up to exactly that, else None.

    Required: every element of the valid region is written exactly once, by one and the same chain of steps from its
    own source element; nothing else is written but a zero fill beforehand; no source byte is overwritten before it is
    read (equal tiles in place are fine: every element is read before it is written).
    """
    *before, main = function.nests
    filled = sum(nest.count for nest in before)
    in_place = src.address == dst.address and src.row_pitch == dst.row_pitch and not filled
    if src.address < max(dst.end, dst.address + filled) and dst.address < src.end and not in_place:
        return None
    if before and not _fills_zeros(function, filled):
        return None
    rows, cols = dst.valid_rows, dst.valid_cols
    if not main.runs:
        return None
    if main.row_loop:
        covers = main.rows == rows and main.count == cols
        covers &= main.source_row == src.row_pitch and main.destination_row == dst.row_pitch
    else:
        covers = main.count == rows * cols and (rows == 1 or (cols == src.cols and cols == dst.cols))
    if not covers or (function.source, function.destination) != (src.address, dst.address):
        return None
    chain = trace_nest(function, main)
    if chain is None:
        return None
    return WholeTile(
        Side(src.address, src.row_pitch, src.format),
        Side(dst.address, dst.row_pitch, dst.format),
        rows,
        cols,
        chain,
        filled,
    )


def convert_whole(whole: WholeTile, buffer: Bytes) -> None:
    """Convert a whole tile on the unified buffer."""
    codes = _read(buffer, whole.source, whole.rows, whole.cols)
    buffer[whole.destination.address : whole.destination.address + whole.filled] = 0
    _write(buffer, whole.destination, apply_chain(whole.chain, codes))


def apply_chain(chain: Chain, codes: Codes) -> Codes:
    """Return codes of any shape after every step."""
    for step in chain:
        match step:
            case ConvertStep(src, dst, policy):
                codes = convert_codes(codes, src, dst, policy)
            case IntegralStep(fmt, policy):
                codes = round_to_integral_codes(codes, fmt, policy)
            case MaskStep(mask):
                codes = codes & codes.dtype.type(mask)
    return codes


def _fills_zeros(function: VectorFunction, filled: int) -> bool:
    """Whether the nests before the last write zeros to the first `filled` bytes of the destination and nothing else."""
    state = RegisterState(function.register_bytes)
    memory = np.full(filled + function.register_bytes, 255, np.uint8)
    for operation in function.setup:
        state.step(operation)
    for nest in function.nests[:-1]:
        run_nest(replace(function, source=0, destination=0), nest, state, memory)
    return not memory[:filled].any() and bool((memory[filled:] == 255).all())


def _read(buffer: Bytes, side: Side, rows: int, cols: int) -> Codes:
    codes = _rows(buffer, side, rows, cols)
    return unpack_nibbles(codes)[:, :cols] if side.format.bits == 4 else codes


def _write(buffer: Bytes, side: Side, codes: Codes) -> None:
    target = _rows(buffer, side, *codes.shape)
    target[...] = pack_nibbles(codes) if side.format.bits == 4 else codes


def _rows(buffer: Bytes, side: Side, rows: int, cols: int) -> Codes:
    """Return a writable view of the rows; 4-bit formats come as the packed bytes that hold their columns."""
    size = side.format.storage_bits // 8
    length = -(-cols * side.format.bits // 8) if side.format.bits == 4 else cols
    base = buffer[side.address : side.address + size].view(f"<u{size}")
    return as_strided(base, (rows, length), (side.pitch, size), writeable=True)
