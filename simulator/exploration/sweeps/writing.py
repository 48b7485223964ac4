"""From the ledger to the Parquet file: chunk by chunk in the order of the points, under its final name once whole."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from castsim.execution.distribution import Ledger
from castsim.exploration.sweeps.arrow import pa, pq
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
                table = unpacked(ledger.results(number))
                rows += table.num_rows
                failed += sum(table["status"].to_numpy() == FAILED)
                waiting.append(table)
                if sum(each.num_rows for each in waiting) >= ROW_GROUP:
                    _flush(writer, waiting, schema)
            _flush(writer, waiting, schema)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise ReadError(f"--out {path}: {reason}", legal=("--out FILE in a folder that can be written",)) from None
    return rows, int(failed)


def _flush(writer: pq.ParquetWriter, waiting: list[pa.Table], schema: pa.Schema) -> None:
    if waiting:
        writer.write_table(pa.concat_tables(waiting).cast(schema), row_group_size=ROW_GROUP * 2)
        waiting.clear()
