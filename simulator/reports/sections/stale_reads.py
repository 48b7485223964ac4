"""Registers that were read too early, by kind."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from castsim.reports.documents import Document
from castsim.reports.run_report import RunReport
from castsim.reports.section import ReportSection
from castsim.reports.stale_reads import stale_entry
from castsim.reports.terminal import indented

_HEADS = {
    "EARLY": "stale reads: the old value is read inside the latency window of a write",
    "OVERTAKEN": "overtaken writes: an earlier load lands later and overwrites the result",
    "UNWRITTEN": "reads of places that nothing wrote",
    "SAME_BUNDLE": "reads beside a write in the same bundle: the old value, by the definition of a bundle",
}
"""What stands above the findings of each `StaleReadKind`, by its name."""


def _data(report: RunReport) -> Document:
    found = report.result.stale_reads
    return {} if found is None else {"stale_reads": [stale_entry(each) for each in found]}


def _text(report: RunReport, width: int) -> Iterator[RenderableType]:
    """Yield what the checked mode found; nothing for machines that interlock or were not checked."""
    del width
    found = report.result.stale_reads
    if found is None:
        return
    from castsim.machines.vliw.findings import StaleReadKind  # noqa: PLC0415 - runs of tiles have no registers

    yield Text()
    if not any(each.kind is not StaleReadKind.SAME_BUNDLE for each in found):
        yield Text("stale reads: none")
    for name, head in _HEADS.items():
        kind = StaleReadKind[name]
        own = [each for each in found if each.kind is kind]
        if not own:
            continue
        yield Text(f"{head} ({len(own)})", style="dim" if kind is StaleReadKind.SAME_BUNDLE else "bold yellow")
        for each in own:
            times = f", {each.times} times" if each.times > 1 else ""
            yield indented(Text(f"{each.sentence()}{times}"))


SECTION = ReportSection(_text, _data, options=("--stale-reads",))
