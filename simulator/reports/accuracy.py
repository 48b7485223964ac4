"""Accuracy, cross-validation and calibration, as JSON and as text: rows, curves, folds, parameters, statistics."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable, Iterator, Sequence
from math import ceil
from pathlib import Path

from rich.console import Group, RenderableType
from rich.text import Text

from castsim.evidence.accuracy_assessment import (
    LABEL_SHAPE,
    AssessedRow,
    Statistics,
    by_evidence,
    predicted,
    simulated,
)
from castsim.evidence.accuracy_assessment import (
    Accuracy as AccuracyTable,
)
from castsim.evidence.calibration import Calibration, misfits
from castsim.evidence.left_out import CrossValidation, LeftOut
from castsim.evidence.measured_rows import CAST
from castsim.execution.origins import Origins
from castsim.reports.documents import CommandDocument, Document, Keys, says
from castsim.reports.schemas.keys import Cycles, Name, Percent, WorkerEntry
from castsim.reports.terminal import composed, indented, table
from castsim.targets.description import SourceKind
from castsim.targets.loader import Residuals, intervals

_PLACES = 4
"""Decimals of a percentage."""


class Errors(Keys):
    """Statistics of the sizes of errors."""

    mean: Percent = says("Their mean.", lambda found: round(found.mean, _PLACES))
    median: Percent = says("Their median.", lambda found: round(found.median, _PLACES))
    max: Percent = says("The largest.", lambda found: round(found.maximum, _PLACES))


class Counted(Errors):
    """Errors of so many rows."""

    rows: int = says("How many.")


class MeasuredTable(Errors):
    """A table of published figures; the statistics are of its rows."""

    target: str = says("Name of the target.")
    file: str = says("The table.")
    source: str | None = says("Where it is from; null for a table of one's own.")
    measured_on: str
    """The chip that was measured: another one than the target if the description inherits the table."""
    rows: int = says("Rows simulated.")
    rows_skipped: int = says("Rows passed over.")
    unfitted: Counted | None
    """The statistics of those of its rows that no fact was fitted to; null if there are none."""
    public_model: Errors | None = says("The same of the public cost model; null where it says nothing.")


class MeasuredRow(Keys):
    """A published figure and its simulation."""

    target: str = says("Name of the target.")
    columns: dict[str, int | float | str | None] = says(
        of=lambda one: {name: _typed(text) for name, text in one.row.cells.items()}
    )
    """The row as the table has it, by the names of its columns."""
    operation: str = says("The operation.", "row.label")
    measured_cycles: Cycles = says("The published figure.", "row.measured_cycles")
    fitted: bool = says("Whether facts of the target were fitted to it.", "row.fitted")
    source_kind: SourceKind | None = says("What it was read off; null if the table does not say.", "row.source_kind")
    convention: str = says("How the row is read.")
    simulated_rows: int = says("Rows simulated.")
    simulated_cols: int = says("Columns simulated.")
    simulated_cycles: Cycles = says("The simulation's figure.")
    error_percent: Percent = says("How far it is above the published figure.", lambda one: round(one.error, _PLACES))
    public_model_error_percent: Percent | None = says(
        of=lambda one: None if one.predicted_error is None else round(one.predicted_error, _PLACES)
    )
    """The same of the public cost model; null where it says nothing."""
    reason: str | None = says(of=lambda one: one.reason or None)
    """Why it deviates; null if that is not known, or it does not."""
    computed_by: int = says("Who simulated it: the place in `workers`, from 0.")


class ErrorCurve(Errors):
    """The rows of one operation, type pair and path; the statistics are of these."""

    target: str = says("Name of the target.")
    operation: str = says("The operation.")
    src: str = says("Name of the source format.")
    dst: str = says("Name of the destination format.")
    path: str = says("Class of the shape.")
    rows: int = says("How many rows.")
    public_model: Errors | None = says("The same of the public cost model; null where it says nothing.")


class SourceErrors(Counted):
    """The errors of rows of one sort."""

    target: str = says("Name of the target.")
    source_kind: SourceKind | None = says("What the cycles were read off; null if the table does not say.")
    fitted: bool = says("Whether facts were fitted to them.")


class KnownErrors(Keys):
    """What the shipped record says of the errors of a kind of operation, in percent of the simulated cycles."""

    target: str = says("Name of the target.")
    kind: str = says("Kind of operation; `any` stands for all with few rows.")
    rows: int = says("Measured rows that were not fitted.")
    refitted: int
    """How many of these are rows of fitted casts, predicted by facts fitted without their kernel."""
    mean: Percent = says("Mean of the absolute errors.")
    median: Percent = says("Their median.")
    maximum: Percent = says("The largest.")
    share: int = says("In how many percent of the cases measured cycles lie in the interval.")
    low: Percent = says("Its lower end.")
    high: Percent = says("Its upper end.")
    held: Percent = says("How many percent of the target's rows did, each group left out in turn.")


class Evidence(Keys):
    """Errors of rows that facts were fitted to, apart from the others, which come first."""

    unfitted: Counted | None = says("The statistics of the rows that no fact was fitted to; null if there are none.")
    fitted: Counted | None
    """Those of the rows that facts were fitted to, which confirm nothing; null if there are none."""


class Accuracy(CommandDocument, Errors, Evidence, name="accuracy"):
    """Simulated against published cycles; the statistics are of all rows."""

    by_source: list[SourceErrors] = says("The same by target and by what the cycles were read off.")
    intervals: list[KnownErrors]
    """Where measured cycles lie around simulated ones, by target and kind of operation."""
    targets: list[MeasuredTable] = says("The tables.")
    rows: list[MeasuredRow] = says("Their rows.")
    curves: list[ErrorCurve] = says("The rows by operation, type pair and path.")
    public_model: Errors | None = says("The statistics of the public cost model; null where it says nothing.")
    workers: list[WorkerEntry] = says("Who simulated.")


def accuracy_document(found: Sequence[AccuracyTable]) -> Document:
    """Return the JSON of one table, or of several."""
    every = [row for accuracy in found for row in accuracy.rows]
    origins, names = Origins(), dict.fromkeys(each.target.name for each in found)
    return Accuracy.of(
        simulated(every),
        unfitted=_counted(row for row in every if not row.row.fitted),
        fitted=_counted(row for row in every if row.row.fitted),
        by_source=[
            SourceErrors.of(simulated(rows), target=each.target, source_kind=kind, fitted=fitted)
            for each in found
            for (fitted, kind), rows in by_evidence(each.rows).items()
        ],
        intervals=[known for name in names for known in intervals(name)],
        targets=[_target(accuracy) for accuracy in found],
        rows=[
            MeasuredRow.of(row, target=accuracy.target, computed_by=origins.place(by))
            for accuracy in found
            for row, by in zip(accuracy.rows, accuracy.origins, strict=True)
        ],
        curves=[
            ErrorCurve.of(
                curve.simulated, target=each.target, public_model=curve.predicted, operation=curve.operation,
                src=curve.src, dst=curve.dst, path=curve.path,
            )
            for each in found
            for curve in each.curves
        ],
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


def _counted(rows: Iterable[AssessedRow]) -> Statistics | None:
    kept = list(rows)
    return simulated(kept) if kept else None


def _typed(text: str) -> int | float | str | None:
    """Return a cell as the number that it spells."""
    if not text:
        return None
    if text.isascii() and text.isdigit():
        return int(text)
    whole, dot, part = text.partition(".")
    return float(text) if dot and (whole + part).isascii() and (whole + part).isdigit() else text


# Accuracy as text: a table of rows, one of curves, and a summary per target.

_EDGES = (-20, -5, -1, 1, 5, 20)
"""Edges of errors in percent; outside of the first and the last is everything beyond."""
_LONGEST = 40
"""Characters of the longest bar."""


@composed
def accuracy_text(found: Sequence[AccuracyTable]) -> Iterator[RenderableType]:
    """Yield the report on one table, or on several."""
    for number, accuracy in enumerate(found):
        if number:
            yield Text("")
        yield from _one(accuracy)


ERROR_COLUMNS = ("mean %", "median %", "max %", "public: mean %")
"""Columns of `error_cells` but the last, the public model's maximum, which each table calls its own way."""


def error_cells(own: Statistics, public: Statistics | None) -> tuple[str, ...]:
    """Return the errors of the simulation, then mean and maximum of the public model."""
    peer = ("", "") if public is None else (f"{public.mean:.2f}", f"{public.maximum:.2f}")
    return *_cells(own), *peer


CURVE_COLUMNS = ("target", "operation", "types", "path", "rows", *ERROR_COLUMNS, "max %")
"""Columns of `curve_cells`."""


def curve_cells(found: Sequence[AccuracyTable]) -> Iterator[tuple[str | int, ...]]:
    """Yield a row for each curve of tables of measurements: what it is of, its rows, their absolute errors."""
    for accuracy in found:
        for curve in accuracy.curves:
            own = curve.simulated
            types = curve.src if curve.src == curve.dst else f"{curve.src} -> {curve.dst}"
            errors = error_cells(own, curve.predicted)
            yield accuracy.target.name, curve.operation, types, curve.path, own.rows, *errors


def accuracy_summary(found: Sequence[AccuracyTable]) -> RenderableType:
    """Return the errors of each table, rows that were not fitted first, by what they were read off."""
    numbers = ("rows", *ERROR_COLUMNS, "max % ")
    made = table("target", "measurements", "rows were", "read off", *numbers, numbers=numbers)
    groups = [(each, sort, rows) for each in found for sort, rows in by_evidence(each.rows).items()]
    for accuracy, (fitted, kind), rows in sorted(groups, key=lambda group: group[1][0]):
        own = simulated(rows)
        errors = error_cells(own, predicted(rows))
        name = accuracy.target.name
        measured = Path(accuracy.table.file).stem.removeprefix(f"{name}_measured_")
        made.add_row(name, measured, "fitted" if fitted else "held out", kind or "", f"{own.rows:,}", *errors)
    legend = "absolute errors of the simulated cycles against the measured ones; public: the vendor's public cost model"
    elsewhere = [accuracy for accuracy in found if accuracy.measured_on is not None]
    notes = dict.fromkeys(_measured_elsewhere(accuracy) for accuracy in elsewhere)
    names = dict.fromkeys(accuracy.target.name for accuracy in found)
    known = [_interval(each) for name in names for each in intervals(name)]
    rows = [row for accuracy in found for row in accuracy.unfitted]
    return Group(
        made,
        Text(legend, style="dim"),
        *_residuals(rows),
        *map(Text, known),
        *(Text(note, style="yellow") for note in notes),
    )


def _residuals(rows: Sequence[AssessedRow]) -> list[Text]:
    """Return how many rows that were not fitted have which error, as bars."""
    if not rows:
        return []
    counts = [0] * (len(_EDGES) + 1)
    for row in rows:
        counts[bisect(_EDGES, row.error)] += 1
    ends = ["", *(f"{edge:g}" for edge in _EDGES), ""]
    lines = [
        f"{f'{low} .. {high} %':>14}  {count:>4}  {'#' * ceil(_LONGEST * count / max(counts))}".rstrip()
        for low, high, count in zip(ends, ends[1:], counts, strict=False)
    ]
    return [Text("errors of the held-out rows"), Text("\n".join(lines), no_wrap=True)]


def _interval(known: Residuals) -> str:
    return (
        f"{known.target}, {known.kind}: {known.share} % of the measured cycles lie between {known.low:+.1f} % and "
        f"{known.high:+.1f} % of the simulated cycles ({known.rows:,} held-out rows)"
    )


def _measured_elsewhere(accuracy: AccuracyTable) -> str:
    return (
        f"measured on {accuracy.measured_on}, not on {accuracy.target.name}: the errors include the difference between "
        "the chips"
    )


def _one(accuracy: AccuracyTable) -> Iterator[RenderableType]:
    casts = all(assessed.row.operation == CAST for assessed in accuracy.rows)
    what = ("src", "dst") if casts else ("operation", "type")
    counted = any(assessed.row.convention for assessed in accuracy.rows)
    rows = table(
        *what, "path", "shape", *(["counts"] if counted else []),
        "measured", "simulated", "error %", "public model", "error % ",
        numbers=("measured", "simulated", "error %", "public model", "error % "),
    )  # fmt: skip
    reasons: dict[str, int] = {}
    for assessed in accuracy.rows:
        row, peer = assessed.row, assessed.predicted_error
        mark = "*" if assessed.convention == LABEL_SHAPE else ""
        stated = f" {row.convention}" if row.convention else ""
        shape = (
            f"{assessed.simulated_rows} x {assessed.simulated_cols}{mark}{' in place' if row.in_place else ''}{stated}"
        )
        if row.name:
            shape += f" {row.name}"
        if assessed.reason:
            shape += f" ({reasons.setdefault(assessed.reason, len(reasons) + 1)})"
        public = ("", "") if peer is None else (f"{row.predicted:,}", f"{peer:+.2f}")
        cycles = (f"{row.measured_cycles:,}", f"{assessed.simulated_cycles:,}", f"{assessed.error:+.2f}")
        types = _types(row.label, row.src.name, row.dst.name, casts=casts)
        rows.add_row(*types, row.path, shape, *([row.convention or ""] if counted else []), *cycles, *public)
    numbers = ("rows", *ERROR_COLUMNS, "max % ")
    curves = table(*what, "path", *numbers, numbers=numbers)
    for curve in accuracy.curves:
        types = _types(curve.operation, curve.src, curve.dst, casts=casts)
        own = curve.simulated
        curves.add_row(*types, curve.path, str(own.rows), *error_cells(own, curve.predicted))
    yield Text(f"{accuracy.target.name}: {Path(accuracy.table.file).name}")
    if accuracy.measured_on is not None:
        yield Text(_measured_elsewhere(accuracy), style="yellow")
    yield indented(rows)
    if any(assessed.convention == LABEL_SHAPE for assessed in accuracy.rows):
        yield Text("  * rows and columns of the published loop trips of the variant that runs")
    meanings = {assessed.row.convention: assessed.convention_meaning for assessed in accuracy.rows}
    yield from (indented(Text(f"{name}: {meaning}")) for name, meaning in meanings.items() if meaning)
    yield from (indented(Text(f"({number}) {reason}")) for reason, number in reasons.items())
    yield from (Text(""), indented(curves))
    yield from _sentences(accuracy)
    public_model = predicted(accuracy.rows)
    if public_model is not None:
        yield Text(_sentence("public model", public_model))
    if accuracy.table.skipped:
        yield Text(f"{accuracy.table.skipped:,} rows skipped: no target has the operation, or it was not measured")


def _types(label: str, src: str, dst: str, *, casts: bool) -> tuple[str, str]:
    """Return the first two columns: types of a cast, or operation and type."""
    if casts:
        return src, dst
    return label, src if src == dst else f"{src} -> {dst}"


def _sentences(accuracy: AccuracyTable) -> list[Text]:
    """Return the statistics of the simulation: held-out rows first."""
    if not accuracy.unfitted:
        return [Text(_sentence("simulation, fitted to these rows", simulated(accuracy.rows)))]
    own = [Text(_sentence("simulation, held out", simulated(accuracy.unfitted)))]
    fitted = [row for row in accuracy.rows if row.row.fitted]
    return own + ([Text(_sentence("simulation, fitted to these", simulated(fitted)))] if fitted else [])


def _sentence(what: str, statistics: Statistics) -> str:
    return (
        f"{what}, {statistics.rows:,} rows: mean absolute error {statistics.mean:.2f} %, "
        f"median {statistics.median:.2f} %, maximum {statistics.maximum:.2f} %"
    )


# Cross-validation as JSON: every fold with its fitted facts and its rows, and the statistics over all.

"""Decimals of a percentage."""


class PredictedRow(Keys):
    """A published figure, and what facts fitted without it give."""

    src: str = says("Name of the source format.", "row.src")
    dst: str = says("Name of the destination format.", "row.dst")
    path: str = says("Class of the shape.", "row.path")
    measured_cycles: Cycles = says("The published figure.", "row.measured_cycles")
    simulated_rows: int = says("Rows simulated.")
    simulated_cols: int = says("Columns simulated.")
    simulated_cycles: Cycles = says("The simulation's figure.")
    error_percent: Percent = says("How far it is above the published figure.", lambda one: round(one.error, _PLACES))


class FittedFacts(Errors):
    """The facts that fit all rows, and their errors."""

    facts: dict[Name, float] = says("The facts by path.")


class FoldEntry(FittedFacts):
    """What was left out; the facts that fit all other rows, and their errors on what was left out."""

    left_out: str = says("What was left out.")
    rows: int = says("How many rows that are.")
    predictions: list[PredictedRow] = says("These rows.")


class CrossValidated(CommandDocument, Errors, name="accuracy-cross-validation"):
    """With `--cross-validate`: every published figure predicted by facts fitted without it."""

    target: str = says("Name of the target.")
    file: str = says("The table.")
    left_out: str = says("What is left out each time.")
    rows: int = says("How many rows.")
    nothing_left_out: FittedFacts = says("The fit to all rows.")
    folds: list[FoldEntry] = says("One entry for each thing left out.")


def cross_validation_document(found: CrossValidation) -> Document:
    """Return the JSON of a cross-validation."""
    return CrossValidated.of(
        simulated(found.rows),
        target=found.target,
        file=found.table.file,
        left_out=found.left_out,
        nothing_left_out=FittedFacts.of(simulated(found.fitted_rows), facts=found.fitted),
        folds=[
            FoldEntry.of(fold.statistics, left_out=fold.name, facts=fold.facts, predictions=fold.rows)
            for fold in found.folds
        ],
    )


# Cross-validation as text: a line a fold, the facts that all rows fit best, and a summary.

_WHAT = {
    LeftOut.PAIR: "one pair of types at a time",
    LeftOut.KERNEL: "all pairs that run the same functions at a time",
    LeftOut.SHAPE: "one shape at a time (rows x trips)",
    LeftOut.OPERATION: "one operation at a time",
    LeftOut.WIDTH: "one width of source elements at a time",
    LeftOut.SOURCE: "one source at a time",
}


def cross_validation_text(found: CrossValidation) -> RenderableType:
    """Return the report."""
    columns = ("rows", "mean %", "median %", "max %")
    folds = table("left out", *columns, numbers=columns)
    for fold in found.folds:
        folds.add_row(fold.name, str(len(fold.rows)), *_cells(fold.statistics))
    facts = table("free fact", "fit to all rows", numbers=("fit to all rows",))
    for path, value in found.fitted.items():
        facts.add_row(path, f"{value.normalize():f}")
    head = f"{found.target.name}: {Path(found.table.file).name}, {_WHAT[found.left_out]}"
    return Group(
        Text(head),
        indented(folds),
        Text(""),
        indented(facts),
        Text(_errors_of("nothing left out", simulated(found.fitted_rows))),
        Text(_errors_of("left out and predicted", simulated(found.rows))),
    )


def _cells(found: Statistics) -> tuple[str, str, str]:
    return f"{found.mean:.2f}", f"{found.median:.2f}", f"{found.maximum:.2f}"


def _errors_of(what: str, found: Statistics) -> str:
    return f"{what}, {found.rows} rows: mean absolute error {found.mean:.2f} %, maximum {found.maximum:.2f} %"


# A calibration as JSON: every parameter and every row, before and after.


class CalibratedParameter(Keys):
    """A number of the description that was fitted."""

    path: str = says("Its path in the description.")
    before: float = says("What the target says.")
    value: float = says("What fits the rows.")
    standard_error: float | None
    """Its standard error; null at a bound, or where there are no more rows than parameters."""
    low: float = says("The least that it could be.")
    high: float | None = says("The largest; null if there is none.")
    at_bound: bool = says("Whether a bound stopped it.")
    rows: int = says("How many rows depend on it.")


class CalibratedRow(Keys):
    """A measured row, simulated before and after."""

    line: int = says("Its line in the table.", "span.line")
    operation: str = says("The operation and its parameters.", "label")
    src: str = says("Name of the source format.")
    dst: str = says("Name of the destination format.")
    measured_cycles: Cycles = says("What was measured.")
    before_cycles: Cycles = says("Simulated on the target.")
    after_cycles: Cycles = says("Simulated on the derived target.")
    before_percent: Percent = says("How far the target is above what was measured.")
    after_percent: Percent = says("How far the derived target is.")


class Calibrated(CommandDocument, name="calibrate"):
    """Numbers of a target fitted to a table; every row of it is a fitted one."""

    target: str = says("Name of the target.")
    file: str = says("The table.")
    out: str = says("The derived description.")
    residual_before_percent: Percent = says("Root of the mean squared error of the rows on the target.")
    residual_percent: Percent = says("The same on the derived target.")
    warnings: list[str]
    """What speaks against the fit: errors beyond the noise of the rows, numbers that they hardly determine."""
    parameters: list[CalibratedParameter] = says("What was fitted.")
    rows: list[CalibratedRow] = says("The rows.")


def calibration_document(found: Calibration, out: str) -> Document:
    """Return the JSON of a calibration."""
    before, after = (found.errors(cycles) for cycles in (found.before, found.after))
    return Calibrated.of(
        found,
        file=found.table.file,
        out=out,
        residual_before_percent=round(found.deviation(found.before), _PLACES),
        residual_percent=round(found.deviation(found.after), _PLACES),
        warnings=misfits(found),
        rows=[
            CalibratedRow.of(
                row,
                before_cycles=found.before[number],
                after_cycles=found.after[number],
                before_percent=round(before[number], _PLACES),
                after_percent=round(after[number], _PLACES),
            )
            for number, row in enumerate(found.table.rows)
        ],
    )


# A calibration as text: the parameters, the rows, and how far they are off before and after.


def calibration_text(found: Calibration, out: str) -> RenderableType:
    """Return the report; `out` is the description that was written."""
    numbers = ("before", "fitted", "+-", "rows")
    parameters = table("parameter", *numbers, numbers=numbers)
    for each in found.parameters:
        spread = "at bound" if each.at_bound else "-" if each.standard_error is None else f"{each.standard_error:.2g}"
        parameters.add_row(
            each.path, f"{each.before.normalize():f}", f"{each.value.normalize():f}", spread, str(each.rows)
        )
    columns = ("measured", "before", "after", "off %")
    rows = table("line", "operation", "shape", *columns, numbers=columns)
    for row, before, after, error in zip(
        found.table.rows, found.before, found.after, found.errors(found.after), strict=True
    ):
        formats = row.src.name if row.src.name == row.dst.name else f"{row.src.name} -> {row.dst.name}"
        shape = f"{row.valid_rows} x {row.valid_cols}"
        cells = (str(row.measured_cycles), str(before), str(after), f"{error:+.2f}")
        rows.add_row(str(row.span.line), f"{row.label} {formats}", shape, *cells)
    count = len(found.table.rows)
    before_after = f"{found.deviation(found.before):.2f} % rms before, {found.deviation(found.after):.2f} % after"
    return Group(
        Text(f"{found.target.name}: {len(found.parameters)} parameters fitted to {count} rows of "
             f"{Path(found.table.file).name}, written to {out}"),
        Text(f"error of these rows, all of them fitted: {before_after}"),
        indented(parameters), Text(""), indented(rows),
        Text("+- is one standard error, from the residuals and the slopes of the cycles."),
        *(Text(f"warning: {each}", style="yellow") for each in misfits(found)),
    )  # fmt: skip
