"""Lowering of one vector operation on tiles to the strided-repeat instructions that the chip's library issues.

Source: docs/reference/pto.md section 7 (operations, operands, scratch), docs/reference/a2a3.md section 6 (instructions
derived from published cycles). The target's data name the kernel of an operation; assumptions are stated in its row and
in the module of the structure.
"""

from __future__ import annotations

from collections.abc import Callable

from castsim.execution.pipe_operations import BLOCK
from castsim.execution.tree import Block, ResolvedTileOp, Tile, TileCast
from castsim.execution.vector_operations.rearranging import GROUP, block_pairs, pairs_of
from castsim.execution.vector_operations.target_rules import extreme_scratch
from castsim.isa.dataclass import replace
from castsim.isa.errors import IllegalError, closest
from castsim.isa.formats import FloatFormat, Format, Saturation, format_named
from castsim.isa.pto.program import RoundMode
from castsim.isa.pto.vector_operations import PAIR_BYTES
from castsim.machines.strided import kernels_elementwise  # noqa: F401 - it registers its layouts
from castsim.machines.strided.audit import emit_cast
from castsim.machines.strided.kernel_sequence import (
    BITS,
    LAYOUTS,
    KernelSequence,
    LineRegion,
    Operand,
    lays_out,
    operand_of,
    packed,
    scratch_of,
    words,
)
from castsim.machines.strided.plan import plan_cast
from castsim.machines.strided.strided_instructions import Stream, StridedInstruction
from castsim.targets.strided_repeat import StridedOperation, StridedRepeatTarget

# Quantisation to 8 bits and the way back (docs/reference/pto.md section 7.12).
#
# Facts: pto-isa include/pto/npu/a2a3 @ 3186c381, TQuant.hpp and TDequant.hpp. No published cycles time them: they are
# those of their instructions.

# Row reductions and row broadcasts.
#
# Reductions of floats: the whole repeats of a row are joined in pairs in tmp, a partial one onto the first of them,
# and one reducing instruction takes what is left, a repeat per row (docs/reference/pto.md section 7.4). That it takes
# 7 cycles a row is published (480 .. 495 cycles for 64 rows). The rows of tmp keep their pitch where they fit: the
# formulas have 9 cycles for every row of 96 f32, and rows packed closer would meet conflicts of reads and writes
# (10.3). Integers, for which there is no reducing instruction, and products are brought down to a block per row by
# ordinary instructions and finished by the scalar unit: assumed; tmp is one block for the former and of the source's
# shape for the latter.
#
# Broadcasts: a row filled from one element takes a scalar read and a fill, 14 cycles a row as published (933 for 64).
# Joined operations read a block per row; a column of elements is first spread to blocks, eight rows a repeat, into tmp
# or into the window at the end of the buffer, 240 rows at a time where there are 256 or more.

Join = Callable[[int, int, Operand], None]


@lays_out("row_reduction")
def lower_row_reduction(sequence: KernelSequence, work: ResolvedTileOp, kernel: StridedOperation) -> None:
    """Append the instructions of a row reduction: the elementwise one, then the reducing one if there is one."""
    (joining, *reducing), src = kernel.instructions, work.sources[0]
    scratch_of(work)
    if not isinstance(src.format, FloatFormat):
        _reduce_by_blocks(sequence, work, joining)
        return
    region = LineRegion(src.valid_rows, src.valid_cols)
    left, length = _join_pieces(sequence, work, joining, region)
    if reducing:
        _reduce(sequence, reducing[0], LineRegion(region.lines, length), work.dst, left)
    else:
        _multiply_out(sequence, work, LineRegion(region.lines, length), left)


def _join_pieces(
    sequence: KernelSequence, work: ResolvedTileOp, joining: str, region: LineRegion
) -> tuple[Operand, int]:
    """Combine the repeats of every row until a single one remains; return its address and length."""
    src, lanes = operand_of(work.sources[0]), sequence.lanes(work.sources[0].format)
    whole, rest = divmod(region.length, lanes)
    if whole + (1 if rest else 0) == 1:
        return src, region.length
    assert work.tmp is not None
    piece = LineRegion(region.lines, lanes)
    count = max(1, whole // 2)
    packed, own = count * lanes * src.size, operand_of(work.tmp, src.format).line_step
    roomy = own >= packed and region.lines * own <= work.tmp.size
    tmp = Operand(work.tmp.address, src.format, own if roomy else packed)

    def join(dst: int, left: Operand, right: Operand, part: LineRegion) -> None:
        sequence.down(joining, part, tmp.at(column=dst * lanes), (left, right))

    if whole == 1:
        sequence.down("vcopy", piece, tmp, (src,))
    for index in range(whole // 2):
        join(index, src.at(column=2 * index * lanes), src.at(column=(2 * index + 1) * lanes), piece)
    if whole > 1 and whole % 2:
        sequence.barrier()
        join(0, tmp, src.at(column=(whole - 1) * lanes), piece)
    if rest:
        sequence.barrier()
        join(0, tmp, src.at(column=whole * lanes), LineRegion(region.lines, rest))
    while count > 1:
        sequence.barrier()
        for index in range(count // 2):
            join(index, tmp.at(column=2 * index * lanes), tmp.at(column=(2 * index + 1) * lanes), piece)
        if count % 2:
            sequence.barrier()
            join(0, tmp, tmp.at(column=(count - 1) * lanes), piece)
        count //= 2
    sequence.barrier()
    return tmp, lanes


def _reduce(sequence: KernelSequence, reducing: str, region: LineRegion, dst: Tile, src: Operand) -> None:
    """Append one repeat per row, each with one result element."""
    sequence.mask(sequence.prefix(region.length, src.format))
    dense = dst.type.block_layout != "row_major"
    pitch = src.size if dense else dst.row_pitch
    limit = sequence.limit if src.line_step // BLOCK <= sequence.target.repeat.max_repeat_stride else 1

    def call(first: int, rows: int) -> StridedInstruction:
        result = packed(dst.address + first * pitch, dst.format, src.size, 1)
        if not dense:
            result = replace(result, packed=0, repeat_stride=pitch // BLOCK)
        return sequence.vector(reducing, rows, result, (src.at(first).down(),))

    sequence.calls(region.lines, limit, call)


def _multiply_out(sequence: KernelSequence, work: ResolvedTileOp, region: LineRegion, left: Operand) -> None:
    """Halve the rest of each row until a single block remains, which the scalar unit multiplies."""
    assert work.tmp is not None
    tmp = Operand(work.tmp.address, left.format, left.line_step)
    if left.address != tmp.address:
        sequence.down("vcopy", region, tmp, (left,))
        sequence.barrier()
    block, length = sequence.block_elements(left.format), region.length
    while length > block:
        kept = -(-length // (2 * block)) * block
        upper = LineRegion(region.lines, length - kept)
        sequence.down("vmul", upper, tmp, (tmp, tmp.at(column=kept)))
        sequence.barrier()
        length = kept
    _finish_on_scalars(sequence, region.lines, length)


def _reduce_by_blocks(sequence: KernelSequence, work: ResolvedTileOp, joining: str) -> None:
    """Row by row: all blocks joined into tmp, then its elements by the scalar unit."""
    src = work.sources[0]
    assert work.tmp is not None
    block = sequence.block_elements(src.format)
    origin, tmp = operand_of(src), Operand(work.tmp.address, src.format, 0)
    whole, rest = divmod(src.valid_cols, block)

    def row(inner: KernelSequence, number: int) -> None:
        inner.mask((1 << min(block, src.valid_cols)) - 1)
        line = origin.at(number)

        def joined(index: int) -> StridedInstruction:
            part = line.at(column=index * block)
            return inner.vector(joining, 1, tmp.down(), (tmp.down(), part.down()))

        def step(after: KernelSequence, index: int) -> None:
            after.add((joined(index + 1),))
            after.barrier()

        inner.issue("vcopy", 1, tmp.down(), (line.down(),))
        inner.barrier()
        inner.each(whole - 1, step)
        if rest and whole:
            inner.mask((1 << rest) - 1)
            inner.add((joined(whole),))
            inner.barrier()
        inner.await_vector()
        inner.work_of_scalars(min(block, src.valid_cols), "read")
        inner.add((inner.scalar("arithmetic"),))

    sequence.each(src.valid_rows, row)


def _finish_on_scalars(sequence: KernelSequence, rows: int, elements: int) -> None:
    """Append reads of `elements` elements of every row and the write of one result by the scalar unit."""
    sequence.await_vector()
    sequence.work_of_scalars(rows, *["read"] * elements, "arithmetic")


@lays_out("row_broadcast")
def lower_row_broadcast(sequence: KernelSequence, work: ResolvedTileOp, kernel: StridedOperation) -> None:
    """Append the instructions that combine every row with its element of a vector, then those on the results."""
    joining, *others = kernel.instructions
    dst, region = operand_of(work.dst), LineRegion(work.dst.valid_rows, work.dst.valid_cols)
    index = broadcast_place(work)
    values = work.sources[index]

    def join(first: int, rows: int, blocks: Operand) -> None:
        operands = [operand_of(source).at(first) for source in work.sources]
        operands[index] = blocks
        sequence.cover(joining, LineRegion(rows, region.length), dst.at(first), operands)

    if values.type.block_layout == "row_major":
        join(0, region.lines, Operand(values.address, values.format, values.row_pitch, shared=True))
    else:
        join_spread(sequence, work, values, region.lines, join)
    for instruction in others:
        sequence.barrier()
        sequence.cover(instruction, region, dst, (dst,), merges="always")


def broadcast_place(work: ResolvedTileOp) -> int:
    """Return the index of the broadcast source: the second, unless it has as many valid columns as the destination."""
    first, second = work.sources
    return 0 if second.valid_cols == work.dst.valid_cols != first.valid_cols else 1


def join_spread(sequence: KernelSequence, work: ResolvedTileOp, values: Tile, rows: int, join: Join) -> None:
    """Spread a column of values to a block per row, some rows at a time, and join each time."""
    window, spread = sequence.target.unreserved_scratch, sequence.target.broadcast_scratch
    if spread is None or (work.tmp is None and window is None):
        raise IllegalError(f"{work.mnemonic} of a column-major operand needs a tmp tile", span=work.span)
    start = work.tmp.address if work.tmp is not None else (window.start if window is not None else 0)
    size, per_repeat = values.element_bits // 8, sequence.repeat_blocks
    at_once = rows if rows < spread.limit else spread.most // spread.bytes * spread.rows
    for first in range(0, rows, at_once):
        count = min(at_once, rows - first)
        if first:
            sequence.barrier()
        sequence.mask(sequence.full)
        origin = Stream(values.address + first * size, values.format, 1, 0, per_repeat * size, per_repeat)
        sequence.issue("vbrcb", -(-count // per_repeat), Stream(start, values.format, 1, per_repeat), (origin,))
        sequence.barrier()
        join(first, count, Operand(start, values.format, BLOCK, shared=True))


@lays_out("row_expansion")
def lower_row_expansion(sequence: KernelSequence, work: ResolvedTileOp, _kernel: StridedOperation) -> None:
    """Append a row expansion: for every row, read its element and fill the row with it in count mode."""
    dst, fmt = work.dst, words(work.dst.format)
    length = -(-dst.valid_cols * dst.element_bits // fmt.storage_bits)
    base = operand_of(dst, fmt)
    sequence.await_vector()
    sequence.enter_count(length)

    def row(inner: KernelSequence, number: int) -> None:
        inner.add((inner.scalar("read"), *inner.counted("vector_dup", length, base.at(number), ())))

    sequence.each(dst.valid_rows, row)


@lays_out("quantisation")
def lower_quantisation(sequence: KernelSequence, work: ResolvedTileOp, kernel: StridedOperation) -> None:
    """Append a quantisation: for each parameter, spread it and combine it in place; then the three casts."""
    source, *parameters = work.sources
    tmp, dst = work.tmp, work.dst
    assert tmp is not None
    source_operand, region = operand_of(source), LineRegion(source.valid_rows, source.valid_cols)
    for instruction, tile in zip(kernel.instructions, parameters, strict=False):

        def join(first: int, rows: int, blocks: Operand, instruction: str = instruction) -> None:
            here = source_operand.at(first)
            sequence.cover(instruction, LineRegion(rows, region.length), here, (here, blocks))

        join_spread(sequence, work, tile, region.lines, join)
        sequence.barrier()
    whole, half = _as(source, tmp.address, "i32"), _as(source, source.address, "f16")
    byte = replace(dst, format=format_named("i8" if len(parameters) == 1 else "u8"))
    steps = ((source, whole, None), (whole, half, None), (half, byte, Saturation.ON))
    for number, (src, to, saturation) in enumerate(steps):
        rounding = None if number == 1 else RoundMode.RINT
        plan = plan_cast(sequence.target, src.format, to.format, rounding, saturation, scratch=False)
        sequence.leave_count()
        sequence.mask(sequence.full)
        sequence.add((emit_cast(sequence.target, plan, TileCast(src, to, None, rounding, saturation, work.span)).body,))
        sequence.barrier()


def _as(tile: Tile, address: int, element: str) -> Tile:
    """Return a tile of the same extents at another address, with elements of another format."""
    fmt: Format = format_named(element)
    return replace(
        tile, address=address, format=fmt, type=replace(tile.type, element=element), element_bits=fmt.storage_bits
    )


@lays_out("dequantisation")
def lower_dequantisation(sequence: KernelSequence, work: ResolvedTileOp, kernel: StridedOperation) -> None:
    """Append a dequantisation: widen every row into the result, then apply both parameters to every row.

    Each row waits for the scalar unit, which reads the parameters after all earlier work has ended.
    """
    source, dst = work.sources[0], work.dst
    length = dst.valid_cols
    origin, target = operand_of(source), operand_of(dst)
    half = format_named("f16")
    sequence.enter_count(length)

    def widened(inner: KernelSequence, number: int) -> None:
        to, line = target.at(number), origin.at(number)
        if source.element_bits == 8:
            between = Operand(to.address, half, to.line_step)
            inner.add(_in_count(inner, "vconv_s82f16", length, between, line))
            inner.barrier()
            inner.add(_in_count(inner, "vconv_f162f32", length, to, between))
        else:
            inner.add(_in_count(inner, "vconv_s162f32", length, to, line))
        inner.barrier()

    sequence.each(dst.valid_rows, widened)
    sequence.leave_count()
    sequence.enter_count(length)

    def scaled(inner: KernelSequence, number: int) -> None:
        inner.await_vector()
        inner.add((inner.scalar("read"), inner.scalar("read")))
        inner.await_scalar()
        for instruction in kernel.instructions:
            line = target.at(number)
            inner.add(inner.counted(instruction, length, line, (line,)))
            inner.barrier()

    sequence.each(dst.valid_rows, scaled)
    sequence.leave_count()


def _in_count(
    sequence: KernelSequence, mnemonic: str, length: int, dst: Operand, source: Operand
) -> tuple[StridedInstruction, ...]:
    """Return a conversion in count mode over one line: repeats of 64 elements, strided by the wider side."""
    lanes = sequence.lanes(format_named("f32"))
    to, origin = (Stream(operand.address, operand.format, 1, lanes * operand.size // 32) for operand in (dst, source))
    return (sequence.vector(mnemonic, -(-length // lanes), to, (origin,), mask=sequence.full, lanes=lanes),)


# Sorts, merges and gathers by pattern (docs/reference/pto.md section 7.7).


@lays_out("sort")
def lower_sort(sequence: KernelSequence, work: ResolvedTileOp, kernel: StridedOperation) -> None:
    """Append a sort: row by row, one repeat per group of 32; rows with a shorter last group are copied to tmp and
    padded.

    That the padding is a copy and a fill for each row is assumed.
    """
    (mnemonic,), (source, places) = kernel.instructions, work.sources
    dst, src, given = operand_of(work.dst), operand_of(source), operand_of(places)
    length, size = source.valid_cols, src.size
    groups, rest = -(-length // GROUP), length % GROUP
    tmp = work.tmp if rest else None
    pitch = -(-length * size // BLOCK) * BLOCK

    def row(inner: KernelSequence, number: int) -> None:
        start = src.at(number)
        numbers = given.at(number if places.valid_rows > 1 else 0)
        if tmp is not None:
            to = Operand(tmp.address + number * pitch, source.format, 0)
            inner.add((inner.copy(to, start, length * size),))
            inner.barrier()
            fill = packed(to.address + length * size // BLOCK * BLOCK, source.format, 0, BLOCK // size)
            inner.add((inner.vector("vector_dup", 1, fill, mask=inner.full),))
            inner.barrier()
            start = to
        count = min(GROUP, length)
        for first, repeats in inner.pieces(groups):
            step = first * GROUP
            streams = (
                packed(start.address + step * size, source.format, GROUP * size, count),
                packed(numbers.address + step * 4, places.format, GROUP * 4, count),
            )
            at = dst.at(number).address + step * PAIR_BYTES
            pairs = packed(at, dst.format, GROUP * PAIR_BYTES, count * PAIR_BYTES // size)
            inner.add((inner.vector(mnemonic, repeats, pairs, streams, mask=inner.full),))

    sequence.each(source.valid_rows, row)


@lays_out("merge")
def lower_merge(sequence: KernelSequence, work: ResolvedTileOp, kernel: StridedOperation) -> None:
    """Append a merge: row by row, one repeat per four blocks of a tile; lists of several tiles count as one.

    The first 32 bytes of a repeat's source represent the whole source.
    """
    (mnemonic,) = kernel.instructions
    dst, sources = operand_of(work.dst), [operand_of(source) for source in work.sources]
    length = block_pairs(work) if work.scalars else 0
    repeats = pairs_of(work.sources[0]) // (4 * length) if length else 1

    step, block = 4 * length * PAIR_BYTES, BLOCK // dst.size

    def row(inner: KernelSequence, number: int) -> None:
        for first, count in inner.pieces(repeats):
            starts = [operand.at(number).address + first * step for operand in (dst, *sources)]
            to, *streams = (packed(start, dst.format, step, block) for start in starts)
            inner.add((inner.vector(mnemonic, count, to, streams, mask=inner.full),))

    sequence.each(work.dst.valid_rows, row)


@lays_out("pattern_gather")
def lower_pattern_gather(sequence: KernelSequence, work: ResolvedTileOp, kernel: StridedOperation) -> None:
    """Append a gather by pattern: one instruction in count mode, a repeat for each row; rows are copied separately."""
    (mnemonic,), (source,) = kernel.instructions, work.sources
    dst, src = operand_of(work.dst), operand_of(source)
    if work.by_columns:
        times, first = _stride_of(work)
        length = work.dst.valid_cols
        for number in range(work.dst.valid_rows):
            origin = src.at(number * times + first)
            sequence.cover("vcopy", LineRegion(1, length), dst.at(number), (origin,), merges="always")
        return
    sequence.enter_count(source.valid_cols)
    for start, rows in sequence.pieces(source.valid_rows):
        to = packed(dst.at(start).address, dst.format, work.dst.row_pitch, work.dst.valid_cols)
        whole = packed(src.at(start).address, src.format, source.row_pitch, source.valid_cols)
        sequence.issue(mnemonic, rows, to, (whole,))


@lays_out("compare_gather")
def lower_comparing_gather(sequence: KernelSequence, work: ResolvedTileOp, kernel: StridedOperation) -> None:
    """Append a gather by comparison: for every row, compare into tmp, select indices by its bits, count on the scalar
    unit.

    Source: only the mutual wait of the vector and the scalar unit; that indices are ready is assumed.
    """
    compare, keep = kernel.instructions
    (source,), tmp = work.sources, scratch_of(work)
    dst, src, lanes = operand_of(work.dst), operand_of(source), sequence.lanes(source.format)
    repeats = -(-source.valid_cols // lanes)
    per_repeat = lanes // 8
    bits = packed(tmp.address, BITS, per_repeat, per_repeat)

    def row(inner: KernelSequence, number: int) -> None:
        whole = src.at(number).along(inner.repeat_blocks)
        inner.add((inner.vector(compare, repeats, bits, (whole,), mask=inner.full, lanes=lanes),))
        inner.barrier()
        kept = packed(dst.at(number).address, dst.format, 0, work.dst.valid_cols)
        inner.add((inner.vector(keep, 1, kept, (bits,), mask=inner.full),))
        inner.await_vector()
        inner.add((inner.scalar("read"), inner.scalar("write"), inner.scalar("loop")))
        inner.await_scalar()

    sequence.each(source.valid_rows, row)


def _stride_of(work: ResolvedTileOp) -> tuple[int, int]:
    """Return the distance of the selected rows, and the index of the first one."""
    assert work.pattern is not None
    digits = work.pattern[::-1]
    times = 4 // digits.count("1")
    return times, digits.index("1")


# Arg-reductions: the place of the greatest or least element of every row or column (docs/reference/pto.md 7.4, 7.5).
#
# Rows, as stated: one reducing instruction gives a pair of value and place for each repeat, another sorts out values
# and places; where a row has several repeats, a second stage does so with their values; the scalar unit, between
# flags, makes the result of what is left. Columns: no source; compared row by row with the best so far, which lies in
# tmp. Where the steps lie in tmp is assumed.


@lays_out("row_argument")
def lower_row_argument(sequence: KernelSequence, work: ResolvedTileOp, kernel: StridedOperation) -> None:
    """Append a row arg-reduction: reduce every repeat to a pair, separate the pairs, repeat for longer rows, finish on
    scalars."""
    reduce, separate = kernel.instructions
    (src,), tmp = work.sources, scratch_of(work)
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
            pairs = packed(tmp.address + (first * pieces + piece) * step, src.format, pieces * step, 2)
            sequence.issue(reduce, min(limit, rows - first), pairs, (line.at(first).down(),))
    left = 1
    sequence.mask(sequence.full)
    if pieces > 1:
        for offset in (places.values, places.places):
            _separate(sequence, separate, rows * pieces, src.format, tmp.address, tmp.address + offset)
        sequence.barrier()
        sequence.mask(sequence.prefix(pieces, src.format))
        left = -(-pieces // lanes)
        for first, repeats in sequence.pieces(rows):
            start = tmp.address + places.values + first * pieces * size
            values = packed(start, src.format, pieces * size, min(pieces, lanes))
            pairs = packed(tmp.address + places.second + first * step, src.format, step, 2)
            sequence.issue(reduce, repeats, pairs, (values,))
        sequence.mask(sequence.full)
    else:
        _separate(sequence, separate, rows, src.format, tmp.address, tmp.address + places.values)
    _finish(sequence, rows, 1 if pieces == 1 else 2 * left)


def _separate(sequence: KernelSequence, mnemonic: str, pairs: int, fmt: Format, start: int, to: int) -> None:
    """Pack one member of each pair."""
    lanes, size = sequence.lanes(fmt), fmt.storage_bits // 8
    sequence.barrier()
    for first, repeats in sequence.pieces(-(-2 * pairs // lanes)):
        half = lanes // 2 * size
        chosen = packed(to + first * half, fmt, half, min(lanes // 2, pairs))
        whole = packed(start + first * lanes * size, fmt, lanes * size, min(lanes, 2 * pairs))
        sequence.issue(mnemonic, repeats, chosen, (whole,))


def _finish(sequence: KernelSequence, rows: int, reads: int) -> None:
    """Append the scalar work that computes the result of every row from elements of tmp."""
    sequence.await_vector()
    sequence.work_of_scalars(rows, *["read"] * reads, *["arithmetic"] * (reads > 1), "write", "loop")
    sequence.await_scalar()


@lays_out("column_argument")
def lower_column_argument(sequence: KernelSequence, work: ResolvedTileOp, kernel: StridedOperation) -> None:
    """Append a column arg-reduction: start from row 0; for every further row compare, keep the better element and its
    number."""
    compare, better = kernel.instructions
    (src,), tmp = work.sources, scratch_of(work)
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

    def row(inner: KernelSequence, number: int) -> None:
        line = rows.at(number + 1)
        for first in range(0, length, lanes):
            comparison = packed(bits + first // 8, BITS, lanes // 8, -(-min(lanes, length - first) // 8))
            origins = [operand.at(column=first).along(sequence.repeat_blocks) for operand in (line, best)]
            mask = sequence.prefix(length - first, src.format)
            inner.add((inner.vector(compare, 1, comparison, origins, mask=mask, lanes=lanes),))
        inner.barrier()
        inner.add(inner.counted(better, length, best, (best, line)))
        inner.add((inner.control("cmpmask", bits),))
        inner.add(inner.counted("vector_dup", length, dst, ()))
        inner.barrier()

    sequence.each(src.valid_rows - 1, row)


def lower_work(target: StridedRepeatTarget, work: ResolvedTileOp) -> Block:
    """Return the instructions of one vector operation with a valid region that is not empty.

    Raises:
        IllegalError: the operation does not exist, or masks are counts when the kernel starts.
    """
    kernel = target.tile_operation(work.mnemonic)
    if kernel is None:
        raise IllegalError(
            f"pto.{work.mnemonic} is not modelled on {target.name}",
            span=work.span,
            legal=closest(work.mnemonic, [rule.mnemonic for rule in target.tile_operations]),
        )
    if target.option("count_mask_at_start"):
        raise IllegalError(
            f"count mode is on (option count_mask_at_start): it would read the lane masks of {work.mnemonic} as counts",
            span=work.span,
            legal=("count_mask_at_start = 0",),
        )
    separate = kernel.lines == "up_to_repeat" and target.option("scalar_rows") == "separate"
    sequence = KernelSequence(target, "never" if separate else kernel.lines)
    LAYOUTS[kernel.structure](sequence, work, kernel)
    return sequence.close()
