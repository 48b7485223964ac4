"""The text of logical registers: every operation is read, printed and lowered; what is refused, where, and why."""

from __future__ import annotations

import pytest

from castsim.isa.errors import CastsimError
from castsim.isa.pto.micro_forms import logical_operations, micro_operations
from castsim.isa.pto.pto_parser import parse
from castsim.isa.pto.pto_printer import print_program
from castsim.isa.pto.vmi_forms import ROWS
from castsim.isa.warning_text import WarningKind
from castsim.machines.vector_function.logical_function import lower_function

V, H, W, I32, U16, S = (
    f"!pto.vmi.vreg<{kind}>" for kind in ("128xf32", "128xf16", "256xf32", "128xsi32", "128xui16", "8xf32")
)
K, P, Q, G = "!pto.vmi.mask<128xpred>", "!pto.ptr<f32, ub>", "!pto.ptr<f16, ub>", "!pto.ptr<f32, gm>"
ARGUMENTS = (
    f"%v: {V}, %w: {V}, %h: {H}, %big: {W}, %n: {I32}, %u: {U16}, %s: {S}, %m: {K}, %p: {P}, %q: {Q}, %g: {G}, "
    "%i: index, %j: index, %b: i16, %x: f32, %y: f16, %c: i32, %k: !pto.vmi.mask<64>"
)


def program(statement: str) -> str:
    return f"func.func @f({ARGUMENTS}) attributes {{pto.kernel}} {{\npto.vecscope {{\n{statement}\n}}\nreturn\n}}\n"


LEGAL = [
    f"%r = pto.vmi.vload %p[%i] : {P} -> {V}",
    f"%r = pto.vmi.vload %p[%i] : {P}, index -> {V}",
    f'%r = pto.vmi.vload %p[%i] {{dist_mode = "brc"}} : {P} -> {V}',
    f"%r = pto.vmi.vload %p[%i], %j {{group = 8}} : {P}, index -> {V}",
    f"%r = pto.vmi.vload %p[%i], %j {{group = 8 : i64}} : {P} -> {V}",
    f"%r = pto.vmi.vload %p[%i], %j {{num_groups = 8}} : {P}, index, index -> {V}",
    f"%r = pto.vmi.vload %p[%i], %b, %m : {P}, i16, {K} -> {V}",
    f"pto.vmi.vstore %v, %p[%i] : {V}, {P}",
    f"pto.vmi.vstore %v, %p[%i], %m : {V}, {P}, {K}",
    f"pto.vmi.vstore %s, %p[%i], %j {{group = 8}} : {S}, {P}",
    f"pto.vmi.vstore %v, %p[%i], %b : {V}, {P}, i16",
    f'%r = pto.vmi.vcvt %v {{rounding = "ROUND_R", saturate = "RS_ENABLE"}} : {V} -> {H}',
    f'%r = pto.vmi.vcvt %v, %m {{saturate = "NOSAT"}} : {V}, {K} -> {H}',
    f"%r = pto.vmi.vcvt %h : {H} -> {V}",
    f"%r = pto.vmi.extf %h : {H} -> {V}",
    f"%r = pto.vmi.truncf %v : {V} -> {H}",
    f"%r = pto.vmi.vinterpret_cast %v : {V} -> !pto.vmi.vreg<256xbf16>",
    "%r = pto.vmi.create_mask %i : index -> !pto.vmi.mask<300>",
    "%r = pto.vmi.create_mask %i : index -> !pto.vmi.mask<300xb32>",
    f"%r = pto.vmi.create_group_mask %i {{num_groups = 8, group_size = 16}} : index -> {K}",
    f"%r = pto.vmi.vbrc %x : f32 -> {V}",
    f"%r = pto.vmi.vbrc %s {{group = 8}} : {S} -> {V}",
    f'%r = pto.vmi.vci %c {{order = "DESC"}} : i32 -> {I32}',
    f"%r = pto.vmi.vadd %v, %w : {V}, {V} -> {V}",
    f"%r = pto.vmi.vmula %v, %w, %v, %m : {V}, {V}, {V}, {K} -> {V}",
    f"%r = pto.vmi.vaxpy %v, %w, %x : {V}, {V}, f32 -> {V}",
    f"%r = pto.vmi.vlrelu %v, %x, %m : {V}, f32, {K} -> {V}",
    f'%r = pto.vmi.vtrc %v, %m, "F" : {V}, {K} -> {V}',
    f'%r = pto.vmi.vtrc %v {{rounding = "ROUND_Z"}} : {V} -> {V}',
    f"%r = pto.vmi.vshl %n, %n, %m : {I32}, {I32}, {K} -> {I32}",
    f"%r = pto.vmi.vshrs %n, %b : {I32}, i16 -> {I32}",
    f"%r = pto.vmi.vexp %v : {V} -> {V}",
    f'%r = pto.vmi.vcmp %v, %w, "lt" : {V}, {V} -> {K}',
    f'%r = pto.vmi.vcmp %v, %w, %m {{cmp = "ge"}} : {V}, {V}, {K} -> {K}',
    f'%r = pto.vmi.vcmps %v, %x {{cmp_mode = "eq"}} : {V}, f32 -> {K}',
    f"%r = pto.vmi.vsel %v, %w, %m : {V}, {V}, {K} -> {V}",
    f"%r = pto.vmi.vsel %m, %v, %w : {K}, {V}, {V} -> {V}",
    f"%r = pto.vmi.vgather %p[%i], %n, %m : {P}, {I32}, {K} -> {V}",
    f"%r = pto.vmi.vgather %p, %u : {P}, {U16} -> {V}",
    f"%r = pto.vmi.vcadd %v, %m {{group = 8, reassoc}} : {V}, {K} -> {S}",
    f"%r = pto.vmi.vcmax %v : {V} -> !pto.vmi.vreg<1xf32>",
    f"%r = pto.vmi.por %m, %m : {K}, {K} -> {K}",
    f"%r = pto.vmi.pnot %m, %m : {K}, {K} -> {K}",
]


@pytest.mark.parametrize("statement", LEGAL)
def test_what_is_printed_is_read_back(statement: str) -> None:
    found = parse(program(statement))
    printed = print_program(found)
    assert parse(printed) == found
    assert print_program(parse(printed)) == printed
    (node,) = logical_operations(found.functions[0].body or ())
    assert node.mnemonic in ROWS


def test_functions_without_logical_registers_are_left_as_they_are() -> None:
    text = 'func.func @f() { pto.vecscope { %m = pto.pset_b32 "PAT_ALL" : !pto.mask<b32> } return }'
    (function,) = parse(text).functions
    assert lower_function(function) is function
    assert next(micro_operations(function.body or ()), None) is not None


ILLEGAL = [
    (f"%r = pto.vmi.vcvt %v : {V} -> {H}", "needs saturate", "NOSAT", "pto.vmi.vcvt"),
    (f'%r = pto.vmi.vcvt %h {{saturate = "SAT"}} : {H} -> {I32}', "takes no saturate",
     "rounding = R | A | F | C | Z | O | H", '"SAT"'),
    (f'%r = pto.vmi.vcvt %v {{rounding = "F", saturate = "SAT"}} : {V} -> !pto.vmi.vreg<128xf8E4M3FN>',
     "no rounding = F", "R", '"F"'),
    (f'%r = pto.vmi.vcvt %v {{rounding = "Q"}} : {V} -> {H}', "unknown rounding 'Q'", "R", '"Q"'),
    (f'%r = pto.vmi.vcvt %v {{sat = "SAT"}} : {V} -> {H}', "no attribute 'sat'", "saturate", "sat ="),
    (f'%r = pto.vmi.vcvt %v {{saturate = "SAT"}} : {V} -> !pto.vmi.vreg<64xf16>', "keeps the number of lanes",
     "128", "pto.vmi."),
    (f"%r = pto.vmi.vcvt %v : {V} -> {V}", "no conversion f32 -> f32", "f16", "pto.vmi."),
    ("%z = pto.vmi.vinterpret_cast %v : !pto.vmi.vreg<128xf32> -> !pto.vmi.vreg<128xbf16>", "keeps its 4096 bits",
     "!pto.vmi.vreg<256xbf16>", "pto.vmi."),
    (f"%r = pto.vmi.extf %n : {I32} -> {V}", "is of floats, not of i32", "vcvt", "pto.vmi."),
    (f"%r = pto.vmi.vadd %v, %h : {V}, {H} -> {V}", "takes equal types", V, "pto.vmi."),
    (f"%r = pto.vmi.vadd %v, %w, %k : {V}, {V}, !pto.vmi.mask<64> -> {V}", "128 lanes and a mask of 64",
     "!pto.vmi.mask<128xpred>", "pto.vmi."),
    (f"%r = pto.vmi.vadds %v, %y : {V}, f16 -> {V}", "scalar of f16 beside elements of f32", "f32", "pto.vmi."),
    (f"%r = pto.vmi.vdiv %n, %n : {I32}, {I32} -> {I32}", "does not take elements of i32", "f16", "pto.vmi."),
    (f"%r = pto.vmi.vadd %v : {V} -> {V}", "does not take", None, "!pto"),
    (f"%r = pto.vmi.vadd %v, %w : {V}, {V} -> {K}", "gives a logical register", None, None),
    (f'%r = pto.vmi.vcmp %v, %w, "less" : {V}, {V} -> {K}', "unknown cmp_mode 'less'", "lt", '"less"'),
    (f"%r = pto.vmi.vcmp %v, %w : {V}, {V} -> {K}", "needs its cmp_mode", None, "pto.vmi."),
    (f"%r = pto.vmi.vload %g[%i] : {G} -> {V}", "takes a UB pointer", "!pto.ptr<T, ub>", "pto.vmi."),
    (f"%r = pto.vmi.vload %q[%i] : {Q} -> {V}", "elements of 32 bits has a pointer to elements of 16",
     'dist_mode = "unpack"', "pto.vmi."),
    (f'%r = pto.vmi.vload %p[%i] {{dist_mode = "packed"}} : {P} -> {V}', "unknown dist_mode 'packed'",
     "continuous", '"packed"'),
    (f"%r = pto.vmi.vload %p[%i], %j {{group = 9}} : {P} -> {V}", "cannot share 128 lanes among group = 9",

     "a divisor of the lanes", None),
    (f"%r = pto.vmi.vload %p[%i], %j : {P} -> {V}", "a stride of index and no group",
     "{group = C} for rows of elements", "pto.vmi."),
    (f"%r = pto.vmi.vload %p[%i], %j {{group = 0}} : {P} -> {V}", "a number above zero", "8", None),
    (f'pto.vmi.vstore %v, %p[%i] {{dist_mode = "brc"}} : {V}, {P}', "has no dist_mode = brc", "continuous", None),
    (f"pto.vmi.vstore %h, %p[%i] : {H}, {P}", "elements of 16 bits has a pointer to elements of 32", None, "pto.vmi."),
    (f"%r = pto.vmi.create_mask %x : f32 -> {K}", "counts lanes by an index", "index", "pto.vmi."),
    (f"%r = pto.vmi.create_group_mask %i {{num_groups = 8}} : index -> {K}", "needs num_groups and group_size",
     "{num_groups = C, group_size = S}", "pto.vmi."),
    (f"%r = pto.vmi.create_group_mask %i {{num_groups = 8, group_size = 8}} : index -> {K}", "8 groups of 8 lanes",
     "64xpred", "pto.vmi."),
    (f"%r = pto.vmi.vbrc %s : {S} -> {V}", "group = 1 and 8 slots", "group = 8", "pto.vmi."),
    (f"%r = pto.vmi.vcadd %v {{group = 8}} : {V} -> {V}", "group = 8 and 128 slots", "group = 128", None),
    (f"%r = pto.vmi.vgather %p[%i], %v : {P}, {V} -> {V}", "takes indices of 16 or 32 bits", "128xui32", "pto.vmi."),
    (f"%r = pto.vmi.vaddd %v, %w : {V}, {V} -> {V}", "unknown operation 'pto.vmi.vaddd'", "pto.vmi.vadd", "pto.vmi."),
    ("%r = pto.vmi.create_mask %i : index -> !pto.vmi.mask<0xpred>", "0 lanes", "1 to 65536", None),
    ("%r = pto.vmi.vbrc %x : f32 -> !pto.vmi.vreg<f32>", "not LANESxTYPE", "256xf32", None),
    (f"%r = pto.vmi.vtrc %v, \"O\" : {V} -> {V}", "no rounding O", "Z", "pto.vmi."),
]  # fmt: skip


@pytest.mark.parametrize(("statement", "reason", "legal", "token"), ILLEGAL)
def test_refusals_say_why_where_and_what_would_be_legal(
    statement: str, reason: str, legal: str | None, token: str | None
) -> None:  # fmt: skip
    with pytest.raises(CastsimError) as caught:
        parse(program(statement))
    error = caught.value
    assert reason in str(error)
    assert legal is None or legal in error.legal, error.legal
    assert error.span is not None
    assert error.span.line == 3
    assert token is None or error.span.column == statement.index(token) + 1


def test_logical_registers_stand_in_a_vecscope() -> None:
    with pytest.raises(CastsimError, match="is not allowed outside a vecscope"):
        parse(f"func.func @f(%x: f32) {{ %r = pto.vmi.vbrc %x : f32 -> {V} return }}")


def test_a_rounding_without_effect_and_one_without_meaning_are_warned_of() -> None:
    found = parse(program(f'%r = pto.vmi.vcvt %h {{rounding = "R"}} : {H} -> {V}'))
    assert [each.kind for each in found.warnings] == [WarningKind.ROUNDING]
    assert "has no effect" in found.warnings[0].text
    found = parse(
        program(f'%r = pto.vmi.vcvt %v {{rounding = "O", saturate = "SAT"}} : {V} -> !pto.vmi.vreg<128xbf16>')
    )
    assert "documented for f32 -> f16 only" in found.warnings[0].text
