"""Elementwise operations: tile with tile, tile with scalar, one tile.

Adjacent lines (docs/reference/a2a3.md section 6.2): operations on two tiles merge those that are whole repeats (16 x
256 of f16: one call of 32 repeats) and take shorter ones one by one; those with a scalar merge shorter ones as well,
unless an option asks for an older library (7 x 448 of f32: seven calls of 7); both take longer ones that are no whole
repeats as one in count mode. Those on one tile merge all (32 x 32 of f16: 8 repeats). Of a single line all of them make
one call: assumed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from castsim.execution.tiles import ResolvedTileOp
from castsim.execution.vector_operations.shapes import widens
from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS
from castsim.machines.strided.kernel_sequence import KernelSequence, Operand, Region, operand_of, region_of, words
from castsim.machines.strided.operations import Stream
from castsim.targets.strided_repeat import StridedOperation, StridedRepeatTarget

_THROUGH_FLOAT = {32: ("vconv_s322f32", "vconv_f322s32z"), 16: ("vconv_s162f16", "vconv_f162s16z")}
"""Instructions that take integers of so many bits to floats of the same width and back."""


def lower_elementwise(sequence: KernelSequence, work: ResolvedTileOp, kernel: StridedOperation) -> None:
    """Append a kernel whose instructions run one behind the other: the first on the sources, the others in place.

    A third source joins the others.
    """
    fmt = words(work.dst.format)
    region, dst = region_of(work.dst), operand_of(work.dst, fmt)
    if fmt != work.dst.format:
        region = Region(region.lines, -(-region.length * work.dst.element_bits // fmt.storage_bits))
    if widens(work, VECTOR_OPERATIONS[work.mnemonic]):
        sequence.columns(kernel.instructions[0], region, dst, (operand_of(work.sources[0]), dst))
        return
    sources = [operand_of(source, fmt) for source in work.sources]
    if VECTOR_OPERATIONS[work.mnemonic].accumulates:
        sources.append(dst)
    third = sources.pop() if len(work.sources) > 2 else None
    for number, instruction in enumerate(kernel.instructions):
        if number:
            sequence.barrier()
            sources = [dst] if third is None else [dst, third]
        sequence.cover(instruction, region, dst, sources, merges=merges_of(sequence.target, kernel))


def lower_part(sequence: KernelSequence, work: ResolvedTileOp, kernel: StridedOperation) -> None:
    """Append an operation on two tiles, one of which may cover less: then the other is copied, and joined with it.

    Source: none; assumed.
    """
    join, copy = kernel.instructions
    region, dst, merges = region_of(work.dst), operand_of(work.dst), merges_of(sequence.target, kernel)
    smaller, larger = sorted(work.sources, key=lambda one: one.valid_rows * one.valid_cols)
    if region_of(smaller) == region:
        sequence.cover(join, region, dst, [operand_of(source) for source in work.sources], merges=merges)
        return
    sequence.cover(copy, region, dst, (operand_of(larger),), merges=merges)
    if smaller.valid_rows and smaller.valid_cols:
        sequence.barrier()
        sequence.cover(join, region_of(smaller), dst, (dst, operand_of(smaller)), merges=merges)


def always(_region: Region, _lanes: int) -> bool:
    """Merge adjacent lines."""
    return True


def whole_repeats(region: Region, lanes: int) -> bool:
    """Merge adjacent lines that are whole repeats."""
    return region.length % lanes == 0


def up_to_repeat(region: Region, lanes: int) -> bool:
    """Merge adjacent lines that are whole repeats or shorter than one."""
    return region.length % lanes == 0 or region.length < lanes


def never(_region: Region, _lanes: int) -> bool:
    """Merge no lines."""
    return False


MERGES: Mapping[str, Callable[[Region, int], bool]] = {
    "never": never,
    "whole_repeats": whole_repeats,
    "up_to_repeat": up_to_repeat,
    "always": always,
}
"""Which adjacent lines one call takes together, by the word of a kernel."""


def merges_of(target: StridedRepeatTarget, kernel: StridedOperation) -> Callable[[Region, int], bool]:
    """Return which adjacent lines one call of a kernel takes together."""
    if kernel.lines == "up_to_repeat" and target.option("scalar_rows") == "separate":
        return never
    return MERGES[kernel.lines]


def lower_division(sequence: KernelSequence, work: ResolvedTileOp, kernel: StridedOperation) -> None:
    """Append a division by or of a scalar: the destination is filled with it first (docs/reference/pto.md section 7.3).

    The model's own figures are those of a fill, a barrier and a division (196 for 32 x 64 of f32). In place a float
    is multiplied by the reciprocal; an integer goes through the float of its width, in place.
    """
    divide, multiply = kernel.instructions
    region, dst, src = region_of(work.dst), operand_of(work.dst), operand_of(work.sources[0])
    merges, arithmetic = merges_of(sequence.target, kernel), sequence.target.tile_arithmetic
    if work.dst.address == work.sources[0].address and work.dst.format.name in arithmetic.in_place_reciprocal:
        sequence.cover(multiply, region, dst, (src,), merges=merges)
        return
    integer = work.dst.format.name in dict(arithmetic.divides_through)
    forth, back = _THROUGH_FLOAT.get(work.dst.format.storage_bits, ("", ""))
    if integer:
        _convert(sequence, forth, region, src)
    sequence.cover("vector_dup", region, dst, (), merges=merges)
    sequence.barrier()
    scalar_first = work.scalar_first or VECTOR_OPERATIONS[work.mnemonic].divides_constant
    sequence.cover(divide, region, dst, (dst, src) if scalar_first else (src, dst), merges=merges)
    if integer:
        sequence.barrier()
        _convert(sequence, back, region, dst)


def _convert(sequence: KernelSequence, mnemonic: str, region: Region, operand: Operand) -> None:
    """Convert in place between formats of one width."""
    lanes = sequence.lanes(operand.format)
    for column in range(0, region.length, lanes):
        width, moved = min(lanes, region.length - column), operand.at(column=column)
        sequence.down(mnemonic, Region(region.lines, width), moved, (moved,), timing="vconv")


def lower_reciprocal_root(sequence: KernelSequence, work: ResolvedTileOp, kernel: StridedOperation) -> None:
    """Append a reciprocal root: one estimate, or with scratch a block of ones, the root, ones divided by it.

    In count mode where lines are adjacent: the model's 53 cycles for 64 x 64, of f32 as of f16, are those of two
    mask switches, a fill of one repeat, a root, a barrier and a division whose repeats it does not see.
    """
    estimate, root, divide = kernel.instructions
    region, dst, src = region_of(work.dst), operand_of(work.dst), operand_of(work.sources[0])
    if work.tmp is None:
        sequence.cover(estimate, region, dst, (src,), merges=merges_of(sequence.target, kernel))
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
    sequence.cover(root, region, dst, (src,), merges=never)
    sequence.barrier()
    sequence.cover(divide, region, dst, (ones, dst), merges=never)
