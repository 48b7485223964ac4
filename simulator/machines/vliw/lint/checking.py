"""All rules of the linter, and their application to a program."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from castsim.isa.tpc import TpcProgram
from castsim.machines.vliw.lint import bundles, paths, spacing, stale, unread
from castsim.machines.vliw.lint.finding import LintFinding
from castsim.machines.vliw.lint.flow import Flow
from castsim.targets.vliw import VliwTarget

RULES: Mapping[str, Callable[[Flow], Iterator[LintFinding]]] = {
    "stale read": stale.stale_read,
    "slot count": bundles.slot_count,
    "two results": bundles.two_results,
    "field overlay": bundles.field_overlay,
    "immediates": bundles.immediates,
    "shared predicate": bundles.shared_predicate,
    "loop bundle": bundles.loop_bundle,
    "scalar beside load": bundles.scalar_beside_load,
    "minifloat beside store": bundles.minifloat_beside_store,
    "tensor store spacing": spacing.tensor_store_spacing,
    "tensor half spacing": spacing.tensor_half_spacing,
    "mapped store": spacing.mapped_store,
    "random spacing": spacing.random_spacing,
    "product write": spacing.product_write,
    "issue distance": spacing.issue_distance,
    "overtaken predicate": spacing.overtaken_predicate,
    "jump delay": paths.jump_delay,
    "convert before delay": paths.convert_before_delay,
    "after jump": paths.after_jump,
    "loop body": paths.loop_body,
    "loop registers": paths.loop_registers,
    "iterator read": paths.iterator_read,
    "jump in loop": paths.jump_in_loop,
    "halt": paths.halt,
    "stores at end": paths.stores_at_end,
    "unwritten register": stale.unwritten_register,
    "unread result": unread.unread_result,
}
"""Name of each rule, as findings carry it, and what looks for breaches."""


def lint(program: TpcProgram, target: VliwTarget) -> tuple[LintFinding, ...]:
    """Return every breach of an issue rule, in the order of the text.

    Raises:
        IllegalError: an instruction or path that the machine refuses before it runs.
    """
    return breaches(Flow(program, target))


def breaches(flow: Flow) -> tuple[LintFinding, ...]:
    """Return every breach of an issue rule by a program that is prepared, in the order of the text."""
    found = dict.fromkeys(finding for rule in RULES.values() for finding in rule(flow))
    return tuple(sorted(found, key=lambda finding: (finding.bundle, list(RULES).index(finding.rule))))
