"""Schema of binary encodings of bundles: codes, layouts, opcodes, placements.

Facts: docs/reference/tpc.md section 8.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from castsim.isa.tpc.program import File
from castsim.targets.cells import Listed
from castsim.targets.schema import Count, Fact, Status, Table, TargetHeader

Number = Annotated[int, Field(ge=0, strict=True)]


def _numbers(cell: Any) -> Any:
    """Turn the numbers of a `value=number;..` cell into integers; a name of a code table stays."""
    if isinstance(cell, Mapping):
        return {str(key): int(value) if str(value).isdecimal() else value for key, value in cell.items()}
    return cell


class ShortImmediates(Table):
    """Operand codes that stand for the immediates 0, 1, ..: the first code and how many there are."""

    first: Number
    count: Count


class HalfLayout(Table):
    """A compressed layout and the name it has in assembly; the position in the list is its compression type."""

    name: str
    layout: str


class EncodingCodes(Fact):
    """The numbers of operands, and which layouts of the table of fields the generation uses.

    `variants` switch on rows of the tables that only some generations have.
    """

    bundle_bytes: Count
    bundle: str
    loop: str
    halves: tuple[HalfLayout, ...]
    variants: tuple[str, ...]
    immediate: Number
    short_immediates: ShortImmediates | None = None
    vector_files: dict[File, Number]
    scalar_files: dict[File, Number]
    specials: dict[str, Annotated[str, Field(pattern=r"^[A-Z]+\d+$")]]
    """Named registers and the register number that stands for them."""
    hardware_registers: dict[str, Number]
    types: dict[str, Number]
    comparisons: dict[str, Number]


class ObjectFiles(Fact):
    """ELF files that hold programs."""

    machines: tuple[Number, ...]


class FieldRow(Table):
    """The place of a field, or of the bits of it in brackets, in a layout."""

    layout: str
    slot: str
    field: str
    start_bit: Number
    size_bits: Count
    variant: str | None


class OpcodeRow(Table):
    """The opcode of a mnemonic in a slot."""

    slot: str
    mnemonic: str
    opcode: Number


class PlacementRow(Table):
    """The place of an operand or switch: bits of a field; `codes` is a code table by name, or values and numbers."""

    slots: Listed
    mnemonics: Listed
    item: str
    field: str
    low: Number
    bits: Count
    codes: Annotated[str | dict[str, int] | None, BeforeValidator(_numbers)]
    variant: str | None
    status: Status


class EncodedHeader(TargetHeader):
    """The additional properties of a target with a binary encoding."""

    encoding: EncodingCodes
    object_files: ObjectFiles
    encoding_fields_fact: Fact
    encoding_fields: tuple[FieldRow, ...]
    opcodes_fact: Fact
    opcodes: tuple[OpcodeRow, ...]
    placements_fact: Fact
    placements: tuple[PlacementRow, ...]
