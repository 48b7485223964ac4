"""The numbers of a binary encoding, as the target description gives them.

Nothing here knows a position or a code: a target makes an `Encoding` from its tables (`castsim.targets.tpc_encoding`).
The tables follow docs/reference/tpc.md section 8: bit positions per layout, opcodes per slot, and where each operand
and switch stands.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from castsim.isa.tpc.dialect import Dialect
from castsim.isa.tpc.forms import Value
from castsim.isa.tpc.program import File, Slot

NOP = "nop"
LOOP = "loop"
PREDICATE_INDEX_BITS = 4
"""Bits of a predicate's register number; the bit above them says that it is a VP."""
_BYTE = 8


@dataclass(frozen=True, slots=True)
class FieldBits:
    """Bits `low` .. of a field stand at bit `start` of the bundle, `bits` of them."""

    start: int
    low: int
    bits: int


@dataclass(frozen=True, slots=True)
class Layout:
    """The places of the fields of one kind of bundle; bit 0 is the lowest bit of byte 0.

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
        """Return the slots that this layout holds."""
        return tuple(slot for slot in Slot if (slot.name.lower(), "opcode") in self.fields)

    def named(self, mask: int) -> tuple[str, ...]:
        """Return the fields that lie under some bits of a mask, as `vpu.src_b`; `unused bits` for the others."""
        found = []
        for (owner, field), parts in self.fields.items():
            under = sum(((1 << part.bits) - 1) << part.start for part in parts)
            if mask & under:
                found.append(f"{owner}.{field}")
        everything = sum(1 << bit for bit in self._covered())
        return (*found, "unused bits") if mask & ~everything else tuple(found)

    def _covered(self) -> set[int]:
        return {
            bit for parts in self.fields.values() for part in parts for bit in range(part.start, part.start + part.bits)
        }

    @property
    def size_bits(self) -> int:
        """The size of the bundle."""
        return self.size_bytes * _BYTE


@dataclass(frozen=True, slots=True)
class CompressedLayout:
    """A compressed layout, under the name it has in the directive `.compressed`."""

    name: str
    layout: Layout


@dataclass(frozen=True, slots=True)
class ItemPlacement:
    """The place of an operand, a switch or another property (`item`) of some instructions.

    `bits` bits of `field` from bit `low`; `codes` maps values to numbers (None: the number itself). `assumed` says that
    no source states the position or the numbers.
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
        """Return the number that stands for a value, None if there is none."""
        if self.codes is None:
            return int(value)
        return self.codes.get(str(value))

    def value(self, number: int) -> Value | None:
        """Return the value that a number stands for, None if there is none."""
        if self.codes is None:
            return number
        found = next((value for value, code in self.codes.items() if code == number), None)
        return int(found) if found is not None and found.isdecimal() else found


@dataclass(frozen=True)
class Encoding:
    """Everything the assembler and the disassembler of one generation need to know.

    `halves` stand in the order of their compression type. `files` maps whether the slot is SPU to the first code of
    each register file; `specials` maps named registers to the number they have in a file, `hardware_registers` others
    to a code of their own; `short_codes` are the codes that stand for the immediates 0, 1, .. inside an SPU operand.
    `machines` are the ELF machine numbers to accept.
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
    short_codes: range
    machines: tuple[int, ...]

    @cached_property
    def _by_item(self) -> dict[tuple[Slot, str, str], ItemPlacement | None]:
        return {}

    def placement(self, slot: Slot, mnemonic: str, item: str) -> ItemPlacement | None:
        """Return the placement of an item of an instruction; None if the tables have none."""
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
        """The mnemonics of an opcode in a slot, those of instructions that castsim does not model included."""
        found: dict[tuple[Slot, int], tuple[str, ...]] = {}
        for (slot, mnemonic), opcode in self.opcodes.items():
            found[slot, opcode] = (*found.get((slot, opcode), ()), mnemonic)
        return found

    def files(self, slot: Slot) -> Mapping[File, int]:
        """Return the first code of each register file in the operand fields of a slot."""
        return self.scalar_files if slot is Slot.SPU else self.vector_files

    @property
    def unit_bytes(self) -> int:
        """The step of program addresses: a full bundle, or a compressed pair."""
        return self.bundle.size_bytes
