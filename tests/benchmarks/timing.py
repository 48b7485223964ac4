"""Ratios that hold on a busy machine.

Thread CPU time, samples of a few milliseconds, all contestants in turn within one process, median and quartiles; of
whole processes what they used of processors.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile

import numpy as np

ROOT = Path(__file__).resolve().parent.parent.parent
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


@dataclass(frozen=True, slots=True)
class Ended:
    """A process that has ended: seconds of processors, start-up included, largest resident size, what it said."""

    code: int
    seconds: float
    mebibytes: float
    out: str
    err: str


def ended(command: Sequence[str], **variables: str) -> Ended:
    """Run a process. Python finds its byte code, as in every run but the first."""
    rest = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with TemporaryFile("w+") as out, TemporaryFile("w+") as err:
        child = subprocess.Popen(command, cwd=ROOT, env=rest | variables, stdout=out, stderr=err)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        for file in (out, err):
            file.seek(0)
        seconds, mebibytes = used.ru_utime + used.ru_stime, used.ru_maxrss / 1024
        return Ended(child.returncode, seconds, mebibytes, out.read(), err.read())
