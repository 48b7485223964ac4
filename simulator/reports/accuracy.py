"""Accuracy as JSON: every row, every curve, and the statistics over all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from castsim.evidence.accuracy_assessment import (
    Accuracy,
    AssessedRow,
    Curve,
    Statistics,
    by_evidence,
    predicted,
    simulated,
)
from castsim.execution.distribution.origins import Origins
from castsim.reports.documents import VERSIONS, Document, document, json_of
from castsim.targets.description import SourceKind
from castsim.targets.loader import intervals

_PLACES = 4
"""Decimals of a percentage."""


def accuracy_document(found: Sequence[Accuracy]) -> Document:
    """Return the JSON of one table, or of several."""
    every = [row for accuracy in found for row in accuracy.rows]
    origins, names = Origins(), dict.fromkeys(each.target.name for each in found)
    return {
        "schema_version": VERSIONS["accuracy"],
        "unfitted": _counted(row for row in every if not row.row.fitted),
        "fitted": _counted(row for row in every if row.row.fitted),
        "by_source": [
            _by_source(each.target.name, fitted, kind, rows)
            for each in found
            for (fitted, kind), rows in by_evidence(each.rows).items()
        ],
        "intervals": json_of([known for name in names for known in intervals(name)]),
        "targets": [_target(accuracy) for accuracy in found],
        "rows": [
            {**_row(accuracy.target.name, row), "computed_by": origins.place(by)}
            for accuracy in found
            for row, by in zip(accuracy.rows, accuracy.origins, strict=True)
        ],
        "curves": [_curve(accuracy.target.name, curve) for accuracy in found for curve in accuracy.curves],
        **_statistics(simulated(every)),
        "public_model": _or_none(predicted(every)),
        "workers": origins.documents(),
    }


def _target(accuracy: Accuracy) -> Document:
    shipped = [table for table in accuracy.target.measurements if Path(accuracy.table.file).match(table.file)]
    return {
        "target": accuracy.target.name,
        "file": accuracy.table.file,
        "source": shipped[0].source if shipped else None,
        "measured_on": accuracy.measured_on or accuracy.target.name,
        "rows": len(accuracy.rows),
        "rows_skipped": accuracy.table.skipped,
        "unfitted": _counted(accuracy.unfitted),
        **_statistics(simulated(accuracy.rows)),
        "public_model": _or_none(predicted(accuracy.rows)),
    }


def _row(target: str, assessed: AssessedRow) -> Document:
    peer = assessed.predicted_error
    return {
        "target": target,
        "columns": {name: _typed(text) for name, text in assessed.row.cells.items()},
        "operation": assessed.row.label,
        "measured_cycles": assessed.row.measured_cycles,
        "fitted": assessed.row.fitted,
        "source_kind": json_of(assessed.row.source_kind),
        **document(assessed, "convention", "simulated_rows", "simulated_cols", "simulated_cycles"),
        "error_percent": round(assessed.error, _PLACES),
        "public_model_error_percent": None if peer is None else round(peer, _PLACES),
        "reason": assessed.reason or None,
    }


def _curve(target: str, curve: Curve) -> Document:
    return {
        "target": target,
        **document(curve, "operation", "src", "dst", "path"),
        "rows": curve.simulated.rows,
        **_statistics(curve.simulated),
        "public_model": _or_none(curve.predicted),
    }


def _counted(rows: Iterable[AssessedRow]) -> Document | None:
    kept = list(rows)
    return {"rows": len(kept), **_statistics(simulated(kept))} if kept else None


def _by_source(target: str, fitted: bool, kind: SourceKind | None, rows: Sequence[AssessedRow]) -> Document:
    return {"target": target, "source_kind": json_of(kind), "fitted": fitted, **(_counted(rows) or {})}


def _statistics(found: Statistics) -> dict[str, float]:
    values = {"mean": found.mean, "median": found.median, "max": found.maximum}
    return {name: round(value, _PLACES) for name, value in values.items()}


def _or_none(statistics: Statistics | None) -> dict[str, float] | None:
    return None if statistics is None else _statistics(statistics)


def _typed(text: str) -> int | float | str | None:
    """Return a cell as the number that it spells."""
    if not text:
        return None
    if text.isascii() and text.isdigit():
        return int(text)
    whole, dot, part = text.partition(".")
    return float(text) if dot and (whole + part).isascii() and (whole + part).isdigit() else text
