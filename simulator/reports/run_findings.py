"""The report of a run as JSON and as text, and its sections on findings: stale reads, warnings, races, lint."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from operator import attrgetter
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from castsim.isa.dataclass import replace
from castsim.reports import run_cycles, run_findings, run_outcomes, sections
from castsim.reports.documents import ABSENT, CommandDocument, Document, Keys, says
from castsim.reports.launches import Launches
from castsim.reports.lifted_limits import LiftedLimit, LineCost
from castsim.reports.numbers import lines_named
from castsim.reports.run_cycles import BoundEntry, Instruction, LatencyEntry, Pipe, TrustEntry
from castsim.reports.run_outcomes import CastLine, ChoiceEntry, Operation, Placeholders, Read
from castsim.reports.run_report import PartialOutput, ReportSection, RunReport, UndefinedOutput
from castsim.reports.schemas.keys import Cycles, ErrorEntry, FactEntry, Line, LintEntry, Name, Output, Seconds
from castsim.reports.schemas.keys import StaleRead as StaleReadEntry
from castsim.reports.terminal import height, indented
from castsim.running.loaded import Loaded
from castsim.running.synchronisation.flags import Note, Place

if TYPE_CHECKING:
    from castsim.machines.vliw.findings import StaleRead
    from castsim.running.synchronisation.race_findings import RaceFinding


def stale_notice(reads: tuple[StaleRead, ...] | None) -> str | None:
    """Return the number, lines and first position of stale reads; None if there are none or the run was not checked."""
    stale = [read for read in reads or () if read.stale]
    if not stale:
        return None
    times = sum(read.times for read in stale)
    often = f", {times} times in all" if times > len(stale) else ""
    if len(stale) == 1:
        return f"1 stale read{often}: this instruction reads an old value, as on the chip; {stale[0].sentence()}"
    lines = lines_named(read.reader.span.line for read in stale)
    return (
        f"{len(stale)} stale reads, {lines}{often}: these instructions read old values, as on the chip; "
        f"first {stale[0].sentence()}"
    )


def race_notice(races: Sequence[RaceFinding] | None) -> str | None:
    """Return the number and lines of accesses whose order is not guaranteed; None if there are none."""
    if not races:
        return None
    kinds = {str(race.kind) for race in races}
    what = kinds.pop() if len(kinds) == 1 else "finding"
    lines = lines_named(span.line for race in races for span in race.spans)
    plural = f"{what}s" if len(races) > 1 else what
    return f"{len(races)} {plural}, {lines}: on the chip, values and cycles may differ from run to run"


def _notice_text(report: RunReport, width: int) -> Iterator[RenderableType]:
    """Yield doubts about cycles or values, with the first stale read and its remedy."""
    del width
    stale = stale_notice(report.result.stale_reads) or ""
    count, _, first = stale.partition("; first ")
    for notice in filter(None, (race_notice(report.result.races), count)):
        yield Text.assemble(("warning: ", "bold yellow"), notice)
    if stale:
        yield indented(Text(f"first: {first}"))
        yield indented(Text("Move each reader later by its missing bundles. --stale-reads stop ends the run there."))


NOTICE = ReportSection(_notice_text, brief=_notice_text)


# Settings of the program without effect, and surprising behaviour.


def _warnings_text(report: RunReport, width: int) -> Iterator[RenderableType]:
    del width
    for warning in report.result.warnings:
        yield Text.assemble(("warning: ", "bold yellow"), warning)
    if report.result.warnings:
        yield Text()


_MOST_WARNINGS = 2
"""Maximum number of warnings on the one-screen report."""


def _brief_warnings(report: RunReport, width: int) -> Iterator[RenderableType]:
    warnings = list(_warnings_text(report, width))[:-1]  # without the blank line
    yield from warnings[:_MOST_WARNINGS]
    if len(warnings) > _MOST_WARNINGS:
        yield Text(f"and {len(warnings) - _MOST_WARNINGS} more: --report full")
    if warnings:
        yield Text()


WARNINGS = ReportSection(_warnings_text, brief=_brief_warnings)


# Races: what the order of a tile program does not guarantee.


class Race(Keys):
    """Accesses whose order the program does not guarantee."""

    kind: str = says("Kind of the finding.")
    message: str = says("The finding in words.")
    missing: str | None = says(
        "The missing synchronisation; null if it is unknown.", lambda found: found.missing or None
    )
    lines: list[Line] = says("Lines of the instructions.", lambda found: [span.line for span in found.spans])
    pipes: list[str] = says("Pipes of the instructions.")
    space: str | None = says(
        "The memory; null if no bytes are involved.", lambda found: found.region and found.region.space
    )
    first_byte: int | None = says(
        "Address of the first byte; null if no bytes are involved.", lambda found: found.region and found.region.start
    )
    last_byte: int | None = says(
        "Address of the last byte; null if no bytes are involved.", lambda found: found.region and found.region.end - 1
    )


def _races_text(report: RunReport, width: int) -> Iterator[RenderableType]:
    del width
    for finding in report.result.races or ():
        yield Text.assemble((f"{finding.kind}: ", "bold red"), finding.message)
        if finding.missing:
            yield indented(Text(f"missing: {finding.missing}"))
    if report.result.races:
        yield Text()


RACES = ReportSection(_races_text, options=("--races",), brief=_races_text)


# Registers that were read too early, by kind.

_HEADS = {
    "EARLY": "stale reads: the old value is read inside the latency window of a write",
    "OVERTAKEN": "overtaken writes: an earlier load lands later and overwrites the result",
    "UNWRITTEN": "reads of registers that nothing wrote",
    "SAME_BUNDLE": "reads in the bundle of a write: they get the old value by definition",
}
"""Heading of the findings of each `StaleReadKind`, by its name."""


def _stale_reads_text(report: RunReport, width: int) -> Iterator[RenderableType]:
    """Yield the stale reads of the checked mode; empty for machines that interlock or were not checked."""
    del width
    reads = report.result.stale_reads
    if reads is None:
        return
    from castsim.machines.vliw.findings import StaleReadKind  # noqa: PLC0415 - runs of tiles have no registers

    yield Text()
    if not any(read.kind is not StaleReadKind.SAME_BUNDLE for read in reads):
        yield Text("stale reads: none")
    for name, head in _HEADS.items():
        kind = StaleReadKind[name]
        own = [read for read in reads if read.kind is kind]
        if not own:
            continue
        yield Text(f"{head} ({len(own)})", style="dim" if kind is StaleReadKind.SAME_BUNDLE else "bold yellow")
        for read in own:
            times = f", {read.times} times" if read.times > 1 else ""
            yield indented(Text(f"{read.sentence()}{times}"))


STALE_READS = ReportSection(_stale_reads_text, options=("--stale-reads",))


# What the linter found in an assembly program, and its notices; `castsim lint` prints the same.


def _lint_text(report: RunReport, width: int) -> Iterator[RenderableType]:
    del width
    if report.findings is not None:
        from castsim.reports.lint import lint_section  # noqa: PLC0415 - as above

        yield from (Text(), *lint_section(report.findings))


LINT = ReportSection(_lint_text, options=("--lint",), brief=_lint_text)


# Inserted flags and barriers: as data, and as a listing of the entry function in which they stand.

MARK = "+"
"""Mark in place of the line number of an inserted instruction."""


def _notes(loaded: Loaded) -> tuple[Note, ...]:
    return () if loaded.synchronised is None else loaded.synchronised.notes


def _synchroniser(loaded: Loaded) -> str:
    if loaded.synchronised is not None:
        return "insertion"
    return "interlock" if loaded.tree.interlocked else "program"


class InsertedEntry(Keys):
    """A flag or a barrier that was inserted."""

    line: Line = says("Line of the source of the insertion.", "span.line")
    place: Place = says("Position relative to that line.")
    text: str = says("The instruction.")
    executions: int = says("Number of executions.", "times")


class Synchronisation(Keys):
    """The origin of the synchronisation of pipes."""

    by: str = says("`insertion`, `program` or `interlock`.", _synchroniser)
    inserted: list[InsertedEntry] = says("The inserted instructions.", _notes)


def _synchronisation_text(report: RunReport, width: int) -> Iterator[RenderableType]:
    """Yield the listing if requested, or the reason why there is none."""
    del width
    if not report.show_synchronisation:
        return
    loaded = report.result.loaded
    if loaded.synchronised is None:
        reason = (
            "the instructions wait for each other's bytes" if loaded.tree.interlocked else "the program has its own"
        )
        yield Text(f"synchronisation: nothing inserted, {reason}")
        yield Text()
        return
    yield Text(f"synchronisation: lines marked {MARK} are inserted", style="bold")
    for number, line in synchronisation_listing(loaded):
        style = "green" if number == MARK else "dim"
        yield Text(f"{number:>5}  {line}", style=style, no_wrap=True, overflow="ignore")
    yield Text()


def synchronisation_listing(loaded: Loaded) -> list[tuple[str, str]]:
    """Return the lines of the entry function with their numbers, or `MARK` for inserted ones."""
    lines = loaded.source.splitlines()
    first, last = _function(lines, loaded.entry)
    above: dict[int, list[str]] = {}
    below: dict[int, list[str]] = {}
    for note in _notes(loaded):
        line = note.span.line
        spelt = _indented(note.text if note.times == 1 else f"{note.text}  // {note.times} times", lines[line - 1])
        match note.place:
            case Place.BEFORE | Place.AT_END:
                above.setdefault(line, []).append(spelt)
            case Place.AFTER:
                below.setdefault(line, []).append(spelt)
            case Place.BEHIND:
                below.setdefault(_closing(lines, line), []).append(spelt)
    return [row for number in range(first, last + 1) for row in _rows(number, lines[number - 1], above, below)]


def _rows(
    number: int, line: str, above: dict[int, list[str]], below: dict[int, list[str]]
) -> Iterator[tuple[str, str]]:
    yield from ((MARK, text) for text in above.get(number, ()))
    yield str(number), line
    yield from ((MARK, text) for text in below.get(number, ()))


def _indented(text: str, line: str) -> str:
    return " " * (len(line) - len(line.lstrip())) + text


def _function(lines: list[str], name: str) -> tuple[int, int]:
    """Return the first and the last line of a function."""
    first = next(n for n, line in enumerate(lines, 1) if "func.func" in line and f"@{name}(" in line.replace(" (", "("))
    return first, _closing(lines, first)


def _closing(lines: list[str], start: int) -> int:
    """Return the line of the brace that closes the last region opened in line `start`, or in the first one after."""
    depth = 0
    for number in range(start, len(lines) + 1):
        code = lines[number - 1].split("//")[0]
        depth += code.count("{") - code.count("}")
        if depth <= 0 and "}" in code and (number > start or not code.rstrip().endswith("{")):
            return number
    return len(lines)


SYNCHRONISATION = ReportSection(_synchronisation_text, options=("--sync", "--show-sync"), brief=_synchronisation_text)


# What the one screen of a run leaves out.


def _brief_more(report: RunReport, width: int) -> Iterator[RenderableType]:
    del width
    contents = ["causes", "buffers"]
    if run_cycles.launches_of(report):
        contents = ["launches", "causes"]
    if report.result.stale_reads:
        contents = ["stale reads", "causes"]
    facts = f", --facts ({len(report.facts)} undocumented)" if report.facts and not report.list_facts else ""
    yield Text(f"More: --report full (all lines, {', '.join(contents)}){facts}", style="dim")


MORE = ReportSection(lambda report, width: (), of_time=True, brief=_brief_more)


# The report of a run, made of its sections.

PRINTED: Mapping[str, ReportSection] = {
    "head": run_cycles.HEAD,
    "notice": run_findings.NOTICE,
    "opaque": run_outcomes.OPAQUE,
    "headline": run_cycles.HEADLINE,
    "what_if": run_cycles.WHAT_IF,
    "warnings": run_findings.WARNINGS,
    "races": run_findings.RACES,
    "basis": run_cycles.BASIS,
    "pipes": run_cycles.PIPES,
    "lines": run_cycles.LINES,
    "launches": run_cycles.LAUNCHES,
    "casts": run_outcomes.CASTS,
    "path": run_outcomes.PATH,
    "choices": run_outcomes.CHOICES,
    "synchronisation": run_findings.SYNCHRONISATION,
    "buffers": run_cycles.BUFFERS,
    "outputs": run_outcomes.OUTPUTS,
    "operations": run_outcomes.OPERATIONS,
    "stale_reads": run_findings.STALE_READS,
    "lint": run_findings.LINT,
    "facts": run_cycles.FACTS,
    "more": run_findings.MORE,
}
"""The sections of a full report in order: the answer, its reason, the tables, the outputs.

The one-screen report has the sections with a `brief` form.
"""


def section(name: str) -> ReportSection:
    """Return the section with a name, from every report or an additional one."""
    if name in PRINTED:
        return PRINTED[name]
    part: ReportSection = import_module(f"{sections.__name__}.{name}").SECTION  # only those in use are loaded
    return part


def _timed(path: str) -> Callable[[RunReport], object]:
    """Return the source of a key that is null if no cycles are modelled."""
    value = attrgetter(path)
    return lambda report: None if report.result.untimed else value(report)


def _if_known(value: object) -> object:
    return ABSENT if value is None else value


def _binding(report: RunReport) -> object:
    latencies = report.latencies
    return ABSENT if latencies is None else latencies if latencies.binds else None


def _linted(report: RunReport, *, certain: bool) -> object:
    return ABSENT if report.findings is None else [finding for finding in report.findings if finding.certain == certain]


class RunKeys(Keys):
    """Keys of every run."""

    program: str = says("The file.", "result.loaded.file")
    entry: str | None = says("The function; null if there is none.", "result.loaded.entry")
    target: str = says("Name of the target.", "result.loaded.target")
    engine: str | None = says("The engine: `fast` or `event`.", _timed("result.engine"))
    total_cycles: Cycles | None = says("Cycles of the run.", _timed("result.timing.total"))
    seconds: Seconds | None = says("Time of the run at the target's frequency.", _timed("seconds"))
    launch_cycles: Cycles = says(of=lambda report: _if_known(run_cycles.launch_cycles(report)), optional=True)
    """Cycles of a kernel's launch and end, which belong to no pipe; absent if unknown."""
    tile_placement: str = says(of=lambda report: report.result.loaded.executed.placement or ABSENT, optional=True)
    """Placement of tiles without addresses in the buffer, if there are any: apart, partly apart or consecutive."""
    untimed: str = says(
        "The reason why no cycles are modelled.", lambda report: report.result.untimed or ABSENT, optional=True
    )
    pipes: dict[Name, Pipe] | None = says("The pipes by name.", _timed("result.pipes"))
    lost_most: LineCost | None = says("The line with most cycles; null if no line has any.", _timed("costliest"))
    latency_bound: LatencyEntry | None = says(of=_binding, optional=True)
    """The chain of dependences that limits a program of bundles; null if its latencies limit nothing."""
    lower_bound: BoundEntry | None = says(
        "The lower bound for a program of bundles.",
        lambda report: ABSENT if report.latencies is None else report.latencies.least,
        optional=True,
    )
    instructions: list[Instruction] | None = says(
        "All executions, in program order.",
        lambda report: None if report.result.untimed else run_cycles.instruction_entries(report.result),
    )
    launches: list[Launches] = says(of=lambda report: run_cycles.launches_of(report) or ABSENT, optional=True)
    """Launches of vector instructions in the program."""
    path_decided_by: list[Read] = says(
        of=lambda report: report.result.loaded.executed.decided_by or ABSENT, optional=True
    )
    """The reads that decide the path, if there are any."""
    choices: list[ChoiceEntry] = says(
        "The options that affect the results, if there are any.",
        lambda report: run_outcomes.choices_of(report) or ABSENT,
        optional=True,
    )
    placeholders: Placeholders = says(
        "The opaque operations, if there are any.", lambda report: report.result.placeholders or ABSENT, optional=True
    )
    outputs: list[Output] = says("The output arrays.")
    outputs_not_computed: list[PartialOutput] = says(of=lambda report: report.partial or ABSENT, optional=True)
    """Outputs that are not fully computed, if there are any."""
    outputs_undefined: list[UndefinedOutput] = says(of=lambda report: report.undefined or ABSENT, optional=True)
    """Outputs that depend in part on unwritten memory, if there are any."""
    printed: list[str] = says(
        "The printed lines of a kernel in C, with file and line, if there are any.",
        lambda report: report.result.loaded.printed or ABSENT,
        optional=True,
    )
    errors: list[ErrorEntry] = says(optional=True)
    """Reasons why a completed run fails: races, outputs that are not computed."""
    casts: list[CastLine] = says(of=lambda report: run_outcomes.cast_lines(report) or ABSENT, optional=True)
    """Effects of the casts on their numbers, by instruction, if values were computed."""
    facts_assumed: list[FactEntry] | None = says(of=_timed("facts"))
    """The undocumented facts that the run uses, by weight where it is known."""
    trust: TrustEntry | None = says(
        "Evidence for the cycles.", lambda report: None if report.result.untimed else report
    )
    warnings: list[str] = says(
        "Settings of the program without effect, and surprising behaviour.",
        lambda report: [*filter(None, [stale_notice(report.result.stale_reads)]), *report.result.warnings],
    )
    synchronisation: Synchronisation = says(
        "The origin of synchronisation; of tile programs.",
        lambda report: report.result.loaded if report.result.loaded.target.has_tiles else ABSENT,
        optional=True,
    )
    races: list[Race] = says(of=lambda report: _if_known(report.result.races), optional=True)
    """The races in tile programs and programs of vector instructions."""
    operations: list[Operation] = says(of=lambda report: run_outcomes.noted_operations(report) or ABSENT, optional=True)
    """The vector operations of a tile program, if it has any."""
    stale_reads: list[StaleReadEntry] = says(of=lambda report: _if_known(report.result.stale_reads), optional=True)
    """Reads before the result is available, if an exposed pipeline was checked."""
    what_if: list[LiftedLimit] | None = says(
        "With `--what-if`: the cycles that lifting each limit saves.",
        lambda report: report.gains or ABSENT,
        optional=True,
    )
    lint: list[LintEntry] = says(of=lambda report: _linted(report, certain=True), optional=True)
    """Certain findings; with `--lint`."""
    lint_possible: list[LintEntry] = says(of=lambda report: _linted(report, certain=False), optional=True)
    """Findings that depend on the path, predicates or initial values; with `--lint`."""


class CoreEntry(Keys):
    """A core of a kernel in C++ that ran on all its cores."""

    block: int = says("Its number, from 0.")
    cycles: Cycles = says("Its cycles.")


class Run(CommandDocument, name="run", version=8):
    """A program that ran. If no cycles are modelled, the keys about time are null and `untimed` gives the reason."""

    @classmethod
    def further_keys(cls) -> Sequence[type[Keys]]:
        """Return the keys of every run, those of its further sections, and those that commands add."""
        return [RunKeys, *(section(name).keys for name in sections.further_reports()), CoresKeys]


class CoresKeys(Keys):
    """Keys of the cores, which the command adds."""

    cores: list[CoreEntry] = says(optional=True)
    """Every core with `--all-blocks`; the document is about the slowest."""


def run_document(report: RunReport) -> Document:
    """Return the report as JSON; names include units, a file is null if it was not written."""
    content: Document = {"schema_version": Run.VERSION, **RunKeys.of(report)}
    for part in map(section, report.further):
        keys = part.keys.of(report)
        content |= dict.fromkeys(keys) if part.of_time and report.result.untimed else keys
    return content


_SCREEN, _FEWEST_ROWS = 23, 3
"""Number of lines of one screen, and minimum number of rows of its table of lines."""


def run_text(report: RunReport, width: int, *, full: bool = False) -> RenderableType:
    """Return the text of the report for a terminal of `width` columns: one screen, or all sections at full length.

    The table of lines on one screen uses the rows that the other sections leave.
    """
    named = [section(name) for name in PRINTED]
    texts = [
        chosen_section.text if full else chosen_section.brief
        for chosen_section in named
        if not (chosen_section.of_time and report.result.untimed)
    ]
    further = [part for name in report.further for part in section(name).text(report, width)]

    def shown(rows: int) -> Group:
        sized = replace(report, rows=rows)
        return Group(*(part for text in texts if text is not None for part in text(sized, width)))

    most = shown(report.rows)
    excess = 0 if full else height(most, width) - _SCREEN
    return Group(shown(max(_FEWEST_ROWS, report.rows - excess)) if excess > 0 else most, *further)
