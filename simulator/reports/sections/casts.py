"""What casts did to their numbers: how many were rounded, clamped, wrapped, overflowed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rich.console import RenderableType
from rich.text import Text

from castsim.execution.outcomes import CastPlace, Outcome, Outcomes
from castsim.reports.documents import Document, json_of
from castsim.reports.numbers import grouped
from castsim.reports.run_report import RunReport
from castsim.reports.section import ReportSection
from castsim.reports.terminal import table

OUTCOMES = tuple(each.value for each in Outcome if each is not Outcome.EXACT)


@dataclass(frozen=True, slots=True)
class CastLine:
    """The casts of one instruction, all its executions together; of vector instructions and TPC code, of one line."""

    line: int
    op: str
    src: str
    dst: str
    elements: int
    rounded: int
    clamped: int
    wrapped: int
    overflow: int
    nan: int


def cast_lines(report: RunReport) -> tuple[CastLine, ...]:
    """Return the casts whose numbers were computed, in the order of the program."""
    return tuple(_line(place, counts) for place, counts in report.result.casts.items())


def _line(place: CastPlace, counts: Outcomes) -> CastLine:
    each = (counts.elements, counts.rounded, counts.clamped, counts.wrapped, counts.overflow, counts.nan)
    return CastLine(place.line, place.op, place.src, place.dst, *each)


def _data(report: RunReport) -> Document:
    found = cast_lines(report)
    return {"casts": json_of(found)} if found else {}


def _text(report: RunReport, width: int) -> Iterator[RenderableType]:
    """Yield one row per instruction; without a column for what happened to no number."""
    del width
    found = cast_lines(report)
    if not found:
        return
    shown = [name for name in OUTCOMES if any(getattr(each, name) for each in found)]
    if not shown:
        yield Text(f"casts: all {grouped(sum(each.elements for each in found))} numbers exact")
        yield Text()
        return
    headings = ("elements", *(heading_of(name) for name in shown))
    made = table("line", "cast", *headings, numbers=("line", *headings))
    for each in found:
        made.add_row(str(each.line), each.op, grouped(each.elements), *(_number(getattr(each, name)) for name in shown))
    yield made
    yield Text()


def heading_of(name: str) -> str:
    """Return what readers are told of an outcome: its name, but for NaN, which is the number that is lost."""
    return "NaN lost" if name == "nan" else name


def _number(count: int) -> str:
    return grouped(count) if count else ""


SECTION = ReportSection(_text, _data)
