"""The page of measured and simulated cycles: points, errors and their reasons, to choose from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from castsim.evidence.accuracy import Accuracy, AssessedRow
from castsim.evidence.accuracy.cross_validation import CrossValidation
from castsim.reports.accuracy import accuracy_document
from castsim.reports.accuracy_text import accuracy_summary
from castsim.reports.cross_validation import cross_validation_document
from castsim.reports.cross_validation_text import cross_validation_text
from castsim.reports.documents import Document, Json
from castsim.reports.pages.blocks import Packed, Page, Section, Table, View
from castsim.reports.pages.from_text import text_blocks

_MOST_ROWS = 1000
"""Rows up to which the page holds the JSON of the rows too; its lists have all."""

_STATISTICS = ("mean", "median", "max")


def accuracy_page(found: Sequence[Accuracy]) -> Page:
    """Return the page of one table, or of several."""
    document = accuracy_document(found)
    rows = [row for each in found for row in _rows(each.target.name, _name(each.table.file), each.rows)]
    return Page(
        kind="accuracy",
        title="Simulated against measured cycles",
        subtitle=f"castsim accuracy on {', '.join(dict.fromkeys(each.target.name for each in found))}",
        sections=(
            Section("summary", "Summary", tuple(text_blocks([accuracy_summary(found)]))),
            Section("measurements", "Residuals", (_view(rows),)),
            Section("curves", "Curves", (_curves(found),)),
            Section("sources", "Sources", (_sources(document),)),
        ),
        result={key: value for key, value in document.items() if key != "rows" or len(rows) <= _MOST_ROWS},
    )


def cross_validation_page(found: CrossValidation) -> Page:
    """Return the page of a cross-validation: every row as the facts fitted without it predict it."""
    rows = [row for fold in found.folds for row in _rows(found.target.name, f"without {fold.name}", fold.rows)]
    return Page(
        kind="cross-validation",
        title=f"Cross-validation of {found.target.name}",
        subtitle=f"castsim accuracy --cross-validate {found.left_out}: {_name(found.table.file)}",
        sections=(
            Section("measurements", "Measurements", (_view(rows),)),
            Section("folds", "Left out in turn", tuple(text_blocks([cross_validation_text(found)]))),
        ),
        result=cross_validation_document(found),
    )


def _view(rows: list[Json]) -> View:
    return View("measurements", "Errors are in percent of the measured cycles.", Packed({"rows": rows}))


def _rows(target: str, table: str, found: Iterable[AssessedRow]) -> list[Json]:
    """Return rows as `measurements.js` takes them."""
    return [
        {
            "table": table,
            "target": target,
            "operation": assessed.row.label,
            "types": _types(assessed),
            "path": assessed.row.path,
            "shape": _shape(assessed),
            "measured": assessed.row.measured_cycles,
            "simulated": assessed.simulated_cycles,
            "error": assessed.error,
            "evidence": _evidence(assessed),
            "public": assessed.row.predicted,
            "public_error": assessed.predicted_error,
            "reason": assessed.reason,
        }
        for assessed in found
    ]


def _evidence(assessed: AssessedRow) -> str:
    kind = assessed.row.source_kind
    return f"{'fitted' if assessed.row.fitted else 'not fitted'}{f', {kind}' if kind else ''}"


def _types(assessed: AssessedRow) -> str:
    src, dst = assessed.row.src.name, assessed.row.dst.name
    return src if src == dst else f"{src} -> {dst}"


def _shape(assessed: AssessedRow) -> str:
    row = assessed.row
    words = [f"{assessed.simulated_rows} x {assessed.simulated_cols}", "in place" if row.in_place else "", row.name]
    counts = f"counts {row.convention}" if row.convention else ""
    return " ".join(word for word in (*words, counts) if word)


def _curves(found: Sequence[Accuracy]) -> Table:
    columns = ("target", "operation", "types", "path", "rows", "mean %", "median %", "max %", "public: mean %", "max %")
    rows = []
    for accuracy in found:
        for curve in accuracy.curves:
            own, other = curve.simulated, curve.predicted
            public = ("", "") if other is None else (f"{other.mean:.2f}", f"{other.maximum:.2f}")
            types = curve.src if curve.src == curve.dst else f"{curve.src} -> {curve.dst}"
            errors = (f"{own.mean:.2f}", f"{own.median:.2f}", f"{own.maximum:.2f}")
            rows.append((accuracy.target.name, curve.operation, types, curve.path, own.rows, *errors, *public))
    caption = "Absolute errors by operation, types and kind of shape"
    return Table(caption, columns, tuple(rows), numbers=tuple(range(4, len(columns))), most=25)


def _sources(document: Document) -> Table:
    targets = document["targets"]
    entries = [each for each in targets if isinstance(each, dict)] if isinstance(targets, list) else []
    rows = tuple(
        (
            str(each["target"]),
            _name(str(each["file"])),
            str(each["rows"]),
            *(str(each[name]) for name in _STATISTICS),
            "given by --data" if each["source"] is None else str(each["source"]),
        )
        for each in entries
    )
    columns = ("target", "table", "rows", "mean %", "median %", "max %", "source")
    return Table("", columns, rows, numbers=(2, 3, 4, 5))


def _name(file: str) -> str:
    return Path(file).name
