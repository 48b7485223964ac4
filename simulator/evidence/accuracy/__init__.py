"""Published or own measurements of casts against the simulation: tables of cycles in, errors out."""

from castsim.evidence.accuracy.assessment import Accuracy, AssessedRow, Curve, assess
from castsim.evidence.accuracy.table import MeasuredRow, MeasuredTable, read_table

__all__ = ["Accuracy", "AssessedRow", "Curve", "MeasuredRow", "MeasuredTable", "assess", "read_table"]
