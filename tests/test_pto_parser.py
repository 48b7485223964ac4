"""Whole `.pto` files: the specimens, modules, functions."""

import pytest
from parsed_text import F32, I32, INDEX
from pto_text import SPECIMENS, VECTORS, function

from castsim.isa.errors import ReadError
from castsim.isa.modes import Saturation
from castsim.isa.pto.program import (
    AllocTile,
    Barrier,
    Constant,
    Convert,
    For,
    MakeView,
    PartitionType,
    PartitionView,
    Pipe,
    PointerType,
    Return,
    RoundMode,
    SetFlag,
    Tcvt,
    TileOperation,
    TileType,
    ViewType,
    WaitFlag,
)
from castsim.isa.pto.pto_parser import parse


# ------------------------------------------------------------------------------------------------------ specimens
def specimen(name: str) -> str:
    return (VECTORS / "pto_specimens" / f"{name}.pto").read_text()


def test_there_are_three_specimens() -> None:
    assert [path.stem for path in SPECIMENS] == ["narrow_block", "quantise_row", "widen_rows"]


def test_narrow_block() -> None:
    program = parse(specimen("narrow_block"), "narrow_block.pto")
    (kernel,) = program.functions
    assert (program.target_arch, program.warnings) == ("a3", ())
    assert (kernel.name, kernel.is_entry, kernel.result_types) == ("narrow_block", True, ())
    assert [(a.name, a.type) for a in kernel.arguments] == [("in", PointerType("f32")), ("out", PointerType("f16"))]
    assert kernel.body is not None
    wide, slim = (TileType("vec", element, 32, 128, 32, 128) for element in ("f32", "f16"))
    assert kernel.body[-4:] == (
        TileOperation("tload", ("pin",), (PartitionType((32, 128), "f32"),), ("wide",), (wide,)),
        Tcvt(dst="slim", src="wide", dst_type=slim, src_type=wide, rounding=RoundMode.ROUND),
        TileOperation("tstore", ("slim",), (slim,), ("pout",), (PartitionType((32, 128), "f16"),)),
        Return(),
    )
    assert kernel.body[8:10] == (AllocTile("wide", wide), AllocTile("slim", slim))
    assert kernel.body[-3].span.line == 15


def test_widen_rows() -> None:
    (kernel,) = parse(specimen("widen_rows")).functions
    assert kernel.body is not None
    (loop,) = (node for node in kernel.body if isinstance(node, For))
    assert (loop.variable, loop.lower, loop.upper, loop.step) == ("r", "c0", "rows", "step")
    flags = [node for node in loop.body if isinstance(node, SetFlag | WaitFlag)]
    assert len(flags) == 8
    assert flags[0] == WaitFlag(Pipe.V, Pipe.MTE2, 0)
    assert kernel.body[-2] == Barrier(Pipe.ALL)
    views = [node for node in kernel.body if isinstance(node, MakeView)]
    assert [view.layout for view in views] == ["nd", "nd"]
    assert views[0].type == ViewType((None, None), "bf16")
    assert [node.address for node in kernel.body if isinstance(node, AllocTile)] == ["a_src", "a_dst"]
    assert loop.body[0] == PartitionView(
        "pin", "vin", ("r", "c0"), ("step", "cols"), ViewType((None, None), "bf16"), PartitionType((64, 256), "bf16")
    )


def test_quantise_row() -> None:
    (kernel,) = parse(specimen("quantise_row")).functions
    assert kernel.body is not None
    assert [a.type for a in kernel.arguments[2:]] == [F32, I32]
    assert Constant("lo", -127.0, F32) in kernel.body
    assert Convert("r", "index_cast", "row", I32, INDEX) in kernel.body
    tile = TileType("vec", "f32", 1, 512, 1, 512)
    assert TileOperation("tmuls", ("x", "scale"), (tile, F32), ("y",), (tile,)) in kernel.body
    casts = [node for node in kernel.body if isinstance(node, Tcvt)]
    assert [(c.rounding, c.saturation) for c in casts] == [(RoundMode.RINT, None), (RoundMode.RINT, Saturation.ON)]


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
    assert program.functions[0].body == (Return(("a", "b"), (I32, F32)),)


@pytest.mark.parametrize(
    ("text", "message", "legal"),
    [
        ("func.func @f() { return } func.func @f() { return }", "redefinition of function @f", None),
        ("func.func @f() attributes {pto.entry} -> i32 { return }", "expected '{'", None),
        ("func.func @f(%a: i32) -> i32 attributes {pto.entry} { return %a : i32 }", "must return nothing", None),
        ("func.func @f() { }", "does not end with return", "return"),
        ("func.func @f() { return return }", "nothing can follow return", "}"),
        ("func.func @f() -> i32 { return }", "declares 1 results and returns 0", None),
        ("func.func @f(%a: f32) -> i32 { return %a : f32 }", "other types", None),
        ("func.func @f(%a: f32) -> f32 { return %a : i32 }", "%a is defined as f32", None),
        ("func.func @f(%a: f32) -> f32 { return %a, %a : f32 }", "2 values with 1 types", None),
        ("func.func @f()", "only a private function", None),
        ("func.func @f(i32) { return }", "need names", None),
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
        ("func.func @f(%a: !pto.ptr<f32) { return }", "not closed", None),
        ("func.func @f(%a:2 : i32) { return }", "names several results", None),
        ("}", "expected a function", None),
    ],
)  # fmt: skip
def test_malformed_files(text: str, message: str, legal: str | None) -> None:
    with pytest.raises(ReadError) as caught:
        parse(text)
    assert message in caught.value.message
    assert legal is None or legal in caught.value.legal
