"""The types of `.pto` values, and the dialects that add types and operations.

`castsim.isa.pto.program` describes the whole program.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from importlib import import_module
from types import ModuleType

from castsim.isa.dataclass import dataclass, field, replace
from castsim.isa.errors import NOWHERE, Located, ReadError, Span
from castsim.isa.formats import FloatFormat, Format, Specials, format_named


@dataclass(frozen=True, slots=True)
class ScalarType:
    """A builtin scalar: `index`, `i1`, `i8` .. `i64`, `u8` .. `u64` (written `ui8` ..), `f16`, `bf16`, `f32`, `f64`."""

    name: str


@dataclass(frozen=True, slots=True)
class PointerType:
    """`!pto.ptr<f32>`; `space` is the optional second parameter (`gm`, `ub`)."""

    element: str
    space: str | None = None
    spelling: str = field(default="", compare=False, repr=False)
    """The element in the text's spelling if it is not canonical: `si32`, `!pto.hif8`."""


@dataclass(frozen=True, slots=True)
class TileType:
    """`!pto.tile_buf<...>` in either spelling. Extents count elements; a valid extent of None is dynamic (`?`)."""

    location: str
    element: str
    rows: int
    cols: int
    valid_rows: int | None
    valid_cols: int | None
    block_layout: str = "row_major"
    scatter_layout: str = "none_box"
    fractal: int = 512
    pad: int = 0
    compact: int = 0

    @property
    def foreign(self) -> bool:
        """Whether the vector unit cannot use it: it is in another buffer, or consists of boxes."""
        return self.location != "vec" or self.scatter_layout != "none_box"


BOXED = ("tload", "tstore", "tmov", "tfillpad", "tfillpad_expand", "tfillpad_inplace", "treshape", "bitcast")
"""Operations that also accept boxed tiles in the vector unit's buffer."""


def is_foreign_work(mnemonic: str, kinds: Iterable[object]) -> bool:
    """Return whether tiles of these types assign an operation to a unit other than the vector unit."""
    for kind in kinds:
        if isinstance(kind, TileType) and kind.foreign and (kind.location != "vec" or mnemonic in BOXED):
            return True
    return False


@dataclass(frozen=True, slots=True)
class ViewType:
    """`!pto.tensor_view<?x?xf32>`; a dimension of None is dynamic."""

    dims: tuple[int | None, ...]
    element: str


@dataclass(frozen=True, slots=True)
class PartitionType:
    """`!pto.partition_tensor_view<16x64xf32>`."""

    dims: tuple[int | None, ...]
    element: str


@dataclass(frozen=True, slots=True)
class MultiTileType:
    """`!pto.multi_tile_buf<vec, 16x16xf16, count=2>`: contiguous tiles of one type."""

    tile: TileType
    count: int

    @property
    def element(self) -> str:
        """Element format of every tile."""
        return self.tile.element


@dataclass(frozen=True, slots=True)
class VectorType:
    """`!pto.vreg<64xf32>`: a vector register of 256 bytes.

    An element of the 4-bit formats `e1m2` and `e2m1` is a pair of values in one byte, the first in its low half.
    """

    lanes: int
    element: str
    spelling: str = field(default="", compare=False, repr=False)
    """Spelling of the element type, as in a pointer type."""

    @property
    def bits(self) -> int:
        """Bits of a lane."""
        return REGISTER_BITS // self.lanes


@dataclass(frozen=True, slots=True)
class MaskType:
    """`!pto.mask<b32>`: a predicate with a bit for every lane of `bits` bits: 8, 16 or 32.

    Assemblers up to spring 2026 print `!pto.mask`: `bits` is then 0 until the operation or the definition sets it.
    """

    bits: int


@dataclass(frozen=True, slots=True)
class AlignType:
    """`!pto.align`: the state of unaligned loads and stores."""


class DialectType:
    """A type that a dialect of another level adds; see `castsim.isa.pto.value_types`."""

    __slots__ = ()

    @property
    def text(self) -> str:
        """The type as in a program."""
        raise NotImplementedError


REGISTER_BITS = 2048
"""Bits of a vector register (docs/reference/micro.md section 1.2)."""

BLOCK_BITS = 256
"""The bits of a 32-byte block of the buffer; a register holds 8 blocks."""

Type = (
    ScalarType | PointerType | TileType | ViewType | PartitionType | MultiTileType | VectorType | MaskType | AlignType
    | DialectType
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class RegisterOperation(Located):
    """The common properties of register operations of both levels."""

    mnemonic: str
    operands: tuple[str, ...]
    operand_types: tuple[Type, ...]
    results: tuple[str, ...] = ()
    result_types: tuple[Type, ...] = ()
    attributes: tuple[tuple[str, str], ...] = ()

    def word(self, key: str) -> str | None:
        """Return a word or number of the text by kind, None if there is none."""
        return next((text for name, text in self.attributes if name == key), None)


# What dialects of other levels add to the operations of a program (docs/reference/micro.md section 9.1).


@dataclass(frozen=True, slots=True)
class DialectOperation(RegisterOperation):
    """`%r = pto.DIALECT.NAME %a, %p[%i], %m {key = value} : types -> types`.

    `operands` are all values in text order; `offset_at` is the index of the one in brackets, whose type the
    text omits. Words have their short names (`R`, not `ROUND_R`).
    """

    offset_at: int | None = None
    dialect: str = ""

    @property
    def name(self) -> str:
        """The name of the operation after `pto.`."""
        return f"{self.dialect}.{self.mnemonic}"

    def count(self, key: str) -> int | None:
        """Return a number of the text by kind, None if there is none."""
        text = self.word(key)
        return None if text is None else int(text)


# What the micro level adds to the operations of a program.
#
# Its operations are alike but for their operands: one node holds each of them, and `micro_forms` tells
# how it is written. Source: docs/reference/micro.md section 1.


@dataclass(frozen=True, slots=True)
class MicroOperation(RegisterOperation):
    """`%r = pto.NAME %a, %p[%i], "WORD", %m group(%x, %y) {key = "WORD"} : types -> types`.

    `operands` are all values in text order, those of `groups` last; `groups` are the names of the groups
    with their numbers of operands. `attributes` has the words of the text by kind (`dist`, `rnd`), whether between
    the operands or in the dictionary, under their short names (`R`, not `ROUND_R`).
    """

    groups: tuple[tuple[str, int], ...] = ()


# The instructions of A2/A3 as statements, one node for all; `strided_statements` tells how each is written.


@dataclass(frozen=True, slots=True)
class StridedStatement(RegisterOperation):
    """`pto.strided.NAME ins(%a, %x : types) outs(%d : type) {repeats = 4, blocks = [1, 1], strides = [8, 8]}`.

    `operands` are the destinations, as many as `destinations`, the sources and the scalars, with an optional number of
    repeats (index) behind them. `blocks` and `strides` are the block and repeat strides of the pointers, in
    that order; empty: 1 for every block stride, and the repeat strides of adjacent repeats.
    """

    destinations: int = 0
    repeats: int = 1
    blocks: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()


# Elements that hold two values: how many columns a tile of them stands for, and what it holds.
#
# Spelled with the prefix `!pto.`, a column of 4-bit values counts bytes, that is pairs; the value in the low half is
# the one of the even column. Everything but a cast treats such an element as one thing. Source: docs/reference/pto.md
# section 2.4.


@dataclass(frozen=True)
class PairFormat(FloatFormat):
    """Two values of the format `held` in one storage unit; its own fields only define its width."""

    held: str = ""


PAIRS: Mapping[str, PairFormat] = {
    f"{held}_pair": PairFormat(f"{held}_pair", exponent, fraction, 0, Specials.NONE, held=held)
    for held, exponent, fraction in (("e2m1", 4, 3), ("e1m2", 4, 3), ("hif8", 8, 7), ("bf16", 8, 23))
}
"""Every element with two values, by its name in types of programs."""


def element_format(name: str) -> Format:
    """Return the format of an element type, by its name in tiles and views of programs.

    Raises:
        ReadError: the format does not exist.
    """
    return PAIRS.get(name) or format_named(name)


@lru_cache(maxsize=64)
def vector(element: str) -> VectorType:
    """Return the type of a register of an element; two 4-bit elements form one of 8 bits."""
    return VectorType(REGISTER_BITS // max(8, element_format(element).bits), element)


def held_format(fmt: Format) -> tuple[Format, int]:
    """Return the format of the values in an element, and their number."""
    return (format_named(fmt.held), 2) if isinstance(fmt, PairFormat) else (fmt, 1)


def held_element(name: str) -> str:
    """Return the 4-bit format whose pairs form an element, by its name in register casts; or the element's own name."""
    pair = PAIRS.get(name)
    return name if pair is None or pair.bits != 8 else pair.held


def unpacked(kind: TileType) -> TileType:
    """Return the type of a tile as casts read it: two columns (rows if column-major) for each one of 4-bit pairs."""
    pair = PAIRS.get(kind.element)
    if pair is None or pair.bits != 8:
        return kind
    if kind.block_layout == "row_major":
        return replace(kind, element=pair.held, cols=2 * kind.cols, valid_cols=_twice(kind.valid_cols))
    return replace(kind, element=pair.held, rows=2 * kind.rows, valid_rows=_twice(kind.valid_rows))


def _twice(extent: int | None) -> int | None:
    return None if extent is None else 2 * extent


# The dialects that languages add: the folder that reads, prints and lowers the operations of each.

LOGICAL = "vmi"
"""The dialect of logical registers, with operations named `pto.vmi.NAME`."""

DIALECT_TITLES = {LOGICAL: "logical registers (pto.vmi)"}
"""What each dialect is, by the prefix of its operations after `pto.`."""

DIALECTS: dict[str, str] = {
    LOGICAL: "castsim.languages.vmi",
}
"""The folder of each installed dialect.

Its module `operations` has `TYPES` and their `READERS`, `NAMES`, `read_operation` and `operation_text`; `lowering` has
`lower_function`, which replaces the operations of a function by micro operations.
"""


def dialect_of(name: str) -> str | None:
    """Return the dialect of an operation or type `pto.DIALECT.NAME`; None if it belongs to none."""
    prefix, dialect, *rest = name.split(".", 2) if name.count(".") > 1 else (name, "")
    return dialect if rest and prefix == "pto" and dialect in DIALECT_TITLES else None


def dialect_module(dialect: str, module: str, span: Span = NOWHERE) -> ModuleType:
    """Return a module of a dialect's folder, which is loaded on first use; `span` is what needs it.

    Raises:
        ReadError: this installation lacks the dialect.
    """
    if dialect not in DIALECTS:
        raise ReadError(f"this castsim was installed without {DIALECT_TITLES[dialect]}", span=span)
    return import_module(f"{DIALECTS[dialect]}.{module}")


def dialect_names() -> tuple[str, ...]:
    """Return the names of all operations of the installed dialects."""
    return tuple(name for dialect in DIALECTS for name in dialect_module(dialect, "operations").NAMES)


def dialect_types() -> tuple[str, ...]:
    """Return the types of the installed dialects."""
    return tuple(name for dialect in DIALECTS for name in dialect_module(dialect, "operations").TYPES)
