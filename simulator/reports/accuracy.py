"""Accuracy, cross-validation and calibration, as JSON and as text: rows, curves, folds, parameters, statistics."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from math import ceil
from pathlib import Path

from rich.console import Group, RenderableType
from rich.text import Text

from castsim.evidence.accuracy_assessment import (
    LABEL_SHAPE,
    Accuracy,
    AssessedRow,
    MeasuredCurve,
    Statistics,
    by_evidence,
    predicted,
    simulated,
)
from castsim.evidence.calibration import Calibration, misfits
from castsim.evidence.left_out import CrossValidation, Fold, LeftOut
from castsim.evidence.measured_rows import CAST
from castsim.execution.distribution.origins import Origins
from castsim.reports.documents import VERSIONS, Document, document, json_of
from castsim.reports.terminal import indented, table
from castsim.targets.description import SourceKind
from castsim.targets.loader import Residuals, intervals

_PLACES = 4
"""Decimals of a percentage."""


def accuracy_document(found: Sequence[Accuracy]) -> Document:
    """Return the JSON of one table, or of several."""
    every = [row for accuracy in found for row in accuracy.rows]
    origins, names = Origins(), dict.fromkeys(each.target.name for each in found)
    return {
        "schema_version": VERSIONS["accuracy"],
        "unfitted": _counted(row for row in every if not row.row.fitted),
        "fitted": _counted(row for row in every if row.row.fitted),
        "by_source": [
            _by_source(each.target.name, fitted, kind, rows)
            for each in found
            for (fitted, kind), rows in by_evidence(each.rows).items()
        ],
        "intervals": json_of([known for name in names for known in intervals(name)]),
        "targets": [_target(accuracy) for accuracy in found],
        "rows": [
            {**_row(accuracy.target.name, row), "computed_by": origins.place(by)}
            for accuracy in found
            for row, by in zip(accuracy.rows, accuracy.origins, strict=True)
        ],
        "curves": [_curve(accuracy.target.name, curve) for accuracy in found for curve in accuracy.curves],
        **_statistics(simulated(every)),
        "public_model": _or_none(predicted(every)),
        "workers": origins.documents(),
    }


def _target(accuracy: Accuracy) -> Document:
    shipped = [table for table in accuracy.target.measurements if Path(accuracy.table.file).match(table.file)]
    return {
        "target": accuracy.target.name,
        "file": accuracy.table.file,
        "source": shipped[0].source if shipped else None,
        "measured_on": accuracy.measured_on or accuracy.target.name,
        "rows": len(accuracy.rows),
        "rows_skipped": accuracy.table.skipped,
        "unfitted": _counted(accuracy.unfitted),
        **_statistics(simulated(accuracy.rows)),
        "public_model": _or_none(predicted(accuracy.rows)),
    }


def _row(target: str, assessed: AssessedRow) -> Document:
    peer = assessed.predicted_error
    return {
        "target": target,
        "columns": {name: _typed(text) for name, text in assessed.row.cells.items()},
        "operation": assessed.row.label,
        "measured_cycles": assessed.row.measured_cycles,
        "fitted": assessed.row.fitted,
        "source_kind": json_of(assessed.row.source_kind),
        **document(assessed, "convention", "simulated_rows", "simulated_cols", "simulated_cycles"),
        "error_percent": round(assessed.error, _PLACES),
        "public_model_error_percent": None if peer is None else round(peer, _PLACES),
        "reason": assessed.reason or None,
    }


def _curve(target: str, curve: MeasuredCurve) -> Document:
    return {
        "target": target,
        **document(curve, "operation", "src", "dst", "path"),
        "rows": curve.simulated.rows,
        **_statistics(curve.simulated),
        "public_model": _or_none(curve.predicted),
    }


def _counted(rows: Iterable[AssessedRow]) -> Document | None:
    kept = list(rows)
    return {"rows": len(kept), **_statistics(simulated(kept))} if kept else None


def _by_source(target: str, fitted: bool, kind: SourceKind | None, rows: Sequence[AssessedRow]) -> Document:
    return {"target": target, "source_kind": json_of(kind), "fitted": fitted, **(_counted(rows) or {})}


def _statistics(found: Statistics) -> dict[str, float]:
    values = {"mean": found.mean, "median": found.median, "max": found.maximum}
    return {name: round(value, _PLACES) for name, value in values.items()}


def _or_none(statistics: Statistics | None) -> dict[str, float] | None:
    return None if statistics is None else _statistics(statistics)


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


def accuracy_text(found: Sequence[Accuracy]) -> RenderableType:
    """Return the report on one table, or on several."""
    parts: list[RenderableType] = []
    for accuracy in found:
        parts += [*_one(accuracy), Text("")]
    return Group(*parts[:-1])


def accuracy_summary(found: Sequence[Accuracy]) -> RenderableType:
    """Return the errors of each table, rows that were not fitted first, by what they were read off."""
    numbers = ("rows", "mean %", "median %", "max %", "public: mean %", "max % ")
    made = table("target", "measurements", "rows were", "read off", *numbers, numbers=numbers)
    groups = [(each, sort, rows) for each in found for sort, rows in by_evidence(each.rows).items()]
    for accuracy, (fitted, kind), rows in sorted(groups, key=lambda group: group[1][0]):
        own, public_model = simulated(rows), predicted(rows)
        public = ("", "") if public_model is None else (f"{public_model.mean:.2f}", f"{public_model.maximum:.2f}")
        errors = (f"{own.mean:.2f}", f"{own.median:.2f}", f"{own.maximum:.2f}")
        name = accuracy.target.name
        measured = Path(accuracy.table.file).stem.removeprefix(f"{name}_measured_")
        made.add_row(name, measured, "fitted" if fitted else "not fitted", kind or "", str(own.rows), *errors, *public)
    legend = "absolute errors of simulated against measured cycles; public: the vendor's public cost model"
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
    return [Text("errors of the rows that were not fitted"), Text("\n".join(lines), no_wrap=True)]


def _interval(known: Residuals) -> str:
    refitted = f", {known.refitted} predicted by facts fitted without them" if known.refitted else ""
    return (
        f"{known.target}, {known.kind}: {known.share} % of measured cycles lie {known.low:+.1f} to {known.high:+.1f} % "
        f"off the simulated ones; {known.rows} rows{refitted}"
    )


def _measured_elsewhere(accuracy: Accuracy) -> str:
    return (
        f"measured on {accuracy.measured_on}, not on {accuracy.target.name}: the errors say how far "
        f"{accuracy.target.name} is from that chip"
    )


def _one(accuracy: Accuracy) -> list[RenderableType]:
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
        public = ("", "") if peer is None else (str(row.predicted), f"{peer:+.2f}")
        cycles = (str(row.measured_cycles), str(assessed.simulated_cycles), f"{assessed.error:+.2f}")
        types = _types(row.label, row.src.name, row.dst.name, casts=casts)
        rows.add_row(*types, row.path, shape, *([row.convention or ""] if counted else []), *cycles, *public)
    curves = table(
        *what, "path", "rows", "mean %", "median %", "max %", "public: mean %", "max % ",
        numbers=("rows", "mean %", "median %", "max %", "public: mean %", "max % "),
    )  # fmt: skip
    for curve in accuracy.curves:
        own, public_model = curve.simulated, curve.predicted
        public = ("", "") if public_model is None else (f"{public_model.mean:.2f}", f"{public_model.maximum:.2f}")
        errors = (f"{own.mean:.2f}", f"{own.median:.2f}", f"{own.maximum:.2f}")
        types = _types(curve.operation, curve.src, curve.dst, casts=casts)
        curves.add_row(*types, curve.path, str(own.rows), *errors, *public)
    parts: list[RenderableType] = [Text(f"{accuracy.target.name}: {Path(accuracy.table.file).name}")]
    if accuracy.measured_on is not None:
        parts.append(Text(_measured_elsewhere(accuracy), style="yellow"))
    parts.append(indented(rows))
    if any(assessed.convention == LABEL_SHAPE for assessed in accuracy.rows):
        parts.append(Text("  * rows and columns of the published loop trips of the variant that runs"))
    meanings = {assessed.row.convention: assessed.convention_meaning for assessed in accuracy.rows}
    parts += [indented(Text(f"{name}: {meaning}")) for name, meaning in meanings.items() if meaning]
    parts += [indented(Text(f"({number}) {reason}")) for reason, number in reasons.items()]
    parts += [Text(""), indented(curves), *_sentences(accuracy)]
    public_model = predicted(accuracy.rows)
    if public_model is not None:
        parts.append(Text(_sentence("public model", public_model)))
    if accuracy.table.skipped:
        parts.append(Text(f"{accuracy.table.skipped} rows left out: operations that no target has, or not measured"))
    return parts


def _types(label: str, src: str, dst: str, *, casts: bool) -> tuple[str, str]:
    """Return the first two columns: types of a cast, or operation and type."""
    if casts:
        return src, dst
    return label, src if src == dst else f"{src} -> {dst}"


def _sentences(accuracy: Accuracy) -> list[Text]:
    """Return the statistics of the simulation: rows that were not fitted first."""
    if not accuracy.unfitted:
        return [Text(_sentence("simulation, fitted to these very rows", simulated(accuracy.rows)))]
    own = [Text(_sentence("simulation, not fitted", simulated(accuracy.unfitted)))]
    fitted = [row for row in accuracy.rows if row.row.fitted]
    return own + ([Text(_sentence("simulation, fitted to these", simulated(fitted)))] if fitted else [])


def _sentence(what: str, statistics: Statistics) -> str:
    return (
        f"{what}, {statistics.rows} rows: mean absolute error {statistics.mean:.2f} %, "
        f"median {statistics.median:.2f} %, maximum {statistics.maximum:.2f} %"
    )


# Cross-validation as JSON: every fold with its fitted facts and its rows, and the statistics over all.

"""Decimals of a percentage."""


def cross_validation_document(found: CrossValidation) -> Document:
    """Return the JSON of a cross-validation."""
    return {
        "target": found.target.name,
        "file": found.table.file,
        "left_out": str(found.left_out),
        "rows": len(found.rows),
        **_mean_and_maximum(simulated(found.rows)),
        "nothing_left_out": {
            "facts": _facts(found.fitted),
            **_mean_and_maximum(simulated(found.fitted_rows)),
        },
        "folds": [_fold(fold) for fold in found.folds],
    }


def _fold(fold: Fold) -> Document:
    return {
        "left_out": fold.name,
        "rows": len(fold.rows),
        **_mean_and_maximum(fold.statistics),
        "facts": _facts(fold.facts),
        "predictions": _rows(fold.rows),
    }


def _rows(rows: Sequence[AssessedRow]) -> list[Document]:
    return [
        {
            "src": assessed.row.src.name,
            "dst": assessed.row.dst.name,
            "path": assessed.row.path,
            "measured_cycles": assessed.row.measured_cycles,
            **document(assessed, "simulated_rows", "simulated_cols", "simulated_cycles"),
            "error_percent": round(assessed.error, _PLACES),
        }
        for assessed in rows
    ]


def _facts(facts: Mapping[str, Decimal]) -> dict[str, float]:
    return {path: float(value) for path, value in facts.items()}


def _mean_and_maximum(found: Statistics) -> dict[str, float]:
    values = {"mean": found.mean, "median": found.median, "max": found.maximum}
    return {name: round(value, _PLACES) for name, value in values.items()}


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


def calibration_document(found: Calibration, out: str) -> Document:
    """Return the JSON of a calibration."""
    before, after = (found.errors(cycles) for cycles in (found.before, found.after))
    return {
        "target": found.target.name,
        "file": found.table.file,
        "out": out,
        "residual_before_percent": round(found.deviation(found.before), _PLACES),
        "residual_percent": round(found.deviation(found.after), _PLACES),
        "warnings": list(misfits(found)),
        "parameters": [
            document(each, "path", "before", "value", "standard_error", "low", "high", "at_bound", "rows")
            for each in found.parameters
        ],
        "rows": [
            {
                "line": row.span.line,
                "operation": row.label,
                "src": row.src.name,
                "dst": row.dst.name,
                "measured_cycles": row.measured_cycles,
                "before_cycles": found.before[number],
                "after_cycles": found.after[number],
                "before_percent": round(before[number], _PLACES),
                "after_percent": round(after[number], _PLACES),
            }
            for number, row in enumerate(found.table.rows)
        ],
    }


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
