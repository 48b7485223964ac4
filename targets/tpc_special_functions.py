"""The special functions of TPC-C: arithmetic of the vendor's library, its look-up tables, and tensor descriptors.

Sources: the vendor's document `tpc_builtin_support` (names and signatures), docs/reference/tpc.md section 3.1.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import BeforeValidator, Field

from castsim.isa.tpc import Feature
from castsim.targets.description import Listed, Status, Table
from castsim.targets.tpc_compiler import csv_rows
from castsim.targets.vliw import VliwTarget

PREFIX = "__builtin_"


class FunctionKind(StrEnum):
    """Where the values of a special function come from."""

    SEQUENCE = "sequence"
    """Published instructions alone."""
    TABLE = "table"
    """Instructions that read look-up tables whose contents are not public."""
    UNPUBLISHED = "unpublished"
    """Neither instructions nor number formats are public."""
    DESCRIPTOR = "descriptor"
    """A word of a tensor's descriptor."""


def _yes(cell: object) -> object:
    return {"yes": True, "no": False}.get(str(cell), cell)


def _number(cell: object) -> object:
    return int(cell, 0) if isinstance(cell, str) and cell else None if cell == "" else cell


Number = Annotated[int, BeforeValidator(_number)]
"""Decimal or hexadecimal digits."""


class SpecialFunction(Table):
    """A builtin that is not a cast.

    `published` says that the vendor's table of builtins has it; the others are functions of the library that those are
    built from. `operations` counts the instructions of a call on gaudi2, copies of registers in the LOAD slot aside.
    """

    builtin: str
    signature: str
    published: Annotated[bool, BeforeValidator(_yes)]
    generations: Listed
    kind: FunctionKind
    tables: Listed
    operations: Annotated[int | None, BeforeValidator(_number)]
    accuracy: str
    status: Status

    @property
    def name(self) -> str:
        """The name in the vendor's library."""
        return self.builtin.removeprefix(PREFIX)


class FunctionTable(Table):
    """A look-up table of the vendor's library: its entries, each of c0, c1 and c2, and its function ids."""

    columns: ClassVar[int] = 3
    """Values of an entry."""

    table: str
    entries: Annotated[Number, Field(gt=0)]
    goya: Number
    later: Number
    status: Status
    source: str

    def function(self, target: VliwTarget) -> int:
        """Return the function id on a target."""
        return self.later if Feature.TYPED_LOOKUP in target.dialect.features else self.goya


class Descriptors(Table):
    """Where the descriptors of tensors lie in the configuration space of a generation; all in bytes."""

    generation: str
    base: Number
    descriptor_bytes: Number
    dimension_bytes: Number
    status: Status
    source: str


def library_functions() -> tuple[SpecialFunction, ...]:
    """Return all special functions."""
    return csv_rows("tpc_special_functions.csv", SpecialFunction)


def special_functions() -> tuple[SpecialFunction, ...]:
    """Return those of the vendor's table of builtins, which gives them for no particular generation."""
    return tuple(row for row in library_functions() if row.published)


def function_tables() -> tuple[FunctionTable, ...]:
    """Return the look-up tables of the functions."""
    return csv_rows("tpc_function_tables.csv", FunctionTable)


def descriptors_of(target: VliwTarget) -> Descriptors | None:
    """Return where a target has its descriptors; None if no source says."""
    rows = csv_rows("tpc_descriptors.csv", Descriptors)
    return next((row for row in rows if row.generation in target.architectures), None)
