"""Encoder and decoder of bundles: numbers are placed in fields, with every clash rejected by name, and read back.

Source: docs/reference/tpc.md section 1 (bundle conflicts) and 8 (encoding).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from castsim.isa.dataclass import dataclass
from castsim.isa.errors import IllegalError
from castsim.isa.formats import FORMATS
from castsim.isa.tpc.forms import Form, OperandSpec, Predication, Switch, Value
from castsim.isa.tpc.instructions import NARROWED_BITS, available, forms_of
from castsim.isa.tpc.program import (
    GROUPED,
    JUMPS,
    VECTOR_GROUPS,
    Bundle,
    DimensionMask,
    File,
    Immediate,
    LoopComparison,
    Operand,
    Predicate,
    Register,
    Slot,
    Special,
    TpcInstruction,
)
from castsim.tools.tpc_binary.encoding_tables import (
    HARDWARE,
    IMMEDIATE,
    LOOP,
    NOP,
    PREDICATE_INDEX_BITS,
    ZERO_POINT,
    CompressedLayout,
    Encoding,
    FieldContent,
    Layout,
    derived,
    field_of,
    is_encoded,
    names_hardware,
    operand_code,
    pieces,
)

# The bits of one bundle while it is written, with every clash rejected by name.


class Sheet:
    """The bits of a bundle while it is written, with the owner of each bit."""

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
        """Write a number; `owner` None is for fields that several instructions may share with equal contents.

        Raises:
            IllegalError: another instruction uses these bits, or the number needs bits that the layout lacks.
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
        message = f"{what}: {where} cannot hold {number:#x} in layout {self.layout.name}"
        return IllegalError(message, span=owner.span if owner else None, legal=(f"{size} bits",))

    def put_predicate(self, slot: Slot, instruction: TpcInstruction) -> None:
        """Write the predicate of an instruction; without one, SP0, not inverted."""
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
    """Write a bundle that contains only LOOP.

    Raises:
        IllegalError: the bundle has another instruction, or an end exceeds its field.
    """
    loop = bundle.spu
    assert loop is not None
    for other in bundle.slots:
        if other is not None and other is not loop:
            message = f"{other.mnemonic} cannot share a bundle with loop, whose immediates fill the whole bundle"
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
    assert isinstance(compare, LoopComparison)
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
    """Return form and operands of a LOOP from its fields, or the meaningless fields."""
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
    operands += [LoopComparison(sign), Immediate(number("end_offset"))]
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
    """Name the registers of a conversion as pairs or quads if it reads or writes several.

    The encoding has only the first register; a number that does not begin a group stays a V.
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
    """Return whether the text names pairs or quads that no bit of the encoding states (all_lanes on one width)."""
    if not any({"V", "D"} <= set(spec.accepts) for spec in instruction.form.operands[:2]):
        return False
    named = [GROUPED.get(o.file, (o.file, 1))[1] for o in instruction.operands[:2] if isinstance(o, Register)]
    return any(1 != named_size != actual for named_size, actual in zip(named, _sizes(instruction), strict=True))


def _has_groups(instruction: TpcInstruction) -> bool:
    """Return whether destination and source may be single registers, pairs or quads."""
    accepts = [set(spec.accepts) for spec in instruction.form.operands[:2]]
    return len(accepts) > 1 and all({"V", "D", "A"} <= accepted for accepted in accepts)


_MEMORY_SLOTS = (Slot.LOAD, Slot.STORE)


def encode_bundle(bundle: Bundle, encoding: Encoding, half: CompressedLayout | None = None) -> bytes:
    """Encode one bundle, labels resolved, in full or as a compressed half.

    Raises:
        IllegalError: something has no code or field, two instructions need one field, or there are two immediates.
    """
    is_loop = bundle.spu is not None and bundle.spu.mnemonic == LOOP
    if is_loop and half is not None:
        raise IllegalError("loop needs a full bundle, so it cannot be compressed", span=bundle.span)
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
    """Yield the items of an encoded bundle at positions that no source states, as `add: switch neg`."""
    for slot, instruction in bundle.occupied:
        if instruction.mnemonic != LOOP:
            for piece in pieces(instruction, slot, encoding):
                if piece.assumed and piece.number:
                    yield f"{instruction.mnemonic} ({slot.name}): {piece.item}"
            if unspoken_group(instruction):
                yield f"{instruction.mnemonic} ({slot.name}): number of registers (reads back as one)"


def _write_slots(bundle: Bundle, encoding: Encoding, sheet: Sheet) -> None:
    here = sheet.layout.slots()
    written: list[tuple[Slot, TpcInstruction, list[FieldContent]]] = []
    for slot, instruction in zip(Slot, bundle.slots, strict=True):
        if instruction is None:
            if slot in here:
                sheet.put(slot, "opcode", 0, None, encoding.opcodes[slot, NOP])
            continue
        if slot not in here:
            message = f"layout {sheet.layout.name} has no {slot.name} slot for {instruction.mnemonic}"
            raise IllegalError(message, span=instruction.span, legal=[legal.name for legal in here])
        written.append((slot, instruction, list(pieces(instruction, slot, encoding))))
    short = _write_immediate(written, encoding, sheet)
    for slot, instruction, parts in written:
        opcode = encoding.opcodes.get((slot, instruction.mnemonic))
        if opcode is None:
            raise IllegalError(
                f"{instruction.mnemonic} in the {slot.name} slot has no known opcode, so castsim cannot encode it",
                span=instruction.span, legal=("castsim run, of the text",),
            )  # fmt: skip
        sheet.put(slot, "opcode", 0, None, opcode)
        for piece in parts:
            if piece.field != IMMEDIATE:
                number = piece.number
                if short and piece.immediate is not None and _fits(piece, instruction, encoding):
                    number = encoding.short.codes[piece.immediate]
                sheet.put(slot, piece.field, piece.low, piece.bits, number, instruction)
    _write_predicates(written, sheet)


def _write_immediate(
    written: list[tuple[Slot, TpcInstruction, list[FieldContent]]], encoding: Encoding, sheet: Sheet
) -> bool:
    """Write the single long immediate; return whether, for lack of room, operand codes hold the short ones."""
    uses = [
        (piece.immediate, instruction, _fits(piece, instruction, encoding))
        for _, instruction, parts in written
        for piece in parts
        if piece.immediate is not None
    ]
    short = len({value for value, _, _ in uses}) > 1
    long = [(value, who) for value, who, fits in uses if not (short and fits)]
    for value, who in long:
        if value != long[0][0]:
            message = f"a bundle can hold one 32-bit immediate, not both {value:#x} and {long[0][0]:#x}"
            small = [f"0 .. {count - 1}" for count in [encoding.short.count(who.type)] if count]
            raise IllegalError(message, span=who.span, legal=("two bundles", *small))
    if long:
        sheet.put(None, IMMEDIATE, 0, None, long[0][0])
    return short


def _fits(piece: FieldContent, instruction: TpcInstruction, encoding: Encoding) -> bool:
    """Return whether an operand code can represent an immediate; the distance of a jump is always long."""
    if piece.immediate is None or piece.field == IMMEDIATE or instruction.mnemonic in JUMPS:
        return False
    return piece.immediate < encoding.short.count(instruction.type)


def _write_predicates(written: list[tuple[Slot, TpcInstruction, list[FieldContent]]], sheet: Sheet) -> None:
    memory = [instruction for slot, instruction, _ in written if slot in _MEMORY_SLOTS]
    for instruction in memory[1:]:
        if instruction.predicate != memory[0].predicate:
            shown = [str(access.predicate or "SP0") for access in memory]
            message = f"LOAD and STORE must have the same predicate; found {' and '.join(shown)}"
            raise IllegalError(message, span=instruction.span, legal=("the same predicate on both", "two bundles"))
    for slot, instruction, _ in written:
        sheet.put_predicate(slot, instruction)


# Reading bundles: from bits to the instructions whose encoding they are.
#
# For each slot the forms of the opcode's mnemonics are tried; a form fits if every field that it uses holds a legal
# number. Of several the one that accounts for all bits of the slot is taken. What is read is encoded again: bits that
# do not come back have no meaning here, and are named.


class UnknownBundle(Exception):  # noqa: N818  an answer of the decoder, which prints it; no refusal of input
    """Bits that are not a bundle of this generation; the message gives the reason."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """A bundle, and its fields with meaningless bits (none: it encodes to the same bits).

    `half` is the compressed layout of its bytes, None for a full bundle.
    """

    bundle: Bundle
    half: CompressedLayout | None
    leftover: tuple[str, ...]


def decode_bundle(code: bytes, encoding: Encoding) -> Decoded:
    """Decode one bundle of full size or, if its lowest bit is set, of compressed size.

    Raises:
        UnknownBundle: the bytes are not a bundle.
    """
    bits = int.from_bytes(code, "little")
    half = _half_of(bits, encoding)
    layout = encoding.bundle if half is None else half.layout
    if len(code) != layout.size_bytes:
        raise UnknownBundle(f"{len(code)} bytes are not a bundle of layout {layout.name}")
    view = _View(bits, layout)
    if view.number(Slot.SPU, "opcode") == encoding.opcodes[Slot.SPU, LOOP]:
        if half is not None:
            raise UnknownBundle("loop needs a full bundle, so it cannot be compressed")
        bundle = _read_loop(_View(bits, encoding.loop), encoding)
    else:
        bundle = _read_slots(view, encoding)
    try:
        again = encode_bundle(bundle, encoding, half)
    except IllegalError as error:
        raise UnknownBundle(error.message) from None
    differing = int.from_bytes(again, "little") ^ bits
    if differing and bundle.spu is not None and bundle.spu.mnemonic == LOOP:
        layout = encoding.loop
    return Decoded(bundle, half, layout.named(differing) if differing else ())


def _half_of(bits: int, encoding: Encoding) -> CompressedLayout | None:
    """Return the compressed layout that the lowest bits name."""
    if not encoding.halves:
        return None
    view = _View(bits, encoding.halves[0].layout)
    if not view.number(None, "compressed"):
        return None
    return encoding.halves[view.number(None, "compression_type")]


@dataclass(frozen=True, slots=True)
class _View:
    """The bits of a bundle under a layout; those in `hidden` read as zero."""

    bits: int
    layout: Layout
    hidden: int = 0

    def number(self, slot: Slot | None, field: str) -> int:
        value = 0
        shown = self.bits & ~self.hidden
        for part in self.layout.parts(slot, field):
            value |= (shown >> part.start & ((1 << part.bits) - 1)) << part.low
        return value

    def without(self, mask: int) -> _View:
        return _View(self.bits, self.layout, self.hidden | mask)


class _Unfit(Exception):  # noqa: N818  never leaves this module
    """The reason why a form does not fit the bits."""


def _read_loop(view: _View, encoding: Encoding) -> Bundle:
    loop = read(lambda field: view.number(Slot.SPU, field), encoding)
    if isinstance(loop, str):
        raise UnknownBundle(loop)
    form, operands = loop
    try:
        predicate = _predicate(form, Slot.SPU, view, encoding)
    except _Unfit as reason:
        raise UnknownBundle(f"loop: {reason}") from None
    return Bundle(spu=TpcInstruction(form, None, (), operands, predicate))


def _read_slots(view: _View, encoding: Encoding) -> Bundle:
    instructions: dict[Slot, TpcInstruction] = {}
    # The vector unit comes first: where its operands overlay those of another slot, they are hidden from it.
    for slot in (Slot.VPU, Slot.SPU, Slot.LOAD, Slot.STORE):
        if slot not in view.layout.slots():
            continue
        opcode = view.number(slot, "opcode")
        if opcode == encoding.opcodes[slot, NOP]:
            continue
        instruction = _read_slot(slot, opcode, view, encoding)
        instructions[slot] = instruction
        if slot is Slot.VPU:
            fields = {piece.field for piece in pieces(instruction, slot, encoding)} - {IMMEDIATE}
            used = (part for field in fields for part in view.layout.parts(slot, field))
            view = view.without(sum(((1 << part.bits) - 1) << part.start for part in used))
    return Bundle(*(instructions.get(slot) for slot in Slot))


def _read_slot(slot: Slot, opcode: int, view: _View, encoding: Encoding) -> TpcInstruction:
    """Return the instruction of a slot.

    Raises:
        UnknownBundle: no form of this generation fits.
    """
    mnemonics = encoding.mnemonics.get((slot, opcode), ())
    forms = [
        form
        for mnemonic in mnemonics
        for form in forms_of(mnemonic)
        if slot in form.slots and available(form, encoding.dialect)
    ]
    where = f"{slot.name} opcode {opcode:#04x}"
    if not forms:
        if mnemonics:
            raise UnknownBundle(f"{where} ({', '.join(mnemonics)}) is not modelled on {encoding.dialect.name}")
        raise UnknownBundle(f"{where} is not an instruction of {encoding.dialect.name}")
    fitting: list[TpcInstruction] = []
    reasons: list[str] = []
    for form in forms:
        try:
            instruction = _read_form(form, slot, view, encoding)
        except _Unfit as reason:
            reasons.append(str(reason))
            continue
        if _accounts_for_all(instruction, slot, view, encoding):
            return instruction
        fitting.append(instruction)
    if not fitting:
        raise UnknownBundle(f"{where} ({', '.join(mnemonics)}): {reasons[0]}")
    return fitting[0]


def _accounts_for_all(instruction: TpcInstruction, slot: Slot, view: _View, encoding: Encoding) -> bool:
    """Return whether the fields of the slot contain the instruction and nothing else.

    A short immediate counts as the equal long one.
    """
    sheet, long = Sheet(view.layout), set[str]()
    for piece in pieces(instruction, slot, encoding):
        if piece.field != "immediate":
            if piece.immediate is not None:
                long.add(piece.field)
            sheet.put(slot, piece.field, piece.low, piece.bits, piece.number)
    written = _View(sheet.bits, view.layout)
    for owner, name in view.layout.fields:
        if owner == slot.name.lower() and name not in ("opcode", "predicate", "polarity"):
            number, wanted = view.number(slot, name), written.number(slot, name)
            if number != wanted and not (name in long and number in encoding.short.codes):
                return False
    return True


# --------------------------------------------------------------------------------------------------------- one form


def _read_form(form: Form, slot: Slot, view: _View, encoding: Encoding) -> TpcInstruction:
    """Read the fields by a form.

    Raises:
        _Unfit: they contain something that the form does not accept.
    """
    for name, wanted in derived(form, encoding).items():
        row = encoding.placement(slot, form.mnemonic, name)
        if row is not None and _item(form, slot, name, view, encoding) != wanted:
            raise _Unfit(f"{name} is not {wanted}")
    kind = None
    if form.types:
        kind = str(_item(form, slot, "type", view, encoding))
        if kind not in form.types:
            raise _Unfit(f"type {kind} is not legal")
    switches = _switches(form, slot, view, encoding)
    operands = tuple(_operand(spec, form, kind, slot, view, encoding) for spec in form.operands)
    predicate = _predicate(form, slot, view, encoding)
    instruction = TpcInstruction(form, kind, switches, operands, predicate)
    return grouped(instruction)


def _item(form: Form, slot: Slot, name: str, view: _View, encoding: Encoding) -> Value:
    row = encoding.placement(slot, form.mnemonic, name)
    if row is None:
        raise _Unfit(f"no source documents where {name} is encoded")
    number = view.number(slot, row.field) >> row.low & ((1 << row.bits) - 1)
    value = row.value(number)
    if value is None:
        raise _Unfit(f"{name} {number:#x} is unknown")
    return value


def _switches(form: Form, slot: Slot, view: _View, encoding: Encoding) -> tuple[tuple[str, Value], ...]:
    values: dict[str, Value] = {}
    # Those that say whether others apply come first.
    for switch in sorted(form.switches, key=lambda switch: switch.only_if is not None):
        if switch.needs is not None and switch.needs not in encoding.dialect.features:
            continue
        if switch.only_if is not None and values.get(switch.only_if[0]) != switch.only_if[1]:
            continue
        values[switch.name] = value = _item(form, slot, switch.name, view, encoding)
        if value not in _legal(switch, encoding):
            raise _Unfit(f"{switch.name} {value} is not legal")
    for name, wanted in form.implied:
        if values.get(name, wanted) != wanted:
            raise _Unfit(f"{name} is not {wanted}")
    return tuple((switch.name, values[switch.name]) for switch in form.switches if switch.name in values)


def _legal(switch: Switch, encoding: Encoding) -> tuple[Value, ...]:
    if switch.rounding is not None:
        return encoding.dialect.roundings[switch.rounding]
    words = tuple(value for value, _ in switch.words)
    if not words:
        return switch.numbers
    return words if switch.default is None else (*words, switch.default)  # a default may have no word


def _operand(spec: OperandSpec, form: Form, kind: str | None, slot: Slot, view: _View, encoding: Encoding) -> Operand:
    if spec.role == ZERO_POINT:
        return Special(spec.accepts[0])
    if not is_encoded(spec):
        name = encoding.dialect.tensor_registers[spec.accepts[0][1:]]  # S30 or LD_PARTIAL_REG
        return Register(File(name[0]), int(name[1:])) if name[1:].isdecimal() else Special(name)
    if names_hardware(spec.accepts, encoding):
        return Special(str(_item(form, slot, HARDWARE, view, encoding)))
    if encoding.placement(slot, form.mnemonic, spec.role) is None:
        return _from_code(spec, kind, slot, view, encoding)
    number = int(_item(form, slot, spec.role, view, encoding))
    if "mask" in spec.accepts:
        return DimensionMask(number)
    if spec.limit is not None and number > spec.limit:
        raise _Unfit(f"{spec.role} {number} is not legal")
    return Immediate(number)


def _from_code(spec: OperandSpec, kind: str | None, slot: Slot, view: _View, encoding: Encoding) -> Operand:
    code = view.number(slot, field_of(spec.role, slot))
    if "imm" in spec.accepts:
        if code == encoding.immediate_code:
            return Immediate(view.number(None, "immediate"))
        if code in encoding.short.codes[: encoding.short.count(kind)]:
            return Immediate(encoding.short.codes.index(code))
    for name in spec.accepts:
        if name in encoding.specials:
            file, index = encoding.specials[name]
            if encoding.files(slot).get(file, -1 - index) + index == code:
                return Special(name)
        elif name in File.__members__:
            whole, step = GROUPED.get(File(name), (File(name), 1))
            first = encoding.files(slot).get(whole)
            last = encoding.dialect.registers[whole] - step
            if first is not None and 0 <= code - first <= last and (code - first) % step == 0:
                return Register(File(name), code - first)
    raise _Unfit(f"{spec.role} {code:#x} is not one of {', '.join(spec.accepts)}")


def _predicate(form: Form, slot: Slot, view: _View, encoding: Encoding) -> Predicate | None:
    number, inverted = view.number(slot, "predicate"), bool(view.number(slot, "polarity"))
    if form.predication is Predication.NONE or (number == 0 and not inverted):
        return None
    index = number & ((1 << PREDICATE_INDEX_BITS) - 1)
    file = File.VP if number >> PREDICATE_INDEX_BITS else File.SP
    vectors = form.predication is Predication.VECTOR or form.vector_predicate in encoding.dialect.features
    if (file is File.VP and not vectors) or index >= encoding.dialect.registers[file]:
        raise _Unfit(f"predicate {file}{index} is not legal")
    return Predicate(Register(file, index), inverted)
