"""The forms of micro operations (rows of `micro_rows.csv`) and of operations on logical registers, and where they may
occur.

`micro_words` reads the notation. Source: docs/reference/micro.md sections 1.3 to 1.7 and 9.2.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import chain
from pathlib import Path

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
from castsim.isa.pto.types import format_type
from castsim.isa.pto.value_types import (
    LogicalMaskType,
    LogicalVectorType,
    MicroOperation,
    PointerType,
    ScalarType,
    StridedStatement,
    Type,
    VmiOperation,
)
from castsim.isa.reading import table_rows

FLOATS = ("f16", "f32")
SHORT_FLOATS = ("f16", "bf16", "f32")
INTEGERS = ("i8", "u8", "i16", "u16", "i32", "u32")
NUMBERS = (*INTEGERS, *SHORT_FLOATS)
PAYLOADS = (*NUMBERS, "e4m3fn", "e5m2", "hif8", "e2m1", "e1m2", "bf16_pair")


class Place(Enum):
    """The places where an operation may occur."""

    SCOPE = "inside a vecscope"
    OUTSIDE = "outside a vecscope"
    ANYWHERE = "anywhere"


@dataclass(frozen=True, slots=True)
class MicroRow:
    """An operation: its forms, the elements of its first register (none: any), and the places where it may occur.

    A letter is an operand or a result, equal letters are of one type: V U X registers, M a mask of the width of the
    first register, m any mask, P a UB pointer, G one to global memory, Q either, T a scalar of the register's element,
    I an index, N a whole number, L an i64, B an i1, S any scalar, A an alignment state. `P[I]` is literal, and `P[i]`
    has no type of its offset. "x" is a word of the kind x, {x} one in the dictionary, (x) a group. `?` marks optional
    items.
    """

    forms: tuple[str, ...]
    elements: tuple[str, ...] = ()
    place: Place = Place.SCOPE
    family: str = ""
    """The name without the width of its lanes, `width`, where it has one: `plt` of `plt_b32`."""
    width: int | None = None


BURSTS = ("mte_gm_ub", "mte_ub_gm", "mte_ub_ub")
"""Transfers whose text contains their rows and loops."""
COPIES = ("copy_gm_to_ubuf", "copy_ubuf_to_gm", "copy_ubuf_to_ubuf")
"""Transfers whose loops are set in registers before."""
LOOP_REGISTERS = {
    f"set_loop{what}_{way}": (what, way) for what in ("_size", "1_stride", "2_stride") for way in ("outtoub", "ubtoout")
}
"""The operations that set these registers, by register and direction."""

OPAQUE = frozenset(("sprsti", "sprsts", "pstu", "vbitsort"))
"""Stores whose number of bytes no text states. No text has their forms either: those of their neighbours (`psts`,
`vstus`, `sprclr`, `tsort32`) are assumed."""

_ELEMENTS = {
    "floats": FLOATS, "short_floats": SHORT_FLOATS, "integers": INTEGERS, "numbers": NUMBERS, "payloads": PAYLOADS,
}  # fmt: skip
"""The groups of elements in a cell of the table."""


def _read(row: Mapping[str, str]) -> Iterator[tuple[str, MicroRow]]:
    """Yield the operations of a row of the table, whose forms have single quotes around words."""
    elements = _ELEMENTS.get(row["elements"]) or tuple(row["elements"].strip("-").split())
    common = MicroRow(tuple(row["forms"].replace("'", '"').split(" | ")), elements, Place[row["place"].upper()])
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
"""The legal numbers of operands of a group."""


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
    """Reject vector operations outside of vecscopes, and operations for other pipes or global memory inside.

    Raises:
        IllegalError: there is such an operation.
    """
    for node in body:
        if isinstance(node, MicroOperation):
            place = ROWS[node.mnemonic].place
            if place is (Place.OUTSIDE if inside else Place.SCOPE):
                _refuse(node, f"pto.{node.mnemonic}", inside=inside)
        elif isinstance(node, VmiOperation):
            if not inside:
                _refuse(node, f"pto.vmi.{node.mnemonic}", inside=False)
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


def logical_operations(body: Sequence[Operation]) -> Iterator[VmiOperation]:
    """Yield the operations on logical registers of a region and of the regions in it."""
    yield from (node for node in nodes(body) if isinstance(node, VmiOperation))


def is_micro(function: Function) -> bool:
    """Whether a function is one of vector instructions."""
    kinds = MicroOperation | VmiOperation | StridedStatement
    return any(isinstance(node, kinds) for node in nodes(function.body or ()))


def is_strided(function: Function) -> bool:
    """Whether a function has instructions of A2/A3."""
    return any(isinstance(node, StridedStatement) for node in nodes(function.body or ()))


def has_logical_registers(function: Function) -> bool:
    """Whether a function has operations on logical registers."""
    return next(logical_operations(function.body or ()), None) is not None


# How every operation on logical registers is written: one row each (docs/reference/micro.md section 9.2).

PREFIX = "vmi."
"""The prefix of operation names after `pto.`."""


@dataclass(frozen=True, slots=True)
class VmiRow:
    """An operation: its operands as a pattern of letters (V register, K mask, P pointer, S scalar), its result (V, K or
    none), the keys of its dictionary, the kind of its word in quotes, an example.

    `elements` are those of its registers (none: any).
    """

    operands: str
    result: str
    example: str
    keys: tuple[str, ...] = ()
    word: str = ""
    elements: tuple[str, ...] = ()

    def fits(self, letters: str) -> bool:
        """Whether operands of these letters may be given."""
        return re.fullmatch(self.operands, letters) is not None


def letter_of(kind: Type) -> str:
    """Return the letter of a type; `?` for one that no operation takes."""
    match kind:
        case LogicalVectorType():
            return "V"
        case LogicalMaskType():
            return "K"
        case PointerType():
            return "P"
        case ScalarType():
            return "S"
    return "?"


def _same(names: str, operands: str, result: str, example: str, keys: tuple[str, ...] = (), word: str = "") -> dict[
    str, VmiRow
]:  # fmt: skip
    """Return rows of operations that take the elements of their namesakes of one register."""
    return {
        name: VmiRow(operands, result, example.replace("NAME", name), keys, word, ROWS[name].elements)
        for name in names.split()
    }


_V, _K, _P = "!pto.vmi.vreg<LxT>", "!pto.vmi.mask<Lxpred>", "!pto.ptr<T, ub>"
_CONVERT = VmiRow("VK?", "V", f'%r = pto.vmi.vcvt %a {{rounding = "R", saturate = "SAT"}} : {_V} -> !pto.vmi.vreg<LxU>',
               ("rounding", "saturate"))  # fmt: skip

LEGACY = ("extf", "truncf", "extsi", "extui", "trunci", "fptosi", "fptoui", "sitofp", "uitofp")
"""Older names of `vcvt`."""

SYNONYMOUS: Mapping[str, str] = {"load": "vload", "store": "vstore"}
"""Older names of other operations, with their current names (assumed: no text describes them)."""

VMI_ROWS: Mapping[str, VmiRow] = {
    "vload": VmiRow("PS{1,2}K?", "V", f"%r = pto.vmi.vload %p[%i] : {_P} -> {_V}", ("dist_mode", "group")),
    "vstore": VmiRow("VPS{1,2}K?", "", f"pto.vmi.vstore %v, %p[%i], %m : {_V}, {_P}, {_K}", ("dist_mode", "group")),
    "vgather": VmiRow("PS?VK?", "V",
                      f"%r = pto.vmi.vgather %p[%i], %n, %m : {_P}, !pto.vmi.vreg<Lxui32>, {_K} -> {_V}"),
    "vcvt": _CONVERT,
    **dict.fromkeys(LEGACY, _CONVERT),
    "vinterpret_cast": VmiRow("V", "V", f"%r = pto.vmi.vinterpret_cast %a : {_V} -> !pto.vmi.vreg<MxU>"),
    "create_mask": VmiRow("S", "K", f"%m = pto.vmi.create_mask %n : index -> {_K}"),
    "pset": VmiRow("", "K", f'%m = pto.vmi.pset "PAT_VL8" : {_K}', ("pattern",), "pattern"),
    "create_group_mask": VmiRow(
        "S", "K", f"%m = pto.vmi.create_group_mask %n {{num_groups = C, group_size = S}} : index -> {_K}",
        ("num_groups", "group_size"),
    ),
    "vbrc": VmiRow("S|V", "V", f"%r = pto.vmi.vbrc %x : T -> {_V}", ("group",)),
    "vci": VmiRow("S", "V", f"%r = pto.vmi.vci %x : T -> {_V}", ("order",), elements=ROWS["vci"].elements),
    **_same("vadd vsub vmul vdiv vmax vmin vand vor vxor vshl vshr", "VVK?", "V",
            f"%r = pto.vmi.NAME %a, %b, %m : {_V}, {_V}, {_K} -> {_V}"),
    **_same("vaddrelu vsubrelu vprelu", "VVK?", "V", f"%r = pto.vmi.NAME %a, %b, %m : {_V}, {_V}, {_K} -> {_V}"),
    **_same("vmula", "VVVK?", "V", f"%r = pto.vmi.NAME %c, %a, %b, %m : {_V}, {_V}, {_V}, {_K} -> {_V}"),
    **_same("vaxpy", "VVSK?", "V", f"%r = pto.vmi.NAME %a, %b, %x, %m : {_V}, {_V}, T, {_K} -> {_V}"),
    **_same("vtrc", "VK?", "V", f'%r = pto.vmi.NAME %a, %m, "F" : {_V}, {_K} -> {_V}', ("rounding",), "rounding"),
    **_same("vadds vmuls vmaxs vmins vshls vshrs vlrelu", "VSK?", "V",
            f"%r = pto.vmi.NAME %a, %x, %m : {_V}, T, {_K} -> {_V}"),
    **_same("vabs vneg vrelu vnot vexp vln vsqrt vrec vrsqrt", "VK?", "V",
            f"%r = pto.vmi.NAME %a, %m : {_V}, {_K} -> {_V}"),
    **_same("vcmp", "VVK?", "K", f'%k = pto.vmi.NAME %a, %b, %m, "lt" : {_V}, {_V}, {_K} -> {_K}', ("cmp_mode",),
            "cmp_mode"),
    **_same("vcmps", "VSK?", "K", f'%k = pto.vmi.NAME %a, %x, %m, "lt" : {_V}, T, {_K} -> {_K}', ("cmp_mode",),
            "cmp_mode"),
    "vsel": VmiRow("VVK|KVV|VKV", "V", f"%r = pto.vmi.vsel %a, %b, %m : {_V}, {_V}, {_K} -> {_V}"),
    **_same("vcadd vcmax vcmin", "VK?", "V",
            f"%r = pto.vmi.NAME %a, %m {{group = C}} : {_V}, {_K} -> !pto.vmi.vreg<CxT>", ("group", "reassoc")),
    **{
        name: VmiRow("KKK?", "K", f"%k = pto.vmi.{name} %a, %b : {_K}, {_K} -> {_K}")
        for name in ("pand", "por", "pxor")
    },
    "pnot": VmiRow("KK?", "K", f"%k = pto.vmi.pnot %a : {_K} -> {_K}"),
}  # fmt: skip
"""Every operation by its name."""

SYNONYMS: Mapping[str, str] = {"num_groups": "group", "cmp": "cmp_mode"}
"""Synonyms of keys, for operations that have the key."""

COUNTS = ("group", "num_groups", "group_size")
"""Keys whose values are numbers."""
DISTRIBUTIONS = ("continuous", "unpack", "brc")


# Writing operations on logical registers, in one canonical form each (docs/reference/micro.md section 9.2).


def vmi_text(node: VmiOperation) -> str:
    """Return the text of an operation, without its results."""
    row, items = VMI_ROWS[node.mnemonic], list[str]()
    for place, name in enumerate(node.operands):
        if place == node.offset_at:
            items[-1] += f"[%{name}]"
        else:
            items.append(f"%{name}")
    if row.word:
        items.append(f'"{node.word(row.word)}"')
    entries = [_entry(key, word) for key, word in node.attributes if key != row.word]
    kinds = [format_type(kind) for place, kind in enumerate(node.operand_types) if place != node.offset_at]
    text = f"pto.{PREFIX}{node.mnemonic} {', '.join(items)}"
    text += f" {{{', '.join(entries)}}}" if entries else ""
    arrow = " -> " if node.results and kinds else ""
    return f"{text} : {', '.join(kinds)}{arrow}{', '.join(map(format_type, node.result_types))}"


def _entry(key: str, word: str) -> str:
    if not word:
        return key
    return f"{key} = {word}" if key in COUNTS else f'{key} = "{word}"'
