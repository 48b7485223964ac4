"""Answers in a notebook: estimates, accuracy tables, conformance matrices, lowerings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from castsim.execution.timing import Cause, share
from castsim.reports.documents import identifier
from castsim.reports.numbers import TONES, grouped
from castsim.reports.pages.blocks import (
    Bars,
    Block,
    Cell,
    Folded,
    Line,
    Listing,
    PageTable,
    ResultsView,
    Series,
    Text,
    cause_series,
    text_blocks,
)
from castsim.tools import notebooks
from castsim.tools.accuracy.accuracy_assessment import AccuracyTables, AssessedRow, ErrorCurve
from castsim.tools.accuracy.command import accuracy_page
from castsim.tools.estimate.cast_estimates import Estimate, Estimates
from castsim.tools.lowering.conform import cast_text, cell_text, conform_totals
from castsim.tools.lowering.conformance import Matrix
from castsim.tools.lowering.demand import Verdict
from castsim.tools.lowering.lowering_answers import Answer, setting_text
from castsim.tools.lowering.report import answer_parts
from castsim.tools.notebooks.presentation import (
    SERIES,
    Column,
    Columns,
    DrawnPresentation,
    Presentation,
    integers,
    numbers,
    record_columns,
    short,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_SHOWN = 10
"""Maximum number of shapes that HTML lists."""


class EstimatePresentation(DrawnPresentation):
    """Presentation of the estimate of one shape and its causes."""

    def __init__(self, result: object) -> None:
        assert isinstance(result, Estimate)
        self._result = result

    def tables(self) -> Mapping[str, Callable[[], Columns]]:
        """Return the table of causes."""
        return {"causes": self._causes}

    def _causes(self) -> Columns:
        cycles_of = self._present()
        return {
            "cause": [identifier(cause) for cause in cycles_of],
            "cycles": integers(cycles_of.values()),
            "share": numbers(cycles / self._result.cycles for cycles in cycles_of.values()),
        }

    def _present(self) -> dict[Cause, int]:
        return {cause: self._result.causes[cause] for cause in Cause if self._result.causes.get(cause)}

    def blocks(self) -> Iterator[Block]:
        """Yield the cycles, and their causes as a bar and in a table."""
        result, cycles_of = self._result, self._present()
        yield Text((Line(f"{grouped(result.cycles)} cycles, bound by {result.bound_by}", "strong"),))
        yield Bars("", "cycles", ("",), cause_series([cycles_of]))
        rows = [(str(cause), cycles, share(cycles, result.cycles)) for cause, cycles in cycles_of.items()]
        yield PageTable("", ("cause", "cycles", "share"), tuple(rows), numbers=(1, 2))

    def draw(self, figure: Figure) -> None:
        """Draw the causes as the parts of one bar."""
        title = f"{grouped(self._result.cycles)} cycles, bound by {self._result.bound_by}"
        notebooks.cause_bars(figure, {"estimate": self._result.causes}, title)


class EstimatesPresentation(DrawnPresentation):
    """Presentation of the estimates of many shapes, in C order."""

    def __init__(self, result: object) -> None:
        assert isinstance(result, Estimates)
        self._result = result

    def tables(self) -> Mapping[str, Callable[[], Columns]]:
        """Return the table of shapes."""
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

    def blocks(self) -> Iterator[Block]:
        """Yield their number, and the first ones."""
        result = self._result
        yield Text((Line(short(result), "strong"),))
        rows: list[tuple[Cell, ...]] = []
        for number, cycles in enumerate(result.cycles.ravel().tolist()):
            bound, reason = result.bound_by.flat[number], result.reasons.flat[number]
            cells = (cycles, str(bound), "") if reason is None else (None, "refused", str(reason))
            rows.append((self._index(number), *cells))
        yield PageTable("", ("index", "cycles", "bound by", ""), tuple(rows), numbers=(0, 1), most=_SHOWN)
        shown = [number for number in range(len(rows[:_SHOWN])) if result.reasons.flat[number] is None]
        causes = [cause for cause in Cause if cause in result.causes]
        series = (
            Series(str(cause), tuple(int(result.causes[cause].flat[number]) for number in shown), identifier(cause))
            for cause in causes
        )
        yield Bars("", "cycles", tuple(map(self._index, shown)), tuple(series))

    def _index(self, number: int) -> str:
        return ", ".join(map(str, map(int, np.unravel_index(number, self._result.cycles.shape))))

    def draw(self, figure: Figure) -> None:
        """Draw cycles over the argument that varies along the last index, one line per other combination."""
        across, others = self._varying(last=True), self._varying(last=False)
        label = f"{across[0]}, elements" if len(across) == 1 else f"index of the shape ({', '.join(across)})"
        axes = notebooks.curve_axes(figure, short(self._result), label.removesuffix(" ()"), "cycles")
        cycles = np.atleast_1d(np.asarray(self._result.cycles, np.float64))
        for number, index in enumerate(np.ndindex(cycles.shape[:-1])):
            sizes = self._result.extents[across[0]][index] if len(across) == 1 else np.arange(cycles.shape[-1])
            names = [f"{name} {self._result.extents[name][index][0]:,}" for name in others]
            color = SERIES[number % len(SERIES)]
            axes.plot(sizes, cycles[index], marker=".", color=color, label=", ".join(names) or None)
        if others:
            axes.legend(frameon=False, fontsize="small")

    def _varying(self, *, last: bool) -> list[str]:
        """Return the arguments that vary along the last index, or only along the earlier ones."""
        given = {name: sizes for name, sizes in self._result.extents.items() if sizes.ndim and sizes.size}
        along = [name for name, sizes in given.items() if (sizes != sizes[..., :1]).any()]
        return along if last else [name for name, sizes in given.items() if name not in along and np.ptp(sizes)]


# Simulated against measured cycles in a notebook.

_PEER = "public model"


class AccuracyPresentation(DrawnPresentation):
    """Presentation of measurement tables: their rows, and the curves that these form."""

    def __init__(self, result: object) -> None:
        assert isinstance(result, AccuracyTables)
        self._result = result

    def tables(self) -> Mapping[str, Callable[[], Columns]]:
        """Return the tables of rows and curves."""
        return {"rows": self._rows, "curves": self._curves}

    def _rows(self) -> Columns:
        rows = self._result.rows
        cycles = ("measured_cycles", "measured_high", "simulated_cycles", "error")
        return {
            **record_columns(AssessedRow, rows, "target"),
            "file": [Path(entry.row.span.file).name for entry in rows],
            "line": integers(entry.row.span.line for entry in rows),
            **record_columns(AssessedRow, rows, "operation"),
            "src": [entry.row.src.name for entry in rows],
            "dst": [entry.row.dst.name for entry in rows],
            "path": [entry.row.path for entry in rows],
            **record_columns(AssessedRow, rows, "convention", "simulated_rows", "simulated_cols", *cycles),
            "public_model_cycles": numbers(entry.row.predicted for entry in rows),
            **record_columns(AssessedRow, rows, "predicted_error", "reason"),
        }

    def _curves(self) -> Columns:
        names = ("target", "operation", "src", "dst", "path", "rows", "mean", "median", "maximum", "public_model")
        return record_columns(ErrorCurve, self._result.curves, *names)

    more = "are in to_frame('curves')"

    def blocks(self) -> Iterator[Block]:
        """Yield the page of the tables without its charts."""
        yield Text((Line(short(self._result), "strong"),))
        for section in accuracy_page(self._result.as_json()).sections:
            yield from (block for block in section.blocks if not isinstance(block, ResultsView))

    def draw(self, figure: Figure) -> None:
        """Draw simulated over measured cycles, and the distribution of errors."""
        rows = self._result.rows
        own = [(measured.row.measured_cycles, measured.simulated_cycles) for measured in rows]
        peer = [
            (measured.row.measured_cycles, measured.row.predicted)
            for measured in rows
            if measured.row.predicted is not None
        ]
        groups = {name: (pairs, colour) for name, pairs, colour in _groups(own, peer) if pairs}
        notebooks.compared(figure, groups, short(self._result))


def _groups(
    own: list[tuple[int, int]], peer: list[tuple[int, int]]
) -> tuple[tuple[str, list[tuple[int, int]], str], ...]:
    """Return pairs of measured and predicted cycles by predictor, with the simulation on top."""
    return (_PEER, peer, SERIES[1]), ("simulation", own, SERIES[0])


# A conformance matrix in a notebook.

_MOST_CELLS = 60
"""Maximum number of casts that HTML lists."""

_COLOURS = {
    Verdict.EXACT: TONES["sound"][0],
    Verdict.CONFORMS: TONES["optional"][0],
    Verdict.DIFFERS: TONES["bad"][0],
}
"""Colours of verdicts."""


class ConformancePresentation(DrawnPresentation):
    """Presentation of every cast of a specification on every target."""

    def __init__(self, result: object) -> None:
        assert isinstance(result, Matrix)
        self._result = result

    def tables(self) -> Mapping[str, Callable[[], Columns]]:
        """Return the table of cells."""
        return {"cells": self._cells}

    def _cells(self) -> Columns:
        entries = self._result.entries
        return {
            "src": [entry.cell.src for entry in entries],
            "dst": [entry.cell.dst for entry in entries],
            "attributes": [setting_text(entry.cell.attributes) for entry in entries],
            "target": [entry.cell.target for entry in entries],
            "way": [entry.kind.value for entry in entries],
            "verdict": [entry.verdict.value for entry in entries],
            "path": [" -> ".join(entry.path) for entry in entries],
            "instructions": [", ".join(entry.instructions) for entry in entries],
            "options": [setting_text(entry.settings) for entry in entries],
            "method": [entry.method and entry.method.value for entry in entries],
            "proven": np.array([entry.proven for entry in entries], np.bool_),
            "cycles_per_element": numbers(entry.cycles_per_element for entry in entries),
            "answer": [cell_text(entry) for entry in entries],
        }

    def blocks(self) -> Iterator[Block]:
        """Yield the number of conforming cells by target, and the answers by cast."""
        result = self._result
        yield Text((Line(short(result), "strong"),))
        yield from text_blocks([conform_totals(result)])
        cast_rows = [(cast, result.row(number)) for number, cast in enumerate(result.casts)]
        rows = [(cast_text(cast, row[0]), *map(cell_text, row)) for cast, row in cast_rows]
        yield PageTable("", ("cast", *result.targets), tuple(rows), most=_MOST_CELLS)

    def draw(self, figure: Figure) -> None:
        """Draw a square per cast and target in the colour of its verdict."""
        result = self._result
        order = [*_COLOURS]
        places = np.array([order.index(entry.verdict) for entry in result.entries], np.int64)
        grid = places.reshape(len(result.casts), len(result.targets))
        names = [cast_text(cast, result.row(number)[0]) for number, cast in enumerate(result.casts)]
        colours = {verdict.value: colour for verdict, colour in _COLOURS.items()}
        notebooks.verdict_grid(figure, grid, names, result.targets, colours, short(result))


# The lowering of a cast in a notebook.


class LoweringPresentation(Presentation):
    """Presentation of the steps by which a target performs a cast."""

    def __init__(self, result: object) -> None:
        assert isinstance(result, Answer)
        self._result = result

    def tables(self) -> Mapping[str, Callable[[], Columns]]:
        """Return the table of steps."""
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

    def blocks(self) -> Iterator[Block]:
        """Yield the text report, and the program."""
        result = self._result
        yield from text_blocks(answer_parts(result))
        if result.text is not None:
            yield Folded("program", (Listing("", result.text.rstrip("\n")),))
