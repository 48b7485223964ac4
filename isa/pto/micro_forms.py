"""Forms of micro operations (rows of `micro_rows.csv`), and where they and those of dialects may occur.

`micro_words` reads the notation. Source: docs/reference/micro.md sections 1.3 to 1.7.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from itertools import chain
from pathlib import Path

from castsim.isa.dataclass import dataclass, replace
from castsim.isa.errors import IllegalError
from castsim.isa.pto.program import (
    Barrier,
    CacheOperation,
    Function,
    Operation,
    ScalarAccess,
    Section,
    SetFlag,
    WaitFlag,
    nodes,
    regions_of,
)
from castsim.isa.pto.value_types import (
    DialectOperation,
    MicroOperation,
    StridedStatement,
)
from castsim.isa.reading import table_rows

FLOATS = ("f16", "f32")
SHORT_FLOATS = ("f16", "bf16", "f32")
INTEGERS = ("i8", "u8", "i16", "u16", "i32", "u32")
NUMBERS = (*INTEGERS, *SHORT_FLOATS)
PAYLOADS = (*NUMBERS, "e4m3fn", "e5m2", "hif8", "e2m1", "e1m2", "bf16_pair")


class Place(Enum):
    """Where an operation may occur."""

    SCOPE = "inside a vecscope"
    OUTSIDE = "outside a vecscope"
    ANYWHERE = "anywhere"


@dataclass(frozen=True, slots=True)
class MicroRow:
    """An operation: its forms, the elements of its first register (empty: any), and where it may occur.

    A letter is an operand or a result, equal letters have one type: V U X registers, M a mask of the width of the
    first register, m any mask, P a UB pointer, G one to global memory, Q either, T a scalar of the register's element,
    I an index, N an integer, L an i64, B an i1, S any scalar, A an alignment state. `P[I]` is literal, and `P[i]`
    has no type of its offset. "x" is a word of the kind x, {x} one in the dictionary, (x) a group. `?` marks optional
    items. `work` is what its time is spent on: load, store, compute, predicate (ready on demand) or barrier, empty
    outside vecscopes. `lanewise`: it ignores the lanes left out by its mask, the last one that it reads.
    """

    forms: tuple[str, ...]
    elements: tuple[str, ...] = ()
    place: Place = Place.SCOPE
    family: str = ""
    """The name without the width of its lanes, `width`, if it has one: `plt` of `plt_b32`."""
    width: int | None = None
    work: str = ""
    lanewise: bool = False


BURSTS = ("mte_gm_ub", "mte_ub_gm", "mte_ub_ub")
"""Transfers whose text contains their rows and loops."""
COPIES = ("copy_gm_to_ubuf", "copy_ubuf_to_gm", "copy_ubuf_to_ubuf")
"""Transfers whose loops are set in registers beforehand."""
LOOP_REGISTERS = {
    f"set_loop{what}_{way}": (what, way) for what in ("_size", "1_stride", "2_stride") for way in ("outtoub", "ubtoout")
}
"""The operations that set these registers, by register and direction."""

OPAQUE = frozenset(("sprsti", "sprsts", "pstu", "vbitsort"))
"""Stores whose number of bytes no text states. No text has their forms either: they are assumed to equal those of their
neighbours (`psts`, `vstus`, `sprclr`, `tsort32`)."""

_ELEMENTS = {
    "floats": FLOATS, "short_floats": SHORT_FLOATS, "integers": INTEGERS, "numbers": NUMBERS, "payloads": PAYLOADS,
}  # fmt: skip
"""The groups of elements in a cell of the table."""


def _read(row: Mapping[str, str]) -> Iterator[tuple[str, MicroRow]]:
    """Yield the operations of a row of the table, whose forms have single quotes around words."""
    elements = _ELEMENTS.get(row["elements"]) or tuple(row["elements"].strip("-").split())
    forms, place = tuple(row["forms"].replace("'", '"').split(" | ")), Place[row["place"].upper()]
    common = MicroRow(forms, elements, place, work=row["work"].strip("-"), lanewise=row["lanes"] == "own")
    for name in row["names"].split():
        if row["widths"] == "-":
            yield name, common
        for bits in map(int, row["widths"].strip("-").split()):
            yield f"{name}_b{bits}", replace(common, family=name, width=bits)


ROWS: Mapping[str, MicroRow] = dict(
    chain.from_iterable(map(_read, table_rows(Path(__file__).with_name("micro_rows.csv"))))
)
"""Every operation by its name."""

GROUPS: Mapping[str, tuple[int, ...]] = {"nburst": (3,), "loop": (3,), "pad": (1, 3), "l2_cache_ctl": (1,)}
"""The legal numbers of operands in a group."""


# What may stand inside a vecscope and what outside (docs/reference/micro.md section 1.5).

MICRO_ARCHITECTURE, STRIDED_ARCHITECTURE = "a5", "a2a3"
"""The architectures of programs of vector instructions (docs/reference/micro.md section 1.1), and of those with
`pto.strided` statements."""

SCOPES = ("vecscope", "strict_vecscope")
"""Kinds of sections that are one launch of a vector function."""

_SYNCHRONISATION: dict[type[Operation], str] = {
    SetFlag: "set_flag",
    WaitFlag: "wait_flag",
    Barrier: "barrier",
    CacheOperation: "a fence",
}


def check_scopes(body: Sequence[Operation], *, inside: bool = False) -> None:
    """Reject vector operations outside vecscopes, and operations for other pipes or global memory inside.

    Raises:
        IllegalError: there is such an operation.
    """
    for node in body:
        if isinstance(node, MicroOperation):
            placement = ROWS[node.mnemonic].place
            if placement is (Place.OUTSIDE if inside else Place.SCOPE):
                _refuse(node, f"pto.{node.mnemonic}", inside=inside)
        elif isinstance(node, DialectOperation):
            if not inside:
                _refuse(node, f"pto.{node.name}", inside=False)
        elif inside and type(node) in _SYNCHRONISATION:
            _refuse(node, _SYNCHRONISATION[type(node)], inside=True)
        elif inside and isinstance(node, ScalarAccess) and getattr(node.base_type, "space", None) != "ub":
            _refuse(node, f"pto.{node.mnemonic} cannot access global memory", inside=True)
        elif isinstance(node, Section):
            if inside and node.kind in SCOPES:
                _refuse(node, f"pto.{node.kind}", inside=True)
            check_scopes(node.body, inside=inside or node.kind in SCOPES)
        else:
            for region in regions_of(node):
                check_scopes(region, inside=inside)


def _refuse(node: Operation, what: str, *, inside: bool) -> None:
    where = "inside" if inside else "outside"
    legal = ("after the vecscope",) if inside else ("pto.vecscope { ... }",)
    raise IllegalError(f"{what} is not allowed {where} a vecscope", span=node.span, legal=legal)


def micro_operations(body: Sequence[Operation]) -> Iterator[MicroOperation]:
    """Yield the micro operations of a region and of the regions in it."""
    yield from (node for node in nodes(body) if isinstance(node, MicroOperation))


def is_micro(function: Function) -> bool:
    """Return whether a function consists of vector instructions."""
    kinds = MicroOperation | DialectOperation | StridedStatement
    return any(isinstance(node, kinds) for node in nodes(function.body or ()))


def is_strided(function: Function) -> bool:
    """Return whether a function has instructions of A2/A3."""
    return any(isinstance(node, StridedStatement) for node in nodes(function.body or ()))
