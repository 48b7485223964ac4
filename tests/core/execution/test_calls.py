"""Calls, several tiles of one allocation, views as operands, flags by number, valid regions without elements."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from kit.execution_programs import kernel, kernel_file, touched

from castsim import run
from castsim.isa.errors import CastsimError, WarningKind, of_kind
from castsim.isa.pto.pto_parser import parse
from castsim.isa.pto.pto_printer import print_program
from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS, Kind, Role
from castsim.running.program_loading import load_program
from castsim.targets.loader import load_target
from castsim.targets.strided_repeat import STRUCTURES

# A `.pto` statement stays on one line.
# ruff: noqa: E501


TARGETS = ("a2a3", "a5")
A, B = "!pto.tile_buf<vec, 8x64xf32>", "!pto.tile_buf<vec, 8x64xf16>"
VIEW, OTHER = "!pto.tensor_view<?x?xf32>", "!pto.tensor_view<?x?xf16>"
PART, END = "!pto.partition_tensor_view<8x64xf32>", "!pto.partition_tensor_view<8x64xf16>"
CONSTANTS = "\n".join(f"%c{n} = arith.constant {n} : index" for n in (0, 1, 2, 8, 32, 64))
HELPERS = f"""
func.func private @row(%i: index) -> index {{
  %n = arith.constant 8 : index
  %r = arith.muli %i, %n : index
  return %r : index
}}
func.func @half(%a: {A}, %b: {B}) {{
  %h = arith.constant 0.5 : f32
  %t = pto.alloc_tile : {A}
  pto.tmuls ins(%a, %h : {A}, f32) outs(%t : {A})
  pto.tcvt ins(%t : {A}) outs(%b : {B})
  return
}}
func.func @step(%vx: {VIEW}, %vy: {OTHER}, %i: index, %a: {A}, %b: {B}) {{
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  %r = func.call @row(%i) : (index) -> index
  %px = pto.partition_view %vx, offsets = [%r, %c0], sizes = [%c8, %c64] : {VIEW} -> {PART}
  %py = pto.partition_view %vy, offsets = [%r, %c0], sizes = [%c8, %c64] : {OTHER} -> {END}
  pto.tload ins(%px : {PART}) outs(%a : {A})
  call @half(%a, %b) : ({A}, {B}) -> ()
  pto.tstore ins(%b : {B}) outs(%py : {END})
  return
}}
"""
BODY = f"""
{CONSTANTS}
%vx = pto.make_tensor_view %x, shape = [%c32, %c64], strides = [%c64, %c1] : {VIEW}
%vy = pto.make_tensor_view %y, shape = [%c32, %c64], strides = [%c64, %c1] : {OTHER}
"""
CALLED = f"""
%a = pto.alloc_tile : {A}
%b = pto.alloc_tile : {B}
scf.for %i = %c0 to %c2 step %c1 {{
  func.call @step(%vx, %vy, %i, %a, %b) : ({VIEW}, {OTHER}, index, {A}, {B}) -> ()
}}
func.call @step(%vx, %vy, %c2, %a, %b) : ({VIEW}, {OTHER}, index, {A}, {B}) -> ()
"""
MANY, PAIR = "!pto.multi_tile_buf<vec, 8x64xf32, count=2>", "!pto.multi_tile_buf<vec, 8x64xf16, count=2>"
SLOTS = f"""
%m = pto.alloc_multi_tile : {MANY}
%n = pto.alloc_multi_tile : {PAIR}
%c3 = arith.constant 3 : index
scf.for %i = %c0 to %c3 step %c1 {{
  %k = arith.remui %i, %c2 : index
  %a = pto.multi_tile_get %m[%k] : {MANY} -> {A}
  %b = pto.multi_tile_get %n[%k] : {PAIR} -> {B}
  func.call @step(%vx, %vy, %i, %a, %b) : ({VIEW}, {OTHER}, index, {A}, {B}) -> ()
}}
"""


def text(body: str, helpers: str = HELPERS, target: str = "a5") -> str:
    entry = f"func.func @k(%x: !pto.ptr<f32>, %y: !pto.ptr<f16>) {{\n{BODY}{body}\nreturn\n}}\n"
    return f'module attributes {{pto.target_arch = "{target}"}} {{\n{entry}{helpers}\n}}\n'


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("body", [CALLED, SLOTS])
def test_the_bodies_of_the_callees_are_run(body: str, target: str, tmp_path: Path):
    file = kernel_file(tmp_path, text(body, target=target))
    assert parse(print_program(parse(file.read_text()))) == parse(file.read_text())
    x = np.random.default_rng(1).uniform(-100, 100, (32, 64)).astype(np.float32)
    found = run(file, inputs={"x": x})
    expected = np.zeros_like(x, np.float16)
    expected[:24] = (x[:24] * np.float32(0.5)).astype(np.float16)
    np.testing.assert_array_equal(found.outputs["y"], expected)
    assert found.cycles == run(file, inputs={"x": x}, engine="event").cycles


def test_slots_lie_one_behind_the_other_and_each_call_has_tiles_of_its_own(tmp_path: Path):
    body = SLOTS.replace("%m =", "%p = arith.constant 64 : i64\n%q = arith.constant 8192 : i64\n%m =", 1)
    for address in ("%p", "%q"):
        body = body.replace("alloc_multi_tile :", f"alloc_multi_tile addr = {address} :", 1)
    helpers = HELPERS.replace("alloc_tile :", "alloc_tile addr = %z :")
    helpers = helpers.replace("%h =", "%z = arith.constant 16384 : i64\n  %h =")
    found = run(kernel_file(tmp_path, text(body, helpers)), timing_only=True)
    starts = {(access.start, access.end) for access in touched(found.loaded.executed) if access.space == "ub"}
    assert {(64, 64 + 2048), (64 + 2048, 64 + 4096), (8192, 9216), (9216, 10240), (16384, 18432)} == starts


@pytest.mark.parametrize(
    ("body", "helpers", "message"),
    [
        ("func.call @stepp(%vx) : (!pto.tensor_view<?x?xf32>) -> ()", HELPERS, "no function @stepp"),
        ("func.call @out() : () -> ()", "func.func private @out()", "@out is declared without a body"),
        ("func.call @row(%c0) : (index) -> ()", HELPERS, "@row returns index"),
        ("%c = arith.constant 1 : i32\n%r = func.call @row(%c) : (i32) -> index", HELPERS, "@row takes index"),
        ("func.call @a() : () -> ()", "func.func @a() {\nfunc.call @b() : () -> ()\nreturn\n}\nfunc.func @b() {\nfunc.call @a() : () -> ()\nreturn\n}", "calls are recursive: @k calls @a calls @b calls @a"),
        ("func.call @bad() : () -> ()", "func.func @bad() {\nnonsense\nreturn\n}", "unknown operation 'nonsense'"),
        (f"%m = pto.alloc_multi_tile : {MANY}\n%a = pto.multi_tile_get %m[%c2] : {MANY} -> {A}", "", "no slot 2"),
        (f"%m = pto.alloc_multi_tile : {MANY}\n%a = pto.multi_tile_get %m[%c0] : {MANY} -> {B}", "", "its tiles are !pto.tile_buf<vec, 8x64xf32>"),
        ("%m = pto.alloc_multi_tile : !pto.multi_tile_buf<vec, 8x64xf32>", "", "the number of tiles"),
        ("%m = pto.alloc_multi_tile : !pto.multi_tile_buf<vec, 256x128xf32, count=2>", "", "bytes too few"),
        (f"%m = pto.alloc_multi_tile : {A}", "", "is not several tiles"),
    ],
)  # fmt: skip
def test_calls_and_slots_that_cannot_be(body: str, helpers: str, message: str, tmp_path: Path):
    file = kernel_file(tmp_path, text(body, helpers))
    with pytest.raises(CastsimError) as caught:
        run(file, entry="k", timing_only=True)
    assert message in caught.value.message
    place = caught.value.span
    assert place is not None and place.file == str(file) and place.text in file.read_text()


@pytest.mark.parametrize("target", TARGETS)
def test_views_as_arguments_of_a_kernel(target: str, tmp_path: Path):
    file = kernel_file(
        tmp_path,
        f"""
func.func @k(%v: !pto.tensor_view<16x64xf32>, %q: {END}) {{
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  %a = pto.alloc_tile : {A}
  %b = pto.alloc_tile : {B}
  %p = pto.partition_view %v, offsets = [%c8, %c0], sizes = [%c8, %c64] : !pto.tensor_view<16x64xf32> -> {PART}
  pto.tload ins(%p : {PART}) outs(%a : {A})
  pto.tcvt ins(%a {{rmode = #pto<round_mode RINT>}} : {A}) outs(%b : {B})
  pto.tstore ins(%b : {B}) outs(%q : {END})
  return
}}
""",
    )
    x = np.random.default_rng(1).uniform(-100, 100, (16, 64)).astype(np.float32)
    found = run(file, target, inputs={"v": x})
    np.testing.assert_array_equal(found.outputs["q"].reshape(8, 64), x[8:].astype(np.float16))


@pytest.mark.parametrize("kind", [A, VIEW, MANY])
def test_arguments_that_only_a_caller_can_make(kind: str, tmp_path: Path):
    with pytest.raises(CastsimError, match="a kernel takes pointers, views of known extents, and scalars") as caught:
        run(kernel_file(tmp_path, f"func.func @k(%v: {kind}) {{\nreturn\n}}\n"))
    assert caught.value.legal == ("a function that makes the operand and calls @k",)
    assert caught.value.span is not None
    assert (caught.value.span.line, caught.value.span.column) == (1, 14)


def test_only_the_function_asked_for_and_what_it_calls_is_read():
    others = "".join(f"func.func @f{n}() {{\nnonsense {n}\nreturn\n}}\n" for n in range(3))
    whole = text(CALLED, others + HELPERS)
    found = parse(whole, only="k")
    assert {function.name for function in found.functions} == {"k", "step", "half", "row"}
    assert {function.name for function in parse(whole, only="half").functions} == {"half"}
    with pytest.raises(CastsimError, match="nonsense"):
        parse(whole, only="f1")
    with pytest.raises(CastsimError, match="redefinition of function @half"):
        parse(whole.replace("@row", "@half"), only="k")


ROW_PART, TILE = "!pto.partition_tensor_view<1x64xf32>", "!pto.tile_buf<vec, 1x64xf32>"
LOOP = f"""func.func @k(%x: !pto.ptr<f32>, %y: !pto.ptr<f32>, %n: index) attributes {{pto.entry}} {{
%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
%c2 = arith.constant 2 : index
%c64 = arith.constant 64 : index
%two = arith.constant 2.0 : f32
%vx = pto.make_tensor_view %x, shape = [%n, %c64], strides = [%c64, %c1] : {VIEW}
%vy = pto.make_tensor_view %y, shape = [%n, %c64], strides = [%c64, %c1] : {VIEW}
%m = pto.alloc_multi_tile : !pto.multi_tile_buf<vec, 1x64xf32, count=2>
scf.for %s = %c0 to %c2 step %c1 {{
  pto.set_flag_dyn[<PIPE_MTE3>, <PIPE_MTE2>, %s]
}}
scf.for %i = %c0 to %n step %c1 {{
  %s = arith.remsi %i, %c2 : index
  %t = pto.multi_tile_get %m[%s] : !pto.multi_tile_buf<vec, 1x64xf32, count=2> -> {TILE}
  %px = pto.partition_view %vx, offsets = [%i, %c0], sizes = [%c1, %c64] : {VIEW} -> {ROW_PART}
  %py = pto.partition_view %vy, offsets = [%i, %c0], sizes = [%c1, %c64] : {VIEW} -> {ROW_PART}
  pto.wait_flag_dyn[<PIPE_MTE3>, <PIPE_MTE2>, %s]
  pto.tload ins(%px : {ROW_PART}) outs(%t : {TILE})
  pto.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]
  pto.wait_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]
  pto.tmuls ins(%t, %two : {TILE}, f32) outs(%t : {TILE})
  pto.set_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID0>]
  pto.wait_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID0>]
  pto.tstore ins(%t : {TILE}) outs(%py : {ROW_PART})
  pto.set_flag_dyn[<PIPE_MTE3>, <PIPE_MTE2>, %s]
}}
scf.for %s = %c0 to %c2 step %c1 {{
  pto.wait_flag_dyn[<PIPE_MTE3>, <PIPE_MTE2>, %s]
}}
pto.barrier <PIPE_ALL>
return
}}
"""


@pytest.mark.parametrize("name", ["a2a3", "a5"])
@pytest.mark.parametrize("trips", [1, 2, 7])
def test_two_slots_take_turns(name: str, trips: int, tmp_path: Path) -> None:
    """In order on both engines, and faster than with one id, which lets a load wait for the store before it."""
    path = kernel_file(tmp_path, LOOP)
    x = np.random.default_rng(trips).standard_normal((trips, 64)).astype("<f4")
    made = run(path, name, inputs={"x": x}, args={"n": trips})
    assert np.array_equal(made.outputs["y"].view("<f4").reshape(trips, 64), 2 * x)
    assert not made.races
    assert made.cycles == run(path, name, inputs={"x": x}, args={"n": trips}, engine="event").cycles
    path.write_text(LOOP.replace("%i, %c2 : index", "%i, %c1 : index").replace("%c0 to %c2", "%c0 to %c1"))
    one = run(path, name, inputs={"x": x}, args={"n": trips})
    assert (one.cycles > made.cycles) is (trips > 1)


def test_a_missing_flag_is_found(tmp_path: Path) -> None:
    path = kernel_file(tmp_path, "\n".join(line for line in LOOP.splitlines() if "_dyn" not in line))
    assert run(path, "a5", timing_only=True, args={"n": 5}, races="report").races


def test_they_are_printed_as_they_are_read() -> None:
    parsed = parse(LOOP, "k.pto")
    assert parse(print_program(parsed), "k.pto") == parsed


WAIT = "pto.wait_flag_dyn[<PIPE_MTE3>, <PIPE_MTE2>, %s]"


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("%s = arith.remsi %i, %c2 : index", "%s = arith.addi %c64, %i : index", "event"),
        (WAIT, WAIT.replace("%s", "<EVENT_ID0>"), "expected a value"),
        (WAIT, WAIT.replace("%s", "%two"), "used as index"),
    ],
)
def test_refusals(before: str, after: str, message: str, tmp_path: Path) -> None:
    path = kernel_file(
        tmp_path,
        LOOP.replace(before, after).replace("%t = pto.multi_tile_get %m[%s]", "%t = pto.multi_tile_get %m[%c0]"),
    )
    with pytest.raises(CastsimError, match=message) as caught:
        run(path, "a5", timing_only=True, args={"n": 3})
    assert caught.value.span is not None


EMPTY = ((0, 32), (8, 0), (0, 0))


def tile(element: str = "f32", pad: int = 0) -> str:
    return f"!pto.tile_buf<vec, 8x32x{element}, valid=?x?{f', pad={pad}' if pad else ''}>"


COLUMN = "!pto.tile_buf<vec, 8x1xf32, valid=?x?, blayout=col_major>"


def written(name: str, form: tuple[Role, ...], rows: int, cols: int) -> str:
    operation = VECTOR_OPERATIONS[name]
    kind = operation.kind
    lines = [f"%f = arith.constant 2.0 : f32\n%r = arith.constant {rows} : index\n%q = arith.constant {cols} : index"]
    operands: list[tuple[str, str]] = []

    def add(kind: str, valid_row: str = "%r", valid_col: str = "%q") -> tuple[str, str]:
        lines.append(f"%t{len(lines)} = pto.alloc_tile valid_row = {valid_row} valid_col = {valid_col} : {kind}")
        return f"%t{len(lines) - 1}", kind

    for role in form:
        if role is Role.SCALAR:
            operands.append(("%f", "f32"))
        elif role is Role.MASK:
            operands.append(add(tile("i8")))
        elif kind is Kind.ROW_BROADCAST and len(operands) == 1:
            operands.append(add(COLUMN, "%r", "%c1"))
        else:
            operands.append(add(tile()))
    match kind:
        case Kind.ROW_REDUCE | Kind.ROW_ARGUMENT:
            dst = add(COLUMN.replace("f32", "i32") if kind.gives_places else COLUMN, "%r", "%c1")
        case Kind.COLUMN_REDUCE | Kind.COLUMN_ARGUMENT:
            dst = add(tile("i32" if kind.gives_places else "f32"), "%c1", "%q")
        case Kind.COMPARE:
            dst = add(tile("i8"))
        case _:
            dst = add(tile())
    flag = " {isBinary = true}" if operation.attribute == "isBinary" and len(operands) > 1 else ""
    names, types = (", ".join(each) for each in zip(*operands, strict=True)) if operands else ("", "")
    return "\n".join([*lines, f"pto.{name} ins({names}{flag} : {types}) outs({dst[0]} : {dst[1]})"])


REARRANGING = (Kind.RAMP, Kind.GATHER, Kind.TRANSPOSE, Kind.CONCATENATE, Kind.COUNTED_CONCATENATE)
REARRANGING += (Kind.PATTERN_GATHER, Kind.COMPARE_GATHER, Kind.SORT, Kind.MERGE)
REARRANGING += (Kind.QUANTISE, Kind.DEQUANTISE, Kind.PACK, Kind.BLOCK_QUANTISE, Kind.BOX)  # in test_tile_quantisation
REARRANGING += STRUCTURES["combination"].kinds  # in test_combined_operations
"""Operations whose operands have shapes of their own; `test_combined_operations` has them without elements too."""

# A fill has work to do where its source is empty; its rows are those of the destination.
FORMS = [
    (name, form)
    for name, operation in VECTOR_OPERATIONS.items()
    for form in operation.forms
    if operation.kind not in (Kind.FILL, *REARRANGING) and form
]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("name", "form"), FORMS, ids=lambda part: part if isinstance(part, str) else "".join(part))
def test_no_element_no_work(name: str, form: tuple[Role, ...], target: str, tmp_path: Path):
    rule = load_target(target).tile_operation(name)
    if rule is None or (rule.tmp == "refused" and Role.TMP in form) or "f32" not in rule.types:
        pytest.skip(f"{target} does not take it")
    for rows, cols in EMPTY:
        file = kernel_file(tmp_path, kernel(written(name, form, rows, cols), "%x: !pto.ptr<f32>"))
        found = load_program(file, target, None, {})
        assert not touched(found.executed), (rows, cols)
        nothing = of_kind(found.executed.warnings, WarningKind.OPERATION)
        by_rows = VECTOR_OPERATIONS[name].kind in (Kind.ROW_REDUCE, Kind.ROW_ARGUMENT)
        reduces = by_rows or VECTOR_OPERATIONS[name].kind in (Kind.COLUMN_REDUCE, Kind.COLUMN_ARGUMENT)
        kept = reduces and (rows if by_rows else cols)
        assert ("keeps its contents" in "".join(nothing)) is bool(kept)
