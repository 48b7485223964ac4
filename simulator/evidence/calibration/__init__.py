"""Fitting numbers of a target to a user's own measurements: a table of cycles in, a derived description out."""

from castsim.evidence.calibration.description import (
    Calibration,
    Choice,
    Fitted,
    calibrate,
    derived_description,
    misfits,
    write_description,
)

__all__ = ["Calibration", "Choice", "Fitted", "calibrate", "derived_description", "misfits", "write_description"]
