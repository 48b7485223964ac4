"""The difference of two runs as JSON and as text: the answer, pipes, lines, outputs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from math import prod
from typing import Literal

from rich.console import Group, RenderableType
from rich.text import Text

from castsim.execution.timing import Cause
from castsim.exploration.differences import (
    Difference as RunDifference,
)
from castsim.exploration.differences import (
    ElementDifference,
    LineChange,
    LineDifference,
    OutputDifference,
    ProgramSide,
    SideOutput,
    by_effect,
)
from castsim.isa.formats import Format
from castsim.numerics import value_of
from castsim.reports.documents import CommandDocument, Document, Json, Keys, says
from castsim.reports.numbers import bits_text, grouped, json_value
from castsim.reports.schemas.keys import Bits, CauseName, Cycles, Elements, Line, Name, Percent, Seconds, Value
from castsim.reports.terminal import indented, table


class ComparedSide(Keys):
    """A side of the comparison."""

    file: str = says("The program, or the JSON of its run.")
    entry: str | None = says("The function; null where there is none.")
    target: str = says("Name of the target.")
    seconds: Seconds | None = says("Its cycles at the target's frequency; null if no cycles are modelled.")
    from_json: bool = says("Whether it was read from a JSON result.", lambda side: side.result is None)


class LineThatDiffers(Keys):
    """A line that differs in text or cycles."""

    line_a: Line | None = says("Line of A; null if it does not stand there.")
    line_b: Line | None = says("Line of B; null if it does not stand there.")
    change: Literal["added", "removed", "changed", "renamed", "moved", "cycles"]
    """What became of it: `renamed` says the same with other names of values, `cycles` differs in nothing else."""
    cycles_a: Cycles | None
    """Cycles of A from start to end of its executions, added up; null where it takes none, or they are not known."""
    cycles_b: Cycles | None = says("The same of B.")
    causes_a: dict[CauseName, Cycles] | None = says(of=lambda each: each.cost_a and each.cost_a.causes)
    """Cycles that pipes spent on it in A, by cause; null as `cycles_a`, and where a JSON result does not tell."""
    causes_b: dict[CauseName, Cycles] | None = says("The same of B.", lambda each: each.cost_b and each.cost_b.causes)
    text_a: str | None = says(of=lambda each: each.a and each.a.text)
    """The line of A without blanks around it, or the instructions in it if a side is a JSON result."""
    text_b: str | None = says("The same of B.", lambda each: each.b and each.b.text)


class ElementThatDiffers(Keys):
    """An element of an output that differs."""

    index: list[int] = says("Its index.")
    bits_a: Bits = says("Its code in A.")
    bits_b: Bits = says("Its code in B.")
    value_a: Value = says("The number in A.")
    value_b: Value = says("The number in B.")


class ComparedOutput(Keys):
    """An output of both sides, or of one."""

    name: str = says("Its name in A, in B if A has none.")
    equal: bool = says("Whether it has the same format and bits; shapes of as many elements may differ.")
    differing: Elements | None
    """How many elements differ in their bits; null if both have other numbers of them, one side lacks it, or only
    digests are known."""
    first: list[ElementThatDiffers] = says(
        of=lambda each: [_element(one, each.a.format, each.b.format) for one in each.first if each.a and each.b]
    )
    """The first of them."""
    name_a: str | None = says("Its name in A; null if A lacks it.", lambda each: each.a and each.a.name)
    format_a: str | None = says("Name of its format in A; null as `name_a`.", lambda each: each.a and each.a.format)
    shape_a: list[Elements] | None = says(of=lambda each: each.a and each.a.shape)
    """Extent of each dimension in A; null as `name_a`."""
    name_b: str | None = says("Its name in B; null if B lacks it.", lambda each: each.b and each.b.name)
    format_b: str | None = says("Name of its format in B; null as `name_b`.", lambda each: each.b and each.b.format)
    shape_b: list[Elements] | None = says(of=lambda each: each.b and each.b.shape)
    """Extent of each dimension in B; null as `name_b`."""


class PipeThatDiffers(Keys):
    """A pipe whose cycles differ."""

    pipe: Name = says("The pipe.")
    causes_a: dict[CauseName, Cycles] = says("Its cycles in A by cause, without zeros; empty if A has no such pipe.")
    causes_b: dict[CauseName, Cycles] = says("The same of B.")


class Difference(CommandDocument, name="diff"):
    """Two runs, compared. Nothing differs if `equal` is true and `lines` is empty."""

    equal: bool = says("Whether cycles and outputs are the same; the text of the programs does not count.")
    cycles_a: Cycles | None = says("Cycles of A; null if none are modelled.")
    cycles_b: Cycles | None = says("Cycles of B; null if none are modelled.")
    slowdown_percent: Percent | None
    """By how much B takes more cycles than A, negative if fewer; null without cycles, or if A takes none and B some."""
    lines: list[LineThatDiffers] = says("The lines that differ in text or cycles, in the order of the programs.")
    outputs: list[ComparedOutput] = says("Every output; empty if no values were computed.")
    pipes: list[PipeThatDiffers] = says("The pipes whose cycles differ.")
    a: ComparedSide = says("The first side.")
    b: ComparedSide = says("The second side.")


def difference_document(found: RunDifference) -> Document:
    """Return a difference as JSON: the lines and pipes that differ, and every output."""
    return Difference.of(found)


def difference_lines(lines: Iterable[LineDifference]) -> list[Json]:
    """Return lines as JSON with the pipe cycles that each spends."""
    return [{**LineThatDiffers.of(each), "spent_a": each.spent[0], "spent_b": each.spent[1]} for each in lines]


def _element(each: ElementDifference, a: Format, b: Format) -> Document:
    return ElementThatDiffers.of(
        each,
        bits_a=bits_text(each.bits_a, a),
        bits_b=bits_text(each.bits_b, b),
        value_a=json_value(value_of(each.bits_a, a), a),
        value_b=json_value(value_of(each.bits_b, b), b),
    )


# The difference of two runs as text: the answer, pipes, lines, outputs.

_ROWS = 40
"""Lines that the text shows; JSON has all."""

_SYNCHRONISING = re.compile(r"^\s*(?:pto\.)?(?:set_flag|wait_flag|barrier|record_event|wait_event)\b")

_NO_VALUES = "outputs: not compared, as no values were computed"


def difference_text(found: RunDifference, width: int) -> RenderableType:
    """Return the text of a difference for a terminal of `width` columns."""
    return Group(*_parts(found, width))


def _parts(found: RunDifference, width: int) -> Iterator[RenderableType]:
    yield from head_of(found)
    if found.pipes:
        yield Text()
        yield _pipes(found)
    if found.lines:
        yield Text()
        yield from _lines(found, width)
    parts = list(output_parts(found))
    if parts:
        yield Text()
        yield from parts


def output_parts(found: RunDifference) -> Iterator[RenderableType]:
    """Yield what is to be said of each output that differs, with its first elements that do, and of other shapes."""
    for output in found.outputs:
        if not output.equal or (output.a and output.b and output.a.shape != output.b.shape):
            yield from _output_text(output)


def head_of(found: RunDifference) -> Iterator[Text]:
    """Yield the names of both sides, and how their cycles and outputs compare."""
    yield Text(f"A {_named(found.a)}")
    yield Text(f"B {_named(found.b)}")
    yield Text(_cycles(found), style="bold")
    if not found.outputs:
        yield Text(_NO_VALUES)
        return
    unequal = sum(not each.equal for each in found.outputs)
    count = len(found.outputs)
    if unequal:
        yield Text(f"outputs: {unequal} of {count} differ{'s' * (unequal == 1)}", style="bold red")
    else:
        yield Text(f"outputs: {'the same' if count == 1 else f'all {count} the same'}, bit for bit")


def _named(side: ProgramSide) -> str:
    entry = "" if side.entry is None else f" @{side.entry}"
    return f"{side.file}{entry} on {side.target}{', according to its JSON' * (side.result is None)}"


def _cycles(found: RunDifference) -> str:
    a, b = found.cycles_a, found.cycles_b
    if a is None or b is None:
        return "cycles: not modelled for this program"
    if a == b:
        return f"cycles: {grouped(a)}, the same"
    by = speed_of(found)
    return f"cycles: {grouped(a)} -> {grouped(b)} ({b - a:+,}){f', B is {by}' if by else ''}{_seconds(found)}"


def speed_of(found: RunDifference) -> str:
    """Return the speed of the second side by the first one's, in words; '' if it is the same, or not known."""
    a, b, percent = found.cycles_a, found.cycles_b, found.slowdown_percent
    if not a or not b or percent is None or a == b:
        return ""
    if b < a:
        return f"{_ratio(a, b)} times as fast, {_decimal(-percent)} % fewer cycles"
    return f"{_ratio(b, a)} times as slow, {_decimal(percent)} % more cycles"


def _ratio(more: int, fewer: int) -> str:
    """Return how many times as much one is, with as many decimals as show that it is more."""
    return next(
        (text for places in range(1, 9) if float(text := f"{more / fewer:.{places}f}") > 1), f"{more / fewer:.8f}"
    )


def _decimal(percent: float) -> str:
    """Return a percentage with one decimal, or as many as show that it is not nothing."""
    return next((text for places in range(1, 9) if float(text := f"{percent:.{places}f}")), f"{percent:.8f}")


def _seconds(found: RunDifference) -> str:
    """Return the times of both sides where their clocks differ, so that cycles alone do not tell."""
    a, b = found.a, found.b
    if a.target == b.target or not a.seconds or not b.seconds:
        return ""
    return f"; {a.seconds * 1e6:.3f} us -> {b.seconds * 1e6:.3f} us"


def _pipes(found: RunDifference) -> RenderableType:
    made = table("pipe", "cause", "cycles A", "cycles B", "B - A", numbers=("cycles A", "cycles B", "B - A"))
    for pipe in found.pipes:
        name = pipe.pipe
        for cause in Cause:
            a, b = pipe.causes_a.get(cause, 0), pipe.causes_b.get(cause, 0)
            if a != b:
                made.add_row(name, str(cause), grouped(a), grouped(b), f"{b - a:+,}")
                name = ""
    return made


def _lines(found: RunDifference, width: int) -> Iterator[RenderableType]:
    yield Text(f"lines that differ: {len(found.lines)}{'' if found.by_text else ', by the instructions in them'}")
    waits = [each for each in found.lines if _only_waits(each)]
    rows = [each for each in by_effect(found.lines) if not _only_waits(each)]
    for each in rows[:_ROWS]:
        yield Text(f"  {_place(each):<14} {each.change:<8} {_cost(each)}".rstrip(), no_wrap=True, overflow="ellipsis")
        yield from _texts(each, width)
    if waits:
        yield Text(f"  flags, barriers and waits: {len(waits)} lines")
    if len(rows) > _ROWS:
        yield Text(f"  and {len(rows) - _ROWS} more (--json has all)")


def _only_waits(each: LineDifference) -> bool:
    """Whether a line synchronises on each side where it stands and does nothing else, or waits longer on one alone."""
    if each.change is LineChange.CYCLES and not each.effect:
        return True
    texts = [statement.text for statement in (each.a, each.b) if statement is not None]
    return all(_SYNCHRONISING.search(text) for text in texts)


def _place(each: LineDifference) -> str:
    a, b = each.line_a, each.line_b
    return f"{'-' if a is None else a} -> {'-' if b is None else b}"


def _cost(each: LineDifference) -> str:
    a, b = each.spent
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


def _texts(each: LineDifference, width: int) -> Iterator[Text]:
    """Yield the text of a line, with a sign where the two differ; what both begin with is left out if it is long."""
    if each.a is not None and each.b is not None and each.change in (LineChange.CHANGED, LineChange.RENAMED):
        first, second = _excerpts(each.a.text, each.b.text, max(width - 8, 20))
        yield _quoted("-", first, "red")
        yield _quoted("+", second, "green")
        return
    statement = each.b or each.a
    sign, style = {LineChange.ADDED: ("+", "green"), LineChange.REMOVED: ("-", "red")}.get(each.change, (" ", "dim"))
    if statement is not None:
        yield _quoted(sign, _shortened(statement.text, max(width - 8, 20)), style)


def _quoted(sign: str, text: str, style: str) -> Text:
    return Text(f"      {sign} {text}", style=style, no_wrap=True, overflow="ignore")


def _excerpts(first: str, second: str, room: int) -> tuple[str, str]:
    """Return two texts, of as much room, from somewhat before the place where they differ first."""
    if max(len(first), len(second)) <= room:
        return first, second
    same = next((n for n, pair in enumerate(zip(first, second, strict=False)) if len(set(pair)) > 1), len(first))
    start = max(0, min(same - room // 3, max(len(first), len(second)) - room))
    if not start:
        return _shortened(first, room), _shortened(second, room)
    return _shortened(f"...{first[start + 3 :]}", room), _shortened(f"...{second[start + 3 :]}", room)


def _shortened(text: str, room: int) -> str:
    return text if len(text) <= room else f"{text[: room - 3]}..."


def _output_text(each: OutputDifference) -> Iterator[RenderableType]:
    a, b = each.a, each.b
    name = each.name if a is None or b is None or a.name == b.name else f"{a.name} (B: {b.name})"
    if a is None or b is None:
        only, whole = ("B", b) if a is None else ("A", a)
        yield Text(f"output {name}: only {only} has it, {_form(whole)}", style="bold")
        return
    form = _form(a) if _form(a) == _form(b) else f"{_form(a)} -> {_form(b)}"
    if each.differing is None:
        why = (
            "other numbers of elements"
            if prod(a.shape) != prod(b.shape)
            else "differs; only digests are known, no elements"
        )
        yield Text(f"output {name}: {form}, {why}", style="bold")
        return
    if each.equal:
        yield Text(f"output {name}: {form}, the same bits in another shape")
        return
    elements = prod(a.shape)
    yield Text(f"output {name}: {form}, {grouped(each.differing)} of {grouped(elements)} elements differ", style="bold")
    made = table("index", "bits A", "value A", "bits B", "value B", numbers=("bits A", "value A", "bits B", "value B"))
    for one in each.first:
        cells = (*_number(one.bits_a, a.format), *_number(one.bits_b, b.format))
        made.add_row(_index(one.index), *cells)
    if each.first:
        yield indented(made)


def _form(output: SideOutput | None) -> str:
    return "" if output is None else f"{output.format.name} [{' x '.join(map(str, output.shape))}]"


def _index(index: Sequence[int]) -> str:
    return f"[{', '.join(map(str, index))}]"


def _number(bits: int, fmt: Format) -> tuple[str, str]:
    return bits_text(bits, fmt), str(json_value(value_of(bits, fmt), fmt))
