"""Comparison of simulated with measured cycles: row by row, per curve, over all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean, median
from typing import Literal

from castsim.execution.outcomes import PlotMixin
from castsim.execution.timing import ProgressCallback
from castsim.isa.dataclass import fields, replace
from castsim.isa.errors import CastsimError, IllegalError, ReadError, arguments_checked
from castsim.machines.mechanisms import vector_units_of
from castsim.reports.documents import CommandDocument, Keys, TextOrNull, apart, derived, extended, record, says
from castsim.reports.schemas.keys import Cycles, Percent, WorkerEntry
from castsim.running.program_runs import run
from castsim.targets.csv_tables import SHIPPED
from castsim.targets.description import SourceKind, with_options
from castsim.targets.loader import Residuals, Target, intervals, load_target, target_names
from castsim.tools.accuracy.measured_rows import (
    CAST,
    LAUNCH,
    STORE,
    TRANSFERS,
    MeasuredKernel,
    MeasuredRow,
    MeasuredTable,
    read_table,
)
from castsim.tools.distribution.distributing import (
    Computed,
    HandedTargets,
    Keeping,
    Workers,
    WorkGroup,
    about_installation,
    digest,
    facts_digest,
    here,
    resumed,
)
from castsim.tools.distribution.origins import Origins, ResultOrigin, Task, origin
from castsim.tools.estimate.operation_estimates import IN_PLACE, estimate_tile_operation
from castsim.tools.estimate.strided import further_repeats
from castsim.tools.estimate.tile_estimates import estimate, estimate_load, stream_cycles

LABEL_SHAPE = "label shape"
"""Convention of rows that state loop trips: castsim simulates as many rows of trips of the variant that runs."""

SHAPE = "shape as it stands"

TRIPS = "trips of loops"
"""Convention of rows that measure a program of vector instructions: its numbers of loops and trips."""

TILES = "tiles of a core"
"""Convention of rows that measure a launch: the number of tiles that pass through the buffer of each core."""

BINARY = "isBinary"
"""Parameters of rows whose column sum joins rows in pairs, through scratch."""

REPEATS = "further repeats"
"""Convention of rows that measure one instruction: repeats after as many others, at stated addresses."""

_PADDING = 64
"""Padding columns for a padded kernel if the row states no padding: whole blocks of any format."""


@record
class Errors(Keys):
    """Statistics of absolute errors, in percent of the measured cycles."""

    mean: Percent = says("Mean error.", heading="mean %", form=".2f")
    median: Percent = says("Median error.", heading="median %", form=".2f")
    maximum: Percent = says("Largest error.", key="max", heading="max %", form=".2f")


@record
class Counted(Errors):
    """Errors and the number of their rows."""

    rows: int = says("Number of rows.")


def _columns(assessed: AssessedRow) -> dict[str, int | float | str | None]:
    return {name: _typed(text) for name, text in assessed.row.cells.items()}


def _typed(text: str) -> int | float | str | None:
    """Return the text of a cell as a number."""
    if not text:
        return None
    if text.isascii() and text.isdigit():
        return int(text)
    whole, dot, part = text.partition(".")
    return float(text) if dot and (whole + part).isascii() and (whole + part).isdigit() else text


def _error(assessed: AssessedRow) -> float:
    """Return the error of the simulation, from the nearer end of a published range."""
    low, cycles = assessed.row.measured_cycles, assessed.simulated_cycles
    return _percent(cycles, min(max(cycles, low), assessed.row.measured_high or low))


def _predicted_error(assessed: AssessedRow) -> float | None:
    row = assessed.row
    return None if row.predicted is None else _percent(row.predicted, row.measured_cycles)


@record
class AssessedRow(Keys):
    """A published figure and its simulation. Errors are in percent of the published figure."""

    row: MeasuredRow = apart()
    target: str = says("Name of the target.")
    columns: dict[str, int | float | str | None] = derived("The row as in the table, by column name.", _columns)
    operation: str = derived("The operation.", "row.label")
    measured_cycles: Cycles = derived("The published figure, or the start of a published range.", "row.measured_cycles")
    measured_high: Cycles | None = derived("The end of a published range; null for one figure.", "row.measured_high")
    fitted: bool = derived("Whether facts of the target were fitted to it.", "row.fitted")
    source_kind: SourceKind | None = derived(
        "Source of the published cycles; null if the table has none.", "row.source_kind"
    )
    convention: str = says("Convention of the row.")
    simulated_rows: int = says("Rows simulated.")
    simulated_cols: int = says("Columns simulated.")
    simulated_cycles: Cycles = says("The simulation's figure.")
    error: Percent = derived(
        "Error relative to the published figure, or the nearer end of its range; positive if the simulation is higher.",
        _error,
        key="error_percent",
    )
    predicted_error: Percent | None = derived(
        "Error of the public cost model; null if the model has no value.",
        _predicted_error,
        key="public_model_error_percent",
    )
    reason: TextOrNull = says("Why the cycles deviate; null if they do not, or the reason is unknown.")


@record
class ErrorCurve(Errors):
    """The rows of one operation, type pair and path, with their statistics."""

    target: str = says("Name of the target.")
    operation: str = says("The operation.")
    src: str = says("Name of the source format.")
    dst: str = says("Name of the destination format.")
    path: str = says("Class of the shape.")
    rows: int = says("Number of rows.")
    public_model: Errors | None = says(
        "The same statistics of the public cost model; null if it does not cover the rows."
    )


@record
class ErrorsOfRows(Keys):
    """Statistics of the absolute errors of `rows`."""

    mean: Percent = derived("Mean error.", lambda own: simulated(own.rows).mean)
    median: Percent = derived("Median error.", lambda own: simulated(own.rows).median)
    maximum: Percent = derived("Largest error.", lambda own: simulated(own.rows).maximum, key="max")


def _counted(rows: Iterable[AssessedRow]) -> Counted | None:
    kept = list(rows)
    return simulated(kept) if kept else None


def _source(accuracy: Accuracy) -> str | None:
    file = Path(accuracy.table.file)
    return next((table.source for table in accuracy.target.measurements if file.match(table.file)), None)


@record
class Accuracy(ErrorsOfRows, title="MeasuredTable"):
    """A table of published figures, with the statistics of its rows."""

    target: Target = says("Name of the target.")
    table: MeasuredTable = apart()
    file: str = derived("The table.", "table.file")
    source: str | None = derived("Source of the table; null for a user's table.", _source)
    chip: str = derived(
        "The chip that was measured: differs from the target if the description inherits the table.",
        lambda own: own.measured_on or own.target.name,
        key="measured_on",
    )
    rows: tuple[AssessedRow, ...] = apart()
    origins: tuple[ResultOrigin, ...] = apart(default=(), compare=False)
    """Names of the processes that simulated the rows."""
    row_count: int = derived("Rows simulated.", lambda own: len(own.rows), key="rows")
    rows_skipped: int = derived("Number of skipped rows.", "table.skipped")
    held_out: Counted | None = derived(
        "The statistics of held-out rows; null if there are none.", lambda own: _counted(own.unfitted), key="unfitted"
    )
    public_model: Errors | None = derived(
        "The same statistics of the public cost model; null if it does not cover the row.",
        lambda own: predicted(own.rows),
    )

    @property
    def measured_on(self) -> str | None:
        """The name of another chip that the table was measured on; None if it is the target's, or the table is not
        shipped.

        A description that is derived from a chip inherits its tables.
        """
        file = Path(self.table.file)
        shipped = [
            name
            for name in target_names()
            for own in load_target(name).measurements
            if (SHIPPED / own.file).resolve() == file.resolve()
        ]
        return None if self.target.name in shipped else next(iter(shipped), None)

    @property
    def unfitted(self) -> tuple[AssessedRow, ...]:
        """The held-out rows: only these confirm anything."""
        return tuple(row for row in self.rows if not row.row.fitted)

    @property
    def curves(self) -> tuple[ErrorCurve, ...]:
        """Statistics per operation, type pair and shape class, in the order of the table."""
        groups: dict[tuple[str, str, str, str], list[AssessedRow]] = {}
        for assessed in self.rows:
            row = assessed.row
            groups.setdefault((row.label, row.src.name, row.dst.name, row.path), []).append(assessed)
        return tuple(
            extended(
                ErrorCurve, simulated(group), target=self.target.name, operation=operation, src=src, dst=dst,
                path=path, public_model=predicted(group),
            )
            for (operation, src, dst, path), group in groups.items()
        )  # fmt: skip


def assess(target: Target, table: MeasuredTable) -> Accuracy:
    """Simulate every row of a table.

    Raises:
        IllegalError, TileError: the target rejects a row's operation or tile; the error has the position in the file.
    """
    return Accuracy(target, table, tuple(assess_row(target, row) for row in table.rows), (origin(),) * len(table.rows))


def by_evidence(rows: Iterable[AssessedRow]) -> dict[tuple[bool, SourceKind | None], list[AssessedRow]]:
    """Return rows grouped by fitted or held out and by source: held-out rows first, strong sources first."""
    order: list[SourceKind | None] = [*SourceKind, None]
    groups: dict[tuple[bool, SourceKind | None], list[AssessedRow]] = {}
    for row in sorted(rows, key=lambda assessed: (assessed.row.fitted, order.index(assessed.row.source_kind))):
        groups.setdefault((row.row.fitted, row.row.source_kind), []).append(row)
    return groups


def simulated(rows: Iterable[AssessedRow]) -> Counted:
    """Return the statistics of the simulation over at least one row."""
    return _statistics([abs(row.error) for row in rows])


def predicted(rows: Iterable[AssessedRow]) -> Counted | None:
    """Return the statistics of the public model over the rows that state it; None if none do."""
    errors = [abs(row.predicted_error) for row in rows if row.predicted_error is not None]
    return _statistics(errors) if errors else None


def shape_of(target: Target, row: MeasuredRow) -> tuple[str, int, int, int, int]:
    """Return convention, rows, columns, valid rows and valid columns of the tiles simulated for a row.

    If published trips and columns disagree, the trips are more reliable (docs/reference/a5.md section 6.1), so a row
    with trips is simulated as that many trips of the kernel variant that runs.
    """
    per_trip = _elements_per_trip(target, row)
    if per_trip is None or row.outer_trips is None or row.inner_trips is None:
        return SHAPE, row.rows, row.cols, row.valid_rows, row.valid_cols
    valid = row.inner_trips * per_trip
    padding = 0 if row.path == "1D" else row.cols - row.valid_cols or _PADDING
    return LABEL_SHAPE, row.outer_trips, valid + padding, row.outer_trips, valid


def assess_row(target: Target, row: MeasuredRow) -> AssessedRow:
    """Simulate one row; for errors see `assess`."""
    convention, rows, cols, cycles = _simulated_row(target, row)
    return AssessedRow(
        row=row,
        target=target.name,
        convention=convention,
        simulated_rows=rows,
        simulated_cols=cols,
        simulated_cycles=cycles,
        reason=_reason(target, row),
    )


def _simulated_row(target: Target, row: MeasuredRow) -> tuple[str, int, int, int]:
    """Return convention, rows, columns and cycles of a simulated row."""
    if row.kernel is not None:
        return LAUNCH, row.rows, row.cols, _kernel_cycles(target, row.kernel)
    if not target.has_tiles and row.operation != CAST:
        legal = [name for name in target_names() if load_target(name).has_tiles]
        raise IllegalError(f"{target.name} has no tile operation {row.operation}", span=row.span, legal=legal)
    if row.body is not None:
        try:
            cycles = vector_units_of(target).body_cycles(row.body)
        except CastsimError as error:
            raise error.at(row.span) from None
        return TRIPS, row.rows, row.cols, cycles
    if row.addresses:
        try:
            cycles = further_repeats(target, row.operation, row.src, row.rows, row.addresses, row.block_stride)
        except CastsimError as error:
            raise error.at(row.span) from None
        return REPEATS, row.rows, row.cols, cycles
    convention, rows, cols, valid_rows, valid_cols = shape_of(target, row)
    if row.operation == LAUNCH:
        chip = _as_measured(target, row)
        assert chip.has_tiles  # others refuse the operation above
        return TILES, row.rows, row.cols, stream_cycles(chip, row.rows, *row.tile_bytes)
    try:
        measured = _as_measured(target, row)
        if row.operation in TRANSFERS:
            estimated = estimate_load(
                row.src.name,
                valid_rows,
                valid_cols,
                target=measured,
                transfers=row.transfers,
                by_column=row.layout == "dn",
                store=row.operation == STORE,
            )
        elif row.operation == CAST:
            estimated = estimate(
                row.src.name, row.dst.name, rows, cols, target=measured, valid_rows=valid_rows, valid_cols=valid_cols
            )
        else:
            estimated = estimate_tile_operation(
                row.operation,
                row.src.name,
                rows,
                cols,
                target=measured,
                valid_rows=valid_rows,
                valid_cols=valid_cols,
                in_place=row.in_place or None,
                scratch=row.parameters == BINARY,
                runtime_valid=row.runtime_valid,
            )
            convention = IN_PLACE if row.in_place or estimated.placement == IN_PLACE else convention
    except CastsimError as error:
        if error.span is None or error.span != row.convention_span:
            error.span = row.span
        raise
    around = target.cycles_around(row.convention, row.operation) if row.convention else 0
    return row.convention or convention, valid_rows, valid_cols, estimated.cycles + around


def _kernel_cycles(target: Target, kernel: MeasuredKernel) -> int:
    """Return the cycles of a kernel on one core while all cores work; for errors see `castsim.run`."""
    outcome = run(
        kernel.path, target, timing_only=True, tensors=kernel.tensors,
        cores=None if target.cores is None else target.cores.count,
        index_space=[int(size) for size in kernel.index_space.split(",")],
    )  # fmt: skip
    assert outcome.timing is not None
    return outcome.timing.total


def _as_measured(target: Target, row: MeasuredRow) -> Target:
    """Return the target as the row was measured: counting convention, algorithm, code variant."""
    if row.convention is not None:
        try:
            target = target.measured_as(row.convention, row.operation)
        except CastsimError as error:
            raise error.at(row.convention_span or row.span) from None
    options: dict[str, int | str] = dict(row.options)
    algorithm = target.options.get("division_algorithm")
    if algorithm is not None and row.parameters in algorithm.legal:
        options["division_algorithm"] = row.parameters
    variants = target.code_variants(row.operation, contiguous=row.path == "1D")
    if row.variant is not None and row.variant in variants:
        options["implementation_kind"] = variants.index(row.variant)
    return with_options(target, options)


def _reason(target: Target, row: MeasuredRow) -> str:
    """Return the target's note on the row's deviation."""
    return " ".join(
        note.reason
        for note in target.accuracy_notes
        if all(row.cells.get(column, "").upper() in map(str.upper, cells) for column, cells in note.where.items())
    )


def _elements_per_trip(target: Target, row: MeasuredRow) -> int | None:
    """Return the elements per loop trip of the row's kernel variant; None if it has no loop or is not a cast."""
    if row.operation != CAST:
        return None
    return target.elements_per_trip(row.src.name, row.dst.name, contiguous=row.path == "1D")


def _percent(cycles: int, measured: int) -> float:
    return 100 * (cycles - measured) / measured


def _statistics(errors: list[float]) -> Counted:
    return Counted(mean=fmean(errors), median=median(errors), maximum=max(errors), rows=len(errors))


# Rows of measurements simulated by several: processes, or the workers of a cluster; what is done is kept.

_TOGETHER = 16
"""Number of rows handed out together."""

Measured = Sequence[tuple[Target, MeasuredTable]]


def _assessed_group(group: WorkGroup[tuple[str, MeasuredRow]], targets: HandedTargets) -> list[AssessedRow]:
    """Return simulated rows, each with the name of its target; `targets` are the ones that are not shipped."""
    return [assess_row(targets.get(name) or load_target(name), row) for name, row in group.items]


def assess_all(
    measured: Measured, workers: Workers, ledger: Path | None, progress: ProgressCallback
) -> tuple[Accuracy, ...]:
    """Simulate the rows of several tables, each for its target.

    Raises:
        ReadError: the ledger is about something else; see also `castsim.tools.distribution.distributing.distributed`.
        EngineError: see `castsim.tools.distribution.distributing.distributed`.
        IllegalError, TileError: a target rejects a row's operation or tile; the error has the position in the file.
    """
    items = [(target.name, row) for target, table in measured for row in table.rows]
    own = {
        target.name: target
        for target, _ in measured
        if not (target.name in target_names() and load_target(target.name) is target)
    }
    run = partial(_assessed_group, targets=HandedTargets(own))
    outcomes: dict[int, Computed[AssessedRow]] = {}
    keeping = None if ledger is None else _keeping(ledger, measured, [row for _, row in items])
    for outcome in resumed(Task("accuracy", run, here(None, workers)), items, workers, keeping, _TOGETHER):
        outcomes[outcome.number] = outcome
        progress("rows", len(outcomes), len(items))
    results, start = [], 0
    for target, table in measured:
        part = [outcomes[number] for number in range(start, start + len(table.rows))]
        rows = tuple(replace(computed.result, row=row) for computed, row in zip(part, table.rows, strict=True))
        results.append(Accuracy(target, table, rows, tuple(computed.origin for computed in part)))
        start += len(table.rows)
    return tuple(results)


def _keeping(ledger: Path, measured: Measured, rows: Sequence[MeasuredRow]) -> Keeping[AssessedRow]:
    """Return the store for simulated rows."""

    names = [attribute.name for attribute in fields(AssessedRow) if attribute.name != "row"]

    def write(assessed: AssessedRow) -> object:
        return [getattr(assessed, name) for name in names]

    def read(number: int, content: object) -> AssessedRow:
        if not isinstance(content, list):
            raise TypeError(f"{content!r} is not a list")
        return AssessedRow(row=rows[number], **dict(zip(names, content, strict=True)))

    about = {
        **about_installation(),
        "set of targets": digest(*((target.name, facts_digest(target)) for target, _ in measured)),
        "table": digest(*(sorted(row.cells.items()) for row in rows)),
    }
    return Keeping(ledger, about, write, read)


# Accuracy in one call: the tables that come with the targets, or one's own, against the simulation.


@record
class MeasuredRowEntry(AssessedRow, title="MeasuredRow"):
    """A published figure and its simulation."""

    computed_by: int = says("The worker that simulated it: its index in `workers`, from 0.")


@record
class SourceErrors(Counted):
    """The errors of rows from one kind of source."""

    target: str = says("Name of the target.")
    source_kind: SourceKind | None = says("Source of the measured cycles; null if the table has none.")
    fitted: bool = says("Whether facts were fitted to them.")


class KnownErrors(Keys):
    """Errors of one kind of operation in the shipped record, in percent of the simulated cycles."""

    target: str = says("Name of the target.")
    kind: str = says("Kind of operation; `any` stands for all kinds with few rows.")
    rows: int = says("Measured rows that were not fitted.")
    refitted: int
    """Number of rows of fitted casts among them, predicted by facts fitted without their kernel."""
    mean: Percent = says("Mean of the absolute errors.")
    median: Percent = says("Median of the absolute errors.")
    maximum: Percent = says("Largest absolute error.")
    share: int = says("Percentage of cases in which measured cycles are in the interval.")
    low: Percent = says("Lower end of the interval.")
    high: Percent = says("Upper end of the interval.")
    held: Percent = says("Percentage of the target's rows within the interval, with each group left out in turn.")


@record
class Evidence(Keys):
    """Errors of held-out rows first, then those of fitted rows."""

    unfitted: Counted | None = derived(
        "The statistics of the rows that were not used for fitting; null if there are none.",
        lambda own: _counted(row for row in own.rows if not row.fitted),
    )
    fitted: Counted | None = derived(
        "Errors of fitted rows, which confirm nothing; null if there are none.",
        lambda own: _counted(row for row in own.rows if row.fitted),
    )


def _by_source(accuracy: AccuracyTables) -> Iterator[SourceErrors]:
    for table in accuracy.tables:
        for (fitted, kind), rows in by_evidence(table.rows).items():
            name = table.target.name
            yield extended(SourceErrors, simulated(rows), target=name, source_kind=kind, fitted=fitted)


def _intervals(accuracy: AccuracyTables) -> Iterator[Residuals]:
    for name in dict.fromkeys(table.target.name for table in accuracy.tables):
        yield from intervals(name)


def _origins(accuracy: AccuracyTables) -> Origins:
    return Origins(by for table in accuracy.tables for by in table.origins)


def _entries(accuracy: AccuracyTables) -> Iterator[MeasuredRowEntry]:
    origins = _origins(accuracy)
    for table in accuracy.tables:
        for row, by in zip(table.rows, table.origins, strict=True):
            yield extended(MeasuredRowEntry, row, computed_by=origins.place(by))


@record
class AccuracyTables(
    PlotMixin[Literal["rows", "curves"]],
    CommandDocument,
    ErrorsOfRows,
    Evidence,
    name="accuracy",
    version=6,
    title="Accuracy",
):
    """Simulated compared with published cycles; the statistics cover all rows.

    `plot` draws simulated over measured cycles, and the distribution of errors. Frames, with errors in percent of the
    measured cycles, positive where the simulation is slower:

    - `rows`: a row per measured operation: `target`, `file`, `line` and its description; the simulated tile;
      `measured_cycles` (to `measured_high` if a range was published), `simulated_cycles`, `error_percent`;
      `public_model_cycles` and `public_model_error_percent`, missing if the table lacks them; the `reason` of a known
      deviation.
    - `curves`: a row per operation, pair of types and shape class: `mean_percent`, `median_percent` and `max_percent`
      of the absolute errors of its `rows`, and the same of the public model.
    """

    by_source: list[SourceErrors] = derived(
        "The same statistics by target and by source of the measured cycles.", _by_source
    )
    intervals: list[KnownErrors] = derived(
        "Ranges of measured cycles around simulated ones, by target and kind of operation.", _intervals
    )
    tables: tuple[Accuracy, ...] = says("The tables.", key="targets")
    entries: list[MeasuredRowEntry] = derived("The rows of the tables.", _entries, key="rows")
    curves: tuple[ErrorCurve, ...] = derived(
        "The rows by operation, type pair and path.",
        lambda own: tuple(curve for table in own.tables for curve in table.curves),
    )
    public_model: Errors | None = derived(
        "The statistics of the public cost model; null if it covers no row.", lambda own: predicted(own.rows)
    )
    workers: list[WorkerEntry] = derived("The workers of the simulation.", lambda own: _origins(own).documents())

    def __repr__(self) -> str:
        names = ", ".join(dict.fromkeys(table.target.name for table in self.tables))
        errors = self.simulation
        return f"<AccuracyTables {names}: {errors.rows:,} rows, mean absolute error {errors.mean:.2f} %>"

    @property
    def rows(self) -> tuple[AssessedRow, ...]:
        """The measured rows of all tables, each with the cycles simulated for it."""
        return tuple(row for table in self.tables for row in table.rows)

    @property
    def simulation(self) -> Counted:
        """Absolute errors of the simulation over all rows, in percent."""
        return simulated(self.rows)


@arguments_checked
def accuracy(
    target: str | Path | Target | None = None,
    *,
    data: str | Path | None = None,
    workers: int = 1,
    scheduler: str | None = None,
    ledger: str | Path | None = None,
    progress: ProgressCallback = lambda *_: None,
) -> AccuracyTables:
    """Simulate operations with published cycles, and compare.

        castsim.accuracy("a5").simulation.mean

    Args:
        target: a chip; None takes all with measurements, or with `data` the one whose own tables share most of its
            columns.
        data: a CSV of measurements with the columns src, dst (or dtype), rows, cols, measured_cycles, and optional
            ones; None takes the tables that come with the target.
        workers: number of processes.
        scheduler: address of a Dask scheduler whose workers simulate instead.
        ledger: a file that stores every finished row, so the same call continues from there. It is not removed.
        progress: receives the number of finished rows.

    Returns:
        A row per measurement: measured and simulated cycles and their deviation; mean, median and maximum of all.

    Raises:
        ReadError: the target is unknown or has no measurements, a table cannot be read (with position), the ledger is
            about something else; the scheduler does not answer.
        IllegalError, TileError: the target rejects a row's operation or tile (with position).
        EngineError: a worker runs another version of castsim, or workers die repeatedly.
    """
    own = None if data is None else read_table(Path(data))
    chosen = None if target is None else load_target(target)
    if own is not None:
        measured = [(_guessed(own.columns) if chosen is None else chosen, own)]
    else:
        targets = measured_targets() if chosen is None else [chosen]
        measured = [(chip, read_table(path)) for chip in targets for path in _shipped(chip)]
    kept = None if ledger is None else Path(ledger)
    return AccuracyTables(assess_all(measured, Workers(workers, scheduler), kept, progress))


def measured_targets() -> list[Target]:
    """Return the targets that come with measurements."""
    return [target for target in map(load_target, target_names()) if target.measurements]


def _shipped(target: Target) -> list[Path]:
    """Return the tables that come with a target."""
    if not target.measurements:
        names = [measured.name for measured in measured_targets()]
        raise ReadError(f"no measurements ship with {target.name}; give a table with --data", legal=names)
    return [SHIPPED / table.file for table in target.measurements]


def _guessed(columns: tuple[str, ...]) -> Target:
    """Return the target one of whose own tables shares most columns with another."""
    targets = measured_targets()
    shared = [max(len({*columns} & {*read_table(path).columns}) for path in _shipped(target)) for target in targets]
    best = [target for target, count in zip(targets, shared, strict=True) if count == max(shared)]
    if len(best) > 1:
        raise ReadError(
            "the target is unclear from the columns; choose it with --target",
            legal=[candidate.name for candidate in best],
        )
    return best[0]
