"""Register numbers for the values of a sequence: those that have been free for longest first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from castsim.isa.errors import IllegalError
from castsim.isa.tpc.program import GROUPED, File
from castsim.targets.vliw import VliwTarget
from castsim.tpc_compiler.code_generation.sequence import EmittedInstruction, Operand, Value

_CONSTANT = 1
"""SP0 and VP0 are constantly true."""


def free_registers(target: VliwTarget) -> dict[File, list[int]]:
    """Return the registers that a sequence may use: no constants, iterators, or registers that tensor accesses read."""
    sizes = target.registers
    implicit = (target.dialect.tensor_registers.get(role, "") for role in target.dialect.tensor_registers)
    taken = {int(name[1:]) for name in implicit if name[:1] == File.S and name[1:].isdecimal()}
    return {
        File.V: list(range(sizes.V)),
        File.S: [index for index in range(sizes.S - sizes.loop_iterators) if index not in taken],
        File.I: list(range(sizes.I)),
        File.VP: list(range(_CONSTANT, sizes.VP)),
        File.SP: list(range(_CONSTANT, sizes.SP)),
    }


def allocate(steps: Sequence[EmittedInstruction], kept: Sequence[Value], target: VliwTarget) -> dict[int, int]:
    """Return the first register of each value, by its number.

    A value lives from its first to its last mention; those `kept` live throughout.

    Raises:
        IllegalError: more registers of a file are needed at once than there are.
    """
    free = free_registers(target)
    found = {value.number: _take(free[_file(value)], value) for value in kept}
    last = {value.number: place for place, step in enumerate(steps) for value in step.values}
    for place, step in enumerate(steps):
        for value in step.values:
            if value.number not in found:
                found[value.number] = _take(free[_file(value)], value)
        # Only now, so that a result never lands where an operand of its own instruction is.
        for value in {value.number: value for value in step.values}.values():
            if last[value.number] == place and all(value.number != other.number for other in kept):
                free[_file(value)] += range(found[value.number], found[value.number] + value.size)
    return found


def _file(value: Value) -> File:
    return GROUPED.get(value.file, (value.file, 1))[0]


def _take(free: list[int], value: Value) -> int:
    """Take aligned registers; the oldest ones, so that few instructions have to wait for earlier readers."""
    for index in free:
        group = range(index, index + value.size)
        if index % value.size == 0 and all(one in free for one in group):
            for one in group:
                free.remove(one)
            return index
    raise IllegalError(f"the sequence needs more {_file(value)} registers at once than there are")


def spelled(operand: Operand, numbers: Mapping[int, int]) -> str:
    """Return an operand as assembly."""
    if isinstance(operand, int):
        return f"{operand & 0xFFFFFFFF:#x}"
    return f"{operand.file}{numbers[operand.number] + (operand.part or 0)}"


def text_of(step: EmittedInstruction, numbers: Mapping[int, int]) -> str:
    """Return an instruction as assembly."""
    operands = [spelled(operand, numbers) for operand in step.operands]
    if step.where is not None:
        operands.append(f"{'!' if step.inverted else ''}{spelled(step.where, numbers)}")
    return f"{step.head} {', '.join(operands)}"
