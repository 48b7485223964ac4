"""Lowering of one vector operation on tiles to the strided-repeat instructions that the chip's library issues.

Source: docs/reference/pto.md section 7 (operations, operands, scratch), docs/reference/a2a3.md section 6 (instructions
derived from published cycles). The target's data name the kernel of an operation; assumptions are stated in its row and
in the module of the structure.
"""

from __future__ import annotations

from collections.abc import Callable

from castsim.execution.pipe_operations import BLOCK
from castsim.execution.tree import Block, ResolvedTileOp, Tile, TileCast, loop_of
from castsim.execution.vector_operations.rearranging import GROUP, block_pairs, pairs_of
from castsim.execution.vector_operations.shapes import is_column
from castsim.isa.dataclass import replace
from castsim.isa.errors import IllegalError
from castsim.isa.formats import FloatFormat, Format, Saturation, format_named
from castsim.isa.pto.program import RoundMode
from castsim.isa.pto.vector_operations import PAIR_BYTES, VECTOR_OPERATIONS
from castsim.machines.strided.audit import emit_cast
from castsim.machines.strided.kernel_sequence import (
    KernelSequence,
    LineRegion,
    Operand,
    operand_of,
    packed,
    scratch_of,
    words,
)
from castsim.machines.strided.kernels_elementwise import (
    always,
    merges_of,
    never,
)
from castsim.machines.strided.plan import plan_cast
from castsim.machines.strided.strided_instructions import Stream, StridedInstruction
from castsim.targets.strided_repeat import StridedOperation

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

    def join(dst: int, one: Operand, two: Operand, part: LineRegion) -> None:
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


def lower_row_broadcast(sequence: KernelSequence, work: ResolvedTileOp, kernel: StridedOperation) -> None:
    """Append the instructions that combine every row with its element of a vector, then those on the results."""
    joining, *others = kernel.instructions
    dst, region = operand_of(work.dst), LineRegion(work.dst.valid_rows, work.dst.valid_cols)
    place = broadcast_place(work)
    values = work.sources[place]

    def join(first: int, rows: int, blocks: Operand) -> None:
        operands = [operand_of(source).at(first) for source in work.sources]
        operands[place] = blocks
        sequence.cover(
            joining, LineRegion(rows, region.length), dst.at(first), operands, merges=merges_of(sequence.target, kernel)
        )

    if values.type.block_layout == "row_major":
        join(0, region.lines, Operand(values.address, values.format, values.row_pitch, shared=True))
    else:
        join_spread(sequence, work, values, region.lines, join)
    for instruction in others:
        sequence.barrier()
        sequence.cover(instruction, region, dst, (dst,), merges=always)


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


def lower_quantisation(sequence: KernelSequence, work: ResolvedTileOp, kernel: StridedOperation) -> None:
    """Append a quantisation: for each parameter, spread it and combine it in place; then the three casts."""
    source, *parameters = work.sources
    tmp, dst = work.tmp, work.dst
    assert tmp is not None
    place, region = operand_of(source), LineRegion(source.valid_rows, source.valid_cols)
    for instruction, tile in zip(kernel.instructions, parameters, strict=False):

        def join(first: int, rows: int, blocks: Operand, instruction: str = instruction) -> None:
            here = place.at(first)
            merges = merges_of(sequence.target, kernel)
            sequence.cover(instruction, LineRegion(rows, region.length), here, (here, blocks), merges=merges)

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


def lower_dequantisation(sequence: KernelSequence, work: ResolvedTileOp, kernel: StridedOperation) -> None:
    """Append a dequantisation: widen every row into the result, then apply both parameters to every row.

    Each row waits for the scalar unit, which reads the parameters after all earlier work has ended.
    """
    source, dst = work.sources[0], work.dst
    length = dst.valid_cols
    origin, place = operand_of(source), operand_of(dst)
    half = format_named("f16")
    sequence.enter_count(length)

    def widened(inner: KernelSequence, number: int) -> None:
        to, line = place.at(number), origin.at(number)
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
            line = place.at(number)
            inner.add(inner.counted(instruction, length, line, (line,)))
            inner.barrier()

    sequence.each(dst.valid_rows, scaled)
    sequence.leave_count()


def _in_count(
    sequence: KernelSequence, mnemonic: str, length: int, dst: Operand, source: Operand
) -> tuple[StridedInstruction, ...]:
    """Return a conversion in count mode over one line: repeats of 64 elements, strided by the wider side."""
    lanes = sequence.lanes(format_named("f32"))
    to, origin = (Stream(each.address, each.format, 1, lanes * each.size // 32) for each in (dst, source))
    return (sequence.vector(mnemonic, -(-length // lanes), to, (origin,), mask=sequence.full, lanes=lanes),)


# Sorts, merges and gathers by pattern (docs/reference/pto.md section 7.7).


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


def lower_merge(sequence: KernelSequence, work: ResolvedTileOp, kernel: StridedOperation) -> None:
    """Append a merge: row by row, one repeat per four blocks of a tile; lists of several tiles count as one.

    The first 32 bytes of a repeat's source represent the whole source.
    """
    (mnemonic,) = kernel.instructions
    dst, sources = operand_of(work.dst), [operand_of(source) for source in work.sources]
    length = block_pairs(work) if work.scalars else 0
    repeats = pairs_of(work.sources[0]) // (4 * length) if length else 1

    step, one = 4 * length * PAIR_BYTES, BLOCK // dst.size

    def row(inner: KernelSequence, number: int) -> None:
        for first, count in inner.pieces(repeats):
            starts = [each.at(number).address + first * step for each in (dst, *sources)]
            to, *streams = (packed(start, dst.format, step, one) for start in starts)
            inner.add((inner.vector(mnemonic, count, to, streams, mask=inner.full),))

    sequence.each(work.dst.valid_rows, row)


def lower_pattern_gather(sequence: KernelSequence, work: ResolvedTileOp, kernel: StridedOperation) -> None:
    """Append a gather by pattern: one instruction in count mode, a repeat for each row; rows are copied separately."""
    (mnemonic,), (source,) = kernel.instructions, work.sources
    dst, src = operand_of(work.dst), operand_of(source)
    if work.by_columns:
        times, first = _stride_of(work)
        length = work.dst.valid_cols
        for number in range(work.dst.valid_rows):
            origin = src.at(number * times + first)
            sequence.cover("vcopy", LineRegion(1, length), dst.at(number), (origin,), merges=always)
        return
    sequence.enter_count(source.valid_cols)
    for start, rows in sequence.pieces(source.valid_rows):
        to = packed(dst.at(start).address, dst.format, work.dst.row_pitch, work.dst.valid_cols)
        whole = packed(src.at(start).address, src.format, source.row_pitch, source.valid_cols)
        sequence.issue(mnemonic, rows, to, (whole,))


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
    bits = packed(tmp.address, format_named("i8"), per_repeat, per_repeat)

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
    return packed(tile.address + row * tile.row_pitch + repeat * lanes // 8, _BITS, lanes // 8, lanes // 8)


def lower_comparison(sequence: KernelSequence, work: ResolvedTileOp, kernel: StridedOperation) -> None:
    """Append a comparison: whole repeats of every row; `ne` inverts `eq` over the whole destination tile."""
    first, lanes = work.sources[0], sequence.lanes(work.sources[0].format)
    (mnemonic,) = kernel.instructions
    repeats = -(-first.valid_cols // lanes)
    sequence.add((sequence.control("mask", sequence.full, changes=False),))

    def row(inner: KernelSequence, number: int) -> None:
        for begin, count in inner.pieces(repeats):
            moved = (operand_of(source).at(number, begin * lanes) for source in work.sources)
            dst = _bits(work.dst, number, lanes, begin)
            row = f"{mnemonic}_partial" if count * lanes // 8 % BLOCK else mnemonic
            origins = [one.along(inner.repeat_blocks) for one in moved]
            inner.add((inner.vector(mnemonic, count, dst, origins, mask=inner.full, lanes=lanes, timing=row),))

    sequence.each(first.valid_rows, row)
    sequence.add((sequence.control("mask", sequence.full, changes=False),))
    if work.mode == "ne":
        sequence.barrier()
        tile = operand_of(work.dst, _WORDS)
        sequence.cover("vnot", LineRegion(1, work.dst.size // tile.size), tile, (tile,), merges=always)


def lower_selection(sequence: KernelSequence, work: ResolvedTileOp, kernel: StridedOperation) -> None:
    """Append a selection: per row, load the address of its mask into tmp and the compare mask register, then select."""
    tmp, mask = work.tmp, work.mask
    assert tmp is not None
    assert mask is not None
    length, lanes = work.dst.valid_cols, sequence.lanes(work.dst.format)
    address = Stream(tmp.address, tmp.format, 1, 0)
    one_block = (1 << sequence.block_elements(tmp.format)) - 1
    whole, rest = divmod(length, lanes)

    def row(inner: KernelSequence, number: int) -> None:
        inner.add((inner.control("mask", one_block), inner.vector("vector_dup", 1, address, mask=one_block)))
        inner.barrier()
        inner.add((inner.control("cmpmask", tmp.address),))
        inner.barrier()
        operands = [operand_of(tile).at(number) for tile in (work.dst, *work.sources)]
        for first, repeats, chosen in ((0, whole, inner.full), (whole, 1 if rest else 0, (1 << rest) - 1)):
            if repeats:
                to, *origins = (one.at(column=first * lanes).along(inner.repeat_blocks) for one in operands)
                sources = (*origins, _bits(mask, number, lanes, first))
                selected = inner.vector(kernel.instructions[0], repeats, to, sources, mask=chosen)
                inner.add((inner.control("mask", chosen), selected))

    sequence.add((sequence.control("ctrl", sequence.normal_ctrl),))
    sequence.each(work.dst.valid_rows, row)
    sequence.add((sequence.control("ctrl", sequence.normal_ctrl), sequence.control("mask", sequence.full)))


def lower_scalar_selection(sequence: KernelSequence, work: ResolvedTileOp, kernel: StridedOperation) -> None:
    """Append a selection by a scalar, in count mode: the scalar into tmp, then per row the mask's address and the
    selection."""
    tmp, mask = work.tmp, work.mask
    assert tmp is not None
    assert mask is not None
    dst, src, lanes = operand_of(work.dst), operand_of(work.sources[0]), sequence.lanes(work.dst.format)
    region, scalar = LineRegion(work.dst.valid_rows, work.dst.valid_cols), operand_of(tmp, work.dst.format)
    sequence.add((sequence.scalar("arithmetic"),))
    sequence.barrier()
    sequence.enter_count(region.length)

    scalars = packed(scalar.address, scalar.format, 0, 1)

    def row(inner: KernelSequence, number: int) -> None:
        inner.add((inner.control("cmpmask", mask.address), inner.control("mask", region.length)))
        done = 0
        for operation in inner.counted(kernel.instructions[0], region.length, dst.at(number), (src.at(number),)):
            extra = (replace(scalars, block_stride=0), _bits(mask, number, lanes, done))
            inner.add((replace(operation, sources=(*operation.sources, *extra), timing="vsel_scalar"),))
            done += operation.repeats

    sequence.each(region.lines, row)


# Moves and padding: whole blocks are copied, everything outside is filled.
#
# The published rows of tmov are a block per cycle and five cycles per copy instruction, one per row unless the tile is
# fully valid (docs/reference/a2a3.md section 6.3: 1029, 1323 and 120 cycles). They are the same for column-major
# tiles, whose copies are therefore counted by rows as well, whatever bytes each of them takes; what all of them move
# is said elsewhere. How tfillpad fills is assumed.


def lower_move(sequence: KernelSequence, work: ResolvedTileOp, _kernel: StridedOperation) -> None:
    """Append a move: copies of the elements that both tiles have."""
    src, dst = work.sources[0], work.dst
    rows, cols = min(src.valid_rows, dst.valid_rows), min(src.valid_cols, dst.valid_cols)
    _copy(sequence, dst, src, LineRegion(rows, cols))


def lower_fill(sequence: KernelSequence, work: ResolvedTileOp, _kernel: StridedOperation) -> None:
    """Append a fill: copies of the source, unless it is the destination, and the padding around it."""
    src, dst = work.sources[0], work.dst
    if not VECTOR_OPERATIONS[work.mnemonic].in_place and src.valid_rows and src.valid_cols:
        _copy(sequence, dst, src, LineRegion(src.valid_rows, src.valid_cols))
        sequence.barrier()
    _fill(sequence, dst, src)


def _copy(sequence: KernelSequence, dst: Tile, src: Tile, region: LineRegion) -> None:
    """Copy rows in whole blocks, all at once if they are contiguous."""
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
        for line, repeats in sequence.pieces(rows):
            stream = Stream(base.at(line).address + whole - BLOCK, fmt, 1, dst.row_pitch // BLOCK)
            sequence.issue("vector_dup", repeats, stream)
    if rows and whole < end:
        region = LineRegion(rows, (end - whole) // unit)
        sequence.cover("vector_dup", region, base.at(column=whole // unit), (), merges=never)
    below = dst.valid_rows - src.valid_rows
    if below > 0:
        sequence.cover("vector_dup", LineRegion(below, end // unit), base.at(src.valid_rows), (), merges=always)
