"""The vector operations on tiles as the text writes them: operands and their order, attributes, what kind each is.

Source: pto_assembly.md section 10. Which of them a chip has, and for which elements, is the chip's affair.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Role(StrEnum):
    """What an operand is for."""

    SOURCE = "a"
    SCALAR = "s"
    MASK = "m"
    TMP = "t"


class Kind(StrEnum):
    """How the shapes of sources and destination belong together."""

    MOVE = "move"
    """The elements that both tiles have."""
    FILL = "fill"
    """Source elements, and the pad value around them."""
    ELEMENTWISE = "elementwise"
    """Equal valid regions; also the selections, whose mask holds a bit per element."""
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
    COLUMN_EXPAND = "column expansion"
    """The first row, in all rows."""
    COLUMN_BROADCAST = "column broadcast"
    """A tile and a vector with one element per column."""


@dataclass(frozen=True, slots=True)
class VectorOperation:
    """One operation. `forms` are its legal operand lists inside `ins`; `function` is what it does per element.

    `attribute` is the one it may carry: `cmpMode` or `isBinary`. `tmp_like_source` says that the text wants a scratch
    tile of the source's type and valid region.
    """

    mnemonic: str
    kind: Kind
    function: str
    forms: tuple[tuple[Role, ...], ...]
    attribute: str | None = None
    tmp_like_source: bool = False

    @property
    def spellings(self) -> tuple[str, ...]:
        """The legal operand lists as a reader of messages knows them."""
        return tuple(f"ins({', '.join(_WORDS[role] for role in form)})" for form in self.forms)


_WORDS = {Role.SOURCE: "%tile", Role.SCALAR: "%scalar", Role.MASK: "%mask", Role.TMP: "%tmp"}

COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
"""Values of `cmpMode`; the first is the default."""

ALIASES = ("treshape", "bitcast")
"""Mnemonics that give existing bytes a new type: written `%r = pto.NAME %a : T0 -> T1`, no movement."""

MATRIX = ("tmatmul", "tgemv", "textract", "tinsert", "timg2col")
"""Beginnings of the names of operations that belong to the matrix unit."""


def _rows(kind: Kind, rows: str) -> list[VectorOperation]:
    """Read rows of mnemonic, function, forms (words of roles), attribute, and whether tmp is like the source."""
    made = []
    for row in rows.split(";"):
        mnemonic, function, *forms = row.split()
        attribute = forms.pop() if forms[-1] in ("cmpMode", "isBinary") else None
        like_source = forms[-1] == "tmp_like_source" and bool(forms.pop())
        operands = tuple(tuple(map(Role, form)) for form in forms)
        made.append(VectorOperation(mnemonic, kind, function, operands, attribute, like_source))
    return made


_ALL = [
    *_rows(Kind.MOVE, "tmov move a"),
    *_rows(Kind.FILL, "tfillpad fill a; tfillpad_expand fill a; tfillpad_inplace fill a"),
    *_rows(Kind.ELEMENTWISE, "tadd add aa; tsub sub aa; tmul mul aa; tdiv div aa; tmax max aa; tmin min aa"),
    *_rows(Kind.ELEMENTWISE, "tadds add as; tsubs sub as; tmuls mul as; tdivs div as sa; tmaxs max as; tmins min as"),
    *_rows(Kind.BROADCAST, "texpands move s"),
    *_rows(Kind.ELEMENTWISE, "texp exp a; tlog log a; tsqrt sqrt a; trsqrt rsqrt a at; trecip recip a"),
    *_rows(Kind.ELEMENTWISE, "tabs abs a; tneg neg a; trelu relu a"),
    *_rows(Kind.COMPARE, "tcmp compare aa cmpMode; tcmps compare as cmpMode"),
    *_rows(Kind.ELEMENTWISE, "tsel select maat; tsels select mats"),
    *_rows(Kind.ROW_REDUCE, "trowsum add at; trowmax max at"),
    *_rows(Kind.ROW_REDUCE, "trowmin min at tmp_like_source; trowprod mul at tmp_like_source"),
    *_rows(Kind.ROW_EXPAND, "trowexpand move a"),
    *_rows(Kind.ROW_BROADCAST, "trowexpandmul mul aa aat; trowexpandsub sub aa aat; trowexpanddiv div aa aat"),
    *_rows(Kind.ROW_BROADCAST, "trowexpandadd add aa; trowexpandmax max aa aat; trowexpandmin min aa aat"),
    *_rows(Kind.ROW_BROADCAST, "trowexpandexpdif expdif aa aat"),
    *_rows(Kind.COLUMN_REDUCE, "tcolsum add a at isBinary; tcolmax max a; tcolmin min a; tcolprod mul a"),
    *_rows(Kind.COLUMN_EXPAND, "tcolexpand move a"),
    *_rows(Kind.COLUMN_BROADCAST, "tcolexpandmul mul aa; tcolexpandadd add aa; tcolexpandsub sub aa"),
    *_rows(Kind.COLUMN_BROADCAST, "tcolexpanddiv div aa; tcolexpandmax max aa; tcolexpandmin min aa"),
    *_rows(Kind.COLUMN_BROADCAST, "tcolexpandexpdif expdif aa"),
]

VECTOR_OPERATIONS: dict[str, VectorOperation] = {operation.mnemonic: operation for operation in _ALL}
"""Every vector operation other than tcvt by its mnemonic."""
