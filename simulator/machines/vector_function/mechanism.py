"""The machine of chips that execute casts as vector functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from castsim.machines.machine import Compute
from castsim.machines.tile_machine import TileMachine
from castsim.targets.vector_function import VectorFunctionTarget

if TYPE_CHECKING:
    from castsim.machines.target_cast import TargetCast
    from castsim.machines.vector_function.lowerer import VectorFunctionLowerer


class VectorFunctionMachine(TileMachine[VectorFunctionTarget]):
    """See `castsim.machines.machine.Machine`."""

    def lowerer(self, *, unsafe_scratch: bool = False) -> VectorFunctionLowerer:
        """Return the lowering of tile programs, whose casts use no tmp tile: none is too small."""
        from castsim.machines.vector_function.lowerer import VectorFunctionLowerer  # noqa: PLC0415

        return VectorFunctionLowerer(self.target)

    @property
    def compute(self) -> Compute:
        """What computes the values of a lowered program."""
        from castsim.machines.vector_function.values import compute  # noqa: PLC0415

        return compute

    @property
    def element_cast(self) -> Callable[..., TargetCast]:
        """What converts loose elements."""
        from castsim.machines.vector_function.elementwise import cast_elements  # noqa: PLC0415

        return cast_elements
