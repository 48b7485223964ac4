"""The report of a whole kernel for a terminal."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from simulator.reports.kernel import KernelReport, Overlap
from simulator.reports.kernel_memory import BufferMap, Interval, Stretch
from simulator.reports.pipes import share
from simulator.reports.terminal import indented, table

_ROWS = 40
"""Stretches of a buffer that the text shows; JSON has all."""

_NARROWEST, _WIDEST = 16, 100
"""Columns of the map."""

_LEGEND = "w written, r read, b both, = holds what is still needed, . free; s after the bytes: scratch"


def kernel_text(report: KernelReport, width: int) -> Iterator[RenderableType]:
    """Yield the sections for a terminal of `width` columns."""
    yield Text()
    yield Text("kernel", style="bold")
    yield from _overlap(report.overlap)
    yield Text(report.bound.sentence() if report.bound else "no pipe had anything to do")
    yield Text()
    yield _lines(report)
    for each in report.buffers:
        yield Text()
        yield from _buffer(each, report.total, width)


def _overlap(overlap: Overlap) -> Iterator[RenderableType]:
    work = ", ".join(f"{pipe} {cycles}" for pipe, cycles in overlap.work.items())
    yield Text(f"cycles with an instruction at work: {work or 'none'}; one after the other {overlap.serial}")
    if overlap.achieved is not None:
        together = ", ".join(f"{k} {share(cycles, overlap.covered)}" for k, cycles in enumerate(overlap.together, 1))
        yield Text(
            f"overlap: {100 * overlap.achieved:.1f} % of what the busiest pipe could hide; pipes at work at once: "
            f"{together}"
        )


def _lines(report: KernelReport) -> Table:
    numbers = ("line", "times", "cycles each", "pipe cycles", "share of pipe")
    made = table("line", "instruction", "pipe", *numbers[1:], "mostly", numbers=numbers)
    for cost in report.lines:
        line = cost.line
        each = f"{line.cycles / line.executions:.1f}"
        cells = (str(line.executions), each, str(line.pipe_cycles), f"{100 * cost.share:.1f} %")
        made.add_row(str(line.span.line), line.text, line.pipe, *cells, str(cost.mostly or ""))
    return made


def _buffer(each: BufferMap, total: int, width: int) -> Iterator[RenderableType]:
    yield Text(
        f"buffer {each.name} over time: at most {each.peak_bytes} of {each.capacity} bytes in use "
        f"({share(each.peak_bytes, each.capacity)}), first in cycle {each.peak_cycle}"
    )
    shown = each.stretches[:_ROWS]
    names = [f"{s.start} .. {s.end - 1}{' s' if s.scratch else ''}" for s in shown]
    users = [f"{_numbers(s.written_by)} > {_numbers(s.read_by)}" for s in shown]
    wide, used = max(map(len, names)), max(len("lines"), *map(len, users))
    columns = max(_NARROWEST, min(_WIDEST, width - wide - used - 14))
    buckets = min(columns, max(1, total))
    per = f"{total / buckets:.0f} cycles a column" if total > buckets else "a cycle a column"
    head = f"{'bytes':<{wide}}  {'lines':<{used}}  {'in use':>7}  0 .. {total}, {per}"
    yield indented(Text(head, style="bold"))
    for stretch, name, lines in zip(shown, names, users, strict=True):
        live = share(stretch.live_cycles, total)
        row = f"{name:<{wide}}  {lines:<{used}}  {live:>7}  {_picture(stretch, total, buckets)}"
        yield indented(Text(row, no_wrap=True))
    if len(each.stretches) > len(shown):
        yield indented(Text(f"and {len(each.stretches) - len(shown)} more (--json has all)"))
    yield indented(Text(_LEGEND, style="dim"))


def _numbers(lines: Sequence[int]) -> str:
    return ",".join(map(str, lines)) or "-"


def _picture(stretch: Stretch, total: int, buckets: int) -> str:
    """Return one character per bucket of cycles."""
    found = []
    for bucket in range(buckets):
        span = (bucket * total // buckets, max((bucket + 1) * total // buckets, bucket * total // buckets + 1))
        writes, reads = _within(stretch.writes, span), _within(stretch.reads, span)
        live = _within(stretch.live, span)
        found.append("b" if writes and reads else "w" if writes else "r" if reads else "=" if live else ".")
    return "".join(found)


def _within(intervals: Sequence[Interval], span: Interval) -> bool:
    """Return whether some interval has a cycle in common with `span`; they are in order and do not overlap."""
    index = bisect_left(intervals, span[0] + 1, key=lambda interval: interval[1])
    return index < len(intervals) and intervals[index][0] < span[1]
