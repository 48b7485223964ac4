"""The shipped records of `castsim verify --lowering`: complete, without a false claim, of what is planned today."""

from __future__ import annotations

import hashlib
import json
import os
import random
from typing import Any, cast

import pytest
from kit.paths import ROOT
from tools.lowering import cast_catalogue

from castsim.targets.loader import TileTarget, load_specification, load_target, target_names
from castsim.tools.lowering.demand import CastRequest
from castsim.tools.lowering.lowering_answers import answer, changed
from castsim.tools.lowering.sharing import RECORDS, program_key, recorded_casts, recorded_cycles

DOCS = ROOT / "docs"
SPECIFICATIONS = ["tosa", "onnx"]
CELLS = None if os.environ.get("CASTSIM_THOROUGH") else 12
"""Cells that are planned again, of each specification; all of them only where there is time."""


def read(specification: str) -> dict[str, Any]:
    record: dict[str, Any] = json.loads((DOCS / f"lowering-{specification}.json").read_text())
    return record


@pytest.mark.parametrize("specification", SPECIFICATIONS)
def test_record(specification: str) -> None:
    record = read(specification)
    assert record["specification"] == specification
    assert record["complete"]
    assert not record["missing"]
    assert record["wrong"] == 0
    results = [row["result"] for row in record["results"]]
    found = [result for result in results if result is not None]
    assert len(results) == record["cells"]
    assert len(results) - len(found) == record["cells_without_a_way"]
    assert len(found) == record["programs_run"] + record["counterexamples_run"]
    assert sum(result["codes"] for result in found) == record["codes"]
    assert not any(result["wrong"] for result in found)


@pytest.mark.parametrize("specification", SPECIFICATIONS)
def test_the_programs_of_the_record_are_those_that_are_planned_today(specification: str) -> None:
    """A record is about programs: cells are planned again, and give them to the letter."""
    record = read(specification)
    rows = record["results"]
    for row in random.Random(specification).sample(rows, CELLS or len(rows)):
        request = CastRequest(
            row["src"], row["dst"], row["target"], spec=load_specification(specification), version=record["version"],
            attributes=dict(map(tuple, row["attributes"])), rows=32, cols=256,
        )  # fmt: skip
        found, held = answer(request, explain=False, quick=True), row["result"]
        if held is None:
            assert found.plan.kind.fails, row
            assert found.plan.counterexample is None, row
            continue
        assert (found.kind.value, found.plan.verdict.value) == (held["way"], held["verdict"]), row
        assert [step.label for step in found.plan.chain] == held["chain"], row
        assert [list(each) for each in found.settings] == held["options"], row
        if found.plan.assembly is not None:
            text = found.plan.assembly.text
            assert hashlib.sha256(text.encode()).hexdigest() == held["program_sha256"], (row, text)


# --------------------------------------------------------------------- What tile casts do, as shipped data


@pytest.mark.parametrize("name", cast_catalogue.PLANNING)
def test_the_shipped_casts_are_those_of_the_sources(name: str) -> None:
    shipped = (RECORDS / f"casts_{name}.json").read_text(encoding="utf-8")
    assert shipped == cast_catalogue.record(name)
    assert recorded_casts(cast(TileTarget, load_target(name)), cast_catalogue.PLANNING[name].sources) is not None


@pytest.mark.parametrize("name", cast_catalogue.PLANNING)
def test_a_record_of_other_facts_is_not_used(name: str) -> None:
    target = cast(TileTarget, load_target(name))
    other = target.model_copy(update={"title": f"{target.title}, changed"})
    assert recorded_casts(other, cast_catalogue.PLANNING[name].sources) is None


# --------------------------------------------------------------------- Cycles of lowered programs, as shipped data


@pytest.mark.parametrize("name", target_names())
def test_the_shipped_cycles_are_those_of_a_simulation(name: str) -> None:
    """A few casts are planned again, and all programs that this times are simulated."""
    recorded = recorded_cycles(load_target(name))
    assert recorded, f"records/cycles_{name}.json is of other sources: run python tests cast_catalogue"
    simulated = cast_catalogue.simulated(name, "tosa", src="f32")
    assert simulated
    assert {key: recorded[key] for key in simulated} == simulated


def test_cycles_of_other_facts_or_options_are_not_used() -> None:
    target = load_target("a5")
    assert not recorded_cycles(target.model_copy(update={"title": f"{target.title}, changed"}))
    assert program_key(changed(target, {"ctrl_48_at_start": 1}), "text") != program_key(target, "text")
