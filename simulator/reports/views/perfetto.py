"""The trace as Chrome/Perfetto JSON: one process per core; threads for each pipe, its instructions, and their waits.

Times are cycles: the format counts microseconds, so one cycle is written as one of them and `otherData.time_unit` says
so. Every cycle of a pipe belongs to one slice, named after the instruction that it works for or the reason why it does
not; the cycles of launches stand by their lines on one more. Whole instructions stand on threads of their own: their
executions as the report's table has them, and apart from these what they waited for (`instruction_tracks`). Flows are
dependences, counters are queues and buffers. Everything is cut to the window; an arrow is there if the last slice of
its producer and the first of its consumer are.

Source: the Trace Event Format (phases X, M, s/f, C). Process and thread 0 mean 'none' to some readers, so numbers start
at 1.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from castsim.machines.launches import LaunchSlice
from castsim.reports.views.counters import CounterTrack
from castsim.reports.views.dependences import Dependence
from castsim.reports.views.instruction_tracks import InstructionSlice, instruction_slices
from castsim.reports.views.recording import PipeSegment
from castsim.reports.views.timeline import DrawnOperation, Timeline
from castsim.timing import Cause

_PROCESS = 1
_LINES = "inside launches"
_PIECE = 4096
"""Events that are written at once."""
Event = dict[str, Any]


def perfetto_document(
    timeline: Timeline,
    found: Iterable[Dependence],
    counters: Iterable[CounterTrack],
    target: str,
    inside: Iterable[LaunchSlice] = (),
) -> Mapping[str, Any]:
    """Return the JSON document of a window; `inside` are the cycles of launches by line, on a thread of their own."""
    return {"traceEvents": [*_events(timeline, found, counters, target, inside)], **_about(timeline, target)}


def perfetto_text(
    timeline: Timeline,
    found: Iterable[Dependence],
    counters: Iterable[CounterTrack],
    target: str,
    inside: Iterable[LaunchSlice] = (),
) -> Iterator[str]:
    """Yield the text of the same document piece by piece: as a whole, it would take several times what it tells of."""
    write = json.JSONEncoder(allow_nan=False).encode
    yield '{"traceEvents": ['
    events = _events(timeline, found, counters, target, inside)
    first = True
    while piece := [*islice(events, _PIECE)]:
        yield ("" if first else ", ") + write(piece)[1:-1]
        first = False
    yield "], " + write(_about(timeline, target))[1:]


def _about(timeline: Timeline, target: str) -> Mapping[str, Any]:
    """Return what stands behind the events."""
    return {
        "displayTimeUnit": "ns",
        "otherData": {
            "program": timeline.title,
            "target": target,
            "time_unit": "1 us stands for 1 cycle",
            "first_cycle": timeline.start,
            "end_cycle": timeline.end,
            "total_cycles": timeline.total,
            "cut": timeline.cut is not None,
        },
    }


def _events(
    timeline: Timeline,
    found: Iterable[Dependence],
    counters: Iterable[CounterTrack],
    target: str,
    inside: Iterable[LaunchSlice],
) -> Iterator[Event]:
    instructions = instruction_slices(timeline)
    threads = _threads(timeline, instructions)
    lines = [each for each in inside if each.start < timeline.end and each.end > timeline.start]
    threads |= {_LINES: len(threads) + 1} if lines else {}
    yield from _names(threads, target)
    yield from _slices(timeline, threads)
    yield from _moments((row for row in timeline.rows if row.start == row.end and timeline.holds(row.end)), threads)
    yield from (_instruction(each, threads[each.track]) for each in instructions)
    yield from (_line_of_launch(each, timeline, threads[_LINES]) for each in lines)
    yield from _flows(timeline, found, threads)
    for counter in counters:
        for cycle, value in counter.values:
            yield {"ph": "C", "pid": _PROCESS, "ts": cycle, "name": counter.name, "args": {"value": value}}


def _threads(timeline: Timeline, instructions: Iterable[InstructionSlice]) -> dict[str, int]:
    """Return the number of every track by name, in the order in which they are to be shown: each pipe, then its own.

    The numbers of pipes do not depend on the window.
    """
    tracks = sorted({(each.span.pipe, each.cause is not None, len(each.track), each.track) for each in instructions})
    numbers = {name: number for number, name in enumerate((*timeline.pipes, *(track[-1] for track in tracks)), 1)}
    shown = [name for pipe in timeline.pipes for name in (pipe, *(each[-1] for each in tracks if each[0] == pipe))]
    return {name: numbers[name] for name in shown}


def _names(threads: Mapping[str, int], target: str) -> Iterator[Event]:
    yield {"ph": "M", "pid": _PROCESS, "name": "process_name", "args": {"name": f"core 0 ({target})"}}
    for place, (track, number) in enumerate(threads.items()):
        about = {"ph": "M", "pid": _PROCESS, "tid": number}
        yield {**about, "name": "thread_name", "args": {"name": track}}
        yield {**about, "name": "thread_sort_index", "args": {"sort_index": place}}


def _slices(timeline: Timeline, threads: Mapping[str, int]) -> Iterator[Event]:
    rows = {row.index: row for row in (*timeline.rows, *timeline.sent)}
    for segment in timeline.segments:
        if segment.cause is Cause.EMPTY:
            continue
        row = None if segment.operation is None else rows.get(segment.operation)
        working = segment.cause is Cause.BUSY and row is not None
        arguments: Event = {"cause": str(segment.cause)}
        if row is not None:
            arguments |= {"operation": row.index, "name": row.name, "instruction": row.text, "line": row.line}
        yield {
            "ph": "X",
            "pid": _PROCESS,
            "tid": threads[segment.pipe],
            "ts": segment.start,
            "dur": segment.end - segment.start,
            "name": row.name if working and row is not None else str(segment.cause),
            "cat": "work" if working else "stall",
            "args": arguments,
        }


def _moments(rows: Iterable[DrawnOperation], threads: Mapping[str, int]) -> Iterator[Event]:
    """Yield a slice of no length for every operation that takes no time, so that flows have an end to bind to."""
    for row in rows:
        yield {
            "ph": "X", "pid": _PROCESS, "tid": threads[row.pipe], "ts": row.end, "dur": 0, "name": row.name,
            "cat": "moment", "args": {"operation": row.index, "line": row.line},
        }  # fmt: skip


def _line_of_launch(each: LaunchSlice, timeline: Timeline, thread: int) -> Event:
    """Return the slice of a line of a launch, cut to the window."""
    start, end = max(each.start, timeline.start), min(each.end, timeline.end)
    return {
        "ph": "X", "pid": _PROCESS, "tid": thread, "ts": start, "dur": end - start, "name": each.text,
        "cat": "launch", "args": {"cause": str(each.cause), "line": each.number},
    }  # fmt: skip


def _instruction(each: InstructionSlice, thread: int) -> Event:
    """Return the slice of an instruction, executed or waiting; the latter is named after what it waits for."""
    span = each.span
    return {
        "ph": "X",
        "pid": _PROCESS,
        "tid": thread,
        "ts": each.start,
        "dur": each.end - each.start,
        "name": span.text if each.cause is None else each.cause,
        "cat": "instruction" if each.cause is None else "wait",
        "args": {"execution": span.execution, "instruction": span.text, "line": span.line},
    }


def _flows(timeline: Timeline, found: Iterable[Dependence], threads: Mapping[str, int]) -> Iterator[Event]:
    """Yield both ends of every arrow: from the last cycle of the producer into the first of the consumer."""
    rows = {row.index: row for row in timeline.rows}
    own = timeline.by_operation()
    for number, dependence in enumerate(found, 1):
        producer, consumer = rows[dependence.producer], rows[dependence.consumer]
        leaves = _leaves(timeline, producer, own.get(producer.index, ()))
        arrives = _arrives(timeline, consumer, own.get(consumer.index, ()))
        # A program may read too early; no arrow leads back in time.
        if leaves is None or arrives is None or arrives < leaves:
            continue
        about = {"pid": _PROCESS, "cat": "dependence", "id": number, "name": dependence.why}
        yield {"ph": "s", "tid": threads[producer.pipe], "ts": leaves, **about}
        yield {"ph": "f", "bp": "e", "tid": threads[consumer.pipe], "ts": arrives, **about}


def _leaves(timeline: Timeline, row: DrawnOperation, own: Sequence[PipeSegment]) -> int | None:
    """Return the last cycle of an operation's last slice, its moment if it takes no time; None outside the window."""
    if row.start == row.end:
        return row.end if timeline.holds(row.end) else None
    return own[-1].end - 1 if own and row.end <= timeline.end else None


def _arrives(timeline: Timeline, row: DrawnOperation, own: Sequence[PipeSegment]) -> int | None:
    """Return the first cycle of an operation's work, its moment if it takes no time; None outside the window."""
    if row.start == row.end:
        return row.end if timeline.holds(row.end) else None
    return row.start if any(segment.start <= row.start < segment.end for segment in own) else None
