"""The timelines of two runs over one axis: operations of those that ran now, executions of those read from JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from castsim.exploration.differences.comparison import Difference
from castsim.exploration.differences.sides import Side
from castsim.reports.pages.blocks import Lanes, Packed, Tone
from castsim.reports.pages.run_timeline import interval_columns, run_timeline, timeline_lanes

_MOST = 100_000
"""Executions that a timeline made of a JSON result shows."""

_TONES = (Tone("instruction, from the end of the one before on its pipe", "busy"),)


def timelines(found: Difference) -> Iterator[Lanes]:
    """Yield the timelines of both sides, as long as the longer one; nothing where no cycles are known."""
    if found.cycles_a is None or found.cycles_b is None:
        return
    end = max(found.cycles_a, found.cycles_b)
    for letter, side in (("A", found.a), ("B", found.b)):
        lanes = _recorded(side) if side.result is None else timeline_lanes(side.result, run_timeline(side.result))
        yield replace(lanes, caption=f"{letter}, {side.file} on {side.target}: {side.cycles} cycles", end=end)


def _recorded(side: Side) -> Lanes:
    """Return the executions that a JSON result tells of, a row for each pipe.

    Many begin when their instruction is sent, and wait in the queue of the pipe; each is shown from the end of the one
    before.
    """
    rows: dict[str, list[tuple[int, int, int, int]]] = {}
    numbers: dict[tuple[int, str, str], int] = {}
    # Flags are sent before what they wait for ends, and end with it: among equal ends the order of the program decides.
    spans = sorted(islice(side.spans(), _MOST + 1), key=lambda span: span.end)
    for span in spans[:_MOST]:
        row = rows.setdefault(span.pipe, [])
        start = max(span.start, row[-1][1]) if row else span.start
        item = numbers.setdefault((span.line, span.text, span.pipe), len(numbers) + 1)
        if start < span.end:
            row.append((start, span.end, 0, item))
    columns = interval_columns(rows.values(), 0)
    columns["texts"] = [[text, f"line {line}", f"pipe {pipe}"] for line, text, pipe in numbers]
    notes = (f"The first {_MOST} executions.",) if len(spans) > _MOST else ()
    return Lanes("", "cycles", 0, side.cycles or 0, tuple(rows), _TONES, Packed(columns), notes=notes)
