"""Quantisation to 8 bits and the way back (docs/reference/pto.md section 7.12).

Facts: pto-isa include/pto/npu/a2a3 @ 3186c381, TQuant.hpp and TDequant.hpp. No published cycles time them: they are
those of their instructions.
"""

from __future__ import annotations

from dataclasses import replace

from castsim.execution.tiles import ResolvedTileOp, Tile, TileCast
from castsim.execution.tree import Block, loop_of
from castsim.isa.formats import Format, format_named
from castsim.isa.modes import Saturation
from castsim.isa.pto.program import RoundMode
from castsim.machines.strided.kernel_sequence import KernelSequence, Operand, Region, operand_of
from castsim.machines.strided.kernels_elementwise import merges_of
from castsim.machines.strided.kernels_rows import join_spread
from castsim.machines.strided.lowering import emit_cast
from castsim.machines.strided.operations import Stream, VectorOperation
from castsim.machines.strided.plan import plan_cast
from castsim.targets.strided_repeat import StridedOperation


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
