"""Instructions as the scheduler sees them: what each reads, writes and touches, in every slot that it may stand in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from castsim.isa.errors import CastsimError, IllegalError, Span
from castsim.isa.formats import FORMATS
from castsim.isa.tpc import Immediate, Predicate, Register, Slot, Special, TpcInstruction
from castsim.isa.tpc.forms import LOCAL, TENSORS, MemoryOperation
from castsim.isa.tpc.program import ENDS_OF_BLOCKS, File
from castsim.machines.vliw.lint_checking import keeps_income
from castsim.machines.vliw.plans import InstructionPlan, OperandPlan, prepared
from castsim.machines.vliw.registers import RegisterCell, Registers
from castsim.targets.vliw import VliwTarget
from castsim.tpc_compiler.scheduling.names import FIRST, Names, Unit, unit_of

_PARTLY = ("shuffle", "calc", "udiv")
"""First words of instructions of which operands decide what they write."""
_WHOLE_ENTRIES = (None, "bv32", "bv16")
"""Words of look-ups that fill all of a register; others fill a part of each lane."""


class WideRegisters(Registers):
    """All registers of a core, and the virtual ones."""

    def cells(self, register: Register | Special) -> tuple[RegisterCell, ...]:
        """Return the cells of a name: one, or those of a pair or quad."""
        if isinstance(register, Register) and register.index >= FIRST:
            unit = unit_of(register)
            assert unit is not None
            size = {File.D: 2, File.Z: 2, File.A: 4}.get(register.file, 1)
            return tuple(self._virtual(unit.file, register.index + k) for k in range(size))
        return super().cells(register)

    def _virtual(self, file: File, index: int) -> RegisterCell:
        name = f"{file}{index}"
        if name not in self._cells:
            self._cells[name] = RegisterCell(name, None, file=file)
        return self._cells[name]


@dataclass(eq=False, slots=True)
class Operation:
    """One instruction of the text, or a copy of it.

    `fresh` says that it need not keep what its destination held: instructions behind it write the rest before anything
    reads it.
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
        """Whether it decides what is executed next."""
        return self.mnemonic in ENDS_OF_BLOCKS


@dataclass(frozen=True, slots=True)
class Touched:
    """The registers that an instruction reads and writes, by cell name; `old` are those whose old value it keeps."""

    reads: frozenset[str]
    writes: frozenset[str]
    old: frozenset[str]


class Operations:
    """Looks up instructions of one target; `names` are the virtual registers of the text."""

    def __init__(self, target: VliwTarget, names: Names) -> None:
        self.target = target
        self.names = names
        self.maps = True
        """Whether the text stores to the configuration space, on which much else depends."""
        self._registers = WideRegisters(target)
        self._touched: dict[Operation, Touched] = {}
        self._stateful: dict[Operation, bool] = {}

    def plan(self, operation: Operation, slot: Slot) -> InstructionPlan:
        """Return an instruction, looked up for one slot.

        Raises:
            IllegalError: not in the generation's tables; a PC that moves.
        """
        found = operation.plans.get(slot)
        if found is None:
            try:
                found = prepared(operation.slots[slot], 0, slot, self._registers, self.target)
            except CastsimError as error:
                raise self.names.named(error.at(operation.span), self.target.dialect) from None
            if found.program_counter:
                message = "PC cannot be read in a text to be scheduled: bundles move"
                raise IllegalError(message, span=operation.span)
            operation.plans[slot] = found
        return found

    def first(self, operation: Operation) -> InstructionPlan:
        """Return an instruction, looked up for its first slot."""
        return self.plan(operation, next(iter(operation.slots)))

    def touched(self, operation: Operation) -> Touched:
        """Return what an instruction reads and writes."""
        found = self._touched.get(operation)
        if found is None:
            plan = self.first(operation)
            keeps = _keeps(operation.instruction) and not operation.fresh
            found = self._touched[operation] = Touched(
                frozenset(cell.name for operand in operands(plan) for cell in operand.cells),
                frozenset(cell.name for cell in plan.results),
                frozenset(cell.name for cell in plan.results) if keeps else frozenset(),
            )
        return found

    def has_state(self, operation: Operation) -> bool:
        """Whether more than registers keeps an instruction in its order: memory, generators, configuration."""
        found = self._stateful.get(operation)
        if found is None:
            plan = self.first(operation)
            found = plan.memory is not None or bool(drawn(plan)) or operation.ends_block
            if self.maps and not found:
                found = bool(plan.depends) or "f" in (operation.instruction.type or "")
            self._stateful[operation] = found
        return found

    def forget(self, operation: Operation) -> None:
        """Look an instruction up anew, after a change of what it keeps."""
        self._touched.pop(operation, None)

    @staticmethod
    def bits(name: str) -> int:
        """Return the bits of a format."""
        return FORMATS[name].bits

    def units(self, operation: Operation) -> dict[Unit, int]:
        """Return the virtual registers of an instruction, and how many registers of each it uses."""
        plan = self.first(operation)
        cells = [(cell, len(operand.cells)) for operand in operands(plan) for cell in operand.cells]
        cells += [(cell, len(plan.results)) for cell in plan.results]
        found: dict[Unit, int] = {}
        for cell, count in cells:
            unit = None if cell.file is None else unit_of(Register(cell.file, int(cell.name[len(cell.file) :])))
            if unit is not None:
                found[unit] = max(found.get(unit, 1), count)
        return found


def operands(plan: InstructionPlan) -> tuple[OperandPlan, ...]:
    """Return the operands of an instruction with its predicate, without the old value of its destination."""
    return (*plan.sources, *([plan.predicate] if plan.predicate else []))


def _keeps(instruction: TpcInstruction) -> bool:
    """Whether part of the destination may keep its old value, or the instruction reads it as an operand."""
    first = instruction.mnemonic.partition("_")[0]
    partly = first in _PARTLY or instruction.mnemonic == "mov_dg.pack"
    partly |= instruction.switch("entries") not in _WHOLE_ENTRIES
    return keeps_income(instruction) or partly or instruction.form.accumulator is not None


def drawn(plan: InstructionPlan) -> frozenset[str]:
    """Return the random generators that an instruction reads, steps or reseeds."""
    return frozenset(plan.generators | ({plan.reseeds} if plan.reseeds is not None else set()))


def mapped(plan: InstructionPlan) -> bool:
    """Whether an instruction accesses the configuration space."""
    return plan.memory in LOCAL and plan.instruction.switch("mmio") == 1


def renumbered(operation: Operation, renames: Mapping[Unit, Unit], results: Mapping[Unit, Unit]) -> Operation:
    """Return an instruction with other virtual registers: `renames` in its operands, `results` in its destination."""
    slots = {slot: _renumbered(each, renames, results) for slot, each in operation.slots.items()}
    return Operation(slots, operation.span, operation.fresh)


def _renumbered(
    instruction: TpcInstruction, renames: Mapping[Unit, Unit], results: Mapping[Unit, Unit]
) -> TpcInstruction:
    specs = zip(instruction.form.operands, instruction.operands, strict=True)
    changed = tuple(
        _other(operand, results if spec.role == "dest" else renames) if isinstance(operand, Register) else operand
        for spec, operand in specs
    )
    predicate = instruction.predicate
    if predicate is not None:
        predicate = Predicate(_other(predicate.register, renames), predicate.inverted)
    return replace(instruction, operands=changed, predicate=predicate)


def _other(register: Register, renames: Mapping[Unit, Unit]) -> Register:
    unit = unit_of(register)
    if unit is None or unit not in renames:
        return register
    return Register(register.file, renames[unit].base + register.index - unit.base)


def place_in_memory(plan: InstructionPlan) -> tuple[str, tuple[int, int] | None] | None:
    """Return the memory that an instruction accesses, and the bytes if the text says which; None for no access.

    Tensors with numbers in the text are memories of their own; all other accesses of global memory share one.
    """
    memory = plan.memory
    if memory is None or memory is MemoryOperation.ADDRESS or mapped(plan):
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
    known = isinstance(address, Immediate) and (other is None or isinstance(other, Immediate))
    if not known or not isinstance(address, Immediate):
        return ("slm" if scalar else "vlm"), None
    start = address.value + (other.value if isinstance(other, Immediate) else 0)
    return ("slm" if scalar else "vlm"), (start, start + size)
