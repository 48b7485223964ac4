"""From the ledger to the Parquet file: chunk by chunk in the order of the points, under its final name once whole."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from castsim.execution.distribution import Ledger
from castsim.exploration.sweeps.arrow import pa, pq, reason_of
from castsim.exploration.sweeps.columns import FAILED, schema_of, unpacked
from castsim.files import whole_file
from castsim.isa.errors import ReadError

if TYPE_CHECKING:
    from castsim.exploration.sweeps.work import Work

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
