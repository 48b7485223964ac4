"""The machine of chips that execute casts as repeated instructions with strides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from castsim.isa.codes import Codes
from castsim.machines.mechanisms import ComputeValues, VectorUnits, no_vector_instructions
from castsim.targets.strided_repeat import StridedRepeatTarget

if TYPE_CHECKING:
    from castsim.machines.strided.strided_lowering import StridedLowerer
    from castsim.machines.target_cast import CastAsked, CastForm, TargetCast


@dataclass(frozen=True, slots=True)
class StridedMachine:
    """See `castsim.machines.mechanisms.Machine`; lowering and values are loaded by who asks for them."""

    target: StridedRepeatTarget

    def lowerer(self, *, unsafe_scratch: bool = False) -> StridedLowerer:
        """Return the lowering of tile programs."""
        from castsim.machines.strided.strided_lowering import StridedLowerer  # noqa: PLC0415

        return StridedLowerer(self.target, unsafe_scratch=unsafe_scratch)

    @property
    def compute(self) -> ComputeValues:
        """What computes the values of a lowered program."""
        from castsim.machines.strided.values import compute  # noqa: PLC0415

        return compute

    @property
    def vector_units(self) -> VectorUnits:
        """Refuse: its programs have no vector instructions of this kind."""
        raise no_vector_instructions(self.target)

    @property
    def launches(self) -> None:
        """None: nothing is launched."""
        return

    @property
    def cast_forms(self) -> tuple[CastForm, ...]:
        """None: tiles of all shapes give the same results."""
        return ()

    def cast_elements(self, codes: Codes, asked: CastAsked) -> TargetCast:
        """Convert codes as a tile cast does."""
        from castsim.machines.strided.sequences import cast_elements  # noqa: PLC0415

        return cast_elements(self.target, codes, asked)
