"""The field contents of an instruction in its slot: one number per operand, switch and derived property.

The encoder writes these numbers, the decoder looks for the form whose numbers are found. Source: docs/reference/tpc.md
section 8.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from castsim.isa.errors import IllegalError
from castsim.isa.tpc.encoding.tables import Encoding, ItemPlacement
from castsim.isa.tpc.forms import Form, OperandSpec, Value
from castsim.isa.tpc.program import (
    GROUPED,
    Comparison,
    DimensionMask,
    Immediate,
    LabelUse,
    Operand,
    Register,
    Slot,
    Special,
    TpcInstruction,
)

ZERO_POINT = "zp"
HARDWARE = "hardware_register"
IMMEDIATE = "immediate"


@dataclass(frozen=True, slots=True)
class FieldContent:
    """A number in bits `low` .. `low + bits - 1` of a field; `bits` None is the whole field.

    `immediate` is the 32-bit immediate that the number stands for; `assumed` as in `ItemPlacement`.
    """

    item: str
    field: str
    low: int
    bits: int | None
    number: int
    immediate: int | None = None
    assumed: bool = False


def derived(form: Form, encoding: Encoding) -> dict[str, Value]:
    """Return the properties that a form has by its operands alone and that have fields of their own."""
    found: dict[str, Value] = {"variant": form.mnemonic}
    roles = {spec.role: spec.accepts for spec in form.operands}
    if "tensor" in roles:
        found["tensor_register"] = int("imm" not in roles["tensor"])
    if form.drops_type and roles.get("dest") in (("SP",), ("VP",)):
        found["boolean"] = "b"
        if roles["dest"] == ("VP",) and "imm" in roles["src_a"] and "section" not in roles:
            found["all_sections"] = 1
    for role in ("dest", "src_a"):
        if names_hardware(roles.get(role, ()), encoding):
            found |= {"hardware_move": 1, "to_hardware": int(role == "dest")}
    return found


def names_hardware(accepts: tuple[str, ...], encoding: Encoding) -> bool:
    """Whether an operand is a register with a code of its own kind."""
    return any(name in encoding.hardware_registers for name in accepts)


def field_of(role: str, slot: Slot) -> str:
    """Return the field of an operand code; the STORE slot keeps destinations where its values stand."""
    return "src_c" if slot is Slot.STORE and role == "dest" else role


def is_encoded(spec: OperandSpec) -> bool:
    """Whether an operand has bits; range and merge registers and the zero points follow from switches."""
    return spec.dialect_role is None and spec.role != ZERO_POINT


def pieces(instruction: TpcInstruction, slot: Slot, encoding: Encoding) -> Iterator[FieldContent]:
    """Yield all numbers of an instruction but opcode and predicate; labels must have been resolved.

    Raises:
        IllegalError: an operand or switch value that has no published code, or none in this slot.
    """
    form = instruction.form
    for spec, operand in zip(form.operands, instruction.operands, strict=True):
        if is_encoded(spec):
            yield _operand(instruction, spec, operand, slot, encoding)
    for name, value in (("type", instruction.type), *instruction.switches):
        if value is not None:
            row = encoding.placement(slot, form.mnemonic, name)
            if row is None:
                raise IllegalError(f"{form.mnemonic}: no source says where {name} is encoded", span=instruction.span)
            yield _placed(instruction, row, value)
    for name, value in derived(form, encoding).items():
        row = encoding.placement(slot, form.mnemonic, name)
        if row is not None:
            yield _placed(instruction, row, value)


def _placed(instruction: TpcInstruction, row: ItemPlacement, value: Value) -> FieldContent:
    number = row.number(value)
    if number is None:
        message = f"{instruction.mnemonic}: {row.item} {value} has no code"
        raise IllegalError(message, span=instruction.span, legal=row.codes or ())
    if number >> row.bits:
        message = f"{instruction.mnemonic}: {row.item} {number} does not fit in {row.bits} bits"
        raise IllegalError(message, span=instruction.span, legal=(f"0 .. {(1 << row.bits) - 1}",))
    immediate = number if row.field == IMMEDIATE else None
    return FieldContent(row.item, row.field, row.low, row.bits, number, immediate, assumed=row.assumed)


def _operand(
    instruction: TpcInstruction, spec: OperandSpec, operand: Operand, slot: Slot, encoding: Encoding
) -> FieldContent:
    if isinstance(operand, Special) and operand.name in encoding.hardware_registers:
        row = encoding.placement(slot, instruction.mnemonic, HARDWARE)
        if row is not None:
            return _placed(instruction, row, operand.name)
    row = encoding.placement(slot, instruction.mnemonic, spec.role)
    if row is not None and not isinstance(operand, Register | Special):
        return _placed(instruction, row, _bare(operand))
    code = operand_code(operand, slot, encoding)
    if code is None:
        message = f"{instruction.mnemonic}: no source gives a code for {operand} in the {slot.name} slot"
        raise IllegalError(message, span=instruction.span)
    immediate = operand.value if isinstance(operand, Immediate) else None
    return FieldContent(spec.role, field_of(spec.role, slot), 0, None, code, immediate)


def operand_code(operand: Operand, slot: Slot, encoding: Encoding) -> int | None:
    """Return the code of an operand in an operand field, None if it has none."""
    if isinstance(operand, Immediate):
        return encoding.immediate_code
    if isinstance(operand, Register):
        file, index = GROUPED.get(operand.file, (operand.file, 1))[0], operand.index
    elif isinstance(operand, Special) and operand.name in encoding.specials:
        file, index = encoding.specials[operand.name]
    else:
        return None
    first = encoding.files(slot).get(file)
    return None if first is None else first + index


def _bare(operand: Operand) -> Value:
    """Return the number or sign that an operand is."""
    if isinstance(operand, Immediate):
        return operand.value
    if isinstance(operand, DimensionMask):
        return operand.bits
    if isinstance(operand, Comparison):
        return operand.sign
    assert not isinstance(operand, LabelUse), "labels are resolved before"
    return str(operand)
