"""The facts that a run rests on and no document states."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from castsim.reports.documents import Document, json_of
from castsim.reports.facts import described
from castsim.reports.run_report import RunReport
from castsim.reports.section import ReportSection
from castsim.reports.terminal import indented


def _data(report: RunReport) -> Document:
    return {"facts_assumed": json_of(report.facts)}


def _text(report: RunReport, width: int) -> Iterator[RenderableType]:
    del width
    if not report.facts:
        return
    yield Text()
    count = len(report.facts)
    counted = f"rests on {count} undocumented fact{'s' * (count > 1)}"
    if not report.list_facts:
        yield Text(f"{counted} (--facts lists {'them' if count > 1 else 'it'})", style="dim")
        return
    yield Text(counted, style="bold")
    for fact in report.facts:
        yield indented(Text(f"{fact.name} ({fact.status}): {described(fact.value)}"))
        yield indented(indented(Text(fact.source, style="dim")))


SECTION = ReportSection(_text, _data, options=("--facts",), of_time=True)
