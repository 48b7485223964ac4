"""The cycles of every pipe by cause, and the instruction that lost most of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from castsim.reports.documents import Document, Json, json_of
from castsim.reports.numbers import grouped
from castsim.reports.pipes import CAUSE_COLOURS, causes_of, present_causes, share
from castsim.reports.run_report import RunReport
from castsim.reports.section import ReportSection
from castsim.reports.terminal import table
from castsim.timing import WAITING, Cause

if TYPE_CHECKING:
    from castsim.machines.vliw.latency_bound import LatencyBound


def _data(report: RunReport) -> Document:
    pipes = {
        name: {"busy_cycles": pipe.busy, "causes": json_of(causes_of(pipe))}
        for name, pipe in report.result.pipes.items()
    }
    lost = None if report.lost_most is None else report.lost_most.entry()
    return {"pipes": pipes, "lost_most": lost, **_latencies(report.latencies)}


def _latencies(found: LatencyBound | None) -> Document:
    """Return the dependence chain that bounds a run of bundles, null where none does."""
    if found is None:
        return {}
    if not found.binds:
        return {"latency_bound": None}
    chain: list[Json] = [
        {
            "producer": link.names[0],
            "producer_line": link.producer.span.line,
            "consumer": link.names[1],
            "consumer_line": link.consumer.span.line,
            "through": link.register,
            "distance_bundles": link.distance,
        }
        for link in found.links
    ]
    longest = chain[found.links.index(found.longest)]
    return {
        "latency_bound": {
            "longest": longest,
            "chain": chain,
            "chain_bundles": found.length,
            "trips": found.trips,
            "chain_cycles": found.cycles,
            "gained_cycles": found.gained,
        }
    }


def _text(report: RunReport, width: int) -> Iterator[RenderableType]:
    del width
    yield _pipe_table(report)
    yield Text()


def _pipe_table(report: RunReport) -> Table:
    pipes, total = report.result.pipes, report.result.cycles
    issuing = report.result.loaded.target.scalar_pipe
    made = table("cycles by cause", *pipes, numbers=tuple(pipes))
    for cause in present_causes(pipes):
        # Cycles without work, and those in which the issuing pipe waits for all others, are no part of a bottleneck.
        plain = {name for name in pipes if cause is Cause.EMPTY or (name == issuing and cause in WAITING)}
        cells = [_cell(pipe.causes.get(cause, 0), None if name in plain else total) for name, pipe in pipes.items()]
        made.add_row(str(cause), *cells, style=CAUSE_COLOURS[cause][2])
    made.add_row("total", *(f"{grouped(sum(pipe.causes.values()))}        " for pipe in pipes.values()))
    made.add_row("utilisation (busy)", *(share(pipe.busy, total) for pipe in pipes.values()), style="bold")
    return made


def _cell(cycles: int, total: int | None) -> str:
    """Return cycles with their share of all, without a total in its column alone."""
    if not cycles:
        return ""
    return f"{grouped(cycles)} {'' if total is None else share(cycles, total):>7}"


SECTION = ReportSection(_text, _data, of_time=True)
