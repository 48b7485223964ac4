from __future__ import annotations

import pytest
from pto_text import SPECIMENS, VECTORS, compact, function

from isa.errors import ReadError
from isa.modes import Saturation
from isa.pto import (
    AllocTile,
    Arith,
    Barrier,
    Compare,
    Constant,
    Convert,
    For,
    If,
    MakeView,
    Operation,
    PartitionType,
    PartitionView,
    Pipe,
    PointerType,
    Return,
    RoundMode,
    ScalarType,
    Section,
    SetFlag,
    SetValidShape,
    Tcvt,
    TileOperation,
    TileType,
    ViewType,
    WaitFlag,
    Yield,
    parse,
)

INDEX, I1, I32, F32 = (ScalarType(name) for name in ("index", "i1", "i32", "f32"))
TILE = TileType("vec", "f32", 16, 64, 16, 64)
T = compact("f32", 16, 64)


def body_of(body: str, arguments: str = "") -> tuple[Operation, ...]:
    found = parse(function(body, arguments)).functions[0].body
    assert found is not None
    return found[:-1]


def last_of(body: str, arguments: str = "") -> Operation:
    return body_of(body, arguments)[-1]


def refusal(body: str, arguments: str = "") -> ReadError:
    with pytest.raises(ReadError) as caught:
        parse(function(body, arguments))
    assert caught.value.span is not None
    return caught.value


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
        ("func.func @f() { scf.yield }", "scf.yield cannot stand in this region", None),
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


# --------------------------------------------------------------------------------------------------- scalar values


@pytest.mark.parametrize(
    ("text", "value", "kind"),
    [
        ("16 : index", 16, "index"),
        ("-5 : i32", -5, "i32"),
        ("-128 : i8", -128, "i8"),
        ("255 : i8", -1, "i8"),
        ("0xFF : i8", -1, "i8"),
        ("4294967295 : i32", -1, "i32"),
        ("-9223372036854775808 : i64", -(1 << 63), "i64"),
        ("true", True, "i1"),
        ("false : i1", False, "i1"),
        ("1 : i1", True, "i1"),
        ("-127.0 : f32", -127.0, "f32"),
        ("1.000000e+00 : f32", 1.0, "f32"),
        ("0.5 : f16", 0.5, "f16"),
        ("1e-3 : bf16", 0.001, "bf16"),
        ("0x7F800000 : f32", 0x7F800000, "f32"),
        ("0x7FC1 : bf16", 0x7FC1, "bf16"),
        ("0xFFF8000000000001 : f64", 0xFFF8000000000001, "f64"),
    ],
)
def test_constants(text: str, value: float, kind: str) -> None:
    node = last_of(f"%c = arith.constant {text}")
    assert node == Constant("c", value, ScalarType(kind))
    assert isinstance(node, Constant)
    assert type(node.value) is type(value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("arith.constant 1 : i32", "has 1 result, 0 named"),
        ("%a, %b = arith.constant 1 : i32", "has 1 result, 2 named"),
        ("%c = arith.constant 256 : i8", "does not fit the 8 bits"),
        ("%c = arith.constant -129 : i8", "does not fit the 8 bits"),
        ("%c = arith.constant 1.0 : i32", "whole number"),
        ("%c = arith.constant -0x1 : i32", "whole number"),
        ("%c = arith.constant 1 : f32", "needs a decimal point"),
        ("%c = arith.constant -0x1 : f32", "does not fit the 32 bits"),
        ("%c = arith.constant 0x10000 : f16", "does not fit the 16 bits"),
        ("%c = arith.constant 1.0e999 : f64", "beyond every float type"),
        ("%c = arith.constant " + "9" * 5000 + " : index", "too long"),
        ("%c = arith.constant 1", "expected ':'"),
        ("%c = arith.constant true : i8", "of type i1"),
        ("%c = arith.constant tru : i1", "expected a number"),
        ("%c = arith.constant 1 : ui8", "signless"),
        ("%c = arith.constant 1 : !pto.ptr<f32>", "expected a scalar type"),
        ("%c = arith.constant dense<0.0> : vector<4xf32>", "dense constants"),
        ("%c:2 = arith.constant 1 : i32", "has 1 result, 2 named"),
        ("%c:0 = arith.constant 1 : i32", "a result count is 1 to 999"),
        ("%c:1x = arith.constant 1 : i32", "expected '='"),
        ("%c#0 = arith.constant 1 : i32", "a result is defined as"),
    ],
)
def test_bad_constants(text: str, message: str) -> None:
    assert message in refusal(text).message


BINARY = [
    "addi", "subi", "muli", "minsi", "maxsi", "minui", "maxui", "andi", "ori", "xori", "divsi", "divui", "remsi",
    "remui", "shli", "shrsi", "shrui",
]  # fmt: skip
PREDICATES = ["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"]


@pytest.mark.parametrize("operation", BINARY)
def test_integer_arithmetic(operation: str) -> None:
    node = last_of(f"%r = arith.{operation} %a, %b : i32", "%a: i32, %b: i32")
    assert node == Arith("r", operation, ("a", "b"), I32)


@pytest.mark.parametrize("predicate", PREDICATES)
def test_comparisons(predicate: str) -> None:
    body = body_of(f"%r = arith.cmpi {predicate}, %a, %b : index\n%s = arith.xori %r, %r : i1", "%a: index, %b: index")
    assert body[0] == Compare("r", predicate, ("a", "b"), INDEX)


def test_select_takes_any_scalar() -> None:
    node = last_of("%r = arith.select %c, %a, %b : f32", "%c: i1, %a: f32, %b: f32")
    assert node == Arith("r", "select", ("c", "a", "b"), F32)


@pytest.mark.parametrize(
    ("operation", "source", "target"),
    [
        ("index_cast", "i32", "index"),
        ("index_cast", "index", "i64"),
        ("index_castui", "i32", "index"),
        ("extui", "i1", "i32"),
        ("extsi", "i8", "i64"),
        ("trunci", "i64", "i16"),
        ("bitcast", "f32", "i32"),
        ("bitcast", "i16", "bf16"),
    ],
)
def test_conversions(operation: str, source: str, target: str) -> None:
    node = last_of(f"%r = arith.{operation} %a : {source} to {target}", f"%a: {source}")
    assert node == Convert("r", operation, "a", ScalarType(source), ScalarType(target))


@pytest.mark.parametrize(
    ("text", "message", "legal"),
    [
        ("%r = arith.addi %i, %x : i32", "%x is defined as f32 and used as i32", "f32"),
        ("%r = arith.addi %x, %x : f32", "signless integers, not f32", "i32"),
        ("%r = arith.addi %i : i32", "expected ','", None),
        ("%r = arith.addf %x, %x : f32", "unknown operation 'arith.addf'", "arith.addi"),
        ("%r = arith.mulli %i, %i : i32", "unknown operation 'arith.mulli'", "arith.muli"),
        ("%r = arith.cmpi lt, %i, %i : i32", "unknown predicate 'lt'", "slt"),
        ("%r = arith.select %i, %i, %i : i32", "%i is defined as i32 and used as i1", None),
        ("%r = arith.index_cast %i : i32 to i64", "between index and another integer", None),
        ("%r = arith.index_cast %x : f32 to index", "signless integers", None),
        ("%r = arith.trunci %i : i32 to i64", "narrower", None),
        ("%r = arith.trunci %i : i32 to i32", "narrower", None),
        ("%r = arith.extsi %i : i32 to i32", "wider", None),
        ("%r = arith.addi %x, %i : i32", "%x is defined as f32", None),
        ("%r = arith.cmpi eq, %x, %i : i32", "%x is defined as f32", None),
        ("%r = arith.cmpi eq, %i, %x : i32", "%x is defined as f32", None),
        ("%r = arith.select %b, %i, %x : i32", "%x is defined as f32", None),
        ("%r = arith.select %b, %x, %i : i32", "%x is defined as f32", None),
        ("arith.constant true", "has 1 result, 0 named", None),
        ("%r = arith.extui %i : i32 to i16", "wider", None),
        ("%r = arith.extui %n : index to i64", "takes no index", None),
        ("%r = arith.bitcast %i : i32 to f16", "keeps the width", None),
        ("%r = arith.bitcast %n : index to i64", "keeps the width", None),
        ("%r = arith.trunci %i : i64 to i32", "%i is defined as i32", None),
        ("%r = arith.trunci %i : i32, i16", "expected 'to'", None),
        ("%r = math.sqrt %x : f32", "unknown operation 'math.sqrt'", None),
    ],
)
def test_bad_scalar_operations(text: str, message: str, legal: str | None) -> None:
    error = refusal(text, "%i: i32, %x: f32, %n: index, %b: i1")
    assert message in error.message
    assert legal is None or legal in error.legal


# -------------------------------------------------------------------------------------------------------- control


def test_a_loop_with_carried_values() -> None:
    node = last_of(
        "%r:2 = scf.for %i = %a to %b step %s iter_args(%x = %a, %y = %k) -> (i32, f32) : i32 {\n"
        "%z = arith.addi %x, %i : i32\nscf.yield %z, %y : i32, f32 }\n%u = arith.addi %r#0, %r : i32",
        "%a: i32, %b: i32, %k: f32, %s: i32",
    )
    assert node == Arith("u", "addi", ("r#0", "r#0"), I32)
    loop = body_of(
        "%p, %q = scf.for %i = %a to %b step %s iter_args(%x = %a, %y = %k) -> (i32, f32) : i32 {\n"
        "scf.yield %x, %y : i32, f32 }",
        "%a: i32, %b: i32, %k: f32, %s: i32",
    )[0]
    assert loop == For(
        "i", "a", "b", "s", (Yield(("x", "y"), (I32, F32)),), ("x", "y"), ("a", "k"), ("p", "q"), (I32, F32), I32
    )


def test_a_single_result_may_be_numbered_in_its_uses() -> None:
    body = (
        "%r:1 = scf.if %c -> (i32) { scf.yield %a : i32 } else { scf.yield %a : i32 }\n%s = arith.addi %r#0, %r : i32"
    )
    assert last_of(body, "%c: i1, %a: i32") == Arith("s", "addi", ("r", "r"), I32)


def test_conditions() -> None:
    node = last_of("scf.if %c {\n pto.barrier <PIPE_V>\n scf.yield\n} else {\n}", "%c: i1")
    assert node == If("c", (Barrier(Pipe.V),))


@pytest.mark.parametrize("kind", ["section.vector", "section.cube", "vecscope"])
def test_sections(kind: str) -> None:
    assert last_of(f"pto.{kind} {{ pto.barrier <PIPE_V> }}") == Section(kind, (Barrier(Pipe.V),))


def test_names_end_with_their_region_and_may_return_after_it() -> None:
    body = "scf.if %c { %x = arith.constant 1 : i32 } else { %x = arith.constant 2 : i32 }\n%x = arith.constant 3 : i32"
    assert last_of(body, "%c: i1") == Constant("x", 3, I32)


@pytest.mark.parametrize(
    ("text", "message", "legal"),
    [
        ("scf.for %i = %n to %n step %n { scf.yield %n : index }", "returns 0 values, its region yields 1", None),
        ("%r = scf.for %i = %n to %n step %n iter_args(%x = %n) -> (index) { }", "returns 1 values", None),
        ("%r = scf.for %i = %n to %n step %n iter_args(%x = %n) -> (index) { scf.yield %k : i32 }", "differ", None),
        (
            "%r = scf.for %i = %n to %n step %n iter_args(%x = %n) -> (i32) { scf.yield %k : i32 }",
            "%n is defined",
            None,
        ),
        ("%r = scf.for %i = %n to %n step %n iter_args(%x = %n) -> (i32, i32) { }", "1 values carried with 2", None),
        ("%r = scf.for %i = %n to %n step %n { }", "has 0 results, 1 named", None),
        ("scf.for %n = %n to %n step %n { }", "redefinition of %n", None),
        ("scf.for %i = %k to %k step %k { }", "%k is defined as i32 and used as index", None),
        ("scf.for %i = %k to %k step %k : f32 { }", "counts in integers", "i32"),
        ("scf.for %i = %n upto %n step %n { }", "expected 'to', found 'upto'", "to"),
        ("scf.for %i = %n to %n stp %n { }", "expected 'step', found 'stp'", "step"),
        ("scf.for %i = %n to %n step %n iterargs(%x = %n) { }", "expected 'iter_args'", None),
        ("%z = arith.constant 0 : index\nscf.for %i = %n to %n step %z { }", "must be positive, it is 0", None),
        ("scf.for %i = %n to %n step %n { }\n%u = arith.addi %i, %i : index", "%i is not defined", None),
        ("scf.for %i = %n to %n step %n { return }", "return cannot stand", None),
        ("pto.vecscope { scf.yield }", "scf.yield cannot stand", None),
        ("scf.if %k { }", "%k is defined as i32 and used as i1", None),
        ("%r = scf.if %c -> (i32) { scf.yield %k : i32 }", "expected 'else'", None),
        ("%r = scf.if %c -> (i32) { scf.yield %k : i32 } else { }", "yields 0", None),
        ("scf.if %c { scf.yield\npto.barrier <PIPE_V> }", "nothing can follow scf.yield", None),
        ("scf.while %c { }", "scf.while is not supported", None),
        ("scf.condition(%c)", "scf.condition is not supported", None),
        ("scf.fro %i = %n to %n step %n { }", "unknown operation 'scf.fro'", "scf.for"),
        ("%x = scf.for %i = %n to %n step %n { }\n", "has 0 results", None),
        ("^bb0:", "block ^bb0", None),
        ("%x:2 = scf.if %c -> (i32) { scf.yield %k : i32 } else { scf.yield %k : i32 }", "1 result, 2 named", None),
    ],
)
def test_bad_control(text: str, message: str, legal: str | None) -> None:
    error = refusal(text, "%n: index, %k: i32, %c: i1")
    assert message in error.message
    assert legal is None or legal in error.legal


@pytest.mark.parametrize("region", ["pto.vecscope", "pto.section.vector", "scf.if %c", "scf.for %i = %n to %n step %n"])
def test_no_value_leaves_its_region(region: str) -> None:
    body = f"{region} {{ %x = arith.constant 1 : index }}\n%y = arith.addi %x, %x : index"
    assert "%x is not defined" in refusal(body, "%c: i1, %n: index").message


def test_names_of_result_groups_end_with_their_region_too() -> None:
    group = "%g:2 = scf.if %c -> (i32, i32) { scf.yield %k, %k : i32, i32 } else { scf.yield %k, %k : i32, i32 }"
    body = f"scf.if %c {{ {group} }}\n%g = arith.addi %k, %k : i32\n%h = arith.addi %g, %g#0 : i32"
    assert last_of(body, "%c: i1, %k: i32") == Arith("h", "addi", ("g", "g"), I32)


def test_a_missing_yield_is_shown_at_the_brace_that_ends_the_region() -> None:
    span = refusal("%r = scf.if %c -> (i32) { pto.barrier <PIPE_V> } else { }", "%c: i1").span
    assert span is not None
    assert span.text[span.column - 1 :] == "} else { }"


def test_a_written_truth_value_is_a_condition() -> None:
    assert last_of("%t = arith.constant true\nscf.if %t { }") == If("t", ())


def test_regions_one_after_the_other_do_not_count_as_nested() -> None:
    assert len(body_of("pto.vecscope { }\n" * 200)) == 200


def test_absurd_nesting_is_refused_and_does_not_break_the_reader() -> None:
    assert "nested more than" in refusal("pto.vecscope {" * 3000).message
    with pytest.raises(ReadError, match="nested more than"):
        parse("module attributes {a = " + "[" * 3000)
    assert isinstance(last_of("pto.vecscope {" * 60 + "}" * 60), Section)


# ------------------------------------------------------------------------------------------------ tiles and views


def test_an_operation_this_simulator_does_not_know_keeps_operands_types_and_attributes() -> None:
    node = last_of(f"pto.tfancy ins(%t, %x {{cmpMode = #pto<cmp lt>}} : {T}, f32) outs(%t : {T}) {{b = 1 : i32, a}}",
                   f"%t: {T}, %x: f32")  # fmt: skip
    assert node == TileOperation(
        "tfancy", ("t", "x"), (TILE, F32), ("t",), (TILE,), (("a", ""), ("b", "1 : i32"), ("cmpMode", "#pto<cmp lt>"))
    )
    assert last_of(f"pto.texpand outs(%t : {T})", f"%t: {T}") == TileOperation("texpand", (), (), ("t",), (TILE,))


def test_both_spellings_of_an_attribute_are_one() -> None:
    forms = [f"pto.tcmp ins(%t, %t {{cmpMode = {form}}} : {T}, {T}) outs(%t : {T})"
             for form in ("#pto<cmp lt>", "#pto.cmp<lt>", "#pto<cmp  lt >")]  # fmt: skip
    assert len({last_of(form, f"%t: {T}") for form in forms}) == 1


@pytest.mark.parametrize(("mnemonic", "element", "cols"), [("treshape", "f16", 128), ("bitcast", "f16", 64)])
def test_aliases_define_their_result(mnemonic: str, element: str, cols: int) -> None:
    other = compact(element, 16, cols)
    body = body_of(
        f"%r = pto.{mnemonic} %t : {T} -> {other}\npto.tabs ins(%r : {other}) outs(%r : {other})", f"%t: {T}"
    )
    kind = TileType("vec", element, 16, cols, 16, cols)
    assert body[0] == TileOperation(mnemonic, ("t",), (TILE,), ("r",), (kind,))
    error = refusal(f"pto.{mnemonic} ins(%t : {T}) outs(%t : {T})", f"%t: {T}")
    assert "no ins/outs form" in error.message


def test_alloc_tile_with_all_operands() -> None:
    node = last_of(
        "%t = pto.alloc_tile addr = %a valid_row = %r valid_col = %c : !pto.tile_buf<vec, 16x64xf32, valid=?x?>",
        "%a: i64, %r: index, %c: index",
    )
    assert node == AllocTile("t", TileType("vec", "f32", 16, 64, None, None), "a", "r", "c")


def test_set_validshape() -> None:
    dynamic = compact("f32", 16, 64, "?", "?")
    node = last_of(f"pto.set_validshape %t, %n, %n : {dynamic}", f"%t: {dynamic}, %n: index")
    assert node == SetValidShape("t", "n", "n", TileType("vec", "f32", 16, 64, None, None))


def test_attributes_of_other_dialects_only_bring_a_warning() -> None:
    program = parse(function(f"%t = pto.alloc_tile {{my.hint = 1}} : {T}"))
    assert "my.hint of pto.alloc_tile is not known" in program.warnings[0]


# ------------------------------------------------------------------------------------------------- synchronisation


@pytest.mark.parametrize(
    "text",
    ["[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID3>]", '["PIPE_MTE2", "PIPE_V", "EVENT_ID3"]',
     "[#pto.pipe<PIPE_MTE2>, #pto.pipe<PIPE_V>, #pto.event<EVENT_ID3>]",
     '[<PIPE_MTE2>,"PIPE_V",#pto.event<EVENT_ID3>]'],
)  # fmt: skip
def test_flags_in_every_spelling(text: str) -> None:
    assert last_of(f"pto.set_flag{text}") == SetFlag(Pipe.MTE2, Pipe.V, 3)
    assert last_of(f"pto.wait_flag {text}") == WaitFlag(Pipe.MTE2, Pipe.V, 3)


@pytest.mark.parametrize("pipe", Pipe)
@pytest.mark.parametrize("form", ["<{}>", "#pto.pipe<{}>", '"{}"'])
def test_every_pipe(pipe: Pipe, form: str) -> None:
    assert last_of(f"pto.barrier {form.format(pipe.value)}") == Barrier(pipe)


# The table of endpoints of the front end.
ENDPOINTS = {
    "TLOAD": Pipe.MTE2, "TSTORE_VEC": Pipe.MTE3, "TSTORE_ACC": Pipe.FIX, "TMOV_M2L": Pipe.MTE1, "TMOV_M2B": Pipe.MTE1,
    "TVEC": Pipe.V, "TVECWAIT_EVENT": Pipe.V, "TMATMUL": Pipe.M, "TMOV_M2V": Pipe.V, "TMOV_M2S": Pipe.FIX,
    "TMOV_V2M": Pipe.FIX,
}  # fmt: skip


@pytest.mark.parametrize(("endpoint", "pipe"), ENDPOINTS.items())
@pytest.mark.parametrize("name", ["pipe_event_type", "sync_op_type"])
def test_events_are_flags_between_the_pipes_of_their_endpoints(endpoint: str, pipe: Pipe, name: str) -> None:
    ends = f"[#pto.{name}<{endpoint}>, #pto.pipe_event_type<TVEC>, #pto.event<EVENT_ID7>]"
    assert last_of(f"pto.record_event {ends}") == SetFlag(pipe, Pipe.V, 7)
    assert last_of(f"pto.wait_event{ends}") == WaitFlag(pipe, Pipe.V, 7)
    assert last_of(f"pto.barrier_sync [#pto.{name}<{endpoint}>]") == Barrier(pipe)


@pytest.mark.parametrize(
    ("text", "message", "legal"),
    [
        ("pto.set_flag[<PIPE_V>, <PIPE_V>, <EVENT_ID8>]", "unknown event 'EVENT_ID8'", "EVENT_ID7"),
        ("pto.set_flag[<PIPE_MTE6>, <PIPE_V>, <EVENT_ID0>]", "unknown pipe 'PIPE_MTE6'", "PIPE_MTE1"),
        ("pto.set_flag[<PIPE_V>, <PIPE_V>]", "expected ','", None),
        ("pto.set_flag(<PIPE_V>, <PIPE_V>, <EVENT_ID0>)", "expected '['", None),
        ("pto.set_flag[PIPE_V, <PIPE_V>, <EVENT_ID0>]", "expected a value of pipe", None),
        ("pto.set_flag[#pto.event<EVENT_ID0>, <PIPE_V>, <EVENT_ID0>]", "expected a value of pipe", None),
        ("pto.set_flg[<PIPE_V>, <PIPE_V>, <EVENT_ID0>]", "unknown operation", "pto.set_flag"),
        ("%x = pto.barrier <PIPE_V>", "has no result", None),
        ("pto.barrier <V>", "unknown pipe 'V'", None),
        ("pto.barrier #pto.pipe<CAST_PIPE_V>", "unknown pipe 'CAST_PIPE_V'", None),
        ("pto.barrier PIPE_V", "expected a value of pipe", None),
        ("pto.record_event[#pto.pipe_event_type<TLOD>, #pto.pipe_event_type<TVEC>, <EVENT_ID0>]", "'TLOD'", "TLOAD"),
        ("pto.record_event[\"TLOAD\", \"TVEC\", \"EVENT_ID0\"]", "expected a value of pipe_event_type", None),
        ("pto.barrier_sync [<PIPE_V>]", "unknown pipe_event_type 'PIPE_V'", None),
    ],
)  # fmt: skip
def test_bad_synchronisation(text: str, message: str, legal: str | None) -> None:
    error = refusal(text)
    assert message in error.message
    assert legal is None or legal in error.legal


# ---------------------------------------------------------------------------------------------------- not modelled


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("%r = pto.castptr %p : !pto.ptr<f32> -> !pto.ptr<f16>", "pto.castptr"),
        ("func.call @g() : () -> ()", "func.call"),
        ("call @g() : () -> ()", "call"),
        ("%m = memref.alloc() : memref<4xf32>", "memref.alloc"),
        ("pto.reserve_buffer", "pto.reserve_buffer"),
        ("%b = pto.get_block_idx", "pto.get_block_idx"),
        ("pto.tpush ins(%p : !pto.ptr<f32>) outs(%p : !pto.ptr<f32>)", "pto.tpush"),
        ("pto.tpop_from_aic", "pto.tpop_from_aic"),
        ("^bb1:", "^bb1"),
        ('%q = "pto.other"(%p) : (!pto.ptr<f32>) -> ()', '"pto.other"'),
        ("scf.while", "scf.while"),
        ("%d = arith.constant dense<0> : vector<4xi32>", "dense"),
        ("%v = pto.vcvt %p : !pto.ptr<f32>", "pto.vcvt"),
    ],
)
def test_what_is_not_modelled_is_refused_by_name_and_place(text: str, name: str) -> None:
    error = refusal(text, "%p: !pto.ptr<f32>")
    assert name in error.message
    assert error.span is not None
    assert error.span.line == 2


@pytest.mark.parametrize(
    ("text", "legal"),
    [
        ("%t = pto.aloc_tile : T", "pto.alloc_tile"),
        ("%v = pto.make_tensorview %p", "pto.make_tensor_view"),
        ("%v = pto.partition_veiw %p", "pto.partition_view"),
        ("pto.set_valid_shape %t", "pto.set_validshape"),
        ("pto.bariier <PIPE_V>", "pto.barrier"),
        ("pto.pipe_barrier <PIPE_V>", "pto.barrier"),
        ("retrun", "return"),
        ("pto.section.vectr { }", "pto.section.vector"),
    ],
)
def test_misspelt_operations_name_the_real_one(text: str, legal: str) -> None:
    assert legal in refusal(text).legal


def test_misspelt_attributes_of_tile_operations_name_the_real_one() -> None:
    error = refusal(f"pto.tcmp ins(%t, %t {{cmpmode = #pto<cmp lt>}} : {T}, {T}) outs(%t : {T})", f"%t: {T}")
    assert error.legal == ("cmpMode",)
