"""Races: what the order of a tile program does not guarantee."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from castsim.reports.documents import Document, document
from castsim.reports.run_report import RunReport
from castsim.reports.section import ReportSection
from castsim.reports.terminal import indented
from castsim.synchronisation.race_findings import Finding


def _data(report: RunReport) -> Document:
    races = report.result.races
    return {} if races is None else {"races": [_entry(found) for found in races]}


def _entry(found: Finding) -> Document:
    """Return a finding as JSON; bytes are null where none are concerned, `last_byte` belongs to them."""
    region = found.region
    return {
        **document(found, "kind", "message"),
        "missing": found.missing or None,
        "lines": [span.line for span in found.spans],
        "pipes": list(found.pipes),
        "space": region.space if region else None,
        "first_byte": region.start if region else None,
        "last_byte": region.end - 1 if region else None,
    }


def _text(report: RunReport, width: int) -> Iterator[RenderableType]:
    del width
    for finding in report.result.races or ():
        yield Text.assemble((f"{finding.kind}: ", "bold red"), finding.message)
        if finding.missing:
            yield indented(Text(f"missing: {finding.missing}"))
    if report.result.races:
        yield Text()


SECTION = ReportSection(_text, _data, options=("--races",))
