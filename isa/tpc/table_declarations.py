"""Look-up tables that a program declares: their form, and the sizes that function ids stand for.

Source: docs/reference/tpc.md section 5.5 (function ids, entries, layouts); the form of the declaration is castsim's.
"""

from __future__ import annotations

import re
from math import prod

from castsim.isa.errors import ReadError
from castsim.isa.formats import FORMATS
from castsim.isa.tpc.dialect import Dialect, Feature
from castsim.isa.tpc.program import TableDeclaration

TABLE_FORM = "table NAME [lut_ptr] NUMBER FORMAT [ENTRIES] or [VALUES, ENTRIES], then = FILE or = NUMBER, .. if known"
"""The grammar in a line."""

TABLE = re.compile(
    r"(?P<name>[A-Za-z_]\w*)\s+(?P<pointer>lut_ptr\s+)?(?P<number>0[xX][0-9A-Fa-f]{1,8}|\d{1,9})"
    r"\s+(?P<format>[\w@]+)\s*\[(?P<shape>[^\]]*)\](?:\s*=\s*(?P<content>\S.*))?"
)
"""What follows the word `table`."""

_ENTRIES = (256, 128, 64, 64)
"""Entries by the upper two bits of a function id; gaudi and later number 128 tables of a group, goya 16."""

_POINTED = (256, 128, 64, 32)
"""Entries by the lower two bits of what the S register of `lut_ptr` holds."""

_NUMBERS, _GOYA_NUMBERS = 128, 16
_MOST_VALUES = 3


def entries_of(function: int, dialect: Dialect, *, by_pointer: bool) -> int:
    """Return how many entries the table of a function id has."""
    if by_pointer:
        return _POINTED[function & 3]
    numbers = _NUMBERS if Feature.TYPED_LOOKUP in dialect.features else _GOYA_NUMBERS
    return _ENTRIES[function // numbers]


def check_table(table: TableDeclaration, dialect: Dialect) -> None:
    """Check a declaration against what the generation can look up.

    Raises:
        ReadError: a function id that it lacks, a size or an element type that no look-up of it reads, more or fewer
            numbers than the declared size.
    """
    if table.by_pointer and Feature.LOOKUP_POINTER not in dialect.features:
        raise ReadError(
            f"{dialect.name} has no look-ups with lut_ptr", span=table.span, legal=("table NAME NUMBER ..",)
        )
    last = len(_ENTRIES) * (_NUMBERS if Feature.TYPED_LOOKUP in dialect.features else _GOYA_NUMBERS) - 1
    if not table.by_pointer and table.function > last:
        raise ReadError(f"function id {table.function} does not exist", span=table.span, legal=(f"0 .. {last}",))
    _check_format(table, dialect)
    _check_size(table, dialect)


def _check_format(table: TableDeclaration, dialect: Dialect) -> None:
    widths = {32, 16} if Feature.TYPED_LOOKUP in dialect.features else {32}
    if FORMATS[table.format].bits not in widths:
        legal = [name for name, fmt in FORMATS.items() if fmt.bits in widths and name in _types(dialect)]
        message = f"no look-up of {dialect.name} reads entries of {table.format}"
        raise ReadError(message, span=table.span, legal=legal)


def _types(dialect: Dialect) -> tuple[str, ...]:
    narrow = ("bf16", "f16", "i16", "u16") if Feature.TYPED_LOOKUP in dialect.features else ()
    return ("f32", "i32", "u32", *narrow)


def _check_size(table: TableDeclaration, dialect: Dialect) -> None:
    entries = entries_of(table.function, dialect, by_pointer=table.by_pointer)
    most = _MOST_VALUES if FORMATS[table.format].bits == 32 else _MOST_VALUES - 1
    legal = [f"[{entries}]", *(f"[{values}, {entries}]" for values in range(2, most + 1))]
    if len(table.shape) > 2 or table.columns > most or table.entries != entries:
        which = f"lut_ptr {table.function}" if table.by_pointer else f"function id {table.function}"
        shape = ", ".join(map(str, table.shape))
        message = f"the table of {which} has {entries} entries of 1 to {most} values of {table.format}, not [{shape}]"
        raise ReadError(message, span=table.span, legal=legal)
    if table.content is None or table.file is not None:
        return
    given = table.content.count(",") + 1
    if given != prod(table.shape):
        message = f"{table.name} is declared with {prod(table.shape)} values, {given} follow"
        raise ReadError(message, span=table.span, legal=("FILE.npy", "FILE.csv", f"{prod(table.shape)} numbers"))
