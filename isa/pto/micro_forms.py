"""How and where every operation of the micro level and on logical registers is written: one row each.

The notation is what `micro_words` reads. Source: docs/reference/micro.md sections 1.3 to 1.7 and 9.2.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

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
    Type,
    VmiOperation,
)

FLOATS = ("f16", "f32")
SHORT_FLOATS = ("f16", "bf16", "f32")
INTEGERS = ("i8", "u8", "i16", "u16", "i32", "u32")
NUMBERS = (*INTEGERS, *SHORT_FLOATS)
PAYLOADS = (*NUMBERS, "e4m3fn", "e5m2", "hif8", "e2m1", "e1m2", "bf16_pair")


class Place(Enum):
    """Where an operation may stand."""

    SCOPE = "inside a vecscope"
    OUTSIDE = "outside a vecscope"
    ANYWHERE = "anywhere"


@dataclass(frozen=True, slots=True)
class MicroRow:
    """An operation: how it may be written, the elements of its first register (none: any), where it may stand.

    A letter is an operand or a result, equal letters are of one type: V U X registers, M a mask of the width of the
    first register, m any mask, P a UB pointer, G one to global memory, Q either, T a scalar of the register's element,
    I an index, N a whole number, L an i64, B an i1, S any scalar, A an alignment state. `P[I]` stands so in the text,
    and `P[i]` without the type of its offset. "x" is a word of the kind x, {x} one in the dictionary, (x) a group.
    `?` marks what may be left out.
    """

    forms: tuple[str, ...]
    elements: tuple[str, ...] = ()
    place: Place = Place.SCOPE
    family: str = ""
    """The name without the width of its lanes, `width`, where it has one: `plt` of `plt_b32`."""
    width: int | None = None


def _rows(names: str, *forms: str, elements: tuple[str, ...] = (), place: Place = Place.SCOPE) -> dict[str, MicroRow]:
    return dict.fromkeys(names.split(), MicroRow(forms, elements, place))


def _by_width(names: str, *forms: str) -> dict[str, MicroRow]:
    return {
        f"{name}_b{bits}": MicroRow(forms, family=name, width=bits) for name in names.split() for bits in (8, 16, 32)
    }


_MASKS = {
    **_by_width("plt", "N > M N"),
    **_by_width("pltm", "N N > M"),
    **_by_width("pset pge", '"pattern" > M'),
    **_by_width("pintlv pdintlv", "M M > M M"),
    **_rows("pand por pxor psel", "m m m > m"),
    **_rows("pnot", "m m > m"),
    **_rows("ppack punpack", 'm "half" > k'),
    **_rows("pbitcast", "m > k"),
    **_rows("psts psti", 'm P[I] "dist"?', 'm P I "dist"?'),
    **_rows("plds pldi", 'P[I] "dist"? > m', 'P I "dist"? > m'),
}

_MEMORY = {
    **_rows("vlds", "P[i] {dist}? > V P?"),
    **_rows("vldsx2", 'P[I] "dist" > V V P?'),
    **_rows("vsldb", "P N N M > V P?"),
    **_rows("vsts", "V P[i] m {dist}? > P?"),
    **_rows("vstsx2", 'V V P[I] "dist" m > P?'),
    **_rows("vsstb", "V P N N M > P?"),
    **_rows("vldas", "P > A", "P[i] > A"),
    **_rows("vldus", "P A > V A P", "P A N > V A P", "P A > V A"),
    **_rows("init_align", "> A"),
    **_rows("vstus", 'A N V P "mode"? > A P?'),
    **_rows("vstur", 'A V P "mode"? > A'),
    **_rows("vstas", "A P N"),
    **_rows("vstar", "A P"),
    **_rows("vgather2", "P U m > V", "P U I > V"),
    **_rows("vgather2_bc", "P U m > V"),
    **_rows("vgatherb", "P U m > V", "P U I > V"),
    **_rows("vscatter", "V P U m", "V P U I"),
    **_rows("sprclr", '"register"'),
    **_rows("mem_bar", '"barrier"'),
}

_ARITHMETIC = {
    **_rows("vadd vsub vmul vmax vmin", "V V M > V", elements=NUMBERS),
    **_rows("vadds vmuls vmaxs vmins", "V T M > V", elements=NUMBERS),
    **_rows("vshl vshr", "V U M > V", elements=INTEGERS),
    **_rows("vshls vshrs", "V N M > V", elements=INTEGERS),
    **_rows("vabs vneg", "V M > V", elements=NUMBERS),
    **_rows("vrelu", "V M > V", elements=NUMBERS),
    **_rows("vlrelu", "V T M > V", elements=FLOATS),
    **_rows("vprelu", "V V M > V", "V V > V", elements=FLOATS),
    **_rows("vnot", "V M > V", elements=PAYLOADS),
    **_rows("vand vor vxor", "V V M > V", elements=PAYLOADS),
    **_rows("vexp vln vsqrt vrec vrsqrt", "V M > V", elements=FLOATS),
    **_rows("vdiv", "V V M > V", elements=FLOATS),
    **_rows("vmula vmadd", "V V V M > V", elements=NUMBERS),
    **_rows("vaxpy", "V V T M > V", "V V T > V", elements=FLOATS),
    **_rows("vexpdif", 'V V M "part" > U', 'V V "part" > U', elements=FLOATS),
    **_rows("vaddc vsubc", "V V M > V M", elements=("i32", "u32")),
    **_rows("vaddcs vsubcs", "V V M M > V M", elements=("i32", "u32")),
    **_rows("vaddrelu vsubrelu", "V V M > V", elements=NUMBERS),
    **_rows("vmull", "V V M > V V", elements=("i32", "u32")),
    **_rows("vcmp", 'V V M "cmp" > M', elements=NUMBERS),
    **_rows("vcmps", 'V T M "cmp" > M', elements=NUMBERS),
    **_rows("vsel", "V V M > V", elements=PAYLOADS),
    **_rows("vselr", "V U > V", elements=PAYLOADS),
    **_rows("vcadd vcmax vcmin vcgadd vcgmax vcgmin", "V M > U", elements=NUMBERS),
    **_rows("vcpadd", "V M > V", elements=FLOATS),
}

_MOVES = {
    **_rows("vcvt", "V M {rnd sat part}? > U"),
    **_rows("vtrc", 'V M "rnd" > V', elements=SHORT_FLOATS),
    **_rows("vbitcast", "V > U"),
    **_rows("vmov", "V M > V", "V > V"),
    **_rows("vintlv vdintlv", "V V > V V", elements=PAYLOADS),
    **_rows("vbr", "T > V", elements=NUMBERS),
    **_rows("vdup", "T M > V", "V M {position}? > V", elements=PAYLOADS),
    **_rows("vci", "T {order}? > V", elements=("i8", "i16", "i32", "f16", "f32")),
    **_rows("vpack", 'V "half" > U', elements=("i32", "u32", "i16", "u16")),
    **_rows("vsunpack vzunpack", "V I > U", 'V "half" > U', elements=("i8", "i16", "u8", "u16")),
    **_rows("vsqz", "V M > V", elements=PAYLOADS),
    **_rows("vusqz", "V M > V", elements=("i8", "i16", "i32")),
}

_OUT, _ANY = Place.OUTSIDE, Place.ANYWHERE

BURSTS = ("mte_gm_ub", "mte_ub_gm", "mte_ub_ub")
"""Transfers whose rows and loops are written with them."""
COPIES = ("copy_gm_to_ubuf", "copy_ubuf_to_gm", "copy_ubuf_to_ubuf")
"""Transfers whose loops are set in registers before."""
LOOP_REGISTERS = {
    f"set_loop{what}_{way}": (what, way) for what in ("_size", "1_stride", "2_stride") for way in ("outtoub", "ubtoout")
}
"""What sets which of these registers of which direction."""

_SCALAR = {
    **_rows("castptr", "S > Q", "Q > S", "Q > Q", place=_ANY),
    **_rows("mte_gm_ub", "G P L L (nburst loop pad)", place=_OUT),
    **_rows("mte_ub_gm", "P G L (nburst l2_cache_ctl loop)", place=_OUT),
    **_rows("mte_ub_ub", "P P L (nburst)", place=_OUT),
    **_rows("copy_gm_to_ubuf", "G P L L L L L B L L L", place=_OUT),
    **_rows("copy_ubuf_to_gm", "P G L L L L L L", place=_OUT),
    **_rows("copy_ubuf_to_ubuf", "P P L L L L L", place=_OUT),
    **_rows(" ".join(LOOP_REGISTERS), "L L", place=_OUT),
    **_rows("set_mov_pad_val", "S", place=_OUT),
    **_rows("get_ctrl", "> L", place=_OUT),
    **_rows("set_ctrl", "L", place=_OUT),
    **_rows("sbitset0 sbitset1", "L N > L", place=_ANY),
    **_rows("get_buf rls_buf", '"pipe" N N', '"pipe" N', '"pipe" "id" "turn"?', place=_OUT),
    **_rows("dsb", '"domain"', place=_OUT),
}

_OPAQUE = {
    **_rows("sprsti sprsts", '"register" P[I]', '"register" P I', '"register" P N'),
    **_rows("pstu", "A m P > A P?"),
    **_rows("vbitsort", "P P P I", "P P P N", place=_OUT),
}
OPAQUE = frozenset(_OPAQUE)
"""Stores of which no text says how many bytes they write; no text has their forms either: those of their neighbours
(`psts`, `vstus`, `sprclr`, `tsort32`) are assumed."""

ROWS: Mapping[str, MicroRow] = {**_MASKS, **_MEMORY, **_ARITHMETIC, **_MOVES, **_SCALAR, **_OPAQUE}
"""Every operation by its name."""

GROUPS: Mapping[str, tuple[int, ...]] = {"nburst": (3,), "loop": (3,), "pad": (1, 3), "l2_cache_ctl": (1,)}
"""How many operands a group may have."""


# What may stand inside a vecscope and what outside (docs/reference/micro.md section 1.5).

MICRO_ARCHITECTURE = "a5"
"""What programs of vector instructions are for (docs/reference/micro.md section 1.1)."""

SCOPES = ("vecscope", "strict_vecscope")
"""Kinds of sections that are one launch of a vector function."""

_SYNCHRONISATION: dict[type[Operation], str] = {
    SetFlag: "set_flag",
    WaitFlag: "wait_flag",
    Barrier: "barrier",
    CacheOperation: "a fence",
}


def check_scopes(body: Sequence[Operation], *, inside: bool = False) -> None:
    """Reject vector operations outside of vecscopes, and what reaches other pipes or global memory inside.

    Raises:
        IllegalError: one stands there.
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
            _refuse(node, f"pto.{node.mnemonic} of global memory", inside=True)
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
    body = function.body or ()
    return next(micro_operations(body), None) is not None or has_logical_registers(function)


def has_logical_registers(function: Function) -> bool:
    """Whether a function has operations on logical registers."""
    return next(logical_operations(function.body or ()), None) is not None


# How every operation on logical registers is written: one row each (docs/reference/micro.md section 9.2).

PREFIX = "vmi."
"""What stands before the names of operations, behind `pto.`."""


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
"""Older names of other operations, and what they are called now (assumed: no text describes them)."""

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
"""Other names of keys, where an operation has the key that they stand for."""

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
