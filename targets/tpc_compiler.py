"""The TPC compiler's knowledge beyond the instruction set: vector types of C, chains of casts, the lowering matrix.

Sources: docs/reference/tpc.md section 4 (lowering of LLVM IR casts, from the compiler's tables and tests) and the
vendor's document `tpc_builtin_support` (types, promotion order, C-level casts). Each row of the first two tables has
its own status; the lowering matrix is the compiler's own table, documented as a whole.
"""

from __future__ import annotations

import csv
from enum import StrEnum
from functools import cache
from typing import Annotated, TypeVar

from pydantic import BeforeValidator, Field, TypeAdapter, ValidationError

from castsim.isa.errors import TargetDataError
from castsim.targets.csv_tables import SHIPPED
from castsim.targets.description import LIST_SEPARATOR, Status, Table

# Tables of facts that belong to no single description: CSV files beside the targets, one model per row.

_Row = TypeVar("_Row", bound=Table)


@cache
def csv_rows(name: str, model: type[_Row]) -> tuple[_Row, ...]:
    """Return all rows of a table; its header names the fields of the model.

    Raises:
        TargetDataError: a cell that the model does not take; names the row, counted from 0, and the column.
    """
    with (SHIPPED / name).open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file, strict=True))
    try:
        return TypeAdapter(tuple[model, ...]).validate_python(rows)  # type: ignore[valid-type]
    except ValidationError as error:
        first = error.errors()[0]
        row, *column = first["loc"]
        place = ".".join(map(str, column))
        raise TargetDataError(f"{name}: row {row}: {place}: {first['msg']}") from None


_CHAINS, _TYPES, _MATRIX = "tpc_chains.csv", "tpc_c_types.csv", "tpc_lowering_matrix.csv"
_IR_CASTS = "tpc_ir_casts.csv"
_BETWEEN = {">": True, "~": False}


class ChainReading(StrEnum):
    """The source of a chain, where two differ."""

    COMPILER = "compiler"
    """The compiler's lowering."""
    DOCUMENT = "document"
    """The vendor's document on builtin support."""
    SCALAR = "scalar"
    """The compiler's lowering of scalars, where that differs."""


class Decomposition(StrEnum):
    """The lowering of a pair without an instruction of its own."""

    CHAIN = "chain"
    """Several casts, one after the other."""
    EXTEND = "extend"
    """Zero extension: UNPACK into zeroes, or AND with a mask."""
    CLAMP = "clamp"
    """Unsigned to signed of one width: compare, move the largest number."""
    OFFSET = "offset"
    """Float to unsigned through signed: large numbers are shifted by half the range before and after."""
    HALVE = "halve"
    """Unsigned to float through signed: large numbers are halved before and doubled after."""


class LoweringKind(StrEnum):
    """The compiler's kind of lowering for a vector cast."""

    HARD = "Hard"
    HARD_LANE = "HardLane"
    INT_HARD = "IntHard"
    HARD_OR_INT_HARD = "HardOrIntHard"
    SOFT = "Soft"
    INT_SOFT = "IntSoft"
    CHAIN = "Chain"
    SPLIT = "Split"
    PREDICATE_EMULATION = "VPemu"
    BOOL_TO = "BoolTo"
    MULTIPLE = "XX"
    SKIP = "Skip"


def _stepped(text: object) -> object:
    """Turn `f32 > i32 ~ u32` into (("f32", True), ("i32", True), ("u32", False)): each type, whether converted to."""
    if not isinstance(text, str):
        return text
    words = text.split()
    separators = words[1::2]
    if any(separator not in _BETWEEN for separator in separators) or len(separators) + 1 != len(words[::2]):
        raise ValueError(f"'{text}' is not a chain of types joined by > (converted) or ~ (bits kept)")
    return ((words[0], True), *zip(words[2::2], (_BETWEEN[each] for each in separators), strict=True))


def _counted(text: object) -> object:
    """Turn `64:128;64:256` into pairs of element counts."""
    return tuple(tuple(pair.split(":")) for pair in text.split(LIST_SEPARATOR)) if isinstance(text, str) else text


def _listed(text: object) -> object:
    """Turn `goya;gaudi` into a tuple, and `any` into an empty one."""
    if not isinstance(text, str):
        return text
    return () if text == "any" else tuple(text.split(LIST_SEPARATOR))


def _printed(text: object) -> object:
    """Turn `and 0xff i32 | f32 csr` into rows of `IrStep`."""
    return tuple(map(_printed_step, text.split(" | "))) if isinstance(text, str) else text


def _printed_step(text: str) -> dict[str, object]:
    match text.split():
        case ["and", mask, dst]:
            return {"dst": dst, "mask": int(mask, 0)}
        case [dst, word]:
            return {"dst": dst, "word": word}
    raise ValueError(f"'{text}' is neither `TYPE ROUNDING` nor `and MASK TYPE`")


class ChainRow(Table):
    """A pair that a generation without the instruction does otherwise; `reading` is None where all accounts agree."""

    src: str
    dst: str
    reading: Annotated[ChainReading | None, BeforeValidator(lambda text: None if text == "any" else text)]
    how: Decomposition
    steps: Annotated[tuple[tuple[str, bool], ...], BeforeValidator(_stepped)]
    status: Status
    source: Annotated[str, Field(min_length=1)]


class IrStep(Table):
    """An instruction of a cast as the compiler prints it: CONVERT to a type with a rounding word, or AND with a mask.

    `csr` is the word that is not printed: the mode in the rounding register.
    """

    dst: str
    word: str | None = None
    mask: int = 0


class IrCastRow(Table):
    """A cast of LLVM IR that the compiler prints otherwise than as one CONVERT with the unit's usual rounding word.

    `unit` is `scalar` or `vector`; `elements` are the numbers of elements, none: any.
    """

    unit: str
    src: str
    dst: str
    elements: Annotated[tuple[int, ...], BeforeValidator(_listed)]
    generations: Annotated[tuple[str, ...], BeforeValidator(_listed)]
    steps: Annotated[tuple[IrStep, ...], BeforeValidator(_printed)]
    status: Status
    source: Annotated[str, Field(min_length=1)]


class CType(Table):
    """A scalar type of TPC-C; vector types add a number of elements (`short128`). `promotion` orders promotions."""

    name: str
    element: str
    promotion: int
    status: Status
    source: Annotated[str, Field(min_length=1)]


class LoweringRow(Table):
    """A pair of element types, and how casts between vectors of them with these element counts are lowered."""

    generation: str
    src: str
    dst: str
    kind: LoweringKind
    counts: Annotated[tuple[tuple[int, int], ...], BeforeValidator(_counted)]


@cache
def chains() -> tuple[ChainRow, ...]:
    """Return the pairs that need more than an instruction."""
    return csv_rows(_CHAINS, ChainRow)


@cache
def ir_casts() -> tuple[IrCastRow, ...]:
    """Return the casts of LLVM IR that the compiler prints in a way of their own."""
    return csv_rows(_IR_CASTS, IrCastRow)


@cache
def c_types() -> tuple[CType, ...]:
    """Return the element types of TPC-C."""
    return csv_rows(_TYPES, CType)


@cache
def lowering_matrix(generation: str) -> tuple[LoweringRow, ...]:
    """Return the compiler's table of a generation; of one that it does not know, none."""
    return tuple(row for row in csv_rows(_MATRIX, LoweringRow) if row.generation == generation)
