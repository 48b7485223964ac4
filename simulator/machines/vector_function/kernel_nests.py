"""Loop nests of the kernels of vector operations, one layout for each structure of the table of kernels.

Facts: docs/reference/a5.md section 9 (kernels of the operations other than casts), after pto-isa include/pto/npu/a5 @
3186c381; the target's table of kernels marks assumed ones. Constants (a scalar, the neutral value of a reduction, a pad
value) are ready in time and omitted. Values are computed elsewhere: see `castsim.execution.vector_operations`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from castsim.execution.pipe_operations import BLOCK
from castsim.execution.tree import ResolvedTileOp, Tile
from castsim.isa.dataclass import dataclass, field, replace
from castsim.isa.errors import IllegalError
from castsim.isa.formats import IntFormat
from castsim.isa.pto.value_types import MicroOperation
from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS
from castsim.machines.vector_function.function_operations import (
    INTEGER_DIVISION,
    LONG_DIVISION,
    Nest,
    compute_step,
    count_step,
    load_step,
    select_step,
    set_step,
    store_step,
)
from castsim.targets.vector_function import VectorFunctionTarget
from castsim.targets.vector_function_operations import FLAT, POST_UPDATES, KernelVariant, VectorFunctionOperation

COUNTER = "n"
"""The counter of the remaining elements of a row."""

Steps = tuple[int, int]
"""Distances in bytes between rows and between trips."""

Trip = tuple[MicroOperation, ...]
Nests = tuple[Nest, ...]


@dataclass(frozen=True, slots=True)
class NestRegion:
    """Elements of `width` bits that a nest iterates over: `rows` rows of `cols`, as many per trip as fit `trip_bytes`.

    With `flat`, all of them form one row.
    """

    width: int
    trip_bytes: int
    rows: int
    cols: int
    flat: bool = False

    @property
    def elements(self) -> int:
        """Number of elements of a trip."""
        return self.trip_bytes * 8 // self.width

    @property
    def count(self) -> int:
        """Number of elements of a row."""
        return self.rows * self.cols if self.flat else self.cols

    @property
    def predicate(self) -> MicroOperation:
        """The predicate of the trip's elements."""
        return count_step("p", self.width, self.elements, COUNTER)

    def steps(self, tile: Tile) -> Steps:
        """Return the steps over a tile of the region's elements."""
        return tile.row_pitch, self.trip_bytes

    def store(self, source: str) -> MicroOperation:
        """Return the store of one register."""
        return store_step(source, "p", f"NORM_B{self.width}")

    def stored(self, steps: Sequence[MicroOperation]) -> Trip:
        """Return instructions, and a store of the last one's result."""
        return *steps, self.store(steps[-1].results[0])

    @property
    def down(self) -> NestRegion:
        """Return the nest over one vector of columns after another, with as many trips as rows."""
        return NestRegion(self.width, self.width // 8, -(-self.cols // self.elements), self.rows)

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
        """Return the nest over the region; its loads have their own steps."""
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


@dataclass(frozen=True, slots=True)
class KernelLayout:
    """An operation with its kernel's layout: the row of the table, the code variant, and the operands.

    `addresses` are the function's, in the order in which its loads number them.
    """

    target: VectorFunctionTarget
    work: ResolvedTileOp
    rule: VectorFunctionOperation
    variant: KernelVariant
    addresses: list[int] = field(default_factory=list)

    @property
    def dst(self) -> Tile:
        """The destination."""
        return self.work.dst

    @property
    def source(self) -> Tile:
        """The first source."""
        return self.work.sources[0]

    @property
    def register_bytes(self) -> int:
        """Bytes of a register."""
        return self.target.registers.register_bytes

    @property
    def compute(self) -> tuple[str, ...]:
        """The instructions between load and store; division exists in two precisions."""
        divides = self.rule.instructions == _DIVISION and not isinstance(self.dst.format, IntFormat)
        if divides and self.target.option("division_algorithm") == "high_precision":
            return (LONG_DIVISION,)
        return self.rule.instructions

    @property
    def divides_integers(self) -> bool:
        """Whether it divides integers, for which there is no vector instruction."""
        return self.rule.instructions == _DIVISION and isinstance(self.dst.format, IntFormat)

    @property
    def branches(self) -> bool:
        """Whether scalar selects of expansions and padding serialise."""
        return self.target.option("expansion_select") == "serialising"

    @property
    def post_update(self) -> bool:
        """Whether the loads of the variant update their addresses."""
        return self.variant in POST_UPDATES

    def add(self, address: int) -> int:
        """Add an operand and return its number."""
        self.addresses.append(address)
        return len(self.addresses) - 1

    def load(self, name: str, distribution: str, address: int, steps: Steps) -> MicroOperation:
        """Return a load of an additional operand into register `name`."""
        return load_step((name,), distribution, self.add(address), steps)

    def rows(self, tile: Tile, rows: int | None = None, cols: int | None = None, trip_bytes: int = 0) -> NestRegion:
        """Return elements of a tile, by default its valid ones, a register per trip; packed pairs count as bytes."""
        width = max(8, tile.element_bits)
        cols = tile.valid_cols if cols is None else cols
        return NestRegion(
            width,
            trip_bytes or self.register_bytes,
            tile.valid_rows if rows is None else rows,
            -(-cols * tile.element_bits // width),
        )

    def region(self, tile: Tile, rows: int | None = None, cols: int | None = None) -> NestRegion:
        """Return the same elements, as one row if the variant iterates that way."""
        return replace(self.rows(tile, rows, cols), flat=self.variant in FLAT)

    def whole(self, region: NestRegion, tile: Tile, name: str = "v0", offset: int = 0) -> MicroOperation:
        """Return a full load, `offset` bytes further on; elements of half the width are spread by the load."""
        if tile.element_bits >= region.width:
            return self.load(name, "NORM", tile.address + offset, region.steps(tile))
        steps = tile.row_pitch, region.trip_bytes * tile.element_bits // region.width
        return self.load(name, f"UNPK_B{tile.element_bits}", tile.address, steps)

    def wholes(self, region: NestRegion, tiles: Sequence[Tile]) -> tuple[Trip, tuple[str, ...]]:
        """Return a full load of every tile, and the registers they fill."""
        names = tuple(f"v{number}" for number in range(len(tiles)))
        return tuple(self.whole(region, tile, name) for name, tile in zip(names, tiles, strict=True)), names


_DIVISION = ("vdiv",)


def chain(mnemonics: Sequence[str], sources: tuple[str, ...], width: int) -> Trip:
    """Return dependent instructions: the first reads `sources`, each later one the previous result."""
    steps: list[MicroOperation] = []
    for number, mnemonic in enumerate(mnemonics):
        steps.append(compute_step(mnemonic, (f"r{number}",), sources, width))
        sources = (f"r{number}",)
    return tuple(steps)


def steps_of(text: str, width: int, mnemonics: Sequence[str] = ()) -> Trip:
    """Return the instructions in a text of the form `result = mnemonic source source`, separated by semicolons.

    `{0}` is replaced by the first of `mnemonics`.
    """
    steps = []
    for line in text.format(*mnemonics).split(";"):
        results, _, given = line.partition("=")
        mnemonic, *sources = given.split()
        steps.append(compute_step(mnemonic, tuple(results.split()), tuple(sources), width))
    return tuple(steps)


# Lane by lane.


def _joined(
    k: KernelLayout, region: NestRegion, sources: Sequence[Tile], compute: tuple[str, ...] = (), *, peeled: bool = False
) -> Nest:
    """Return the nest with loads of all sources, the instructions, and one store.

    With `peeled`, the tail of each row is a separate trip, so no trip computes a predicate.
    """
    loads, names = k.wholes(region, sources)
    predicate = set_step("p", region.width) if peeled else region.predicate
    steps = chain(compute or k.compute, names, region.width)
    return region.nest((*loads, predicate, *region.stored(steps)), region.steps(k.dst), post_update=k.post_update)


def _elementwise(k: KernelLayout) -> Nests:
    dst, sources = k.dst, k.work.sources or (k.dst,)  # texpands loads what it overwrites
    if k.rule.scalar_integers is not None and isinstance(dst.format, IntFormat):
        return (_scalar_elements(k, k.rows(dst), k.rule.scalar_integers),)
    nest = _joined(k, k.region(dst), sources, peeled=k.variant == "2D_POST_UPDATE")
    whole = all(tile.type.valid_cols == tile.cols for tile in (dst, *sources))  # single rows came with the newer text
    scalar = len(sources) == 1 and k.rule.choice == "tile"
    if scalar and not whole and k.target.option("scalar_tail") == "selected":
        nest = replace(nest, paced="scalar_select")
    return (nest,)


def _scalar_elements(k: KernelLayout, region: NestRegion, mnemonic: str) -> Nest:
    """Return a scalar loop over the elements: each trip loads and stores one."""
    single = replace(region, trip_bytes=region.width // 8)
    load = k.load("v0", f"BRC_B{region.width}", k.source.address, single.steps(k.source))
    trip: Trip = (load, *chain((mnemonic,), ("v0",), region.width), store_step("r0", "p", f"ONEPT_B{region.width}"))
    return single.nest(trip, single.steps(k.dst))


def _compare(k: KernelLayout) -> Nests:
    region = k.region(k.source)
    if k.dst.row_pitch * 8 != region.cols:  # each row stands at its row of the result
        region = replace(region, flat=False)
    return (_compared(k, region),)


def _compared(k: KernelLayout, region: NestRegion) -> Nest:
    """Lay out a comparison: elementwise, but it stores a predicate of one bit per element."""
    loads, names = k.wholes(region, k.work.sources)
    steps = chain(k.rule.instructions[:1], names, region.width)
    trip: Trip = (*loads, region.predicate, *steps, store_step("r0", "p", f"MASK_B{region.width}"))
    return region.nest(trip, (k.dst.row_pitch, region.elements // 8))


def _compared_in_pairs(k: KernelLayout, region: NestRegion) -> Nest:
    """Lay out a 32-bit comparison: two vectors per trip, whose predicates are stored together.

    Source: vendor's simulator, 93 cycles for 16 vectors and 68 for 4; no kernel text is available.
    """
    pairs = replace(region, trip_bytes=2 * region.trip_bytes)
    loads: list[MicroOperation] = []
    steps: list[MicroOperation] = []
    for number in range(2):
        names = tuple(f"v{operand}{number}" for operand in range(len(k.work.sources)))
        for name, tile in zip(names, k.work.sources, strict=True):
            loads.append(k.load(name, "NORM", tile.address + number * region.trip_bytes, pairs.steps(tile)))
        steps.append(compute_step(k.rule.instructions[0], (f"q{number}",), names, region.width))
    joined = steps_of("q = punpack q0 q1", region.width)
    trip: Trip = (*loads, pairs.predicate, *steps, *joined, store_step("q", "p", f"MASK_B{region.width}"))
    return pairs.nest(trip, (k.dst.row_pitch, pairs.elements // 8))


def _select(k: KernelLayout) -> Nests:
    """Lay out a selection under a mask loaded as a predicate: one vector per trip.

    For 32 bits, there are two vectors per trip, then the remaining one of every row.
    """
    if k.work.mask is None:
        raise IllegalError(f"pto.{k.work.mnemonic} without a mask", span=k.work.span)
    region, mask = k.region(k.dst), k.work.mask
    if region.width < 32:
        return (_select_one(k, region, 0, mask),)
    in_pairs = region.cols // region.elements // 2 * 2 * region.elements
    if region.cols - in_pairs > region.elements:
        in_pairs = region.cols  # the tail is in the second vector of a pair
    rows, nests = replace(region, flat=False), list[Nest]()
    if in_pairs:
        nests.append(_select_two(k, replace(rows, trip_bytes=2 * region.trip_bytes, cols=in_pairs), mask))
    if in_pairs < region.cols:
        nests.append(_select_one(k, replace(rows, cols=region.cols - in_pairs), in_pairs, mask))
    return tuple(nests)


def _select_one(k: KernelLayout, region: NestRegion, first: int, mask: Tile) -> Nest:
    """One vector per trip, from column `first` on; on 32 bits the mask has to be spread over the lanes."""
    offset = first * region.width // 8
    masked = k.load("m", f"MASK_B{region.width}", mask.address + first // 8, (mask.row_pitch, region.elements // 8))
    spread = steps_of("q = punpack m", region.width) if region.width >= 32 else ()
    names = tuple(f"v{number}" for number in range(len(k.work.sources)))
    loads = tuple(
        k.load(name, "NORM", tile.address + offset, region.steps(tile))
        for name, tile in zip(names, k.work.sources, strict=True)
    )
    chosen = chain(k.rule.instructions[:1], (*names, "q" if spread else "m"), region.width)
    writes = k.add(k.dst.address + offset) if offset else None
    trip: Trip = (masked, *spread, *loads, region.predicate, *region.stored(chosen))
    return region.nest(trip, region.steps(k.dst), writes=writes)


def _select_two(k: KernelLayout, region: NestRegion, mask: Tile) -> Nest:
    """Lay out a selection of two vectors per trip, whose masks are loaded together."""
    half_bytes, half = region.trip_bytes // 2, region.elements // 2
    masked = k.load("m", f"MASK_B{region.width // 2}", mask.address, (mask.row_pitch, region.elements // 8))
    trip: list[MicroOperation] = [masked, *steps_of("m0 m1 = pintlv m", region.width)]
    work: list[MicroOperation] = []
    stores: list[MicroOperation] = []
    for number in range(2):
        names = tuple(f"v{operand}{number}" for operand in range(len(k.work.sources)))
        for name, tile in zip(names, k.work.sources, strict=True):
            trip.append(k.load(name, "NORM", tile.address + number * half_bytes, region.steps(tile)))
        work.append(count_step(f"p{number}", region.width, half, COUNTER))
        work.append(compute_step(k.rule.instructions[0], (f"r{number}",), (*names, f"m{number}"), region.width))
        stores.append(store_step(f"r{number}", f"p{number}", f"NORM_B{region.width}", number * half_bytes))
    return region.nest((*trip, *work, *stores), region.steps(k.dst))


def moved(k: KernelLayout, region: NestRegion, source: Tile) -> Nest:
    """Return the nest with one load and one store."""
    load = k.load("v0", "NORM", source.address, region.steps(source))
    return region.nest((load, region.predicate, region.store("v0")), region.steps(k.dst))


def _move(k: KernelLayout) -> Nests:
    rows, cols = min(k.source.valid_rows, k.dst.valid_rows), min(k.source.valid_cols, k.dst.valid_cols)
    return (moved(k, k.region(k.dst, rows, cols), k.source),)


def _fill(k: KernelLayout) -> Nests:
    """Return a copy, then unaligned stores of the pad value right of every copied row, then the rows below.

    A flush after the unaligned stores of a row writes up to a block. Columns are padded up to the physical ones, rows
    down to the last valid one.
    """
    dst, region = k.dst, k.region(k.dst, k.source.valid_rows, k.source.valid_cols)
    size = region.width // 8
    nests = [] if VECTOR_OPERATIONS[k.work.mnemonic].in_place else [moved(k, region, k.source)]
    gap = dst.row_pitch // size - region.cols
    if gap > 0:
        trip: Trip = (region.predicate, region.store("pad"))
        if k.branches:
            trip = (select_step("length", region.elements, COUNTER), *trip)
        right = replace(region, cols=gap).nest(
            trip,
            region.steps(dst),
            close=(store_step("pad", "one", "NORM_B8"),),
            close_bytes=min(BLOCK, gap * size),
            writes=k.add(dst.address + region.cols * size),
            paced=f"pad_{min(32, region.width)}",
        )
        nests.append(right)
    below = dst.valid_rows - region.rows
    if below > 0:
        bottom = NestRegion(region.width, region.trip_bytes, below, dst.row_pitch // size, flat=True)
        pad_address = k.add(dst.address + region.rows * dst.row_pitch)
        nests.append(bottom.nest((bottom.predicate, bottom.store("pad")), (0, region.trip_bytes), writes=pad_address))
    return tuple(nests)


def _part(k: KernelLayout) -> Nests:
    """Return a combination of tiles of equal extent, or a copy of the larger one combined with the smaller: assumed."""
    smaller, larger = sorted(k.work.sources, key=lambda tile: tile.valid_rows * tile.valid_cols)
    rows, cols = smaller.valid_rows, smaller.valid_cols
    joined = k.region(k.dst, rows, cols)
    if (rows, cols) == (k.dst.valid_rows, k.dst.valid_cols):
        return (_joined(k, joined, k.work.sources),)
    nests = [moved(k, k.region(k.dst), larger)]
    if rows and cols:
        nests.append(_joined(k, joined, (k.dst, smaller)))
    return tuple(nests)


# Folding and spreading an axis.


def element_steps(tile: Tile) -> Steps:
    """Return the steps over a tile of one element per row: dense if it is column-major."""
    return (tile.element_bits // 8 if tile.type.block_layout == "col_major" else tile.row_pitch), 0


_WIDENED = "w0 = vcvt v0; w1 = vcvt v0; t0 = {0} w0; t1 = {0} w1; t = {1} t0 t1; r = vcvt t"
"""The reduction of eight-bit elements: widened before it and narrowed after it."""


def _row_reduction(k: KernelLayout) -> Nests:
    """Return a reduction and an accumulation per trip, and a store of one element per row.

    Sums of 16-bit integers have 32 bits and are narrowed before the store.
    """
    region, (reduce, accumulate) = k.region(k.source), k.rule.instructions
    width = region.width
    load = k.whole(region, k.source)
    steps = steps_of(_WIDENED if width == 8 else "r = {0} v0", max(16, width), k.rule.instructions)
    narrowed = reduce == "vcadd" and width == 16 and isinstance(k.source.format, IntFormat)
    close = steps_of("out = vcvt acc", width) if narrowed else ()
    nest = region.nest(
        (load, region.predicate, *steps, compute_step(accumulate, ("acc",), ("acc", "r"), width)),
        element_steps(k.dst),
        close=(*close, store_step("out" if narrowed else "acc", "one", f"ONEPT_B{width}")),
        close_bytes=width // 8,
        post_update=k.post_update,
    )
    return (nest,)


def _row_product(k: KernelLayout) -> Nests:
    """Return products lane by lane, then of the halves of a vector until one lane remains."""
    region = k.region(k.source)
    width, mnemonics = region.width, k.rule.instructions
    load, last, close = k.whole(region, k.source), "acc", list[MicroOperation]()
    for number in range(region.elements.bit_length() - 1):
        close += steps_of(f"h{number} = vintlv_lanes {last}; f{number} = {{0}} {last} h{number}", width, mnemonics)
        last = f"f{number}"
    nest = region.nest(
        (load, region.predicate, *steps_of("acc = {0} acc v0", width, mnemonics)),
        element_steps(k.dst),
        close=(*close, store_step(last, "one", f"ONEPT_B{width}")),
        close_bytes=width // 8,
        post_update=k.post_update,
    )
    return (nest,)


def _column_reduction(k: KernelLayout) -> Nests:
    """Vector by vector: a load and an accumulation per row, then a store."""
    region = k.region(k.source)
    if k.work.binary and k.work.tmp is not None:
        return _column_halving(k, region, k.work.tmp)
    size = region.trip_bytes
    load = k.load("v0", "NORM", k.source.address, (size, k.source.row_pitch))
    trip: Trip = (load, *steps_of("acc = {0} acc v0", region.width, k.rule.instructions))
    return (region.down.nest(trip, (size, 0), close=(region.store("acc"),), close_bytes=size),)


def _row_argument(k: KernelLayout) -> Nests:
    """Per trip a reduction to value and place, a comparison with the best so far, the choice of both; a store per row.

    Source: none; assumed, on the structure of a row reduction.
    """
    region = k.region(k.source)
    load = k.whole(region, k.source)
    text = "r = {0} v0; q = {1} r best; best = {2} r best q; place = {2} r place q"
    nest = region.nest(
        (load, region.predicate, *steps_of(text, region.width, k.rule.instructions)),
        element_steps(k.dst),
        close=(store_step("place", "one", "ONEPT_B32"),),
        close_bytes=k.dst.element_bits // 8,
        paced="row_argument",
    )
    return (nest,)


def _column_argument(k: KernelLayout) -> Nests:
    """Return, vector by vector: per row a load, a comparison, the choice of value and row index; then an index store.

    Source: none; assumed, with the structure of a column reduction. Indices of narrower elements take several stores.
    """
    region = k.region(k.source)
    size = region.trip_bytes
    load = k.load("v0", "NORM", k.source.address, (size, k.source.row_pitch))
    wide = size * k.dst.element_bits // region.width
    parts = tuple(store_step("place", "p", "NORM_B32", offset) for offset in range(0, wide, size))
    text = "q = {0} v0 best; best = {1} v0 best q; place = {1} v0 place q"
    trip: Trip = (load, *steps_of(text, region.width, k.rule.instructions))
    return (region.down.nest(trip, (wide, 0), close=parts, close_bytes=wide),)


def _column_halving(k: KernelLayout, region: NestRegion, tmp: Tile) -> Nests:
    """Add neighbouring rows in pairs into tmp, an odd last row to the first sum, until one is left, the result."""
    nests: list[Nest] = []
    rows, source = region.rows, k.source
    if rows == 1:
        return (moved(k, region, source),)
    step = region.stored(steps_of("r0 = {0} v0 v1", region.width, k.rule.instructions))
    while rows > 1:
        pairs = rows // 2
        target = k.dst if pairs == 1 else tmp
        writes = None if pairs == 1 else k.add(tmp.address)
        pitch = source.row_pitch
        even, odd = (
            k.load(f"v{half}", "NORM", source.address + half * pitch, (2 * pitch, region.trip_bytes))
            for half in range(2)
        )
        trip: Trip = (even, odd, region.predicate, *step)
        nests.append(replace(region, rows=pairs).nest(trip, region.steps(target), writes=writes))
        if rows % 2:
            rest = k.load("v0", "NORM", source.address + (rows - 1) * pitch, region.steps(source))
            first = k.load("v1", "NORM", target.address, region.steps(target))
            trip = (rest, first, region.predicate, *step)
            nests.append(replace(region, rows=1).nest(trip, region.steps(target), writes=writes))
        rows, source = pairs, tmp
    return tuple(nests)


BLOCK_LOAD = "BLK"
"""Distribution of a load of one block, repeated over the register."""


def _row_broadcast(k: KernelLayout) -> Nests:
    """Combine the row's element, loaded once per row, with every vector of the row; without a tile, only store it.

    Narrow contiguous tiles take a row per trip of one loop and load the element in each. The element goes to all lanes,
    or is loaded as the block of 32 bytes that repeats it.
    """
    region, (full, vector) = k.region(k.dst), _full_and_vector(k.work)
    per_row = full is None or k.dst.cols >= region.elements or not are_contiguous(k.dst, full)
    walk, step = region, element_steps(vector)[0]
    if not per_row:
        walk = NestRegion(region.width, k.dst.row_pitch, 1, region.rows * k.dst.cols, flat=True)
    distribution = f"BRC_B{region.width}" if vector.type.block_layout == "col_major" else BLOCK_LOAD
    load = k.load("b", distribution, vector.address, (step, 0) if per_row else (0, step))
    trip: Trip = (walk.predicate, walk.store("b"))
    if full is not None:
        whole = k.whole(walk, full)
        spread = () if per_row or distribution == BLOCK_LOAD else steps_of("s = vdup b", region.width)
        steps = chain(k.rule.instructions, ("v0", "s" if spread else "b"), region.width)
        trip = (whole, walk.predicate, *spread, *walk.stored(steps))
    if per_row:
        return (walk.nest(trip, walk.steps(k.dst), row=(load,)),)
    return (walk.nest((trip[0], load, *trip[1:]), walk.steps(k.dst)),)


def _column_broadcast(k: KernelLayout) -> Nests:
    """The vector's piece, loaded in every trip, against every row; without a tile it is only stored."""
    region, (full, vector) = k.region(k.dst), _full_and_vector(k.work)
    again = k.load("b", "NORM", vector.address, (0, region.trip_bytes))
    if full is None:
        return (region.nest((again, region.predicate, region.store("b")), region.steps(k.dst)),)
    load = k.whole(region, full)
    trip: Trip = (load, again, region.predicate, *region.stored(chain(k.rule.instructions, ("v0", "b"), region.width)))
    if k.variant == "2D_POST_UPDATE" and k.branches:  # the predicate's count comes from a scalar select that serialises
        trip = (select_step("length", region.elements, COUNTER), *trip)
    return (region.nest(trip, region.steps(k.dst), post_update=k.post_update),)


def _full_and_vector(work: ResolvedTileOp) -> tuple[Tile | None, Tile]:
    """Return the operand with the shape of the result (None if there is none), and the broadcast one."""
    if len(work.sources) == 1:
        return None, work.sources[0]
    first, other = work.sources
    shape = (work.dst.valid_rows, work.dst.valid_cols)
    fits = (first.valid_rows, first.valid_cols) == shape and first.type.block_layout == work.dst.type.block_layout
    return (first, other) if fits else (other, first)


def are_contiguous(*tiles: Tile) -> bool:
    """Return whether the tile condition of the 1D kernels is met: full rows by their types, or single rows."""
    return all(tile.type.valid_cols == tile.cols for tile in tiles) or all(tile.rows == 1 for tile in tiles)


LAYOUTS: Mapping[str, Callable[[KernelLayout], Nests]] = {
    "elementwise": _elementwise,
    "compare": _compare,
    "select": _select,
    "row_argument": _row_argument,
    "column_argument": _column_argument,
    "row_reduction": _row_reduction,
    "row_product": _row_product,
    "column_reduction": _column_reduction,
    "row_expansion": _row_broadcast,
    "row_broadcast": _row_broadcast,
    "column_expansion": _column_broadcast,
    "column_broadcast": _column_broadcast,
    "move": _move,
    "fill": _fill,
    "part": _part,
}
"""The layout functions of lane-by-lane, folding and spreading kernel structures."""


# Nests that take the time where published cycles are those of others than the values go by.
#
# Source: vendor's simulator, a5_benchmark.csv of the pto-isa mirror (docs/reference/a5.md section 9).

_EXTREMES = ("vmax", "vmin")


def _timed_elementwise(k: KernelLayout) -> Nests:
    region = k.region(k.dst)
    if k.divides_integers and k.rule.scalar_integers is None:
        return (_joined(k, region, k.work.sources, (INTEGER_DIVISION,)),)
    if not k.rule.broadcasts or k.divides_integers:
        return ()
    reloads = VECTOR_OPERATIONS[k.work.mnemonic].accumulates
    spread = _joined(k, region, (*k.work.sources, k.dst) if reloads else k.work.sources)
    return (replace(spread, broadcasts=k.rule.broadcasts, paced="reload" if reloads else None),)


LOOPED = ("row_reduction", "column_reduction", "row_expansion", "column_expansion")
"""Structures of kernels that are timed with loops even for single trips."""


def _timed_column_expansion(k: KernelLayout) -> Nests:
    """Vector by vector: loaded once, stored to every row."""
    region = k.region(k.dst)
    load = k.load("b", "NORM", k.source.address, (region.trip_bytes, 0))
    return (region.down.nest((region.store("b"),), (region.trip_bytes, k.dst.row_pitch), row=(load,)),)


def _timed_row_expansion(k: KernelLayout) -> Nests:
    """Return the nest with the row's block spread after it is loaded; a dense vector's elements are loaded spread."""
    (nest,) = _row_broadcast(k)
    if k.source.type.block_layout == "col_major":
        return (nest,)
    store = k.region(k.dst).store("s")
    return (replace(nest, row=(*nest.row, *steps_of("s = vdup b", k.region(k.dst).width)), trip=(store,)),)


def _timed_row_reduction(k: KernelLayout) -> Nests:
    (nest,) = _row_reduction(k)
    return (replace(nest, row=steps_of("acc = vbr", k.region(k.source).width)),)


def _timed_column_reduction(k: KernelLayout) -> Nests:
    """Time the first row, pairs of rows, an odd last one; otherwise, and for fewer than three (assumed), row by row."""
    if k.work.binary and k.work.tmp is not None:
        return ()
    (nest,) = _column_reduction(k)
    size, width, pitch, rows = k.register_bytes, k.source.element_bits, k.source.row_pitch, k.source.valid_rows
    pairs, odd = divmod(rows - 1, 2)
    if not (pairs and k.post_update):
        return (replace(nest, row=steps_of("acc = vbr", width)),)

    def row(name: str, number: int, step: int = 0) -> MicroOperation:
        return k.load(name, "NORM", k.source.address + number * pitch, (size, step))

    joined = steps_of("t = {0} v1 v2; acc = {0} acc t", width, k.rule.instructions)
    trip: Trip = (row("v1", 1, 2 * pitch), row("v2", 2, 2 * pitch), *joined)
    last: Trip = (row("v0", rows - 1), *steps_of("acc = {0} acc v0", width, k.rule.instructions)) if odd else ()
    close = (*last, *nest.close)
    return (replace(nest, trips=pairs, count=pairs, row=(row("acc", 0),), trip=trip, close=close, post_update=True),)


def _timed_compare(k: KernelLayout) -> Nests:
    region = k.region(k.source)
    return ((_compared_in_pairs if region.width == 32 else _compared)(k, region),)


def _timed_part(k: KernelLayout) -> Nests:
    """Return the timed nests: combine the rows that both sources cover, copy those that only one covers; none if
    columns differ.

    Extremes take a pass for each source, which also loads the destination: 2.06 cycles per vector each. Source: pto-isa
    include/pto/npu/a5 for the two loops; 8 and 64 rows of a vector take 120 cycles in the vendor's simulator.
    """
    dst = k.dst
    if k.rule.instructions[0] in _EXTREMES:
        covered = (source for source in k.work.sources if source.valid_rows and source.valid_cols)
        return tuple(_joined(k, k.region(dst, tile.valid_rows, tile.valid_cols), (dst, tile)) for tile in covered)
    smaller, larger = sorted(k.work.sources, key=lambda tile: tile.valid_rows * tile.valid_cols)
    rows, below = smaller.valid_rows, dst.valid_rows - smaller.valid_rows
    if smaller.valid_cols < dst.valid_cols or below <= 0:
        return ()
    joined = _joined(k, k.region(dst, rows), k.work.sources)
    rest = replace(larger, address=larger.address + rows * larger.row_pitch)
    copied = moved(k, k.region(dst, below), rest)
    return joined, replace(copied, writes=k.add(dst.address + rows * dst.row_pitch))


TIMED: Mapping[str, Callable[[KernelLayout], Nests]] = {
    "elementwise": _timed_elementwise,
    "row_reduction": _timed_row_reduction,
    "column_reduction": _timed_column_reduction,
    "row_expansion": _timed_row_expansion,
    "column_expansion": _timed_column_expansion,
    "compare": _timed_compare,
    "part": _timed_part,
}
"""The layout functions of the timed nests; None where they equal those of the values."""
