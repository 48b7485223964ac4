"""Instructions for the scheduler: their reads, writes and other effects, and the required distances between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from castsim.isa.dataclass import dataclass, field
from castsim.isa.errors import CastsimError, IllegalError, Span
from castsim.isa.formats import FORMATS
from castsim.isa.tpc.forms import LOCAL, STORES, TENSORS, Family, Half, MemoryOperation
from castsim.isa.tpc.program import (
    ENDS_OF_BLOCKS,
    JUMPS,
    DimensionMask,
    File,
    Immediate,
    Register,
    Slot,
    TpcInstruction,
)
from castsim.machines.vliw.latency_bound import SlottedInstruction as Site
from castsim.machines.vliw.latency_bound import applies
from castsim.machines.vliw.plans import InstructionPlan, in_multiplier, keeps_income, prepared
from castsim.machines.vliw.semantics.moves import NOTHING, prepare_rearrange
from castsim.machines.vliw.stage_latency import STORED, horizon
from castsim.machines.vliw.storage import ConfigurationSpace, RegisterCell, Registers
from castsim.targets.vliw import VliwTarget, names
from castsim.tools.tpc_compiler.virtual_registers import (
    FIRST,
    Names,
    VirtualRegister,
    unit_of,
    unit_of_cell,
    with_registers,
)

PARTS = {File.V: 512, File.I: 5, File.VP: 8}
"""Parts of a register that instructions may write separately: half bytes, dimensions, sections; others are whole."""
_PARTLY = ("shuffle", "calc", "udiv")
"""First words of instructions whose operands determine the written part."""
_WHOLE_ENTRIES = (None, "bv32", "bv16")
"""Words of look-ups that fill a whole register; others fill a part of each lane."""


class WideRegisters(Registers):
    """All registers of a core, and the virtual ones."""

    def _cell(self, file: File, index: int) -> RegisterCell:
        name = f"{file}{index}"
        if index >= FIRST and name not in self._cells:
            self._cells[name] = RegisterCell(name, None, file=file)
        return self._cells[name]


@dataclass(eq=False, slots=True)
class ScheduledOperation:
    """One instruction of the text, or a copy of it.

    `fresh` is whether it need not keep the value of its destination: later instructions write the rest before any
    read.
    """

    slots: Mapping[Slot, TpcInstruction]
    span: Span
    fresh: bool = False
    plans: dict[Slot, InstructionPlan] = field(default_factory=dict)

    @property
    def instruction(self) -> TpcInstruction:
        """The instruction, as in its first slot."""
        return next(iter(self.slots.values()))

    @property
    def mnemonic(self) -> str:
        """Its canonical name."""
        return self.instruction.mnemonic

    @property
    def ends_block(self) -> bool:
        """Whether it decides which instruction is executed next."""
        return self.mnemonic in ENDS_OF_BLOCKS


@dataclass(frozen=True, slots=True)
class Touched:
    """The registers that an instruction reads and writes, by cell name; `old` are those whose old value it keeps."""

    reads: frozenset[str]
    writes: frozenset[str]
    old: frozenset[str]


class OperationLookup:
    """Looks up instructions of one target; `names` are the virtual registers of the text."""

    def __init__(self, target: VliwTarget, names: Names) -> None:
        self.target = target
        self.names = names
        self.maps = True
        """Whether the text stores to the configuration space, on which many other instructions depend."""
        self._registers = WideRegisters(target)
        self._touched: dict[ScheduledOperation, Touched] = {}
        self._stateful: dict[ScheduledOperation, bool] = {}

    def plan(self, operation: ScheduledOperation, slot: Slot) -> InstructionPlan:
        """Return an instruction, looked up for one slot.

        Raises:
            IllegalError: the instruction is not in the generation's tables, or moves the PC.
        """
        prepared_plan = operation.plans.get(slot)
        if prepared_plan is None:
            try:
                prepared_plan = prepared(operation.slots[slot], 0, slot, self._registers, self.target)
            except CastsimError as error:
                raise self.names.named(error.at(operation.span), self.target.dialect) from None
            if prepared_plan.program_counter:
                message = "a text to be scheduled cannot read PC, because bundles move"
                raise IllegalError(message, span=operation.span)
            operation.plans[slot] = prepared_plan
        return prepared_plan

    def first(self, operation: ScheduledOperation) -> InstructionPlan:
        """Return an instruction, looked up for its first slot."""
        return self.plan(operation, next(iter(operation.slots)))

    def touched(self, operation: ScheduledOperation) -> Touched:
        """Return the reads and writes of an instruction."""
        cells = self._touched.get(operation)
        if cells is None:
            plan = self.first(operation)
            keeps = _keeps(operation.instruction) and not operation.fresh
            cells = Touched(plan.read, plan.written, plan.written if keeps else frozenset())
            self._touched[operation] = cells
        return cells

    def parts(self, operation: ScheduledOperation) -> int | None:
        """Return the parts of its destination that an instruction writes if its predicate is true, None if unknown.

        A bit is half a byte of a V register, a dimension of an I register, a section of a VP register.
        """
        instruction, nibbles = operation.instruction, PARTS[File.V]
        mask, section = instruction.operand("mask"), instruction.operand("section")
        if mask is not None:
            result = instruction.operand("dest")
            into_index = isinstance(result, Register) and result.file is File.I
            return mask.bits if into_index and isinstance(mask, DimensionMask) else None
        if isinstance(section, Immediate):
            return 1 << section.value
        if instruction.form.half is not None:
            lower = (1 << nibbles // 2) - 1
            return (
                None
                if instruction.switch("partial")
                else lower << (nibbles // 2 * (instruction.form.half is Half.HIGH))
            )
        if instruction.form.family is Family.LANE_MOVE:
            try:
                moved = prepare_rearrange(instruction, self.target).source_of != NOTHING
            except CastsimError:
                return None
            return int.from_bytes(np.packbits(np.repeat(moved, 2), bitorder="little").tobytes(), "little")
        casts, lane = self.first(operation).casts, instruction.switch("lane_sel")
        if instruction.form.family is not Family.CONVERSION or not isinstance(lane, int) or len(casts) != 1:
            return None
        wide, narrow = (FORMATS[name].bits for name in casts[0])
        if wide <= narrow or not keeps_income(instruction):
            return None
        element = (1 << narrow // 4) - 1 << narrow // 4 * (lane % (wide // narrow))
        return sum(element << start for start in range(0, nibbles, wide // 4))

    def has_state(self, operation: ScheduledOperation) -> bool:
        """Return whether anything besides registers fixes its order: memory, generators, configuration."""
        is_stateful = self._stateful.get(operation)
        if is_stateful is None:
            plan = self.first(operation)
            is_stateful = plan.memory is not None or bool(drawn(plan)) or operation.ends_block
            if self.maps and not is_stateful:
                is_stateful = bool(plan.depends) or "f" in (operation.instruction.type or "")
            self._stateful[operation] = is_stateful
        return is_stateful

    def forget(self, operation: ScheduledOperation) -> None:
        """Look an instruction up again, after a change of the parts it keeps."""
        self._touched.pop(operation, None)

    def units(self, operation: ScheduledOperation) -> dict[VirtualRegister, int]:
        """Return the virtual registers of an instruction, and how many registers of each it uses."""
        plan = self.first(operation)
        cells = [(cell, len(operand.cells)) for operand in plan.operands for cell in operand.cells]
        cells += [(cell, len(plan.results)) for cell in plan.results]
        sizes: dict[VirtualRegister, int] = {}
        for cell, count in cells:
            unit = unit_of_cell(cell.name)
            if unit is not None:
                sizes[unit] = max(sizes.get(unit, 1), count)
        return sizes


def _keeps(instruction: TpcInstruction) -> bool:
    """Return whether part of the destination may keep its old value, or the instruction reads it as an operand."""
    first = instruction.mnemonic.partition("_")[0]
    partly = first in _PARTLY or instruction.mnemonic == "mov_dg.pack"
    partly |= instruction.switch("entries") not in _WHOLE_ENTRIES
    return keeps_income(instruction) or partly or instruction.form.accumulator is not None


def drawn(plan: InstructionPlan) -> frozenset[str]:
    """Return the random generators that an instruction reads, advances or reseeds."""
    return frozenset(plan.generators | ({plan.reseeds} if plan.reseeds is not None else set()))


def renumbered(
    operation: ScheduledOperation,
    renames: Mapping[VirtualRegister, VirtualRegister],
    results: Mapping[VirtualRegister, VirtualRegister],
) -> ScheduledOperation:
    """Return an instruction with other virtual registers: `renames` in its operands, `results` in its destination."""
    read, written = ({old: new.base for old, new in mapping.items()} for mapping in (renames, results))
    slots = {slot: with_registers(instruction, read, written) for slot, instruction in operation.slots.items()}
    return ScheduledOperation(slots, operation.span, operation.fresh)


_COPIED = (None, "f32", "i32", "u32", "b")
"""Types of MOV that move all of a register."""


def _copied(operation: ScheduledOperation, operations: OperationLookup) -> tuple[Register, Register] | None:
    """Return destination and source of a copy between virtual registers, None for other instructions."""
    instruction = operation.instruction
    ends = instruction.operand("dest"), instruction.operand("src_a")
    if instruction.mnemonic != "mov" or instruction.predicate is not None or instruction.type not in _COPIED:
        return None
    result, source = (end if isinstance(end, Register) and unit_of(end) is not None else None for end in ends)
    if result is None or source is None or result.file is not source.file or operations.touched(operation).old:
        return None
    sizes = operations.names.sizes
    alone = result.file in _COPIED_FILES and all(sizes[unit] == 1 for unit in operations.units(operation))
    return (result, source) if alone else None


_COPIED_FILES = (File.V, File.S, File.VP, File.SP)


def reading_sources(
    operations_in_order: Sequence[ScheduledOperation], operations: OperationLookup
) -> list[ScheduledOperation]:
    """Return the instructions of a block such that none reads a copy while the original virtual register has the value.

    Copies without other readers are then dead instructions.
    """
    sources: dict[str, Register] = {}
    rewritten = []
    for operation in operations_in_order:
        touched = operations.touched(operation)
        copied = {unit_of_cell(name): unit_of(sources[name]) for name in touched.reads & sources.keys()}
        copies = {copy: source for copy, source in copied.items() if copy is not None and source is not None}
        if copies and not touched.old & sources.keys():
            operation = renumbered(operation, copies, {})  # noqa: PLW2901 - the same instruction, reading elsewhere
        gone = touched.writes
        sources = {
            name: original for name, original in sources.items() if name not in gone and str(original) not in gone
        }
        ends = _copied(operation, operations)
        if ends is not None and ends[0] != ends[1]:
            sources[str(ends[0])] = ends[1]
        rewritten.append(operation)
    return rewritten


def place_in_memory(plan: InstructionPlan) -> MemoryPlace | None:
    """Return the memory that an instruction accesses, and the bytes if the text states them; None for no access.

    Tensors with numbers in the text are separate memories; all other accesses of global memory share one.
    """
    memory = plan.memory
    if memory is None or memory is MemoryOperation.ADDRESS or plan.mapped:
        return None
    address = plan.instruction.operand("src_a")
    if memory in TENSORS:
        tensor = plan.instruction.operand("tensor")
        return (f"tensor {tensor.value}" if isinstance(tensor, Immediate) else "global", None)
    if memory not in LOCAL:
        return "global", None
    scalar = memory in (MemoryOperation.SCALAR_LOAD, MemoryOperation.SCALAR_STORE)
    size = 4 if scalar else 256
    other = plan.instruction.operand("src_b")
    is_constant = isinstance(address, Immediate) and (other is None or isinstance(other, Immediate))
    if not is_constant or not isinstance(address, Immediate):
        return ("slm" if scalar else "vlm"), None
    start = address.value + (other.value if isinstance(other, Immediate) else 0)
    return ("slm" if scalar else "vlm"), (start, start + size)


# How many bundles must lie between two instructions, given which is executed first.
#
# Registers: docs/reference/tpc.md section 6.1; rules of issue: section 6.2.


MemoryPlace = tuple[str, tuple[int, int] | None]
"""A memory, and the bytes of an access if the text states them."""


@dataclass(frozen=True, slots=True)
class _Order:
    """The constraints on an instruction's order: its generators, stores to the configuration space (`maps`), accessed
    memory, and whether rules for jumps, loops or HALT may apply to it.
    """

    plan: InstructionPlan
    drawn: frozenset[str]
    maps: bool
    place: MemoryPlace | None
    path: bool


class Distances:
    """Distances between the instructions of one text; None where two may be executed in either order.

    `in_memory` is whether accesses of the same bytes keep their order, `reuse` the number of bundles between a read of
    a register and its next write: a bundle reads before it writes.
    """

    def __init__(
        self,
        operations: OperationLookup,
        iterators: dict[ScheduledOperation, str],
        *,
        in_memory: bool = True,
        reuse: int = 0,
    ) -> None:
        self._operations = operations
        self._in_memory = in_memory
        self._reuse = reuse
        self._target = operations.target
        self._iterators = iterators
        self._space = ConfigurationSpace(self._target, horizon(self._target))
        self._rules = [
            rule
            for rule in self._target.bundle_distances
            if not rule.linted and rule.holds(self._target.dialect.features)
        ]
        self._after_store = self._target.issue_rules.forbidden_after_tensor_store
        self.most_barred = max(self._after_store or 0, *(max((rule.distance, *rule.excluded)) for rule in self._rules))
        """The largest distance that an issue rule excludes."""
        self._orders: dict[int, _Order] = {}
        """By the identities of plans."""
        self._begin: dict[ScheduledOperation, bool] = {}
        self._barred: dict[tuple[ScheduledOperation, Slot, ScheduledOperation, Slot], frozenset[int]] = {}
        self._found: dict[tuple[ScheduledOperation, Slot, ScheduledOperation, Slot], int | None] = {}

    @property
    def reach(self) -> int:
        """The distance from which on no instruction constrains another."""
        jumps, loops, issue = self._target.jump_rules, self._target.loop_rules, self._target.issue_rules
        return 1 + max(
            horizon(self._target), jumps.halt_distance, jumps.scalar_convert_after, jumps.scalar_convert_distance + 2,
            loops.iterator_before + 1, loops.iterator_before_access + 1, loops.register_distance, issue.random_distance,
            self.most_barred,
        )  # fmt: skip

    def needed(
        self, first: ScheduledOperation, slot: Slot, second: ScheduledOperation, second_slot: Slot
    ) -> int | None:
        """Return the smallest distance of an instruction after another one, None if none is required."""
        key = (first, slot, second, second_slot)
        if key not in self._found:
            first_plan, second_plan = self._operations.plan(first, slot), self._operations.plan(second, second_slot)
            before, behind = self._operations.touched(first), self._operations.touched(second)
            distances = self._registers(first_plan, before, second_plan, behind)
            if self._operations.has_state(first) or self._operations.has_state(second):
                order, later = self._order(first_plan), self._order(second_plan)
                if order.drawn & later.drawn or order.maps or later.maps:
                    distances += self._state(first_plan, second_plan)
                if order.place is not None and later.place is not None:
                    distances += self._memory(first_plan, second_plan, _meet(order.place, later.place))
                if order.path or later.path or first in self._iterators or second in self._iterators:
                    distances += self._path(first, first_plan, second, second_plan)
            self._found[key] = max(distances, default=None)
        return self._found[key]

    def _order(self, plan: InstructionPlan) -> _Order:
        """Return the constraints on an instruction's order besides registers; needed for every pair, computed once."""
        order = self._orders.get(id(plan))
        if order is None:
            path = plan.instruction.mnemonic in ENDS_OF_BLOCKS or _scalar_conversion(plan)
            order = _Order(plan, drawn(plan), plan.stores_mapped, place_in_memory(plan), path)
            self._orders[id(plan)] = order
        return order

    def begins(self, operation: ScheduledOperation) -> bool:
        """Return whether an instruction may exclude others from places after it."""
        excludes = self._begin.get(operation)
        if excludes is None:
            slots = [(slot.name.lower(), operation.mnemonic) for slot in operation.slots]
            excludes = any(names(rule.first, *site) for rule in self._rules for site in slots)
            store = self._operations.first(operation).memory is MemoryOperation.TENSOR_STORE
            excludes = self._begin[operation] = excludes or (store and bool(self._after_store))
        return excludes

    def barred(
        self, first: ScheduledOperation, slot: Slot, second: ScheduledOperation, second_slot: Slot
    ) -> frozenset[int]:
        """Return the distances at which an instruction must not be after another one, whatever their order."""
        if not self.begins(first):
            return frozenset()
        key = (first, slot, second, second_slot)
        distances = self._barred.get(key)
        if distances is None:
            store = self._operations.first(first).memory is MemoryOperation.TENSOR_STORE
            tensors = store and self._operations.first(second).memory in TENSORS
            wanted = {self._after_store} if tensors and self._after_store else set()
            first_site, second_site = Site(slot, first.slots[slot]), Site(second_slot, second.slots[second_slot])
            for rule in self._rules:
                if applies(rule, self._target, first_site, second_site):
                    wanted |= {*range(1, rule.distance), *rule.excluded}
            distances = self._barred[key] = frozenset(wanted)
        return distances

    # --------------------------------------------------------------------------------------------------- registers

    def _registers(
        self, first: InstructionPlan, before: Touched, second: InstructionPlan, behind: Touched
    ) -> list[int]:
        distances = []
        if before.writes & behind.reads:
            distances += [
                operand.needed(first)
                for operand in second.operands
                if any(cell.name in before.writes for cell in operand.cells)
            ]
        if before.writes & behind.old:
            assert second.income is not None
            distances.append(max(1, second.income.needed(first)))
        if before.writes & behind.writes:
            distances.append(1)
            if in_multiplier(first.instruction, self._target):
                distances.append(self._target.issue_rules.product_write_distance)
            if first.into_predicate and first.loads and not second.loads:
                distances.append(self._target.distances.predicate_load_then_write)
        if before.reads & behind.writes:
            distances.append(self._reuse)
        return distances

    # ------------------------------------------------------------------------------------------- state and memory

    def _state(self, first: InstructionPlan, second: InstructionPlan) -> list[int]:
        """Random generators, the configuration space, hardware registers."""
        distances = []
        shared = drawn(first) & drawn(second)
        if shared:
            distances += [1, second.random.distance_from(first.random.commit)]
            if "LFSR" in shared:
                distances.append(self._target.issue_rules.random_distance)
            if first.reseeds is not None:
                distances.append(self._target.distances.reseed)
        if first.stores_mapped and _depends_on_space(second):
            distances.append(self._behind_store(first, second))
        elif second.stores_mapped and _depends_on_space(first):
            distances.append(1)
        return distances

    def _behind_store(self, store: InstructionPlan, later: InstructionPlan) -> int:
        """Return the distance from a store to the configuration space to its dependent instructions."""
        rules = self._target.issue_rules
        address = store.instruction.operand("src_a")
        name = self._space.name_at(address.value) if isinstance(address, Immediate) else None
        visible = self._space.distances(name or "")[STORED]
        wanted = [1, rules.mapped_store_to_access, rules.mapped_store_to_rounding]
        if name is None or name in later.depends or later.mapped or later.memory is not None:
            wanted.append(visible)
        return max(wanted)

    def _memory(self, first: InstructionPlan, second: InstructionPlan, meet: bool) -> list[int]:
        """Return distances of accesses that may `meet` at the same bytes, and of halves of tensors."""
        distances = []
        loads = MemoryOperation.TENSOR_LOAD
        if (
            first.memory is loads
            and second.memory is loads
            and (first.instruction.form.half or second.instruction.form.half)
        ):
            distances.append(max(1, self._target.issue_rules.tensor_half_distance))
        if not self._in_memory or not meet:
            return distances
        if first.memory in STORES or second.memory in STORES or MemoryOperation.CACHE in (first.memory, second.memory):
            distances.append(1)
        return distances

    # -------------------------------------------------------------------------------------------------------- path

    def _path(
        self,
        first: ScheduledOperation,
        first_plan: InstructionPlan,
        second: ScheduledOperation,
        second_plan: InstructionPlan,
    ) -> list[int]:
        """Rules of jumps, loops and HALT."""
        jumps, loops = self._target.jump_rules, self._target.loop_rules
        distances = []
        if second.mnemonic == "halt" or first.mnemonic == "halt":
            distances.append(1)
        if first.mnemonic in JUMPS:
            if second.mnemonic == "halt":
                distances.append(jumps.halt_distance)
            if _scalar_conversion(second_plan):
                distances.append(jumps.scalar_convert_after)
        if _scalar_conversion(first_plan) and (second.mnemonic in JUMPS or second.mnemonic == "loop"):
            delay = jumps.delay_bundles if second.mnemonic in JUMPS else loops.delay_bundles
            distances.append(max(0, jumps.scalar_convert_distance + 1 - delay))
        iterator = self._iterators.get(second)
        if iterator is not None:
            if iterator in self._operations.touched(first).reads:
                distances.append(1 + max(loops.iterator_before, loops.iterator_before_access))
            if iterator in self._operations.touched(first).writes:
                distances.append(1)
        iterator = self._iterators.get(first)
        touched = self._operations.touched(second)
        if iterator is not None and iterator in touched.reads | touched.writes:
            distances.append(1)
        return distances


def _scalar_conversion(plan: InstructionPlan) -> bool:
    return plan.site.slot is Slot.SPU and plan.instruction.form.family is Family.CONVERSION


def _depends_on_space(plan: InstructionPlan) -> bool:
    """Return whether the configuration space may have to do with an instruction."""
    tensors = plan.memory in TENSORS or plan.memory is MemoryOperation.ADDRESS
    state = bool(plan.depends or drawn(plan)) or plan.random.commit.key is not None
    return plan.mapped or tensors or state


def _meet(first: MemoryPlace, second: MemoryPlace) -> bool:
    """Return whether two accesses may touch the same bytes."""
    spaces = {first[0], second[0]}
    if len(spaces) > 1:
        return "global" in spaces and spaces.isdisjoint({"slm", "vlm"})
    if first[1] is None or second[1] is None:
        return True
    return first[1][0] < second[1][1] and second[1][0] < first[1][1]
