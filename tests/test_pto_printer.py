from __future__ import annotations

from pathlib import Path

import pytest
from pto_text import SPECIMENS, compact, function

from castsim.isa.errors import ReadError
from castsim.isa.pto.program import Argument, Function, PointerType, Program, Return
from castsim.isa.pto.pto_parser import parse
from castsim.isa.pto.pto_printer import print_program

T = compact("f32", 16, 64)

# One line per operation and form, so that no printing function goes unread.
EVERYTHING = """
module @m attributes {pto.target_arch = "a5", "pto.device-spec" = "Ascend910B3", unit, nested = [1 : i32, {a = true}]} {
func.func private @outside(!pto.ptr<f32, gm>, %n: index {pto.x = 3}) -> (i32, f32)
func.func @entry(%p: !pto.ptr<f32>, %n: index, %w: i32, %x: f32, %u: ui8, %q: i64, %c: i1) attributes {pto.entry} {
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %neg = arith.constant -3 : i8
  %yes = arith.constant true
  %tiny = arith.constant 1e-30 : f32
  %inf = arith.constant 0x7F800000 : f32
  %nan = arith.constant 0x7e01 : f16
  %sum = arith.addi %n, %c1 : index
  %less = arith.cmpi slt, %n, %c1 : index
  %pick = arith.select %less, %x, %tiny : f32
  %i = arith.index_cast %w : i32 to index
  %v = pto.make_tensor_view %p, shape = [%c16, %c64], strides = [%c64, %c1] {layout = #pto.layout<nd>} :
    !pto.tensor_view<?x64xf32>
  %s = pto.partition_view %v, offsets = [%n, %n], sizes = [%c16, %c64] : !pto.tensor_view<?x64xf32> ->
    !pto.partition_tensor_view<16x64xf32>
  %t = pto.alloc_tile addr = %q valid_row = %n valid_col = %n : !pto.tile_buf<vec, 16x64xf32, valid=?x?, pad=2>
  %a = pto.alloc_tile : !pto.tile_buf<vec, 16x64xf32>
  %h = pto.alloc_tile : !pto.tile_buf<vec, 16x64xf16>
  %k = pto.alloc_tile : !pto.tile_buf<vec, 1x32xi8>
  pto.set_validshape %t, %n, %n : !pto.tile_buf<vec, 16x64xf32, valid=?x?, pad=2>
  pto.tload ins(%s : !pto.partition_tensor_view<16x64xf32>) outs(%a : !pto.tile_buf<vec, 16x64xf32>)
  pto.texpands ins(%x : f32) outs(%a : !pto.tile_buf<vec, 16x64xf32>) {b, a = #other.thing<1 2>}
  pto.tzero outs(%a : !pto.tile_buf<vec, 16x64xf32>) {key = "text"}
  pto.tcvt ins(%a, %k {rmode = #pto<round_mode ODD>, sat_mode = #pto<saturation_mode OFF>} :
    !pto.tile_buf<vec, 16x64xf32>, !pto.tile_buf<vec, 1x32xi8>) outs(%h : !pto.tile_buf<vec, 16x64xf16>)
  tcvt %h, %a : !pto.tile<f32, 16, 64> #sat_mode=ON
  %g = tcvt %a : !pto.tile<f32, 16, 64> -> !pto.tile<bf16, 16, 64>
  %g2 = pto.tcvt %a, %k {rmode = #pto.round_mode<CAST_NONE>} : !pto.tile<f32, 16, 64>, !pto.tile<1x32xi8> ->
    !pto.tile<bf16, 16, 64>
  %r = pto.treshape %g : !pto.tile<bf16, 16, 64> -> !pto.tile<bf16, 32, 32>
  pto.record_event[#pto.pipe_event_type<TLOAD>, #pto.sync_op_type<TVEC>, #pto.event<EVENT_ID1>]
  pto.wait_flag["PIPE_MTE2", "PIPE_V", "EVENT_ID1"]
  pto.barrier_sync[#pto.sync_op_type<TVEC>]
  pto.section.vector { pto.vecscope { pto.mem_bar "VST_VLD" } }
  scf.for %j = %w to %w step %w : i32 { scf.yield }
  %l:2, %m = scf.for %j = %n to %n step %c1 iter_args(%e = %w, %f = %w, %o = %x) -> (i32, i32, f32) {
    %b:2 = scf.if %less -> (i32, f32) { scf.yield %e, %o : i32, f32 } else { scf.yield %f#0, %o : i32, f32 }
    scf.yield %b, %b#0, %b#1 : i32, i32, f32
  }
  %z = arith.addi %l#1, %l : i32
  scf.if %c { pto.barrier <PIPE_V> } else { pto.barrier <PIPE_M> }
  return
}
func.func @value(%a: i32) -> i32 { return %a : i32 }
}
"""


def check_round_trip(text: str) -> Program:
    program = parse(text)
    printed = print_program(program)
    again = parse(printed)
    assert again == program
    assert print_program(again) == printed
    return program


@pytest.mark.parametrize("path", SPECIMENS, ids=lambda path: path.stem)
def test_specimens_survive_printing(path: Path) -> None:
    check_round_trip(path.read_text())


def test_every_form_survives_printing() -> None:
    program = check_round_trip(EVERYTHING)
    assert [function.name for function in program.functions] == ["outside", "entry", "value"]


def test_canonical_text() -> None:
    text = (
        "module attributes {pto.target_arch = \"a3\"} {\n  func.func @f(%n: index) attributes {pto.entry} {\n"
        "    %s = pto.alloc_tile : !pto.tile_buf<vec, 16x64xf32>\n"
        "    %d = pto.alloc_tile : !pto.tile_buf<vec, 16x64xi16>\n"
        "    scf.for %i = %n to %n step %n {\n"
        "      pto.tcvt ins(%s {rmode = #pto<round_mode FLOOR>, sat_mode = #pto<saturation_mode ON>} : "
        "!pto.tile_buf<vec, 16x64xf32>) outs(%d : !pto.tile_buf<vec, 16x64xi16>)\n"
        '      pto.vecscope {\n        pto.mem_bar "VST_VLD"\n      }\n'
        "    }\n"
        "    %c = arith.constant true\n    scf.if %c {\n      pto.barrier <PIPE_V>\n"
        "    } else {\n      pto.barrier <PIPE_M>\n    }\n    return\n  }\n}\n"
    )  # fmt: skip
    assert print_program(parse(text)) == text


def test_all_spellings_of_a_cast_print_alike() -> None:
    alloc = f"%s = pto.alloc_tile : {T}\n%d = pto.alloc_tile : {T}\n"
    forms = (
        f"pto.tcvt ins(%s {{rmode = #pto<round_mode CEIL>}} : {T}) outs(%d : {T})",
        f"pto.tcvt ins(%s : {T}) outs(%d : {T}) {{rmode = #pto.round_mode<CAST_CEIL>}}",
        f"tcvt %d, %s : {T} #rmode=CEIL",
        f'"pto.tcvt"(%s, %d) {{rmode = #pto<round_mode CEIL>}} : ({T}, {T}) -> ()',
    )
    assert len({print_program(parse(function(alloc + form))) for form in forms}) == 1


def test_a_format_that_the_text_cannot_spell_is_refused() -> None:
    program = Program((Function("f", (Argument("p", PointerType("e3m2")),), (Return(),)),))
    with pytest.raises(ReadError, match="e3m2"):
        print_program(program)
