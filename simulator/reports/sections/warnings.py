"""What the program asks for in vain, or does in a surprising way."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from castsim.reports.documents import Document
from castsim.reports.run_report import RunReport
from castsim.reports.section import ReportSection
from castsim.reports.stale_reads import stale_notice


def _data(report: RunReport) -> Document:
    notice = stale_notice(report.result.stale_reads)
    return {"warnings": [*([notice] if notice else []), *report.result.warnings]}


def _text(report: RunReport, width: int) -> Iterator[RenderableType]:
    del width
    for warning in report.result.warnings:
        yield Text.assemble(("warning: ", "bold yellow"), warning)
    if report.result.warnings:
        yield Text()


SECTION = ReportSection(_text, _data)
