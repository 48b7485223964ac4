"""The machine of a target, whatever its mechanism; only the mechanism in use is loaded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol

from castsim.isa.codes import Codes
from castsim.isa.errors import IllegalError
from castsim.machines.registry import Parts
from castsim.targets import Target, TileTarget

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from castsim.execution.dataflow.buffer_values import CastCounts, Follower
    from castsim.execution.interpreter.lowerer import Lowerer
    from castsim.execution.interpreter.vector_unit import Body, MicroMemory, Recording, VectorUnit
    from castsim.execution.outcomes import CastTally
    from castsim.execution.tree import Tree
    from castsim.isa.pto.program import Function
    from castsim.machines.launches import LaunchReport
    from castsim.machines.target_cast import CastAsked, CastForm, TargetCast

    Bytes = NDArray[np.uint8]


# What a mechanism answers for one of its chips: how instructions are lowered, and what they make of values.
#
# What stands above the machines (engines, estimators, planning, reports) adds its own parts by mechanism, each in its
# room: see `castsim.machines.registry`.


class ComputeValues(Protocol):
    """Runs all operations of a tree on the buffer and the global memory, both changed in place."""

    def __call__(
        self,
        tree: Tree,
        buffer: Bytes,
        arguments: Mapping[str, Bytes],
        *,
        shortcuts: bool = True,
        follower: Follower | None = None,
        counts: CastCounts | None = None,
    ) -> None:
        """Run them; `shortcuts` False: one by one even where a whole tile at once is proven the same."""


class VectorUnits(Protocol):
    """What a target has for programs of vector instructions."""

    def unit(self, memory: MicroMemory, casts: CastTally | None = None) -> VectorUnit:
        """Return a unit that executes instructions on a memory, changed in place; `casts` gets what conversions do."""
        ...

    def recorder(self, *, as_written: bool) -> Recording:
        """Return what records the vector instructions of a program, with all around them.

        `as_written`: a program without flags does not wait for its bytes either.
        """
        ...

    def control_at_start(self, *, saturating: bool) -> int:
        """Return the CTRL register with which a function begins; `saturating` ones have conversions with `sat`."""
        ...

    def lowered(self, function: Function) -> Function:
        """Return a function whose operations on logical registers are vector instructions.

        Raises:
            IllegalError: an operation for which there are none; carries its place.
        """
        ...

    def body_cycles(self, body: Body) -> int:
        """Return the cycles of a body of a published table, from launch to end.

        Raises:
            IllegalError: no latency of an instruction is known.
        """
        ...

    def expanded(self, tree: Tree, function: Function) -> tuple[str, Mapping[str, str]]:
        """Return the text of what a walked tile function executes, and the options that this text needs.

        Raises:
            IllegalError: an operation whose lowering does not consist of instructions that programs can name.
        """
        ...

    def expanded_source(self, function: Function, lowerer: Lowerer) -> tuple[str, Mapping[str, str]]:
        """Return the same of a function that is not walked: its scalar arguments stay arguments.

        Raises:
            IllegalError: what can be written for settled scalars only, too.
        """
        ...


class Machine(Protocol):
    """The machine model of one target."""

    def lowerer(self, *, unsafe_scratch: bool = False) -> Lowerer:
        """Return the lowering of tile programs; `unsafe_scratch` lets tmp tiles pass that are too small.

        Raises:
            IllegalError: the target has no tile instructions.
        """
        ...

    @property
    def compute(self) -> ComputeValues:
        """What computes the values of a lowered tile program.

        Raises:
            IllegalError: the target has no tile instructions.
        """
        ...

    @property
    def vector_units(self) -> VectorUnits:
        """What executes vector instructions.

        Raises:
            IllegalError: programs cannot name the target's.
        """
        ...

    @property
    def launches(self) -> LaunchReport | None:
        """What tells of launches of vector functions; None if the target has none."""
        ...

    @property
    def cast_forms(self) -> tuple[CastForm, ...]:
        """The forms that a tile cast has, the usual one first; none if all casts run the same code."""
        ...

    def cast_elements(self, codes: Codes, asked: CastAsked) -> TargetCast:
        """Convert codes of any shape as the chip does.

        Raises:
            ReadError: a word that is no rounding mode.
            IllegalError: no such type pair, or a mode that the chip's instructions cannot name.
        """
        ...


MACHINES: Parts[Callable[[Target], Machine]] = Parts(
    "machine",
    {
        "strided-repeat": "castsim.machines.strided.strided_machine:StridedMachine",
        "vector-function": "castsim.machines.vector_function.function_machine:VectorFunctionMachine",
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
