"""Casts of every narrow code and of boundary patterns of wide ones against the oracle; steps between numbers."""

from __future__ import annotations

import csv
import os
from collections import defaultdict
from fractions import Fraction
from itertools import product

import en_dtypes
import gfloat
import ml_dtypes
import numpy as np
import oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.boundaries import FORMATS, hard_codes
from kit.golden import VECTORS, assert_same, oracle_mode, product_cast
from kit.libraries import GFLOAT, LIBRARY

from castsim.isa.errors import IllegalError, ReadError
from castsim.isa.formats import DETERMINISTIC, Overflow, Rounding, format_named
from castsim.numerics.cast import cast_codes, round_to_integral_codes
from castsim.numerics.policy import NanToFloat, Policy, abstract_policy
from castsim.reports.value_casts import ordinal, ulp_distance

SOURCES = [name for name in FORMATS if oracle.fmt(name).bits <= 16]
THOROUGH = "CASTSIM_THOROUGH" in os.environ
EVERY_MODE = [mode.value for mode in Rounding]


def every_code(name: str) -> np.ndarray:
    return np.array(oracle.codes(name), dtype=oracle.storage(name))


def undecided(source: np.ndarray, src: str, dst: str, mode: str, overflow: str) -> np.ndarray:
    """Return the cells for which the references contradict each other.

    To e8m0 under the rule `onnx` without saturation, down and nearest, between 2**127 and 2**128: onnxruntime
    overflows before rounding, the reference evaluator of onnx after it; docs/reference/semantics.md calls it unclear.
    """
    if dst != "e8m0" or overflow == "saturate" or mode == "ceil" or src != "bf16":
        return np.zeros(source.shape, dtype=bool)
    return np.array([oracle.decode(int(code), src).magnitude > 2**127 for code in source])


@pytest.mark.parametrize("src", SOURCES)
@pytest.mark.parametrize("dst", FORMATS)
def test_every_code_in_every_mode(src: str, dst: str) -> None:
    source = every_code(src)
    tried = 0
    for mode, overflow in product(EVERY_MODE, oracle.OVERFLOWS):
        if mode == "stochastic" or (mode == "hybrid" and src == "f16"):
            continue  # test_cast_exhaustive.py; hybrid of f16 has a test of its own below
        try:
            expected = oracle.cast_array(source, src, dst, oracle_mode(dst, mode), overflow)
        except oracle.Refused:
            continue
        tried += 1
        got = product_cast(source, src, dst, mode, overflow)
        skipped = undecided(source, src, dst, mode, overflow)
        expected[skipped] = got[skipped]
        assert got.dtype == expected.dtype
        # Bits, NaN included: section 8 names the NaN code.
        different = np.flatnonzero(got != expected)
        cell = [(hex(source[i]), hex(expected[i]), hex(got[i])) for i in different[:5]]
        assert not len(different), (mode, overflow, len(different), "source, expected, got:", cell)
    assert tried >= 8


def test_hybrid_of_every_normal_f16() -> None:
    """Left out: subnormal sources, on which the instruction's description and the vendor's script are silent."""
    source = every_code("f16")
    source = source[(source & 0x7C00) != 0]
    for overflow in ("saturate", "special"):
        expected = oracle.cast_array(source, "f16", "hif8", "hybrid", overflow)
        assert_same(expected, product_cast(source, "f16", "hif8", "hybrid", overflow), source, "f16", "hif8")


@pytest.mark.parametrize("src", ["f16", "bf16"])
def test_e8m0_by_the_specification_of_pto(src: str) -> None:
    """The rule `asl` for its 16-bit sources (docs/reference/pto.md section 6.2); f32 has its vectors."""
    source = every_code(src)
    for mode, overflow in product(oracle.MODES, ("saturate", "special")):
        expected = oracle.cast_array(source, src, "e8m0", mode, overflow, e8m0="asl")
        got = product_cast(source, src, "e8m0", mode, overflow, e8m0="asl")
        assert_same(expected, got, source, src, "e8m0")


@pytest.mark.parametrize("src", FORMATS)
def test_refusals(src: str) -> None:
    """What section 8 refuses is refused, and nothing else."""
    for dst, mode, overflow in product(FORMATS, EVERY_MODE, oracle.OVERFLOWS):
        try:
            oracle.check(src, dst, oracle_mode(dst, mode), overflow)
        except oracle.Refused:
            with pytest.raises(IllegalError):
                abstract_policy(format_named(src), format_named(dst), Rounding(mode), Overflow(overflow))
        else:
            abstract_policy(format_named(src), format_named(dst), Rounding(mode), Overflow(overflow))


@pytest.mark.parametrize("src", FORMATS)
def test_defaults(src: str) -> None:
    for dst in FORMATS:
        mode, overflow = oracle.defaults(src, dst, None, None)
        policy = abstract_policy(format_named(src), format_named(dst), None, None)
        assert (oracle_mode(dst, policy.rounding.value), policy.overflow.value) == (mode, overflow), dst


@pytest.mark.parametrize("name", [name for name in SOURCES if name in oracle.FLOATS and name != "e8m0"])
def test_round_to_integral(name: str) -> None:
    row = format_named(name)
    source = every_code(name)
    if source.size > 1 << 12 and not THOROUGH:  # all with few digits, so that ties are among them, and every 7th
        source = source[(np.arange(source.size) % 7 == 0) | (source & 15 == 0)]
    modes = oracle.HIF8_MODES[:-1] if name == "hif8" else oracle.MODES
    for mode, overflow in product(modes, ("saturate", "special")):
        policy = abstract_policy(row, row, Rounding(mode), Overflow(overflow))
        got = round_to_integral_codes(source, row, policy)
        expected = [oracle.round_to_integral(code, name, mode, overflow) for code in source.tolist()]
        assert_same(np.array(expected, dtype=source.dtype), got, source, name, name)


MODES = [mode.value for mode in DETERMINISTIC]


WIDE = ("f64", "f32", "i32", "u32", "i64", "u64", "i48")


def left_open(code: int, src: str, dst: str, mode: str, overflow: str) -> bool:
    """The cells on which the references contradict each other; see the function of this name for narrow sources."""
    if dst != "e8m0" or overflow == "saturate" or mode == "ceil" or src not in ("f32", "f64"):
        return False
    return 2**127 < oracle.decode(code, src).magnitude < 2**128


def assert_cells(source: np.ndarray, src: str, dst: str, mode: str, overflow: str) -> None:
    got = product_cast(source, src, dst, mode, overflow).tolist()
    asked = oracle_mode(dst, mode)
    for code, result in zip(source.tolist(), got, strict=True):
        expected = oracle.cast(code, src, dst, asked, overflow)
        if result != expected and not left_open(code, src, dst, mode, overflow):
            value = oracle.decode(code, src)
            pytest.fail(f"{mode} {overflow} {code:#x} ({value}): expected {expected:#x}, got {result:#x}")


@pytest.mark.parametrize("src", WIDE)
@pytest.mark.parametrize("dst", FORMATS)
def test_boundaries_in_every_mode(src: str, dst: str) -> None:
    source = hard_codes(src, dst, points=100, reach=2, random=150, seed=11)
    assert len(source) > 60
    tried = 0
    for mode, overflow in product((*MODES, "hybrid"), oracle.OVERFLOWS):
        try:
            oracle.check(src, dst, oracle_mode(dst, mode), overflow)
        except oracle.Refused:
            continue
        tried += 1
        assert_cells(source, src, dst, mode, overflow)
    assert tried >= 8


@pytest.mark.parametrize("src", ["f32", "f64"])
@pytest.mark.parametrize("dst", ["f16", "bf16", "e4m3fn", "e5m2", "hif8", "e2m1", "i8", "i32"])
def test_all_boundaries_of_common_pairs(src: str, dst: str) -> None:
    """Every number and midpoint of the 8-bit formats, many of the wider ones, nearest even and the defaults."""
    source = hard_codes(src, dst, points=600, reach=2, random=1500, seed=12)
    mode, overflow = oracle.defaults(src, dst, None, None)
    assert_cells(source, src, dst, mode, overflow)


@pytest.mark.parametrize("overflow", ["saturate", "special"])
def test_hybrid_of_f32(overflow: str) -> None:
    source = hard_codes("f32", "hif8", points=500, reach=2, random=3000, seed=13)
    assert_cells(source, "f32", "hif8", "hybrid", overflow)


@pytest.mark.parametrize("src", ["f64", "f32", "f16", "i64", "i32"])
@pytest.mark.parametrize("dst", ["f32", "f16", "bf16", "e4m3fn", "e5m2fnuz", "e2m1", "f8_152", "i8", "u16", "i64"])
@pytest.mark.parametrize("guard", [True, False])
def test_stochastic(src: str, dst: str, guard: bool) -> None:
    """Random words, and words equal to and next to the dropped bits, where the decision flips."""
    rng = np.random.default_rng(14)
    if src == "f16":
        source = rng.integers(0, 1 << 16, 400).astype(np.uint16)
    else:
        source = hard_codes(src, dst, points=20, reach=1, random=80, seed=15)
    words = rng.integers(0, 1 << 32, source.shape, dtype=np.uint64).astype(np.uint32)
    words[rng.random(source.shape) < 0.3] = np.uint32(1 << 31)
    words[:4] = (0, 1, 0xFFFFFFFF, 1 << 31)
    overflow = "saturate"
    policy = Policy(rounding=Rounding.STOCHASTIC, overflow=Overflow.SATURATE, stochastic_guard=guard)
    got = cast_codes(source, format_named(src), format_named(dst), policy, random=words).tolist()
    for code, word, result in zip(source.tolist(), words.tolist(), got, strict=True):
        expected = oracle.cast(code, src, dst, "stochastic", overflow, random=word, guard_exact=guard)
        assert result == expected, (hex(code), hex(word), hex(expected), hex(result))


def test_stochastic_decides_at_the_dropped_bits() -> None:
    """1 + k * 2**-23 in f32 to f16 drops 13 bits: up iff the word is at most k << 19.

    Source: docs/reference/formats.md section 6.
    """
    for dropped in (1, 5, 0xFFF, 0x1000, 0x1FFF):
        source = np.full(3, 0x3F800000 | dropped, dtype=np.uint32)
        words = np.array([(dropped << 19) - 1, dropped << 19, (dropped << 19) + 1], dtype=np.uint32)
        policy = abstract_policy(format_named("f32"), format_named("f16"), Rounding.STOCHASTIC, Overflow.SPECIAL)
        got = cast_codes(source, format_named("f32"), format_named("f16"), policy, random=words)
        assert got.tolist() == [0x3C01, 0x3C01, 0x3C00]


@pytest.mark.parametrize("src", ["f64", "f32"])
@pytest.mark.parametrize("dst", ["i8", "u8", "i16", "i32", "u32", "i64"])
@pytest.mark.parametrize("bits", [32, 64])
def test_wrap_of_a_clamped_intermediate(src: str, dst: str, bits: int) -> None:
    """What instructions without saturation do: low bits of an int32 or int64 (docs/reference/a2a3.md section 4.3)."""
    source = hard_codes(src, f"i{bits}", points=40, reach=2, random=300, seed=16)
    policy = Policy(rounding=Rounding.TRUNC, overflow=Overflow.WRAP, wrap_bits=bits)
    got = cast_codes(source, format_named(src), format_named(dst), policy)
    assert np.array_equal(got, oracle.cast_array(source, src, dst, "trunc", "wrap", clamp_bits=bits))


@pytest.mark.parametrize("dst", ["f16", "bf16"])
@pytest.mark.parametrize("mode", MODES)
def test_saturation_that_makes_nan_zero(dst: str, mode: str) -> None:
    """Float results while CTRL[48] is 0: largest finite number and zero (docs/reference/a2a3.md section 3.1)."""
    source = hard_codes("f32", dst, points=60, reach=2, random=200, seed=17)
    policy = Policy(rounding=Rounding(mode), overflow=Overflow.SATURATE, nan_to_float=NanToFloat.ZERO)
    got = cast_codes(source, format_named("f32"), format_named(dst), policy)
    assert np.array_equal(got, oracle.cast_array(source, "f32", dst, mode, "saturate", nan=0))


@pytest.mark.parametrize("code", [1 << 47, 1 << 48, 1 << 63, (1 << 64) - (1 << 47) - 1])
def test_int48_outside_its_range_is_refused(code: int) -> None:
    """i48 is stored in int64 (docs/reference/formats.md section 6): only sign-extended 48-bit values are codes."""
    row, to = format_named("i48"), format_named("i64")
    with pytest.raises(ReadError):
        cast_codes(np.array([code], dtype=np.uint64), row, to, abstract_policy(row, to, None, None))


pairs = st.sampled_from([(src, dst) for src in WIDE for dst in FORMATS if dst not in ("e8m0", "hif8")])


@settings(max_examples=400, deadline=None, derandomize=True)
@given(pairs, st.data(), st.sampled_from(MODES), st.booleans())
def test_any_code_of_any_pair(pair: tuple[str, str], data: st.DataObject, mode: str, saturate: bool) -> None:
    src, dst = pair
    row = oracle.fmt(src)
    if src == "i48":
        codes = st.integers(row.low, row.high).map(lambda value: value & ((1 << 64) - 1))
    else:
        codes = st.integers(0, (1 << row.bits) - 1)
    source = np.array(data.draw(st.lists(codes, min_size=1, max_size=8)), dtype=oracle.storage(src))
    other = "wrap" if dst in oracle.INTS else "special"
    assert_cells(source, src, dst, mode, "saturate" if saturate else other)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from(MODES))
def test_narrowing_twice_with_odd_first_is_narrowing_once(number: float, mode: str) -> None:
    """f64 to f32 by round-to-odd, then to bf16 in any nearest or directed mode, loses nothing (Boldo, Melquiond)."""
    if mode == "odd":
        return
    source = np.array([number]).view(np.uint64)
    twice = product_cast(product_cast(source, "f64", "f32", "odd", "saturate"), "f32", "bf16", mode, "special")
    assert twice == product_cast(source, "f64", "bf16", mode, "special")


NARROW = [name for name in (*oracle.FLOATS, *oracle.INTS) if oracle.fmt(name).bits <= 16]
SPECIFIED = {
    "HiF8": "hif8", "E4M3": "e4m3fn", "E5M2": "e5m2", "E3M2": "e3m2", "E2M3": "e2m3", "E8M0": "e8m0",
    "E2M1X2": "e2m1", "E1M2X2": "e1m2",
}  # fmt: skip
"""Formats of the PTO specification's table. HiF4X2 is left out: a matrix scale element that castsim does not have."""


def decoded(name: str) -> np.ndarray:
    """Return the float64 of every code; all formats of up to 16 bits are exact in it."""
    return product_cast(every_code(name), name, "f64", "rint", "special").view(np.float64)


def assert_same_numbers(ours: np.ndarray, theirs: np.ndarray) -> None:
    """Compare values and signs of zero; NaN equals NaN."""
    assert np.array_equal(ours, theirs, equal_nan=True)
    numbers = ~np.isnan(theirs)
    assert np.array_equal(np.signbit(ours[numbers]), np.signbit(theirs[numbers]))


@pytest.mark.parametrize("name", NARROW)
def test_oracle(name: str) -> None:
    for number, code in zip(decoded(name).tolist(), oracle.codes(name), strict=True):
        value = oracle.decode(code, name)
        if value.kind == "nan":
            assert np.isnan(number), hex(code)
        elif value.kind == "inf":
            assert number == (-np.inf if value.negative else np.inf), hex(code)
        else:
            assert abs(Fraction(number)) == value.magnitude, hex(code)
            assert np.signbit(number) == value.negative, hex(code)


SECOND_LIBRARIES = {
    "i2": ml_dtypes.int2, "u2": ml_dtypes.uint2, "i4": ml_dtypes.int4, "u4": ml_dtypes.uint4,
    "i8": np.int8, "u8": np.uint8, "i16": np.int16, "u16": np.uint16,
    "e8m0": en_dtypes.float8_e8m0, "e2m1": en_dtypes.float4_e2m1,
}  # fmt: skip
"""Integers of NumPy and ml_dtypes, and the formats that en_dtypes has besides ml_dtypes."""


@pytest.mark.parametrize(("name", "dtype"), [*LIBRARY.items(), *SECOND_LIBRARIES.items()])
def test_dtype_libraries(name: str, dtype: type) -> None:
    assert_same_numbers(decoded(name), every_code(name).view(dtype).astype(np.float32).astype(np.float64))


@pytest.mark.parametrize("name", [name for name in GFLOAT if oracle.fmt(name).bits <= 16])
def test_gfloat(name: str) -> None:
    numbers = [gfloat.decode_float(GFLOAT[name], code).fval for code in oracle.codes(name)]
    assert_same_numbers(decoded(name), np.array(numbers))


@pytest.fixture(scope="module")
def specification() -> dict[str, list[dict[str, str]]]:
    rows = defaultdict(list)
    with (VECTORS / "pto_spec_format_decode.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            rows[row["format"]].append(row)
    return rows


@pytest.mark.parametrize("title", SPECIFIED)
def test_pto_specification(title: str, specification: dict[str, list[dict[str, str]]]) -> None:
    """Left out: InvalidEncoding rows, six-bit codes with one of the two top bits set, which are no codes here."""
    numbers = decoded(SPECIFIED[title])
    rows = [row for row in specification[title] if row["class"] != "InvalidEncoding"]
    assert len(rows) == len(numbers)
    for row in rows:
        number = numbers[int(row["code"], 16)]
        if row["class"].endswith("NaN"):
            assert np.isnan(number), row
        elif row["class"].endswith("Infinity"):
            assert number == (-np.inf if row["class"].startswith("Negative") else np.inf), row
        else:
            assert abs(Fraction(number)) == int(row["significand"]) * Fraction(2) ** int(row["exponent"]), row
            assert np.signbit(number) == (row["sign"] == "1"), row


OF_A_BYTE = [name for name in (*oracle.FLOATS, *oracle.INTS) if oracle.fmt(name).bits <= 8 and "@" not in name]


@pytest.mark.parametrize("name", [*OF_A_BYTE, "f16", "bf16"])
def test_places_are_those_in_the_sorted_list(name: str) -> None:
    row = format_named(name)
    values = {code: oracle.decode(code, name) for code in oracle.codes(name)}
    numbers = {code: -value.magnitude if value.negative else value.magnitude
               for code, value in values.items() if value.kind == "finite"}  # fmt: skip
    place = {number: index for index, number in enumerate(sorted(set(numbers.values())))}
    origin = place.get(0, 0)
    for code, number in numbers.items():
        assert ordinal(code, row) == place[number] - origin, hex(code)
    for code, value in values.items():
        if value.kind == "inf":
            edge = min(place.values()) - 1 if value.negative else max(place.values()) + 1
            assert ordinal(code, row) == edge - origin
        elif value.kind == "nan":
            assert ordinal(code, row) is None


def test_wide_formats() -> None:
    f32, f64, i64 = map(format_named, ("f32", "f64", "i64"))
    assert ulp_distance(0x3F800000, 0x3F800001, f32) == 1
    assert ulp_distance(0x00000001, 0x80000001, f32) == -2
    assert ulp_distance(0x80000000, 0x00000000, f32) == 0
    assert ulp_distance(0x7F7FFFFF, 0x7F800000, f32) == 1
    assert ulp_distance(0x3FF0 << 48, 0x4000 << 48, f64) == 1 << 52
    assert ulp_distance((1 << 64) - 1, 1, i64) == 2  # from -1 to 1


def test_nan() -> None:
    f16 = format_named("f16")
    assert ulp_distance(0x7E00, 0xFE01, f16) == 0
    assert ulp_distance(0x7E00, 0x3C00, f16) is None
    assert ulp_distance(0x7C00, 0x7E00, f16) is None
