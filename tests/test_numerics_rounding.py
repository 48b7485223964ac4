"""The rounding function against the definitions of the modes in exact rational arithmetic."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import numpy as np
import pytest

from castsim.isa.modes import DETERMINISTIC, Rounding
from castsim.numerics.rounding import Draw, increment, rule_of, shift_round

HALF = Fraction(1, 2)


def defined(value: Fraction, mode: Rounding) -> int:
    """Round by the definition of the mode (docs/reference/formats.md section 6), on the signed value."""
    if mode is Rounding.ODD:
        below = math.floor(value)
        return below if value == below or below % 2 else below + 1
    sign = -1 if value < 0 else 1
    return {
        Rounding.RINT: lambda: round(value),
        Rounding.ROUND: lambda: sign * math.floor(abs(value) + HALF),
        Rounding.FLOOR: lambda: math.floor(value),
        Rounding.CEIL: lambda: math.ceil(value),
        Rounding.TRUNC: lambda: math.trunc(value),
        Rounding.HALF_UP: lambda: math.floor(value + HALF),
    }[mode]()


@pytest.mark.parametrize("mode", DETERMINISTIC)
def test_increment_is_the_definition(mode: Rounding) -> None:
    for kept in range(4):
        for eighths in range(8):
            for negative in (0, 1):
                value = (kept + Fraction(eighths, 8)) * (-1) ** negative
                up = increment(kept & 1, eighths >> 2, int(eighths & 3 != 0), negative, 0, rule_of(mode))
                assert kept + up == abs(defined(value, mode)), (value, mode)


@pytest.mark.parametrize("mode", DETERMINISTIC)
def test_shift_round_at_every_distance(mode: Rounding) -> None:
    rng = random.Random(1)
    numbers = [rng.getrandbits(64) >> rng.randrange(64) for _ in range(400)]
    numbers += [0, 1, 2, 3, 1 << 62, 1 << 63, 3 << 62, (1 << 64) - 1, (1 << 63) + 1]
    shifts = [rng.choice((0, 1, 2, 23, 62, 63, 64, 65, 66, 100, 127, 128, 1000)) for _ in numbers]
    negative = [rng.getrandbits(1) for _ in numbers]
    got = shift_round(np.array(numbers, np.uint64), np.array(shifts), np.array(negative, np.uint64), rule_of(mode))
    want = [
        abs(defined((-1) ** minus * Fraction(number, 1 << shift), mode))
        for number, shift, minus in zip(numbers, shifts, negative, strict=True)
    ]
    assert got.tolist() == want


def test_each_element_may_have_its_own_rule() -> None:
    rules = np.array([rule_of(mode) for mode in DETERMINISTIC], np.uint64)
    ones = np.ones(len(DETERMINISTIC), np.uint64)
    got = shift_round(ones * np.uint64(5), np.int64(1), ones, rules)
    assert got.tolist() == [abs(defined(Fraction(-5, 2), mode)) for mode in DETERMINISTIC]


def test_a_draw_compares_the_dropped_bits_with_a_word() -> None:
    # 0x1.4 in units of the last kept bit: dropped bits are a quarter, 0x40000000 of 2**32.
    significand = np.full(4, 5, np.uint64)
    words = np.array([0, 0x40000000, 0x40000001, 0xFFFFFFFF], np.uint64)
    negative = np.zeros(4, np.uint64)
    got = shift_round(significand, np.int64(2), negative, rule_of(Rounding.STOCHASTIC), Draw(words))
    assert got.tolist() == [2, 2, 1, 1]


def test_exact_values_move_only_without_guard_and_zero_never() -> None:
    significand = np.array([4, 4, 0], np.uint64)
    draw = Draw(np.array([0, 1, 0], np.uint64))
    negative = np.zeros(3, np.uint64)
    guarded = shift_round(significand, np.int64(2), negative, rule_of(Rounding.STOCHASTIC), draw)
    unguarded = shift_round(significand, np.int64(2), negative, rule_of(Rounding.HYBRID), draw)
    assert guarded.tolist() == [1, 1, 0]
    assert unguarded.tolist() == [2, 1, 0]


def test_far_values_draw_with_zero_on_request() -> None:
    # 2**-65 of the last kept bit's weight is nonzero but far below the 32 compared bits; 3/8 is not.
    significand = np.array([1 << 63, 3 << 62], np.uint64)
    negative = np.zeros(2, np.uint64)
    shift = np.array([66, 66])
    words = np.array([0x10000000, 0x10000000], np.uint64)
    rule = rule_of(Rounding.STOCHASTIC)
    assert shift_round(significand, shift, negative, rule, Draw(words)).tolist() == [1, 1]
    assert shift_round(significand, shift, negative, rule, Draw(words, far_is_zero=True)).tolist() == [0, 0]
