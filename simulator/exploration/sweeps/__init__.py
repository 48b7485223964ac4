"""Sweeps: one estimate or simulation for every point of a grid, kept as they come, written as one Parquet file."""

from castsim.exploration.sweeps.results import Sweep
from castsim.exploration.sweeps.studies import sweep
from castsim.exploration.sweeps.sweep_specification import Kind, Mode, Specification, read_specification

__all__ = ["Kind", "Mode", "Specification", "Sweep", "read_specification", "sweep"]
