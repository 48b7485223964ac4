"""The strided-repeat mechanism as program execution sees it: one target's lowering behind the common protocol."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from castsim.execution.choices import MAKE_SCRATCH
from castsim.execution.dataflow.implicit_scratch import Needy
from castsim.execution.dataflow.lowerer import DataflowLowerer, cast_accesses
from castsim.execution.interpreter.lowerer import LoweredInstruction
from castsim.execution.tiles import CastTiles, ResolvedTileOp, Tile, TileCast, TileTransfer
from castsim.execution.tree import Block, Lowered, operations
from castsim.isa.errors import CastsimError, IllegalError, Span
from castsim.isa.formats import Format, IntFormat
from castsim.isa.modes import Overflow, Saturation
from castsim.isa.pto import program as pto
from castsim.isa.pto.packed import held_format
from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS, Kind
from castsim.isa.warning_text import WarningKind, Warnings, WarningText
from castsim.machines.strided.elementwise import told_by_scratch
from castsim.machines.strided.geometry import active_bytes
from castsim.machines.strided.implicit_scratch import implicit_scratch, tmp_of_work
from castsim.machines.strided.kernels import lower_work
from castsim.machines.strided.lowering import lower_cast
from castsim.machines.strided.operations import BLOCK, Convert, ScaledConvert, VectorOperation
from castsim.machines.strided.plan import CastPlan, plan_cast
from castsim.machines.strided.scratch import ScratchNeed, scratch_need
from castsim.machines.strided.whole_tile import natural_map
from castsim.machines.target_cast import CastAsked
from castsim.targets.options import unwatched
from castsim.targets.strided_repeat import StridedRepeatTarget


@dataclass(frozen=True, slots=True)
class ScratchUse:
    """One cast with a tmp tile, the scratch it needs and the operations it issues."""

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
        """Every tile of the program, by name and address."""
        self.scratch_uses: list[ScratchUse] = []
        """The casts that were given a tmp tile, in the order in which they were met."""
        self._unsafe_scratch = unsafe_scratch
        self._unwatched = unwatched(target)
        self._casts: dict[TileCast, LoweredInstruction] = {}
        self._scratch_of: dict[TileCast, ScratchUse] = {}
        self._works: dict[ResolvedTileOp, Block] = {}

    def element_bits(self, fmt: Format) -> int:
        """Return the bits one element takes in a tile's pitch and pointer arithmetic."""
        if fmt.bits == 4 and fmt.name not in self.target.byte_storage.formats:
            return fmt.bits
        return fmt.storage_bits

    def implicit_scratch(self, node: Needy, pitch: int | None) -> pto.TileType | None:
        """Return the tmp tile that an operation without one gets, None for none."""
        return implicit_scratch(self.target, node, pitch)

    def check_tile(self, tile: Tile, span: Span) -> None:
        """Refuse a tile that the buffer or the vector unit cannot take; remember the others."""
        super().check_tile(tile, span)
        self.tiles[tile.name, tile.address] = tile

    def closing_warnings(self) -> Warnings:
        """Name the tiles into which scratch sequences write past their tmp tile, and those under unreserved scratch."""
        found = [*super().closing_warnings()]
        for use in self.scratch_uses:
            missing = use.need.total - use.tmp.size
            if missing > 0:
                hit = ", ".join(self._owners(use)) or "bytes that no tile owns"
                text = f"tmp %{use.tmp.name} is {missing} bytes short; the cast writes into {hit}"
                found.append(WarningText(WarningKind.SCRATCH, text, use.cast.span))
        return tuple(found)

    def _owners(self, use: ScratchUse) -> list[str]:
        """Return the tiles, with the bytes from first to last, that the sequence writes behind its tmp tile."""
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
            IllegalError: the target has no such elements.
        """
        fmt = transfer.tile.format
        with_cast = any(fmt.name in (row.src, row.dst) for row in self.target.casts)
        if fmt.name in self.target.transfer_limits.refused_formats and not with_cast:
            what, name = "tload" if transfer.load else "tstore", held_format(fmt)[0].name
            text = f"{what}: {self.target.name} has no {name} elements; no load or store moves them"
            raise IllegalError(text, span=transfer.span)
        return super().transfer(transfer)

    def differ(self, one: TileCast, other: TileCast) -> bool:
        """Whether two casts, alike but for their saturation, can give different results."""
        ends = one.src.format, one.dst.format
        if all(isinstance(fmt, IntFormat) for fmt in ends) and ends[0].bits < ends[1].bits:
            return False  # nothing can be lost
        plans = [
            plan_cast(
                self._unwatched,
                cast.src.format,
                cast.dst.format,
                cast.rounding,
                cast.saturation,
                scratch=bool(cast.tmp),
            )
            for cast in (one, other)
        ]
        return plans[0].action != plans[1].action or plans[0].sequence != plans[1].sequence

    def work(self, work: ResolvedTileOp) -> LoweredInstruction:
        """Lower one vector operation, and say so if the library has no call of it without a tmp tile."""
        lowered = super().work(work)
        kind = None if work.tmp is not None else tmp_of_work(self.target, work)
        if kind is None or VECTOR_OPERATIONS[work.mnemonic].kind not in _ALWAYS_WITH_TMP:
            return lowered
        text = (
            f"pto.{work.mnemonic} has no tmp tile, and {self.target.name} has no call without one: run with the "
            f"results that it gives with {kind.rows} x {kind.cols} {kind.element}, whose bytes the buffer "
            f"lacks; {_ADDED}"
        )
        return replace(lowered, warnings=(*lowered.warnings, WarningText(WarningKind.SCRATCH, text)))

    def lower_work(self, work: ResolvedTileOp) -> Block:
        """Return the instructions of one vector operation. Equal ones are lowered once."""
        found = self._works.get(work)
        if found is None:
            found = self._works[work] = lower_work(self.target, work)
        return found

    def _lower_cast(self, cast: TileCast) -> LoweredInstruction:
        lowered = lower_cast(self.target, cast, unsafe_scratch=self._unsafe_scratch)
        if cast.tmp is not None:
            self.scratch_uses.append(ScratchUse(cast, cast.tmp, lowered.need, lowered.body))
        shortcut = None
        if lowered.plan.sequence is None:
            shortcut = natural_map(operations(Lowered(0, lowered.body), None), cast.src, cast.dst)
        plan, action = lowered.plan, lowered.plan.action
        wraps = isinstance(action, Convert | ScaledConvert) and action.policy.overflow is Overflow.WRAP
        tiles = CastTiles(cast.src, cast.dst, plan.rounding, wraps or plan.sequence is not None)
        warnings = lowered.warnings + self._lacks_scratch(cast, plan)
        return LoweredInstruction(lowered.body, cast_accesses(cast), shortcut, warnings, cast=tiles)

    def _lacks_scratch(self, cast: TileCast, plan: CastPlan) -> Warnings:
        """Warn of a cast whose sequence needs a tmp tile that the program does not give, and say what differs.

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


_ALWAYS_WITH_TMP = (Kind.ELEMENTWISE, Kind.TRANSPOSE, Kind.SORT)
"""Kinds of which the library's calls that use a tmp tile cannot do without; those of others have a way of their own."""

_ADDED = f"assemblers add the tile from {MAKE_SCRATCH[0]} on, and refuse the program where tiles have addresses"


def scratch_writes(use: ScratchUse) -> Iterator[tuple[int, int]]:
    """Yield the bytes [start, end) of every repeat of a sequence that writes scratch rather than the destination."""
    dst = use.cast.dst
    for operation in operations(Lowered(0, use.body), None):
        if not isinstance(operation, VectorOperation):
            continue
        stream = operation.destination
        if stream.format == dst.format and dst.address <= stream.address < dst.end:
            continue
        size = active_bytes(stream, operation.lanes, operation.mask)
        for repeat in range(operation.repeats):
            start = stream.address + repeat * stream.repeat_stride * BLOCK
            yield start, start + size
