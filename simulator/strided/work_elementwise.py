"""Elementwise operations: tile with tile, tile with scalar, one tile.

Forms by the published rows (a2a3.md section 6.3): operations on two tiles merge adjacent lines that are whole repeats
(16 x 256 of f16: one call of 32 repeats), those with a scalar never merge (7 x 448 of f32: seven calls of 7), those on
one tile merge all adjacent lines (32 x 32 of f16: 8 repeats). Of a single line all of them make one call: assumed.
"""

from __future__ import annotations

from simulator.strided.operations import Stream
from simulator.strided.work_sequence import Operand, Region, WorkSequence, operand_of, region_of
from simulator.tiles import TileWork

BINARY = {"tadd": "vadd", "tsub": "vsub", "tmul": "vmul", "tdiv": "vdiv", "tmax": "vmax", "tmin": "vmin"}
SCALAR = {
    "tadds": "vadds",
    "tsubs": "vadds",
    "tmuls": "vmuls",
    "tmaxs": "vmaxs",
    "tmins": "vmins",
    "tneg": "vmuls",
}
UNARY = {"texp": "vexp", "tlog": "vln", "tsqrt": "vsqrt", "tabs": "vabs", "trelu": "vrelu", "trsqrt": "vrsqrt"}

_THROUGH_FLOAT = {32: ("vconv_s322f32", "vconv_f322s32z"), 16: ("vconv_s162f16", "vconv_f162s16z")}
"""Instructions that take integers of so many bits to floats of the same width and back."""


def lower_elementwise(sequence: WorkSequence, work: TileWork) -> None:
    """Append the instructions of an elementwise operation."""
    region, dst = region_of(work.dst), operand_of(work.dst)
    sources = [operand_of(source) for source in work.sources]
    mnemonic = work.mnemonic
    if mnemonic in BINARY:
        sequence.cover(BINARY[mnemonic], region, dst, sources, merges=whole_repeats)
    elif mnemonic in SCALAR:
        sequence.cover(SCALAR[mnemonic], region, dst, sources, merges=never)
    elif mnemonic == "texpands":
        sequence.cover("vector_dup", region, dst, (), merges=always)
    elif mnemonic in ("tdivs", "trecip"):
        _divide(sequence, work, region, dst, sources[0])
    elif mnemonic == "trsqrt" and work.tmp is not None:
        _root_and_divide(sequence, region, dst, sources[0], operand_of(work.tmp, work.dst.format))
    else:
        sequence.cover(UNARY[mnemonic], region, dst, sources, merges=always)


def always(_region: Region, _lanes: int) -> bool:
    """Merge adjacent lines."""
    return True


def whole_repeats(region: Region, lanes: int) -> bool:
    """Merge adjacent lines that are whole repeats."""
    return region.length % lanes == 0


def never(_region: Region, _lanes: int) -> bool:
    """Merge no lines."""
    return False


def _divide(sequence: WorkSequence, work: TileWork, region: Region, dst: Operand, src: Operand) -> None:
    """Division by or of a scalar: the destination is filled with it first (pto_assembly.md section 10.3).

    The model's own figures are those of a fill, a barrier and a division (196 for 32 x 64 of f32). In place a float
    is multiplied by the reciprocal; an integer goes through the float of its width, in place.
    """
    arithmetic = sequence.target.tile_arithmetic
    if work.dst.address == work.sources[0].address and work.dst.format.name in arithmetic.in_place_reciprocal:
        sequence.cover("vmuls", region, dst, (src,), merges=never)
        return
    integer = work.dst.format.name in dict(arithmetic.divides_through)
    forth, back = _THROUGH_FLOAT.get(work.dst.format.storage_bits, ("", ""))
    if integer:
        _convert(sequence, forth, region, src)
    sequence.cover("vector_dup", region, dst, (), merges=never)
    sequence.barrier()
    scalar_first = work.scalar_first or work.mnemonic == "trecip"
    sequence.cover("vdiv", region, dst, (dst, src) if scalar_first else (src, dst), merges=never)
    if integer:
        sequence.barrier()
        _convert(sequence, back, region, dst)


def _convert(sequence: WorkSequence, mnemonic: str, region: Region, operand: Operand) -> None:
    """Convert in place between formats of one width."""
    lanes = sequence.lanes(operand.format)
    for column in range(0, region.length, lanes):
        width, moved = min(lanes, region.length - column), operand.at(column=column)
        sequence.down(mnemonic, Region(region.lines, width), moved, (moved,), timing="vconv")


def _root_and_divide(sequence: WorkSequence, region: Region, dst: Operand, src: Operand, tmp: Operand) -> None:
    """Reciprocal root with scratch: a block of ones, the root, ones divided by it.

    In count mode where lines are adjacent: the model's 53 cycles for 64 x 64, of f32 as of f16, are those of two
    mask switches, a fill of one repeat, a root, a barrier and a division whose repeats it does not see.
    """
    ones = Operand(tmp.address, dst.format, 0, shared=True)
    sequence.issue("vector_dup", 1, Stream(tmp.address, dst.format, 0, 0))
    if dst.line_step == src.line_step == region.length * dst.size:
        elements = region.lines * region.length
        sequence.enter_count(elements)
        sequence.add(sequence.counted("vsqrt", elements, dst, (src,)))
        sequence.barrier()
        sequence.add(sequence.counted("vdiv", elements, dst, (ones, dst)))
        return
    sequence.cover("vsqrt", region, dst, (src,), merges=never)
    sequence.barrier()
    sequence.cover("vdiv", region, dst, (ones, dst), merges=never)
