"""The doubtful points of conversions as the options have them, and predicates."""

from __future__ import annotations

import numpy as np
import pytest
from oracle_tpc import stepped
from test_tpc_semantics_convert import INCOME, WORDS, registers
from tpc_semantics_cases import POLYNOMIAL, SPELLED, instruction, run, state, vector
from tpc_text import target

from castsim.isa.errors import IllegalError
from castsim.machines.vliw.semantics import prepare
from castsim.targets.description import with_options


def test_wide_lane_select_is_remarked_or_refused() -> None:
    line = "convert.i16 lane_sel=1 target_type=int32 rhne V1, V2"
    assert run(line, "greco", income=vector(0, 32), src_a=vector(1, 16)).remarks
    assert not run(line.replace("=1", "=0"), "greco", income=vector(0, 32), src_a=vector(1, 16)).remarks
    strict = with_options(target("greco"), {"wide_lane_select": "refuse"})
    with pytest.raises(IllegalError, match="lane_sel above 0"):
        prepare(instruction(line, "greco"), strict)


def test_unaligned_groups_are_refused_or_rounded_down() -> None:
    line = "convert.i16 all_lanes target_type=int32 rhne V5, V2"
    with pytest.raises(IllegalError, match="V5 does not begin") as refusal:
        prepare(instruction(line, "greco"), target("greco"))
    assert refusal.value.legal == ("V4", "V6")
    lenient = with_options(target("greco"), {"unaligned_group": "round_down"})
    found = prepare(instruction(line, "greco"), lenient).registers
    named = {role: [str(one) for one in group] for role, group in found.items()}
    assert named == {"dest": ["V4", "V5"], "src_a": ["V2"]}


def test_nan_and_overflow_of_integers_follow_the_options() -> None:
    nan_and_large = vector([0x7FC00000, 0x5F000000, 0xC7C35000, 0xFF800000], 32)

    def results(generation: str, dst: str, **options: str) -> list[int]:
        line = f"convert.f32 target_type={SPELLED[dst]} rz V1, V2"
        chip = with_options(target(generation), options)
        got = run(line, generation, chip=chip, income=vector(0, 32), src_a=nan_and_large)
        return got.result.view(np.uint16)[:8:2].tolist()

    assert results("goya", "i16") == [0, 0x7FFF, 0x8000, 0x8000]
    assert results("goya", "i16", nan_to_integer="maximum") == [0x7FFF, 0x7FFF, 0x8000, 0x8000]
    # 2**63 and -100000 modulo 2**16
    assert results("goya", "i16", float_to_integer_overflow="wrap")[:3] == [0, 0, -100000 % 65536]
    chip = with_options(target("goya"), {"integer_to_integer_overflow": "wrap"})
    got = run("convert.i16 target_type=int8 rhne V1, V2", "goya", chip=chip, income=vector(0, 8), src_a=vector(300, 16))
    assert got.result[0] == 300 - 256


def test_random_words_follow_the_options() -> None:
    line = "convert.f32 all_lanes target_type=bf16 sr V2, D4"
    read = tuple(registers("f32", 2, 0))
    strict = with_options(target("greco"), {"random_lane_word": "refuse"})
    with pytest.raises(IllegalError, match="random words"):
        run(line, "greco", chip=strict, income=INCOME[0], src_a=read)
    single = "convert.f32 lane_sel=0 target_type=bf16 sr V2, V4"
    assert run(single, "greco", chip=strict, income=INCOME[0], src_a=read[0]).vector_lfsr is not None
    # With option `used` the words of lanes that the predicate leaves out stay.
    chip = with_options(target("greco"), {"random_step": "used"})
    machine = state(words=WORDS)
    lanes_on = np.arange(256) // 4 % 3 == 0
    for chosen, steps in ((chip, [lane % 3 == 0 for lane in range(64)]), (target("greco"), [True] * 64)):
        got = run(single, "greco", chip=chosen, income=INCOME[0], src_a=read[0], machine=machine, predicate=lanes_on)
        after = zip(WORDS, stepped(WORDS, POLYNOMIAL), steps, strict=True)
        assert got.vector_lfsr.tolist() == [new if step else old for old, new, step in after]


def test_random_words_of_zero_leave_exact_numbers_unless_told_to_compare() -> None:
    line = "convert.f32 lane_sel=0 target_type=bf16 sr V1, V2"
    one = vector(0x3F800000, 32)
    machine = state(words=[0] * 64)
    assert run(line, income=vector(0, 16), src_a=one, machine=machine).result.view("<u2")[0] == 0x3F80
    chip = with_options(target("gaudi2"), {"stochastic_exact": "compare"})
    assert run(line, chip=chip, income=vector(0, 16), src_a=one, machine=machine).result.view("<u2")[0] == 0x3F81


@pytest.mark.parametrize(
    ("rule", "expected"), [("zero_extend", 0xFF), ("sign_extend", 0xFFFFFFFF), ("keep", 0x123456FF)]
)
def test_narrow_results_in_scalars_follow_the_option(rule: str, expected: int) -> None:
    chip = with_options(target("goya"), {"narrow_scalar_result": rule})
    line = "convert.f32 target_type=int8 rhne S1, S2"
    got = run(line, "goya", slot="spu", chip=chip, income=0x12345678, src_a=0xBF800000)
    assert got.result == expected


def test_a_false_scalar_predicate_changes_nothing() -> None:
    income = vector(7, 16)
    got = run("convert.f32 lane_sel=0 target_type=bf16 sr V1, V2", income=income, src_a=INCOME[1], predicate=False)
    assert got.result is income
    assert got.vector_lfsr is None
