"""What the cycles of a run rest on, and the facts that no document states, by weight where it was computed."""

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
    return {"facts_assumed": json_of(report.facts), "trust": trust_data(report)}


def trust_data(report: RunReport) -> Document:
    """Return what the cycles rest on as JSON."""
    trust, frequency = report.trust, report.result.loaded.target.frequency
    return {
        "shares": json_of(trust.shares),
        "interval": json_of(trust.interval),
        "sensitivities": json_of(report.sensitivities),
        "clock_status": json_of(frequency.status),
    }


def _text(report: RunReport, width: int) -> Iterator[RenderableType]:
    del width
    if not report.facts:
        return
    yield Text()
    count = len(report.facts)
    counted = f"{count} hardware number{'s are' if count > 1 else ' is'} not documented by the vendor"
    if not report.list_facts:
        yield Text(f"{counted} (--facts)", style="dim")
        return
    yield Text(counted, style="bold")
    for fact in report.facts:
        yield indented(Text(f"{fact.name} ({fact.status}): {described(fact.value)}"))
        for each in report.sensitivities or ():
            if each.fact.startswith(f"{fact.name}."):
                name = each.fact.removeprefix(f"{fact.name}.")
                yield indented(indented(Text(f"{name}: -10 % {each.less:+,} cycles, +10 % {each.more:+,}")))
        yield indented(indented(Text(fact.source, style="dim")))


SECTION = ReportSection(_text, _data, options=("--facts",), of_time=True)
