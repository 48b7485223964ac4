"""Index arithmetic against Python's own integers, NumPy's fixed-width ones and `struct`."""

from __future__ import annotations

import struct
from fractions import Fraction
from math import ceil, floor, isnan, trunc

import ml_dtypes
import numpy as np
import pytest
from execution_programs import kernel, walk
from hypothesis import example, given
from hypothesis import strategies as st

from castsim.execution.interpreter.rerolling import DependentScalar
from castsim.execution.interpreter.scalar_values import arithmetic, compare, convert, width_of
from castsim.isa.errors import ReadError, Span

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
