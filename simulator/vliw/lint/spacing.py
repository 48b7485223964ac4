"""Rules between bundles: how far apart instructions must be issued."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from isa.tpc import Special
from simulator.vliw.lint.finding import Finding
from simulator.vliw.lint.flow import Flow
from simulator.vliw.plans import InstructionPlan

Wanted = Callable[[InstructionPlan], bool]


def tensor_store_spacing(flow: Flow) -> Iterator[Finding]:
    """A tensor access exactly so many bundles behind a tensor store."""
    distance = flow.target.issue_rules.forbidden_after_tensor_store
    if not distance:
        return
    for index, _ in _all(flow, _named("st_tnsr")):
        for later in sorted(flow.after(index, distance)):
            for other in flow.plans[later]:
                if _named("ld_tnsr", "st_tnsr")(other):
                    message = f"{other.instruction.mnemonic} stands {distance} bundles behind ST_TNSR of bundle {index}"
                    yield Finding("tensor store spacing", later, message, other.site.span)


def tensor_half_spacing(flow: Flow) -> Iterator[Finding]:
    """Half loads of tensors too close to each other."""
    halves = _named("ld_tnsr_low", "ld_tnsr_high")
    yield from _too_close(flow, "tensor half spacing", halves, flow.target.issue_rules.tensor_half_distance)


def random_spacing(flow: Flow) -> Iterator[Finding]:
    """Uses of the random generator too close to each other."""
    yield from _too_close(flow, "random spacing", _draws, flow.target.issue_rules.random_distance)


def product_write(flow: Flow) -> Iterator[Finding]:
    """A write of a register too soon behind the float product that goes there."""
    for index, plan in _all(flow, _is_float_product):
        cells = {cell.name for cell in plan.results}
        for distance in range(1, flow.target.issue_rules.product_write_distance):
            for later in sorted(flow.after(index, distance)):
                for other in flow.plans[later]:
                    for cell in other.results:
                        if cell.name in cells:
                            message = f"{cell.name} is written {distance} behind the float product of bundle {index}"
                            yield Finding("product write", later, message, other.site.span)


def overtaken_predicate(flow: Flow) -> Iterator[Finding]:
    """A write of a predicate that lands before an earlier load into it."""
    for index, plan in _all(flow, lambda plan: plan.into_predicate and _named("ld_")(plan)):
        cells = {cell.name for cell in plan.results}
        for distance in range(1, flow.target.distances.predicate_load_then_write):
            for later in sorted(flow.after(index, distance)):
                for other in flow.plans[later]:
                    for cell in other.results:
                        if cell.name in cells and not _named("ld_")(other):
                            message = f"{cell.name} is written {distance} behind the load of bundle {index}"
                            yield Finding("overtaken predicate", later, message, other.site.span)


def _too_close(flow: Flow, rule: str, wanted: Wanted, needed: int) -> Iterator[Finding]:
    for index, plan in _all(flow, wanted):
        for distance in range(needed):
            for later in sorted(flow.after(index, distance)):
                for other in flow.plans[later]:
                    if wanted(other) and (distance or other.site.slot > plan.site.slot):
                        message = (
                            f"{other.instruction.mnemonic} stands {distance} bundles behind "
                            f"{plan.instruction.mnemonic} of bundle {index}; needed: {needed}"
                        )
                        yield Finding(rule, later, message, other.site.span)


def _all(flow: Flow, wanted: Wanted) -> Iterator[tuple[int, InstructionPlan]]:
    for index, plans in enumerate(flow.plans):
        yield from ((index, plan) for plan in plans if wanted(plan))


def _named(*prefixes: str) -> Wanted:
    return lambda plan: plan.instruction.mnemonic.startswith(prefixes)


def _draws(plan: InstructionPlan) -> bool:
    """Whether an instruction advances the vector generator, as far as its text tells."""
    instruction = plan.instruction
    by_rounding = str(instruction.switch("rounding")).startswith("sr") and plan.vector
    return by_rounding or instruction.operand("src_a") == Special("LFSR")


def _is_float_product(plan: InstructionPlan) -> bool:
    instruction = plan.instruction
    return instruction.mnemonic == "mul" and instruction.type is not None and "f" in instruction.type
