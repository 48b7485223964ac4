"""Scheduled texts of all kinds of instructions: same values, nothing stale, lint-clean, never longer than padded."""

from __future__ import annotations

import os

import pytest
from schedule_checks import Record, check_mixture
from schedule_mixtures import mixture
from schedule_programs import GENERATIONS
from schedule_spelling import named

THOROUGH = os.environ.get("CASTSIM_THOROUGH") == "1"
SEEDS, GROUP = (1000, 25) if THOROUGH else (16, 8)
KINDS = (
 "mac.", "mul.", "convert", "shuffle.", "sel", "cmp_", "mov_dg", "pack.", "st_tnsr", "ld_l_v", "ld_g", "st_g",
         "gen_addr", "loop ", "jmpr ", "mmio", ", !SP", "%vp.",
 "%a.", "%d.", "%z.", "LFSR", "set_indx", "udiv",
)  # fmt: skip


@pytest.mark.parametrize("first", range(0, SEEDS, GROUP))
@pytest.mark.parametrize("generation", GENERATIONS)
def test_mixtures(generation: str, first: int) -> None:
    record = Record()
    for seed in range(first, first + GROUP):
        check_mixture(seed, generation, record, longer=seed % 5 == 4)
    assert len(record.refused) <= GROUP // 8


@pytest.mark.parametrize("generation", GENERATIONS)
def test_mixtures_hold_all_kinds_of_instructions(generation: str) -> None:
    texts = [named(mixture(seed, generation)) for seed in range(120)]
    missing = [kind for kind in KINDS if not any(kind in text for text in texts)]
    assert set(missing) <= ({"%a.", "%z.", "mov_dg", "udiv"} if generation == "goya" else {"%z.", "udiv"})
    crowded = [text for text in texts if "%v.r39" in text]
    assert crowded
