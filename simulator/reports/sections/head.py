"""What ran, on what, for how long, and what bounds it."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

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
    launch = report.result.loaded.target.kernel_launch
    return None if launch is None else int(launch.cycles)


def clock(target: Target) -> str:
    """Return the clock in words: one that no document states says so."""
    status = target.frequency.status
    return f"{target.frequency.megahertz} MHz{f' ({_CLOCKS[status]} clock)' if status in _CLOCKS else ''}"


_UNITS = (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9))
_MOST_WHOLE = 1000


def duration(seconds: float) -> str:
    """Return a time in the largest unit in which it is at least 1, by four digits: clocks are not known better."""
    unit, scale = next(((unit, scale) for unit, scale in _UNITS if seconds >= scale), _UNITS[-1])
    number = seconds / scale
    return f"{number:,.0f} {unit}" if number >= _MOST_WHOLE else f"{number:.4g} {unit}"


SECTION = ReportSection(_text, _data)
