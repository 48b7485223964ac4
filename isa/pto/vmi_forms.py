"""How every operation on logical registers is written: one row each (docs/reference/micro.md section 9.2)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from castsim.isa.pto.micro_forms import ROWS as MICRO
from castsim.isa.pto.types import format_type
from castsim.isa.pto.value_types import LogicalMaskType, LogicalVectorType, PointerType, ScalarType, Type, VmiOperation

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
        name: VmiRow(operands, result, example.replace("NAME", name), keys, word, MICRO[name].elements)
        for name in names.split()
    }


_V, _K, _P = "!pto.vmi.vreg<LxT>", "!pto.vmi.mask<Lxpred>", "!pto.ptr<T, ub>"
_CONVERT = VmiRow("VK?", "V", f'%r = pto.vmi.vcvt %a {{rounding = "R", saturate = "SAT"}} : {_V} -> !pto.vmi.vreg<LxU>',
               ("rounding", "saturate"))  # fmt: skip

LEGACY = ("extf", "truncf", "extsi", "extui", "trunci", "fptosi", "fptoui", "sitofp", "uitofp")
"""Older names of `vcvt`."""

SYNONYMOUS: Mapping[str, str] = {"load": "vload", "store": "vstore"}
"""Older names of other operations, and what they are called now (assumed: no text describes them)."""

ROWS: Mapping[str, VmiRow] = {
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
    "vci": VmiRow("S", "V", f"%r = pto.vmi.vci %x : T -> {_V}", ("order",), elements=MICRO["vci"].elements),
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
    row, items = ROWS[node.mnemonic], list[str]()
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
