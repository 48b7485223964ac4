"""Findings of the issue rules, as JSON and as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.text import Text

from castsim.reports.documents import Keys, says
from castsim.reports.schemas.keys import Line
from castsim.reports.terminal import indented

if TYPE_CHECKING:
    from castsim.machines.vliw.findings import LintFinding


class Notice(Keys):
    """A notice of the linter, which is not a rule violation."""

    kind: str = says("Subject of the notice.", "rule")
    bundle: int = says("Number of the bundle, from 0.")
    line: Line = says("Line of the source.", "span.line")
    message: str = says("The notice in words.")


def lint_section(findings: tuple[LintFinding, ...]) -> Iterator[RenderableType]:
    """Yield the findings of the linter."""
    certain = [finding for finding in findings if finding.certain]
    possible = [finding for finding in findings if not finding.certain]
    if certain:
        yield Text(f"lint: {_findings(certain)}", style="bold yellow")
        yield from map(_finding_line, certain)
    else:
        yield Text("lint: no certain issues" if possible else "lint: no issues found")
    if possible:
        yield Text(f"possible, depending on path, predicates or start values: {_findings(possible)}", style="dim")
        yield from map(_finding_line, possible)


def notice_section(findings: tuple[LintFinding, ...]) -> Iterator[RenderableType]:
    """Yield the notices of the linter, which are not rule violations; empty if there are none."""
    if findings:
        yield Text(f"notices: {len(findings)}", style="dim")
    yield from map(_finding_line, findings)


def _findings(findings: list[LintFinding]) -> str:
    return f"{len(findings)} finding{'s' if len(findings) > 1 else ''}"


def _finding_line(finding: LintFinding) -> RenderableType:
    return indented(Text(f"line {finding.span.line}, bundle {finding.bundle}: {finding.rule}: {finding.message}"))
