"""Loop nests of the quantisation of blocks: largest magnitudes, exponents and reciprocals, codes.

Facts: docs/reference/pto.md section 7.12, after pto-isa include/pto/npu/a5 @ 3186c381, TQuant.hpp. Published
cycles time f32 with exponents in one line; of other forms the instructions and their order are documented.
"""

from __future__ import annotations

from dataclasses import replace

from castsim.execution.tiles import ResolvedTileOp
from castsim.execution.vector_operations.quantising import MX_GROUP, grouping_of, is_narrow, repeats_scaling
from castsim.execution.vector_operations.scratch import exponent_shape, is_exponents
from castsim.execution.vector_operations.shapes import BLOCK
from castsim.machines.vector_function.function_operations import Load, MemoryBarrier, Nest, Store
from castsim.machines.vector_function.kernel_nests import Operands, Region, Trip, chain

_SHORT = 1024
"""Elements of f32 up to which maxima are taken register by register."""

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
"""Instructions that make exponents and reciprocals of a register of largest magnitudes, by width and rule.

Those on predicates (pand, por, pnot) are left out: no source has a latency of them.
"""

_NARROW_OF_HALF = 19
"""Instructions that make the codes of a register of e2m1 from products of f32."""

_ROWS_AT_ONCE = 4
"""Rows of a group whose magnitudes are compared in one trip."""


def block_nests(operands: Operands, work: ResolvedTileOp, register_bytes: int) -> tuple[Nest, ...]:
    """Return the three passes over memory of one function.

    Of short tiles of f32 each register gives the maxima of two groups by two reductions; of others four give those of
    eight. Groups of rows take their columns register by register.
    """
    if grouping_of(work).columns:
        return _by_columns(operands, work, register_bytes)
    return (*_maxima(operands, work, register_bytes), _shared(operands, work, register_bytes),
            _codes(operands, work, register_bytes))  # fmt: skip


def _maxima(operands: Operands, work: ResolvedTileOp, register_bytes: int) -> tuple[Nest, ...]:
    source, (_, maxima, _) = work.sources[0], work.further
    width, groups, count = source.element_bits, grouping_of(work), source.valid_rows * source.valid_cols
    lanes = register_bytes * 8 // width
    short = width == 32 and (count <= _SHORT or groups.by_rows)
    vectors = 1 if short else 256 // lanes
    region = Region(width, vectors * register_bytes, *_extent(work), flat=not groups.by_rows)
    loads = _registers(operands, region, source.address, source.row_pitch, vectors)
    cut = _CUT if source.format.name == "f16" and work.mode == "ocp" else ()
    magnitude = "vabs" if width == 32 else "vand"
    reductions = ("vcmax", "vcmax") if short else ("vcgmax",)
    steps = chain((*cut, *(magnitude,) * vectors, *("vmax",) * (vectors - 1), *reductions), ("v0",), width)
    size = width // 8
    moved = groups.across * size if groups.by_rows else 0, region.elements // MX_GROUP * size
    each = Store(steps[-1].results[0], "p", "ONEPT_B32")
    stores: Trip = (each, replace(each, offset=size)) if short else (region.store(steps[-1].results[0]),)
    trip: Trip = (*loads, region.predicate, *steps, *stores)
    return (region.nest(trip, moved, writes=operands.add(maxima.address)),)


def _shared(operands: Operands, work: ResolvedTileOp, register_bytes: int) -> Nest:
    """One register of groups a trip; where exponents lie in rows one group."""
    (_, maxima, scaling), groups, width = work.further, grouping_of(work), work.sources[0].element_bits
    widened = width == 16 and work.mode == "nv"
    trip_bytes = width // 8 if groups.by_rows else register_bytes // (2 if widened else 1)
    region = Region(width, trip_bytes, 1, groups.count, flat=True)
    kind = f"BRC_B{width}" if groups.by_rows else "UNPK_B16" if widened else "NORM"
    read = operands.load("m", kind, maxima.address, (0, trip_bytes))
    steps = chain(_SHARED[width, work.mode or "ocp"], ("m",), width)
    trip: Trip = (read, region.predicate, *steps, MemoryBarrier("VST_VST"), region.store(steps[-1].results[0]))
    return replace(region.nest(trip, (0, trip_bytes), writes=operands.add(scaling.address)), paced="after_stores")


def _codes(operands: Operands, work: ResolvedTileOp, register_bytes: int) -> Nest:
    source, (_, _, scaling), groups = work.sources[0], work.further, grouping_of(work)
    width, narrow = source.element_bits, is_narrow(work)
    vectors = 2 if width == 16 or repeats_scaling(work) else 1
    region = Region(width, vectors * register_bytes, *_extent(work), flat=not groups.by_rows)
    row = groups.across * width // 8 if groups.by_rows else 0
    steps_of = (row, region.elements // MX_GROUP * width // 8)
    factors = ("s0",) if vectors == 2 else ("s0", "s1")
    spread = tuple(operands.load(name, f"BRC_B{width}", scaling.address, steps_of) for name in factors)
    given = _registers(operands, region, source.address, source.row_pitch, vectors)
    products = chain(_rounding(work, vectors), ("v0",), width)
    packed = "NORM_B8" if width == 16 else "PK_B32" if vectors == 2 else "PK4_B32"
    last, stored = products[-1].results[0], region.elements // (2 if narrow else 1)
    stores: Trip = (Store(last, "p", packed),)
    if narrow and source.format.name == "bf16":
        stores = (Store(products[-2].results[0], "p", "PK4_B32"), Store(last, "p", "PK4_B32", stored // 2))
    moved = work.dst.row_pitch if groups.by_rows else 0, stored
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
    found = ("vand",) * (4 * _NARROW_OF_HALF) + (*("vshls",) * 4, "vor", "vselr") * 2
    return *("vcvt",) * 5, *("vmul",) * 4, *found, "vintlv"


def _by_columns(operands: Operands, work: ResolvedTileOp, register_bytes: int) -> tuple[Nest, ...]:
    """Groups of rows: of each register of columns four rows a trip, then all groups of a row, then row after row."""
    source, (_, maxima, scaling), groups = work.sources[0], work.further, grouping_of(work)
    width, size = source.element_bits, source.element_bits // 8
    lanes, down = register_bytes // size, groups.down
    columns = range(-(-groups.across // lanes))
    cut = _CUT * 2 if source.format.name == "f16" and work.mode == "ocp" else ()
    magnitude = "vabs" if width == 32 else "vand"
    first, last = [], []
    for number in columns:
        at = number * register_bytes
        region = Region(width, _ROWS_AT_ONCE * size, down, MX_GROUP)  # as many trips as steps of four rows
        loads = tuple(
            operands.load(
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
                writes=operands.add(maxima.address + at),
                close=(*ends, Store(ends[-1].results[0], "p", f"NORM_B{width}")),
                close_bytes=register_bytes,
            )
        )
        last.append(_column_of_codes(operands, work, number, register_bytes))
    region = Region(width, register_bytes, down, groups.across)
    read = operands.load("m", "NORM", maxima.address, (maxima.row_pitch, register_bytes))
    steps = chain(_SHARED[width, work.mode or "ocp"], ("m",), width)
    trip: Trip = (read, region.predicate, *steps, MemoryBarrier("VST_VST"), region.store(steps[-1].results[0]))
    made = region.nest(trip, (scaling.row_pitch, register_bytes), writes=operands.add(scaling.address))
    return (*first, replace(made, paced="after_stores"), *last)


def _column_of_codes(operands: Operands, work: ResolvedTileOp, number: int, register_bytes: int) -> Nest:
    """Every group loads its reciprocals once, then 32 rows one after the other."""
    source, dst, scaling = work.sources[0], work.dst, work.further[2]
    width, size, narrow = source.element_bits, source.element_bits // 8, is_narrow(work)
    at, half = number * register_bytes, source.element_bits == 16
    region = Region(width, size, grouping_of(work).down, MX_GROUP)
    spread = operands.load("s0", "NORM", scaling.address + at, (scaling.row_pitch, 0))
    row: Trip = (spread, *(chain(("vcvt",) * 2, ("s0",), 32) if half else ()))
    load = operands.load("v0", "NORM", source.address + at, (MX_GROUP * source.row_pitch, source.row_pitch))
    if not half:
        names: tuple[str, ...] = ("vmul", "vcvt")
    elif not narrow:
        names = ("vcvt", "vcvt", "vmul", "vmul", "vcvt", "vcvt", "vor")
    elif source.format.name == "bf16":
        names = ("vmul", "vand", "vcmps", "vsel", "vcvt")
    else:
        names = ("vcvt", "vcvt", "vmul", "vmul", *("vand",) * (2 * _NARROW_OF_HALF), *("vshls",) * 4, "vor", "vselr")
    steps = chain(names, ("v0",), width)
    stored = register_bytes // size // (2 if narrow else 1)
    store = Store(steps[-1].results[0], "p", "PK_B32" if half else "PK4_B32")
    nest = region.nest(
        (load, *steps, store), (MX_GROUP * dst.row_pitch, dst.row_pitch), row=row,
        writes=operands.add(dst.address + number * stored),
    )  # fmt: skip
    return replace(nest, paced="codes_after_stores" if not number else None)


def box_nests(
    operands: Operands, work: ResolvedTileOp, instructions: tuple[str, ...], register_bytes: int
) -> tuple[Nest, ...]:
    """Return the passes of a move into boxes.

    Codes: a load and a store of blocks for each register of a row. Exponents by rows: the offsets of the boxes are
    computed into tmp, then boxes gathered, 8 at once; by columns two rows are interleaved.
    """
    source = work.sources[0]
    if not is_exponents(work):
        registers = -(-source.valid_cols * source.element_bits // (8 * register_bytes))
        region = Region(8, 1, registers, source.valid_rows)  # as many trips as rows
        load = operands.load("v0", "NORM", source.address, (register_bytes, source.row_pitch))
        column = -(-source.valid_rows // 16) * 16 * register_bytes
        return (region.nest((load, Store("v0", "p", "NORM_B8")), (column, BLOCK)),)
    rows, groups = exponent_shape(work)
    if work.by_columns:
        region = Region(8, register_bytes // 2, groups // 2, rows)
        pair = tuple(
            operands.load(f"v{row}", "NORM", source.address + row * rows, (2 * rows, region.trip_bytes))
            for row in range(2)
        )
        mixed = chain(("vintlv",), ("v0", "v1"), 8)
        stored = Store(mixed[-1].results[0], "p", "NORM_B8")
        return (region.nest((*pair, *mixed, region.predicate, stored), (BLOCK, groups * region.trip_bytes)),)
    assert work.tmp is not None
    blocks = -(-rows // 16)
    made, *moved = instructions
    ramp = Region(16, groups, blocks, groups // 2)
    offsets = ramp.nest(
        (*chain((made,), (), 16), ramp.predicate, ramp.store("r0")), (groups, 0), writes=operands.add(work.tmp.address)
    )
    region = Region(8, register_bytes, 1, blocks * 16 * groups, flat=True)
    read = operands.load("i", "BRC_B16", work.tmp.address, (0, register_bytes // 16))
    steps = chain(tuple(moved), ("i",), 16)
    trip: Trip = (read, *steps, region.predicate, region.store(steps[-1].results[0]))
    return offsets, region.nest(trip, (0, register_bytes))


def _extent(work: ResolvedTileOp) -> tuple[int, int]:
    """Return rows and columns that a pass walks: all elements in one line unless exponents lie in rows."""
    source = work.sources[0]
    if grouping_of(work).by_rows:
        return source.valid_rows, source.valid_cols
    return 1, source.valid_rows * source.valid_cols


def _registers(operands: Operands, region: Region, address: int, pitch: int, count: int) -> tuple[Load, ...]:
    step = region.trip_bytes // count
    row = 0 if region.flat else pitch
    return tuple(
        operands.load(f"v{number}", "NORM", address + number * step, (row, region.trip_bytes))
        for number in range(count)
    )
