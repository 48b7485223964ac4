"""The TPC compiler's knowledge beyond the instruction set: types of C, casts, the lowering matrix, builtins.

Sources: docs/reference/tpc.md section 4 (lowering of LLVM IR casts, from the compiler's tables and tests) and the
vendor's document `tpc_builtin_support` (types, promotion order, C-level casts). Each row of the first two tables has
its own status; the lowering matrix is the compiler's own table, documented as a whole.
"""

from __future__ import annotations

import csv
import re
from enum import StrEnum
from functools import cache
from typing import Annotated, ClassVar, TypeVar

from castsim.isa.errors import TargetDataError
from castsim.isa.tpc.forms import Feature
from castsim.targets import validated
from castsim.targets.csv_tables import SHIPPED
from castsim.targets.description import LIST_SEPARATOR, Listed, Status, Table
from castsim.targets.validated import BeforeValidator, Field, checked, validator
from castsim.targets.vliw import VliwTarget

# Tables of facts that belong to no single description: CSV files beside the targets, one model per row.


class CsvTable(Table):
    """A row of a CSV file beside the targets, whose header names the fields."""

    csv_file: ClassVar[str]


_Row = TypeVar("_Row", bound=CsvTable)


@cache
def csv_rows(model: type[_Row]) -> tuple[_Row, ...]:
    """Return all rows of a table.

    Raises:
        TargetDataError: the model rejects a cell; the message names the row, counted from 0, and the column.
    """
    rows: tuple[_Row, ...] | None = checked(model.__name__)
    if rows is not None:
        return rows
    name = model.csv_file
    with (SHIPPED / name).open(newline="", encoding="utf-8") as file:
        texts = list(csv.DictReader(file, strict=True))
    try:
        rows = validator(tuple[model, ...]).validate_python(texts)  # type: ignore[valid-type]
    except validated.ValidationError as error:
        first = error.errors()[0]
        row, *column = first["loc"]
        column_path = ".".join(map(str, column))
        raise TargetDataError(f"{name}: row {row}: {column_path}: {first['msg']}") from None
    return rows


_BETWEEN = {">": True, "~": False}


class ChainReading(StrEnum):
    """The source of a chain if two sources differ."""

    COMPILER = "compiler"
    """The compiler's lowering."""
    DOCUMENT = "document"
    """The vendor's document on builtin support."""
    SCALAR = "scalar"
    """The compiler's lowering of scalars, if it differs."""


class Decomposition(StrEnum):
    """The lowering of a pair without its own instruction."""

    CHAIN = "chain"
    """Several casts in sequence."""
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
    return ((words[0], True), *zip(words[2::2], (_BETWEEN[mark] for mark in separators), strict=True))


def _counted(text: object) -> object:
    """Turn `64:128;64:256` into pairs of element counts."""
    return tuple(tuple(pair.split(":")) for pair in text.split(LIST_SEPARATOR)) if isinstance(text, str) else text


def _listed(text: object) -> object:
    """Return `goya;gaudi` as a tuple, and `any` as an empty one."""
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


class ChainRow(CsvTable):
    """A pair that a generation without the instruction lowers differently; `reading` is None if all accounts agree."""

    csv_file: ClassVar[str] = "tpc_chains.csv"

    src: str
    dst: str
    reading: Annotated[ChainReading | None, BeforeValidator(lambda text: None if text == "any" else text)]
    how: Decomposition
    steps: Annotated[tuple[tuple[str, bool], ...], BeforeValidator(_stepped)]
    status: Status
    source: Annotated[str, Field(min_length=1)]


class IrStep(Table):
    """An instruction of a cast in the compiler's output: CONVERT to a type with a rounding word, or AND with a mask.

    `csr` is the omitted word: the mode in the rounding register.
    """

    dst: str
    word: str | None = None
    mask: int = 0


class IrCastRow(CsvTable):
    """An LLVM IR cast whose output is not a single CONVERT with the unit's usual rounding word.

    `unit` is `scalar` or `vector`; `elements` are the numbers of elements, empty: any.
    """

    csv_file: ClassVar[str] = "tpc_ir_casts.csv"

    unit: str
    src: str
    dst: str
    elements: Annotated[tuple[int, ...], BeforeValidator(_listed)]
    generations: Annotated[tuple[str, ...], BeforeValidator(_listed)]
    steps: Annotated[tuple[IrStep, ...], BeforeValidator(_printed)]
    status: Status
    source: Annotated[str, Field(min_length=1)]


class CType(CsvTable):
    """A scalar type of TPC-C; vector types add a number of elements (`short128`). `promotion` orders promotions."""

    csv_file: ClassVar[str] = "tpc_c_types.csv"

    name: str
    element: str
    promotion: int
    status: Status
    source: Annotated[str, Field(min_length=1)]


class LoweringRow(CsvTable):
    """A pair of element types, and the lowering of casts between vectors of them with these element counts."""

    csv_file: ClassVar[str] = "tpc_lowering_matrix.csv"

    generation: str
    src: str
    dst: str
    kind: LoweringKind
    counts: Annotated[tuple[tuple[int, int], ...], BeforeValidator(_counted)]


@cache
def chains() -> tuple[ChainRow, ...]:
    """Return the pairs that need several instructions."""
    return csv_rows(ChainRow)


@cache
def ir_casts() -> tuple[IrCastRow, ...]:
    """Return the LLVM IR casts with a special output."""
    return csv_rows(IrCastRow)


@cache
def c_types() -> tuple[CType, ...]:
    """Return the element types of TPC-C."""
    return csv_rows(CType)


@cache
def lowering_matrix(generation: str) -> tuple[LoweringRow, ...]:
    """Return the compiler's table of a generation; empty for an unknown one."""
    return tuple(row for row in csv_rows(LoweringRow) if row.generation == generation)


# The cast builtins of TPC-C with their steps per generation.
#
# Sources: the vendor's document `tpc_builtin_support` (names and signatures), docs/reference/tpc.md section 3 (value
# steps, operation counts, lane orders of the helper headers), section 2.5 (what moves lanes).

_STEP = re.compile(r"(?P<head>\S.*?) x(?:, (?P<operand>\S+))?")


class ResultOrder(StrEnum):
    """The origin of the elements of a result; r is the ratio of widths or the number of registers."""

    LINEAR = "linear"
    """Element i of the result from element i of the sources, with all registers laid end to end."""
    INTERLEAVED = "interleaved"
    """Element r * i + k of the result from element i of source register k."""
    SPLIT = "split"
    """Element i of result register k from element r * i + k of the source."""
    UNDEFINED = "undefined"
    """Undocumented."""


class Recipe(StrEnum):
    """The movement of elements between registers by a builtin, with its number of VPU operations."""

    PACK_TWO_SINGLE = "pack_two_single"
    """Two registers of wide slots into one; MOV_DG of single dual groups: 11 operations."""
    PACK_TWO_ALL = "pack_two_all"
    """Variant with MOV_DG of all dual groups: 8 operations."""
    PACK_FOUR = "pack_four"
    """Four registers of wide slots into one: 23 operations."""
    UNPACK_TWO_SINGLE = "unpack_two_single"
    """One register into two of wide slots, MOV_DG of single dual groups: 8 operations."""
    UNPACK_TWO_ALL = "unpack_two_all"
    """Variant with MOV_DG of all dual groups after the UNPACK: 6 operations."""
    UNPACK_TWO_SWAPPED = "unpack_two_swapped"
    """Variant with MOV_G and MOV_DG of all dual groups before the UNPACK: 5 operations."""
    UNPACK_FOUR_SINGLE = "unpack_four_single"
    """One register into four of wide slots, MOV_DG of single dual groups: 19 operations."""
    UNPACK_FOUR_ALL = "unpack_four_all"
    """Variant with MOV_DG of all dual groups: 12 operations."""
    ALL_LANES = "all_lanes"
    """One conversion of all lanes (column `joint`): 1 operation."""
    UNPACK_LANES = "unpack_lanes"
    """UNPACK to two lanes, then MOV_DG unpack: 4 operations."""
    HALF_IN_WIDE_LANES = "half_in_wide_lanes"
    """f16 in 32-bit lanes to f32 by arithmetic on the bits: 12 operations."""


class StepText(Table):
    """One instruction on a running value x: its words before x, and the second source (an immediate or a name)."""

    head: str
    operand: str | None


def _steps(cell: object) -> object:
    """Read `mul.f32 x, scale; convert.f32 target_type=int16 MODE x`."""
    if not isinstance(cell, str):
        return cell
    steps = []
    for text in filter(None, (part.strip() for part in cell.split(LIST_SEPARATOR))):
        match = _STEP.fullmatch(text)
        if match is None:
            raise ValueError(f"'{text}' is not a step: HEAD x, or HEAD x, OPERAND")
        steps.append(StepText(head=match["head"], operand=match["operand"]))
    return tuple(steps)


Steps = Annotated[tuple[StepText, ...], BeforeValidator(_steps)]
"""Instructions in order; the word MODE means the rounding of the generation's builtins."""


class BuiltinRow(CsvTable):
    """A cast builtin of a generation.

    `signature` is output(inputs) in C types, `source` and `result` are the formats of their elements. `before` applies
    to every source register, `joint` is the conversion of all lanes, `after` applies to every result register; `recipe`
    moves the elements in between. `vector_operations` counts all vector instructions except zeroing and copies of
    registers.
    """

    csv_file: ClassVar[str] = "tpc_builtins.csv"

    generation: str
    builtin: str
    signature: str
    source: str
    result: str
    before: Steps
    recipe: Recipe
    joint: Steps
    after: Steps
    vector_operations: Annotated[int, Field(gt=0)]
    result_order: ResultOrder
    status: Status
    note: str


class BuiltinRounding(CsvTable):
    """The rounding of a generation's builtins; `build_options` are the modes that a build option selects instead."""

    csv_file: ClassVar[str] = "tpc_builtin_rounding.csv"

    generation: str
    mode: str
    build_options: Listed
    status: Status
    source: Annotated[str, Field(min_length=1)]


def builtins_of(target: VliwTarget) -> tuple[BuiltinRow, ...]:
    """Return the cast builtins of a target: those of its generation, or of the one it inherits from."""
    return tuple(row for row in csv_rows(BuiltinRow) if row.generation in target.architectures)


def all_builtins() -> tuple[BuiltinRow, ...]:
    """Return the cast builtins of all generations."""
    return csv_rows(BuiltinRow)


def builtin_rounding(target: VliwTarget) -> BuiltinRounding | None:
    """Return the rounding of a target's builtins; None if its generation is unknown."""
    rows = csv_rows(BuiltinRounding)
    return next((row for row in rows if row.generation in target.architectures), None)


# The special functions of TPC-C: arithmetic of the vendor's library, its look-up tables, and tensor descriptors.
#
# Sources: the vendor's document `tpc_builtin_support` (names and signatures), docs/reference/tpc.md section 3.1.

PREFIX = "__builtin_"


class FunctionKind(StrEnum):
    """Origin of the values of a special function."""

    SEQUENCE = "sequence"
    """Only published instructions."""
    TABLE = "table"
    """Instructions that read look-up tables whose contents are not public."""
    UNPUBLISHED = "unpublished"
    """Neither instructions nor number formats are public."""
    DESCRIPTOR = "descriptor"
    """A word of a tensor's descriptor."""


def _number(cell: object) -> object:
    return int(cell, 0) if isinstance(cell, str) and cell else None if cell == "" else cell


Number = Annotated[int, BeforeValidator(_number)]
"""Decimal or hexadecimal digits."""


class SpecialFunction(CsvTable):
    """A builtin that is not a cast.

    `published` tells that the vendor's table of builtins has it; the others are library functions that implement
    those. `operations` counts the instructions of a call on gaudi2 without copies of registers in the LOAD slot.
    """

    csv_file: ClassVar[str] = "tpc_special_functions.csv"

    builtin: str
    signature: str
    published: Annotated[bool, BeforeValidator(lambda cell: {"yes": True, "no": False}.get(str(cell), cell))]
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


class FunctionTable(CsvTable):
    """A look-up table of the vendor's library: its entries, each with c0, c1 and c2, and its function ids."""

    csv_file: ClassVar[str] = "tpc_function_tables.csv"

    columns: ClassVar[int] = 3
    """Number of values of an entry."""

    table: str
    entries: Annotated[Number, Field(gt=0)]
    goya: Number
    later: Number
    status: Status
    source: str

    def function(self, target: VliwTarget) -> int:
        """Return the function id on a target."""
        return self.later if Feature.TYPED_LOOKUP in target.dialect.features else self.goya


class Descriptors(CsvTable):
    """Addresses of tensor descriptors in the configuration space of a generation; all in bytes."""

    csv_file: ClassVar[str] = "tpc_descriptors.csv"

    generation: str
    base: Number
    descriptor_bytes: Number
    dimension_bytes: Number
    status: Status
    source: str


def library_functions() -> tuple[SpecialFunction, ...]:
    """Return all special functions."""
    return csv_rows(SpecialFunction)


def special_functions() -> tuple[SpecialFunction, ...]:
    """Return the functions in the vendor's table of builtins, which does not distinguish generations."""
    return tuple(row for row in library_functions() if row.published)


def function_tables() -> tuple[FunctionTable, ...]:
    """Return the look-up tables of the functions."""
    return csv_rows(FunctionTable)


def descriptors_of(target: VliwTarget) -> Descriptors | None:
    """Return the addresses of a target's descriptors; None if no source states them."""
    rows = csv_rows(Descriptors)
    return next((row for row in rows if row.generation in target.architectures), None)
