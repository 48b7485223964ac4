"""Tuning: which tile shapes and other choices of a parametrised kernel take fewest cycles, and fewest bytes."""

from castsim.exploration.tuning.ledger import Ledger
from castsim.exploration.tuning.points import Row, Study
from castsim.exploration.tuning.searching import ALL, MOST_SIMULATED, Tuning, search
from castsim.exploration.tuning.space import Axis, Kind, Space, read_axes, read_condition
from castsim.exploration.tuning.studies import about, study_of, tune

__all__ = [
    "ALL", "MOST_SIMULATED", "Axis", "Kind", "Ledger", "Row", "Space", "Study", "Tuning", "about", "read_axes",
    "read_condition", "search", "study_of", "tune",
]  # fmt: skip
