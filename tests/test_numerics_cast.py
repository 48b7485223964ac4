"""Casts of codes: laws that hold for every pair, and agreement with NumPy, ml_dtypes, gfloat and en_dtypes."""

from __future__ import annotations

from fractions import Fraction

import en_dtypes
import gfloat
import ml_dtypes
import numpy as np
import pytest
from gfloat.formats import format_info_binary32
from numerics_samples import cast, is_nan, samples, stored_mask

from castsim.isa.errors import IllegalError, ReadError
from castsim.isa.formats import FORMATS, FloatFormat, IntFormat, Specials
from castsim.isa.modes import Overflow, Rounding
from castsim.numerics import (
    Scale,
    abstract_policy,
    cast_codes,
    decode_to_float64,
    round_to_integral_codes,
    scale_of,
    scaled_cast_codes,
)

FLOATS = [fmt for fmt in FORMATS.values() if not isinstance(fmt, IntFormat)]
ML_DTYPES = {
    "bf16": ml_dtypes.bfloat16,
    "e4m3fn": ml_dtypes.float8_e4m3fn,
    "e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "e5m2": ml_dtypes.float8_e5m2,
    "e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
    "e3m2": ml_dtypes.float6_e3m2fn,
    "e2m3": ml_dtypes.float6_e2m3fn,
    "e2m1": ml_dtypes.float4_e2m1fn,
}
GFLOAT_MODES = {
    Rounding.RINT: gfloat.RoundMode.TiesToEven,
    Rounding.ROUND: gfloat.RoundMode.TiesToAway,
    Rounding.TRUNC: gfloat.RoundMode.TowardZero,
    Rounding.FLOOR: gfloat.RoundMode.TowardNegative,
    Rounding.CEIL: gfloat.RoundMode.TowardPositive,
}


# ------------------------------------------------------------------------------------------------- other libraries


@pytest.mark.parametrize("dst", ML_DTYPES)
@pytest.mark.parametrize("src", ["f32", "f16", "bf16"])
def test_nearest_even_agrees_with_ml_dtypes(src: str, dst: str) -> None:
    codes = samples(FORMATS[src], count=200_000)
    numbers = codes.view({"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}[src])
    # The 16-bit sources convert to float32 exactly, from which ml_dtypes rounds once.
    want = numbers.astype(np.float32).astype(ML_DTYPES[dst])
    got = cast(codes, src, dst)
    number = ~np.isnan(numbers.astype(np.float32))
    assert np.array_equal(got[number], want.view(got.dtype)[number])
    if FORMATS[dst].nan_code is not None:
        assert np.array_equal(is_nan(got, FORMATS[dst]), np.isnan(want.astype(np.float32)))


def gfloat_info(fmt: FloatFormat) -> gfloat.FormatInfo:
    info = format_info_binary32
    return type(info)(
        name=fmt.name,
        k=fmt.bits,
        precision=fmt.fraction_bits + 1,
        bias=fmt.bias,
        has_nz=fmt.has_negative_zero,
        domain=gfloat.types.Domain.Extended if fmt.has_infinity else gfloat.types.Domain.Finite,
        num_high_nans={Specials.IEEE: fmt.fraction_mask, Specials.NAN_ALL_ONES: 1}.get(fmt.specials, 0),
        has_subnormals=True,
        is_signed=True,
        is_twos_complement=False,
    )


GFLOAT_FORMATS = [fmt for fmt in FLOATS if isinstance(fmt, FloatFormat) and fmt.has_zero and fmt.bits <= 16]


@pytest.mark.parametrize("saturate", [False, True])
@pytest.mark.parametrize("rounding", GFLOAT_MODES)
@pytest.mark.parametrize("dst", GFLOAT_FORMATS, ids=lambda fmt: fmt.name)
def test_modes_agree_with_gfloat(dst: FloatFormat, rounding: Rounding, saturate: bool) -> None:
    codes = samples(FORMATS["f32"])
    numbers = codes.view(np.float32).astype(np.float64)
    if not dst.has_nan:  # gfloat raises there; the special cases have tests of their own
        saturate = True
        codes, numbers = codes[~np.isnan(numbers)], numbers[~np.isnan(numbers)]
    want = gfloat.round_ndarray(gfloat_info(dst), numbers, GFLOAT_MODES[rounding], saturate)
    got = cast(codes, "f32", dst.name, rounding, Overflow.SATURATE if saturate else Overflow.SPECIAL)
    got_numbers = decode_to_float64(got, dst)
    assert np.array_equal(got_numbers, want, equal_nan=True)
    if dst.has_negative_zero:
        number = ~np.isnan(want)
        assert np.array_equal(np.signbit(got_numbers)[number], np.signbit(want)[number])


@pytest.mark.parametrize("src", ["f32", "f16", "bf16"])
def test_hif8_agrees_with_en_dtypes(src: str) -> None:
    codes = samples(FORMATS[src], count=300_000)
    numbers = codes.view({"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}[src]).astype(np.float32)
    assert np.array_equal(cast(codes, src, "hif8"), numbers.astype(en_dtypes.hifloat8).view(np.uint8))


# ------------------------------------------------------------------------------------------------- integers


def half_away(x: np.ndarray) -> np.ndarray:
    whole = np.trunc(x)
    return whole + np.where(np.abs(x - whole) >= 0.5, np.sign(x), 0)  # the difference is exact


def half_up(x: np.ndarray) -> np.ndarray:
    whole = np.trunc(x)
    return whole + np.where(x - whole >= 0.5, 1, np.where(x - whole < -0.5, -1, 0))


def in_range(integer: int, fmt: IntFormat) -> int:
    """Return the number of the format that equals an integer modulo 2**bits."""
    return (integer - fmt.minimum) % (1 << fmt.bits) + fmt.minimum


ROUND_FLOAT64 = {
    Rounding.RINT: np.rint,
    Rounding.FLOOR: np.floor,
    Rounding.CEIL: np.ceil,
    Rounding.TRUNC: np.trunc,
    Rounding.ROUND: half_away,
    Rounding.HALF_UP: half_up,
}


@pytest.mark.parametrize("rounding", ROUND_FLOAT64)
@pytest.mark.parametrize("dst", ["i2", "u2", "i4", "u4", "i8", "u8", "i16", "u16", "i32", "u32", "i48"])
@pytest.mark.parametrize("src", ["f16", "f32"])
def test_floats_round_then_clamp_or_wrap(src: str, dst: str, rounding: Rounding) -> None:
    codes = samples(FORMATS[src], count=2000)
    numbers = decode_to_float64(codes, FORMATS[src])
    codes, numbers = codes[np.isfinite(numbers)], numbers[np.isfinite(numbers)]
    fmt = FORMATS[dst]
    assert isinstance(fmt, IntFormat)
    integers = [int(number) for number in ROUND_FLOAT64[rounding](numbers)]
    mask = stored_mask(fmt)
    clamped = [min(max(integer, fmt.minimum), fmt.maximum) & mask for integer in integers]
    assert cast(codes, src, dst, rounding, Overflow.SATURATE).tolist() == clamped
    assert cast(codes, src, dst, rounding, Overflow.WRAP).tolist() == [
        in_range(integer, fmt) & mask for integer in integers
    ]


@pytest.mark.parametrize("rounding", ROUND_FLOAT64)
@pytest.mark.parametrize("src", ["f16", "f32", "f64", "bf16"])
def test_round_to_integral_agrees_with_numpy(src: str, rounding: Rounding) -> None:
    fmt = FORMATS[src]
    codes = samples(fmt)
    numbers = decode_to_float64(codes, fmt)
    if rounding in (Rounding.ROUND, Rounding.HALF_UP):
        codes, numbers = codes[np.isfinite(numbers)], numbers[np.isfinite(numbers)]
    got = decode_to_float64(round_to_integral_codes(codes, fmt, abstract_policy(fmt, fmt, rounding)), fmt)
    want = ROUND_FLOAT64[rounding](numbers)
    assert np.array_equal(got, want, equal_nan=True)
    if rounding is Rounding.RINT:
        number = ~np.isnan(numbers)
        assert np.array_equal(np.signbit(got)[number], np.signbit(numbers)[number])


def test_round_to_integral_refuses_what_has_no_fraction_or_no_zero() -> None:
    for name in ("i8", "bool", "e8m0"):
        fmt = FORMATS[name]
        with pytest.raises(IllegalError, match=name):
            round_to_integral_codes(np.zeros(1, np.uint8), fmt, abstract_policy(fmt, fmt))


@pytest.mark.parametrize("scale", [Scale(1), Scale(3, -4), Scale(-5, -9), Scale(2047, -30), Scale(1, 20), Scale(0)])
@pytest.mark.parametrize("dst", ["f16", "f32", "i8", "i16"])
def test_a_scaled_cast_rounds_the_exact_product_once(dst: str, scale: Scale) -> None:
    codes = samples(FORMATS["i32"], count=300)
    src, fmt = FORMATS["i32"], FORMATS[dst]
    assert isinstance(src, IntFormat)
    policy = abstract_policy(FORMATS["f64"], fmt)
    got = scaled_cast_codes(codes, src, fmt, scale, policy)
    factor = scale.significand * Fraction(2) ** scale.exponent
    # 32 bits times 11 fit float64 exactly, from which a cast rounds once.
    products = [float(int(value) * factor) for value in codes.view(np.int32)]
    want = cast_codes(np.array(products).view(np.uint64), FORMATS["f64"], fmt, policy)
    if scale.significand > 0 or isinstance(fmt, IntFormat):
        assert np.array_equal(got, want)
    else:  # an integer zero has no sign, its product with a negative scale takes the scale's
        nonzero = np.array(products) != 0
        assert np.array_equal(got[nonzero], want[nonzero])


def test_scales_come_from_float_codes() -> None:
    assert scale_of(0x3C00, FORMATS["f16"]) == Scale(1, 0)
    assert scale_of(0xBE00, FORMATS["f16"]) == Scale(-3, -1)
    assert scale_of(0x0001, FORMATS["f16"]) == Scale(1, -24)
    with pytest.raises(ReadError, match="not a finite scale"):
        scale_of(0x7C00, FORMATS["f16"])


def test_shifts_are_per_element() -> None:
    codes = np.array([5, 5, -5 & 0xFFFFFFFF, 1], np.uint32)
    shifts = np.array([-1, 2, -1, -100], np.int8)
    src = FORMATS["i32"]
    assert isinstance(src, IntFormat)
    policy = abstract_policy(FORMATS["f32"], FORMATS["i16"], Rounding.RINT)
    got = scaled_cast_codes(codes, src, FORMATS["i16"], Scale(1), policy, shifts=shifts)
    assert got.view(np.int16).tolist() == [2, 20, -2, 0]


def test_products_beyond_64_bits_are_refused() -> None:
    src = FORMATS["i64"]
    assert isinstance(src, IntFormat)
    policy = abstract_policy(src, FORMATS["f32"])
    with pytest.raises(IllegalError, match="64 bits"):
        scaled_cast_codes(np.zeros(1, np.uint64), src, FORMATS["f32"], Scale(3), policy)
