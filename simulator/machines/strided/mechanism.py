"""The machine of chips that execute casts as repeated instructions with strides."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from castsim.machines.machine import Compute
from castsim.machines.tile_machine import TileMachine
from castsim.targets.strided_repeat import StridedRepeatTarget

if TYPE_CHECKING:
    from castsim.machines.strided.lowerer import StridedLowerer
    from castsim.machines.target_cast import TargetCast


class StridedMachine(TileMachine[StridedRepeatTarget]):
    """See `castsim.machines.machine.Machine`."""

    def lowerer(self, *, unsafe_scratch: bool = False) -> StridedLowerer:
        """Return the lowering of tile programs."""
        from castsim.machines.strided.lowerer import StridedLowerer  # noqa: PLC0415

        return StridedLowerer(self.target, unsafe_scratch=unsafe_scratch)

    @property
    def compute(self) -> Compute:
        """What computes the values of a lowered program."""
        from castsim.machines.strided.values import compute  # noqa: PLC0415

        return compute

    @property
    def element_cast(self) -> Callable[..., TargetCast]:
        """What converts loose elements."""
        from castsim.machines.strided.elementwise import cast_elements  # noqa: PLC0415

        return cast_elements
