"""What the micro level refuses: the reason, the place, and what would be legal; stores whose bytes no text gives."""

from __future__ import annotations

from pathlib import Path

import pytest

from castsim import run
from castsim.__main__ import main
from castsim.isa.errors import CastsimError, IllegalError, LimitError, ReadError
from castsim.isa.pto.pto_parser import parse
from castsim.isa.pto.pto_printer import print_program

F32, F16, I8 = "!pto.vreg<64xf32>", "!pto.vreg<128xf16>", "!pto.vreg<256xi8>"
B8, B16, B32 = "!pto.mask<b8>", "!pto.mask<b16>", "!pto.mask<b32>"
UB = "!pto.ptr<f32, ub>"
U16, U32, PAIR = "!pto.vreg<128xui16>", "!pto.vreg<64xui32>", "!pto.vreg<64x!pto.bf16x2>"
ARGUMENTS = (
    f"%v: {F32}, %w: {F32}, %h: {F16}, %b: {I8}, %m: {B32}, %n: {B16}, %k: {B8}, %p: {UB}, %g: !pto.ptr<f32, gm>, "
    "%i: index, %x: f32, %y: f16, %a: i64, %s: i32, %q: !pto.vreg<32xi64>, %l: !pto.align, "
    f"%c: {U16}, %u: {U32}, %d: {PAIR}, %t: i1, %b8: !pto.ptr<i8, ub>"
)
VCVT = f"{F32}, {B32} -> {F16}"

IN_SCOPE = [
    # part, rounding, saturation of a conversion
    (f'%r = «pto.vcvt %v, %m {{rnd = "R", sat = "SAT"}} : {VCVT}', "needs part", "EVEN"),
    (f'%r = pto.vcvt %v, %m {{rnd = "R", sat = "SAT", part = «"P0"}} : {VCVT}', "no part = P0", "ODD"),
    (f'%r = «pto.vcvt %v, %m {{sat = "SAT", part = "EVEN"}} : {VCVT}', "needs rnd", "R"),
    (f'%r = «pto.vcvt %v, %m {{rnd = "R", part = "EVEN"}} : {VCVT}', "needs sat", "NOSAT"),
    (f'%r = pto.vcvt %v, %m {{rnd = «"Q", sat = "SAT", part = "EVEN"}} : {VCVT}', "unknown rnd 'Q'", "R"),
    (f'%r = pto.vcvt %h, %n {{rnd = «"R", part = "ODD"}} : {F16}, {B16} -> {F32}', "takes no rnd", "part = EVEN | ODD"),
    (f'%r = pto.vcvt %h, %n {{«mode = "R"}} : {F16}, {B16} -> {F32}', "no attribute 'mode'", "rnd"),
    (f"%r = pto.vcvt %v, %m : {F32}, {B32} -> «{F32}", "f32 -> f32; vtrc", "f16"),
    (f"%r = pto.vcvt %h, %n : {F16}, {B16} -> «!pto.vreg<32xi64>", "no conversion f16 -> i64", "f32"),
    (f'%r = pto.vcvt %h, %m {{part = "EVEN"}} : {F16}, «{B32} -> {F32}', "b32 mask for b16 lanes", B16),
    (f'%r = pto.vtrc %v, %m, «"O" : {F32}, {B32} -> {F32}', "no rounding O", "Z"),
    (f'%r = pto.vtrc %b, %k, "R" : «{I8}, {B8} -> {I8}', "does not take elements of i8", "bf16"),
    # scopes within scopes
    ("«pto.vecscope {\n}", "pto.vecscope is not allowed inside a vecscope", "after the vecscope"),
    ("scf.if %t {\n«pto.vecscope {\n}\n}", "not allowed inside a vecscope", None),
    # masks
    ("«%r = pto.plds %p[%i] : !pto.ptr<f32, ub>, index -> !pto.mask", "cannot determine the width of mask %r", B16),
    (f"%r = pto.vadd %v, %w, %n : {F32}, {F32}, «{B16} -> {F32}", "b16 mask for b32 lanes", B32),
    (f"%r = pto.pand %m, %n, %m : {B32}, «{B16}, {B32} -> {B32}", "of one kind must have the same type", B32),
    (f'%r = pto.pset_b16 "PAT_ALL" : «{B32}', "b32 mask for b16 lanes", B16),
    (f'%r = pto.pset_b32 «"PAT_VL5" : {B32}', "unknown pattern 'PAT_VL5'", "PAT_VL4"),
    (f'%r = pto.ppack %m, "LOWER" : {B32} -> «{B8}', "gives b16", B16),
    ("%r = «pto.pset_b8 : !pto.mask<b8>", "needs its pattern", '%r = pto.pset_b8 "PATTERN" : !pto.mask<..>'),
    # loads and stores
    (f'%r = pto.vlds %p[%i] {{dist = «"BRC_B64"}} : {UB} -> {F32}', "unknown distribution mode 'BRC_B64'", "BRC_B32"),
    (f'%r = pto.vlds %p[%i] {{dist = «"US_B8"}} : {UB} -> {F32}', "US_B8 is for elements of 8 bits", "UNPK_B32"),
    (f"%r = pto.vlds %g[%i] : «!pto.ptr<f32, gm> -> {F32}", "expected a UB pointer", None),
    (f"%r = pto.vlds %p[«%x] : {UB} -> {F32}", "expected an index", None),
    (f'%r = «pto.vldsx2 %p[%i], "DINTLV_B32" : {UB}, index -> {F32}', "2 or 3 results, not 1", None),
    (f"pto.vsts %v, %p[%i], %n : {F32}, {UB}, «{B16}", "takes a mask of b32", B32),
    (f'pto.vsts %h, %p[%i], %n {{dist = "PK_B32"}} : {F16}, {UB}, «{B16}', "takes a mask of b32", B32),
    (f'pto.vsts %b, %p[%i], %k {{dist = «"MRG4CHN_B8"}} : {I8}, {UB}, {B8}', "not supported", "PK_B16"),
    (f"«pto.vsts %q, %p[%i], %m : !pto.vreg<32xi64>, {UB}, {B32}", "no default mode", '{dist = "NORM_B32"}'),
    ('pto.mem_bar «"VST"', "unknown barrier 'VST'", "VST_VLD"),
    # operands and types
    (f"%r = «pto.vadd %v, %m : {F32}, {B32} -> {F32}", "3 operands, not 2", None),
    (f"%r = pto.vadd %v, %h, %m : {F32}, «{F16}, {B32} -> {F32}", "of one kind must have the same type", F32),
    (f"%r = pto.vadds %v, %y, %m : {F32}, «f16, {B32} -> {F32}", "scalar must have the element type f32", "f32"),
    (f"%r = pto.vshls %v, %s, %m : «{F32}, i32, {B32} -> {F32}", "does not take elements of f32", "i32"),
    (f'%r = pto.vcmp %v, %w, %m, «"less" : {F32}, {F32}, {B32} -> {B32}', "unknown cmp 'less'", "lt"),
    (f'%r = pto.vpack %v, "LOWER" : «{F32} -> !pto.vreg<128xui16>', "does not take elements of f32", "ui32"),
    (f"%r = pto.vselr %v, %w : {F32}, «{F32} -> {F32}", "takes integers of 32 bits", None),
    (f"%r = pto.vexp %b, %k : «{I8}, {B8} -> {I8}", "does not take elements of i8", "f16"),
    (f"%r = pto.vabs %v, %m : {F32}, {B32} -> «{F16}", "of one kind must have the same type", F32),
    (f"%r = pto.vabs %v, «%zz : {F32}, {B32} -> {F32}", "%zz is not defined here", None),
    (f"«pto.vabs %v, %m : {F32}, {B32} -> {F32}", "1 result, 0 named", None),
    (f"%r = pto.vabs %v, %m : «{F32} -> {F32}", "2 operands, but 1 types", None),
    (f"%r = pto.vabs %v, %m : «{F16}, {B32} -> {F16}", "is defined as !pto.vreg<64xf32>", F32),
    (f"%r = «pto.vbas %v, %m : {F32}, {B32} -> {F32}", "unknown operation 'pto.vbas'", "pto.vabs"),
    ("%r = pto.castptr %s : «i32 -> !pto.ptr<f32, ub>", "takes addresses of i64", "i64"),
    ("%r = pto.castptr %p : !pto.ptr<f32, ub> -> «!pto.ptr<f32, gm>", "cannot change the memory", None),
    ("%r = pto.castptr %a : i64 -> «!pto.ptr<f32, gm>", "reach global memory through arguments", UB),
    # results, offsets, modes and elements that an operation lacks
    (f"%r = pto.vgather2 %p, %v, %m : {UB}, «{F32}, {B32} -> {F32}", "integers of 32 bits as offsets", U32),
    (f"%r = pto.vgather2 %p, %c, %m : {UB}, «{U16}, {B32} -> {F32}", "integers of 32 bits as offsets", U32),
    (f"%r = pto.vgatherb %p, %c, %m : {UB}, «{U16}, {B32} -> {F32}", "integers of 32 bits as offsets", U32),
    (f"pto.vscatter %h, %p, %c, %n : {F16}, «{UB}, {U16}, {B16}", "moves elements of 32 bits", "!pto.ptr<f16, ub>"),
    (f"pto.vscatter %v, %p, %h, %m : {F32}, {UB}, «{F16}, {B32}", "integers of 32 bits as offsets", U32),
    (f"%r = pto.vcadd %c, %n : {U16}, {B16} -> «{F32}", "of ui16 does not yield f32", "ui32"),
    (f"%r = pto.vcgmax %v, %m : {F32}, {B32} -> «{F16}", "of f32 does not yield f16", "f32"),
    (f'%r = pto.vexpdif %h, %h, %n, "EVEN" : {F16}, {F16}, {B16} -> «{F16}', "yields f32, not f16", F32),
    (f'%r = pto.vmulscvt %v, %x, %m, "EVEN" : {F32}, f32, {B32} -> «{F32}', "yields f16, not f32", F16),
    (f'%r = pto.vmulscvt %v, %x, %m, «"P0" : {F32}, f32, {B32} -> {F16}', "has no part P0", "ODD"),
    (f"%r = «pto.vmulscvt %v, %x, %m : {F32}, f32, {B32} -> {F16}", "needs part", "ODD"),
    (f'%r = pto.vmulscvt %v, %x, %m {{part = "EVEN", rnd = «"H"}} : {F32}, f32, {B32} -> {F16}', "has no rnd H", "R"),
    (f'%r = pto.vexpdif %h, %h, %n, «"P0" : {F16}, {F16}, {B16} -> {F32}', "has no part P0", "ODD"),
    (f"%r = pto.vsunpack %c, %i : {U16}, index -> «{F32}", "lanes twice as wide as ui16", "64xui32"),
    (f'%r = pto.vpack %u, "LOWER" : {U32} -> «!pto.vreg<128xi16>', "packs ui32 to ui16", "128xui16"),
    (f'%r = pto.vlds %p[%i] {{dist = «"SPLT2CHN"}} : {UB} -> {F32}', "elements of 8 or 16 bits", "BRC_B32"),
    (f'%r = pto.vlds %p[%i] {{dist = "UNPK4"}} : «!pto.ptr<f16, ub> -> {F16}', "%p is defined as", UB),
    (f'%r = pto.vlds %p[%i] {{dist = «"DS_B16"}} : {UB} -> {F32}', "DS_B16 is for elements of 16 bits", "BRC_B32"),
    (f'%r, %r2 = pto.vldsx2 %b8[%i], «"DINTLV_B32" : !pto.ptr<i8, ub>, index -> {I8}, {I8}', "of 32 bits", "DINTLV_B8"),
    (f'pto.vstsx2 %v, %w, %p[%i], «"NORM", %m : {F32}, {F32}, {UB}, index, {B32}', "unknown", "INTLV_B32"),
    (f'pto.psts %m, %p[%i], «"US" : {B32}, {UB}, index', "unknown distribution mode 'US'", "PK"),
    (f'%r = pto.plds %p[%i], «"PK" : {UB}, index -> {B32}', "unknown distribution mode 'PK'", "DS"),
    (f"%r = pto.vadd %d, %d, %m : «{PAIR}, {PAIR}, {B32} -> {PAIR}", "elements of !pto.bf16x2", "bf16"),
    ("%r, %r2 = pto.vintlv %q, %q : «!pto.vreg<32xi64>, !pto.vreg<32xi64> -> !pto.vreg<32xi64>, !pto.vreg<32xi64>",
     "elements of i64", "!pto.bf16x2"),
    ("%r = pto.vbr %a : i64 -> «!pto.vreg<32xi64>", "elements of i64", "i32"),
    (f"%lo, %hi = pto.vmull %v, %w, %m : «{F32}, {F32}, {B32} -> {F32}, {F32}", "elements of f32", "ui32"),
    (f"%r, %k2 = pto.vaddc %h, %h, %n : «{F16}, {F16}, {B16} -> {F16}, {B16}", "elements of f16", "i32"),
    (f'%r = pto.vcmps %v, %y, %m, "lt" : {F32}, «f16, {B32} -> {B32}', "scalar must have the element type f32", "f32"),
    (f"%r = pto.vsel %v, %w, %n : {F32}, {F32}, «{B16} -> {F32}", "b16 mask for b32 lanes", B32),
    (f'%r = pto.vdup %v, %m {{position = «"MIDDLE"}} : {F32}, {B32} -> {F32}', "unknown position", "HIGHEST"),
    ('%r = pto.vci %s {order = «"UP"} : i32 -> !pto.vreg<64xi32>', "unknown order", "DESC"),
    (f"%r, %l2 = pto.plt_b32 %x : «f32 -> {B32}, i32", "expected a whole number", None),
    (f"%r = pto.vprelu %v, %w, %m : {F32}, {F32}, {B32} -> «{B32}", "expected a vector register", None),
    # the generic form
    (f'%r = «"pto.vcvt"(%v, %m) {{rnd = "R", sat = "SAT"}} : ({F32}, {B32}) -> {F16}', "needs part", "ODD"),
    (f'%r = "pto.vadd"(%v, %w, %n) : ({F32}, {F32}, «{B16}) -> {F32}', "b16 mask for b32 lanes", B32),
    (f'%r = "pto.vlds"(%p, %i) {{dist = «"US_B8"}} : ({UB}, index) -> {F32}', "US_B8 is for elements", "BRC_B32"),
    (f'«"pto.vsts"(%v, %p, %i) : ({F32}, {UB}, index) -> ()', "4 operands, not 3", None),
    # names outside of their region
    (f"scf.if %t {{ %z = pto.vabs %v, %m : {F32}, {B32} -> {F32} }} %r = pto.vabs «%z, %m : {F32}, {B32} -> {F32}",
     "%z is not defined here", None),
    (f"scf.for %j = %i to %i step %i {{ }} %r = pto.vlds %p[«%j] : {UB} -> {F32}", "%j is not defined here", None),
    (f"pto.strict_vecscope(%i) {{ ^bb0(%j: index): %r = pto.vlds «%p[%j] : {UB} -> {F32} }} : (index) -> ()",
     "%p is not defined here", None),
    (f"%r = scf.for %j = %i to %i step %i iter_args(%c2 = «%v) -> ({F16}) {{ scf.yield %c2 : {F16} }}",
     "is defined as !pto.vreg<64xf32>", F32),
    # scopes
    ('«pto.set_flag["PIPE_V", "PIPE_MTE3", "EVENT_ID0"]', "set_flag is not allowed inside a vecscope", None),
    ("«pto.barrier #pto.pipe<PIPE_ALL>", "barrier is not allowed inside a vecscope", None),
    ('«pto.dsb "DDR"', "pto.dsb is not allowed inside a vecscope", None),
    (
        f"«pto.mte_gm_ub %g, %p, %a, %a nburst(%a, %a, %a) : !pto.ptr<f32, gm>, {UB}, i64, i64, i64, i64, i64",
        "is not allowed inside a vecscope", None,
    ),
    # types
    ("%r = pto.vbr %x : f32 -> !pto.vreg<«128xf32>", "2048 bits, 128 lanes of f32 have 4096", F32),
    (f"%r = pto.pbitcast %m : {B32} -> !pto.mask<«b64>", "must be b8, b16 or b32", "b32"),
    ("%r = pto.vbr %x : f32 -> !pto.vreg<«f32>", "not LANESxTYPE", "64xf32"),
    ("%r = pto.init_align : «!pto.align<8>", "no parameters", "!pto.align"),
    ("%r = pto.vbr %x : f32 -> !pto.vreg<32x«f64>", "f64 is not an element", "f32"),
]  # fmt: skip

OUTSIDE = [
    (f"%r = «pto.vabs %v, %m : {F32}, {B32} -> {F32}", "is not allowed outside a vecscope", "pto.vecscope { ... }"),
    (f'%r = «pto.pset_b32 "PAT_ALL" : {B32}', "is not allowed outside a vecscope", "pto.vecscope { ... }"),
    (f"«pto.mte_gm_ub %g, %p, %a, %a : !pto.ptr<f32, gm>, {UB}, i64, i64", "needs exactly one nburst", None),
    (
        f"pto.mte_gm_ub %g, %p, %a, %a «nburst(%a, %a) : !pto.ptr<f32, gm>, {UB}, i64, i64, i64, i64",
        "nburst has 3 operands, not 2", "nburst(%a, %b, %c)",
    ),
    (
        f"pto.mte_gm_ub %p, %g, %a, %a nburst(%a, %a, %a) : «{UB}, !pto.ptr<f32, gm>, i64, i64, i64, i64, i64",
        "expected a pointer to global memory", None,
    ),
    (
        "pto.mte_ub_gm %p, %h2, %a nburst(%a, %a, %a) : !pto.ptr<f32, ub>, «!pto.ptr<f16, gm>, i64, i64, i64, i64",
        "elements of the same width", None,
    ),
    ('pto.get_buf «"PIPE_X", %a, %a : i64, i64', "unknown pipe 'PIPE_X'", "PIPE_V"),
    ("pto.strict_vecscope(«%x) { ^bb0(%z: f16): } : (f16) -> ()", "is defined as f32 but used as f16", "f32"),
    ("pto.strict_vecscope(%x) { «^bb0(): } : () -> ()", "1 values for the body, but it has 0 names", "^bb0(%a: f32):"),
]  # fmt: skip


def refused(statement: str, *, inside: bool) -> CastsimError:
    """The refusal of a program of one statement, which stands in line 3."""
    lines = ["pto.vecscope {" if inside else "", statement, "}" if inside else "", "return"]
    arguments = f"{ARGUMENTS}, %h2: !pto.ptr<f16, gm>"
    with pytest.raises(CastsimError) as caught:
        parse("\n".join((f"func.func @f({arguments}) {{", *lines, "}")), "kernel.pto")
    return caught.value


ROWS = [*((True, each) for each in IN_SCOPE), *((False, each) for each in OUTSIDE)]


@pytest.mark.parametrize(("inside", "row"), ROWS)
def test_refusals_name_the_reason_the_place_and_what_is_legal(inside: bool, row: tuple[str, str, str | None]) -> None:
    marked, reason, legal = row
    error = refused(marked.replace("«", ""), inside=inside)
    assert reason in error.message
    assert legal is None or legal in error.legal, error.legal
    assert error.span is not None
    before = marked.partition("«")[0].split("\n")
    assert (error.span.file, error.span.line, error.span.column) == ("kernel.pto", 2 + len(before), len(before[-1]) + 1)
    assert error.exit_code in (1, 2)


# ------------- stores of vector programs whose bytes no text gives: read, checked and timed; their values are refused
MASKS = "!pto.ptr<ui8, ub>"
STORES = {
    "sprsti": f'pto.sprsti "AR", %u[%i] : {MASKS}, index',
    "sprsts": f'pto.sprsts "AR", %u, %i : {MASKS}, index',
    "pstu": f"%b, %v = pto.pstu %a, %m, %u : !pto.align, !pto.mask<b32>, {MASKS} -> !pto.align, {MASKS}",
    "one result": f"%b = pto.pstu %a, %m, %u : !pto.align, !pto.mask<b32>, {MASKS} -> !pto.align",
}
SORT = f"pto.vbitsort %p, %q, %q, %i : {UB}, {UB}, {UB}, index"


def program(inside: str, outside: str = "") -> str:
    return f"""module attributes {{pto.target_arch = "a5"}} {{
func.func @k(%x: !pto.ptr<f32, gm>) {{
%i = arith.constant 0 : index
%z = arith.constant 0 : i64
%one = arith.constant 1 : i64
%w = arith.constant 256 : i64
%h = arith.constant 4096 : i64
%p = pto.castptr %z : i64 -> {UB}
%q = pto.castptr %h : i64 -> {UB}
%u = pto.castptr %h : i64 -> {MASKS}
pto.vecscope {{
%m = pto.pset_b32 "PAT_ALL" : !pto.mask<b32>
%a = pto.init_align : !pto.align
%r = pto.vlds %p[%i] : {UB} -> !pto.vreg<64xf32>
%s = pto.vadd %r, %r, %m : !pto.vreg<64xf32>, !pto.vreg<64xf32>, !pto.mask<b32> -> !pto.vreg<64xf32>
pto.vsts %s, %p[%i], %m : !pto.vreg<64xf32>, {UB}, !pto.mask<b32>
{inside}
}}
{outside}
return
}}
}}
"""


def saved(folder: Path, text: str) -> Path:
    path = folder / "kernel.pto"
    path.write_text(text)
    return path


@pytest.mark.parametrize("form", STORES)
def test_it_is_timed_and_warned_of(form: str, tmp_path: Path) -> None:
    path = saved(tmp_path, program(STORES[form]))
    name = STORES[form].partition("pto.")[2].split()[0]
    assert main(["check", str(path)]) == 0
    found = run(path, timing_only=True)
    assert any(f"pto.{name} is not modelled" in str(warning) for warning in found.warnings)
    assert found.cycles >= run(saved(tmp_path, program("")), timing_only=True).cycles
    both = run(saved(tmp_path, program(STORES[form])), timing_only=True, engine="event")
    assert both.cycles == found.cycles


@pytest.mark.parametrize("form", STORES)
def test_its_values_are_refused_by_name_and_place(form: str, tmp_path: Path) -> None:
    with pytest.raises(IllegalError, match="no source documents what it writes") as caught:
        run(saved(tmp_path, program(STORES[form])))
    assert caught.value.span is not None
    assert caught.value.span.line == 17
    assert "--timing-only" in caught.value.legal


@pytest.mark.parametrize("text", [*(program(each) for each in STORES.values()), program("", SORT)])
def test_it_is_printed_as_it_is_read(text: str) -> None:
    read = parse(text)
    assert parse(print_program(read)) == read


def test_a_sort_stands_outside_and_has_no_cycles(tmp_path: Path) -> None:
    path = saved(tmp_path, program("", SORT))
    assert main(["check", str(path)]) == 0
    assert "vbitsort" in run(path, timing_only=True).untimed
    with pytest.raises(IllegalError, match="not allowed inside"):
        run(saved(tmp_path, program(SORT)), timing_only=True)


def test_a_malformed_one_shows_the_form() -> None:
    with pytest.raises(ReadError) as caught:
        parse(program(f"pto.pstu %m : {MASKS}"))
    assert caught.value.span is not None
    assert caught.value.span.line == 17


# ---------------------------------------------------------------- pointers into the buffer as arguments: byte addresses
CALLED = f"""module attributes {{pto.target_arch = "a5"}} {{
  func.func @k(%u: {UB}, %o: {UB}, %y: !pto.ptr<f32, gm>) {{
    %c0 = arith.constant 0 : index
    %z = arith.constant 0 : i64
    %b = arith.constant 256 : i64
    %n = arith.constant 1 : i64
    pto.vecscope {{
      %m = pto.pset_b32 "PAT_ALL" : !pto.mask
      %x = arith.constant 3.0 : f32
      %v = pto.vdup %x, %m : f32, !pto.mask -> {F32}
      pto.vsts %v, %u[%c0], %m : {F32}, {UB}, !pto.mask
    }}
    pto.barrier <PIPE_ALL>
    pto.mte_ub_gm %o, %y, %b nburst(%n, %b, %b) : {UB}, !pto.ptr<f32, gm>, i64, i64, i64, i64
    return
  }}
}}
"""


def test_a_pointer_into_the_buffer_is_a_byte_address(tmp_path: Path) -> None:
    """`--arg u=0` is where the caller has put a buffer; here %u and %o are one or two such places."""
    file = tmp_path / "k.pto"
    file.write_text(CALLED)
    assert run(file, args={"u": 512, "o": 512}).outputs["y"].tolist() == [3.0] * 64
    assert run(file, args={"u": 512, "o": 4096}, races="report").outputs["y"].tolist() != [3.0] * 64


@pytest.mark.parametrize(
    ("args", "message"),
    [({"u": 0}, "%o of @k points into the buffer of a core"), ({"u": 0, "o": -1}, "byte -1 is outside the buffer"),
     ({"u": 262144, "o": 0}, "byte 262144 is outside"), ({"u": 8, "o": 0}, "not aligned")],
)  # fmt: skip
def test_addresses_that_there_are_not(args: dict[str, int], message: str, tmp_path: Path) -> None:
    file = tmp_path / "k.pto"
    file.write_text(CALLED)
    with pytest.raises(CastsimError, match=message) as caught:
        run(file, args=args)
    assert caught.value.span is not None


def test_check_takes_such_a_pointer_for_the_first_byte(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "k.pto"
    file.write_text(CALLED)
    assert main(["check", str(file)]) == 0
    assert "--arg u=ADDRESS" in capsys.readouterr().out


def test_a_loop_of_more_trips_than_a_length_has_is_over_the_limit(tmp_path: Path) -> None:
    """From -2**63 to 2**62: Python's own ranges have no such length."""
    text = CALLED.replace("%m = pto.pset_b32", "scf.for %k = %low to %high step %one {\n}\n%m = pto.pset_b32")
    ends = {"low": -(1 << 63), "high": 1 << 62, "one": 1}
    constants = "".join(f"%{name} = arith.constant {value} : index\n" for name, value in ends.items())
    file = tmp_path / "k.pto"
    file.write_text(text.replace("%z = arith", f"{constants}%z = arith"))
    with pytest.raises(LimitError):
        run(file, args={"u": 0, "o": 0})
