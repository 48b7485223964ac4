"""The machine of chips that issue bundles on registers: its programs are assembly, it has no tiles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from castsim.isa.codes import Codes
from castsim.machines.mechanisms import ComputeValues, VectorUnits, no_tiles, no_vector_instructions
from castsim.targets.vliw import VliwTarget

if TYPE_CHECKING:
    from castsim.execution.interpreter.lowerer import Lowerer
    from castsim.machines.target_cast import CastAsked, CastForm, TargetCast


@dataclass(frozen=True, slots=True)
class VliwMachine:
    """See `castsim.machines.mechanisms.Machine`."""

    target: VliwTarget

    def lowerer(self, *, unsafe_scratch: bool = False) -> Lowerer:
        """Refuse: there is nothing to lower tiles to."""
        raise no_tiles(self.target)

    @property
    def compute(self) -> ComputeValues:
        """Refuse: values of assembly are computed as it is walked."""
        raise no_tiles(self.target)

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
        """None: registers have no shapes."""
        return ()

    def cast_elements(self, codes: Codes, asked: CastAsked) -> TargetCast:
        """Convert codes as one CONVERT does."""
        from castsim.machines.vliw.loose_cast import cast_elements  # noqa: PLC0415

        return cast_elements(self.target, codes, asked)
