"""Cross-validation as JSON: every fold with its fitted facts and its rows, and the statistics over all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal

from castsim.evidence.accuracy_assessment import AssessedRow, Statistics, simulated
from castsim.evidence.left_out import CrossValidation, Fold
from castsim.reports.documents import Document, document

_PLACES = 4
"""Decimals of a percentage."""


def cross_validation_document(found: CrossValidation) -> Document:
    """Return the JSON of a cross-validation."""
    return {
        "target": found.target.name,
        "file": found.table.file,
        "left_out": str(found.left_out),
        "rows": len(found.rows),
        **_statistics(simulated(found.rows)),
        "nothing_left_out": {"facts": _facts(found.fitted), **_statistics(simulated(found.fitted_rows))},
        "folds": [_fold(fold) for fold in found.folds],
    }


def _fold(fold: Fold) -> Document:
    return {
        "left_out": fold.name,
        "rows": len(fold.rows),
        **_statistics(fold.statistics),
        "facts": _facts(fold.facts),
        "predictions": _rows(fold.rows),
    }


def _rows(rows: Sequence[AssessedRow]) -> list[Document]:
    return [
        {
            "src": assessed.row.src.name,
            "dst": assessed.row.dst.name,
            "path": assessed.row.path,
            "measured_cycles": assessed.row.measured_cycles,
            **document(assessed, "simulated_rows", "simulated_cols", "simulated_cycles"),
            "error_percent": round(assessed.error, _PLACES),
        }
        for assessed in rows
    ]


def _facts(facts: Mapping[str, Decimal]) -> dict[str, float]:
    return {path: float(value) for path, value in facts.items()}


def _statistics(found: Statistics) -> dict[str, float]:
    values = {"mean": found.mean, "median": found.median, "max": found.maximum}
    return {name: round(value, _PLACES) for name, value in values.items()}
