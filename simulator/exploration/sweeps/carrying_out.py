"""Carrying out a sweep: what the ledger lacks is computed, then all of it written."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

from castsim.execution.distribution import Ledger, LedgerLabels, Task, Workers, distributed
from castsim.exploration.sweeps.columns import chunk_rows
from castsim.exploration.sweeps.results import Sweep
from castsim.exploration.sweeps.specification import Specification
from castsim.exploration.sweeps.work import Work, work_of
from castsim.exploration.sweeps.writing import write_results
from castsim.files import LEDGER
from castsim.timing import ProgressCallback

BOOK = LedgerLabels("sweep", "--out")
_FEW = 4
"""Chunks that are done before processes would have come up."""


def carry_out(specification: Specification, path: Path, workers: Workers, progress: ProgressCallback) -> Sweep:
    """Sweep; parameters and errors are those of `castsim.sweep`, and what it returns."""
    work = work_of(specification)
    with Ledger(path.with_name(path.name + LEDGER), work.about(), BOOK) as ledger:
        resumed = len(ledger.pieces)
        left = [number for number in range(work.chunks) if number not in ledger.pieces]
        done = work.grid.combinations - sum(stop - start for start, stop in map(work.span, left))
        progress(str(work.mode), done, work.grid.combinations)
        who = replace(workers, count=1) if len(left) <= _FEW else workers
        for chunk in distributed(task_of(work), left, who):
            ledger.add(chunk.piece, chunk.result)
            start, stop = work.span(chunk.piece)
            done += stop - start
            progress(str(work.mode), done, work.grid.combinations)
        rows_written, failed = write_results(work, ledger, path)
        return Sweep(
            path, ledger.path, rows_written, failed, work.chunks, resumed, work.identity.version,
            work.identity.facts_digest,
        )  # fmt: skip


def task_of(work: Work) -> Task[int, bytes]:
    """Return the task whose pieces are the chunks of a sweep."""
    return Task("sweep", partial(chunk_rows, work), work.identity.installation)
