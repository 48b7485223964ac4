"""Sorts, merges and gathers by pattern (docs/reference/pto.md section 7.7)."""

from __future__ import annotations

from castsim.execution.tiles import ResolvedTileOp
from castsim.execution.tree import Block, loop_of
from castsim.execution.vector_operations.sorting import GROUP, block_pairs, pairs_of
from castsim.isa.errors import IllegalError
from castsim.isa.formats import format_named
from castsim.isa.pto.vector_operations import PAIR_BYTES
from castsim.machines.strided.kernel_sequence import KernelSequence, Region, operand_of
from castsim.machines.strided.kernels_elementwise import always
from castsim.machines.strided.operations import BLOCK, SetFlag, Stream, WaitFlag
from castsim.targets.strided_repeat import StridedOperation


def lower_sort(sequence: KernelSequence, work: ResolvedTileOp, kernel: StridedOperation) -> None:
    """Append, row by row, a repeat for each group of 32; rows with a shorter last group are copied to tmp and padded.

    That the padding is a copy and a fill for each row is assumed.
    """
    (mnemonic,), (source, places) = kernel.instructions, work.sources
    dst, src, given = operand_of(work.dst), operand_of(source), operand_of(places)
    length, size = source.valid_cols, src.size
    groups, rest = -(-length // GROUP), length % GROUP
    tmp = work.tmp if rest else None
    pitch = -(-length * size // BLOCK) * BLOCK

    def row(number: int) -> Block:
        inner = KernelSequence(sequence.target)
        start = src.at(number)
        numbers = given.at(number if places.valid_rows > 1 else 0)
        if tmp is not None:
            copy = operand_of(tmp, source.format)
            to = type(copy)(tmp.address + number * pitch, copy.format, 0)
            inner.add((inner.copy(to, start, length * size),))
            inner.barrier()
            fill = Stream(to.address + length * size // BLOCK * BLOCK, source.format, 1, 0, 0, BLOCK // size)
            inner.add((inner.vector("vector_dup", 1, fill, mask=inner.full),))
            inner.barrier()
            start = to
        for first in range(0, groups, inner.limit):
            repeats = min(inner.limit, groups - first)
            step = first * GROUP
            count = min(GROUP, length)
            streams = (
                Stream(start.address + step * size, source.format, 1, 0, GROUP * size, count),
                Stream(
                    numbers.address + step * 4,
                    places.format,
                    1,
                    0,
                    GROUP * 4,
                    count,
                ),
            )
            to_pairs = Stream(
                dst.at(number).address + step * PAIR_BYTES,
                dst.format,
                1,
                0,
                GROUP * PAIR_BYTES,
                count * PAIR_BYTES // size,
            )
            inner.add((inner.vector(mnemonic, repeats, to_pairs, streams, mask=inner.full),))
        return inner.close()

    sequence.add(loop_of(source.valid_rows, row))


def lower_merge(sequence: KernelSequence, work: ResolvedTileOp, kernel: StridedOperation) -> None:
    """Append, row by row, a repeat for every four blocks of a tile; lists of several tiles are one.

    The first 32 bytes of what a repeat takes stand for all of it.
    """
    (mnemonic,) = kernel.instructions
    dst, sources = operand_of(work.dst), [operand_of(source) for source in work.sources]
    length = block_pairs(work) if work.scalars else 0
    repeats = pairs_of(work.sources[0]) // (4 * length) if length else 1

    def row(number: int) -> Block:
        inner = KernelSequence(sequence.target)
        for first in range(0, repeats, inner.limit):
            count = min(inner.limit, repeats - first)
            step = 4 * length * PAIR_BYTES
            starts = [one.at(number).address + first * step for one in sources]
            streams = [Stream(start, dst.format, 1, 0, step, BLOCK // dst.size) for start in starts]
            to = Stream(dst.at(number).address + first * step, dst.format, 1, 0, step, BLOCK // dst.size)
            inner.add((inner.vector(mnemonic, count, to, streams, mask=inner.full),))
        return inner.close()

    sequence.add(loop_of(work.dst.valid_rows, row))


def lower_pattern_gather(sequence: KernelSequence, work: ResolvedTileOp, kernel: StridedOperation) -> None:
    """Append one instruction, a repeat for each row, in count mode; rows are copied one by one."""
    (mnemonic,), (source,) = kernel.instructions, work.sources
    dst, src = operand_of(work.dst), operand_of(source)
    if work.by_columns:
        times, first = _stride_of(work)
        length = work.dst.valid_cols
        for number in range(work.dst.valid_rows):
            origin = src.at(number * times + first)
            sequence.cover("vcopy", Region(1, length), dst.at(number), (origin,), merges=always)
        return
    sequence.enter_count(source.valid_cols)
    rows = source.valid_rows
    for start in range(0, rows, sequence.limit):
        to = Stream(dst.at(start).address, dst.format, 1, 0, work.dst.row_pitch, work.dst.valid_cols)
        whole = Stream(src.at(start).address, src.format, 1, 0, source.row_pitch, source.valid_cols)
        sequence.issue(mnemonic, min(sequence.limit, rows - start), to, (whole,))


def lower_comparing_gather(sequence: KernelSequence, work: ResolvedTileOp, kernel: StridedOperation) -> None:
    """Append, for every row: the comparison into tmp, the numbers kept by its bits, the count by the scalar unit.

    Source: none but that the vector and the scalar unit wait for each other; that numbers stand ready is assumed.
    """
    compare, keep = kernel.instructions
    (source,), tmp, pipes = work.sources, work.tmp, sequence.target.pipes
    if tmp is None:
        raise IllegalError(f"{work.mnemonic} needs a tmp tile", span=work.span)
    dst, src, lanes = operand_of(work.dst), operand_of(source), sequence.lanes(source.format)
    repeats = -(-source.valid_cols // lanes)
    per_repeat = lanes // 8
    bits = Stream(tmp.address, format_named("i8"), 1, 0, per_repeat, per_repeat)

    def row(number: int) -> Block:
        inner = KernelSequence(sequence.target)
        whole = src.at(number).along(inner.repeat_blocks)
        inner.add((inner.vector(compare, repeats, bits, (whole,), mask=inner.full, lanes=lanes),))
        inner.barrier()
        kept = Stream(dst.at(number).address, dst.format, 1, 0, 0, work.dst.valid_cols)
        inner.add((inner.vector(keep, 1, kept, (bits,), mask=inner.full),))
        inner.await_vector()
        inner.add((inner.scalar("read"), inner.scalar("write"), inner.scalar("loop")))
        inner.add((SetFlag(pipes.scalar, pipes.vector, 0), WaitFlag(pipes.vector, pipes.scalar, 0)))
        return inner.close()

    sequence.add(loop_of(source.valid_rows, row))


def _stride_of(work: ResolvedTileOp) -> tuple[int, int]:
    """Return how far apart the rows that are kept lie, and the first of them."""
    assert work.pattern is not None
    digits = work.pattern[::-1]
    times = 4 // digits.count("1")
    return times, digits.index("1")
