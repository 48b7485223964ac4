"""Answers in a notebook: estimates, accuracy tables, conformance matrices, lowerings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from castsim.evidence.accuracy_assessment import AccuracyTables, MeasuredCurve, Statistics, predicted, simulated
from castsim.execution.timing import Cause, share
from castsim.lowering.conformance import ConformanceEntry, Matrix
from castsim.lowering.demand import Counterexample, Verdict
from castsim.lowering.lowering_answers import Answer, setting_text
from castsim.lowering.planner import PlanKind
from castsim.reports import notebooks
from castsim.reports.conform import cast_text, cell_text
from castsim.reports.documents import identifier
from castsim.reports.lower import code_text, number_text, required_text
from castsim.reports.lower_text import cost_text, evidence_text, headline, option_text
from castsim.reports.notebooks.presentation import (
    SERIES,
    Column,
    Columns,
    DrawnPresentation,
    Presentation,
    cause_bar,
    cause_colour,
    integers,
    legend,
    line,
    numbers,
    program_text,
    short,
    table,
    whole,
)
from castsim.reports.numbers import grouped
from castsim.running.estimating import Estimate, Estimates

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_SHOWN = 10
"""Shapes that HTML lists."""


class EstimatePresentation(DrawnPresentation):
    """The estimate of one shape: its causes."""

    def __init__(self, result: object) -> None:
        assert isinstance(result, Estimate)
        self._result = result

    def tables(self) -> Mapping[str, Callable[[], Columns]]:
        """Return the causes."""
        return {"causes": self._causes}

    def _causes(self) -> Columns:
        found = self._present()
        return {
            "cause": [identifier(cause) for cause in found],
            "cycles": integers(found.values()),
            "share": numbers(cycles / self._result.cycles for cycles in found.values()),
        }

    def _present(self) -> dict[Cause, int]:
        return {cause: self._result.causes[cause] for cause in Cause if self._result.causes.get(cause)}

    def html(self) -> str:
        """Return the cycles, and their causes as a bar and in a table."""
        result, found = self._result, self._present()
        rows = [(str(cause), grouped(cycles), share(cycles, result.cycles)) for cause, cycles in found.items()]
        return whole(
            line(f"{grouped(result.cycles)} cycles, bound by {result.bound_by}", bold=True),
            cause_bar(found, result.cycles).html,
            legend({str(cause): cause_colour(cause) for cause in found}),
            table(("cause", "cycles", "share"), rows, ("cycles", "share")),
        )

    def draw(self, figure: Figure) -> None:
        """Draw the causes as the parts of one bar."""
        title = f"{grouped(self._result.cycles)} cycles, bound by {self._result.bound_by}"
        notebooks.cause_bars(figure, {"estimate": self._result.causes}, title)


class EstimatesPresentation(DrawnPresentation):
    """The estimates of many shapes, one below the other in C order."""

    def __init__(self, result: object) -> None:
        assert isinstance(result, Estimates)
        self._result = result

    def tables(self) -> Mapping[str, Callable[[], Columns]]:
        """Return the shapes."""
        return {"shapes": self._shapes}

    def _shapes(self) -> Columns:
        result = self._result
        bounds = result.bound_by.ravel().tolist()
        parts: dict[str, Column] = {
            identifier(cause): result.causes[cause].ravel() for cause in Cause if cause in result.causes
        }
        return {
            "shape": np.arange(result.cycles.size, dtype=np.int64),
            "cycles": result.cycles.ravel(),
            "bound_by": [None if bound is None else identifier(bound) for bound in bounds],
            **parts,
            "reason": [None if reason is None else str(reason) for reason in result.reasons.ravel().tolist()],
        }

    def html(self) -> str:
        """Return how many there are, and the first of them."""
        result = self._result
        rows = []
        for number, cycles in enumerate(result.cycles.ravel()[:_SHOWN].tolist()):
            index = ", ".join(map(str, map(int, np.unravel_index(number, result.cycles.shape))))
            bound, reason = result.bound_by.flat[number], result.reasons.flat[number]
            causes = {cause: int(found.flat[number]) for cause, found in result.causes.items()}
            refused = reason is not None
            rows.append(
                (index, "", "refused", reason)
                if refused
                else (index, grouped(int(cycles)), str(bound), cause_bar(causes, int(cycles)))
            )
        left = result.cycles.size - len(rows)
        return whole(
            line(short(result), bold=True),
            table(("index", "cycles", "bound by", "causes"), rows, ("index", "cycles")),
            legend({str(cause): cause_colour(cause) for cause in Cause if cause in result.causes}),
            line(f"{grouped(left)} more: to_frame()", dim=True) if left else "",
        )

    def draw(self, figure: Figure) -> None:
        """Draw cycles over the last index, a line for each value of those before it; refused shapes are gaps."""
        axes = notebooks.curve_axes(figure, short(self._result), "index of the shape", "cycles")
        for number, (name, cycles) in enumerate(self._curves()):
            axes.plot(
                np.arange(cycles.size), cycles, marker=".", color=SERIES[number % len(SERIES)], label=name or None
            )
        if self._result.cycles.ndim > 1:
            axes.legend(title="indices before it", frameon=False, fontsize="small")

    def _curves(self) -> Iterator[tuple[str, np.typing.NDArray[np.float64]]]:
        """Yield the cycles along the last index, each with the indices before it."""
        cycles = np.atleast_1d(np.asarray(self._result.cycles, np.float64))
        for index in np.ndindex(cycles.shape[:-1]):
            yield ", ".join(map(str, index)), cycles[index]


# Simulated against measured cycles in a notebook.

_MOST_CURVES = 12
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

    def _placed(self) -> list[tuple[str, MeasuredCurve]]:
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
            for target, each in placed[:_MOST_CURVES]
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


# A conformance matrix in a notebook.

_MOST_CELLS = 60
"""Casts that HTML lists."""

_COLOURS = {
    Verdict.EXACT: "#009e73",
    Verdict.CONFORMS: "#56b4e9",
    Verdict.DIFFERS: "#d55e00",
}
"""Colours of verdicts, as `castsim.reports.notebooks.presentation` chooses them."""


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
            for number, cast in enumerate(result.casts[:_MOST_CELLS])
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


# The lowering of a cast in a notebook.


class LoweringPresentation(Presentation):
    """What a target does for a cast, step by step."""

    def __init__(self, result: object) -> None:
        assert isinstance(result, Answer)
        self._result = result

    def tables(self) -> Mapping[str, Callable[[], Columns]]:
        """Return the steps."""
        return {"steps": self._steps}

    def _steps(self) -> Columns:
        chain = self._result.plan.chain
        return {
            "step": np.arange(1, len(chain) + 1, dtype=np.int64),
            "instruction": [step.name for step in chain],
            "src": [step.src.name for step in chain],
            "dst": [step.dst.name for step in chain],
            "options": [", ".join(step.forms[0].options) for step in chain],
        }

    def html(self) -> str:
        """Return the answer, the steps, the proof, the cost, where it fails if it does, the program."""
        result, found = self._result, self._result.plan
        demand, steps = found.demand, self._steps()
        rows = list(zip(*steps.values(), strict=True))
        return whole(
            line(f"{demand.src.name} -> {demand.dst.name} on {found.target.name}{headline(result)}", bold=True),
            *(line(option_text(found.target, name, value)) for name, value in result.settings),
            table(("step", "instruction", "from", "to", "options"), rows, ("step",)) if rows else "",
            line(evidence_text(found, found.evidence)) if found.evidence is not None else "",
            line(cost_text(found.cost)) if found.cost is not None else "",
            self._failing(found.counterexample) if found.counterexample is not None else "",
            program_text(result.text) if result.text is not None else "",
        )

    def _failing(self, found: Counterexample) -> str:
        rows = [
            (each.step or "input", each.format.name, code_text(each.code, each.format), number_text(each.value))
            for each in found.values
        ]
        right = required_text(found.required, self._result.plan.demand.dst)
        heads = ("after", "format", "bits", "value")
        return table(heads, rows, ("bits", "value")) + line(f"correct: {right}")
