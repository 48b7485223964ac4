"""Lowerings that compilers get wrong: the planner refuses each without knowing it, and shows where.

The inputs named here come from the issue trackers and run results in docs/reference/semantics.md sections 1.4 and 5 and
docs/reference/tpc.md section 4; what is right comes from the test oracle.
"""

from fractions import Fraction

import numpy as np
import oracle
import pytest

from castsim.isa.formats import FORMATS
from castsim.numerics.blocks import code_dtype
from castsim.numerics.codec import encode_value, value_of
from castsim.tools.lowering.demand import CastRequest, Verdict
from castsim.tools.lowering.planner import Plan, PlanKind, plan, plan_through
from castsim.tools.lowering.steps import run_chain
from castsim.tools.verify.lowering import run_text

TPC = ("goya", "gaudi", "gaudib", "greco", "gaudi2")


def code_of(text: str, fmt: str) -> np.ndarray:
    return np.array([encode_value(text, FORMATS[fmt]).code], code_dtype(FORMATS[fmt]))


def result(found: Plan, text: str) -> Fraction | float:
    """What the chain of a plan makes of a number."""
    codes = code_of(text, found.demand.src.name)
    return value_of(int(run_chain(found.chain, codes)[0]), found.demand.dst)


def right(found: Plan, code: int, overflow: str | None = None) -> int:
    src, dst = found.demand.src.name, found.demand.dst.name
    rounding, overflow = oracle.defaults(src, dst, None, overflow)
    return oracle.cast(code, src, dst, rounding, overflow)


def is_really_wrong(found: Plan) -> bool:
    """Whether the oracle too says that the counterexample's result is not that of the cast."""
    assert found.counterexample is not None
    hop = found.counterexample.input
    return found.counterexample.result.code != right(found, hop.code)


@pytest.mark.parametrize("target", ["goya", "gaudi"])
def test_f32_to_u16_through_a_signed_narrowing(target: str) -> None:
    wrong = plan_through(CastRequest("f32", "u16", target), ["i16"])
    assert wrong.verdict is Verdict.DIFFERS
    assert is_really_wrong(wrong)
    assert result(wrong, "40000") == 32767
    found = plan(CastRequest("f32", "u16", target))
    assert found.verdict is Verdict.EXACT
    assert result(found, "40000") == 40000


def test_u32_through_i16() -> None:
    wrong = plan_through(CastRequest("u32", "u8", "gaudi2", attributes={"overflow": "saturate"}), ["i16:rhne"])
    right_way = plan(CastRequest("u32", "u16", "gaudi2", attributes={"overflow": "saturate"}))
    # u32 -> i16 saturates at 32767: enough for u8, not for u16.
    assert wrong.verdict is Verdict.EXACT
    wrong = plan_through(CastRequest("u32", "u16", "gaudi2", attributes={"overflow": "saturate"}), ["i16"])
    assert wrong.verdict is Verdict.DIFFERS
    assert wrong.counterexample is not None
    assert wrong.counterexample.input.value == 32768
    assert result(wrong, "40000") == 32767
    assert result(right_way, "40000") == 40000


@pytest.mark.parametrize("target", ["greco", "gaudi2"])
def test_f16_to_i8_through_bf16_rounds_twice(target: str) -> None:
    wrong = plan_through(CastRequest("f16", "i8", target, spec="tosa"), ["bf16:rint", "i8:rint"])
    assert wrong.verdict is Verdict.DIFFERS
    assert is_really_wrong(wrong)
    # 101.4375 becomes 101.5 in bf16, and that 102.
    assert result(wrong, "101.4375") == 102
    found = plan(CastRequest("f16", "i8", target, spec="tosa"))
    assert found.verdict is Verdict.EXACT
    assert result(found, "101.4375") == 101


def test_no_rounding_modes_rescue_the_way_through_bf16() -> None:
    assert plan_through(CastRequest("f16", "i8", "gaudi2", spec="tosa"), ["bf16"]).verdict is Verdict.DIFFERS


@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_f16_to_i8_wraps_by_default(target: str) -> None:
    found = plan(CastRequest("f16", "i8", target, spec="tosa"))
    assert found.kind is PlanKind.OPTIONS
    assert found.chain[0].forms[0].options == ("saturation ON",)
    (refuted,) = found.refuted
    assert not refuted.chain[0].forms[0].options
    # The smallest input that rounds beyond 127 (docs/reference/semantics.md section 5, row 10).
    assert refuted.counterexample.input.value == Fraction("127.5")
    assert refuted.counterexample.result.value == -128


def test_i32_to_bf16_through_f32_rounds_twice() -> None:
    wrong = plan_through(CastRequest("i32", "bf16", "gaudi2", spec="tosa"), ["f32:rint", "bf16:rint"])
    assert wrong.verdict is Verdict.DIFFERS
    assert is_really_wrong(wrong)
    assert result(wrong, "62783487") == 62914560
    found = plan(CastRequest("i32", "bf16", "gaudi2", spec="tosa"))
    assert found.verdict is Verdict.EXACT
    assert result(found, "62783487") == 62652416


def test_i32_to_bf16_through_f32_is_saved_by_truncating_first() -> None:
    found = plan(CastRequest("i32", "bf16", "a5", spec="tosa"))
    assert found.verdict is Verdict.CONFORMS
    assert [step.dst.name for step in found.chain] == ["f32", "bf16"]
    assert result(found, "62783487") == 62652416


def test_i32_to_f16_where_the_pair_is_absent() -> None:
    found = plan(CastRequest("i32", "f16", "a5", saturate=True))
    assert [step.dst.name for step in found.chain] == ["f32", "f16"]
    assert found.verdict is Verdict.EXACT
    assert found.evidence is not None
    assert found.evidence.proves
    # TOSA wants infinity beyond the range, where this chip clamps.
    refused = plan(CastRequest("i32", "f16", "a5", spec="tosa"))
    assert refused.kind is PlanKind.NONE_FOUND
    assert refused.counterexample is not None
    assert abs(refused.counterexample.input.value) > 65504
    assert abs(refused.counterexample.result.value) == 65504


def test_integer_narrowing_wraps_for_specifications_and_saturates_on_the_vector_unit() -> None:
    found = plan(CastRequest("i32", "i8", "gaudi2", spec="tosa"))
    assert found.kind is PlanKind.CHAIN
    assert result(found, "200") == -56
    (refuted,) = found.refuted
    assert (refuted.counterexample.input.value, refuted.counterexample.result.value) == (128, 127)


@pytest.mark.parametrize("target", ["a2a3", "a5", "goya", "gaudi", "gaudib"])
def test_unsigned_integers_go_through_signed_ones_by_offsets_on_both_sides(target: str) -> None:
    found = plan(CastRequest("u16", "f32", target, spec="onnx"))
    assert [step.dst.name for step in found.chain if step.is_instruction] == ["i16", "f32", "f32"]
    assert found.verdict is Verdict.EXACT
    assert found.assembly is not None
    codes = np.arange(1 << 16, dtype=np.uint16)
    results = run_text(found.assembly, codes)
    assert (results.view(np.float32) == codes).all()


def test_a_sum_that_is_rounded_is_no_offset() -> None:
    # 1 - 32768 has 15 bits, a float16 11: it comes back as 0.
    found = plan(CastRequest("u16", "f16", "a2a3", spec="onnx", steps=3))
    assert found.kind is PlanKind.NONE_FOUND


@pytest.mark.parametrize(
    ("src", "dst", "target", "spec", "path"),
    [
        ("f32", "u16", "gaudi", "exact", ["i16"]),
        ("f16", "i8", "greco", "tosa", ["bf16:rint", "i8:rint"]),
        ("i32", "bf16", "a5", "tosa", ["f32:rint", "bf16:rint"]),
        ("f32", "i8", "a5", "tosa", ["f16:rint", "i8:rint"]),
    ],
)
def test_every_counterexample_differs_on_the_simulated_target(
    src: str, dst: str, target: str, spec: str, path: list[str]
) -> None:
    from castsim.tools.lowering.catalogue import assembly_of  # noqa: PLC0415

    wrong = plan_through(CastRequest(src, dst, target, spec=spec), path)
    assert wrong.counterexample is not None
    program = assembly_of(wrong.chain, wrong.demand.src, wrong.demand.dst, wrong.target, 1, 256)
    code = np.array([wrong.counterexample.input.code], code_dtype(wrong.demand.src))
    results = run_text(program, code)
    assert results[0] == wrong.counterexample.result.code
    assert results[0] != right(wrong, int(code[0]), "saturate" if dst[0] in "iu" else None)
