"""Operations of a window with the cycles of their lives, the common source of every view.

An operation is *dispatched* in the cycle in which the scalar unit has done with sending it (on a core that issues
bundles, in the first cycle in which the bundle could go but for a stall), *starts* when its pipe begins to work for
it, has *executed* when its last effect is there, and *retires* once everything before it in program order has executed
as well. Flags and barriers only wait: they start in the cycle in which they end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from simulator.timing import Cause, OperationTiming, Timing
from simulator.tree import Tree
from simulator.views.recording import Recorder, Segment
from simulator.views.window import Window

_WAITS = frozenset({Cause.FLAG_WAIT, Cause.BARRIER})


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
class Timeline:
    """What happened in cycles [start, end) of a run of `total` cycles.

    `segments` are in order of start, cut to the window; `cut` is the cycle after which there were too many to keep.
    """

    title: str
    start: int
    end: int
    total: int
    pipes: tuple[str, ...]
    rows: tuple[Row, ...]
    segments: tuple[Segment, ...]
    cut: int | None

    def by_operation(self) -> Mapping[int, list[Segment]]:
        """Return the segments of each operation on the pipe that executes it, in order."""
        pipe_of = {row.index: row.pipe for row in self.rows}
        found: dict[int, list[Segment]] = {}
        for segment in self.segments:
            if segment.operation is not None and pipe_of.get(segment.operation) == segment.pipe:
                found.setdefault(segment.operation, []).append(segment)
        return found


def make_timeline(title: str, tree: Tree, timing: Timing, recorder: Recorder, window: Window) -> Timeline:
    """Join recorded segments and timed operations.

    Raises:
        ReadError: the window reaches beyond the run.
    """
    start, end = window.within(timing.total)
    if recorder.cut is not None:
        end = min(end, recorder.cut)
    kept = [_cut(each, start, end) for each in recorder.segments if each.start < end and each.end > start]
    rows = _rows(tree, timing, _dispatches(timing, recorder), start, end)
    ordered = sorted(kept, key=lambda each: (each.start, each.end, each.pipe))
    return Timeline(title, start, end, timing.total, tuple(timing.pipes), rows, tuple(ordered), recorder.cut)


def _dispatches(timing: Timing, recorder: Recorder) -> dict[int, int]:
    """Return the cycle in which each operation was dispatched, if that was before its start."""
    found = {}
    for operation in timing.operations:
        segment = recorder.first.get(operation.index)
        if segment is None or segment.start >= operation.start:
            continue
        # The scalar unit is busy with sending an operation; a bundle stands still, in every slot, before its issue.
        sending = segment.cause is Cause.BUSY and segment.pipe != operation.pipe
        found[operation.index] = segment.end - 1 if sending else segment.start
    return found


def _rows(tree: Tree, timing: Timing, dispatched: dict[int, int], start: int, end: int) -> tuple[Row, ...]:
    rows = []
    retired = 0
    for operation in timing.operations:
        retired = max(retired, operation.end)
        sent = dispatched.get(operation.index, operation.start)
        if sent >= end or operation.end < start:
            continue
        instruction = tree.instructions[timing.executions[operation.execution].instruction]
        rows.append(
            Row(
                index=operation.index,
                execution=operation.execution,
                pipe=operation.pipe,
                name=operation.name,
                text=instruction.text,
                line=0 if instruction.inserted else instruction.span.line,
                dispatched=sent,
                start=operation.start if _works(operation) else operation.end,
                end=operation.end,
                retired=retired,
            )
        )
    return tuple(rows)


def _works(operation: OperationTiming) -> bool:
    """Return whether its pipe did something for it: flags and barriers only wait."""
    return bool(operation.causes) and not _WAITS & operation.causes.keys()


def _cut(segment: Segment, start: int, end: int) -> Segment:
    if segment.start >= start and segment.end <= end:
        return segment
    return Segment(segment.pipe, max(segment.start, start), min(segment.end, end), segment.cause, segment.operation)
