"""Carrying out a sweep: what the ledger lacks is computed, then all of it written."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from castsim.execution.distribution.distributing import Ledger, LedgerLabels, Workers, distributed
from castsim.execution.distribution.origins import Task
from castsim.exploration.sweeps.arrow import pa, pq, reason_of
from castsim.exploration.sweeps.results import Sweep
from castsim.exploration.sweeps.sweep_points import FAILED, Work, chunk_rows, schema_of, unpacked, work_of
from castsim.exploration.sweeps.sweep_specification import Specification
from castsim.files import LEDGER, whole_file
from castsim.isa.errors import ReadError
from castsim.timing import ProgressCallback

if TYPE_CHECKING:
    from castsim.exploration.sweeps.sweep_points import Work


# From the ledger to the Parquet file: chunk by chunk in the order of the points, under its final name once whole.

ROW_GROUP = 1 << 17
"""Rows that the file holds together, and that memory holds at most."""


def write_results(work: Work, ledger: Ledger, path: Path) -> tuple[int, int]:
    """Write the results of a finished sweep; return how many rows there are, and how many of them failed.

    Raises:
        ReadError: the file cannot be written; the ledger has changed.
    """
    schema = schema_of(work)
    rows = failed = 0
    try:
        with whole_file(path, synchronised=True) as file, pq.ParquetWriter(file, schema, compression="zstd") as writer:
            waiting: list[pa.Table] = []
            for number in range(work.chunks):
                table = _rows(ledger, number, schema)
                rows += table.num_rows
                failed += sum(table["status"].to_numpy() == FAILED)
                waiting.append(table)
                if sum(each.num_rows for each in waiting) >= ROW_GROUP:
                    _flush(writer, waiting)
            _flush(writer, waiting)
    except OSError as error:
        raise ReadError(
            f"--out {path}: {reason_of(error)}", legal=("--out FILE in a folder that can be written",)
        ) from None
    return rows, int(failed)


def _rows(ledger: Ledger, number: int, schema: pa.Schema) -> pa.Table:
    """Return the rows of a chunk.

    Raises:
        ReadError: there are none of this sweep.
    """
    try:
        return unpacked(ledger.results(number)).cast(schema)
    except (ValueError, pa.ArrowException) as error:  # other columns, or other types
        message = error.message if isinstance(error, ReadError) else "rows of another table"
        raise ReadError(f"{ledger.path}: chunk {number}: {message}", legal=(ledger.again,)) from None


def _flush(writer: pq.ParquetWriter, waiting: list[pa.Table]) -> None:
    if waiting:
        writer.write_table(pa.concat_tables(waiting), row_group_size=ROW_GROUP * 2)
        waiting.clear()


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
