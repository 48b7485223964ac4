"""The search finds what trying all chains finds, on random targets."""

import os

import numpy as np
import oracle
import pytest
from planning_synthetic import WIDE, Case, case, issue, shortest

from castsim.isa.formats import FORMATS
from castsim.isa.modes import Overflow, Rounding
from castsim.numerics import Policy
from castsim.planning import CastRequest, Catalogue, Method, PlanKind, Verdict, judge, plan, run_assembly, settle
from castsim.planning.samples import telling_codes
from castsim.planning.search import search
from castsim.planning.steps import FormatCast, LoweringStep, TileCastForm, TileOperationForm

THOROUGH = os.environ.get("CASTSIM_THOROUGH") == "1"
TARGETS = 200
WIDE_TARGETS = 40 if THOROUGH else 6


def request(found: Case) -> CastRequest:
    is_float = found.dst in oracle.FLOATS
    overflow = "saturate" if found.saturate else "special" if is_float else "wrap"
    attributes = {"rounding": found.rounding, "overflow": overflow}
    return CastRequest(found.src, found.dst, found.target, attributes=attributes, rows=1, cols=256, steps=3)


def check(found: Case) -> int | None:
    expected = shortest(found, 3)
    planned = plan(request(found))
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


def test_a_found_chain_is_right_instruction_by_instruction() -> None:
    checked = 0
    for seed in range(40):
        found = case(seed)
        planned = plan(request(found))
        if planned.kind.fails:
            continue
        codes = np.arange(1 << oracle.fmt(found.src).bits, dtype=oracle.storage(found.src))
        results, fmt = codes, found.src
        for step in planned.chain:
            form = step.forms[0]
            if isinstance(form, TileOperationForm):
                results = issue(found.target, results, fmt, (fmt, form.mnemonic, form.constant))
            if isinstance(form, TileCastForm):
                mode = None if form.rounding is None else form.rounding.name.lower()
                results = issue(found.target, results, fmt, (step.dst.name, mode, form.saturation))
            fmt = step.dst.name
        is_float = found.dst in oracle.FLOATS
        overflow = "saturate" if found.saturate else "special" if is_float else "wrap"
        right = oracle.cast_array(codes, found.src, found.dst, found.rounding, overflow)
        same = results == right
        if is_float:
            same |= oracle.is_nan(results, found.dst) & oracle.is_nan(right, found.dst)
        assert same.all()
        checked += 1
    assert checked > 10


def policy_step(src: str, dst: str, rounding: str, overflow: str) -> LoweringStep:
    convert = FormatCast(FORMATS[src], FORMATS[dst], Policy(Rounding(rounding), Overflow(overflow)))
    form = TileCastForm(None, None, False)
    return LoweringStep(FORMATS[src], FORMATS[dst], (convert,), (form,), f"{src} -> {dst} {rounding} {overflow}")


@pytest.mark.parametrize("value", [40000.0, 32768.0, 65535.0])
def test_a_signed_narrowing_loses_large_values(value: float) -> None:
    demand = settle(CastRequest("f32", "u16", "a5"))
    chain = (policy_step("f32", "i16", "rint", "saturate"), policy_step("i16", "u16", "rint", "saturate"))
    judged = judge(demand, chain)
    assert judged.verdict is Verdict.DIFFERS
    code = np.array([value], np.float32).view(np.uint32)
    assert not demand.satisfied(code, chain[1].run(chain[0].run(code))).any()


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
    results = run_assembly(found.assembly, codes).view(kinds[dst])
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
