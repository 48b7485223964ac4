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


def lint_section(found: tuple[LintFinding, ...]) -> Iterator[RenderableType]:
    """Yield the findings of the linter."""
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
    """Yield the notices of the linter, which are not rule violations; empty if there are none."""
    if found:
        yield Text(f"notices: {len(found)}", style="dim")
    yield from map(_finding_line, found)


def _findings(found: list[LintFinding]) -> str:
    return f"{len(found)} finding{'s' if len(found) > 1 else ''}"


def _finding_line(found: LintFinding) -> RenderableType:
    return indented(Text(f"line {found.span.line}, bundle {found.bundle}: {found.rule}: {found.message}"))
