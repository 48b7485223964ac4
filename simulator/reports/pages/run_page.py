"""The page of a run: the contents of its text report, and drawings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, pairwise

from castsim.execution.timing import WAITING, Cause, repeated, share
from castsim.isa.dataclass import dataclass, field, replace
from castsim.reports.cycle_evidence import WEIGHTIEST, Share
from castsim.reports.documents import Document, identifier, shortened
from castsim.reports.launches import written_launches
from castsim.reports.numbers import clock, described, duration, grouped
from castsim.reports.pages.blocks import (
    Bars,
    Block,
    Cell,
    Curve,
    Curves,
    Folded,
    Lanes,
    Line,
    Packed,
    Page,
    PageSection,
    PageTable,
    ProgramListing,
    Series,
    SourceRow,
    Text,
    Tone,
    cause_series,
    text_blocks,
)
from castsim.reports.pages.run_timeline import (
    RunTimeline,
    interval_columns,
    output_blocks,
    run_timeline,
    timeline_lanes,
)
from castsim.reports.run_cycles import headline
from castsim.reports.run_findings import PRINTED, race_notice, section, stale_notice
from castsim.reports.run_outcomes import OUTCOMES, CastLine, cast_lines, heading_of
from castsim.reports.run_report import RunReport
from castsim.reports.sections.kernel import BufferMap, BufferStretch, buffer_maps
from castsim.reports.views.perfetto import CounterTrack, counters
from castsim.reports.views.recording import Window
from castsim.reports.views.timeline import DrawnOperation, Timeline
from castsim.running.program_runs import Result

# The buffers of a run over time: what their bytes hold, and how many of them are needed.

_RUN_MEMORY_MOST_EXECUTIONS = 200_000
"""Maximum number of executions whose accesses are examined; longer runs have no map on the page."""

_MOST_ROWS = 40
"""Maximum number of buffer stretches with a row; `--report kernel --json` has all."""

_MOST_POINTS = 4000
"""Maximum number of changes of a curve; longer curves show the largest value of each stretch of cycles."""

_TONES = (Tone("live", "live"), Tone("read", "read"), Tone("written", "write"))
_LIVE, _READ, _WRITTEN = range(3)


def memory_blocks(result: Result, timeline: Timeline) -> Iterator[Block]:
    """Yield the maps of the buffers that a run used, and their bytes in use; empty for assembly, which has none."""
    target = result.loaded.target
    if not target.has_tiles:
        return
    if len(result.timing.executions) > _RUN_MEMORY_MOST_EXECUTIONS:
        yield Text((Line(f"No map: more than {_RUN_MEMORY_MOST_EXECUTIONS:,} instructions were executed.", "dim"),))
        return
    sizes = {name: memory.capacity_bytes for name, memory in target.memories.items()}
    for buffer in buffer_maps(result.loaded.tree, result.timing, target):
        yield _lanes(buffer, result.cycles)
    tracks = counters(result.loaded.tree, result.timing, timeline, sizes)
    where = f"cycles {_span(timeline.start, timeline.end)}"
    for unit, what in (("bytes", "Bytes in use"), ("operations", "Operations that wait in the queues of pipes")):
        own = [track for track in tracks if track.unit == unit]
        if own:
            curves = tuple(_curve(track, sizes, timeline) for track in own)
            yield Curves(f"{what}, {where}", unit, timeline.start, timeline.end, curves)


def _span(first: int, last: int) -> str:
    return f"{grouped(first)} .. {grouped(last)}"


def _curve(track: CounterTrack, sizes: Mapping[str, int], timeline: Timeline) -> Curve:
    return Curve(track.of, _fewer(track.values, timeline), sizes.get(track.of))


def _lanes(buffer: BufferMap, total: int) -> Lanes:
    stretches = buffer.stretches[:_MOST_ROWS]
    columns = interval_columns([_intervals(stretch, number) for number, stretch in enumerate(stretches, 1)], 0)
    columns["texts"] = [_told(buffer.name, stretch, total) for stretch in stretches]
    more = len(buffer.stretches) - len(stretches)
    return Lanes(
        caption=f"Buffer {buffer.name}: peak {grouped(buffer.peak_bytes)} of {grouped(buffer.capacity)} bytes in use "
        f"({share(buffer.peak_bytes, buffer.capacity)}), first in cycle {grouped(buffer.peak_cycle)}",
        unit="cycles",
        start=0,
        end=total,
        rows=tuple(_span(stretch.start, stretch.last_byte) for stretch in stretches),
        tones=_TONES,
        packed=Packed(columns),
        notes=(f"{more} more address ranges: `--report kernel --json FILE` lists all.",) if more else (),
    )


def _intervals(stretch: BufferStretch, item: int) -> list[tuple[int, int, int, int]]:
    """Return the cycles of a stretch by state: written, else read, else still needed."""
    layers = ((stretch.writes, _WRITTEN), (stretch.reads, _READ), (stretch.live, _LIVE))
    edges = sorted({edge for intervals, _ in layers for interval in intervals for edge in interval})
    merged: list[tuple[int, int, int, int]] = []
    nexts = [0] * len(layers)
    for start, end in pairwise(edges):
        tone = None
        for layer, (intervals, kind) in enumerate(layers):
            while nexts[layer] < len(intervals) and intervals[nexts[layer]][1] <= start:
                nexts[layer] += 1
            inside = nexts[layer] < len(intervals) and intervals[nexts[layer]][0] <= start
            if inside and tone is None:
                tone = kind
        if tone is None:
            continue
        if merged and merged[-1][1] == start and merged[-1][2] == tone:
            merged[-1] = (merged[-1][0], end, tone, item)
        else:
            merged.append((start, end, tone, item))
    return merged


def _told(name: str, stretch: BufferStretch, total: int) -> list[str]:
    scratch = ", scratch" if stretch.scratch else ""
    return [
        f"{name} bytes {_span(stretch.start, stretch.last_byte)}{scratch}",
        f"written by line {_numbers(stretch.written_by)}; read by line {_numbers(stretch.read_by)}",
        f"live for {share(stretch.live_cycles, total)} of the run",
    ]


def _numbers(lines: Sequence[int]) -> str:
    return ", ".join(map(str, lines)) or "-"


def _fewer(points: Sequence[tuple[int, int]], timeline: Timeline) -> tuple[tuple[int, int], ...]:
    """Return a curve's points; for very many points, the largest of each of equally long stretches."""
    if len(points) <= _MOST_POINTS:
        return tuple(points)
    width = max(1, (timeline.end - timeline.start) // (_MOST_POINTS // 2))
    highest: dict[int, tuple[int, int]] = {}
    for cycle, value in points:
        bucket = (cycle - timeline.start) // width
        if bucket not in highest or highest[bucket][1] < value:
            highest[bucket] = (cycle, value)
    return tuple(highest.values())


# The program of a run with the cycles of its lines and their causes.

_CONSTANT = re.compile(r"\s*%\S+ = (arith\.)?constant\b")
"""Pattern of a line that only names a number, and costs nothing."""

_MOST_LINES = 6000
"""Maximum number of lines shown with their neighbours; longer programs show only lines that cost cycles."""


@dataclass(slots=True)
class _Cost:
    """The cycles of a line by pipe and cause, and the number of executions of its instructions."""

    pipes: dict[str, dict[Cause, int]] = field(default_factory=dict)
    executions: int = 0
    inserted: int = 0
    inside: int = 0

    def add(self, pipe: str, causes: Mapping[Cause, int], times: int = 1) -> None:
        own = self.pipes.setdefault(pipe, {})
        for cause, cycles in causes.items():
            own[cause] = own.get(cause, 0) + times * cycles

    @property
    def causes(self) -> Mapping[Cause, int]:
        """Cycles by cause of the pipe that worked longest: pipes overlap, so their sum may exceed the run."""
        return max(self.pipes.values(), key=lambda own: (_worked(own), sum(own.values())), default={})

    @property
    def cycles(self) -> int:
        return sum(self.causes.values())

    @property
    def work(self) -> int:
        """Cycles in which the line occupied a pipe; waits for other pipes are not costs of the line."""
        return _worked(self.causes)


def _worked(causes: Mapping[Cause, int]) -> int:
    return sum(cycles for cause, cycles in causes.items() if cause not in WAITING)


def program_block(result: Result) -> ProgramListing:
    """Return the program with the cost of its lines: the cycles that a pipe spent on each, work and waiting.

    For lines inside a launch, these are the launch's cycles attributed to them.
    """
    costs = {} if result.untimed else _costs(result)
    total = 0 if result.untimed else result.cycles
    lines = _lines(result)
    shown = lines if len(lines) <= _MOST_LINES else {number: lines.get(number, "") for number in sorted(costs)}
    cut = "" if shown is lines else f"; only lines with cycles, of {len(lines):,}"
    caption = (
        "cycles: spent on the line by the pipe that it occupies longest, including waits; occupied: without waits for "
        "other pipes, in percent of the run"
    )
    if any(cost.inside for cost in costs.values()):
        caption += "; a launch includes the cycles of the lines inside it"
    return ProgramListing(f"{caption}{cut}.", tuple(_row(number, text, costs, total) for number, text in shown.items()))


def _row(number: int, text: str, costs: Mapping[int, _Cost], total: int) -> SourceRow:
    cost = costs.get(number)
    if cost is None or not (cost.cycles or cost.executions):
        return SourceRow(number, text, folds=_CONSTANT.match(text) is not None)
    causes = tuple((identifier(cause), str(cause), cost.causes[cause]) for cause in Cause if cost.causes.get(cause))
    share = cost.work / total if total else 0.0
    note = f"{cost.inserted} of these cycles at inserted flags and barriers" if cost.inserted else ""
    return SourceRow(number, text, cost.cycles, share, cost.executions or None, causes, note)


def _costs(result: Result) -> dict[int, _Cost]:
    tree, timing, file = result.loaded.tree, result.timing, result.loaded.file
    costs: dict[int, _Cost] = {}
    executions = timing.executions
    for operation, _, times in repeated(timing.operations):
        instruction = tree.instructions[executions[operation.execution].instruction]
        if instruction.span.file != file:
            continue
        cost = costs.setdefault(instruction.span.line, _Cost())
        cost.add(operation.pipe, operation.causes, times)
        cost.inserted += times * sum(operation.causes.values()) if instruction.inserted else 0
    for execution, _, times in repeated(executions):
        instruction = tree.instructions[execution.instruction]
        if not instruction.inserted and instruction.span.file == file:
            costs.setdefault(instruction.span.line, _Cost()).executions += times
    _add_launches(result, costs)
    return costs


def _add_launches(result: Result, costs: dict[int, _Cost]) -> None:
    for launches in written_launches(result.loaded.tree, result.loaded.target):
        for line in launches.lines:
            if line.line is None or line.line == launches.line:
                continue
            cost = costs.setdefault(line.line, _Cost())
            cost.executions += line.executions
            cost.inside += line.cycles
            cost.add("", line.causes)


def _lines(result: Result) -> dict[int, str]:
    """Return the lines of the program; for a binary, those of its disassembly."""
    source = result.loaded.source
    if source:
        return dict(enumerate(source.split("\n"), 1))
    line_texts: dict[int, list[str]] = {}
    for instruction in result.loaded.tree.instructions:
        texts = line_texts.setdefault(instruction.span.line, [])
        if not instruction.inserted and instruction.text not in texts:
            texts.append(instruction.text)
    return {number: "; ".join(line_texts[number]) for number in sorted(line_texts)}


_WIDTH = 120
"""Width in columns for text sections: too narrow for source lines, which the page shows elsewhere."""

_MOST_EXECUTIONS = 2000
"""Maximum number of executions that the page lists too; `--json` has all."""


def run_page(
    report: RunReport,
    document: Document,
    window: Window | None = None,
    more: Sequence[Block] = (),
    grammar: tuple[tuple[str, str], ...] = (),
) -> Page:
    """Return the page of a run: `document` is its JSON, `window` the timeline's cycles, None for all or the first.

    `more` is what tools add to the summary; `grammar` colours the program's text.

    Raises:
        ReadError: the window reaches beyond the run.
    """
    loaded = report.result.loaded
    links = () if report.latencies is None else report.latencies.links
    shown = None if report.result.untimed else run_timeline(report.result, window, links)
    program = replace(program_block(report.result), grammar=grammar)
    contents = _sections(report, shown, program, more)
    sections = [PageSection(name, title, tuple(blocks)) for name, title, blocks in contents]
    return Page(
        kind="run",
        title=loaded.title,
        subtitle=f"castsim run, target {loaded.target.name} ({loaded.target.title})",
        sections=tuple(part for part in sections if part.blocks),
        result=shortened(document, "instructions", _MOST_EXECUTIONS),
    )


def _sections(
    report: RunReport, shown: RunTimeline | None, program: ProgramListing, more: Sequence[Block]
) -> Iterator[tuple[str, str, Iterable[Block]]]:
    result = report.result
    summary = tuple(summary_lines(report))
    yield "summary", "Summary", [*([Text(summary)] if summary else []), *more]
    if shown is not None:
        yield "timeline", "Timeline", [timeline_lanes(result, shown)]
    yield "notes", "Notes", _notes(report, summary)
    yield "program", "Program", [program]
    if shown is not None:
        yield "buffers", "Buffers", memory_blocks(result, shown.timeline)
        yield "causes", "Causes", _causes(report)
        yield "path", "Critical path", _path(report, shown)
        yield "launches", "Inside of launches", _of_text(report, "launches")
    yield "outputs", "Outputs", (*_of_text(report, "outputs"), *output_blocks(result))
    yield "casts", "Casts", cast_blocks(cast_lines(report))
    yield "stale", "Stale reads", _of_text(report, "stale_reads")
    yield "lint", "Lint", _of_text(report, "lint")
    yield "what-if", "What if", _of_text(report, "what_if")
    yield "rests-on", "Evidence", (*_of_text(report, "path", "choices", "opaque", "operations"), *_facts(report))


def _of_text(report: RunReport, *names: str) -> Iterator[Block]:
    """Yield the text of sections of the report."""
    for name in names:
        part = section(name)
        if not (part.of_time and report.result.untimed):
            yield from text_blocks(part.text(report, _WIDTH))


def summary_lines(report: RunReport) -> Iterator[Line]:
    """Yield doubts about the answer, the answer in a sentence, and the costliest line."""
    result = report.result
    yield from (Line(text, "alarm") for text in _doubts(report))
    if result.untimed:
        return
    time = _time(report).replace(" = ", ", ")
    first, *others = headline(report)
    yield Line(f"{time}. {first[:1].upper()}{first[1:]}.", "answer")
    yield from (Line(text, "strong") for text in others)
    yield Line(f"Trust: {report.trust.sentence()}")


def _time(report: RunReport) -> str:
    result = report.result
    return f"{grouped(result.cycles)} cycles = {duration(report.seconds)} at {clock(result.loaded.target)}"


def _notes(report: RunReport, summary: Iterable[Line]) -> Iterator[Block]:
    """Yield the other opening lines of the text report."""
    loaded = report.result.loaded
    texts = {line.text for line in summary}
    texts |= set() if report.result.untimed else {_time(report), report.trust.sentence(), *headline(report)}
    names = ("notice", "head", "headline", "warnings", "races", "basis")
    for block in _of_text(report, *(name for name in names if name in PRINTED)):
        if isinstance(block, Text):
            heads = (loaded.file, f"{loaded.title} on ")
            lines = (line for line in block.lines if line.text not in texts and not line.text.startswith(heads))
            yield Text(tuple(lines))
        else:
            yield block


def _doubts(report: RunReport) -> Iterator[str]:
    """Yield doubts about cycles or values."""
    result = report.result
    yield from filter(None, (race_notice(result.races), stale_notice(result.stale_reads)))
    if result.placeholders is not None:
        yield f"{len(result.placeholders.uses)} operations are not modelled: the run takes longer than shown"


def cause_bars(report: RunReport) -> Bars:
    """Return the cycles of each pipe as a bar whose parts are its causes."""
    pipes = report.result.pipes
    series = cause_series([pipe.causes for pipe in pipes.values()])
    return Bars("Cycles of each pipe by cause", "cycles", tuple(pipes), series, table=False)


def _causes(report: RunReport) -> Iterator[Block]:
    yield cause_bars(report)
    yield from _of_text(report, "pipes")
    yield from line_blocks(report)


def line_blocks(report: RunReport) -> Iterator[Block]:
    """Yield the work of each source instruction, most first; instructions that only wait are folded.

    An instruction that a compiler copies (by inlining or unrolling) has one row.
    """
    rows: dict[bool, list[tuple[Cell, ...]]] = {True: [], False: []}
    for line in sorted(report.lines, key=lambda line: (-line.work, -line.pipe_cycles)):
        cycles = line.work, line.pipe_cycles - line.work, share(line.work, report.result.cycles)
        rows[line.work > 0].append((line.span.line, line.text, line.pipe, line.executions, *cycles))
    columns = ("line", "instruction", "pipe", "times", "occupied", "waits", "share")
    blocks = {
        works: PageTable("", columns, tuple(own), numbers=(0, 3, 4, 5, 6), heat=4, lines=0, most=40)
        for works, own in rows.items()
        if own
    }
    if True in blocks:
        yield replace(
            blocks[True],
            caption="Cycles that each instruction occupies its pipe, and cycles that the pipe waits for others",
        )
    if False in blocks:
        yield Folded(f"{len(rows[False])} instructions that only wait or set flags", (blocks[False],))


def cast_blocks(casts: Sequence[CastLine]) -> Iterator[Block]:
    """Yield how many numbers each cast rounded, clamped and so on."""
    if not casts:
        return
    names = tuple(f"line {line.line}: {line.src} -> {line.dst}" for line in casts)
    counts = {name: tuple(getattr(line, name) for line in casts) for name in OUTCOMES}
    exact = tuple(line.elements - sum(getattr(line, name) for name in OUTCOMES) for line in casts)
    series = [Series("exact", exact, "exact"), *(Series(heading_of(name), counts[name], name) for name in OUTCOMES)]
    yield Bars("Results of casts", "numbers", names, tuple(bars for bars in series if any(bars.values)))


def _path(report: RunReport, shown: RunTimeline) -> Iterator[Block]:
    """Yield the cycles of the critical path by cause, most first."""
    if not report.result.loaded.target.has_tiles:
        yield from _chain(report, shown)
        yield Folded("Cycles of each bundle", (_bundles(report, shown),))
        return
    spent: dict[tuple[int | None, str, str], list[int]] = {}
    for step in shown.path:
        row = step.row
        key = (None, "not issued yet", "") if row is None else (row.line or None, _named(row), row.pipe)
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
        f"Cycles {_span(timeline.start, timeline.start + total)} by operation: a cycle saved here shortens the run, "
        "until another path is longer"
    )
    columns = ("line", "operation", "pipe", "times", "cycles", "share")
    yield PageTable(caption, columns, rows, numbers=(0, 3, 4, 5), heat=4, lines=0)


def _chain(report: RunReport, shown: RunTimeline) -> Iterator[Block]:
    """Yield the chain of results that limits a run of bundles, link by link."""
    latencies = report.latencies
    if latencies is None or not latencies.links:
        return
    ran = {step.link: step for step in reversed(shown.chain)}
    rows = tuple(
        (
            link.producer.span.line, link.names[0], link.register, link.consumer.span.line, link.names[1],
            link.distance, None if link not in ran else ran[link].end - ran[link].start,
            None if link not in ran else ran[link].nops,
        )
        for link in dict.fromkeys(latencies.links)
    )  # fmt: skip
    bundles = f"{latencies.length} bundle{'s' * (latencies.length != 1)}"
    what = (
        "The dependence chain that limits the run"
        if latencies.binds
        else "The longest dependence chain, which is not a limit"
    )
    yield PageTable(
        f"{what}: {bundles}, {grouped(latencies.trips)} times; {latencies.costs()}",
        ("line", "producer", "register", "read by line", "consumer", "distance, bundles", "taken, cycles", "NOPs"),
        rows, numbers=(0, 3, 5, 6, 7), heat=5, lines=0,
    )  # fmt: skip


def _bundles(report: RunReport, shown: RunTimeline) -> PageTable:
    """Return the cycles of bundles: they are issued in order, each after the results that it waits for."""
    timeline, tree = shown.timeline, report.result.loaded.tree
    spent: dict[int, list[int]] = {}
    last = timeline.start - 1
    for execution in islice(report.result.timing.executions, timeline.executions):
        if timeline.start <= execution.start < timeline.end:
            own = spent.setdefault(execution.instruction, [0, 0])
            own[0] += 1
            own[1] += execution.start - last
            last = execution.start
    costliest = sorted(spent.items(), key=lambda item: -item[1][1])
    rows: list[tuple[Cell, ...]] = [
        (tree.instructions[number].span.line, tree.instructions[number].text, times, cycles, cycles - times)
        for number, (times, cycles) in costliest
    ]
    rows.append((None, "after the last bundle: latency of its results", 1, timeline.end - 1 - last, None))
    caption = (
        f"Cycles {_span(timeline.start, timeline.end)} by bundle, from the issue of the one before; stalled: those "
        "in which nothing issues"
    )
    columns = ("line", "bundle", "times", "cycles", "stalled")
    return PageTable(caption, columns, tuple(rows), numbers=(0, 2, 3, 4), heat=3, lines=0)


def _named(row: DrawnOperation) -> str:
    return row.text if row.text == row.name else f"{row.text}: {row.name}"


def _words(entry: Share) -> tuple[str, str, str]:
    return str(entry.basis), str(entry.standing), ", ".join(entry.operations)


def _facts(report: RunReport) -> Iterator[Block]:
    if not report.result.untimed:
        rests = tuple(
            (*_words(entry), entry.cycles, share(entry.cycles, report.result.cycles)) for entry in report.trust.shares
        )
        columns = ("evidence", "compared with it", "operations", "cycles", "share")
        yield PageTable("Evidence for the cycles", columns, rests, numbers=(3, 4))
    if report.sensitivities:
        caption = "Change in cycles if a number of a fact is 10 % lower, and 10 % higher"
        weights = tuple(
            (sensitivity.fact, str(sensitivity.status), f"{sensitivity.value}", sensitivity.less, sensitivity.more)
            for sensitivity in report.sensitivities
        )
        yield PageTable(
            caption, ("number", "status", "value", "-10 %", "+10 %"), weights, numbers=(2, 3, 4), most=WEIGHTIEST
        )
    if not report.facts or report.result.untimed:
        return
    rows = tuple((fact.name, fact.status, described(fact.value), fact.source) for fact in report.facts)
    caption = "Facts behind the cycles that no vendor document states"
    yield PageTable(caption, ("fact", "status", "value", "source"), rows)
