"""Scalar arithmetic on floats against NumPy, ml_dtypes and exact fractions."""

# A `.pto` statement stays on one line.
# ruff: noqa: E501

from __future__ import annotations

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.execution_programs import CONSTANTS, walk

from castsim.execution.interpreter.scalar_values import (
    FLOATS,
    bits_of,
    float_arithmetic,
    float_comparison,
    float_conversion,
    from_bits,
    width_of,
)
from castsim.isa.errors import ReadError
from castsim.isa.pto.pto_scalars import FLOAT_PREDICATES, INTEGER_UNARY

DTYPES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}
ARITHMETIC = {
    "addf": lambda a, b: a + b, "subf": lambda a, b: a - b, "mulf": lambda a, b: a * b, "divf": lambda a, b: a / b,
    "maximumf": np.maximum, "minimumf": np.minimum, "maxnumf": np.fmax, "minnumf": np.fmin,
    "math.copysign": np.copysign,
}  # fmt: skip
UNARY = {
    "negf": np.negative, "math.absf": np.abs, "math.ceil": np.ceil, "math.floor": np.floor, "math.trunc": np.trunc,
    "math.roundeven": np.rint, "math.sqrt": np.sqrt,
}  # fmt: skip


@st.composite
def codes(draw: st.DrawFn, count: int) -> tuple[str, list[int]]:
    """A float type, and codes of it: any, small ones, and those around integers and ends of the range."""
    kind = draw(st.sampled_from(sorted(DTYPES)))
    width = width_of(kind)
    near = [bits_of(value, kind) for value in (0.0, -0.0, 0.5, 1.5, 2.5, -2.5, 1.0, math.inf, -math.inf, math.nan, 7.0)]
    number = st.one_of(st.integers(0, (1 << width) - 1), st.sampled_from(near), st.integers(0, 3))
    return kind, [draw(number) for _ in range(count)]


def same(got: float, wanted: np.generic, kind: str) -> bool:
    expected = float(wanted)
    if math.isnan(expected):
        return math.isnan(got)
    return bits_of(got, kind) == bits_of(expected, kind)


def as_numpy(code: int, kind: str) -> np.generic:
    return np.array([code], f"<u{width_of(kind) // 8}").view(DTYPES[kind])[0]


@pytest.mark.parametrize("operation", sorted(ARITHMETIC))
@given(codes(2))
def test_arithmetic_of_two(operation: str, drawn: tuple[str, list[int]]) -> None:
    kind, (a, b) = drawn
    left, right = as_numpy(a, kind), as_numpy(b, kind)
    if operation in ("maximumf", "minimumf", "maxnumf", "minnumf") and left == right:
        return  # of zeros NumPy returns either
    with np.errstate(all="ignore"):
        wanted = ARITHMETIC[operation](left, right)
    assert same(float_arithmetic(operation, [from_bits(a, kind), from_bits(b, kind)], kind), wanted, kind)


@pytest.mark.parametrize("operation", sorted(UNARY))
@given(codes(1))
def test_arithmetic_of_one(operation: str, drawn: tuple[str, list[int]]) -> None:
    kind, (a,) = drawn
    with np.errstate(all="ignore"):
        wanted = UNARY[operation](as_numpy(a, kind))
    assert same(float_arithmetic(operation, [from_bits(a, kind)], kind), wanted, kind)


@given(codes(2))
def test_remainders_are_exact(drawn: tuple[str, list[int]]) -> None:
    """a - b * trunc(a / b) in exact fractions, with the sign of a."""
    kind, (left, right) = drawn
    a, b = from_bits(left, kind), from_bits(right, kind)
    got = float_arithmetic("remf", [a, b], kind)
    if math.isnan(a) or math.isnan(b) or math.isinf(a) or b == 0:
        assert math.isnan(got)
    elif math.isinf(b):
        assert got == a
    else:
        assert Fraction(got) == Fraction(a) - Fraction(b) * math.trunc(Fraction(a) / Fraction(b))
        assert math.copysign(1, got) == math.copysign(1, a)


@given(codes(3))
def test_fused_products_round_once(drawn: tuple[str, list[int]]) -> None:
    """No other value of the type is nearer to the exact sum; on a tie the even code is taken."""
    kind, bits = drawn
    a, b, c = (from_bits(code, kind) for code in bits)
    got = float_arithmetic("math.fma", [a, b, c], kind)
    if not all(map(math.isfinite, (a, b, c))):
        product = math.nan if 0.0 in (a, b) and math.inf in (abs(a), abs(b)) else a * b
        assert same(got, np.float64(product + c), kind)
        return
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    infinity = from_bits(bits_of(math.inf, kind), kind)
    largest = Fraction(from_bits(bits_of(infinity, kind) - 1, kind))
    last = largest - Fraction(from_bits(bits_of(infinity, kind) - 2, kind))
    if abs(exact) >= largest + last / 2:
        assert got == math.copysign(infinity, exact)
        return
    code, distance = bits_of(got, kind), abs(Fraction(got) - exact)
    for neighbour in (code - 1, code + 1):
        other = from_bits(neighbour % (1 << width_of(kind)), kind)
        if math.isfinite(other) and math.copysign(1, other) == math.copysign(1, got):
            away = abs(Fraction(other) - exact)
            assert distance < away or (distance == away and code % 2 == 0)


@given(codes(1))
def test_rounding_half_away(drawn: tuple[str, list[int]]) -> None:
    kind, (code,) = drawn
    value = from_bits(code, kind)
    got = float_arithmetic("math.round", [value], kind)
    if not math.isfinite(value):
        assert same(got, as_numpy(code, kind), kind)
        return
    assert abs(Fraction(got)) == math.floor(abs(Fraction(value)) + Fraction(1, 2))
    assert math.copysign(1, got) == math.copysign(1, value)


def test_zeros_have_an_order() -> None:
    assert math.copysign(1, float_arithmetic("maximumf", [-0.0, 0.0], "f32")) == 1
    assert math.copysign(1, float_arithmetic("minimumf", [0.0, -0.0], "f32")) == -1


@pytest.mark.parametrize("predicate", FLOAT_PREDICATES)
@given(codes(2))
def test_comparisons(predicate: str, drawn: tuple[str, list[int]]) -> None:
    """A predicate is a set of the four relations that two floats may have (LLVM's fcmp)."""
    kind, (left, right) = drawn
    a, b = from_bits(left, kind), from_bits(right, kind)
    relation = "u" if math.isnan(a) or math.isnan(b) else "<" if a < b else ">" if a > b else "="
    orders = {"eq": "=", "gt": ">", "ge": ">=", "lt": "<", "le": "<=", "ne": "<>"}
    if predicate in ("false", "true", "ord", "uno"):
        true_of = {"false": "", "true": "u<=>", "ord": "<=>", "uno": "u"}[predicate]
    else:
        true_of = orders[predicate[1:]] + ("u" if predicate[0] == "u" else "")
    assert float_comparison(predicate, a, b, kind) == (relation in true_of)


@given(codes(1), st.sampled_from(["i1", "i8", "i16", "i32", "i64"]), st.booleans())
def test_floats_to_integers(drawn: tuple[str, list[int]], whole: str, is_signed: bool) -> None:
    kind, (code,) = drawn
    value, width = from_bits(code, kind), width_of(whole)
    operation = "fptosi" if is_signed else "fptoui"
    low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if is_signed else (0, (1 << width) - 1)
    fits = math.isfinite(value) and low <= math.trunc(Fraction(value)) <= high
    saturated = float_conversion(operation, value, kind, whole, lambda _: True)
    wanted = math.trunc(Fraction(value)) if fits else 0 if math.isnan(value) else high if value > 0 else low
    assert int(saturated) % (1 << width) == wanted % (1 << width)
    if fits:
        assert float_conversion(operation, value, kind, whole, lambda _: False) == saturated
    else:
        with pytest.raises(ReadError, match="undefined"):
            float_conversion(operation, value, kind, whole, lambda _: False)


@given(st.integers(-(2**63), 2**63 - 1), st.sampled_from(sorted(FLOATS)), st.booleans())
def test_integers_to_floats(value: int, kind: str, is_signed: bool) -> None:
    """Nearest of the neighbours in exact arithmetic, ties to the even code."""
    got = float_conversion("sitofp" if is_signed else "uitofp", value, "i64", kind, lambda _: False)
    exact = Fraction(value if is_signed else value % (1 << 64))
    code = bits_of(got, kind)
    if math.isinf(got):
        largest = from_bits(bits_of(math.inf, kind) - 1, kind)
        below = from_bits(bits_of(math.inf, kind) - 2, kind)
        assert abs(exact) >= Fraction(largest) + (Fraction(largest) - Fraction(below)) / 2
        return
    distance = abs(Fraction(got) - exact)
    for neighbour in (code - 1, code + 1):
        other = from_bits(neighbour % (1 << width_of(kind)), kind)
        if math.isfinite(other) and (other < 0) == (got < 0):
            assert distance < abs(Fraction(other) - exact) or (
                distance == abs(Fraction(other) - exact) and code % 2 == 0
            )


@given(codes(1), st.sampled_from(sorted(DTYPES)))
def test_widths(drawn: tuple[str, list[int]], target: str) -> None:
    kind, (code,) = drawn
    operation = "extf" if width_of(target) > width_of(kind) else "truncf"
    with np.errstate(all="ignore"):
        wanted = as_numpy(code, kind).astype(DTYPES[target])
    got = float_conversion(operation, from_bits(code, kind), kind, target, lambda _: False)
    if kind == "f64" and target == "bf16":
        return  # ml_dtypes goes through f32
    assert same(float(got), wanted, target)


# ---------------------------------------------------------------------------------------------------- in programs
def index_of(body: str, arguments: str, args: dict[str, float]) -> int:
    """The trips of a loop that runs to %e."""
    text = f"func.func @k({arguments}) attributes {{pto.entry}} {{\n{CONSTANTS}\n{body}\nscf.for %i = %c0 to %e step %c1 {{\n}}\nreturn\n}}\n"
    executed = walk(text, args)
    (loop,) = [item for item in executed.tree.root.items if hasattr(item, "trips")]
    return int(loop.trips)


def test_a_float_decides_a_path() -> None:
    body = """
%h = arith.mulf %x, %x fastmath<contract> : f32
%r = math.sqrt %h : f32
%w = arith.fptosi %r : f32 to i32
%e = arith.index_cast %w : i32 to index
"""
    assert index_of(body, "%x: f32", {"x": 7.25}) == 7


@pytest.mark.parametrize("operation", INTEGER_UNARY)
@pytest.mark.parametrize("value", [-6, 1, 12, -(2**31), 2**31 - 1])
def test_counting_bits(operation: str, value: int) -> None:
    text = f"{value % 2**32:032b}"
    wanted = {
        "math.absi": abs(value),
        "math.ctlz": len(text) - len(text.lstrip("0")),
        "math.cttz": len(text) - len(text.rstrip("0")),
        "math.ctpop": text.count("1"),
    }[operation]
    body = f"%r = {operation} %x : i32\n%k = arith.constant 30 : i32\n%s = arith.shrui %r, %k : i32\n"
    if wanted > 100:
        body += (
            "%two = arith.constant 2 : i32\n%e2 = arith.addi %s, %two : i32\n%e = arith.index_cast %e2 : i32 to index"
        )
        assert index_of(body, "%x: i32", {"x": value}) == (wanted % 2**32 >> 30) + 2
    else:
        body += (
            "%two = arith.constant 2 : i32\n%e2 = arith.addi %r, %two : i32\n%e = arith.index_cast %e2 : i32 to index"
        )
        assert index_of(body, "%x: i32", {"x": value}) == wanted + 2
