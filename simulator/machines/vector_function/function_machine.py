"""The machine of chips that execute casts as vector functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from castsim.isa.codes import Codes
from castsim.machines.mechanisms import ComputeValues, VectorUnits
from castsim.targets.vector_function import VectorFunctionTarget

if TYPE_CHECKING:
    from castsim.machines.launches import LaunchReport
    from castsim.machines.target_cast import CastAsked, CastForm, TargetCast
    from castsim.machines.vector_function.function_lowering import VectorFunctionLowerer


@dataclass(frozen=True, slots=True)
class VectorFunctionMachine:
    """See `castsim.machines.mechanisms.Machine`; lowering and values are loaded by who asks for them."""

    target: VectorFunctionTarget

    def lowerer(self, *, unsafe_scratch: bool = False) -> VectorFunctionLowerer:
        """Return the lowering of tile programs, whose casts use no tmp tile: none is too small."""
        from castsim.machines.vector_function.function_lowering import VectorFunctionLowerer  # noqa: PLC0415

        return VectorFunctionLowerer(self.target)

    @property
    def compute(self) -> ComputeValues:
        """What computes the values of a lowered program."""
        from castsim.machines.vector_function.values import compute  # noqa: PLC0415

        return compute

    @property
    def vector_units(self) -> VectorUnits:
        """What computes on registers of bytes."""
        from castsim.machines.vector_function.micro_unit import LaneUnits  # noqa: PLC0415

        return LaneUnits(self.target)

    @property
    def launches(self) -> LaunchReport:
        """What tells of the launches of vector functions."""
        from castsim.machines.vector_function import function_launches  # noqa: PLC0415 - only reports ask

        return function_launches

    @property
    def cast_forms(self) -> tuple[CastForm, ...]:
        """Kernels of contiguous and of padded tiles."""
        return ("1d", "2d")

    def cast_elements(self, codes: Codes, asked: CastAsked) -> TargetCast:
        """Convert codes as a tile cast does."""
        from castsim.machines.vector_function.lowering import cast_elements  # noqa: PLC0415

        return cast_elements(self.target, codes, asked)
