"""Operations of a window with the cycles of their lives, their dependences, and the critical path.

An operation is *dispatched* in the cycle in which the scalar unit has finished sending it (on a core that issues
bundles, in the first cycle in which the bundle could issue without a stall), *starts* when its pipe begins to work for
it, has *executed* when its last effect is complete, and *retires* once everything before it in program order has
executed too. Waits for flags, barriers, and operations that take no pipe time start in the cycle in which they end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from textwrap import wrap

from castsim.execution.pipe_operations import FlagSignal, FlagWait, PipeBarrier
from castsim.execution.timing import WAITING, Cause, Execution, OperationTiming, Timing, repeated
from castsim.execution.tree import Access, Lowered, Tree, accesses, instances, operations
from castsim.isa.dataclass import dataclass
from castsim.reports.views.recording import PipeSegment, SegmentRecorder, Window, cut_segment
from castsim.running.program_runs import listed


@dataclass(frozen=True, slots=True)
class DrawnOperation:
    """One operation: cycles as defined above, `end` is the first cycle after its last effect.

    `index` counts operations in issue order, `execution` counts executed instructions, `line` is the source line,
    0 for operations that are not in the source.
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
    """One executed instruction, in the window or not: [start, end) is its execution, as in `Timing.executions`.

    `since` is the cycle of the first sign of it, at the latest that of its start. `pipe` is that of its main work.
    `synchronises` marks flags and barriers, which do nothing else. `first` is the number of its first operation on
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
    `sent` are those that the scalar unit was still sending at its end. `spans` are the instructions of both.
    `segments` are in order of start, cut to the window; `cut` is the cycle after which there were too many to keep. No
    instruction after the first `executions` has begun in the window.
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
        """Return whether the beginning of a cycle, or the end of the run, lies in the window."""
        return self.start <= cycle < self.end or cycle == self.end == self.total

    def by_operation(self) -> Mapping[int, list[PipeSegment]]:
        """Return the segments of each operation on the pipe that executes it, in order."""
        pipe_of = {row.index: row.pipe for row in self.rows}
        segments: dict[int, list[PipeSegment]] = {}
        for segment in self.segments:
            if segment.operation is not None and pipe_of.get(segment.operation) == segment.pipe:
                segments.setdefault(segment.operation, []).append(segment)
        return segments


def make_timeline(title: str, tree: Tree, timing: Timing, recorder: SegmentRecorder, window: Window) -> Timeline:
    """Join recorded segments and timed operations; any engine serves, because all give the same cycles.

    Raises:
        ReadError: the window reaches beyond the run.
    """
    start, end = window.within(timing.total)
    if recorder.cut is not None:
        end = min(end, recorder.cut)
    kept = [
        cut_segment(segment, start, end) for segment in recorder.segments if segment.start < end and segment.end > start
    ]
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
        all_rows = tuple(_rows(tree, timing, recorder, waits, members, before))
        shown = [row for row in all_rows if row.retired >= start and _known(row, recorder) < end]
        if shown:
            executions = number + 1
            rows += shown
            execution = timing.executions[number]
            spans.append(
                _span(tree.instructions[execution.instruction].pipe, execution, all_rows, synchronises, recorder)
            )
    return Timeline(
        title=title,
        start=start,
        end=end,
        total=timing.total,
        pipes=tuple(timing.pipes),
        rows=tuple(row for row in rows if min(row.dispatched, row.start) < end),
        sent=tuple(row for row in rows if min(row.dispatched, row.start) >= end),
        spans=tuple(spans),
        segments=tuple(sorted(kept, key=lambda segment: (segment.start, segment.end, segment.pipe))),
        executions=executions,
        cut=recorder.cut,
    )


class _Numbered:
    """The executed instructions of a tree, retrieved by ascending numbers."""

    def __init__(self, tree: Tree) -> None:
        self._instances = enumerate(instances(tree))
        self._known: dict[int, tuple[frozenset[int], bool]] = {}

    def waits(self, number: int) -> tuple[frozenset[int], bool]:
        """Return the operations of an execution, counted from 0, that only wait for a flag or at a barrier.

        The second item tells whether the execution only synchronises.
        """
        lowered = next(lowered for reached, (lowered, _) in self._instances if reached == number)
        if id(lowered) not in self._known:
            self._known[id(lowered)] = _waits(lowered)
        return self._known[id(lowered)]


def _waits(lowered: Lowered) -> tuple[frozenset[int], bool]:
    kinds = tuple(type(operation) for operation in operations(lowered, None))
    waits = frozenset(number for number, kind in enumerate(kinds) if issubclass(kind, FlagWait | PipeBarrier))
    return waits, bool(kinds) and all(issubclass(kind, FlagWait | PipeBarrier | FlagSignal) for kind in kinds)


def _rows(
    tree: Tree,
    timing: Timing,
    recorder: SegmentRecorder,
    waits: frozenset[int],
    members: tuple[OperationTiming, ...],
    retired: int,
) -> Iterator[DrawnOperation]:
    """Yield the operations of one execution; everything before it has retired in cycle `retired`."""
    instruction = tree.instructions[timing.executions[members[0].execution].instruction]
    for index, operation in enumerate(members):
        retired = max(retired, operation.end)
        works = index not in waits and bool(operation.causes)
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


def _dispatched(operation: OperationTiming, recorder: SegmentRecorder) -> int:
    """Return the cycle in which an operation was dispatched, or that of its start if no other is known."""
    segment = recorder.first.get(operation.index)
    if segment is None or segment.start >= operation.start:
        return operation.start
    # The scalar unit is busy with sending an operation; a bundle stands still, in every slot, before its issue.
    sending = segment.cause is Cause.BUSY and segment.pipe != operation.pipe
    return segment.end - 1 if sending else segment.start


def _known(row: DrawnOperation, recorder: SegmentRecorder) -> int:
    """Return the first cycle that went to an operation on any pipe."""
    segment = recorder.first.get(row.index)
    return min(row.dispatched, row.start) if segment is None else min(row.dispatched, row.start, segment.start)


def _span(
    main: str, execution: Execution, rows: tuple[DrawnOperation, ...], synchronises: bool, recorder: SegmentRecorder
) -> ExecutionSpan:
    last = max(rows, key=lambda row: (row.end, row.index))
    first = next((row for row in rows if row.pipe == main), rows[0])
    return ExecutionSpan(
        execution=first.execution,
        pipe=first.pipe if main not in {row.pipe for row in rows} else main,
        since=min(execution.start, *(_known(row, recorder) for row in rows)),
        start=execution.start,
        end=execution.end,
        synchronises=synchronises,
        text=first.text,
        line=first.line,
        first=first.index,
        last=last.index,
    )


# The dependences between the operations of a window: flags and the bytes of buffers and tensors, by the tree.


@dataclass(frozen=True, slots=True)
class Dependence:
    """`consumer` depends on `producer`; both are operation numbers, `why` names the flag or the bytes."""

    producer: int
    consumer: int
    why: str


def dependences(tree: Tree, timeline: Timeline) -> tuple[Dependence, ...]:
    """Return the dependences between operations of the window, flags first.

    A wait depends on the set that it consumes: sets and waits of one flag pair up in order. An instruction that reads
    bytes depends on the last one that wrote any of them; its first operation on the pipe of its main work represents
    it, and the operation that ends last represents the writer. Programs of bundles name no bytes, so they have none.
    """
    return (*_of_flags(tree, timeline), *_of_bytes(tree, timeline))


def _of_flags(tree: Tree, timeline: Timeline) -> Iterator[Dependence]:
    shown = {row.index for row in timeline.rows}
    last = max(shown, default=-1)
    sets: dict[tuple[str, str, int], list[int]] = {}
    waits: dict[tuple[str, str, int], list[int]] = {}
    index = 0
    for lowered, _ in instances(tree):
        if index > last:
            break
        for operation in operations(lowered, None):  # no loop moves a flag
            if isinstance(operation, FlagSignal):
                sets.setdefault((operation.pipe, operation.waiter, operation.event), []).append(index)
            elif isinstance(operation, FlagWait):
                waits.setdefault((operation.signaller, operation.pipe, operation.event), []).append(index)
            index += 1
    for key, consumers in waits.items():
        for producer, consumer in zip(sets.get(key, ()), consumers, strict=False):
            if producer in shown and consumer in shown:
                yield Dependence(producer, consumer, f"flag {key[0]} -> {key[1]} id {key[2]}")


def _of_bytes(tree: Tree, timeline: Timeline) -> Iterator[Dependence]:
    shown = {row.index for row in timeline.rows}
    spans = {span.execution: span for span in timeline.spans}
    written: dict[str, list[tuple[Access, int]]] = {}
    last = max(spans, default=-1)
    for number, (lowered, deltas) in enumerate(instances(tree)):
        if number > last:
            break
        if number not in spans:
            continue
        touched = accesses(lowered, deltas)
        consumer = spans[number].first
        for access in (candidate for candidate in touched if not candidate.write):
            for writer, who in reversed(written.get(access.space, ())):
                if _overlap(writer, access):
                    producer = spans[who].last
                    if producer in shown and consumer in shown:
                        yield Dependence(producer, consumer, f"{access.space} bytes {_common(writer, access)}")
                    break
        for access in (candidate for candidate in touched if candidate.write):
            writers = written.setdefault(access.space, [])
            writers[:] = [(old, who) for old, who in writers if old.start < access.start or old.end > access.end]
            writers.append((access, number))


def _overlap(first: Access, other: Access) -> bool:
    """Return whether the extents meet; rows in between that only one of them touches count as meeting."""
    return first.start < other.end and other.start < first.end


def _common(first: Access, other: Access) -> str:
    return f"{max(first.start, other.start)} .. {min(first.end, other.end) - 1}"


# The critical path of a window: the operations one behind the other that take all of its cycles.
#
# It is followed backwards from the operation that ends last. An operation begins to work when whatever it needed ended
# last: the operation before it on its pipe, the setting of the flag that it waited for, what wrote its bytes, or all of
# the operations before a barrier. Where all that had ended earlier, the cycles between belong to the issue: it had not
# been sent yet. Nothing of this is a rule of time; it is read off the cycles that the engines tell.


@dataclass(frozen=True, slots=True)
class PathStep:
    """Cycles [start, end) of the path, spent by `row`, or by issue before it if `row` is None."""

    start: int
    end: int
    row: DrawnOperation | None


@dataclass(frozen=True, slots=True)
class _Known:
    """An operation with the cycles of its pipe: it works from `begin` on, and occupies the pipe until `released`."""

    row: DrawnOperation
    begin: int
    released: int
    at_barrier: bool


def critical_path(timeline: Timeline, edges: Iterable[Dependence]) -> tuple[PathStep, ...]:
    """Return the path in order of its cycles; its steps are disjoint and cover every cycle up to the last end.

    `edges` are the dependences of the window.
    """
    waits = _known_waits(timeline)
    if not waits:
        return ()
    needs: dict[int, list[int]] = {}
    for dependence in edges:
        needs.setdefault(dependence.consumer, []).append(dependence.producer)
    before, barriers = _before_on_pipe(waits), _last_before(waits)
    current: _Known | None = max(waits.values(), key=lambda wait: (wait.row.end, wait.row.index))
    cycle = min(max(known_wait.row.end for known_wait in waits.values()), timeline.end)
    steps: list[PathStep] = []
    while current is not None and cycle > timeline.start:
        begin = max(timeline.start, min(current.begin, cycle))
        if begin < cycle:
            steps.append(PathStep(begin, cycle, current.row))
        cycle, index = begin, current.row.index
        ended = [
            (waits[producer].row.end, producer)
            for producer in needs.get(index, ())
            if producer in waits and producer < index
        ]
        if current.at_barrier and index in barriers:
            ended.append((waits[barriers[index]].row.end, barriers[index]))
        if index in before:
            ended.append((waits[before[index]].released, before[index]))
        possible = [candidate for candidate in ended if candidate[0] <= cycle]
        if not possible:
            break
        last = max(possible, key=lambda candidate: candidate[0])[0]
        # Of what ended in the same cycle, the operation before it on its pipe comes last and is taken.
        current = waits[next(number for end, number in reversed(possible) if end == last)]
        if last < cycle:
            steps.append(PathStep(max(last, timeline.start), cycle, None))
            cycle = max(last, timeline.start)
    if cycle > timeline.start:
        start = timeline.start
        if steps and steps[-1].row is None:
            cycle = steps.pop().end
        steps.append(PathStep(start, cycle, None))
    return tuple(reversed(steps))


def _known_waits(timeline: Timeline) -> Mapping[int, _Known]:
    own = timeline.by_operation()
    return {row.index: _cycles(row, own.get(row.index, ())) for row in timeline.rows}


def _cycles(row: DrawnOperation, segments: Sequence[PipeSegment]) -> _Known:
    work = [segment for segment in segments if segment.cause not in WAITING]
    waits = len(work) < len(segments)
    released = max((segment.end for segment in segments), default=row.end)
    begin = work[0].start if work and not (waits and row.start == row.end) else released
    return _Known(row, begin, released, any(segment.cause is Cause.BARRIER for segment in segments))


def _before_on_pipe(waits: Mapping[int, _Known]) -> Mapping[int, int]:
    """Return for each operation the previous one on its pipe."""
    last: dict[str, int] = {}
    previous: dict[int, int] = {}
    for index in sorted(waits):
        pipe = waits[index].row.pipe
        if pipe in last:
            previous[index] = last[pipe]
        last[pipe] = index
    return previous


def _last_before(waits: Mapping[int, _Known]) -> Mapping[int, int]:
    """Return for each operation the earlier one, on any pipe, that ended last."""
    latest: dict[int, int] = {}
    last: int | None = None
    for index in sorted(waits):
        if last is not None:
            latest[index] = last
        if last is None or waits[index].row.end >= waits[last].row.end:
            last = index
    return latest


# The pipeline view as text, in the notation of llvm-mca's timeline.
#
# One row per operation, one column per cycle: D dispatched, = waiting in the queue, e executing, E executed (the last
# cycle of execution), - waiting to retire, R retired. Where several fall into one cycle (a bundle executes from the
# cycle in which it is issued, a flag takes no time), R goes before E before D. Empty cells show a dot in every fifth
# column. Operations that wait all the time, in a queue or to retire, have no row: they are counted.

LEGEND = "D dispatched, = waiting, e executing, E executed, - waiting to retire, R retired"
NARROWEST = 20
"""Minimum number of cycles per panel, however narrow the terminal."""

_RULER = "0123456789"
_MARK = 5
_CUT = "..."


def pipeline_lines(timeline: Timeline, width: int) -> Iterator[str]:
    """Yield the lines of the view for a terminal of `width` columns, in panels of as many cycles as fit."""
    if timeline.end <= timeline.start:
        yield "timeline: no cycles"
        return
    yield f"timeline: cycles {timeline.start:,} to {timeline.end - 1:,} of {timeline.total:,}"
    yield from wrap(LEGEND, max(width, NARROWEST))
    if timeline.cut is not None:
        yield f"the view ends in cycle {timeline.end}: more would not fit into memory; choose a later window"
    rows = [row for row in timeline.rows if _acts(row, timeline)]
    yield from _left_out([row for row in timeline.rows if not _acts(row, timeline)], timeline)
    labels = [f"[{row.index}] {row.pipe:<{_pipe_width(timeline)}} " for row in rows]
    margin = max((len(label) for label in labels), default=0)
    names = [f"  {_described(row)}" for row in rows]
    room = width - margin - max((len(name) for name in names), default=0)
    step = max(room // 10 * 10, NARROWEST)
    names = [_shortened(name, width - margin - step) for name in names]
    for start in range(timeline.start, timeline.end, step):
        end = min(start + step, timeline.end)
        yield ""
        yield from _ruler(start, end, margin)
        for row, label, name in zip(rows, labels, names, strict=True):
            if _first(row) < end and row.retired >= start:
                yield f"{label:<{margin}}{cells(row, start, end)}{name}"


def cells(row: DrawnOperation, start: int, end: int) -> str:
    """Return the letters of one operation in cycles [start, end)."""
    return "".join(_letter(row, cycle) or ("." if cycle % _MARK == 0 else " ") for cycle in range(start, end))


def _letter(row: DrawnOperation, cycle: int) -> str:
    """Return the letter of a cycle, empty outside the operation's life."""
    if cycle < _first(row) or cycle > row.retired:
        return ""
    if cycle == row.retired:
        return "R"
    if cycle == row.end - 1 and row.end > row.start:
        return "E"
    if cycle == row.dispatched:
        return "D"
    if cycle < row.start:
        return "="
    return "e" if cycle < row.end else "-"


def _acts(row: DrawnOperation, timeline: Timeline) -> bool:
    """Return whether an operation changes state in the window: it is dispatched, works, or stops waiting."""
    moments = (_first(row), row.retired)
    works = row.start < timeline.end and row.end > timeline.start
    return works or any(timeline.start <= moment < timeline.end for moment in moments)


def _left_out(rows: Sequence[DrawnOperation], timeline: Timeline) -> Iterator[str]:
    """Yield a line about the operations that wait all the time, if there are any."""
    queued = sum(row.end > timeline.start for row in rows)
    counts = ((queued, "in a queue"), (len(rows) - queued, "to retire"))
    notes = [f"{count} {where}" for count, where in counts if count]
    if notes:
        yield f"not shown, as they only wait in these cycles: {', '.join(notes)}"


def _first(row: DrawnOperation) -> int:
    return min(row.dispatched, row.start)


def _described(row: DrawnOperation) -> str:
    where = f"line {row.line}: " if row.line else ""
    return f"{where}{row.name}" if row.name in row.text else f"{where}{row.name} ({row.text})"


def _shortened(name: str, room: int) -> str:
    """Return the part that fits a narrow terminal, with a mark at the cut."""
    return name if len(name) <= room else f"{name[: max(room - len(_CUT), 0)]}{_CUT}"


def _pipe_width(timeline: Timeline) -> int:
    return max(len(pipe) for pipe in timeline.pipes)


def _ruler(start: int, end: int, margin: int) -> Iterator[str]:
    """Yield the full cycle at every tenth column, and the last digits."""
    marks = [" "] * (end - start)
    for cycle in range(-(-start // 10) * 10, end, 10):
        text = str(cycle)
        if cycle - start + len(text) <= len(marks):
            marks[cycle - start : cycle - start + len(text)] = text
    yield " " * margin + "".join(marks).rstrip()
    yield " " * margin + "".join(_RULER[cycle % 10] for cycle in range(start, end))


# The whole run as text, scaled to the width: a row for each line of the source and pipe, several cycles in a column.

_SCALED = {"e": "e executing", "=": "= waiting for other pipes", ".": ". neither"}
"""The letters of the scaled view, each with its meaning."""
_MOST_ROWS = 24
_COPIES = 4
"""Copies of a repeated operation drawn for each column, in place of all."""


def scaled_lines(tree: Tree, timing: Timing, width: int) -> Iterator[str]:
    """Yield a row for each source line and pipe, with enough cycles per column to fit the run into `width`."""
    spans = _spans_by_line(tree, timing, _COPIES * width)
    pipe = max(map(len, timing.pipes), default=0)
    labels = {key: f"{key[0]:>4}  {key[1]:<{pipe}}  {_shortened(key[2], width // 4)}  " for key in spans}
    margin = max((len(label) for label in labels.values()), default=0)
    columns = max(width - margin, NARROWEST)
    step = -(-timing.total // columns)
    yield f"timeline: {timing.total:,} cycles, {step:,} in each column"
    rows = {key: _scaled(own, step, -(-timing.total // step)) for key, own in spans.items()}
    yield ", ".join(meaning for letter, meaning in _SCALED.items() if any(letter in row for row in rows.values()))
    yield ""
    ends = range(0, timing.total, 10 * step)
    yield "line".ljust(margin) + "".join(f"{cycle:<10,}" for cycle in ends).rstrip()[:columns]
    shown = sorted(rows, key=lambda key: -rows[key].count("e"))[:_MOST_ROWS]
    for key in sorted(shown):
        yield f"{labels[key]:<{margin}}{rows[key]}"
    if len(rows) > len(shown):
        yield f"and {len(rows) - len(shown):,} more rows; a --window shows them"


_LineOnPipe = tuple[int, str, str]
"""Line of the source, pipe, name of the instruction."""


def _spans_by_line(tree: Tree, timing: Timing, most: int) -> Mapping[_LineOnPipe, list[tuple[int, int, int]]]:
    """Return (first cycle of waiting, first of executing, end) of every operation, for `most` copies of each."""
    spans: dict[_LineOnPipe, list[tuple[int, int, int]]] = {}
    for operation, last, times in repeated(timing.operations):
        instruction = tree.instructions[timing.executions[operation.execution].instruction]
        if not listed(instruction) or not operation.causes:
            continue
        waits = sum(cycles for cause, cycles in operation.causes.items() if cause in WAITING)
        works = waits < sum(operation.causes.values())
        own = spans.setdefault((instruction.span.line, operation.pipe, instruction.name), [])
        copies = min(times, most)
        for copy in range(copies):
            behind = (last.start - operation.start) * copy // max(1, copies - 1)
            end = operation.end + behind
            start = operation.start + behind if works else end
            own.append((start - waits, start, end))
    return spans


def _scaled(spans: Iterable[tuple[int, int, int]], step: int, columns: int) -> str:
    """Return a letter for each column of `step` cycles."""
    letters = ["."] * columns
    for waiting, start, end in spans:
        for column in range(max(0, waiting) // step, -(-start // step)):
            if letters[column] == ".":
                letters[column] = "="
        for column in range(start // step, -(-end // step)):
            letters[column] = "e"
    return "".join(letters)
