"""The look-up tables that random texts declare, and operands of look-ups that name entries of them."""

from __future__ import annotations

import random
from dataclasses import dataclass

from castsim.isa.tpc import TpcInstruction

ENTRIES = 64
"""As many as `upper_half` asks for."""


@dataclass(frozen=True)
class Table:
    """A table; `number` counts the tables of its size."""

    number: int
    format: str
    columns: int

    def function(self, generation: str) -> int:
        """The function id: upper bits 2 are 64 entries, of 16 numbers on Goya and 128 later."""
        return 2 * (16 if generation == "goya" else 128) + self.number

    @property
    def pointer(self) -> int:
        """What the register of `lut_ptr` holds: four times the number, and 2 for 64 entries."""
        return 4 * self.number + 2


ONE, THREE, SHORT, PAIR = TABLES = (Table(0, "i32", 1), Table(1, "f32", 3), Table(2, "i16", 1), Table(3, "bf16", 2))


def declarations(generation: str, rng: random.Random) -> list[str]:
    """The lines that declare the tables, with random contents."""
    found = []
    for table in TABLES[:2] if generation == "goya" else TABLES:
        bits = 16 if table in (SHORT, PAIR) else 32
        values = ", ".join(f"{rng.getrandbits(bits):#x}" for _ in range(ENTRIES * table.columns))
        shape = f"[{ENTRIES}]" if table.columns == 1 else f"[{table.columns}, {ENTRIES}]"
        found.append(
            f"// castsim: table t{table.number} {table.function(generation)} {table.format} {shape} = {values}"
        )
        if generation in ("greco", "gaudi2"):
            found.append(f"// castsim: table p{table.number} lut_ptr {table.pointer} {table.format} {shape} = {values}")
    return found


def table_of(instruction: TpcInstruction, generation: str) -> Table:
    """A table that a look-up may read."""
    one = instruction.mnemonic in ("lookup", "lookup_1c", "lookup_c0")
    if generation != "goya" and instruction.switch("entries") == "bv16":
        return SHORT if one else PAIR
    return ONE if one else THREE


def index_mask(instruction: TpcInstruction) -> int:
    """What leaves of every lane the number of an entry, of half a table at most."""
    word = str(instruction.switch("entries"))
    return 0x1F if word == "bv32" else 0x001F001F if word.startswith("bv16") else 0x1F1F1F1F


__all__ = ["declarations", "index_mask", "table_of"]
