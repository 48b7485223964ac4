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

from simulator.dataflow.operations import Barrier, WaitFlag
from simulator.timing import Cause, OperationTiming, Timing
from simulator.tree import Lowered, Tree, instances, operations
from simulator.views.recording import Recorder, Segment
from simulator.views.window import Window


@dataclass(frozen=True, slots=True)
class Row:
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
class Span:
    """One executed instruction, from the first start of its operations to their last end, in the window or not.

    `first` is the number of its first operation on the pipe of its main work (on any, if it has none there), `last`
    that of the operation that ends last.
    """

    execution: int
    start: int
    end: int
    text: str
    line: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Timeline:
    """What happened in cycles [start, end) of a run of `total` cycles.

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
    rows: tuple[Row, ...]
    sent: tuple[Row, ...]
    spans: tuple[Span, ...]
    segments: tuple[Segment, ...]
    executions: int
    cut: int | None

    def holds(self, cycle: int) -> bool:
        """Return whether what happens at the beginning of a cycle belongs to the window, the end of the run too."""
        return self.start <= cycle < self.end or cycle == self.end == self.total

    def by_operation(self) -> Mapping[int, list[Segment]]:
        """Return the segments of each operation on the pipe that executes it, in order."""
        pipe_of = {row.index: row.pipe for row in self.rows}
        found: dict[int, list[Segment]] = {}
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
    rows: list[Row] = []
    spans: list[Span] = []
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
        made = tuple(_rows(tree, timing, recorder, lowered.waits(number), members, before))
        shown = [row for row in made if row.retired >= start and _known(row, recorder) < end]
        if shown:
            executions = number + 1
            rows += shown
            spans.append(_span(tree.instructions[timing.executions[number].instruction].pipe, made))
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
        self._known: dict[int, frozenset[int]] = {}

    def waits(self, number: int) -> frozenset[int]:
        """Return which operations of an execution, counted from 0, do nothing but wait: for a flag or at a barrier."""
        lowered = next(lowered for reached, (lowered, _) in self._instances if reached == number)
        if id(lowered) not in self._known:
            self._known[id(lowered)] = _waits(lowered)
        return self._known[id(lowered)]


def _waits(lowered: Lowered) -> frozenset[int]:
    kinds = enumerate(operations(lowered, None))
    return frozenset(number for number, operation in kinds if isinstance(operation, WaitFlag | Barrier))


def _rows(
    tree: Tree,
    timing: Timing,
    recorder: Recorder,
    waits: frozenset[int],
    members: tuple[OperationTiming, ...],
    retired: int,
) -> Iterator[Row]:
    """Yield the operations of one execution, everything before which has retired in cycle `retired`."""
    instruction = tree.instructions[timing.executions[members[0].execution].instruction]
    for place, operation in enumerate(members):
        retired = max(retired, operation.end)
        works = place not in waits and bool(operation.causes)
        yield Row(
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
    """Return the cycle in which an operation was dispatched; that of its start, if nothing tells of another."""
    segment = recorder.first.get(operation.index)
    if segment is None or segment.start >= operation.start:
        return operation.start
    # The scalar unit is busy with sending an operation; a bundle stands still, in every slot, before its issue.
    sending = segment.cause is Cause.BUSY and segment.pipe != operation.pipe
    return segment.end - 1 if sending else segment.start


def _known(row: Row, recorder: Recorder) -> int:
    """Return the first cycle that went to an operation on any pipe."""
    segment = recorder.first.get(row.index)
    return min(row.dispatched, row.start) if segment is None else min(row.dispatched, row.start, segment.start)


def _span(main: str, made: tuple[Row, ...]) -> Span:
    last = max(made, key=lambda row: (row.end, row.index))
    first = next((row for row in made if row.pipe == main), made[0])
    start = min(row.start for row in made)
    return Span(first.execution, start, last.end, first.text, first.line, first.index, last.index)


def _cut(segment: Segment, start: int, end: int) -> Segment:
    if segment.start >= start and segment.end <= end:
        return segment
    return Segment(segment.pipe, max(segment.start, start), min(segment.end, end), segment.cause, segment.operation)
