"""Cross-validation as text: a line a fold, the facts that all rows fit best, and a summary."""

from __future__ import annotations

from pathlib import Path

from rich.console import Group, RenderableType
from rich.text import Text

from castsim.evidence.accuracy_assessment import Statistics, simulated
from castsim.evidence.left_out import CrossValidation, LeftOut
from castsim.reports.terminal import indented, table

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
        Text(_sentence("nothing left out", simulated(found.fitted_rows))),
        Text(_sentence("left out and predicted", simulated(found.rows))),
    )


def _cells(found: Statistics) -> tuple[str, str, str]:
    return f"{found.mean:.2f}", f"{found.median:.2f}", f"{found.maximum:.2f}"


def _sentence(what: str, found: Statistics) -> str:
    return f"{what}, {found.rows} rows: mean absolute error {found.mean:.2f} %, maximum {found.maximum:.2f} %"
