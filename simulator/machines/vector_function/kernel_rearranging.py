"""Loop nests of ramps, gathers, transpositions and concatenations (docs/reference/pto.md section 7.7).

Facts: pto-isa include/pto/npu/a5 @ 3186c381. That the first part of a concatenation is stored before the second one is
scattered onto the same rows takes no time of its own here: the parts are nests one behind the other.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from castsim.execution.dataflow.operations import BLOCK, ScalarWork
from castsim.execution.tiles import ResolvedTileOp
from castsim.execution.tree import Block, loop_of
from castsim.execution.vector_operations.sorting import GROUP, block_pairs
from castsim.isa.pto.vector_operations import PAIR_BYTES
from castsim.machines.vector_function.kernel_nests import Operands, Region, Trip, chain, move, region_of
from castsim.machines.vector_function.operations import Compute, MemoryBarrier, Nest
from castsim.targets.vector_function import FunctionBufferPorts, VectorFunctionTarget
from castsim.targets.vector_function_operations import VectorFunctionOperation


def ramps_by_vectors(target: VectorFunctionTarget, work: ResolvedTileOp) -> bool:
    """Whether a ramp is made by a vector function: with tmp, or without it if the option says so."""
    return work.names_tmp or target.option("ramp_without_tmp") == "vector"


def scalar_ramp(pipe: str, work: ResolvedTileOp) -> Block:
    """Return the loop of the scalar unit that writes a ramp, element by element."""
    trip = Block((ScalarWork("write", pipe=pipe), ScalarWork("loop", pipe=pipe)))
    return Block(tuple(loop_of(work.dst.valid_cols, lambda _: trip)))


def rearranging_nests(
    operands: Operands, work: ResolvedTileOp, kernel: VectorFunctionOperation, target: VectorFunctionTarget
) -> tuple[Nest, ...]:
    """Return the nests of an operation by the structure of its kernel."""
    register_bytes = target.registers.register_bytes
    match kernel.structure:
        case "ramp":
            return (_ramp(work, kernel, register_bytes),)
        case "gather":
            return (_gather(operands, work, kernel, register_bytes),)
        case "pattern_gather":
            return (_squeezed(operands, work, kernel, register_bytes),)
        case "compare_gather":
            return (_chosen(operands, work, kernel, register_bytes),)
        case "sort":
            return (_sorted(operands, work, kernel),)
        case "merge":
            return (_merged(operands, work, kernel),)
        case "transposition":
            return (_transposition(operands, work, kernel, target),)
        case _:
            return _concatenation(operands, work, kernel, register_bytes)


def _ramp(work: ResolvedTileOp, kernel: VectorFunctionOperation, register_bytes: int) -> Nest:
    """An ascending vector and its store."""
    region = region_of(work.dst, 1, work.dst.valid_cols, register_bytes)
    made = Compute(kernel.instructions[0], ("v0",), (), region.width)
    return region.nest((region.predicate, made, region.store("v0")), region.steps(work.dst))


def _gather(operands: Operands, work: ResolvedTileOp, kernel: VectorFunctionOperation, register_bytes: int) -> Nest:
    """Row by row, a register of numbers per trip."""
    source, places = work.sources
    dst = work.dst
    operands.add(source.address)
    region = region_of(places, dst.valid_rows, dst.valid_cols, register_bytes)
    load = operands.load("v0", "NORM", places.address, region.steps(places))
    fetched = chain(kernel.instructions, ("v0",), source.element_bits)
    stored = (dst.row_pitch, region.elements * dst.element_bits // 8)
    return region.nest((load, region.predicate, *fetched, region.store(fetched[-1].results[0])), stored)


def _squeezed(operands: Operands, work: ResolvedTileOp, kernel: VectorFunctionOperation, register_bytes: int) -> Nest:
    """Loaded, squeezed under the pattern and stored; rows that are kept whole are copied."""
    (source,), dst = work.sources, work.dst
    if work.by_columns:
        times = source.valid_rows // dst.valid_rows
        region = region_of(dst, dst.valid_rows, dst.valid_cols, register_bytes)
        load = operands.load("v0", "NORM", source.address, (times * source.row_pitch, region.trip_bytes))
        return region.nest((load, region.predicate, region.store("v0")), region.steps(dst))
    times = source.valid_cols // dst.valid_cols
    region = region_of(source, source.valid_rows, source.valid_cols, register_bytes)
    load = operands.load("v0", "NORM", source.address, region.steps(source))
    (kept,) = chain(kernel.instructions, ("v0",), region.width)
    trip: Trip = (load, region.predicate, kept, region.store(kept.results[0]))
    return region.nest(trip, (dst.row_pitch, region.trip_bytes // times))


def _chosen(operands: Operands, work: ResolvedTileOp, kernel: VectorFunctionOperation, register_bytes: int) -> Nest:
    """Loaded, compared, the numbers squeezed and stored; the count of each row behind its last trip: assumed."""
    (source,), dst, counts = work.sources, work.dst, work.counts
    region = region_of(source, source.valid_rows, source.valid_cols, register_bytes)
    load = operands.load("v0", "NORM", source.address, region.steps(source))
    steps = chain(kernel.instructions, ("v0",), region.width)
    trip: Trip = (load, region.predicate, *steps, region.store(steps[-1].results[0]))
    if counts is not None:
        operands.add(counts.address)
    return region.nest(trip, (dst.row_pitch, 0))


def _sorted(operands: Operands, work: ResolvedTileOp, kernel: VectorFunctionOperation) -> Nest:
    """32 elements and their numbers per trip; what is loaded and stored is as long as the pairs."""
    source, places = work.sources
    step = GROUP * source.element_bits // 8
    region = Region(source.element_bits, step, source.valid_rows, source.valid_cols)
    elements = operands.load("v0", "NORM", source.address, (source.row_pitch, step))
    numbered = places.row_pitch if places.valid_rows > 1 else 0
    numbers = operands.load("v1", "NORM", places.address, (numbered, GROUP * 4))
    (made,) = chain(kernel.instructions, ("v0", "v1"), region.width)
    trip: Trip = (elements, numbers, region.predicate, made, region.store(made.results[0]))
    return region.nest(trip, (work.dst.row_pitch, GROUP * PAIR_BYTES))


def _merged(operands: Operands, work: ResolvedTileOp, kernel: VectorFunctionOperation) -> Nest:
    """Four blocks per trip; the first vector of each stands for all of it."""
    first, dst = work.sources[0], work.dst
    length = 4 * block_pairs(work) * PAIR_BYTES if work.scalars else first.valid_cols * first.element_bits // 8
    region = Region(first.element_bits, length, dst.valid_rows, first.valid_cols)
    names = tuple(f"v{number}" for number in range(len(work.sources)))
    loads = tuple(
        operands.load(name, "NORM", tile.address, (tile.row_pitch, length))
        for name, tile in zip(names, work.sources, strict=True)
    )
    (made,) = chain(kernel.instructions, names, region.width)
    return region.nest((*loads, region.predicate, made, region.store(made.results[0])), (dst.row_pitch, length))


def _spread_cycles(lanes: int, pitch: int, banks: FunctionBufferPorts) -> int:
    """Return the cycles for which an access of so many lanes, `pitch` bytes apart, holds the port of its kind.

    Blocks that share a bank group pass at half a block a cycle, as the documented rate has it where they share none (2
    cycles); a lane never takes more than one, and one cycle goes before. Source: 14 transpositions in the vendor's
    simulator, with pitches of 32 to 256 bytes (pto-isa mirror, a5_benchmark.csv).
    """
    blocks = {lane * pitch // BLOCK for lane in range(lanes)}
    busiest = max(Counter(block % banks.groups for block in blocks).values())
    return 1 + max(2, min(2 * busiest, len(blocks)))


def _transposition(
    operands: Operands, work: ResolvedTileOp, kernel: VectorFunctionOperation, target: VectorFunctionTarget
) -> Nest:
    """Rows that are shorter than columns are scattered; else the columns are gathered, by addresses made on the way.

    Columns of bytes are always gathered, into lanes of 16 bits: inferred from the cycles of such rows.
    """
    (source,), dst = work.sources, work.dst
    rows, cols = source.valid_rows, source.valid_cols
    scatter, *gather = kernel.instructions
    register_bytes = target.registers.register_bytes
    if rows < cols and source.element_bits > 8:
        region = region_of(source, rows, cols, register_bytes)
        load = operands.load("v0", "NORM", source.address, region.steps(source))
        (scattered,) = chain((scatter,), ("v0",), region.width)
        scattered = replace(scattered, held=_spread_cycles(_lanes(cols, region), dst.row_pitch, target.banks))
        return region.nest((load, region.predicate, scattered, region.store(scattered.results[0])), region.steps(dst))
    operands.add(source.address)
    region = region_of(dst, cols, rows, register_bytes // 2 if source.element_bits == 8 else register_bytes)
    first = Compute("vci", ("v0",), (), region.width)
    *places, gathered = chain(tuple(gather), ("v0",), region.width)
    gathered = replace(gathered, held=_spread_cycles(_lanes(rows, region), source.row_pitch, target.banks))
    trip: Trip = (region.predicate, first, *places, gathered, region.store(gathered.results[0]))
    return region.nest(trip, region.steps(dst))


def _lanes(count: int, region: Region) -> int:
    """Return the lanes that the trips of a row of `count` elements have on average."""
    return -(-count // max(1, -(-count // region.elements)))


def _concatenation(
    operands: Operands, work: ResolvedTileOp, kernel: VectorFunctionOperation, register_bytes: int
) -> tuple[Nest, ...]:
    """The first part loaded and stored, the second scattered to addresses made on the way.

    Counts are loaded once per row; that they change nothing else is assumed.
    """
    first, second, *counts = work.sources
    rows, dst = work.dst.valid_rows, work.dst
    ahead: Trip = tuple(
        operands.load(f"n{number}", "BRC_B32", tile.address, (tile.row_pitch, 0)) for number, tile in enumerate(counts)
    )
    nests: list[Nest] = []
    if first.valid_cols:
        region = region_of(first, rows, first.valid_cols, register_bytes)
        copied = move(operands, region, first, dst)
        paced = "counts" if counts else None
        nests.append(replace(copied, row=ahead, trip=_in_order(copied.trip), paced=paced))
    if second.valid_cols:
        region = region_of(second, rows, second.valid_cols, register_bytes)
        nests.append(_scattered(operands, region, work, kernel))
    return tuple(nests)


def _scattered(operands: Operands, region: Region, work: ResolvedTileOp, kernel: VectorFunctionOperation) -> Nest:
    first, second, *_ = work.sources
    load = operands.load("v0", "NORM", second.address, region.steps(second))
    *places, scatter = kernel.instructions
    made = Compute("vci", ("c",), (), region.width)
    steps = chain(tuple(places), ("c",), region.width)
    moved = Compute(scatter, ("s",), ("v0", steps[-1].results[0]), region.width)
    behind = operands.add(work.dst.address + first.valid_cols * first.element_bits // 8)
    trip: Trip = (load, region.predicate, made, *steps, moved, region.store("s"))
    return region.nest(_in_order(trip), region.steps(work.dst), writes=behind)


def _in_order(trip: Trip) -> Trip:
    """Return a trip whose store, the last of it, waits for those before: the parts of a row share a line.

    Inferred from the vendor's simulator, where rows of two vectors take 27 cycles whatever their type.
    """
    return (*trip[:-1], MemoryBarrier("VST_VST"), trip[-1])
