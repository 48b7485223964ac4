"""What ran, on what, for how long, and what bounds it."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS
from castsim.reports.documents import Document, document
from castsim.reports.numbers import grouped
from castsim.reports.pipes import limiter, share
from castsim.reports.run_report import RunReport
from castsim.reports.section import ReportSection
from castsim.targets import Target
from castsim.targets.description import Status

_CLOCKS = {Status.ASSUMED: "assumed", Status.VENDOR_MODEL: "cost model's", Status.FITTED: "fitted"}


def _data(report: RunReport) -> Document:
    result = report.result
    if result.untimed:
        shown = document(result.loaded, "file", "entry", "target", file="program")
        return {**shown, "engine": None, "total_cycles": None, "seconds": None, "untimed": result.untimed}
    return {
        **document(result.loaded, "file", "entry", "target", file="program"),
        **document(result, "engine", "cycles", cycles="total_cycles"),
        **document(report, "seconds"),
        **({} if _launch(report) is None else {"launch_cycles": _launch(report)}),
    }


def _text(report: RunReport, width: int) -> Iterator[RenderableType]:
    del width
    result = report.result
    target = result.loaded.target
    yield Text.assemble((f"{result.loaded.file} @{result.loaded.entry}", "bold"))
    if result.untimed:
        yield Text(f"target {target.name} ({target.title})")
        yield Text(f"no cycles: {result.untimed}", style="bold yellow")
        yield Text()
        return
    yield Text(f"target {target.name} ({target.title}), engine {result.engine}")
    time = duration(report.seconds)
    yield Text.assemble((f"{grouped(result.cycles)} cycles", "bold"), f" = {time} at {clock(target)}")
    launch = _launch(report)
    if launch is not None:
        yield Text(f"launch: about {grouped(launch)} cycles more, in no pipe (the vendor's simulator)")
    for sentence in (report.trust.sentence(), report.trust.interval_sentence()):
        if sentence:
            yield Text(sentence)
    found, latencies = limiter(result.timing), report.latencies
    if found and latencies is not None and latencies.binds:
        yield Text(latencies.sentence(), style="bold yellow")
        yield Text(f"{latencies.costs()}, {found.pipe} {share(found.occupied, found.total)}")
    else:
        yield Text(found.sentence() if found else "no pipe had anything to do", style="bold yellow" if found else "")
    if report.lost_most is not None:
        yield Text(report.lost_most.sentence())
    if found and not report.gains:
        yield Text(f"next: {_next(report)}")
    yield Text()


def _next(report: RunReport) -> str:
    """Return what tells more of where the cycles go, or finds a better order."""
    if report.latencies is not None and report.latencies.binds:
        return "castsim advise tries shorter orders; --what-if latency shows the cost"
    more = ", --report kernel where the cycles go" if report.result.loaded.target.has_tiles else ""
    return f"--what-if all shows what each limit costs{more if not report.further else ''}"


def _launch(report: RunReport) -> int | None:
    """Return the cycles of a kernel beyond its pipes, None if nothing is known of them."""
    loaded = report.result.loaded
    if (launch := loaded.target.kernel_launch) is None:
        return None
    known = (VECTOR_OPERATIONS.get(each.mnemonic) for each in loaded.tree.instructions)
    return launch.of(each.kind for each in known if each is not None)


def clock(target: Target) -> str:
    """Return the clock in words: one that no document states says so."""
    status = target.frequency.status
    return f"{target.frequency.megahertz} MHz{f' ({_CLOCKS[status]} clock)' if status in _CLOCKS else ''}"


def duration(seconds: float) -> str:
    """Return a time in the largest unit in which it is at least 1."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3f} {unit}"
    return f"{seconds / 1e-9:.3f} ns"


SECTION = ReportSection(_text, _data)
