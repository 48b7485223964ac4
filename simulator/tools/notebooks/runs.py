"""A run in a notebook: the operations in a drawing, and its frames, blocks and figures."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from castsim.execution.input_data import arrayed
from castsim.execution.timing import WAITING, Cause, OperationTiming
from castsim.isa.dataclass import replace
from castsim.isa.errors import EngineError, LimitError, ReadError
from castsim.reports.documents import identifier
from castsim.reports.numbers import causes_of, grouped, present_causes
from castsim.reports.pages.blocks import Block, Lanes, Line, Packed, PageTable, Text, Tone
from castsim.reports.pages.run_page import cause_bars, line_blocks, summary_lines
from castsim.reports.pages.run_timeline import interval_columns
from castsim.reports.run_report import RunReport
from castsim.running.program_runs import Result, source_lines
from castsim.tools import notebooks
from castsim.tools.notebooks.presentation import (
    Column,
    Columns,
    DrawnPresentation,
    ShownOperation,
    ShownWindow,
    colours_of,
    integers,
    meanings,
    numbers,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The operations of a run that a drawing shows: those that occupy their pipe in some cycles.

_WAITS = (Cause.FLAG_WAIT, Cause.BARRIER)
"""Causes of operations that only wait, and work for a moment at the end."""

READ = 1_000_000
"""Maximum number of operations, from the first on, that a drawing considers."""


def shown_window(result: Result, start: int, end: int | None, most: int) -> ShownWindow:
    """Return cycles [start, end) of a run, with a limited number of operations.

    With `end` None, it is the end of the run, or of the considered operations if there are more.

    Raises:
        ReadError: the cycles are outside the run.
        EngineError: the run has no cycles.
    """
    total = result.cycles
    last = total if end is None else end
    if not 0 <= start < last <= total and (start, last) != (0, 0):
        raise ReadError(f"no cycles {start} to {last}: the run takes {total} cycles", legal=(f"0 to {total}",))
    operations: list[ShownOperation] = []
    behind = _IssuedOperations(result)
    for operation in behind:
        if len(operations) == most:
            behind.cut = True
            break
        if operation.start < last and operation.end > start:
            shown = _shown(result, operation)
            if shown.start < last:
                operations.append(shown)
    cut = ""
    if behind.cut:
        last = last if end is not None else max((entry.end for entry in operations), default=last)
        cut = (
            f"the first {grouped(len(operations))} operations drawn, of {grouped(len(result.timing.operations))} in all"
        )
    working = {entry.pipe for entry in operations}
    pipes = tuple(pipe for pipe in result.pipes if pipe in working)
    return ShownWindow(start, last, pipes, tuple(operations), cut)


class _IssuedOperations:
    """Operations that occupy a pipe, in issue order; `cut` tells whether there are more than were considered."""

    def __init__(self, result: Result) -> None:
        self._result = result
        self.cut = False

    def __iter__(self) -> Iterator[OperationTiming]:
        for number, operation in enumerate(self._result.timing.operations):
            if number == READ:
                self.cut = True
                return
            if operation.end > operation.start and any(cause not in WAITING for cause in operation.causes):
                yield operation


def _shown(result: Result, operation: OperationTiming) -> ShownOperation:
    instruction = result.loaded.tree.instructions[result.timing.executions[operation.execution].instruction]
    origin = "inserted" if instruction.inserted else f"line {instruction.span.line}"
    spent = ", ".join(f"{cause} {grouped(cycles)}" for cause, cycles in operation.causes.items() if cycles)
    title = (
        f"{instruction.text} ({origin}), {operation.name} on {operation.pipe}: "
        f"cycles {grouped(operation.start)} to {grouped(operation.end)} ({spent})"
    )
    start = operation.start
    if any(operation.causes.get(cause) for cause in _WAITS):
        start = operation.end - sum(cycles for cause, cycles in operation.causes.items() if cause not in WAITING)
    return ShownOperation(operation.pipe, start, operation.end, instruction.name, title)


# A run as frames, blocks and figures.

MOST_ROWS = 2_000_000
"""Maximum number of operations in a frame: about 300 MB."""

_DRAWN = 20_000
"""Maximum number of operations in a notebook's timeline."""

_MOST_DRAWN = 100_000
"""Maximum number of operations in a figure."""

_LINES = 5
"""Maximum number of program lines shown, those with the most pipe cycles."""


class RunPresentation(DrawnPresentation):
    """Presentation of a run: its operations, its causes by pipe, its lines."""

    def __init__(self, result: object) -> None:
        assert isinstance(result, Result)
        self._result = result

    def tables(self) -> Mapping[str, Callable[[], Columns]]:
        """Return the tables of operations, causes and lines."""
        return {"operations": self._operations, "causes": self._causes, "lines": self._lines}

    def _operations(self) -> Columns:
        result = self._timed()
        timing, instructions = result.timing, result.loaded.tree.instructions
        rows = len(timing.operations)
        if rows > MOST_ROWS:
            raise LimitError(
                f"{grouped(rows)} operations exceed the limit of a data frame, {grouped(MOST_ROWS)}",
                legal=("causes", "lines"),
            )
        order = ("operation", "execution", "line", "start", "end", "pipe_cycles")
        counts = {name: array("q", bytes(8 * rows)) for name in order}
        causes = {cause: array("q", bytes(8 * rows)) for cause in present_causes(result.pipes)}
        text, pipe, names = list[str](), list[str](), list[str]()
        number, execution, lines, start, end, spent = counts.values()
        sources = [0 if instruction.inserted else instruction.span.line for instruction in instructions]
        places = integers(executed.instruction for executed in timing.executions).tolist()
        for row, operation in enumerate(timing.operations):
            index = places[operation.execution]
            number[row], execution[row], lines[row] = operation.index, operation.execution, sources[index]
            start[row], end[row], spent[row] = operation.start, operation.end, sum(operation.causes.values())
            text.append(instructions[index].text)
            pipe.append(operation.pipe)
            names.append(operation.name)
            for cause, cycles in operation.causes.items():
                if cycles:
                    causes[cause][row] = cycles
        columns: dict[str, Column] = {name: np.frombuffer(column, np.int64) for name, column in counts.items()}
        columns |= {"text": text, "pipe": pipe, "name": names}
        shown = ("operation", "execution", "line", "text", "pipe", "name", "start", "end", "pipe_cycles")
        parts = {cause: np.frombuffer(column, np.int64) for cause, column in causes.items()}
        return {name: columns[name] for name in shown} | {
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
        entries = source_lines(result.loaded.tree, result.timing)
        return {
            "line": integers(entry.span.line for entry in entries),
            "text": [entry.text for entry in entries],
            "pipe": [entry.pipe for entry in entries],
            "executions": integers(entry.executions for entry in entries),
            "first_start": integers(entry.first_start for entry in entries),
            "last_end": integers(entry.last_end for entry in entries),
            "cycles": integers(entry.cycles for entry in entries),
            "pipe_cycles": integers(entry.pipe_cycles for entry in entries),
            "share": numbers(entry.pipe_cycles / max(result.cycles, 1) for entry in entries),
            "source": [entry.span.excerpt() for entry in entries],
        }

    def _timed(self) -> Result:
        """Return the result if it has cycles.

        Raises:
            EngineError: the result has no cycles.
        """
        if self._result.untimed:
            raise EngineError(self._result.untimed)
        return self._result

    more = "are in to_frame('lines')"

    def blocks(self) -> Iterator[Block]:
        """Yield the answer, the pipes with their causes, a timeline, the costliest lines, the outputs."""
        result = self._result
        yield Text((Line(self._head()),))
        if result.untimed:
            yield Text((Line(f"no cycles: {result.untimed}", "strong"),))
        else:
            report = RunReport.of(replace(result, outputs={}), {})  # whose digests nobody sees here
            yield Text(tuple(summary_lines(report)))
            yield cause_bars(report)
            yield from self._lanes()
            yield from (replace(block, most=_LINES) for block in line_blocks(report) if isinstance(block, PageTable))
        if result.outputs:
            outputs = ", ".join(f"{name} {arrayed(output)}" for name, output in result.outputs.items())
            yield Text((Line(f"outputs: {outputs}"),))

    def _lanes(self) -> Iterator[Lanes]:
        window = shown_window(self._result, 0, None, _DRAWN)
        if not window.operations:
            return
        colours = colours_of(operation.name for operation in window.operations)
        legend = meanings(colours)
        tones = {colour: number for number, colour in enumerate(legend)}
        rows: dict[str, list[tuple[int, int, int, int]]] = {pipe: [] for pipe in window.pipes}
        for item, operation in enumerate(window.operations, 1):
            rows[operation.pipe].append((operation.start, operation.end, tones[colours[operation.name]], item))
        columns = interval_columns(rows.values(), window.start)
        columns["texts"] = [[shown_operation.title] for shown_operation in window.operations]
        yield Lanes(
            "", "cycles", window.start, window.end, window.pipes,
            tuple(Tone(name, colour) for colour, name in legend.items()), Packed(columns),
            notes=(window.cut,) if window.cut else (),
        )  # fmt: skip

    def draw(self, figure: Figure) -> None:
        """Draw the cycles of every pipe by cause."""
        result = self._timed()
        title = f"{self._head()}: {grouped(result.cycles)} cycles"
        notebooks.cause_bars(figure, {name: pipe.causes for name, pipe in result.pipes.items()}, title)

    def timeline(self, start: int, end: int | None) -> Figure:
        """Return a figure of the operations in cycles [start, end); `end` None is the end of the run.

        Raises:
            ReadError: the cycles are outside the run, or matplotlib is not installed.
            EngineError: the run has no cycles.
        """
        from castsim.tools.notebooks.figures import empty_figure, operation_lanes  # noqa: PLC0415 - matplotlib

        window = shown_window(self._result, start, end, _MOST_DRAWN)
        figure = empty_figure()
        operation_lanes(figure, window, f"{self._head()}: cycles {grouped(window.start)} to {grouped(window.end)}")
        return figure

    def _head(self) -> str:
        loaded = self._result.loaded
        return f"{loaded.title} on {loaded.target.name}"


def timeline_of(result: Result, start: int, end: int | None) -> Figure:
    """Return a figure of a run's operations in cycles [start, end); `end` None is the end of the run.

    Raises:
        ReadError: the cycles are outside the run, or matplotlib is not installed.
        EngineError: the run has no cycles.
    """
    return RunPresentation(result).timeline(start, end)
