"""Above all else: that a run has left stale values, and what to do."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from castsim.reports.run_report import RunReport
from castsim.reports.section import ReportSection
from castsim.reports.stale_reads import stale_notice
from castsim.reports.terminal import indented


def _text(report: RunReport, width: int) -> Iterator[RenderableType]:
    del width
    notice = stale_notice(report.result.stale_reads)
    if notice is not None:
        yield Text.assemble(("warning: ", "bold yellow"), notice)
        yield indented(Text("move readers later by the missing bundles; --stale-reads stop exits with 1 at the first"))
        yield Text()


SECTION = ReportSection(_text)
