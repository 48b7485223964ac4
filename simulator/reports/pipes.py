"""The bottleneck of a run: the pipe that works the largest part of the time, and on what."""

from __future__ import annotations

from collections.abc import Mapping

from castsim.timing import WAITING, Cause, Limiter, PipeTiming, limiter, share

__all__ = ["WAITING", "Limiter", "causes_of", "limiter", "present_causes", "share"]


def causes_of(pipe: PipeTiming) -> dict[Cause, int]:
    """Return the cycles of a pipe by cause, without zeros, in the order of `Cause`."""
    return {cause: pipe.causes[cause] for cause in Cause if pipe.causes.get(cause)}


def present_causes(pipes: Mapping[str, PipeTiming]) -> list[Cause]:
    """Return the causes that some pipe has, in the order of `Cause`."""
    return [cause for cause in Cause if any(pipe.causes.get(cause) for pipe in pipes.values())]
