"""The machine of chips that issue bundles on registers: its programs are assembly, it has no tiles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from castsim.isa.codes import Codes
from castsim.isa.errors import IllegalError
from castsim.isa.formats import Format
from castsim.isa.modes import Saturation
from castsim.machines.machine import Compute
from castsim.targets.vliw import VliwTarget

if TYPE_CHECKING:
    from castsim.execution.walk import Lowerer
    from castsim.machines.target_cast import TargetCast


@dataclass(frozen=True, slots=True)
class VliwMachine:
    """See `castsim.machines.machine.Machine`."""

    target: VliwTarget

    def lowerer(self, *, unsafe_scratch: bool = False) -> Lowerer:
        """Refuse: there is nothing to lower tiles to."""
        raise no_tiles(self.target)

    @property
    def compute(self) -> Compute:
        """Refuse: values of assembly are computed as it is walked."""
        raise no_tiles(self.target)

    def cast_elements(
        self,
        codes: Codes,
        src: Format,
        dst: Format,
        rounding: str | None,
        saturation: Saturation | None,
        *,
        scratch: bool,
    ) -> TargetCast:
        """Convert codes as one CONVERT does."""
        from castsim.machines.vliw.loose_cast import cast_elements  # noqa: PLC0415

        return cast_elements(self.target, codes, src, dst, rounding, saturation, scratch=scratch)


def no_tiles(target: VliwTarget) -> IllegalError:
    """Return (not raise) the refusal of tile work."""
    languages = ", ".join(f".{language}" for language in target.languages)
    return IllegalError(f"{target.name} has no tile instructions; it runs {languages} programs")
