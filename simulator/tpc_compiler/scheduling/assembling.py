"""A schedule as a program: labels, bundles, real registers in place of virtual ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from castsim.isa.tpc import (
    Bundle,
    Declaration,
    Directive,
    LabelDefinition,
    Predicate,
    Register,
    RegisterDeclaration,
    Slot,
    TpcInstruction,
    TpcProgram,
)
from castsim.isa.tpc.forms import STORES
from castsim.isa.tpc.program import Item
from castsim.targets.vliw import VliwTarget
from castsim.tpc_compiler.scheduling.blocks import Shape
from castsim.tpc_compiler.scheduling.names import Unit, unit_of
from castsim.tpc_compiler.scheduling.operations import Operation
from castsim.tpc_compiler.scheduling.placing import Placed, bundles_of
from castsim.tpc_compiler.scheduling.source import SequentialProgram

Numbers = Mapping[Unit, int]
"""The first real register of every virtual one."""


def assembled(
    source: SequentialProgram, shape: Shape, schedule: Sequence[Placed], numbers: Numbers, target: VliwTarget
) -> TpcProgram:
    """Return the program of a schedule."""
    end = source.instructions[-1].span if source.instructions else None
    items: list[Item] = [Directive(text, span=end) if end else Directive(text) for text in source.directives]
    for block, placed in zip(shape.blocks, schedule, strict=True):
        spans = {label.name: label.span for label in source.labels}
        items += [LabelDefinition(name, span=spans[name]) for name in block.labels]
        items += [_bundle(row, numbers, target) for row in bundles_of(placed)]
    items += [_bundle([], numbers, target)] * _empty_at_end(items, target)
    return TpcProgram(tuple(_declared(each, numbers) for each in source.declarations), tuple(items))


def _bundle(row: Sequence[tuple[Operation, Slot]], numbers: Numbers, target: VliwTarget) -> Bundle:
    slots: dict[Slot, TpcInstruction] = {}
    for operation, slot in row:
        if operation.mnemonic == "halt":
            halts = target.end_rules.halt_slots
            slots |= {each: operation.slots[each] for each in Slot if each.name.lower() in halts}
        else:
            slots[slot] = with_real(operation.slots[slot], numbers)
    first = min((operation.span for operation, _ in row), key=lambda each: each.line, default=None)
    if first is None:
        return Bundle(written=len(Slot))
    return Bundle(*(slots.get(slot) for slot in Slot), written=len(Slot), span=first)


def with_real(instruction: TpcInstruction, numbers: Numbers) -> TpcInstruction:
    """Return an instruction with real registers."""
    operands = tuple(
        real(operand, numbers) if isinstance(operand, Register) else operand for operand in instruction.operands
    )
    predicate = instruction.predicate
    if predicate is not None:
        predicate = Predicate(real(predicate.register, numbers), predicate.inverted)
    return replace(instruction, operands=operands, predicate=predicate)


def real(register: Register, numbers: Numbers) -> Register:
    """Return the real register of a virtual one."""
    unit = unit_of(register)
    if unit is None:
        return register
    return Register(register.file, numbers[unit] + register.index - unit.base)


def _declared(declaration: Declaration, numbers: Numbers) -> Declaration:
    if isinstance(declaration, RegisterDeclaration):
        return replace(declaration, register=real(declaration.register, numbers))
    return declaration


def _empty_at_end(items: Sequence[Item], target: VliwTarget) -> int:
    """Return the empty bundles that are missing behind the last store; those behind HALT count."""
    bundles = [item for item in items if isinstance(item, Bundle)]
    empty = 0
    for bundle in reversed(bundles):
        held = [each for each in bundle.slots if each is not None]
        if any(each.form.memory in STORES for each in held):
            return max(0, target.end_rules.empty_after_store - empty)
        empty += not held
    return 0
