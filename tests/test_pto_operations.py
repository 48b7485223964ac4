"""Tile operations and synchronisation in `.pto` text, and what is refused by name."""

import pytest
from parsed_text import F32, TILE, T, body_of, last_of, refusal
from pto_text import compact, function

from castsim.isa.pto.program import AllocTile, Barrier, Pipe, SetFlag, SetValidShape, TileOperation, TileType, WaitFlag
from castsim.isa.pto.pto_parser import parse


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
        ("%t = pto.aloc_tile : T", "pto.alloc_tile"),
        ("%v = pto.make_tensorview %p", "pto.make_tensor_view"),
        ("%v = pto.partition_veiw %p", "pto.partition_view"),
        ("pto.set_valid_shape %t", "pto.set_validshape"),
        ("pto.bariier <PIPE_V>", "pto.barrier"),
        ("retrun", "return"),
        ("pto.section.vectr { }", "pto.section.vector"),
    ],
)
def test_misspelt_operations_name_the_real_one(text: str, legal: str) -> None:
    assert legal in refusal(text).legal


def test_misspelt_attributes_of_tile_operations_name_the_real_one() -> None:
    error = refusal(f"pto.tcmp ins(%t, %t {{cmpmode = #pto<cmp lt>}} : {T}, {T}) outs(%t : {T})", f"%t: {T}")
    assert error.legal == ("cmpMode",)
