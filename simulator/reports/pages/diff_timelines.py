"""The timelines of two runs over one axis: operations of those that ran now, executions of those read from JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from heapq import heappop, heappush
from itertools import islice

from castsim.exploration.differences.comparison import Difference
from castsim.exploration.differences.sides import LineSpan, Side
from castsim.reports.pages.blocks import Lanes, Packed, Tone
from castsim.reports.pages.run_timeline import interval_columns, run_timeline, timeline_lanes

_MOST = 100_000
"""Executions that a timeline made of a JSON result shows."""

_TONES = (Tone("executed, waits included", "busy"),)


def timelines(found: Difference) -> Iterator[Lanes]:
    """Yield the timelines of both sides, as long as the longer one; nothing where no cycles are known."""
    if found.cycles_a is None or found.cycles_b is None:
        return
    end = max(found.cycles_a, found.cycles_b)
    for letter, side in (("A", found.a), ("B", found.b)):
        lanes = _recorded(side) if side.result is None else timeline_lanes(side.result, run_timeline(side.result))
        yield replace(lanes, caption=f"{letter}, {side.file} on {side.target}: {side.cycles} cycles", end=end)


def _recorded(side: Side) -> Lanes:
    """Return the executions that a JSON result tells of; of some at the same time on a pipe each has a row."""
    rows: dict[str, list[tuple[int, int, int, int]]] = {}
    free: dict[str, list[tuple[int, int]]] = {}
    texts: list[list[str]] = []
    numbers: dict[tuple[int, str], int] = {}
    spans = sorted(islice(side.spans(), _MOST + 1), key=lambda span: (span.start, span.end))
    for span in spans[:_MOST]:
        if span.end <= span.start:
            continue
        busy = free.setdefault(span.pipe, [])
        track = heappop(busy)[1] if busy and busy[0][0] <= span.start else len(busy)
        heappush(busy, (span.end, track))
        name = f"{span.pipe} {track + 1}" if track else span.pipe
        item = numbers.setdefault((span.line, span.text), len(numbers) + 1)
        if item > len(texts):
            texts.append(_told(span))
        rows.setdefault(name, []).append((span.start, span.end, 0, item))
    ordered = dict(sorted(rows.items()))
    columns = interval_columns(ordered.values(), 0)
    columns["texts"] = texts
    more = f"The first {_MOST} executions." if len(spans) > _MOST else ""
    return Lanes(
        "", "cycles", 0, side.cycles or 0, tuple(ordered), _TONES, Packed(columns), notes=(more,) if more else ()
    )


def _told(span: LineSpan) -> list[str]:
    return [span.text, f"line {span.line}", f"pipe {span.pipe}"]
