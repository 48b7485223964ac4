"""The table tier is the reference, bit for bit, in every pair, mode and layout that has a table."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from kit.numerics_samples import samples

from castsim.isa.errors import IllegalError, ReadError
from castsim.isa.formats import FORMATS, Format, IntFormat, Overflow, Rounding, format_named
from castsim.numerics.blocks import code_dtype
from castsim.numerics.cast import cast_codes
from castsim.numerics.codec import codes_from_strings, decode_to_float64, strings_from_codes, value_of
from castsim.numerics.policy import (
    E8M0Rule,
    InfinityWrap,
    NanToFloat,
    Policy,
    abstract_policy,
    legal_overflows,
    legal_roundings,
)
from castsim.numerics.tables import cast_by_table, dropped_bits, table_size
from castsim.numerics.tiers import Tier, convert_codes

NARROW = [name for name, fmt in FORMATS.items() if fmt.bits <= 16]


def same(codes: np.ndarray, src: str, dst: str, policy: Policy) -> None:
    args = (codes, format_named(src), format_named(dst), policy)
    assert np.array_equal(cast_by_table(*args), cast_codes(*args)), (src, dst, policy)


@pytest.mark.parametrize("src", ["e4m3fn", "i4", "bool", "bf16", "hif8", "u16"])
def test_every_code_of_narrow_sources(src: str) -> None:
    fmt = FORMATS[src]
    codes = np.arange(256, dtype=np.uint8) if src == "bool" else samples(fmt)
    for dst in FORMATS:
        same(codes, src, dst, abstract_policy(fmt, FORMATS[dst]))


@pytest.mark.parametrize("dst", [*NARROW, "f8_143@0", "f8_143@15"])
@pytest.mark.parametrize("src", ["f32", "f64"])
def test_wide_floats_in_every_mode(src: str, dst: str) -> None:
    source, destination = format_named(src), format_named(dst)
    codes = samples(source, count=30_000)
    # Near the destination's numbers and midpoints, with every pattern of half and sticky bits below them.
    near = samples(destination)[:: max(1, (1 << destination.bits) // 2048)]
    wide = cast_codes(near, destination, source, abstract_policy(destination, source)).astype(np.uint64)
    step = np.uint64(1 << max(source.fraction_bits - getattr(destination, "fraction_bits", 3) - 1, 0))
    around = [wide + np.uint64(k) * step + np.uint64(delta) for k in (0, 1) for delta in (0, 1, 2)]
    around += [wide + step - np.uint64(1), wide - np.uint64(1)]
    codes = np.concatenate([codes, *(array.astype(codes.dtype) for array in around)])
    for rounding in legal_roundings(source, destination):
        for overflow in legal_overflows(destination):
            policy = abstract_policy(source, destination, rounding, overflow)
            if dropped_bits(source, destination, policy) is not None and destination.bits <= 8:
                same(codes, src, dst, policy)
    policy = abstract_policy(source, destination)
    if dropped_bits(source, destination, policy) is not None:
        same(codes, src, dst, policy)


@pytest.mark.parametrize(
    ("src", "dst", "policy"),
    [
        ("f32", "i8", Policy(Rounding.TRUNC, Overflow.WRAP, wrap_bits=9, infinity_wrap=InfinityWrap.CLAMP)),
        ("f32", "i4", Policy(Rounding.RINT, Overflow.WRAP, wrap_bits=1)),
        ("f32", "bf16", Policy(Rounding.RINT, Overflow.SATURATE, nan_to_float=NanToFloat.ZERO)),
        ("f32", "f16", Policy(Rounding.RINT, Overflow.SPECIAL, flush_source=True, flush_result=True)),
        ("f32", "e4m3fn", Policy(Rounding.TRUNC, Overflow.SPECIAL, subnormal_rounding=Rounding.CEIL)),
        ("f16", "hif8", Policy(Rounding.HYBRID, Overflow.SPECIAL)),
        ("f16", "f32", Policy(Rounding.RINT, Overflow.SPECIAL, nan_to_float=NanToFloat.PAYLOAD)),
        ("bf16", "e8m0", Policy(Rounding.RINT, Overflow.SATURATE, e8m0_rule=E8M0Rule.ASL)),
    ],
)
def test_other_policies(src: str, dst: str, policy: Policy) -> None:
    same(samples(FORMATS[src]), src, dst, policy)


@pytest.mark.parametrize(
    ("src", "dst", "policy"),
    [
        ("f32", "i8", Policy(Rounding.RINT, Overflow.WRAP)),
        ("f32", "i32", Policy(Rounding.RINT, Overflow.SATURATE)),
        ("f32", "f64", Policy(Rounding.RINT, Overflow.SPECIAL)),
        ("i32", "f16", Policy(Rounding.RINT, Overflow.SPECIAL)),
        ("f32", "hif8", Policy(Rounding.HYBRID, Overflow.SPECIAL)),
        ("f32", "e8m0", Policy(Rounding.RINT, Overflow.SATURATE, e8m0_rule=E8M0Rule.ASL)),
        ("f32", "bf16", Policy(Rounding.RINT, Overflow.SPECIAL, nan_to_float=NanToFloat.PAYLOAD)),
        ("f16", "e5m2", Policy(Rounding.STOCHASTIC, Overflow.SPECIAL)),
    ],
)
def test_casts_that_need_all_bits_have_no_table(src: str, dst: str, policy: Policy) -> None:
    assert table_size(FORMATS[src], FORMATS[dst], policy) is None
    with pytest.raises(IllegalError, match="no table"):
        cast_by_table(np.zeros(1, code_dtype(FORMATS[src])), FORMATS[src], FORMATS[dst], policy)


def test_the_tier_is_chosen_or_asked_for() -> None:
    f32, f16 = FORMATS["f32"], FORMATS["f16"]
    codes = samples(f32, count=1000)
    policy = abstract_policy(f32, f16)
    want = cast_codes(codes, f32, f16, policy)
    for tier in (None, *Tier):
        assert np.array_equal(convert_codes(codes, f32, f16, policy, tier=tier), want)
    stochastic = abstract_policy(f32, f16, Rounding.STOCHASTIC)
    words = np.zeros(codes.size, np.uint32)
    assert np.array_equal(
        convert_codes(codes, f32, f16, stochastic, random=words), cast_codes(codes, f32, f16, stochastic, random=words)
    )
    with pytest.raises(IllegalError, match="random words"):
        convert_codes(codes, f32, f16, stochastic, random=words, tier=Tier.TABLE)


# --------------------------------------------------------------------------- arrays of every layout give the same codes
@pytest.mark.parametrize("fmt", [fmt for fmt in FORMATS.values() if fmt.bits < fmt.storage_bits], ids=lambda f: f.name)
def test_codes_wider_than_the_format_are_refused_except_bool(fmt: Format) -> None:
    codes = np.array([0, 1 << fmt.bits], code_dtype(fmt))
    policy = abstract_policy(fmt, FORMATS["f64"])
    if isinstance(fmt, IntFormat) and fmt.boolean:
        got = cast_codes(np.array([0, 1, 2, 255], np.uint8), fmt, FORMATS["f64"], policy)
        assert got.view(np.float64).tolist() == [0, 1, 1, 1]
        return
    with pytest.raises(ReadError, match=fmt.name):
        cast_codes(codes, fmt, FORMATS["f64"], policy)


def test_f8_143_bias_moves_the_range() -> None:
    for bias in range(16):
        fmt = format_named(f"f8_143@{bias}")
        codes = samples(fmt)
        scaled = decode_to_float64(codes, fmt)
        plain = decode_to_float64(codes, FORMATS["f8_143"])
        assert np.array_equal(scaled, plain * 2.0 ** (7 - bias), equal_nan=True)
        # docs/reference/tpc.md section 5: smallest normal exponent 1 - bias, largest 15 - bias - 1.
        assert value_of(0x08, fmt) == Fraction(2) ** (1 - bias)
        assert value_of(0x70, fmt) == Fraction(2) ** (15 - bias - 1)


# ---------------------------------------------------------------------------------------------------- oNNX string casts
FLOATS = [name for name, fmt in FORMATS.items() if not isinstance(fmt, IntFormat)]


def test_decimals_and_scientific_notation() -> None:
    texts = ["3.14", "1000", "1e-5", "1E8", "-0", "+2.5", ".5", "1e400"]
    got = codes_from_strings(texts, FORMATS["f32"]).view(np.float32)
    assert got.tolist() == np.array([float(text) for text in texts]).astype(np.float32).tolist()
    assert np.signbit(got[4])


def test_special_literals_in_any_case() -> None:
    got = codes_from_strings(["INF", "+inf", "-Inf", "NaN", "nan"], FORMATS["f16"])
    assert got.tolist() == [0x7C00, 0x7C00, 0xFC00, 0x7E00, 0x7E00]


def test_integers_and_bool() -> None:
    assert codes_from_strings(["-128", "127", "+0"], FORMATS["i8"]).view(np.int8).tolist() == [-128, 127, 0]
    assert codes_from_strings(["18446744073709551615"], FORMATS["u64"]).tolist() == [(1 << 64) - 1]
    assert codes_from_strings(["0", "1", "2", "INF"], FORMATS["bool"]).tolist() == [0, 1, 1, 1]
    assert codes_from_strings(["100.0", "1e2"], FORMATS["i8"]).tolist() == [100, 100]


@pytest.mark.parametrize("text", ["2.718", "128", "-129", "NaN", "INF", "1e300"])
def test_what_onnx_leaves_undefined_is_refused_without_a_policy(text: str) -> None:
    with pytest.raises(ReadError, match=text):
        codes_from_strings([text], FORMATS["i8"])


def test_a_policy_settles_it() -> None:
    policy = Policy(Rounding.TRUNC, Overflow.SATURATE)
    got = codes_from_strings(["2.718", "-300", "NaN", "INF"], FORMATS["i8"], policy)
    assert got.view(np.int8).tolist() == [2, -128, 0, 127]


OTHER = ["Hello World!", "", " 1", "0x10", "1_000", "1/3", "infinity", "-nan", "1e", "x" * 100]


@pytest.mark.parametrize("text", OTHER)
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(ReadError, match="is not a number"):
        codes_from_strings([text], FORMATS["f32"])


def test_shapes_and_kinds_of_text_arrays() -> None:
    assert codes_from_strings(np.array([["1", "2"], ["3", "4"]]), FORMATS["i8"]).tolist() == [[1, 2], [3, 4]]
    assert codes_from_strings(np.array([b"1.5", b"-1"]), FORMATS["f16"]).tolist() == [0x3E00, 0xBC00]
    assert codes_from_strings(np.array(["1", b"2"], object), FORMATS["u8"]).tolist() == [1, 2]
    assert codes_from_strings(np.array("7"), FORMATS["i8"]).shape == ()
    assert codes_from_strings(np.zeros((0, 2), "U1"), FORMATS["f32"]).shape == (0, 2)
    for wrong in (np.zeros(2), np.array([1, None], object)):
        with pytest.raises(ReadError):
            codes_from_strings(wrong, FORMATS["f32"])


def test_numbers_become_plain_decimals() -> None:
    numbers = np.array([464.01, 1e6, 1e-7, -0.0, np.nan, np.inf, -np.inf], np.float32)
    got = strings_from_codes(numbers.view(np.uint32), FORMATS["f32"])
    assert got.tolist() == ["464.01", "1000000.0", "0.0000001", "-0.0", "NaN", "INF", "-INF"]
    assert strings_from_codes(np.array([[0xFF, 5]], np.uint8), FORMATS["i8"]).tolist() == [["-1", "5"]]
    assert strings_from_codes(np.array([0, 1], np.uint8), FORMATS["bool"]).tolist() == ["0", "1"]
    assert strings_from_codes(np.array([0xF, 1], np.uint8), FORMATS["i4"]).tolist() == ["-1", "1"]
    assert strings_from_codes(np.array(0x7E, np.uint8), FORMATS["e4m3fn"]).item() == "448.0"
    assert strings_from_codes(np.array([0x3F80, 0x3F81], np.uint16), FORMATS["bf16"]).tolist() == ["1.0", "1.0078125"]


@pytest.mark.parametrize("name", FORMATS)
def test_text_leads_back_to_the_code(name: str) -> None:
    fmt = FORMATS[name]
    codes = samples(fmt)
    codes = codes[:: max(1, codes.size // 300)]
    if name in FLOATS:
        codes = codes[~np.isnan(decode_to_float64(codes, fmt))]
    # ONNX rounds up to e8m0; the shortest decimal of a power of two may lie above it.
    policy = Policy(Rounding.ROUND, Overflow.SPECIAL) if name == "e8m0" else None
    assert np.array_equal(codes_from_strings(strings_from_codes(codes, fmt), fmt, policy), codes)
