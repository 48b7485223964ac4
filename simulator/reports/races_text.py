"""Races in words, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from simulator.races import Finding
from simulator.reports.terminal import indented


def race_section(found: Sequence[Finding] | None) -> Iterator[RenderableType]:
    """Yield what was found; nothing if nothing was, or nothing was checked."""
    for finding in found or ():
        yield Text.assemble((f"{finding.kind}: ", "bold red"), finding.message)
        if finding.missing:
            yield indented(Text(f"missing: {finding.missing}"))
