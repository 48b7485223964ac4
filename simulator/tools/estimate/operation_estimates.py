"""Estimating the cycles of one vector operation other than a cast without writing a program."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

from castsim.execution.interpreter.lowerer import Lowerer
from castsim.execution.interpreter.tile_allocation import apart_addresses
from castsim.execution.pipe_operations import BLOCK
from castsim.execution.tree import ResolvedTileOp, Tile
from castsim.execution.vector_operations.quantising import MX_GROUP
from castsim.execution.vector_operations.shapes import whole_units
from castsim.isa.dataclass import replace
from castsim.isa.errors import ReadError, TileError, closest
from castsim.isa.formats import Format, format_named
from castsim.isa.pto.program import TileType
from castsim.isa.pto.vector_operations import (
    COMPARISONS,
    NARROWER,
    PAIR_BYTES,
    PATTERNS,
    SCALE_ALGORITHMS,
    VECTOR_OPERATIONS,
    Kind,
    Role,
    VectorOperation,
)
from castsim.machines.mechanisms import lowerer_of, tile_target
from castsim.targets.dataflow import APART, CONSECUTIVE, PARTLY_APART, TilePlacement
from castsim.targets.loader import Target, load_target
from castsim.tools.estimate.cast_estimates import HERE, Estimate, timed_alone

_RAMP_SCRATCH = 448
"""Number of four-byte elements that are sufficient scratch for every ramp (docs/reference/pto.md section 7.7)."""
_REGISTER_GROUPS = 128
"""Number of 16-bit groups of which a register of a block quantisation has one element each; 64 for f32."""
_BOX_ROWS = 16
"""Rows of a box of shared exponents, and the multiple to which the rows of codes are padded."""
_WITH_SCRATCH = (Kind.QUANTISE, Kind.SORT)
"""Kinds that get a tmp tile if the target uses one."""
_IN_PLACE = (Kind.ELEMENTWISE, Kind.SELECT)
"""Kinds whose result may overlap a source."""
IN_PLACE = "in place"
"""Placement of an operation whose result overlaps the first source."""
_ZERO_PAD = 1
"""Value of `pad` for a tile type with zero padding."""


def estimate_tile_operation(
    operation: str,
    element: str,
    rows: int,
    cols: int,
    *,
    target: str | Path | Target,
    valid_rows: int | None = None,
    valid_cols: int | None = None,
    scratch: bool = False,
    in_place: bool | None = None,
    runtime_valid: bool = False,
) -> Estimate:
    """Simulate one vector operation on tiles of `rows` x `cols` and return its cycles and their limit.

    The shape is that of the source (of the result for an expansion); all other operands get the smallest fitting tiles,
    row-major. Operands share no bank if the buffer has room; with the option `tile_placement` they are
    adjacent, like the tiles of the tests behind most published cycles. The estimate's `placement`
    tells which.

    Args:
        operation: mnemonic without `pto.`.
        element: name of the element format.
        rows, cols: extents of the tiles, in elements.
        target: a chip.
        valid_rows, valid_cols: valid region, if not the whole tile.
        in_place: whether the result overlaps the first source; None: only for an elementwise operation or selection
            whose tiles do not fit the buffer otherwise.
        scratch: whether a tmp tile is given if the operation does not require one; it has the shape of the source.
        runtime_valid: whether the tiles' types leave the valid region to run time, which may choose another loop.

    Raises:
        ReadError: the operation or format is unknown. IllegalError, TileError, ScratchError: see `castsim.isa.errors`.
    """
    chip = load_target(target)
    vector_operation = VECTOR_OPERATIONS.get(operation.lower())
    if vector_operation is None:
        raise ReadError(f"unknown operation '{operation}'", legal=closest(operation.lower(), VECTOR_OPERATIONS))
    lowerer, tiles, fmt = lowerer_of(chip), tile_target(chip), format_named(element)
    region = (rows if valid_rows is None else valid_rows, cols if valid_cols is None else valid_cols)
    behind = 0
    if (
        vector_operation.kind is Kind.COMPARE
    ):  # its bits have the shape of what is compared, or whole units are compared
        unit = tiles.tile_arithmetic.compare_bytes
        whole = whole_units(region[1], lowerer.element_bits(fmt), unit) if unit else 0
        cols = cols if unit else -(-cols // BLOCK) * BLOCK
        behind = max(0, whole - cols) * lowerer.element_bits(fmt) // 8
    facts = tiles.tile_operation(vector_operation.mnemonic)
    scratch = scratch or (vector_operation.kind in _WITH_SCRATCH and facts is not None and facts.tmp == "used")

    def laid_out(*, on_source: bool) -> tuple[ResolvedTileOp, str]:
        operands = _Operands(lowerer, vector_operation, fmt, (rows, cols), region, tiles.estimated_alignment)
        operands.runtime_valid, operands.behind = runtime_valid, behind
        work = operands.lay_out(scratch=scratch, in_place=on_source)
        placed = None if tiles.apart is None else _apart(work, behind, tiles.apart, tiles.memories["ub"].capacity_bytes)
        return (work, CONSECUTIVE) if placed is None else placed

    try:
        work, placement = laid_out(on_source=in_place or vector_operation.in_place)
        # Where sources need no distance, operands in one bank cost no cycle.
        roomy = placement == APART or tiles.apart is None or not tiles.apart.sources_bytes
    except TileError:
        if in_place is not None or vector_operation.kind not in _IN_PLACE:
            raise
        roomy = False
    if not roomy and in_place is None and vector_operation.kind in _IN_PLACE:
        work, placement = laid_out(on_source=True)[0], IN_PLACE
    return timed_alone(chip, lowerer.work(work), f"{vector_operation.mnemonic} {element}", placement)


def _apart(work: ResolvedTileOp, behind: int, rule: TilePlacement, capacity: int) -> tuple[ResolvedTileOp, str] | None:
    """Return the operation with its operands in different banks, and the placement; None if the buffer has no room."""
    others = [tile for tile in (work.mask, work.tmp, work.counts, *work.further) if tile is not None]
    tiles = [*work.sources, work.dst, *others]
    number = {start: index for index, start in enumerate(dict.fromkeys(tile.address for tile in tiles))}
    sizes = [max(tile.end for tile in tiles if tile.address == start) - start + behind for start in number]
    sources, result = [number[tile.address] for tile in work.sources], number[work.dst.address]
    pairs = [(*pair, False) for pair in combinations(sources, 2)]
    pairs += [(source, result, True) for source in sources if source != result]
    placed = apart_addresses(sizes, pairs, rule, capacity)
    if placed is None:
        return None
    moved = {tile: replace(tile, address=placed[0][number[tile.address]]) for tile in tiles}
    work = replace(
        work,
        dst=moved[work.dst],
        sources=tuple(moved[tile] for tile in work.sources),
        mask=None if work.mask is None else moved[work.mask],
        tmp=None if work.tmp is None else moved[work.tmp],
        counts=None if work.counts is None else moved[work.counts],
        further=tuple(moved[tile] for tile in work.further),
    )
    return work, PARTLY_APART if placed[1] else APART


class _Operands:
    """Builder of the operands of one operation, adjacent in the buffer."""

    def __init__(
        self,
        lowerer: Lowerer,
        operation: VectorOperation,
        fmt: Format,
        shape: tuple[int, int],
        region: tuple[int, int],
        alignment: int,
    ) -> None:
        self.lowerer = lowerer
        self.operation = operation
        self.format = fmt
        self.shape = shape
        self.region = region
        self.next = 0
        self.alignment = alignment
        self.runtime_valid = False
        self.behind = 0
        """Number of bytes after a tile that its operation reads."""

    def lay_out(self, *, scratch: bool, in_place: bool) -> ResolvedTileOp:
        """Return the operation on tiles; sources first, then destination, mask and tmp."""
        with_tmp = [form for form in self.operation.forms if Role.TMP in form]
        form = with_tmp[0] if scratch and with_tmp else self.operation.forms[0]
        sources = tuple(self._source(number) for number in range(form.count(Role.SOURCE)))
        behind = self.next
        if in_place:
            self.next = sources[0].address
        dst = self._destination()
        self.next = max(self.next, behind)
        compares = self.operation.kind is Kind.COMPARE
        blocks = self.operation.kind is Kind.BLOCK_QUANTISE
        return ResolvedTileOp(
            mnemonic=self.operation.mnemonic,
            dst=dst,
            sources=sources,
            span=HERE,
            scalars=self._scalars(form.count(Role.SCALAR)),
            tmp=self._scratch() if Role.TMP in form or (scratch and self.operation.tmp_behind) else None,
            mask=self._bits("mask") if Role.MASK in form else None,
            mode=COMPARISONS[0] if compares else SCALE_ALGORITHMS[0] if blocks else None,
            binary=self.operation.attribute == "isBinary" and Role.TMP in form,
            names_tmp=Role.TMP in form,
            counts=self._counts(),
            further=self._further(),
            pattern=PATTERNS[-1][1:] if self.operation.kind is Kind.PATTERN_GATHER else None,
        )

    def _counts(self) -> Tile | None:
        """Place the counts of a gather by comparison."""
        if self.operation.kind is not Kind.COMPARE_GATHER:
            return None
        return self._place("counts", format_named("i32"), (self.shape[0], BLOCK // 4), (self.region[0], 1))

    def _further(self) -> tuple[Tile, ...]:
        """Place the exponents, maxima and reciprocals of a block quantisation, each in one row; a second result."""
        if self.operation.kind in (Kind.INTERLEAVE, Kind.PART_ARGUMENT):
            fmt = self.format if self.operation.kind is Kind.INTERLEAVE else format_named("i32")
            return (self._place("dst1", fmt, self.shape, self.region),)
        if self.operation.kind is not Kind.BLOCK_QUANTISE:
            return ()
        count = -(-self.region[0] * self.region[1] // MX_GROUP)
        formats = format_named("u8"), self.format, self.format
        room = -(-2 * count // _REGISTER_GROUPS) * _REGISTER_GROUPS
        return tuple(self._place(fmt.name, fmt, (1, room), (1, count)) for fmt in formats)

    def _scalars(self, count: int) -> tuple[tuple[int, Format], ...]:
        """Return zeros of the element type; for a merge, the quarters of a row."""
        if self.operation.kind is Kind.MERGE:
            return ((self.region[1] // 4, format_named("i32")),)
        return ((0, format_named("f32") if self.operation.kind is Kind.NARROW else self.format),) * count

    def _source(self, number: int) -> Tile:
        (rows, cols), (valid_rows, valid_cols) = self.shape, self.region
        kind = self.operation.kind
        spread = number == 1 or kind in (Kind.ROW_EXPAND, Kind.COLUMN_EXPAND)
        if kind is Kind.BOX and self.operation.forms[0].count(Role.TMP):
            whole = -(-valid_rows // _BOX_ROWS) * _BOX_ROWS * valid_cols
            return self._place("src0", self.format, (1, -(-whole // BLOCK) * BLOCK), (1, valid_rows * valid_cols))
        if kind in (Kind.QUANTISE, Kind.DEQUANTISE) and number:
            whole = -(-rows // self._per_block()) * self._per_block()
            return self._place(f"src{number}", format_named("f32"), (whole, 1), (valid_rows, 1), layout="col_major")
        if spread and kind in (Kind.ROW_BROADCAST, Kind.ROW_EXPAND):
            per_block = self._per_block()
            return self._place(f"src{number}", self.format, (rows, per_block), (valid_rows, per_block))
        if kind is Kind.COUNTED_CONCATENATE and number > 1:
            return self._place(f"src{number}", format_named("i32"), (rows, BLOCK // 4), (valid_rows, 1))
        if kind is Kind.PAIR_REDUCE:
            return self._place("src0", self.format, (rows, 2 * cols), (valid_rows, 2 * valid_cols))
        if kind is Kind.BLOCK_GATHER and number:
            wide, used = (-(-columns // self._per_block()) for columns in (cols, valid_cols))
            return self._place("src1", format_named("i32"), (rows, -(-wide // 8) * 8), (valid_rows, used))
        if kind is Kind.PART_ARGUMENT and number > 1:
            return self._place(f"src{number}", format_named("i32"), self.shape, self.region)
        if kind is Kind.SORT and number:
            return self._place("src1", format_named("i32"), self.shape, self.region)
        if kind is Kind.GATHER and number:
            return self._numbers("src1")
        if spread and kind in (Kind.COLUMN_BROADCAST, Kind.COLUMN_EXPAND):
            return self._place(f"src{number}", self.format, (1, cols), (1, valid_cols))
        return self._place(f"src{number}", self.format, self.shape, self.region)

    def _destination(self) -> Tile:
        (rows, cols), (valid_rows, valid_cols) = self.shape, self.region
        match self.operation.kind:
            case Kind.COMPARE:
                return self._bits("dst")
            case Kind.BOX:
                return self._boxes()
            case Kind.ROW_REDUCE:
                return self._place("dst", self.format, (rows, self._per_block()), (valid_rows, 1))
            case kind if kind.gives_places:
                return self._places()
            case Kind.COLUMN_REDUCE | Kind.RAMP:
                return self._place("dst", self.format, (1, cols), (1, valid_cols))
            case Kind.TRANSPOSE:
                return self._place("dst", self.format, *self._turned())
            case Kind.SORT:
                pairs = PAIR_BYTES * 8 // self.lowerer.element_bits(self.format)
                return self._place("dst", self.format, (rows, pairs * cols), (valid_rows, pairs * valid_cols))
            case Kind.CONCATENATE | Kind.COUNTED_CONCATENATE:
                return self._place("dst", self.format, (rows, 2 * cols), (valid_rows, 2 * valid_cols))
            case Kind.GATHER:
                return self._place("dst", self.format, self.shape, self.region, fixed=False)
            case Kind.QUANTISE | Kind.DEQUANTISE | Kind.PACK | Kind.BLOCK_QUANTISE | Kind.NARROW:
                fmt = format_named(self._other_format())
                per_block = BLOCK * 8 // self.lowerer.element_bits(fmt)
                return self._place("dst", fmt, (rows, -(-cols // per_block) * per_block), self.region)
            case Kind.FILL:
                return self._place("dst", self.format, self.shape, self.shape, pad=_ZERO_PAD)
            case _:
                return self._place("dst", self.format, self.shape, self.region)

    def _boxes(self) -> Tile:
        """Place boxes: rows of shared exponents padded to whole boxes, or columns of boxes of codes."""
        (rows, cols), scratch = self.shape, self.operation.forms[0].count(Role.TMP)
        wide = cols if scratch else -(-cols // BLOCK) * BLOCK
        plain = self._place("dst", self.format, (-(-rows // _BOX_ROWS) * _BOX_ROWS, wide), self.region)
        layout = "row_major" if scratch else "col_major"
        return replace(plain, type=replace(plain.type, block_layout=layout, scatter_layout="row_major"))

    def _other_format(self) -> str:
        """Return the result format of a quantisation, of a dequantisation, and of a packing by a half."""
        if self.operation.kind is Kind.NARROW:
            return NARROWER[self.format.name]
        if self.operation.kind is Kind.PACK:
            return f"i{self.lowerer.element_bits(self.format) // 2}"
        return "f32" if self.operation.kind is Kind.DEQUANTISE else "i8"

    def _places(self) -> Tile:
        """Place a result that contains element indices."""
        (rows, cols), (valid_rows, valid_cols) = self.shape, self.region
        per_block = BLOCK // 4
        wide = -(-cols // per_block) * per_block
        shapes = {
            Kind.ROW_ARGUMENT: ((rows, per_block), (valid_rows, 1)),
            Kind.COLUMN_ARGUMENT: ((1, wide), (1, valid_cols)),
            Kind.COMPARE_GATHER: ((rows, wide), (valid_rows, valid_cols)),
        }
        return self._place("dst", format_named("i32"), *shapes[self.operation.kind])

    def _turned(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Return shape and valid region of the transposed source, its rows padded to whole blocks."""
        (rows, cols), (valid_rows, valid_cols) = self.shape, self.region
        whole = max(self._per_block(), 32)
        return (cols, -(-rows // whole) * whole), (valid_cols, valid_rows)

    def _scratch(self) -> Tile:
        """Place a tmp tile: of the source's shape, of the indices of a gather, or large enough for every ramp."""
        match self.operation.kind:
            case Kind.GATHER:
                return self._numbers("tmp")
            case Kind.BOX:
                size = 64 + -(-self.region[0] // _BOX_ROWS) * self.region[1]
                return self._place("tmp", self.format, (1, -(-size // BLOCK) * BLOCK), (1, size))
            case Kind.RAMP:
                return self._place("tmp", format_named("f32"), (1, _RAMP_SCRATCH), (1, _RAMP_SCRATCH))
            case _:
                return self._place("tmp", self.format, self.shape, self.region)

    def _numbers(self, name: str) -> Tile:
        """Place the indices of a gather, or their scaled form."""
        width = 16 if self.lowerer.element_bits(self.format) == 8 else 32
        return self._place(name, format_named(f"i{width}"), self.shape, self.region, fixed=False)

    def _per_block(self) -> int:
        return max(1, BLOCK * 8 // self.lowerer.element_bits(self.format))

    def _bits(self, name: str) -> Tile:
        """Place a tile with one bit per element, or of the compared shape if the target requires that."""
        rows, valid_rows = self.shape[0], self.region[0]
        if name == "dst":
            cols = -(-self.shape[1] // BLOCK) * BLOCK
            return self._place(name, format_named("i8"), (rows, cols), (valid_rows, self.region[1]))
        cols = -(-self.shape[1] // (8 * BLOCK)) * BLOCK
        return self._place(name, format_named("i8"), (rows, cols), (valid_rows, -(-self.region[1] // 8)))

    def _place(
        self,
        name: str,
        fmt: Format,
        shape: tuple[int, int],
        region: tuple[int, int],
        *,
        pad: int = 0,
        fixed: bool = True,
        layout: str = "row_major",
    ) -> Tile:
        """Place a tile; its type states its valid region if that is `fixed`."""
        rows, cols = region if fixed and not self.runtime_valid else (None, None)
        kind = TileType("vec", fmt.name, *shape, rows, cols, block_layout=layout, pad=pad)
        tile = Tile(name, fmt, kind, self.next, *region, self.lowerer.element_bits(fmt))
        self.lowerer.check_tile(tile, HERE)
        self.next = -(-(tile.end + self.behind) // self.alignment) * self.alignment
        return tile
