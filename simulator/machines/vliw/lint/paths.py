"""Rules of jumps, hardware loops and the end of the program."""

from __future__ import annotations

from collections.abc import Iterator

from castsim.isa.tpc import Register, Slot
from castsim.isa.tpc.forms import LOCAL_VECTORS, STORES, Family
from castsim.machines.vliw.lint.finding import LintFinding
from castsim.machines.vliw.lint.flow import Flow
from castsim.machines.vliw.plans import InstructionPlan
from castsim.machines.vliw.structure import LoopShape

_BOUNDS = ("start", "bound", "step")


def jump_delay(flow: Flow) -> Iterator[LintFinding]:
    """Something in a delay bundle of a jump, outside the slots that may be used there."""
    rules = flow.target.jump_rules
    for index, jump in flow.jumps:
        for delay in range(index + 1, index + 1 + rules.delay_bundles):
            if delay >= len(flow.bundles):
                yield LintFinding("jump delay", index, f"no delay bundle follows {jump.mnemonic}", jump.span)
                continue
            for plan in flow.plans[delay]:
                if plan.site.slot.name.lower() not in rules.delay_slots:
                    message = f"{plan.instruction.mnemonic} in the delay bundle of {jump.mnemonic}, which may only use"
                    yield LintFinding("jump delay", delay, f"{message} {', '.join(rules.delay_slots)}", plan.site.span)


def convert_before_delay(flow: Flow) -> Iterator[LintFinding]:
    """A scalar conversion shortly before the delay bundle of a jump or loop, or in it."""
    reach = flow.target.jump_rules.scalar_convert_distance
    ends = [index + flow.target.jump_rules.delay_bundles for index, _ in flow.jumps]
    ends += [loop.start - 1 for loop in flow.loops]
    for delay in ends:
        if delay >= len(flow.bundles):
            continue
        for distance in range(reach + 1):
            for index in sorted(flow.before(delay, distance)):
                plan = flow.at(index, Slot.SPU)
                if plan is not None and plan.instruction.form.family is Family.CONVERSION:
                    message = f"{plan.instruction.mnemonic} of the SPU is {distance} before delay bundle {delay}"
                    yield LintFinding("convert before delay", index, message, plan.site.span)


def after_jump(flow: Flow) -> Iterator[LintFinding]:
    """A scalar conversion or HALT too soon behind a jump, whether or not it is taken."""
    rules = flow.target.jump_rules
    for index, jump in flow.jumps:
        for distance in range(1, max(rules.scalar_convert_after, rules.halt_distance)):
            for later in sorted(flow.after(index, distance)):
                plan = flow.at(later, Slot.SPU)
                if plan is None:
                    continue
                mnemonic = plan.instruction.mnemonic
                needed = rules.halt_distance if mnemonic == "halt" else 0
                needed = rules.scalar_convert_after if plan.instruction.form.family is Family.CONVERSION else needed
                if distance < needed:
                    message = f"{mnemonic} is {distance} after {jump.mnemonic} of bundle {index}; needed: {needed}"
                    yield LintFinding("after jump", later, message, plan.site.span)


def loop_body(flow: Flow) -> Iterator[LintFinding]:
    """A loop body that is too short."""
    least = flow.target.loop_rules.body_bundles
    for loop in flow.loops:
        if loop.end - loop.start < least:
            message = f"the body of the loop has {loop.end - loop.start} bundles; needed: {least}"
            yield LintFinding("loop body", loop.head, message, flow.loop_head(loop).site.span)


def loop_registers(flow: Flow) -> Iterator[LintFinding]:
    """Start, bound or step of a loop written too shortly before it."""
    needed = flow.target.loop_rules.register_distance
    for loop in flow.loops:
        head = flow.loop_head(loop)
        read = {str(head.instruction.operand(r)) for r in _BOUNDS if isinstance(head.instruction.operand(r), Register)}
        for distance in range(1, needed):
            for index in sorted(flow.before(loop.head, distance)):
                for plan in flow.plans[index]:
                    for cell in plan.results:
                        if cell.name in read:
                            message = f"{cell.name} is written {distance} bundles before LOOP; needed: {needed}"
                            yield LintFinding("loop registers", index, message, plan.site.span)


def iterator_read(flow: Flow) -> Iterator[LintFinding]:
    """A loop's iterator read shortly before the loop, or by the VPU at the end of its body."""
    rules = flow.target.loop_rules
    for loop in flow.loops:
        name = str(flow.structure.iterator(loop.depth))
        for distance in range(1, max(rules.iterator_before, rules.iterator_before_access) + 1):
            for index in sorted(flow.before(loop.head, distance)):
                for plan in flow.plans[index]:
                    most = rules.iterator_before if plan.site.slot is Slot.VPU else rules.iterator_before_access
                    if distance <= most and _uses(plan, name):
                        message = (
                            f"{plan.instruction.mnemonic} reads the iterator {name} in the {most} bundles before LOOP"
                        )
                        yield LintFinding("iterator read", index, message, plan.site.span)
        for index in range(max(loop.start, loop.end - rules.iterator_at_end), loop.end):
            vector = flow.at(index, Slot.VPU)
            if vector is not None and _uses(vector, name):
                where = f"in the last {rules.iterator_at_end} bundles of the body"
                message = f"{vector.instruction.mnemonic} reads the iterator {name} {where}"
                yield LintFinding("iterator read", index, message, vector.site.span)


def _uses(plan: InstructionPlan, iterator: str) -> bool:
    """Whether an instruction of the VPU, an access of vector memory or a MOV of the LOAD slot reads a register."""
    slot, moves = plan.site.slot, plan.instruction.mnemonic == "mov"
    concerned = slot is Slot.VPU or plan.memory in LOCAL_VECTORS or (slot is Slot.LOAD and moves)
    return concerned and any(cell.name == iterator for source in plan.sources for cell in source.cells)


def jump_in_loop(flow: Flow) -> Iterator[LintFinding]:
    """A jump, or where it goes, too near the end of a loop body."""
    rules = flow.target.loop_rules
    for index, jump in flow.jumps:
        loop = _innermost(flow, index)
        if loop is None:
            continue
        if loop.end - index < rules.jump_before_end:
            message = f"{jump.mnemonic} is {loop.end - index} before the end of the loop body; needed: "
            yield LintFinding("jump in loop", index, f"{message}{rules.jump_before_end}", jump.span)
        goal = flow.structure.static_target(index, jump)
        if goal is not None and loop.end - goal < rules.target_before_end:
            message = f"{jump.mnemonic} goes to {loop.end - goal} before the end of the loop body; needed: "
            yield LintFinding("jump in loop", index, f"{message}{rules.target_before_end}", jump.span)


def halt(flow: Flow) -> Iterator[LintFinding]:
    """No HALT, or one that does not stand in all slots that it needs."""
    wanted = flow.target.end_rules.halt_slots
    found = [index for index in range(len(flow.bundles)) if flow.halts(index)]
    if not found:
        last = len(flow.bundles) - 1
        if last >= 0:
            yield LintFinding("halt", last, "the program has no HALT", flow.bundles[last].span)
    for index in found:
        slots = [_slot(plan) for plan in flow.plans[index] if plan.instruction.mnemonic == "halt"]
        if set(slots) != set(wanted):
            message = f"HALT is in {', '.join(slots)}; it needs {', '.join(wanted)} of one bundle"
            yield LintFinding("halt", index, message, flow.bundles[index].span)


def stores_at_end(flow: Flow) -> Iterator[LintFinding]:
    """Too few empty bundles behind the last store; those behind HALT count."""
    needed = flow.target.end_rules.empty_after_store
    stores = [(index, plan) for index, plans in enumerate(flow.plans) for plan in plans if plan.memory in STORES]
    if not stores:
        return
    index, plan = stores[-1]
    empty = sum(not plans for plans in flow.plans[index + 1 :])
    if empty < needed:
        message = f"{empty} empty bundles follow the last store; needed: {needed}"
        yield LintFinding("stores at end", index, message, plan.site.span)


def _innermost(flow: Flow, index: int) -> LoopShape | None:
    inside = [loop for loop in flow.loops if loop.holds(index)]
    return max(inside, key=lambda loop: loop.depth, default=None)


def _slot(plan: InstructionPlan) -> str:
    return plan.site.slot.name.lower()
