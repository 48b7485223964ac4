"""How many bundles after its producer an operand sees a result: the rule of tpc.md section 6.1 and its exceptions."""

from __future__ import annotations

from functools import lru_cache

from isa.tpc import Instruction, Slot
from targets.vliw import VliwTarget
from targets.vliw_pipeline import ReadStage

Distances = tuple[int, ...]
"""Smallest distance in bundles by commit stage of the producer: entry 0 is d2, entry n is stage en."""

_STAGES = 14  # d2 and e1 to e13
_IMPLICIT = ("tensor", "range", "rmw")
_LOOP_BOUNDS = ("start", "bound", "step")


def constant(distance: int) -> Distances:
    """Return distances that do not depend on the producer."""
    return (distance,) * _STAGES


def commit_stage(target: VliwTarget, slot: Slot, instruction: Instruction, file: str) -> int:
    """Return the stage in which an instruction's result in a register file becomes visible."""
    return target.commit_stage(slot.name.lower(), instruction.mnemonic, instruction.type, file)


def read_distances(target: VliwTarget, slot: Slot, instruction: Instruction, role: str, file: str) -> Distances:
    """Return the distances of one operand; `role` as in the instruction table or `predicate`."""
    if role in _IMPLICIT:
        return constant(target.distances.tensor_register)
    stage = target.read_stage(slot.name.lower(), instruction.mnemonic, role, file)
    found = _by_rule(stage)
    if instruction.mnemonic == "loop" and role in _LOOP_BOUNDS:
        return tuple(max(distance, target.loop_rules.register_distance) for distance in found)
    if role == "predicate" and file == "VP" and instruction.mnemonic.startswith("st_l_v"):
        # The one case in which a result reaches a reader of its own bundle.
        exact = stage.read_stage - 1
        return tuple(target.distances.masked_store if p == exact else d for p, d in enumerate(found))
    return found


@lru_cache(maxsize=256)
def _by_rule(stage: ReadStage) -> Distances:
    return tuple(stage.distance(commit) for commit in range(_STAGES))


def horizon(target: VliwTarget) -> int:
    """Return a distance at which every result is visible to everything."""
    last_commit = max(row.stage for row in target.commit_stages)
    by_rule = max(row.distance(last_commit) for row in target.read_stages)
    rules = target.distances
    special = (
        rules.tied_income, rules.disjoint_parts, rules.predicate_load_then_write, rules.rounding_register,
        rules.random_register, rules.reseed, rules.tensor_register, rules.masked_store,
        target.loop_rules.register_distance,
    )  # fmt: skip
    return max(by_rule, *special)
