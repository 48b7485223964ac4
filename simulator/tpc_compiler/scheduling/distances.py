"""How many bundles must lie between two instructions, given which is executed first.

Registers: docs/reference/tpc.md section 6.1; rules of issue: section 6.2.
"""

from __future__ import annotations

from castsim.isa.tpc import Immediate, Special
from castsim.isa.tpc.forms import STORES, TENSORS, Family, MemoryOperation
from castsim.isa.tpc.program import JUMPS, Slot
from castsim.machines.vliw.latency_bound import Placed as Site
from castsim.machines.vliw.latency_bound import applies
from castsim.machines.vliw.memories import ConfigurationSpace
from castsim.machines.vliw.plans import InstructionPlan, in_multiplier
from castsim.machines.vliw.stage_latency import STORED, horizon
from castsim.targets.vliw import names
from castsim.tpc_compiler.scheduling.operations import (
    Operation,
    Operations,
    Touched,
    drawn,
    mapped,
    operands,
    place_in_memory,
)

_FLOATS = ("f32", "bf16", "f16", "f8_143", "f8_152")
_SUMS = ("add", "sub", "mul")


class Distances:
    """Distances between the instructions of one text; None where two may be executed in either order."""

    def __init__(self, operations: Operations, iterators: dict[Operation, str]) -> None:
        self._operations = operations
        self._target = operations.target
        self._iterators = iterators
        self._space = ConfigurationSpace(self._target, horizon(self._target))
        self._rules = [
            rule
            for rule in self._target.bundle_distances
            if not rule.linted and rule.holds(self._target.dialect.features)
        ]
        self._after_store = self._target.issue_rules.forbidden_after_tensor_store
        self._begin: dict[Operation, bool] = {}
        self._barred: dict[tuple[Operation, Slot, Operation, Slot], frozenset[int]] = {}
        self._found: dict[tuple[Operation, Slot, Operation, Slot], int | None] = {}

    @property
    def reach(self) -> int:
        """A distance at which no instruction concerns another."""
        jumps, loops, issue = self._target.jump_rules, self._target.loop_rules, self._target.issue_rules
        return 1 + max(
            horizon(self._target), jumps.halt_distance, jumps.scalar_convert_after, jumps.scalar_convert_distance + 2,
            loops.iterator_before + 1, loops.iterator_before_access + 1, loops.register_distance, issue.random_distance,
            issue.forbidden_after_tensor_store, *(max((rule.distance, *rule.excluded)) for rule in self._rules),
        )  # fmt: skip

    def needed(self, first: Operation, slot: Slot, second: Operation, second_slot: Slot) -> int | None:
        """Return the smallest distance of an instruction behind another one, None if none is needed."""
        key = (first, slot, second, second_slot)
        if key not in self._found:
            one, two = self._operations.plan(first, slot), self._operations.plan(second, second_slot)
            before, behind = self._operations.touched(first), self._operations.touched(second)
            found = [
                *self._registers(one, before, two, behind),
                *self._state(one, two),
                *self._memory(one, two),
                *self._path(first, one, second, two),
            ]
            self._found[key] = max(found, default=None)
        return self._found[key]

    def begins(self, operation: Operation) -> bool:
        """Whether an instruction may bar others from places behind it."""
        found = self._begin.get(operation)
        if found is None:
            slots = [(slot.name.lower(), operation.mnemonic) for slot in operation.slots]
            found = any(names(rule.first, *each) for rule in self._rules for each in slots)
            store = self._operations.first(operation).memory is MemoryOperation.TENSOR_STORE
            found = self._begin[operation] = found or (store and bool(self._after_store))
        return found

    def barred(self, first: Operation, slot: Slot, second: Operation, second_slot: Slot) -> frozenset[int]:
        """Return the distances at which an instruction may not stand behind another one, in whatever order they are."""
        if not self.begins(first):
            return frozenset()
        key = (first, slot, second, second_slot)
        found = self._barred.get(key)
        if found is None:
            store = self._operations.first(first).memory is MemoryOperation.TENSOR_STORE
            tensors = store and self._operations.first(second).memory in TENSORS
            wanted = {self._after_store} if tensors and self._after_store else set()
            one, two = Site(slot, first.slots[slot]), Site(second_slot, second.slots[second_slot])
            for rule in self._rules:
                if applies(rule, self._target, one, two):
                    wanted |= {*range(1, rule.distance), *rule.excluded}
            found = self._barred[key] = frozenset(wanted)
        return found

    # --------------------------------------------------------------------------------------------------- registers

    def _registers(self, one: InstructionPlan, before: Touched, two: InstructionPlan, behind: Touched) -> list[int]:
        found = []
        if before.writes & behind.reads:
            found += [
                operand.needed(one)
                for operand in operands(two)
                if any(cell.name in before.writes for cell in operand.cells)
            ]
        if before.writes & behind.old:
            assert two.income is not None
            found.append(max(1, two.income.needed(one)))
        if before.writes & behind.writes:
            found.append(1)
            if in_multiplier(one.instruction, self._target):
                found.append(self._target.issue_rules.product_write_distance)
            if one.into_predicate and one.loads and not two.loads:
                found.append(self._target.distances.predicate_load_then_write)
        if before.reads & behind.writes:
            found.append(0)  # a bundle reads before it writes: what a register held goes to who reads it beside
        return found

    # ------------------------------------------------------------------------------------------- state and memory

    def _state(self, one: InstructionPlan, two: InstructionPlan) -> list[int]:
        """Random generators, the configuration space, hardware registers."""
        found = []
        shared = drawn(one) & drawn(two)
        if shared:
            found += [1, two.random.distance_from(one.random.commit)]
            if "LFSR" in shared:
                found.append(self._target.issue_rules.random_distance)
            if one.reseeds is not None:
                found.append(self._target.distances.reseed)
        stores = mapped(one) and one.memory is MemoryOperation.SCALAR_STORE
        later_store = mapped(two) and two.memory is MemoryOperation.SCALAR_STORE
        if stores and _depends_on_space(two):
            found.append(self._behind_store(one, two))
        elif later_store and _depends_on_space(one):
            found.append(1)
        return found

    def _behind_store(self, store: InstructionPlan, later: InstructionPlan) -> int:
        """Return how far behind a store to the configuration space stands what depends on it."""
        rules = self._target.issue_rules
        address = store.instruction.operand("src_a")
        name = self._space.name_at(address.value) if isinstance(address, Immediate) else None
        visible = self._space.distances(name or "")[STORED]
        wanted = [1, rules.mapped_store_to_access, rules.mapped_store_to_rounding]
        if name is None or name in later.depends or mapped(later) or later.memory is not None:
            wanted.append(visible)
        return max(wanted)

    def _memory(self, one: InstructionPlan, two: InstructionPlan) -> list[int]:
        """Return distances of accesses to the same bytes, and of halves of tensors."""
        found = []
        loads = MemoryOperation.TENSOR_LOAD
        if one.memory is loads and two.memory is loads and (one.instruction.form.half or two.instruction.form.half):
            found.append(max(1, self._target.issue_rules.tensor_half_distance))
        first, second = place_in_memory(one), place_in_memory(two)
        if first is None or second is None or not _meet(first, second):
            return found
        if one.memory in STORES or two.memory in STORES or MemoryOperation.CACHE in (one.memory, two.memory):
            found.append(1)
        return found

    # -------------------------------------------------------------------------------------------------------- path

    def _path(self, first: Operation, one: InstructionPlan, second: Operation, two: InstructionPlan) -> list[int]:
        """Rules of jumps, loops and HALT."""
        jumps, loops = self._target.jump_rules, self._target.loop_rules
        found = []
        if second.mnemonic == "halt" or first.mnemonic == "halt":
            found.append(1)
        if first.mnemonic in JUMPS:
            if second.mnemonic == "halt":
                found.append(jumps.halt_distance)
            if _scalar_conversion(two):
                found.append(jumps.scalar_convert_after)
        if _scalar_conversion(one) and (second.mnemonic in JUMPS or second.mnemonic == "loop"):
            delay = jumps.delay_bundles if second.mnemonic in JUMPS else loops.delay_bundles
            found.append(max(0, jumps.scalar_convert_distance + 1 - delay))
        iterator = self._iterators.get(second)
        if iterator is not None:
            if iterator in self._operations.touched(first).reads:
                found.append(1 + max(loops.iterator_before, loops.iterator_before_access))
            if iterator in self._operations.touched(first).writes:
                found.append(1)
        iterator = self._iterators.get(first)
        touched = self._operations.touched(second)
        if iterator is not None and iterator in touched.reads | touched.writes:
            found.append(1)
        return found


def _scalar_conversion(plan: InstructionPlan) -> bool:
    return plan.site.slot is Slot.SPU and plan.instruction.form.family is Family.CONVERSION


def _depends_on_space(plan: InstructionPlan) -> bool:
    """Whether the configuration space may have to do with an instruction."""
    instruction = plan.instruction
    floats = instruction.mnemonic in _SUMS and instruction.type in _FLOATS
    draws = bool(drawn(plan)) or Special("LFSR") in instruction.operands
    tensors = plan.memory in TENSORS or plan.memory is MemoryOperation.ADDRESS
    return mapped(plan) or bool(plan.depends) or floats or draws or tensors or plan.random.commit.key is not None


def _meet(first: tuple[str, tuple[int, int] | None], second: tuple[str, tuple[int, int] | None]) -> bool:
    """Whether two accesses may touch the same bytes."""
    spaces = {first[0], second[0]}
    if len(spaces) > 1:
        return "global" in spaces and spaces.isdisjoint({"slm", "vlm"})
    if first[1] is None or second[1] is None:
        return True
    return first[1][0] < second[1][1] and second[1][0] < first[1][1]
