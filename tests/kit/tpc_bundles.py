"""Random bundles that have an encoding, and bundles packed by hand, for the encoding tests."""

from __future__ import annotations

import random
import re
from functools import lru_cache

from kit.tpc_random_instructions import some_instruction
from kit.tpc_text import table, target

from castsim.isa.errors import IllegalError
from castsim.isa.tpc.forms import Form
from castsim.isa.tpc.instructions import FORMS, available
from castsim.isa.tpc.program import Bundle, LabelDefinition, Slot, TpcInstruction, TpcProgram
from castsim.tools.tpc_binary.assembler import assemble
from castsim.tools.tpc_binary.bundle_encoding import encode_bundle
from castsim.tools.tpc_binary.encoding_tables import CompressedLayout, Encoding, encoding_of

UNIT = 32
"""Bytes of a bundle or a compressed pair (docs/reference/tpc.md section 8)."""

_NOP = {"spu": 0x3F, "vpu": 0x3F, "load": 0x1F, "store": 0x1F}


@lru_cache
def encoding(generation: str) -> Encoding:
    return encoding_of(target(generation))


@lru_cache
def rows(generation: str) -> dict[Slot, list[Form]]:
    found = [form for form in FORMS if available(form, encoding(generation).dialect)]
    return {slot: [form for form in found if slot in form.slots] for slot in Slot}


def packed(layout: str, **numbers: int) -> bytes:
    """Pack fields bit by bit as the published table places them; `spu__src_a` is src_a of the SPU slot.

    Slots without an opcode are NOP; numbers of split fields are spread over their parts.
    """
    parts = [row for row in table("tpc_encoding_fields.csv") if row["layout"] == layout]
    assert parts
    size = 16 if "_128_" in layout else 32
    slots = {row["slot"] for row in parts if row["field"] == "opcode"}
    if not layout.endswith("loop"):
        numbers = {f"{slot}__opcode": _NOP[slot] for slot in slots} | numbers
    bits = ["0"] * (8 * size)
    for key, number in numbers.items():
        slot, field = key.split("__")
        owner = {"shared": "load+store"}.get(slot, slot)
        left = number
        for row in parts:
            name = re.fullmatch(r"(\w+)(?:\[\d+:(\d+)\])?", row["field"])
            assert name
            if row["slot"] == owner and name[1] == field:
                low, width = int(name[2] or 0), int(row["size_bits"]) + (row["notes"] == "7 bits on gaudi2")
                for bit in range(width):
                    bits[int(row["start_bit"]) + bit] = str(number >> (low + bit) & 1)
                left &= ~(((1 << width) - 1) << low)
        assert left == 0, (key, number)
    return bytes(int("".join(reversed(bits[start : start + 8])), 2) for start in range(0, len(bits), 8))


def padded(bundle: Bundle) -> TpcProgram:
    """The bundle in a program whose label `end` is three bundles behind it, a legal end for a loop."""
    return TpcProgram((), (bundle, Bundle(), Bundle(), LabelDefinition("end")))


def some_bundle(generation: str, source: random.Random, slots: tuple[Slot, ...] = tuple(Slot)) -> Bundle:
    """Instructions in random slots as they come: many such bundles have no encoding."""
    while True:
        found: dict[str, TpcInstruction] = {}
        for slot in slots:
            if source.random() < 0.55:
                form = source.choice(rows(generation)[slot])
                found[slot.name.lower()] = some_instruction(form, encoding(generation).dialect, source)
        if "spu" not in found or found["spu"].mnemonic != "loop" or len(found) == 1:
            return Bundle(**found)


def some_unit(generation: str, source: random.Random) -> bytes:
    """Return 32 bytes: a random bundle that has an encoding, or a compressed pair where the generation can."""
    tables = encoding(generation)
    while True:
        try:
            if tables.halves and source.random() < 0.3:
                return b"".join(_some_half(generation, source, source.choice(tables.halves)) for _ in range(2))
            return assemble(padded(some_bundle(generation, source)), tables).code[:UNIT]
        except IllegalError:
            continue


def _some_half(generation: str, source: random.Random, half: CompressedLayout) -> bytes:
    while True:
        bundle = some_bundle(generation, source, half.layout.slots())
        if bundle.spu is not None and bundle.spu.mnemonic in ("loop", "jmpr", "jmpa"):
            continue  # their labels are for whole programs
        try:
            return encode_bundle(bundle, encoding(generation), half)
        except IllegalError:
            continue
