"""The executions of every source line: in JSON one by one, in the text added up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from castsim.reports.documents import Document
from castsim.reports.numbers import grouped
from castsim.reports.pipes import share
from castsim.reports.run_report import RunReport
from castsim.reports.section import ReportSection
from castsim.reports.terminal import indented, table
from castsim.running import Result
from castsim.running.source_lines import SourceLine, listed
from castsim.timing import repeated

WIDE = 130
"""Columns from which the table of source lines also quotes the source."""

_LISTED = 1 << 16
"""Executions up to which the JSON document lists every one."""

_LEGEND = "work, waits: cycles of its pipe; share: work, of the run's cycles"


def _data(report: RunReport) -> Document:
    return {"instructions": _instructions(report.result)}


def _instructions(result: Result) -> list[Document]:
    """Return one entry per execution in program order, of what `listed` lets through.

    Where there are very many, one entry stands for all copies that an engine has skipped.
    """
    named: list[Document | None] = [
        {"line": instruction.span.line, "op": instruction.name, "pipe": instruction.pipe}
        if listed(instruction)
        else None
        for instruction in result.loaded.tree.instructions
    ]
    executions = result.timing.executions
    if len(executions) > _LISTED:
        return [
            {
                **entry,
                "start_cycle": execution.start,
                "end_cycle": execution.end,
                "executions": times,
                "last_end_cycle": last.end,
            }
            for execution, last, times in repeated(executions)
            if (entry := named[execution.instruction]) is not None
        ]
    return [
        {**entry, "start_cycle": execution.start, "end_cycle": execution.end}
        for execution in executions
        if (entry := named[execution.instruction]) is not None
    ]


def _text(report: RunReport, width: int) -> Iterator[RenderableType]:
    shown = sorted((line for line in report.lines if line.work), key=lambda line: -line.work) or report.lines
    yield _line_table(report, shown, width)
    yield indented(Text(_LEGEND, style="dim"))
    executions, cycles = report.bookkeeping
    if executions:
        yield indented(
            Text(f"not listed: index arithmetic and loops, {grouped(executions)} executions, {grouped(cycles)} cycles")
        )
    # What several pipes waited is no part of the run: the causes above have it, by pipe.
    others = [line for line in report.lines if line not in shown]
    if others:
        yield _unlisted(
            f"{grouped(len(others))} lines without work (flags, waits, nop)", sum(each.executions for each in others)
        )
    if report.inserted:
        yield _unlisted("inserted flags and barriers", report.inserted)
    yield Text()


def _unlisted(what: str, executions: int) -> RenderableType:
    return indented(Text(f"not listed: {what}, {grouped(executions)} execution{'s' * (executions != 1)}"))


def _line_table(report: RunReport, shown: Sequence[SourceLine], width: int) -> Table:
    wide = width >= WIDE
    numbers = ("line", "times", "first start", "last end", "work", "waits", "share")
    made = table("line", "instruction", "pipe", *numbers[1:], *(("source",) if wide else ()), numbers=numbers)
    for line in shown:
        counts = (line.executions, line.first_start, line.last_end, line.work, line.pipe_cycles - line.work)
        source = [Text(line.span.excerpt(), no_wrap=True, overflow="ellipsis")] if wide else []
        made.add_row(
            str(line.span.line),
            line.text,
            line.pipe,
            *map(grouped, counts),
            share(line.work, report.result.cycles),
            *source,
        )
    return made


SECTION = ReportSection(_text, _data, of_time=True)
