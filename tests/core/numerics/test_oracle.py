"""The oracle against software it shares nothing with: numpy, ml_dtypes, en_dtypes, gfloat; and against itself.

Only uses that docs/reference/formats.md section 4 found sound: no ml_dtypes for wide sources (double rounding) or float
to integer, no gfloat encoding (one NaN code only)."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise, product

import gfloat
import numpy as np
import oracle
import pytest
from gfloat import RoundMode
from kit.boundaries import hard_codes
from kit.libraries import GFLOAT, GFLOAT_MODES, LIBRARY
from oracle_a2a3 import Doubt, effective_mode, effective_saturation, lane
from oracle_formats import codes

NARROW = [name for name in (*oracle.FLOATS, *oracle.INTS) if oracle.fmt(name).bits <= 16]
NARROW_FLOATS = [name for name in NARROW if name in oracle.FLOATS]


def exact(number: float) -> oracle.Value:
    if np.isnan(number):
        return oracle.Value("nan")
    if np.isinf(number):
        return oracle.Value("inf", number < 0)
    return oracle.Value("finite", bool(np.signbit(number)), abs(Fraction(number)))


def same_value(one: oracle.Value, other: oracle.Value) -> bool:
    return one == other or one.kind == other.kind == "nan"


def float64(code: int, name: str) -> float:
    value = oracle.decode(code, name)
    size = {"nan": np.nan, "inf": np.inf}.get(value.kind, float(value.magnitude))
    return float(np.copysign(size, -1.0 if value.negative else 1.0))


@pytest.mark.parametrize("name", LIBRARY)
def test_decode_equals_the_dtype_libraries(name: str) -> None:
    every = np.array(codes(name), dtype=oracle.storage(name))
    numbers = every.view(LIBRARY[name]).astype(np.float32)
    for code, number in zip(every.tolist(), numbers.tolist(), strict=True):
        assert same_value(oracle.decode(code, name), exact(number)), hex(code)


@pytest.mark.parametrize("name", [name for name in GFLOAT if name not in ("f32", "f64")])
def test_decode_equals_gfloat(name: str) -> None:
    for code in codes(name):
        assert same_value(oracle.decode(code, name), exact(gfloat.decode_float(GFLOAT[name], code).fval)), hex(code)


@pytest.mark.parametrize(("name", "native"), [("f32", np.float32), ("f64", np.float64)])
def test_decode_of_wide_floats_equals_numpy(name: str, native: type) -> None:
    words = np.random.default_rng(1).integers(0, 1 << oracle.fmt(name).bits, 3000, dtype=np.uint64)
    words = words.astype(oracle.storage(name))
    small = words & oracle.storage(name)(0x807FFFFF if name == "f32" else 0x800FFFFFFFFFFFFF)
    for word in np.concatenate([words, small]):
        assert same_value(oracle.decode(int(word), name), exact(float(word.view(native))))


def float32_inputs(name: str) -> np.ndarray:
    """Every number of a narrow format, every midpoint, their neighbours among float32, and random patterns."""
    book = [float(entry[0]) for entry in oracle.codebook(name)]
    points = np.array(book + [(low + high) / 2 for low, high in pairwise(book)])
    points = points[:: max(1, len(points) // 1000)].astype(np.float32).view(np.uint32).astype(np.int64)
    around = np.unique(np.clip(points[:, None] + np.arange(-2, 3), 0, 0x7F800000))
    random = np.random.default_rng(2).integers(0, 1 << 31, 500)
    all_positive = np.concatenate([around, random, [0, 1, 0x7F7FFFFF, 0x7F800000, 0x7FC00000]])
    return np.concatenate([all_positive, all_positive | 0x80000000]).astype(np.uint32)


@pytest.mark.parametrize("name", [name for name in LIBRARY if name != "e8m0"])
def test_nearest_encode_equals_the_dtype_libraries(name: str) -> None:
    """From float32, where the libraries round once; e8m0 is left out: the libraries disagree.

    Source: docs/reference/formats.md section 5 row 7.
    """
    inputs = float32_inputs(name)
    theirs = inputs.view(np.float32).astype(LIBRARY[name]).view(oracle.storage(name))
    finite_only = name in ("e3m2", "e2m3", "e2m1", "e1m2")
    nans = np.isnan(inputs.view(np.float32))
    for code, their, is_nan in zip(inputs.tolist(), theirs.tolist(), nans.tolist(), strict=True):
        if (
            is_nan and finite_only
        ):  # docs/reference/formats.md section 5 row 8: the libraries differ on the sign of the zero
            continue
        mine = oracle.cast(code, "f32", name)
        # numpy keeps NaN payloads (row 10), so NaN compares as a class.
        assert mine == their or (is_nan and oracle.decode(their, name).kind == "nan"), (hex(code), mine, their)


@pytest.mark.parametrize("mode", GFLOAT_MODES)
@pytest.mark.parametrize("name", [name for name in GFLOAT if oracle.fmt(name).bits <= 16 and name != "e8m0"])
def test_every_mode_equals_gfloat(name: str, mode: str) -> None:
    """Values, not codes; saturating, and not saturating where the format can tell.

    Source: docs/reference/formats.md section 5 row 4.
    """
    inputs = float32_inputs(name)[::5]
    numbers = inputs.view(np.float32).astype(np.float64)
    info = GFLOAT[name]
    for overflow in ("saturate", "special"):
        if overflow == "special" and oracle.fmt(name).nan is None:
            continue
        keep = ~np.isnan(numbers)
        theirs = gfloat.round_ndarray(info, numbers[keep], GFLOAT_MODES[mode], sat=overflow == "saturate")
        for code, their in zip(inputs[keep].tolist(), theirs.tolist(), strict=True):
            mine = oracle.decode(oracle.cast(code, "f32", name, mode, overflow), name)
            assert same_value(mine, exact(their)), (hex(code), overflow, mine, their)


def test_double_to_half_and_single_equals_numpy() -> None:
    rng = np.random.default_rng(3)
    words = rng.integers(0, 1 << 63, 4000, dtype=np.uint64)
    near_one = (rng.integers(0x3E0, 0x41F, 4000).astype(np.uint64) << np.uint64(52)) | (words >> np.uint64(12))
    for inputs in (words, near_one):
        for name, native in (("f16", np.float16), ("f32", np.float32)):
            theirs = inputs.view(np.float64).astype(native)
            for code, their in zip(inputs.tolist(), theirs, strict=True):
                mine = oracle.cast(code, "f64", name)
                assert same_value(oracle.decode(mine, name), exact(float(their)))


def test_integers_round_once_to_wide_floats_as_numpy() -> None:
    values = np.random.default_rng(4).integers(-(1 << 63), (1 << 63) - 1, 4000)
    values = np.concatenate([values, values >> 20, [(1 << 60) + (1 << 36) + 1, -(1 << 63), (1 << 63) - 1]])
    for name, native, unsigned in (("f32", np.float32, np.uint32), ("f64", np.float64, np.uint64)):
        theirs = values.astype(native).view(unsigned)
        mine = oracle.cast_array(values.view(np.uint64), "i64", name)
        assert np.array_equal(mine, theirs)
    # docs/reference/formats.md section 5 row 5: where libraries that pass through float32 err.
    assert oracle.cast(62783487, "i32", "bf16") == 0x4C6F


@pytest.mark.parametrize(
    ("mode", "numpy_round"), [("rint", np.rint), ("floor", np.floor), ("ceil", np.ceil), ("trunc", np.trunc)]
)
def test_float_to_integer_equals_numpy_rounding_with_python_integers(mode: str, numpy_round: np.ufunc) -> None:
    rng = np.random.default_rng(5)
    numbers = np.concatenate([rng.uniform(-600, 600, 500), np.arange(-300, 300) / 2, rng.uniform(-1e19, 1e19, 300)])
    for number in numbers:
        whole = int(numpy_round(number))
        code = int(np.float64(number).view(np.uint64))
        assert oracle.cast(code, "f64", "i8", mode, "saturate") == max(-128, min(127, whole)) & 0xFF
        assert oracle.cast(code, "f64", "u16", mode, "wrap") == whole & 0xFFFF
        assert oracle.cast(code, "f64", "i48", mode, "saturate") == max(-(2**47), min(2**47 - 1, whole)) & (2**64 - 1)


@pytest.mark.parametrize("dst", ["f16", "bf16", "e5m2"])
def test_odd_rounding_then_nearest_equals_nearest(dst: str) -> None:
    """The property of von Neumann rounding: two spare bits make double rounding harmless (Boldo, Melquiond 2008)."""
    for code in hard_codes("f64", dst, points=200, reach=2, random=500, seed=6).tolist():
        wide = oracle.cast(code, "f64", "f32", "odd")
        assert oracle.cast(wide, "f32", dst, "rint") == oracle.cast(code, "f64", dst, "rint")


def test_worked_examples_of_the_format_notes() -> None:
    """Numbers stated in docs/reference/formats.md sections 1, 2 and 5, each in its own words there."""

    def single(number: float) -> int:
        return int(np.float32(number).view(np.uint32))

    assert oracle.cast(single(464.0), "f32", "e4m3fn") == 0x7E
    assert oracle.cast(single(np.nextafter(np.float32(464), np.float32(999))), "f32", "e4m3fn") == 0x7F
    assert oracle.cast(single(248.0), "f32", "e4m3fnuz") == 0x80
    assert oracle.cast(single(61440.0), "f32", "e5m2") == 0x7C
    assert oracle.cast(single(5.0), "f32", "e2m1") == 6
    assert oracle.cast(single(40960.0), "f32", "hif8") == 0x6F
    assert oracle.cast(single(40960.0), "f32", "hif8", overflow="saturate") == 0x6E
    assert oracle.cast(single(2.0**-23), "f32", "hif8") == 0x01
    assert float64(oracle.cast(single(16.0), "f32", "hif8", "hybrid"), "hif8") == 20.0
    assert oracle.cast(single(32768.0), "f32", "hif8", "hybrid") == 0x6F
    assert oracle.cast(int(np.float64(1 + 2.0**-8 + 2.0**-50).view(np.uint64)), "f64", "bf16") == 0x3F81
    assert oracle.cast(single(np.nan), "f32", "e2m1") == 0
    assert oracle.cast(single(-np.inf), "f32", "e4m3fn") == 0xFF
    assert oracle.cast(single(-np.inf), "f32", "i16", "rint", "wrap") == 0


def test_hybrid_moves_seventy_exact_values() -> None:
    """docs/reference/formats.md section 2: 70 of the 126 finite positive HiF8 values move under f32 hybrid, none
    under f16.
    """
    finite = [code for code in range(1, 128) if code != 0x6F]
    moved = [c for c in finite if oracle.cast(oracle.cast(c, "hif8", "f32"), "f32", "hif8", "hybrid") != c]
    assert len(moved) == 70
    normal_halves = [c for c in finite if oracle.decode(c, "hif8").magnitude >= Fraction(1, 2**14)]
    for code in normal_halves:
        assert oracle.cast(oracle.cast(code, "hif8", "f16"), "f16", "hif8", "hybrid") == code


@pytest.mark.parametrize("bits", [1, 5, 128, 255])
def test_stochastic_equals_gfloat_through_the_documented_mapping(bits: int) -> None:
    """docs/reference/formats.md section 6: r = 2**32 - bits * 2**(32-n); bits = 0 (never up) has no 32-bit word."""
    inputs = float32_inputs("f16")[::7]
    numbers = inputs.view(np.float32).astype(np.float64)
    theirs = gfloat.round_ndarray(
        GFLOAT["f16"], numbers, RoundMode.StochasticFastest, sat=True,
        srbits=np.full(numbers.shape, bits, dtype=np.int64), srnumbits=8,
    )  # fmt: skip
    for code, number, their in zip(inputs.tolist(), numbers, theirs.tolist(), strict=True):
        if np.isfinite(number):
            mine = oracle.cast(code, "f32", "f16", "stochastic", "saturate", random=2**32 - bits * 2**24)
            assert same_value(oracle.decode(mine, "f16"), exact(their)), hex(code)


@pytest.mark.parametrize("src", NARROW)
def test_array_oracle_equals_scalar_oracle(src: str) -> None:
    every = np.array(codes(src), dtype=oracle.storage(src))
    rng = np.random.default_rng(7)
    every = np.unique(np.concatenate([rng.choice(every, 60), every[:4], every[-4:], every[len(every) // 2 :][:4]]))
    # f8_143 with another bias repeats the field layout: one of the fifteen others is enough as a destination.
    for dst in (name for name in (*oracle.FLOATS, *oracle.INTS) if "@" not in name or name == "f8_143@11"):
        if dst == "e8m0":  # other modes: the next test
            continue
        for mode in oracle.MODES:
            for overflow in oracle.OVERFLOWS:
                try:
                    arrays = oracle.cast_array(every, src, dst, mode, overflow).tolist()
                except oracle.Refused:
                    with pytest.raises(oracle.Refused):
                        oracle.cast(0, src, dst, mode, overflow)
                    continue
                scalars = [oracle.cast(code, src, dst, mode, overflow) for code in every.tolist()]
                assert arrays == scalars, (dst, mode, overflow)


@pytest.mark.parametrize("src", ["f16", "bf16", "e4m3fn", "hif8", "e8m0", "i8", "u16"])
@pytest.mark.parametrize("rule", ["onnx", "asl"])
def test_array_oracle_equals_scalar_oracle_to_e8m0(src: str, rule: str) -> None:
    every = np.array(codes(src), dtype=oracle.storage(src))
    every = every[:: max(1, len(every) // 1000)]
    for mode in ("up", "down", "nearest") if rule == "onnx" else oracle.MODES:
        for overflow in ("saturate", "special"):
            arrays = oracle.cast_array(every, src, "e8m0", mode, overflow, e8m0=rule).tolist()
            assert arrays == [oracle.cast(code, src, "e8m0", mode, overflow, e8m0=rule) for code in every.tolist()]


# ------------------------------------------------------- the A2/A3 oracle by the worked numbers of its pages


def half(number: float) -> int:
    return int(np.float16(number).view(np.uint16))


def single(number: float) -> int:
    return int(np.float32(number).view(np.uint32))


def test_worked_numbers_of_section_4_3() -> None:
    assert lane("f32", "i16", single(3e9), "trunc", "off", tmp=True) == 0xFFFF
    assert lane("f32", "i16", single(3e9), "trunc", "off", tmp=False) == 24064
    assert lane("f16", "i8", half(200), "trunc", "off", tmp=True) == -56 & 0xFF
    assert lane("f16", "i8", half(-200), "trunc", "off", tmp=True) == 56
    assert lane("f16", "i8", half(300), "trunc", "off", tmp=True) == 44
    assert lane("f16", "i8", half(300), "trunc", None, tmp=False) == 44
    assert lane("f16", "i16", half(40000), "trunc", "off", tmp=True) == -25536 & 0xFFFF
    for dst, ones in (("i16", 0xFFFF), ("i8", 0xFF)):
        assert lane("f16", dst, half(np.inf), "rint", "off", tmp=True) == ones
        assert lane("f16", dst, half(-np.inf), "rint", "off", tmp=True) == 0
        assert lane("f16", dst, half(np.nan), "rint", "off", tmp=True) == 0
    assert lane("f32", "f32", single(-0.3), "rint", None, tmp=False) == 0x80000000


def test_modes_fall_back_per_pair() -> None:
    """Section 1: ODD only for f32 to f16; NONE is TRUNC to integers, RINT otherwise."""
    assert effective_mode("f32", "f16", "odd") == "odd"
    assert effective_mode("f32", "bf16", "odd") == "rint"
    assert effective_mode("f16", "u8", "none") == "trunc"
    assert effective_mode("f16", "i4", None) == "rint"
    assert effective_mode("i64", "f32", "odd") == "rint"
    assert effective_mode("i32", "f16", "floor") == "rint"
    with pytest.raises(ValueError, match="half_up"):
        effective_mode("f32", "f16", "half_up")


def test_saturation_is_ignored_without_tmp_outside_the_narrowing_six() -> None:
    assert effective_saturation("f32", "i32", "off", tmp=False) == "on"
    assert effective_saturation("f32", "i32", "off", tmp=True) == "off"
    assert effective_saturation("f32", "i32", None, tmp=True) == "on"
    assert effective_saturation("i64", "i32", None, tmp=False) == "off"
    assert lane("f32", "i32", single(3e9), "trunc", "off", tmp=False) == 0x7FFFFFFF
    assert lane("f32", "i32", single(3e9), "trunc", "off", tmp=True) == 3_000_000_000


def test_float_results_follow_ctrl_48() -> None:
    clamps = Doubt(ctrl48=False)
    assert lane("f32", "f16", single(70000), "rint", None, tmp=False, doubt=clamps) == 0x7BFF
    assert lane("f32", "f16", single(-np.inf), "rint", None, tmp=False, doubt=clamps) == 0xFBFF
    assert lane("f32", "bf16", single(np.nan), "rint", None, tmp=False, doubt=clamps) == 0
    assert lane("f32", "f16", single(70000), "rint", None, tmp=False) == 0x7C00
    assert lane("f32", "bf16", single(np.nan), "rint", None, tmp=False) == 0x7FC0


def test_other_pairs_are_refused() -> None:
    with pytest.raises(oracle.Refused):
        lane("bf16", "f16", 0, None, None, tmp=False)


# ------------------------------------------ the oracle for arrays of wide sources against the scalar one, on codes near


SOURCES = ["f32", "f64", "i32", "u32", "i48"]
DESTINATIONS = ["f64", "f32", "f16", "bf16", "e4m3fn", "e2m1", "hif8", "e8m0", "i8", "u16", "i32", "i48", "u64", "bool"]


@pytest.mark.parametrize("src", SOURCES)
@pytest.mark.parametrize("dst", DESTINATIONS)
def test_arrays_equal_single_casts(src: str, dst: str) -> None:
    source = hard_codes(src, dst, points=12, reach=2, random=60, seed=3)
    tried = 0
    for mode, overflow in product((*oracle.MODES, "up", "down", "nearest"), oracle.OVERFLOWS):
        try:
            oracle.check(src, dst, mode, overflow)
        except oracle.Refused:
            continue
        tried += 1
        expected = [oracle.cast(code, src, dst, mode, overflow) for code in source.tolist()]
        got = oracle.cast_array(source, src, dst, mode, overflow)
        assert got.dtype == oracle.storage(dst)
        assert got.tolist() == expected, (mode, overflow)
    assert tried >= 3


@pytest.mark.parametrize("mode", oracle.MODES)
@pytest.mark.parametrize("overflow", ["saturate", "special"])
def test_powers_of_two_by_the_exponent(mode: str, overflow: str) -> None:
    source = hard_codes("f32", "e8m0", points=30, reach=2, random=200, seed=4)
    expected = [oracle.cast(code, "f32", "e8m0", mode, overflow, e8m0="asl") for code in source.tolist()]
    assert oracle.cast_array(source, "f32", "e8m0", mode, overflow, e8m0="asl").tolist() == expected
