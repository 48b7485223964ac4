"""The text of a kernel for a target, and what its arguments are; who writes it, by mechanism."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from castsim.isa.formats import Format
from castsim.machines.registry import Parts
from castsim.targets import Target

if TYPE_CHECKING:
    from castsim.graphs.kernel import NodeKernel


@dataclass(frozen=True, slots=True)
class NodeProgram:
    """A kernel as text for a target.

    Arguments are named as the kernel's ports, their formats by name in `inputs` and `outputs`. `elements` is the size
    of each, whole tiles; `tiles` how many the loop takes.
    """

    target: Target
    text: str
    suffix: str
    inputs: Mapping[str, Format]
    outputs: Mapping[str, Format]
    elements: int
    tiles: int


class Writing(Protocol):
    """What kernels may hold on the targets of a mechanism, and how they are written; `target` is of the mechanism."""

    NIBBLES_AS_BYTES: bool
    """Whether integers of 4 bits are taken to bytes before anything is computed of them."""

    def has(self, target: Target, function: str, fmt: Format, *, constant: bool) -> bool:
        """See `castsim.graphs.chip.Chip.has`."""
        ...

    def clamps(self, target: Target, functions: tuple[str, ...], fmt: Format) -> bool:
        """Whether one of the functions clamps its results in a format, and makes 0 of NaN."""
        ...

    def program(self, kernel: NodeKernel, target: Target, elements: int) -> NodeProgram:
        """Return the program of a kernel for at least `elements` elements.

        Raises:
            IllegalError, TileError: the target has no program for it.
        """
        ...


WRITING: Parts[Writing] = Parts(
    "program of graphs",
    {
        "strided-repeat": "castsim.graphs.tile_program",
        "vector-function": "castsim.graphs.tile_program",
        "vliw": "castsim.graphs.vector_program",
    },
)
