"""Rules between bundles: how far apart instructions must be issued."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from castsim.isa.tpc import Special
from castsim.isa.tpc.forms import TENSORS, Half, MemoryOperation
from castsim.machines.vliw.lint.finding import LintFinding
from castsim.machines.vliw.lint.flow import Flow
from castsim.machines.vliw.pairs import Placed, applies
from castsim.machines.vliw.plans import InstructionPlan, in_multiplier, rounds_by_register
from castsim.targets.vliw_spacing import BundleDistance, names

Wanted = Callable[[InstructionPlan], bool]


def tensor_store_spacing(flow: Flow) -> Iterator[LintFinding]:
    """A tensor access exactly so many bundles behind a tensor store."""
    distance = flow.target.issue_rules.forbidden_after_tensor_store
    if not distance:
        return
    for index, _ in _all(flow, _accesses(MemoryOperation.TENSOR_STORE)):
        for later in sorted(flow.after(index, distance)):
            for other in flow.plans[later]:
                if other.memory in TENSORS:
                    message = f"{other.instruction.mnemonic} is {distance} bundles after ST_TNSR of bundle {index}"
                    yield LintFinding("tensor store spacing", later, message, other.site.span)


def tensor_half_spacing(flow: Flow) -> Iterator[LintFinding]:
    """Loads of halves of tensors too close to each other, and a whole one too close behind a lower half."""
    needed = flow.target.issue_rules.tensor_half_distance
    low, high = _loads_half(Half.LOW), _loads_half(Half.HIGH)
    yield from _too_close(flow, "tensor half spacing", low, _loads_half(Half.HIGH, None), needed)
    yield from _too_close(flow, "tensor half spacing", high, low, needed)
    for half in (low, high):
        yield from _too_close(flow, "tensor half spacing", half, half, min(needed, 1))


def mapped_store(flow: Flow) -> Iterator[LintFinding]:
    """Something that depends on the configuration space too soon behind a store there."""
    rules = flow.target.issue_rules
    yield from _too_close(flow, "mapped store", _stores_mapped, _rounds_by_register, rules.mapped_store_to_rounding)
    yield from _too_close(flow, "mapped store", _stores_mapped, _depends_on_space, rules.mapped_store_to_access)


def random_spacing(flow: Flow) -> Iterator[LintFinding]:
    """Uses of the random generator too close to each other."""
    yield from _too_close(flow, "random spacing", _draws, _draws, flow.target.issue_rules.random_distance)


def product_write(flow: Flow) -> Iterator[LintFinding]:
    """A write of a register too soon behind the result of the multiplier pipe that goes there."""
    for index, plan in _all(flow, lambda plan: in_multiplier(plan.instruction, flow.target)):
        cells = {cell.name for cell in plan.results}
        for distance in range(1, flow.target.issue_rules.product_write_distance):
            for later in sorted(flow.after(index, distance)):
                for other in flow.plans[later]:
                    for cell in other.results:
                        if cell.name in cells:
                            first = f"{plan.instruction.mnemonic} of bundle {index}, which writes it too"
                            message = f"{cell.name} is written {distance} after {first}"
                            yield LintFinding("product write", later, message, other.site.span)


def issue_distance(flow: Flow) -> Iterator[LintFinding]:
    """Two instructions too close to each other by a rule that no other rule of the linter looks for."""
    rules = [rule for rule in flow.target.bundle_distances if not rule.linted]
    for index, plan in _all(flow, lambda plan: any(_begins(rule, plan) for rule in rules)):
        for rule in rules:
            for distance in range(1, max((rule.distance - 1, *rule.excluded)) + 1):
                if distance < rule.distance or distance in rule.excluded:
                    yield from _breaches(flow, rule, plan, index, distance)


def _begins(rule: BundleDistance, plan: InstructionPlan) -> bool:
    return names(rule.first, plan.site.slot.name.lower(), plan.instruction.mnemonic)


def _breaches(
    flow: Flow, rule: BundleDistance, plan: InstructionPlan, index: int, distance: int
) -> Iterator[LintFinding]:
    """Yield the instructions at a distance from one that a rule forbids."""
    first = Placed(plan.site.slot, plan.instruction)
    for later in sorted(flow.after(index, distance)):
        for other in flow.plans[later]:
            if applies(rule, flow.target, first, Placed(other.site.slot, other.instruction)):
                who = f"{other.instruction.mnemonic} is {distance} bundles after {plan.instruction.mnemonic}"
                message = f"{who} of bundle {index}: {rule.rule}"
                yield LintFinding("issue distance", later, message, other.site.span)


def overtaken_predicate(flow: Flow) -> Iterator[LintFinding]:
    """A write of a predicate that lands before an earlier load into it."""
    for index, plan in _all(flow, lambda plan: plan.into_predicate and plan.loads):
        cells = {cell.name for cell in plan.results}
        for distance in range(1, flow.target.distances.predicate_load_then_write):
            for later in sorted(flow.after(index, distance)):
                for other in flow.plans[later]:
                    for cell in other.results:
                        if cell.name in cells and not other.loads:
                            message = f"{cell.name} is written {distance} after the load of bundle {index}"
                            yield LintFinding("overtaken predicate", later, message, other.site.span)


def _too_close(flow: Flow, rule: str, first: Wanted, second: Wanted, needed: int) -> Iterator[LintFinding]:
    for index, plan in _all(flow, first):
        for distance in range(needed):
            for later in sorted(flow.after(index, distance)):
                for other in flow.plans[later]:
                    if second(other) and (distance or other.site.slot > plan.site.slot):
                        message = (
                            f"{other.instruction.mnemonic} is {distance} bundles after "
                            f"{plan.instruction.mnemonic} of bundle {index}; needed: {needed}"
                        )
                        yield LintFinding(rule, later, message, other.site.span)


def _all(flow: Flow, wanted: Wanted) -> Iterator[tuple[int, InstructionPlan]]:
    for index, plans in enumerate(flow.plans):
        yield from ((index, plan) for plan in plans if wanted(plan))


def _accesses(memory: MemoryOperation) -> Wanted:
    return lambda plan: plan.memory is memory


def _draws(plan: InstructionPlan) -> bool:
    """Whether an instruction advances the vector generator, as far as its text tells."""
    instruction = plan.instruction
    return (instruction.draws and plan.vector) or instruction.operand("src_a") == Special("LFSR")


def _loads_half(*halves: Half | None) -> Wanted:
    return lambda plan: plan.memory is MemoryOperation.TENSOR_LOAD and plan.instruction.form.half in halves


def _stores_mapped(plan: InstructionPlan) -> bool:
    return plan.memory is MemoryOperation.SCALAR_STORE and plan.instruction.switch("mmio") == 1


def _rounds_by_register(plan: InstructionPlan) -> bool:
    """Whether an instruction takes its rounding from a register: float arithmetic, conversions in mode CSR."""
    instruction = plan.instruction
    return rounds_by_register(instruction) or instruction.switch("rounding") == "csr"


def _depends_on_space(plan: InstructionPlan) -> bool:
    """Whether an instruction accesses the configuration space, tensors or a generator."""
    instruction = plan.instruction
    mapped = instruction.switch("mmio") == 1
    tensors = plan.memory in TENSORS or plan.memory is MemoryOperation.ADDRESS
    return mapped or tensors or plan.samples is not None or instruction.draws
