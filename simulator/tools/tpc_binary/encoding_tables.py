"""The numbers of a binary encoding, from the target description.

This module contains no positions or codes: `encoding_of` builds an `Encoding` from the tables of a target. The tables
follow docs/reference/tpc.md section 8: bit positions per layout, opcodes per slot, and the position of each operand
and switch.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property

from castsim.isa.dataclass import dataclass
from castsim.isa.errors import IllegalError, TargetDataError
from castsim.isa.tpc.forms import Dialect, Feature, Form, OperandSpec, ShortImmediates, Value
from castsim.isa.tpc.instructions import opcodes
from castsim.isa.tpc.program import (
    GROUPED,
    DimensionMask,
    File,
    Immediate,
    LabelUse,
    LoopComparison,
    Operand,
    Register,
    Slot,
    Special,
    TpcInstruction,
)
from castsim.targets.description import Status
from castsim.targets.vliw import PlacementRow, VliwTarget

NOP = "nop"
LOOP = "loop"
PREDICATE_INDEX_BITS = 4
"""The bits of a predicate's register number; the bit above them marks a VP."""
_BYTE = 8


@dataclass(frozen=True, slots=True)
class FieldBits:
    """The position of a field: its bits from `low` on are the `bits` bits from `start` on of the bundle."""

    start: int
    low: int
    bits: int


@dataclass(frozen=True, slots=True)
class Layout:
    """Field positions of one kind of bundle; bit 0 is the lowest bit of byte 0.

    `fields` are keyed by owner and name; an owner is a slot in lower case, `shared` (LOAD and STORE) or `all`.
    """

    name: str
    size_bytes: int
    fields: Mapping[tuple[str, str], tuple[FieldBits, ...]]

    def parts(self, slot: Slot | None, field: str) -> tuple[FieldBits, ...]:
        """Return the bits of a field that a slot uses (None: the bundle as a whole); empty if it has none."""
        owners = ["all"] if slot is None else [slot.name.lower(), "all"]
        if slot in (Slot.LOAD, Slot.STORE):
            owners.insert(1, "shared")
        return next((self.fields[owner, field] for owner in owners if (owner, field) in self.fields), ())

    def slots(self) -> tuple[Slot, ...]:
        """Return the slots of this layout."""
        return tuple(slot for slot in Slot if (slot.name.lower(), "opcode") in self.fields)

    def named(self, mask: int) -> tuple[str, ...]:
        """Return the fields under some bits of a mask, such as `vpu.src_b`; `unused bits` for the others."""
        names = []
        for (owner, field), parts in self.fields.items():
            under = sum(((1 << part.bits) - 1) << part.start for part in parts)
            if mask & under:
                names.append(f"{owner}.{field}")
        every = (part for parts in self.fields.values() for part in parts)
        everything = sum(1 << bit for bit in {part.start + bit for part in every for bit in range(part.bits)})
        return (*names, "unused bits") if mask & ~everything else tuple(names)

    @property
    def size_bits(self) -> int:
        """The size of the bundle."""
        return self.size_bytes * _BYTE


@dataclass(frozen=True, slots=True)
class CompressedLayout:
    """A compressed layout, under its name in the directive `.compressed`."""

    name: str
    layout: Layout


@dataclass(frozen=True, slots=True)
class ItemPlacement:
    """The position of an operand, a switch or another property (`item`) of some instructions.

    `bits` bits of `field` from bit `low`; `codes` maps values to numbers (None: the number itself). `assumed` tells
    that no source states the position or the numbers.
    """

    slots: tuple[Slot, ...]
    mnemonics: tuple[str, ...]
    item: str
    field: str
    low: int
    bits: int
    codes: Mapping[str, int] | None
    assumed: bool

    def number(self, value: Value) -> int | None:
        """Return the number of a value; None if there is none."""
        if self.codes is None:
            return int(value)
        return self.codes.get(str(value))

    def value(self, number: int) -> Value | None:
        """Return the value of a number; None if there is none."""
        if self.codes is None:
            return number
        word = next((value for value, code in self.codes.items() if code == number), None)
        return int(word) if word is not None and word.isdecimal() else word


@dataclass(frozen=True)
class Encoding:
    """The data that the assembler and the disassembler of one generation need.

    `halves` are in the order of their compression type. `files` maps whether the slot is SPU to the first code of each
    register file; `specials` maps named registers to their number in a file, `hardware_registers` others to a separate
    code; `machines` are the ELF machine numbers to accept.
    """

    dialect: Dialect
    bundle: Layout
    loop: Layout
    halves: tuple[CompressedLayout, ...]
    opcodes: Mapping[tuple[Slot, str], int]
    placements: tuple[ItemPlacement, ...]
    scalar_files: Mapping[File, int]
    vector_files: Mapping[File, int]
    specials: Mapping[str, tuple[File, int]]
    hardware_registers: Mapping[str, int]
    immediate_code: int
    short: ShortImmediates
    machines: tuple[int, ...]

    @cached_property
    def _by_item(self) -> dict[tuple[Slot, str, str], ItemPlacement | None]:
        return {}

    def placement(self, slot: Slot, mnemonic: str, item: str) -> ItemPlacement | None:
        """Return the placement of an item of an instruction; None if the tables lack it."""
        key = slot, mnemonic, item
        if key not in self._by_item:
            self._by_item[key] = next(
                (
                    row
                    for row in self.placements
                    if row.item == item and slot in row.slots and (mnemonic in row.mnemonics or "*" in row.mnemonics)
                ),
                None,
            )
        return self._by_item[key]

    @cached_property
    def mnemonics(self) -> Mapping[tuple[Slot, int], tuple[str, ...]]:
        """The mnemonics of an opcode in a slot, including instructions that castsim does not model."""
        names: dict[tuple[Slot, int], tuple[str, ...]] = {}
        for (slot, mnemonic), opcode in self.opcodes.items():
            names[slot, opcode] = (*names.get((slot, opcode), ()), mnemonic)
        return names

    def files(self, slot: Slot) -> Mapping[File, int]:
        """Return the first code of each register file in the operand fields of a slot."""
        return self.scalar_files if slot is Slot.SPU else self.vector_files

    @property
    def unit_bytes(self) -> int:
        """The step of program addresses: a full bundle, or a compressed pair."""
        return self.bundle.size_bytes


# The field contents of an instruction in its slot: one number per operand, switch and derived property.
#
# The encoder writes these numbers, the decoder looks for the form whose numbers are found. Source:
# docs/reference/tpc.md section 8.

ZERO_POINT = "zp"
HARDWARE = "hardware_register"
IMMEDIATE = "immediate"


@dataclass(frozen=True, slots=True)
class FieldContent:
    """A number in bits `low` .. `low + bits - 1` of a field; `bits` None is the whole field.

    `immediate` is the 32-bit immediate of the number; for `assumed` see `ItemPlacement`.
    """

    item: str
    field: str
    low: int
    bits: int | None
    number: int
    immediate: int | None = None
    assumed: bool = False


def derived(form: Form, encoding: Encoding) -> dict[str, Value]:
    """Return the properties of a form that follow from its operands and have separate fields."""
    values: dict[str, Value] = {"variant": form.mnemonic}
    roles = {spec.role: spec.accepts for spec in form.operands}
    if "tensor" in roles:
        values["tensor_register"] = int("imm" not in roles["tensor"])
    if form.drops_type and roles.get("dest") in (("SP",), ("VP",)):
        values["boolean"] = "b"
        if roles["dest"] == ("VP",) and "imm" in roles["src_a"] and "section" not in roles:
            values["all_sections"] = 1
    for role in ("dest", "src_a"):
        if names_hardware(roles.get(role, ()), encoding):
            values |= {"hardware_move": 1, "to_hardware": int(role == "dest")}
    return values


def names_hardware(accepts: tuple[str, ...], encoding: Encoding) -> bool:
    """Return whether an operand is a register with a special kind of code."""
    return any(name in encoding.hardware_registers for name in accepts)


def field_of(role: str, slot: Slot) -> str:
    """Return the field of an operand code; in the STORE slot, destinations use the field of values."""
    return "src_c" if slot is Slot.STORE and role == "dest" else role


def is_encoded(spec: OperandSpec) -> bool:
    """Return whether an operand has bits; range and merge registers and the zero points follow from switches."""
    return spec.dialect_role is None and spec.role != ZERO_POINT


def pieces(instruction: TpcInstruction, slot: Slot, encoding: Encoding) -> Iterator[FieldContent]:
    """Yield all numbers of an instruction except opcode and predicate; labels must be resolved.

    Raises:
        IllegalError: an operand or switch value has no published code, or none in this slot.
    """
    form = instruction.form
    for spec, operand in instruction.specified:
        if is_encoded(spec):
            yield _operand(instruction, spec, operand, slot, encoding)
    for name, value in (("type", instruction.type), *instruction.switches):
        if value is not None:
            row = encoding.placement(slot, form.mnemonic, name)
            if row is None:
                raise IllegalError(f"{form.mnemonic}: no source shows where {name} is encoded", span=instruction.span)
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
        message = f"{instruction.mnemonic}: no source documents a code for {operand} in the {slot.name} slot"
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
    if isinstance(operand, LoopComparison):
        return operand.sign
    assert not isinstance(operand, LabelUse), "labels are resolved before"
    return str(operand)


# Construction of a target's encoding from its description.

_SPLIT = re.compile(r"(\w+)\[(\d+):(\d+)\]")
_REGISTER = re.compile(r"([A-Z]+)(\d+)")


def encoding_of(target: VliwTarget) -> Encoding:
    """Return the tables for the assembler and disassembler of a target.

    Raises:
        TargetDataError: the description names a layout, slot, register file or code table that it lacks.
    """
    codes = target.encoding
    _check_features(target)
    size = codes.bundle_bytes
    tables: dict[str, Mapping[str, int]] = {
        "types": codes.types,
        "comparisons": codes.comparisons,
        "hardware_registers": codes.hardware_registers,
        "rounding": {word: mode.code for word, mode in target.convert_rounding.modes.items()},
        "integer_rounding": {word: mode.code for word, mode in target.integer_rounding.modes.items()},
    }
    return Encoding(
        dialect=target.dialect,
        bundle=_layout(target, codes.bundle, size),
        loop=_layout(target, codes.loop, size),
        halves=tuple(CompressedLayout(half.name, _layout(target, half.layout, size // 2)) for half in codes.halves),
        opcodes=opcodes(),
        placements=tuple(
            _placement(target, row, tables) for row in target.placements if row.variant in (None, *codes.variants)
        ),
        scalar_files=codes.scalar_files,
        vector_files=codes.vector_files,
        specials={name: _numbered(text) for name, text in codes.specials.items()},
        hardware_registers=codes.hardware_registers,
        immediate_code=codes.immediate,
        short=codes.short,
        machines=target.object_files.machines,
    )


def _check_features(target: VliwTarget) -> None:
    """Reject tables that contradict the list of features."""
    codes = target.encoding
    for feature, given in (
        (Feature.COMPRESSED_BUNDLES, bool(codes.halves)),
        (Feature.SHORT_IMMEDIATES, codes.short_immediates is not None),
    ):
        if target.features.has[feature] != given:
            verb = "has" if given else "lacks"
            raise TargetDataError(f"{target.name}: encoding {verb} {feature}, unlike features.has")


def _layout(target: VliwTarget, name: str, size_bytes: int) -> Layout:
    fields: dict[tuple[str, str], tuple[FieldBits, ...]] = {}
    for row in target.encoding_fields:
        if row.layout == name and row.variant in (None, *target.encoding.variants):
            split = _SPLIT.fullmatch(row.field)
            field, low = (split[1], int(split[3])) if split else (row.field, 0)
            part = FieldBits(row.start_bit, low, row.size_bits)
            fields[row.slot, field] = (*fields.get((row.slot, field), ()), part)
    if not fields:
        legal = dict.fromkeys(row.layout for row in target.encoding_fields)
        raise TargetDataError(f"{target.name}: encoding names layout '{name}', which has no fields", legal=legal)
    return Layout(name, size_bytes, fields)


def _slot(target: VliwTarget, word: str) -> Slot:
    try:
        return Slot[word.upper()]
    except KeyError:
        legal = [slot.name.lower() for slot in Slot]
        raise TargetDataError(f"{target.name}: the encoding tables name a slot '{word}'", legal=legal) from None


def _placement(target: VliwTarget, row: PlacementRow, tables: Mapping[str, Mapping[str, int]]) -> ItemPlacement:
    codes = row.codes
    if isinstance(codes, str):
        if codes not in tables:
            raise TargetDataError(f"{target.name}: placements: {row.item} names codes '{codes}'", legal=tables)
        codes = dict(tables[codes])
    return ItemPlacement(
        slots=tuple(_slot(target, word) for word in row.slots),
        mnemonics=row.mnemonics,
        item=row.item,
        field=row.field,
        low=row.low,
        bits=row.bits,
        codes=codes,
        assumed=row.status is Status.ASSUMED,
    )


def _numbered(text: str) -> tuple[File, int]:
    match = _REGISTER.fullmatch(text)
    assert match is not None
    return File(match[1]), int(match[2])
