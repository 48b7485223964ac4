"""The search finds what trying all chains finds, on random targets."""

import os

import numpy as np
import oracle
import pytest
from planning_synthetic import WIDE, Case, case, issue, shortest

from castsim.isa.formats import FORMATS
from castsim.isa.modes import Overflow, Rounding
from castsim.numerics import Policy
from castsim.planning import CastRequest, Catalogue, Method, PlanKind, Verdict, judge, plan, settle
from castsim.planning.primitives import FormatCast
from castsim.planning.samples import telling_codes
from castsim.planning.search import search
from castsim.planning.steps import LoweringStep, TileCastForm, TileOperationForm

THOROUGH = os.environ.get("CASTSIM_THOROUGH") == "1"
TARGETS = 200
WIDE_TARGETS = 40 if THOROUGH else 6


def request(found: Case) -> CastRequest:
    is_float = found.dst in oracle.FLOATS
    overflow = "saturate" if found.saturate else "special" if is_float else "wrap"
    attributes = {"rounding": found.rounding, "overflow": overflow}
    return CastRequest(found.src, found.dst, found.target, attributes=attributes, rows=1, cols=256)


def check(found: Case) -> int | None:
    expected = shortest(found, 3)
    planned = plan(request(found))
    if expected is None:
        assert planned.kind is PlanKind.IMPOSSIBLE, planned.chain
        return None
    assert planned.kind is not PlanKind.IMPOSSIBLE
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
        if planned.kind is PlanKind.IMPOSSIBLE:
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
