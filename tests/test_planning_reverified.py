"""Chains reported exact, run again from their text and judged by exact arithmetic; refuted ones really differ.

Neither way passes through the planner: the programs are read and run as a user's are, the judge is `oracle_lowering`.
"""

import os
from collections import Counter

import numpy as np
import oracle_lowering
import pytest

from castsim.evidence.verification.lowering import check_plan
from castsim.isa.formats import FORMATS
from castsim.numerics import code_dtype
from castsim.planning import CastRequest, Plan, PlanKind, Verdict, plan
from castsim.planning.conformance import Cell, changed, legal_casts
from castsim.targets import load_specification, target_names

THOROUGH = os.environ.get("CASTSIM_THOROUGH") == "1"
CHAINS = 400 if THOROUGH else 24
WIDE = 100_000
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
        checked = check_plan(cell, found, WIDE)
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


@pytest.mark.parametrize(
    ("spec", "src", "dst", "attributes", "code", "good", "bad"),
    [
        # docs/reference/semantics.md section 5: rows 1, 4, 8, 9, 15, 21, 22, 19.
        ("tosa", "f32", "f16", {}, 0x4788B800, 0x7C00, 0x7BFF),
        ("onnx", "f32", "e4m3fn", {"saturate": "1"}, 0x43F00000, 0x7E, 0x7F),
        ("onnx", "f32", "e4m3fn", {"saturate": "0"}, 0x43F00000, 0x7F, 0x7E),
        ("onnx", "f32", "i32", {}, 0x406CCCCD, 3, 4),
        ("tosa", "f32", "i32", {}, 0x406CCCCD, 4, 3),
        ("tosa", "f16", "i8", {}, 0x5A40, 0x7F, 0xC8),
        ("tosa", "i32", "i16", {}, 40000, 40000, 0x7FFF),
        ("tosa", "f32", "f16", {}, 0x3F803000, 0x3C01, 0x3C03),
        ("tosa", "i32", "bf16", {}, 62783487, 0x4C6F, 0x4C70),
        ("exact", "f32", "i8", {"rounding": "floor"}, 0xBF000000, 0xFF, 0x00),
        ("onnx", "f16", "bool", {}, 0x8000, 0, 1),
    ],
)
def test_the_judge_knows_published_cells(
    spec: str, src: str, dst: str, attributes: dict[str, str], code: int, good: int, bad: int
) -> None:
    codes = np.array([code], code_dtype(FORMATS[src]))
    for result, expected in ((good, True), (bad, False)):
        results = np.array([result], code_dtype(FORMATS[dst]))
        assert oracle_lowering.accepted(spec, src, dst, attributes, codes, results).tolist() == [expected]


def test_every_way_occurs() -> None:
    ways = {
        planned("tosa", Cell(src, dst, (), target)).kind
        for src, dst, target in (
            ("f16", "f32", "a5"),
            ("f16", "i8", "a5"),
            ("bf16", "i8", "a5"),
            ("bool", "i8", "a5"),
            ("f16", "e4m3fn", "goya"),
        )
    }
    assert ways == {PlanKind.NATIVE, PlanKind.OPTIONS, PlanKind.CHAIN, PlanKind.COPY, PlanKind.NONE_FOUND}
