"""The sections of a run's report on time: the answer, pipes, lines, launches, limits, facts, buffers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS
from castsim.machines.mechanisms import InstructionLaunches, LineLaunches
from castsim.reports.documents import Document, Json, document, json_of
from castsim.reports.facts import described
from castsim.reports.numbers import CAUSE_COLOURS, causes_of, grouped, present_causes
from castsim.reports.run_report import ReportSection, RunReport
from castsim.reports.terminal import indented, table
from castsim.running import Result
from castsim.running.program_runs import written_launches
from castsim.running.source_lines import SourceLine, listed
from castsim.targets import Target
from castsim.targets.description import Status
from castsim.timing import WAITING, Cause, limiter, repeated, share

if TYPE_CHECKING:
    from castsim.machines.vliw.latency_bound import LatencyBound


_CLOCKS = {Status.ASSUMED: "assumed", Status.VENDOR_MODEL: "cost model's", Status.FITTED: "fitted"}


def _head_data(report: RunReport) -> Document:
    result = report.result
    if result.untimed:
        shown = document(result.loaded, "file", "entry", "target", file="program")
        return {**shown, "engine": None, "total_cycles": None, "seconds": None, "untimed": result.untimed}
    return {
        **document(result.loaded, "file", "entry", "target", file="program"),
        **document(result, "engine", "cycles", cycles="total_cycles"),
        **document(report, "seconds"),
        **({} if _launch(report) is None else {"launch_cycles": _launch(report)}),
    }


def _head_text(report: RunReport, width: int) -> Iterator[RenderableType]:
    del width
    result = report.result
    target = result.loaded.target
    yield Text.assemble((f"{result.loaded.file} @{result.loaded.entry}", "bold"))
    if result.untimed:
        yield Text(f"target {target.name} ({target.title})")
        yield Text(f"no cycles: {result.untimed}", style="bold yellow")
        yield Text()
        return
    yield Text(f"target {target.name} ({target.title}), engine {result.engine}")
    time = duration(report.seconds)
    yield Text.assemble((f"{grouped(result.cycles)} cycles", "bold"), f" = {time} at {clock(target)}")
    launch = _launch(report)
    if launch is not None:
        yield Text(f"launch: about {grouped(launch)} cycles more, in no pipe (the vendor's simulator)")
    for sentence in (report.trust.sentence(), report.trust.interval_sentence()):
        if sentence:
            yield Text(sentence)
    found, latencies = limiter(result.timing), report.latencies
    if found and latencies is not None and latencies.binds:
        yield Text(latencies.sentence(), style="bold yellow")
        yield Text(f"{latencies.costs()}, {found.pipe} {share(found.occupied, found.total)}")
    else:
        yield Text(found.sentence() if found else "no pipe had anything to do", style="bold yellow" if found else "")
    if report.lost_most is not None:
        yield Text(report.lost_most.sentence())
    if found and not report.gains:
        yield Text(f"next: {_next(report)}")
    yield Text()


def _next(report: RunReport) -> str:
    """Return what tells more of where the cycles go, or finds a better order."""
    if report.latencies is not None and report.latencies.binds:
        return "castsim advise tries shorter orders; --what-if latency shows the cost"
    more = ", --report kernel where the cycles go" if report.result.loaded.target.has_tiles else ""
    return f"--what-if all shows what each limit costs{more if not report.further else ''}"


def _launch(report: RunReport) -> int | None:
    """Return the cycles of a kernel beyond its pipes, None if nothing is known of them."""
    loaded = report.result.loaded
    if (launch := loaded.target.kernel_launch) is None:
        return None
    known = (VECTOR_OPERATIONS.get(each.mnemonic) for each in loaded.tree.instructions)
    return launch.of(each.kind for each in known if each is not None)


def clock(target: Target) -> str:
    """Return the clock in words: one that no document states says so."""
    status = target.frequency.status
    return f"{target.frequency.megahertz} MHz{f' ({_CLOCKS[status]} clock)' if status in _CLOCKS else ''}"


_UNITS = (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9))
_MOST_WHOLE = 1000


def duration(seconds: float) -> str:
    """Return a time in the largest unit in which it is at least 1, by four digits: clocks are not known better."""
    unit, scale = next(((unit, scale) for unit, scale in _UNITS if seconds >= scale), _UNITS[-1])
    number = seconds / scale
    return f"{number:,.0f} {unit}" if number >= _MOST_WHOLE else f"{number:.4g} {unit}"


HEAD = ReportSection(_head_text, _head_data)


# The cycles of every pipe by cause, and the instruction that lost most of them.


def _pipes_data(report: RunReport) -> Document:
    pipes = {
        name: {"busy_cycles": pipe.busy, "causes": json_of(causes_of(pipe))}
        for name, pipe in report.result.pipes.items()
    }
    lost = None if report.lost_most is None else report.lost_most.entry()
    return {"pipes": pipes, "lost_most": lost, **_latencies(report.latencies)}


def _latencies(found: LatencyBound | None) -> Document:
    """Return the dependence chain that bounds a run of bundles, null where none does."""
    if found is None:
        return {}
    if not found.binds:
        return {"latency_bound": None}
    chain: list[Json] = [
        {
            "producer": link.names[0],
            "producer_line": link.producer.span.line,
            "consumer": link.names[1],
            "consumer_line": link.consumer.span.line,
            "through": link.register,
            "distance_bundles": link.distance,
        }
        for link in found.links
    ]
    longest = chain[found.links.index(found.longest)]
    return {
        "latency_bound": {
            "longest": longest,
            "chain": chain,
            "chain_bundles": found.length,
            "trips": found.trips,
            "chain_cycles": found.cycles,
            "gained_cycles": found.gained,
        }
    }


def _pipes_text(report: RunReport, width: int) -> Iterator[RenderableType]:
    del width
    yield _pipe_table(report)
    yield Text()


def _pipe_table(report: RunReport) -> Table:
    pipes, total = report.result.pipes, report.result.cycles
    issuing = report.result.loaded.target.scalar_pipe
    made = table("cycles by cause", *pipes, numbers=tuple(pipes))
    for cause in present_causes(pipes):
        # Cycles without work, and those in which the issuing pipe waits for all others, are no part of a bottleneck.
        plain = {name for name in pipes if cause is Cause.EMPTY or (name == issuing and cause in WAITING)}
        cells = [_cell(pipe.causes.get(cause, 0), None if name in plain else total) for name, pipe in pipes.items()]
        made.add_row(str(cause), *cells, style=CAUSE_COLOURS[cause][2])
    made.add_row("total", *(f"{grouped(sum(pipe.causes.values()))}        " for pipe in pipes.values()))
    made.add_row("utilisation (busy)", *(share(pipe.busy, total) for pipe in pipes.values()), style="bold")
    return made


def _cell(cycles: int, total: int | None) -> str:
    """Return cycles with their share of all, without a total in its column alone."""
    if not cycles:
        return ""
    return f"{grouped(cycles)} {'' if total is None else share(cycles, total):>7}"


PIPES = ReportSection(_pipes_text, _pipes_data, of_time=True)


# The executions of every source line: in JSON one by one, in the text added up.

WIDE = 130
"""Columns from which the table of source lines also quotes the source."""

_LISTED = 1 << 16
"""Executions up to which the JSON document lists every one."""

_LEGEND = "work, waits: cycles of its pipe; share: work, of the run's cycles"


def _lines_data(report: RunReport) -> Document:
    return {"instructions": _instructions(report.result)}


def _instructions(result: Result) -> list[Document]:
    """Return one entry per execution in program order, of what `listed` lets through.

    Where there are very many, one entry stands for all copies that an engine has skipped.
    """
    named: list[Document | None] = [
        {"line": instruction.span.line, "op": instruction.name, "pipe": instruction.pipe}
        if listed(instruction)
        else None
        for instruction in result.loaded.tree.instructions
    ]
    executions = result.timing.executions
    if len(executions) > _LISTED:
        return [
            {
                **entry,
                "start_cycle": execution.start,
                "end_cycle": execution.end,
                "executions": times,
                "last_end_cycle": last.end,
            }
            for execution, last, times in repeated(executions)
            if (entry := named[execution.instruction]) is not None
        ]
    return [
        {**entry, "start_cycle": execution.start, "end_cycle": execution.end}
        for execution in executions
        if (entry := named[execution.instruction]) is not None
    ]


def _lines_text(report: RunReport, width: int) -> Iterator[RenderableType]:
    shown = sorted((line for line in report.lines if line.work), key=lambda line: -line.work) or report.lines
    yield _line_table(report, shown, width)
    yield indented(Text(_LEGEND, style="dim"))
    executions, cycles = report.bookkeeping
    if executions:
        yield indented(
            Text(f"not listed: index arithmetic and loops, {grouped(executions)} executions, {grouped(cycles)} cycles")
        )
    # What several pipes waited is no part of the run: the causes above have it, by pipe.
    others = [line for line in report.lines if line not in shown]
    if others:
        yield _unlisted(
            f"{grouped(len(others))} lines without work (flags, waits, nop)", sum(each.executions for each in others)
        )
    if report.inserted:
        yield _unlisted("inserted flags and barriers", report.inserted)
    yield Text()


def _unlisted(what: str, executions: int) -> RenderableType:
    return indented(Text(f"not listed: {what}, {grouped(executions)} execution{'s' * (executions != 1)}"))


def _line_table(report: RunReport, shown: Sequence[SourceLine], width: int) -> Table:
    wide = width >= WIDE
    numbers = ("line", "times", "first start", "last end", "work", "waits", "share")
    made = table("line", "instruction", "pipe", *numbers[1:], *(("source",) if wide else ()), numbers=numbers)
    for line in shown:
        counts = (line.executions, line.first_start, line.last_end, line.work, line.pipe_cycles - line.work)
        source = [Text(line.span.excerpt(), no_wrap=True, overflow="ellipsis")] if wide else []
        made.add_row(
            str(line.span.line),
            line.text,
            line.pipe,
            *map(grouped, counts),
            share(line.work, report.result.cycles),
            *source,
        )
    return made


LINES = ReportSection(_lines_text, _lines_data, of_time=True)


# Inside of the launches of a program of vector instructions: the cycles of every line.

_LAUNCH_LEGEND = (
    "cycles: of the launch, each counted once; waits for: the longest wait of an execution, beside other work"
)


def _launches_data(report: RunReport) -> Document:
    loaded = report.result.loaded
    found = () if report.result.untimed else written_launches(loaded.tree, loaded.target)
    return {"launches": json_of(found)} if found else {}


def _launches_text(report: RunReport, width: int) -> Iterator[RenderableType]:
    del width
    loaded = report.result.loaded
    for launches in written_launches(loaded.tree, loaded.target):
        times = f"{launches.executions} launch{'es' * (launches.executions != 1)}"
        yield Text(f"inside line {launches.line}: {times}, {launches.cycles} cycles")
        yield launch_table(launches)
        yield indented(Text(_LAUNCH_LEGEND, style="dim"))
        yield Text()


def launch_table(launches: InstructionLaunches, numbered: str = "line") -> Table:
    """Return the lines of launches as a table; `numbered` is what they are called."""
    numbers = (numbered, "times", "cycles")
    made = table(numbered, "instruction", "times", "cycles", "by cause", "waits for", numbers=numbers)
    for line in launches.lines:
        causes = ", ".join(f"{cause} {cycles}" for cause, cycles in line.causes.items())
        number = "" if line.number is None else str(line.number)
        made.add_row(number, line.text, str(line.executions), str(line.cycles), causes, _waits(line, numbered))
    return made


def _waits(line: LineLaunches, numbered: str) -> str:
    """Return the longest wait of a line in words, empty if it waits for nothing."""
    if not line.waits:
        return ""
    most = line.waits[0]
    behind = "" if most.number is None else f" of {numbered} {most.number}"
    return f"{most.cause}{behind}, {most.cycles / max(1, line.executions):.1f} each"


LAUNCHES = ReportSection(_launches_text, _launches_data, of_time=True)


# What lifting the limits of the target would gain.

_BEST = 3
"""Limits in a summary."""


def _what_if_data(report: RunReport) -> Document:
    if not report.gains:
        return {}
    entries = [document(gain, cycles="total_cycles", gained="gained_cycles") for gain in report.gains]
    return {"what_if": [entry | {"reason": entry["reason"] or None} for entry in entries]}


def _what_if_text(report: RunReport, width: int) -> Iterator[RenderableType]:
    """Yield a table of the limits, largest gain first; those that gain nothing in one line.

    Below it stands, for each limit whose lifting costs cycles, what takes them.
    """
    del width
    found, cycles = report.gains, report.result.cycles
    if not found:
        return
    if report.summary:
        yield _best(report)
        return
    yield Text()
    yield Text(f"what if a limit were lifted ({grouped(cycles)} cycles with all limits)", style="bold")
    rows = table("lifted", "cycles", "gain", "share", "what it means", numbers=("cycles", "gain", "share"))
    for gain in found:
        if gain.gained:
            rows.add_row(gain.name, grouped(gain.cycles), grouped(gain.gained), share(gain.gained, cycles), gain.title)
    if rows.row_count:
        yield rows
    for gain in found:
        if gain.reason:
            yield indented(Text(f"{gain.name} costs {grouped(-gain.gained)} cycles: {gain.reason}"))
    idle = [gain.name for gain in found if not gain.gained]
    if idle:
        yield indented(Text(f"no gain: {', '.join(idle)}"))


def _best(report: RunReport) -> Text:
    """Return the largest gains in one line."""
    best = [gain for gain in report.gains if gain.gained > 0][:_BEST]
    told = (f"{gain.name} {grouped(gain.gained)} ({share(gain.gained, report.result.cycles)})" for gain in best)
    return Text(f"cycles gained without a limit: {', '.join(told) or 'none'}")


WHAT_IF = ReportSection(_what_if_text, _what_if_data, options=("--what-if",), of_time=True)


# What the cycles of a run rest on, and the facts that no document states, by weight where it was computed.


def _facts_data(report: RunReport) -> Document:
    return {"facts_assumed": json_of(report.facts), "trust": trust_data(report)}


def trust_data(report: RunReport) -> Document:
    """Return what the cycles rest on as JSON."""
    trust, frequency = report.trust, report.result.loaded.target.frequency
    return {
        "shares": json_of(trust.shares),
        "interval": json_of(trust.interval),
        "sensitivities": json_of(report.sensitivities),
        "clock_status": json_of(frequency.status),
    }


def _facts_text(report: RunReport, width: int) -> Iterator[RenderableType]:
    del width
    if not report.facts:
        return
    yield Text()
    count = len(report.facts)
    counted = f"{count} hardware number{'s are' if count > 1 else ' is'} not documented by the vendor"
    if not report.list_facts:
        yield Text(f"{counted} (--facts)", style="dim")
        return
    yield Text(counted, style="bold")
    for fact in report.facts:
        yield indented(Text(f"{fact.name} ({fact.status}): {described(fact.value)}"))
        for each in report.sensitivities or ():
            if each.fact.startswith(f"{fact.name}."):
                name = each.fact.removeprefix(f"{fact.name}.")
                yield indented(indented(Text(f"{name}: -10 % {each.less:+,} cycles, +10 % {each.more:+,}")))
        yield indented(indented(Text(fact.source, style="dim")))


FACTS = ReportSection(_facts_text, _facts_data, options=("--facts",), of_time=True)


# Which bytes of each buffer were touched.


def _buffers_text(report: RunReport, width: int) -> Iterator[RenderableType]:
    del width
    for use in report.buffers:
        used = use.end - use.start
        yield Text(
            f"buffer {use.name}: bytes {grouped(use.start)} .. {grouped(use.end - 1)} touched, "
            f"{grouped(used)} of {grouped(use.capacity)} "
            f"({share(used, use.capacity)})"
        )
    if not report.buffers:
        yield Text("buffers: none touched")


BUFFERS = ReportSection(_buffers_text, of_time=True)
