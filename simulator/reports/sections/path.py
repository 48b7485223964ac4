"""The reads of memory on which the path of a program rests, or an address, or an extent."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from math import isfinite

from rich.console import RenderableType
from rich.text import Text

from castsim.execution.interpreter.memory import Origin, ReadElement
from castsim.reports.documents import Document
from castsim.reports.run_report import RunReport
from castsim.reports.section import ReportSection
from castsim.reports.terminal import indented

_SHOWN = 4
_SOURCES = {
    Origin.GIVEN: "from its input",
    Origin.ARGUMENT: "given by --arg",
    Origin.COMPUTED: "written by this run",
    Origin.DEFAULT: "taken for 0",
    Origin.OPAQUE: "opaque, taken for 0",
}


def _data(report: RunReport) -> Document:
    found = report.result.loaded.executed.decided_by
    if not found:
        return {}
    return {
        "path_decided_by": [
            {
                "read": read.text,
                "file": read.span.file,
                "line": read.span.line,
                "column": read.span.column,
                "value": _number(read.value),
                "origin": str(read.origin),
            }
            for read in found
        ]
    }


def _number(value: int | float) -> int | float | str:
    """Return a value as JSON has it, which knows no infinity and no NaN."""
    return value if isfinite(value) else str(value)


def _text(report: RunReport, width: int) -> Iterator[RenderableType]:
    del width
    found = report.result.loaded.executed.decided_by
    if not found:
        return
    yield Text("path decided by")
    by_place = sorted(found, key=_place)
    for _, reads in groupby(by_place, key=_place):
        yield indented(Text(_line(list(reads))))


def _place(read: ReadElement) -> tuple[int, int]:
    return read.span.line, read.span.column


def _line(reads: list[ReadElement]) -> str:
    """Say what one line of the source has read, how often, and where that came from."""
    values = ", ".join(f"{read.text} = {read.value}" for read in reads[:_SHOWN])
    more = f" and {len(reads) - _SHOWN} more" if len(reads) > _SHOWN else ""
    sources = ", ".join(_SOURCES[origin] for origin in dict.fromkeys(read.origin for read in reads))
    return f"line {reads[0].span.line}: {values}{more} ({sources})"


SECTION = ReportSection(_text, _data)
