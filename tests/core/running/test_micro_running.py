"""Running programs of vector instructions: control flow, transfers, what is not defined, what stops a run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from castsim.isa.errors import CastsimError, EngineError, RaceError, WarningKind
from castsim.isa.pto.pto_parser import parse
from castsim.isa.pto.pto_printer import print_program
from castsim.isa.reading import Language, Source
from castsim.running.loaded import ExecutionResult, LoadRequest, RunOptions
from castsim.running.micro import MicroProgram
from castsim.running.program_loading import load_tiles
from castsim.running.program_runs import run
from castsim.targets.description import with_options

Array = NDArray[np.generic]
F32, B32, UB = "!pto.vreg<64xf32>", "!pto.mask<b32>", "!pto.ptr<f32, ub>"
LOAD = (
    f"pto.mte_gm_ub %x, %u, %l0, %l1024 nburst(%l1, %l1024, %l1024) : !pto.ptr<f32, gm>, {UB}, i64, i64, i64, i64, i64"
)
STORE = f"pto.mte_ub_gm %u, %y, %l1024 nburst(%l1, %l1024, %l1024) : {UB}, !pto.ptr<f32, gm>, i64, i64, i64, i64"
HEAD = "\n".join(
    [f"%l{n} = arith.constant {n} : i64" for n in (0, 1, 32, 1024)]
    + [f"%c{n} = arith.constant {n} : index" for n in (0, 1, 4, 16, 64)]
    + [f"%u = pto.castptr %l0 : i64 -> {UB}"]
)


def program(body: str, arguments: str = "%x: !pto.ptr<f32, gm>, %y: !pto.ptr<f32, gm>") -> str:
    """An entry of this body behind some constants, `%u` pointing to the buffer."""
    return f"func.func @f({arguments}) attributes {{pto.kernel}} {{\n{HEAD}\n{body}\nreturn\n}}\n"


def issued(
    text: str, inputs: Mapping[str, Array] | None = None, args: Mapping[str, int] | None = None
) -> ExecutionResult:
    """Run a program of the A5, which is read back as it is printed."""
    parsed = parse(text, "k.pto")
    assert parse(print_program(parsed), "k.pto") == parsed
    loaded = load_tiles(Source("k.pto", Language.TILES, text), LoadRequest("a5", args=args or {}))
    return loaded.issue(dict(inputs or {}), RunOptions())


@pytest.mark.parametrize(("rounding", "expected"), [("once", 1 + 2**-10), ("twice", 1.0)])
def test_a_product_may_be_rounded_before_its_conversion(rounding: str, expected: float) -> None:
    """(1 + 2^-12)^2 = 1 + 2^-11 + 2^-24 is above the tie of f16, and 1 + 2^-11 as f32 on it."""
    near = 1 + 2**-12
    body = f"""{LOAD}
    %s = arith.constant {near} : f32
    %h = pto.castptr %l0 : i64 -> !pto.ptr<f16, ub>
    pto.vecscope {{
      %all = pto.pset_b32 "PAT_ALL" : {B32}
      %even = pto.pset_b16 "PAT_ALL" : !pto.mask<b16>
      %v = pto.vlds %u[%c0] : {UB} -> {F32}
      %r = pto.vmulscvt %v, %s, %all {{part = "EVEN"}} : {F32}, f32, {B32} -> !pto.vreg<128xf16>
      pto.vsts %r, %h[%c0], %even : !pto.vreg<128xf16>, !pto.ptr<f16, ub>, !pto.mask<b16>
    }}
    {STORE}"""
    request = LoadRequest("a5", prepare=lambda chosen: with_options(chosen, {"scaled_conversion_rounding": rounding}))
    loaded = load_tiles(Source("k.pto", Language.TILES, program(body)), request)
    found = loaded.issue({"x": np.full(256, near, np.float32)}, RunOptions()).outputs["y"]
    assert set(np.asarray(found).view("<f2")[:128:2]) == {expected}


def ramp(count: int = 256) -> NDArray[np.float32]:
    return np.arange(1, count + 1, dtype=np.float32)


def refusal(body: str) -> CastsimError:
    with pytest.raises(CastsimError) as caught:
        issued(program(body), {"x": ramp()})
    return caught.value


def test_loops_carry_registers_masks_and_counts() -> None:
    body = f"""{LOAD}
    pto.vecscope {{
      %all = pto.pset_b32 "PAT_ALL" : {B32}
      %n = arith.constant 150 : i32
      %first = pto.vlds %u[%c0] : {UB} -> {F32}
      %r:3 = scf.for %i = %c0 to %c4 step %c1 iter_args(%left = %n, %sum = %first, %last = %all)
          -> (i32, {F32}, {B32}) {{
        %m, %less = pto.plt_b32 %left : i32 -> {B32}, i32
        %next = pto.vadd %sum, %first, %m : {F32}, {F32}, {B32} -> {F32}
        scf.yield %less, %next, %m : i32, {F32}, {B32}
      }}
      %none = scf.for %i = %c4 to %c0 step %c1 iter_args(%v = %first) -> ({F32}) {{ scf.yield %v : {F32} }}
      pto.vsts %r#1, %u[%c0], %all : {F32}, {UB}, {B32}
      pto.vsts %none, %u[%c64], %all : {F32}, {UB}, {B32}
    }}
    {STORE}"""
    found = issued(program(body), {"x": ramp()}).outputs["y"]
    first = ramp()[:64]
    lane = np.arange(64)
    # 150 is 64, 64, 22, 0: a lane that a mask leaves out becomes 0, and stays 0 as nothing is added to it any more.
    sums = first
    for count in (64, 64, 22, 0):
        sums = np.where(lane < count, sums + first, np.float32(0))
    assert np.array_equal(found[:64], sums)
    assert np.array_equal(found[64:128], first)
    assert np.array_equal(found[128:], ramp()[128:])


def test_conditions_calls_and_scalar_arguments() -> None:
    callee = f"""func.func private @scale(%p: {UB}, %s: f32) -> {UB} {{
      %c0 = arith.constant 0 : index
      pto.vecscope {{
        %m = pto.pset_b32 "PAT_ALL" : {B32}
        %v = pto.vlds %p[%c0] : {UB} -> {F32}
        %r = pto.vmuls %v, %s, %m : {F32}, f32, {B32} -> {F32}
        pto.vsts %r, %p[%c0], %m : {F32}, {UB}, {B32}
      }}
      return %p : {UB}
    }}\n"""
    body = f"""{LOAD}
    %two = arith.constant 2.0 : f32
    %three = arith.constant 3.0 : f32
    %zero = arith.constant 0 : i32
    %big = arith.cmpi sgt, %k, %zero : i32
    %s = arith.select %big, %two, %three : f32
    %r = scf.if %big -> ({UB}) {{
      %t = func.call @scale(%u, %s) : ({UB}, f32) -> {UB}
      scf.yield %t : {UB}
    }} else {{ scf.yield %u : {UB} }}
    {STORE.replace("%u, %y", "%r, %y")}"""
    text = callee + program(body, "%x: !pto.ptr<f32, gm>, %y: !pto.ptr<f32, gm>, %k: i32")
    for k, factor in ((1, 2), (-1, 1)):
        found = issued(text, {"x": ramp()}, {"k": k}).outputs["y"]
        assert np.array_equal(found[:64], ramp()[:64] * factor)


def test_loops_may_end_by_a_condition() -> None:
    body = f"""{LOAD}
    %twelve = arith.constant 12 : index
    %end:2 = scf.while (%i = %c0) : (index) -> (index, index) {{
      %more = arith.cmpi slt, %i, %twelve : index
      scf.condition(%more) %i, %i : index, index
    }} do {{
    ^bb0(%k: index, %j: index):
      pto.vecscope {{
        %m = pto.pset_b32 "PAT_ALL" : {B32}
        %v = pto.vlds %u[%c0] : {UB} -> {F32}
        %s = pto.vadd %v, %v, %m : {F32}, {F32}, {B32} -> {F32}
        pto.vsts %s, %u[%c0], %m : {F32}, {UB}, {B32}
      }}
      %next = arith.addi %k, %c4 : index
      scf.yield %next : index
    }}
    {STORE}"""
    assert np.array_equal(issued(program(body), {"x": ramp()}).outputs["y"][:64], 8 * ramp()[:64])


def test_stores_follow_the_pointer_that_a_store_hands_on() -> None:
    body = f"""{LOAD}
    %b = pto.castptr %l1024 : i64 -> {UB}
    pto.vecscope {{
      %m = pto.pset_b32 "PAT_ALL" : {B32}
      %end = scf.for %i = %c0 to %c4 step %c1 iter_args(%p = %b) -> ({UB}) {{
        %o = arith.muli %i, %c64 : index
        %v = pto.vlds %u[%o] : {UB} -> {F32}
        %q = pto.vsts %v, %p[%c64], %m : {F32}, {UB}, {B32} -> {UB}
        scf.yield %q : {UB}
      }}
      %back = pto.castptr %end : {UB} -> i64
    }}
    {STORE.replace("%u, %y", "%b, %y")}"""
    found = issued(program(body), {"x": ramp()}).outputs["y"]
    assert np.array_equal(found, ramp())


def test_bytes_that_nothing_defines_are_reported() -> None:
    body = f"""pto.vecscope {{
      %x8 = arith.constant 1.0 : f32
      %m = pto.pset_b32 "PAT_VL8" : {B32}
      %v = pto.vbr %x8 : f32 -> {F32}
      pto.vsts %v, %u[%c0], %m : {F32}, {UB}, {B32}
    }}
    {STORE}"""
    found = issued(program(body, "%y: !pto.ptr<f32, gm>"))
    (warning,) = found.loaded.executed.warnings
    assert warning.kind is WarningKind.UNDEFINED
    assert "output y: 992 of its 1024 bytes are not defined, the first is byte 32" in warning
    assert np.array_equal(found.outputs["y"][:8], np.ones(8, np.float32))


def test_a_whole_program_defines_its_outputs() -> None:
    assert not issued(program(f"{LOAD}\n{STORE}"), {"x": ramp()}).loaded.executed.warnings


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (f"pto.vecscope {{ %v = pto.vlds %u[%c1] : {UB} -> {F32} }}", "at byte 4 is not aligned"),
        (
            "%b = arith.constant 65537 : index\n"
            f'pto.vecscope {{ %v = pto.vlds %u[%b] {{dist = "BRC_B32"}} : {UB} -> {F32} }}',
            "accesses bytes 262148",
        ),
        (f"%far = arith.constant 262144 : i64\n%p = pto.castptr %far : i64 -> {UB}", "outside the buffer"),
        (LOAD.replace("nburst(%l1, %l1024, %l1024)", "nburst(%l1024, %l1024, %l1024)"), "which has 262144"),
        (f"%p = pto.addptr %u, %c1 : {UB} -> {UB}\n{LOAD.replace('%u', '%p')}", "address 4 of a transfer"),
        (f"{LOAD}\n%e = arith.constant -1 : index\n%p = pto.addptr %u, %e : {UB} -> {UB}\n"
         f"pto.vecscope {{ %v = pto.vlds %p[%c0] : {UB} -> {F32} }}", "byte -4 is not aligned"),
        ("%t = pto.alloc_tile : !pto.tile_buf<vec, 16x64xf32>\n" + LOAD, "is not modelled"),
    ],
)  # fmt: skip
def test_what_the_unit_cannot_reach_is_refused_at_its_place(body: str, reason: str) -> None:
    error = refusal(body)
    assert reason in error.message, error.message
    assert error.span is not None
    assert error.span.file == "k.pto"
    assert error.exit_code == 1


def test_inputs_that_are_too_short_or_missing_are_refused() -> None:
    text = program(f"{LOAD}\n{STORE}")
    with pytest.raises(CastsimError, match="uses 256 or more"):
        issued(text, {"x": ramp(255)})
    with pytest.raises(CastsimError, match="no input was given"):
        issued(text)
    assert issued(text, {"x": ramp(300)}).outputs["y"].size == 256


def test_a_wait_for_a_flag_that_nothing_sets_never_ends() -> None:
    wait = 'pto.wait_flag["PIPE_MTE2", "PIPE_V", "EVENT_ID0"]'
    with pytest.raises(EngineError, match="deadlock: V waits for flag 0 of MTE2"):
        issued(program(wait))
    issued(program(f'pto.set_flag["PIPE_MTE2", "PIPE_V", "EVENT_ID0"]\n{wait}'))


@pytest.mark.parametrize("kind", ["module", "function"])
def test_programs_of_the_matrix_unit_are_refused(kind: str) -> None:
    mark = "pto.kernel_kind = #pto.kernel_kind<cube>"
    text = program(LOAD)
    if kind == "module":
        text = f"module attributes {{{mark}}} {{\n{text}}}\n"
    else:
        text = text.replace("{pto.kernel}", f"{{pto.kernel, {mark}}}")
    with pytest.raises(CastsimError, match="matrix unit"):
        issued(text, {"x": ramp()})


def test_other_targets_have_no_vector_instructions() -> None:
    scope = 'pto.vecscope {\n%m = pto.pset_b32 "PAT_ALL" : !pto.mask<b32>\n}'
    with pytest.raises(CastsimError, match="a2a3 has no vector registers") as caught:
        load_tiles(Source("k.pto", Language.TILES, program(f"{LOAD}\n{scope}")), LoadRequest("a2a3"))
    assert caught.value.span is not None


def test_a_result_has_cycles_of_both_engines(tmp_path: Path) -> None:
    file = tmp_path / "k.pto"
    file.write_text(program(f"{LOAD}\n{STORE}"))
    result = run(file, inputs={"x": "random:1"})
    assert result.cycles == run(file, engine="event", timing_only=True).cycles
    assert result.loaded.target.name == "a5"  # whose instructions these are, if the file names no chip
    assert not run(file, timing_only=True).outputs


@pytest.mark.parametrize(
    ("set_bits", "cleared", "expected"),
    [((), (), np.inf), ((60,), (), np.inf), ((60,), (48,), 65504.0), ((), (48,), np.inf)],
)
def test_a_program_may_set_the_control_register(set_bits, cleared, expected) -> None:
    """Programs of vector instructions start with CTRL[60] = 0 and [48] = 1: only both the other way round clamp."""
    changes = [("sbitset1", bit) for bit in set_bits] + [("sbitset0", bit) for bit in cleared]
    change = "\n".join(
        f"""%k{bit} = arith.constant {bit} : i64
    %before{bit} = pto.get_ctrl : i64
    %after{bit} = pto.{name} %before{bit}, %k{bit} : i64, i64 -> i64
    pto.set_ctrl %after{bit} : i64"""
        for name, bit in changes
    )
    kinds = f"{F32}, {B32} -> !pto.vreg<128xf16>"
    body = f"""{LOAD}
    {change}
    pto.vecscope {{
      %m = pto.pset_b32 "PAT_ALL" : {B32}
      %v = pto.vlds %u[%c0] : {UB} -> {F32}
      %h = pto.vcvt %v, %m {{rnd = "R", sat = "NOSAT", part = "EVEN"}} : {kinds}
      %f = pto.vbitcast %h : !pto.vreg<128xf16> -> {F32}
      pto.vsts %f, %u[%c0], %m : {F32}, {UB}, {B32}
    }}
    {STORE}"""
    found = issued(program(body), {"x": np.full(256, 1e6, np.float32)}).outputs["y"]
    assert found.view(np.float16)[0] == np.float16(expected)


# ------------------------------------------------------------------ what stops a running program of vector instructions
BEFORE = len(program("X").partition("\nX")[0].splitlines()) + 1
INDEX = "!pto.vreg<64xi32>"
STATE = f"!pto.align, i32, {F32}, {UB} -> !pto.align"

STOPS = [
    # alignment
    (f"%v = «pto.vlds %u[%one] : {UB} -> {F32}", "a load NORM at byte 4 is not aligned", "of 32 bytes"),
    (f'%v = «pto.vlds %u[%one] {{dist = "UNPK_B16"}} : {UB} -> !pto.vreg<128xf16>', "at byte 4", "of 16 bytes"),
    (f'%a, %b = «pto.vldsx2 %u[%one], "DINTLV_B32" : {UB}, index -> {F32}, {F32}', "at byte 4", "of 32 bytes"),
    (f"«pto.vsts %f, %u[%one], %m : {F32}, {UB}, {B32}", "a store NORM_B32 at byte 4", "of 32 bytes"),
    (f'«pto.vsts %h, %u[%one], %m {{dist = "PK_B32"}} : !pto.vreg<128xf16>, {UB}, {B32}', "at byte 4", "of 32 bytes"),
    (f'%v = «pto.vlds %odd[%zero] {{dist = "BRC_B32"}} : {UB} -> {F32}', "at byte 2 is not", "of 4 bytes"),
    (f'«pto.vsts %f, %odd[%zero], %m {{dist = "1PT_B32"}} : {F32}, {UB}, {B32}', "at byte 2 is not", "of 4 bytes"),
    (f'«pto.vstsx2 %f, %f, %u[%one], "INTLV_B32", %m : {F32}, {F32}, {UB}, index, {B32}', "at byte 4", "of 32 bytes"),
    (f"%v = «pto.vsldb %odd, %s1, %s1, %m : {UB}, i16, i16, {B32} -> {F32}", "is not aligned", "of 32 bytes"),
    (f"«pto.vsstb %f, %odd, %s1, %s1, %m : {F32}, {UB}, i16, i16, {B32}", "is not aligned", "of 32 bytes"),
    (f'«pto.psts %m, %u[%one], "NORM" : {B32}, {UB}, index', "a predicate store NORM", "of 32 bytes"),
    (f'%k = «pto.plds %u[%one], "US" : {UB}, index -> {B32}', "a predicate load US", "of 16 bytes"),
    (f"%v = «pto.vgatherb %odd, %i, %m : {UB}, {INDEX}, {B32} -> {F32}", "of blocks at byte 2", "of 32 bytes"),
    (f"%v = «pto.vgatherb %u, %ramp, %m : {UB}, {INDEX}, {B32} -> {F32}", "of blocks at byte 1", "of 32 bytes"),
    # the end of the buffer
    (f"%v = «pto.vlds %end[%zero] : {UB} -> {F32}", "accesses bytes 262112", "0 to 261888"),
    (f"«pto.vsts %f, %end[%zero], %m : {F32}, {UB}, {B32}", "accesses bytes 262112", "0 to 261888"),
    (f"%v, %l = «pto.vldus %end, %state : {UB}, !pto.align -> {F32}, !pto.align", "an unaligned load", "addresses 0"),
    (f"%l = «pto.vstus %state, %n64, %f, %end : {STATE}", "an unaligned store", "addresses"),
    (f"%l = «pto.vstus %state, %n99, %f, %u : {STATE}", "store of 396 bytes", "0 to 256"),
    (f"%v = «pto.vgather2 %end, %ramp, %m : {UB}, {INDEX}, {B32} -> {F32}", "a gather accesses byte 262144", None),
    (f"«pto.vscatter %f, %end, %ramp, %m : {F32}, {UB}, {INDEX}, {B32}", "a scatter accesses byte 262144", None),
    (f"%v = «pto.vlds %before[%zero] : {UB} -> {F32}", "bytes -32 .. 223 of a memory", "0 to 261888"),
    # numbers
    ("%v = «pto.vsunpack %w, %two : !pto.vreg<128xi16>, index -> !pto.vreg<64xi32>", "no half 2", "1"),
    ("%r = «arith.divui %two, %zero : index", "division by zero", None),
    ("scf.for %j = %zero to %two step «%none { }", "must be positive", None),
]  # fmt: skip

INSIDE = f"""%odd8 = arith.constant 2 : i64
%end8 = arith.constant 262112 : i64
%odd = pto.castptr %odd8 : i64 -> {UB}
%end = pto.castptr %end8 : i64 -> {UB}
%back = arith.constant -8 : index
%before = pto.addptr %u, %back : {UB} -> {UB}
pto.vecscope {{
%zero = arith.constant 0 : index
%one = arith.constant 1 : index
%two = arith.constant 2 : index
%none = arith.subi %two, %two : index
%s1 = arith.constant 1 : i16
%n0 = arith.constant 0 : i32
%n64 = arith.constant 64 : i32
%n99 = arith.constant 99 : i32
%state = pto.init_align : !pto.align
%m = pto.pset_b32 "PAT_ALL" : {B32}
%f = pto.vlds %u[%zero] : {UB} -> {F32}
%h = pto.vbitcast %f : {F32} -> !pto.vreg<128xf16>
%w = pto.vbitcast %f : {F32} -> !pto.vreg<128xi16>
%i = pto.vbr %n0 : i32 -> {INDEX}
%ramp = pto.vci %n0 : i32 -> {INDEX}"""

OUTSIDE = [
    (f"%p = «pto.castptr %far : i64 -> {UB}", "byte 262144 is outside the buffer", "0 .. 262143"),
    ("«" + LOAD.replace("%u,", "%odd,"), "address 2 of a transfer in the buffer", "32"),
    ("«" + LOAD.replace("nburst(%l1, %l1024, %l1024)", "nburst(%l32, %l1024, %l1)"), "stride 1 of a transfer", "32"),
    ("«" + LOAD.replace("nburst(%l1,", "nburst(%l1024,"), "which has 262144", None),
    ("«" + LOAD.replace("%l1024 nburst", "%minus nburst"), "a length of -1 in a transfer", None),
]  # fmt: skip


def stopped(before: str, marked: str, behind: str, reason: str, legal: str | None) -> None:
    """A statement behind others is refused at the place that is marked in it."""
    with pytest.raises(CastsimError) as caught:
        issued(program(f"{before}\n{marked.replace('«', '')}{behind}"), {"x": ramp()})
    error = caught.value
    assert error.exit_code in (1, 2)
    assert error.span is not None
    place = (error.span.file, error.span.line, error.span.column)
    assert place == ("k.pto", BEFORE + len(before.splitlines()), marked.index("«") + 1)
    assert "^" in error.render()
    assert reason in error.message, error.message
    assert legal is None or any(legal in each for each in error.legal), error.legal


@pytest.mark.parametrize(("marked", "reason", "legal"), STOPS)
def test_instructions(marked: str, reason: str, legal: str | None) -> None:
    stopped(f"{LOAD}\n{INSIDE}", marked, "\n}", reason, legal)


@pytest.mark.parametrize(("marked", "reason", "legal"), OUTSIDE)
def test_transfers(marked: str, reason: str, legal: str | None) -> None:
    before = f"""%far = arith.constant 262144 : i64
%minus = arith.constant -1 : i64
%two = arith.constant 2 : i64
%odd = pto.castptr %two : i64 -> {UB}"""
    stopped(before, marked, "", reason, legal)


TILE, HALF = "!pto.tile_buf<vec, 4x64xf32>", "!pto.tile_buf<vec, 4x64xf16>"
PART = "!pto.partition_tensor_view<4x64xf32>"
TILES = f"""%far = arith.constant 4096 : i64
%last = arith.constant 8192 : i64
%v = pto.make_tensor_view %x, shape = [%c4, %c64], strides = [%c64, %c1] : !pto.tensor_view<?x?xf32>
%p = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%c4, %c64] : !pto.tensor_view<?x?xf32> -> {PART}
%a = pto.alloc_tile addr = %l0 : {TILE}
%b = pto.alloc_tile addr = %far : {TILE}
%h = pto.alloc_tile addr = %last : {HALF}
pto.tload ins(%p : {PART}) outs(%a : {TILE})
pto.set_flag["PIPE_MTE2", "PIPE_V", "EVENT_ID0"]
pto.wait_flag["PIPE_MTE2", "PIPE_V", "EVENT_ID0"]
pto.tadd ins(%a, %a : {TILE}, {TILE}) outs(%b : {TILE})
pto.barrier #pto.pipe<PIPE_V>
"""
SQUARED = f"""%r = pto.castptr %far : i64 -> {UB}
scf.for %i = %c0 to %c4 step %c1 {{
%o = arith.muli %i, %c64 : index
pto.vecscope {{
%m = pto.pset_b32 "PAT_ALL" : {B32}
%s = pto.vlds %r[%o] : {UB} -> {F32}
%t = pto.vmul %s, %s, %m : {F32}, {F32}, {B32} -> {F32}
pto.vsts %t, %r[%o], %m : {F32}, {UB}, {B32}
}}
}}
pto.barrier #pto.pipe<PIPE_V>
"""
AS_HALVES = f"pto.tcvt ins(%b{{rmode = #pto<round_mode RINT>}} : {TILE}) outs(%h : {HALF})\n"
OUT = f"""pto.set_flag["PIPE_V", "PIPE_MTE3", "EVENT_ID0"]
pto.wait_flag["PIPE_V", "PIPE_MTE3", "EVENT_ID0"]
%w = pto.make_tensor_view %y, shape = [%c4, %c64], strides = [%c64, %c1] : !pto.tensor_view<?x?xf16>
%q = pto.partition_view %w, offsets = [%c0, %c0], sizes = [%c4, %c64] : !pto.tensor_view<?x?xf16> -> \
{PART.replace("f32", "f16")}
pto.tstore ins(%h : {HALF}) outs(%q : {PART.replace("f32", "f16")})
pto.barrier #pto.pipe<PIPE_ALL>
""".replace("\\\n", "")
BOTH = "%x: !pto.ptr<f32, gm>, %y: !pto.ptr<f16, gm>"


def both(body: str) -> str:
    return program(body, BOTH).replace(HEAD, "\n".join(HEAD.splitlines()[:-1]))


@pytest.mark.parametrize("engine", ["fast", "event"])
def test_a_function_holds_tile_operations_and_vector_instructions(engine: str, tmp_path: Path) -> None:
    path = tmp_path / "k.pto"
    path.write_text('module attributes {pto.target_arch = "a5"} {\n' + both(TILES + SQUARED + AS_HALVES + OUT) + "}\n")
    x = np.random.default_rng(5).normal(size=(4, 64)).astype(np.float32)
    found = run(path, inputs={"x": x}, engine=engine)
    assert np.array_equal(np.asarray(found.outputs["y"]).view(np.float16).reshape(4, 64), ((x + x) ** 2).astype("<f2"))
    assert found.cycles == run(path, inputs={"x": x}).cycles and not found.untimed
    assert not [each for each in found.warnings if each.kind == "undefined"]


def test_tile_operations_take_their_time_beside_vector_instructions(tmp_path: Path) -> None:
    cycles = []
    for pointer in ("", f"%r = pto.castptr %far : i64 -> {UB}\n"):
        path = tmp_path / f"k{len(cycles)}.pto"
        text = both(TILES + pointer + AS_HALVES + OUT)
        path.write_text('module attributes {pto.target_arch = "a5"} {\n' + text + "}\n")
        cycles.append(run(path, inputs={"x": "zeros"}).cycles)
    assert cycles[0] == cycles[1]


@pytest.mark.parametrize(
    ("old", "new", "message", "legal"),
    [
        ("%b = pto.alloc_tile addr = %far", "%b = pto.alloc_tile", "pto.alloc_tile needs an address", "addr = %value"),
        ("%t = pto.vmul", f"pto.tneg ins(%b : {TILE}) outs(%b : {TILE})\n%t = pto.vmul",
         "pto.tneg is not allowed inside a vecscope", "after the vecscope"),
        ("%v = pto.make_tensor_view %x", "%v = pto.make_tensor_view %r", "%r points into the buffer", "an argument"),
    ],
)  # fmt: skip
def test_what_a_function_cannot_hold(old: str, new: str, message: str, legal: str) -> None:
    text = both(f"%r = pto.castptr %l0 : i64 -> {UB}\n" + TILES + SQUARED.partition("\n")[2] + AS_HALVES + OUT)
    with pytest.raises(CastsimError, match=re.escape(message)) as refused:
        issued(text.replace(old, new), {"x": ramp(256).reshape(4, 64)})
    assert legal in str(refused.value)
    assert refused.value.span is not None


def test_a_tile_operation_without_a_flag_before_it_is_a_race(tmp_path: Path) -> None:
    lines = both(TILES + SQUARED + AS_HALVES + OUT).splitlines()
    path = tmp_path / "k.pto"
    text = "\n".join(line for line in lines if "PIPE_MTE2" not in line)
    path.write_text('module attributes {pto.target_arch = "a5"} {\n' + text + "\n}\n")
    with pytest.raises(RaceError, match="tload"):
        run(path, inputs={"x": ramp(256).reshape(4, 64)})


MIXED = "!pto.mask<b16>"
BODIES = {
    "vabs": f"%r = pto.vabs %v, %all : {F32}, {B32} -> {F32}",
    "vadd": f"%r = pto.vadd %v, %w, %all : {F32}, {F32}, {B32} -> {F32}",
    "vcmax": f"%r = pto.vcmax %v, %all : {F32}, {B32} -> {F32}",
    "vcadd": f"%r = pto.vcadd %v, %all : {F32}, {B32} -> {F32}",
    "vexp": f"%r = pto.vexp %v, %all : {F32}, {B32} -> {F32}",
    "vdintlv": f"%r, %q = pto.vdintlv %v, %w : {F32}, {F32} -> {F32}, {F32}",
    "vcvt": f"""%b = pto.vcvt %v, %all {{part = "ODD", rnd = "R", sat = "SAT"}} : {F32}, {B32} -> !pto.vreg<128xf16>
      %h = pto.vcvt %b, %wide {{part = "ODD"}} : !pto.vreg<128xf16>, {MIXED} -> {F32}
      %r = pto.vmul %h, %w, %all : {F32}, {F32}, {B32} -> {F32}""",
    "vldsx2": f"""%r, %q = pto.vldsx2 %u[%c0], "DINTLV_B32" : {UB}, index -> {F32}, {F32}
      pto.vstsx2 %w, %r, %u[%c64], "INTLV_B32", %all : {F32}, {F32}, {UB}, index, {B32}""",
    "vbr": f"""%t = pto.vbr %s : f32 -> {F32}
      pto.vsts %t, %u[%c64], %all : {F32}, {UB}, {B32}
      %r = pto.vmax %v, %t, %all : {F32}, {F32}, {B32} -> {F32}""",
    "vcmps": f"""%b = pto.vcmps %v, %s, %all, "lt" : {F32}, f32, {B32} -> {B32}
      %r = pto.vsel %v, %w, %b : {F32}, {F32}, {B32} -> {F32}""",
}


@pytest.mark.parametrize("name", BODIES)
def test_several_runs_give_what_each_gives(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    body = f"""{LOAD}
    %s = arith.constant 0.0 : f32
    pto.vecscope {{
      %all = pto.pset_b32 "PAT_VL32" : {B32}
      %wide = pto.pset_b16 "PAT_ALL" : {MIXED}
      %w = pto.vlds %u[%c64] : {UB} -> {F32}
      %v = pto.vlds %u[%c0] : {UB} -> {F32}
      {BODIES[name]}
      pto.vsts %r, %u[%c0], %all : {F32}, {UB}, {B32}
    }}
    {STORE}"""
    loaded = load_tiles(Source("k.pto", Language.TILES, program(body)), LoadRequest("a5"))
    assert isinstance(loaded, MicroProgram)
    numbers = np.random.default_rng(7).standard_normal((5, 256)).astype(np.float32)
    numbers[3, :4] = np.nan, np.inf, -0.0, 1e38
    inputs = [{"x": each} for each in numbers]
    expected = [loaded.issue(each, RunOptions()).outputs["y"] for each in inputs]
    if name != "vcmps":
        monkeypatch.setattr(MicroProgram, "issue", None)
    found = [outputs["y"] for outputs in loaded.outputs_of(inputs, RunOptions())]
    assert [np.asarray(one).tobytes() for one in found] == [np.asarray(one).tobytes() for one in expected]
    assert not np.array_equal(found[0], found[1])
