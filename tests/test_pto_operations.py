"""Tile operations and synchronisation in `.pto` text, and what is refused by name."""

import pytest
from parsed_text import F32, I32, TILE, T, body_of, last_of, refusal
from pto_text import compact, function

from castsim.isa.errors import ReadError
from castsim.isa.pto import program as pto
from castsim.isa.pto.pto_parser import parse


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


def test_alloc_tile_with_all_operands() -> None:
    node = last_of(
        "%t = pto.alloc_tile addr = %a valid_row = %r valid_col = %c : !pto.tile_buf<vec, 16x64xf32, valid=?x?>",
        "%a: i64, %r: index, %c: index",
    )
    assert node == pto.AllocTile("t", pto.TileType("vec", "f32", 16, 64, None, None), "a", "r", "c")


def test_set_validshape() -> None:
    dynamic = compact("f32", 16, 64, "?", "?")
    node = last_of(f"pto.set_validshape %t, %n, %n : {dynamic}", f"%t: {dynamic}, %n: index")
    assert node == pto.SetValidShape("t", "n", "n", pto.TileType("vec", "f32", 16, 64, None, None))


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
    assert last_of(f"pto.set_flag{text}") == pto.SetFlag(pto.Pipe.MTE2, pto.Pipe.V, 3)
    assert last_of(f"pto.wait_flag {text}") == pto.WaitFlag(pto.Pipe.MTE2, pto.Pipe.V, 3)


@pytest.mark.parametrize("pipe", pto.Pipe)
@pytest.mark.parametrize("form", ["<{}>", "#pto.pipe<{}>", '"{}"'])
def test_every_pipe(pipe: pto.Pipe, form: str) -> None:
    assert last_of(f"pto.barrier {form.format(pipe.value)}") == pto.Barrier(pipe)


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
        ("%m = memref.alloc() : memref<4xf32>", "memref.alloc"),
        *(
            (f"{results}{name} %p", f"{name} is known, not modelled: no text at hand says")
            for results, name in (("%b = ", "pto.declare_local_array"),)
        ),
        ("%a = pto.import_reserved_buffer {}", "pto.import_reserved_buffer: its results have no type"),
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


@pytest.mark.parametrize(
    ("text", "legal"),
    [
        ("%t = pto.aloc_tile : T", "pto.alloc_tile"), ("%v = pto.make_tensorview %p", "pto.make_tensor_view"),
        ("%v = pto.partition_veiw %p", "pto.partition_view"), ("pto.set_valid_shape %t", "pto.set_validshape"),
        ("pto.bariier <PIPE_V>", "pto.barrier"), ("retrun", "return"),
        ("pto.section.vectr { }", "pto.section.vector"),
    ],
)  # fmt: skip
def test_misspelt_operations_name_the_real_one(text: str, legal: str) -> None:
    assert legal in refusal(text).legal


def test_misspelt_attributes_of_tile_operations_name_the_real_one() -> None:
    error = refusal(f"pto.tcmp ins(%t, %t {{cmpmode = #pto<cmp lt>}} : {T}, {T}) outs(%t : {T})", f"%t: {T}")
    assert error.legal == ("cmpMode",)


# ----------------------------------------------------------------------- loops, conditions and regions in `.pto` text
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


def test_conditions() -> None:
    node = last_of("scf.if %c {\n pto.barrier <PIPE_V>\n scf.yield\n} else {\n}", "%c: i1")
    assert node == pto.If("c", (pto.Barrier(pto.Pipe.V),))


@pytest.mark.parametrize("kind", ["section.vector", "section.cube"])
def test_sections(kind: str) -> None:
    assert last_of(f"pto.{kind} {{ pto.barrier <PIPE_V> }}") == pto.Section(kind, (pto.Barrier(pto.Pipe.V),))


def test_names_end_with_their_region_and_may_return_after_it() -> None:
    body = "scf.if %c { %x = arith.constant 1 : i32 } else { %x = arith.constant 2 : i32 }\n%x = arith.constant 3 : i32"
    assert last_of(body, "%c: i1") == pto.Constant("x", 3, I32)


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
        ("%z = arith.constant 0 : index\nscf.for %i = %n to %n step %z { }", "must be positive, not 0", None),
        ("scf.for %i = %n to %n step %n { }\n%u = arith.addi %i, %i : index", "%i is not defined", None),
        ("scf.for %i = %n to %n step %n { return }", "return is not allowed", None),
        ("pto.vecscope { scf.yield }", "scf.yield is not allowed", None),
        ("scf.if %k { }", "%k is defined as i32 and used as i1", None),
        ("%r = scf.if %c -> (i32) { scf.yield %k : i32 }", "expected 'else'", None),
        ("%r = scf.if %c -> (i32) { scf.yield %k : i32 } else { }", "yields 0", None),
        ("scf.if %c { scf.yield\npto.barrier <PIPE_V> }", "nothing can follow scf.yield", None),
        ("scf.while %c { }", "expected ':'", None),
        ("scf.condition(%c)", "scf.condition is not allowed", None),
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
    assert last_of(body, "%c: i1, %k: i32") == pto.Arith("h", "addi", ("g", "g"), I32)


def test_a_missing_yield_is_shown_at_the_brace_that_ends_the_region() -> None:
    span = refusal("%r = scf.if %c -> (i32) { pto.barrier <PIPE_V> } else { }", "%c: i1").span
    assert span is not None
    assert span.text[span.column - 1 :] == "} else { }"


def test_a_written_truth_value_is_a_condition() -> None:
    assert last_of("%t = arith.constant true\nscf.if %t { }") == pto.If("t", ())


def test_regions_one_after_the_other_do_not_count_as_nested() -> None:
    assert len(body_of("pto.vecscope { }\n" * 200)) == 200


def test_absurd_nesting_is_refused_and_does_not_break_the_reader() -> None:
    assert "nested more than" in refusal("pto.vecscope {" * 3000).message
    with pytest.raises(ReadError, match="nested more than"):
        parse("module attributes {a = " + "[" * 3000)
    assert isinstance(last_of("pto.vecscope {" * 60 + "}" * 60), pto.Section)
