"""The trace as a Kanata log, version 0004: what the Konata pipeline viewer reads.

One instruction of the log is one operation. Stages on lane 0: Ds (dispatched, waiting in the queue), Ex (executing), Cm
(executed, waiting to retire); the causes of stalls stand on lane 1, on top of the stage that they prolong.

Source: the Kanata log format, version 0004 (tab-separated commands C=, C, I, L, S, E, R, W).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from simulator.timing import Cause
from simulator.views.dependences import Dependence
from simulator.views.recording import Segment
from simulator.views.timeline import Row, Timeline

_RETIRE = 0
"""Type of an R command: retired, not flushed."""

_WAKEUP = 0
"""Type of a W command: a wake-up by a producer."""

_END, _BEGIN, _LAST = 0, 1, 2
"""Order of commands within a cycle: stages end before others begin, retirement comes last."""


def kanata_lines(timeline: Timeline, found: Iterable[Dependence]) -> Iterator[str]:
    """Yield the lines of the log, without line ends."""
    numbers = {row.index: number for number, row in enumerate(_in_order(timeline.rows))}
    stalls = timeline.by_operation()
    commands: list[tuple[int, int, int, str]] = []
    for row in timeline.rows:
        number = numbers[row.index]
        commands += _life(row, number)
        commands += _stalls(number, stalls.get(row.index, ()))
    rows = {row.index: row for row in timeline.rows}
    for dependence in found:
        consumer, producer = numbers[dependence.consumer], numbers[dependence.producer]
        # Both must have begun in the log, so the arrow stands where the later of them does.
        cycle = max(_first(rows[dependence.consumer]), _first(rows[dependence.producer]))
        commands.append((cycle, _BEGIN, max(consumer, producer), f"W\t{consumer}\t{producer}\t{_WAKEUP}"))
    yield from _written(commands, timeline)


def _in_order(rows: Sequence[Row]) -> list[Row]:
    """Return the rows in the order in which they appear in the log: file numbers must count up."""
    return sorted(rows, key=lambda row: (_first(row), row.index))


def _first(row: Row) -> int:
    return min(row.dispatched, row.start)


def _life(row: Row, number: int) -> Iterator[tuple[int, int, int, str]]:
    where = f"line {row.line}: " if row.line else ""
    first = _first(row)
    retired = max(row.retired, first)
    yield first, _BEGIN, number, f"I\t{number}\t{row.index}\t0"
    yield first, _BEGIN, number, f"L\t{number}\t0\t{_plain(f'{where}{row.pipe} {row.name}')}"
    yield first, _BEGIN, number, f"L\t{number}\t1\t{_plain(row.text)}"
    for stage, start, end in (("Ds", first, row.start), ("Ex", row.start, row.end), ("Cm", row.end, retired)):
        if start < end:
            yield start, _BEGIN, number, f"S\t{number}\t0\t{stage}"
            yield end, _END, number, f"E\t{number}\t0\t{stage}"
    yield retired, _LAST, number, f"R\t{number}\t{row.index}\t{_RETIRE}"


def _stalls(number: int, segments: Iterable[Segment]) -> Iterator[tuple[int, int, int, str]]:
    for segment in segments:
        if segment.cause is not Cause.BUSY:
            name = str(segment.cause).replace(" ", "_")
            yield segment.start, _BEGIN, number, f"S\t{number}\t1\t{name}"
            yield segment.end, _END, number, f"E\t{number}\t1\t{name}"


def _written(commands: list[tuple[int, int, int, str]], timeline: Timeline) -> Iterator[str]:
    yield "Kanata\t0004"
    cycle = min((command[0] for command in commands), default=timeline.start)
    yield f"C=\t{cycle}"
    # Commands of one instruction and cycle keep the order in which they were made.
    for when, _, _, line in sorted(commands, key=lambda command: command[:3]):
        if when > cycle:
            yield f"C\t{when - cycle}"
            cycle = when
        yield line


def _plain(text: str) -> str:
    return " ".join(text.split())
