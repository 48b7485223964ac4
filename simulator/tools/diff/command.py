"""The command `diff`: compare two programs, results, targets or options: cycles, lines, outputs."""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import prod

from rich.console import RenderableType
from rich.text import Text

from castsim.commands.kernels import KernelOptions, launch_of, refuse_elsewhere, run_config_of
from castsim.commands.option_parsers import assignments, options_as
from castsim.commands.outcome import CommandOutcome
from castsim.commands.run_views import check_page, with_note, write_page_of
from castsim.execution.timing import Cause
from castsim.isa.dataclass import replace
from castsim.isa.errors import ReadError
from castsim.isa.formats import Format
from castsim.isa.reading import STDIN
from castsim.numerics.codec import value_of
from castsim.reports.numbers import bits_text, duration, grouped, json_value
from castsim.reports.terminal import composed, indented, table
from castsim.running.languages import CPP, GRAPH, language_module, language_of
from castsim.running.program_runs import RunConfig
from castsim.tools.diff.comparing import SideRequest, diff_sides
from castsim.tools.diff.differences import (
    ComparedOutput,
    ComparedSide,
    Difference,
    LineChange,
    LineThatDiffers,
    SideOutput,
    by_effect,
)

_PERCENT = re.compile(r"\d{1,12}(?:\.\d{0,12})?|\.\d{1,12}", re.ASCII)


def execute(options: Namespace) -> CommandOutcome:
    """Compare two sides.

    Raises:
        ComparisonError, ReadError: a side cannot be compared, or an option is wrong.
    """
    limit = _slowdown(options.max_slowdown)
    kernel = options_as(KernelOptions, options)
    refuse_elsewhere(kernel, options.a, options.b)
    check_page(options.html, {"--json": options.json, "A": options.a, "B": options.b})
    a, b = (_recorded(side, kernel) for side in _sides_of(options, kernel))
    comparison = diff_sides(a, b)

    write_page_of(options.html, "castsim.tools.diff.page", comparison)

    return CommandOutcome(
        comparison.as_json(),
        lambda width: with_note(difference_text(comparison, width), options.html),
        code=_code(comparison, limit),
    )


def _code(comparison: Difference, limit: Fraction | None) -> int:
    """Return 0 if both sides are equal or the slowdown is allowed; otherwise 1."""
    return int(not (comparison.equal if limit is None else comparison.within(limit)))


def _sides_of(options: Namespace, kernel: KernelOptions) -> tuple[SideRequest, SideRequest]:
    """Return the two sides to compare.

    Raises:
        ReadError: an option is wrong, a side is a graph, or both sides are necessarily the same.
    """
    a, b = options.a, options.a if options.b is None else options.b
    for name in (a, b):
        if language_of(name) == GRAPH:
            raise ReadError(f"'{name}' is a graph; diff compares programs or results of runs", legal=_LEGAL)
    if a == options.b == STDIN:
        raise ReadError("both sides are standard input, which can be read only once", legal=("castsim diff - B",))
    own = assignments("--option-b", options.options_b)
    if options.b is None and not own and options.target_b is None and options.entry_b is None:
        raise ReadError("the second program is missing", legal=("castsim diff A B", "--target-b T", *_LEGAL_B))
    shared = assignments("--option", options.options)
    config = run_config_of(options, a)
    side = SideRequest(
        a, config.target, config.entry, shared, inputs=config.inputs, args=config.args, opaque=config.opaque,
        timing_only=config.timing_only, max_cycles=config.max_cycles, limits=config.limits,
        launch=launch_of(kernel, config.inputs, a, b),
    )  # fmt: skip
    target, entry = options.target_b or options.target, options.entry_b or options.entry
    return side, replace(side, program=b, target=target, entry=entry, options=own, inherited=shared)


def _recorded(side: SideRequest, kernel: KernelOptions) -> SideRequest:
    """Return a side; a kernel in C++ becomes its recording for the side's target and options."""
    if language_of(str(side.program)) != CPP:
        return side
    config = RunConfig(str(side.program), side.target, side.entry, side.args, side.inputs, limits=side.limits)
    recording = language_module(CPP).recording_of(config, kernel, side.prepared)
    return replace(side, program=recording.source, entry=None, args={}, inputs=recording.inputs)


_LEGAL = ("a .pto or .tpc file", "a .json file of `castsim run --json`")
_LEGAL_B = ("--option-b NAME=VALUE", "--entry-b F")


def _slowdown(text: str | None) -> Fraction | None:
    """Return the percentage from `--max-slowdown`, exactly.

    Raises:
        ReadError: the text is not a decimal number of at least 0.
    """
    if text is None:
        return None
    if _PERCENT.fullmatch(text.strip()) is None:
        raise ReadError(f"--max-slowdown {text.strip()[:40]}: expected a percentage", legal=("0", "2.5", "100"))
    return Fraction(text.strip())


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
