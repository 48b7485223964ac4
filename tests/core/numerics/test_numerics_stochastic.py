"""Random words, shift registers, hybrid rounding, chains of casts, flags: the rules as their sources state them."""

from __future__ import annotations

import numpy as np
from kit.numerics_samples import cast, samples

from castsim.isa.formats import FORMATS, Overflow, Rounding
from castsim.machines.vliw.semantics.operands import lfsr_step
from castsim.numerics.cast import cast_codes
from castsim.numerics.policy import Policy
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
