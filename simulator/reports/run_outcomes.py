"""The sections of a run's report about values: outputs, casts, operations, and their evidence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby
from math import isfinite, prod

from rich.console import RenderableType
from rich.text import Text

from castsim.execution.input_data import ProgramChoice
from castsim.execution.interpreter.memory import Origin, ReadElement
from castsim.execution.outcomes import CastPlace, Outcome, Outcomes
from castsim.execution.timing import Timing
from castsim.execution.tree import Tree
from castsim.isa.formats import IntFormat, format_named
from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS
from castsim.reports.cycle_evidence import OperationKindWork, differs_from_shipped, facts_behind
from castsim.reports.documents import Keys, record, says
from castsim.reports.numbers import grouped, lines_named
from castsim.reports.run_report import PartialOutput, ReportSection, RunReport
from castsim.reports.schemas.keys import Column, Cycles, Elements, Line, Output, Value
from castsim.reports.terminal import indented, table
from castsim.running.program_runs import OpaqueUse
from castsim.targets.loader import Target, TileTarget, measured_operation


def _outputs_text(report: RunReport, width: int) -> Iterator[RenderableType]:
    del width
    for line in report.result.loaded.printed:
        yield Text.assemble(("printed: ", "bold"), line)
    if not report.outputs and not report.partial:
        yield Text("outputs: none computed" if report.result.loaded.arguments else "outputs: none")
        return
    for output in report.outputs:
        yield Text(f"{_named_output(output)}, sha256 {output.sha256}")
        if output.file is not None:
            yield indented(Text(f"written to {output.file}"))
    if report.outputs and all(output.file is None for output in report.outputs):
        yield indented(Text("not written; --out DIR writes DIR/NAME.npy"))
    yield from _doubtful_outputs(report)


def _brief_outputs(report: RunReport, width: int) -> Iterator[RenderableType]:
    """Yield the outputs without their digests, and the doubtful elements."""
    del width
    for line in report.result.loaded.printed:
        yield Text.assemble(("printed: ", "bold"), line)
    for output in report.outputs:
        written = "not written (--out DIR writes it)" if output.file is None else f"written to {output.file}"
        yield Text(f"{_named_output(output)}, {written}")
    yield from _doubtful_outputs(report)


def _named_output(output: Output) -> str:
    shape = " x ".join(map(str, output.shape))
    return f"output {output.name}: {output.format} [{shape}]"


def _doubtful_outputs(report: RunReport) -> Iterator[RenderableType]:
    """Yield the outputs with elements that depend on unwritten memory or are not computed."""
    for undefined in report.undefined:
        first = ", ".join(map(str, undefined.first))
        sizes = next((output.shape for output in report.outputs if output.name == undefined.name), None)
        total = "" if sizes is None else f" of {grouped(prod(sizes))}"
        count = f"{grouped(undefined.elements)}{total} elements"
        text = f"output {undefined.name}: {count} depend on bytes that nothing wrote"
        yield Text(f"{text}, the first at [{first}]", style="yellow")
        if undefined.mask_file is not None:
            yield indented(Text(f"{undefined.mask_file} marks them"))
    for incomplete in report.partial:
        yield from _partial(incomplete)


def _partial(output: PartialOutput) -> Iterator[RenderableType]:
    shape, first = " x ".join(map(str, output.shape)), ", ".join(map(str, output.first))
    counts = f"{grouped(output.elements)} of {grouped(prod(output.shape))}"
    text = f"output {output.name}: {output.format} [{shape}], {counts} elements are"
    yield Text(f"{text} not computed, the first at [{first}]: they depend on opaque operations", style="bold red")
    if output.file is None:
        yield indented(Text("not written; --out DIR --partial writes it, and which elements are computed"))
    else:
        yield indented(Text(f"written to {output.file}, with 0 for these; {output.computed_file} marks them"))


OUTPUTS = ReportSection(_outputs_text, options=("--out", "--partial"), brief=_brief_outputs)


# What casts did to their numbers: how many were rounded, clamped, wrapped, overflowed.

OUTCOMES = tuple(each.value for each in Outcome if each is not Outcome.EXACT)


@record
class CastLine(Keys):
    """Effects of an instruction's casts on their numbers, all executions together; all other numbers are exact.
    For vector instructions and TPC code: effects of a line's conversions between the same formats, in active lanes.
    """

    line: Line = says("Line of the source.")
    op: str = says("The instruction.")
    src: str = says("Name of the source format.")
    dst: str = says("Name of the destination format.")
    elements: Elements = says("Number of cast values.")
    rounded: Elements = says("Number of values within the range of the destination that were rounded.")
    clamped: Elements = says("Number of values outside the range that became its end.")
    wrapped: Elements = says("Count of numbers beyond the range that became another number, usually by their low bits.")
    overflow: Elements = says("Number of values that became infinity, or NaN.")
    nan: Elements = says("Number of NaN values that became a number.")


def cast_lines(report: RunReport) -> tuple[CastLine, ...]:
    """Return the casts whose numbers were computed, in program order."""
    return tuple(_line(cast_place, counts) for cast_place, counts in report.result.casts.items())


def _line(cast_place: CastPlace, counts: Outcomes) -> CastLine:
    numbers = (counts.elements, counts.rounded, counts.clamped, counts.wrapped, counts.overflow, counts.nan)
    return CastLine(cast_place.line, cast_place.op, cast_place.src, cast_place.dst, *numbers)


def _casts_text(report: RunReport, width: int) -> Iterator[RenderableType]:
    """Yield one row per instruction, without columns for effects that did not occur."""
    del width
    lines = cast_lines(report)
    if not lines:
        return
    shown = [name for name in OUTCOMES if any(getattr(line, name) for line in lines)]
    if not shown:
        yield Text(f"casts: all {grouped(sum(line.elements for line in lines))} numbers exact")
        yield Text()
        return
    rows = (
        (str(line.line), line.op, grouped(line.elements), *(_number(getattr(line, name)) for name in shown))
        for line in lines
    )
    yield table(">line", "cast", ">elements", *(f">{heading_of(name)}" for name in shown), rows=rows)
    yield Text()


def _brief_casts(report: RunReport, width: int) -> Iterator[RenderableType]:
    """Yield one line on all casts: how many numbers were rounded, and the other effects with their lines."""
    del width
    casts = cast_lines(report)
    if not casts:
        return
    total = sum(line.elements for line in casts)
    counts = {name: sum(getattr(line, name) for line in casts) for name in OUTCOMES}
    outcomes = []
    for name, count in counts.items():
        if count:
            lines = lines_named(line.line for line in casts if getattr(line, name))
            where = "" if name == Outcome.ROUNDED else f" ({lines})"
            outcomes.append(f"{grouped(count)} {_BECAME.get(name, name)}{where}")
    yield Text(f"casts: {grouped(total)} numbers, {', '.join(outcomes) or 'all exact'}")


_BECAME = {"overflow": "became infinity or NaN", "nan": "were NaN and became a number"}
"""Wording of effects whose name is not a verb."""


def heading_of(name: str) -> str:
    """Return the heading of an effect: its name, or for NaN the loss of the number."""
    return "NaN lost" if name == "nan" else name


def _number(count: int) -> str:
    return grouped(count) if count else ""


CASTS = ReportSection(_casts_text, brief=_brief_casts)


# Which vector operations of a program have no published cycles, and whose values are not claimed to be bit-exact.


@record
class Operation(Keys):
    """A vector operation on one element type."""

    op: str = says("The operation.")
    element: str = says("Name of the element's format.")
    validated: bool = says("Whether its cycles were compared with published ones.")
    not_bit_exact: str | None = says("The reason why its values are not claimed to be bit-exact; null if they are.")


def operation_notes(tree: Tree, target: Target, timing: Timing) -> tuple[Operation, ...]:
    """Return a note per vector operation and element type of a timed program, sorted."""
    if not target.has_tiles:
        return ()
    operations = set()
    for instruction in tree.instructions:
        if instruction.mnemonic in VECTOR_OPERATIONS and instruction.element is not None:
            operations.add((instruction.mnemonic, instruction.element))
    return tuple(_note(target, mnemonic, element, tree, timing) for mnemonic, element in sorted(operations))


def noted_operations(report: RunReport) -> tuple[Operation, ...]:
    """Return the notes on the vector operations of a run."""
    result = report.result
    return operation_notes(result.loaded.tree, result.loaded.target, result.timing)


def _operations_text(report: RunReport, width: int) -> Iterator[RenderableType]:
    """Yield the operations whose cycles are not validated or whose values may not be bit-exact."""
    del width
    notes = noted_operations(report)
    doubtful = [f"{note.op} {note.element}" for note in notes if not note.validated]
    if doubtful:
        yield Text(f"cycles not validated (none published): {', '.join(doubtful)}")
    reasons: dict[str, list[str]] = {}
    for note in notes:
        if note.not_bit_exact is not None:
            reasons.setdefault(note.not_bit_exact, []).append(f"{note.op} {note.element}")
    for reason, operations in reasons.items():
        yield Text(f"values not bit-exact: {', '.join(operations)}: {reason}")


def _brief_operations(report: RunReport, width: int) -> Iterator[RenderableType]:
    del width
    if inexact := [f"{note.op} {note.element}" for note in noted_operations(report) if note.not_bit_exact is not None]:
        yield Text(f"values may not be bit-exact: {', '.join(inexact)}")


def _note(target: TileTarget, mnemonic: str, element: str, tree: Tree, timing: Timing) -> Operation:
    rule = target.tile_operation(mnemonic)
    assert rule is not None
    is_integer = isinstance(format_named(element), IntFormat)
    # Integer results are exact whatever the order; only divisions are not certain for them.
    doubtful = not is_integer or not VECTOR_OPERATIONS[mnemonic].integers_exact
    measured = measured_operation(target.lineage.name, mnemonic, element, element) is not None
    work = OperationKindWork(str(VECTOR_OPERATIONS[mnemonic].kind), f"{mnemonic} {element}", mnemonic, element, element)
    behind = partial(facts_behind, target, timing, tree)
    validated = (measured or element in rule.validated) and not differs_from_shipped(target, work, timing.facts, behind)
    return Operation(mnemonic, element, validated, rule.approximate if doubtful else None)


OPERATIONS = ReportSection(_operations_text, brief=_brief_operations)


# Operations that placeholders stand in for, and how much of the time rests on them.


class PlaceholderUse(Keys):
    """An operation that is not simulated."""

    op: str = says("The operation.", "name")
    pipe: str = says("The pipe that it occupies.")
    executions: int = says("Number of executions.")
    cycles_each: Cycles = says("Duration of each execution, from `--opaque`.", "cycles")


class Placeholders(Keys):
    """Keys of one opaque operation."""

    operations: list[PlaceholderUse] = says("The operations.", "uses")
    cycles_resting_on_them: Cycles = says("Cycles of the total that depend on them.", "resting")
    cycles_without_them: Cycles = says("The total if their duration were zero.", "without")


def _opaque_text(report: RunReport, width: int) -> Iterator[RenderableType]:
    del width
    placeholders = report.result.placeholders
    if placeholders is None:
        return
    times = sum(use.executions for use in placeholders.uses)
    words = "1 operation is" if times == 1 else f"{grouped(times)} operations are"
    text = f"at least {grouped(placeholders.without)} cycles; {words} not modelled"
    if placeholders.resting:
        share = 100 * placeholders.resting / placeholders.total
        resting, total = grouped(placeholders.resting), grouped(placeholders.total)
        text += f"; --opaque adds {resting} of the {total} cycles ({share:.1f} %)"
    yield Text(text, style="yellow")
    for use in placeholders.uses:
        yield indented(Text(_placeholder_line(use)))
    unset = sorted({use.name for use in placeholders.uses if not use.cycles})
    if unset:
        yield indented(Text(f"the total omits the time of {', '.join(unset)}: set it with --opaque NAME=CYCLES"))


def _placeholder_line(use: OpaqueUse) -> str:
    times = "once" if use.executions == 1 else f"{grouped(use.executions)} times"
    return f"{use.name} on {use.pipe}, {times}, {grouped(use.cycles)} cycles each"


OPAQUE = ReportSection(_opaque_text, options=("--opaque",), brief=_opaque_text)


# The options that decide results of a program, as its text leaves them open: the assembler's version, the back end.


@record
class ChoiceEntry(Keys):
    """An option that decides results which the text leaves open."""

    option: str = says("Name of the option.")
    value: str = says("Its value in this run.")
    legal: Sequence[str] = says("The possible values.")
    effect: str = says("The effect of the value.")
    lines: Sequence[Line] = says("The lines of the source that it affects.")


def choices_of(report: RunReport) -> list[ChoiceEntry]:
    """Return every choice with the source lines that it affects, in the order of the walk."""
    loaded = report.result.loaded
    lines: dict[ProgramChoice, set[int]] = {}
    for choice, span in loaded.executed.choices:
        lines.setdefault(choice, set()).add(span.line)
    legal = {choice: [str(value) for value in loaded.target.options[choice.option].legal] for choice in lines}
    return [
        ChoiceEntry(choice.option, choice.value, legal[choice], choice.effect, sorted(own))
        for choice, own in lines.items()
    ]


def _choices_text(report: RunReport, width: int) -> Iterator[RenderableType]:
    del width
    by_option: dict[str, list[ChoiceEntry]] = {}
    for choice in choices_of(report):
        by_option.setdefault(choice.option, []).append(choice)
    if by_option:
        yield Text("results depend on")
    for option, choices in by_option.items():
        value = choices[0].value
        others = ", ".join(legal_value for legal_value in choices[0].legal if legal_value != value)
        yield indented(Text(f"{option} = {value} (also {others}: --{option})"))
        for choice in choices:
            yield indented(indented(Text(f"{lines_named(choice.lines)}: {choice.effect}")))


def _brief_choices(report: RunReport, width: int) -> Iterator[RenderableType]:
    del width
    if values := {choice.option: choice.value for choice in choices_of(report)}:
        yield Text(f"results depend on {', '.join(f'--{option} {value}' for option, value in values.items())}")


CHOICES = ReportSection(_choices_text, brief=_brief_choices)


# The reads of memory on which the path of a program rests, or an address, or an extent.

_MOST_READS = 4
_SOURCES = {
    Origin.GIVEN: "from its input",
    Origin.ARGUMENT: "given by --arg",
    Origin.COMPUTED: "written by this run",
    Origin.DEFAULT: "taken for 0",
    Origin.OPAQUE: "opaque, taken for 0",
}


class Read(Keys):
    """A read of memory that decides the path."""

    read: str = says("The element that was read.", "text")
    file: str = says("The source file.", "span.file")
    line: Line = says("Line of the read.", "span.line")
    column: Column = says("Column of the read.", "span.column")
    value: Value = says("The value.", lambda read: _finite(read.value))
    origin: Origin = says("Origin of the value.")


def _finite(value: int | float) -> int | float | str:
    """Return a value as JSON, which has no infinity and no NaN."""
    return value if isfinite(value) else str(value)


def _path_text(report: RunReport, width: int) -> Iterator[RenderableType]:
    del width
    decisions = report.result.loaded.executed.decided_by
    if not decisions:
        return
    yield Text("path decided by")
    by_place = sorted(decisions, key=_place)
    for _, reads in groupby(by_place, key=_place):
        yield indented(Text(_read_line(list(reads))))


def _place(read: ReadElement) -> tuple[int, int]:
    return read.span.line, read.span.column


def _read_line(reads: list[ReadElement]) -> str:
    """Return a sentence about the reads of one source line: their values, number and origin."""
    values = ", ".join(f"{read.text} = {read.value}" for read in reads[:_MOST_READS])
    more = f" and {len(reads) - _MOST_READS} more" if len(reads) > _MOST_READS else ""
    sources = ", ".join(_SOURCES[origin] for origin in dict.fromkeys(read.origin for read in reads))
    return f"line {reads[0].span.line}: {values}{more} ({sources})"


PATH = ReportSection(_path_text)
