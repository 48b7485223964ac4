"""Whole `.pto` files, their functions, and statements in a form met before."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from core.isa.parsed_text import F32, I32, INDEX
from kit.execution_programs import kernel_file
from kit.paths import ROOT
from kit.pto_text import SPECIMENS, VECTORS, compact, function

from castsim import run
from castsim.__main__ import main
from castsim.isa.errors import CastsimError, ReadError
from castsim.isa.formats import Saturation
from castsim.isa.pto import program as pto
from castsim.isa.pto.pto_parser import parse
from castsim.isa.pto.pto_printer import print_program
from castsim.isa.pto.statement_reader import Forms


# --------------------------------------------------------------------------------------------- files and functions
def test_the_module_is_optional_and_may_have_a_name() -> None:
    bare = function("")
    for text in (
        f"module {{\n{bare}}}",
        f"module @m {{ {bare} }}",
        f"// c\nmodule attributes {{}} {{ {bare} }} // end",
    ):
        assert parse(text) == parse(bare)


def test_several_functions_keep_their_order_and_do_not_share_values() -> None:
    one = function("%c = arith.constant 1 : index")
    program = parse(one + one.replace("@f", "@g") + "func.func private @h(!pto.ptr<f32>, %n: index {pto.x}) -> i32")
    assert [f.name for f in program.functions] == ["f", "g", "h"]
    declared = program.functions[2]
    assert (declared.body, declared.result_types) == (None, (I32,))
    assert [(a.name, a.attributes) for a in declared.arguments] == [("", ()), ("n", (("pto.x", ""),))]


def test_attributes_of_module_and_function() -> None:
    program = parse(
        'module attributes {"pto.device-spec" = "Ascend910B3", pto.target_arch = "a5", b = [1, {c = 2 : i32}], '
        "t = f32} { func.func @f() attributes {pto.kernel_kind = #pto.kernel_kind<vector>, pto.aicore} { return } }"
    )
    assert program.target_arch == "a5"
    assert program.attributes == (
        ("b", "[1, {c = 2 : i32}]"), ("pto.device-spec", '"Ascend910B3"'), ("pto.target_arch", '"a5"'), ("t", "f32"),
    )  # fmt: skip
    (kernel,) = program.functions
    assert kernel.attributes == (("pto.aicore", ""), ("pto.kernel_kind", "#pto.kernel_kind<vector>"))
    assert not kernel.is_entry


def test_an_empty_file_is_an_empty_program() -> None:
    assert parse("// nothing\n").functions == ()


def test_a_function_may_return_values() -> None:
    program = parse("func.func @f(%a: i32, %b: f32) -> (i32, f32) { func.return %a, %b : i32, f32 }")
    assert program.functions[0].body == (pto.Return(("a", "b"), (I32, F32)),)


@pytest.mark.parametrize(
    ("text", "message", "legal"),
    [
        ("func.func @f() { return } func.func @f() { return }", "redefinition of function @f", None),
        ("func.func @f() attributes {pto.entry} -> i32 { return }", "expected '{'", None),
        ("func.func @f(%a: i32) -> i32 attributes {pto.entry} { return %a : i32 }", "must return nothing", None),
        ("func.func @f() { }", "does not end with return", "return"),
        ("func.func @f() { return return }", "nothing can follow return", "}"),
        ("func.func @f() -> i32 { return }", "declares 1 results but returns 0", None),
        ("func.func @f(%a: f32) -> i32 { return %a : f32 }", "types that differ", None),
        ("func.func @f(%a: f32) -> f32 { return %a : i32 }", "%a is defined as f32", None),
        ("func.func @f(%a: f32) -> f32 { return %a, %a : f32 }", "2 values, but 1 types", None),
        ("func.func @f()", "only a private function", None),
        ("func.func @f(i32) { return }", "needs names", None),
        ("func.func @f(%a: i32, %a: i32) { return }", "redefinition of %a", None),
        ("func.func @f(%a: i32 { return }", "expected ',' or ')'", ")"),
        ("func.func @f(%a i32) { return }", "expected ':'", None),
        ("func.func f() { return }", "expected a function name", None),
        ("func.fun @f() { return }", "expected a function, found 'func.fun'", "func.func"),
        ("modul { }", "expected a function, found 'modul'", "module"),
        ("module { func.func @f() { return }", "the end of the file", "}"),
        ("module { } module { }", "one module", None),
        ("module attributes pto.x { }", "expected '{' and attributes", "{"),
        ("func.func @f() { return", "expected '}', found the end of the file", "}"),
        ("func.func @f() { scf.yield }", "scf.yield is not allowed in this region", None),
        ("func.func @f() attributes { return }", "expected '{'", None),
        ("func.func @f() attributes {a = } { return }", "expected an attribute value", None),
        ("func.func @f() attributes {a = array<i32: 1>} { return }", "not supported", None),
        ("func.func @f() attributes {a, a} { return }", "given twice", None),
        ("func.func @f() attributes {\"\"} { return }", "empty", None),
        ("func.func @f(%a: memref<4xf32>) { return }", "'memref<...>' is not supported", None),
        ("func.func @f(%a: !pto.ptr<f32) { return }", "missing '>'", None),
        ("func.func @f(%a:2 : i32) { return }", "selects one of several results", None),
        ("}", "expected a function", None),
    ],
)  # fmt: skip
def test_malformed_files(text: str, message: str, legal: str | None) -> None:
    with pytest.raises(ReadError) as caught:
        parse(text)
    assert message in caught.value.message
    assert legal is None or legal in caught.value.legal


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


def check_round_trip(text: str) -> pto.Program:
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
    program = pto.Program((pto.Function("f", (pto.Argument("p", pto.PointerType("e3m2")),), (pto.Return(),)),))
    with pytest.raises(ReadError, match="e3m2"):
        print_program(program)


PROGRAMS = sorted((ROOT / "programs").rglob("*.pto"))
STATEMENT = re.compile(r"^\s*pto\.\w+ ins\(.*$", re.MULTILINE)
WORDS = re.compile(r"%[\w.]+|!pto\.tile_buf<[^>]*>|#pto<[^>]*>|\w+|[(){}:,]")


def outcome(text: str) -> object:
    """The program with all its places, or the refusal."""
    try:
        program = parse(text, "k.pto")
    except CastsimError as error:
        return type(error), str(error), str(error.span)
    return program, [repr(function) for function in program.functions]


def changed(text: str, draw: random.Random) -> str:
    """A program with a statement repeated, in which a word may be another one of the statement or of the program."""
    lines = text.splitlines()
    numbers = [number for number, line in enumerate(lines) if STATEMENT.match(line)]
    number = draw.choice(numbers)
    line = lines[number]
    if draw.random() < 0.8:
        word = draw.choice(list(WORDS.finditer(line)))
        other = draw.choice(WORDS.findall(lines[draw.choice(numbers)]))
        line = line[: word.start()] + draw.choice([other, "", f"{word[0]} {other}"]) + line[word.end() :]
    lines.insert(draw.choice([number, number + 1]), line)
    return "\n".join(lines)


@pytest.mark.parametrize("seed", range(8))
def test_the_same_with_and_without_forms(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(seed)
    texts = [path.read_text() for path in PROGRAMS]
    made = [changed(text, draw) for text in draw.sample([text for text in texts if STATEMENT.search(text)], 20)]
    found = [outcome(text) for text in made]
    monkeypatch.setattr(Forms, "read", lambda *_: None)
    assert [outcome(text) for text in made] == found


def test_forms_are_met(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second statement of a form is not read word by word; one with a value of another type is."""
    tile = "!pto.tile_buf<vec, 16x64x{}>"
    f32, f16 = tile.format("f32"), tile.format("f16")
    cast = f"pto.tcvt ins(%{{}} : {f32}) outs(%{{}} : {f16})"
    head = [f"%{name} = pto.alloc_tile : {f32}" for name in "ab"] + [
        f"%{name} = pto.alloc_tile : {f16}" for name in "cd"
    ]
    casts = [cast.format(*each) for each in ("ac", "bd", "bc")]
    text = "\n".join(["func.func @k() {", *head, *casts, "return", "}"])
    hits = []
    read = Forms.read
    monkeypatch.setattr(Forms, "read", lambda *given: hits.append(read(*given)) or hits[-1])
    (function,) = parse(text).functions
    assert [(node.src, node.dst, node.span.line) for node in function.body[4:7]] == [
        ("a", "c", 6), ("b", "d", 7), ("b", "c", 8),
    ]  # fmt: skip
    assert sum(hit is not None for hit in hits) == 2
    printed = f"pto.tprint ins(%a : {f32})"
    assert len(parse(text.replace(casts[2], f"{printed}\n{printed}")).functions[0].body) == 9
    with pytest.raises(CastsimError, match="%d is defined as"):
        parse(text.replace(casts[2], cast.format("d", "c")))


# ------------------------ A function that cannot be read refuses itself only, as long as the text tells where it ends
GOOD = "func.func @good() attributes {pto.entry} {\npto.barrier <PIPE_ALL>\nreturn\n}\n"
HELPER = GOOD.replace("@good", "@helper").replace(" attributes {pto.entry}", "")
FAULTS = {
    "unknown operation": ("pto.nonsense ins(%a) outs(%b)", 3),
    "undefined value": ("%y = arith.addi %x, %x : index", 3),
    "redefinition": ("%y = arith.constant 1 : index\n%y = arith.constant 2 : index", 4),
    "syntax": ("%y = = arith.constant 1 : index", 3),
    "unknown character": ("%y = arith.constant 1 ; index", 3),
    "open string": ('%y = arith.constant 1 : index {a = "b}', 3),
    "tile": ("%t = pto.alloc_tile : !pto.tile_buf<vec, 4x64xf32, valid=8x64>", 3),
    "call": ("func.call good() : () -> ()", 3),
    "in nested regions": (
        "%c = arith.constant 1 : index\n"
        "scf.for %i = %c to %c step %c {\nscf.for %j = %c to %c step %c {\nnonsense\n}\n}",
        6,
    ),
}


def bad(fault: str, *, entry: bool = False) -> str:
    marked = " attributes {pto.entry}" if entry else ""
    return f"func.func @bad(){marked} {{\n{fault}\nreturn\n}}\n"


def whole(*functions: str) -> str:
    return "module {\n" + "".join(functions) + "}\n"


def refusal(text: str, entry: str | None, folder: Path) -> CastsimError:
    with pytest.raises(CastsimError) as caught:
        run(kernel_file(folder, text), entry=entry, timing_only=True)
    return caught.value


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("first", [True, False])
def test_another_function_is_none_of_its_business(fault: str, first: bool, tmp_path: Path):
    text, line = FAULTS[fault]
    functions = (bad(text), GOOD) if first else (GOOD, bad(text))
    path = kernel_file(tmp_path, whole(*functions))
    assert run(path, entry="good", timing_only=True).loaded.entry == "good"
    assert run(path, entry="good").warnings == ()
    with pytest.raises(CastsimError) as caught:
        run(path, entry="@bad")
    with pytest.raises(CastsimError) as strict:
        parse(whole(*functions), str(path))
    assert str(caught.value) == str(strict.value)
    assert type(caught.value) is type(strict.value)
    assert caught.value.span is not None
    assert caught.value.span.line == line + (0 if first else 4)


def test_the_command_runs_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = kernel_file(tmp_path, whole(bad("nonsense"), GOOD))
    assert main(["run", str(path), "--entry", "good", "--timing-only"]) == 0
    assert main(["run", str(path), "--entry", "bad", "--timing-only"]) == 2
    assert "unknown operation 'nonsense'" in capsys.readouterr().err


def test_without_a_name_the_one_good_entry_runs_with_a_warning(tmp_path: Path):
    path = kernel_file(tmp_path, whole(bad("nonsense"), GOOD))
    found = run(path, timing_only=True)
    (warning,) = found.warnings
    assert (
        warning == f"{path}:3:1: function @bad is skipped, because castsim cannot read it: unknown operation 'nonsense'"
    )


@pytest.mark.parametrize(
    "functions",
    [(bad("nonsense", entry=True), HELPER), (bad("nonsense"),), (bad("x"), HELPER, HELPER.replace("helper", "other"))],
)
def test_without_a_name_what_may_be_meant_is_refused(functions: tuple[str, ...], tmp_path: Path):
    assert "unknown operation" in str(refusal(whole(*functions), None, tmp_path))


@pytest.mark.parametrize(
    "text",
    [
        whole(bad("scf.for %i = %c to %c step %c {"), GOOD),  # a brace too few
        whole(bad("%y = arith.constant (1 : index"), GOOD),
        whole(GOOD) + "rubbish",
        whole(GOOD, "rubbish\n"),
        whole(GOOD) + "\x01",
    ],
)
def test_text_that_does_not_tell_where_a_function_ends_is_refused_as_a_whole(text: str, tmp_path: Path):
    found = refusal(text, "good", tmp_path)
    with pytest.raises(CastsimError) as strict:
        parse(text, str(tmp_path / "k.pto"))
    assert str(found) == str(strict.value)


def test_very_many_functions_are_not_all_listed(tmp_path: Path):
    many = "".join(f"func.func @f{number}() {{ return }}\n" for number in range(3000))
    found = refusal(whole(many), None, tmp_path)
    assert len(found.legal) == 13
    assert found.legal[-1] == "and 2988 more"


def specimen(name: str) -> str:
    return (VECTORS / "pto_specimens" / f"{name}.pto").read_text()


def test_narrow_block() -> None:
    program = parse(specimen("narrow_block"), "narrow_block.pto")
    (kernel,) = program.functions
    assert (program.target_arch, program.warnings) == ("a3", ())
    assert (kernel.name, kernel.is_entry, kernel.result_types) == ("narrow_block", True, ())
    assert [(a.name, a.type) for a in kernel.arguments] == [
        ("in", pto.PointerType("f32")),
        ("out", pto.PointerType("f16")),
    ]
    assert kernel.body is not None
    wide, slim = (pto.TileType("vec", element, 32, 128, 32, 128) for element in ("f32", "f16"))
    assert kernel.body[-4:] == (
        pto.TileOperation("tload", ("pin",), (pto.PartitionType((32, 128), "f32"),), ("wide",), (wide,)),
        pto.Tcvt(dst="slim", src="wide", dst_type=slim, src_type=wide, rounding=pto.RoundMode.ROUND),
        pto.TileOperation("tstore", ("slim",), (slim,), ("pout",), (pto.PartitionType((32, 128), "f16"),)),
        pto.Return(),
    )
    assert kernel.body[8:10] == (pto.AllocTile("wide", wide), pto.AllocTile("slim", slim))
    assert kernel.body[-3].span.line == 15


def test_widen_rows() -> None:
    (kernel,) = parse(specimen("widen_rows")).functions
    assert kernel.body is not None
    (loop,) = (node for node in kernel.body if isinstance(node, pto.For))
    assert (loop.variable, loop.lower, loop.upper, loop.step) == ("r", "c0", "rows", "step")
    flags = [node for node in loop.body if isinstance(node, pto.SetFlag | pto.WaitFlag)]
    assert len(flags) == 8
    assert flags[0] == pto.WaitFlag(pto.Pipe.V, pto.Pipe.MTE2, 0)
    assert kernel.body[-2] == pto.Barrier(pto.Pipe.ALL)
    views = [node for node in kernel.body if isinstance(node, pto.MakeView)]
    assert [view.layout for view in views] == ["nd", "nd"]
    assert views[0].type == pto.ViewType((None, None), "bf16")
    assert [node.address for node in kernel.body if isinstance(node, pto.AllocTile)] == ["a_src", "a_dst"]
    assert loop.body[0] == pto.PartitionView(
        "pin",
        "vin",
        ("r", "c0"),
        ("step", "cols"),
        pto.ViewType((None, None), "bf16"),
        pto.PartitionType((64, 256), "bf16"),
    )


def test_quantise_row() -> None:
    (kernel,) = parse(specimen("quantise_row")).functions
    assert kernel.body is not None
    assert [a.type for a in kernel.arguments[2:]] == [F32, I32]
    assert pto.Constant("lo", -127.0, F32) in kernel.body
    assert pto.Convert("r", "index_cast", "row", I32, INDEX) in kernel.body
    tile = pto.TileType("vec", "f32", 1, 512, 1, 512)
    assert pto.TileOperation("tmuls", ("x", "scale"), (tile, F32), ("y",), (tile,)) in kernel.body
    casts = [node for node in kernel.body if isinstance(node, pto.Tcvt)]
    assert [(c.rounding, c.saturation) for c in casts] == [
        (pto.RoundMode.RINT, None),
        (pto.RoundMode.RINT, Saturation.ON),
    ]
