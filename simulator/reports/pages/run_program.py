"""The program of a run with the cycles of its lines and their causes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from castsim.reports.documents import identifier
from castsim.reports.launches import written_launches
from castsim.reports.pages.blocks import Program, SourceRow
from castsim.running import Result
from castsim.timing import WAITING, Cause, repeated

_MOST_LINES = 6000
"""Lines that are shown with those around them; of longer programs, only those that cost cycles."""


@dataclass(slots=True)
class _Cost:
    """The cycles of a line by cause, of its pipes together, and how often its instructions were executed."""

    causes: dict[Cause, int] = field(default_factory=dict)
    executions: int = 0
    inserted: int = 0
    inside: int = 0

    @property
    def cycles(self) -> int:
        return sum(self.causes.values())

    @property
    def work(self) -> int:
        """The cycles in which a pipe was occupied by the line; waiting for another one is no cost of the line."""
        return sum(cycles for cause, cycles in self.causes.items() if cause not in WAITING)


def program_block(result: Result) -> Program:
    """Return the program with what its lines cost: the cycles that pipes spent on them, work and waiting.

    Of the lines inside of a launch it is the cycles of the launch that went to them.
    """
    costs = {} if result.untimed else _costs(result)
    total = 0 if result.untimed else result.cycles
    lines = _lines(result)
    shown = lines if len(lines) <= _MOST_LINES else {number: lines.get(number, "") for number in sorted(costs)}
    cut = "" if shown is lines else f"; of {len(lines)} lines only those with cycles"
    caption = "Cycles that pipes spent on each line; share: those of work, without waits for other pipes, of the run's"
    if any(cost.inside for cost in costs.values()):
        caption += "; lines inside of a launch: the cycles of the launch that went to them, which its own line has too"
    return Program(f"{caption}{cut}.", tuple(_row(number, text, costs, total) for number, text in shown.items()))


def _row(number: int, text: str, costs: Mapping[int, _Cost], total: int) -> SourceRow:
    cost = costs.get(number)
    if cost is None or not (cost.cycles or cost.executions):
        return SourceRow(number, text)
    causes = tuple((identifier(cause), str(cause), cost.causes[cause]) for cause in Cause if cost.causes.get(cause))
    share = cost.work / total if total else 0.0
    return SourceRow(number, text, cost.cycles, share, cost.executions or None, causes, "; ".join(_notes(cost)))


def _notes(cost: _Cost) -> Iterator[str]:
    if cost.inserted:
        yield f"{cost.inserted} of these cycles at inserted flags and barriers"


def _costs(result: Result) -> dict[int, _Cost]:
    tree, timing, file = result.loaded.tree, result.timing, result.loaded.file
    found: dict[int, _Cost] = {}
    executions = timing.executions
    for operation, _, times in repeated(timing.operations):
        instruction = tree.instructions[executions[operation.execution].instruction]
        if instruction.span.file != file:
            continue
        cost = found.setdefault(instruction.span.line, _Cost())
        for cause, cycles in operation.causes.items():
            cost.causes[cause] = cost.causes.get(cause, 0) + times * cycles
        cost.inserted += times * sum(operation.causes.values()) if instruction.inserted else 0
    for execution, _, times in repeated(executions):
        instruction = tree.instructions[execution.instruction]
        if not instruction.inserted and instruction.span.file == file:
            found.setdefault(instruction.span.line, _Cost()).executions += times
    _add_launches(result, found)
    return found


def _add_launches(result: Result, found: dict[int, _Cost]) -> None:
    for launches in written_launches(result.loaded.tree, result.loaded.target):
        for line in launches.lines:
            if line.number is None or line.number == launches.line:
                continue
            cost = found.setdefault(line.number, _Cost())
            cost.executions += line.executions
            cost.inside += line.cycles
            for cause, cycles in line.causes.items():
                cost.causes[cause] = cost.causes.get(cause, 0) + cycles


def _lines(result: Result) -> dict[int, str]:
    """Return the lines of the program; of a binary what its instructions say."""
    source = result.loaded.source
    if source:
        return dict(enumerate(source.split("\n"), 1))
    found: dict[int, list[str]] = {}
    for instruction in result.loaded.tree.instructions:
        texts = found.setdefault(instruction.span.line, [])
        if not instruction.inserted and instruction.text not in texts:
            texts.append(instruction.text)
    return {number: "; ".join(found[number]) for number in sorted(found)}
