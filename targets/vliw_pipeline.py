"""Words that the tables of these chips share, and distances that the stages of an exposed pipeline do not give."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator

from castsim.targets.schema import Cycles, Fact, built_for

_SEPARATOR = ";"


def _listed(cell: Any) -> Any:
    """Split a CSV cell into its items; an empty cell or `-` has none."""
    if cell is None or cell == "":
        return ()
    return tuple(cell.split(_SEPARATOR)) if isinstance(cell, str) else cell


Listed = Annotated[tuple[str, ...], BeforeValidator(_listed)]
"""Words that a CSV cell separates by `;`."""


class SpecialDistances(Fact):
    """Distances in bundles that the stages do not give."""

    tied_income: Cycles
    """A writer of V, then an instruction that keeps part of that V."""
    disjoint_parts: Annotated[Cycles, built_for(0, "writers of different parts do not wait for each other")]
    """The same, if both write different lanes, groups or dual groups of it."""
    predicate_load_then_write: Cycles
    """A load into SP or VP, then another unit's write of the same register."""
    rounding_register: Cycles
    """A store to a rounding register, then an instruction that takes its mode from there."""
    random_register: Cycles
    """A store to a register of the random generator, then a use of it."""
    reseed: Cycles
    """A MOV to LFSR, then an instruction that draws from it."""
    tensor_register: Cycles
    """A write of a register that tensor accesses read implicitly, then such an access."""
