"""Reading bundles: from bits to the instructions whose encoding they are.

For each slot the forms of the opcode's mnemonics are tried; a form fits if every field that it uses holds a legal
number. Of several the one that accounts for all bits of the slot is taken. What is read is encoded again: bits that
do not come back have no meaning here, and are named.
"""

from __future__ import annotations

from dataclasses import dataclass

from castsim.isa.errors import IllegalError
from castsim.isa.tpc.encoding import writer
from castsim.isa.tpc.encoding.tables import (
    HARDWARE,
    LOOP,
    NOP,
    PREDICATE_INDEX_BITS,
    ZERO_POINT,
    CompressedLayout,
    Encoding,
    Layout,
    derived,
    field_of,
    is_encoded,
    names_hardware,
    pieces,
)
from castsim.isa.tpc.encoding.writer import Sheet, encode_bundle, grouped
from castsim.isa.tpc.forms import Form, OperandSpec, Predication, Switch, Value
from castsim.isa.tpc.instructions import available, forms_of
from castsim.isa.tpc.program import (
    GROUPED,
    Bundle,
    DimensionMask,
    File,
    Immediate,
    Operand,
    Predicate,
    Register,
    Slot,
    Special,
    TpcInstruction,
)


class UnknownBundle(Exception):  # noqa: N818  an answer of the decoder, which prints it; no refusal of input
    """Bits that are not a bundle of this generation; the message says why."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """A bundle and the fields whose bits have no meaning in it (none: it encodes to the same bits).

    `half` is the compressed layout it was read from, None for a full bundle.
    """

    bundle: Bundle
    half: CompressedLayout | None
    leftover: tuple[str, ...]


def decode_bundle(code: bytes, encoding: Encoding) -> Decoded:
    """Decode one bundle of full or, if its lowest bit says so, compressed size.

    Raises:
        UnknownBundle: the bytes are not a bundle.
    """
    bits = int.from_bytes(code, "little")
    half = _half_of(bits, encoding)
    layout = encoding.bundle if half is None else half.layout
    if len(code) != layout.size_bytes:
        raise UnknownBundle(f"{len(code)} bytes are not a bundle of layout {layout.name}")
    view = _View(bits, layout)
    if half is None and view.number(Slot.SPU, "opcode") == encoding.opcodes[Slot.SPU, LOOP]:
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
        found = 0
        shown = self.bits & ~self.hidden
        for part in self.layout.parts(slot, field):
            found |= (shown >> part.start & ((1 << part.bits) - 1)) << part.low
        return found

    def without(self, mask: int) -> _View:
        return _View(self.bits, self.layout, self.hidden | mask)


class _Unfit(Exception):  # noqa: N818  never leaves this module
    """The reason why a form does not fit the bits."""


def _read_loop(view: _View, encoding: Encoding) -> Bundle:
    found = writer.read(lambda field: view.number(Slot.SPU, field), encoding)
    if isinstance(found, str):
        raise UnknownBundle(found)
    form, operands = found
    try:
        predicate = _predicate(form, Slot.SPU, view, encoding)
    except _Unfit as reason:
        raise UnknownBundle(f"loop: {reason}") from None
    return Bundle(spu=TpcInstruction(form, None, (), operands, predicate))


def _read_slots(view: _View, encoding: Encoding) -> Bundle:
    found: dict[Slot, TpcInstruction] = {}
    # The vector unit comes first: where its operands overlay those of another slot, they are hidden from it.
    for slot in (Slot.VPU, Slot.SPU, Slot.LOAD, Slot.STORE):
        if slot not in view.layout.slots():
            continue
        opcode = view.number(slot, "opcode")
        if opcode == encoding.opcodes[slot, NOP]:
            continue
        instruction = _read_slot(slot, opcode, view, encoding)
        found[slot] = instruction
        if slot is Slot.VPU:
            view = view.without(_operand_bits(instruction, slot, view.layout, encoding))
    return Bundle(*(found.get(slot) for slot in Slot))


def _operand_bits(instruction: TpcInstruction, slot: Slot, layout: Layout, encoding: Encoding) -> int:
    """Return the bits of the fields, but the immediate, that an instruction uses."""
    fields = {piece.field for piece in pieces(instruction, slot, encoding)} - {"immediate"}
    return sum(((1 << part.bits) - 1) << part.start for field in fields for part in layout.parts(slot, field))


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
        named = f" ({', '.join(mnemonics)}), which is not modelled here" if mnemonics else ""
        raise UnknownBundle(f"{where}{named} is not an instruction of {encoding.dialect.name}")
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
    """Whether the fields of the slot hold what the instruction puts there, and nothing else.

    A short immediate counts as the long one that it stands for.
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
    """Read the fields as a form says.

    Raises:
        _Unfit: they hold something that it does not take.
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
        raise _Unfit(f"no source says where {name} is encoded")
    number = view.number(slot, row.field) >> row.low & ((1 << row.bits) - 1)
    value = row.value(number)
    if value is None:
        raise _Unfit(f"{name} {number:#x} is unknown")
    return value


def _switches(form: Form, slot: Slot, view: _View, encoding: Encoding) -> tuple[tuple[str, Value], ...]:
    found: dict[str, Value] = {}
    # Those that say whether others apply come first.
    for switch in sorted(form.switches, key=lambda switch: switch.only_if is not None):
        if switch.needs is not None and switch.needs not in encoding.dialect.features:
            continue
        if switch.only_if is not None and found.get(switch.only_if[0]) != switch.only_if[1]:
            continue
        found[switch.name] = value = _item(form, slot, switch.name, view, encoding)
        if value not in _legal(switch, encoding):
            raise _Unfit(f"{switch.name} {value} is not legal")
    for name, wanted in form.implied:
        if found.get(name, wanted) != wanted:
            raise _Unfit(f"{name} is not {wanted}")
    return tuple((switch.name, found[switch.name]) for switch in form.switches if switch.name in found)


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
        return _provided(encoding.dialect.tensor_registers[spec.accepts[0][1:]])
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


def _provided(name: str) -> Operand:
    """Return the register that a generation provides for a role: `S30` or `LD_PARTIAL_REG`."""
    return Register(File(name[0]), int(name[1:])) if name[1:].isdecimal() else Special(name)


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
