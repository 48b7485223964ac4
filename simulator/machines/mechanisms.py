"""The machine of a target, whatever its mechanism; only the mechanism in use is loaded."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from castsim.isa.codes import Codes
from castsim.isa.formats import Format
from castsim.isa.modes import Saturation
from castsim.machines.machine import Compute, Machine
from castsim.machines.registry import Parts
from castsim.machines.vliw.mechanism import no_tiles
from castsim.targets import Target, TileTarget

if TYPE_CHECKING:
    from castsim.execution.walk import Lowerer
    from castsim.machines.target_cast import TargetCast

MACHINES: Parts[Callable[[Target], Machine]] = Parts(
    "machine",
    {
        "strided-repeat": "castsim.machines.strided.mechanism:StridedMachine",
        "vector-function": "castsim.machines.vector_function.mechanism:VectorFunctionMachine",
        "vliw": "castsim.machines.vliw.mechanism:VliwMachine",
    },
)
"""What makes the machine of a target."""


def machine_of(target: Target) -> Machine:
    """Return the machine model of a target."""
    return MACHINES.of(target)(target)


def lowerer_of(target: Target, *, unsafe_scratch: bool = False) -> Lowerer:
    """Return how the target's tile programs are lowered.

    Raises:
        IllegalError: the target has no tile instructions.
    """
    return machine_of(target).lowerer(unsafe_scratch=unsafe_scratch)


def tile_target(target: Target) -> TileTarget:
    """Return the target if its programs work on tiles.

    Raises:
        IllegalError: the target has no tile instructions.
    """
    if not target.has_tiles:
        raise no_tiles(target)
    return target


def compute_of(target: Target) -> Compute:
    """Return what computes the values of the target's tile programs.

    Raises:
        IllegalError: the target has no tile instructions.
    """
    return machine_of(target).compute


def cast_elements(
    target: Target,
    codes: Codes,
    src: Format,
    dst: Format,
    rounding: str | None,
    saturation: Saturation | None,
    *,
    scratch: bool,
) -> TargetCast:
    """Convert codes of any shape as the chip does; see `Machine.cast_elements`."""
    return machine_of(target).cast_elements(codes, src, dst, rounding, saturation, scratch=scratch)
