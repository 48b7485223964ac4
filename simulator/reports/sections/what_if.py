"""What lifting the limits of the target would gain."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from castsim.reports.documents import Document, document
from castsim.reports.numbers import grouped
from castsim.reports.pipes import share
from castsim.reports.run_report import RunReport
from castsim.reports.section import ReportSection
from castsim.reports.terminal import indented, table

_BEST = 3
"""Limits in a summary."""


def _data(report: RunReport) -> Document:
    if not report.gains:
        return {}
    entries = [document(gain, cycles="total_cycles", gained="gained_cycles") for gain in report.gains]
    return {"what_if": [entry | {"reason": entry["reason"] or None} for entry in entries]}


def _text(report: RunReport, width: int) -> Iterator[RenderableType]:
    """Yield a table of the limits, largest gain first; those that gain nothing in one line.

    Below it stands, for each limit whose lifting costs cycles, what takes them.
    """
    del width
    found, cycles = report.gains, report.result.cycles
    if not found:
        return
    if report.summary:
        yield _best(report)
        return
    yield Text()
    yield Text(f"what if a limit were lifted ({grouped(cycles)} cycles with all limits)", style="bold")
    rows = table("lifted", "cycles", "gain", "share", "what it means", numbers=("cycles", "gain", "share"))
    for gain in found:
        if gain.gained:
            rows.add_row(gain.name, grouped(gain.cycles), grouped(gain.gained), share(gain.gained, cycles), gain.title)
    if rows.row_count:
        yield rows
    for gain in found:
        if gain.reason:
            yield indented(Text(f"{gain.name} costs {grouped(-gain.gained)} cycles: {gain.reason}"))
    idle = [gain.name for gain in found if not gain.gained]
    if idle:
        yield indented(Text(f"no gain: {', '.join(idle)}"))


def _best(report: RunReport) -> Text:
    """Return the largest gains in one line."""
    best = [gain for gain in report.gains if gain.gained > 0][:_BEST]
    told = (f"{gain.name} {grouped(gain.gained)} ({share(gain.gained, report.result.cycles)})" for gain in best)
    return Text(f"cycles gained without a limit: {', '.join(told) or 'none'}")


SECTION = ReportSection(_text, _data, options=("--what-if",), of_time=True)
