"""Other ways to write a micro program: each is read as the canonical one, and some are more than the canonical one."""

from __future__ import annotations

import numpy as np
import pytest
from core.running.test_micro_running import B32, F32, LOAD, STORE, UB, issued, program, ramp
from kit.micro_cases import texts

from castsim.isa.errors import CastsimError
from castsim.isa.pto.micro_forms import micro_operations
from castsim.isa.pto.program import Program
from castsim.isa.pto.pto_parser import parse
from castsim.isa.pto.pto_printer import print_program

F16, B16 = "!pto.vreg<128xf16>", "!pto.mask<b16>"
ARGUMENTS = (
    f"%v: {F32}, %w: {F32}, %h: {F16}, %m: {B32}, %n: {B16}, %p: {UB}, %g: !pto.ptr<f32, gm>, %i: index, %x: f32, "
    "%a: i64, %s: i32, %t: i1, %k: i16, %l: !pto.align, %u: !pto.vreg<64xi32>"
)
CVT = f'%r = pto.vcvt %v, %m {{rnd = "R", sat = "SAT", part = "EVEN"}} : {F32}, {B32} -> {F16}'

STS = f"pto.vsts %v, %p[%i], %m : {F32}, {UB}, {B32}"
TRC = f'%r = pto.vtrc %v, %m, "F" : {F32}, {B32} -> {F32}'


def read(statement: str, *, inside: bool = True) -> Program:
    body = f"pto.vecscope {{\n{statement}\n}}" if inside else statement
    return parse(f"func.func @f({ARGUMENTS}) attributes {{pto.kernel}} {{\n{body}\nreturn\n}}\n")


SAME = [
    # conversions
    (CVT, f'%r = pto.vcvt %v, %m {{part = "PART_EVEN", sat = "RS_ENABLE", rnd = "ROUND_R"}} : {F32}, {B32} -> {F16}'),
    (CVT, f'%r = pto.vcvt %v, %m {{"part" = "EVEN", rnd = #pto<round_mode R>, sat = "SAT"}} : {F32}, {B32} -> {F16}'),
    (CVT, f'%r = "pto.vcvt"(%v, %m) {{rnd = "R", sat = "SAT", part = "EVEN"}} : ({F32}, {B32}) -> {F16}'),
    (CVT, f'%r = "pto.vcvt"(%v, %m) <{{rnd = "R", sat = "SAT", part = "EVEN"}}> : ({F32}, {B32}) -> ({F16})'),
    (CVT, f'{CVT} loc("kernel.py":12:3)'),
    (CVT, f"{CVT} loc(#loc4)"),
    (CVT, f'{CVT} loc(fused<"cse">["a.py":1:2, callsite("f" at "b.py":3:4)])'),
    (CVT, f"{CVT} // a comment, with {{signs}} and loc(1)"),
    (CVT, CVT.replace(", ", " ,\n\t")),
    (TRC, f'%r = pto.vtrc %v, %m {{rnd = "F"}} : {F32}, {B32} -> {F32}'),
    (TRC, f'%r = pto.vtrc %v, %m, "ROUND_F" : {F32}, {B32} -> {F32}'),
    # loads and stores
    (f"%r = pto.vlds %p[%i] : {UB} -> {F32}", f"%r = pto.vlds %p[%i] {{}} : {UB}, index -> {F32}"),
    (f"%r = pto.vlds %p[%i] : {UB} -> {F32}", f'%r = "pto.vlds"(%p, %i) : ({UB}, index) -> {F32}'),
    (f'%r = pto.vlds %p[%i] {{dist = "BRC_B32"}} : {UB} -> {F32}', f'%r = pto.vlds %p[%i], "BRC_B32" : {UB} -> {F32}'),
    (f"%r, %q = pto.vlds %p[%i] : {UB} -> {F32}, {UB}", f"%r, %q = pto.vlds %p[%i] : {UB}, index -> ({F32}, {UB})"),
    (STS, f'"pto.vsts"(%v, %p, %i, %m) : ({F32}, {UB}, index, {B32}) -> ()'),
    (
        f'pto.vsts %v, %p[%i], %m {{dist = "1PT_B32"}} : {F32}, {UB}, {B32}',
        f'pto.vsts %v, %p[%i], %m {{dist = "ONEPT_B32"}} : {F32}, {UB}, index, {B32}',
    ),
    (
        f'%e, %o = pto.vldsx2 %p[%i], "DINTLV_B32" : {UB}, index -> {F32}, {F32}',
        f'%e, %o = pto.vldsx2 %p[%i] {{dist = "DINTLV_B32"}} : {UB}, index -> ({F32}, {F32})',
    ),
    (f'pto.psts %m, %p[%i], "NORM" : {B32}, {UB}, index', f'pto.psts %m, %p[%i] {{dist = "NORM"}} : {B32}, {UB}'),
    # masks, moves
    (f'%r = pto.pset_b32 "PAT_ALL" : {B32}', f'%r = "pto.pset_b32"() {{pattern = "PAT_ALL"}} : () -> {B32}'),
    (f'%r = pto.ppack %m, "LOWER" : {B32} -> {B16}', f'%r = pto.ppack %m {{part = "LOWER"}} : {B32} -> {B16}'),
    (
        f'%r = pto.vcmp %v, %w, %m, "lt" : {F32}, {F32}, {B32} -> {B32}',
        f'%r = pto.vcmp %v, %w, %m {{cmp_mode = "lt"}} : {F32}, {F32}, {B32} -> {B32}',
    ),
    (
        f'%r = pto.vdup %v, %m {{position = "LOWEST"}} : {F32}, {B32} -> {F32}',
        f'%r = pto.vdup %v, %m, "POS_LOWEST" : {F32}, {B32} -> {F32}',
    ),
    (
        '%r = pto.vci %s {order = "ASC"} : i32 -> !pto.vreg<64xi32>',
        '%r = pto.vci %s {order = "ORDER_ASC"} : i32 -> !pto.vreg<64xi32>',
    ),
    # masks without a width, as assemblers of spring 2026 print them
    (f'%r = pto.pset_b32 "PAT_ALL" : {B32}', '%r = pto.pset_b32 "PAT_ALL" : !pto.mask'),
    (
        f"%r = pto.vadd %v, %w, %m : {F32}, {F32}, {B32} -> {F32}",
        f"%r = pto.vadd %v, %w, %m : {F32}, {F32}, !pto.mask -> {F32}",
    ),
    (
        f'%r = pto.vcmp %v, %w, %m, "lt" : {F32}, {F32}, {B32} -> {B32}',
        f'%r = pto.vcmp %v, %w, %m, "lt" : {F32}, {F32}, !pto.mask -> !pto.mask',
    ),
    (f'%r = pto.ppack %m, "LOWER" : {B32} -> {B16}', '%r = pto.ppack %m, "LOWER" : !pto.mask -> !pto.mask'),
    (f'%r = pto.punpack %n, "LOWER" : {B16} -> {B32}', '%r = pto.punpack %n, "LOWER" : !pto.mask -> !pto.mask'),
    (f"%r = pto.pnot %n, %n : {B16}, {B16} -> {B16}", "%r = pto.pnot %n, %n : !pto.mask, !pto.mask -> !pto.mask"),
    (
        f"%r = scf.for %j = %i to %i step %i iter_args(%c = %m) -> ({B32}) {{ scf.yield %c : {B32} }}",
        "%r = scf.for %j = %i to %i step %i iter_args(%c = %m) -> (!pto.mask) { scf.yield %c : !pto.mask }",
    ),
    (
        f"%r = scf.if %t -> ({B32}) {{ scf.yield %m : {B32} }} else {{ scf.yield %m : {B32} }}",
        "%r = scf.if %t -> (!pto.mask) { scf.yield %m : !pto.mask } else { scf.yield %m : !pto.mask }",
    ),
    ('pto.mem_bar "VST_VLD"', "pto.mem_bar #pto.mem_bar<VST_VLD>"),
    # scopes and loops
    ("scf.for %j = %i to %i step %i { }", "scf.for %j = %i to %i step %i : index { scf.yield }"),
    ("scf.if %t { }", "scf.if %t { } else { }"),
    (
        f"%r = scf.for %j = %i to %i step %i iter_args(%c = %v) -> ({F32}) {{ scf.yield %c : {F32} }}",
        f"%r:1 = scf.for %j = %i to %i step %i iter_args(%c = %v) -> {F32} {{ scf.yield %c : {F32} }}",
    ),
]  # fmt: skip

SAME_OUTSIDE = [
    ('pto.set_flag["PIPE_V", "PIPE_MTE3", "EVENT_ID0"]', "pto.set_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID0>]"),
    (
        'pto.wait_flag["PIPE_V", "PIPE_MTE3", "EVENT_ID0"]',
        "pto.wait_flag[#pto.pipe<PIPE_V>, #pto.pipe<PIPE_MTE3>, #pto.event<EVENT_ID0>]",
    ),
    ("pto.barrier #pto.pipe<PIPE_V>", 'pto.pipe_barrier "PIPE_V"'),
    ("pto.barrier #pto.pipe<PIPE_ALL>", "pto.barrier <PIPE_ALL>"),
    ('pto.get_buf "PIPE_MTE2", 0, 0', 'pto.get_buf["PIPE_MTE2", 0, 0]'),
    ("%c = arith.constant 255 : i32", "%c = arith.constant 0xFF : i32"),
    ("%c = arith.constant 10.0 : f32", "%c = arith.constant 1.000000e+01 : f32"),
    ("%c = arith.addi %i, %i : index", "%c = index.add %i, %i"),
    ("%c = arith.constant 4 : index", "%c = index.constant 4"),
    ("pto.vecscope { }", "pto.vecscope { } loc(unknown)"),
]  # fmt: skip


@pytest.mark.parametrize(("canonical", "other"), SAME)
def test_statements_inside_of_a_scope(canonical: str, other: str) -> None:
    assert print_program(read(other)) == print_program(read(canonical))
    assert not read(other).warnings


@pytest.mark.parametrize(("canonical", "other"), SAME_OUTSIDE)
def test_statements_outside(canonical: str, other: str) -> None:
    assert print_program(read(other, inside=False)) == print_program(read(canonical, inside=False))


KERNEL = texts()["merge_f32_bf16"]
FRAMES = {
    "a location behind every line": lambda text: "\n".join(
        f'{line} loc("k.py":{number}:1)'
        if line.strip().startswith(("%", "pto.v", "return")) and line.endswith(">")
        else line
        for number, line in enumerate(text.splitlines(), 1)
    ),
    "aliases of locations": lambda text: f'#loc = loc(unknown)\n{text}\n#loc1 = loc("k.py":1:1)\n',
    "a named module": lambda text: text.replace("module attributes", "module @kernels attributes", 1),
    "a public function": lambda text: text.replace("func.func @", "func.func public @"),
    "lines of another system": lambda text: text.replace("\n", "\r\n"),
    "tabs": lambda text: text.replace("  ", "\t"),
}


@pytest.mark.parametrize("frame", FRAMES)
def test_frames_around_a_program(frame: str) -> None:
    text = FRAMES[frame](KERNEL)
    assert text != KERNEL
    assert print_program(parse(text)) == print_program(parse(KERNEL))


def test_modules_within_a_module_mark_their_functions() -> None:
    inner = (
        KERNEL.replace("module attributes {", 'module attributes {pto.target_arch = "a5"} {\nmodule attributes {', 1)
        + "}"
    )
    program = parse(inner)
    assert dict(program.attributes)["pto.target_arch"] == '"a5"'
    assert all("vector" in dict(each.attributes)["pto.kernel_kind"] for each in program.functions)
    assert parse(print_program(program)) == program
    kind = "pto.kernel_kind = #pto.kernel_kind<cube>"
    cube = f"module attributes {{{kind}}} {{ func.func @c() attributes {{pto.kernel}} {{ return }} }}"
    both = parse(inner[:-1] + cube + "}")
    assert ["cube" in dict(each.attributes)["pto.kernel_kind"] for each in both.functions] == [False, True]
    with pytest.raises(CastsimError, match="expected a function"):
        parse("module { module { module { } } }")


def test_declarations_and_unknown_attributes() -> None:
    text = program("", "%x: !pto.ptr<f32, gm> {llvm.noalias}").replace(
        "{pto.kernel}", "{pto.kernel, hacc.entry, llvm.emit}"
    )
    found = parse(f"func.func private @elsewhere(i32) -> i32\n{text}")
    assert [each.is_entry for each in found.functions] == [False, True]
    loop = read("scf.for %j = %i to %i step %i { } {llvm.loop.aivector_scope}")
    assert "llvm.loop.aivector_scope" in loop.warnings[0].text
    with pytest.raises(CastsimError, match="no attribute 'unroll'"):
        read("scf.for %j = %i to %i step %i { } {unroll = 4}")


def test_strict_scopes_may_use_names_again_and_see_no_others() -> None:
    """A body that is isolated from what is above."""
    body = f"""{LOAD}
    %m = arith.constant 3 : i32
    pto.strict_vecscope(%u, %c64, %c0) {{
    ^bb0(%u: {UB}, %c0: index, %first: index):
      %m = pto.pset_b32 "PAT_ALL" : {B32}
      %v = pto.vlds %u[%first] : {UB} -> {F32}
      pto.vsts %v, %u[%c0], %m : {F32}, {UB}, {B32}
    }} : ({UB}, index, index) -> ()
    pto.vecscope {{
      %all = pto.pset_b32 "PAT_ALL" : {B32}
      %v = pto.vlds %u[%c0] : {UB} -> {F32}
      pto.vsts %v, %u[%c16], %all : {F32}, {UB}, {B32}
    }}
    {STORE}"""
    text = program(body)
    assert parse(print_program(parse(text))) == parse(text)
    found = issued(text, {"x": ramp()}).outputs["y"]
    want = ramp()
    want[64:128] = want[:64]
    want[16:80] = want[:64]
    assert np.array_equal(found, want)
    called = text.replace("@f(", "@g(").replace(" attributes {pto.kernel}", "")
    kinds = "(!pto.ptr<f32, gm>, !pto.ptr<f32, gm>)"
    caller = (
        "func.func @f(%x: !pto.ptr<f32, gm>, %y: !pto.ptr<f32, gm>) attributes {pto.kernel} {\n"
        f"func.call @g(%x, %y) : {kinds} -> ()\nreturn\n}}\n"
    )
    assert np.array_equal(issued(called + caller, {"x": ramp()}).outputs["y"], want)


@pytest.mark.parametrize("chosen", [0, 1])
def test_a_select_may_choose_registers_masks_and_pointers(chosen: int) -> None:
    body = f"""{LOAD}
    %b = pto.castptr %l1024 : i64 -> {UB}
    %is = arith.constant {chosen} : i1
    %from = arith.select %is, %u, %b : {UB}
    pto.vecscope {{
      %all = pto.pset_b32 "PAT_ALL" : {B32}
      %few = pto.pset_b32 "PAT_VL8" : {B32}
      %v = pto.vlds %from[%c0] : {UB} -> {F32}
      %w = pto.vlds %u[%c64] : {UB} -> {F32}
      %m = arith.select %is, %few, %all : {B32}
      %r = arith.select %is, %v, %w : {F32}
      pto.vsts %r, %u[%c0], %m : {F32}, {UB}, {B32}
    }}
    {STORE}"""
    assert parse(print_program(parse(program(body)))) == parse(program(body))
    found = issued(program(body), {"x": ramp()}).outputs["y"]
    want = ramp()
    if not chosen:
        want[:64] = want[64:128]
    assert np.array_equal(found, want)


def test_pairs_of_bf16_move_as_one_number() -> None:
    pair, kind = "!pto.vreg<64x!pto.bf16x2>", "!pto.ptr<!pto.bf16x2, ub>"
    body = f"""{LOAD}
    %p = pto.castptr %l0 : i64 -> {kind}
    pto.vecscope {{
      %all = pto.pset_b32 "PAT_ALL" : {B32}
      %v = pto.vlds %p[%c0] : {kind} -> {pair}
      %w = pto.vdup %v, %all {{position = "HIGHEST"}} : {pair}, {B32} -> {pair}
      pto.vsts %w, %p[%c0], %all : {pair}, {kind}, {B32}
      %h = pto.vbitcast %v : {pair} -> !pto.vreg<128xbf16>
      pto.vsts %h, %p[%c64], %wide : !pto.vreg<128xbf16>, {kind}, {B16}
    }}
    {STORE}""".replace("%v = pto.vlds", f'%wide = pto.pset_b16 "PAT_ALL" : {B16}\n      %v = pto.vlds', 1)
    found = issued(program(body), {"x": ramp()}).outputs["y"]
    assert np.array_equal(found[:64], np.full(64, 64, np.float32))
    assert np.array_equal(found[64:128], ramp()[:64])


@pytest.mark.parametrize("written", ["0x3FC00000", "1.5", "1.500000e+00", "15.0E-1"])
def test_constants_have_other_spellings(written: str) -> None:
    body = f"""{LOAD}
    pto.vecscope {{
      %half = arith.constant {written} : f32
      %all = pto.pset_b32 "PAT_ALL" : {B32}
      %v = pto.vbr %half : f32 -> {F32}
      pto.vsts %v, %u[%c0], %all : {F32}, {UB}, {B32}
    }}
    {STORE}"""
    assert np.array_equal(issued(program(body), {"x": ramp()}).outputs["y"][:64], np.full(64, 1.5, np.float32))


def test_the_older_mark_of_a_kernel_counts_alone() -> None:
    text = program(f"{LOAD}\n{STORE}").replace("pto.kernel", "pto.aicore")
    assert np.array_equal(issued(text, {"x": ramp()}).outputs["y"], ramp())


def test_generic_forms_leave_out_what_groups_have() -> None:
    (node,) = micro_operations(read(f'%r = "pto.vabs"(%v, %m) : ({F32}, {B32}) -> {F32}').functions[0].body or ())
    assert node.operands == ("v", "m")
    with pytest.raises(CastsimError, match="cannot be read in its generic form"):
        read('"pto.mte_ub_gm"(%p, %g, %a, %a, %a, %a) : () -> ()', inside=False)
    with pytest.raises(CastsimError, match="in generic form"):
        read('%c = "arith.addi"(%s, %s) : (i32, i32) -> i32')
