"""Proofs, counterexamples and the search of lowered casts: breakpoints, easily wrong casts, random targets."""

from __future__ import annotations

import itertools
import json
import os
from fractions import Fraction

import numpy as np
import oracle
import pytest
from benchmarks.answers import ASKED, ask
from kit.numerics_samples import samples
from oracle_acceptance import accepts
from tools.lowering.planning_synthetic import WIDE, Case, case, policy_step, shortest
from tools.lowering.planning_synthetic import policy_step as step

from castsim.isa.errors import IllegalError, ReadError
from castsim.isa.formats import DETERMINISTIC, FORMATS
from castsim.numerics.blocks import code_dtype
from castsim.numerics.cast import cast_codes
from castsim.numerics.codec import array_from_codes, codes_from_array, encode_value, value_of
from castsim.numerics.policy import (
    InfinityWrap,
    NanToFloat,
    NanToInteger,
    Policy,
    legal_overflows,
    legal_roundings,
)
from castsim.running.acceptance import order_keys
from castsim.running.program_loading import load_text
from castsim.running.program_runs import run_loaded
from castsim.targets.loader import load_target
from castsim.tools.lowering.catalogue import Catalogue, catalogue_of, search
from castsim.tools.lowering.conformance import Cell
from castsim.tools.lowering.demand import CastRequest, Demand, Verdict, settle
from castsim.tools.lowering.lowering_answers import answer
from castsim.tools.lowering.planner import Plan, PlanKind, plan, plan_through
from castsim.tools.lowering.proof import Judgement, Method, _is_reference, _settled_policy, judge, judge_by_breakpoints
from castsim.tools.lowering.report import answer_document
from castsim.tools.lowering.samples import (
    codes_at,
    is_ordered,
    nearest_zero_first,
    number_count,
    substitute_of,
    telling_codes,
)
from castsim.tools.lowering.steps import FormatCast, LoweringStep, keeps_order, run_chain
from castsim.tools.verify.lowering import check_plan, run_text


def by_both(demand: Demand, chain: tuple[LoweringStep, ...]) -> tuple[Judgement, Judgement]:
    assert all(keeps_order(primitive) for one in chain for primitive in one.primitives)
    return judge(demand, chain), judge_by_breakpoints(demand, chain, lambda *_: None)


@pytest.mark.parametrize("spec", ["exact", "tosa", "onnx"])
@pytest.mark.parametrize("middle", ["f32", "bf16", "i32"])
@pytest.mark.parametrize("dst", ["i8", "e5m2"])
def test_breakpoints_say_what_all_codes_say(spec: str, middle: str, dst: str) -> None:
    demand = settle(CastRequest("f16", dst, "a5", spec=spec))
    seen = set()
    for first in ("rint", "trunc", "floor", "odd"):
        for second, overflow in (("rint", "saturate"), ("trunc", "saturate"), ("rint", "special")):
            if dst == "i8" and overflow == "special":
                continue
            through = "special" if middle != "i32" else "saturate"
            chain = (step("f16", middle, first, through), step(middle, dst, second, overflow))
            exhaustive, breakpoints = by_both(demand, chain)
            assert exhaustive.evidence.method is Method.EXHAUSTIVE
            assert breakpoints.evidence.method is Method.BREAKPOINTS
            assert breakpoints.verdict is exhaustive.verdict
            assert (breakpoints.failing[:1] == exhaustive.failing[:1]).all()
            seen.add(exhaustive.verdict)
    assert Verdict.DIFFERS in seen


def test_a_clamp_inside_the_range_is_not_hidden_by_what_is_undefined() -> None:
    # ONNX leaves everything out of range for i16 open; a chain that clamps at 127 is wrong from 128 on.
    demand = settle(CastRequest("f32", "i16", "a5", spec="onnx"))
    chain = (step("f32", "i8", "trunc", "saturate"), step("i8", "i16", "rint", "saturate"))
    found = judge(demand, chain)
    assert found.evidence.method is Method.BREAKPOINTS
    assert found.verdict is Verdict.DIFFERS
    smallest = found.failing[:1].view(np.float32)[0]
    assert smallest == 128.0


@pytest.mark.parametrize("name", ["f16", "bf16", "i8", "u16", "f32", "i32", "i48", "i64", "f64"])
def test_places_count_codes_in_the_order_of_values(name: str) -> None:
    fmt = FORMATS[name]
    assert is_ordered(fmt)
    count = number_count(fmt)
    ends = {place for k in range(150) for place in (k, count // 2 - k, count // 2 + k, count - 1 - k)}
    places = np.array(sorted(ends & {*range(count)} if count < 1000 else ends), np.uint64)
    codes = codes_at(places, fmt)
    keys = order_keys(codes, fmt)
    assert (np.diff(keys.astype(object)) > 0).all()
    values = [oracle.decode(int(code) & ((1 << fmt.storage_bits) - 1), name) for code in codes]
    assert all(value.kind != "nan" for value in values)


def test_counterexamples_come_smallest_first() -> None:
    codes = np.array([0x7C00, 0xBC00, 0x3C00, 0x0000, 0x8001, 0x0001], np.uint16)
    ordered = codes[nearest_zero_first(codes, FORMATS["f16"])]
    assert ordered.tolist() == [0x0000, 0x0001, 0x8001, 0x3C00, 0xBC00, 0x7C00]
    codes = np.array([0xFFFFFFFF, 5, 0x80000000, 1], np.uint32)
    assert codes[nearest_zero_first(codes, FORMATS["i32"])].tolist() == [1, 0xFFFFFFFF, 5, 0x80000000]


def test_the_smallest_of_32_bits_is_the_smallest() -> None:
    # f32 -> bf16 -> i16 first goes wrong where bf16 has no place for what decides a tie.
    demand = settle(CastRequest("f32", "i16", "a5", spec="tosa"))
    chain = (step("f32", "bf16", "rint", "special"), step("bf16", "i16", "rint", "saturate"))
    found = judge(demand, chain)
    assert found.verdict is Verdict.DIFFERS
    smallest = int(found.failing[0])
    below = np.arange(max(0, smallest - 100_000), smallest, dtype=np.uint32)
    for codes in (below, below | np.uint32(1 << 31)):
        results = run_chain(chain, codes)
        assert demand.satisfied(codes, results).all()
    assert not accepts(smallest, int(run_chain(chain, found.failing[:1])[0]), "f32", "i16")


@pytest.mark.parametrize(("src", "dst"), [("f32", "i32"), ("i32", "f32"), ("i32", "i16")])
def test_32_bits_are_all_tried_in_machine_code(src: str, dst: str) -> None:
    pytest.importorskip("numba")
    found = plan(CastRequest(src, dst, "a5", spec="tosa"))
    assert found.verdict is Verdict.EXACT
    assert found.evidence is not None
    assert (found.evidence.method, found.evidence.codes) in ((Method.EXHAUSTIVE, 1 << 32),)


def test_without_machine_code_wide_results_are_sampled_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("castsim.tools.lowering.proof.has_machine_code", lambda: False)
    found = plan(CastRequest("f32", "i32", "a5", spec="tosa"))
    assert found.evidence is not None
    assert found.evidence.method is Method.SAMPLED
    assert not found.evidence.proves
    assert "not a proof" in found.evidence.argument


def test_64_bits_go_by_breakpoints_or_samples() -> None:
    narrow = plan(CastRequest("i64", "i32", "a5", spec="tosa"))
    assert narrow.evidence is not None
    assert narrow.evidence.method is Method.SAMPLED
    demand = settle(CastRequest("i64", "f16", "a5"))
    chain = (step("i64", "f32", "rint", "special"), step("f32", "f16", "rint", "special"))
    wide = judge(demand, chain)
    assert wide.evidence.method is Method.BREAKPOINTS
    assert wide.verdict is Verdict.EXACT


def test_a_contradiction_is_told_with_an_input() -> None:
    with pytest.raises(IllegalError, match=r"unsatisfiable.*rounding trunc.*f32 .*nearest, ties to even"):
        plan(CastRequest("f32", "i16", "a5", spec="tosa", rounding="trunc"))
    with pytest.raises(IllegalError, match=r"unsatisfiable.*saturating"):
        plan(CastRequest("f32", "f16", "a5", spec="tosa", saturate=True))


@pytest.mark.parametrize("target", ["a2a3", "a5", "goya", "gaudi2"])
def test_sums_of_floats_are_tried_in_machine_code_and_are_what_numpy_says(target: str) -> None:
    src, dst = FORMATS["f32"], FORMATS["u16"]
    steps = [step for step in catalogue_of(load_target(target), src, dst).from_format(src) if "add" in step.name]
    assert {each.name.split()[-1] for each in steps} == {"32768", "-32768", "65536", "-65536"}
    values = np.random.default_rng(7).normal(0, 1e5, 5000).astype(np.float32)
    for each in steps:
        (primitive,) = each.primitives
        substitute = substitute_of(primitive)
        assert substitute is not None
        right = values + np.float32(each.name.split()[-1])
        for results in (substitute.run(values.view(np.uint32)), each.run(values.view(np.uint32))):
            assert (results.view(np.float32) == right).all()


def test_a_contradiction_names_its_input_in_decimal_and_by_its_code() -> None:
    # -2**-149 is the negative float32 nearest to zero: rounded down it would be -1, toward zero it is 0.
    with pytest.raises(IllegalError) as caught:
        plan(CastRequest("f32", "i8", "a5", spec="onnx", rounding="floor"))
    assert "does not accept the result of rounding floor, for example for f32 -1.401298464324817e-45 (0x80000001)" in (
        str(caught.value)
    )


def test_what_rests_on_samples_claims_no_more() -> None:
    sampled = plan(CastRequest("i64", "f32", "a5", spec="onnx"))
    assert sampled.evidence is not None
    assert sampled.evidence.method is Method.SAMPLED
    assert not sampled.proven
    assert sampled.claim == f"no difference found in {sampled.evidence.codes} samples~"
    proven = plan(CastRequest("i16", "f32", "a5", spec="onnx"))
    assert proven.proven
    assert proven.claim == "exact"


def test_a_counterexample_from_samples_refutes_in_every_report() -> None:
    # 64-bit codes are sampled, and one wrong sample is enough: `differs` needs no other codes.
    found = answer(CastRequest("i64", "i8", "a2a3"))
    assert found.plan.counterexample is not None
    assert found.plan.evidence is not None
    assert found.plan.evidence.method is Method.SAMPLED
    assert found.plan.claim == "differs"
    assert "nothing beyond" not in found._repr_html_()
    assert "nothing beyond" not in json.dumps(answer_document(found, None))


def test_demands_that_agree_narrow_the_specification() -> None:
    # TOSA accepts any of several roundings; asking for one leaves its result alone.
    loose, tight = (CastRequest("f32", "bf16", "gaudi2", spec="tosa", rounding=mode) for mode in (None, "trunc"))
    assert plan(loose).chain != plan(tight).chain
    found = plan(tight)
    codes = np.array([1.9999999, -3.999999, 1e-3], np.float32).view(np.uint32)
    expected = [oracle.cast(int(code), "f32", "bf16", "trunc", "special") for code in codes]
    assert run_chain(found.chain, codes).tolist() == expected


@pytest.mark.parametrize(
    ("request_", "error", "message"),
    [
        (CastRequest("f32", "f16", "a7"), ReadError, "unknown target"),
        (CastRequest("f32", "f17", "a5"), ReadError, "unknown format"),
        (CastRequest("f32", "f16", "a5", spec="stablehlo"), ReadError, "stablehlo"),
        (CastRequest("f32", "u16", "a5", spec="tosa"), IllegalError, "no cast f32 -> u16"),
        (CastRequest("f32", "f16", "a5", rounding="up"), ReadError, "unknown rounding mode 'up'"),
        (CastRequest("f32", "hif8", "a5", spec="exact", rounding="rint"), IllegalError, "not defined"),
        (CastRequest("f32", "f16", "a5", steps=5), ReadError, "5 steps"),
        (CastRequest("string", "f16", "a5", spec="onnx"), IllegalError, "text"),
        (CastRequest("f32", "e8m0", "a5", spec="onnx", version="19"), IllegalError, "e8m0|came with"),
    ],
)
def test_bad_requests(request_: CastRequest, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        plan(request_)


def _every_policy(src: str, dst: str) -> list[Policy]:
    """Return policies of a pair in every way in which those of chips differ."""
    source, destination = FORMATS[src], FORMATS[dst]
    free = {
        "rounding": [mode for mode in legal_roundings(source, destination) if mode in DETERMINISTIC][:4],
        "overflow": legal_overflows(destination),
        "nan_to_integer": tuple(NanToInteger),
        "infinity_wrap": (InfinityWrap.ZERO, InfinityWrap.EXTREME),
        "wrap_bits": (None, 64, destination.bits),
        "nan_to_float": (NanToFloat.CANONICAL, NanToFloat.ZERO),
        "flush_source": (False, True),
        "flush_result": (False, True),
        "infinity_to_max": (False, True),
    }
    return [Policy(**dict(zip(free, values, strict=True))) for values in itertools.product(*free.values())]


@pytest.mark.parametrize(
    ("src", "dst"), [("i32", "i16"), ("u16", "u32"), ("i32", "f32"), ("i32", "f16"), ("f32", "i16")]
)
def test_policies_that_pass_for_equal_give_equal_bits(src: str, dst: str) -> None:
    codes = samples(FORMATS[src], seed=11, count=500)[-3000:]
    groups: dict[Policy, bytes] = {}
    for policy in _every_policy(src, dst):
        found = cast_codes(codes, FORMATS[src], FORMATS[dst], policy).tobytes()
        settled = _settled_policy(FormatCast(FORMATS[src], FORMATS[dst], policy))
        assert groups.setdefault(settled, found) == found, policy
    assert len(groups) < len(_every_policy(src, dst)) // 4


@pytest.mark.parametrize(
    ("src", "dst", "spec", "target"),
    [
        ("i32", "i8", "exact", "a5"), ("i32", "i8", "tosa", "a2a3"), ("i32", "u16", "exact", "a5"),
        ("i32", "f32", "exact", "a5"), ("f32", "u16", "onnx", "a5"), ("f32", "bool", "onnx", "a5"),
        ("u32", "u32", "onnx", "a5"), ("i32", "i8", "exact", "gaudi2"),
    ],
)  # fmt: skip
def test_what_is_the_reference_by_its_making_satisfies_samples(src: str, dst: str, spec: str, target: str) -> None:
    pytest.importorskip("numba")
    with pytest.MonkeyPatch.context() as patch:  # nothing may be left to a run of 2**32 codes
        patch.setattr("castsim.tools.lowering.proof._Runner", None)
        found = plan(CastRequest(src, dst, target, spec=spec))
    assert found.evidence is not None
    assert (found.evidence.method, found.evidence.codes, found.verdict) == (
        Method.EXHAUSTIVE, 1 << 32, Verdict.EXACT,
    )  # fmt: skip
    codes = samples(FORMATS[src], seed=2, count=4000)
    assert found.demand.satisfied(codes, run_chain(found.chain, codes)).all()


@pytest.mark.parametrize(
    ("src", "dst", "steps"),
    [
        ("i32", "i16", (("i32", "i16", "rint", "saturate"),)),
        ("f32", "i32", (("f32", "i32", "floor", "saturate"),)),
        ("f32", "u16", (("f32", "i16", "trunc", "saturate"), ("i16", "u16", "rint", "wrap"))),
        ("f32", "i32", (("f32", "i16", "trunc", "wrap"), ("i16", "i32", "rint", "saturate"))),
    ],
)
def test_what_is_not_the_reference_does_not_pass_for_it(
    src: str, dst: str, steps: tuple[tuple[str, str, str, str], ...]
) -> None:
    """Chains that clamp, round otherwise or lose bits on their way are refuted by a code."""
    demand = settle(CastRequest(src, dst, "a5", spec="onnx" if src == "f32" else "exact"))
    chain = tuple(step(*each) for each in steps)
    assert not any(_is_reference(demand, chain, policy, {}) for policy in demand.references)
    assert judge(demand, chain).verdict is Verdict.DIFFERS


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


THOROUGH = os.environ.get("CASTSIM_THOROUGH") == "1"
TARGETS = 200
WIDE_TARGETS = 40 if THOROUGH else 6


def request_of(found: Case) -> CastRequest:
    attributes = {"rounding": found.rounding, "overflow": found.overflow}
    return CastRequest(found.src, found.dst, found.target, attributes=attributes, rows=1, cols=256, steps=3)


def check(found: Case) -> int | None:
    expected = shortest(found, 3)
    planned = plan(request_of(found))
    if expected is None:
        assert planned.kind.fails, planned.chain
        return None
    assert not planned.kind.fails
    assert sum(step.is_instruction for step in planned.chain) == expected
    assert planned.verdict is Verdict.EXACT
    return expected


def test_random_targets() -> None:
    lengths = [check(case(seed)) for seed in range(TARGETS)]
    # The targets are worth trying: every length occurs, and so does failure.
    assert all(lengths.count(length) >= 5 for length in (1, 2, None))
    assert lengths.count(3) >= 2


def test_random_targets_with_sources_of_16_bits() -> None:
    for seed in range(WIDE_TARGETS):
        check(case(seed, WIDE))


def test_only_chains_right_on_all_codes_tried_come_back() -> None:
    demand = settle(CastRequest("f16", "i8", "a5"))
    steps = [
        policy_step("f16", "bf16", "rint", "special"),
        policy_step("bf16", "i8", "rint", "saturate"),
        policy_step("f16", "f32", "rint", "special"),
        policy_step("f32", "i8", "rint", "saturate"),
        policy_step("f16", "i8", "rint", "wrap"),
    ]
    catalogue = Catalogue.of(steps, (demand.src, demand.dst), rereads_inside=False)
    chains = search(catalogue, demand, telling_codes(demand.src, (demand.dst,), 64), 3)
    assert [[step.dst.name for step in chain] for chain in chains] == [["f32", "i8"]]
    assert judge(demand, chains[0]).evidence.method is Method.EXHAUSTIVE


@pytest.mark.parametrize(
    ("src", "dst", "target", "spec"),
    [
        ("i16", "i8", "a2a3", "tosa"),  # the low byte: by bits
        ("u16", "i32", "a2a3", "exact"),  # beyond i16: four instructions
        ("f16", "f32", "gaudi", "exact"),  # no conversion, but a builtin
    ],
)
def test_operations_on_bits_long_chains_and_builtins(src: str, dst: str, target: str, spec: str) -> None:
    """The program gives NumPy's results for all codes: integers wrap, and f32 holds every f16."""
    found = plan(CastRequest(src, dst, target, spec=spec))
    assert found.verdict is Verdict.EXACT
    assert found.proven
    assert found.assembly is not None
    kinds = {"i8": np.int8, "i16": np.int16, "u16": np.uint16, "i32": np.int32, "f16": np.float16, "f32": np.float32}
    codes = np.arange(1 << 16, dtype=np.uint16)
    right = codes.view(kinds[src]).astype(kinds[dst])
    results = run_text(found.assembly, codes).view(kinds[dst])
    assert np.array_equal(results, right, equal_nan=dst == "f32")


def test_only_a_width_that_the_target_lacks_is_impossible() -> None:
    """TPC lanes have 8 to 32 bits; another type of a width that is there is only not found."""
    lacking, unknown, failing = (
        plan(CastRequest(src, dst, target))
        for src, dst, target in (("i64", "i8", "gaudi"), ("e5m2", "f32", "goya"), ("f32", "i32", "a2a3"))
    )
    assert (lacking.kind, lacking.proven) == (PlanKind.IMPOSSIBLE, True)
    assert "64 bits" in str(lacking.reason)
    assert (unknown.kind, unknown.proven) == (PlanKind.NONE_FOUND, False)
    assert "e5m2" in str(unknown.reason)
    if failing.kind is PlanKind.NONE_FOUND:
        assert not failing.proven
        assert failing.counterexample is not None


WRAPPING = ("i4 i8", "u4 u8", "i8 i4", "u8 u4", "i4 i16", "i16 i4")
PAIRS = [*((*pair.split(), "wrap") for pair in WRAPPING), ("u4", "f32", "special")]


@pytest.mark.parametrize("target", ["greco", "gaudi2"])
@pytest.mark.parametrize(("src", "dst", "overflow"), PAIRS)
def test_the_program_alone_keeps_the_order_of_elements(src: str, dst: str, overflow: str, target: str) -> None:
    found = plan(CastRequest(src, dst, target, spec="onnx"))
    program = found.assembly
    assert program is not None
    bits = FORMATS[src].bits
    rng = np.random.default_rng(4)
    codes = rng.integers(0, 1 << bits, program.elements).astype(oracle.storage(src))
    loaded = load_text(program.text, "lowered.tpc", program.target)
    outputs = run_loaded(loaded, {"src": array_from_codes(codes, program.source)}, stale_reads="ignore").outputs
    results = codes_from_array(outputs["dst"], program.destination).reshape(-1)
    right = oracle.cast_array(codes, src, dst, "rint", overflow)
    mask = (1 << FORMATS[dst].bits) - 1
    assert ((results & mask) == (right & mask)).all()


NARROW = [asked for asked in ASKED if asked.split()[0] in ("f16", "bf16", "i16")]


@pytest.mark.parametrize("asked", NARROW if THOROUGH else NARROW[:2])
def test_sources_of_16_bits_without_numba(asked: str) -> None:
    answer = ask(asked, numba=False)
    assert "all 65536 codes" in answer.how
    if THOROUGH:  # seconds are for who asks for them: a second of an idle machine is two of a busy one, or more
        assert answer.cpu < 2


def planned(spec: str, cell: Cell) -> Plan:
    request = CastRequest(cell.src, cell.dst, cell.target, spec=spec, attributes=dict(cell.attributes), rows=32)
    return plan(request, explain=False)


def test_the_judge_sees_a_wrong_program() -> None:
    # The program of another rounding, held against what was planned.
    right = planned("tosa", Cell("f16", "i16", (), "a5"))
    wrong = plan(CastRequest("f16", "i16", "a5", attributes={"rounding": "trunc"}, rows=32))
    cell = Cell("f16", "i16", (), "a5")
    assert check_plan(cell, right).good
    swapped = Plan(**{name: getattr(right, name) for name in Plan.__slots__} | {"assembly": wrong.assembly})
    checked = check_plan(cell, swapped)
    assert not checked.good
    assert checked.wrong > 1000
