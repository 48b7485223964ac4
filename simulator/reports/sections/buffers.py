"""Which bytes of each buffer were touched."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from castsim.reports.numbers import grouped
from castsim.reports.pipes import share
from castsim.reports.run_report import RunReport
from castsim.reports.section import ReportSection


def _text(report: RunReport, width: int) -> Iterator[RenderableType]:
    del width
    for use in report.buffers:
        used = use.end - use.start
        yield Text(
            f"buffer {use.name}: bytes {grouped(use.start)} .. {grouped(use.end - 1)} touched, "
            f"{grouped(used)} of {grouped(use.capacity)} "
            f"({share(used, use.capacity)})"
        )
    if not report.buffers:
        yield Text("buffers: none touched")


SECTION = ReportSection(_text, of_time=True)
