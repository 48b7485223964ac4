"""Comparisons into packed bits, and selection by them.

A comparison takes whole repeats and packs one bit per lane (docs/reference/pto.md section 7.3). The sequences of the
selections are those that make both the published issue cycles of tsel (19 for one row, 67 for four) and the model's
own figures (tsel 48 and 150, tsels 23 for two rows and 83 for 32) come out; the tile's mask has a row pitch of its
own, so each row is an instruction.
"""

from __future__ import annotations

from dataclasses import replace

from castsim.execution.tiles import ResolvedTileOp, Tile
from castsim.execution.tree import Block, Node, loop_of
from castsim.isa.formats import format_named
from castsim.machines.strided.kernel_sequence import KernelSequence, Region, operand_of
from castsim.machines.strided.kernels_elementwise import always
from castsim.machines.strided.operations import BLOCK, Barrier, Stream
from castsim.targets.strided_repeat import StridedOperation

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
