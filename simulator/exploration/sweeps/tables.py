"""Files of results, read back."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from castsim.exploration.sweeps.arrow import pa, pq
from castsim.exploration.sweeps.columns import FORM
from castsim.isa.errors import ReadError

_LEGAL = ("a file that castsim sweep has written",)


def results_schema(path: Path) -> pa.Schema:
    """Return the schema of a file of results.

    Raises:
        ReadError: it cannot be read, is no Parquet file, or not one of a sweep.
    """

    try:
        schema = pq.read_schema(path)
    except OSError as error:
        raise ReadError(f"{path}: {error.strerror or error}", legal=_LEGAL) from None
    except pa.ArrowInvalid:
        raise ReadError(f"{path}: is no Parquet file", legal=_LEGAL) from None
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
        return pq.read_table(path, columns=None if columns is None else list(columns))
    except (OSError, pa.ArrowException) as error:
        raise ReadError(f"{path}: {error}", legal=_LEGAL) from None
