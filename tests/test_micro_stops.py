"""What stops a running program of vector instructions: the reason, the place to the column, what would be legal."""

from __future__ import annotations

import pytest
from test_micro_running import B32, F32, HEAD, LOAD, UB, issued, program, ramp

from castsim.isa.errors import CastsimError
from castsim.isa.pto.pto_parser import parse

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
    (f"%v = «pto.vlds %end[%zero] : {UB} -> {F32}", "reaches bytes 262112", "0 to 261888"),
    (f"«pto.vsts %f, %end[%zero], %m : {F32}, {UB}, {B32}", "reaches bytes 262112", "0 to 261888"),
    (f"%v, %l = «pto.vldus %end, %state : {UB}, !pto.align -> {F32}, !pto.align", "an unaligned load", "addresses 0"),
    (f"%l = «pto.vstus %state, %n64, %f, %end : {STATE}", "an unaligned store", "addresses"),
    (f"%l = «pto.vstus %state, %n99, %f, %u : {STATE}", "store of 396 bytes", "0 to 256"),
    (f"%v = «pto.vgather2 %end, %ramp, %m : {UB}, {INDEX}, {B32} -> {F32}", "a gather names byte 262144", None),
    (f"«pto.vscatter %f, %end, %ramp, %m : {F32}, {UB}, {INDEX}, {B32}", "a scatter names byte 262144", None),
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


def stopped(text: str, marked: str, line: int) -> CastsimError:
    with pytest.raises(CastsimError) as caught:
        issued(text, {"x": ramp()})
    error = caught.value
    assert error.exit_code in (1, 2)
    assert error.span is not None
    assert (error.span.file, error.span.line, error.span.column) == ("k.pto", line, marked.index("«") + 1)
    assert "^" in error.render()
    return error


@pytest.mark.parametrize(("marked", "reason", "legal"), STOPS)
def test_instructions(marked: str, reason: str, legal: str | None) -> None:
    before = f"{LOAD}\n{INSIDE}"
    text = program(f"{before}\n{marked.replace('«', '')}\n}}")
    error = stopped(text, marked, BEFORE + len(before.splitlines()))
    assert reason in error.message, error.message
    assert legal is None or any(legal in each for each in error.legal), error.legal


@pytest.mark.parametrize(("marked", "reason", "legal"), OUTSIDE)
def test_transfers(marked: str, reason: str, legal: str | None) -> None:
    before = f"""%far = arith.constant 262144 : i64
%minus = arith.constant -1 : i64
%two = arith.constant 2 : i64
%odd = pto.castptr %two : i64 -> {UB}"""
    text = program(f"{before}\n{marked.replace('«', '')}")
    error = stopped(text, marked, BEFORE + len(before.splitlines()))
    assert reason in error.message, error.message
    assert legal is None or any(legal in each for each in error.legal), error.legal


def test_the_programs_around_are_legal() -> None:
    assert HEAD in program("")
    parse(program(f"{LOAD}\n{INSIDE}\n}}"))
    issued(program(f"{LOAD}\n{INSIDE}\n}}"), {"x": ramp()})
