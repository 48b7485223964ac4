"""What the linter found in an assembly program, and its notices; `castsim lint` prints the same."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.text import Text

from castsim.reports.documents import Document
from castsim.reports.section import ReportSection
from castsim.reports.terminal import indented

if TYPE_CHECKING:
    from castsim.machines.vliw.lint_flow import LintFinding


def lint_entries(found: Iterable[LintFinding]) -> Document:
    """Return lint findings: `lint` holds the certain ones, which fail a check, `lint_possible` the others."""
    certain: list[Document] = []
    possible: list[Document] = []
    for each in found:
        entry: Document = {"rule": each.rule, "bundle": each.bundle, "line": each.span.line, "message": each.message}
        (certain if each.certain else possible).append(entry)
    return {"lint": certain, "lint_possible": possible}


def notice_entry(found: LintFinding) -> Document:
    """Return one notice: its kind, its place, what it says."""
    return {"kind": found.rule, "bundle": found.bundle, "line": found.span.line, "message": found.message}


def lint_section(found: tuple[LintFinding, ...]) -> Iterator[RenderableType]:
    """Yield the findings of the linter."""
    yield Text()
    certain = [each for each in found if each.certain]
    possible = [each for each in found if not each.certain]
    if certain:
        yield Text(f"lint: {_findings(certain)}", style="bold yellow")
        yield from map(_finding_line, certain)
    else:
        yield Text("lint: no certain issues" if possible else "lint: no issues found")
    if possible:
        yield Text(f"possible, depending on path, predicates or start values: {_findings(possible)}", style="dim")
        yield from map(_finding_line, possible)


def notice_section(found: tuple[LintFinding, ...]) -> Iterator[RenderableType]:
    """Yield the notices of the linter, which break no rule; nothing if there is none."""
    if found:
        yield Text(f"notices: {len(found)}", style="dim")
    yield from map(_finding_line, found)


def _findings(found: list[LintFinding]) -> str:
    return f"{len(found)} finding{'s' if len(found) > 1 else ''}"


def _finding_line(found: LintFinding) -> RenderableType:
    return indented(Text(f"line {found.span.line}, bundle {found.bundle}: {found.rule}: {found.message}"))


SECTION = ReportSection(
    lambda report, _: () if report.findings is None else lint_section(report.findings),
    lambda report: {} if report.findings is None else lint_entries(report.findings),
    options=("--lint",),
)
