"""Loop nests of the elementwise kernels of vector operations: what they share with all others comes first.

Facts: docs/reference/a5.md section 9 (kernels of the operations other than casts), after pto-isa include/pto/npu/a5 @
3186c381. Constants (a scalar, the neutral value of a reduction, a pad value) are ready when wanted and left out.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from castsim.execution.dataflow.pipe_operations import BLOCK
from castsim.execution.tiles import Tile
from castsim.isa.formats import IntFormat
from castsim.machines.vector_function.function_operations import (
    Compute,
    CountDown,
    Load,
    Nest,
    RegisterOperation,
    SetAll,
    Store,
    TripSelect,
)
from castsim.targets.vector_function_operations import POST_UPDATES, KernelVariant

COUNTER = "n"
"""The counter of the elements that are left of a row."""

Steps = tuple[int, int]
"""Bytes from row to row and from trip to trip."""

Trip = tuple[RegisterOperation, ...]


@dataclass(slots=True)
class Operands:
    """Addresses that one function works on, in the order in which its loads number them."""

    addresses: list[int] = field(default_factory=list)

    def add(self, address: int) -> int:
        """Return the number of a further operand."""
        self.addresses.append(address)
        return len(self.addresses) - 1

    def load(self, name: str, distribution: str, address: int, steps: Steps) -> Load:
        """Return a load of a further operand into register `name`."""
        return Load((name,), distribution, self.add(address), steps)


@dataclass(frozen=True, slots=True)
class Region:
    """Elements of `width` bits that a nest walks over: `rows` rows of `cols`, as many per trip as `trip_bytes` hold.

    `flat` walks over all of them as one row.
    """

    width: int
    trip_bytes: int
    rows: int
    cols: int
    flat: bool = False

    @property
    def elements(self) -> int:
        """Elements of a trip."""
        return self.trip_bytes * 8 // self.width

    @property
    def count(self) -> int:
        """Elements of a row."""
        return self.rows * self.cols if self.flat else self.cols

    @property
    def predicate(self) -> CountDown:
        """The predicate of the trip's elements."""
        return CountDown("p", self.width, self.elements, COUNTER)

    def steps(self, tile: Tile) -> Steps:
        """Return the steps over a tile of the region's elements."""
        return tile.row_pitch, self.trip_bytes

    def store(self, source: str) -> Store:
        """Return the store of one register."""
        return Store(source, "p", f"NORM_B{self.width}")

    def nest(
        self,
        trip: Trip,
        destination: Steps,
        *,
        row: Trip = (),
        close: Trip = (),
        close_bytes: int = 0,
        post_update: bool = False,
        writes: int | None = None,
        paced: str | None = None,
    ) -> Nest:
        """Return the nest over the region; its loads have steps of their own."""
        return Nest(
            rows=1 if self.flat else self.rows,
            row_loop=not self.flat,
            trips=-(-self.count // self.elements),
            count=self.count,
            elements=self.elements,
            counters={COUNTER: self.count},
            row=row,
            trip=trip,
            source_row=0,
            source_trip=self.trip_bytes,
            destination_row=destination[0],
            destination_trip=destination[1],
            close=close,
            close_bytes=close_bytes,
            writes=writes,
            post_update=post_update,
            paced=paced,
        )


def region_of(tile: Tile, rows: int, cols: int, register_bytes: int, *, flat: bool = False) -> Region:
    """Return `rows` x `cols` elements of a tile, a register per trip; packed pairs count as bytes."""
    width = max(8, tile.element_bits)
    return Region(width, register_bytes, rows, -(-cols * tile.element_bits // width), flat)


def post_updates(variant: KernelVariant) -> bool:
    """Whether the loads of a variant advance their addresses themselves."""
    return variant in POST_UPDATES


def chain(mnemonics: tuple[str, ...], sources: tuple[str, ...], width: int) -> tuple[Compute, ...]:
    """Return instructions one behind the other: the first reads `sources`, each later one the result before it."""
    found: list[Compute] = []
    for number, mnemonic in enumerate(mnemonics):
        result = f"r{number}"
        found.append(Compute(mnemonic, (result,), sources, width))
        sources = (result,)
    return tuple(found)


def loads_of(operands: Operands, region: Region, sources: tuple[Tile, ...]) -> tuple[tuple[Load, ...], tuple[str, ...]]:
    """Return a full load of every source, and the registers they fill."""
    names = tuple(f"v{number}" for number in range(len(sources)))
    return tuple(_whole(operands, region, name, s) for name, s in zip(names, sources, strict=True)), names


def _whole(operands: Operands, region: Region, name: str, source: Tile) -> Load:
    """Return a full load; elements of half the width are spread on the way."""
    if source.element_bits >= region.width:
        return operands.load(name, "NORM", source.address, region.steps(source))
    steps = source.row_pitch, region.trip_bytes * source.element_bits // region.width
    return operands.load(name, f"UNPK_B{source.element_bits}", source.address, steps)


def elementwise(
    operands: Operands,
    region: Region,
    sources: tuple[Tile, ...],
    destination: Tile,
    mnemonics: tuple[str, ...],
    variant: KernelVariant,
    *,
    peeled: bool,
) -> Nest:
    """Loads of all sources, the instructions, one store.

    `peeled`: the tail of each row is a trip of its own, so that no trip makes a predicate.
    """
    loads, names = loads_of(operands, region, sources)
    steps = chain(mnemonics, names, region.width)
    predicate: RegisterOperation = SetAll("p", region.width) if peeled else region.predicate
    trip: Trip = (*loads, predicate, *steps, region.store(steps[-1].results[0]))
    return region.nest(trip, region.steps(destination), post_update=post_updates(variant))


def scalar_elements(operands: Operands, region: Region, source: Tile, destination: Tile, mnemonic: str) -> Nest:
    """A scalar loop over the elements: each is a trip that loads and stores one."""
    single = Region(region.width, region.width // 8, region.rows, region.cols)
    trip = (
        operands.load("v0", f"BRC_B{region.width}", source.address, single.steps(source)),
        Compute(mnemonic, ("r0",), ("v0",), region.width),
        Store("r0", "p", f"ONEPT_B{region.width}"),
    )
    return single.nest(trip, single.steps(destination))


def compare(operands: Operands, region: Region, sources: tuple[Tile, ...], destination: Tile, mnemonic: str) -> Nest:
    """As elementwise, but what is stored is a predicate: one bit per element."""
    loads, names = loads_of(operands, region, sources)
    steps = chain((mnemonic,), names, region.width)
    trip: Trip = (*loads, region.predicate, *steps, Store(steps[-1].results[0], "p", f"MASK_B{region.width}"))
    return region.nest(trip, (destination.row_pitch, region.elements // 8))


def compare_in_pairs(
    operands: Operands, region: Region, sources: tuple[Tile, ...], destination: Tile, mnemonic: str
) -> Nest:
    """As `compare` on 32 bits: two vectors a trip, whose predicates are stored as one.

    Source: vendor's simulator, 93 cycles for 16 vectors and 68 for 4; no kernel text at hand.
    """
    pairs = replace(region, trip_bytes=2 * region.trip_bytes)
    loads: list[RegisterOperation] = []
    steps: list[RegisterOperation] = []
    for number in range(2):
        names = tuple(f"v{operand}{number}" for operand in range(len(sources)))
        for name, tile in zip(names, sources, strict=True):
            loads.append(operands.load(name, "NORM", tile.address + number * region.trip_bytes, pairs.steps(tile)))
        steps.append(Compute(mnemonic, (f"q{number}",), names, region.width))
    joined = Compute("punpack", ("q",), ("q0", "q1"), region.width)
    trip: Trip = (*loads, pairs.predicate, *steps, joined, Store("q", "p", f"MASK_B{region.width}"))
    return pairs.nest(trip, (destination.row_pitch, pairs.elements // 8))


def select(
    operands: Operands, region: Region, mask: Tile, sources: tuple[Tile, ...], destination: Tile, mnemonic: str
) -> tuple[Nest, ...]:
    """Under a mask loaded as a predicate: one vector per trip.

    On 32 bits two vectors per trip, then the one that is left of every row.
    """
    if region.width < 32:
        return (_select_one(operands, region, 0, mask, sources, destination, mnemonic),)
    in_pairs = region.cols // region.elements // 2 * 2 * region.elements
    if region.cols - in_pairs > region.elements:
        in_pairs = region.cols  # the tail is in the second vector of a pair
    nests: list[Nest] = []
    if in_pairs:
        pairs = Region(region.width, 2 * region.trip_bytes, region.rows, in_pairs)
        nests.append(_select_two(operands, pairs, mask, sources, destination, mnemonic))
    if in_pairs < region.cols:
        left = Region(region.width, region.trip_bytes, region.rows, region.cols - in_pairs)
        nests.append(_select_one(operands, left, in_pairs, mask, sources, destination, mnemonic))
    return tuple(nests)


def _select_one(
    operands: Operands,
    region: Region,
    first: int,
    mask: Tile,
    sources: tuple[Tile, ...],
    destination: Tile,
    mnemonic: str,
) -> Nest:
    """One vector per trip, from column `first` on; on 32 bits the mask has to be spread over the lanes."""
    offset = first * region.width // 8
    moved = (mask.row_pitch, region.elements // 8)
    masked = operands.load("m", f"MASK_B{region.width}", mask.address + first // 8, moved)
    spread = (Compute("punpack", ("q",), ("m",), region.width),) if region.width >= 32 else ()
    names = tuple(f"v{number}" for number in range(len(sources)))
    loads = tuple(
        operands.load(name, "NORM", tile.address + offset, region.steps(tile))
        for name, tile in zip(names, sources, strict=True)
    )
    chosen = Compute(mnemonic, ("r0",), (*names, "q" if spread else "m"), region.width)
    trip = (masked, *spread, *loads, region.predicate, chosen, region.store("r0"))
    writes = operands.add(destination.address + offset) if offset else None
    return region.nest(trip, region.steps(destination), writes=writes)


def _select_two(
    operands: Operands, region: Region, mask: Tile, sources: tuple[Tile, ...], destination: Tile, mnemonic: str
) -> Nest:
    """Two vectors per trip, whose masks are loaded as one."""
    half_bytes, half = region.trip_bytes // 2, region.elements // 2
    masked = operands.load("m", f"MASK_B{region.width // 2}", mask.address, (mask.row_pitch, region.elements // 8))
    trip: list[RegisterOperation] = [masked, Compute("pintlv", ("m0", "m1"), ("m",), region.width)]
    work: list[RegisterOperation] = []
    stores: list[RegisterOperation] = []
    for number in range(2):
        names = tuple(f"v{operand}{number}" for operand in range(len(sources)))
        for name, tile in zip(names, sources, strict=True):
            trip.append(operands.load(name, "NORM", tile.address + number * half_bytes, region.steps(tile)))
        work.append(CountDown(f"p{number}", region.width, half, COUNTER))
        work.append(Compute(mnemonic, (f"r{number}",), (*names, f"m{number}"), region.width))
        stores.append(Store(f"r{number}", f"p{number}", f"NORM_B{region.width}", number * half_bytes))
    return region.nest((*trip, *work, *stores), region.steps(destination))


def move(operands: Operands, region: Region, source: Tile, destination: Tile) -> Nest:
    """One load, one store."""
    load = operands.load("v0", "NORM", source.address, region.steps(source))
    return region.nest((load, region.predicate, region.store("v0")), region.steps(destination))


# Loop nests of the kernels that fold or spread an axis, and of padding.
#
# Facts: docs/reference/a5.md section 9, after pto-isa include/pto/npu/a5 @ 3186c381; which of the kernels are assumed
# is said in the table of kernels of the target.

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
