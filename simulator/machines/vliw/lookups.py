"""Values of the LOOKUP family (docs/reference/tpc.md section 5.5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from castsim.isa.codes import Codes
from castsim.isa.errors import IllegalError
from castsim.isa.formats import FORMATS
from castsim.isa.tpc import Feature, Register, TableDeclaration, TpcInstruction
from castsim.isa.tpc.program import WORD_BITS
from castsim.machines.vliw.semantics import Effects, OperandValues, State, Value, Vector
from castsim.machines.vliw.semantics.registers import plain_registers
from castsim.machines.vliw.semantics.special_results import UnstatedError
from castsim.machines.vliw.tables import Tables, function_of
from castsim.numerics import code_dtype
from castsim.targets.vliw import VliwTarget

_HALVED_ENTRIES = 64
"""Entries of the tables of which `upper_half` names the second half."""


@dataclass(frozen=True, slots=True)
class _Reading:
    """What a type word means: bits of an entry's value, bits of a lane, and of several parts the one read."""

    entry_bits: int
    lane_bits: int
    part: int = 0
    parts: int = 1


_BY_WIDTH = {"bv32": _Reading(32, 32), "bv16": _Reading(16, 16)}
_BY_PART = {
    "bv32": _Reading(32, 32),
    **{f"bv16_{name}": _Reading(32, 16, part, 2) for part, name in enumerate(("low", "high"))},
    **{f"bv8_{part}": _Reading(32, 8, part, 4) for part in range(4)},
}
_BYTES = {f"bv8_{part}": _Reading(16, 8, part, 2) for part in range(2)}

_FIRST = {"lookup": (0, 1), "lookup_c0": (0, 1), "lookup_1c": (0, 1), "lookup_c1c2": (1, 2), "lookup_2c": (1, 2)}
"""The first value of a whole entry that a mnemonic takes, and how many."""


@dataclass(frozen=True, slots=True)
class _Layout:
    """How entries lie in a tensor: values of an entry, bits of a value, entries of a line, bytes of a line."""

    values: int
    bits: int
    per_line: int
    line_bytes: int


_WHOLE = _Layout(3, 32, 10, 128)
_LAYOUTS = {
    ("lookup", "bv32"): _Layout(1, 32, 1, 4),
    ("lookup_1c", "bv32"): _WHOLE,
    ("lookup_2c", "bv32"): _WHOLE,
    ("lookup_2c", "bv16"): _Layout(2, 16, 1, 4),
}
_MOST_ENTRIES, _TABLE_BYTES = 256, 256
"""Entries of the largest tables, and bytes that the number of a table counts."""


@dataclass(frozen=True, slots=True)
class Lookup:
    """A look-up ready to run."""

    instruction: TpcInstruction
    target: VliwTarget
    tables: Tables
    reading: _Reading

    def __call__(self, operands: OperandValues, state: State) -> Effects:
        """Return the values of the entries that the lanes name.

        Raises:
            ReadError: the table is not declared.
            IllegalError: it has not the entries that the look-up reads; a lane names none of them.
        """
        bound = self._bound(operands, state)
        table = self._table(operands) if bound is None else bound[0]
        indices = operands.sources["src_a"]
        assert isinstance(indices, np.ndarray)
        entries = self._entries(table, indices.view(np.uint8))
        codes = self.tables.codes.get(table.name) if bound is None else bound[1]
        if codes is None:
            raise IllegalError(f"table {table.name} has no values in this run", legal=(f"--in {table.name}=FILE.npy",))
        first, count = columns_of(self.instruction, table)
        found = [self._placed(codes[:, first + k], entries, k, operands) for k in range(count)]
        result: Value = tuple(found) if count > 1 else found[0]
        return Effects(result)

    def registers(self) -> Mapping[str, tuple[Register, ...]]:
        """Return the registers that the operands stand for."""
        return plain_registers(self.instruction, self.target)

    def _table(self, operands: OperandValues) -> TableDeclaration:
        function = function_of(self.instruction)
        if function is not None:
            return self.tables.find(function, by_pointer=False)
        held = operands.sources["src_b"]
        assert isinstance(held, int)
        table = self.tables.find(held, by_pointer=True)
        check_use(self.instruction, table, self.reading)
        return table

    def _bound(self, operands: OperandValues, state: State) -> tuple[TableDeclaration, Codes] | None:
        """Return the table that a program has made of a tensor; None if it is declared, or no base is set.

        The register holds the number of the table, in units of 256 bytes, over two bits that say how many entries the
        tables of its group have. Source: docs/reference/tpc.md section 5.5.

        Raises:
            TileError: the table lies in no tensor. UnstatedError: no source states how its entries lie there.
        """
        held = operands.sources.get("src_b")
        if function_of(self.instruction) is not None or not isinstance(held, int) or self.tables.memory is None:
            return None
        entries = _MOST_ENTRIES >> (held & 3)
        low, high = (state.configuration.get(f"table_base_{entries}_{half}", 0) for half in ("low", "high"))
        if (True, held) in self.tables.declared or not low | high:
            return None
        where = (high << WORD_BITS | low) + _TABLE_BYTES * (held >> 2)
        layout = _LAYOUTS.get((self.instruction.mnemonic, str(self.instruction.switch("entries"))))
        if layout is None:
            what = f"{self.instruction.mnemonic} {str(self.instruction.switch('entries')).upper()}"
            message = f"no source states how entries of {what} lie in a tensor"
            raise UnstatedError(message, span=self.instruction.span, legal=("a declared table",))
        lines = -(-entries // layout.per_line)
        data = self.tables.memory(where, lines * layout.line_bytes, self.instruction.span)
        words = data.view(f"<u{layout.bits // 8}").reshape(lines, -1)[:, : layout.per_line * layout.values]
        codes = words.reshape(-1, layout.values)[:entries]
        shape = (layout.values, entries)
        return TableDeclaration(f"{where:#x}", True, held, f"u{layout.bits}", shape, None), codes

    def _entries(self, table: TableDeclaration, indices: Vector) -> NDArray[np.int64]:
        """Return the entry of every lane that is read."""
        reading = self.reading
        lanes = indices.view(f"<u{reading.lane_bits // 8}")[reading.part :: reading.parts].astype(np.int64)
        halved = self.instruction.switch("upper_half") == 1
        size = table.entries // 2 if halved else table.entries
        beyond = lanes >= size
        if beyond.any() and self.target.option("lookup_beyond") == "refuse":
            lane = int(np.flatnonzero(beyond)[0])
            place = lane * reading.parts + reading.part
            message = f"lane {place} names entry {lanes[lane]} of table {table.name}, which has {size} here"
            raise IllegalError(f"{message} (option lookup_beyond)", legal=(f"0 .. {size - 1}",))
        lanes = lanes % size
        return lanes + size if halved else lanes

    def _placed(self, column: Codes, entries: NDArray[np.int64], number: int, operands: OperandValues) -> Vector:
        """Return a register with the values in the lanes that are written."""
        reading = self.reading
        lane = code_dtype(FORMATS[f"u{reading.lane_bits}"])
        values = (column[entries].astype(np.uint64) >> np.uint64(reading.part * reading.lane_bits)).astype(lane)
        if reading.parts == 1:
            return np.ascontiguousarray(values, lane.newbyteorder("<")).view(np.uint8)
        income = operands.income[number] if isinstance(operands.income, tuple) else operands.income
        assert isinstance(income, np.ndarray)
        result: Vector = income.view(np.uint8).copy()
        result.view(lane.newbyteorder("<"))[reading.part :: reading.parts] = values
        return result


def columns_of(instruction: TpcInstruction, table: TableDeclaration) -> tuple[int, int]:
    """Return the first value of an entry that a look-up reads, and how many; a table of fewer values is all of them."""
    first, count = _FIRST[instruction.mnemonic]
    return (0 if table.columns == count else first), count


def prepare_lookup(instruction: TpcInstruction, target: VliwTarget, tables: Tables) -> Lookup:
    """Check a look-up; against its table if the program declares any.

    Raises:
        UnstatedError: no source states what its words mean.
        IllegalError: the table has other entries.
        ReadError: tables are declared, and not this one.
    """
    reading = _reading(instruction, target)
    if instruction.switch("sbcd") == 1:
        raise UnstatedError("no source states what sbcd looks up", legal=(f"{instruction.mnemonic} without sbcd",))
    function = function_of(instruction)
    if tables.declared and function is not None:
        check_use(instruction, tables.find(function, by_pointer=False), reading)
    return Lookup(instruction, target, tables, reading)


def _reading(instruction: TpcInstruction, target: VliwTarget) -> _Reading:
    word = str(instruction.switch("entries"))
    if Feature.TYPED_LOOKUP not in target.dialect.features:
        return _BY_PART[word]
    if word in _BY_WIDTH:
        return _BY_WIDTH[word]
    if target.option("lookup_bytes") == "refuse":
        message = f"no source states what {word.upper()} takes from an entry (option lookup_bytes)"
        raise UnstatedError(message, legal=("BV32", "BV16"))
    return _BYTES[word]


def check_use(instruction: TpcInstruction, table: TableDeclaration, reading: _Reading) -> None:
    """Check a table against a look-up of it.

    Raises:
        IllegalError: values of another width, fewer values of an entry, `upper_half` of a table that has no halves.
    """
    what = f"{instruction.mnemonic} {str(instruction.switch('entries')).upper()}"
    bits = FORMATS[table.format].bits
    place = f"table {table.name} (line {table.span.line})"
    if bits != reading.entry_bits:
        legal = [name for name, fmt in FORMATS.items() if fmt.bits == reading.entry_bits and name in _NATIVE]
        message = f"{what} reads values of {reading.entry_bits} bits; {place} has {table.format}"
        raise IllegalError(message, legal=legal)
    first, count = _FIRST[instruction.mnemonic]
    whole = (count,) if bits < 32 or instruction.mnemonic == "lookup" else (count, first + count if first else 3)
    if table.columns not in whole:
        legal = [f"[{table.entries}]" if each == 1 else f"[{each}, {table.entries}]" for each in whole]
        message = f"{what} takes {count} of the values of an entry; {place} has {table.columns}"
        raise IllegalError(message, legal=legal)
    if instruction.switch("upper_half") == 1 and table.entries != _HALVED_ENTRIES:
        message = f"upper_half reads tables of {_HALVED_ENTRIES} entries; {place} has {table.entries}"
        raise IllegalError(message, legal=(f"{instruction.mnemonic} without upper_half",))


_NATIVE = ("f32", "i32", "u32", "bf16", "f16", "i16", "u16")
