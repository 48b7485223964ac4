"""Published or own measurements of casts against the simulation: tables of cycles in, errors out."""

from castsim.evidence.accuracy.assessment import Accuracy, AssessedRow, Curve, assess
from castsim.evidence.accuracy.table import MeasuredRow, MeasuredTable, read_table
from castsim.evidence.accuracy.tables import AccuracyTables, accuracy, measured_targets

__all__ = [
    "Accuracy", "AccuracyTables", "AssessedRow", "Curve", "MeasuredRow", "MeasuredTable", "accuracy", "assess",
    "measured_targets", "read_table",
]  # fmt: skip
