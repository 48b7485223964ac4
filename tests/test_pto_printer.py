from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pto_text import SPECIMENS, compact, function

from castsim.isa.errors import CastsimError, ReadError
from castsim.isa.pto.program import Argument, Function, PointerType, Program, Return
from castsim.isa.pto.pto_parser import parse
from castsim.isa.pto.pto_printer import print_program

T = compact("f32", 16, 64)
ELEMENTS = [
    "f32", "f16", "bf16", "f64", "i8", "si8", "ui8", "i16", "si16", "ui16", "i32", "ui32", "i64", "ui64", "f8E4M3FN",
    "f8E5M2", "f8E4M3", "f8E5M2FNUZ", "hif8", "f4E2M1x2", "f4E1M2x2", "s4",
]  # fmt: skip

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


# ------------------------------------------------------------------------------------------- generated programs


@st.composite
def programs(draw: st.DrawFn) -> str:
    """Text of a program: tiles of one shape, casts between them in any form, loops and conditions around them."""
    rows, cols = draw(st.integers(0, 40)), draw(st.integers(0, 300))
    valid = (draw(st.integers(0, rows)), draw(st.integers(0, cols)))
    dynamic = draw(st.booleans())
    tile = "!pto.tile_buf<{}, {}x{}x{}, valid={}x{}, pad={}>"
    lines: list[str] = []
    kinds: list[str] = []
    for number in range(draw(st.integers(2, 5))):
        location = draw(st.sampled_from(("vec", "acc", "mat")))
        shown = ("?", valid[1]) if dynamic else valid
        kind = tile.format(location, rows, cols, draw(st.sampled_from(ELEMENTS)), *shown, draw(st.integers(0, 3)))
        address = draw(st.sampled_from(("", " addr = %q")))
        lines.append(f"%t{number} = pto.alloc_tile{address}{' valid_row = %n' if dynamic else ''} : {kind}")
        kinds.append(kind)
    counter = iter(range(1000))

    def statements(depth: int) -> None:
        for _ in range(draw(st.integers(0, 3))):
            choice = draw(st.integers(0, 7 if depth < 3 else 5))
            name, a, b = f"%x{next(counter)}", *(draw(st.integers(0, len(kinds) - 1)) for _ in range(2))
            mode = draw(st.sampled_from(("NONE", "RINT", "ROUND", "FLOOR", "CEIL", "TRUNC", "ODD", "CAST_RINT")))
            entry = draw(
                st.sampled_from(("", f"{{rmode = #pto<round_mode {mode}>}}", "{sat_mode = #pto<saturation_mode ON>}"))
            )
            if choice == 0:
                lines.append(f"pto.tcvt ins(%t{a} {entry} : {kinds[a]}) outs(%t{b} : {kinds[b]})")
            elif choice == 1:
                lines.append(f'"pto.tcvt"(%t{a}, %t{b}) {entry} : ({kinds[a]}, {kinds[b]}) -> ()')
            elif choice == 2:
                lines.append(f"tcvt %t{b}, %t{a} : {kinds[a]} #rmode={mode}")
            elif choice == 3:
                lines.append(
                    f"{name} = arith.constant {draw(st.floats(allow_nan=False, allow_infinity=False))!r} : f64"
                )
            elif choice == 4:
                lines.append(f"{name} = arith.constant {draw(st.integers(-(2**63), 2**64 - 1))} : i64")
            elif choice == 5:
                pipes = ("PIPE_V", "PIPE_MTE2", "PIPE_MTE3", "PIPE_S")
                ends = ", ".join(f"<{draw(st.sampled_from(pipes))}>" for _ in range(2))
                lines.append(f"pto.{draw(st.sampled_from(('set', 'wait')))}_flag[{ends}, <EVENT_ID{a}>]")
            elif choice == 6:
                lines.append(f"scf.for {name} = %n to %n step %n {{")
                statements(depth + 1)
                lines.append("}")
            else:
                lines.append("scf.if %c {")
                statements(depth + 1)
                lines.append("}")
                if draw(st.booleans()):
                    lines[-1] = "} else {"
                    statements(depth + 1)
                    lines.append("}")

    statements(0)
    return function("\n".join(lines), "%n: index, %q: i64, %c: i1", draw(st.sampled_from(("", "{pto.entry}"))))


@settings(max_examples=60, deadline=None)
@given(programs())
def test_generated_programs_survive_printing(text: str) -> None:
    check_round_trip(text)


# --------------------------------------------------------------------------------------------------------- damage

SOURCES = [path.read_text() for path in SPECIMENS] + [EVERYTHING]
FRAGMENTS = [
    "%", "!", "#", "@", "^", '"', "<", ">", "(", ")", "{", "}", "[", "]", "->", "=", ":", ",", "//", "\n", "\0",
    "\u00e9", "%c0", "%r:2 =", "#pto<", "!pto.tile_buf<", "-1", "0x", "99999999999999999999999", "x", "?",
    "scf.yield", "return", "f32", "index", "module", "attributes {", "ins(", "outs(", "iter_args(", "else", "true",
    "%x:0", "%x#9", "e", ".",
]  # fmt: skip


def read_or_refuse(text: str) -> None:
    """Nothing but castsim's own refusals may come out; what is read must print and read back."""
    try:
        program = parse(text)
    except CastsimError as error:
        assert error.span is not None
        assert error.render()
        return
    assert parse(print_program(program)) == program


def damaged(text: str, dice: random.Random) -> str:
    for _ in range(dice.randint(1, 4)):
        start = dice.randrange(len(text) + 1)
        end = min(len(text), start + dice.choice((0, 1, 1, 2, 5, 20, 200)))
        match dice.randrange(4):
            case 0:
                text = text[:start] + text[end:]
            case 1:
                text = text[:start] + dice.choice(FRAGMENTS) + text[end:]
            case 2:
                other = dice.randrange(len(text) + 1)
                text = text[:other] + text[start:end] + text[other:]
            case _:
                text = text[:start]
        if not text:
            return text
    return text


@pytest.mark.parametrize("seed", range(8))
def test_damaged_programs_are_refused_in_order(seed: int) -> None:
    dice = random.Random(seed)
    for _ in range(250):
        read_or_refuse(damaged(dice.choice(SOURCES), dice))


def test_words_in_any_order_are_refused_in_order() -> None:
    dice = random.Random(1)
    words = sorted({word for source in SOURCES for word in source.split()} | set(FRAGMENTS))
    for _ in range(300):
        text = " ".join(dice.choice(words) for _ in range(dice.randint(1, 30)))
        read_or_refuse(text)
        read_or_refuse(function(text, "%n: index"))


@pytest.mark.parametrize("source", SOURCES, ids=["narrow", "quantise", "widen", "everything"])
def test_truncated_programs_are_refused_in_order(source: str) -> None:
    for end in range(0, len(source), 37):
        read_or_refuse(source[:end])


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=80))
def test_any_text_is_read_or_refused(text: str) -> None:
    read_or_refuse(text)
