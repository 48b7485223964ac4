"""Stale reads and lint findings as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.text import Text

from simulator.reports.terminal import indented
from simulator.vliw.findings import Kind, StaleRead

if TYPE_CHECKING:
    from simulator.vliw.lint import Finding

_HEADS = {
    Kind.EARLY: "stale reads: the old value is read inside the latency window of a write",
    Kind.OVERTAKEN: "overtaken writes: an earlier load lands later and has the last word",
    Kind.UNWRITTEN: "reads of what nothing wrote",
    Kind.SAME_BUNDLE: "reads beside a write in the same bundle: the old value, by the definition of a bundle",
}


def stale_section(found: tuple[StaleRead, ...] | None) -> Iterator[RenderableType]:
    """Yield what the checked mode found, by kind; nothing for machines that interlock or were not checked."""
    if found is None:
        return
    yield Text()
    if not any(each.kind is not Kind.SAME_BUNDLE for each in found):
        yield Text("stale reads: none")
    for kind, head in _HEADS.items():
        own = [each for each in found if each.kind is kind]
        if not own:
            continue
        yield Text(f"{head} ({len(own)})", style="dim" if kind is Kind.SAME_BUNDLE else "bold yellow")
        for each in own:
            times = f", {each.times} times" if each.times > 1 else ""
            yield indented(Text(f"{each.sentence()}{times}"))


def lint_section(found: tuple[Finding, ...] | None) -> Iterator[RenderableType]:
    """Yield the findings of the linter; nothing if it was not asked."""
    if found is None:
        return
    yield Text()
    if not found:
        yield Text("lint: no finding")
        return
    yield Text(f"lint: {len(found)} finding{'s' if len(found) > 1 else ''}", style="bold yellow")
    for each in found:
        yield indented(Text(f"line {each.span.line}, bundle {each.bundle}: {each.rule}: {each.message}"))
