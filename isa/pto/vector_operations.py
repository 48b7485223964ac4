"""The vector operations on tiles: one row each, which says all that is true of an operation on every chip.

Parser, values, accesses, checks and the lowerings of both mechanisms read the rows; nothing is derived from a mnemonic.
What a chip adds is its own row of `targets/*_operations.csv`: element types, scratch, the kernel that runs.

Source: docs/reference/pto.md section 7.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from castsim.isa.errors import IllegalError, closest


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
    """Equal valid regions, and a mask that holds a bit per element."""
    BROADCAST = "broadcast"
    """No source: a scalar everywhere."""
    COMPARE = "compare"
    """Equal valid rows; the destination holds a bit per element."""
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
    """The elements of a tile that a tile of numbers names, one for each element of the destination."""
    PATTERN_GATHER = "gather by pattern"
    """Every so many-th column, or row, of a tile."""
    COMPARE_GATHER = "gather by comparison"
    """The numbers of the columns whose elements compare so with a scalar, and how many they are."""
    SORT = "sort"
    """Pairs of an element and its number, sorted by elements within groups."""
    MERGE = "merge"
    """Sorted lists of such pairs merged to one."""
    TRANSPOSE = "transposition"
    """Rows become columns."""
    PART = "part"
    """Both operands where both are valid, the one that is valid elsewhere."""
    CONCATENATE = "concatenation"
    """The rows of two tiles side by side."""
    QUANTISE = "quantisation"
    """Elements times a factor of their row, perhaps plus an offset, rounded to 8 bits."""
    DEQUANTISE = "dequantisation"
    """Integers less an offset of their row, times its scale."""
    BLOCK_QUANTISE = "block quantisation"
    """Elements over the scale of their group, and the exponents, maxima and reciprocals of the groups."""
    BOX = "move into boxes"
    """Bytes in boxes of 32: of shared exponents 16 x 2 (ZZ), of codes 1 x 32, column of boxes by column (NZ)."""
    PACK = "packing"
    """The low bytes of every element."""
    COUNTED_CONCATENATE = "concatenation by counts"
    """As many elements of the rows of two tiles side by side as two tiles of counts say."""
    NARROW = "narrowing"
    """Equal valid regions; the results are converted to narrower elements."""
    PAIR_REDUCE = "pair reduction"
    """Every two neighbouring elements of a row become one."""
    INTERLEAVE = "interleaving"
    """The elements of rows of two tiles by turns, or those in even and odd columns apart: two results."""
    BLOCK_GATHER = "block gather"
    """The blocks of 32 bytes, or elements, at the byte offsets that a tile names."""
    PART_ARGUMENT = "part arg-reduction"
    """The better of two operands with its number, or the one that is valid: two results."""

    @property
    def gives_places(self) -> bool:
        """Whether the results are numbers of rows or columns, whatever the elements of the sources are."""
        return self in (Kind.ROW_ARGUMENT, Kind.COLUMN_ARGUMENT, Kind.COMPARE_GATHER)


@dataclass(frozen=True, slots=True)
class Application:
    """One function of a composition: of all operands, or of what came before it and a constant.

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
"""Functions that others make up, each rounded on its own (docs/reference/pto.md section 7.3)."""


def parts_of(function: str) -> tuple[str, ...]:
    """Return the functions that make up a function: itself unless it is a composition."""
    return tuple(part.function for part in COMPOSITIONS.get(function, (Application(function),)))


@dataclass(frozen=True, slots=True)
class VectorOperation:
    """One operation.

    `function` is what it does per element: a name of `castsim.execution.vector_operations.arithmetic`, or of a
    composition. `forms` are its legal operand lists inside `ins`; `section` is the one of docs/reference/pto.md that
    describes it. `attribute` is the one it may carry: `cmpMode`, `isBinary`, `descending`, `maskPattern`,
    `quant_type` or `grpAxis`.
    `tmp_like_source` says that the text wants a scratch tile of the source's type and valid region. Of a fill,
    `in_place` says that source and destination are the same bytes, `enlarges` that the destination may have more rows
    and columns than the source.
    `tmp_behind` says that a scratch tile may stand behind the destination.
    `scalar_unit` says that the vendor's tool takes it for work of the scalar unit when it inserts flags, whichever unit
    does it. `accumulates` says that what the destination holds takes part, as the last operand.
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
        """How many tiles it writes."""
        return _DESTINATIONS.get(self.kind, 1)

    @property
    def counts_finds(self) -> bool:
        """Whether its second destination gets how many elements it finds in each row."""
        return self.kind is Kind.COMPARE_GATHER

    @property
    def name(self) -> str:
        """The name in the text, which several operations may share."""
        return text_name(self.mnemonic)

    @property
    def spellings(self) -> tuple[str, ...]:
        """The legal operand lists as a reader of messages knows them."""
        return tuple(f"ins({', '.join(_WORDS[role] for role in form)})" for form in self.forms)

    @property
    def may_widen(self) -> bool:
        """Whether f16 elements may give f32 results."""
        return self.function == "axpy"

    @property
    def parts(self) -> tuple[str, ...]:
        """The functions that it computes, one after the other."""
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
        """Whether its results on integers are certain: not those of quotients, remainders and shifts."""
        return {"div", "rem", "fmod", "shl", "shr"}.isdisjoint(self.parts)


def text_name(mnemonic: str) -> str:
    """Return the name that the text has for an operation: mnemonics of its further forms have a point in them."""
    return mnemonic.partition(".")[0] if mnemonic in VECTOR_OPERATIONS and mnemonic != _DOTTED else mnemonic


_DESTINATIONS = {Kind.COMPARE_GATHER: 2, Kind.BLOCK_QUANTISE: 4, Kind.INTERLEAVE: 2, Kind.PART_ARGUMENT: 2}
_WORDS = {Role.SOURCE: "%tile", Role.SCALAR: "%scalar", Role.MASK: "%mask", Role.TMP: "%tmp"}

PATTERNS = ("P0101", "P1010", "P0001", "P0010", "P0100", "P1000", "P1111")
"""Values of `maskPattern`: the last digit stands for the first column, and the digits repeat."""

DIRECTIONS = ('"row"', '"col"')
"""What a gather by pattern takes elements along; the first is the default."""

PAIR_BYTES = 8
"""Bytes of a pair of an element and its number in a sorted list; numbers are in the upper four."""

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
"""Elements that those of sources become, AddReluCast and AddDeqRelu of asc-devkit @ 0da921b9."""

QUANTISATIONS = ("INT8_SYM", "INT8_ASYM")
"""Values of `quant_type`: without and with an offset."""

COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
"""Values of `cmpMode`; the first is the default."""

ALIASES = ("treshape", "bitcast")
"""Mnemonics that give existing bytes a new type: written `%r = pto.NAME %a : T0 -> T1`, no movement."""

PRINT = "tprint"
"""The operation that prints a tile and changes nothing."""

MATRIX = ("tmatmul", "tgemv", "timg2col")
"""Beginnings of the names of operations that belong to the matrix unit."""

PART_MOVES = ("textract", "tinsert")
"""Copies out of and into a part of a larger tile, which two operands place; the matrix unit's where a tile is its."""


def _row(
    mnemonic: str,
    kind: Kind,
    function: str,
    forms: str,
    section: str,
    attribute: str | None = None,
    *,
    tmp_like_source: bool = False,
    in_place: bool = False,
    enlarges: bool = False,
    scalar_unit: bool = False,
    accumulates: bool = False,
    tmp_behind: bool = False,
) -> VectorOperation:
    """Return a row; `forms` are words with a letter per operand, those of the roles."""
    operands = tuple(tuple(map(Role, form)) for form in forms.split())
    flags = (tmp_like_source, in_place, enlarges, scalar_unit, accumulates, tmp_behind)
    return VectorOperation(mnemonic, kind, function, operands, section, attribute, *flags)


_ALL = (
    _row("tmov", Kind.MOVE, "move", "a at", "7.2"),
    _row("tmov.zz", Kind.BOX, "move", "at", "7.12", "grpAxis"),
    _row("tmov.nz", Kind.BOX, "move", "a", "7.12"),
    _row("tfillpad", Kind.FILL, "fill", "a", "7.2", enlarges=True),
    _row("tfillpad_expand", Kind.FILL, "fill", "a", "7.2", enlarges=True),
    _row("tfillpad_inplace", Kind.FILL, "fill", "a", "7.2", in_place=True),
    _row("tadd", Kind.ELEMENTWISE, "add", "aa", "7.3"),
    _row("tsub", Kind.ELEMENTWISE, "sub", "aa", "7.3"),
    _row("tmul", Kind.ELEMENTWISE, "mul", "aa", "7.3"),
    _row("tdiv", Kind.ELEMENTWISE, "div", "aa", "7.3"),
    _row("tmax", Kind.ELEMENTWISE, "max", "aa", "7.3"),
    _row("tmin", Kind.ELEMENTWISE, "min", "aa", "7.3"),
    _row("tadds", Kind.ELEMENTWISE, "add", "as", "7.3"),
    _row("tsubs", Kind.ELEMENTWISE, "sub", "as", "7.3"),
    _row("tmuls", Kind.ELEMENTWISE, "mul", "as", "7.3"),
    _row("tdivs", Kind.ELEMENTWISE, "div", "as sa", "7.3"),
    _row("tmaxs", Kind.ELEMENTWISE, "max", "as", "7.3"),
    _row("tmins", Kind.ELEMENTWISE, "min", "as", "7.3"),
    _row("texpands", Kind.BROADCAST, "move", "s", "7.3"),
    _row("texp", Kind.ELEMENTWISE, "exp", "a", "7.3"),
    _row("tlog", Kind.ELEMENTWISE, "log", "a", "7.3"),
    _row("tsqrt", Kind.ELEMENTWISE, "sqrt", "a", "7.3"),
    _row("trsqrt", Kind.ELEMENTWISE, "rsqrt", "a at", "7.3"),
    _row("trecip", Kind.ELEMENTWISE, "recip", "a", "7.3"),
    _row("tabs", Kind.ELEMENTWISE, "abs", "a", "7.3"),
    _row("tneg", Kind.ELEMENTWISE, "neg", "a", "7.3"),
    _row("trelu", Kind.ELEMENTWISE, "relu", "a", "7.3"),
    _row("tand", Kind.ELEMENTWISE, "and", "aa", "7.3"),
    _row("tor", Kind.ELEMENTWISE, "or", "aa", "7.3"),
    _row("txor", Kind.ELEMENTWISE, "xor", "aa aat", "7.3"),
    _row("tnot", Kind.ELEMENTWISE, "not", "a", "7.3"),
    _row("tands", Kind.ELEMENTWISE, "and", "as", "7.3"),
    _row("tors", Kind.ELEMENTWISE, "or", "as", "7.3"),
    _row("txors", Kind.ELEMENTWISE, "xor", "as ast", "7.3"),
    _row("tshl", Kind.ELEMENTWISE, "shl", "aa", "7.3"),
    _row("tshr", Kind.ELEMENTWISE, "shr", "aa", "7.3"),
    _row("tshls", Kind.ELEMENTWISE, "shl", "as", "7.3"),
    _row("tshrs", Kind.ELEMENTWISE, "shr", "as", "7.3"),
    _row("trem", Kind.ELEMENTWISE, "rem", "aa aat", "7.3"),
    _row("trems", Kind.ELEMENTWISE, "rem", "as ast", "7.3"),
    _row("tfmod", Kind.ELEMENTWISE, "fmod", "aa", "7.3"),
    _row("tfmods", Kind.ELEMENTWISE, "fmod", "as", "7.3"),
    _row("tprelu", Kind.ELEMENTWISE, "prelu", "aa aat", "7.3"),
    _row("tlrelu", Kind.ELEMENTWISE, "prelu", "as", "7.3"),
    _row("taxpy", Kind.ELEMENTWISE, "axpy", "as", "7.3", accumulates=True),
    _row("taddc", Kind.ELEMENTWISE, "addc", "aaa", "7.3"),
    _row("taddrelu", Kind.ELEMENTWISE, "addrelu", "aa", "7.3"),
    _row("tsubrelu", Kind.ELEMENTWISE, "subrelu", "aa", "7.3"),
    _row("tmuladddst", Kind.ELEMENTWISE, "axpy", "aa", "7.3", accumulates=True),
    _row("tfusedmuladd", Kind.ELEMENTWISE, "madd", "aa", "7.3", accumulates=True),
    _row("tfusedmuladdrelu", Kind.ELEMENTWISE, "maddrelu", "aa", "7.3", accumulates=True),
    _row("tpow", Kind.ELEMENTWISE, "pow", "aa aat", "7.3"),
    _row("tpows", Kind.ELEMENTWISE, "pow", "as ast", "7.3"),
    _row("taddreluconv", Kind.NARROW, "addrelu", "aa", "7.3"),
    _row("tsubreluconv", Kind.NARROW, "subrelu", "aa", "7.3"),
    _row("tadddeqrelu", Kind.NARROW, "adddeqrelu", "aas aast", "7.3"),
    _row("tpartadd", Kind.PART, "add", "aa", "7.3"),
    _row("tpartmul", Kind.PART, "mul", "aa", "7.3"),
    _row("tpartmax", Kind.PART, "max", "aa", "7.3"),
    _row("tpartmin", Kind.PART, "min", "aa", "7.3"),
    _row("tpartargmax", Kind.PART_ARGUMENT, "max", "aaaa", "7.3"),
    _row("tpartargmin", Kind.PART_ARGUMENT, "min", "aaaa", "7.3"),
    _row("tpairreducesum", Kind.PAIR_REDUCE, "add", "a", "7.4"),
    _row("tcmp", Kind.COMPARE, "compare", "aa", "7.3", "cmpMode"),
    _row("tcmps", Kind.COMPARE, "compare", "as", "7.3", "cmpMode"),
    _row("tsel", Kind.SELECT, "select", "maat", "7.3"),
    _row("tsels", Kind.SELECT, "select", "mats", "7.3"),
    _row("trowsum", Kind.ROW_REDUCE, "add", "at", "7.4"),
    _row("trowmax", Kind.ROW_REDUCE, "max", "at", "7.4"),
    _row("trowmin", Kind.ROW_REDUCE, "min", "at", "7.4", tmp_like_source=True),
    _row("trowprod", Kind.ROW_REDUCE, "mul", "at", "7.4", tmp_like_source=True),
    _row("trowargmax", Kind.ROW_ARGUMENT, "max", "at", "7.4"),
    _row("trowargmin", Kind.ROW_ARGUMENT, "min", "at", "7.4"),
    _row("trowexpand", Kind.ROW_EXPAND, "move", "a", "7.4"),
    _row("trowexpandmul", Kind.ROW_BROADCAST, "mul", "aa aat", "7.4"),
    _row("trowexpandsub", Kind.ROW_BROADCAST, "sub", "aa aat", "7.4"),
    _row("trowexpanddiv", Kind.ROW_BROADCAST, "div", "aa aat", "7.4"),
    _row("trowexpandadd", Kind.ROW_BROADCAST, "add", "aa aat", "7.4"),
    _row("trowexpandmax", Kind.ROW_BROADCAST, "max", "aa aat", "7.4"),
    _row("trowexpandmin", Kind.ROW_BROADCAST, "min", "aa aat", "7.4"),
    _row("trowexpandexpdif", Kind.ROW_BROADCAST, "expdif", "aa aat", "7.4"),
    _row("tcolsum", Kind.COLUMN_REDUCE, "add", "a at", "7.5", "isBinary"),
    _row("tcolmax", Kind.COLUMN_REDUCE, "max", "a", "7.5"),
    _row("tcolmin", Kind.COLUMN_REDUCE, "min", "a", "7.5"),
    _row("tcolprod", Kind.COLUMN_REDUCE, "mul", "a", "7.5"),
    _row("tcolargmax", Kind.COLUMN_ARGUMENT, "max", "at", "7.5"),
    _row("tcolargmin", Kind.COLUMN_ARGUMENT, "min", "at", "7.5"),
    _row("tcolexpand", Kind.COLUMN_EXPAND, "move", "a", "7.5"),
    _row("tcolexpandmul", Kind.COLUMN_BROADCAST, "mul", "aa", "7.5"),
    _row("tcolexpandadd", Kind.COLUMN_BROADCAST, "add", "aa", "7.5"),
    _row("tcolexpandsub", Kind.COLUMN_BROADCAST, "sub", "aa", "7.5"),
    _row("tcolexpanddiv", Kind.COLUMN_BROADCAST, "div", "aa", "7.5"),
    _row("tcolexpandmax", Kind.COLUMN_BROADCAST, "max", "aa", "7.5"),
    _row("tcolexpandmin", Kind.COLUMN_BROADCAST, "min", "aa", "7.5"),
    _row("tcolexpandexpdif", Kind.COLUMN_BROADCAST, "expdif", "aa", "7.5"),
    _row("tci", Kind.RAMP, "ramp", "s st", "7.7", "descending", scalar_unit=True),
    _row("tgather", Kind.GATHER, "move", "aat aa", "7.7"),
    _row("tgatherb", Kind.BLOCK_GATHER, "move", "aa", "7.7"),
    _row("tinterleave", Kind.INTERLEAVE, "interleave", "aa", "7.7"),
    _row("tdeinterleave", Kind.INTERLEAVE, "deinterleave", "aa a", "7.7"),
    _row("tgather.mask", Kind.PATTERN_GATHER, "move", "a", "7.7", "maskPattern"),
    _row("tgather.compare", Kind.COMPARE_GATHER, "compare", "ast as", "7.7", "cmpMode"),
    _row("tsort32", Kind.SORT, "move", "aa aat", "7.7"),
    _row("tmrgsort", Kind.MERGE, "move", "as aa aaa aaaa", "7.7"),
    _row("ttrans", Kind.TRANSPOSE, "move", "at a", "7.7"),
    _row("tconcat", Kind.CONCATENATE, "move", "aa", "7.7"),
    _row("tconcatidx", Kind.COUNTED_CONCATENATE, "move", "aaaa", "7.7"),
    _row("tquant", Kind.QUANTISE, "quantise", "aa aaa", "7.12", "quant_type", tmp_behind=True),
    _row("tquant.mx", Kind.BLOCK_QUANTISE, "quantise", "a", "7.12", "quant_type"),
    _row("tdequant", Kind.DEQUANTISE, "dequantise", "aaa", "7.12"),
    _row("tpack", Kind.PACK, "move", "a", "7.12"),
)

VECTOR_OPERATIONS: Mapping[str, VectorOperation] = {operation.mnemonic: operation for operation in _ALL}
"""Every vector operation other than tcvt by its mnemonic."""


# Tile operations that programs may use, those that are known and not modelled, and all others.

TRANSFERS = ("tload", "tstore")
SUPPORTED = (
    *TRANSFERS, "tcvt", *(name for name, row in VECTOR_OPERATIONS.items() if row.name == name), *PART_MOVES, *ALIASES,
    PRINT,
)  # fmt: skip
"""Tile operations that programs may use."""

UNMODELLED: Mapping[str, str] = {
    "mgather": "its order of accesses to global memory has no source",
    "mscatter": "its order of accesses to global memory has no source",
    "tscatter": "no sheet states which of two equal indices wins, nor what lies between elements of a pattern",
    "tsubc": "a difference of three, whose roundings have no source",
    "taddsc": "no source states what it adds",
    "tsubsc": "no source states what it subtracts",
    "ttri": "no source states which elements it fills",
    "thistogram": "no source states its bins",
    "trandom": "no source states its generator",
    "tget_scale_addr": "scales of the matrix unit",
    "tprefetch": "caches are not modelled",
}
"""Operations of public kernels and of the front end that are not modelled, and why."""


def is_known(mnemonic: str) -> bool:
    """Whether a tile operation is one of those above, modelled or not."""
    return (
        mnemonic in SUPPORTED or mnemonic in UNMODELLED or mnemonic in VECTOR_OPERATIONS or mnemonic.startswith(MATRIX)
    )


def unknown_operation(mnemonic: str) -> IllegalError:
    """Return the refusal of a tile operation that is not known, with those of the nearest names."""
    near = closest(mnemonic, (*SUPPORTED, *UNMODELLED), everything_up_to=0)
    return IllegalError(f"unknown operation pto.{mnemonic}", legal=[f"pto.{name}" for name in near])
