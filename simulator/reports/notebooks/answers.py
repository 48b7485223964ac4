"""Answers in a notebook: estimates, accuracy tables, conformance matrices, lowerings."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from castsim.evidence.accuracy_assessment import AccuracyTables, MeasuredCurve, Statistics, predicted, simulated
from castsim.execution.input_data import arrayed
from castsim.execution.timing import Cause, limiter, share
from castsim.isa.errors import EngineError, LimitError
from castsim.lowering.conformance import ConformanceEntry, Matrix
from castsim.lowering.demand import Counterexample, Verdict
from castsim.lowering.lowering_answers import Answer, setting_text
from castsim.lowering.planner import PlanKind
from castsim.reports import notebooks
from castsim.reports.conform import cast_text, cell_text
from castsim.reports.documents import identifier
from castsim.reports.lower import code_text, number_text, required_text
from castsim.reports.lower_text import cost_text, evidence_text, headline, option_text
from castsim.reports.notebooks.figures import shown_window
from castsim.reports.notebooks.presentation import (
    SERIES,
    Column,
    Columns,
    DrawnPresentation,
    Mark,
    Presentation,
    cause_bar,
    cause_colour,
    colours_of,
    integers,
    lanes,
    legend,
    line,
    numbers,
    program_text,
    short,
    table,
    whole,
)
from castsim.reports.numbers import causes_of, grouped, present_causes
from castsim.reports.run_cycles import clock, duration
from castsim.reports.run_report import lost_most
from castsim.running import Result
from castsim.running.estimating import Estimate, Estimates
from castsim.running.program_runs import source_lines

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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


# A run in a notebook.

MOST_ROWS = 2_000_000
"""Operations that a frame holds: some 300 MB."""

_DRAWN = 20_000
"""Operations that the timeline of a notebook shows at the most."""

_MOST_DRAWN = 100_000
"""Operations that a figure shows at the most."""

_LINES = 5
"""Lines of the program that are shown, those on which pipes spend most."""


class RunPresentation(DrawnPresentation):
    """The result of a run: its operations, its causes by pipe, its lines."""

    def __init__(self, result: object) -> None:
        assert isinstance(result, Result)
        self._result = result

    def tables(self) -> Mapping[str, Callable[[], Columns]]:
        """Return operations, causes and lines."""
        return {"operations": self._operations, "causes": self._causes, "lines": self._lines}

    def _operations(self) -> Columns:
        result = self._timed()
        timing, instructions = result.timing, result.loaded.tree.instructions
        rows = len(timing.operations)
        if rows > MOST_ROWS:
            raise LimitError(
                f"{grouped(rows)} operations are more than a frame holds, {grouped(MOST_ROWS)}",
                legal=("causes", "lines"),
            )
        order = ("operation", "execution", "line", "start", "end", "pipe_cycles")
        counts = {name: array("q", bytes(8 * rows)) for name in order}
        causes = {cause: array("q", bytes(8 * rows)) for cause in present_causes(result.pipes)}
        text, pipe, names = list[str](), list[str](), list[str]()
        number, execution, lines, start, end, spent = counts.values()
        sources = [0 if each.inserted else each.span.line for each in instructions]
        places = integers(each.instruction for each in timing.executions).tolist()
        for row, each in enumerate(timing.operations):
            place = places[each.execution]
            number[row], execution[row], lines[row] = each.index, each.execution, sources[place]
            start[row], end[row], spent[row] = each.start, each.end, sum(each.causes.values())
            text.append(instructions[place].text)
            pipe.append(each.pipe)
            names.append(each.name)
            for cause, cycles in each.causes.items():
                if cycles:
                    causes[cause][row] = cycles
        made: dict[str, Column] = {name: np.frombuffer(column, np.int64) for name, column in counts.items()}
        made |= {"text": text, "pipe": pipe, "name": names}
        shown = ("operation", "execution", "line", "text", "pipe", "name", "start", "end", "pipe_cycles")
        parts = {cause: np.frombuffer(column, np.int64) for cause, column in causes.items()}
        return {name: made[name] for name in shown} | {
            identifier(cause): column for cause, column in parts.items() if column.any()
        }

    def _causes(self) -> Columns:
        result = self._timed()
        rows = [
            (name, cause, cycles) for name, pipe in result.pipes.items() for cause, cycles in causes_of(pipe).items()
        ]
        return {
            "pipe": [pipe for pipe, _, _ in rows],
            "cause": [identifier(cause) for _, cause, _ in rows],
            "cycles": integers(cycles for _, _, cycles in rows),
            "share": numbers(cycles / result.cycles for _, _, cycles in rows),
        }

    def _lines(self) -> Columns:
        result = self._timed()
        found = source_lines(result.loaded.tree, result.timing)
        return {
            "line": integers(each.span.line for each in found),
            "text": [each.text for each in found],
            "pipe": [each.pipe for each in found],
            "executions": integers(each.executions for each in found),
            "first_start": integers(each.first_start for each in found),
            "last_end": integers(each.last_end for each in found),
            "cycles": integers(each.cycles for each in found),
            "pipe_cycles": integers(each.pipe_cycles for each in found),
            "share": numbers(each.pipe_cycles / max(result.cycles, 1) for each in found),
            "source": [each.span.excerpt() for each in found],
        }

    def _timed(self) -> Result:
        """Return the result.

        Raises:
            EngineError: it has no cycles.
        """
        if self._result.untimed:
            raise EngineError(self._result.untimed)
        return self._result

    def html(self) -> str:
        """Return the answer, the pipes with their causes, a timeline, the lines that take most, the outputs."""
        result = self._result
        loaded = result.loaded
        head = self._head()
        if result.untimed:
            return whole(line(head), line(f"no cycles: {result.untimed}", bold=True), self._outputs())
        seconds = result.cycles / (loaded.target.frequency.megahertz * 10**6)
        lost, latencies = (
            lost_most(loaded.tree, result.timing, loaded.target.scalar_pipe),
            loaded.latencies(result.timing),
        )
        bound = latencies if latencies is not None and latencies.binds else limiter(result.timing)
        time = f"{duration(float(seconds))} at {clock(loaded.target)}, engine {result.engine}"
        return whole(
            line(head),
            line(f"{grouped(result.cycles)} cycles = {time}", bold=True),
            line(bound.sentence() if bound else "no pipe had anything to do"),
            line(lost.sentence()) if lost else "",
            self._pipes(),
            self._lanes(),
            self._heavy(),
            self._outputs(),
        )

    def _pipes(self) -> str:
        result = self._result
        rows = [
            (name, share(pipe.busy, result.cycles), cause_bar(pipe.causes, result.cycles))
            for name, pipe in result.pipes.items()
        ]
        colours = {str(cause): cause_colour(cause) for cause in present_causes(result.pipes)}
        return table(("pipe", "busy", "cycles by cause"), rows, ("busy",)) + legend(colours)

    def _lanes(self) -> str:
        window = shown_window(self._result, 0, None, _DRAWN)
        if not window.operations:
            return ""
        colours = colours_of(each.name for each in window.operations)
        marks = (Mark(each.pipe, each.start, each.end, colours[each.name], each.title) for each in window.operations)
        note = line(window.cut, dim=True) if window.cut else ""
        return lanes(window.pipes, marks, window.start, window.end) + legend(colours) + note

    def _heavy(self) -> str:
        result = self._result
        found = source_lines(result.loaded.tree, result.timing)
        most = sorted(found, key=lambda each: -each.pipe_cycles)[:_LINES]
        rows = [
            (each.span.line, each.text, each.pipe, grouped(each.executions), grouped(each.pipe_cycles),
             share(each.pipe_cycles, result.cycles))
            for each in most
        ]  # fmt: skip
        heads = ("line", "instruction", "pipe", "times", "pipe cycles", "share")
        more = line(f"{len(found) - len(most)} more lines: to_frame('lines')", dim=True) if found[_LINES:] else ""
        return table(heads, rows, ("line", "times", "pipe cycles", "share")) + more

    def _outputs(self) -> str:
        found = ", ".join(f"{name} {arrayed(output)}" for name, output in self._result.outputs.items())
        return line(f"outputs: {found}") if found else ""

    def draw(self, figure: Figure) -> None:
        """Draw the cycles of every pipe by cause."""
        result = self._timed()
        title = f"{self._head()}: {grouped(result.cycles)} cycles"
        notebooks.cause_bars(figure, {name: pipe.causes for name, pipe in result.pipes.items()}, title)

    def timeline(self, start: int, end: int | None) -> Figure:
        """Return the operations in cycles [start, end), drawn; `end` None is the end of the run.

        Raises:
            ReadError: the cycles are none of the run's, or matplotlib is not installed.
            EngineError: the run has no cycles.
        """
        window = shown_window(self._result, start, end, _MOST_DRAWN)
        figure = notebooks.empty_figure()
        notebooks.operation_lanes(
            figure, window, f"{self._head()}: cycles {grouped(window.start)} to {grouped(window.end)}"
        )
        return figure

    def _head(self) -> str:
        loaded = self._result.loaded
        return f"{loaded.file} @{loaded.entry} on {loaded.target.name}"


def timeline_of(result: Result, start: int, end: int | None) -> Figure:
    """Return the operations of a run in cycles [start, end), drawn; `end` None is the end of the run.

    Raises:
        ReadError: the cycles are none of the run's, or matplotlib is not installed.
        EngineError: the run has no cycles.
    """
    return RunPresentation(result).timeline(start, end)
