"""Sweeps: one estimate or simulation for every point of a grid, kept as they come, written as one Parquet file."""

from castsim.exploration.sweeps.carrying_out import Sweep, sweep
from castsim.exploration.sweeps.sweep_specification import Kind, Mode, Specification, read_specification

__all__ = ["Kind", "Mode", "Specification", "Sweep", "read_specification", "sweep"]
