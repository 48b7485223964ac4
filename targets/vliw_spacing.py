"""Schema of the smallest distances between instructions that the stages of the pipeline do not tell.

Some are single facts; a row of the table is a rule on a pair of instructions, whatever registers they name. Facts:
docs/reference/tpc.md section 6.2.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Annotated, Any

from pydantic import BeforeValidator

from castsim.isa.tpc.dialect import Feature
from castsim.targets.cells import LIST_SEPARATOR, Listed
from castsim.targets.schema import Cycles, Fact, Table, built_for
from castsim.targets.vliw_stages import WHOLE_SLOT


def _settings(cell: Any) -> Any:
    return {} if cell is None or cell == "" else cell


def _distances(cell: Any) -> Any:
    """Split a cell of distances; one alone has been read as a number."""
    if isinstance(cell, str):
        return tuple(int(word) for word in cell.split(LIST_SEPARATOR) if word)
    return () if cell is None else (cell,) if isinstance(cell, int) else cell


Settings = Annotated[dict[str, str], BeforeValidator(_settings)]
Distances = Annotated[tuple[int, ...], BeforeValidator(_distances)]


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


class BundleDistance(Table):
    """One rule: `distance` from an instruction of `first` to a later one of `second`, and none of `excluded`.

    Instructions are named as `spu.add`, `load.*` is any of the slot. Empty lists of types, switches and of what they
    read (roles of operands, or names of registers) do not restrict. `same_destination` restricts to instructions that
    write a register in common; `needs` and `lacks` name abilities of generations. `linted` names the rule of the linter
    that looks for breaches, empty: its rule on issue distances.
    """

    first: Listed
    first_types: Listed
    first_switches: Settings
    first_reads: Listed
    second: Listed
    second_types: Listed
    second_switches: Settings
    second_reads: Listed
    distance: int
    excluded: Distances
    same_destination: bool
    needs: Listed
    lacks: Listed
    linted: Listed
    rule: str

    def holds(self, features: Set[Feature]) -> bool:
        """Whether a generation with these abilities has the rule."""
        return features >= set(map(Feature, self.needs)) and features.isdisjoint(map(Feature, self.lacks))


def names(listed: tuple[str, ...], slot: str, mnemonic: str) -> bool:
    """Whether a list of instructions has that of a slot."""
    return f"{slot}.{mnemonic}" in listed or f"{slot}.{WHOLE_SLOT}" in listed


def smallest(rules: tuple[BundleDistance, ...]) -> int | None:
    """Return the smallest distance in bundles that satisfies all of the rules, None if there is none."""
    if not rules:
        return None
    found = max(rule.distance for rule in rules)
    forbidden = {distance for rule in rules for distance in rule.excluded}
    while found in forbidden:
        found += 1
    return found
