"""Fitting numbers of a target to a user's own measurements: a table of cycles in, a derived description out."""

from castsim.evidence.calibration.description import derived_description, write_description
from castsim.evidence.calibration.fitting import Calibration, Choice, Fitted, calibrate, misfits

__all__ = ["Calibration", "Choice", "Fitted", "calibrate", "derived_description", "misfits", "write_description"]
