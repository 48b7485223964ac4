"""The strided-repeat mechanism as program execution sees it: one target's lowering behind the common protocol."""

from __future__ import annotations

from isa.errors import CastsimError, IllegalError, Span
from isa.formats import Format
from simulator.execution.lowerer import LoweredInstruction
from simulator.strided.checks import check_tile
from simulator.strided.lowering import lower_cast
from simulator.strided.operations import Barrier, ScalarWork, SetFlag, WaitFlag
from simulator.strided.transfers import lower_transfer
from simulator.strided.whole_tile import natural_map
from simulator.tiles import Tile, TileCast, TileTransfer
from simulator.tree import Access, Lowered, operations
from targets.strided_repeat import StridedRepeatTarget


class StridedLowerer:
    """Lowering for one target. Equal casts are lowered and proven once."""

    def __init__(self, target: StridedRepeatTarget) -> None:
        self.target = target
        self._casts: dict[TileCast, LoweredInstruction] = {}

    def element_bits(self, fmt: Format) -> int:
        """Return the bits one element takes in a tile's pitch and pointer arithmetic."""
        if fmt.bits == 4 and fmt.name not in self.target.byte_storage.formats:
            return fmt.bits
        return fmt.storage_bits

    def buffer(self) -> tuple[str, int, int]:
        """Return name, allocatable bytes and alignment of the unified buffer."""
        memory = self.target.memories["ub"]
        return "ub", memory.allocatable_bytes, memory.alignment_bytes

    def check_tile(self, tile: Tile, span: Span) -> None:
        """Refuse a tile that the buffer or the vector unit cannot take."""
        check_tile(self.target, tile, span)

    def cast(self, cast: TileCast) -> LoweredInstruction:
        """Lower one tile cast, and prove whether it may be converted in one call."""
        found = self._casts.get(cast)
        if found is None:
            try:
                found = self._casts[cast] = self._lower_cast(cast)
            except CastsimError as error:
                raise error.at(cast.span) from None
        return found

    def transfer(self, transfer: TileTransfer) -> LoweredInstruction:
        """Lower one tile load or store."""
        body, warnings = lower_transfer(self.target, transfer)
        return LoweredInstruction(body, _transfer_accesses(transfer), None, warnings)

    def set_flag(self, signaller: str, waiter: str, event: int, span: Span) -> SetFlag:
        """Return the operation that signals a flag."""
        self._check_flag(signaller, waiter, event, span)
        return SetFlag(signaller, waiter, event)

    def wait_flag(self, signaller: str, waiter: str, event: int, span: Span) -> WaitFlag:
        """Return the operation that waits for a flag."""
        self._check_flag(signaller, waiter, event, span)
        return WaitFlag(waiter, signaller, event)

    def barrier(self, pipe: str, span: Span) -> Barrier:
        """Return the barrier of one pipe, or of all."""
        self._check_pipe(pipe, span, others=("ALL",))
        return Barrier(pipe)

    def scalar_work(self, kind: str) -> ScalarWork:
        """Return the scalar unit's part in `arithmetic` or a `loop` turnaround."""
        return ScalarWork(kind, pipe=self.target.pipes.scalar)

    def _lower_cast(self, cast: TileCast) -> LoweredInstruction:
        lowered = lower_cast(self.target, cast)
        shortcut = None
        if lowered.plan.sequence is None:
            shortcut = natural_map(operations(Lowered(0, lowered.body), None), cast.src, cast.dst)
        return LoweredInstruction(lowered.body, _cast_accesses(cast), shortcut, lowered.warnings)

    def _check_flag(self, signaller: str, waiter: str, event: int, span: Span) -> None:
        self._check_pipe(signaller, span)
        self._check_pipe(waiter, span)
        if not 0 <= event < self.target.pipes.event_ids:
            raise IllegalError(
                f"event id {event}: {self.target.name} has {self.target.pipes.event_ids} per pair of pipes",
                span=span,
                legal=(f"EVENT_ID0 to EVENT_ID{self.target.pipes.event_ids - 1}",),
            )

    def _check_pipe(self, pipe: str, span: Span, others: tuple[str, ...] = ()) -> None:
        pipes = self.target.pipes
        legal = (pipes.scalar, pipes.vector, pipes.load, pipes.store, *pipes.others, *others)
        if pipe not in legal:
            raise IllegalError(f"{self.target.name} has no pipe {pipe}", span=span, legal=[f"PIPE_{p}" for p in legal])


def _cast_accesses(cast: TileCast) -> tuple[Access, ...]:
    """Return the bytes between first and last valid element of each operand, and all of tmp."""
    found = [_tile_access(cast.dst, write=True), _tile_access(cast.src, write=False)]
    if cast.tmp is not None:
        found += [Access("ub", cast.tmp.address, cast.tmp.end, write) for write in (False, True)]
    return tuple(access for access in found if access.start < access.end)


def _transfer_accesses(transfer: TileTransfer) -> tuple[Access, ...]:
    part = transfer.part
    if 0 in part.sizes:
        return ()
    last = sum((size - 1) * stride for size, stride in zip(part.sizes, part.strides, strict=True))
    bits = part.format.bits if part.format.bits == 4 else part.format.storage_bits
    start, end = part.offset * bits // 8, ((part.offset + last + 1) * bits + 7) // 8
    near = _tile_access(transfer.tile, write=transfer.load)
    return (near, Access(f"gm:{part.argument}", start, end, not transfer.load))


def _tile_access(tile: Tile, *, write: bool) -> Access:
    if not tile.valid_rows or not tile.valid_cols:
        return Access("ub", tile.address, tile.address, write)
    if tile.type.block_layout != "row_major":
        return Access("ub", tile.address, tile.end, write)
    last_row = (tile.valid_rows - 1) * tile.row_pitch
    return Access("ub", tile.address, tile.address + last_row + (tile.valid_cols * tile.element_bits + 7) // 8, write)
