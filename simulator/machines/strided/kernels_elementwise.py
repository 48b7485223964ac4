"""Kernels without reductions along rows: tile with tile, tile with scalar, one tile, columns, selections, moves.

Adjacent lines (docs/reference/a2a3.md section 6.2): operations on two tiles merge those that are whole repeats (16 x
256 of f16: one call of 32 repeats) and process shorter ones separately; those with a scalar merge shorter ones too,
unless an option selects an older library (7 x 448 of f32: seven calls of 7); both process longer partial
repeats together in count mode. Those on one tile merge all (32 x 32 of f16: 8 repeats). For a single line, all make
one call: assumed.
"""

from __future__ import annotations

from collections.abc import Sequence

from castsim.execution.tree import Block, ResolvedTileOp, Tile, loop_of
from castsim.execution.vector_operations.shapes import BLOCK, is_column, transposes_by_blocks, widens
from castsim.isa.dataclass import replace
from castsim.isa.errors import IllegalError
from castsim.isa.formats import format_named
from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS
from castsim.machines.strided.kernel_sequence import (
    BITS,
    WORDS,
    KernelSequence,
    LineRegion,
    Operand,
    lays_out,
    operand_of,
    packed,
    region_of,
    scratch_of,
    words,
)
from castsim.machines.strided.strided_instructions import Stream
from castsim.targets.strided_repeat import StridedOperation

_THROUGH_FLOAT = {32: ("vconv_s322f32", "vconv_f322s32z"), 16: ("vconv_s162f16", "vconv_f162s16z")}
"""Instructions that convert integers to floats of the same width and back, by their bits."""


def chained(
    sequence: KernelSequence,
    kernel: StridedOperation,
    region: LineRegion,
    dst: Operand,
    sources: Sequence[Operand],
    *,
    third: Operand | None = None,
    merges: str | None = None,
) -> None:
    """Append dependent instructions: the first on the sources, the others in place.

    A `third` operand is combined with the others; `merges` applies to the others, by default as for the kernel.
    """
    first, *others = kernel.instructions
    sequence.cover(first, region, dst, sources)
    for instruction in others:
        sequence.barrier()
        sequence.cover(instruction, region, dst, (dst,) if third is None else (dst, third), merges=merges)


@lays_out("elementwise")
def lower_elementwise(sequence: KernelSequence, work: ResolvedTileOp, kernel: StridedOperation) -> None:
    """Append an elementwise operation; its later instructions use the third source."""
    fmt = words(work.dst.format)
    region, dst = region_of(work.dst), operand_of(work.dst, fmt)
    if fmt != work.dst.format:
        region = LineRegion(region.lines, -(-region.length * work.dst.element_bits // fmt.storage_bits))
    if widens(work, VECTOR_OPERATIONS[work.mnemonic]):
        sequence.columns(kernel.instructions[0], region, dst, (operand_of(work.sources[0]), dst))
        return
    sources = [operand_of(source, fmt) for source in work.sources]
    if VECTOR_OPERATIONS[work.mnemonic].accumulates:
        sources.append(dst)
    third = sources.pop() if len(work.sources) > 2 else None
    chained(sequence, kernel, region, dst, sources, third=third)


@lays_out("part")
def lower_part(sequence: KernelSequence, work: ResolvedTileOp, kernel: StridedOperation) -> None:
    """Append an operation on two tiles of which one may cover less: copy the larger one and combine the other with it.

    Source: none; assumed.
    """
    join, copy = kernel.instructions
    region, dst = region_of(work.dst), operand_of(work.dst)
    smaller, larger = sorted(work.sources, key=lambda one: one.valid_rows * one.valid_cols)
    if region_of(smaller) == region:
        sequence.cover(join, region, dst, [operand_of(source) for source in work.sources])
        return
    sequence.cover(copy, region, dst, (operand_of(larger),))
    if smaller.valid_rows and smaller.valid_cols:
        sequence.barrier()
        sequence.cover(join, region_of(smaller), dst, (dst, operand_of(smaller)))


@lays_out("combination")
def lower_combination(sequence: KernelSequence, work: ResolvedTileOp, kernel: StridedOperation) -> None:
    """Append every instruction of each result over all rows, one column of repeats at a time.

    A repeat processes as many elements as its widest operand has lanes; operands with another number of columns
    contribute an equal share. Source: none; assumed.
    """
    outputs = (work.dst, *work.further)
    lanes = sequence.lanes(max((*outputs, *work.sources), key=lambda tile: tile.element_bits).format)
    for output in outputs:
        for number, mnemonic in enumerate(kernel.instructions):
            if number:
                sequence.barrier()
            for start in range(0, output.valid_cols, lanes):
                width = min(lanes, output.valid_cols - start)
                sequence.mask((1 << width) - 1 if width < lanes else sequence.full)
                for first, repeats in sequence.pieces(output.valid_rows):
                    to, *origins = (
                        _part_of_rows(tile, output.valid_cols, first, start, width) for tile in (output, *work.sources)
                    )
                    sequence.add((sequence.vector(mnemonic, repeats, to, origins, lanes=lanes),))


def _part_of_rows(tile: Tile, columns: int, row: int, start: int, width: int) -> Stream:
    """Return a number of columns of `columns`, from a row and column on, as a part of a tile's."""
    size = tile.element_bits // 8
    first, share = start * tile.valid_cols // columns, -(-width * tile.valid_cols // columns)
    return packed(tile.address + row * tile.row_pitch + first * size, tile.format, tile.row_pitch, max(share, 1))


@lays_out("division")
def lower_division(sequence: KernelSequence, work: ResolvedTileOp, kernel: StridedOperation) -> None:
    """Append a division with a scalar, which first fills the destination (docs/reference/pto.md section 7.3).

    The model's figures correspond to a fill, a barrier and a division (196 for 32 x 64 of f32). In place a float is
    multiplied by the reciprocal; an integer is converted to the float of its width, in place.
    """
    divide, multiply = kernel.instructions
    region, dst, src = region_of(work.dst), operand_of(work.dst), operand_of(work.sources[0])
    arithmetic = sequence.target.tile_arithmetic
    if work.dst.address == work.sources[0].address and work.dst.format.name in arithmetic.in_place_reciprocal:
        sequence.cover(multiply, region, dst, (src,))
        return
    integer = work.dst.format.name in dict(arithmetic.divides_through)
    forth, back = _THROUGH_FLOAT.get(work.dst.format.storage_bits, ("", ""))
    if integer:
        sequence.columns(forth, region, src, (src,), "vconv")
    sequence.cover("vector_dup", region, dst, ())
    sequence.barrier()
    scalar_first = work.scalar_first or VECTOR_OPERATIONS[work.mnemonic].divides_constant
    sequence.cover(divide, region, dst, (dst, src) if scalar_first else (src, dst))
    if integer:
        sequence.barrier()
        sequence.columns(back, region, dst, (dst,), "vconv")


@lays_out("reciprocal_root")
def lower_reciprocal_root(sequence: KernelSequence, work: ResolvedTileOp, kernel: StridedOperation) -> None:
    """Append a reciprocal root: one estimate, or with scratch the root and a division of ones by it.

    Adjacent lines use count mode: the model's 53 cycles for 64 x 64, for f32 and f16 alike, correspond to two mask
    switches, a fill of one repeat, a root, a barrier and a division whose repeats it ignores.
    """
    estimate, root, divide = kernel.instructions
    region, dst, src = region_of(work.dst), operand_of(work.dst), operand_of(work.sources[0])
    if work.tmp is None:
        sequence.cover(estimate, region, dst, (src,))
        return
    ones = Operand(work.tmp.address, dst.format, 0, shared=True)
    sequence.issue("vector_dup", 1, Stream(work.tmp.address, dst.format, 0, 0))
    if dst.line_step == src.line_step == region.length * dst.size:
        elements = region.lines * region.length
        sequence.enter_count(elements)
        sequence.add(sequence.counted(root, elements, dst, (src,)))
        sequence.barrier()
        sequence.add(sequence.counted(divide, elements, dst, (ones, dst)))
        return
    sequence.cover(root, region, dst, (src,), merges="never")
    sequence.barrier()
    sequence.cover(divide, region, dst, (ones, dst), merges="never")


# Column reductions and column broadcasts.
#
# Reductions in row order: row 0 is copied to the destination, then every row is joined onto it with a barrier each.
# Sums take a row as one in count mode; the others take the whole repeats of all rows, then what is left of all rows
# under a mask (formulas of one cycle figure per row, docs/reference/a2a3.md section 6.2). The binary form of a sum
# joins neighbouring rows in pairs in tmp, an odd last row onto the first pair, with a barrier for each pair (1263
# cycles for 64 x 64, which are 64 of these steps). Broadcasts read row 0 for every row (repeat stride 0): assumed.


@lays_out("column_reduction")
def lower_column_reduction(sequence: KernelSequence, work: ResolvedTileOp, kernel: StridedOperation) -> None:
    """Append the instructions of a column reduction."""
    (joining,), src = kernel.instructions, work.sources[0]
    if work.binary and src.valid_rows > 1:
        _in_pairs(sequence, work, joining)
        return
    dst, rows, length = operand_of(work.dst), operand_of(src), src.valid_cols
    waits = sequence.target.option("column_rows") == "wait"
    counts = waits and kernel.lines == "always"
    sequence.add((sequence.copy(dst, rows, length * rows.size),))
    sequence.barrier()
    if src.valid_rows == 1:
        return
    sequence.barrier()
    if counts:
        sequence.enter_count(length)
        parts = [(0, length)]
    else:
        lanes = sequence.lanes(src.format)
        whole = length // lanes * lanes
        parts = [part for part in ((0, whole), (whole, length - whole)) if part[1]]
    for first, width in parts:
        if not counts:
            sequence.mask(sequence.prefix(width, src.format))

        def row(inner: KernelSequence, number: int, first: int = first, width: int = width) -> None:
            to = dst.at(column=first)
            inner.add(inner.counted(joining, width, to, (to, rows.at(number + 1, first))))
            if waits:
                inner.barrier()

        sequence.each(src.valid_rows - 1, row)


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

        def pair(inner: KernelSequence, number: int, to: Operand = to, level: Operand = level) -> None:
            sources = (level.at(2 * number), level.at(2 * number + 1))
            inner.add(inner.counted(joining, length, to.at(number), sources))
            inner.barrier()

        sequence.each(pairs, pair)
        if odd:
            sequence.add(sequence.counted(joining, length, to, (to, level.at(rows - 1))))
            sequence.barrier()
        rows, level = pairs, tmp


@lays_out("column_expansion")
def lower_column_expansion(sequence: KernelSequence, work: ResolvedTileOp, _kernel: StridedOperation) -> None:
    """Append the copies of row 0 to every row."""
    dst = operand_of(work.dst)
    fmt = words(dst.format)
    length = -(-work.dst.valid_cols * dst.format.storage_bits // fmt.storage_bits)
    row = Operand(work.sources[0].address, fmt, 0)
    sequence.cover("vcopy", LineRegion(work.dst.valid_rows, length), replace(dst, format=fmt), (row,), merges="never")


@lays_out("column_broadcast")
def lower_column_broadcast(sequence: KernelSequence, work: ResolvedTileOp, kernel: StridedOperation) -> None:
    """Append the instructions that combine every row with row 0 of a vector, then those on the results."""
    dst, region = operand_of(work.dst), LineRegion(work.dst.valid_rows, work.dst.valid_cols)
    first, second = work.sources
    values = replace(operand_of(second), line_step=0)
    chained(sequence, kernel, region, dst, (operand_of(first), values), merges="always")


# Ramps, gathers, transpositions and concatenations (docs/reference/pto.md section 7.7).
#
# A ramp without scratch, and whatever the layout of a transposition or concatenation does not allow, is a loop of the
# scalar unit; that a trip of it costs its store, and its read where it has one, and the turnaround of the loop is
# assumed, as no source times stores of the scalar unit.

BURST_BLOCKS = 18
"""Number of blocks that a copy of many bursts processes as one repeat: 594 bytes per cycle are 18.5 blocks."""


@lays_out("ramp")
def lower_ramp(sequence: KernelSequence, work: ResolvedTileOp, kernel: StridedOperation) -> None:
    """Append a ramp: one repeat in floats in tmp, then for every repeat its sum with a multiple of a repeat."""
    if work.tmp is None:
        sequence.work_of_scalars(work.dst.valid_cols, "write", "loop")
        return
    dst, length = work.dst, work.dst.valid_cols
    fill, gather, scale, spread, join, convert, shift = kernel.instructions
    fmt = format_named("f32" if dst.element_bits == 32 else "f16")
    lanes = sequence.lanes(fmt)
    size = sequence.target.repeat.repeat_bytes
    ramp, second, blocks = (Operand(work.tmp.address + number * size, fmt, size) for number in range(3))
    if length < lanes:
        sequence.enter_count(length)
    for _ in range(lanes // sequence.block_elements(fmt)):
        sequence.issue(fill, 1, ramp.along(sequence.repeat_blocks))
    per_block = fmt.storage_bits // 8
    sums = packed(second.address, fmt, sequence.repeat_blocks * per_block, sequence.repeat_blocks)
    spaced = blocks.along(sequence.repeat_blocks)
    sequence.barrier()
    straight = ramp.along(sequence.repeat_blocks)
    for mnemonic, to, origins in (
        (gather, sums, (straight,)),
        (scale, sums, (sums,)),
        (spread, spaced, (sums,)),
        (join, straight, (straight, spaced)),
    ):
        sequence.issue(mnemonic, 1, to, origins)
        sequence.barrier()
    whole = operand_of(dst)
    first = replace(ramp, format=dst.format)
    mask = sequence.prefix(min(length, lanes), dst.format)
    sequence.add((sequence.along(convert, 0, 1, first, (ramp,), mask),))
    sequence.barrier()
    for start in range(0, length, sequence.lanes(dst.format)):  # the last one under a mask or count
        mask = sequence.prefix(length - start, dst.format)
        if length >= sequence.lanes(dst.format):
            sequence.mask(mask)
        sequence.add((sequence.along(shift, 0, 1, whole.at(column=start), (first,), mask),))
    if work.descending:
        sequence.barrier()
        sequence.cover(scale, LineRegion(1, length), whole, (whole,), merges="always")


@lays_out("gather")
def lower_gather(sequence: KernelSequence, work: ResolvedTileOp, kernel: StridedOperation) -> None:
    """Append a gather: for every row in count mode, scale its indices by the element size, wait, and gather.

    The products of 4-byte elements go to the row of the destination, others to tmp with the row pitch of the
    destination's columns. The gather is one repeat, as in the vendor's model.
    """
    scale, gather = kernel.instructions
    source, places = work.sources
    dst, tmp = work.dst, scratch_of(work)
    numbers, to = operand_of(places), operand_of(dst)
    products = Operand(dst.address, places.format, dst.row_pitch)
    if dst.element_bits != places.element_bits:
        products = Operand(tmp.address, places.format, dst.cols * places.element_bits // 8)
    length = dst.valid_cols
    chosen = sequence.prefix(length, to.format)
    fetched = Stream(source.address, source.format, 1, 0)

    def row(inner: KernelSequence, number: int) -> None:
        inner.add(inner.counted(scale, length, products.at(number), (numbers.at(number),)))
        inner.barrier()
        streams = (fetched, products.at(number).along(sequence.repeat_blocks))
        inner.add((inner.vector(gather, 1, to.at(number).along(sequence.repeat_blocks), streams, mask=chosen),))

    sequence.enter_count(length)
    sequence.each(dst.valid_rows, row)


@lays_out("transposition")
def lower_transposition(sequence: KernelSequence, work: ResolvedTileOp, kernel: StridedOperation) -> None:
    """Append a transposition: one instruction per column of blocks into tmp, then a copy of tmp.

    Rows beyond whole blocks of 16 (32 for bytes) need one more instruction over all columns. The scalar unit also loads
    the addresses of 16 rows on either side; the measured cycles leave no time for that beyond the vector pipe, so it
    counts as free.
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
        one, within = BLOCK * 8 // fmt.storage_bits, row * source.element_bits // 8
        origin = Stream(source.address + row * source.row_pitch + first * BLOCK, fmt, 1, step, 0, one)
        to = Stream(tmp + first * wide * pitch + within, fmt, 1, 1, 0, one)
        return Block((sequence.vector(transpose, repeats, to, (origin,), timing="scatter_vnchwconv"),) * calls)

    if whole:
        blocks = tall * source.row_pitch // BLOCK
        sequence.add(loop_of(columns, lambda number: column(number, whole, 0, blocks)))
    if rest:
        sequence.add(column(0, columns, whole * tall, 1).items)
    sequence.barrier()
    _copy_bursts(sequence, copy, work.dst, tmp, source.valid_cols * -(-source.valid_rows * source.element_bits // 256))


def _copy_bursts(sequence: KernelSequence, mnemonic: str, dst: Tile, start: int, blocks: int) -> None:
    """Copy blocks of tmp in bursts; the first block of a repeat represents all of it."""
    fmt = words(dst.format)
    one = BLOCK * 8 // fmt.storage_bits
    for first, repeats in sequence.pieces(-(-blocks // BURST_BLOCKS)):
        at = first * BURST_BLOCKS * BLOCK
        to, origin = (Stream(address + at, fmt, 1, BURST_BLOCKS, 0, one) for address in (dst.address, start))
        sequence.add((sequence.vector(mnemonic, repeats, to, (origin,), mask=sequence.full),))


@lays_out("concatenation")
def lower_concatenation(sequence: KernelSequence, work: ResolvedTileOp, _kernel: StridedOperation) -> None:
    """Append a copy of every row of the first part, then of the second, by elements if that begins inside a block."""
    dst, rows = operand_of(work.dst), work.dst.valid_rows
    first, second = work.sources
    start = first.valid_cols * dst.size
    _copies(sequence, dst, operand_of(first), rows, start)
    if start % BLOCK == 0:
        _copies(sequence, dst.at(column=first.valid_cols), operand_of(second), rows, second.valid_cols * dst.size)
    else:
        _between_flags(sequence, rows * second.valid_cols)


@lays_out("counted_concatenation")
def lower_counted_concatenation(sequence: KernelSequence, work: ResolvedTileOp, _kernel: StridedOperation) -> None:
    """Append, for every row, the reads of its counts and the copy of the first part; the second part is copied by
    elements.

    Source: none; both parts are assumed to take as long as if the counts requested all of them.
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


def _copies(sequence: KernelSequence, dst: Operand, src: Operand, rows: int, length: int) -> None:
    """Append a copy of `length` bytes for each row."""
    if length:
        sequence.add(loop_of(rows, lambda row: Block((sequence.copy(dst.at(row), src.at(row), length),))))


def _between_flags(sequence: KernelSequence, elements: int) -> None:
    """Append element moves of the scalar unit between flags: it waits for the vector pipe, which then waits for it."""
    sequence.await_vector()
    sequence.work_of_scalars(elements, "read", "write", "loop")
    sequence.await_scalar()


# Comparisons into packed bits, and selection by them.
#
# A comparison takes whole repeats and packs one bit per lane (docs/reference/pto.md section 7.3). The sequences of the
# selections are those that make both the published issue cycles of tsel (19 for one row, 67 for four) and the model's
# own figures (tsel 48 and 150, tsels 23 for two rows and 83 for 32) come out; the tile's mask has a row pitch of its
# own, so each row is an instruction.


def _bits(tile: Tile, row: int, lanes: int, first: int = 0) -> Stream:
    """Return the bits of a row from an element on, `lanes` per repeat."""
    return packed(tile.address + row * tile.row_pitch + first // 8, BITS, lanes // 8, lanes // 8)


@lays_out("compare")
def lower_comparison(sequence: KernelSequence, work: ResolvedTileOp, kernel: StridedOperation) -> None:
    """Append a comparison: whole repeats of every row; `ne` inverts `eq` over the whole destination tile."""
    first, lanes = work.sources[0], sequence.lanes(work.sources[0].format)
    (mnemonic,) = kernel.instructions
    repeats = -(-first.valid_cols // lanes)
    sequence.add((sequence.control("mask", sequence.full, changes=False),))

    def row(inner: KernelSequence, number: int) -> None:
        for begin, count in inner.pieces(repeats):
            moved = (operand_of(source).at(number, begin * lanes) for source in work.sources)
            dst = _bits(work.dst, number, lanes, begin * lanes)
            row = f"{mnemonic}_partial" if count * lanes // 8 % BLOCK else mnemonic
            origins = [one.along(inner.repeat_blocks) for one in moved]
            inner.add((inner.vector(mnemonic, count, dst, origins, mask=inner.full, lanes=lanes, timing=row),))

    sequence.each(first.valid_rows, row)
    sequence.add((sequence.control("mask", sequence.full, changes=False),))
    if work.mode == "ne":
        sequence.barrier()
        tile = operand_of(work.dst, WORDS)
        sequence.cover("vnot", LineRegion(1, work.dst.size // tile.size), tile, (tile,), merges="always")


@lays_out("select")
def lower_selection(sequence: KernelSequence, work: ResolvedTileOp, kernel: StridedOperation) -> None:
    """Append a selection: per row, load the address of its mask into tmp and the compare mask register, then select."""
    tmp, mask = work.tmp, work.mask
    assert tmp is not None
    assert mask is not None
    length, lanes = work.dst.valid_cols, sequence.lanes(work.dst.format)
    address = Stream(tmp.address, tmp.format, 1, 0)
    one_block = (1 << sequence.block_elements(tmp.format)) - 1

    def row(inner: KernelSequence, number: int) -> None:
        inner.add((inner.control("mask", one_block), inner.vector("vector_dup", 1, address, mask=one_block)))
        inner.barrier()
        inner.add((inner.control("cmpmask", tmp.address),))
        inner.barrier()
        operands = [operand_of(tile).at(number) for tile in (work.dst, *work.sources)]
        for first, repeats, chosen in inner.parts(length, work.dst.format):
            selected = inner.along(kernel.instructions[0], first, repeats, operands[0], operands[1:], chosen)
            bits = _bits(mask, number, lanes, first)
            inner.add((inner.control("mask", chosen), replace(selected, sources=(*selected.sources, bits))))

    sequence.add((sequence.control("ctrl", sequence.normal_ctrl),))
    sequence.each(work.dst.valid_rows, row)
    sequence.add((sequence.control("ctrl", sequence.normal_ctrl), sequence.control("mask", sequence.full)))


@lays_out("select_scalar")
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
        for first, repeats, chosen in inner.parts(region.length, work.dst.format):
            selected = inner.along(kernel.instructions[0], first, repeats, dst.at(number), (src.at(number),), chosen)
            extra = (replace(scalars, block_stride=0), _bits(mask, number, lanes, first))
            inner.add((replace(selected, sources=(*selected.sources, *extra), timing="vsel_scalar"),))

    sequence.each(region.lines, row)


# Moves and padding: whole blocks are copied, everything outside is filled.
#
# The published rows of tmov are a block per cycle and five cycles per copy instruction, one per row unless the tile is
# fully valid (docs/reference/a2a3.md section 6.3: 1029, 1323 and 120 cycles). They are the same for column-major
# tiles, whose copies are therefore counted by rows as well, whatever bytes each of them takes; what all of them move
# is said elsewhere. How tfillpad fills is assumed.


@lays_out("move")
def lower_move(sequence: KernelSequence, work: ResolvedTileOp, _kernel: StridedOperation) -> None:
    """Append a move: copies of the elements that both tiles have."""
    src, dst = work.sources[0], work.dst
    rows, cols = min(src.valid_rows, dst.valid_rows), min(src.valid_cols, dst.valid_cols)
    _copy(sequence, dst, src, LineRegion(rows, cols))


@lays_out("fill")
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
    _copies(sequence, to, origin, region.lines, length)


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
        sequence.cover("vector_dup", region, base.at(column=whole // unit), (), merges="never")
    below = dst.valid_rows - src.valid_rows
    if below > 0:
        sequence.cover("vector_dup", LineRegion(below, end // unit), base.at(src.valid_rows), (), merges="always")
