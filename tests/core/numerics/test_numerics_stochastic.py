"""Random words, shift registers, hybrid rounding, chains of casts, flags: the rules as their sources state them."""

from __future__ import annotations

from fractions import Fraction
from math import floor

import numpy as np
import pytest
from kit.numerics_samples import cast, samples
from kit.paths import VECTORS

from castsim.isa.formats import FORMATS, FloatFormat, Overflow, Rounding
from castsim.machines.vliw.semantics.operands import lfsr_step
from castsim.numerics.cast import cast_codes
from castsim.numerics.codec import value_of
from castsim.numerics.policy import Policy, abstract_policy
from castsim.numerics.rounding import Draw, rule_of, shift_round


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


@pytest.mark.parametrize(
    ("number", "code"),
    [
        # docs/reference/formats.md section 2: exact numbers away from one move up, those near one do not.
        (16.0, 20.0),
        (8.0, 8.0),
        (32768.0, np.inf),
        (2.0**-23, 2.0**-22),
        (2.0**-24, 0.0),
        (-16.0, -20.0),
        (0.0, 0.0),
    ],
)
def test_hybrid_of_f32(number: float, code: float) -> None:
    got = cast(np.array(number, np.float32).view(np.uint32), "f32", "hif8", Rounding.HYBRID)
    assert float(value_of(int(got), FORMATS["hif8"])) == code


@pytest.mark.parametrize("source", ["fp32", "fp16"])
def test_hybrid_agrees_with_the_vendor_model(source: str) -> None:
    data = np.load(VECTORS / "golden_hif8_vendor.npz")
    name = source.replace("fp", "f")
    codes, want = data[f"{source}__in"], data[f"{source}__hybrid__inf"]
    numbers = np.abs(codes.view({"f32": np.float32, "f16": np.float16}[name]).astype(np.float64))
    # The bands in which the script departs from the instruction's description (docs/reference/formats.md section 2).
    compare = ~((numbers >= 2.0**-23) & (numbers < 2.0**-22)) & ~((numbers >= 40960) & (numbers < 65536))
    if source == "fp16":
        compare &= data["fp16__hybrid__valid"] == 1
    got = cast(codes, name, "hif8", Rounding.HYBRID)
    assert compare.sum() > 1000
    assert np.array_equal(got[compare], want[compare])


def test_hybrid_leaves_exact_f16_values() -> None:
    codes = samples(FORMATS["hif8"])
    halves = cast(codes, "hif8", "f16")
    exact = cast(halves, "f16", "hif8") == codes
    assert exact.sum() > 200
    assert np.array_equal(cast(halves, "f16", "hif8", Rounding.HYBRID)[exact], codes[exact])


def test_a_clamped_integer_loses_its_low_bits() -> None:
    """docs/reference/a2a3.md section 4.3: through a clamped int32 3e9 becomes -1, not the exact integer's low bits."""
    i32, i16 = FORMATS["i32"], FORMATS["i16"]
    clamped = cast_codes(
        np.array([3e9], np.float32).view(np.uint32), F32, i32, Policy(Rounding.TRUNC, Overflow.SATURATE)
    )
    assert cast_codes(clamped, i32, i16, Policy(Rounding.TRUNC, Overflow.WRAP)).tolist() == [0xFFFF]
