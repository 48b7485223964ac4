"""The bundle of a hardware loop, which has a layout of its own.

Each of start, bound and step has a register code, an immediate and a bit that chooses between them; the register code
is zero beside an immediate. Source: docs/reference/tpc.md section 7.1 (control) and 8.
"""

from __future__ import annotations

from collections.abc import Callable

from castsim.isa.errors import IllegalError
from castsim.isa.tpc.encoding.contents import operand_code
from castsim.isa.tpc.encoding.sheet import Sheet
from castsim.isa.tpc.encoding.tables import LOOP, Encoding
from castsim.isa.tpc.forms import Form
from castsim.isa.tpc.instructions import forms_of
from castsim.isa.tpc.program import Bundle, Comparison, File, Immediate, Operand, Register, Slot

_BOUNDS = ("start", "bound", "step")


def write(bundle: Bundle, encoding: Encoding, sheet: Sheet) -> None:
    """Write a bundle that holds LOOP and nothing else.

    Raises:
        IllegalError: another instruction beside it, or an end beyond its field.
    """
    loop = bundle.spu
    assert loop is not None
    for other in bundle.slots:
        if other is not None and other is not loop:
            message = f"{other.mnemonic} cannot share a bundle with loop, whose immediates take the whole bundle"
            raise IllegalError(message, span=other.span, legal=("nop in the other slots",))
    put = sheet.put
    put(Slot.SPU, "opcode", 0, None, encoding.opcodes[Slot.SPU, LOOP])
    for name in _BOUNDS:
        operand = loop.operand(name)
        immediate = isinstance(operand, Immediate)
        put(Slot.SPU, f"{name}_is_imm_sel", 0, None, int(immediate))
        if isinstance(operand, Immediate):
            put(Slot.SPU, f"{name}_imm", 0, None, operand.value)
        elif operand is not None:
            code = operand_code(operand, Slot.SPU, encoding)
            assert code is not None
            put(Slot.SPU, name, 0, None, code)
    compare, end, once = (loop.operand(role) for role in ("compare", "end", "once"))
    assert isinstance(compare, Comparison)
    assert isinstance(end, Immediate)
    row = encoding.placement(Slot.SPU, LOOP, "compare")
    assert row is not None
    put(Slot.SPU, row.field, row.low, row.bits, row.number(compare.sign) or 0)
    bits = sum(part.bits for part in sheet.layout.parts(Slot.SPU, "end_offset"))
    if end.value >> bits:
        message = f"loop: the end of the body, {end.signed} bytes away, is out of reach"
        raise IllegalError(message, span=loop.span, legal=(f"0 .. {(1 << bits) - 1}",))
    put(Slot.SPU, "end_offset", 0, None, end.value)
    if isinstance(once, Immediate):
        put(Slot.SPU, "repeat", 0, None, once.value)
    sheet.put_predicate(Slot.SPU, loop)


def read(number: Callable[[str], int], encoding: Encoding) -> tuple[Form, tuple[Operand, ...]] | str:
    """Return form and operands of a LOOP from its fields, or what in them has no meaning."""
    operands: list[Operand] = []
    for name in _BOUNDS:
        if number(f"{name}_is_imm_sel"):
            operands.append(Immediate(number(f"{name}_imm")))
            continue
        index = number(name) - encoding.scalar_files[File.S]
        if not 0 <= index < encoding.dialect.registers[File.S]:
            return f"loop: {name} {number(name):#x} is not an S register"
        operands.append(Register(File.S, index))
    row = encoding.placement(Slot.SPU, LOOP, "compare")
    assert row is not None
    sign = row.value(number(row.field))
    if not isinstance(sign, str):
        return f"loop: compare mode {number(row.field)} is unknown"
    operands += [Comparison(sign), Immediate(number("end_offset"))]
    repeat = number("repeat")
    plain, counted = sorted(forms_of(LOOP), key=lambda form: len(form.operands))
    if repeat == 0:
        return plain, tuple(operands)
    limit = counted.operands[-1].limit
    if limit is not None and repeat > limit:
        return f"loop: repeat {repeat} is unknown"
    return counted, (*operands, Immediate(repeat))
