"""The library that fits, or a clear refusal where it is not installed."""

from importlib.util import find_spec

from castsim.isa.errors import ReadError

if find_spec("scipy") is None:
    raise ReadError("calibrate needs scipy, which is not installed", legal=("pip install 'castsim[calibrate]'",))

from scipy.optimize import least_squares

__all__ = ["least_squares"]
