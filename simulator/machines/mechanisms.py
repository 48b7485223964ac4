"""The machine of a target, whatever its mechanism; only the mechanism in use is loaded."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from castsim.isa.errors import IllegalError
from castsim.machines.machine import ComputeValues, Machine, VectorUnits
from castsim.machines.registry import Parts
from castsim.targets import Target, TileTarget

if TYPE_CHECKING:
    from castsim.execution.interpreter import Lowerer

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


def tiles_of(target: Target | None) -> TileTarget | None:
    """Return the target if its programs work on tiles, None if they do not or there is none."""
    return target if target is not None and target.has_tiles else None


def no_tiles(target: Target) -> IllegalError:
    """Return (not raise) the refusal of tile work."""
    languages = ", ".join(f".{language}" for language in target.languages)
    return IllegalError(f"{target.name} has no tile instructions; it runs {languages} programs")


def compute_of(target: Target) -> ComputeValues:
    """Return what computes the values of the target's tile programs.

    Raises:
        IllegalError: the target has no tile instructions.
    """
    return machine_of(target).compute


def vector_units_of(target: Target) -> VectorUnits:
    """Return what executes the target's vector instructions.

    Raises:
        IllegalError: the target has none that programs can name.
    """
    return machine_of(target).vector_units


def no_vector_instructions(target: Target) -> IllegalError:
    """Return (not raise) the refusal of a program of vector instructions."""
    return IllegalError(f"{target.name} does not run programs of vector instructions (vecscope)", legal=("a5",))
