"""Operations that placeholders stand in for, and how much of the time rests on them."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from castsim.reports.documents import Document
from castsim.reports.run_report import RunReport
from castsim.reports.section import ReportSection
from castsim.reports.terminal import indented
from castsim.running.placeholders import PlaceholderUse


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
    share = 100 * found.resting / found.total if found.total else 0.0
    yield Text(f"placeholders: {found.resting} of {found.total} cycles ({share:.1f} %) depend on them", style="yellow")
    for use in found.uses:
        yield indented(Text(_line(use)))
    unset = sorted({use.name for use in found.uses if not use.cycles})
    if unset:
        yield indented(Text(f"the total lacks the time of {', '.join(unset)}; --opaque NAME=CYCLES sets it"))


def _line(use: PlaceholderUse) -> str:
    times = "once" if use.executions == 1 else f"{use.executions} times"
    return f"{use.name} on {use.pipe}, {times}, {use.cycles} cycles each"


SECTION = ReportSection(_text, _data, options=("--opaque",))
