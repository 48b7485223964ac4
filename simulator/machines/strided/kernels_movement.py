"""Moves and padding: whole blocks are copied, everything outside is filled.

The published rows of tmov are a block per cycle and five cycles per copy instruction, one per row unless the tile is
fully valid (docs/reference/a2a3.md section 6.3: 1029, 1323 and 120 cycles). They are the same for column-major tiles,
whose copies are therefore counted by rows as well, whatever bytes each of them takes; what all of them move is said
elsewhere. How tfillpad fills is assumed.
"""

from __future__ import annotations

from castsim.execution.tiles import ResolvedTileOp, Tile
from castsim.execution.tree import Block, loop_of
from castsim.execution.vector_operations.shapes import is_column
from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS
from castsim.machines.strided.kernel_sequence import KernelSequence, Operand, Region, words
from castsim.machines.strided.kernels_elementwise import always, never
from castsim.machines.strided.operations import BLOCK, Stream
from castsim.targets.strided_repeat import StridedOperation


def lower_move(sequence: KernelSequence, work: ResolvedTileOp, _kernel: StridedOperation) -> None:
    """Append the copies of what both tiles have."""
    src, dst = work.sources[0], work.dst
    rows, cols = min(src.valid_rows, dst.valid_rows), min(src.valid_cols, dst.valid_cols)
    _copy(sequence, dst, src, Region(rows, cols))


def lower_fill(sequence: KernelSequence, work: ResolvedTileOp, _kernel: StridedOperation) -> None:
    """Append the copies of the source, unless it is the destination, and the padding around it."""
    src, dst = work.sources[0], work.dst
    if not VECTOR_OPERATIONS[work.mnemonic].in_place and src.valid_rows and src.valid_cols:
        _copy(sequence, dst, src, Region(src.valid_rows, src.valid_cols))
        sequence.barrier()
    _fill(sequence, dst, src)


def _copy(sequence: KernelSequence, dst: Tile, src: Tile, region: Region) -> None:
    """Copy rows in whole blocks, all at once if nothing lies between them."""
    size = src.element_bits // 8
    length = region.length * size
    # The rows of a column-major tile may begin inside a block; which blocks their copies touch is no fact.
    steps = [tile.row_pitch // BLOCK * BLOCK if is_column(tile) else tile.row_pitch for tile in (dst, src)]
    to, origin = (Operand(tile.address, tile.format, step) for tile, step in zip((dst, src), steps, strict=True))
    if dst.row_pitch == src.row_pitch == length:
        sequence.add((sequence.copy(to, origin, region.lines * length),))
        return
    sequence.add(loop_of(region.lines, lambda row: Block((sequence.copy(to.at(row), origin.at(row), length),))))


def _fill(sequence: KernelSequence, dst: Tile, src: Tile) -> None:
    """Fill right of the source's valid columns, then the rows below its valid rows."""
    fmt = words(dst.format)
    unit, size = fmt.storage_bits // 8, dst.element_bits // 8
    start, end = src.valid_cols * size, dst.cols * size
    whole = -(-start // BLOCK) * BLOCK
    rows, base = min(src.valid_rows, dst.valid_rows), Operand(dst.address, fmt, dst.row_pitch)
    kept = sequence.target.tile_arithmetic.equal_pad_keeps_source and src.type.pad == dst.type.pad
    if rows and start < whole and not kept:
        first = start % BLOCK // unit
        sequence.mask((1 << BLOCK // unit) - (1 << first))
        for line in range(0, rows, sequence.limit):
            at = base.at(line)
            stream = Stream(at.address + whole - BLOCK, fmt, 1, dst.row_pitch // BLOCK)
            sequence.issue("vector_dup", min(sequence.limit, rows - line), stream)
    if rows and whole < end:
        region = Region(rows, (end - whole) // unit)
        sequence.cover("vector_dup", region, base.at(column=whole // unit), (), merges=never)
    below = dst.valid_rows - src.valid_rows
    if below > 0:
        sequence.cover("vector_dup", Region(below, end // unit), base.at(src.valid_rows), (), merges=always)
