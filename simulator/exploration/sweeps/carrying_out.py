"""Carrying out a sweep: what the ledger lacks is computed, then all of it written."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from castsim.exploration.sweeps.ledger import SUFFIX, Ledger
from castsim.exploration.sweeps.local import computed_here
from castsim.exploration.sweeps.results import Sweep
from castsim.exploration.sweeps.specification import Specification
from castsim.exploration.sweeps.work import Work, work_of
from castsim.exploration.sweeps.writing import write_results
from castsim.timing import ProgressCallback


def carry_out(
    specification: Specification, path: Path, workers: int | None, scheduler: str | None, progress: ProgressCallback
) -> Sweep:
    """Sweep; parameters and errors are those of `castsim.sweep`, and what it returns."""
    work = work_of(specification)
    with Ledger(path.with_name(path.name + SUFFIX), work.about()) as ledger:
        resumed = len(ledger.chunks)
        left = [number for number in range(work.chunks) if number not in ledger.chunks]
        done = work.grid.combinations - sum(stop - start for start, stop in map(work.span, left))
        progress(str(work.mode), done, work.grid.combinations)
        for number, rows in _computed(work, left, workers, scheduler):
            ledger.add(number, rows)
            start, stop = work.span(number)
            done += stop - start
            progress(str(work.mode), done, work.grid.combinations)
        rows_written, failed = write_results(work, ledger, path)
        return Sweep(
            path, ledger.path, rows_written, failed, work.chunks, resumed, work.identity.version,
            work.identity.facts_digest,
        )  # fmt: skip


def _computed(
    work: Work, numbers: list[int], workers: int | None, scheduler: str | None
) -> Iterator[tuple[int, bytes]]:
    if scheduler is None:
        return computed_here(work, numbers, workers or os.cpu_count() or 1)
    from castsim.exploration.sweeps.cluster import computed_there  # noqa: PLC0415 - distributed is an extra

    return computed_there(work, numbers, scheduler)
