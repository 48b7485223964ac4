"""Accuracy as text: a table of rows, one of curves, and a summary per target."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence
from math import ceil
from pathlib import Path

from rich.console import Group, RenderableType
from rich.text import Text

from castsim.evidence.accuracy_assessment import (
    LABEL_SHAPE,
    Accuracy,
    AssessedRow,
    Statistics,
    by_evidence,
    predicted,
    simulated,
)
from castsim.evidence.measured_rows import CAST
from castsim.reports.terminal import indented, table
from castsim.targets.loader import Residuals, intervals

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
    return [Text("errors of the rows that were not fitted"), *map(Text, lines)]


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
