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

_SHORT = 90


def _data(report: RunReport) -> Document:
    return {"facts_assumed": json_of(report.facts)}


def _text(report: RunReport, width: int) -> Iterator[RenderableType]:
    del width
    if not report.facts:
        return
    yield Text()
    yield Text("rests on facts that are not documented (in full: --json)", style="bold")
    for fact in report.facts:
        yield indented(Text(f"{fact.name} ({fact.status}): {described(fact.value)}"))
        yield indented(indented(Text(shortened(fact.source), style="dim")))


def shortened(text: str, limit: int = _SHORT) -> str:
    """Return the beginning of a text that is longer than `limit` characters."""
    return text if len(text) <= limit else text[: limit - 3].rstrip() + "..."


SECTION = ReportSection(_text, _data, of_time=True)
