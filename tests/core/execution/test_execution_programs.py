"""Arguments, views, index arithmetic and loops of a program; loops cut into pieces do what walking every trip does."""

# A `.pto` statement stays on one line.
# ruff: noqa: E501

from __future__ import annotations

import os
import struct
from contextlib import AbstractContextManager, nullcontext
from fractions import Fraction
from itertools import product
from math import ceil, floor, isnan, trunc
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from kit.execution_programs import issued, kernel, loops, moved, touched, walk
from kit.loop_programs import NARROW, Maker
from kit.walker_cases import X32, Y16, Plain, both, in_a_row, loop, program, step

from castsim.engines import simulate
from castsim.execution.interpreter import interpreter
from castsim.execution.interpreter.interpreter import Executed
from castsim.execution.interpreter.rerolling import LONGEST_PERIOD, DependentScalar, Pieces
from castsim.execution.interpreter.scalar_values import arithmetic, compare, convert, width_of
from castsim.execution.tree import Block, Loop, Lowered, Node
from castsim.isa.errors import CastsimError, IllegalError, ReadError, Span, TileError
from castsim.machines.mechanisms import compute_of
from castsim.targets.loader import load_target


# --------------------------------------------------------------------------------------------------------- arguments
def use(text: str, name: str, args: dict[str, int] | None = None) -> object:
    return walk(text, args).arguments[name]


def test_needs_input_and_output() -> None:
    found = walk(program(step("%c0"))).arguments
    assert (found["x"].needs_input, found["x"].stored) == (True, False)
    assert (found["y"].needs_input, found["y"].stored) == (False, True)


def test_loaded_only_after_it_was_stored() -> None:
    part = "!pto.partition_tensor_view<16x64xf16>"
    again = f"pto.tload ins(%py : {part}) outs(%b : {Y16})\n"
    assert not use(program(step("%c0") + again), "y").needs_input
    reverse = step("%c0").replace("pto.tload ins(%px", again + "pto.tload ins(%px")
    found = use(program(reverse), "y")
    assert (found.needs_input, found.stored) == (True, True)
    # In a loop the load of the first trip comes before every store.
    assert use(program(loop(reverse.replace("%c0, %c0]", "%i, %c0]"), upper="%c64")), "y").needs_input


def view(shape: str, strides: str, kind: str, name: str = "v") -> str:
    return (
        f"%{name} = pto.make_tensor_view %x, shape = [{shape}], strides = [{strides}] : !pto.tensor_view<{kind}xf32>\n"
    )


@pytest.mark.parametrize(
    ("shape", "strides", "elements"),
    [
        ("%c16, %c64", "%c64, %c1", 1024),
        ("%c16, %c64", "%c128, %c1", 15 * 128 + 64),  # 1 + sum((extent - 1) * stride)
        ("%c16, %c64", "%c1, %c16", 15 + 63 * 16 + 1),
        ("%c2, %c3, %c64", "%c256, %c64, %c1", 256 + 128 + 64),
        ("%c0, %c64", "%c64, %c1", 0),
        ("%c4, %c64", "%c0, %c1", 64),
    ],
)
def test_argument_size(shape: str, strides: str, elements: int) -> None:
    assert use(kernel(view(shape, strides, "x".join("?" * len(shape.split(","))))), "x").elements == elements


def test_extents_from_scalar_arguments() -> None:
    text = kernel(view("%n, %c64", "%c64, %c1", "?x64"), "%x: !pto.ptr<f32>, %n: index")
    assert use(text, "x", {"n": 5}).elements == 320
    with pytest.raises(ReadError, match="%n") as caught:
        walk(text)
    assert caught.value.legal == ("--arg n=VALUE",)
    with pytest.raises(ReadError, match="'m'") as caught:
        walk(text, {"m": 5})
    assert "n" in caught.value.legal
    with pytest.raises(ReadError):
        walk(text, {"n": 5, "x": 1})
    with pytest.raises(CastsimError, match="negative"):
        walk(text, {"n": -5})


def of_i32(body: str) -> str:
    return kernel(f"%r = arith.index_cast %n : i32 to index\n{body}", "%x: !pto.ptr<f32>, %n: i32")


@pytest.mark.parametrize("value", [2.5, 2**32, -(2**31) - 1, float("nan"), float("inf")])
def test_scalar_argument_that_is_not_of_its_type(value: float) -> None:
    with pytest.raises(ReadError, match=r"argument %n"):
        walk(of_i32(""), {"n": value})


def test_unsigned_reading_of_a_scalar_argument() -> None:
    # 0xFFFFFFFF for an i32 is -1, as it would be in a register.
    text = of_i32("%s = arith.addi %r, %c8 : index\n" + view("%s", "%c1", "?"))
    assert use(text, "x", {"n": 0xFFFFFFFF}).elements == use(text, "x", {"n": -1}).elements == 7


def test_view_extents_contradict_the_type() -> None:
    text = kernel(view("%n, %c64", "%c64, %c1", "8x64"), "%x: !pto.ptr<f32>, %n: index")
    with pytest.raises(TileError, match=r"8 x 64.*9 x 64"):
        walk(text, {"n": 9})
    assert use(text, "x", {"n": 8}).elements == 512


@pytest.mark.parametrize(("shape", "strides"), [("%m, %c64", "%c64, %c1"), ("%c4, %c64", "%m, %c1")])
def test_negative_extents_and_strides(shape: str, strides: str) -> None:
    with pytest.raises(CastsimError, match=r"-1|negative"):
        walk(kernel("%m = arith.subi %c0, %c1 : index\n" + view(shape, strides, "?x?")))


def test_partition_sizes_contradict_the_type() -> None:
    part = (
        "%px = pto.partition_view %vx, offsets = [%c0, %c0], sizes = [%n, %c64] : !pto.tensor_view<?x64xf32> -> "
        "!pto.partition_tensor_view<16x64xf32>"
    )
    with pytest.raises(TileError, match=r"16.*8|8.*16") as caught:
        walk(program(part, extra=", %n: index"), {"n": 8})
    assert caught.value.span is not None
    walk(program(part, extra=", %n: index"), {"n": 16})


def test_part_with_fewer_dimensions() -> None:
    text = """
%v = pto.make_tensor_view %x, shape = [%c2, %c1, %c4, %c8, %c64], strides = [%s, %s, %c512, %c64, %c1] : !pto.tensor_view<2x1x4x8x64xf32>
%p = pto.partition_view %v, offsets = [%c0, %c0, %c0, %c0, %c0], sizes = [%c2, %c1, %c4, %c8, %c64] : !pto.tensor_view<2x1x4x8x64xf32> -> !pto.partition_tensor_view<64x64xf32>
%t = pto.alloc_tile : !pto.tile_buf<vec, 64x64xf32>
pto.tload ins(%p : !pto.partition_tensor_view<64x64xf32>) outs(%t : !pto.tile_buf<vec, 64x64xf32>)
"""
    head = "%s = arith.constant 2048 : index\n%c512 = arith.constant 512 : index\n"
    # One transfer per index of the three leading dimensions: 2 x 1 x 4.
    assert len(moved(walk(kernel(head + text)), "tload")) == 8


@pytest.mark.parametrize(("rank", "allowed"), [(1, nullcontext()), (6, pytest.raises(CastsimError))])
def test_views_of_other_ranks(rank: int, allowed: AbstractContextManager[object]) -> None:
    dims, ones, noughts = "x".join("?" * rank), ", ".join(["%c1"] * rank), ", ".join(["%c0"] * rank)
    part = f"%p = pto.partition_view %v, offsets = [{noughts}], sizes = [{ones}] : !pto.tensor_view<{dims}xf32> -> !pto.partition_tensor_view<{dims}xf32>"
    with allowed:
        walk(kernel(view(ones, ones, dims) + part))


NOWHERE = Span("t.pto", 1, 1)
WIDTHS = {"i8": 8, "i16": 16, "i32": 32, "i64": 64, "index": 64}


def wrap(value: int, width: int) -> int:
    """Two's complement by way of bytes."""
    return int.from_bytes((value % (1 << width)).to_bytes(width // 8, "little"), "little", signed=True)


def magnitude(value: int, width: int) -> int:
    return value % (1 << width)


REFERENCE = {
    "addi": lambda a, b, w: a + b,
    "subi": lambda a, b, w: a - b,
    "muli": lambda a, b, w: a * b,
    "divsi": lambda a, b, w: trunc(Fraction(a, b)),
    "remsi": lambda a, b, w: a - b * trunc(Fraction(a, b)),
    "divui": lambda a, b, w: magnitude(a, w) // magnitude(b, w),
    "remui": lambda a, b, w: magnitude(a, w) % magnitude(b, w),
    "ceildivsi": lambda a, b, w: ceil(Fraction(a, b)),
    "floordivsi": lambda a, b, w: floor(Fraction(a, b)),
    "ceildivui": lambda a, b, w: ceil(Fraction(magnitude(a, w), magnitude(b, w))),
    "minsi": lambda a, b, w: sorted((a, b))[0],
    "maxsi": lambda a, b, w: sorted((a, b))[1],
    "minui": lambda a, b, w: sorted((magnitude(a, w), magnitude(b, w)))[0],
    "maxui": lambda a, b, w: sorted((magnitude(a, w), magnitude(b, w)))[1],
    "andi": lambda a, b, w: a & b,
    "ori": lambda a, b, w: a | b,
    "xori": lambda a, b, w: a ^ b,
    # Shifts by the width or more are undefined in MLIR; here the bits are all shifted out.
    "shli": lambda a, b, w: a * 2 ** min(magnitude(b, w), w),
    "shrui": lambda a, b, w: magnitude(a, w) // 2 ** min(magnitude(b, w), w),
    "shrsi": lambda a, b, w: a // 2 ** min(magnitude(b, w), w),
}


@st.composite
def operands(draw: st.DrawFn) -> tuple[str, int, int]:
    kind = draw(st.sampled_from(sorted(WIDTHS)))
    limit = 1 << (WIDTHS[kind] - 1)
    corners = st.sampled_from([-limit, limit - 1, 1 - limit])
    number = st.one_of(st.integers(-limit, limit - 1), st.integers(-3, 70), corners)
    return kind, *(max(-limit, min(limit - 1, draw(number))) for _ in range(2))


def scalars(*values: float) -> list[DependentScalar]:
    return [DependentScalar(value) for value in values]


@pytest.mark.parametrize("operation", sorted(REFERENCE))
@given(operands())
@example(("i8", -128, -1))
@example(("i64", -(2**63), -1))
@example(("i32", 1, 32))
@example(("i8", -1, -1))
def test_arithmetic(operation: str, drawn: tuple[str, int, int]) -> None:
    kind, a, b = drawn
    if b == 0 and ("div" in operation or "rem" in operation):
        with pytest.raises(ReadError, match="zero"):
            arithmetic(operation, scalars(a, b), WIDTHS[kind], NOWHERE)
        return
    got = arithmetic(operation, scalars(a, b), WIDTHS[kind], NOWHERE).value
    assert got == wrap(REFERENCE[operation](a, b, WIDTHS[kind]), WIDTHS[kind])


@given(operands())
@example(("i8", -1, 1))
def test_comparison(drawn: tuple[str, int, int]) -> None:
    kind, a, b = drawn
    width = WIDTHS[kind]
    signed = [np.array(v, f"i{width // 8}") for v in (a, b)]
    unsigned = [v.view(f"u{width // 8}") for v in signed]
    for predicate, function in (("lt", np.less), ("le", np.less_equal), ("gt", np.greater), ("ge", np.greater_equal)):
        for prefix, pair in (("s", signed), ("u", unsigned)):
            assert compare(prefix + predicate, *scalars(a, b), width).value == int(function(*pair))
    assert compare("eq", *scalars(a, b), width).value == int(a == b)
    assert compare("ne", *scalars(a, b), width).value == int(a != b)


def test_comparison_of_truth_values() -> None:
    # i1: true is 1; read as a signed bit it is -1, so signed comparison has true below false (MLIR arith.cmpi).
    assert compare("slt", *scalars(1, 0), 1).value == 1
    assert compare("sge", *scalars(1, 0), 1).value == 0
    for a, b in product((0, 1), repeat=2):
        wanted = {"eq": a == b, "ne": a != b, "ult": a < b, "ule": a <= b, "ugt": a > b, "uge": a >= b}
        assert {name: compare(name, *scalars(a, b), 1).value for name in wanted} == wanted


@given(operands(), st.booleans())
def test_select(drawn: tuple[str, int, int], condition: bool) -> None:
    kind, a, b = drawn
    got = arithmetic("select", scalars(int(condition), a, b), WIDTHS[kind], NOWHERE)
    assert got.value == (a if condition else b)


@given(operands(), st.sampled_from(sorted(WIDTHS)))
def test_width_changes(drawn: tuple[str, int, int], to: str) -> None:
    kind, value, _ = drawn
    unsigned = magnitude(value, WIDTHS[kind])
    exact = {"index_cast": value, "extsi": value, "trunci": value, "extui": unsigned, "index_castui": unsigned}
    for operation, wanted in exact.items():
        assert convert(operation, DependentScalar(value), kind, to).value == wrap(wanted, WIDTHS[to])


@pytest.mark.parametrize(
    ("operation", "value", "kind", "to", "wanted"),
    [
        ("extui", 1, "i1", "i32", 1),
        ("index_castui", 1, "i1", "index", 1),
        ("trunci", 6, "i32", "i1", 0),
        ("trunci", 7, "i32", "i1", 1),
        ("extsi", 1, "i1", "i32", -1),  # MLIR: sign-extending true gives all ones
        ("index_cast", 1, "i1", "index", -1),
    ],
)
def test_truth_values_and_integers(operation: str, value: int, kind: str, to: str, wanted: int) -> None:
    assert convert(operation, DependentScalar(value), kind, to).value == wanted


@given(st.integers(0, 2**32 - 1))
def test_bitcast_of_floats(bits: int) -> None:
    for kind, integer, code in (("f32", "i32", "f"), ("f64", "i64", "d"), ("f16", "i16", "e")):
        width = width_of(integer)
        pattern = bits % (1 << width)
        (number,) = struct.unpack(f"<{code}", pattern.to_bytes(width // 8, "little"))
        if isnan(number):
            continue  # a Python float does not keep a NaN's payload
        assert convert("bitcast", DependentScalar(wrap(pattern, width)), integer, kind).value == number
        assert convert("bitcast", DependentScalar(number), kind, integer).value == wrap(pattern, width)
    number = float(np.array(bits >> 16, np.uint16).view(ml_dtypes.bfloat16))
    if not isnan(number):
        assert convert("bitcast", DependentScalar(wrap(bits >> 16, 16)), "i16", "bf16").value == number
        assert convert("bitcast", DependentScalar(number), "bf16", "i16").value == wrap(bits >> 16, 16)


# Decimals are rounded to their type before anything looks at their bits: 0.1 as f32 is 0x3DCCCCCD, 1/3 as bf16 0x3EAB.
@pytest.mark.parametrize(
    ("text", "kind", "integer", "bits"),
    [
        ("0.1", "f32", "i32", 0x3DCCCCCD), ("0.3333333333", "bf16", "i16", 0x3EAB), ("0.1", "f16", "i16", 0x2E66),
        ("65519.9", "f16", "i16", 0x7BFF), ("0x7F800000", "f32", "i32", 0x7F800000),
        ("1.0e39", "f32", "i32", 0x7F800000), ("1.0e6", "f16", "i16", 0x7C00),
    ],
)  # fmt: skip
def test_constant_bits_steer_an_extent(text: str, kind: str, integer: str, bits: int) -> None:
    head = f"%f = arith.constant {text} : {kind}\n%b = arith.bitcast %f : {kind} to {integer}\n"
    body = f"{head}%r = arith.index_castui %b : {integer} to index\n{view('%r', '%c1', '?')}"
    assert use(kernel(body), "x").elements == bits


# ------------------------------------------------------------------------------------------------------------- loops
def loaded(found: Executed) -> list[int]:
    transfers = moved(found, "tload")
    assert not any(address % 256 or at for address, at in transfers)
    return [address // 256 for address, _ in transfers]


def test_affine_loop_is_one_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    found = both(program(loop(step())), monkeypatch)
    (only,) = loops(found.tree.root)
    assert only.trips == 16
    assert moved(found, "tload") == [(row * 64 * 4, 0) for row in range(0, 256, 16)]
    # The result lies in another bank than the source, 64 KiB on.
    assert moved(found, "tstore") == [(row * 64 * 2, 65536) for row in range(0, 256, 16)]


@pytest.mark.parametrize(
    ("lower", "upper", "by", "first_rows"),
    [
        ("%c0", "%c64", "%c16", [0, 16, 32, 48]),
        ("%c3", "%c64", "%c32", [3, 35]),
        ("%c0", "%c1", "%c16", [0]),  # one trip
        ("%c2", "%c3", "%c128", [2]),
        ("%c0", "%c0", "%c16", []),
        ("%c64", "%c16", "%c16", []),  # backwards: no trip
        ("%c0", "%c64", "%c4", list(range(0, 64, 4))),  # overlapping parts
    ],
)
def test_bounds(lower: str, upper: str, by: str, first_rows: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    assert loaded(both(program(loop(step(), lower, upper, by)), monkeypatch)) == first_rows


def test_step_that_never_ends_is_refused() -> None:
    for value in (0, -4):
        with pytest.raises(CastsimError, match=f"step.*{value}") as caught:  # known to the reader
            walk(program(f"%s = arith.constant {value} : index\n{loop(step(), by='%s')}"))
        assert caught.value.span is not None
        with pytest.raises(ReadError, match=f"step {value}") as caught:  # known to the walk only
            walk(program(loop(step(), by="%s"), extra=", %s: index"), {"s": value})
        assert caught.value.span is not None


def test_index_arithmetic_that_stays_affine(monkeypatch: pytest.MonkeyPatch) -> None:
    body = "%t = arith.muli %i, %c32 : index\n%u = arith.addi %t, %c3 : index\n%v = arith.subi %u, %c2 : index\n"
    found = both(program(loop(body + step("%v"), upper="%c8", by="%c2")), monkeypatch)
    assert isinstance(found.tree.root.items[-1], Loop)
    assert loaded(found) == [i * 32 + 1 for i in (0, 2, 4, 6)]


def branch(condition: str, yes: str, no: str) -> str:
    return f"%q = arith.cmpi {condition} : index\nscf.if %q {{{yes}}} else {{{no}}}"


ZERO_EXTENDED = """
%s = arith.subi %i, %c2 : index
%t8 = arith.index_cast %s : index to i8
%r = arith.index_castui %t8 : i8 to index
"""


@pytest.mark.parametrize(
    ("body", "row"),
    [
        ("%r = arith.muli %i, %i : index", lambda i: i * i),
        ("%r = arith.minsi %i, %c3 : index", lambda i: min(i, 3)),
        ("%r = arith.maxsi %i, %c3 : index", lambda i: max(i, 3)),
        ("%r = arith.remsi %i, %c3 : index", lambda i: i % 3),
        ("%r = arith.divui %i, %c2 : index", lambda i: i // 2),
        ("%r = arith.xori %i, %c1 : index", lambda i: i ^ 1),
        ("%r = arith.shli %i, %c1 : index", lambda i: i << 1),
        ("%q = arith.cmpi slt, %i, %c4 : index\n%r = arith.select %q, %i, %c1 : index", lambda i: i if i < 4 else 1),
        (ZERO_EXTENDED, lambda i: (i - 2) % 256),  # of a negative value in the first trips
    ],
)
def test_index_arithmetic_that_does_not(body: str, row: object, monkeypatch: pytest.MonkeyPatch) -> None:
    text = program(loop(body + "\n" + step("%r"), upper="%c8", by="%c1"))
    assert loaded(both(text, monkeypatch)) == [row(i) for i in range(8)]


@pytest.mark.parametrize(
    ("body", "upper", "rows"),
    [
        # The inner bound is the outer variable: the outer loop cannot be summarised, the inner ones can.
        (f"scf.for %j = %c0 to %i step %c1 {{{step('%j')}}}", 4, [j for i in range(4) for j in range(i)]),
        (branch("sge, %i, %c4", step("%i"), step("%c64")), 8, [64, 64, 64, 64, 4, 5, 6, 7]),
        # First, second and last trip look alike: only walking all of them finds trip 6.
        (branch("eq, %i, %c6", step("%c64"), "") + step("%i"), 8, [0, 1, 2, 3, 4, 5, 64, 6, 7]),
    ],
    ids=["triangle", "branch_on_the_variable", "branch_taken_in_the_last_but_one_trip_only"],
)
def test_loops_whose_trips_differ(body: str, upper: int, rows: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    text = program("%c6 = arith.constant 6 : index\n" + loop(body, upper=f"%c{upper}", by="%c1"))
    assert loaded(both(text, monkeypatch)) == rows


def test_wrapping_narrow_arithmetic_in_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two truncations that cancel in the first, second and last trip, but not between."""
    # t = i mod 256 and u = (i + 64) mod 256, both read as signed 8 bits; 64 + t - u is 0 except for i in 64 .. 127,
    # where u has wrapped and t has not: 256. Likewise with products in 8 bits.
    narrow = """
%w = arith.addi %i, %c64 : index
%t8 = arith.index_cast %i : index to i8
%u8 = arith.index_cast %w : index to i8
%t = arith.index_cast %t8 : i8 to index
%u = arith.index_cast %u8 : i8 to index
%d = arith.subi %t, %u : index
%r = arith.addi %d, %c64 : index
"""
    text = program("%n = arith.constant 301 : index\n" + loop(narrow + step("%r"), upper="%n", by="%c1"))
    wanted = [64 + wrap(i, 8) - wrap(i + 64, 8) for i in range(301)]
    assert set(wanted) == {0, 256}
    assert wanted[0] == wanted[1] == wanted[300]
    assert loaded(both(text, monkeypatch)) == wanted


def test_part_outside_the_view_in_the_last_trip_is_found() -> None:
    with pytest.raises(TileError, match=r"exceed the view of 100 x 64") as caught:
        walk(program(loop(step()), rows=100))
    assert caught.value.span is not None
    assert caught.value.span.text.lstrip().startswith("%px")


def test_loop_carried_tiles_swap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ping-pong buffers: the tiles change places in every trip."""
    body = f"""
%a2 = pto.alloc_tile : {X32}
%l:2 = scf.for %i = %c0 to %c64 step %c16 iter_args(%p = %a, %q = %a2) -> ({X32}, {X32}) {{
%px = pto.partition_view %vx, offsets = [%i, %c0], sizes = [%c16, %c64] : !pto.tensor_view<?x64xf32> -> !pto.partition_tensor_view<16x64xf32>
pto.tload ins(%px : !pto.partition_tensor_view<16x64xf32>) outs(%p : {X32})
pto.tcvt ins(%p : {X32}) outs(%b : {Y16})
scf.yield %q, %p : {X32}, {X32}
}}
"""
    found = both(program(body), monkeypatch)
    # The second tile of 4 KiB follows the first one at the other half of the groups, as sources of one cast do.
    assert moved(found, "tload") == [(row * 256, at) for row, at in ((0, 0), (16, 4352), (32, 0), (48, 4352))]


def test_loop_carried_scalar(monkeypatch: pytest.MonkeyPatch) -> None:
    head = "%l = scf.for %i = %c0 to %c4 step %c1 iter_args(%s = %c1) -> (index) {\n%t = arith.muli %s, %c2 : index\n"
    body = f"{head}{step('%s')}scf.yield %t : index\n}}\n{step('%l')}"
    assert loaded(both(program(body), monkeypatch)) == [1, 2, 4, 8, 16]


def test_branch_yields_views(monkeypatch: pytest.MonkeyPatch) -> None:
    part = "!pto.partition_tensor_view<16x64xf32>"
    pick = f"%{{0}} = pto.partition_view %vx, offsets = [{{1}}, %c0], sizes = [%c16, %c64] : !pto.tensor_view<?x64xf32> -> {part}\nscf.yield %{{0}} : {part}"
    body = f"""
%q = arith.cmpi slt, %i, %c32 : index
%p = scf.if %q -> ({part}) {{
{pick.format("p1", "%i")}
}} else {{
{pick.format("p2", "%c128")}
}}
pto.tload ins(%p : {part}) outs(%a : {X32})
"""
    assert loaded(both(program(loop(body, upper="%c64")), monkeypatch)) == [0, 16, 128, 128]


def test_huge_loop_is_summarised() -> None:
    text = program("%n = arith.constant 1000000000000 : index\n" + loop(step("%c0"), upper="%n", by="%c1"))
    (only,) = loops(walk(text).tree.root)
    assert only.trips == 10**12


def test_flags_and_barriers_in_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    body = (
        f"pto.set_flag[<PIPE_V>, <PIPE_MTE2>, <EVENT_ID0>]{step()}pto.wait_flag[<PIPE_V>, <PIPE_MTE2>, <EVENT_ID0>]\n"
    )
    found = both(program(loop(body) + "\npto.barrier <PIPE_ALL>"), monkeypatch)
    assert not found.tree.interlocked
    names = [name for name, _ in issued(found)]
    assert names.count("set_flag V -> MTE2 id 0") == names.count("wait_flag V -> MTE2 id 0") == 16
    assert walk(program(loop(step()))).tree.interlocked


# ----------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize("kind", ["cube", "vector"])
def test_sections(kind: str) -> None:
    assert walk(program(f"pto.section.{kind} {{{step('%c0')}}}")).tree.interlocked


@pytest.mark.parametrize("operation", ["divsi", "remsi", "divui", "remui"])
def test_division_by_zero_is_refused(operation: str) -> None:
    with pytest.raises(ReadError, match="zero") as caught:
        walk(kernel(f"%r = arith.{operation} %c8, %c0 : index"))
    assert caught.value.span is not None


@pytest.mark.parametrize("pipe", ["PIPE_MTE4", "PIPE_MTE5", "PIPE_V2"])
def test_pipes_that_the_chip_lacks(pipe: str) -> None:
    with pytest.raises(IllegalError, match=pipe.removeprefix("PIPE_")):
        walk(program(f"pto.barrier <{pipe}>"))
    with pytest.raises(IllegalError):
        walk(program(f"pto.set_flag[<PIPE_V>, <{pipe}>, <EVENT_ID0>]"))


PARTS = 4
THOROUGH = "CASTSIM_THOROUGH" in os.environ
PROGRAMS = 20_000 if THOROUGH else 140
TIMED = 1 if THOROUGH else 4
"""Of so many programs, one is simulated too."""
COMPUTED = 1_000 if THOROUGH else 25


def outcome(text: str, name: str) -> Any:
    """The walked program, or what it is refused for: the kind of error and its line."""
    try:
        return walk(text, target=load_target(name))
    except CastsimError as error:
        assert error.span is not None
        return type(error), error.span.line


def size(node: Node) -> int:
    """Executed instructions that a tree holds, whatever its loops repeat."""
    if isinstance(node, Loop):
        return size(node.body)
    return sum(map(size, node.items)) if isinstance(node, Block) else int(isinstance(node, Lowered))


@pytest.mark.parametrize("part", range(PARTS))
def test_pieces_are_the_walk_trip_by_trip(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    smaller = refused = 0
    for seed in range(part, PROGRAMS, PARTS):
        text = Maker(seed, narrow=seed % 3 == 0).text()
        name = "a5" if seed % 5 == 0 else "a2a3"
        found = outcome(text, name)
        with monkeypatch.context() as patch:
            patch.setattr(interpreter, "Pieces", Plain)
            patch.setattr(interpreter, "fold", in_a_row)
            plain = outcome(text, name)
        if not isinstance(plain, Executed):
            refused += 1
            assert type(found) is tuple and found[0] is plain[0], seed
            continue
        assert issued(found) == issued(plain), seed
        assert touched(found) == touched(plain), seed
        assert (found.arguments, found.warnings) == (plain.arguments, plain.warnings), seed
        smaller += size(found.tree.root) < size(plain.tree.root) / 2
        if seed // PARTS % TIMED:
            continue
        one, other = (simulate(each.tree, load_target(name)) for each in (found, plain))
        assert (one.total, one.pipes) == (other.total, other.pipes), seed
        assert list(one.executions) == [
            type(each)(number, each.start, each.end)
            for each, number in zip(other.executions, (each.instruction for each in one.executions), strict=True)
        ], seed
    # Neither is the rule: a program that is refused says little, one that stays as long says less.
    assert smaller > PROGRAMS / PARTS / 5
    assert refused < PROGRAMS / PARTS / 3


def test_pieces_compute_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    target = load_target("a2a3")
    rng = np.random.default_rng(5)
    source = rng.integers(0, 256, (NARROW + 16) * 64 * 4, np.uint8)
    for seed in range(COMPUTED):
        text = Maker(seed, narrow=True).text()
        memories = []
        for each in (Pieces, Plain):
            with monkeypatch.context() as patch:
                patch.setattr(interpreter, "Pieces", each)
                tree = walk(text).tree
            buffer = np.zeros(target.memories["ub"].capacity_bytes, np.uint8)
            far = {"x": source.copy(), "y": np.zeros((NARROW + 16) * 64 * 2, np.uint8)}
            compute_of(target)(tree, buffer, far)
            memories.append((buffer.tobytes(), far["y"].tobytes()))
        assert memories[0] == memories[1], seed


BRANCH = "%q = arith.cmpi {0}, %i, {1} : index\nscf.if %q {{" + step("%c3") + "}} else {{" + step("%c0") + "}}\n"

HUGE = {
    "branch": BRANCH.format("slt", "%c3"),
    "branch from the end": "%d = arith.subi %n, %i : index\n%q = arith.cmpi sle, %d, %c3 : index\n"
    "scf.if %q {" + step("%c1") + "}",
    "one trip": BRANCH.format("eq", "%h"),
    "all but one trip": BRANCH.format("ne", "%h"),
    "unsigned": BRANCH.format("ugt", "%h"),
    "remainder": "%r = arith.remui %i, %c3 : index\n" + step("%r"),
    "quotient": "%r = arith.divui %i, %c64 : index\n%s = arith.remsi %r, %c8 : index\n" + step("%s"),
    "last bits": "%r = arith.andi %i, %c3 : index\n" + step("%r"),
    "other one of two": "%r = arith.xori %i, %c1 : index\n%s = arith.remui %r, %c32 : index\n" + step("%s"),
    "every third trip": "%r = arith.remui %i, %c3 : index\n" + BRANCH.replace("%i", "%r").format("eq", "%c0"),
    "both": "%r = arith.remui %i, %c3 : index\n" + BRANCH.format("sge", "%h") + step("%r"),
    "smaller": "%r = arith.minsi %i, %c32 : index\n" + step("%r"),
    "select": "%q = arith.cmpi slt, %i, %c32 : index\n%r = arith.select %q, %i, %c1 : index\n" + step("%r"),
    "byte": "%w = arith.index_cast %i : index to i8\n%r = arith.index_castui %w : i8 to index\n" + step("%r"),
    "inner loop": "scf.for %j = %c0 to %n step %c1 {\n"
    "%s = arith.addi %i, %j : index\n%r = arith.remui %s, %c3 : index\n" + step("%r") + "}\n",
    "flat index": "scf.for %j = %c0 to %c16 step %c1 {\n%m = arith.muli %i, %c16 : index\n"
    "%s = arith.addi %m, %j : index\n%q = arith.cmpi slt, %s, %h : index\nscf.if %q {" + step("%j") + "}\n}\n",
}


@pytest.mark.parametrize("body", HUGE.values(), ids=list(HUGE))
def test_a_huge_loop_is_walked_at_once(body: str) -> None:
    """10^12 trips; `%h` is half of them and one: nothing but what is known of the pieces ends this walk."""
    named = "%n = arith.constant 1000000000000 : index\n%h = arith.constant 500000000001 : index\n"
    found = walk(program(named + loop(body, upper="%n", by="%c1")))
    assert size(found.tree.root) < 3000


@pytest.mark.parametrize("body", [text for name, text in HUGE.items() if name != "inner loop"])
@pytest.mark.parametrize("trips", [1, 2, 7, 60])
def test_a_short_loop_of_the_kind_is_walked_the_same(body: str, trips: int, monkeypatch: pytest.MonkeyPatch) -> None:
    named = f"%n = arith.constant {trips} : index\n%h = arith.constant {trips // 2 + 1} : index\n"
    both(program(named + loop(body, upper="%n", by="%c1")), monkeypatch)


@pytest.mark.parametrize("beyond", [0, 1])
def test_units_are_limited(beyond: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A unit as long as is allowed is walked three times, of a longer one every trip once; both after a first try."""
    walked = 0
    trip = interpreter.Interpreter._trip

    def counting(self: Any, *arguments: Any) -> Any:
        nonlocal walked
        walked += 1
        return trip(self, *arguments)

    monkeypatch.setattr(interpreter.Interpreter, "_trip", counting)
    period = LONGEST_PERIOD + beyond
    named = f"%n = arith.constant {4 * period} : index\n%m = arith.constant {period} : index\n"
    body = "%r = arith.remui %i, %m : index\n" + step("%r")
    walk(program(named + loop(body, upper="%n", by="%c1"), rows=9000))
    assert walked == (3 + beyond) * period + 1
