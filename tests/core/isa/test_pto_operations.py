"""Tile operations and synchronisation in `.pto` text, and what is refused by name."""

import pytest
from core.isa.parsed_text import F32, I32, TILE, T, body_of, last_of, refusal
from kit.pto_text import compact, function

from castsim.isa.errors import ReadError
from castsim.isa.pto import program as pto
from castsim.isa.pto.program import Constant, Convert, ScalarType
from castsim.isa.pto.pto_parser import parse
from castsim.isa.pto.pto_printer import print_program


# ------------------------------------------------------------------------------------------------ tiles and views
def test_an_operation_this_simulator_does_not_know_keeps_operands_types_and_attributes() -> None:
    node = last_of(f"pto.tfancy ins(%t, %x {{cmpMode = #pto<cmp lt>}} : {T}, f32) outs(%t : {T}) {{b = 1 : i32, a}}",
                   f"%t: {T}, %x: f32")  # fmt: skip
    assert node == pto.TileOperation(
        "tfancy", ("t", "x"), (TILE, F32), ("t",), (TILE,), (("a", ""), ("b", "1 : i32"), ("cmpMode", "#pto<cmp lt>"))
    )
    assert last_of(f"pto.texpand outs(%t : {T})", f"%t: {T}") == pto.TileOperation("texpand", (), (), ("t",), (TILE,))


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
    kind = pto.TileType("vec", element, 16, cols, 16, cols)
    assert body[0] == pto.TileOperation(mnemonic, ("t",), (TILE,), ("r",), (kind,))
    assert "no ins/outs form" in refusal(f"pto.{mnemonic} ins(%t : {T}) outs(%t : {T})", f"%t: {T}").message


def test_attributes_of_other_dialects_only_bring_a_warning() -> None:
    program = parse(function(f"%t = pto.alloc_tile {{my.hint = 1}} : {T}"))
    assert "unknown attribute my.hint of pto.alloc_tile" in program.warnings[0]


@pytest.mark.parametrize(
    "text",
    ["[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID3>]", '["PIPE_MTE2", "PIPE_V", "EVENT_ID3"]',
     "[#pto.pipe<PIPE_MTE2>, #pto.pipe<PIPE_V>, #pto.event<EVENT_ID3>]",
     '[<PIPE_MTE2>,"PIPE_V",#pto.event<EVENT_ID3>]'],
)  # fmt: skip
def test_flags_in_every_spelling(text: str) -> None:
    assert last_of(f"pto.set_flag{text}") == pto.SetFlag(pto.Pipe.MTE2, pto.Pipe.V, 3)
    assert last_of(f"pto.wait_flag {text}") == pto.WaitFlag(pto.Pipe.MTE2, pto.Pipe.V, 3)


@pytest.mark.parametrize("pipe", pto.Pipe)
@pytest.mark.parametrize("form", ["<{}>", "#pto.pipe<{}>", '"{}"'])
def test_every_pipe(pipe: pto.Pipe, form: str) -> None:
    assert last_of(f"pto.barrier {form.format(pipe.value)}") == pto.Barrier(pipe)


# ------------------------------------------------------------------------------------------------- synchronisation


# The table of endpoints of the front end.
ENDPOINTS = {
    "TLOAD": pto.Pipe.MTE2, "TSTORE_VEC": pto.Pipe.MTE3, "TSTORE_ACC": pto.Pipe.FIX, "TMOV_M2L": pto.Pipe.MTE1,
    "TMOV_M2B": pto.Pipe.MTE1, "TVEC": pto.Pipe.V, "TVECWAIT_EVENT": pto.Pipe.V, "TMATMUL": pto.Pipe.M,
    "TMOV_M2V": pto.Pipe.V, "TMOV_M2S": pto.Pipe.FIX, "TMOV_V2M": pto.Pipe.FIX,
}  # fmt: skip


@pytest.mark.parametrize(("endpoint", "pipe"), ENDPOINTS.items())
@pytest.mark.parametrize("name", ["pipe_event_type", "sync_op_type"])
def test_events_are_flags_between_the_pipes_of_their_endpoints(endpoint: str, pipe: pto.Pipe, name: str) -> None:
    ends = f"[#pto.{name}<{endpoint}>, #pto.pipe_event_type<TVEC>, #pto.event<EVENT_ID7>]"
    assert last_of(f"pto.record_event {ends}") == pto.SetFlag(pipe, pto.Pipe.V, 7)
    assert last_of(f"pto.wait_event{ends}") == pto.WaitFlag(pipe, pto.Pipe.V, 7)
    assert last_of(f"pto.barrier_sync [#pto.{name}<{endpoint}>]") == pto.Barrier(pipe)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("%m = memref.alloc() : memref<4xf32>", "memref.alloc"),
        *(
            (f"{results}{name} %p", f"{name} is not modelled: no source documents")
            for results, name in (("%b = ", "pto.declare_local_array"),)
        ),
        ("%a = pto.import_reserved_buffer {}", "pto.import_reserved_buffer: the types of its results are missing"),
        ("^bb1:", "^bb1"),
        ('%q = "pto.other"(%p) : (!pto.ptr<f32>) -> ()', '"pto.other"'),
        ("%d = arith.constant dense<0> : vector<4xi32>", "dense"),
        ("%v = pto.vcvt %p : !pto.ptr<f32>", "pto.vcvt"),
    ],
)
def test_what_is_not_modelled_is_refused_by_name_and_place(text: str, name: str) -> None:
    error = refusal(text, "%p: !pto.ptr<f32>")
    assert name in error.message
    assert error.span is not None
    assert error.span.line == 2


def test_misspelt_attributes_of_tile_operations_name_the_real_one() -> None:
    error = refusal(f"pto.tcmp ins(%t, %t {{cmpmode = #pto<cmp lt>}} : {T}, {T}) outs(%t : {T})", f"%t: {T}")
    assert error.legal == ("cmpMode",)


# -------------------------------------------------------------------------------------------------------- control
def test_a_loop_with_carried_values() -> None:
    node = last_of(
        "%r:2 = scf.for %i = %a to %b step %s iter_args(%x = %a, %y = %k) -> (i32, f32) : i32 {\n"
        "%z = arith.addi %x, %i : i32\nscf.yield %z, %y : i32, f32 }\n%u = arith.addi %r#0, %r : i32",
        "%a: i32, %b: i32, %k: f32, %s: i32",
    )
    assert node == pto.Arith("u", "addi", ("r#0", "r#0"), I32)
    loop = body_of(
        "%p, %q = scf.for %i = %a to %b step %s iter_args(%x = %a, %y = %k) -> (i32, f32) : i32 {\n"
        "scf.yield %x, %y : i32, f32 }",
        "%a: i32, %b: i32, %k: f32, %s: i32",
    )[0]
    assert loop == pto.For(
        "i", "a", "b", "s", (pto.Yield(("x", "y"), (I32, F32)),), ("x", "y"), ("a", "k"), ("p", "q"), (I32, F32), I32
    )


def test_a_single_result_may_be_numbered_in_its_uses() -> None:
    body = (
        "%r:1 = scf.if %c -> (i32) { scf.yield %a : i32 } else { scf.yield %a : i32 }\n%s = arith.addi %r#0, %r : i32"
    )
    assert last_of(body, "%c: i1, %a: i32") == pto.Arith("s", "addi", ("r", "r"), I32)


def test_names_end_with_their_region_and_may_return_after_it() -> None:
    body = "scf.if %c { %x = arith.constant 1 : i32 } else { %x = arith.constant 2 : i32 }\n%x = arith.constant 3 : i32"
    assert last_of(body, "%c: i1") == pto.Constant("x", 3, I32)


@pytest.mark.parametrize("region", ["pto.vecscope", "pto.section.vector", "scf.if %c", "scf.for %i = %n to %n step %n"])
def test_no_value_leaves_its_region(region: str) -> None:
    body = f"{region} {{ %x = arith.constant 1 : index }}\n%y = arith.addi %x, %x : index"
    assert "%x is not defined" in refusal(body, "%c: i1, %n: index").message


def test_names_of_result_groups_end_with_their_region_too() -> None:
    group = "%g:2 = scf.if %c -> (i32, i32) { scf.yield %k, %k : i32, i32 } else { scf.yield %k, %k : i32, i32 }"
    body = f"scf.if %c {{ {group} }}\n%g = arith.addi %k, %k : i32\n%h = arith.addi %g, %g#0 : i32"
    assert last_of(body, "%c: i1, %k: i32") == pto.Arith("h", "addi", ("g", "g"), I32)


def test_a_missing_yield_is_shown_at_the_brace_that_ends_the_region() -> None:
    span = refusal("%r = scf.if %c -> (i32) { pto.barrier <PIPE_V> } else { }", "%c: i1").span
    assert span is not None
    assert span.text[span.column - 1 :] == "} else { }"


def test_regions_one_after_the_other_do_not_count_as_nested() -> None:
    assert len(body_of("pto.vecscope { }\n" * 200)) == 200


def test_absurd_nesting_is_refused_and_does_not_break_the_reader() -> None:
    assert "nested more than" in refusal("pto.vecscope {" * 3000).message
    with pytest.raises(ReadError, match="nested more than"):
        parse("module attributes {a = " + "[" * 3000)
    assert isinstance(last_of("pto.section.vector {" * 60 + "}" * 60), pto.Section)


# --------------------------------------------------------------------------------------------------- scalar values
@pytest.mark.parametrize(
    ("text", "value", "kind"),
    [
        ("16 : index", 16, "index"), ("-5 : i32", -5, "i32"), ("-128 : i8", -128, "i8"), ("255 : i8", -1, "i8"),
        ("0xFF : i8", -1, "i8"), ("4294967295 : i32", -1, "i32"), ("-9223372036854775808 : i64", -(1 << 63), "i64"),
        ("true", True, "i1"), ("false : i1", False, "i1"), ("1 : i1", True, "i1"), ("-127.0 : f32", -127.0, "f32"),
        ("1.000000e+00 : f32", 1.0, "f32"), ("0.5 : f16", 0.5, "f16"), ("1e-3 : bf16", 0.001, "bf16"),
        ("0x7F800000 : f32", 0x7F800000, "f32"), ("0x7FC1 : bf16", 0x7FC1, "bf16"),
        ("0xFFF8000000000001 : f64", 0xFFF8000000000001, "f64"),
    ],
)  # fmt: skip
def test_constants(text: str, value: float, kind: str) -> None:
    node = last_of(f"%c = arith.constant {text}")
    assert node == Constant("c", value, ScalarType(kind))
    assert isinstance(node, Constant)
    assert type(node.value) is type(value)


@pytest.mark.parametrize(
    ("operation", "source", "target"),
    [
        ("index_cast", "i32", "index"), ("index_cast", "index", "i64"), ("index_castui", "i32", "index"),
        ("extui", "i1", "i32"), ("extsi", "i8", "i64"), ("trunci", "i64", "i16"), ("bitcast", "f32", "i32"),
        ("bitcast", "i16", "bf16"),
    ],
)  # fmt: skip
def test_conversions(operation: str, source: str, target: str) -> None:
    node = last_of(f"%r = arith.{operation} %a : {source} to {target}", f"%a: {source}")
    assert node == Convert("r", operation, "a", ScalarType(source), ScalarType(target))


ACCESSES = """%q = pto.addptr %p, %i : !pto.ptr<f32> -> !pto.ptr<f32>
%x = pto.load_scalar %q[%i] : !pto.ptr<f32> -> f32
pto.store_scalar %x, %p[%i] : !pto.ptr<f32>, f32
%y = pto.tgetval ins(%t, %i : !pto.tile_buf<vec, 8x8xf32>, index) outs : f32
pto.tsetval ins(%i, %y : index, f32) outs(%t : !pto.tile_buf<vec, 8x8xf32>)
pto.fence.barrier_all
pto.fence.barrier_all #pto.fence_scope<gm>
pto.cmo.cacheinvalid
pto.cmo.cacheinvalid %q single_cache_line : !pto.ptr<f32>
%z, %u = scf.if %b -> (f32, f32) {
scf.yield %x, %x : f32, f32
} else {
scf.yield %y, %y : f32, f32
}
%f = arith.addf %z, %u fastmath<nnan, ninf> : f32
%g = arith.cmpf olt, %f, %x : f32
%h = math.copysign %f, %x : f32
%k = math.sqrt %h : f32
%m = math.fma %k, %h, %x : f32"""
ACCESSED = "%p: !pto.ptr<f32>, %i: index, %b: i1"


def test_accesses_are_printed_as_they_are_read() -> None:
    tile = "%t = pto.alloc_tile : !pto.tile_buf<vec, 8x8xf32>\n"
    program = parse(function(tile + ACCESSES, ACCESSED), "k.pto")
    assert parse(print_program(program), "k.pto") == program
    printed = print_program(program)
    for line in ACCESSES.splitlines():
        if line.startswith(("%", "pto.")) and "fastmath" not in line and "scf" not in line:
            assert line in printed


REFUSED = {
    "misspelt operations": ("", [
        ("%t = pto.aloc_tile : T", "", "pto.alloc_tile"), ("%v = pto.make_tensorview %p", "", "pto.make_tensor_view"),
        ("%v = pto.partition_veiw %p", "", "pto.partition_view"), ("pto.set_valid_shape %t", "", "pto.set_validshape"),
        ("pto.bariier <PIPE_V>", "", "pto.barrier"), ("retrun", "", "return"),
        ("pto.section.vectr { }", "", "pto.section.vector"),
    ]),
    "synchronisation": ("", [
        ("pto.set_flag[<PIPE_V>, <PIPE_V>, <EVENT_ID8>]", "unknown event 'EVENT_ID8'", "EVENT_ID7"),
        ("pto.set_flag[<PIPE_MTE6>, <PIPE_V>, <EVENT_ID0>]", "unknown pipe 'PIPE_MTE6'", "PIPE_MTE1"),
        ("pto.set_flag[<PIPE_V>, <PIPE_V>]", "expected ','"),
        ("pto.set_flag(<PIPE_V>, <PIPE_V>, <EVENT_ID0>)", "expected '['"),
        ("pto.set_flag[PIPE_V, <PIPE_V>, <EVENT_ID0>]", "expected a value of pipe"),
        ("pto.set_flag[#pto.event<EVENT_ID0>, <PIPE_V>, <EVENT_ID0>]", "expected a value of pipe"),
        ("pto.set_flg[<PIPE_V>, <PIPE_V>, <EVENT_ID0>]", "unknown operation", "pto.set_flag"),
        ("%x = pto.barrier <PIPE_V>", "has no result"),
        ("pto.barrier <V>", "unknown pipe 'V'"),
        ("pto.barrier #pto.pipe<CAST_PIPE_V>", "unknown pipe 'CAST_PIPE_V'"),
        ("pto.barrier PIPE_V", "expected a value of pipe"),
        ("pto.record_event[#pto.pipe_event_type<TLOD>, #pto.pipe_event_type<TVEC>, <EVENT_ID0>]", "'TLOD'", "TLOAD"),
        ("pto.record_event[\"TLOAD\", \"TVEC\", \"EVENT_ID0\"]", "expected a value of pipe_event_type"),
        ("pto.barrier_sync [<PIPE_V>]", "unknown pipe_event_type 'PIPE_V'"),
    ]),
    "control": ("%n: index, %k: i32, %c: i1", [
        ("scf.for %i = %n to %n step %n { scf.yield %n : index }", "returns 0 values, its region yields 1"),
        ("%r = scf.for %i = %n to %n step %n iter_args(%x = %n) -> (index) { }", "returns 1 values"),
        ("%r = scf.for %i = %n to %n step %n iter_args(%x = %n) -> (index) { scf.yield %k : i32 }", "differ"),
        ("%r = scf.for %i = %n to %n step %n iter_args(%x = %n) -> (i32) { scf.yield %k : i32 }", "%n is defined"),
        ("%r = scf.for %i = %n to %n step %n iter_args(%x = %n) -> (i32, i32) { }", "1 carried values, but 2"),
        ("%r = scf.for %i = %n to %n step %n { }", "has 0 results, 1 named"),
        ("scf.for %n = %n to %n step %n { }", "redefinition of %n"),
        ("scf.for %i = %k to %k step %k { }", "%k is defined as i32 but used as index"),
        ("scf.for %i = %k to %k step %k : f32 { }", "must be an integer", "i32"),
        ("scf.for %i = %n upto %n step %n { }", "expected 'to', found 'upto'", "to"),
        ("scf.for %i = %n to %n stp %n { }", "expected 'step', found 'stp'", "step"),
        ("scf.for %i = %n to %n step %n iterargs(%x = %n) { }", "expected 'iter_args'"),
        ("%z = arith.constant 0 : index\nscf.for %i = %n to %n step %z { }", "must be positive, not 0"),
        ("scf.for %i = %n to %n step %n { }\n%u = arith.addi %i, %i : index", "%i is not defined"),
        ("scf.for %i = %n to %n step %n { return }", "return is not allowed"),
        ("pto.vecscope { scf.yield }", "scf.yield is not allowed"),
        ("scf.if %k { }", "%k is defined as i32 but used as i1"),
        ("%r = scf.if %c -> (i32) { scf.yield %k : i32 }", "expected 'else'"),
        ("%r = scf.if %c -> (i32) { scf.yield %k : i32 } else { }", "yields 0"),
        ("scf.if %c { scf.yield\npto.barrier <PIPE_V> }", "nothing can follow scf.yield"),
        ("scf.while %c { }", "expected ':'"),
        ("scf.condition(%c)", "scf.condition is not allowed"),
        ("scf.fro %i = %n to %n step %n { }", "unknown operation 'scf.fro'", "scf.for"),
        ("%x = scf.for %i = %n to %n step %n { }\n", "has 0 results"),
        ("^bb0:", "block ^bb0"),
        ("%x:2 = scf.if %c -> (i32) { scf.yield %k : i32 } else { scf.yield %k : i32 }", "1 result, 2 named"),
    ]),
    "constants": ("", [
        ("arith.constant 1 : i32", "has 1 result, 0 named"),
        ("%a, %b = arith.constant 1 : i32", "has 1 result, 2 named"),
        ("%c = arith.constant 256 : i8", "does not fit the 8 bits"),
        ("%c = arith.constant -129 : i8", "does not fit the 8 bits"),
        ("%c = arith.constant 1.0 : i32", "an integer"), ("%c = arith.constant -0x1 : i32", "an integer"),
        ("%c = arith.constant 1 : f32", "needs a decimal point"),
        ("%c = arith.constant -0x1 : f32", "does not fit the 32 bits"),
        ("%c = arith.constant 0x10000 : f16", "does not fit the 16 bits"),
        ("%c = arith.constant 1.0e999 : f64", "too large for any float type"),
        ("%c = arith.constant " + "9" * 5000 + " : index", "too long"), ("%c = arith.constant 1", "expected ':'"),
        ("%c = arith.constant true : i8", "has type i1"), ("%c = arith.constant tru : i1", "expected a number"),
        ("%c = arith.constant 1 : ui8", "signless"),
        ("%c = arith.constant 1 : !pto.ptr<f32>", "expected a scalar type"),
        ("%c = arith.constant dense<0.0> : vector<4xf32>", "dense constants"),
        ("%c:2 = arith.constant 1 : i32", "has 1 result, 2 named"),
        ("%c:0 = arith.constant 1 : i32", "a result count must be 1 to 999"),
        ("%c:1x = arith.constant 1 : i32", "expected '='"),
        ("%c#0 = arith.constant 1 : i32", "define a result as"),
    ]),
    "scalar operations": ("%i: i32, %x: f32, %n: index, %b: i1", [
        ("%r = arith.addi %i, %x : i32", "%x is defined as f32 but used as i32", "f32"),
        ("%r = arith.addi %x, %x : f32", "signless integers, not f32", "i32"),
        ("%r = arith.addi %i : i32", "expected ','"),
        ("%r = arith.addf %i, %i : i32", "floats, not i32", "f32"),
        ("%r = arith.cmpf slt, %x, %x : f32", "unknown predicate 'slt'", "olt"),
        ("%r = arith.fptosi %x : f32 to index", "other than index"),
        ("%r = arith.extf %x : f32 to f16", "wider"),
        ("%r = arith.truncf %i : i32 to f16", "needs floats"),
        ("%r = math.exp %x : f32", "the result is not defined", "math.sqrt"),
        ("%r = math.absi %x : f32", "signless integers", "i32"),
        ("%r = arith.mulli %i, %i : i32", "unknown operation 'arith.mulli'", "arith.muli"),
        ("%r = arith.cmpi lt, %i, %i : i32", "unknown predicate 'lt'", "slt"),
        ("%r = arith.select %i, %i, %i : i32", "%i is defined as i32 but used as i1"),
        ("%r = arith.index_cast %i : i32 to i64", "between index and another integer"),
        ("%r = arith.index_cast %x : f32 to index", "signless integers"),
        ("%r = arith.trunci %i : i32 to i64", "narrower"),
        ("%r = arith.trunci %i : i32 to i32", "narrower"),
        ("%r = arith.extsi %i : i32 to i32", "wider"),
        ("%r = arith.addi %x, %i : i32", "%x is defined as f32"),
        ("%r = arith.cmpi eq, %x, %i : i32", "%x is defined as f32"),
        ("%r = arith.cmpi eq, %i, %x : i32", "%x is defined as f32"),
        ("%r = arith.select %b, %i, %x : i32", "%x is defined as f32"),
        ("%r = arith.select %b, %x, %i : i32", "%x is defined as f32"),
        ("arith.constant true", "has 1 result, 0 named"),
        ("%r = arith.extui %i : i32 to i16", "wider"),
        ("%r = arith.extui %n : index to i64", "does not take an index"),
        ("%r = arith.bitcast %i : i32 to f16", "cannot change the width"),
        ("%r = arith.bitcast %n : index to i64", "cannot change the width"),
        ("%r = arith.trunci %i : i64 to i32", "%i is defined as i32"),
        ("%r = arith.trunci %i : i32, i16", "expected 'to'"),
        ("%r = math.gamma %x : f32", "unknown operation 'math.gamma'"),
    ]),
    "accesses": (ACCESSED, [
        ("%x = pto.load_scalar %p[%i] : !pto.ptr<f32> -> i32", "element type f32, not i32", "f32"),
        ("%x = pto.load_scalar %i[%i] : !pto.ptr<f32> -> f32", "%i is defined as index"),
        ("%x = pto.load_scalar %p[%b] : !pto.ptr<f32> -> f32", "%b is defined as i1"),
        ("pto.load_scalar %p[%i] : !pto.ptr<f32> -> f32", "has 1 result, 0 named"),
        ("%x = pto.load_scalar %p[%i] : index -> f32", "works on pointers, not on index", "!pto.ptr<...>"),
        ("pto.store_scalar %i, %p[%i] : !pto.ptr<f32>, index", "element type f32, not index", "f32"),
        ("%q = pto.addptr %p, %i : !pto.ptr<f32> -> !pto.ptr<f16>", "cannot change the type"),
        ("%x = pto.tgetval ins(%p, %i : !pto.ptr<f32>, index) outs : f32", "takes tiles"),
        ("pto.fence.barrier_all #pto.layout<nd>", "expected the scope of the fence", "#pto.fence_scope<gm>"),
        ("%x = pto.cmo.cacheinvalid %p : !pto.ptr<f32>", "has no result"),
    ]),
}  # fmt: skip
"""What is refused, by what it is about, with the arguments of the function around: text, message, what is legal."""


@pytest.mark.parametrize(
    ("arguments", "text", "message", "legal"),
    [(arguments, *row[:2], row[2:]) for arguments, rows in REFUSED.values() for row in rows],
)
def test_refusals(arguments: str, text: str, message: str, legal: tuple[str, ...]) -> None:
    error = refusal(text, arguments)
    assert message in error.message
    assert set(legal) <= set(error.legal)
