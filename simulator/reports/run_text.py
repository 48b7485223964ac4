"""The report of a run as text, for the author of a kernel."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from simulator.reports.exposed_text import lint_section, stale_section
from simulator.reports.facts import described
from simulator.reports.operations import operation_section
from simulator.reports.pipes import WAITING, limiter, present_causes, share
from simulator.reports.races_text import race_section
from simulator.reports.run import RunReport
from simulator.reports.synchronisation_text import synchronisation_section
from simulator.reports.terminal import indented, table
from simulator.reports.what_if import what_if_section
from simulator.timing import Cause

WIDE = 130
"""Columns from which the table of source lines also quotes the source."""

_LEGEND = "cycles: start to end, overlapping; pipe cycles: spent by the pipe on the line; share: of these"
_SHORT = 90


def run_text(report: RunReport, width: int) -> RenderableType:
    """Return the text of the report for a terminal of `width` columns."""
    return Group(*_sections(report, width))


def _sections(report: RunReport, width: int) -> Iterator[RenderableType]:
    yield from _head(report)
    yield Text()
    yield _pipe_table(report)
    if report.lost_most is not None:
        yield Text(report.lost_most.sentence())
    yield Text()
    yield _line_table(report, width)
    yield indented(Text(_LEGEND, style="dim"))
    executions, cycles = report.bookkeeping
    if executions:
        yield indented(Text(f"not listed: index arithmetic and loops, {executions} executions, {cycles} cycles"))
    executions, cycles = report.inserted
    if executions:
        yield indented(
            Text(f"not listed: inserted flags and barriers, {executions} executions, {cycles} cycles waited")
        )
    yield Text()
    if report.show_synchronisation:
        yield from synchronisation_section(report.result.loaded)
    yield from _buffers(report)
    yield from _outputs(report)
    yield from operation_section(report.operations)
    yield from _warnings(report)
    yield from race_section(report.result.races)
    yield from stale_section(report.result.stale_reads)
    yield from lint_section(report.findings)
    if report.gains:
        yield from what_if_section(report.gains, report.result.cycles)
    yield from _facts(report)


def _head(report: RunReport) -> Iterator[RenderableType]:
    result = report.result
    target = result.loaded.target
    yield Text.assemble((f"{result.loaded.file} @{result.loaded.entry}", "bold"))
    yield Text(f"target {target.name} ({target.title}), engine {result.engine}")
    time = duration(report.seconds)
    clock = f"{target.frequency.megahertz} MHz"
    yield Text.assemble((f"{result.cycles} cycles", "bold"), f" = {time} at {clock}")
    found = limiter(result.timing)
    yield Text(found.sentence() if found else "no pipe had anything to do", style="bold yellow" if found else "")


def duration(seconds: float) -> str:
    """Return a time in the largest unit in which it is at least 1."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3f} {unit}"
    return f"{seconds / 1e-9:.3f} ns"


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


def _line_table(report: RunReport, width: int) -> Table:
    wide = width >= WIDE
    numbers = ("line", "times", "first start", "last end", "cycles", "pipe cycles", "share")
    made = table("line", "instruction", "pipe", *numbers[1:], *(("source",) if wide else ()), numbers=numbers)
    for line in report.lines:
        counts = (line.executions, line.first_start, line.last_end, line.cycles, line.pipe_cycles)
        source = [Text(line.span.text.strip(), no_wrap=True, overflow="ellipsis")] if wide else []
        made.add_row(
            str(line.span.line),
            line.text,
            line.pipe,
            *map(str, counts),
            share(line.pipe_cycles, report.result.cycles),
            *source,
        )
    return made


def _buffers(report: RunReport) -> Iterator[RenderableType]:
    for use in report.buffers:
        used = use.end - use.start
        yield Text(
            f"buffer {use.name}: bytes {use.start} .. {use.end - 1} touched, {used} of {use.capacity} "
            f"({share(used, use.capacity)})"
        )
    if not report.buffers:
        yield Text("buffers: none touched")


def _outputs(report: RunReport) -> Iterator[RenderableType]:
    if not report.outputs:
        yield Text("outputs: none computed" if report.result.loaded.arguments else "outputs: none")
        return
    for output in report.outputs:
        shape = " x ".join(map(str, output.shape))
        yield Text(f"output {output.name}: {output.format} [{shape}], sha256 {output.sha256}")
        if output.file is not None:
            yield indented(Text(f"written to {output.file}"))
    if all(output.file is None for output in report.outputs):
        yield indented(Text("not written; --out DIR writes DIR/NAME.npy"))


def _warnings(report: RunReport) -> Iterator[RenderableType]:
    for warning in report.result.warnings:
        yield Text.assemble(("warning: ", "bold yellow"), warning)


def _facts(report: RunReport) -> Iterator[RenderableType]:
    if not report.facts:
        return
    yield Text()
    yield Text("rests on facts that are not documented (in full: --json)", style="bold")
    for fact in report.facts:
        yield indented(Text(f"{fact.name} ({fact.status}): {described(fact.value)}"))
        yield indented(indented(Text(shortened(fact.source), style="dim")))


def shortened(text: str, limit: int = _SHORT) -> str:
    """Return the beginning of a text that is longer than `limit` characters."""
    return text if len(text) <= limit else text[: limit - 3].rstrip() + "..."
