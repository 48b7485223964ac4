"""Loop nests of the kernels that fold or spread an axis, and of padding.

Facts: docs/reference/a5.md section 9, after pto-isa include/pto/npu/a5 @ 3186c381; which of the kernels are assumed is
said in the table of kernels of the target.
"""

from __future__ import annotations

from dataclasses import replace

from castsim.execution.dataflow.operations import BLOCK
from castsim.execution.tiles import Tile
from castsim.isa.formats import IntFormat
from castsim.machines.vector_function.kernel_nests import (
    COUNTER,
    Operands,
    Region,
    Steps,
    Trip,
    chain,
    loads_of,
    move,
    post_updates,
)
from castsim.machines.vector_function.operations import Compute, Load, Nest, RegisterOperation, Store, TripSelect
from castsim.targets.vector_function_operations import KernelVariant

BLOCK_LOAD = "BLK"
"""Distribution of a load of one block, repeated over the register."""


def element_steps(tile: Tile) -> Steps:
    """Return the steps over a tile of one element per row: dense where it is column-major."""
    return (tile.element_bits // 8 if tile.type.block_layout == "col_major" else tile.row_pitch), 0


def row_reduction(
    operands: Operands,
    region: Region,
    source: Tile,
    destination: Tile,
    mnemonics: tuple[str, ...],
    variant: KernelVariant,
) -> Nest:
    """Per trip a reduction and an accumulation, per row a store of one element.

    Eight-bit elements are widened before the reduction and narrowed after it; sums of 16-bit integers, which are of
    32 bits, are narrowed before the store.
    """
    width = region.width
    reduce, accumulate = mnemonics
    loads, _ = loads_of(operands, region, (source,))
    steps: tuple[Compute, ...]
    if width == 8:
        steps = (
            *(Compute("vcvt", (f"w{half}",), ("v0",), 16) for half in range(2)),
            *(Compute(reduce, (f"t{half}",), (f"w{half}",), 16) for half in range(2)),
            Compute(accumulate, ("t",), ("t0", "t1"), 16),
            Compute("vcvt", ("r",), ("t",), 16),
        )
    else:
        steps = (Compute(reduce, ("r",), ("v0",), width),)
    narrowed = reduce == "vcadd" and width == 16 and isinstance(source.format, IntFormat)
    close: list[RegisterOperation] = [Compute("vcvt", ("out",), ("acc",), width)] if narrowed else []
    close.append(Store("out" if narrowed else "acc", "one", f"ONEPT_B{width}"))
    return region.nest(
        (*loads, region.predicate, *steps, Compute(accumulate, ("acc",), ("acc", "r"), width)),
        element_steps(destination),
        close=tuple(close),
        close_bytes=width // 8,
        post_update=post_updates(variant),
    )


def row_product(
    operands: Operands, region: Region, source: Tile, destination: Tile, mnemonic: str, variant: KernelVariant
) -> Nest:
    """Products lane by lane, then of the halves of a vector until one lane is left."""
    width = region.width
    loads, _ = loads_of(operands, region, (source,))
    close: list[RegisterOperation] = []
    last = "acc"
    for number in range(region.elements.bit_length() - 1):
        close.append(Compute("vintlv_lanes", (f"h{number}",), (last,), width))
        close.append(Compute(mnemonic, (f"f{number}",), (last, f"h{number}"), width))
        last = f"f{number}"
    return region.nest(
        (*loads, region.predicate, Compute(mnemonic, ("acc",), ("acc", "v0"), width)),
        element_steps(destination),
        close=(*close, Store(last, "one", f"ONEPT_B{width}")),
        close_bytes=width // 8,
        post_update=post_updates(variant),
    )


def column_reduction(operands: Operands, region: Region, source: Tile, destination: Tile, mnemonic: str) -> Nest:
    """Vector by vector: a load and an accumulation per row, then a store."""
    size = region.trip_bytes
    load = operands.load("v0", "NORM", source.address, (size, source.row_pitch))
    vectors = -(-region.cols // region.elements)
    down = Region(region.width, region.width // 8, vectors, region.rows)  # as many trips as rows
    return down.nest(
        (load, Compute(mnemonic, ("acc",), ("acc", "v0"), region.width)),
        (size, 0),
        close=(Store("acc", "p", f"NORM_B{region.width}"),),
        close_bytes=size,
    )


def row_argument(
    operands: Operands, region: Region, source: Tile, destination: Tile, mnemonics: tuple[str, ...]
) -> Nest:
    """Per trip a reduction to value and place, a comparison with the best so far, the choice of both; a store per row.

    Source: none; assumed, on the structure of a row reduction.
    """
    reduce, compare, choose = mnemonics
    width = region.width
    loads, _ = loads_of(operands, region, (source,))
    steps = (
        Compute(reduce, ("r",), ("v0",), width),
        Compute(compare, ("q",), ("r", "best"), width),
        Compute(choose, ("best",), ("r", "best", "q"), width),
        Compute(choose, ("place",), ("r", "place", "q"), width),
    )
    return region.nest(
        (*loads, region.predicate, *steps),
        element_steps(destination),
        close=(Store("place", "one", "ONEPT_B32"),),
        close_bytes=destination.element_bits // 8,
        paced="row_argument",
    )


def column_argument(
    operands: Operands, region: Region, source: Tile, destination: Tile, mnemonics: tuple[str, ...]
) -> Nest:
    """Vector by vector: per row a load, a comparison, the choice of value and row number; then the row numbers stored.

    Source: none; assumed, on the structure of a column reduction. Numbers of narrower elements take several stores.
    """
    compare, choose = mnemonics
    size = region.trip_bytes
    load = operands.load("v0", "NORM", source.address, (size, source.row_pitch))
    vectors = -(-region.cols // region.elements)
    down = Region(region.width, region.width // 8, vectors, region.rows)  # as many trips as rows
    wide = size * destination.element_bits // region.width
    parts = tuple(Store("place", "p", "NORM_B32", offset) for offset in range(0, wide, size))
    trip: Trip = (
        load,
        Compute(compare, ("q",), ("v0", "best"), region.width),
        Compute(choose, ("best",), ("v0", "best", "q"), region.width),
        Compute(choose, ("place",), ("v0", "place", "q"), region.width),
    )
    return down.nest(trip, (wide, 0), close=parts, close_bytes=wide)


def column_halving(
    operands: Operands, region: Region, source: Tile, destination: Tile, tmp: Tile, mnemonic: str
) -> tuple[Nest, ...]:
    """Neighbouring rows in pairs into tmp, an odd last row onto the first sum, until one is left: that to dst."""
    nests: list[Nest] = []
    rows, source_of = region.rows, source
    if rows == 1:
        return (move(operands, region, source, destination),)
    while rows > 1:
        pairs = rows // 2
        last = pairs == 1
        target = destination if last else tmp
        writes = None if last else operands.add(tmp.address)
        pitch = source_of.row_pitch
        even, odd = (
            operands.load(f"v{half}", "NORM", source_of.address + half * pitch, (2 * pitch, region.trip_bytes))
            for half in range(2)
        )
        step = chain((mnemonic,), ("v0", "v1"), region.width)
        folded = replace(region, rows=pairs)
        trip: Trip = (even, odd, region.predicate, *step, region.store("r0"))
        nests.append(folded.nest(trip, region.steps(target), writes=writes))
        if rows % 2:
            single = replace(region, rows=1)
            rest = operands.load("v0", "NORM", source_of.address + (rows - 1) * pitch, region.steps(source_of))
            first = operands.load("v1", "NORM", target.address, region.steps(target))
            trip = (rest, first, region.predicate, *step, region.store("r0"))
            nests.append(single.nest(trip, region.steps(target), writes=writes))
        rows, source_of = pairs, tmp
    return tuple(nests)


def row_broadcast(
    operands: Operands,
    region: Region,
    full: Tile | None,
    vector: Tile,
    destination: Tile,
    mnemonics: tuple[str, ...],
    *,
    per_row: bool,
) -> Nest:
    """The row's element, loaded once per row, against every vector of the row; without a tile it is only stored.

    Narrow contiguous tiles (not `per_row`) take a row per trip of one loop and load the element in each.
    """
    walk = region
    if not per_row:
        walk = Region(region.width, destination.row_pitch, 1, region.rows * destination.cols, flat=True)
    load = _row_element(operands, region, vector, per_row=per_row)
    trip: Trip = (walk.predicate, walk.store("b"))
    if full is not None:
        loads, names = loads_of(operands, walk, (full,))
        scalar = load.results
        spread: tuple[Compute, ...] = ()
        if not per_row and load.distribution != BLOCK_LOAD:
            spread = (Compute("vdup", ("s",), scalar, region.width),)
            scalar = ("s",)
        steps = chain(mnemonics, (*names, *scalar), region.width)
        trip = (*loads, walk.predicate, *spread, *steps, walk.store(steps[-1].results[0]))
    if per_row:
        return walk.nest(trip, walk.steps(destination), row=(load,))
    return walk.nest((trip[0], load, *trip[1:]), walk.steps(destination))


def _row_element(operands: Operands, region: Region, vector: Tile, *, per_row: bool) -> Load:
    """Return the load of a row's element: to all lanes, or as the block of 32 bytes that repeats it."""
    step = element_steps(vector)[0]
    steps = (step, 0) if per_row else (0, step)
    distribution = f"BRC_B{region.width}" if vector.type.block_layout == "col_major" else BLOCK_LOAD
    return operands.load("b", distribution, vector.address, steps)


def column_expansion(operands: Operands, region: Region, vector: Tile, destination: Tile) -> Nest:
    """Vector by vector: loaded once, stored to every row.

    Source: vendor's simulator, 8 rows of a vector take 60 cycles, 16 rows of four 135.
    """
    size = region.trip_bytes
    load = operands.load("b", "NORM", vector.address, (size, 0))
    vectors = -(-region.cols // region.elements)
    down = Region(region.width, region.width // 8, vectors, region.rows)  # as many trips as rows
    stored = (Store("b", "p", f"NORM_B{region.width}"),)
    return down.nest(stored, (size, destination.row_pitch), row=(load,))


def column_broadcast(
    operands: Operands,
    region: Region,
    full: Tile | None,
    vector: Tile,
    destination: Tile,
    mnemonics: tuple[str, ...],
    variant: KernelVariant,
    *,
    branches: bool,
) -> Nest:
    """The vector's piece, loaded in every trip, against every row; without a tile it is only stored.

    `branches`: the predicate's count comes from a scalar select that serialises.
    """
    again = operands.load("b", "NORM", vector.address, (0, region.trip_bytes))
    if full is None:
        return region.nest((again, region.predicate, region.store("b")), region.steps(destination))
    loads, names = loads_of(operands, region, (full,))
    steps = chain(mnemonics, (*names, "b"), region.width)
    trip: Trip = (*loads, again, region.predicate, *steps, region.store(steps[-1].results[0]))
    if branches:
        trip = (TripSelect("length", region.elements, COUNTER), *trip)
    return region.nest(trip, region.steps(destination), post_update=post_updates(variant))


def fill(
    operands: Operands, region: Region, source: Tile, destination: Tile, *, copies: bool, branches: bool
) -> tuple[Nest, ...]:
    """Copy, then unaligned stores of the pad value right of every copied row, then the rows below.

    A flush behind the unaligned stores of a row writes up to a block. `region` is what is copied; columns are padded
    up to the physical ones, rows down to the last valid one.
    """
    size = region.width // 8
    nests = [move(operands, region, source, destination)] if copies else []
    gap = destination.row_pitch // size - region.cols
    if gap > 0:
        trip: Trip = (region.predicate, region.store("pad"))
        if branches:
            trip = (TripSelect("length", region.elements, COUNTER), *trip)
        nests.append(
            replace(region, cols=gap).nest(
                trip,
                region.steps(destination),
                close=(Store("pad", "one", "NORM_B8"),),
                close_bytes=min(BLOCK, gap * size),
                writes=operands.add(destination.address + region.cols * size),
                paced=f"pad_{min(32, region.width)}",
            )
        )
    below = destination.valid_rows - region.rows
    if below > 0:
        bottom = Region(region.width, region.trip_bytes, below, destination.row_pitch // size, flat=True)
        place = operands.add(destination.address + region.rows * destination.row_pitch)
        nests.append(bottom.nest((bottom.predicate, bottom.store("pad")), (0, region.trip_bytes), writes=place))
    return tuple(nests)
