"""The vector-function mechanism as program execution sees it: one target's lowering behind the common protocol."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from castsim.execution.dataflow.pipe_operations import BLOCK, ControlWrite, ScalarWork
from castsim.execution.dataflow.tile_lowering import DataflowLowerer, tile_access
from castsim.execution.entry_and_target import BACKEND, Choice
from castsim.execution.interpreter.lowerer import LoweredInstruction
from castsim.execution.tiles import CastTiles, ResolvedTileOp, Tile, TileCast
from castsim.execution.tree import Access, Block, Node, loop_of
from castsim.execution.vector_operations import as_rows
from castsim.execution.vector_operations.rearranging import GROUP, block_pairs
from castsim.isa.errors import CastsimError, IllegalError
from castsim.isa.formats import Format, IntFormat, format_named
from castsim.isa.modes import Overflow, Saturation
from castsim.isa.pto.vector_operations import PAIR_BYTES, VECTOR_OPERATIONS, Kind
from castsim.machines.vector_function.function_operations import (
    INTEGER_DIVISION,
    LONG_DIVISION,
    Compute,
    MemoryBarrier,
    Nest,
    Store,
    VectorFunction,
)
from castsim.machines.vector_function.kernel_blocks import block_nests, box_nests
from castsim.machines.vector_function.kernel_nests import (
    Operands,
    Region,
    Trip,
    chain,
    column_argument,
    column_broadcast,
    column_expansion,
    column_halving,
    column_reduction,
    compare,
    compare_in_pairs,
    elementwise,
    fill,
    move,
    region_of,
    row_argument,
    row_broadcast,
    row_product,
    row_reduction,
    scalar_elements,
    select,
)
from castsim.machines.vector_function.lowering import LoweredCast, lower_cast, outcome
from castsim.machines.vector_function.plan import backend_effect, backend_matters, control_writes, start_ctrl
from castsim.machines.vector_function.values import ConvertStep, WholeTile, whole_tile
from castsim.targets.options import unwatched, with_options
from castsim.targets.vector_function import FunctionBufferPorts, VectorFunctionTarget
from castsim.targets.vector_function_operations import FLAT, KernelVariant, VectorFunctionOperation

# From one vector operation other than a cast to control writes and one vector function.
#
# The kernel of each operation is data of the target (table of kernels, choice of variants); its loops are laid out by
# `kernel_nests` and `kernel_axes`. Values are no matter here: see `castsim.execution.vector_operations`.

# Loop nests of ramps, gathers, transpositions and concatenations (docs/reference/pto.md section 7.7).
#
# Facts: pto-isa include/pto/npu/a5 @ 3186c381. That the first part of a concatenation is stored before the second one
# is scattered onto the same rows takes no time of its own here: the parts are nests one behind the other.


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


# Loop nests of quantisation to 8 bits, the way back, and packing (docs/reference/pto.md section 7.12).
#
# Facts: pto-isa include/pto/npu/a5 @ 3186c381, TQuant.hpp and TDeQuant.hpp; packing: the library of 2026-04-16.

QUANTISING = ("quantisation", "dequantisation", "packing", "block_quantisation", "boxing")
"""The structures that are laid out here."""

_TO_BYTES = 4
"""Conversions from f32 to 8 bits: by way of s32, f32 and f16."""

_PACKED = {(32, 16): "PK_B32", (32, 8): "PK4_B32", (16, 8): "PK_B16"}
"""Distribution of a store that keeps the low bytes, by the bits of elements before and after."""

_PACED = {"PK4_B32": "quarter_store", "PK_B16": "byte_store"}
"""The fact that keeps the trips of a packing apart, by the distribution of its store."""


def quantising_nests(
    operands: Operands, work: ResolvedTileOp, kernel: VectorFunctionOperation, target: VectorFunctionTarget
) -> tuple[Nest, ...]:
    """Return the nests of an operation: loops over rows, and over their registers."""
    register_bytes = target.registers.register_bytes
    match kernel.structure:
        case "quantisation":
            return (_quantisation(operands, work, kernel, register_bytes),)
        case "dequantisation":
            return (_dequantisation(operands, work, kernel, register_bytes),)
        case "block_quantisation":
            return block_nests(operands, work, register_bytes)
        case "boxing":
            return box_nests(operands, work, kernel.instructions, register_bytes)
        case _:
            source, dst = work.sources[0], work.dst
            region = region_of(source, source.valid_rows, source.valid_cols, register_bytes)
            load = operands.load("v0", "NORM", source.address, region.steps(source))
            packed = _PACKED[source.element_bits, dst.element_bits]
            trip: Trip = (region.predicate, load, Store("v0", "p", packed))
            stored = dst.row_pitch, region.elements * dst.element_bits // 8
            return (region.nest(trip, stored, paced=_PACED.get(packed)),)


def _quantisation(
    operands: Operands, work: ResolvedTileOp, kernel: VectorFunctionOperation, register_bytes: int
) -> Nest:
    """Parameters are loaded again in every trip."""
    source, *parameters = work.sources
    region = region_of(source, source.valid_rows, source.valid_cols, register_bytes)
    names = tuple(f"s{number}" for number in range(len(parameters)))
    spread = tuple(
        operands.load(name, "BRC_B32", tile.address, (4, 0)) for name, tile in zip(names, parameters, strict=True)
    )
    load = operands.load("v0", "NORM", source.address, region.steps(source))
    computed, last = [], "v0"
    for mnemonic, name in zip(kernel.instructions, names, strict=False):
        computed.append(Compute(mnemonic, (f"{name}r",), (last, name), region.width))
        last = f"{name}r"
    converted = chain(("vcvt",) * _TO_BYTES, (last,), region.width)
    trip: Trip = (
        region.predicate,
        *spread,
        load,
        *computed,
        *converted,
        Store(converted[-1].results[0], "p", "PK4_B32"),
    )
    paced = "quarter_store_offset" if len(parameters) > 1 else "quarter_store"
    return region.nest(trip, (work.dst.row_pitch, region.elements), paced=paced)


def _dequantisation(
    operands: Operands, work: ResolvedTileOp, kernel: VectorFunctionOperation, register_bytes: int
) -> Nest:
    """Parameters are loaded once per row; bytes are widened in two steps."""
    source, scale, offset = work.sources
    region = Region(32, register_bytes, work.dst.valid_rows, work.dst.valid_cols)
    row = tuple(
        operands.load(
            name, "BRC_B32", tile.address, (4 if tile.type.block_layout == "col_major" else tile.row_pitch, 0)
        )
        for name, tile in (("s0", scale), ("s1", offset))
    )
    narrow = source.element_bits
    steps = (source.row_pitch, region.elements * narrow // 8)
    load = operands.load("v0", "UNPK4_B8" if narrow == 8 else "UNPK_B16", source.address, steps)
    widened = chain(("vcvt",) * (2 if narrow == 8 else 1), ("v0",), region.width)
    less, times = kernel.instructions
    shifted = Compute(less, ("d",), (widened[-1].results[0], "s1"), region.width)
    scaled = Compute(times, ("e",), ("d", "s0"), region.width)
    trip: Trip = (load, region.predicate, *widened, shifted, scaled, region.store("e"))
    return region.nest(trip, region.steps(work.dst), row=row, post_update=True)


EXTREMES = ("vmax", "vmin")

DIVISION = ("vdiv",)
"""The instructions of kernels that exist in two precisions."""

_ONE_LOOP = ("compare", "part", "fill")
"""Structures whose rows of one vector follow each other without a turn of the loop also where the valid region is known
at run time only: 64 x 64 of f32 take 160 cycles in the vendor's simulator (tpartadd), 32 x 32 of f16 62 (tcmp);
docs/reference/a5.md section 9."""


def lower_work(target: VectorFunctionTarget, work: ResolvedTileOp) -> Block:
    """Choose the kernel of one vector operation and lay out its loops.

    Raises:
        IllegalError: the target has no kernel of this operation.
    """
    kernel = kernel_of(target, work)
    if kernel.structure == "ramp" and not ramps_by_vectors(target, work):
        return scalar_ramp(target.pipes.scalar, work)
    variant = kernel_variant(target, work)
    operands = Operands()
    context = _Context(target, work, kernel, variant, operands)
    nests = _nests(context)
    timed = _timed(context) or nests
    first, *others = operands.addresses or [work.dst.address]
    if kernel.structure not in _ONE_LOOP and any(tile.type.valid_cols is None for tile in (work.dst, *work.sources)):
        timed = tuple(replace(nest, runtime_trips=True) for nest in timed)
    function = VectorFunction(
        name=f"{work.mnemonic} {work.dst.format.name} {variant}",
        source=first,
        destination=work.dst.address,
        source_format=_whole_bytes(work.sources[0].format if work.sources else work.dst.format),
        destination_format=_whole_bytes(work.dst.format),
        register_bytes=target.registers.register_bytes,
        setup=(),
        nests=nests,
        timed=timed,
        pipe=target.pipes.vector,
        operands=tuple(others),
    )
    writes, restores = _control(target, work, kernel)
    body: list[Node] = [ControlWrite("ctrl", value, pipe=target.pipes.scalar) for value in writes]
    body.append(function)
    body += [ControlWrite("ctrl", value, pipe=target.pipes.scalar) for value in restores]
    return Block(tuple(body))


def kernel_of(target: VectorFunctionTarget, work: ResolvedTileOp) -> VectorFunctionOperation:
    """Return the kernel of an operation.

    Raises:
        IllegalError: there is none; names the operations there are.
    """
    kernel = target.tile_operation(work.mnemonic)
    if kernel is None:
        raise IllegalError(
            f"target '{target.name}' has no kernel of pto.{work.mnemonic}",
            span=work.span,
            legal=[rule.mnemonic for rule in target.tile_operations],
        )
    return kernel


def kernel_variant(target: VectorFunctionTarget, work: ResolvedTileOp) -> KernelVariant:
    """Return the code variant that runs: by the tiles and the implementation kind in force."""
    choice = target.kernel_variants[kernel_of(target, work).choice]
    variants = choice.contiguous if _are_contiguous(work.dst, *work.sources) else choice.padded
    return variants[int(target.option("implementation_kind"))]


@dataclass(frozen=True, slots=True)
class _Context:
    """What a layout is made from."""

    target: VectorFunctionTarget
    work: ResolvedTileOp
    kernel: VectorFunctionOperation
    variant: KernelVariant
    operands: Operands

    @property
    def compute(self) -> tuple[str, ...]:
        """The instructions between load and store."""
        divides = self.kernel.instructions == DIVISION and not isinstance(self.work.dst.format, IntFormat)
        if divides and self.target.option("division_algorithm") == "high_precision":
            return (LONG_DIVISION,)
        return self.kernel.instructions

    @property
    def divides_integers(self) -> bool:
        """Whether it divides integers, for which there is no vector instruction."""
        return self.kernel.instructions == DIVISION and isinstance(self.work.dst.format, IntFormat)

    @property
    def branches(self) -> bool:
        """Whether scalar selects of expansions and padding serialise."""
        return self.target.option("expansion_select") == "serialising"

    def region(self, tile: Tile, rows: int, cols: int) -> Region:
        """Return elements of a tile, a register per trip."""
        flat = self.variant in FLAT
        return region_of(tile, rows, cols, self.target.registers.register_bytes, flat=flat)


def _nests(context: _Context) -> tuple[Nest, ...]:
    work = context.work
    match context.kernel.structure:
        case "elementwise" | "compare" | "select":
            return _lane_by_lane(context)
        case "row_argument" | "column_argument":
            (source,) = work.sources
            region = context.region(source, source.valid_rows, source.valid_cols)
            laid_out = row_argument if context.kernel.structure == "row_argument" else column_argument
            return (laid_out(context.operands, region, source, work.dst, context.kernel.instructions),)
        case "row_reduction" | "row_product" | "column_reduction":
            return _reductions(context)
        case "row_expansion" | "row_broadcast":
            return (_expansion(context, down_columns=False),)
        case "column_expansion" | "column_broadcast":
            return (_expansion(context, down_columns=True),)
        case "move":
            (source,) = work.sources
            rows = min(source.valid_rows, work.dst.valid_rows)
            cols = min(source.valid_cols, work.dst.valid_cols)
            return (move(context.operands, context.region(work.dst, rows, cols), source, work.dst),)
        case "fill":
            (source,) = work.sources
            region = context.region(work.dst, source.valid_rows, source.valid_cols)
            copies = not VECTOR_OPERATIONS[work.mnemonic].in_place
            return fill(context.operands, region, source, work.dst, copies=copies, branches=context.branches)
        case "part":
            return _in_part(context)
        case structure if structure in QUANTISING:
            return quantising_nests(context.operands, work, context.kernel, context.target)
        case _:
            return rearranging_nests(context.operands, work, context.kernel, context.target)


def _lane_by_lane(context: _Context) -> tuple[Nest, ...]:
    work, kernel, operands = context.work, context.kernel, context.operands
    dst, sources = work.dst, work.sources or (work.dst,)  # texpands loads what it overwrites
    shape = sources[0] if kernel.structure == "compare" else dst
    region = context.region(shape, shape.valid_rows, shape.valid_cols)
    if kernel.structure == "compare":
        if dst.row_pitch * 8 != region.cols:  # each row stands at its row of the result
            region = replace(region, flat=False)
        return (compare(operands, region, sources, dst, kernel.instructions[0]),)
    if kernel.structure == "select":
        if work.mask is None:
            raise IllegalError(f"pto.{work.mnemonic} without a mask", span=work.span)
        return select(operands, region, work.mask, sources, dst, kernel.instructions[0])
    if kernel.scalar_integers is not None and isinstance(dst.format, IntFormat):
        rows = region_of(dst, dst.valid_rows, dst.valid_cols, region.trip_bytes)
        return (scalar_elements(operands, rows, sources[0], dst, kernel.scalar_integers),)
    peeled = context.variant == "2D_POST_UPDATE"
    nest = elementwise(operands, region, sources, dst, context.compute, context.variant, peeled=peeled)
    whole = all(tile.type.valid_cols == tile.cols for tile in (dst, *sources))  # single rows came with the newer text
    scalar = len(sources) == 1 and kernel.choice == "tile"
    if scalar and not whole and context.target.option("scalar_tail") == "selected":
        nest = replace(nest, paced="scalar_select")
    return (nest,)


def _timed(context: _Context) -> tuple[Nest, ...]:
    """Return the nests that take the time where published cycles are those of others than the values go by; or none.

    Source: vendor's simulator, a5_benchmark.csv of the pto-isa mirror (docs/reference/a5.md section 9).
    """
    work, kernel, operands = context.work, context.kernel, context.operands
    dst = work.dst
    region = context.region(dst, dst.valid_rows, dst.valid_cols)
    match kernel.structure:
        case "elementwise" if context.divides_integers and kernel.scalar_integers is None:
            divided = elementwise(
                operands, region, work.sources, dst, (INTEGER_DIVISION,), context.variant, peeled=False
            )
            return (divided,)
        case "elementwise" if kernel.broadcasts:
            reloads = VECTOR_OPERATIONS[work.mnemonic].accumulates
            sources = (*work.sources, dst) if reloads else work.sources
            if context.divides_integers:
                return ()
            spread = elementwise(operands, region, sources, dst, context.compute, context.variant, peeled=False)
            return (replace(spread, broadcasts=kernel.broadcasts, paced="reload" if reloads else None),)
        case "column_expansion":
            return (column_expansion(operands, region, work.sources[0], dst),)
        case "compare":
            source = work.sources[0]
            compared = context.region(source, source.valid_rows, source.valid_cols)
            laid_out = compare_in_pairs if compared.width == 32 else compare
            return (laid_out(operands, compared, work.sources, dst, kernel.instructions[0]),)
        case "part" if kernel.instructions[0] not in EXTREMES:
            return _joined_and_copied(context)
        case "part":
            # One pass for each source, which loads the destination too: 2.06 cycles a vector each.
            return tuple(
                elementwise(
                    operands, context.region(dst, source.valid_rows, source.valid_cols), (dst, source), dst,
                    context.compute, context.variant, peeled=False,
                )
                for source in work.sources
                if source.valid_rows and source.valid_cols
            )  # fmt: skip
        case _:
            return ()


def _joined_and_copied(context: _Context) -> tuple[Nest, ...]:
    """What both sources cover is joined, the rows below that only one covers are copied; or none if columns differ.

    Source: pto-isa include/pto/npu/a5 for the two loops; 8 and 64 rows of a vector take 120 cycles in the vendor's
    simulator.
    """
    work, operands, dst = context.work, context.operands, context.work.dst
    smaller, larger = sorted(work.sources, key=lambda one: one.valid_rows * one.valid_cols)
    rows, below = smaller.valid_rows, dst.valid_rows - smaller.valid_rows
    if smaller.valid_cols < dst.valid_cols or below <= 0:
        return ()
    both = context.region(dst, rows, dst.valid_cols)
    joined = elementwise(operands, both, work.sources, dst, context.compute, context.variant, peeled=False)
    rest = replace(larger, address=larger.address + rows * larger.row_pitch)
    copied = move(operands, context.region(dst, below, dst.valid_cols), rest, dst)
    return joined, replace(copied, writes=operands.add(dst.address + rows * dst.row_pitch))


def _in_part(context: _Context) -> tuple[Nest, ...]:
    """A tile with a tile that covers as much, or a copy of the larger one joined with the smaller: assumed."""
    work, operands = context.work, context.operands
    dst = work.dst
    smaller, larger = sorted(work.sources, key=lambda one: one.valid_rows * one.valid_cols)
    rows, cols = smaller.valid_rows, smaller.valid_cols
    joined = context.region(dst, rows, cols)
    if (rows, cols) == (dst.valid_rows, dst.valid_cols):
        return (elementwise(operands, joined, work.sources, dst, context.compute, context.variant, peeled=False),)
    nests = [move(operands, context.region(dst, dst.valid_rows, dst.valid_cols), larger, dst)]
    if rows and cols:
        nests.append(elementwise(operands, joined, (dst, smaller), dst, context.compute, context.variant, peeled=False))
    return tuple(nests)


def _reductions(context: _Context) -> tuple[Nest, ...]:
    work, operands, compute = context.work, context.operands, context.kernel.instructions
    (source,) = work.sources
    region = context.region(source, source.valid_rows, source.valid_cols)
    match context.kernel.structure:
        case "row_reduction":
            return (row_reduction(operands, region, source, work.dst, compute, context.variant),)
        case "row_product":
            return (row_product(operands, region, source, work.dst, compute[0], context.variant),)
        case _ if work.binary and work.tmp is not None:
            return column_halving(operands, region, source, work.dst, work.tmp, compute[0])
        case _:
            return (column_reduction(operands, region, source, work.dst, compute[0]),)


def _expansion(context: _Context, *, down_columns: bool) -> Nest:
    work, operands, compute = context.work, context.operands, context.kernel.instructions
    dst = work.dst
    region = context.region(dst, dst.valid_rows, dst.valid_cols)
    full, vector = _full_and_vector(work)
    if down_columns:
        branches = context.variant == "2D_POST_UPDATE" and context.branches
        return column_broadcast(operands, region, full, vector, dst, compute, context.variant, branches=branches)
    narrow = full is not None and dst.cols < region.elements and _are_contiguous(dst, full)
    return row_broadcast(operands, region, full, vector, dst, compute, per_row=not narrow)


def _full_and_vector(work: ResolvedTileOp) -> tuple[Tile | None, Tile]:
    """Return the operand with the shape of the result, None if there is none, and the one that is spread."""
    if len(work.sources) == 1:
        return None, work.sources[0]
    one, other = work.sources
    shape = (work.dst.valid_rows, work.dst.valid_cols)
    fits = (one.valid_rows, one.valid_cols) == shape and one.type.block_layout == work.dst.type.block_layout
    return (one, other) if fits else (other, one)


def _are_contiguous(*tiles: Tile) -> bool:
    """Whether the tile condition of the 1D kernels holds: full rows by their types, or single rows."""
    return all(tile.type.valid_cols == tile.cols for tile in tiles) or all(tile.rows == 1 for tile in tiles)


def left_ctrl(target: VectorFunctionTarget) -> int:
    """Return CTRL as a quantisation of blocks leaves it: NaN are kept, all else is 0, or as it was."""
    return 1 << target.control.nan_kept if target.option("tquant_mx_ctrl") == "written" else start_ctrl(target)


def _control(
    target: VectorFunctionTarget, work: ResolvedTileOp, kernel: VectorFunctionOperation
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the values of CTRL around an operation that narrows integers, keeping low bits, or quantises blocks."""
    if kernel.structure == "block_quantisation":
        written = 1 << target.control.nan_kept
        return (written,), () if left_ctrl(target) == written else (left_ctrl(target),)
    if kernel.control is None or work.dst.format.name not in kernel.controlled:
        return (), ()
    return control_writes(target, kernel.control, Saturation.OFF)


def _whole_bytes(fmt: Format) -> Format:
    """Return the format as which elements move: packed pairs do as bytes."""
    return format_named("u8") if fmt.bits == 4 else fmt


class VectorFunctionLowerer(DataflowLowerer):
    """Lowering for one target. Equal casts are lowered and proven once, equal operations lowered once."""

    def __init__(self, target: VectorFunctionTarget, *, unsafe_scratch: bool = False) -> None:
        """Take a target; its casts use no tmp tile, so that none is too small."""
        super().__init__(target)
        self.target = self._at_start = target
        self._control: int | None = None
        self._unwatched = unwatched(target)
        self._casts: dict[TileCast, LoweredInstruction] = {}
        self._works: dict[ResolvedTileOp, Block] = {}

    def element_bits(self, fmt: Format) -> int:
        """Return the bits one element takes in a tile's pitch and pointer arithmetic; 4-bit elements share bytes."""
        return fmt.bits if fmt.bits == 4 else fmt.storage_bits

    def cast(self, cast: TileCast) -> LoweredInstruction:
        """Lower one tile cast, and prove whether it may be converted in one call."""
        found = self._casts.get(cast)
        if found is None:
            try:
                asked, choices = self.assembled(cast)
                lowered = lower_cast(self.target, asked)
            except CastsimError as error:
                raise error.at(cast.span) from None
            shortcut = whole_tile(lowered.function, cast.src, cast.dst)
            tiles = CastTiles(cast.src, cast.dst, lowered.plan.rounding, _wraps(shortcut))
            found = LoweredInstruction(
                lowered.body, _accesses(cast, lowered), shortcut, lowered.warnings, choices, tiles
            )
            self._casts[cast] = found
        return found

    def assembled(self, cast: TileCast) -> tuple[TileCast, tuple[Choice, ...]]:
        """Add the choice of the back end, where that decides what the cast gives."""
        asked, choices = super().assembled(cast)
        src, dst = cast.src.format, cast.dst.format
        if not backend_matters(self.target, src, dst):
            return asked, choices
        effect = f"{src.name} -> {dst.name} {backend_effect(self.target)}"
        return asked, (*choices, Choice(BACKEND, str(self.target.option(BACKEND)), effect))

    def differ(self, one: TileCast, other: TileCast) -> bool:
        """Whether two casts, alike but for their saturation, can give different results."""
        return outcome(self._unwatched, one) != outcome(self._unwatched, other)

    def lower_work(self, work: ResolvedTileOp) -> Block:
        """Return the vector function of any other vector operation, with the control writes around it.

        No source states the loops of a column-major move; they are taken to be those of the exchanged tile. Behind a
        quantisation of blocks everything is lowered under the CTRL that it leaves.
        """
        work = as_rows(work)
        found = self._works.get(work)
        if found is None:
            found = self._works[work] = lower_work(self.target, work)
        if VECTOR_OPERATIONS[work.mnemonic].kind is Kind.BLOCK_QUANTISE:
            left = left_ctrl(self.target)
            if left != start_ctrl(self.target):
                self.set_control(left)
        return found

    def control(self) -> int | None:
        """Return CTRL as operations have left it."""
        return self._control

    def set_control(self, value: int | None) -> None:
        """Take CTRL to hold a value, None for that at start; what was lowered before is lowered anew."""
        if value == self._control:
            return
        self._control, self.target = value, self._at_start
        if value is not None:
            options = {name: value >> bit & 1 for name, bit in self.target.control.options.items()}
            self.target = with_options(self.target, options)
        self._unwatched = unwatched(self.target)
        self._casts.clear()
        self._works.clear()


def _wraps(whole: WholeTile | None) -> bool | None:
    """Whether any step keeps the low bits of integers beyond the range; None if nothing is known of the steps."""
    if whole is None:
        return None
    return any(isinstance(step, ConvertStep) and step.policy.overflow is Overflow.WRAP for step in whole.chain)


def _accesses(cast: TileCast, lowered: LoweredCast) -> tuple[Access, ...]:
    """Return the bytes between first and last valid element of both tiles, and what a zero fill clears."""
    written, read = tile_access(cast.dst, write=True), tile_access(cast.src, write=False)
    if lowered.filled:
        end = max(written.end, cast.dst.address + lowered.filled)
        written = Access(written.space, written.start, end, write=True)
    return tuple(access for access in (written, read) if access.start < access.end)
