"""The page of a run: what its text report says, and what only a picture shows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from castsim.estimating.trust import WEIGHTIEST, Share
from castsim.reports.documents import Document, Json, identifier
from castsim.reports.facts import described
from castsim.reports.numbers import grouped
from castsim.reports.pages.blocks import Bars, Block, Cell, Line, Page, Section, Series, Table, Text
from castsim.reports.pages.from_text import text_blocks
from castsim.reports.pages.run_memory import memory_blocks
from castsim.reports.pages.run_program import program_block
from castsim.reports.pages.run_timeline import RunTimeline, run_timeline, timeline_lanes
from castsim.reports.pages.run_values import output_blocks
from castsim.reports.pipes import limiter, present_causes, share
from castsim.reports.run import section
from castsim.reports.run_report import RunReport
from castsim.reports.sections.casts import heading_of
from castsim.reports.sections.head import clock, duration
from castsim.reports.stale_reads import stale_notice
from castsim.reports.views.timeline import DrawnOperation
from castsim.reports.views.window import Window

_WIDTH = 120
"""Columns that text sections are asked for: too few for the source lines, which the page has elsewhere."""

_MOST_EXECUTIONS = 2000
"""Executions up to which the page holds the list of them too; `--json` has all."""

_OUTCOMES: Mapping[str, str] = {
    "rounded": "initiation_interval",
    "clamped": "write",
    "wrapped": "serialising_branch",
    "overflow": "bad",
    "nan": "memory_bandwidth",
}
"""The ways in which a cast does not keep a number, each with its tone."""


def run_page(report: RunReport, document: Document, window: Window | None = None) -> Page:
    """Return the page of a run: `document` is its JSON, `window` what the timeline shows, None for all or the first.

    Raises:
        ReadError: the window reaches beyond the run.
    """
    loaded = report.result.loaded
    shown = None if report.result.untimed else run_timeline(report.result, window)
    found = _sections(report, document, shown)
    sections = [Section(name, title, tuple(blocks)) for name, title, blocks in found]
    return Page(
        kind="run",
        title=f"{loaded.file} @{loaded.entry}",
        subtitle=f"castsim run, target {loaded.target.name} ({loaded.target.title})",
        sections=tuple(each for each in sections if each.blocks),
        result=_kept(document),
    )


def _kept(document: Document) -> Document:
    """Return the JSON of a run without the list of executions where that is long."""
    listed = document.get("instructions")
    long = isinstance(listed, list) and len(listed) > _MOST_EXECUTIONS
    kept: dict[str, Json] = {key: value for key, value in document.items() if not (long and key == "instructions")}
    return kept


def _sections(
    report: RunReport, document: Document, shown: RunTimeline | None
) -> Iterator[tuple[str, str, Iterable[Block]]]:
    result = report.result
    said = tuple(_summary(report))
    yield "summary", "Summary", [Text(said)] if said else []
    if shown is not None:
        yield "timeline", "Timeline", [timeline_lanes(result, shown)]
    yield "notes", "Notes", _notes(report, said)
    yield "program", "Program", [program_block(result)]
    if shown is not None:
        yield "buffers", "Buffers", memory_blocks(result, shown.timeline)
        yield "causes", "Causes", _causes(report)
        yield "path", "Critical path", _path(report, shown)
        yield "launches", "Inside of launches", _of_text(report, "launches")
    yield "outputs", "Outputs", (*_of_text(report, "outputs"), *output_blocks(result))
    yield "casts", "Casts", cast_blocks(document)
    yield "stale", "Stale reads", _of_text(report, "stale_reads")
    yield "lint", "Lint", _of_text(report, "lint")
    yield "what-if", "What if", _of_text(report, "what_if")
    yield "rests-on", "Rests on", (*_of_text(report, "path", "choices", "opaque", "operations"), *_facts(report))


def _of_text(report: RunReport, *names: str) -> Iterator[Block]:
    """Yield what sections of the text report print."""
    for name in names:
        found = section(name)
        if not (found.of_time and report.result.untimed):
            yield from text_blocks(found.text(report, _WIDTH))


def _summary(report: RunReport) -> Iterator[Line]:
    """Yield what makes the answer doubtful, the answer in a sentence, and the line that costs most."""
    result = report.result
    yield from (Line(text, "alarm") for text in _doubts(report))
    if result.untimed:
        return
    time = _time(report).replace(" = ", ", ")
    yield Line(f"{time}. {_why(report)}.", "answer")
    if report.lost_most is not None:
        yield Line(report.lost_most.sentence(), "strong")


def _time(report: RunReport) -> str:
    result = report.result
    return f"{grouped(result.cycles)} cycles = {duration(report.seconds)} at {clock(result.loaded.target)}"


def _why(report: RunReport) -> str:
    found, latencies = limiter(report.result.timing), report.latencies
    if latencies is not None and latencies.binds:
        return latencies.sentence()
    return found.sentence() if found else "No pipe had anything to do"


def _notes(report: RunReport, said: Iterable[Line]) -> Iterator[Block]:
    """Yield what else the text report says first."""
    loaded = report.result.loaded
    known = {f"{loaded.file} @{loaded.entry}", *(line.text for line in said)}
    known |= set() if report.result.untimed else {_time(report), _why(report)}
    for block in _of_text(report, "notice", "head", "warnings", "races"):
        if isinstance(block, Text):
            yield Text(tuple(line for line in block.lines if line.text not in known))
        else:
            yield block


def _doubts(report: RunReport) -> Iterator[str]:
    """Yield what makes cycles or values doubtful."""
    result = report.result
    races, stale = len(result.races or ()), stale_notice(result.stale_reads)
    if races:
        yield f"{races} race{'s' * (races > 1)}: on the chip, values and cycles may differ from these from run to run"
    if stale is not None:
        yield stale
    if result.placeholders is not None:
        yield f"{len(result.placeholders.uses)} of its operations are not modelled: it takes longer than this"


def _causes(report: RunReport) -> Iterator[Block]:
    pipes = report.result.pipes
    series = tuple(
        Series(str(cause), tuple(pipe.causes.get(cause, 0) for pipe in pipes.values()), identifier(cause))
        for cause in present_causes(pipes)
    )
    yield Bars("Cycles of each pipe by cause", "cycles", tuple(pipes), series, table=False)
    yield from _of_text(report, "pipes", "lines")


def cast_blocks(document: Document) -> Iterator[Block]:
    """Yield how many numbers each cast rounded, clamped and so on, as the JSON has it."""
    casts = document.get("casts")
    if not isinstance(casts, list | tuple) or not casts:
        return
    found = [each for each in casts if isinstance(each, dict)]
    names = tuple(f"line {each['line']}: {each['src']} -> {each['dst']}" for each in found)
    counts = {name: tuple(_count(each, name) for each in found) for name in ("elements", *_OUTCOMES)}
    others = [sum(values) for values in zip(*(counts[name] for name in _OUTCOMES), strict=True)]
    exact = tuple(whole - other for whole, other in zip(counts["elements"], others, strict=True))
    series = [Series("exact", exact, "good")]
    series += (Series(heading_of(name), counts[name], tone) for name, tone in _OUTCOMES.items())
    yield Bars("What casts did to their numbers", "numbers", names, tuple(each for each in series if any(each.values)))


def _count(entry: Mapping[str, Json], name: str) -> int:
    value = entry.get(name)
    return value if isinstance(value, int) else 0


def _path(report: RunReport, shown: RunTimeline) -> Iterator[Block]:
    """Yield what the critical path spends its cycles on, most first."""
    if not report.result.loaded.target.has_tiles:
        yield _bundles(report, shown)
        return
    spent: dict[tuple[int | None, str, str], list[int]] = {}
    for step in shown.path:
        row = step.row
        key = (None, "not sent yet (issue)", "") if row is None else (row.line or None, _named(row), row.pipe)
        own = spent.setdefault(key, [0, 0])
        own[0] += 1
        own[1] += step.end - step.start
    timeline = shown.timeline
    total = sum(cycles for _, cycles in spent.values())
    rows = tuple(
        (line, text, pipe, times, cycles, share(cycles, total))
        for (line, text, pipe), (times, cycles) in sorted(spent.items(), key=lambda item: -item[1][1])
    )
    caption = (
        f"What the cycles {timeline.start} .. {timeline.start + total} are spent on, in order: a cycle saved here "
        "is a cycle saved in all, until another path is longer"
    )
    columns = ("line", "operation", "pipe", "times", "cycles", "share")
    yield Table(caption, columns, rows, numbers=(0, 3, 4, 5), heat=4, lines=0)


def _bundles(report: RunReport, shown: RunTimeline) -> Table:
    """Return what bundles take: they are issued one after the other, each after what it waits for."""
    timeline, tree = shown.timeline, report.result.loaded.tree
    spent: dict[int, list[int]] = {}
    last = timeline.start - 1
    for execution in islice(report.result.timing.executions, timeline.executions):
        if timeline.start <= execution.start < timeline.end:
            own = spent.setdefault(execution.instruction, [0, 0])
            own[0] += 1
            own[1] += execution.start - last
            last = execution.start
    found = sorted(spent.items(), key=lambda item: -item[1][1])
    rows: list[tuple[Cell, ...]] = [
        (tree.instructions[number].span.line, tree.instructions[number].text, times, cycles, cycles - times)
        for number, (times, cycles) in found
    ]
    rows.append((None, "after the last bundle, until every result is there", 1, timeline.end - 1 - last, None))
    caption = (
        f"Bundles are issued one by one: cycles {timeline.start} .. {timeline.end} by the bundle that was issued "
        "at their end, and of these the cycles in which it stood still"
    )
    columns = ("line", "bundle", "times", "cycles", "stalled")
    return Table(caption, columns, tuple(rows), numbers=(0, 2, 3, 4), heat=3, lines=0)


def _named(row: DrawnOperation) -> str:
    return row.text if row.text == row.name else f"{row.text}: {row.name}"


def _words(found: Share) -> tuple[str, str, str]:
    return str(found.basis), str(found.standing), ", ".join(found.operations)


def _facts(report: RunReport) -> Iterator[Block]:
    if not report.result.untimed:
        rests = tuple(
            (*_words(each), each.cycles, share(each.cycles, report.result.cycles)) for each in report.trust.shares
        )
        columns = ("evidence", "compared with it", "operations", "cycles", "share")
        yield Table("What the cycles rest on", columns, rests, numbers=(3, 4))
    if report.sensitivities:
        caption = "What the cycles change by if a number of a fact is 10 % less, and 10 % more"
        weights = tuple(
            (each.fact, str(each.status), f"{each.value}", each.less, each.more) for each in report.sensitivities
        )
        yield Table(
            caption, ("number", "status", "value", "-10 %", "+10 %"), weights, numbers=(2, 3, 4), most=WEIGHTIEST
        )
    if not report.facts or report.result.untimed:
        return
    rows = tuple((fact.name, fact.status, described(fact.value), fact.source) for fact in report.facts)
    caption = "Facts that the cycles rest on and that no vendor document states"
    yield Table(caption, ("fact", "status", "value", "source"), rows)
