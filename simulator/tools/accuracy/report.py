"""Accuracy and cross-validation as JSON, from which pages are built."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from castsim.reports.documents import CommandDocument, Document, Keys, extended, record, says
from castsim.reports.schemas.keys import Cycles, Name, Percent, WorkerEntry
from castsim.targets.description import SourceKind
from castsim.targets.loader import intervals
from castsim.tools.accuracy.accuracy_assessment import Accuracy as AccuracyTable
from castsim.tools.accuracy.accuracy_assessment import (
    AssessedRow,
    Counted,
    ErrorCurve,
    Errors,
    by_evidence,
    predicted,
    simulated,
)
from castsim.tools.accuracy.left_out import CrossValidation
from castsim.tools.distribution.origins import Origins


class MeasuredTable(Errors):
    """A table of published figures, with the statistics of its rows."""

    target: str = says("Name of the target.")
    file: str = says("The table.")
    source: str | None = says("Source of the table; null for a user's table.")
    measured_on: str
    """The chip that was measured: differs from the target if the description inherits the table."""
    rows: int = says("Rows simulated.")
    rows_skipped: int = says("Number of skipped rows.")
    unfitted: Counted | None
    """The statistics of held-out rows; null if there are none."""
    public_model: Errors | None = says(
        "The same statistics of the public cost model; null if it does not cover the row."
    )


@record
class MeasuredRow(AssessedRow):
    """A published figure and its simulation."""

    computed_by: int = says("The worker that simulated it: its index in `workers`, from 0.")


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


class Evidence(Keys):
    """Errors of held-out rows first, then those of fitted rows."""

    unfitted: Counted | None = says(
        "The statistics of the rows that were not used for fitting; null if there are none."
    )
    fitted: Counted | None
    """Errors of fitted rows, which confirm nothing; null if there are none."""


class Accuracy(CommandDocument, Errors, Evidence, name="accuracy", version=5):
    """Simulated compared with published cycles; the statistics cover all rows."""

    by_source: list[SourceErrors] = says("The same statistics by target and by source of the measured cycles.")
    intervals: list[KnownErrors]
    """Ranges of measured cycles around simulated ones, by target and kind of operation."""
    targets: list[MeasuredTable] = says("The tables.")
    rows: list[MeasuredRow] = says("The rows of the tables.")
    curves: list[ErrorCurve] = says("The rows by operation, type pair and path.")
    public_model: Errors | None = says("The statistics of the public cost model; null if it covers no row.")
    workers: list[WorkerEntry] = says("The workers of the simulation.")


def accuracy_document(accuracies: Sequence[AccuracyTable]) -> Document:
    """Return the JSON of one or several tables."""
    every = [row for accuracy in accuracies for row in accuracy.rows]
    origins, names = Origins(), dict.fromkeys(table.target.name for table in accuracies)
    return Accuracy.of(
        simulated(every),
        unfitted=_counted(row for row in every if not row.row.fitted),
        fitted=_counted(row for row in every if row.row.fitted),
        by_source=[
            SourceErrors.of(simulated(rows), target=table.target, source_kind=kind, fitted=fitted)
            for table in accuracies
            for (fitted, kind), rows in by_evidence(table.rows).items()
        ],
        intervals=[known_interval for name in names for known_interval in intervals(name)],
        targets=[_target(accuracy) for accuracy in accuracies],
        rows=[
            extended(MeasuredRow, row, computed_by=origins.place(by))
            for accuracy in accuracies
            for row, by in zip(accuracy.rows, accuracy.origins, strict=True)
        ],
        curves=[curve for table in accuracies for curve in table.curves],
        public_model=predicted(every),
        workers=origins.documents(),
    )  # fmt: skip


def _target(accuracy: AccuracyTable) -> Document:
    shipped = [table for table in accuracy.target.measurements if Path(accuracy.table.file).match(table.file)]
    return MeasuredTable.of(
        simulated(accuracy.rows),
        target=accuracy.target,
        file=accuracy.table.file,
        source=shipped[0].source if shipped else None,
        measured_on=accuracy.measured_on or accuracy.target,
        rows_skipped=accuracy.table.skipped,
        unfitted=_counted(accuracy.unfitted),
        public_model=predicted(accuracy.rows),
    )


def _counted(rows: Iterable[AssessedRow]) -> Counted | None:
    kept = list(rows)
    return simulated(kept) if kept else None


# Cross-validation as JSON: every fold with its fitted facts and its rows, and the statistics over all.


class PredictedRow(Keys):
    """A published figure, and the prediction of facts fitted without it."""

    src: str = says("Name of the source format.", "row.src")
    dst: str = says("Name of the destination format.", "row.dst")
    path: str = says("Class of the shape.", "row.path")
    measured_cycles: Cycles = says("The published figure.", "row.measured_cycles")
    simulated_rows: int = says("Rows simulated.")
    simulated_cols: int = says("Columns simulated.")
    simulated_cycles: Cycles = says("The simulation's figure.")
    error_percent: Percent = says(
        "Error relative to the published figure; positive if the simulation is higher.", "error"
    )


class FittedFacts(Errors):
    """The facts fitted to all rows, and their errors."""

    facts: dict[Name, float] = says("The facts by path.")


class FoldEntry(FittedFacts):
    """A held-out part: the facts fitted to all other rows, and their errors on the part."""

    left_out: str = says("The left-out group.")
    rows: int = says("Number of rows in the left-out group.")
    predictions: list[PredictedRow] = says("The left-out rows with their predictions.")


class CrossValidated(CommandDocument, Errors, name="accuracy-cross-validation"):
    """With `--cross-validate`: every published figure predicted by facts fitted without it."""

    target: str = says("Name of the target.")
    file: str = says("The table.")
    left_out: str = says("Kind of the groups that are left out.")
    rows: int = says("Number of rows.")
    nothing_left_out: FittedFacts = says("The fit to all rows.")
    folds: list[FoldEntry] = says("One entry for each left-out group.")


def cross_validation_document(validation: CrossValidation) -> Document:
    """Return the JSON of a cross-validation."""
    return CrossValidated.of(
        simulated(validation.rows),
        target=validation.target,
        file=validation.table.file,
        left_out=validation.left_out,
        nothing_left_out=FittedFacts.of(simulated(validation.fitted_rows), facts=validation.fitted),
        folds=[
            FoldEntry.of(fold.statistics, left_out=fold.name, facts=fold.facts, predictions=fold.rows)
            for fold in validation.folds
        ],
    )
