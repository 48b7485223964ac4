"""A sweep from its specification to its file: missing chunks are computed, then all rows written."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from castsim.execution.timing import ProgressCallback
from castsim.isa.errors import ReadError, arguments_checked, installed, missing_package
from castsim.reports.documents import CommandDocument, record, says
from castsim.reports.schemas.keys import Sha256
from castsim.tools.distribution.distributing import MOST_WORKERS, Workers
from castsim.tools.sweep.specification import read_specification

if TYPE_CHECKING:
    import pandas


# The results of a sweep: the Parquet file, read back.


@record
class Sweep(CommandDocument, name="sweep", title="SweepResults"):
    """A finished sweep; its rows are in the Parquet file."""

    path: Path = says("The Parquet file.", key="out")
    ledger: Path = says("The ledger of finished work, from which the same command resumes.")
    rows: int = says("Rows of the results: points that are not excluded.")
    failed: int = says("Number of failed rows.")
    chunks: int = says("Number of chunks of points.")
    resumed: int = says("Number of chunks finished by an earlier start.", key="resumed_chunks")
    version: str = says("The version of castsim.")
    facts_digest: Sha256 = says("Digest of the facts of all targets of the sweep.")

    def to_frame(self) -> pandas.DataFrame:
        """Return the rows as a pandas frame.

        Raises:
            ReadError: pandas is not installed, or the file is missing or another.
        """
        if not installed("pandas"):
            raise missing_package("to_frame", "pandas", "notebook")
        from castsim.tools.sweep.points import results_table  # noqa: PLC0415 - pyarrow is an extra

        return results_table(self.path).to_pandas()


@arguments_checked
def sweep(
    specification: str | Path | Mapping[str, object],
    out: str | Path,
    *,
    workers: int | None = None,
    scheduler: str | None = None,
    progress: ProgressCallback = lambda *_: None,
) -> Sweep:
    """Estimate or simulate every point of a grid and write the results as a Parquet file.

    A ledger, named `out` with `.ledger` added, keeps finished chunks: however a sweep ends, the same
    call continues from there. The file gets its name once it is complete.

    Args:
        specification: path of a TOML file, or the same as dictionaries: `{"sweep": {"kind": "cast", "mode":
            "estimate"}, "grid": {"src": "f32", ...}, "exclude": [{"where": "rows*cols > 65536"}]}`.
        out: the Parquet file.
        workers: number of processes; None: as many as there are processors.
        scheduler: address of a Dask scheduler whose workers compute instead.
        progress: receives the stage, the number of finished combinations, and their total.

    Returns:
        The file, its number of rows, and the number of failed ones; `to_frame()` reads them.

    Raises:
        ReadError: the specification is wrong; the ledger is about something else; a file cannot be written; pyarrow is
            not installed; the scheduler does not answer.
        EngineError: a worker runs another version of castsim, or workers die repeatedly.
    """
    from castsim.tools.sweep.results import carry_out  # noqa: PLC0415 - pyarrow is an extra

    who = Workers(min(os.cpu_count() or 1, MOST_WORKERS) if workers is None else workers, scheduler)
    read, path = read_specification(specification), Path(out)
    files = {} if isinstance(specification, Mapping) else {"the specification": Path(specification)}
    _refuse_replacing(path, {**read.files(), **files})
    return Sweep(path, *carry_out(read, path, who, progress))


def _refuse_replacing(out: Path, files: Mapping[str, Path]) -> None:
    """Reject an output path that is a folder, or a file that the sweep reads.

    Raises:
        ReadError: the path is one of these.
    """
    if out.is_dir():
        raise ReadError(f"--out {out}: is a folder", legal=("--out FILE.parquet",))
    for what, file in files.items():
        if file.resolve() == out.resolve():
            raise ReadError(f"--out would overwrite '{out}', {what}", legal=("--out FILE.parquet",))
