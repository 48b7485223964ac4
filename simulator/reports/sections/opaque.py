"""Operations that placeholders stand in for, and how much of the time rests on them."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from castsim.reports.documents import Document
from castsim.reports.numbers import grouped
from castsim.reports.run_report import RunReport
from castsim.reports.section import ReportSection
from castsim.reports.terminal import indented
from castsim.running.program_runs import PlaceholderUse


def _data(report: RunReport) -> Document:
    found = report.result.placeholders
    if found is None:
        return {}
    return {
        "placeholders": {
            "operations": [
                {"op": use.name, "pipe": use.pipe, "executions": use.executions, "cycles_each": use.cycles}
                for use in found.uses
            ],
            "cycles_resting_on_them": found.resting,
            "cycles_without_them": found.without,
        }
    }


def _text(report: RunReport, width: int) -> Iterator[RenderableType]:
    del width
    found = report.result.placeholders
    if found is None:
        return
    times = sum(use.executions for use in found.uses)
    words = "1 operation is" if times == 1 else f"{grouped(times)} operations are"
    text = f"at least {grouped(found.without)} cycles; {words} not modelled"
    if found.resting:
        share = 100 * found.resting / found.total
        text += f", and {grouped(found.resting)} of {grouped(found.total)} cycles ({share:.1f} %) stand in for them"
    yield Text(text, style="yellow")
    for use in found.uses:
        yield indented(Text(_line(use)))
    unset = sorted({use.name for use in found.uses if not use.cycles})
    if unset:
        yield indented(Text(f"the total lacks the time of {', '.join(unset)}; --opaque NAME=CYCLES sets it"))


def _line(use: PlaceholderUse) -> str:
    times = "once" if use.executions == 1 else f"{use.executions} times"
    return f"{use.name} on {use.pipe}, {times}, {use.cycles} cycles each"


SECTION = ReportSection(_text, _data, options=("--opaque",))
