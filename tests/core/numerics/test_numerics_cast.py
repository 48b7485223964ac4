"""Casts of codes: laws that hold for every pair, agreement with NumPy and gfloat, fields of policies, random words."""

from __future__ import annotations

from fractions import Fraction
from math import floor

import en_dtypes
import gfloat
import ml_dtypes
import numpy as np
import oracle
import pytest
from gfloat.formats import format_info_binary32
from kit.numerics_samples import cast, is_nan, samples, stored_mask

from castsim.isa.errors import IllegalError, ReadError
from castsim.isa.formats import FORMATS, FloatFormat, Format, IntFormat, Overflow, Rounding, Specials
from castsim.machines.vliw.semantics.operands import lfsr_step
from castsim.numerics.blocks import code_dtype
from castsim.numerics.cast import Scale, cast_codes, round_to_integral_codes, scale_of, scaled_cast_codes
from castsim.numerics.codec import decode_to_float64, value_of
from castsim.numerics.policy import (
    E8M0Rule,
    InfinityWrap,
    NanToFloat,
    NanToInteger,
    Policy,
    abstract_policy,
)
from castsim.numerics.rounding import Draw, rule_of, shift_round

FLOATS = [fmt for fmt in FORMATS.values() if not isinstance(fmt, IntFormat)]
GFLOAT_MODES = {
    Rounding.RINT: gfloat.RoundMode.TiesToEven,
    Rounding.ROUND: gfloat.RoundMode.TiesToAway,
    Rounding.TRUNC: gfloat.RoundMode.TowardZero,
    Rounding.FLOOR: gfloat.RoundMode.TowardNegative,
    Rounding.CEIL: gfloat.RoundMode.TowardPositive,
}


ML_DTYPES = {
    "bf16": ml_dtypes.bfloat16, "e4m3fn": ml_dtypes.float8_e4m3fn, "e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "e5m2": ml_dtypes.float8_e5m2, "e5m2fnuz": ml_dtypes.float8_e5m2fnuz, "e3m2": ml_dtypes.float6_e3m2fn,
    "e2m3": ml_dtypes.float6_e2m3fn, "e2m1": ml_dtypes.float4_e2m1fn,
}  # fmt: skip


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


# ------------------------------------------------------------------------------------------------- other libraries


def gfloat_info(fmt: FloatFormat) -> gfloat.FormatInfo:
    info = format_info_binary32
    return type(info)(
        name=fmt.name, k=fmt.bits, precision=fmt.fraction_bits + 1, bias=fmt.bias, has_nz=fmt.has_negative_zero,
        domain=gfloat.types.Domain.Extended if fmt.has_infinity else gfloat.types.Domain.Finite,
        num_high_nans={Specials.IEEE: fmt.fraction_mask, Specials.NAN_ALL_ONES: 1}.get(fmt.specials, 0),
        has_subnormals=True, is_signed=True, is_twos_complement=False,
    )  # fmt: skip


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


def half_away(x: np.ndarray) -> np.ndarray:
    whole = np.trunc(x)
    return whole + np.where(np.abs(x - whole) >= 0.5, np.sign(x), 0)  # the difference is exact


def half_up(x: np.ndarray) -> np.ndarray:
    whole = np.trunc(x)
    return whole + np.where(x - whole >= 0.5, 1, np.where(x - whole < -0.5, -1, 0))


ROUND_FLOAT64 = {
    Rounding.RINT: np.rint, Rounding.FLOOR: np.floor, Rounding.CEIL: np.ceil, Rounding.TRUNC: np.trunc,
    Rounding.ROUND: half_away, Rounding.HALF_UP: half_up,
}  # fmt: skip


def in_range(integer: int, fmt: IntFormat) -> int:
    """Return the number of the format that equals an integer modulo 2**bits."""
    return (integer - fmt.minimum) % (1 << fmt.bits) + fmt.minimum


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
    assert np.array_equal(got, ROUND_FLOAT64[rounding](numbers), equal_nan=True)
    if rounding is Rounding.RINT:
        number = ~np.isnan(numbers)
        assert np.array_equal(np.signbit(got)[number], np.signbit(numbers)[number])


# ------------------------------------------------------------------------------------------------- integers


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


# --------------------------------------------------------------- the abstract cast cell by cell (docs/reference/formats
SPECIAL, SATURATE, WRAP = Overflow.SPECIAL, Overflow.SATURATE, Overflow.WRAP
RINT, ROUND, FLOOR, CEIL, TRUNC, ODD, HALF_UP = (
    Rounding.RINT, Rounding.ROUND, Rounding.FLOOR, Rounding.CEIL, Rounding.TRUNC, Rounding.ODD, Rounding.HALF_UP
)  # fmt: skip
NAN, NEGATIVE_NAN, INF, NEGATIVE_INF = 0x7FC00000, 0xFFC00000, 0x7F800000, 0xFF800000


def bits(number: float) -> int:
    return int(np.float32(number).view(np.uint32))


def convert(code: int, src: str, dst: str, policy: Policy) -> int:
    return int(cast_codes(np.array(code, code_dtype(FORMATS[src])), FORMATS[src], FORMATS[dst], policy))


def abstract(code: int, dst: str, rounding: Rounding | None = None, overflow: Overflow | None = None) -> int:
    return convert(code, "f32", dst, abstract_policy(FORMATS["f32"], FORMATS[dst], rounding, overflow))


@pytest.mark.parametrize(
    ("dst", "number", "want"),
    [
        # RNE overflow thresholds of docs/reference/formats.md section 1.
        ("f16", 65520.0, 0x7C00),
        ("f16", 65519.996, 0x7BFF),
        ("bf16", 2.0**128 - 2.0**119, 0x7F80),
        ("e4m3fn", 464.0, 0x7E),
        ("e4m3fn", 464.0001, 0x7F),
        ("e4m3fnuz", 248.0, 0x80),
        ("e4m3fnuz", 247.9, 0x7F),
        ("e5m2", 61440.0, 0x7C),
        ("e5m2", 61439.0, 0x7B),
        ("e5m2fnuz", 61440.0, 0x80),
        ("e2m1", 5.0, 0x6),
        ("e2m1", 5.0001, 0x7),
        ("hif8", 40960.0, 0x6F),
        ("hif8", 40959.0, 0x6E),
        ("hif8", 2.0**-23, 0x01),
        ("hif8", 2.0**-23 * (1 - 2.0**-20), 0x00),
        # Half of the minimum subnormal ties to zero, the least bit more does not.
        ("f16", 2.0**-25, 0x0000),
        ("f16", 2.0**-25 * (1 + 2.0**-23), 0x0001),
        ("e4m3fn", 2.0**-10, 0x00),
        ("e4m3fn", 2.0**-10 * (1 + 2.0**-23), 0x01),
    ],
)
def test_thresholds(dst: str, number: float, want: int) -> None:
    assert abstract(bits(number), dst) == want


@pytest.mark.parametrize(
    ("src", "dst", "rounding", "overflow", "legal"),
    [
        ("f32", "f16", None, WRAP, "special"), ("f32", "i8", None, SPECIAL, "wrap"),
        ("i32", "i8", None, SPECIAL, "wrap"), ("f32", "hif8", RINT, None, "hybrid"),
        ("bf16", "hif8", Rounding.HYBRID, None, "trunc"), ("f32", "hif8", ODD, None, "round"),
        ("f32", "hif8", HALF_UP, None, "round"), ("f32", "hif8", Rounding.STOCHASTIC, None, "round"),
        ("f32", "f16", Rounding.HYBRID, None, "stochastic"), ("f32", "e8m0", RINT, None, "ceil"),
    ],
)  # fmt: skip
def test_meaningless_choices_are_refused_with_the_legal_ones(src, dst, rounding, overflow, legal) -> None:
    with pytest.raises(IllegalError) as refused:
        abstract_policy(FORMATS[src], FORMATS[dst], rounding, overflow)
    assert legal in refused.value.legal
    assert str(rounding or overflow) in refused.value.message


# ------------------------------------------------------------------------------------------------- policy fields
def test_nan_results_by_policy() -> None:
    fixed = Policy(RINT, SPECIAL, nan_to_float=NanToFloat.FIXED, nan_code=0x7FFF)
    assert convert(NAN, "f32", "bf16", fixed) == convert(NEGATIVE_NAN, "f32", "bf16", fixed) == 0x7FFF
    zero = Policy(RINT, SATURATE, nan_to_float=NanToFloat.ZERO)
    assert convert(NAN, "f32", "f16", zero) == convert(NEGATIVE_NAN, "f32", "f16", zero) == 0
    assert convert(NAN, "f32", "hif8", Policy(ROUND, SATURATE, nan_to_float=NanToFloat.ZERO)) == 0
    assert convert(NAN, "f32", "e8m0", Policy(CEIL, SATURATE, nan_to_float=NanToFloat.ZERO)) == 0xFF
    maximum = Policy(RINT, SATURATE, nan_to_integer=NanToInteger.MAXIMUM)
    minimum = Policy(RINT, SATURATE, nan_to_integer=NanToInteger.MINIMUM)
    assert convert(NAN, "f32", "i8", maximum) == 0x7F
    assert convert(NAN, "f32", "i8", minimum) == 0x80
    assert convert(NAN, "f32", "u8", maximum) == 0xFF


def test_nan_payload_is_kept_or_canonical_where_it_would_vanish() -> None:
    policy = Policy(RINT, SPECIAL, nan_to_float=NanToFloat.PAYLOAD)
    # docs/reference/tpc.md section 5: bf16 -> f32 shifts left by 16 and keeps the payload.
    for code in (0x7F81, 0xFF85, 0x7FC0, 0xFFFF):
        assert convert(code, "bf16", "f32", policy) == code << 16
    # NumPy keeps the top payload bits of a signalling NaN (docs/reference/formats.md section 5 row 10).
    assert convert(0x7F8CFC76, "f32", "f16", policy) == 0x7C67
    assert convert(0x7F800001, "f32", "f16", policy) == 0x7E00


def test_wrapping_through_an_intermediate_width() -> None:
    # docs/reference/a2a3.md section 4.3: an int32 intermediate with clamp, then the low 16 bits; 3e9 gives -1
    # instead of 24064.
    through_i32 = Policy(TRUNC, WRAP, wrap_bits=32, infinity_wrap=InfinityWrap.CLAMP)
    exact = Policy(TRUNC, WRAP)
    for code, narrow, wide in (
        (bits(3.0e9), 0xFFFF, 24064),
        (bits(-3.0e9), 0x0000, 65536 - 24064),
        (INF, 0xFFFF, 0),
        (NEGATIVE_INF, 0, 0),
        (NAN, 0, 0),
        (bits(40000.0), 40000, 40000),
        (bits(-40000.0), 65536 - 40000, 65536 - 40000),
    ):
        assert convert(code, "f32", "i16", through_i32) == narrow
        assert convert(code, "f32", "i16", exact) == wide
    extreme = Policy(TRUNC, WRAP, infinity_wrap=InfinityWrap.EXTREME)
    assert [convert(code, "f32", "i16", extreme) for code in (INF, NEGATIVE_INF)] == [0x7FFF, 0x8000]


def test_infinities_under_the_other_overflow() -> None:
    assert convert(INF, "f32", "bf16", Policy(RINT, SPECIAL, infinity_to_max=True)) == 0x7F7F
    assert convert(bits(3.4e38), "f32", "f16", Policy(RINT, SPECIAL, infinity_to_max=True)) == 0x7C00
    assert convert(NEGATIVE_INF, "f32", "f16", Policy(RINT, SATURATE, keep_infinity=True)) == 0xFC00
    assert convert(bits(3.4e38), "f32", "f16", Policy(RINT, SATURATE, keep_infinity=True)) == 0x7BFF


def test_flushes_and_minus_zero() -> None:
    tiny, small = bits(-1e-40), bits(-(2.0**-15))
    assert convert(tiny, "f32", "bf16", Policy(RINT, SPECIAL)) not in (0, 0x8000)
    assert convert(tiny, "f32", "bf16", Policy(RINT, SPECIAL, flush_source=True)) == 0x8000
    assert convert(small, "f32", "f16", Policy(RINT, SPECIAL)) == 0x8200
    assert convert(small, "f32", "f16", Policy(RINT, SPECIAL, flush_result=True)) == 0x8000
    # Rounding up to the smallest normal number is no subnormal result.
    assert convert(bits(2.0**-14 * (1 - 2.0**-20)), "f32", "f16", Policy(RINT, SPECIAL, flush_result=True)) == 0x0400
    assert convert(small, "f32", "f16", Policy(RINT, SPECIAL, flush_result=True, drop_negative_zero=True)) == 0
    assert convert(1 << 31, "f32", "f16", Policy(RINT, SPECIAL, drop_negative_zero=True)) == 0


def test_subnormal_results_may_round_by_another_mode() -> None:
    policy = Policy(TRUNC, SPECIAL, subnormal_rounding=CEIL)
    assert convert(bits(2.0**-24 * 1.5), "f32", "f16", policy) == 2
    assert convert(bits(1 + 2.0**-11), "f32", "f16", policy) == 0x3C00


def test_round_to_integral_specials() -> None:
    def rounded(code: int, policy: Policy) -> int:
        return int(round_to_integral_codes(np.array(code, np.uint32), FORMATS["f32"], policy))

    plain = Policy(RINT, SPECIAL)
    assert rounded(bits(-0.3), plain) == 1 << 31
    assert rounded(INF, plain) == INF
    assert rounded(NEGATIVE_NAN, plain) == NEGATIVE_NAN
    assert rounded(bits(1e30), plain) == bits(1e30)
    assert rounded(NAN, Policy(RINT, SPECIAL, nan_to_float=NanToFloat.FIXED, nan_code=0x7FFFFFFF)) == 0x7FFFFFFF
    assert rounded(INF, Policy(RINT, SATURATE)) == 0x7F7FFFFF


@pytest.mark.parametrize(
    ("dst", "policy"),
    [
        ("f16", Policy(RINT, SPECIAL, nan_to_float=NanToFloat.FIXED)),
        ("e4m3fn", Policy(RINT, SPECIAL, nan_to_float=NanToFloat.FIXED, nan_code=0x100)),
        ("f16", Policy(RINT, SPECIAL, nan_to_float=NanToFloat.FIXED, nan_code=-1)),
        ("i8", Policy(RINT, WRAP, wrap_bits=65)),
        ("i8", Policy(RINT, WRAP, wrap_bits=0)),
        ("i8", Policy(RINT, WRAP, infinity_wrap=InfinityWrap.CLAMP)),
        ("f16", Policy(RINT, SPECIAL, subnormal_rounding=Rounding.STOCHASTIC)),
    ],
)
def test_contradictory_policies_are_refused(dst: str, policy: Policy) -> None:
    with pytest.raises(IllegalError):
        convert(0, "f32", dst, policy)


def test_random_words_belong_to_stochastic_rounding() -> None:
    codes = np.zeros(2, np.uint32)
    f32, f16 = FORMATS["f32"], FORMATS["f16"]
    stochastic = abstract_policy(f32, f16, Rounding.STOCHASTIC)
    for policy, random in (
        (stochastic, None),
        (abstract_policy(f32, f16), np.zeros(2, np.uint32)),
        (stochastic, np.zeros(3, np.uint32)),
        (stochastic, np.zeros(2, np.uint64)),
        (stochastic, [0, 0]),
    ):
        with pytest.raises(ReadError):
            cast_codes(codes, f32, f16, policy, random=random)


# Canonical NaN and its negative, docs/reference/formats.md section 1.
NAN_CODES = {
    "f64": (0x7FF8000000000000, 0xFFF8000000000000), "f32": (0x7FC00000, 0xFFC00000), "f16": (0x7E00, 0xFE00),
    "bf16": (0x7FC0, 0xFFC0), "e4m3fn": (0x7F, 0xFF), "e4m3fnuz": (0x80, 0x80), "e5m2": (0x7E, 0xFE),
    "e5m2fnuz": (0x80, 0x80), "e8m0": (0xFF, 0xFF), "hif8": (0x80, 0x80), "f8_143": (0x7F, 0xFF),
    "f8_152": (0x7F, 0xFF), **dict.fromkeys(("e2m1", "e1m2", "e2m3", "e3m2"), (0, 0)),
}  # fmt: skip


def test_nan_of_every_float_is_that_of_the_oracle() -> None:
    """Also of formats that came after the table above; those of the table agree with the oracle's row."""
    floats: list[Format] = [fmt for fmt in FORMATS.values() if not isinstance(fmt, IntFormat)]
    assert {fmt.name for fmt in floats} >= set(NAN_CODES)
    for fmt in floats:
        row = oracle.FLOATS[fmt.name]
        positive = row.nan or 0
        negative = positive | row.sign_code if row.nan is not None and row.signed_nan else positive
        assert NAN_CODES.get(fmt.name, (positive, negative)) == (positive, negative)
        assert (abstract(NAN, fmt.name), abstract(NEGATIVE_NAN, fmt.name)) == (positive, negative)
    assert E8M0Rule.ONNX is Policy(RINT, SPECIAL).e8m0_rule


def test_far_values_draw_with_zero_on_request() -> None:
    # 2**-65 of the last kept bit's weight is nonzero but far below the 32 compared bits; 3/8 is not.
    significand = np.array([1 << 63, 3 << 62], np.uint64)
    negative = np.zeros(2, np.uint64)
    shift = np.array([66, 66])
    words = np.array([0x10000000, 0x10000000], np.uint64)
    rule = rule_of(Rounding.STOCHASTIC)
    assert shift_round(significand, shift, negative, rule, Draw(words)).tolist() == [1, 1]
    assert shift_round(significand, shift, negative, rule, Draw(words, far_is_zero=True)).tolist() == [0, 0]


F32 = FORMATS["f32"]
# docs/reference/tpc.md section 5: the polynomial that the generator's register resets to.
POLYNOMIAL = 0x800002CC


def by_definition(code: int, word: int, dst: FloatFormat) -> Fraction:
    """Round the magnitude up iff the dropped bits, as a 32-bit fraction of the last kept bit, are at least the word."""
    exact = abs(Fraction(value_of(code, F32)))
    unit = Fraction(2) ** (dst.min_exponent - dst.fraction_bits)
    while exact / unit >= 1 << (dst.fraction_bits + 1):
        unit *= 2
    kept = floor(exact / unit)
    dropped = exact / unit - kept
    return (kept + (dropped != 0 and floor(dropped * (1 << 32)) >= word)) * unit


@pytest.mark.parametrize("name", ["f16", "bf16", "e4m3fn", "e5m2", "e2m1"])
def test_stochastic_rounding_is_its_definition(name: str) -> None:
    dst = FORMATS[name]
    assert isinstance(dst, FloatFormat)
    rng = np.random.default_rng(6)
    numbers = rng.uniform(-6, 6, 300) * 2.0 ** rng.integers(-30, 1, 300)
    codes = numbers.astype(np.float32).view(np.uint32)
    words = rng.integers(0, 1 << 32, codes.size, dtype=np.uint32)
    words[:20], words[20:40] = 0, 0xFFFFFFFF
    got = cast_codes(codes, F32, dst, abstract_policy(F32, dst, Rounding.STOCHASTIC, Overflow.SATURATE), random=words)
    for code, word, result in zip(codes.tolist(), words.tolist(), got.tolist(), strict=True):
        assert abs(Fraction(value_of(result, dst))) == by_definition(code, word, dst)


def test_exact_values_stay_under_guard_and_follow_the_word_without() -> None:
    one = np.full(2, 0x3F800000, np.uint32)
    words = np.array([0, 1], np.uint32)
    f16 = FORMATS["f16"]
    guarded = Policy(Rounding.STOCHASTIC, Overflow.SPECIAL)
    unguarded = Policy(Rounding.STOCHASTIC, Overflow.SPECIAL, stochastic_guard=False)
    assert cast_codes(one, F32, f16, guarded, random=words).tolist() == [0x3C00, 0x3C00]
    assert cast_codes(one, F32, f16, unguarded, random=words).tolist() == [0x3C01, 0x3C00]
    assert cast_codes(one * 0, F32, f16, unguarded, random=words).tolist() == [0, 0]


def test_words_of_n_bits_as_gfloat_has_them() -> None:
    """Up iff fraction + bits / 2**n >= 1, which is r = 2**32 - bits * 2**(32-n).

    Source: docs/reference/formats.md section 6.
    """
    for eighths in range(1, 8):
        code = np.array([np.float32(1 + eighths / 8 / 1024)]).view(np.uint32)
        for bits in range(1, 8):
            word = np.array([(1 << 32) - bits * (1 << 29)], np.uint32)
            policy = abstract_policy(F32, FORMATS["f16"], Rounding.STOCHASTIC)
            got = cast_codes(code, F32, FORMATS["f16"], policy, random=word)
            assert got[0] == 0x3C00 + (eighths + bits >= 8)


def test_sr_rne_draws_for_normal_results_only() -> None:
    codes = samples(F32, count=5000)
    words = np.random.default_rng(7).integers(0, 1 << 32, codes.size, dtype=np.uint32)
    dst = FORMATS["e5m2"]
    mixed = Policy(Rounding.STOCHASTIC, Overflow.SPECIAL, subnormal_rounding=Rounding.RINT)
    got = cast_codes(codes, F32, dst, mixed, random=words)
    nearest = cast(codes, "f32", "e5m2")
    drawn = cast_codes(codes, F32, dst, Policy(Rounding.STOCHASTIC, Overflow.SPECIAL), random=words)
    subnormal = np.abs(codes.view(np.float32)) < 2.0**-14
    assert np.array_equal(got, np.where(subnormal, nearest, drawn))
    assert (nearest[subnormal] != drawn[subnormal]).any()


def test_sixteen_bit_register_of_the_literature_has_full_period() -> None:
    # The textbook Galois register: taps 16, 14, 13, 11, mask 0xB400, start 0xACE1, period 65535.
    first = state = np.array([0xACE1], np.uint32)
    seen = set()
    while int(state[0]) not in seen:
        seen.add(int(state[0]))
        state = lfsr_step(state, 0xB400)
    assert state == first
    assert len(seen) == 65535


def test_a_step_divides_by_x() -> None:
    """The step multiplies back to the old state: shift left, and reduce when the polynomial's top bit came in."""
    state = np.random.default_rng(8).integers(0, 1 << 32, 64, dtype=np.uint32)
    for before, after in zip(state.tolist(), lfsr_step(state, POLYNOMIAL).tolist(), strict=True):
        fell_out = after >> 31  # the polynomial's top bit is set only where a 1 fell out
        assert (after ^ (POLYNOMIAL if fell_out else 0)) << 1 | fell_out == before
