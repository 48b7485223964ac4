"""Tuning: which tile shapes and other choices of a parametrised kernel take fewest cycles, and fewest bytes."""

from castsim.exploration.tuning.candidates import Axis, Kind, Row, Space, Study, read_axes, read_condition
from castsim.exploration.tuning.tuning_studies import ALL, MOST_SIMULATED, Ledger, Tuning, about, search, study_of, tune

__all__ = [
    "ALL", "MOST_SIMULATED", "Axis", "Kind", "Ledger", "Row", "Space", "Study", "Tuning", "about", "read_axes",
    "read_condition", "search", "study_of", "tune",
]  # fmt: skip
