"""Results that nothing reads: liveness of registers over all paths."""

from __future__ import annotations

from collections.abc import Iterator

from castsim.isa.formats import FORMATS
from castsim.isa.tpc import DimensionMask, TpcInstruction
from castsim.isa.tpc.forms import Family
from castsim.machines.vliw.lint.finding import LintFinding
from castsim.machines.vliw.lint.flow import Flow
from castsim.machines.vliw.plans import InstructionPlan

_KEEPING = ("pack", "unpack", "mov_dg", "mov_dg.all", "mov_dg.unpack", "mov_g")


def unread_result(flow: Flow) -> Iterator[LintFinding]:
    """A result of which no register is read before it is overwritten or the program ends: no fault, as code goes on."""
    live = _live_after(flow)
    for index, plans in enumerate(flow.plans):
        for plan in plans:
            names = [cell.name for cell in plan.results]
            if names and not plan.samples and not live[index].intersection(names):
                message = f"nothing reads what {plan.instruction.mnemonic} leaves in {', '.join(names)}"
                yield LintFinding("unread result", index, message, plan.site.span, certain=False)


def _live_after(flow: Flow) -> list[set[str]]:
    """Return, for each bundle, the registers that some path behind it reads."""
    after: list[set[str]] = [set() for _ in flow.bundles]
    reads = [_reads(plans) for plans in flow.plans]
    kills = [_kills(plans) for plans in flow.plans]
    waiting = list(range(len(flow.bundles)))
    while waiting:
        index = waiting.pop()
        before = (after[index] - kills[index]) | reads[index]
        for earlier in flow.predecessors[index]:
            if not before <= after[earlier]:
                after[earlier] |= before
                waiting.append(earlier)
    return after


def _reads(plans: tuple[InstructionPlan, ...]) -> set[str]:
    found = set()
    for plan in plans:
        operands = [*plan.sources, *([plan.predicate] if plan.predicate else [])]
        if plan.income is not None and keeps_income(plan.instruction):
            operands.append(plan.income)
        found |= {cell.name for operand in operands for cell in operand.cells}
    return found


def _kills(plans: tuple[InstructionPlan, ...]) -> set[str]:
    return {cell.name for plan in plans if not keeps_income(plan.instruction) for cell in plan.results}


def keeps_income(instruction: TpcInstruction) -> bool:
    """Whether part of the destination may keep its old value."""
    if instruction.predicate is not None or instruction.mnemonic in _KEEPING:
        return True
    if instruction.form.half is not None or instruction.switch("partial"):
        return True
    if instruction.operand("section") is not None:
        return True
    mask = instruction.operand("mask")
    if mask is not None:
        return not isinstance(mask, DimensionMask) or mask.bits != 0b11111
    if instruction.form.family is Family.CONVERSION and instruction.switch("lane_sel") is not None:
        return instruction.switch("num_lanes") != "all_lanes" and _narrows(instruction)
    return False


def _narrows(instruction: TpcInstruction) -> bool:
    """Whether a conversion writes narrower elements than it reads; the integer ones always do."""
    to = instruction.switch("target_type")
    if to is None or instruction.type is None:
        return True
    return FORMATS[str(to)].bits < FORMATS[instruction.type].bits
