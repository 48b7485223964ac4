"""Writing bundles: numbers into fields, with every clash rejected by name.

Source: docs/reference/tpc.md section 1 (bundle conflicts) and 8 (encoding).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from castsim.isa.errors import IllegalError
from castsim.isa.formats import FORMATS
from castsim.isa.tpc.conversion_forms import NARROWED_BITS
from castsim.isa.tpc.encoding.tables import (
    IMMEDIATE,
    LOOP,
    NOP,
    PREDICATE_INDEX_BITS,
    CompressedLayout,
    Encoding,
    FieldContent,
    Layout,
    operand_code,
    pieces,
)
from castsim.isa.tpc.forms import Form
from castsim.isa.tpc.instructions import forms_of
from castsim.isa.tpc.program import (
    GROUPED,
    JUMPS,
    VECTOR_GROUPS,
    Bundle,
    Comparison,
    File,
    Immediate,
    Operand,
    Register,
    Slot,
    TpcInstruction,
)

# The bits of one bundle while it is written, with every clash rejected by name.


class Sheet:
    """The bits of a bundle while it is written; remembers who wrote which."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.bits = 0
        self._owners: list[tuple[int, TpcInstruction]] = []

    def put(
        self,
        slot: Slot | None,
        field: str,
        low: int,
        bits: int | None,
        number: int,
        owner: TpcInstruction | None = None,
    ) -> None:
        """Write a number; `owner` None is for fields that several may share and write alike.

        Raises:
            IllegalError: another instruction uses these bits, or the layout lacks them and the number needs them.
        """
        rest, mask, written = number, 0, 0
        for part in self.layout.parts(slot, field):
            first = max(low, part.low)
            last = part.low + part.bits if bits is None else min(low + bits, part.low + part.bits)
            if first >= last:
                continue
            under = ((1 << (last - first)) - 1) << (first - low)
            rest &= ~under
            start = part.start + first - part.low
            mask |= under >> (first - low) << start
            written |= (number & under) >> (first - low) << start
        if rest:
            raise self._missing(slot, field, number, owner)
        if owner is not None:
            self._claim(mask, owner)
        self.bits |= written

    def _claim(self, mask: int, owner: TpcInstruction) -> None:
        for used, other in self._owners:
            if used & mask and other is not owner:
                fields = ", ".join(self.layout.named(used & mask))
                message = f"{owner.mnemonic} and {other.mnemonic} cannot share a bundle: both need {fields}"
                raise IllegalError(message, span=owner.span, legal=("two bundles",))
        self._owners.append((mask, owner))

    def _missing(self, slot: Slot | None, field: str, number: int, owner: TpcInstruction | None) -> IllegalError:
        where = field if slot is None else f"{slot.name.lower()}.{field}"
        what = "the bundle" if owner is None else owner.mnemonic
        size = sum(part.bits for part in self.layout.parts(slot, field))
        message = f"{what}: {where} has no room for {number:#x} in layout {self.layout.name}"
        return IllegalError(message, span=owner.span if owner else None, legal=(f"{size} bits",))

    def put_predicate(self, slot: Slot, instruction: TpcInstruction) -> None:
        """Write the predicate of an instruction; none is SP0, not inverted."""
        predicate = instruction.predicate
        if predicate is not None:
            vector = int(predicate.register.file is File.VP)
            self.put(slot, "predicate", 0, None, predicate.register.index | vector << PREDICATE_INDEX_BITS)
            self.put(slot, "polarity", 0, None, int(predicate.inverted))


# The bundle of a hardware loop, which has a layout of its own.
#
# Each of start, bound and step has a register code, an immediate and a bit that chooses between them; the register
# code is zero beside an immediate. Source: docs/reference/tpc.md section 7.1 (control) and 8.

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


# Pairs and quads of registers in conversions: the encoding holds the first register only.


def grouped(instruction: TpcInstruction) -> TpcInstruction:
    """Name the registers of a conversion as pairs or quads where it reads or writes several.

    The encoding holds the first register only; a number that does not begin a group stays a V.
    """
    sizes = _sizes(instruction)
    if sizes == (1, 1):
        return instruction
    operands = list(instruction.operands)
    for position, size in enumerate(sizes):
        operand = operands[position]
        assert isinstance(operand, Register)
        if operand.file is File.V and operand.index % size == 0:
            operands[position] = Register(VECTOR_GROUPS[size], operand.index)
    return TpcInstruction(
        instruction.form, instruction.type, instruction.switches, tuple(operands), instruction.predicate
    )


def _sizes(instruction: TpcInstruction) -> tuple[int, int]:
    """Return the numbers of destination and source registers of a conversion."""
    if instruction.switch("cnvrt") == 1:
        return 2, 1
    if not _has_groups(instruction):
        return 1, 1
    if instruction.switch("x4") == 1:
        return 4, 4
    if instruction.switch("x2") == 1:
        return 2, 2
    source, dest = _widths(instruction)
    if instruction.switch("num_lanes") != "all_lanes" or source == dest:
        return 1, 1
    ratio = max(source, dest) // min(source, dest)
    if ratio not in VECTOR_GROUPS:
        return 1, 1
    return (1, ratio) if source > dest else (ratio, 1)


def _widths(instruction: TpcInstruction) -> tuple[int, int]:
    """Return the bits of source and destination elements of a conversion."""
    if instruction.type is not None:
        return FORMATS[instruction.type].bits, FORMATS[str(instruction.switch("target_type"))].bits
    source = int("".join(filter(str.isdecimal, instruction.mnemonic)))  # convert_int32
    width = instruction.switch("width")
    return source, source // 2 if width is None else NARROWED_BITS[str(width)]


def unspoken_group(instruction: TpcInstruction) -> bool:
    """Whether a conversion names pairs or quads though no bit of the encoding says so (all_lanes on one width)."""
    if not _has_groups(instruction):
        return False
    named = [GROUPED.get(o.file, (o.file, 1))[1] for o in instruction.operands[:2] if isinstance(o, Register)]
    return any(1 != found != said for found, said in zip(named, _sizes(instruction), strict=True))


def _has_groups(instruction: TpcInstruction) -> bool:
    """Whether destination and source may be single registers, pairs or quads."""
    accepts = [set(spec.accepts) for spec in instruction.form.operands[:2]]
    return len(accepts) > 1 and all({"V", "D", "A"} <= accepted for accepted in accepts)


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
        write(bundle, encoding, sheet)
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
                if short and piece.immediate is not None and _fits(piece, instruction, encoding):
                    number = encoding.short.codes[piece.immediate]
                sheet.put(slot, piece.field, piece.low, piece.bits, number, instruction)
    _write_predicates(found, sheet)


def _write_immediate(
    found: list[tuple[Slot, TpcInstruction, list[FieldContent]]], encoding: Encoding, sheet: Sheet
) -> bool:
    """Write the one long immediate; return whether, for want of room, operand codes hold those that can."""
    uses = [
        (piece.immediate, instruction, _fits(piece, instruction, encoding))
        for _, instruction, parts in found
        for piece in parts
        if piece.immediate is not None
    ]
    short = len({value for value, _, _ in uses}) > 1
    long = [(value, who) for value, who, fits in uses if not (short and fits)]
    for value, who in long:
        if value != long[0][0]:
            message = f"the bundle has room for one 32-bit immediate; {value:#x} is beside {long[0][0]:#x}"
            small = [f"0 .. {count - 1}" for count in [encoding.short.count(who.type)] if count]
            raise IllegalError(message, span=who.span, legal=("two bundles", *small))
    if long:
        sheet.put(None, IMMEDIATE, 0, None, long[0][0])
    return short


def _fits(piece: FieldContent, instruction: TpcInstruction, encoding: Encoding) -> bool:
    """Whether an operand code can stand for an immediate; the distance of a jump is a long one always."""
    if piece.immediate is None or piece.field == IMMEDIATE or instruction.mnemonic in JUMPS:
        return False
    return piece.immediate < encoding.short.count(instruction.type)


def _write_predicates(found: list[tuple[Slot, TpcInstruction, list[FieldContent]]], sheet: Sheet) -> None:
    memory = [instruction for slot, instruction, _ in found if slot in _MEMORY_SLOTS]
    for instruction in memory[1:]:
        if instruction.predicate != memory[0].predicate:
            shown = [str(one.predicate or "SP0") for one in memory]
            message = f"LOAD and STORE have one predicate in common; found {' and '.join(shown)}"
            raise IllegalError(message, span=instruction.span, legal=("the same predicate on both", "two bundles"))
    for slot, instruction, _ in found:
        sheet.put_predicate(slot, instruction)
