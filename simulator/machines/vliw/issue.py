"""What a bundle means for time, found while it is issued: occupied slots, accesses of global memory, last effect."""

from __future__ import annotations

from castsim.execution.tree import Access, Block, Lowered
from castsim.isa.tpc import Bundle, Slot
from castsim.isa.tpc.forms import Family
from castsim.isa.tpc.program import Register
from castsim.machines.vliw.latency import operand_key
from castsim.machines.vliw.operations import BundleOperation
from castsim.machines.vliw.plans import InstructionPlan
from castsim.machines.vliw.structure import name_of
from castsim.targets.vliw import VliwTarget


class BundleRecorder:
    """Makes the tree node of each issued bundle; equal ones are one object."""

    def __init__(self, bundles: tuple[Bundle, ...], plans: tuple[tuple[InstructionPlan, ...], ...], target: VliwTarget):
        self._names = [tuple(map(name_of, bundle.slots)) for bundle in bundles]
        per_register = target.option("all_lanes_cycles") == "per_register"
        self._slot_cycles = [tuple(_cycles(plan, per_register=per_register) for plan in _slots(own)) for own in plans]
        self._effect = [max((_effect(plan, target) for plan in own), default=1) for own in plans]
        self._due = [max((plan.stage.number + 1 for plan in own if plan.accesses[0]), default=0) for own in plans]
        self._made: dict[tuple[object, ...], Lowered] = {}

    def node(self, index: int, loads: int, stores: int, bubbles: int, touched: tuple[Access, ...]) -> Lowered:
        """Return the node of one issue of a bundle."""
        key = (index, loads, stores, bubbles, touched)
        found = self._made.get(key)
        if found is None:
            operation = BundleOperation(
                slot_cycles=self._slot_cycles[index],  # type: ignore[arg-type]  # four slots
                names=self._names[index],  # type: ignore[arg-type]
                loads=loads,
                stores=stores,
                data_due=self._due[index] if loads else 0,
                effect=self._effect[index],
                bubbles=bubbles,
            )
            found = Lowered(index, Block((operation,)), touched)
            self._made[key] = found
        return found


def _slots(plans: tuple[InstructionPlan, ...]) -> tuple[InstructionPlan | None, ...]:
    by_slot = {plan.site.slot: plan for plan in plans}
    return tuple(by_slot.get(slot) for slot in Slot)


def _cycles(plan: InstructionPlan | None, *, per_register: bool) -> int:
    """Return how long an instruction occupies its slot; a conversion with several results may take longer."""
    if plan is None:
        return 0
    if per_register and plan.instruction.form.family is Family.CONVERSION:
        return max(1, len(plan.results))
    return 1


def _effect(plan: InstructionPlan, target: VliwTarget) -> int:
    """Return the cycles from issue until the result is visible to the earliest reader, or a store has its data."""
    if plan.results:
        return plan.stage.number + 1
    data = plan.instruction.operand("src_c")
    if plan.site.slot is Slot.STORE and isinstance(data, Register):
        port = target.latencies.port_stage(operand_key(target, Slot.STORE, plan.instruction, "src_c", str(data.file)))
        return 1 if port is None else port + 1
    return 1
