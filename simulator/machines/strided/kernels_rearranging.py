"""Ramps, gathers, transpositions and concatenations (docs/reference/pto.md section 7.7).

A ramp without scratch, and whatever the layout of a transposition or concatenation does not allow, is a loop of the
scalar unit; that a trip of it costs its store, and its read where it has one, and the turnaround of the loop is
assumed, as no source times stores of the scalar unit.
"""

from __future__ import annotations

from dataclasses import replace

from castsim.execution.tiles import ResolvedTileOp, Tile
from castsim.execution.tree import Block, Node, loop_of
from castsim.execution.vector_operations.shapes import BLOCK, transposes_by_blocks
from castsim.isa.errors import IllegalError
from castsim.isa.formats import format_named
from castsim.machines.strided.kernel_sequence import KernelSequence, Operand, Region, operand_of, words
from castsim.machines.strided.kernels_elementwise import always
from castsim.machines.strided.operations import ScalarWork, SetFlag, Stream, WaitFlag
from castsim.targets.strided_repeat import StridedOperation

BURST_BLOCKS = 18
"""Blocks that a copy of many bursts takes as one repeat: 594 bytes per cycle are 18 blocks and a half."""


def lower_ramp(sequence: KernelSequence, work: ResolvedTileOp, kernel: StridedOperation) -> None:
    """Append a ramp: in floats in tmp first, a repeat long, then that and a multiple of a repeat to every repeat."""
    if work.tmp is None:
        _by_scalars(sequence, work.dst.valid_cols, ())
        return
    dst, length = work.dst, work.dst.valid_cols
    fill, gather, scale, spread, join, convert, shift = kernel.instructions
    fmt = format_named("f32" if dst.element_bits == 32 else "f16")
    lanes = sequence.lanes(fmt)
    size = sequence.target.repeat.repeat_bytes
    ramp, sums, blocks = (Operand(work.tmp.address + number * size, fmt, size) for number in range(3))
    if length < lanes:
        sequence.enter_count(length)
    for _ in range(lanes // sequence.block_elements(fmt)):
        sequence.issue(fill, 1, ramp.along(sequence.repeat_blocks))
    per_block = fmt.storage_bits // 8
    packed = Stream(sums.address, fmt, 1, 0, sequence.repeat_blocks * per_block, sequence.repeat_blocks)
    spaced = blocks.along(sequence.repeat_blocks)
    sequence.barrier()
    sequence.issue(gather, 1, packed, (ramp.along(sequence.repeat_blocks),))
    sequence.barrier()
    sequence.issue(scale, 1, packed, (packed,))
    sequence.barrier()
    sequence.issue(spread, 1, spaced, (packed,))
    sequence.barrier()
    sequence.issue(join, 1, ramp.along(sequence.repeat_blocks), (ramp.along(sequence.repeat_blocks), spaced))
    sequence.barrier()
    whole = operand_of(dst)
    first = replace(ramp, format=dst.format)
    _converted(sequence, convert, Region(1, min(length, lanes)), first, ramp)
    sequence.barrier()
    _shifted(sequence, shift, length, whole, first)
    if work.descending:
        sequence.barrier()
        sequence.cover(scale, Region(1, length), whole, (whole,), merges=always)


def _converted(sequence: KernelSequence, mnemonic: str, region: Region, dst: Operand, src: Operand) -> None:
    to, origin = dst.along(sequence.repeat_blocks), src.along(sequence.repeat_blocks)
    sequence.add(
        (sequence.vector(mnemonic, region.lines, to, (origin,), mask=sequence.prefix(region.length, dst.format)),)
    )


def _shifted(sequence: KernelSequence, mnemonic: str, length: int, dst: Operand, src: Operand) -> None:
    """One instruction for each repeat of the result, the last one under a mask or count."""
    lanes = sequence.lanes(dst.format)
    for start in range(0, length, lanes):
        mask = sequence.prefix(min(lanes, length - start), dst.format)
        if length >= lanes:
            sequence.mask(mask)
        to = dst.at(column=start).along(sequence.repeat_blocks)
        sequence.add((sequence.vector(mnemonic, 1, to, (src.along(sequence.repeat_blocks),), mask=mask),))


def lower_gather(sequence: KernelSequence, work: ResolvedTileOp, kernel: StridedOperation) -> None:
    """Append, for every row in count mode: its numbers times the size of an element, a barrier, the gather.

    The products of 4-byte elements go to the row of the destination, those of others to tmp, whose rows lie as far
    apart as the destination has columns. The gather is one repeat, as in the vendor's model.
    """
    scale, gather = kernel.instructions
    source, places = work.sources
    dst, tmp = work.dst, work.tmp
    if tmp is None:
        raise IllegalError(f"{work.mnemonic} needs a tmp tile", span=work.span)
    numbers, to = operand_of(places), operand_of(dst)
    products = Operand(dst.address, places.format, dst.row_pitch)
    if dst.element_bits != places.element_bits:
        products = Operand(tmp.address, places.format, dst.cols * places.element_bits // 8)
    length = dst.valid_cols
    chosen = sequence.prefix(length, to.format)
    fetched = Stream(source.address, source.format, 1, 0)

    def row(number: int) -> Block:
        inner = KernelSequence(sequence.target)
        inner.add(inner.counted(scale, length, products.at(number), (numbers.at(number),)))
        inner.barrier()
        streams = (fetched, products.at(number).along(sequence.repeat_blocks))
        inner.add((inner.vector(gather, 1, to.at(number).along(sequence.repeat_blocks), streams, mask=chosen),))
        return inner.close()

    sequence.enter_count(length)
    sequence.add(loop_of(dst.valid_rows, row))


def lower_transposition(sequence: KernelSequence, work: ResolvedTileOp, kernel: StridedOperation) -> None:
    """Append the transposition into tmp, an instruction for every column of blocks, then the copy of tmp.

    The rows that are no whole blocks of 16 (32 of bytes) take one more instruction over all columns. The scalar unit
    also loads the addresses of 16 rows on either side; the measured cycles leave no time for that beside the vector
    pipe, so it takes none.
    """
    transpose, copy = kernel.instructions
    (source,) = work.sources
    if not transposes_by_blocks(work):
        _between_flags(sequence, source.valid_rows * source.valid_cols)
        return
    tall = 32 if source.element_bits == 8 else 16
    columns = -(-source.valid_cols * source.element_bits // (8 * BLOCK))
    whole, rest = divmod(source.valid_rows, tall)
    pitch = -(-source.valid_rows // tall) * tall * source.element_bits // 8
    tmp = work.tmp.address if work.tmp is not None else work.dst.address
    fmt = words(source.format)
    calls = 4 if source.element_bits == 8 else 1
    wide = BLOCK * 8 // source.element_bits

    def column(first: int, repeats: int, row: int, step: int) -> Block:
        nodes: list[Node] = []
        origin = Stream(
            source.address + row * source.row_pitch + first * BLOCK, fmt, 1, step, 0, BLOCK * 8 // fmt.storage_bits
        )
        to = Stream(
            tmp + first * wide * pitch + row * source.element_bits // 8, fmt, 1, 1, 0, BLOCK * 8 // fmt.storage_bits
        )
        for _ in range(calls):
            nodes.append(sequence.vector(transpose, repeats, to, (origin,), timing="scatter_vnchwconv"))
        return Block(tuple(nodes))

    if whole:
        blocks = tall * source.row_pitch // BLOCK
        sequence.add(loop_of(columns, lambda number: column(number, whole, 0, blocks)))
    if rest:
        sequence.add(column(0, columns, whole * tall, 1).items)
    sequence.barrier()
    _copy_bursts(sequence, copy, work.dst, tmp, source.valid_cols * -(-source.valid_rows * source.element_bits // 256))


def _copy_bursts(sequence: KernelSequence, mnemonic: str, dst: Tile, start: int, blocks: int) -> None:
    """Copy so many blocks of tmp in bursts; the first block of what a repeat takes stands for all of it."""
    fmt = words(dst.format)
    one = BLOCK * 8 // fmt.storage_bits
    for first in range(0, -(-blocks // BURST_BLOCKS), sequence.limit):
        repeats = min(sequence.limit, -(-blocks // BURST_BLOCKS) - first)
        at = first * BURST_BLOCKS * BLOCK
        to, origin = (Stream(address + at, fmt, 1, BURST_BLOCKS, 0, one) for address in (dst.address, start))
        sequence.add((sequence.vector(mnemonic, repeats, to, (origin,), mask=sequence.full),))


def lower_concatenation(sequence: KernelSequence, work: ResolvedTileOp, _kernel: StridedOperation) -> None:
    """Append a copy of every row of the first part, then of the second: by elements if it begins inside a block."""
    dst, rows = operand_of(work.dst), work.dst.valid_rows
    first, second = work.sources
    start = first.valid_cols * dst.size
    _copies(sequence, dst, first, rows)
    if start % BLOCK == 0:
        _copies(sequence, dst.at(column=first.valid_cols), second, rows)
    else:
        _between_flags(sequence, rows * second.valid_cols)


def lower_counted_concatenation(sequence: KernelSequence, work: ResolvedTileOp, _kernel: StridedOperation) -> None:
    """Append, for every row, the reads of its counts and the copy of the first part; the second one by elements.

    Source: none; that both parts take as long as if the counts asked for all of them is assumed.
    """
    rows, dst = work.dst.valid_rows, operand_of(work.dst)
    first, second, *_ = work.sources
    src, length = operand_of(first), min(first.valid_cols, work.dst.valid_cols) * dst.size
    counts = (sequence.scalar("read"), sequence.scalar("read"), sequence.scalar("arithmetic"))
    sequence.await_vector()

    def row(number: int) -> Block:
        copied = (sequence.copy(dst.at(number), src.at(number), length),) if length else ()
        return Block((*counts, *copied))

    sequence.add(loop_of(rows, row))
    _between_flags(sequence, rows * second.valid_cols)


def _copies(sequence: KernelSequence, dst: Operand, source: Tile, rows: int) -> None:
    src, length = operand_of(source), source.valid_cols * dst.size
    if length:
        sequence.add(loop_of(rows, lambda row: Block((sequence.copy(dst.at(row), src.at(row), length),))))


def _between_flags(sequence: KernelSequence, elements: int) -> None:
    """Let the scalar unit move elements: it waits for the vector pipe, which waits for it in turn."""
    pipes = sequence.target.pipes
    sequence.await_vector()
    _by_scalars(sequence, elements, (sequence.scalar("read"),))
    sequence.add((SetFlag(pipes.scalar, pipes.vector, 0), WaitFlag(pipes.vector, pipes.scalar, 0)))


def _by_scalars(sequence: KernelSequence, elements: int, before: tuple[ScalarWork, ...]) -> None:
    trip = Block((*before, sequence.scalar("write"), sequence.scalar("loop")))
    sequence.add(loop_of(elements, lambda _: trip))
