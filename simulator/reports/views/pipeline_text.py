"""The pipeline view as text, in the notation of llvm-mca's timeline.

One row per operation, one column per cycle: D dispatched, = waiting in the queue, e executing, E executed (the last
cycle of execution), - waiting to retire, R retired. Where several fall into one cycle (a bundle executes from the
cycle in which it is issued, a flag takes no time), R goes before E before D. Empty cells show a dot in every fifth
column. Operations that wait all the time, in a queue or to retire, have no row: they are counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap

from castsim.reports.views.timeline import DrawnOperation, Timeline

LEGEND = "D dispatched, = waiting, e executing, E executed, - waiting to retire, R retired"
NARROWEST = 20
"""Cycles per panel at the least, however narrow the terminal."""

_RULER = "0123456789"
_MARK = 5
_CUT = "..."


def pipeline_lines(timeline: Timeline, width: int) -> Iterator[str]:
    """Yield the lines of the view for a terminal of `width` columns, in panels of as many cycles as fit."""
    if timeline.end <= timeline.start:
        yield "timeline: no cycles"
        return
    yield f"timeline: cycles {timeline.start} .. {timeline.end - 1} of {timeline.total}"
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
    """Whether something happens to an operation in the window: it is dispatched, works, ceases to wait."""
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
    """Return the part that fits into a narrow terminal, marked where it was cut."""
    return name if len(name) <= room else f"{name[: max(room - len(_CUT), 0)]}{_CUT}"


def _pipe_width(timeline: Timeline) -> int:
    return max(len(pipe) for pipe in timeline.pipes)


def _ruler(start: int, end: int, margin: int) -> Iterator[str]:
    """Yield the cycle in full at every tenth column, and the last digits."""
    marks = [" "] * (end - start)
    for cycle in range(-(-start // 10) * 10, end, 10):
        text = str(cycle)
        if cycle - start + len(text) <= len(marks):
            marks[cycle - start : cycle - start + len(text)] = text
    yield " " * margin + "".join(marks).rstrip()
    yield " " * margin + "".join(_RULER[cycle % 10] for cycle in range(start, end))
