"""Writing bundles: numbers into fields, with every clash rejected by name.

Source: docs/reference/tpc.md section 1 (bundle conflicts) and 8 (encoding).
"""

from __future__ import annotations

from collections.abc import Iterator

from castsim.isa.errors import IllegalError
from castsim.isa.tpc.encoding import loops
from castsim.isa.tpc.encoding.contents import IMMEDIATE, FieldContent, pieces
from castsim.isa.tpc.encoding.groups import unspoken_group
from castsim.isa.tpc.encoding.sheet import Sheet
from castsim.isa.tpc.encoding.tables import LOOP, NOP, CompressedLayout, Encoding
from castsim.isa.tpc.program import Bundle, Slot, TpcInstruction

_MEMORY_SLOTS = (Slot.LOAD, Slot.STORE)


def encode_bundle(bundle: Bundle, encoding: Encoding, half: CompressedLayout | None = None) -> bytes:
    """Encode one bundle, labels resolved, in full or as a compressed half.

    Raises:
        IllegalError: something without a code or a field; two instructions that need one field; two immediates.
    """
    is_loop = bundle.spu is not None and bundle.spu.mnemonic == LOOP
    if is_loop and half is not None:
        raise IllegalError("loop needs a full bundle and cannot be compressed", span=bundle.span)
    layout = half.layout if half is not None else encoding.loop if is_loop else encoding.bundle
    sheet = Sheet(layout)
    if half is not None:
        sheet.put(None, "compressed", 0, None, 1)
        sheet.put(None, "compression_type", 0, None, encoding.halves.index(half))
    if layout is encoding.loop:
        loops.write(bundle, encoding, sheet)
    else:
        _write_slots(bundle, encoding, sheet)
    return sheet.bits.to_bytes(layout.size_bytes, "little")


def assumed_items(bundle: Bundle, encoding: Encoding) -> Iterator[str]:
    """Yield what stands in an encoded bundle at positions that no source states, as `add: switch neg`."""
    for slot, instruction in zip(Slot, bundle.slots, strict=True):
        if instruction is not None and instruction.mnemonic != LOOP:
            for piece in pieces(instruction, slot, encoding):
                if piece.assumed and piece.number:
                    yield f"{instruction.mnemonic} ({slot.name}): {piece.item}"
            if unspoken_group(instruction):
                yield f"{instruction.mnemonic} ({slot.name}): number of registers (reads back as one)"


def _write_slots(bundle: Bundle, encoding: Encoding, sheet: Sheet) -> None:
    here = sheet.layout.slots()
    found: list[tuple[Slot, TpcInstruction, list[FieldContent]]] = []
    for slot, instruction in zip(Slot, bundle.slots, strict=True):
        if instruction is None:
            if slot in here:
                sheet.put(slot, "opcode", 0, None, encoding.opcodes[slot, NOP])
            continue
        if slot not in here:
            message = f"layout {sheet.layout.name} has no {slot.name} slot for {instruction.mnemonic}"
            raise IllegalError(message, span=instruction.span, legal=[legal.name for legal in here])
        found.append((slot, instruction, list(pieces(instruction, slot, encoding))))
    short = _write_immediate(found, encoding, sheet)
    for slot, instruction, parts in found:
        opcode = encoding.opcodes.get((slot, instruction.mnemonic))
        if opcode is None:
            raise IllegalError(
                f"{instruction.mnemonic} in the {slot.name} slot has no opcode that is known, so no binary form",
                span=instruction.span, legal=("castsim run, of the text",),
            )  # fmt: skip
        sheet.put(slot, "opcode", 0, None, opcode)
        for piece in parts:
            if piece.field != IMMEDIATE:
                number = piece.number
                if slot is Slot.SPU and piece.immediate is not None and piece.immediate in short:
                    number = encoding.short_codes[piece.immediate]
                sheet.put(slot, piece.field, piece.low, piece.bits, number, instruction)
    _write_predicates(found, sheet)


def _write_immediate(
    found: list[tuple[Slot, TpcInstruction, list[FieldContent]]], encoding: Encoding, sheet: Sheet
) -> frozenset[int]:
    """Write the one long immediate; return the values that SPU must take as short ones for want of room."""
    uses = [
        (piece.immediate, slot, instruction)
        for slot, instruction, parts in found
        for piece in parts
        if piece.immediate is not None
    ]
    short: set[int] = set()
    if len({value for value, _, _ in uses}) > 1:
        short = {value for value, slot, _ in uses if slot is Slot.SPU and value < len(encoding.short_codes)}
    long = [(value, who) for value, slot, who in uses if slot is not Slot.SPU or value not in short]
    for value, who in long:
        if value != long[0][0]:
            message = f"the bundle has room for one 32-bit immediate; {value:#x} is beside {long[0][0]:#x}"
            last = len(encoding.short_codes) - 1
            legal = ("two bundles", *((f"0 .. {last} in the SPU slot",) if last >= 0 else ()))
            raise IllegalError(message, span=who.span, legal=legal)
    if long:
        sheet.put(None, IMMEDIATE, 0, None, long[0][0])
    return frozenset(short)


def _write_predicates(found: list[tuple[Slot, TpcInstruction, list[FieldContent]]], sheet: Sheet) -> None:
    memory = [instruction for slot, instruction, _ in found if slot in _MEMORY_SLOTS]
    for instruction in memory[1:]:
        if instruction.predicate != memory[0].predicate:
            shown = [str(one.predicate or "SP0") for one in memory]
            message = f"LOAD and STORE have one predicate in common; found {' and '.join(shown)}"
            raise IllegalError(message, span=instruction.span, legal=("the same predicate on both", "two bundles"))
    for slot, instruction, _ in found:
        sheet.put_predicate(slot, instruction)
