"""From one vector operation on tiles to the strided-repeat instructions that the chip's library issues for it.

Source: docs/reference/pto.md section 7 (operations, operands, scratch), docs/reference/a2a3.md section 6 (what
published cycles tell of the instructions). Which kernel an operation has is data of the target; where neither source
says, its row and the module that lays out the structure say what is assumed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from castsim.execution.tiles import ResolvedTileOp, Tile
from castsim.execution.tree import Block, Node, loop_of
from castsim.execution.vector_operations.shapes import is_column
from castsim.execution.vector_operations.sorting import GROUP, block_pairs, pairs_of
from castsim.isa.errors import IllegalError
from castsim.isa.formats import format_named
from castsim.isa.pto.vector_operations import PAIR_BYTES, VECTOR_OPERATIONS
from castsim.machines.strided.kernel_sequence import (
    KernelSequence,
    Operand,
    Region,
    lower_column_argument,
    lower_row_argument,
    operand_of,
    words,
)
from castsim.machines.strided.kernels_elementwise import (
    always,
    lower_column_broadcast,
    lower_column_expansion,
    lower_column_reduction,
    lower_concatenation,
    lower_counted_concatenation,
    lower_division,
    lower_elementwise,
    lower_gather,
    lower_part,
    lower_ramp,
    lower_reciprocal_root,
    lower_transposition,
    never,
)
from castsim.machines.strided.kernels_quantising import (
    lower_dequantisation,
    lower_quantisation,
    lower_row_broadcast,
    lower_row_expansion,
    lower_row_reduction,
)
from castsim.machines.strided.operations import BLOCK, Barrier, SetFlag, Stream, WaitFlag
from castsim.targets.strided_repeat import StridedOperation, StridedRepeatTarget

# Sorts, merges and gathers by pattern (docs/reference/pto.md section 7.7).


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


# Comparisons into packed bits, and selection by them.
#
# A comparison takes whole repeats and packs one bit per lane (docs/reference/pto.md section 7.3). The sequences of the
# selections are those that make both the published issue cycles of tsel (19 for one row, 67 for four) and the model's
# own figures (tsel 48 and 150, tsels 23 for two rows and 83 for 32) come out; the tile's mask has a row pitch of its
# own, so each row is an instruction.

_BITS = format_named("i8")
_WORDS = format_named("i16")


def _bits(tile: Tile, row: int, lanes: int, repeat: int = 0) -> Stream:
    """Return the bits of a row, `lanes` per repeat."""
    return Stream(tile.address + row * tile.row_pitch + repeat * lanes // 8, _BITS, 1, 0, lanes // 8, lanes // 8)


def lower_comparison(sequence: KernelSequence, work: ResolvedTileOp, kernel: StridedOperation) -> None:
    """Append whole repeats of every row; `ne` inverts what `eq` gave, over the whole destination tile."""
    first, lanes = work.sources[0], sequence.lanes(work.sources[0].format)
    (mnemonic,) = kernel.instructions
    repeats = -(-first.valid_cols // lanes)
    sequence.add((sequence.control("mask", sequence.full, changes=False),))

    def row(number: int) -> Block:
        origins = (operand_of(source).at(number).along(sequence.repeat_blocks) for source in work.sources)
        calls: list[Node] = []
        moved = list(origins)
        for begin in range(0, repeats, sequence.limit):
            count = min(sequence.limit, repeats - begin)
            step = begin * sequence.target.repeat.repeat_bytes
            shifted = (Stream(one.address + step, one.format, 1, one.repeat_stride) for one in moved)
            dst = _bits(work.dst, number, lanes, begin)
            row = f"{mnemonic}_partial" if count * lanes // 8 % BLOCK else mnemonic
            calls.append(sequence.vector(mnemonic, count, dst, shifted, mask=sequence.full, lanes=lanes, timing=row))
        return Block(tuple(calls))

    sequence.add(loop_of(first.valid_rows, row))
    sequence.add((sequence.control("mask", sequence.full, changes=False),))
    if work.mode == "ne":
        sequence.barrier()
        tile = operand_of(work.dst, _WORDS)
        sequence.cover("vnot", Region(1, work.dst.size // tile.size), tile, (tile,), merges=always)


def lower_selection(sequence: KernelSequence, work: ResolvedTileOp, kernel: StridedOperation) -> None:
    """Append, per row: the address of its mask into tmp and on into the compare mask register, then the selection."""
    tmp, mask = work.tmp, work.mask
    assert tmp is not None
    assert mask is not None
    length, lanes = work.dst.valid_cols, sequence.lanes(work.dst.format)
    address = Stream(tmp.address, tmp.format, 1, 0)
    one_block = (1 << sequence.block_elements(tmp.format)) - 1
    barrier = Barrier(sequence.target.pipes.vector)
    whole, rest = divmod(length, lanes)

    def row(number: int) -> Block:
        nodes: list[Node] = [
            sequence.control("mask", one_block),
            sequence.vector("vector_dup", 1, address, mask=one_block),
            barrier,
            sequence.control("cmpmask", tmp.address),
            barrier,
        ]
        operands = [operand_of(tile).at(number) for tile in (work.dst, *work.sources)]
        for first, repeats, chosen in ((0, whole, sequence.full), (whole, 1 if rest else 0, (1 << rest) - 1)):
            if repeats:
                to, *origins = (one.at(column=first * lanes).along(sequence.repeat_blocks) for one in operands)
                sources = (*origins, _bits(mask, number, lanes, first))
                nodes += (
                    sequence.control("mask", chosen),
                    sequence.vector(kernel.instructions[0], repeats, to, sources, mask=chosen),
                )
        return Block(tuple(nodes))

    sequence.add((sequence.control("ctrl", sequence.normal_ctrl),))
    sequence.add(loop_of(work.dst.valid_rows, row))
    sequence.add((sequence.control("ctrl", sequence.normal_ctrl), sequence.control("mask", sequence.full)))


def lower_scalar_selection(sequence: KernelSequence, work: ResolvedTileOp, kernel: StridedOperation) -> None:
    """Append, in count mode: the scalar into tmp, then per row the place of its mask and the selection."""
    tmp, mask = work.tmp, work.mask
    assert tmp is not None
    assert mask is not None
    dst, src, lanes = operand_of(work.dst), operand_of(work.sources[0]), sequence.lanes(work.dst.format)
    region, scalar = Region(work.dst.valid_rows, work.dst.valid_cols), operand_of(tmp, work.dst.format)
    sequence.add((sequence.scalar("arithmetic"),))
    sequence.barrier()
    sequence.enter_count(region.length)

    def row(number: int) -> Block:
        selected: list[Node] = []
        done = 0
        for operation in sequence.counted(kernel.instructions[0], region.length, dst.at(number), (src.at(number),)):
            scalars = Stream(scalar.address, scalar.format, 0, 0, 0, 1)
            extra = (scalars, _bits(mask, number, lanes, done))
            selected.append(replace(operation, sources=(*operation.sources, *extra), timing="vsel_scalar"))
            done += operation.repeats
        return Block((sequence.control("cmpmask", mask.address), sequence.control("mask", region.length), *selected))

    sequence.add(loop_of(region.lines, row))


# Moves and padding: whole blocks are copied, everything outside is filled.
#
# The published rows of tmov are a block per cycle and five cycles per copy instruction, one per row unless the tile is
# fully valid (docs/reference/a2a3.md section 6.3: 1029, 1323 and 120 cycles). They are the same for column-major
# tiles, whose copies are therefore counted by rows as well, whatever bytes each of them takes; what all of them move
# is said elsewhere. How tfillpad fills is assumed.


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


_Lowering = Callable[[KernelSequence, ResolvedTileOp, StridedOperation], None]

_LOWERINGS: Mapping[str, _Lowering] = {
    "elementwise": lower_elementwise,
    "division": lower_division,
    "reciprocal_root": lower_reciprocal_root,
    "compare": lower_comparison,
    "select": lower_selection,
    "select_scalar": lower_scalar_selection,
    "move": lower_move,
    "fill": lower_fill,
    "row_reduction": lower_row_reduction,
    "row_expansion": lower_row_expansion,
    "row_broadcast": lower_row_broadcast,
    "column_reduction": lower_column_reduction,
    "row_argument": lower_row_argument,
    "column_argument": lower_column_argument,
    "column_expansion": lower_column_expansion,
    "column_broadcast": lower_column_broadcast,
    "part": lower_part,
    "ramp": lower_ramp,
    "gather": lower_gather,
    "pattern_gather": lower_pattern_gather,
    "compare_gather": lower_comparing_gather,
    "sort": lower_sort,
    "merge": lower_merge,
    "transposition": lower_transposition,
    "concatenation": lower_concatenation,
    "counted_concatenation": lower_counted_concatenation,
    "quantisation": lower_quantisation,
    "dequantisation": lower_dequantisation,
}
"""What lays out a kernel of each structure."""


def lower_work(target: StridedRepeatTarget, work: ResolvedTileOp) -> Block:
    """Return the instructions of one vector operation with a valid region that is not empty.

    Raises:
        IllegalError: no such operation; masks are counts when the kernel starts.
    """
    kernel = target.tile_operation(work.mnemonic)
    if kernel is None:
        raise IllegalError(
            f"pto.{work.mnemonic} is not modelled on {target.name}",
            span=work.span,
            legal=[rule.mnemonic for rule in target.tile_operations],
        )
    if target.option("count_mask_at_start"):
        raise IllegalError(
            f"count mode is on (option count_mask_at_start): the lane masks of {work.mnemonic} would be read as counts",
            span=work.span,
            legal=("count_mask_at_start = 0",),
        )
    sequence = KernelSequence(target)
    _LOWERINGS[kernel.structure](sequence, work, kernel)
    return sequence.close()
