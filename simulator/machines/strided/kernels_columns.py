"""Column reductions and column broadcasts.

Reductions in row order: row 0 is copied to the destination, then every row is joined onto it with a barrier each. Sums
take a row as one in count mode; the others take the whole repeats of all rows, then what is left of all rows under a
mask (formulas of one cycle figure per row, docs/reference/a2a3.md section 6.2). The binary form of a sum joins
neighbouring rows in pairs in tmp, an odd last row onto the first pair, with a barrier for each pair (1263 cycles for
64 x 64, which are 64 of these steps). Broadcasts read row 0 for
every row (repeat stride 0): assumed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from castsim.execution.tiles import ResolvedTileOp
from castsim.execution.tree import Block, loop_of
from castsim.isa.errors import IllegalError
from castsim.machines.strided.kernel_sequence import KernelSequence, Operand, Region, operand_of, words
from castsim.machines.strided.kernels_elementwise import always, merges_of, never
from castsim.machines.strided.operations import Barrier
from castsim.targets.strided_repeat import StridedOperation


def lower_column_reduction(sequence: KernelSequence, work: ResolvedTileOp, kernel: StridedOperation) -> None:
    """Append the instructions of a column reduction."""
    (joining,), src = kernel.instructions, work.sources[0]
    if work.binary and src.valid_rows > 1:
        _in_pairs(sequence, work, joining)
        return
    dst, rows, length = operand_of(work.dst), operand_of(src), src.valid_cols
    sequence.add((sequence.copy(dst, rows, length * rows.size),))
    sequence.barrier()
    if src.valid_rows == 1:
        return
    sequence.barrier()
    if kernel.lines == "always":
        sequence.enter_count(length)
        parts = [(0, length)]
    else:
        lanes = sequence.lanes(src.format)
        whole = length // lanes * lanes
        parts = [part for part in ((0, whole), (whole, length - whole)) if part[1]]
    for first, width in parts:
        if kernel.lines != "always":
            sequence.mask(sequence.prefix(width, src.format))
        sequence.add(loop_of(src.valid_rows - 1, _row(sequence, joining, width, dst.at(column=first), rows, first)))


def _row(
    sequence: KernelSequence, joining: str, width: int, dst: Operand, rows: Operand, first: int
) -> Callable[[int], Block]:
    """Return what joins one further row, from a column on, onto the destination."""

    def row(number: int) -> Block:
        inner = KernelSequence(sequence.target)
        inner.add(inner.counted(joining, width, dst, (dst, rows.at(number + 1, first))))
        inner.barrier()
        return inner.close()

    return row


def _in_pairs(sequence: KernelSequence, work: ResolvedTileOp, joining: str) -> None:
    if work.tmp is None:
        raise IllegalError(f"{work.mnemonic} with isBinary needs a tmp tile", span=work.span)
    src, tmp, dst = operand_of(work.sources[0]), operand_of(work.tmp, work.dst.format), operand_of(work.dst)
    rows, length, level = work.sources[0].valid_rows, work.sources[0].valid_cols, src
    sequence.barrier()
    sequence.enter_count(length)
    while rows > 1:
        pairs, odd = divmod(rows, 2)
        to = dst if pairs == 1 else tmp
        sequence.add(loop_of(pairs, _pair(sequence, joining, length, to, level)))
        if odd:
            sequence.add(sequence.counted(joining, length, to, (to, level.at(rows - 1))))
            sequence.barrier()
        rows, level = pairs, tmp


def _pair(sequence: KernelSequence, joining: str, length: int, dst: Operand, src: Operand) -> Callable[[int], Block]:
    """Return what joins rows 2k and 2k + 1 into row k."""

    def pair(number: int) -> Block:
        sources = (src.at(2 * number), src.at(2 * number + 1))
        joined = sequence.counted(joining, length, dst.at(number), sources)
        return Block((*joined, Barrier(sequence.target.pipes.vector)))

    return pair


def lower_column_expansion(sequence: KernelSequence, work: ResolvedTileOp, _kernel: StridedOperation) -> None:
    """Append the copies of row 0 to every row."""
    dst = operand_of(work.dst)
    fmt = words(dst.format)
    length = -(-work.dst.valid_cols * dst.format.storage_bits // fmt.storage_bits)
    row = Operand(work.sources[0].address, fmt, 0)
    sequence.cover("vcopy", Region(work.dst.valid_rows, length), replace(dst, format=fmt), (row,), merges=never)


def lower_column_broadcast(sequence: KernelSequence, work: ResolvedTileOp, kernel: StridedOperation) -> None:
    """Append the instructions that join every row with row 0 of a vector, then those on what they gave."""
    dst, region = operand_of(work.dst), Region(work.dst.valid_rows, work.dst.valid_cols)
    joining, *others = kernel.instructions
    first, second = work.sources
    values = replace(operand_of(second), line_step=0)
    sequence.cover(joining, region, dst, (operand_of(first), values), merges=merges_of(sequence.target, kernel))
    for instruction in others:
        sequence.barrier()
        sequence.cover(instruction, region, dst, (dst,), merges=always)
