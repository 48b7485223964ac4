"""The text of the micro level: every operation is read and printed; mixed modules; scopes."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from micro_text import program_of

from castsim.isa.pto.micro_forms import ROWS, micro_operations
from castsim.isa.pto.program import Section
from castsim.isa.pto.pto_parser import parse
from castsim.isa.pto.pto_printer import print_program


@settings(max_examples=600, deadline=None)
@given(name=st.sampled_from(sorted(ROWS)), seed=st.integers(0, 10**6))
def test_what_is_printed_is_read_back(name: str, seed: int) -> None:
    text = program_of(name, seed)
    program = parse(text)
    printed = print_program(program)
    again = parse(printed)
    assert again == program, text
    assert print_program(again) == printed
    (operation,) = micro_operations(program.functions[0].body or ())
    assert operation.mnemonic == name


MIXED = """
module attributes {pto.target_arch = "a5", pto.kernel_kind = #pto.kernel_kind<vector>} {
  func.func @tiles(%p: !pto.ptr<f32>) attributes {pto.entry} {
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %v = pto.make_tensor_view %p, shape = [%c1, %c64], strides = [%c64, %c1] : !pto.tensor_view<?x?xf32>
    return
  }
  func.func @micro(%p: !pto.ptr<si32, gm>, %q: !pto.ptr<!pto.hif8, gm>) attributes {pto.kernel} {
    %c0 = arith.constant 0 : i64
    %lo = arith.constant 0 : index
    %hi = arith.constant 4 : index
    %st = arith.constant 1 : index
    %n = arith.constant 200 : i32
    %u = pto.castptr %c0 : i64 -> !pto.ptr<si32, ub>
    pto.strict_vecscope(%u, %lo, %hi, %st, %n) {
    ^bb0(%b: !pto.ptr<si32, ub>, %l: index, %h: index, %s: index, %k: i32):
      %all = pto.pset_b32 "PAT_ALL" : !pto.mask<b32>
      %x, %q0 = pto.vlds %b[%l] : !pto.ptr<si32, ub> -> !pto.vreg<64xsi32>, !pto.ptr<si32, ub>
      %_:3 = scf.for %i = %l to %h step %s iter_args(%left = %k, %sum = %x, %m = %all)
          -> (i32, !pto.vreg<64xsi32>, !pto.mask<b32>) {
        %t, %less = pto.plt_b32 %left : i32 -> !pto.mask<b32>, i32
        %y = pto.vadd %sum, %x, %t : !pto.vreg<64xsi32>, !pto.vreg<64xsi32>, !pto.mask<b32> -> !pto.vreg<64xsi32>
        scf.yield %less, %y, %t : i32, !pto.vreg<64xsi32>, !pto.mask<b32>
      }
      pto.vsts %_#1, %b[%l], %_#2 : !pto.vreg<64xsi32>, !pto.ptr<si32, ub>, !pto.mask<b32>
    } : (!pto.ptr<si32, ub>, index, index, index, i32) -> ()
    pto.get_buf "PIPE_V", %c0, %c0 : i64, i64
    pto.set_flag["PIPE_V", "PIPE_MTE3", "EVENT_ID0"]
    pto.wait_flag["PIPE_V", "PIPE_MTE3", "EVENT_ID0"]
    pto.pipe_barrier "PIPE_V"
    pto.barrier #pto.pipe<PIPE_ALL>
    pto.dsb "DDR"
    return
  }
}
"""


def test_modules_of_tile_and_vector_functions() -> None:
    program = parse(MIXED)
    assert [function.is_entry for function in program.functions] == [True, True]
    assert parse(print_program(program)) == program
    text = print_program(program)
    assert "!pto.vreg<64xsi32>" in text  # a spelling of its own is kept
    assert "!pto.ptr<!pto.hif8, gm>" in text
    (scope,) = (node for node in program.functions[1].body or () if isinstance(node, Section))
    assert scope.carried == ("b", "l", "h", "s", "k")
    assert not program.warnings
