"""Casts from 32- to 64-bit sources: boundary patterns and random ones, every mode and overflow, against the oracle."""

from __future__ import annotations

from itertools import product

import numpy as np
import oracle
import pytest
from boundaries import FORMATS, hard_codes
from golden import oracle_mode, product_cast
from hypothesis import given, settings
from hypothesis import strategies as st

from castsim.isa import DETERMINISTIC, Overflow, ReadError, Rounding, format_named
from castsim.numerics import NanToFloat, Policy, abstract_policy, cast_codes

SOURCES = ("f64", "f32", "i32", "u32", "i64", "u64", "i48")
MODES = [mode.value for mode in DETERMINISTIC]


def undecided(code: int, src: str, dst: str, mode: str, overflow: str) -> bool:
    """The cells on which the references contradict each other; see the function of this name for narrow sources."""
    if dst != "e8m0" or overflow == "saturate" or mode == "ceil" or src not in ("f32", "f64"):
        return False
    return 2**127 < oracle.decode(code, src).magnitude < 2**128


def assert_cells(source: np.ndarray, src: str, dst: str, mode: str, overflow: str) -> None:
    """Compare bits, NaN included."""
    got = product_cast(source, src, dst, mode, overflow).tolist()
    asked = oracle_mode(dst, mode)
    for code, result in zip(source.tolist(), got, strict=True):
        expected = oracle.cast(code, src, dst, asked, overflow)
        if result != expected and not undecided(code, src, dst, mode, overflow):
            value = oracle.decode(code, src)
            pytest.fail(f"{mode} {overflow} {code:#x} ({value}): expected {expected:#x}, got {result:#x}")


@pytest.mark.parametrize("src", SOURCES)
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


pairs = st.sampled_from([(src, dst) for src in SOURCES for dst in FORMATS if dst not in ("e8m0", "hif8")])


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
    middle = product_cast(source, "f64", "f32", "odd", "saturate")
    twice = product_cast(middle, "f32", "bf16", mode, "special")
    assert twice == product_cast(source, "f64", "bf16", mode, "special")
