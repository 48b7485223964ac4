"""Lowering of the vector-function mechanism for one target.

Facts of the kernels that rearrange or quantise, with their loop nests: one layout for each structure of the table
of kernels: pto-isa include/pto/npu/a5 @ 3186c381 (docs/reference/pto.md sections 7.7 and 7.12).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from castsim.execution.input_data import BACKEND, ProgramChoice
from castsim.execution.interpreter.lowerer import LoweredInstruction
from castsim.execution.pipe_operations import BLOCK, ScalarWork
from castsim.execution.tile_lowering import DataflowLowerer, tile_access
from castsim.execution.tree import Access, Block, CastTiles, ResolvedTileOp, Tile, TileCast, loop_of
from castsim.execution.vector_operations.quantising import MX_GROUP, grouping_of, is_narrow, repeats_scaling
from castsim.execution.vector_operations.rearranging import GROUP, block_pairs
from castsim.execution.vector_operations.shapes import as_rows
from castsim.execution.vector_operations.target_rules import exponent_shape, is_exponents
from castsim.isa.dataclass import replace
from castsim.isa.errors import CastsimError, IllegalError, closest
from castsim.isa.formats import Format, Overflow, Saturation, format_named
from castsim.isa.pto.vector_operations import PAIR_BYTES, VECTOR_OPERATIONS, Kind
from castsim.machines.vector_function.function_operations import (
    Nest,
    VectorFunction,
    barrier_step,
    compute_step,
    store_step,
    with_words,
)
from castsim.machines.vector_function.kernel_nests import (
    LAYOUTS,
    LOOPED,
    TIMED,
    KernelLayout,
    NestRegion,
    Nests,
    Trip,
    are_contiguous,
    chain,
    moved,
    steps_of,
)
from castsim.machines.vector_function.lowering import FunctionCast, lower_cast, outcome
from castsim.machines.vector_function.plan import (
    backend_effect,
    backend_matters,
    control_writes,
    controlled,
    start_ctrl,
)
from castsim.machines.vector_function.values import ConvertStep, WholeTile, whole_tile
from castsim.targets.description import unwatched, with_options
from castsim.targets.vector_function import VectorFunctionTarget
from castsim.targets.vector_function_operations import KernelVariant, VectorFunctionOperation

# Ramps, gathers, transpositions and concatenations (docs/reference/pto.md section 7.7).
#
# That the first part of a concatenation is stored before the second one is scattered onto the same rows takes no time
# of its own here: the parts are nests one behind the other.


def _ramp(k: KernelLayout) -> Nests:
    """An ascending vector and its store."""
    region = k.rows(k.dst, 1)
    steps = steps_of("v0 = {0}", region.width, k.rule.instructions)
    return (region.nest((region.predicate, *region.stored(steps)), region.steps(k.dst)),)


def _gather(k: KernelLayout) -> Nests:
    """Row by row, a register of numbers per trip."""
    source, places = k.work.sources
    k.add(source.address)
    region = k.rows(places, k.dst.valid_rows, k.dst.valid_cols)
    load = k.load("v0", "NORM", places.address, region.steps(places))
    fetched = chain(k.rule.instructions, ("v0",), source.element_bits)
    stored = (k.dst.row_pitch, region.elements * k.dst.element_bits // 8)
    return (region.nest((load, region.predicate, *region.stored(fetched)), stored),)


def _pattern_gather(k: KernelLayout) -> Nests:
    """Loaded, squeezed under the pattern and stored; rows that are kept whole are copied."""
    source, dst = k.source, k.dst
    if k.work.by_columns:
        region, times = k.rows(dst), source.valid_rows // dst.valid_rows
        load = k.load("v0", "NORM", source.address, (times * source.row_pitch, region.trip_bytes))
        return (region.nest((load, region.predicate, region.store("v0")), region.steps(dst)),)
    region, times = k.rows(source), source.valid_cols // dst.valid_cols
    load = k.load("v0", "NORM", source.address, region.steps(source))
    trip: Trip = (load, region.predicate, *region.stored(chain(k.rule.instructions, ("v0",), region.width)))
    return (region.nest(trip, (dst.row_pitch, region.trip_bytes // times)),)


def _compare_gather(k: KernelLayout) -> Nests:
    """Load, compare, squeeze the indices and store; the count of each row follows its last trip (assumed)."""
    region = k.rows(k.source)
    load = k.load("v0", "NORM", k.source.address, region.steps(k.source))
    trip: Trip = (load, region.predicate, *region.stored(chain(k.rule.instructions, ("v0",), region.width)))
    if k.work.counts is not None:
        k.add(k.work.counts.address)
    return (region.nest(trip, (k.dst.row_pitch, 0)),)


def _sort(k: KernelLayout) -> Nests:
    """Sort 32 elements and their numbers per trip; loads and stores are as long as the pairs."""
    source, places = k.work.sources
    step = GROUP * source.element_bits // 8
    region = NestRegion(source.element_bits, step, source.valid_rows, source.valid_cols)
    elements = k.load("v0", "NORM", source.address, (source.row_pitch, step))
    numbered = places.row_pitch if places.valid_rows > 1 else 0
    numbers = k.load("v1", "NORM", places.address, (numbered, GROUP * 4))
    (sorted_step,) = chain(k.rule.instructions, ("v0", "v1"), region.width)
    trip: Trip = (elements, numbers, region.predicate, *region.stored((sorted_step,)))
    return (region.nest(trip, (k.dst.row_pitch, GROUP * PAIR_BYTES)),)


def _merge(k: KernelLayout) -> Nests:
    """Merge four blocks per trip; the first vector of each represents the whole block."""
    first = k.source
    length = 4 * block_pairs(k.work) * PAIR_BYTES if k.work.scalars else first.valid_cols * first.element_bits // 8
    region = NestRegion(first.element_bits, length, k.dst.valid_rows, first.valid_cols)
    names = tuple(f"v{number}" for number in range(len(k.work.sources)))
    loads = tuple(
        k.load(name, "NORM", tile.address, (tile.row_pitch, length))
        for name, tile in zip(names, k.work.sources, strict=True)
    )
    (merged_step,) = chain(k.rule.instructions, names, region.width)
    return (region.nest((*loads, region.predicate, *region.stored((merged_step,))), (k.dst.row_pitch, length)),)


def _transposition(k: KernelLayout) -> Nests:
    """Rows that are shorter than columns are scattered; else the columns are gathered, by addresses made on the way.

    Columns of bytes are always gathered, into lanes of 16 bits: inferred from the cycles of such rows.
    """
    source, dst = k.source, k.dst
    rows, cols = source.valid_rows, source.valid_cols
    scatter, *gather = k.rule.instructions
    if rows < cols and source.element_bits > 8:
        region = k.rows(source)
        load = k.load("v0", "NORM", source.address, region.steps(source))
        (scattered,) = chain((scatter,), ("v0",), region.width)
        scattered = with_words(scattered, held=_spread_cycles(k, region, cols, dst.row_pitch))
        return (region.nest((load, region.predicate, *region.stored((scattered,))), region.steps(dst)),)
    k.add(source.address)
    region = k.rows(dst, cols, rows, k.register_bytes // 2 if source.element_bits == 8 else 0)
    *places, gathered = chain(gather, ("v0",), region.width)
    gathered = with_words(gathered, held=_spread_cycles(k, region, rows, source.row_pitch))
    trip: Trip = (region.predicate, *steps_of("v0 = vci", region.width), *region.stored((*places, gathered)))
    return (region.nest(trip, region.steps(dst)),)


def _spread_cycles(k: KernelLayout, region: NestRegion, count: int, pitch: int) -> int:
    """Return the cycles for which an access of a trip's lanes, `pitch` bytes apart, occupies the port of its kind.

    The lanes are the average of the trips of a row of `count` elements. Blocks that share a bank group pass
    at half a block per cycle, the documented rate for blocks that share none (2 cycles); a lane never takes more
    than one, and one cycle precedes. Source: 14 transpositions in the vendor's simulator, with pitches of 32 to 256
    bytes (pto-isa mirror, a5_benchmark.csv).
    """
    lanes = -(-count // max(1, -(-count // region.elements)))
    blocks = {lane * pitch // BLOCK for lane in range(lanes)}
    busiest = max(Counter(block % k.target.banks.groups for block in blocks).values())
    return 1 + max(2, min(2 * busiest, len(blocks)))


def _concatenation(k: KernelLayout) -> Nests:
    """Return the concatenation: the first part loaded and stored, the second scattered to computed addresses.

    Counts are loaded once per row; that they change nothing else is assumed.
    """
    first, second, *counts = k.work.sources
    rows = k.dst.valid_rows
    ahead: Trip = tuple(
        k.load(f"n{number}", "BRC_B32", tile.address, (tile.row_pitch, 0)) for number, tile in enumerate(counts)
    )
    nests: list[Nest] = []
    if first.valid_cols:
        copied = moved(k, k.rows(first, rows), first)
        nests.append(replace(copied, row=ahead, trip=_in_order(copied.trip), paced="counts" if counts else None))
    if second.valid_cols:
        region = k.rows(second, rows)
        load = k.load("v0", "NORM", second.address, region.steps(second))
        *places, scatter = k.rule.instructions
        steps = chain(places, ("c",), region.width)
        scattered = compute_step(scatter, ("s",), ("v0", steps[-1].results[0]), region.width)
        behind = k.add(k.dst.address + first.valid_cols * first.element_bits // 8)
        trip: Trip = (load, region.predicate, *steps_of("c = vci", region.width), *steps, *region.stored((scattered,)))
        nests.append(region.nest(_in_order(trip), region.steps(k.dst), writes=behind))
    return tuple(nests)


def _in_order(trip: Trip) -> Trip:
    """Return a trip whose final store waits for earlier ones, because the parts of a row share a line.

    This is inferred from the vendor's simulator, where rows of two vectors take 27 cycles for every type.
    """
    return (*trip[:-1], barrier_step("VST_VST"), trip[-1])


# Quantisation to 8 bits, the way back, and packing (docs/reference/pto.md section 7.12).
#
# Facts: pto-isa include/pto/npu/a5 @ 3186c381, TQuant.hpp and TDeQuant.hpp; packing: the library of 2026-04-16.

_TO_BYTES = ("vcvt",) * 4
"""Conversions from f32 to 8 bits: by way of s32, f32 and f16."""

_PACKED = {(32, 16): "PK_B32", (32, 8): "PK4_B32", (16, 8): "PK_B16"}
"""Distribution of a store that keeps the low bytes, by the bits of elements before and after."""

_PACED = {"PK4_B32": "quarter_store", "PK_B16": "byte_store"}
"""The fact that keeps the trips of a packing apart, by the distribution of its store."""


def _packing(k: KernelLayout) -> Nests:
    region = k.rows(k.source)
    load = k.load("v0", "NORM", k.source.address, region.steps(k.source))
    packed = _PACKED[k.source.element_bits, k.dst.element_bits]
    stored = k.dst.row_pitch, region.elements * k.dst.element_bits // 8
    return (region.nest((region.predicate, load, store_step("v0", "p", packed)), stored, paced=_PACED.get(packed)),)


def _combination(k: KernelLayout) -> Nests:
    """Return a nest for each result: all sources loaded, the instructions, a store, narrowed if necessary.

    A trip fills a register of the operand whose rows have most bytes, and takes an equal share of the others: assumed.
    """
    outputs, sources = (k.dst, *k.work.further), k.work.sources
    lead = max((*outputs, *sources), key=_row_bits)
    region, nests = k.rows(lead, k.dst.valid_rows), list[Nest]()

    def steps(tile: Tile) -> tuple[int, int]:
        return tile.row_pitch, max(region.trip_bytes * _row_bits(tile) // _row_bits(lead), 1)

    for output in outputs:
        names = tuple(f"v{number}" for number in range(len(sources)))
        loads = [k.load(name, "NORM", tile.address, steps(tile)) for name, tile in zip(names, sources, strict=True)]
        computed = chain(k.rule.instructions, names, region.width)
        narrows = VECTOR_OPERATIONS[k.work.mnemonic].kind is Kind.NARROW
        form = _PACKED[sources[0].element_bits, output.element_bits] if narrows else f"NORM_B{region.width}"
        store = store_step(computed[-1].results[0], "p", form)
        writes = None if output is k.dst else k.add(output.address)
        trip: Trip = (*loads, region.predicate, *computed, store)
        gathers = VECTOR_OPERATIONS[k.work.mnemonic].kind is Kind.BLOCK_GATHER and region.width < 32
        paced = "block_gather" if gathers else _PACED.get(form)
        nests.append(region.nest(trip, steps(output), writes=writes, paced=paced))
    return tuple(nests)


def _row_bits(tile: Tile) -> int:
    return tile.valid_cols * tile.element_bits


def _quantisation(k: KernelLayout) -> Nests:
    """Parameters are loaded again in every trip."""
    source, *parameters = k.work.sources
    region = k.rows(source)
    names = tuple(f"s{number}" for number in range(len(parameters)))
    spread = tuple(k.load(name, "BRC_B32", tile.address, (4, 0)) for name, tile in zip(names, parameters, strict=True))
    load = k.load("v0", "NORM", source.address, region.steps(source))
    computed, last = [], "v0"
    for mnemonic, name in zip(k.rule.instructions, names, strict=False):
        computed.append(compute_step(mnemonic, (f"{name}r",), (last, name), region.width))
        last = f"{name}r"
    converted = chain(_TO_BYTES, (last,), region.width)
    store = store_step(converted[-1].results[0], "p", "PK4_B32")
    trip: Trip = (region.predicate, *spread, load, *computed, *converted, store)
    paced = "quarter_store_offset" if len(parameters) > 1 else "quarter_store"
    return (region.nest(trip, (k.dst.row_pitch, region.elements), paced=paced),)


def _dequantisation(k: KernelLayout) -> Nests:
    """Parameters are loaded once per row; bytes are widened in two steps."""
    source, scale, offset = k.work.sources
    region = NestRegion(32, k.register_bytes, k.dst.valid_rows, k.dst.valid_cols)
    row = tuple(
        k.load(name, "BRC_B32", tile.address, (4 if tile.type.block_layout == "col_major" else tile.row_pitch, 0))
        for name, tile in (("s0", scale), ("s1", offset))
    )
    narrow = source.element_bits
    steps = (source.row_pitch, region.elements * narrow // 8)
    load = k.load("v0", "UNPK4_B8" if narrow == 8 else "UNPK_B16", source.address, steps)
    widened = chain(("vcvt",) * (2 if narrow == 8 else 1), ("v0",), region.width)
    text = f"d = {{0}} {widened[-1].results[0]} s1; e = {{1}} d s0"
    trip: Trip = (load, region.predicate, *widened, *region.stored(steps_of(text, region.width, k.rule.instructions)))
    return (region.nest(trip, region.steps(k.dst), row=row, post_update=True),)


# Quantisation of blocks: largest magnitudes, exponents and reciprocals, codes (docs/reference/pto.md section 7.12).
#
# Published cycles time f32 with exponents in one line; of other forms the instructions and their order are documented.

_SHORT = 1024
"""Maximum number of f32 elements whose maxima are computed register by register."""

_CUT = ("vand",) * 6 + ("vcmps",) * 6 + ("vcvt",) * 2 + ("vsel",) * 4
"""Instructions that cut two registers of f16 to bf16 with their infinities and NaN, under the rule ocp."""

_FIELDS = ("vand", "vand", "vshrs")
_OCP_SINGLE = (*_FIELDS, "vsub", "vsub", "vshls", *("vcmps",) * 3, *("vsel",) * 4)
_NV_SINGLE = ("vmuls", *_FIELDS, "vadds", *("vcmps",) * 5, "vsel", "vsub", "vshls", "vcmps", *("vsel",) * 4)
_OCP_HALF = ("vand", "vand", *("vcmps",) * 3, "vsel", "vsub", "vshrs", "vsel", "vsub", "vsel")
_NV_HALF = (
    "vcvt",
    "vmuls",
    *_FIELDS,
    "vadds",
    *("vcmps",) * 3,
    "vsel",
    "vsub",
    "vshls",
    *("vcmps", "vsel", "vsel") * 2,
)
_SHARED = {(32, "ocp"): _OCP_SINGLE, (32, "nv"): _NV_SINGLE, (16, "ocp"): _OCP_HALF, (16, "nv"): _NV_HALF}
"""Instructions that compute exponents and reciprocals of a register of largest magnitudes, by width and rule.

Those on predicates (pand, por, pnot) are left out: no source has their latency.
"""

_NARROW_OF_HALF = 19
"""Instructions that make the codes of a register of e2m1 from products of f32."""

_ROWS_AT_ONCE = 4
"""Number of rows of a group whose magnitudes one trip compares."""


def _block_quantisation(k: KernelLayout) -> Nests:
    """Return the three passes over memory of one function.

    For short tiles of f32 each register gives the maxima of two groups by two reductions; otherwise four registers
    give those of eight groups. Groups of rows process their columns register by register.
    """
    if grouping_of(k.work).columns:
        return _by_columns(k)
    return (*_maxima(k), _shared(k),
            _codes(k))  # fmt: skip


def _maxima(k: KernelLayout) -> Nests:
    source, (_, maxima, _) = k.work.sources[0], k.work.further
    width, groups, count = source.element_bits, grouping_of(k.work), source.valid_rows * source.valid_cols
    lanes = k.register_bytes * 8 // width
    short = width == 32 and (count <= _SHORT or groups.by_rows)
    vectors = 1 if short else 256 // lanes
    region = NestRegion(width, vectors * k.register_bytes, *_extent(k.work), flat=not groups.by_rows)
    loads = _registers(k, region, source.address, source.row_pitch, vectors)
    cut = _CUT if source.format.name == "f16" and k.work.mode == "ocp" else ()
    magnitude = "vabs" if width == 32 else "vand"
    reductions = ("vcmax", "vcmax") if short else ("vcgmax",)
    steps = chain((*cut, *(magnitude,) * vectors, *("vmax",) * (vectors - 1), *reductions), ("v0",), width)
    size = width // 8
    moved = groups.across * size if groups.by_rows else 0, region.elements // MX_GROUP * size
    scale_store = store_step(steps[-1].results[0], "p", "ONEPT_B32")
    stores: Trip = (
        (scale_store, with_words(scale_store, offset=size)) if short else (region.store(steps[-1].results[0]),)
    )
    trip: Trip = (*loads, region.predicate, *steps, *stores)
    return (region.nest(trip, moved, writes=k.add(maxima.address)),)


def _shared(k: KernelLayout) -> Nest:
    """Process one register of groups per trip; one group if exponents are in rows."""
    (_, maxima, scaling), groups, width = k.work.further, grouping_of(k.work), k.work.sources[0].element_bits
    widened = width == 16 and k.work.mode == "nv"
    trip_bytes = width // 8 if groups.by_rows else k.register_bytes // (2 if widened else 1)
    region = NestRegion(width, trip_bytes, 1, groups.count, flat=True)
    kind = f"BRC_B{width}" if groups.by_rows else "UNPK_B16" if widened else "NORM"
    read = k.load("m", kind, maxima.address, (0, trip_bytes))
    steps = chain(_SHARED[width, k.work.mode or "ocp"], ("m",), width)
    trip: Trip = (read, region.predicate, *steps, barrier_step("VST_VST"), region.store(steps[-1].results[0]))
    return replace(region.nest(trip, (0, trip_bytes), writes=k.add(scaling.address)), paced="after_stores")


def _codes(k: KernelLayout) -> Nest:
    source, (_, _, scaling), groups = k.work.sources[0], k.work.further, grouping_of(k.work)
    width, narrow = source.element_bits, is_narrow(k.work)
    vectors = 2 if width == 16 or repeats_scaling(k.work) else 1
    region = NestRegion(width, vectors * k.register_bytes, *_extent(k.work), flat=not groups.by_rows)
    row = groups.across * width // 8 if groups.by_rows else 0
    steps_of = (row, region.elements // MX_GROUP * width // 8)
    factors = ("s0",) if vectors == 2 else ("s0", "s1")
    spread = tuple(k.load(name, f"BRC_B{width}", scaling.address, steps_of) for name in factors)
    given = _registers(k, region, source.address, source.row_pitch, vectors)
    products = chain(_rounding(k.work, vectors), ("v0",), width)
    packed = "NORM_B8" if width == 16 else "PK_B32" if vectors == 2 else "PK4_B32"
    last, stored = products[-1].results[0], region.elements // (2 if narrow else 1)
    stores: Trip = (store_step(last, "p", packed),)
    if narrow and source.format.name == "bf16":
        stores = (store_step(products[-2].results[0], "p", "PK4_B32"), store_step(last, "p", "PK4_B32", stored // 2))
    moved = k.work.dst.row_pitch if groups.by_rows else 0, stored
    paced = "quarter_codes_after_stores" if packed == "PK4_B32" else "codes_after_stores"
    return region.nest((*spread, *given, region.predicate, *products, *stores), moved, paced=paced)


def _rounding(work: ResolvedTileOp, vectors: int) -> tuple[str, ...]:
    """Return the instructions from elements to codes of one trip."""
    source = work.sources[0].format.name
    if source == "f32":
        return "vmul", "vmul", *("vcvt",) * vectors, "vor"
    if not is_narrow(work):
        before = ("vmul",) * 2 + ("vcvt",) * 4 if source == "bf16" else ("vcvt",) * 5 + ("vmul",) * 4
        return *before, *("vcvt",) * 4, *("vor",) * 3
    if source == "bf16":
        return *("vmul",) * 2, *("vand", "vcmps", "vsel") * 2, "vintlv", *("vcvt",) * 2
    packing = ("vand",) * (4 * _NARROW_OF_HALF) + (*("vshls",) * 4, "vor", "vselr") * 2
    return *("vcvt",) * 5, *("vmul",) * 4, *packing, "vintlv"


def _by_columns(k: KernelLayout) -> Nests:
    """Process groups of rows: for each register of columns four rows per trip, then all groups of a row, by rows."""
    source, (_, maxima, scaling), groups = k.work.sources[0], k.work.further, grouping_of(k.work)
    width, size = source.element_bits, source.element_bits // 8
    lanes, down = k.register_bytes // size, groups.down
    columns = range(-(-groups.across // lanes))
    cut = _CUT * 2 if source.format.name == "f16" and k.work.mode == "ocp" else ()
    magnitude = "vabs" if width == 32 else "vand"
    first, last = [], []
    for number in columns:
        at = number * k.register_bytes
        region = NestRegion(width, _ROWS_AT_ONCE * size, down, MX_GROUP)  # as many trips as steps of four rows
        loads = tuple(
            k.load(
                f"v{row}", "NORM", source.address + at + row * source.row_pitch,
                (MX_GROUP * source.row_pitch, _ROWS_AT_ONCE * source.row_pitch),
            )
            for row in range(_ROWS_AT_ONCE)
        )  # fmt: skip
        steps = chain((*cut, *(magnitude,) * _ROWS_AT_ONCE, *("vmax",) * _ROWS_AT_ONCE), ("v0",), width)
        ends = chain(("vmax",) * 3, (steps[-1].results[0],), width)
        first.append(
            region.nest(
                (*loads, *steps),
                (maxima.row_pitch, 0),
                writes=k.add(maxima.address + at),
                close=(*ends, store_step(ends[-1].results[0], "p", f"NORM_B{width}")),
                close_bytes=k.register_bytes,
            )
        )
        last.append(_column_of_codes(k, number))
    region = NestRegion(width, k.register_bytes, down, groups.across)
    read = k.load("m", "NORM", maxima.address, (maxima.row_pitch, k.register_bytes))
    steps = chain(_SHARED[width, k.work.mode or "ocp"], ("m",), width)
    trip: Trip = (read, region.predicate, *steps, barrier_step("VST_VST"), region.store(steps[-1].results[0]))
    scaled = region.nest(trip, (scaling.row_pitch, k.register_bytes), writes=k.add(scaling.address))
    return (*first, replace(scaled, paced="after_stores"), *last)


def _column_of_codes(k: KernelLayout, number: int) -> Nest:
    """Load the reciprocals of every group once, then process 32 rows in sequence."""
    source, dst, scaling = k.work.sources[0], k.work.dst, k.work.further[2]
    width, size, narrow = source.element_bits, source.element_bits // 8, is_narrow(k.work)
    at, half = number * k.register_bytes, source.element_bits == 16
    region = NestRegion(width, size, grouping_of(k.work).down, MX_GROUP)
    spread = k.load("s0", "NORM", scaling.address + at, (scaling.row_pitch, 0))
    row: Trip = (spread, *(chain(("vcvt",) * 2, ("s0",), 32) if half else ()))
    load = k.load("v0", "NORM", source.address + at, (MX_GROUP * source.row_pitch, source.row_pitch))
    if not half:
        names: tuple[str, ...] = ("vmul", "vcvt")
    elif not narrow:
        names = ("vcvt", "vcvt", "vmul", "vmul", "vcvt", "vcvt", "vor")
    elif source.format.name == "bf16":
        names = ("vmul", "vand", "vcmps", "vsel", "vcvt")
    else:
        names = ("vcvt", "vcvt", "vmul", "vmul", *("vand",) * (2 * _NARROW_OF_HALF), *("vshls",) * 4, "vor", "vselr")
    steps = chain(names, ("v0",), width)
    stored = k.register_bytes // size // (2 if narrow else 1)
    store = store_step(steps[-1].results[0], "p", "PK_B32" if half else "PK4_B32")
    nest = region.nest(
        (load, *steps, store), (MX_GROUP * dst.row_pitch, dst.row_pitch), row=row,
        writes=k.add(dst.address + number * stored),
    )  # fmt: skip
    return replace(nest, paced="codes_after_stores" if not number else None)


def _boxing(k: KernelLayout) -> Nests:
    """Return the passes of a move into boxes.

    Codes: a load and a store of blocks for each register of a row. Exponents by rows: the offsets of the boxes are
    computed into tmp, then boxes gathered, 8 at once; by columns two rows are interleaved.
    """
    source = k.work.sources[0]
    if not is_exponents(k.work):
        registers = -(-source.valid_cols * source.element_bits // (8 * k.register_bytes))
        region = NestRegion(8, 1, registers, source.valid_rows)  # as many trips as rows
        load = k.load("v0", "NORM", source.address, (k.register_bytes, source.row_pitch))
        column = -(-source.valid_rows // 16) * 16 * k.register_bytes
        return (region.nest((load, store_step("v0", "p", "NORM_B8")), (column, BLOCK)),)
    rows, groups = exponent_shape(k.work)
    if k.work.by_columns:
        region = NestRegion(8, k.register_bytes // 2, groups // 2, rows)
        pair = tuple(
            k.load(f"v{row}", "NORM", source.address + row * rows, (2 * rows, region.trip_bytes)) for row in range(2)
        )
        mixed = chain(("vintlv",), ("v0", "v1"), 8)
        stored = store_step(mixed[-1].results[0], "p", "NORM_B8")
        return (region.nest((*pair, *mixed, region.predicate, stored), (BLOCK, groups * region.trip_bytes)),)
    assert k.work.tmp is not None
    blocks = -(-rows // 16)
    ramp_step, *moved = k.rule.instructions
    ramp = NestRegion(16, groups, blocks, groups // 2)
    offsets = ramp.nest(
        (*chain((ramp_step,), (), 16), ramp.predicate, ramp.store("r0")), (groups, 0), writes=k.add(k.work.tmp.address)
    )
    region = NestRegion(8, k.register_bytes, 1, blocks * 16 * groups, flat=True)
    read = k.load("i", "BRC_B16", k.work.tmp.address, (0, k.register_bytes // 16))
    steps = chain(moved, ("i",), 16)
    trip: Trip = (read, *steps, region.predicate, region.store(steps[-1].results[0]))
    return offsets, region.nest(trip, (0, k.register_bytes))


def _extent(work: ResolvedTileOp) -> tuple[int, int]:
    """Return the rows and columns of a pass: all elements in one line unless exponents are in rows."""
    source = work.sources[0]
    if grouping_of(work).by_rows:
        return source.valid_rows, source.valid_cols
    return 1, source.valid_rows * source.valid_cols


def _registers(k: KernelLayout, region: NestRegion, address: int, pitch: int, count: int) -> Trip:
    step = region.trip_bytes // count
    row = 0 if region.flat else pitch
    return tuple(
        k.load(f"v{number}", "NORM", address + number * step, (row, region.trip_bytes)) for number in range(count)
    )


_REARRANGING: Mapping[str, Callable[[KernelLayout], Nests]] = {
    "ramp": _ramp,
    "gather": _gather,
    "pattern_gather": _pattern_gather,
    "compare_gather": _compare_gather,
    "sort": _sort,
    "merge": _merge,
    "transposition": _transposition,
    "concatenation": _concatenation,
    "counted_concatenation": _concatenation,
    "packing": _packing,
    "quantisation": _quantisation,
    "dequantisation": _dequantisation,
    "block_quantisation": _block_quantisation,
    "boxing": _boxing,
    "combination": _combination,
}
"""The layout functions of kernels that rearrange or quantise, by structure."""


# From one vector operation other than a cast to control writes and one vector function.
#
# The kernel of each operation is data of the target (table of kernels, choice of variants); its loops are laid out by
# the functions above and `kernel_nests`. Values are no matter here: see `castsim.execution.vector_operations`.

_LAYOUTS = {**LAYOUTS, **_REARRANGING}

_ONE_LOOP = ("compare", "part", "fill")
"""Structures in which rows of one vector follow each other without a turn of the loop, even if the valid region is
known only at run time: 64 x 64 of f32 take 160 cycles in the vendor's simulator (tpartadd), 32 x 32 of f16 62 (tcmp);
docs/reference/a5.md section 9."""


def lower_work(target: VectorFunctionTarget, work: ResolvedTileOp) -> Block:
    """Choose the kernel of one vector operation and lay out its loops.

    Raises:
        IllegalError: the target has no kernel for this operation.
    """
    kernel = kernel_of(target, work)
    if kernel.structure == "ramp" and not (work.names_tmp or target.option("ramp_without_tmp") == "vector"):
        trip = Block((ScalarWork("write", pipe=target.pipes.scalar), ScalarWork("loop", pipe=target.pipes.scalar)))
        return Block(tuple(loop_of(work.dst.valid_cols, lambda _: trip)))
    laid_out = KernelLayout(target, work, kernel, kernel_variant(target, work))
    nests = _LAYOUTS[kernel.structure](laid_out)
    timed = (TIMED[kernel.structure](laid_out) if kernel.structure in TIMED else ()) or nests
    first, *others = laid_out.addresses or [work.dst.address]
    joins = work.binary and work.tmp is not None
    late = any(tile.type.valid_cols is None for tile in (work.dst, *work.sources))
    if (kernel.structure in LOOPED and not joins) or (kernel.structure not in _ONE_LOOP and late):
        timed = tuple(replace(nest, runtime_trips=True) for nest in timed)
    function = VectorFunction(
        name=f"{work.mnemonic} {work.dst.format.name} {laid_out.variant}",
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
    return controlled(target, writes, function, restores)


def kernel_of(target: VectorFunctionTarget, work: ResolvedTileOp) -> VectorFunctionOperation:
    """Return the kernel of an operation.

    Raises:
        IllegalError: there is no such operation; the message names the closest ones.
    """
    kernel = target.tile_operation(work.mnemonic)
    if kernel is None:
        raise IllegalError(
            f"target '{target.name}' has no kernel for pto.{work.mnemonic}",
            span=work.span,
            legal=closest(work.mnemonic, [rule.mnemonic for rule in target.tile_operations]),
        )
    return kernel


def kernel_variant(target: VectorFunctionTarget, work: ResolvedTileOp) -> KernelVariant:
    """Return the code variant that runs, by the tiles and the implementation kind in force."""
    choice = target.kernel_variants[kernel_of(target, work).choice]
    variants = choice.contiguous if are_contiguous(work.dst, *work.sources) else choice.padded
    return variants[int(target.option("implementation_kind"))]


def left_ctrl(target: VectorFunctionTarget) -> int:
    """Return CTRL after a block quantisation: NaN is kept and all other bits are 0, or CTRL is unchanged."""
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
    """Return the format in which elements move: packed pairs move as bytes."""
    return format_named("u8") if fmt.bits == 4 else fmt


class VectorFunctionLowerer(DataflowLowerer):
    """Lowering for one target. Equal casts are lowered and proven once, equal operations lowered once."""

    def __init__(self, target: VectorFunctionTarget, *, unsafe_scratch: bool = False) -> None:
        """Store a target; its casts use no tmp tile, so none is too small."""
        super().__init__(target)
        self.target = self._at_start = target
        self._control: int | None = None
        self._unwatched = unwatched(target)
        self._casts: dict[TileCast, LoweredInstruction] = {}
        self._works: dict[ResolvedTileOp, Block] = {}

    def element_bits(self, fmt: Format) -> int:
        """Return the bits of one element in a tile's pitch and in pointer arithmetic; 4-bit elements share bytes."""
        return fmt.bits if fmt.bits == 4 else fmt.storage_bits

    def cast(self, cast: TileCast) -> LoweredInstruction:
        """Lower one tile cast, and prove whether it may be converted in one call."""
        lowered_cast = self._casts.get(cast)
        if lowered_cast is None:
            try:
                asked, choices = self.assembled(cast)
                lowered = lower_cast(self.target, asked)
            except CastsimError as error:
                raise error.at(cast.span) from None
            shortcut = whole_tile(lowered.function, cast.src, cast.dst)
            tiles = CastTiles(cast.src, cast.dst, lowered.plan.rounding, _wraps(shortcut))
            lowered_cast = LoweredInstruction(
                lowered.body, _accesses(cast, lowered), shortcut, lowered.warnings, choices, tiles
            )
            self._casts[cast] = lowered_cast
        return lowered_cast

    def assembled(self, cast: TileCast) -> tuple[TileCast, tuple[ProgramChoice, ...]]:
        """Add the choice of the back end if it decides the cast's result."""
        asked, choices = super().assembled(cast)
        src, dst = cast.src.format, cast.dst.format
        if not backend_matters(self.target, src, dst):
            return asked, choices
        effect = f"{src.name} -> {dst.name} {backend_effect(self.target)}"
        return asked, (*choices, ProgramChoice(BACKEND, str(self.target.option(BACKEND)), effect))

    def differ(self, first: TileCast, other: TileCast) -> bool:
        """Return whether two casts that differ only in saturation can give different results."""
        return outcome(self._unwatched, first) != outcome(self._unwatched, other)

    def lower_work(self, work: ResolvedTileOp) -> Block:
        """Return the vector function of any other vector operation, with the control writes around it.

        No source states the loops of a column-major move; those of the transposed tile are assumed. After a block
        quantisation everything is lowered under its final CTRL.
        """
        work = as_rows(work)
        lowered = self._works.get(work)
        if lowered is None:
            lowered = self._works[work] = lower_work(self.target, work)
        if VECTOR_OPERATIONS[work.mnemonic].kind is Kind.BLOCK_QUANTISE:
            left = left_ctrl(self.target)
            if left != start_ctrl(self.target):
                self.set_control(left)
        return lowered

    def control(self) -> int | None:
        """Return CTRL as left by operations."""
        return self._control

    def set_control(self, value: int | None) -> None:
        """Set the assumed value of CTRL, None for the initial one; earlier lowerings are discarded."""
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
    """Return whether any step keeps the low bits of integers beyond the range; None if the steps are unknown."""
    if whole is None:
        return None
    return any(isinstance(step, ConvertStep) and step.policy.overflow is Overflow.WRAP for step in whole.chain)


def _accesses(cast: TileCast, lowered: FunctionCast) -> tuple[Access, ...]:
    """Return the bytes between the first and last valid element of both tiles, and those that a zero fill clears."""
    written, read = tile_access(cast.dst, write=True), tile_access(cast.src, write=False)
    if lowered.filled:
        end = max(written.end, cast.dst.address + lowered.filled)
        written = Access(written.space, written.start, end, write=True)
    return tuple(access for access in (written, read) if access.start < access.end)
