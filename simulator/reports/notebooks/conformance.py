"""A conformance matrix in a notebook."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from castsim.planning import PlanKind, Verdict
from castsim.planning.conformance import ConformanceEntry, Matrix
from castsim.planning.lowering_answers.answer import setting_text
from castsim.reports import notebooks
from castsim.reports.conform import cast_text, cell_text
from castsim.reports.notebooks.columns import Columns, numbers
from castsim.reports.notebooks.markup import line, short, table, whole
from castsim.reports.notebooks.presentation import DrawnPresentation

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SHOWN = 60
"""Casts that HTML lists."""

_COLOURS = {
    Verdict.EXACT: "#009e73",
    Verdict.CONFORMS: "#56b4e9",
    Verdict.DIFFERS: "#d55e00",
}
"""Colours of verdicts, as `castsim.reports.notebooks.colours` chooses them."""


class ConformancePresentation(DrawnPresentation):
    """Every cast of a specification on every target."""

    def __init__(self, result: object) -> None:
        assert isinstance(result, Matrix)
        self._result = result

    def tables(self) -> Mapping[str, Callable[[], Columns]]:
        """Return the cells."""
        return {"cells": self._cells}

    def _cells(self) -> Columns:
        entries = self._result.entries
        return {
            "src": [each.cell.src for each in entries],
            "dst": [each.cell.dst for each in entries],
            "attributes": [setting_text(each.cell.attributes) for each in entries],
            "target": [each.cell.target for each in entries],
            "way": [each.kind.value for each in entries],
            "verdict": [each.verdict.value for each in entries],
            "path": [" -> ".join(each.path) for each in entries],
            "instructions": [", ".join(each.instructions) for each in entries],
            "options": [setting_text(each.settings) for each in entries],
            "method": [each.method for each in entries],
            "proven": np.array([each.proven for each in entries], np.bool_),
            "cycles_per_element": numbers(each.cycles_per_element for each in entries),
            "answer": [cell_text(each) for each in entries],
        }

    def html(self) -> str:
        """Return how many cells conform, target by target, and the answers, cast by cast."""
        result = self._result
        kinds = tuple(kind.value for kind in PlanKind)
        counted = [
            (target, *(sum(each.kind is kind for each in self._column(number)) for kind in PlanKind))
            for number, target in enumerate(result.targets)
        ]
        rows = [
            (cast_text(cast, result.row(number)[0]), *(cell_text(entry) for entry in result.row(number)))
            for number, cast in enumerate(result.casts[:_SHOWN])
        ]
        left = len(result.casts) - len(rows)
        return whole(
            line(short(result), bold=True),
            table(("target", *kinds), counted, kinds),
            table(("cast", *result.targets), rows),
            line(f"{left} more casts: to_frame()", dim=True) if left else "",
        )

    def _column(self, number: int) -> tuple[ConformanceEntry, ...]:
        return self._result.entries[number :: len(self._result.targets)]

    def draw(self, figure: Figure) -> None:
        """Draw a square per cast and target in the colour of its verdict."""
        result = self._result
        order = [*_COLOURS]
        places = np.array([order.index(each.verdict) for each in result.entries], np.int64)
        grid = places.reshape(len(result.casts), len(result.targets))
        names = [cast_text(cast, result.row(number)[0]) for number, cast in enumerate(result.casts)]
        colours = {verdict.value: colour for verdict, colour in _COLOURS.items()}
        notebooks.verdict_grid(figure, grid, names, result.targets, colours, short(result))
