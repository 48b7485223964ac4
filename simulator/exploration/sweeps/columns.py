"""The rows of a sweep as columns of Arrow: one schema for all of its chunks, and for all sweeps of casts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np

from castsim.exploration.sweeps.arrow import pa
from castsim.exploration.sweeps.axes import is_argument
from castsim.exploration.sweeps.grid import DEFAULT, Axis
from castsim.exploration.sweeps.points import CAUSES, Results, computed
from castsim.exploration.sweeps.specification import CAST_AXES, PROGRAM_AXES, Kind
from castsim.isa.errors import ReadError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from castsim.exploration.sweeps.work import Work

OK, FAILED = "ok", "failed"
"""What `status` says."""
FORM = "1"
"""Version of the columns."""
_EXTENTS = ("rows", "cols", "row_stride")


def column_of(cause: str) -> str:
    """Return the name of the column of a cause."""
    return cause.replace(" ", "_")


def axis_columns(work: Work) -> tuple[str, ...]:
    """Return the names of the columns that say which point a row is of: the usual ones, then those of its own."""
    usual = CAST_AXES if work.kind is Kind.CAST else PROGRAM_AXES
    return (*usual, *(axis.name for axis in work.grid.axes if axis.name not in usual))


def schema_of(work: Work) -> pa.Schema:
    """Return the schema of the results; cycles say so in their metadata."""
    counted = {"unit": "cycles"}
    axes = {axis.name: axis for axis in work.grid.axes}
    fields = [pa.field(name, _type_of(name, axes.get(name))) for name in axis_columns(work)]
    fields += [pa.field(name, pa.int64(), metadata=counted) for name in ("cycles", *map(column_of, CAUSES))]
    fields += [
        pa.field("bound_by", pa.string()), pa.field("status", pa.string(), nullable=False),
        pa.field("error", pa.string()),
    ]  # fmt: skip
    return pa.schema(fields, metadata={
        "castsim_sweep": FORM, "castsim_version": work.identity.version, "facts_digest": work.identity.facts_digest,
        "facts": json.dumps(dict(work.identity.facts), sort_keys=True), "sources_digest": work.identity.sources,
        "specification": work.canonical(), "digest": work.digest,
    })  # fmt: skip


def chunk_rows(work: Work, number: int) -> bytes:
    """Compute a chunk and return its rows as an Arrow stream: the same bytes of meaning wherever that is done.

    Raises:
        EngineError, ReadError: as `castsim.exploration.sweeps.points.computed`.
    """
    return packed(batch_of(work, computed(work, number)))


def batch_of(work: Work, results: Results) -> pa.RecordBatch:
    """Return rows as columns."""
    schema = schema_of(work)
    failed = np.array([error is not None for error in results.errors], np.bool_)
    axes = {axis.name: axis for axis in work.grid.axes}
    places = work.grid.places(results.numbers)
    columns = [
        _axis_column(axes[name], places[name], schema.field(name).type)
        if name in axes
        else pa.nulls(len(failed), schema.field(name).type)
        for name in axis_columns(work)
    ]
    columns += [pa.array(each, pa.int64(), mask=failed) for each in (results.cycles, *results.causes)]
    columns += [
        pa.array(results.bound_by, pa.string()),
        pa.DictionaryArray.from_arrays(failed.astype(np.int32), [OK, FAILED]).cast(pa.string()),
        pa.array(results.errors, pa.string()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def packed(batch: pa.RecordBatch) -> bytes:
    """Return a batch as bytes."""
    sink = pa.BufferOutputStream()
    plain = batch.replace_schema_metadata(None)
    with pa.ipc.new_stream(sink, plain.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_batch(plain)
    return bytes(sink.getvalue())


def unpacked(rows: bytes) -> pa.Table:
    """Return what was packed.

    Raises:
        ReadError: nothing was.
    """
    try:
        return pa.ipc.open_stream(rows).read_all()
    except (OSError, pa.ArrowException) as error:
        raise ReadError(f"rows of a sweep that cannot be read: {error!s:.200}") from None


def _type_of(name: str, axis: Axis | None) -> pa.DataType:
    if name in _EXTENTS:
        return pa.int64()
    if axis is None or not is_argument(name):
        return pa.string()
    if isinstance(axis.values, range) or all(isinstance(each, int) for each in axis.values):
        return pa.int64()
    return pa.string() if any(isinstance(each, str) for each in axis.values) else pa.float64()


def _axis_column(axis: Axis, places: NDArray[np.int64], kind: pa.DataType) -> pa.Array:
    if isinstance(axis.values, range):
        return pa.array(axis.values.start + axis.values.step * places, pa.int64()).cast(kind)
    present, which = np.unique(places, return_inverse=True)
    used = (axis.values[place] for place in present.tolist())  # an axis has more values than a chunk has points
    values = [None if each == DEFAULT else str(each) if kind == pa.string() else each for each in used]
    return pa.array(values, kind).take(pa.array(which))
