"""Estimates: the cycles of one operation alone, without a program; by a closed form if the facts allow one."""

from castsim.running.estimating.cast_estimates import Estimate, Estimates, of_timing, timed_alone
from castsim.running.estimating.tile_estimates import estimate

__all__ = ["Estimate", "Estimates", "estimate", "of_timing", "timed_alone"]
