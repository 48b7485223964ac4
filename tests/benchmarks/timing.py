"""Ratios that hold on a busy machine.

Thread CPU time, samples of a few milliseconds, all contestants in turn within one process, median and quartiles.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Run = Callable[[], object]

SAMPLE_NS = 3_500_000


@dataclass(frozen=True, slots=True)
class Quartiles:
    """Three quartiles of a sample."""

    lower: float
    median: float
    upper: float


def quartiles(values: np.ndarray) -> Quartiles:
    return Quartiles(*(float(value) for value in np.percentile(values, (25, 50, 75))))


def repeats(run: Run) -> int:
    """Return how many calls fill one sample, after one that warms up."""
    run()
    start = time.thread_time_ns()
    run()
    once = max(time.thread_time_ns() - start, 100)
    return max(1, SAMPLE_NS // once)


def sample(run: Run, count: int) -> float:
    """Return seconds per call."""
    start = time.thread_time_ns()
    for _ in range(count):
        run()
    return (time.thread_time_ns() - start) / count / 1e9


def round_robin(runs: dict[str, Run], rounds: int) -> dict[str, np.ndarray]:
    """Return seconds per call of every contestant, one figure per round."""
    counts = {name: repeats(run) for name, run in runs.items()}
    taken: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            taken[name].append(sample(run, counts[name]))
    return {name: np.array(values) for name, values in taken.items()}
