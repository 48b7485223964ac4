"""The look-up tables of a program: which are declared, and what they hold (docs/reference/tpc.md section 5.5)."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from math import prod
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from castsim.execution.input_data import read_array
from castsim.isa.codes import Codes
from castsim.isa.errors import ReadError, Span
from castsim.isa.formats import Format, IntFormat, format_named
from castsim.isa.tpc import Declaration, Immediate, TableDeclaration, TpcInstruction, TpcProgram
from castsim.numerics import abstract_policy, cast_codes, code_dtype, codes_from_array

LOOKUPS = ("lookup", "lookup_c0", "lookup_c1c2", "lookup_1c", "lookup_2c")
"""The mnemonics that read tables."""

MOST_BYTES = 1 << 20
"""Largest .csv file: a table has at most 768 numbers."""


@dataclass(frozen=True, slots=True)
class Tables:
    """The declared tables by `lut_ptr` or not and number; `codes` are their elements by name, shape (entries, values).

    A run without values has no codes. `memory` reads bytes of global memory, of which a program may make tables.
    """

    declared: Mapping[tuple[bool, int], TableDeclaration] = field(default_factory=dict)
    codes: Mapping[str, Codes] = field(default_factory=dict)
    memory: Callable[[int, int, Span], NDArray[np.uint8]] | None = None

    @classmethod
    def of(cls, declarations: Iterable[Declaration], codes: Mapping[str, Codes] | None = None) -> Tables:
        """Gather the tables among declarations; `codes` are elements by name in C order."""
        tables = [each for each in declarations if isinstance(each, TableDeclaration)]
        shaped = {
            each.name: (codes or {})[each.name].reshape(each.entries, each.columns)
            for each in tables
            if each.name in (codes or {})
        }
        return cls({(each.by_pointer, each.function): each for each in tables}, shaped)

    def find(self, number: int, *, by_pointer: bool) -> TableDeclaration:
        """Return the table of a function id, or of what the S register of `lut_ptr` holds.

        Raises:
            ReadError: it is not declared.
        """
        found = self.declared.get((by_pointer, number))
        if found is not None:
            return found
        which = f"lut_ptr {number}" if by_pointer else f"function id {number}"
        some = "lut_ptr " if by_pointer else ""
        legal = [f"{'lut_ptr ' if pointed else ''}{each} ({table.name})" for (pointed, each), table in self._sorted()]
        raise ReadError(
            f"no table is declared for {which}",
            legal=legal or (f"// castsim: table NAME {some}{number} FORMAT [ENTRIES]",),
        )

    def any(self) -> bool:
        """Whether a table has values: one of zeros is not known."""
        return any(codes.any() for codes in self.codes.values())

    def _sorted(self) -> list[tuple[tuple[bool, int], TableDeclaration]]:
        return sorted(self.declared.items(), key=lambda item: item[0])


NO_TABLES = Tables()
"""No declarations: look-ups are read, timed and not checked."""


def uses_tables(program: TpcProgram) -> bool:
    """Whether a program has look-ups: their cache takes most of the local vector memory."""
    return any(each is not None and each.mnemonic in LOOKUPS for bundle in program.bundles for each in bundle.slots)


def function_of(instruction: TpcInstruction) -> int | None:
    """Return the function id that stands in a look-up, None if an S register has it."""
    operand = instruction.operand("function")
    return operand.value if isinstance(operand, Immediate) else None


# ------------------------------------------------------------------------------------------------------- contents


def declared_codes(table: TableDeclaration, folder: Path) -> Codes | None:
    """Return the elements that a declaration gives, itself or by a file beside the program; None if it gives none.

    Raises:
        ReadError: a file that cannot be read, another number of elements, numbers that the format does not hold.
    """
    if table.content is None:
        return None
    fmt = format_named(table.format)
    try:
        if table.file is None:
            return _numbers(table.content.split(","), fmt)
        path = folder / table.file
        if table.file.endswith(".npy"):
            found = codes_from_array(np.asarray(read_array(path, table.name)), fmt).reshape(-1)
        else:
            found = _numbers(_cells(path), fmt)
        if found.size != prod(table.shape):
            shape = ", ".join(map(str, reversed(table.shape)))
            message = f"{table.file} holds {found.size} elements, table {table.name} {prod(table.shape)}"
            raise ReadError(message, legal=(f"an array of shape [{shape}]",))
        return found
    except ReadError as error:
        raise error.at(table.span) from None


def _cells(path: Path) -> list[str]:
    """Return the cells of a CSV file, row by row: a row is an entry."""
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)  # of a pipe or a device as well
        if len(data) > MOST_BYTES:
            raise ReadError(f"'{path}' has more than {MOST_BYTES} bytes", legal=("a .npy file",))
        text = data.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ReadError(f"cannot read '{path}': {getattr(error, 'strerror', None) or error}") from None
    return [cell for row in csv.reader(text.splitlines()) for cell in row if cell.strip()]


def _numbers(texts: Iterable[str], fmt: Format) -> Codes:
    """Return the codes of numbers: 0x.. is a code, anything else a number, rounded to nearest for floats."""
    return np.array([_code(text.strip(), fmt) for text in texts], code_dtype(fmt))


def _code(text: str, fmt: Format) -> int:
    try:
        if text.lower().startswith("0x"):
            code = int(text, 16)
            if code >> fmt.bits:
                raise ValueError
            return code
        if isinstance(fmt, IntFormat):
            number = int(text)
            if not fmt.minimum <= number <= fmt.maximum:
                raise ValueError
            return number & ((1 << fmt.bits) - 1)
        wide = format_named("f64")
        value = np.array([float(text)]).view("<u8")
        return int(cast_codes(value, wide, fmt, abstract_policy(wide, fmt))[0])
    except ValueError:
        legal = f"{fmt.minimum} .. {fmt.maximum}" if isinstance(fmt, IntFormat) else "numbers such as 0.5 or nan"
        codes = f"codes 0x0 .. {(1 << fmt.bits) - 1:#x}"
        raise ReadError(f"'{text[:40]}' is not a number of {fmt.name}", legal=(legal, codes)) from None
