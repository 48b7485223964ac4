"""What the machines of all chips with tiles have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from castsim.isa.codes import Codes
from castsim.isa.errors import IllegalError, ReadError
from castsim.isa.formats import Format
from castsim.isa.modes import Rounding, Saturation
from castsim.isa.pto.program import RoundMode
from castsim.targets import TileTarget

if TYPE_CHECKING:
    from castsim.machines.target_cast import TargetCast

Chip = TypeVar("Chip", bound=TileTarget)


@dataclass(frozen=True, slots=True)
class TileMachine(ABC, Generic[Chip]):
    """See `castsim.machines.machine.Machine`; lowering and values are loaded by who asks for them."""

    target: Chip

    @property
    @abstractmethod
    def element_cast(self) -> Callable[..., TargetCast]:
        """What converts loose elements: as `cast_elements`, of a target, with the mode of tile instructions."""

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
        """Convert codes as a tile cast does."""
        mode = tile_mode(rounding, self.target.name)
        return self.element_cast(self.target, codes, src, dst, mode, saturation, scratch=scratch)


def tile_mode(rounding: str | None, chip: str) -> RoundMode | None:
    """Return a mode as the enumeration of the tile instructions names it, None for none.

    Raises:
        ReadError: no rounding mode. IllegalError: one that tile instructions lack; `chip` is named.
    """
    if rounding is None:
        return None
    name = rounding.upper().removeprefix("CAST_")
    if name in RoundMode.__members__:
        return RoundMode[name]
    legal = [mode.name.lower() for mode in RoundMode]
    if rounding.lower() in {mode.value for mode in Rounding}:
        raise IllegalError(f"{chip} has no rounding mode {rounding}", legal=legal)
    raise ReadError(f"unknown rounding mode '{rounding}'", legal=legal)
