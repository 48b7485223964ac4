"""Simulated against measured cycles in a notebook."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from castsim.evidence.accuracy_assessment import AccuracyTables, Curve, Statistics, predicted, simulated
from castsim.reports import notebooks
from castsim.reports.notebooks.colours import SERIES
from castsim.reports.notebooks.columns import Columns, integers, numbers
from castsim.reports.notebooks.markup import line, short, table, whole
from castsim.reports.notebooks.presentation import DrawnPresentation

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SHOWN = 12
"""Curves that HTML lists, those of the largest mean error."""

_PEER = "public model"


class AccuracyPresentation(DrawnPresentation):
    """The rows of tables of measurements, and the curves that they make up."""

    def __init__(self, result: object) -> None:
        assert isinstance(result, AccuracyTables)
        self._result = result

    def tables(self) -> Mapping[str, Callable[[], Columns]]:
        """Return rows and curves."""
        return {"rows": self._rows, "curves": self._curves}

    def _rows(self) -> Columns:
        placed = [
            (each.target.name, Path(each.table.file).name, row) for each in self._result.tables for row in each.rows
        ]
        found = [assessed for _, _, assessed in placed]
        return {
            "target": [target for target, _, _ in placed],
            "file": [file for _, file, _ in placed],
            "line": integers(each.row.span.line for each in found),
            "operation": [each.row.label for each in found],
            "src": [each.row.src.name for each in found],
            "dst": [each.row.dst.name for each in found],
            "path": [each.row.path for each in found],
            "convention": [each.convention for each in found],
            "simulated_rows": integers(each.simulated_rows for each in found),
            "simulated_cols": integers(each.simulated_cols for each in found),
            "measured_cycles": integers(each.row.measured_cycles for each in found),
            "simulated_cycles": integers(each.simulated_cycles for each in found),
            "error_percent": numbers(each.error for each in found),
            "public_model_cycles": numbers(each.row.predicted for each in found),
            "public_model_error_percent": numbers(each.predicted_error for each in found),
            "reason": [each.reason or None for each in found],
        }

    def _curves(self) -> Columns:
        placed = self._placed()
        found = [curve for _, curve in placed]
        peers = [(None,) * 3 if each.predicted is None else _figures(each.predicted) for each in found]
        return {
            "target": [target for target, _ in placed],
            "operation": [each.operation for each in found],
            "src": [each.src for each in found],
            "dst": [each.dst for each in found],
            "path": [each.path for each in found],
            "rows": integers(each.simulated.rows for each in found),
            "mean_percent": numbers(each.simulated.mean for each in found),
            "median_percent": numbers(each.simulated.median for each in found),
            "max_percent": numbers(each.simulated.maximum for each in found),
            "public_model_mean_percent": numbers(mean for mean, _, _ in peers),
            "public_model_median_percent": numbers(median for _, median, _ in peers),
            "public_model_max_percent": numbers(most for _, _, most in peers),
        }

    def _placed(self) -> list[tuple[str, Curve]]:
        return [(each.target.name, curve) for each in self._result.tables for curve in each.curves]

    def html(self) -> str:
        """Return the errors table by table, and those of the curves, the largest first."""
        heads = ("rows", "mean %", "median %", "max %", "public: mean %", "public: max %")
        rows = [
            (each.target.name, Path(each.table.file).name, *_cells(simulated(each.rows), predicted(each.rows)))
            for each in self._result.tables
        ]
        placed = sorted(self._placed(), key=lambda one: -one[1].simulated.mean)
        curves = [
            (target, each.operation, each.src, each.dst, each.path, *_cells(each.simulated, each.predicted))
            for target, each in placed[:_SHOWN]
        ]
        left = len(placed) - len(curves)
        return whole(
            line(short(self._result), bold=True),
            table(("target", "table", *heads), rows, heads),
            table(("target", "operation", "from", "to", "path", *heads), curves, heads),
            line(f"{left} more curves: to_frame('curves')", dim=True) if left else "",
        )

    def draw(self, figure: Figure) -> None:
        """Draw simulated over measured cycles, and how many rows have which error."""
        rows = self._result.rows
        own = [(each.row.measured_cycles, each.simulated_cycles) for each in rows]
        peer = [(each.row.measured_cycles, each.row.predicted) for each in rows if each.row.predicted is not None]
        groups = {name: (found, colour) for name, found, colour in _groups(own, peer) if found}
        notebooks.compared(figure, groups, short(self._result))


def _groups(
    own: list[tuple[int, int]], peer: list[tuple[int, int]]
) -> tuple[tuple[str, list[tuple[int, int]], str], ...]:
    """Return pairs of measured and predicted cycles, by who predicts, the simulation on top."""
    return (_PEER, peer, SERIES[1]), ("simulation", own, SERIES[0])


def _figures(found: Statistics) -> tuple[float, float, float]:
    """Return mean, median and maximum."""
    return found.mean, found.median, found.maximum


def _cells(own: Statistics, peer: Statistics | None) -> tuple[str, ...]:
    public = ("", "") if peer is None else (f"{peer.mean:.2f}", f"{peer.maximum:.2f}")
    return str(own.rows), f"{own.mean:.2f}", f"{own.median:.2f}", f"{own.maximum:.2f}", *public
