"""A sweep from its specification to its file: what the ledger lacks is computed, then all of it written."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from castsim.execution.distribution.distributing import MOST_WORKERS, Ledger, LedgerLabels, Workers, distributed
from castsim.execution.distribution.origins import Task
from castsim.exploration.sweeps.sweep_points import (
    FAILED,
    Work,
    chunk_rows,
    pa,
    pq,
    reason_of,
    schema_of,
    unpacked,
    work_of,
)
from castsim.exploration.sweeps.sweep_specification import Specification, read_specification
from castsim.files import LEDGER, whole_file
from castsim.isa.errors import ReadError
from castsim.timing import ProgressCallback

if TYPE_CHECKING:
    import pandas

    from castsim.exploration.sweeps.sweep_points import Work


# The results of a sweep: the Parquet file, read back.


@dataclass(frozen=True, slots=True)
class Sweep:
    """A finished sweep: `rows` of which `failed` have an error, in the file `path`; its `ledger` lies beside it.

    `resumed` is the number of chunks that an earlier start had done, `chunks` that of all. `version` is that of
    castsim, `facts_digest` a digest of the target descriptions: both are in the metadata of the file too.
    """

    path: Path
    ledger: Path
    rows: int
    failed: int
    chunks: int
    resumed: int
    version: str
    facts_digest: str

    def to_frame(self) -> pandas.DataFrame:
        """Return the rows as a frame of pandas.

        Raises:
            ReadError: pandas is not installed; the file is gone or another.
        """
        if find_spec("pandas") is None:
            raise ReadError("to_frame needs pandas, which is not installed", legal=("pip install 'castsim[notebook]'",))
        from castsim.exploration.sweeps.sweep_points import results_table  # noqa: PLC0415 - pyarrow is an extra

        return results_table(self.path).to_pandas()


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


def sweep(
    specification: str | Path | Mapping[str, object],
    out: str | Path,
    *,
    workers: int | None = None,
    scheduler: str | None = None,
    progress: ProgressCallback = lambda *_: None,
) -> Sweep:
    """Estimate or simulate every point of a grid and write the results as a Parquet file.

    What is done is kept in a ledger, whose name is that of `out` with `.ledger` added: however a sweep ends, the same
    call goes on from there. The file takes its name once it is whole.

    Args:
        specification: path of a TOML file, or the same as dictionaries: `{"sweep": {"kind": "cast", "mode":
            "estimate"}, "grid": {"src": "f32", ...}, "exclude": [{"where": "rows*cols > 65536"}]}`.
        out: the Parquet file.
        workers: processes; None: as many as there are processors.
        scheduler: address of a Dask scheduler whose workers are to compute instead.
        progress: hears the stage, the combinations that are done, and all of them.

    Returns:
        Where the file is, how many rows it has, and how many of them failed; `to_frame()` reads them.

    Raises:
        ReadError: the specification is wrong; the ledger is about something else; a file cannot be written; pyarrow is
            not installed; the scheduler does not answer.
        EngineError: a worker has another castsim; workers die again and again.
    """

    who = Workers(min(os.cpu_count() or 1, MOST_WORKERS) if workers is None else workers, scheduler)
    read, path = read_specification(specification), Path(out)
    files = {} if isinstance(specification, Mapping) else {"the specification": Path(specification)}
    _refuse_replacing(path, {**read.files(), **files})
    return carry_out(read, path, who, progress)


def _refuse_replacing(out: Path, files: Mapping[str, Path]) -> None:
    """Refuse to write results where there is a folder, or what the sweep reads.

    Raises:
        ReadError: as said.
    """
    if out.is_dir():
        raise ReadError(f"--out {out}: is a folder", legal=("--out FILE.parquet",))
    for what, file in files.items():
        if file.resolve() == out.resolve():
            raise ReadError(f"--out would replace '{out}', which is {what}", legal=("--out FILE.parquet",))
