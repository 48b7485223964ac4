"""Quantisation to 8 bits and the way back (docs/reference/pto.md section 7.12).

Facts: pto-isa include/pto/npu/a2a3 @ 3186c381, TQuant.hpp and TDequant.hpp. No published cycles time them: they are
those of their instructions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from castsim.execution.tiles import ResolvedTileOp, Tile, TileCast
from castsim.execution.tree import Block, Node, loop_of
from castsim.isa.errors import IllegalError
from castsim.isa.formats import FloatFormat, Format, format_named
from castsim.isa.modes import Saturation
from castsim.isa.pto.program import RoundMode
from castsim.machines.strided.audit import emit_cast
from castsim.machines.strided.kernel_sequence import KernelSequence, Operand, Region, operand_of, words
from castsim.machines.strided.kernels_elementwise import always, merges_of
from castsim.machines.strided.operations import BLOCK, Stream, VectorOperation
from castsim.machines.strided.plan import plan_cast
from castsim.targets.strided_repeat import StridedOperation

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


def lower_row_reduction(sequence: KernelSequence, work: ResolvedTileOp, kernel: StridedOperation) -> None:
    """Append the instructions of a row reduction: the one that joins, and the one that reduces if there is one."""
    (joining, *reducing), src = kernel.instructions, work.sources[0]
    if work.tmp is None:
        raise IllegalError(f"{work.mnemonic} needs a tmp tile", span=work.span)
    if not isinstance(src.format, FloatFormat):
        _reduce_by_blocks(sequence, work, joining)
        return
    region = Region(src.valid_rows, src.valid_cols)
    left, length = _join_pieces(sequence, work, joining, region)
    if reducing:
        _reduce(sequence, reducing[0], Region(region.lines, length), work.dst, left)
    else:
        _multiply_out(sequence, work, Region(region.lines, length), left)


def _join_pieces(sequence: KernelSequence, work: ResolvedTileOp, joining: str, region: Region) -> tuple[Operand, int]:
    """Join the repeats of every row until one is left; return where it lies and how long it is."""
    src, lanes = operand_of(work.sources[0]), sequence.lanes(work.sources[0].format)
    whole, rest = divmod(region.length, lanes)
    if whole + (1 if rest else 0) == 1:
        return src, region.length
    assert work.tmp is not None
    piece = Region(region.lines, lanes)
    count = max(1, whole // 2)
    packed, own = count * lanes * src.size, operand_of(work.tmp, src.format).line_step
    roomy = own >= packed and region.lines * own <= work.tmp.size
    tmp = Operand(work.tmp.address, src.format, own if roomy else packed)

    def join(dst: int, one: Operand, two: Operand, part: Region) -> None:
        sequence.down(joining, part, tmp.at(column=dst * lanes), (one, two))

    if whole == 1:
        sequence.down("vcopy", piece, tmp, (src,))
    for index in range(whole // 2):
        join(index, src.at(column=2 * index * lanes), src.at(column=(2 * index + 1) * lanes), piece)
    if whole > 1 and whole % 2:
        sequence.barrier()
        join(0, tmp, src.at(column=(whole - 1) * lanes), piece)
    if rest:
        sequence.barrier()
        join(0, tmp, src.at(column=whole * lanes), Region(region.lines, rest))
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


def _reduce(sequence: KernelSequence, reducing: str, region: Region, dst: Tile, src: Operand) -> None:
    """One repeat per row, one element of result each."""
    sequence.mask(sequence.prefix(region.length, src.format))
    dense = dst.type.block_layout != "row_major"
    pitch = src.size if dense else dst.row_pitch
    limit = sequence.limit if src.line_step // BLOCK <= sequence.target.repeat.max_repeat_stride else 1

    def call(first: int, rows: int) -> Node:
        address = dst.address + first * pitch
        result = (
            Stream(address, dst.format, 1, 0, src.size, 1)
            if dense
            else Stream(address, dst.format, 1, pitch // BLOCK, 0, 1)
        )
        return sequence.vector(reducing, rows, result, (src.at(first).down(),))

    whole, rest = divmod(region.lines, limit)
    sequence.add(loop_of(whole, lambda index: Block((call(index * limit, limit),))))
    if rest:
        sequence.add((call(whole * limit, rest),))


def _multiply_out(sequence: KernelSequence, work: ResolvedTileOp, region: Region, left: Operand) -> None:
    """Halve what is left of each row until it is a block, which the scalar unit multiplies out."""
    assert work.tmp is not None
    tmp = Operand(work.tmp.address, left.format, left.line_step)
    if left.address != tmp.address:
        sequence.down("vcopy", region, tmp, (left,))
        sequence.barrier()
    block, length = sequence.block_elements(left.format), region.length
    while length > block:
        kept = -(-length // (2 * block)) * block
        upper = Region(region.lines, length - kept)
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

    def row(number: int) -> Block:
        inner = KernelSequence(sequence.target)
        inner.mask((1 << min(block, src.valid_cols)) - 1)
        line = origin.at(number)

        def joined(index: int) -> VectorOperation:
            part = line.at(column=index * block)
            return inner.vector(joining, 1, tmp.down(), (tmp.down(), part.down()))

        inner.issue("vcopy", 1, tmp.down(), (line.down(),))
        inner.barrier()

        def step(index: int) -> Block:
            after = KernelSequence(sequence.target)
            after.add((joined(index + 1),))
            after.barrier()
            return after.close()

        inner.add(loop_of(whole - 1, step))
        if rest and whole:
            inner.mask((1 << rest) - 1)
            inner.add((joined(whole),))
            inner.barrier()
        inner.await_vector()
        inner.add(loop_of(min(block, src.valid_cols), lambda _: Block((inner.scalar("read"),))))
        inner.add((inner.scalar("arithmetic"),))
        return inner.close()

    sequence.add(loop_of(src.valid_rows, row))


def _finish_on_scalars(sequence: KernelSequence, rows: int, elements: int) -> None:
    """Let the scalar unit read `elements` of every row and write one result."""
    sequence.await_vector()
    reads = tuple(sequence.scalar("read") for _ in range(elements))
    sequence.add(loop_of(rows, lambda _: Block((*reads, sequence.scalar("arithmetic")))))


def lower_row_broadcast(sequence: KernelSequence, work: ResolvedTileOp, kernel: StridedOperation) -> None:
    """Append the instructions that join every row with its element of a vector, then those on what they gave."""
    joining, *others = kernel.instructions
    dst, region = operand_of(work.dst), Region(work.dst.valid_rows, work.dst.valid_cols)
    place = broadcast_place(work)
    values = work.sources[place]

    def join(first: int, rows: int, blocks: Operand) -> None:
        operands = [operand_of(source).at(first) for source in work.sources]
        operands[place] = blocks
        sequence.cover(
            joining, Region(rows, region.length), dst.at(first), operands, merges=merges_of(sequence.target, kernel)
        )

    if values.type.block_layout == "row_major":
        join(0, region.lines, Operand(values.address, values.format, values.row_pitch, shared=True))
    else:
        join_spread(sequence, work, values, region.lines, join)
    for instruction in others:
        sequence.barrier()
        sequence.cover(instruction, region, dst, (dst,), merges=always)


def broadcast_place(work: ResolvedTileOp) -> int:
    """Return which source is broadcast: the second, unless it is the one that has the destination's valid columns."""
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


def lower_row_expansion(sequence: KernelSequence, work: ResolvedTileOp, _kernel: StridedOperation) -> None:
    """Append, for every row: read its element, fill the row with it in count mode."""
    dst, fmt = work.dst, words(work.dst.format)
    length = -(-dst.valid_cols * dst.element_bits // fmt.storage_bits)
    base = operand_of(dst, fmt)
    sequence.await_vector()
    sequence.enter_count(length)

    def row(number: int) -> Block:
        filled = sequence.counted("vector_dup", length, base.at(number), ())
        return Block((sequence.scalar("read"), *filled))

    sequence.add(loop_of(dst.valid_rows, row))


def lower_quantisation(sequence: KernelSequence, work: ResolvedTileOp, kernel: StridedOperation) -> None:
    """Append, for each parameter, the spreading and the joining in place, then the casts to and fro."""
    source, *parameters = work.sources
    tmp, dst = work.tmp, work.dst
    assert tmp is not None
    place, region = operand_of(source), Region(source.valid_rows, source.valid_cols)
    for instruction, tile in zip(kernel.instructions, parameters, strict=False):

        def join(first: int, rows: int, blocks: Operand, instruction: str = instruction) -> None:
            here = place.at(first)
            merges = merges_of(sequence.target, kernel)
            sequence.cover(instruction, Region(rows, region.length), here, (here, blocks), merges=merges)

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
    """Return a tile of the same extents at another address, of elements of another format."""
    fmt: Format = format_named(element)
    return replace(
        tile, address=address, format=fmt, type=replace(tile.type, element=element), element_bits=fmt.storage_bits
    )


def lower_dequantisation(sequence: KernelSequence, work: ResolvedTileOp, kernel: StridedOperation) -> None:
    """Append, for every row: widened in place of the result; then, for every row, the parameters' two instructions.

    Each row waits for the scalar unit, which reads the parameters once what came before has ended.
    """
    source, dst = work.sources[0], work.dst
    length = dst.valid_cols
    origin, place = operand_of(source), operand_of(dst)
    half = format_named("f16")
    sequence.enter_count(length)

    def widened(number: int) -> Block:
        inner = KernelSequence(sequence.target)
        to, line = place.at(number), origin.at(number)
        if source.element_bits == 8:
            between = Operand(to.address, half, to.line_step)
            inner.add(_in_count(inner, "vconv_s82f16", length, between, line))
            inner.barrier()
            inner.add(_in_count(inner, "vconv_f162f32", length, to, between))
        else:
            inner.add(_in_count(inner, "vconv_s162f32", length, to, line))
        inner.barrier()
        return inner.close()

    sequence.add(loop_of(dst.valid_rows, widened))
    sequence.leave_count()
    sequence.enter_count(length)

    def scaled(number: int) -> Block:
        inner = KernelSequence(sequence.target)
        inner.await_vector()
        inner.add((inner.scalar("read"), inner.scalar("read")))
        inner.await_scalar()
        for instruction in kernel.instructions:
            line = place.at(number)
            inner.add(inner.counted(instruction, length, line, (line,)))
            inner.barrier()
        return inner.close()

    sequence.add(loop_of(dst.valid_rows, scaled))
    sequence.leave_count()


def _in_count(
    sequence: KernelSequence, mnemonic: str, length: int, dst: Operand, source: Operand
) -> tuple[VectorOperation, ...]:
    """Return a conversion in count mode over one line: repeats of 64 elements, as long as those of the wider side."""
    lanes = sequence.lanes(format_named("f32"))
    to, origin = (Stream(each.address, each.format, 1, lanes * each.size // 32) for each in (dst, source))
    return (sequence.vector(mnemonic, -(-length // lanes), to, (origin,), mask=sequence.full, lanes=lanes),)
