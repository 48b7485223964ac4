"""`castsim.diff`: comparison of programs and results of runs; the difference as JSON and as text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from rich.console import RenderableType
from rich.text import Text

from castsim.execution.input_data import digest, read_array
from castsim.execution.run_limits import DEFAULT_LIMITS, MAX_CYCLES, Limits
from castsim.execution.timing import Cause
from castsim.isa.dataclass import dataclass, field, replace
from castsim.isa.errors import CastsimError, EngineError, ReadError, arguments_checked
from castsim.isa.formats import Codes, Format, format_named
from castsim.isa.reading import Source, read_bytes, source_from
from castsim.numerics.codec import codes_from_array, value_of
from castsim.reports.documents import Json, identifier
from castsim.reports.numbers import bits_text, duration, grouped, json_value
from castsim.reports.terminal import composed, indented, table
from castsim.running.loaded import LoadedProgram, LoadRequest
from castsim.running.program_loading import load
from castsim.running.program_runs import Result, run_loaded
from castsim.running.synchronisation.race_findings import REPORT, STOP
from castsim.targets.description import with_options
from castsim.targets.loader import Target
from castsim.tools.diff.differences import (
    ComparedOutput,
    ComparedSide,
    ComparisonError,
    Difference,
    LineChange,
    LineSpan,
    LineThatDiffers,
    SideOutput,
    SourceLineCost,
    by_effect,
    by_line,
    difference,
    side_of,
)
from castsim.tools.diff.recorded_runs import RecordedObject, recorded_run

if TYPE_CHECKING:
    from castsim.running.loaded import LaunchRequest


# The JSON that `castsim run --json` wrote, read back as a side of a comparison.

_CAUSES = {identifier(cause): cause for cause in Cause}


def is_document(data: bytes, file: str) -> bool:
    """Return whether a file is JSON rather than a program, by its suffix or else by its beginning."""
    suffix = Path(file).suffix
    return suffix == ".json" or (suffix not in (".pto", ".tpc", ".s") and data.lstrip()[:1] == b"{")


def recorded_side(data: bytes, file: str, *, values: bool) -> ComparedSide:
    """Return the run of a document as a side, with its outputs if `values`.

    Elements of outputs are compared if the run's files still exist unchanged; otherwise only their digests.

    Raises:
        ReadError: not JSON, not the result of a run, another version, or an output that is not fully computed.
    """
    recorded = recorded_run(data, file)
    if recorded.outputs_not_computed and values:
        name = recorded.outputs_not_computed[0].name
        raise ReadError(f"result '{file}': output '{name}' was not computed in full")
    instructions = recorded.instructions or []
    return ComparedSide(
        file=file,
        entry=recorded.entry,
        target=recorded.target,
        cycles=recorded.total_cycles,
        seconds=recorded.seconds,
        pipes={name: _causes(pipe.causes, file) for name, pipe in (recorded.pipes or {}).items()},
        lines=_costs(recorded, file),
        source=None,
        executed=by_line((instruction.line, instruction.op) for instruction in instructions),
        outputs=tuple(_output(output, file) for output in recorded.outputs) if values else (),
        recorded=tuple(
            LineSpan(
                instruction.line,
                instruction.op,
                instruction.pipe,
                instruction.start_cycle,
                instruction.end_cycle,
                instruction.executions or 1,
            )
            for instruction in instructions
        ),
    )


def _costs(recorded: RecordedObject, file: str) -> dict[int, SourceLineCost]:
    cycles: dict[int, int | None] = {}
    for instruction in recorded.instructions or ():
        before = cycles.get(instruction.line, 0)
        # Where one entry stands for many executions, their lengths are not all known.
        is_known = before is not None and instruction.executions in (None, 1)
        cycles[instruction.line] = (before or 0) + instruction.end_cycle - instruction.start_cycle if is_known else None
    causes: dict[int, dict[Cause, int]] = {}
    for line in recorded.kernel.lines if recorded.kernel else ():
        if line.line is not None:
            causes[line.line] = _causes(line.causes, file)
    costs = {line: SourceLineCost(spent, causes.get(line)) for line, spent in cycles.items()}
    for launches in recorded.launches or ():
        for line in launches.lines:
            if line.line is not None:
                costs.setdefault(line.line, SourceLineCost(line.cycles, _causes(line.causes, file)))
    return costs


def _causes(recorded: Mapping[str, int], file: str) -> dict[Cause, int]:
    strange = next((name for name in recorded if name not in _CAUSES), None)
    if strange is not None:
        raise ReadError(f"result '{file}': unknown cause of cycles '{strange[:40]}'", legal=_CAUSES)
    return {_CAUSES[name]: cycles for name, cycles in recorded.items()}


def _output(output: RecordedObject, file: str) -> SideOutput:
    try:
        fmt = format_named(output.format)
    except CastsimError as error:
        raise ReadError(f"result '{file}': output '{output.name}': {error.message}", legal=error.legal) from None
    shape = tuple(output.shape)
    return SideOutput(output.name, fmt, shape, output.sha256, _codes(output, fmt, shape))


def _codes(output: RecordedObject, fmt: Format, shape: tuple[int, ...]) -> Codes | None:
    """Return the elements of an output, None if its file is gone or has changed."""
    if output.file is None:
        return None
    try:
        array = read_array(Path(output.file), output.name)
        is_recorded = array.shape == shape and digest(array) == output.sha256
        return codes_from_array(array, fmt) if is_recorded else None
    except CastsimError:
        return None


_Made = TypeVar("_Made")


@dataclass(frozen=True, slots=True)
class SideRequest:
    """A side to compare, and how to run it if it is a program.

    `inherited` are options of the other side, which apply here too unless this target lacks them.
    """

    program: str | Path | Result | Source
    target: str | Path | Target | None = None
    entry: str | None = None
    options: Mapping[str, int | str] = field(default_factory=dict)
    inherited: Mapping[str, int | str] = field(default_factory=dict)
    inputs: Mapping[str, Codes | str] = field(default_factory=dict)
    args: Mapping[str, int | float] = field(default_factory=dict)
    opaque: Mapping[str, int] = field(default_factory=dict)
    timing_only: bool = False
    max_cycles: int = MAX_CYCLES
    limits: Limits = DEFAULT_LIMITS
    launch: LaunchRequest | None = None
    """Tensors, index space and engines of a kernel in C."""

    @property
    def about_program(self) -> bool:
        """Whether any option about running a program is set."""
        given_values = (self.target, self.entry, self.options, self.inherited, self.inputs, self.args, self.opaque)
        return any(given_value is not None and given_value != {} for given_value in given_values)

    def differs_from(self, other: SideRequest) -> bool:
        """Return whether any option distinguishes this side from the other."""
        return (self.target, self.entry) != (other.target, other.entry) or self.options not in ({}, other.options)

    def prepared(self, target: Target) -> Target:
        """Return the target with the options set.

        Raises:
            ReadError: the target lacks an option, or a value is not legal.
        """
        known_options = {name: value for name, value in self.inherited.items() if name in target.options}
        return with_options(target, {**known_options, **self.options})


@dataclass(frozen=True, slots=True)
class _Opened:
    """A loaded program with its text, or a finished side."""

    request: SideRequest
    loaded: LoadedProgram | None
    text: str
    side: ComparedSide | None


@arguments_checked
def diff(
    a: str | Path | Result,
    b: str | Path | Result | None = None,
    *,
    target: str | Path | Target | None = None,
    target_b: str | Path | Target | None = None,
    entry: str | None = None,
    entry_b: str | None = None,
    options: Mapping[str, int | str] | None = None,
    options_b: Mapping[str, int | str] | None = None,
    inputs: Mapping[str, Codes | str] | None = None,
    args: Mapping[str, int | float] | None = None,
    opaque: Mapping[str, int] | None = None,
    timing_only: bool = False,
    max_cycles: int = MAX_CYCLES,
    max_walk: int | None = None,
) -> Difference:
    """Compare two runs: cycles in all, by pipe and by line, outputs bit by bit.

    Args:
        a: path of a program (`.pto`, `.tpc`, a binary) or of a `castsim run --json` document, or a result of `run`.
        b: the same; None runs program `a` again, on another target or with other options.
        target, entry, options: for both sides; `options` that the target of `b` lacks are dropped for it.
        target_b, entry_b, options_b: for `b` alone.
        inputs: arrays by argument name, or values of `--in`; each goes to the sides that have such an argument.
        args, opaque, max_cycles, max_walk: see `castsim.run`.
        timing_only: compute no values, and compare cycles only; inputs are not needed.

    Returns:
        `equal`, `cycles_a`, `cycles_b`, `slowdown_percent`, the `lines` that differ (with their cycles), the `pipes`
        that differ (cycles by cause), and `outputs`: how many elements differ, the first ten with index and bits.

    Raises:
        ComparisonError: a side is refused or fails (its own error is the cause), or lacks data that the other has.
        ReadError: neither program takes an input, or both sides are necessarily the same.
    """
    if b is None and target_b is None and not options_b and entry_b is None:
        raise ReadError("the second program is missing", legal=("--target-b T", "--option-b NAME=VALUE"))
    both = (inputs or {}, args or {}, opaque or {}, timing_only, max_cycles, Limits(max_walk=max_walk))
    return diff_sides(
        SideRequest(a, target, entry, options or {}, {}, *both),
        SideRequest(
            a if b is None else b, target if target_b is None else target_b, entry if entry_b is None else entry_b,
            options_b or {}, options or {}, *both,
        ),
    )  # fmt: skip


def diff_sides(a: SideRequest, b: SideRequest, stage: Callable[[str], None] = lambda _: None) -> Difference:
    """Compare two sides; `stage` receives the current stage.

    Raises:
        ComparisonError, ReadError: see `diff`.
    """
    content = {
        str(request.program): _content(request)
        for request in (a, b)
        if not isinstance(request.program, Result | Source)
    }
    first = _open(a, content, "side A")
    if first.loaded is None:  # nobody has read the options that both were given
        b = replace(b, options={**b.inherited, **b.options}, inherited={})
    second = _open(b, content, "side B")
    _check_takers(a, b, first, second)
    programs = [opened.loaded for opened in (first, second) if opened.loaded is not None]
    _check_inputs({**a.inputs, **b.inputs}, programs)
    return difference(_ran(first, "side A", stage), _ran(second, "side B", stage))


def _check_takers(a: SideRequest, b: SideRequest, first: _Opened, second: _Opened) -> None:
    """Reject options about programs if a side is only a result.

    Raises:
        ReadError: such an option was given.
    """
    if first.loaded is None and second.loaded is None and (a.about_program or b.about_program):
        raise ReadError("both sides are results; targets, options, entries, inputs and arguments are for programs")
    if second.loaded is None and b.differs_from(a):
        raise ReadError("B is a result; a target, option or entry applies only to a program")


def _content(request: SideRequest) -> bytes:
    return read_bytes(str(request.program), "program or result")


def _open(request: SideRequest, content: Mapping[str, bytes], who: str) -> _Opened:
    if isinstance(request.program, Result):
        program = request.program
        return _Opened(request, None, "", _side(program, program.loaded.source, values=not request.timing_only))
    if isinstance(request.program, Source):
        recorded = request.program
        return _named(who, lambda: _loaded(request, recorded))
    data, file = content[str(request.program)], _file(request.program)
    if is_document(data, file):
        return _Opened(request, None, "", recorded_side(data, file, values=not request.timing_only))
    prefers = LoadRequest(request.target).prefers_assembly
    return _named(who, lambda: _loaded(request, source_from(data, Path(file), prefers)))


def _file(program: str | Path) -> str:
    return "/dev/stdin" if str(program) == "-" else str(program)


def _loaded(request: SideRequest, source: Source) -> _Opened:
    loaded = load(
        source, request.target, request.entry, request.args, prepare=request.prepared, opaque=request.opaque,
        limits=request.limits, launch=request.launch,
    )  # fmt: skip
    return _Opened(request, loaded, source.text, None)


def _check_inputs(inputs: Iterable[str], programs: Iterable[LoadedProgram]) -> None:
    names = list(dict.fromkeys(name for program in programs for name in program.arguments))
    for name in inputs:
        if name not in names:
            raise ReadError(f"neither program has a tensor argument '{name}'", legal=names)


def _ran(opened: _Opened, who: str, stage: Callable[[str], None]) -> ComparedSide:
    """Run the program of a side that was not run yet."""
    request, loaded = opened.request, opened.loaded
    if loaded is None:
        assert opened.side is not None
        return opened.side
    inputs = {name: value for name, value in request.inputs.items() if name in loaded.arguments}
    result = _named(
        who,
        lambda: run_loaded(
            loaded, inputs, timing_only=request.timing_only, max_cycles=request.max_cycles, stage=stage,
            limits=request.limits, races=STOP if isinstance(request.program, str | Path) else REPORT,
        ),
    )  # fmt: skip
    return _side(result, opened.text, values=not request.timing_only)


def _side(result: Result, text: str, *, values: bool) -> ComparedSide:
    """Return a run as a side, with its outputs if `values`.

    Raises:
        ComparisonError: an output is not fully computed.
    """
    for name in result.partial if values else ():
        raise ComparisonError(
            f"output '{name}' of {result.loaded.file} is incomplete: it depends on opaque operations",
            legal=("--timing-only",),
        )
    return side_of(result, text, values=values)


def _named(who: str, do: Callable[[], _Made]) -> _Made:
    """Call a function for a side; errors name the side.

    Raises:
        ComparisonError: the call failed.
    """
    try:
        return do()
    except (CastsimError, EngineError) as error:
        legal = error.legal if isinstance(error, CastsimError) else ()
        named_error = ComparisonError(f"{error.message} ({who})", span=error.span, legal=legal)
        named_error.further = getattr(error, "further", ())
        raise named_error from error
    except MemoryError as error:
        raise ComparisonError(f"not enough memory ({who})") from error


def difference_lines(lines: Iterable[LineThatDiffers]) -> list[Json]:
    """Return lines as JSON with the pipe cycles that each spends."""
    return [{**line.as_json(), "spent_a": line.spent[0], "spent_b": line.spent[1]} for line in lines]


# The difference of two runs as text: the answer, pipes, lines, outputs.

_ROWS = 40
"""Maximum number of lines in the text; JSON has all."""

_SYNCHRONISING = re.compile(r"^\s*(?:pto\.)?(?:set_flag|wait_flag|barrier|record_event|wait_event)\b")

_NO_VALUES = "outputs: not compared, as no values were computed"


@composed
def difference_text(comparison: Difference, width: int) -> Iterator[RenderableType]:
    """Yield the text of a difference for a terminal of `width` columns."""
    yield from head_of(comparison)
    if comparison.pipes:
        yield Text()
        yield _pipes(comparison)
    if comparison.lines:
        yield Text()
        yield from _lines(comparison, width)
    parts = list(output_parts(comparison))
    if parts:
        yield Text()
        yield from parts


def output_parts(comparison: Difference) -> Iterator[RenderableType]:
    """Yield the lines on each differing output, with its first differing elements, and on unequal shapes."""
    for output in comparison.outputs:
        if not output.equal or (output.a and output.b and output.a.shape != output.b.shape):
            yield from _output_text(output)


def head_of(comparison: Difference) -> Iterator[Text]:
    """Yield the names of both sides, and the comparison of their cycles and outputs."""
    yield Text(f"A {_named_side(comparison.a)}")
    yield Text(f"B {_named_side(comparison.b)}")
    yield Text(_cycles(comparison), style="bold")
    if not comparison.outputs:
        yield Text(_NO_VALUES)
        return
    unequal = sum(not output.equal for output in comparison.outputs)
    count = len(comparison.outputs)
    if unequal:
        yield Text(f"outputs: {unequal:,} of {count:,} differ{'s' * (unequal == 1)}", style="bold red")
    else:
        yield Text(f"outputs: {'the same' if count == 1 else f'all {count} the same'}, bit for bit")


def _named_side(side: ComparedSide) -> str:
    entry = "" if side.entry is None else f" @{side.entry}"
    return f"{side.file}{entry} on {side.target}{', according to its JSON' * (side.result is None)}"


def _cycles(comparison: Difference) -> str:
    a, b = comparison.cycles_a, comparison.cycles_b
    if a is None or b is None:
        return "cycles: not modelled for this program"
    if a == b:
        return f"cycles: {grouped(a)}, the same"
    by = speed_of(comparison)
    return f"cycles: {grouped(a)} -> {grouped(b)} ({b - a:+,}){f', B takes {by}' if by else ''}{_seconds(comparison)}"


def speed_of(comparison: Difference) -> str:
    """Return the second side's cycles relative to the first side's in words; '' if equal or unknown.

    Above 1.5x the ratio is clearer than a percentage and follows it.
    """
    a, b, percent = comparison.cycles_a, comparison.cycles_b, comparison.slowdown_percent
    if not a or not b or percent is None or a == b:
        return ""
    cycles = f"{_decimal(abs(percent))} % {'fewer' if b < a else 'more'} cycles"
    ratio = max(a, b) / min(a, b)
    return cycles if ratio <= _CLEAR_RATIO else f"{cycles}, {ratio:,.1f}x {'faster' if b < a else 'slower'}"


_CLEAR_RATIO = 1.5


def _decimal(percent: float) -> str:
    """Return a percentage with one decimal, or as many as a nonzero digit needs."""
    return next((text for places in range(1, 9) if float(text := f"{percent:.{places}f}")), f"{percent:.8f}")


def _seconds(comparison: Difference) -> str:
    """Return the times of both sides if their clocks differ, because cycles alone cannot be compared then."""
    a, b = comparison.a, comparison.b
    if a.target == b.target or not a.seconds or not b.seconds:
        return ""
    return f"; {duration(a.seconds)} -> {duration(b.seconds)}"


def _pipes(comparison: Difference) -> RenderableType:
    pipe_table = table("pipe", "cause", ">cycles A", ">cycles B", ">B - A")
    for pipe in comparison.pipes:
        name = pipe.pipe
        for cause in Cause:
            a, b = pipe.causes_a.get(cause, 0), pipe.causes_b.get(cause, 0)
            if a != b:
                pipe_table.add_row(name, str(cause), grouped(a), grouped(b), f"{b - a:+,}")
                name = ""
    return pipe_table


def _lines(comparison: Difference, width: int) -> Iterator[RenderableType]:
    yield Text(
        f"lines that differ: {len(comparison.lines)}{'' if comparison.by_text else ', by the instructions in them'}"
    )
    waits = [line_difference for line_difference in comparison.lines if _only_waits(line_difference)]
    rows = [line_difference for line_difference in by_effect(comparison.lines) if not _only_waits(line_difference)]
    for line_difference in rows[:_ROWS]:
        yield Text(
            f"  {_place(line_difference):<14} {line_difference.change:<8} {_cost(line_difference)}".rstrip(),
            no_wrap=True,
            overflow="ellipsis",
        )
        yield from _texts(line_difference, width)
    if waits:
        yield Text(f"  flags, barriers and waits: {len(waits)} lines")
    if len(rows) > _ROWS:
        yield Text(f"  and {len(rows) - _ROWS} more (--json has all)")


def _only_waits(line_difference: LineThatDiffers) -> bool:
    """Return whether a line only synchronises on each side that has it, or waits longer on one side alone."""
    if line_difference.change is LineChange.CYCLES and not line_difference.effect:
        return True
    texts = [statement.text for statement in (line_difference.a, line_difference.b) if statement is not None]
    return all(_SYNCHRONISING.search(text) for text in texts)


def _place(line_difference: LineThatDiffers) -> str:
    a, b = line_difference.line_a, line_difference.line_b
    return f"{'-' if a is None else a} -> {'-' if b is None else b}"


def _cost(line_difference: LineThatDiffers) -> str:
    a, b = line_difference.spent
    if a is None and b is None:
        return ""
    if a is None or b is None:
        only = a if b is None else b
        return f"{_counted(only or 0)} {'in A' if b is None else 'in B'}"
    if a == b:
        return f"{_counted(a)} on both"
    return f"{grouped(a)} -> {grouped(b)} pipe cycles ({b - a:+,})"


def _counted(cycles: int) -> str:
    return f"{grouped(cycles)} pipe cycle{'s' * (cycles != 1)}"


def _texts(line_difference: LineThatDiffers, width: int) -> Iterator[Text]:
    """Yield the texts of a line, with a sign where they differ; a long common beginning is left out."""
    if (
        line_difference.a is not None
        and line_difference.b is not None
        and line_difference.change in (LineChange.CHANGED, LineChange.RENAMED)
    ):
        first, second = _excerpts(line_difference.a.text, line_difference.b.text, max(width - 8, 20))
        yield _quoted("-", first, "red")
        yield _quoted("+", second, "green")
        return
    statement = line_difference.b or line_difference.a
    sign, style = {LineChange.ADDED: ("+", "green"), LineChange.REMOVED: ("-", "red")}.get(
        line_difference.change, (" ", "dim")
    )
    if statement is not None:
        yield _quoted(sign, _shortened(statement.text, max(width - 8, 20)), style)


def _quoted(sign: str, text: str, style: str) -> Text:
    return Text(f"      {sign} {text}", style=style, no_wrap=True, overflow="ignore")


def _excerpts(first: str, second: str, room: int) -> tuple[str, str]:
    """Return two excerpts of equal length, starting shortly before the first difference."""
    if max(len(first), len(second)) <= room:
        return first, second
    same = next((n for n, pair in enumerate(zip(first, second, strict=False)) if len(set(pair)) > 1), len(first))
    start = max(0, min(same - room // 3, max(len(first), len(second)) - room))
    if not start:
        return _shortened(first, room), _shortened(second, room)
    return _shortened(f"...{first[start + 3 :]}", room), _shortened(f"...{second[start + 3 :]}", room)


def _shortened(text: str, room: int) -> str:
    return text if len(text) <= room else f"{text[: room - 3]}..."


def _output_text(output_difference: ComparedOutput) -> Iterator[RenderableType]:
    a, b = output_difference.a, output_difference.b
    name = output_difference.name if a is None or b is None or a.name == b.name else f"{a.name} (B: {b.name})"
    if a is None or b is None:
        only, whole = ("B", b) if a is None else ("A", a)
        yield Text(f"output {name}: only {only} has this output, {_form(whole)}", style="bold")
        return
    form = _form(a) if _form(a) == _form(b) else f"{_form(a)} -> {_form(b)}"
    if output_difference.differing is None:
        why = (
            "the numbers of elements differ"
            if prod(a.shape) != prod(b.shape)
            else "the digests differ; the elements are not known"
        )
        yield Text(f"output {name}: {form}, {why}", style="bold")
        return
    if output_difference.equal:
        yield Text(f"output {name}: {form}, the same bits in another shape")
        return
    elements = prod(a.shape)
    yield Text(
        f"output {name}: {form}, {grouped(output_difference.differing)} of {grouped(elements)} elements differ",
        style="bold",
    )
    if output_difference.first:
        rows = (
            (_index(element.index), *_number(element.bits_a, a.format), *_number(element.bits_b, b.format))
            for element in output_difference.first
        )
        yield indented(table("index", ">bits A", ">value A", ">bits B", ">value B", rows=rows))


def _form(output: SideOutput | None) -> str:
    return "" if output is None else f"{output.format.name} [{' x '.join(map(str, output.shape))}]"


def _index(index: Sequence[int]) -> str:
    return f"[{', '.join(map(str, index))}]"


def _number(bits: int, fmt: Format) -> tuple[str, str]:
    return bits_text(bits, fmt), str(json_value(value_of(bits, fmt), fmt))
