"""The search finds what trying all chains finds, on random targets."""

from __future__ import annotations

import os
from collections import Counter

import numpy as np
import oracle
import pytest
from benchmarks.answers import ASKED, ask
from tools.lowering.planning_synthetic import WIDE, Case, case, policy_step, shortest

from castsim.isa.formats import FORMATS
from castsim.numerics.codec import array_from_codes, codes_from_array
from castsim.running.program_loading import load_text
from castsim.running.program_runs import run_loaded
from castsim.targets.loader import load_specification, target_names
from castsim.tools.lowering.catalogue import Catalogue, search
from castsim.tools.lowering.conformance import Cell, changed, legal_casts
from castsim.tools.lowering.demand import CastRequest, Verdict, settle
from castsim.tools.lowering.planner import Plan, PlanKind, plan
from castsim.tools.lowering.proof import Method, judge
from castsim.tools.lowering.samples import telling_codes
from castsim.tools.verify.lowering import check_plan, run_text

THOROUGH = os.environ.get("CASTSIM_THOROUGH") == "1"
TARGETS = 200
WIDE_TARGETS = 40 if THOROUGH else 6


def request(found: Case) -> CastRequest:
    attributes = {"rounding": found.rounding, "overflow": found.overflow}
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
PROCESSORS = os.cpu_count() or 1


@pytest.mark.parametrize("asked", NARROW if THOROUGH else NARROW[:2])
def test_sources_of_16_bits_without_numba(asked: str) -> None:
    answer = ask(asked, numba=False)
    assert "all 65536 codes" in answer.how
    if THOROUGH:  # seconds are for who asks for them: a second of an idle machine is two of a busy one, or more
        assert answer.cpu < 2


@pytest.mark.skipif(not THOROUGH, reason="CASTSIM_THOROUGH=1: minutes")
@pytest.mark.parametrize("asked", ASKED)
def test_every_answer_with_numba(asked: str) -> None:
    pytest.importorskip("numba")
    assert ask(asked, numba=True).cpu < 10 * PROCESSORS


CHAINS = 400 if THOROUGH else 24
WIDE_CODES = 100_000
"""Codes of a source of more than 16 bits."""
SLOW = ("f32", "f64", "i32", "u32", "i64", "u64")


def requests(seed: int) -> list[tuple[str, Cell]]:
    """All cells of both specifications, shuffled; in CI one in eight has a wide source, whose proof takes seconds."""
    cells = []
    for spec in ("tosa", "onnx"):
        found = load_specification(spec)
        for cast in legal_casts(found):
            if any(attribute.effect == "reads the source as unsigned" and cast.attributes[name] == "1"
                   for name, attribute in found.attributes.items()):  # fmt: skip
                continue
            assert cast.src is not None
            assert cast.dst is not None
            cells += [(spec, Cell(cast.src.name, cast.dst.name, changed(cast), name)) for name in target_names()]
    order = np.random.default_rng(seed).permutation(len(cells))
    return [cells[place] for place in order]


def planned(spec: str, cell: Cell) -> Plan:
    request = CastRequest(cell.src, cell.dst, cell.target, spec=spec, attributes=dict(cell.attributes), rows=32)
    return plan(request, explain=False)


def test_a_seeded_sample_of_chains() -> None:
    verdicts: Counter[Verdict] = Counter()
    inputs: Counter[str] = Counter()
    wide = 0
    for spec, cell in requests(8):
        if cell.src in SLOW and not THOROUGH and (wide >= CHAINS // 8 or FORMATS[cell.dst].bits > 16):
            continue
        found = planned(spec, cell)
        checked = check_plan(cell, found, WIDE_CODES)
        if checked is None:
            continue
        wide += checked.inputs == "samples"
        assert checked.good, (spec, checked)
        verdicts[found.verdict] += 1
        inputs[checked.inputs] += 1
        if verdicts[Verdict.EXACT] + verdicts[Verdict.CONFORMS] == CHAINS:
            break
    assert verdicts[Verdict.EXACT] + verdicts[Verdict.CONFORMS] == CHAINS
    assert verdicts[Verdict.DIFFERS] > CHAINS // 8
    assert inputs["samples"] >= CHAINS // 10


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
