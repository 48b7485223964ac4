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


CAUSE_COLOURS: Mapping[Cause, tuple[str, str, str]] = {
    Cause.BUSY: ("#2b6cb0", "#5a9fe0", "bright_blue"),
    Cause.FILL: ("#63a375", "#79c08d", "green"),
    Cause.DRAIN: ("#9ac7a6", "#4e8a62", "green"),
    Cause.OPERAND_WAIT: ("#a9a1c9", "#7d74a8", "dim"),
    Cause.FLAG_WAIT: ("#b6bcc6", "#5f6b7a", "dim"),
    Cause.BARRIER: ("#8b93a0", "#8e9aab", "dim"),
    Cause.DEPENDENCE: ("#7a6ba8", "#a79ad0", "dim"),
    Cause.STORE_BARRIER: ("#6d7684", "#707c8c", "dim"),
    Cause.BANK_CONFLICT: ("#c0392b", "#ef6a5b", "red"),
    Cause.PORT: ("#e08a1e", "#f0a64a", "yellow"),
    Cause.INITIATION_INTERVAL: ("#d9b310", "#e5c94a", "yellow"),
    Cause.LOOP_TURNAROUND: ("#b5651d", "#d08a4a", "yellow"),
    Cause.SERIALISING_BRANCH: ("#8e44ad", "#b87bd6", "magenta"),
    Cause.MEMORY_LATENCY: ("#d35f8d", "#e58bb0", "magenta"),
    Cause.MEMORY_BANDWIDTH: ("#a93b66", "#d0638f", "magenta"),
    Cause.EMPTY: ("#d5dbe3", "#2a323d", "dim"),
}
"""The colours of causes on light and on dark pages, and in a terminal: work is blue and green, waits for others grey,
what slows a pipe itself from yellow to red. Notebooks, whose ground nobody knows, take the first.
"""
