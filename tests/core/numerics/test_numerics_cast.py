"""Casts of codes: laws that hold for every pair, agreement with NumPy and gfloat, fields of policies, random words."""

from __future__ import annotations

from fractions import Fraction

import gfloat
import numpy as np
import pytest
from gfloat.formats import format_info_binary32
from kit.numerics_samples import cast, samples

from castsim.isa.errors import IllegalError, ReadError
from castsim.isa.formats import FORMATS, FloatFormat, IntFormat, Overflow, Rounding, Specials
from castsim.machines.vliw.semantics.operands import lfsr_step
from castsim.numerics.blocks import code_dtype
from castsim.numerics.cast import Scale, cast_codes, round_to_integral_codes, scale_of, scaled_cast_codes
from castsim.numerics.codec import decode_to_float64
from castsim.numerics.policy import (
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


def test_a_step_divides_by_x() -> None:
    """The step multiplies back to the old state: shift left, and reduce when the polynomial's top bit came in."""
    state = np.random.default_rng(8).integers(0, 1 << 32, 64, dtype=np.uint32)
    for before, after in zip(state.tolist(), lfsr_step(state, POLYNOMIAL).tolist(), strict=True):
        fell_out = after >> 31  # the polynomial's top bit is set only where a 1 fell out
        assert (after ^ (POLYNOMIAL if fell_out else 0)) << 1 | fell_out == before
