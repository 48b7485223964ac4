"""Files of results, read back."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from castsim.exploration.sweeps.arrow import pa, pc, pq, reason_of
from castsim.exploration.sweeps.axes import LARGEST_EXTENT, is_argument
from castsim.exploration.sweeps.columns import FORM
from castsim.exploration.sweeps.specification import CAST_AXES, PROGRAM_AXES
from castsim.isa.errors import ReadError

_MOST_CYCLES = (1 << 63) - 1
MOST_ROWS = 1 << 26
"""Rows that are read back, all at once: 67 million. Of longer files pyarrow and others read a part."""

_LEGAL = ("a file that castsim sweep has written",)


def results_schema(path: Path) -> pa.Schema:
    """Return the schema of a file of results.

    Raises:
        ReadError: it cannot be read, is no Parquet file, or not one of a sweep; it has more than `MOST_ROWS` rows.
    """
    try:
        about = pq.read_metadata(path)
        schema = about.schema.to_arrow_schema()
    except OSError as error:
        raise ReadError(f"{path}: {reason_of(error)}", legal=_LEGAL) from None
    except (pa.ArrowException, ValueError):
        raise ReadError(f"{path}: is not a Parquet file", legal=_LEGAL) from None
    if about.num_rows > MOST_ROWS:
        raise ReadError(
            f"{path}: {about.num_rows} rows are more than {MOST_ROWS}, which are read at once",
            legal=("a sweep of fewer points", "pyarrow.parquet.ParquetFile(path).iter_batches()"),
        )
    if (schema.metadata or {}).get(b"castsim_sweep") != FORM.encode():
        shown = ", ".join(schema.names[:6])
        raise ReadError(f"{path}: a Parquet file of another schema (its columns: {shown:.100})", legal=_LEGAL)
    return schema


def results_table(path: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """Return the rows of a file of results.

    Raises:
        ReadError: as `results_schema`.
    """

    results_schema(path)
    try:
        table = pq.read_table(path, columns=None if columns is None else list(columns))
        table.validate(full=True)
    except (OSError, pa.ArrowException, ValueError) as error:
        raise ReadError(f"{path}: {error!s:.300}", legal=_LEGAL) from None
    return table


def axes_of(path: Path) -> tuple[str, ...]:
    """Return the columns that say which point a row of a file of results is of.

    Raises:
        ReadError: as `results_schema`; columns that a sweep does not write, or of another type.
    """
    schema = results_schema(path)
    names = schema.names
    axes = tuple(names[: names.index("cycles")]) if "cycles" in names else ()
    usual = CAST_AXES if "src" in axes else PROGRAM_AXES
    needed = (*dict.fromkeys((*usual, *axes)), "cycles", "status")
    wrong = [name for name in needed if names.count(name) != 1 or not _fits(schema.field(name))]
    if wrong:
        raise ReadError(f"{path}: its column '{wrong[0]:.40}' is not that of a sweep", legal=_LEGAL)
    return axes


def _fits(field: pa.Field) -> bool:
    """Whether a column has the type that a sweep gives it."""
    if is_argument(field.name):
        return field.type in (pa.int64(), pa.float64(), pa.string())
    return bool(field.type == (pa.int64() if field.name in ("rows", "cols", "row_stride", "cycles") else pa.string()))


def check_values(path: Path, table: pa.Table) -> None:
    """Refuse rows that no sweep can have.

    Raises:
        ReadError: no cycles or no size where a point was computed, or numbers beyond those of grids.
    """
    bounds = {"rows": (1, LARGEST_EXTENT), "cols": (1, LARGEST_EXTENT), "cycles": (0, _MOST_CYCLES)}
    for name in table.column_names:
        column = table[name]
        if len(column) and (name in bounds or (is_argument(name) and not pa.types.is_string(column.type))):
            least, most = pc.min_max(column).as_py().values()  # None where all are null; of NaN alone, infinities
            low, high = bounds.get(name, (-sys.float_info.max, sys.float_info.max))
            finite = pa.types.is_integer(column.type) or pc.all(pc.is_finite(column)).as_py()
            if column.null_count or not finite or not low <= least <= most <= high:
                raise ReadError(f"{path}: its column '{name}' holds what no sweep writes", legal=_LEGAL)
