"""The work of a sweep in chunks, its points and their rows, and reading files of results."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import castsim
from castsim.execution.run_limits import MAX_CYCLES
from castsim.execution.timing import Cause, limiter
from castsim.isa.dataclass import dataclass, replace
from castsim.isa.errors import CastsimError, EngineError, ReadError, missing_package
from castsim.isa.pto.lexer import PtoSource, parameters, with_values
from castsim.isa.reading import STDIN, Language, Source, read_source
from castsim.running.program_loading import load
from castsim.running.program_runs import run_loaded
from castsim.targets.description import with_options
from castsim.targets.loader import Target, load_target, target_names
from castsim.tools.distribution.distributing import facts_digest
from castsim.tools.distribution.origins import LOCAL_NAME, Installation, digest_of, installation, sources_digest
from castsim.tools.distribution.origins import refuse_another as refuse_another_installation
from castsim.tools.estimate.tile_estimates import estimator_of
from castsim.tools.sweep.specification import (
    CAST_AXES,
    DEFAULT,
    EXTENTS,
    LARGEST_EXTENT,
    PROGRAM_AXES,
    Axis,
    CycleSource,
    Grid,
    PointKind,
    Setting,
    SweepSpecification,
    bare,
    is_argument,
    is_option,
    is_target_file,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from castsim.tools.estimate.cast_estimates import Estimate
    from castsim.tools.estimate.tile_estimates import ArrayEstimator

    Integers = NDArray[np.int64]

__all__ = ["pa", "pc", "pq", "reason_of"]


# The library that reads and writes Parquet, or a clear refusal where it is not installed.

try:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq
except ImportError:
    raise missing_package("a sweep", "pyarrow", "sweep") from None


def reason_of(error: OSError) -> str:
    """Return why a file cannot be read or written, in the system's words if pyarrow gives its error number."""
    return os.strerror(error.errno) if error.errno else str(error)


# What makes two installations give the same rows: version, source files, facts.


@dataclass(frozen=True, slots=True)
class InstallationIdentity:
    """An installation: its version, the SHA-256 of its source files, and those of the targets' facts by name."""

    version: str
    sources: str
    facts: Mapping[str, str]

    @property
    def facts_digest(self) -> str:
        """One SHA-256 over the facts of all targets."""
        return digest_of(*(part.encode() for pair in sorted(self.facts.items()) for part in pair))

    @property
    def installation(self) -> Installation:
        """The installation without facts."""
        return Installation(self.version, self.sources)


def identity(targets: Mapping[str, Target]) -> InstallationIdentity:
    """Return the identity of this installation, with targets by their names in a sweep."""
    return InstallationIdentity(
        castsim.__version__, sources_digest(), {name: facts_digest(target) for name, target in targets.items()}
    )


def refuse_another(wanted: InstallationIdentity, shipped: Mapping[str, str]) -> None:
    """Reject a sweep that another installation has begun.

    `shipped` maps each name in the sweep to the shipped target, if it is one.

    Raises:
        EngineError: version, sources or facts differ; the message says which.
    """
    refuse_another_installation(wanted.installation, installation(), LOCAL_NAME, "sweep")
    if any(wanted.facts[name] != _shipped_digest(target) for name, target in shipped.items()):
        raise EngineError(
            "this worker runs a different castsim: its facts differ from those of the sweep "
            f"({wanted.facts_digest[:12]})"
        )


@cache
def _shipped_digest(name: str) -> str:
    return facts_digest(load_target(name))


# The work of a sweep as it is handed to whoever computes a chunk: all that a point needs but the installation.

ESTIMATED_CHUNK = 1 << 14
"""Number of combinations in an estimated chunk."""
_SIMULATED_CHUNK = range(8, 257)
"""Minimum and maximum number of combinations in a simulated chunk."""
_SIMULATED_CHUNKS = 2000
"""Number of chunks of a simulated sweep, if each has enough combinations."""


@dataclass(frozen=True, slots=True)
class SweptProgram:
    """A program that has been read, and its declared parameters."""

    source: Source
    parameters: frozenset[str]


@dataclass(frozen=True, slots=True)
class SweepWork:
    """The work of a sweep, divided into chunks of `chunk` combinations.

    `targets` are those of the grid by name: a shipped one as its name, any other as loaded. `digest` identifies
    the whole work.
    """

    kind: PointKind
    mode: CycleSource
    grid: Grid
    targets: Mapping[str, str | Target]
    programs: Mapping[str, SweptProgram]
    identity: InstallationIdentity
    chunk: int
    digest: str

    @property
    def chunks(self) -> int:
        """Number of chunks."""
        return -(-self.grid.combinations // self.chunk)

    def span(self, number: int) -> tuple[int, int]:
        """Return the combinations of a chunk."""
        return number * self.chunk, min((number + 1) * self.chunk, self.grid.combinations)

    def target(self, name: Setting) -> Target:
        """Return a target of the grid."""
        return load_target(self.targets[str(name)])

    def about(self) -> dict[str, str]:
        """Return the digests of all data that rows depend on, by subject."""
        programs = (
            part
            for name, program in sorted(self.programs.items())
            for part in (name.encode(), program.source.text.encode(), program.source.data)
        )
        return {
            "specification": hashlib.sha256(self.canonical().encode()).hexdigest(),
            "program": digest_of(*programs),
            "version of castsim": self.identity.version,
            "state of the targets' facts": self.identity.facts_digest,
            "state of castsim's source files": self.identity.sources,
        }

    def canonical(self) -> str:
        """Return the specification in canonical form: JSON, ranges written as their ends and step."""
        return json.dumps({
            "kind": self.kind, "mode": self.mode, "max_cycles": MAX_CYCLES,
            "grid": {axis.name: _shown(axis.values) for axis in self.grid.axes},
            "exclude": [
                {**{name: sorted(map(repr, values)) for name, values in sorted(exclusion.values.items())},
                 "where": exclusion.condition.text if exclusion.condition else None}
                for exclusion in self.grid.exclusions
            ],
        })  # fmt: skip


def work_of(specification: SweepSpecification) -> SweepWork:
    """Return the work of a specification, with its targets loaded and its programs read.

    Raises:
        ReadError, TargetDataError: a target or program cannot be read; the message names the position of its key.
    """
    targets: dict[str, str | Target] = {}
    loaded: dict[str, Target] = {}
    programs: dict[str, SweptProgram] = {}
    named = ("", "target")
    try:
        for value in specification.values("target"):
            named = (str(value), "target")
            loaded[named[0]], targets[named[0]] = _target(specification, named[0])
        for value in specification.values("program"):
            named = (str(value), "program")
            programs[named[0]] = _program(specification, named[0])
    except CastsimError as error:
        raise ReadError(
            f"grid.{named[1]}: {error.message}", span=error.span or specification.places.get(named[1]),
            legal=error.legal,
        ) from None  # fmt: skip
    if specification.kind is PointKind.PROGRAM and not specification.values("target"):
        loaded |= {name: load_target(name) for name in target_names()}  # whichever the programs name
    whole = specification.grid.combinations
    simulated = min(max(whole // _SIMULATED_CHUNKS, _SIMULATED_CHUNK[0]), _SIMULATED_CHUNK[-1])
    work = SweepWork(
        specification.kind, specification.mode, specification.grid, targets, programs, identity(loaded),
        simulated if specification.mode is CycleSource.SIMULATE else ESTIMATED_CHUNK, "",
    )  # fmt: skip
    digest = hashlib.sha256(json.dumps(work.about(), sort_keys=True).encode()).hexdigest()
    return replace(work, digest=digest)


def _target(specification: SweepSpecification, name: str) -> tuple[Target, str | Target]:
    """Return a target, and its form for workers."""
    is_file = is_target_file(name)
    loaded = load_target(specification.path(name) if is_file else name)
    return loaded, loaded if is_file else loaded.name


def _program(specification: SweepSpecification, name: str) -> SweptProgram:
    if name == STDIN:
        raise ReadError("the program must be a file, not '-'", legal=("program.pto", "program.tpc"))
    source = read_source(specification.path(name), lambda: False)
    if source.language is not Language.TILES:
        return SweptProgram(source, frozenset())
    return SweptProgram(source, frozenset(parameters(PtoSource(source.file, source.text))))


def _shown(values: object) -> object:
    if isinstance(values, range):
        return [values.start, values.stop, values.step, "range"]
    return list(values) if isinstance(values, tuple) else values


# The points of a chunk: each estimated or simulated, a failure being a row like any other.

CAUSES = tuple(Cause)
_PLACE = {cause: place for place, cause in enumerate(CAUSES)}
_GROUPING = ("src", "dst", "target", "rounding", "saturation")
"""Choices of casts that arrays of shapes share."""


class Results:
    """The rows of a chunk: cycles, those of each cause, the largest cause, and the error (None: no error).

    `numbers` are those of the combinations, `causes` has a row for every `Cause`.
    """

    def __init__(self, numbers: Integers) -> None:
        size = len(numbers)
        self.numbers = numbers
        self.cycles: Integers = np.zeros(size, np.int64)
        self.causes: Integers = np.zeros((len(CAUSES), size), np.int64)
        self.bound_by: NDArray[np.object_] = np.full(size, None, object)
        self.errors: NDArray[np.object_] = np.full(size, None, object)

    def set(self, row: int, cycles: int, bound_by: Cause, causes: Mapping[Cause, int]) -> None:
        """Fill a row that has cycles."""
        self.cycles[row] = cycles
        self.bound_by[row] = str(bound_by)
        for cause, spent in causes.items():
            self.causes[_PLACE[cause], row] = spent

    def fail(self, rows: int | Integers, error: Exception, *, placed: bool = False) -> None:
        """Mark rows as failed; `placed` tells whether the error's position is in a file."""
        if isinstance(error, CastsimError | EngineError):
            message = f"{error.span}: {error.message}" if placed and error.span is not None else error.message
        else:
            message = "not enough memory" if isinstance(error, MemoryError) else f"internal error: {error!r}"
        self.errors[rows] = message


def computed(work: SweepWork, number: int) -> Results:
    """Return the rows of a chunk.

    Raises:
        EngineError: another installation began the sweep.
        ReadError: a condition has no value.
    """
    refuse_another(work.identity, {name: target for name, target in work.targets.items() if isinstance(target, str)})
    results = Results(work.grid.kept(*work.span(number)))
    if work.kind is PointKind.PROGRAM:
        _programs(work, results)
    else:
        for rows, point in _groups(work, results.numbers):
            _casts(work, results, rows, point)
    return results


def _groups(work: SweepWork, numbers: Integers) -> Iterator[tuple[Integers, dict[str, Setting | None]]]:
    """Yield rows that differ only in shape, with their common choices."""
    axes = [axis for axis in work.grid.axes if axis.name in _GROUPING]
    places = work.grid.places(numbers)
    key = np.zeros(len(numbers), np.int64)
    for axis in axes:
        key = key * len(axis.values) + places[axis.name]
    order = np.argsort(key, kind="stable")
    starts = np.flatnonzero(np.diff(key[order], prepend=-1)).tolist()
    for start, stop in pairwise([*starts, len(order)]):
        rows = order[start:stop]
        given = {axis.name: axis.values[int(places[axis.name][rows[0]])] for axis in axes}
        yield rows, {name: None if value == DEFAULT else value for name, value in given.items()}


def _casts(work: SweepWork, results: Results, rows: Integers, point: Mapping[str, Setting | None]) -> None:
    words = {name: None if value is None else str(value) for name, value in point.items()}
    saturation = words.get("saturation")
    target = str(words["target"])
    loaded = work.targets[target]
    try:
        estimator = estimator_of(
            loaded, str(words["src"]), str(words["dst"]), words.get("rounding"),
            None if saturation is None else saturation.lower(), False,
        )  # fmt: skip
    except Exception as error:  # whatever it is, it is a row
        results.fail(rows, error)
        return
    extents = _extents(work, results.numbers[rows])
    if work.mode is CycleSource.SIMULATE:
        _one_by_one(results, rows, extents, estimator.simulate)
        return
    _estimated(results, rows, extents, estimator)


def _extents(work: SweepWork, numbers: Integers) -> tuple[Integers, Integers, Integers]:
    """Return rows, columns and row stride of points."""
    places = work.grid.places(numbers)

    def column(name: str) -> Integers | None:
        axis = next((axis for axis in work.grid.axes if axis.name == name), None)
        if axis is None:
            return None
        axis_values = axis.values
        if isinstance(axis_values, range):
            return axis_values.start + axis_values.step * places[name]
        present, which = np.unique(places[name], return_inverse=True)
        used = [axis_values[index] for index in present.tolist()]  # an axis has more values than a chunk has points
        values = np.array([-1 if value == DEFAULT else value for value in used], np.int64)[which]
        defaults = np.array([value == DEFAULT for value in used], np.bool_)[which]
        return np.where(defaults, needed("cols"), values) if defaults.any() else values

    def needed(name: str) -> Integers:
        extent = column(name)
        assert extent is not None
        return extent

    rows, cols, stride = needed("rows"), needed("cols"), column("row_stride")
    return rows, cols, cols if stride is None else stride


def _estimated(
    results: Results, rows: Integers, extents: tuple[Integers, Integers, Integers], estimator: ArrayEstimator
) -> None:
    try:
        estimates = estimator.many(*extents, None, None, None)
    except Exception:  # one of them; which one, each by itself tells
        _one_by_one(results, rows, extents, estimator.one)
        return
    refused = np.array([reason is not None for reason in estimates.reasons], np.bool_)
    results.cycles[rows] = np.where(refused, 0, estimates.cycles).astype(np.int64)
    for cause, spent in estimates.causes.items():
        results.causes[_PLACE[cause], rows] = spent
    words = {cause: str(cause) for cause in CAUSES}
    results.bound_by[rows] = [None if bound is None else words[bound] for bound in estimates.bound_by]
    results.errors[rows] = estimates.reasons


def _one_by_one(
    results: Results, rows: Integers, extents: tuple[Integers, Integers, Integers], estimate: Callable[..., Estimate]
) -> None:
    for row, *shape in zip(rows.tolist(), *(extent.tolist() for extent in extents), strict=True):
        try:
            bound = estimate(*shape, None, None, None)
            results.set(row, bound.cycles, bound.bound_by, bound.causes)
        except Exception as error:  # whatever it is, it is a row
            results.fail(row, error)


def _programs(work: SweepWork, results: Results) -> None:
    """Run the points of a chunk."""
    places = work.grid.places(results.numbers)
    for row in range(len(results.numbers)):
        point = {axis.name: axis.values[int(places[axis.name][row])] for axis in work.grid.axes}
        try:
            _run(work, results, row, {name: value for name, value in point.items() if value != DEFAULT})
        except Exception as error:  # whatever it is, it is a row
            results.fail(row, error, placed=True)


def _run(work: SweepWork, results: Results, row: int, point: Mapping[str, Setting]) -> None:
    program = work.programs[str(point["program"])]
    source = program.source
    values, scalars = _parameters_and_scalars(program, point)
    if values:
        source = replace(source, text=with_values(source.text, source.file, values))
    options = {bare(name): str(value) for name, value in point.items() if is_option(name)}

    def prepared(target: Target) -> Target:
        return with_options(target, options)

    target = work.target(point["target"]) if "target" in point else None
    result = run_loaded(load(source, target, None, scalars, prepared), {}, timing_only=True, max_cycles=MAX_CYCLES)
    limit, cycles = limiter(result.timing), result.cycles
    pipes = result.timing.pipes
    if limit is None:
        results.set(row, cycles, Cause.EMPTY, {Cause.EMPTY: cycles})
    else:
        results.set(row, cycles, limit.cause, pipes[limit.pipe].causes)


def _parameters_and_scalars(
    program: SweptProgram, point: Mapping[str, Setting]
) -> tuple[dict[str, int | str], dict[str, int | float]]:
    """Return a point's values for the parameters of a program, and those for its scalar arguments.

    Raises:
        ReadError: a parameter is a fraction, or a scalar argument is a word.
    """
    values: dict[str, int | str] = {}
    scalars: dict[str, int | float] = {}
    for key, value in point.items():
        name = bare(key)
        if not is_argument(key):
            continue
        if name in program.parameters:
            if isinstance(value, float):
                raise ReadError(f"{key}: parameter {name} takes integers and words, not {value}")
            values[name] = value
        elif isinstance(value, str):
            raise ReadError(f"{key}: '{value:.80}' is not a number, and the program has no parameter {name}")
        else:
            scalars[name] = value
    return values, scalars


# The rows of a sweep as columns of Arrow: one schema for all of its chunks, and for all sweeps of casts.

OK, FAILED = "ok", "failed"
"""Values of `status`."""
FORM = "1"
"""Version of the columns."""


def column_of(cause: str) -> str:
    """Return the name of the column of a cause."""
    return cause.replace(" ", "_")


def axis_columns(work: SweepWork) -> tuple[str, ...]:
    """Return the names of the columns that identify a row's point: the usual ones, then additional ones."""
    usual = CAST_AXES if work.kind is PointKind.CAST else PROGRAM_AXES
    return (*usual, *(axis.name for axis in work.grid.axes if axis.name not in usual))


def schema_of(work: SweepWork) -> pa.Schema:
    """Return the schema of the results; its metadata marks the unit of cycles."""
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


def chunk_rows(work: SweepWork, number: int) -> bytes:
    """Compute a chunk and return its rows as an Arrow stream, with the same content on every machine.

    Raises:
        EngineError, ReadError: see `castsim.tools.sweep.points.computed`.
    """
    return packed(batch_of(work, computed(work, number)))


def batch_of(work: SweepWork, results: Results) -> pa.RecordBatch:
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
    columns += [pa.array(column, pa.int64(), mask=failed) for column in (results.cycles, *results.causes)]
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
    """Return the unpacked batch.

    Raises:
        ReadError: the bytes are not a packed batch.
    """
    try:
        return pa.ipc.open_stream(rows).read_all()
    except (OSError, pa.ArrowException) as error:
        raise ReadError(f"rows of a sweep that cannot be read: {error!s:.200}") from None


def _type_of(name: str, axis: Axis | None) -> pa.DataType:
    if name in EXTENTS:
        return pa.int64()
    if axis is None or not is_argument(name):
        return pa.string()
    if isinstance(axis.values, range) or all(isinstance(value, int) for value in axis.values):
        return pa.int64()
    return pa.string() if any(isinstance(value, str) for value in axis.values) else pa.float64()


def _axis_column(axis: Axis, places: NDArray[np.int64], kind: pa.DataType) -> pa.Array:
    if isinstance(axis.values, range):
        return pa.array(axis.values.start + axis.values.step * places, pa.int64()).cast(kind)
    present, which = np.unique(places, return_inverse=True)
    used = (axis.values[index] for index in present.tolist())  # an axis has more values than a chunk has points
    values = [None if value == DEFAULT else str(value) if kind == pa.string() else value for value in used]
    return pa.array(values, kind).take(pa.array(which))


_MOST_CYCLES = (1 << 63) - 1
MOST_ROWS = 1 << 26
"""Maximum number of rows that are read at once: 67 million. pyarrow and others read parts of longer files."""

_LEGAL = ("a file that castsim sweep has written",)


def results_schema(path: Path) -> pa.Schema:
    """Return the schema of a file of results.

    Raises:
        ReadError: it cannot be read, is not Parquet or not from a sweep, or has more than `MOST_ROWS` rows.
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
            f"{path}: {about.num_rows} rows exceed the limit of {MOST_ROWS}",
            legal=("a sweep of fewer points", "pyarrow.parquet.ParquetFile(path).iter_batches()"),
        )
    if (schema.metadata or {}).get(b"castsim_sweep") != FORM.encode():
        shown = ", ".join(schema.names[:6])
        raise ReadError(f"{path}: a Parquet file of another schema (its columns: {shown:.100})", legal=_LEGAL)
    return schema


def results_table(path: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """Return the rows of a file of results.

    Raises:
        ReadError: see `results_schema`.
    """

    results_schema(path)
    try:
        table = pq.read_table(path, columns=None if columns is None else list(columns))
        table.validate(full=True)
    except (OSError, pa.ArrowException, ValueError) as error:
        raise ReadError(f"{path}: {error!s:.300}", legal=_LEGAL) from None
    return table


def axes_of(path: Path) -> tuple[str, ...]:
    """Return the columns that identify the point of a row in a file of results.

    Raises:
        ReadError: see `results_schema`; or a column is unknown or has the wrong type.
    """
    schema = results_schema(path)
    names = schema.names
    axes = tuple(names[: names.index("cycles")]) if "cycles" in names else ()
    usual = CAST_AXES if "src" in axes else PROGRAM_AXES
    needed = (*dict.fromkeys((*usual, *axes)), "cycles", "status")
    wrong = [name for name in needed if names.count(name) != 1 or not _fits(schema.field(name))]
    if wrong:
        raise ReadError(f"{path}: its column '{wrong[0]:.40}' does not belong to a sweep", legal=_LEGAL)
    return axes


def _fits(field: pa.Field) -> bool:
    """Return whether a column has the type that a sweep gives it."""
    if is_argument(field.name):
        return field.type in (pa.int64(), pa.float64(), pa.string())
    return bool(field.type == (pa.int64() if field.name in (*EXTENTS, "cycles") else pa.string()))


def check_values(path: Path, table: pa.Table) -> None:
    """Reject rows that no sweep can have.

    Raises:
        ReadError: a computed point lacks cycles or size, or a number exceeds the limits of grids.
    """
    bounds = {"rows": (1, LARGEST_EXTENT), "cols": (1, LARGEST_EXTENT), "cycles": (0, _MOST_CYCLES)}
    for name in table.column_names:
        column = table[name]
        if len(column) and (name in bounds or (is_argument(name) and not pa.types.is_string(column.type))):
            least, most = pc.min_max(column).as_py().values()  # None where all are null; of NaN alone, infinities
            low, high = bounds.get(name, (-sys.float_info.max, sys.float_info.max))
            finite = pa.types.is_integer(column.type) or pc.all(pc.is_finite(column)).as_py()
            if column.null_count or not finite or not low <= least <= most <= high:
                raise ReadError(f"{path}: its column '{name}' holds values that no sweep writes", legal=_LEGAL)
