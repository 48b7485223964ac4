"""Which registers an operand stands for: one, or a group that begins with the one named."""

from __future__ import annotations

from collections.abc import Mapping

from castsim.isa.errors import IllegalError
from castsim.isa.tpc.program import GROUPED, File, Register, TpcInstruction
from castsim.targets.vliw import VliwTarget


def group_of(instruction: TpcInstruction, role: str, count: int, target: VliwTarget) -> tuple[Register, ...]:
    """Return the registers of an operand that must name `count` of them.

    A pair or quad is named by D, A or Z, or by the first of its single registers; a single one that does not begin a
    group is refused or rounded down (option unaligned_group).

    Raises:
        IllegalError: the operand names another number of registers, or one within a group.
    """
    operand = instruction.operand(role)
    assert isinstance(operand, Register)
    file, size = GROUPED.get(operand.file, (operand.file, 1))
    if size not in (1, count):
        legal = _names(file, count)
        message = f"{instruction.mnemonic}: {role} {operand} names {size} registers, needed: {count}"
        raise IllegalError(message, span=instruction.span, legal=legal)
    first = operand.index - operand.index % count
    last = first + count - 1
    if first != operand.index and target.option("unaligned_group") == "refuse":
        message = f"{instruction.mnemonic}: {role} {operand} does not begin a group of {count} registers"
        raise IllegalError(message, span=instruction.span, legal=(f"{file}{first}", f"{file}{last + 1}"))
    return tuple(Register(file, index) for index in range(first, last + 1))


def plain_registers(instruction: TpcInstruction, target: VliwTarget) -> Mapping[str, tuple[Register, ...]]:
    """Return the registers of every operand, by its role, where their classes say all."""
    found = {}
    for spec, operand in zip(instruction.form.operands, instruction.operands, strict=True):
        if isinstance(operand, Register):
            count = GROUPED.get(operand.file, (operand.file, 1))[1]
            found[spec.role] = group_of(instruction, spec.role, count, target)
    return found


def destination_file(instruction: TpcInstruction) -> File | None:
    """Return the class of the destination, None where it has a name instead."""
    operand = instruction.operand("dest")
    return operand.file if isinstance(operand, Register) else None


def _names(file: File, count: int) -> tuple[str, ...]:
    groups = [group for group, (single, size) in GROUPED.items() if (single, size) == (file, count)]
    return (*groups, file) if count > 1 else (file,)
