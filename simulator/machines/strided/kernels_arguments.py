"""Arg-reductions: the place of the greatest or least element of every row or column (docs/reference/pto.md 7.4, 7.5).

Rows, as stated: one reducing instruction gives a pair of value and place for each repeat, another sorts out values and
places; where a row has several repeats, a second stage does so with their values; the scalar unit, between flags, makes
the result of what is left. Columns: no source; compared row by row with the best so far, which lies in tmp. Where the
steps lie in tmp is assumed.
"""

from __future__ import annotations

from castsim.execution.tiles import ResolvedTileOp, Tile
from castsim.execution.tree import Block, Node, loop_of
from castsim.execution.vector_operations.scratch import extreme_scratch
from castsim.isa.errors import IllegalError
from castsim.isa.formats import Format, format_named
from castsim.machines.strided.kernel_sequence import KernelSequence, operand_of
from castsim.machines.strided.operations import BLOCK, SetFlag, Stream, WaitFlag
from castsim.targets.strided_repeat import StridedOperation

_BITS = format_named("i8")


def lower_row_argument(sequence: KernelSequence, work: ResolvedTileOp, kernel: StridedOperation) -> None:
    """Append the reduction of every repeat to a pair, the pairs sorted out, once more for longer rows, the end."""
    reduce, separate = kernel.instructions
    (src,), tmp = work.sources, _scratch_of(work)
    size, rows = src.element_bits // 8, src.valid_rows
    lanes = sequence.lanes(src.format)
    pieces = -(-src.valid_cols // lanes)
    places = extreme_scratch(src, sequence.target.repeat.repeat_bytes)
    origin, step = operand_of(src), 2 * size
    limit = sequence.limit if origin.line_step // BLOCK <= sequence.target.repeat.max_repeat_stride else 1
    for piece in range(pieces):
        sequence.mask(sequence.prefix(src.valid_cols - piece * lanes, src.format))
        line = origin.at(column=piece * lanes)
        for first in range(0, rows, limit):
            pairs = Stream(tmp.address + (first * pieces + piece) * step, src.format, 1, 0, pieces * step, 2)
            sequence.issue(reduce, min(limit, rows - first), pairs, (line.at(first).down(),))
    left = 1
    sequence.mask(sequence.full)
    if pieces > 1:
        for place in (places.values, places.places):
            _separate(sequence, separate, rows * pieces, src.format, tmp.address, tmp.address + place)
        sequence.barrier()
        sequence.mask(sequence.prefix(pieces, src.format))
        left = -(-pieces // lanes)
        for first in range(0, rows, sequence.limit):
            start = first * pieces * size
            values = Stream(tmp.address + places.values + start, src.format, 1, 0, pieces * size, min(pieces, lanes))
            pairs = Stream(tmp.address + places.second + first * step, src.format, 1, 0, step, 2)
            sequence.issue(reduce, min(sequence.limit, rows - first), pairs, (values,))
        sequence.mask(sequence.full)
    else:
        _separate(sequence, separate, rows, src.format, tmp.address, tmp.address + places.values)
    _finish(sequence, rows, 1 if pieces == 1 else 2 * left)


def _scratch_of(work: ResolvedTileOp) -> Tile:
    if work.tmp is None:
        raise IllegalError(f"{work.mnemonic} needs a tmp tile", span=work.span)
    return work.tmp


def _separate(sequence: KernelSequence, mnemonic: str, pairs: int, fmt: Format, start: int, to: int) -> None:
    """Pack one member of each of so many pairs."""
    lanes, size = sequence.lanes(fmt), fmt.storage_bits // 8
    sequence.barrier()
    repeats = -(-2 * pairs // lanes)
    for first in range(0, repeats, sequence.limit):
        count = min(sequence.limit, repeats - first)
        half = lanes // 2 * size
        packed = Stream(to + first * half, fmt, 1, 0, half, min(lanes // 2, pairs))
        whole = Stream(start + first * lanes * size, fmt, 1, 0, lanes * size, min(lanes, 2 * pairs))
        sequence.issue(mnemonic, count, packed, (whole,))


def _finish(sequence: KernelSequence, rows: int, reads: int) -> None:
    """Let the scalar unit make the result of every row of so many elements of tmp."""
    pipes = sequence.target.pipes
    sequence.await_vector()
    work: list[Node] = [sequence.scalar("read") for _ in range(reads)]
    if reads > 1:
        work.append(sequence.scalar("arithmetic"))
    trip = Block((*work, sequence.scalar("write"), sequence.scalar("loop")))
    sequence.add(loop_of(rows, lambda _: trip))
    sequence.add((SetFlag(pipes.scalar, pipes.vector, 0), WaitFlag(pipes.vector, pipes.scalar, 0)))


def lower_column_argument(sequence: KernelSequence, work: ResolvedTileOp, kernel: StridedOperation) -> None:
    """Append row 0 as the best so far and, for every further row: comparison, the better one, its number."""
    compare, better = kernel.instructions
    (src,), tmp = work.sources, _scratch_of(work)
    length, rows = src.valid_cols, operand_of(src)
    dst, best = operand_of(work.dst), operand_of(tmp, src.format)
    sequence.enter_count(length)
    sequence.add(sequence.counted("vector_dup", length, dst, ()))
    if src.valid_rows == 1:
        return
    sequence.leave_count()
    sequence.mask(sequence.full)
    sequence.add((sequence.copy(best, rows, length * rows.size),))
    sequence.barrier()
    lanes = sequence.lanes(src.format)
    bits = tmp.address + -(-length * rows.size // BLOCK) * BLOCK
    sequence.enter_count(length)

    def row(number: int) -> Block:
        inner = KernelSequence(sequence.target)
        line = rows.at(number + 1)
        for first in range(0, length, lanes):
            found = Stream(bits + first // 8, _BITS, 1, 0, lanes // 8, -(-min(lanes, length - first) // 8))
            origins = [one.at(column=first).along(sequence.repeat_blocks) for one in (line, best)]
            mask = sequence.prefix(length - first, src.format)
            inner.add((inner.vector(compare, 1, found, origins, mask=mask, lanes=lanes),))
        inner.barrier()
        inner.add(inner.counted(better, length, best, (best, line)))
        inner.add((inner.control("cmpmask", bits),))
        inner.add(inner.counted("vector_dup", length, dst, ()))
        inner.barrier()
        return inner.close()

    sequence.add(loop_of(src.valid_rows - 1, row))
