"""What planning has of its own for every mechanism: one row each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from castsim.isa.formats import Format
from castsim.machines.registry import MachinePart
from castsim.planning.constants import Constants
from castsim.planning.sharing import Shared
from castsim.targets import Target

if TYPE_CHECKING:
    from castsim.planning.assembly import Assembly
    from castsim.planning.catalogue import Catalogue, Steps
    from castsim.planning.steps import Chain


class Planning(Protocol):
    """The steps of chains on the targets of a mechanism, and how they are written; `target` is of the mechanism."""

    def casts(self, target: Target) -> Catalogue:
        """Return all casts, and the rereads among all formats."""
        ...

    def catalogue(self, target: Target, constants: Constants) -> Catalogue:
        """Return the casts, and the arithmetic with these constants."""
        ...

    def arithmetic(self, target: Target, constants: Constants) -> Steps:
        """Return the arithmetic with these constants, the same object for all requests that come to the same."""
        ...

    def assembly(self, chain: Chain, src: Format, dst: Format, target: Target, rows: int, cols: int) -> Assembly:
        """See `castsim.planning.assembling.assembly_of`."""
        ...


PLANNING: MachinePart[Planning] = MachinePart(
    "casts to plan with",
    {
        "strided-repeat": "castsim.planning.strided_casts:PLANNING",
        "vector-function": "castsim.planning.function_casts:PLANNING",
        "vliw": "castsim.planning.vector_planning",
    },
)


def catalogue_of(target: Target, src: Format, dst: Format) -> Catalogue:
    """Return the steps of a target on the way from `src` to `dst`, which decide the constants of its arithmetic."""
    return _CATALOGUES.of(
        (id(target), id(src), id(dst)),
        lambda: PLANNING.of(target).catalogue(target, Constants(src, dst)),
        (target, src, dst),
    )


def arithmetic_between(target: Target, src: Format, dst: Format) -> Steps:
    """Return those steps of the catalogue that are operations with constants."""
    return PLANNING.of(target).arithmetic(target, Constants(src, dst))


_CATALOGUES: Shared[Catalogue] = Shared(64)
