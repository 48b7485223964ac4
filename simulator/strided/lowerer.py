"""The strided-repeat mechanism as program execution sees it: one target's lowering behind the common protocol."""

from __future__ import annotations

from isa.errors import CastsimError
from isa.formats import Format
from simulator.dataflow.lowerer import DataflowLowerer, cast_accesses
from simulator.execution.lowerer import LoweredInstruction
from simulator.strided.lowering import lower_cast
from simulator.strided.whole_tile import natural_map
from simulator.tiles import TileCast
from simulator.tree import Lowered, operations
from targets.strided_repeat import StridedRepeatTarget


class StridedLowerer(DataflowLowerer):
    """Lowering for one target. Equal casts are lowered and proven once."""

    def __init__(self, target: StridedRepeatTarget) -> None:
        super().__init__(target)
        self.target = target
        self._casts: dict[TileCast, LoweredInstruction] = {}

    def element_bits(self, fmt: Format) -> int:
        """Return the bits one element takes in a tile's pitch and pointer arithmetic."""
        if fmt.bits == 4 and fmt.name not in self.target.byte_storage.formats:
            return fmt.bits
        return fmt.storage_bits

    def cast(self, cast: TileCast) -> LoweredInstruction:
        """Lower one tile cast, and prove whether it may be converted in one call."""
        found = self._casts.get(cast)
        if found is None:
            try:
                found = self._casts[cast] = self._lower_cast(cast)
            except CastsimError as error:
                raise error.at(cast.span) from None
        return found

    def _lower_cast(self, cast: TileCast) -> LoweredInstruction:
        lowered = lower_cast(self.target, cast)
        shortcut = None
        if lowered.plan.sequence is None:
            shortcut = natural_map(operations(Lowered(0, lowered.body), None), cast.src, cast.dst)
        return LoweredInstruction(lowered.body, cast_accesses(cast), shortcut, lowered.warnings)
