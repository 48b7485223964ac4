"""Lowering of the strided-repeat mechanism for one target."""

from __future__ import annotations

from collections.abc import Iterator

from castsim.execution.input_data import MAKE_SCRATCH
from castsim.execution.interpreter.lowerer import LoweredInstruction, is_binary
from castsim.execution.tile_lowering import DataflowLowerer, Needy, tile_access
from castsim.execution.tree import (
    Access,
    Block,
    CastTiles,
    Lowered,
    ResolvedTileOp,
    Tile,
    TileCast,
    TileTransfer,
    operations,
    strided,
)
from castsim.execution.vector_operations.shapes import is_column, transposes_by_blocks
from castsim.execution.vector_operations.target_rules import scratch_bytes
from castsim.isa.dataclass import dataclass, replace
from castsim.isa.errors import CastsimError, IllegalError, Span, WarningKind, Warnings, WarningText
from castsim.isa.formats import Format, IntFormat, Overflow, Saturation, format_named
from castsim.isa.pto import program as pto
from castsim.isa.pto.value_types import element_format, held_format
from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS, Kind
from castsim.machines.mechanisms import CastAsked
from castsim.machines.strided.audit import lower_cast
from castsim.machines.strided.kernel_lowering import lower_work
from castsim.machines.strided.plan import CastPlan, ScratchNeed, plan_cast, plan_of, scratch_need, told_by_scratch
from castsim.machines.strided.strided_instructions import (
    StridedInstruction,
    stream_extent,
)
from castsim.machines.strided.values import natural_map
from castsim.targets.description import unwatched
from castsim.targets.strided_repeat import StridedRepeatTarget

# Type of the tmp tile that the newer assembler gives an operation of a strided-repeat chip.
#
# Source: docs/reference/pto.md section 1.3. What the text leaves to run time counts as large as it can be.

_GROUP = 32
"""Elements that tsort32 sorts together (docs/reference/pto.md section 7.7)."""


def implicit_scratch(target: StridedRepeatTarget, node: Needy, pitch: int | None) -> pto.TileType | None:
    """Return the type of the tmp tile to add to an operation; None if it needs none.

    `pitch` is that of its first source in elements, if that is a part of a wider tile.
    """
    if isinstance(node, pto.Tcvt):
        return _of_cast(target, node, pitch)
    rule = target.tile_operation(node.mnemonic)
    return tmp_of_work(target, _work(node)) if rule is not None and rule.tmp == "used" and _on_vectors(node) else None


def tmp_of_work(target: StridedRepeatTarget, work: ResolvedTileOp) -> pto.TileType | None:
    """Return the type of the tmp tile that an operation needs; None if it needs none, or does not use one."""
    rule = target.tile_operation(work.mnemonic)
    if rule is None or rule.tmp != "used":
        return None
    operation = VECTOR_OPERATIONS[work.mnemonic]
    like, dst = (work.sources or (work.dst,))[0], work.dst
    block = target.block_bytes
    match operation.kind:
        case Kind.SORT if _sorts_whole_groups(like.type):
            return None
        case (
            Kind.ROW_REDUCE | Kind.COLUMN_REDUCE | Kind.ROW_ARGUMENT | Kind.COLUMN_ARGUMENT | Kind.SORT | Kind.QUANTISE
        ):
            return replace(like.type, valid_rows=like.valid_rows, valid_cols=like.valid_cols)
        case Kind.ROW_BROADCAST:
            return _bytes(scratch_bytes(target, work, operation), block) if any(map(is_column, work.sources)) else None
        case Kind.RAMP:
            sizes = target.ramp_scratch
            if sizes is None:
                return None
            size = sizes.bytes_32 if dst.element_bits == 32 else sizes.bytes_16
            return _row(1, size * 8 // sizes.element_bits, f"i{sizes.element_bits}")
        case Kind.TRANSPOSE:
            return replace(like.type, valid_rows=like.rows, valid_cols=like.cols) if transposes_by_blocks(work) else (
                _bytes(block, block)
            )  # fmt: skip
        case Kind.SELECT:
            return _row(1, block * 8 // like.element_bits, like.format.name)
    return _of_function(operation.function, work, block)


def _of_function(function: str, work: ResolvedTileOp, block: int) -> pto.TileType | None:
    """Return the type of the tmp tile of an operation that works element by element."""
    dst = work.dst
    match function:
        case "pow" if isinstance(dst.format, IntFormat):
            return None
        case "xor" | "pow":
            return replace(dst.type, valid_rows=dst.valid_rows, valid_cols=dst.valid_cols)
        case "rem":
            return _row(1 if work.scalars else 2, dst.cols, dst.format.name)
        case "prelu":
            masks = -(-dst.valid_cols // 8)
            return _row(dst.valid_rows + 1, max(block, -(-masks // block) * block), "u8")
    return None


def _of_cast(target: StridedRepeatTarget, node: pto.Tcvt, pitch: int | None) -> pto.TileType | None:
    src, dst = element_format(node.src_type.element), element_format(node.dst_type.element)
    try:
        plan = plan_cast(target, src, dst, node.rounding, Saturation.OFF, scratch=True)
    except IllegalError:
        return None  # the walk says so, if it comes here
    if plan.sequence is None or "vec" not in {node.src_type.location, node.dst_type.location}:
        return None
    kind = node.dst_type
    rows = kind.rows if kind.valid_rows is None else kind.valid_rows
    columns = range(1, kind.cols + 1) if kind.valid_cols is None else (kind.valid_cols,)
    stride = node.src_type.cols if pitch is None else pitch
    need = max(scratch_need(plan, target.repeat, rows, cols, stride).total for cols in columns)
    return _bytes(need, target.block_bytes)


def _bytes(need: int, block: int) -> pto.TileType:
    """Return a tile of bytes, whole blocks and at least one."""
    return _row(1, max(-(-need // block), 1) * block, "i8")


def _row(rows: int, cols: int, element: str) -> pto.TileType:
    return pto.TileType("vec", element, rows, cols, rows, cols)


def _sorts_whole_groups(kind: pto.TileType) -> bool:
    """Return whether the types show that a sort works on whole groups."""
    return kind.valid_cols is not None and kind.valid_cols % _GROUP == 0


def _on_vectors(node: pto.TileOperation) -> bool:
    kinds = (*node.input_types, *node.output_types)
    return all(kind.location == "vec" for kind in kinds if isinstance(kind, pto.TileType))


def _work(node: pto.TileOperation) -> ResolvedTileOp:
    """Return the operation with its tiles at no place, as large as they can be."""
    tiles = [_tile(kind) for kind in node.input_types if isinstance(kind, pto.TileType)]
    masked = VECTOR_OPERATIONS[node.mnemonic].kind is Kind.SELECT
    scalars = tuple((0, format_named(kind.name)) for kind in node.input_types if isinstance(kind, pto.ScalarType))
    kind = node.output_types[0]
    assert isinstance(kind, pto.TileType)
    sources = tuple(tiles[1:] if masked else tiles)
    return ResolvedTileOp(node.mnemonic, _tile(kind), sources, node.span, scalars, binary=is_binary(node))


def _tile(kind: pto.TileType) -> Tile:
    fmt = element_format(kind.element)
    rows = kind.rows if kind.valid_rows is None else kind.valid_rows
    cols = kind.cols if kind.valid_cols is None else kind.valid_cols
    return Tile("", fmt, kind, 0, rows, cols, fmt.storage_bits)


@dataclass(frozen=True, slots=True)
class CastScratch:
    """One cast with a tmp tile, its required scratch and its issued operations."""

    cast: TileCast
    tmp: Tile
    need: ScratchNeed
    body: Block


class StridedLowerer(DataflowLowerer):
    """Lowering for one target. Equal casts are lowered and proven once."""

    def __init__(self, target: StridedRepeatTarget, *, unsafe_scratch: bool = False) -> None:
        super().__init__(target)
        self.target = target
        self.tiles: dict[tuple[str, int], Tile] = {}
        """All tiles of the program, by name and address."""
        self.scratch_uses: list[CastScratch] = []
        """The casts with a tmp tile, in the order in which they were lowered."""
        self._unsafe_scratch = unsafe_scratch
        self._unwatched = unwatched(target)
        self._casts: dict[TileCast, LoweredInstruction] = {}
        self._scratch_of: dict[TileCast, CastScratch] = {}
        self._works: dict[ResolvedTileOp, Block] = {}

    def element_bits(self, fmt: Format) -> int:
        """Return the bits of one element in a tile's pitch and in pointer arithmetic."""
        if fmt.bits == 4 and fmt.name not in self.target.byte_storage.formats:
            return fmt.bits
        return fmt.storage_bits

    def implicit_scratch(self, node: Needy, pitch: int | None) -> pto.TileType | None:
        """Return the tmp tile that is added to an operation without one, None for none."""
        return implicit_scratch(self.target, node, pitch)

    def check_tile(self, tile: Tile, span: Span) -> None:
        """Reject a tile that does not fit the buffer or the vector unit; store the others."""
        super().check_tile(tile, span)
        self.tiles[tile.name, tile.address] = tile

    def closing_warnings(self) -> Warnings:
        """Return warnings about tiles that scratch sequences overwrite past their tmp tile or in unreserved scratch."""
        found = [*super().closing_warnings()]
        for use in self.scratch_uses:
            missing = use.need.total - use.tmp.size
            if missing > 0:
                hit = ", ".join(self._owners(use)) or "bytes outside all tiles"
                text = f"tmp %{use.tmp.name} is {missing} bytes short; the cast writes into {hit}"
                found.append(WarningText(WarningKind.SCRATCH, text, use.cast.span))
        return tuple(found)

    def _owners(self, use: CastScratch) -> list[str]:
        """Return the tiles, with their first and last byte, that the sequence overwrites beyond its tmp tile."""
        named = []
        written = [(start, end) for start, end in scratch_writes(use) if end > use.tmp.end]
        for tile in self.tiles.values():
            inside = [(max(a, tile.address), min(b, tile.end)) for a, b in written if a < tile.end and tile.address < b]
            if inside and tile != use.tmp:
                named.append(f"%{tile.name} (bytes {min(inside)[0]} .. {max(end for _, end in inside) - 1})")
        return named

    def cast(self, cast: TileCast) -> LoweredInstruction:
        """Lower one tile cast, and prove whether it may be converted in one call."""
        found = self._casts.get(cast)
        if found is None:
            try:
                asked, choices = self.assembled(cast)
                found = self._casts[cast] = replace(self._lower_cast(asked), choices=choices)
                if cast.tmp is not None:
                    self._scratch_of[cast] = self.scratch_uses[-1]
            except CastsimError as error:
                raise error.at(cast.span) from None
        elif cast.tmp is not None:
            self.scratch_uses.append(replace(self._scratch_of[cast], cast=cast))
        return found

    def transfer(self, transfer: TileTransfer) -> LoweredInstruction:
        """Lower one tile load or store.

        Raises:
            IllegalError: the target lacks such elements.
        """
        fmt = transfer.tile.format
        with_cast = any(fmt.name in (row.src, row.dst) for row in self.target.casts)
        if fmt.name in self.target.transfer_limits.refused_formats and not with_cast:
            what, name = "tload" if transfer.load else "tstore", held_format(fmt)[0].name
            text = f"{what}: {self.target.name} has no {name} elements; loads and stores cannot move them"
            raise IllegalError(text, span=transfer.span)
        return super().transfer(transfer)

    def differ(self, one: TileCast, other: TileCast) -> bool:
        """Return whether two casts that differ only in saturation can give different results."""
        ends = one.src.format, one.dst.format
        if all(isinstance(fmt, IntFormat) for fmt in ends) and ends[0].bits < ends[1].bits:
            return False  # nothing can be lost
        plans = [plan_of(self._unwatched, cast) for cast in (one, other)]
        return plans[0].action != plans[1].action or plans[0].sequence != plans[1].sequence

    def work(self, work: ResolvedTileOp) -> LoweredInstruction:
        """Lower one vector operation; warn if the library has no call for it without a tmp tile."""
        lowered = super().work(work)
        kind = None if work.tmp is not None else tmp_of_work(self.target, work)
        if kind is None or VECTOR_OPERATIONS[work.mnemonic].kind not in _ALWAYS_WITH_TMP:
            return lowered
        text = (
            f"pto.{work.mnemonic} has no tmp tile, which {self.target.name} needs: run with the "
            f"results for one of {kind.rows} x {kind.cols} {kind.element}, whose bytes the buffer "
            f"lacks; {_ADDED}"
        )
        return replace(lowered, warnings=(*lowered.warnings, WarningText(WarningKind.SCRATCH, text)))

    def lower_work(self, work: ResolvedTileOp) -> Block:
        """Return the instructions of one vector operation, cached for equal ones."""
        found = self._works.get(work)
        if found is None:
            found = self._works[work] = lower_work(self.target, work)
        return found

    def _lower_cast(self, cast: TileCast) -> LoweredInstruction:
        lowered = lower_cast(self.target, cast, unsafe_scratch=self._unsafe_scratch)
        if cast.tmp is not None:
            self.scratch_uses.append(CastScratch(cast, cast.tmp, lowered.need, lowered.body))
        shortcut = None
        if lowered.plan.sequence is None:
            shortcut = natural_map(operations(Lowered(0, lowered.body), None), cast.src, cast.dst)
        plan, action = lowered.plan, lowered.plan.action
        wraps = not action.integral and action.policy.overflow is Overflow.WRAP
        stretches = packed_stretches(cast, plan.rule.lanes, self.target.repeat.max_repeats)
        tiles = CastTiles(cast.src, cast.dst, plan.rounding, wraps, stretches)
        warnings = lowered.warnings + self._lacks_scratch(cast, plan)
        return LoweredInstruction(lowered.body, cast_accesses(cast, stretches), shortcut, warnings, cast=tiles)

    def _lacks_scratch(self, cast: TileCast, plan: CastPlan) -> Warnings:
        """Warn of a cast whose sequence needs a tmp tile that the program does not pass, with the difference.

        Source: docs/reference/a2a3.md section 3.4, docs/reference/pto.md section 1.3.
        """
        src, dst = cast.src.format, cast.dst.format
        if cast.tmp is not None or plan.saturation is Saturation.ON:
            return ()
        through = plan_cast(self._unwatched, src, dst, cast.rounding, Saturation.OFF, scratch=True)
        if through.sequence is None:
            return ()
        valid = cast.dst.valid_rows, cast.dst.valid_cols
        need = scratch_need(through, self.target.repeat, *valid, cast.src.cols).total
        if not need:
            return ()
        mode = None if cast.rounding is None else cast.rounding.name.lower()
        differs = told_by_scratch(self._unwatched, CastAsked(src, dst, mode, Saturation.OFF))
        text = (
            f"{src.name} -> {dst.name} with saturation OFF has no tmp tile ({need} bytes) and is converted in one "
            f"step, not by the sequence {through.sequence.steps}: {differs}; {_ADDED}"
        )
        return (WarningText(WarningKind.SCRATCH, text),)


def packed_stretches(cast: TileCast, lanes: int, max_repeats: int) -> tuple[tuple[int, int], ...]:
    """Return the packed stretches of 4-bit elements in a row, as (first byte, elements); none for wider elements.

    Each call starts after as many bytes as there are columns before it: docs/reference/a2a3.md section 2.4.
    """
    if all(tile.format.bits != 4 or tile.type.block_layout != "row_major" for tile in (cast.src, cast.dst)):
        return ()
    whole, rest = divmod(cast.dst.valid_cols, lanes)
    calls = [(at * lanes, min(max_repeats, whole - at) * lanes) for at in range(0, whole, max_repeats)]
    return (*calls, (whole * lanes, rest)) if rest else tuple(calls)


def cast_accesses(cast: TileCast, stretches: tuple[tuple[int, int], ...]) -> tuple[Access, ...]:
    """Return the bytes of the valid elements of each operand, and all of tmp; none for an empty cast.

    Destination and source come first, then tmp, then the rest of the operand with several `stretches`.
    """
    found, behind = [], []
    for tile, write in ((cast.dst, True), (cast.src, False)):
        touched = [tile_access(tile, write=write)]
        if tile.format.bits == 4 and stretches and tile.valid_rows:
            rows = ((tile.valid_rows, tile.row_pitch),)
            touched = [
                strided("ub", tile.address + start, rows, (elements + 1) // 2, write=write)
                for start, elements in stretches
            ]
        found.append(touched[0])
        behind += touched[1:]
    if cast.tmp is not None and cast.dst.valid_rows and cast.dst.valid_cols:
        found += [Access("ub", cast.tmp.address, cast.tmp.end, write) for write in (False, True)]
    return tuple(access for access in (*found, *behind) if access.start < access.end)


_ALWAYS_WITH_TMP = (Kind.ELEMENTWISE, Kind.TRANSPOSE, Kind.SORT)
"""Kinds whose library calls with a tmp tile need it; the calls of other kinds have an alternative."""

_ADDED = f"assemblers since {MAKE_SCRATCH[0]} add the tile, and reject programs whose tiles have addresses"


def scratch_writes(use: CastScratch) -> Iterator[tuple[int, int]]:
    """Yield the bytes [start, end) of every repeat of a sequence that writes scratch rather than the destination."""
    dst = use.cast.dst
    for operation in operations(Lowered(0, use.body), None):
        if not isinstance(operation, StridedInstruction):
            continue
        stream = operation.destination
        if stream.format == dst.format and dst.address <= stream.address < dst.end:
            continue
        start, end = stream_extent(stream, 1, operation.lanes, operation.mask)
        for repeat in range(operation.repeats):
            yield start + repeat * stream.step, end + repeat * stream.step
