"""The operations of a run that a drawing shows: those that occupy their pipe in some cycles."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from castsim.isa.errors import ReadError
from castsim.reports.numbers import grouped
from castsim.running import Result
from castsim.timing import WAITING, Cause, OperationTiming

_WAITS = (Cause.FLAG_WAIT, Cause.BARRIER)
"""Causes of operations that do nothing but wait, and work for a moment at the end."""

READ = 1_000_000
"""Operations that are looked at for a drawing, from the first on."""


@dataclass(frozen=True, slots=True)
class ShownOperation:
    """Cycles [start, end) from the first work of a pipe for an operation to its last effect; of waits only their work.

    `name` is that of the instruction, by which it has its colour; `title` says all of it.
    """

    pipe: str
    start: int
    end: int
    name: str
    title: str


@dataclass(frozen=True, slots=True)
class ShownWindow:
    """The operations in cycles [start, end), in issue order; `cut` says in words what is missing, '' if nothing is."""

    start: int
    end: int
    pipes: tuple[str, ...]
    operations: tuple[ShownOperation, ...]
    cut: str


def shown_window(result: Result, start: int, end: int | None, most: int) -> ShownWindow:
    """Return what cycles [start, end) of a run show, of at most so many operations.

    `end` None is the end of the run, or of the operations where there are more.

    Raises:
        ReadError: the cycles are none of the run's.
        EngineError: the run has no cycles.
    """
    total = result.cycles
    last = total if end is None else end
    if not 0 <= start < last <= total and (start, last) != (0, 0):
        raise ReadError(f"no cycles {start} to {last}: the run takes {total}", legal=(f"0 to {total}",))
    found: list[ShownOperation] = []
    behind = _Reading(result)
    for operation in behind:
        if len(found) == most:
            behind.cut = True
            break
        if operation.start < last and operation.end > start:
            shown = _shown(result, operation)
            if shown.start < last:
                found.append(shown)
    cut = ""
    if behind.cut:
        last = last if end is not None else max((each.end for each in found), default=last)
        cut = f"the first {grouped(len(found))} operations drawn, of {grouped(len(result.timing.operations))} in all"
    working = {each.pipe for each in found}
    pipes = tuple(pipe for pipe in result.pipes if pipe in working)
    return ShownWindow(start, last, pipes, tuple(found), cut)


class _Reading:
    """The operations that occupy a pipe, in issue order; `cut` tells whether there were more than are looked at."""

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
    place = "inserted" if instruction.inserted else f"line {instruction.span.line}"
    spent = ", ".join(f"{cause} {grouped(cycles)}" for cause, cycles in operation.causes.items() if cycles)
    title = (
        f"{instruction.text} ({place}), {operation.name} on {operation.pipe}: "
        f"cycles {grouped(operation.start)} to {grouped(operation.end)} ({spent})"
    )
    start = operation.start
    if any(operation.causes.get(cause) for cause in _WAITS):
        start = operation.end - sum(cycles for cause, cycles in operation.causes.items() if cause not in WAITING)
    return ShownOperation(operation.pipe, start, operation.end, instruction.name, title)
