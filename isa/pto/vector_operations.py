"""The vector operations on tiles: one row each with the properties common to all chips.

Parser, values, accesses, checks and the lowerings of both mechanisms read the rows of `vector_operations.csv`; no
property is derived from a mnemonic.
A chip adds its own row of `targets/*_operations.csv`: element types, scratch, and the kernel.

Source: docs/reference/pto.md section 7.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

from castsim.isa.dataclass import dataclass
from castsim.isa.errors import IllegalError, closest
from castsim.isa.reading import table_rows


class Role(StrEnum):
    """The purpose of an operand."""

    SOURCE = "a"
    SCALAR = "s"
    MASK = "m"
    TMP = "t"


class Kind(StrEnum):
    """The relation between the shapes of sources and destination."""

    MOVE = "move"
    """The elements that both tiles have."""
    FILL = "fill"
    """Source elements, and the pad value around them."""
    ELEMENTWISE = "elementwise"
    """Equal valid regions."""
    SELECT = "select"
    """Equal valid regions, and a mask with a bit per element."""
    BROADCAST = "broadcast"
    """No source: a scalar everywhere."""
    COMPARE = "compare"
    """Equal valid rows; the destination has a bit per element."""
    ROW_REDUCE = "row reduction"
    """One element per row."""
    ROW_EXPAND = "row expansion"
    """The first element of every row, in all its columns."""
    ROW_BROADCAST = "row broadcast"
    """A tile and a vector with one element, or one block, per row."""
    COLUMN_REDUCE = "column reduction"
    """One element per column."""
    ROW_ARGUMENT = "row arg-reduction"
    """The column of one element per row."""
    COLUMN_ARGUMENT = "column arg-reduction"
    """The row of one element per column."""
    COLUMN_EXPAND = "column expansion"
    """The first row, in all rows."""
    COLUMN_BROADCAST = "column broadcast"
    """A tile and a vector with one element per column."""
    RAMP = "ramp"
    """No source: numbers that ascend or descend from a scalar, in one row."""
    GATHER = "gather"
    """The elements of a tile that a tile of indices selects, one for each element of the destination."""
    PATTERN_GATHER = "gather by pattern"
    """Every n-th column, or row, of a tile."""
    COMPARE_GATHER = "gather by comparison"
    """The indices of the columns whose elements satisfy a comparison with a scalar, and their count."""
    SORT = "sort"
    """Pairs of an element and its index, sorted by elements within groups."""
    MERGE = "merge"
    """Sorted lists of such pairs merged to one."""
    TRANSPOSE = "transposition"
    """Rows become columns."""
    PART = "part"
    """Both operands where both are valid, the valid one elsewhere."""
    CONCATENATE = "concatenation"
    """The rows of two tiles side by side."""
    QUANTISE = "quantisation"
    """Elements times a factor of their row, with an optional offset, rounded to 8 bits."""
    DEQUANTISE = "dequantisation"
    """Integers less an offset of their row, times its scale."""
    BLOCK_QUANTISE = "block quantisation"
    """Elements over the scale of their group, and the exponents, maxima and reciprocals of the groups."""
    BOX = "move into boxes"
    """Bytes in boxes of 32: shared exponents 16 x 2 (ZZ), codes 1 x 32, one column of boxes after the other (NZ)."""
    PACK = "packing"
    """The low bytes of every element."""
    COUNTED_CONCATENATE = "concatenation by counts"
    """The rows of two tiles side by side, with element counts from two further tiles."""
    NARROW = "narrowing"
    """Equal valid regions; the results are converted to narrower elements."""
    PAIR_REDUCE = "pair reduction"
    """A pair of neighbouring elements of a row becomes one."""
    INTERLEAVE = "interleaving"
    """The elements of rows of two tiles alternately, or those in even and odd columns separated: two results."""
    BLOCK_GATHER = "block gather"
    """The blocks of 32 bytes, or elements, at the byte offsets in a tile."""
    PART_ARGUMENT = "part arg-reduction"
    """The better of two operands with its index, or the valid one: two results."""

    @property
    def gives_places(self) -> bool:
        """Whether the results are row or column indices, for any elements of the sources."""
        return self in (Kind.ROW_ARGUMENT, Kind.COLUMN_ARGUMENT, Kind.COMPARE_GATHER)


@dataclass(frozen=True, slots=True)
class Application:
    """One function of a composition: of all operands, or of the previous result and a constant.

    `constant_first` puts the constant before the other operand.
    """

    function: str
    constant: int | None = None
    constant_first: bool = False


COMPOSITIONS: Mapping[str, tuple[Application, ...]] = {
    "neg": (Application("mul", -1),),
    "recip": (Application("div", 1, constant_first=True),),
    "expdif": (Application("sub"), Application("exp")),
    "addrelu": (Application("add"), Application("relu")),
    "subrelu": (Application("sub"), Application("relu")),
    "maddrelu": (Application("madd"), Application("relu")),
}
"""Functions composed of others, each rounded separately (docs/reference/pto.md section 7.3)."""


def parts_of(function: str) -> tuple[str, ...]:
    """Return the functions that form a function: itself unless it is a composition."""
    return tuple(part.function for part in COMPOSITIONS.get(function, (Application(function),)))


@dataclass(frozen=True, slots=True)
class VectorOperation:
    """One operation.

    `function` is its effect per element: a name in `castsim.execution.vector_operations.arithmetic`, or of a
    composition. `forms` are its legal operand lists inside `ins`; `section` is the one of docs/reference/pto.md that
    describes it. `attribute` is an optional attribute: `cmpMode`, `isBinary`, `descending`, `maskPattern`, `quant_type`
    or `grpAxis`. `tmp_like_source` marks a scratch tile in the text with the source's type and valid region. For a
    fill, `in_place` marks equal bytes of source and destination, `enlarges` a destination that may have more rows and
    columns than the source. `tmp_behind` marks a scratch tile that may follow the destination. `scalar_unit` marks work
    that the vendor's tool assigns to the scalar unit when it inserts flags, whichever unit does it. `accumulates` marks
    an operation that also reads the destination, as the last operand.
    """

    mnemonic: str
    kind: Kind
    function: str
    forms: tuple[tuple[Role, ...], ...]
    section: str
    attribute: str | None = None
    tmp_like_source: bool = False
    in_place: bool = False
    enlarges: bool = False
    scalar_unit: bool = False
    accumulates: bool = False
    tmp_behind: bool = False

    @property
    def destinations(self) -> int:
        """The number of tiles that it writes."""
        return _DESTINATIONS.get(self.kind, 1)

    @property
    def counts_finds(self) -> bool:
        """Whether its second destination counts its matches in each row."""
        return self.kind is Kind.COMPARE_GATHER

    @property
    def name(self) -> str:
        """The name in the text, which several operations may share."""
        return text_name(self.mnemonic)

    @property
    def spellings(self) -> tuple[str, ...]:
        """The legal operand lists in the form of messages."""
        return tuple(f"ins({', '.join(_WORDS[role] for role in form)})" for form in self.forms)

    @property
    def may_widen(self) -> bool:
        """Whether f16 elements may give f32 results."""
        return self.function == "axpy"

    @property
    def parts(self) -> tuple[str, ...]:
        """The functions that it computes, in sequence."""
        return parts_of(self.function)

    @property
    def takes_scalar(self) -> bool:
        """Whether it has a scalar operand."""
        return any(Role.SCALAR in form for form in self.forms)

    @property
    def divides_by_scalar(self) -> bool:
        """Whether it divides a tile by a scalar or a scalar by a tile."""
        return self.function == "div" and self.takes_scalar

    @property
    def divides_constant(self) -> bool:
        """Whether it divides a constant by a tile."""
        return any(part.function == "div" and part.constant_first for part in COMPOSITIONS.get(self.function, ()))

    @property
    def integers_exact(self) -> bool:
        """Whether its integer results are certain: false for quotients, remainders and shifts."""
        return {"div", "rem", "fmod", "shl", "shr"}.isdisjoint(self.parts)


def text_name(mnemonic: str) -> str:
    """Return the name of an operation in the text: mnemonics of its other forms contain a point."""
    return mnemonic.partition(".")[0] if mnemonic in VECTOR_OPERATIONS and mnemonic != _DOTTED else mnemonic


_DESTINATIONS = {Kind.COMPARE_GATHER: 2, Kind.BLOCK_QUANTISE: 4, Kind.INTERLEAVE: 2, Kind.PART_ARGUMENT: 2}
_WORDS = {Role.SOURCE: "%tile", Role.SCALAR: "%scalar", Role.MASK: "%mask", Role.TMP: "%tmp"}

PATTERNS = ("P0101", "P1010", "P0001", "P0010", "P0100", "P1000", "P1111")
"""The values of `maskPattern`: the last digit is the first column, and the digits repeat."""

DIRECTIONS = ('"row"', '"col"')
"""The directions of a gather by pattern; the first is the default."""

PAIR_BYTES = 8
"""Number of bytes of a pair of an element and its index in a sorted list; indices are in the upper four."""

CHOOSING = ("eq", "gt")
"""Values of `cmpMode` of a gather; the first is the default."""

_DOTTED = "tquant.mx"
"""The operation that has a point in its name in the text too."""

BLOCK_QUANTISATIONS = ("MXFP8", "MXFP4_E2M1")
"""Values of `quant_type` of a block quantisation: to bytes of e4m3fn, to pairs of e2m1."""

GROUP_AXES = ("axis1", "axis0")
"""Values of `grpAxis`: groups of columns, the default, and of rows."""

SCALE_ALGORITHMS = ("ocp", "nv")
"""Values of `quantScaleAlg`; the first is the default."""

NARROWER: Mapping[str, str] = {"f32": "f16", "f16": "i8", "i16": "i8", "i32": "f16"}
"""The narrower result elements by source element, from AddReluCast and AddDeqRelu of asc-devkit @ 0da921b9."""

QUANTISATIONS = ("INT8_SYM", "INT8_ASYM")
"""Values of `quant_type`: without and with an offset."""

COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
"""Values of `cmpMode`; the first is the default."""

ALIASES = ("treshape", "bitcast")
"""Mnemonics that give existing bytes a new type: written `%r = pto.NAME %a : T0 -> T1`, no movement."""

PRINT = "tprint"
"""The operation that prints a tile and changes nothing."""

MATRIX = ("tmatmul", "tgemv", "timg2col")
"""Prefixes of the names of operations that belong to the matrix unit."""

PART_MOVES = ("textract", "tinsert")
"""Copies out of and into a part of a larger tile, which two operands locate; the matrix unit's if a tile is."""


def _read(row: Mapping[str, str]) -> VectorOperation:
    """Return a row of the table; its forms are words with a letter per operand role."""
    forms = tuple(tuple(map(Role, form)) for form in row["forms"].split())
    attribute, flags = (None if row[column] == "-" else row[column] for column in ("attribute", "flags"))
    switches = dict.fromkeys((flags or "").split(), True)
    return VectorOperation(
        row["mnemonic"], Kind(row["kind"]), row["function"], forms, row["section"], attribute, **switches
    )


VECTOR_OPERATIONS: Mapping[str, VectorOperation] = {
    row["mnemonic"]: _read(row) for row in table_rows(Path(__file__).with_suffix(".csv"))
}
"""Every vector operation except tcvt by mnemonic."""


# Tile operations that programs may use, those that are known and not modelled, and all others.

TRANSFERS = ("tload", "tstore")
SUPPORTED = (
    *TRANSFERS, "tcvt", *(name for name, row in VECTOR_OPERATIONS.items() if row.name == name), *PART_MOVES, *ALIASES,
    PRINT,
)  # fmt: skip
"""Tile operations that programs may use."""

UNMODELLED: Mapping[str, str] = {
    "mgather": "no source documents its order of accesses to global memory",
    "mscatter": "no source documents its order of accesses to global memory",
    "tscatter": "no source documents which of two equal indices wins, or what is between the elements of a pattern",
    "tsubc": "a difference of three values, whose rounding no source documents",
    "taddsc": "no source documents what it adds",
    "tsubsc": "no source documents what it subtracts",
    "ttri": "no source documents which elements it fills",
    "thistogram": "no source documents its bins",
    "trandom": "no source documents its generator",
    "tget_scale_addr": "scales of the matrix unit",
    "tprefetch": "caches are not modelled",
}
"""Operations of public kernels and of the front end that are not modelled, with the reason."""


def is_known(mnemonic: str) -> bool:
    """Return whether a tile operation exists, modelled or not."""
    return (
        mnemonic in SUPPORTED or mnemonic in UNMODELLED or mnemonic in VECTOR_OPERATIONS or mnemonic.startswith(MATRIX)
    )


def unknown_operation(mnemonic: str) -> IllegalError:
    """Return the error about an unknown tile operation, with the nearest names."""
    near = closest(mnemonic, (*SUPPORTED, *UNMODELLED), everything_up_to=0)
    return IllegalError(f"unknown operation pto.{mnemonic}", legal=[f"pto.{name}" for name in near])
