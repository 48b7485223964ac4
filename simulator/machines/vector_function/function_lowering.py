"""The vector-function mechanism as program execution sees it: one target's lowering behind the common protocol."""

from __future__ import annotations

from castsim.execution.choices import BACKEND, Choice
from castsim.execution.dataflow.tile_lowering import DataflowLowerer, tile_access
from castsim.execution.interpreter.lowerer import LoweredInstruction
from castsim.execution.tiles import CastTiles, ResolvedTileOp, TileCast
from castsim.execution.tree import Access, Block
from castsim.execution.vector_operations import as_rows
from castsim.isa.errors import CastsimError
from castsim.isa.formats import Format
from castsim.isa.modes import Overflow
from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS, Kind
from castsim.machines.vector_function.lowering import LoweredCast, lower_cast, outcome
from castsim.machines.vector_function.nest_lowering import left_ctrl, lower_work
from castsim.machines.vector_function.plan import backend_effect, backend_matters, start_ctrl
from castsim.machines.vector_function.values import ConvertStep, WholeTile, whole_tile
from castsim.targets.options import unwatched, with_options
from castsim.targets.vector_function import VectorFunctionTarget


class VectorFunctionLowerer(DataflowLowerer):
    """Lowering for one target. Equal casts are lowered and proven once, equal operations lowered once."""

    def __init__(self, target: VectorFunctionTarget) -> None:
        super().__init__(target)
        self.target = self._at_start = target
        self._control: int | None = None
        self._unwatched = unwatched(target)
        self._casts: dict[TileCast, LoweredInstruction] = {}
        self._works: dict[ResolvedTileOp, Block] = {}

    def element_bits(self, fmt: Format) -> int:
        """Return the bits one element takes in a tile's pitch and pointer arithmetic; 4-bit elements share bytes."""
        return fmt.bits if fmt.bits == 4 else fmt.storage_bits

    def cast(self, cast: TileCast) -> LoweredInstruction:
        """Lower one tile cast, and prove whether it may be converted in one call."""
        found = self._casts.get(cast)
        if found is None:
            try:
                asked, choices = self.assembled(cast)
                lowered = lower_cast(self.target, asked)
            except CastsimError as error:
                raise error.at(cast.span) from None
            shortcut = whole_tile(lowered.function, cast.src, cast.dst)
            tiles = CastTiles(cast.src, cast.dst, lowered.plan.rounding, _wraps(shortcut))
            found = LoweredInstruction(
                lowered.body, _accesses(cast, lowered), shortcut, lowered.warnings, choices, tiles
            )
            self._casts[cast] = found
        return found

    def assembled(self, cast: TileCast) -> tuple[TileCast, tuple[Choice, ...]]:
        """Add the choice of the back end, where that decides what the cast gives."""
        asked, choices = super().assembled(cast)
        src, dst = cast.src.format, cast.dst.format
        if not backend_matters(self.target, src, dst):
            return asked, choices
        effect = f"{src.name} -> {dst.name} {backend_effect(self.target)}"
        return asked, (*choices, Choice(BACKEND, str(self.target.option(BACKEND)), effect))

    def differ(self, one: TileCast, other: TileCast) -> bool:
        """Whether two casts, alike but for their saturation, can give different results."""
        return outcome(self._unwatched, one) != outcome(self._unwatched, other)

    def lower_work(self, work: ResolvedTileOp) -> Block:
        """Return the vector function of any other vector operation, with the control writes around it.

        No source states the loops of a column-major move; they are taken to be those of the exchanged tile. Behind a
        quantisation of blocks everything is lowered under the CTRL that it leaves.
        """
        work = as_rows(work)
        found = self._works.get(work)
        if found is None:
            found = self._works[work] = lower_work(self.target, work)
        if VECTOR_OPERATIONS[work.mnemonic].kind is Kind.BLOCK_QUANTISE:
            left = left_ctrl(self.target)
            if left != start_ctrl(self.target):
                self.set_control(left)
        return found

    def control(self) -> int | None:
        """Return CTRL as operations have left it."""
        return self._control

    def set_control(self, value: int | None) -> None:
        """Take CTRL to hold a value, None for that at start; what was lowered before is lowered anew."""
        if value == self._control:
            return
        self._control, self.target = value, self._at_start
        if value is not None:
            options = {name: value >> bit & 1 for name, bit in self.target.control.options.items()}
            self.target = with_options(self.target, options)
        self._unwatched = unwatched(self.target)
        self._casts.clear()
        self._works.clear()


def _wraps(whole: WholeTile | None) -> bool | None:
    """Whether any step keeps the low bits of integers beyond the range; None if nothing is known of the steps."""
    if whole is None:
        return None
    return any(isinstance(step, ConvertStep) and step.policy.overflow is Overflow.WRAP for step in whole.chain)


def _accesses(cast: TileCast, lowered: LoweredCast) -> tuple[Access, ...]:
    """Return the bytes between first and last valid element of both tiles, and what a zero fill clears."""
    written, read = tile_access(cast.dst, write=True), tile_access(cast.src, write=False)
    if lowered.filled:
        end = max(written.end, cast.dst.address + lowered.filled)
        written = Access(written.space, written.start, end, write=True)
    return tuple(access for access in (written, read) if access.start < access.end)
