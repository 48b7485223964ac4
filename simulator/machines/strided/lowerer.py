"""The strided-repeat mechanism as program execution sees it: one target's lowering behind the common protocol."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from castsim.execution.dataflow.implicit_scratch import Needy
from castsim.execution.dataflow.lowerer import DataflowLowerer, cast_accesses
from castsim.execution.tiles import CastTiles, Tile, TileCast, TileTransfer, TileWork
from castsim.execution.tree import Block, Lowered, operations
from castsim.execution.walk.lowerer import LoweredInstruction
from castsim.isa.errors import CastsimError, IllegalError, Span
from castsim.isa.formats import Format, IntFormat
from castsim.isa.modes import Overflow
from castsim.isa.pto import program as pto
from castsim.isa.pto.packed import held_format
from castsim.isa.warning_text import WarningKind, Warnings, WarningText
from castsim.machines.strided.geometry import active_bytes
from castsim.machines.strided.implicit_scratch import implicit_scratch
from castsim.machines.strided.kernels import lower_work
from castsim.machines.strided.lowering import lower_cast
from castsim.machines.strided.operations import BLOCK, Convert, ScaledConvert, VectorOperation
from castsim.machines.strided.plan import plan_cast
from castsim.machines.strided.scratch import ScratchNeed
from castsim.machines.strided.whole_tile import natural_map
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
        self._works: dict[TileWork, Block] = {}

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
            except CastsimError as error:
                raise error.at(cast.span) from None
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

    def lower_work(self, work: TileWork) -> Block:
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
        return LoweredInstruction(lowered.body, cast_accesses(cast), shortcut, lowered.warnings, cast=tiles)


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
