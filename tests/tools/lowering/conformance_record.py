"""Writes docs/tools/conformance-tosa.json and docs/tools/conformance-onnx.json: every legal cast on every target.

`python tests conformance_record [tosa] [onnx]` plans all cells again, which takes many minutes.
"""

from __future__ import annotations

import json
import os
import re
import sys

from kit.paths import ROOT

from castsim.tools.lowering.conform import cast_text, cell_text
from castsim.tools.lowering.conformance import ConformanceEntry, Matrix, conform
from castsim.tools.lowering.planner import PlanKind

DOCS = ROOT / "docs" / "tools"
COST = re.compile(r", [0-9]+\.[0-9]{3}(?=$|[ ;])")
RECORDS = {spec: DOCS / f"conformance-{spec}.json" for spec in ("tosa", "onnx")}


def record(matrix: Matrix) -> str:
    """Return a matrix as JSON, a line per cast: the answers in the order of the targets, as `castsim conform` words."""
    rows = (
        (cast_text(cast, matrix.row(number)[0]), [answer(entry) for entry in matrix.row(number)])
        for number, cast in enumerate(matrix.casts)
    )
    totals = {
        target: {
            kind.value: sum(entry.kind is kind for entry in matrix.entries if entry.cell.target == target)
            for kind in PlanKind
        }
        for target in matrix.targets
    }
    return written(f"{matrix.spec.name}@{matrix.version}", totals, dict(rows))


def answer(entry: ConformanceEntry) -> str:
    """Return the words of a cell without its cost, which follows the timing of the target."""
    return COST.sub("", cell_text(entry))


def written(specification: str, totals: dict[str, dict[str, int]], answers: dict[str, list[str]]) -> str:
    """Return the text of a record."""
    head = json.dumps({"specification": specification, "targets": list(totals), "totals": totals}, indent=1)
    lines = ",\n".join(f"  {json.dumps(cast)}: {json.dumps(cells)}" for cast, cells in answers.items())
    return f'{head[:-2]},\n "answers": {{\n{lines}\n }}\n}}\n'


def held(spec: str) -> dict:
    """Return the committed record of a specification."""
    return json.loads(RECORDS[spec].read_text(encoding="utf-8"))


def summary() -> str:
    """Return how many casts each target does in which way, as a table per specification."""
    parts = []
    for spec in RECORDS:
        found = held(spec)
        kinds = [kind.value for kind in PlanKind]
        parts += [f"Casts of {found['specification']} ([every cell](conformance-{spec}.json)):", ""]
        parts += [f"| target | {' | '.join(kinds)} |", f"|---|{'---:|' * len(kinds)}"]
        for target, counts in found["totals"].items():
            parts.append(f"| {target} | {' | '.join(str(counts[kind]) for kind in kinds)} |")
        parts.append("")
    return "\n".join(parts)


if __name__ == "__main__":
    for spec in sys.argv[1:] or RECORDS:
        RECORDS[spec].write_text(record(conform(spec, workers=os.cpu_count() or 1)), encoding="utf-8")
