"""The shipped records of `castsim verify --lowering`: complete, of the planner as it is, without a false claim."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from simulator.verification.lowering_record import planner_digest

DOCS = Path(__file__).parent.parent / "docs"


@pytest.mark.parametrize("specification", ["tosa", "onnx"])
def test_record(specification: str) -> None:
    record = json.loads((DOCS / f"lowering-{specification}.json").read_text())
    assert record["specification"] == specification
    assert record["complete"]
    assert not record["missing"]
    assert record["wrong"] == 0
    assert record["planner_sha256"] == planner_digest(), "the planner was changed: castsim verify --lowering"
    results = [row["result"] for row in record["results"]]
    found = [result for result in results if result is not None]
    assert len(results) == record["cells"]
    assert len(results) - len(found) == record["cells_without_a_way"]
    assert len(found) == record["programs_run"] + record["counterexamples_run"]
    assert sum(result["codes"] for result in found) == record["codes"]
    assert not any(result["wrong"] for result in found)
