"""The trace as a Kanata log, version 0004: what the Konata pipeline viewer reads.

One instruction of the log is one operation. Stages on lane 0: Ds (dispatched, waiting in the queue), Ex (executing), Cm
(executed, waiting to retire); the causes of stalls stand on lane 1, on top of the stage that they prolong.

The log begins with the first cycle of the window and ends with its end. What was dispatched before stands there from
the first cycle on; what has not retired by the end is left without an R command, its stages closed: a flush would
say that the machine had thrown it away.

Source: the Kanata log format, version 0004 (tab-separated commands C=, C, I, L, S, E, R, W).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from castsim.reports.views.dependences import Dependence
from castsim.reports.views.recording import PipeSegment
from castsim.reports.views.timeline import DrawnOperation, Timeline
from castsim.timing import Cause

_RETIRE = 0
"""Type of an R command: retired, not flushed."""

_WAKEUP = 0
"""Type of a W command: a wake-up by a producer."""

_END, _BEGIN, _LAST = 0, 1, 2
"""Order of commands within a cycle: stages end before others begin, retirement comes last."""


def kanata_lines(timeline: Timeline, found: Iterable[Dependence]) -> Iterator[str]:
    """Yield the lines of the log, without line ends."""
    stalls = timeline.by_operation()
    commands: list[tuple[int, int, int, str]] = []
    first = {row.index: max(_first(row), timeline.start) for row in timeline.rows}
    numbers = {index: number for number, index in enumerate(sorted(first, key=lambda index: (first[index], index)))}
    for row in timeline.rows:
        number = numbers[row.index]
        commands += _life(row, number, timeline)
        commands += _stalls(number, first[row.index], stalls.get(row.index, ()))
    rows = {row.index: row for row in timeline.rows}
    for dependence in found:
        consumer, producer = numbers[dependence.consumer], numbers[dependence.producer]
        if not (timeline.holds(rows[dependence.consumer].start) and timeline.holds(rows[dependence.producer].end)):
            continue
        # Both must have begun in the log, so the arrow stands where the later of them does.
        cycle = max(first[dependence.consumer], first[dependence.producer])
        commands.append((cycle, _BEGIN, max(consumer, producer), f"W\t{consumer}\t{producer}\t{_WAKEUP}"))
    yield from _written(commands, timeline)


def _first(row: DrawnOperation) -> int:
    return min(row.dispatched, row.start)


def _life(row: DrawnOperation, number: int, timeline: Timeline) -> Iterator[tuple[int, int, int, str]]:
    where = f"line {row.line}: " if row.line else ""
    first = _first(row)
    begun = max(first, timeline.start)
    retired = max(row.retired, first)
    yield begun, _BEGIN, number, f"I\t{number}\t{row.index}\t0"
    yield begun, _BEGIN, number, f"L\t{number}\t0\t{_plain(f'{where}{row.pipe} {row.name}')}"
    yield begun, _BEGIN, number, f"L\t{number}\t1\t{_plain(row.text)}"
    for stage, stage_start, stage_end in (
        ("Ds", first, row.start),
        ("Ex", row.start, row.end),
        ("Cm", row.end, retired),
    ):
        start, end = max(stage_start, timeline.start), min(stage_end, timeline.end)
        if start < end:
            yield start, _BEGIN, number, f"S\t{number}\t0\t{stage}"
            yield end, _END, number, f"E\t{number}\t0\t{stage}"
    if timeline.holds(retired):
        # Operations retire in issue order, whatever the order in which they came into the log.
        yield retired, _LAST, row.index, f"R\t{number}\t{row.index}\t{_RETIRE}"


def _stalls(number: int, first: int, segments: Iterable[PipeSegment]) -> Iterator[tuple[int, int, int, str]]:
    """Yield the stalls of an instruction that is in the log from cycle `first` on."""
    for segment in segments:
        if segment.cause is not Cause.BUSY and segment.end > first:
            name = str(segment.cause).replace(" ", "_")
            yield max(segment.start, first), _BEGIN, number, f"S\t{number}\t1\t{name}"
            yield segment.end, _END, number, f"E\t{number}\t1\t{name}"


def _written(commands: list[tuple[int, int, int, str]], timeline: Timeline) -> Iterator[str]:
    yield "Kanata\t0004"
    cycle = timeline.start
    yield f"C=\t{cycle}"
    # Commands of one instruction and cycle keep the order in which they were made.
    for when, _, _, line in sorted(commands, key=lambda command: command[:3]):
        if when > cycle:
            yield f"C\t{when - cycle}"
            cycle = when
        yield line
    if timeline.end > cycle:
        yield f"C\t{timeline.end - cycle}"


def _plain(text: str) -> str:
    return " ".join(text.split())
