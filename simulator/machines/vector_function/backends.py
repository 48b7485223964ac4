"""The two back ends of the assembler: calls of the C++ library, or instructions that say whether they saturate.

Facts: docs/reference/a5.md section 4.2.
"""

from __future__ import annotations

from castsim.execution.choices import BACKEND, MICRO
from castsim.isa.formats import Format
from castsim.targets.vector_function import VectorCast, VectorFunctionTarget


def is_micro(target: VectorFunctionTarget) -> bool:
    """Whether casts are instructions of the micro back end."""
    return BACKEND in target.options and target.option(BACKEND) == MICRO


def micro_rule(target: VectorFunctionTarget, rule: VectorCast) -> VectorCast | None:
    """Return the rule of a cast whose instruction saturates by itself, None where the library's holds."""
    facts = target.instruction_saturation
    if facts is None or not _is_listed(target, rule.src, rule.dst) or not is_micro(target):
        return None
    suffixes = {mode: rule.suffixes.get(mode, "") for mode in facts.roundings}
    return rule.model_copy(update={"rounding": "user", "suffixes": suffixes})


def backend_matters(target: VectorFunctionTarget, src: Format, dst: Format) -> bool:
    """Whether a cast gives something else by one back end than by the other."""
    return BACKEND in target.options and _is_listed(target, src.name, dst.name)


def backend_effect(target: VectorFunctionTarget) -> str:
    """Return what the back end that is chosen makes of numbers beyond the range, and what the other one does."""
    if is_micro(target):
        return "clamps, turns NaN into 0, rounds as asked (library: follows CTRL, rounds RINT)"
    return "follows CTRL beyond the range (vpto: clamps, turns NaN into 0)"


def _is_listed(target: VectorFunctionTarget, src: str, dst: str) -> bool:
    facts = target.instruction_saturation
    return facts is not None and src in facts.sources and dst in facts.formats
