"""A run in a notebook."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from castsim.execution.input_data import arrayed
from castsim.execution.timing import limiter, share
from castsim.isa.errors import EngineError, LimitError
from castsim.reports import notebooks
from castsim.reports.documents import identifier
from castsim.reports.notebooks.figures import shown_window
from castsim.reports.notebooks.presentation import (
    Column,
    Columns,
    DrawnPresentation,
    Mark,
    cause_bar,
    cause_colour,
    colours_of,
    integers,
    lanes,
    legend,
    line,
    numbers,
    table,
    whole,
)
from castsim.reports.numbers import causes_of, grouped, present_causes
from castsim.reports.run_cycles import clock, duration
from castsim.reports.run_report import lost_most
from castsim.running.program_runs import Result, source_lines

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
