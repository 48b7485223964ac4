"""Published or own measurements of casts against the simulation: tables of cycles in, errors out."""

from castsim.evidence.accuracy.assessment import (
    Accuracy,
    AccuracyTables,
    AssessedRow,
    Curve,
    accuracy,
    assess,
    measured_targets,
)
from castsim.evidence.accuracy.measured_rows import MeasuredRow, MeasuredTable, read_table

__all__ = [
    "Accuracy", "AccuracyTables", "AssessedRow", "Curve", "MeasuredRow", "MeasuredTable", "accuracy", "assess",
    "measured_targets", "read_table",
]  # fmt: skip
