"""The cycles of every pipe by cause, and the instruction that lost most of them."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from castsim.reports.documents import Document, json_of
from castsim.reports.pipes import WAITING, causes_of, present_causes, share
from castsim.reports.run_report import RunReport
from castsim.reports.section import ReportSection
from castsim.reports.terminal import table
from castsim.timing import Cause


def _data(report: RunReport) -> Document:
    pipes = {
        name: {"busy_cycles": pipe.busy, "causes": json_of(causes_of(pipe))}
        for name, pipe in report.result.pipes.items()
    }
    return {"pipes": pipes, "lost_most": None if report.lost_most is None else report.lost_most.entry()}


def _text(report: RunReport, width: int) -> Iterator[RenderableType]:
    del width
    yield _pipe_table(report)
    if report.lost_most is not None:
        yield Text(report.lost_most.sentence())
    yield Text()


def _pipe_table(report: RunReport) -> Table:
    pipes, total = report.result.pipes, report.result.cycles
    made = table("cycles by cause", *pipes, numbers=tuple(pipes))
    for cause in present_causes(pipes):
        cells = [_cell(pipe.causes.get(cause, 0), total) for pipe in pipes.values()]
        made.add_row(str(cause), *cells, style=_style(cause))
    made.add_row("total", *(f"{sum(pipe.causes.values())}        " for pipe in pipes.values()))
    made.add_row("utilisation (busy)", *(share(pipe.busy, total) for pipe in pipes.values()), style="bold")
    return made


def _cell(cycles: int, total: int) -> str:
    return f"{cycles} {share(cycles, total):>7}" if cycles else ""


def _style(cause: Cause) -> str:
    if cause is Cause.BUSY:
        return "green"
    return "dim" if cause in WAITING else "yellow"


SECTION = ReportSection(_text, _data, of_time=True)
