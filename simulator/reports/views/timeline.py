"""Operations of a window with the cycles of their lives, the common source of every view.

An operation is *dispatched* in the cycle in which the scalar unit has done with sending it (on a core that issues
bundles, in the first cycle in which the bundle could go but for a stall), *starts* when its pipe begins to work for
it, has *executed* when its last effect is there, and *retires* once everything before it in program order has executed
as well. Waits for flags, barriers, and what takes none of its pipe's time start in the cycle in which they end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby

from castsim.execution.dataflow.pipe_operations import Barrier, SetFlag, WaitFlag
from castsim.execution.tree import Lowered, Tree, instances, operations
from castsim.reports.views.recording import PipeSegment, Recorder, Window
from castsim.timing import Cause, Execution, OperationTiming, Timing


@dataclass(frozen=True, slots=True)
class DrawnOperation:
    """One operation: cycles as defined above, `end` being the first cycle after its last effect.

    `index` counts operations in issue order, `execution` instructions as they were executed, `line` is that of the
    source, 0 for what stands in no source.
    """

    index: int
    execution: int
    pipe: str
    name: str
    text: str
    line: int
    dispatched: int
    start: int
    end: int
    retired: int


@dataclass(frozen=True, slots=True)
class ExecutionSpan:
    """One executed instruction, in the window or not: [start, end) is its execution, as `Timing.executions` says.

    `since` is the cycle of the first sign of it, at the latest that of its start. `pipe` is that of its main work.
    `synchronises` says that it does nothing else: flags and barriers. `first` is the number of its first operation on
    its pipe (on any, if it has none there), `last` that of the one that ends last.
    """

    execution: int
    pipe: str
    since: int
    start: int
    end: int
    synchronises: bool
    text: str
    line: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Timeline:
    """The events in cycles [start, end) of a run of `total` cycles.

    `rows` are the operations dispatched before the end of the window and not retired before its start, in issue order;
    `sent` are those that the scalar unit was only about to dispatch at its end. `spans` are the instructions of both.
    `segments` are in order of start, cut to the window; `cut` is the cycle after which there were too many to keep. No
    instruction behind the first `executions` has begun in the window.
    """

    title: str
    start: int
    end: int
    total: int
    pipes: tuple[str, ...]
    rows: tuple[DrawnOperation, ...]
    sent: tuple[DrawnOperation, ...]
    spans: tuple[ExecutionSpan, ...]
    segments: tuple[PipeSegment, ...]
    executions: int
    cut: int | None

    def holds(self, cycle: int) -> bool:
        """Whether the beginning of a cycle, or the end of the run, belongs to the window."""
        return self.start <= cycle < self.end or cycle == self.end == self.total

    def by_operation(self) -> Mapping[int, list[PipeSegment]]:
        """Return the segments of each operation on the pipe that executes it, in order."""
        pipe_of = {row.index: row.pipe for row in self.rows}
        found: dict[int, list[PipeSegment]] = {}
        for segment in self.segments:
            if segment.operation is not None and pipe_of.get(segment.operation) == segment.pipe:
                found.setdefault(segment.operation, []).append(segment)
        return found


def make_timeline(title: str, tree: Tree, timing: Timing, recorder: Recorder, window: Window) -> Timeline:
    """Join recorded segments and timed operations; those of any engine, as all tell the same cycles.

    Raises:
        ReadError: the window reaches beyond the run.
    """
    start, end = window.within(timing.total)
    if recorder.cut is not None:
        end = min(end, recorder.cut)
    kept = [_cut(each, start, end) for each in recorder.segments if each.start < end and each.end > start]
    rows: list[DrawnOperation] = []
    spans: list[ExecutionSpan] = []
    executions = 0
    retired = 0
    lowered = _Numbered(tree)
    for number, group in groupby(timing.operations, key=lambda operation: operation.execution):
        members = tuple(group)
        if recorder.issued is not None and members[0].index >= recorder.issued:
            break
        before, retired = retired, max(retired, *(member.end for member in members))
        if retired < start:
            executions = number + 1
            continue
        waits, synchronises = lowered.waits(number)
        made = tuple(_rows(tree, timing, recorder, waits, members, before))
        shown = [row for row in made if row.retired >= start and _known(row, recorder) < end]
        if shown:
            executions = number + 1
            rows += shown
            execution = timing.executions[number]
            spans.append(_span(tree.instructions[execution.instruction].pipe, execution, made, synchronises, recorder))
    return Timeline(
        title=title,
        start=start,
        end=end,
        total=timing.total,
        pipes=tuple(timing.pipes),
        rows=tuple(row for row in rows if min(row.dispatched, row.start) < end),
        sent=tuple(row for row in rows if min(row.dispatched, row.start) >= end),
        spans=tuple(spans),
        segments=tuple(sorted(kept, key=lambda each: (each.start, each.end, each.pipe))),
        executions=executions,
        cut=recorder.cut,
    )


class _Numbered:
    """The executed instructions of a tree, asked for by ascending numbers."""

    def __init__(self, tree: Tree) -> None:
        self._instances = enumerate(instances(tree))
        self._known: dict[int, tuple[frozenset[int], bool]] = {}

    def waits(self, number: int) -> tuple[frozenset[int], bool]:
        """Return the operations of an execution, counted from 0, that do nothing but wait: for a flag or at a barrier.

        The second item says whether it does nothing but synchronise.
        """
        lowered = next(lowered for reached, (lowered, _) in self._instances if reached == number)
        if id(lowered) not in self._known:
            self._known[id(lowered)] = _waits(lowered)
        return self._known[id(lowered)]


def _waits(lowered: Lowered) -> tuple[frozenset[int], bool]:
    kinds = tuple(type(operation) for operation in operations(lowered, None))
    waits = frozenset(number for number, kind in enumerate(kinds) if issubclass(kind, WaitFlag | Barrier))
    return waits, bool(kinds) and all(issubclass(kind, WaitFlag | Barrier | SetFlag) for kind in kinds)


def _rows(
    tree: Tree,
    timing: Timing,
    recorder: Recorder,
    waits: frozenset[int],
    members: tuple[OperationTiming, ...],
    retired: int,
) -> Iterator[DrawnOperation]:
    """Yield the operations of one execution, everything before which has retired in cycle `retired`."""
    instruction = tree.instructions[timing.executions[members[0].execution].instruction]
    for place, operation in enumerate(members):
        retired = max(retired, operation.end)
        works = place not in waits and bool(operation.causes)
        yield DrawnOperation(
            index=operation.index,
            execution=operation.execution,
            pipe=operation.pipe,
            name=operation.name,
            text=instruction.text,
            line=0 if instruction.inserted else instruction.span.line,
            dispatched=_dispatched(operation, recorder),
            start=operation.start if works else operation.end,
            end=operation.end,
            retired=retired,
        )


def _dispatched(operation: OperationTiming, recorder: Recorder) -> int:
    """Return the cycle in which an operation was dispatched; that of its start, if no other is known."""
    segment = recorder.first.get(operation.index)
    if segment is None or segment.start >= operation.start:
        return operation.start
    # The scalar unit is busy with sending an operation; a bundle stands still, in every slot, before its issue.
    sending = segment.cause is Cause.BUSY and segment.pipe != operation.pipe
    return segment.end - 1 if sending else segment.start


def _known(row: DrawnOperation, recorder: Recorder) -> int:
    """Return the first cycle that went to an operation on any pipe."""
    segment = recorder.first.get(row.index)
    return min(row.dispatched, row.start) if segment is None else min(row.dispatched, row.start, segment.start)


def _span(
    main: str, execution: Execution, made: tuple[DrawnOperation, ...], synchronises: bool, recorder: Recorder
) -> ExecutionSpan:
    last = max(made, key=lambda row: (row.end, row.index))
    first = next((row for row in made if row.pipe == main), made[0])
    return ExecutionSpan(
        execution=first.execution,
        pipe=first.pipe if main not in {row.pipe for row in made} else main,
        since=min(execution.start, *(_known(row, recorder) for row in made)),
        start=execution.start,
        end=execution.end,
        synchronises=synchronises,
        text=first.text,
        line=first.line,
        first=first.index,
        last=last.index,
    )


def _cut(segment: PipeSegment, start: int, end: int) -> PipeSegment:
    if segment.start >= start and segment.end <= end:
        return segment
    return PipeSegment(segment.pipe, max(segment.start, start), min(segment.end, end), segment.cause, segment.operation)
