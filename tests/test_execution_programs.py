"""Arguments, views, index arithmetic and loops of a program, and what the walk of it refuses."""

from __future__ import annotations

import struct
from fractions import Fraction
from math import ceil, floor, isnan, trunc

import ml_dtypes
import numpy as np
import pytest
from execution_programs import issued, kernel, loops, moved, walk
from hypothesis import example, given
from hypothesis import strategies as st
from walker_cases import X32, Y16, both, loop, program, step

from castsim.execution.interpreter.rerolling import DependentScalar
from castsim.execution.interpreter.scalar_values import arithmetic, compare, convert, width_of
from castsim.execution.tree import Block, Loop
from castsim.isa.errors import CastsimError, IllegalError, ReadError, Span, TileError
from castsim.isa.pto import program as pto
from castsim.isa.pto.pto_parser import parse

# A `.pto` statement stays on one line.
# ruff: noqa: E501


# --------------------------------------------------------------------------------------------------------- arguments
def use(text: str, name: str, args: dict[str, int] | None = None) -> object:
    return walk(text, args).arguments[name]


def test_needs_input_and_output() -> None:
    found = walk(program(step("%c0")))
    assert (found.arguments["x"].needs_input, found.arguments["x"].stored) == (True, False)
    assert (found.arguments["y"].needs_input, found.arguments["y"].stored) == (False, True)


def test_loaded_only_after_it_was_stored() -> None:
    part = "!pto.partition_tensor_view<16x64xf16>"
    again = f"pto.tload ins(%py : {part}) outs(%b : {Y16})\n"
    assert not use(program(step("%c0") + again), "y").needs_input
    reverse = step("%c0").replace("pto.tload ins(%px", again + "pto.tload ins(%px")
    found = use(program(reverse), "y")
    assert (found.needs_input, found.stored) == (True, True)
    # In a loop the load of the first trip comes before every store.
    assert use(program(loop(reverse.replace("%c0, %c0]", "%i, %c0]"), upper="%c64")), "y").needs_input


def test_branch_not_taken_does_not_count() -> None:
    body = "%q = arith.cmpi sgt, %i, %c256 : index\nscf.if %q {" + step("%i") + "}"
    found = walk(program(loop(body))).arguments
    assert not found["x"].needs_input
    assert not found["y"].stored


@pytest.mark.parametrize(
    ("shape", "strides", "elements"),
    [
        (["%c16", "%c64"], ["%c64", "%c1"], 1024),
        (["%c16", "%c64"], ["%c128", "%c1"], 15 * 128 + 64),  # 1 + sum((extent - 1) * stride)
        (["%c16", "%c64"], ["%c1", "%c16"], 15 + 63 * 16 + 1),
        (["%c2", "%c3", "%c64"], ["%c256", "%c64", "%c1"], 256 + 128 + 64),
        (["%c0", "%c64"], ["%c64", "%c1"], 0),
        (["%c4", "%c64"], ["%c0", "%c1"], 64),
    ],
)
def test_argument_size(shape: list[str], strides: list[str], elements: int) -> None:
    dims = "x".join("?" * len(shape))
    view = f"%v = pto.make_tensor_view %x, shape = [{', '.join(shape)}], strides = [{', '.join(strides)}] : !pto.tensor_view<{dims}xf32>"
    assert use(kernel(view), "x").elements == elements


def test_argument_size_is_the_largest_view() -> None:
    views = "".join(
        f"%v{n} = pto.make_tensor_view %x, shape = [%c{n}, %c64], strides = [%c64, %c1] : !pto.tensor_view<?x?xf32>\n"
        for n in (4, 16, 8)
    )
    assert use(kernel(views), "x").elements == 1024


def test_extents_from_scalar_arguments() -> None:
    view = "%v = pto.make_tensor_view %x, shape = [%n, %c64], strides = [%c64, %c1] : !pto.tensor_view<?x64xf32>"
    text = kernel(view, "%x: !pto.ptr<f32>, %n: index")
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


@pytest.mark.parametrize("value", [2.5, 2**32, -(2**31) - 1, float("nan"), float("inf")])
def test_scalar_argument_that_is_not_of_its_type(value: float) -> None:
    text = kernel("%r = arith.index_cast %n : i32 to index", "%x: !pto.ptr<f32>, %n: i32")
    with pytest.raises(ReadError, match=r"argument %n"):
        walk(text, {"n": value})


def test_unsigned_reading_of_a_scalar_argument() -> None:
    # 0xFFFFFFFF for an i32 is -1, as it would be in a register.
    text = kernel(
        "%r = arith.index_cast %n : i32 to index\n%s = arith.addi %r, %c8 : index\n"
        "%v = pto.make_tensor_view %x, shape = [%s], strides = [%c1] : !pto.tensor_view<?xf32>",
        "%x: !pto.ptr<f32>, %n: i32",
    )
    assert use(text, "x", {"n": 0xFFFFFFFF}).elements == use(text, "x", {"n": -1}).elements == 7


def test_scalar_argument_reaches_a_view() -> None:
    text = kernel(
        "%r = arith.index_cast %n : i32 to index\n"
        + "%v = pto.make_tensor_view %x, shape = [%r], strides = [%c1] : !pto.tensor_view<?xf32>",
        "%x: !pto.ptr<f32>, %n: i32",
    )
    assert use(text, "x", {"n": 7}).elements == 7


def test_view_extents_contradict_the_type() -> None:
    view = "%v = pto.make_tensor_view %x, shape = [%n, %c64], strides = [%c64, %c1] : !pto.tensor_view<8x64xf32>"
    with pytest.raises(TileError, match=r"8 x 64.*9 x 64"):
        walk(kernel(view, "%x: !pto.ptr<f32>, %n: index"), {"n": 9})
    assert use(kernel(view, "%x: !pto.ptr<f32>, %n: index"), "x", {"n": 8}).elements == 512


def test_negative_extents_and_strides() -> None:
    for shape, strides in (("%m, %c64", "%c64, %c1"), ("%c4, %c64", "%m, %c1")):
        text = f"%m = arith.subi %c0, %c1 : index\n%v = pto.make_tensor_view %x, shape = [{shape}], strides = [{strides}] : !pto.tensor_view<?x?xf32>"
        with pytest.raises(CastsimError, match=r"-1|negative"):
            walk(kernel(text))


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


@pytest.mark.parametrize("rank", [1, 6])
def test_views_of_other_ranks(rank: int) -> None:
    dims, ones = "x".join("?" * rank), ", ".join(["%c1"] * rank)
    text = f"%v = pto.make_tensor_view %x, shape = [{ones}], strides = [{ones}] : !pto.tensor_view<{dims}xf32>\n%p = pto.partition_view %v, offsets = [{', '.join(['%c0'] * rank)}], sizes = [{ones}] : !pto.tensor_view<{dims}xf32> -> !pto.partition_tensor_view<{dims}xf32>"
    if rank > 5:
        with pytest.raises(CastsimError):
            walk(kernel(text))
    else:
        walk(kernel(text))


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
    number = st.one_of(
        st.integers(-limit, limit - 1), st.integers(-3, 70), st.sampled_from([-limit, limit - 1, 1 - limit])
    )
    return kind, *(max(-limit, min(limit - 1, draw(number))) for _ in range(2))


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
            arithmetic(operation, [DependentScalar(a), DependentScalar(b)], WIDTHS[kind], NOWHERE)
        return
    got = arithmetic(operation, [DependentScalar(a), DependentScalar(b)], WIDTHS[kind], NOWHERE).value
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
            assert compare(prefix + predicate, DependentScalar(a), DependentScalar(b), width).value == int(
                function(*pair)
            )
    assert compare("eq", DependentScalar(a), DependentScalar(b), width).value == int(a == b)
    assert compare("ne", DependentScalar(a), DependentScalar(b), width).value == int(a != b)


def test_comparison_of_truth_values() -> None:
    # i1: true is 1; read as a signed bit it is -1, so signed comparison has true below false (MLIR arith.cmpi).
    assert compare("slt", DependentScalar(1), DependentScalar(0), 1).value == 1
    assert compare("sge", DependentScalar(1), DependentScalar(0), 1).value == 0
    for predicate in ("eq", "ne", "ult", "ule", "ugt", "uge"):
        for a in (0, 1):
            for b in (0, 1):
                wanted = {"eq": a == b, "ne": a != b, "ult": a < b, "ule": a <= b, "ugt": a > b, "uge": a >= b}
                assert compare(predicate, DependentScalar(a), DependentScalar(b), 1).value == int(wanted[predicate])


@given(operands(), st.booleans())
def test_select(drawn: tuple[str, int, int], condition: bool) -> None:
    kind, a, b = drawn
    got = arithmetic(
        "select", [DependentScalar(int(condition)), DependentScalar(a), DependentScalar(b)], WIDTHS[kind], NOWHERE
    )
    assert got.value == (a if condition else b)


@given(operands(), st.sampled_from(sorted(WIDTHS)))
def test_width_changes(drawn: tuple[str, int, int], to: str) -> None:
    kind, value, _ = drawn
    for operation, exact in (
        ("index_cast", value),
        ("extsi", value),
        ("trunci", value),
        ("extui", magnitude(value, WIDTHS[kind])),
        ("index_castui", magnitude(value, WIDTHS[kind])),
    ):
        assert convert(operation, DependentScalar(value), kind, to).value == wrap(exact, WIDTHS[to])


def test_truth_value_becomes_an_integer() -> None:
    assert convert("extui", DependentScalar(1), "i1", "i32").value == 1
    assert convert("index_castui", DependentScalar(1), "i1", "index").value == 1
    assert convert("trunci", DependentScalar(6), "i32", "i1").value == 0
    assert convert("trunci", DependentScalar(7), "i32", "i1").value == 1


# MLIR: sign-extending true gives all ones.
@pytest.mark.parametrize("operation", ["extsi", "index_cast"])
def test_sign_extension_of_a_truth_value(operation: str) -> None:
    to = "i32" if operation == "extsi" else "index"
    assert convert(operation, DependentScalar(1), "i1", to).value == -1


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
        ("0.1", "f32", "i32", 0x3DCCCCCD),
        ("0.3333333333", "bf16", "i16", 0x3EAB),
        ("0.1", "f16", "i16", 0x2E66),
        ("65519.9", "f16", "i16", 0x7BFF),
        ("0x7F800000", "f32", "i32", 0x7F800000),
        ("1.0e39", "f32", "i32", 0x7F800000),
        ("1.0e6", "f16", "i16", 0x7C00),
    ],
)
def test_constant_bits_steer_an_extent(text: str, kind: str, integer: str, bits: int) -> None:
    wide = f"%r = arith.index_castui %b : {integer} to index"
    view = "%v = pto.make_tensor_view %x, shape = [%r], strides = [%c1] : !pto.tensor_view<?xf32>"
    body = f"%f = arith.constant {text} : {kind}\n%b = arith.bitcast %f : {kind} to {integer}\n{wide}\n{view}"
    assert walk(kernel(body)).arguments["x"].elements == bits


# A `.pto` statement stays on one line.
# ruff: noqa: E501


# ------------------------------------------------------------------------------------------------------------- loops
def test_affine_loop_is_one_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    found = both(program(loop(step())), monkeypatch)
    (only,) = loops(found.tree.root)
    assert only.trips == 16
    assert moved(found, "tload") == [(row * 64 * 4, 0) for row in range(0, 256, 16)]
    assert moved(found, "tstore") == [(row * 64 * 2, 4096) for row in range(0, 256, 16)]


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
    found = both(program(loop(step(), lower, upper, by)), monkeypatch)
    assert moved(found, "tload") == [(row * 256, 0) for row in first_rows]


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
    assert moved(found, "tload") == [((i * 32 + 1) * 256, 0) for i in (0, 2, 4, 6)]


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
    ],
)
def test_index_arithmetic_that_does_not(body: str, row: object, monkeypatch: pytest.MonkeyPatch) -> None:
    found = both(program(loop(body + "\n" + step("%r"), upper="%c8", by="%c1")), monkeypatch)
    assert moved(found, "tload") == [(row(i) * 256, 0) for i in range(8)]


def test_nested_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    inner = "scf.for %j = %c0 to %c4 step %c1 {%t = arith.muli %j, %c16 : index\n%r = arith.addi %i, %t : index\n"
    found = both(program(loop(inner + step("%r") + "}", upper="%c256", by="%c64")), monkeypatch)
    (outer,) = loops(found.tree.root)
    assert outer.trips == 4
    assert any(isinstance(item, Loop) for item in outer.body.items)
    assert moved(found, "tload") == [((i + 16 * j) * 256, 0) for i in range(0, 256, 64) for j in range(4)]


def test_triangular_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    # The inner bound is the outer variable: the outer loop cannot be summarised, the inner ones can.
    inner = "scf.for %j = %c0 to %i step %c1 {" + step("%j") + "}"
    found = both(program(loop(inner, upper="%c4", by="%c1")), monkeypatch)
    assert moved(found, "tload") == [(j * 256, 0) for i in range(4) for j in range(i)]


def test_branches_on_the_loop_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    body = "%q = arith.cmpi sge, %i, %c4 : index\nscf.if %q {" + step("%i") + "} else {" + step("%c64") + "}"
    found = both(program(loop(body, upper="%c8", by="%c1")), monkeypatch)
    assert moved(found, "tload") == [((i if i >= 4 else 64) * 256, 0) for i in range(8)]


def test_branch_taken_in_the_last_but_one_trip_only(monkeypatch: pytest.MonkeyPatch) -> None:
    # First, second and last trip look alike: only walking all of them finds trip 6.
    body = "%q = arith.cmpi eq, %i, %k : index\nscf.if %q {" + step("%c64") + "}" + step("%i")
    text = program("%k = arith.constant 6 : index\n" + loop(body, upper="%c8", by="%c1"))
    assert len(moved(both(text, monkeypatch), "tload")) == 9


def test_branches_that_do_not_depend(monkeypatch: pytest.MonkeyPatch) -> None:
    for predicate, rows in (("eq", [0, 16]), ("ne", [64, 64])):
        body = f"scf.if %q {{{step('%i')}}} else {{{step('%c64')}}}"
        text = program(f"%q = arith.cmpi {predicate}, %c1, %c1 : index\n" + loop(body, upper="%c32"))
        assert moved(both(text, monkeypatch), "tload") == [(row * 256, 0) for row in rows]


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

    def signed(value: int) -> int:
        return (value + 128) % 256 - 128

    found = both(text, monkeypatch)
    wanted = [64 + signed(i) - signed(i + 64) for i in range(301)]
    assert set(wanted) == {0, 256}
    assert wanted[0] == wanted[1] == wanted[300]
    assert moved(found, "tload") == [(row * 256, 0) for row in wanted]


def test_zero_extension_of_a_negative_loop_value(monkeypatch: pytest.MonkeyPatch) -> None:
    narrow = """
%s = arith.subi %i, %c2 : index
%t8 = arith.index_cast %s : index to i8
%r = arith.index_castui %t8 : i8 to index
"""
    found = both(program(loop(narrow + step("%r"), upper="%c8", by="%c1")), monkeypatch)
    assert moved(found, "tload") == [((i - 2) % 256 * 256, 0) for i in range(8)]


def test_part_outside_the_view_in_the_last_trip_is_found() -> None:
    with pytest.raises(TileError, match=r"leave the view of 100 x 64") as caught:
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
    assert moved(found, "tload") == [(row * 256, at) for row, at in ((0, 0), (16, 6144), (32, 0), (48, 6144))]


def test_loop_carried_scalar(monkeypatch: pytest.MonkeyPatch) -> None:
    body = """
%l = scf.for %i = %c0 to %c4 step %c1 iter_args(%s = %c1) -> (index) {
%t = arith.muli %s, %c2 : index
""" + step("%s") + "scf.yield %t : index\n}\n" + step("%l")  # fmt: skip
    assert moved(both(program(body), monkeypatch), "tload") == [(s * 256, 0) for s in (1, 2, 4, 8, 16)]


def test_loop_without_trips_yields_its_initial_values(monkeypatch: pytest.MonkeyPatch) -> None:
    body = "%l = scf.for %i = %c4 to %c4 step %c1 iter_args(%s = %c3) -> (index) {\nscf.yield %i : index\n}\n"
    assert moved(both(program(body + step("%l")), monkeypatch), "tload") == [(3 * 256, 0)]


def test_branch_yields_views(monkeypatch: pytest.MonkeyPatch) -> None:
    part = "!pto.partition_tensor_view<16x64xf32>"
    pick = (
        "%{0} = pto.partition_view %vx, offsets = [{1}, %c0], sizes = [%c16, %c64] : !pto.tensor_view<?x64xf32> -> "
        + part
    )
    body = f"""
%q = arith.cmpi slt, %i, %c32 : index
%p = scf.if %q -> ({part}) {{
{pick.format("p1", "%i")}
scf.yield %p1 : {part}
}} else {{
{pick.format("p2", "%c128")}
scf.yield %p2 : {part}
}}
pto.tload ins(%p : {part}) outs(%a : {X32})
"""
    found = both(program(loop(body, upper="%c64")), monkeypatch)
    assert moved(found, "tload") == [(row * 256, 0) for row in (0, 16, 128, 128)]


def test_huge_loop_is_summarised() -> None:
    text = program("%n = arith.constant 1000000000000 : index\n" + loop(step("%c0"), upper="%n", by="%c1"))
    (only,) = loops(walk(text).tree.root)
    assert only.trips == 10**12


def test_flags_and_barriers_in_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    body = (
        "pto.set_flag[<PIPE_V>, <PIPE_MTE2>, <EVENT_ID0>]"
        + step()
        + "pto.wait_flag[<PIPE_V>, <PIPE_MTE2>, <EVENT_ID0>]\n"
    )
    found = both(program(loop(body) + "\npto.barrier <PIPE_ALL>"), monkeypatch)
    assert not found.tree.interlocked
    names = [name for name, _ in issued(found)]
    assert names.count("set_flag V -> MTE2 id 0") == names.count("wait_flag V -> MTE2 id 0") == 16
    assert walk(program(loop(step()))).tree.interlocked


# A `.pto` statement stays on one line.


# ----------------------------------------------------------------------------------------------------------- refusals
def test_unsupported_operation() -> None:
    text = program(step("%c0") + f"pto.tcolsums ins(%a : {X32}) outs(%a : {X32})")
    with pytest.raises(IllegalError, match=r"pto\.tcolsums") as caught:
        walk(text)
    assert caught.value.span is not None
    assert "pto.tcolsum" in caught.value.legal


def test_sections() -> None:
    assert walk(program("pto.section.cube {" + step("%c0") + "}")).tree.interlocked
    assert walk(program("pto.section.vector {" + step("%c0") + "}")).tree.interlocked


def test_division_by_zero_is_refused() -> None:
    for operation in ("divsi", "remsi", "divui", "remui"):
        with pytest.raises(ReadError, match="zero") as caught:
            walk(kernel(f"%r = arith.{operation} %c8, %c0 : index"))
        assert caught.value.span is not None


@pytest.mark.parametrize("pipe", ["PIPE_MTE4", "PIPE_MTE5", "PIPE_V2"])
def test_pipes_that_the_chip_lacks(pipe: str) -> None:
    with pytest.raises(IllegalError, match=pipe.removeprefix("PIPE_")):
        walk(program(f"pto.barrier <{pipe}>"))
    with pytest.raises(IllegalError):
        walk(program(f"pto.set_flag[<PIPE_V>, <{pipe}>, <EVENT_ID0>]"))


def test_every_refusal_has_a_place() -> None:
    for body in (
        "pto.tload ins(%px : !pto.partition_tensor_view<16x64xf32>) outs(%b : !pto.tile_buf<vec, 16x64xf16>)",
        "pto.tload ins(%px : !pto.partition_tensor_view<16x64xf32>) outs(%s : !pto.tile_buf<vec, 24x64xf32>)",
    ):
        text = program(
            "%s = pto.alloc_tile : !pto.tile_buf<vec, 24x64xf32>\n"
            "%px = pto.partition_view %vx, offsets = [%c0, %c0], sizes = [%c16, %c64] : !pto.tensor_view<?x64xf32> -> "
            "!pto.partition_tensor_view<16x64xf32>\n" + body
        )
        with pytest.raises(CastsimError) as caught:
            walk(text)
        assert caught.value.span is not None
        assert caught.value.span.text.startswith("pto.tload")


def test_empty_function() -> None:
    found = walk("func.func @k() attributes {pto.entry} {\nreturn\n}")
    assert found.tree.root == Block(())
    assert found.arguments == {}


def test_programs_are_parsed_as_written() -> None:
    """The templates here mean what they seem to mean."""
    parsed = parse(program(loop(step())), "k.pto")
    (function,) = parsed.functions
    assert sum(isinstance(node, pto.For) for node in function.body) == 1
