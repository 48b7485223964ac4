"""The sections of a run's report about time: answer, reason, evidence, pipes, lines, launches, limits, facts, tiles."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from textwrap import wrap

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from castsim.execution.timing import WAITING, Cause, occupied, repeated, share
from castsim.execution.transfer_timing import SharedMemory, moved_bytes
from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS
from castsim.reports.cycle_evidence import CycleInterval, Sensitivity, Share
from castsim.reports.documents import Document, Keys, says
from castsim.reports.launches import Launches, LaunchLine, written_launches
from castsim.reports.numbers import (
    CAUSE_COLOURS,
    CLOCKS,
    PLACEMENTS,
    causes_of,
    clock,
    described,
    duration,
    grouped,
    present_causes,
)
from castsim.reports.run_report import ReportSection, RunReport
from castsim.reports.schemas.keys import CauseName, Cycles, Line
from castsim.reports.terminal import indented, table
from castsim.running.languages import FRAGMENT_NAME
from castsim.running.program_runs import Result, SourceLine, listed
from castsim.targets.dataflow import APART
from castsim.targets.description import Status


def _head_text(report: RunReport, width: int) -> Iterator[RenderableType]:
    del width
    yield Text(answer(report), style="bold yellow" if report.result.untimed else "bold")


def answer(report: RunReport) -> str:
    """Return program, target, cycles and time in one line; an undocumented clock is marked."""
    loaded = report.result.loaded
    own = loaded.entry == Path(loaded.file).stem and loaded.file != FRAGMENT_NAME
    name = f"{loaded.file if own else loaded.title} on {loaded.target.name}"
    if report.result.untimed:
        return f"{name}: no cycles: {report.result.untimed}"
    mark = " (undocumented clock)" if loaded.target.frequency.status in CLOCKS else ""
    return f"{name}: {grouped(report.result.cycles)} cycles = {duration(report.seconds)}{mark}"


def _headline_text(report: RunReport, width: int) -> Iterator[RenderableType]:
    first, *others = headline(report)
    yield Text(first, style="bold yellow" if report.limiter else "")
    yield from map(Text, others)
    if report.latencies is not None and report.result.loaded.file.endswith(".c"):
        yield Text(f"Lower bound: {report.latencies.least.sentence()}")
    yield from map(Text, filter(None, (_memory_sentence(report), _launch_sentence(report))))
    if report.limiter and not report.gains:
        yield from _next(report, width)
    yield Text(f"Trust: {report.trust.sentence()}")
    yield Text()


def headline(report: RunReport) -> Iterator[str]:
    """Yield the largest costs: a launch longer than all pipes, the limiting pipe or latency, the costliest line."""
    limiter, latencies, launch = report.limiter, report.latencies, launch_cycles(report)
    if launch is not None and launch > report.result.cycles:
        pipes = grouped(report.result.cycles)
        yield f"The launch takes longest: about {grouped(launch)} cycles, against {pipes} in the pipes"
    if limiter is None:
        yield "No pipe has any work"
        return
    if latencies is not None and latencies.binds:
        yield latencies.sentence()
        yield f"{limiter.pipe} is the busiest pipe ({limiter.shares}); {latencies.costs()}"
    else:
        yield limiter.sentence(named=bool(report.limit))
    yield report.longest if report.costliest is None else report.costliest.sentence()


def _launch_sentence(report: RunReport) -> str:
    """Return the time of launch and end, '' if it is unknown or already in the headline."""
    launch, interval = launch_cycles(report), _interval(report)
    if launch is None:
        return ""
    adds = f"The launch adds about {grouped(launch)} cycles in no pipe (vendor simulator)"
    if interval is None:
        return "" if launch > report.result.cycles else adds
    cycles = report.result.cycles + launch
    if (whole := report.seconds * cycles / max(1, report.result.cycles)) < interval:
        return f"The launch interval bounds this launch: {duration(interval)}, against {duration(whole)} of work"
    return f"{adds}; launches back to back take at least {duration(interval)} each (silicon)"


def _interval(report: RunReport) -> float | None:
    """Return the shortest time between launches on several cores in seconds, None if unknown or on one core."""
    target = report.result.loaded.target
    if report.result.untimed or not target.has_tiles or target.cores_at_work == 1 or target.launch_interval is None:
        return None
    return float(target.launch_interval.microseconds) / 1e6


def _memory_sentence(report: RunReport) -> str:
    """Return whether global memory limits the launch, and the evidence for its rate; '' if no memory is shared."""
    loaded = report.result.loaded
    if report.result.untimed or not loaded.target.has_tiles or not report.seconds:
        return ""
    if (shared := SharedMemory.of(loaded.tree, loaded.target)) is None:
        return ""
    moved, total = shared.cores * moved_bytes(loaded.tree) / report.seconds / 1e9, float(shared.total)
    bounds = "bounds" if moved >= _FULL * total else "does not bound"
    cached = f", {shared.cached_bytes / 1e6:,.1f} MB of it in the L2 cache" if shared.cached_bytes else ""
    return (
        f"Global memory {bounds} the launch: {shared.cores} cores move {moved:,.0f} of at most {total:,.0f} GB/s"
        f"{cached} ({shared.basis}; {', '.join(shared.choices)})"
    )


_FULL = 0.85
"""Share of its rate above which global memory limits a launch: start and end take the rest."""


def _command(words: Iterable[str], width: int) -> Text:
    """Return a suggested command, continued by backslashes if it is longer than `width` columns."""
    whole = " ".join(shlex.quote(word).replace(" ", "\0") for word in ("castsim", *words))
    lines = wrap(whole, width - 2, initial_indent="Next: ", subsequent_indent=" " * 10, break_on_hyphens=False)
    return Text(" \\\n".join(lines).replace("\0", " "), no_wrap=True, overflow="ignore")


def _next(report: RunReport, width: int) -> Iterator[Text]:
    """Yield the next command to try, which corrects or improves the program, and one that shows the cost of a limit."""
    if not report.command:
        return
    if report.result.races or any(read.stale for read in report.result.stale_reads or ()):
        yield _command(("check" if report.result.races else "lint", report.command[0]), width)
        return
    line = report.costliest
    limit = (line.limit if line is not None else "") or report.limit
    if report.latencies is not None and report.latencies.binds:
        limit = "latency"
    if report.changeable:
        yield _command(("advise", *report.command), width)
        if limit:
            yield Text(f"      or rerun with --what-if {limit} for this limit's cost")
    else:
        timing = ("--timing-only",) if report.result.loaded.target.has_tiles else report.inputs
        yield _command(("run", *report.command, *timing, "--what-if", limit or "all"), width)


def launch_cycles(report: RunReport) -> int | None:
    """Return the cycles of a kernel outside its pipes, None if they are unknown or no cycles are modelled."""
    loaded = report.result.loaded
    if (launch := loaded.target.kernel_launch) is None or report.result.untimed:
        return None
    operations = (VECTOR_OPERATIONS.get(instruction.mnemonic) for instruction in loaded.tree.instructions)
    return launch.of(operation.kind for operation in operations if operation is not None)


HEAD = ReportSection(_head_text, brief=_head_text)
HEADLINE = ReportSection(_headline_text, of_time=True, brief=_headline_text)


# Target and engine of a run, and the operations behind each share of its cycles.


def _basis_text(report: RunReport, width: int) -> Iterator[RenderableType]:
    del width
    target = report.result.loaded.target
    yield Text(f"target {target.name} ({target.title}), engine {report.result.engine}, clock {clock(target)}")
    yield Text()
    rows = (
        (entry.evidence, grouped(entry.cycles), share(entry.cycles, report.result.cycles), ", ".join(entry.operations))
        for entry in report.trust.shares
    )
    yield table("evidence", ">cycles", ">share", "operations", rows=rows)
    yield Text()


BASIS = ReportSection(_basis_text, of_time=True)


# The cycles of every pipe by cause, and the line that costs most.


class Pipe(Keys):
    """The cycles of a pipe."""

    busy_cycles: Cycles = says("Cycles in which the pipe worked.", "busy")
    causes: dict[CauseName, Cycles] = says(
        "Cycles by cause, without zeros; they add up to the total of the run.", causes_of
    )


class Link(Keys):
    """A result and its consumer, in a program of bundles."""

    producer: str = says("The instruction that writes the value.", lambda link: link.names[0])
    producer_line: Line = says("Its line of the source.", "producer.span.line")
    consumer: str = says("The instruction that reads the value.", lambda link: link.names[1])
    consumer_line: Line = says("Its line of the source.", "consumer.span.line")
    through: str = says("The register of the value.", "register")
    distance_bundles: int = says("The smallest distance in bundles for a correct read.", "distance")


class LatencyEntry(Keys):
    """Cost of the latencies of a run."""

    longest: Link = says("The link of the chain with the largest distance.")
    chain: list[Link] = says("The most expensive chain, in the order of the program.", "links")
    chain_bundles: int = says("Bundles of one trip along the chain.", "length")
    trips: int = says("Number of trips.")
    chain_cycles: Cycles = says("Total cycles of the longest chains of the run.", "cycles")
    gained_cycles: Cycles = says(of="gained")
    """Cycles saved if every result were available in the next bundle; unrolled loops can save more."""


class LoopEntry(Keys):
    """The loop that issues most bundles."""

    line: Line = says("The line of its first instruction.", "span.line")
    trips: int = says("Number of trips.")
    bundles: int = says("Bundles of one trip.")
    least_bundles: int = says(
        "The initiation interval: a lower bound on the bundles of a trip in any schedule.", "least"
    )


class BoundEntry(Keys):
    """The fewest cycles that any order of the same instructions takes."""

    cycles: Cycles = says("The lower bound.")
    limited_by: str = says("The slot or port that determines it, or `latencies`.", "limit")
    loop: LoopEntry | None = says("The loop with most issued bundles; null without loops.")


def _pipes_text(report: RunReport, width: int) -> Iterator[RenderableType]:
    del width
    yield _pipe_table(report)
    yield Text()


def _pipe_table(report: RunReport) -> Table:
    pipes, total = report.result.pipes, report.result.cycles
    issuing = report.result.loaded.target.scalar_pipe
    grid = table("cycles by cause", *(f">{pipe}" for pipe in pipes))
    for cause in present_causes(pipes):
        # Cycles without work, and those in which the issuing pipe waits for all others, are no part of a bottleneck.
        plain = {name for name in pipes if cause is Cause.EMPTY or (name == issuing and cause in WAITING)}
        cells = [_cell(pipe.causes.get(cause, 0), None if name in plain else total) for name, pipe in pipes.items()]
        grid.add_row(str(cause), *cells, style=CAUSE_COLOURS[cause][2])
    grid.add_row("total", *(f"{grouped(sum(pipe.causes.values()))}        " for pipe in pipes.values()))
    grid.add_row("occupied", *(_cell(occupied(pipe.causes), total) for pipe in pipes.values()), style="bold")
    return grid


def _cell(cycles: int, total: int | None) -> str:
    """Return cycles with their share of all cycles; without a total, only the cycles."""
    if not cycles:
        return ""
    return f"{grouped(cycles)} {'' if total is None else share(cycles, total):>7}"


PIPES = ReportSection(_pipes_text, of_time=True)


# The executions of every source line: in JSON one by one, in the text added up.

WIDE = 130
"""Minimum number of columns at which the table of source lines also quotes the source."""

_LISTED = 1 << 16
"""Maximum number of executions that the JSON document lists individually."""

_LEGEND = "occupied: pipe cycles without waits; share: occupied / cycles of the run"


class Instruction(Keys):
    """One execution of an instruction; in very long runs, one of several that an engine processed together."""

    line: Line = says("Line of the source.")
    op: str = says("The instruction.")
    pipe: str = says("Its pipe.")
    start_cycle: Cycles = says("First cycle.")
    end_cycle: Cycles = says("First cycle after its last effect.")
    executions: int = says(optional=True)
    """Number of executions that the entry represents; only in runs of more than 65,536."""
    last_end_cycle: Cycles = says("Cycle after the last execution; beside `executions`.", optional=True)


def instruction_entries(result: Result) -> list[Document]:
    """Return one entry per execution in program order, filtered by `listed`.

    In very long runs, one entry represents all copies that an engine has skipped.
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
    shown = _costliest_first(report)
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
            f"{grouped(len(others))} lines without work (flags, waits, nop)",
            sum(other_line.executions for other_line in others),
        )
    if report.inserted:
        yield _unlisted("inserted flags and barriers", report.inserted)
    yield Text()


def _brief_lines(report: RunReport, width: int) -> Iterator[RenderableType]:
    """Yield the lines that occupy pipes longest, without first and last cycles, and the number of other lines."""
    lines = _costliest_first(report)
    shown = lines if len(lines) <= report.rows + 1 else lines[: report.rows]
    yield _line_table(report, shown, width, spans=False)
    if more := lines[len(shown) :]:
        yield indented(Text(f"and {len(more)} more lines, {grouped(sum(line.work for line in more))} cycles occupied"))
    yield indented(Text(_LEGEND, style="dim"))
    yield Text()


def _costliest_first(report: RunReport) -> Sequence[SourceLine]:
    return sorted((line for line in report.lines if line.work), key=lambda line: -line.work) or report.lines


def _unlisted(what: str, executions: int) -> RenderableType:
    return indented(Text(f"not listed: {what}, {grouped(executions)} execution{'s' * (executions != 1)}"))


def _line_table(report: RunReport, shown: Sequence[SourceLine], width: int, *, spans: bool = True) -> Table:
    wide = width >= WIDE
    moments = (">first start", ">last end") if spans else ()
    numbers = (">times", *moments, ">occupied", ">waits", ">share")
    lines = table(">line", "instruction", "pipe", *numbers, *(("source",) if wide else ()))
    for line in shown:
        between = (line.first_start, line.last_end) if spans else ()
        counts = (line.executions, *between, line.work, line.pipe_cycles - line.work)
        source = [Text(line.span.excerpt(), no_wrap=True, overflow="ellipsis")] if wide else []
        cells = (line.text, line.pipe, *map(grouped, counts), share(line.work, report.result.cycles))
        lines.add_row(str(line.span.line), *cells, *source)
    return lines


LINES = ReportSection(_lines_text, of_time=True, brief=_brief_lines)


# Inside of the launches of a program of vector instructions: the cycles of every line.

_LAUNCH_LEGEND = "cycles: each cycle of the launch counts once; waits for: the longest wait of an execution"


def launches_of(report: RunReport) -> Sequence[Launches]:
    """Return the launches of vector instructions that are written in the program."""
    loaded = report.result.loaded
    return () if report.result.untimed else written_launches(loaded.tree, loaded.target)


def _launches_text(report: RunReport, width: int) -> Iterator[RenderableType]:
    del width
    for launches in launches_of(report):
        times = f"{grouped(launches.executions)} launch{'es' * (launches.executions != 1)}"
        yield Text(f"inside line {launches.line}: {times}, {grouped(launches.cycles)} cycles")
        yield launch_table(launches)
        yield indented(Text(_LAUNCH_LEGEND, style="dim"))
        yield Text()


def launch_table(launches: Launches, numbered: str = "line") -> Table:
    """Return the lines of launches as a table; `numbered` is the heading of their numbers."""
    grid = table(f">{numbered}", "instruction", ">times", ">cycles", "by cause", "waits for")
    for line in launches.lines:
        causes = ", ".join(f"{cause} {grouped(cycles)}" for cause, cycles in line.causes.items())
        number = "" if line.line is None else str(line.line)
        counts = (grouped(line.executions), grouped(line.cycles))
        grid.add_row(number, line.op, *counts, causes, _waits(line, numbered))
    return grid


def _waits(line: LaunchLine, numbered: str) -> str:
    """Return the longest wait of a line in words, empty if it has none."""
    if not line.waits:
        return ""
    most = line.waits[0]
    behind = "" if most.for_line is None else f" of {numbered} {most.for_line}"
    return f"{most.cause}{behind}, {most.cycles / max(1, line.executions):,.1f} each"


LAUNCHES = ReportSection(_launches_text, of_time=True)


# What lifting the limits of the target would gain.


def _what_if_text(report: RunReport, width: int) -> Iterator[RenderableType]:
    """Yield a table of the limits, largest gain first; limits without a gain share one line.

    For each limit whose removal costs cycles, a line below gives the reason.
    """
    del width
    limits, cycles = report.gains, report.result.cycles
    if not limits:
        return
    yield Text(f"what if a limit were lifted ({grouped(cycles)} cycles with all limits)", style="bold")
    rows = [
        (gain.name, grouped(gain.cycles), grouped(gain.gained), share(gain.gained, cycles), gain.title)
        for gain in limits
        if gain.gained
    ]
    if rows:
        yield table("lifted", ">cycles", ">gain", ">share", "what it means", rows=rows)
    for gain in limits:
        if gain.reason:
            yield indented(Text(f"{gain.name} costs {grouped(-gain.gained)} cycles: {gain.reason}"))
    idle = [gain.name for gain in limits if not gain.gained]
    if idle:
        yield indented(Text(f"no gain: {', '.join(idle)}"))
    yield Text()


WHAT_IF = ReportSection(_what_if_text, options=("--what-if",), of_time=True, brief=_what_if_text)


# What the cycles of a run rest on, and the facts that no document states, by weight where it was computed.


class TrustEntry(Keys):
    """Evidence for the cycles."""

    shares: list[Share] = says("All cycles by evidence; they add up to the total.", "trust.shares")
    interval: CycleInterval | None = says(
        "The interval of measured cycles; null if too few rows were measured.", "trust.interval"
    )
    sensitivities: list[Sensitivity] | None
    """Numbers of facts by weight, largest first; null if the program is too long to repeat without `--facts`."""
    clock_status: Status = says("Evidence for the clock that gives seconds.", "result.loaded.target.frequency.status")


def _facts_text(report: RunReport, width: int) -> Iterator[RenderableType]:
    yield from _brief_facts(report, width)
    if report.facts and not report.list_facts:
        yield Text(f"{counted_facts(report)} (--facts lists them)", style="dim")


def _brief_facts(report: RunReport, width: int) -> Iterator[RenderableType]:
    """Yield the facts if requested, each with the weight of its numbers and its source."""
    del width
    if not report.facts or not report.list_facts:
        return
    yield Text()
    yield Text(counted_facts(report), style="bold")
    for fact in report.facts:
        yield indented(Text(f"{fact.name} ({fact.status}): {described(fact.value)}"))
        for sensitivity in report.sensitivities or ():
            if sensitivity.fact.startswith(f"{fact.name}."):
                name = sensitivity.fact.removeprefix(f"{fact.name}.")
                yield indented(
                    indented(Text(f"{name}: -10 % {sensitivity.less:+,} cycles, +10 % {sensitivity.more:+,} cycles"))
                )
        yield indented(indented(Text(fact.source, style="dim")))


def counted_facts(report: RunReport) -> str:
    """Return the number of facts behind the cycles that no vendor document states."""
    count = len(report.facts)
    return f"{count} undocumented fact{'s' * (count != 1)}"


FACTS = ReportSection(_facts_text, options=("--facts",), of_time=True, brief=_brief_facts)


# Which bytes of each buffer were touched.


def _buffers_text(report: RunReport, width: int) -> Iterator[RenderableType]:
    del width
    for use in report.buffers:
        first, last, used = grouped(use.start), grouped(use.end - 1), grouped(use.touched)
        all_of_them = use.touched == use.end - use.start
        where = f"bytes {first} to {last} touched" if all_of_them else f"touched between bytes {first} and {last}"
        share_of_all = share(use.touched, use.capacity)
        yield Text(f"buffer {use.name}: {where}, {used} of {grouped(use.capacity)} bytes ({share_of_all})")
    if not report.buffers:
        yield Text("buffers: none touched")
    if placement := report.result.loaded.executed.placement:
        yield Text(f"tiles without addresses: {placement} ({PLACEMENTS[placement]})")


def _brief_buffers(report: RunReport, width: int) -> Iterator[RenderableType]:
    del width
    placement = report.result.loaded.executed.placement
    if placement and placement != APART:
        yield Text(f"Tiles without addresses: {placement} ({PLACEMENTS[placement]})")


BUFFERS = ReportSection(_buffers_text, of_time=True, brief=_brief_buffers)
