"""Differences between two runs: cycles, causes, lines matched by their text, outputs to the bit."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from enum import StrEnum
from fractions import Fraction
from math import prod
from typing import Annotated, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from castsim.execution.input_data import digest
from castsim.execution.timing import Cause, occupied
from castsim.isa.dataclass import dataclass
from castsim.isa.errors import CastsimError
from castsim.isa.formats import Codes, Format
from castsim.numerics.codec import codes_from_array, value_of
from castsim.reports.documents import CommandDocument, Keys, apart, derived, record, says
from castsim.reports.launches import written_launches
from castsim.reports.numbers import bits_text, json_value
from castsim.reports.schemas.keys import Bits, CauseName, Cycles, Elements, Line, Name, Percent, Seconds, Value
from castsim.running.program_runs import Result, causes_by_line, listed, source_lines

# The lines of a program as a comparison sees them: what is written in each, without blanks and comments.

DIRECTIVE = "// castsim:"
"""Beginning of a comment that is a declaration, and is compared like a statement."""

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|//.*|->|[\w.$%@#!^]+|\S')
_VALUE = re.compile(r"%[\w.$]+")


@dataclass(frozen=True, slots=True)
class LineStatement:
    """A line of a program: its number from 1, its tokens, and its text without surrounding blanks."""

    line: int
    tokens: tuple[str, ...]
    text: str

    @property
    def instruction(self) -> str:
        """Its mnemonic: the first word that is not a result."""
        if "=" in self.tokens and self.tokens[0].startswith("%"):
            behind = self.tokens.index("=") + 1
            return self.tokens[behind] if behind < len(self.tokens) else ""
        return self.tokens[0]

    @property
    def values(self) -> tuple[str, ...]:
        """The names of its values, in order."""
        return tuple(token for token in self.tokens if _VALUE.fullmatch(token))

    def without_names(self) -> tuple[str, ...]:
        """Return its tokens with all names of values replaced by one."""
        return tuple("%" if _VALUE.fullmatch(token) else token for token in self.tokens)


def statements(source: str) -> tuple[LineStatement, ...]:
    """Return the statements of a program in order, without comments and blank lines."""
    parsed = (statement(number, text) for number, text in enumerate(source.split("\n"), 1))
    return tuple(statement_read for statement_read in parsed if statement_read is not None)


def statement(line: int, text: str) -> LineStatement | None:
    """Return a line as a statement; None for a comment or a blank line."""
    stripped = text.strip()
    tokens = _TOKEN.findall(stripped)
    if tokens and tokens[-1].startswith("//") and not stripped.startswith(DIRECTIVE):
        tokens.pop()
    if stripped.startswith(DIRECTIVE):
        tokens = [DIRECTIVE, *_TOKEN.findall(stripped.removeprefix(DIRECTIVE))]
    return LineStatement(line, tuple(tokens), stripped) if tokens else None


@dataclass(frozen=True, slots=True)
class SourceLineCost:
    """The cost of a source line; None if it is unknown.

    `cycles` are those from start to end of the executions of its instructions, added up; inside a launch of vector
    instructions, the launch's cycles attributed to the line. `causes` are the cycles that pipes spent on it.
    """

    cycles: int | None
    causes: Mapping[Cause, int] | None


@dataclass(frozen=True, slots=True)
class LineSpan:
    """Cycles [start, end) of one execution of an instruction; in long runs, `executions` may be combined."""

    line: int
    text: str
    pipe: str
    start: int
    end: int
    executions: int = 1


@dataclass(frozen=True, slots=True)
class SideOutput:
    """An output array: `codes` of its format in its shape, None if only the digest is available."""

    name: str
    format: Format
    shape: tuple[int, ...]
    sha256: str
    codes: Codes | None


@record
class ComparedSide(Keys):
    """A side of the comparison: a program that ran, its cycles, lines and outputs."""

    file: str = says("The program, or the JSON of its run.")
    entry: str | None = says("The function; null if there is none.")
    target: str = says("Name of the target.")
    cycles: int | None = apart()
    """None if no cycles are modelled."""
    seconds: Seconds | None = says("Its cycles at the target's frequency; null if no cycles are modelled.")
    pipes: Mapping[str, Mapping[Cause, int]] = apart()
    lines: Mapping[int, SourceLineCost] = apart()
    source: tuple[LineStatement, ...] | None = apart()
    """The lines of the text; None if it is unknown."""
    executed: tuple[LineStatement, ...] = apart()
    """Those of the executed instructions."""
    outputs: tuple[SideOutput, ...] = apart()
    result: Result | None = apart(default=None)
    """The run itself; None if it comes from a document, which then has `recorded` spans."""
    recorded: Sequence[LineSpan] = apart(default=())
    from_json: bool = derived("Whether it was read from a JSON result.", lambda side: side.result is None)

    def __repr__(self) -> str:
        cycles = "no cycles" if self.cycles is None else f"{self.cycles} cycles"
        return f"<Side {self.file} on {self.target}: {cycles}>"

    @property
    def values(self) -> bool:
        """Whether outputs were computed."""
        return bool(self.outputs)

    def spans(self) -> Iterator[LineSpan]:
        """Yield every execution of every line, in program order: the bars of a timeline."""
        if self.result is None:
            yield from self.recorded
            return
        instructions = self.result.loaded.tree.instructions
        for execution in self.result.timing.executions:
            instruction = instructions[execution.instruction]
            if listed(instruction):
                start, end = execution.start, execution.end
                yield LineSpan(instruction.span.line, instruction.name, instruction.pipe, start, end)


def side_of(result: Result, source: str, *, values: bool) -> ComparedSide:
    """Return a run as a side, with its outputs if `values`; `source` is the text of the program, empty for a binary."""
    loaded, timed = result.loaded, not result.untimed
    cycles = result.timing.total if timed else None
    shown = result.outputs if values else {}
    return ComparedSide(
        file=loaded.file,
        entry=loaded.entry,
        target=loaded.target.name,
        cycles=cycles,
        seconds=None if cycles is None else cycles / (float(loaded.target.frequency.megahertz) * 1e6),
        pipes={name: dict(pipe.causes) for name, pipe in result.pipes.items()},
        lines=_costs(result) if timed else {},
        source=statements(source) if source else None,
        executed=_executed(result) if timed else (),
        outputs=tuple(_output(name, array, loaded.arguments[name].format) for name, array in shown.items()),
        result=result,
    )  # fmt: skip


def by_line(instructions: Iterator[tuple[int, str]]) -> tuple[LineStatement, ...]:
    """Return the instructions of each line as one statement, each named once, in line order."""
    names: dict[int, list[str]] = {}
    for line, name in instructions:
        line_names = names.setdefault(line, [])
        if name not in line_names:
            line_names.append(name)
    parsed = (statement(line, "; ".join(held)) for line, held in sorted(names.items()))
    return tuple(statement_read for statement_read in parsed if statement_read is not None)


def _executed(result: Result) -> tuple[LineStatement, ...]:
    """Return the instructions in the document of a run."""
    tree = result.loaded.tree
    numbers = dict.fromkeys(execution.instruction for execution in result.timing.executions)
    ours = (tree.instructions[number] for number in numbers if listed(tree.instructions[number]))
    return by_line((instruction.span.line, instruction.name) for instruction in ours)


def _costs(result: Result) -> dict[int, SourceLineCost]:
    tree, timing = result.loaded.tree, result.timing
    causes = causes_by_line(tree, timing)
    cycles: dict[int, int] = {}
    for line in source_lines(tree, timing):
        cycles[line.span.line] = cycles.get(line.span.line, 0) + line.cycles
    costs = {line: SourceLineCost(spent, causes.get(line, {})) for line, spent in cycles.items()}
    for launches in written_launches(tree, result.loaded.target):
        for inside in launches.lines:
            if inside.line is not None and inside.line not in costs:
                costs[inside.line] = SourceLineCost(inside.cycles, dict(inside.causes))
    return costs


def _output(name: str, array: Codes, fmt: Format) -> SideOutput:
    return SideOutput(name, fmt, array.shape, digest(array), codes_from_array(array, fmt))


# Outputs compared to the bit.

SHOWN = 10
"""Maximum number of differing elements whose bits a comparison shows."""


@dataclass(frozen=True, slots=True)
class ElementDifference:
    """A differing element: its index, and its code on each side."""

    index: tuple[int, ...]
    bits_a: int
    bits_b: int


def _elements_that_differ(output: ComparedOutput) -> Iterator[ElementThatDiffers]:
    a, b = output.a, output.b
    if a is None or b is None:
        return
    for element in output.first:
        yield ElementThatDiffers(
            element.index,
            bits_text(element.bits_a, a.format),
            bits_text(element.bits_b, b.format),
            json_value(value_of(element.bits_a, a.format), a.format),
            json_value(value_of(element.bits_b, b.format), b.format),
        )


@record
class ElementThatDiffers(Keys):
    """An element of an output that differs."""

    index: tuple[int, ...] = says("Index of the element.")
    bits_a: Bits = says("Its code in A.")
    bits_b: Bits = says("Its code in B.")
    value_a: Value = says("The number in A.")
    value_b: Value = says("The number in B.")


@record
class ComparedOutput(Keys):
    """An output of both sides, or of one.

    Shapes with the same number of elements are compared in C order; indices are those of side A.
    """

    name: str = says("Name in A, or in B if A has none.")
    a: SideOutput | None = apart()
    b: SideOutput | None = apart()
    equal: bool = says("Whether it has the same format and bits; shapes with equal numbers of elements may differ.")
    differing: Elements | None = says(
        "Number of elements whose bits differ; null if the sizes differ, one side lacks it, or only digests are "
        "available."
    )
    first: tuple[ElementDifference, ...] = apart(default=())
    elements: list[ElementThatDiffers] = derived("The first differing elements.", _elements_that_differ, key="first")
    name_a: str | None = derived("Its name in A; null if A lacks it.", lambda own: own.a and own.a.name)
    format_a: str | None = derived("Name of its format in A; null if A lacks it.", lambda own: own.a and own.a.format)
    shape_a: list[Elements] | None = derived(
        "Extent of each dimension in A; null as `name_a`.", lambda own: own.a and own.a.shape
    )
    name_b: str | None = derived("Its name in B; null if B lacks it.", lambda own: own.b and own.b.name)
    format_b: str | None = derived("Name of its format in B; null if B lacks it.", lambda own: own.b and own.b.format)
    shape_b: list[Elements] | None = derived(
        "Extent of each dimension in B; null as `name_b`.", lambda own: own.b and own.b.shape
    )


def compared(first: Sequence[SideOutput], second: Sequence[SideOutput]) -> tuple[ComparedOutput, ...]:
    """Return every output of both sides, compared.

    Outputs match by name; the remaining ones match in order, because names of arguments may change.
    """
    names = [output.name for output in first]
    of_second = {output.name: output for output in second}
    left = [output for output in second if output.name not in names]
    differences = []
    for output in first:
        other = of_second.get(output.name)
        if other is None and left:
            other = left.pop(0)
        differences.append(_compared(output, other))
    return (*differences, *(_compared(None, unmatched) for unmatched in left))


def _compared(a: SideOutput | None, b: SideOutput | None) -> ComparedOutput:
    name = a.name if a is not None else b.name if b is not None else ""
    if a is None or b is None or prod(a.shape) != prod(b.shape):
        return ComparedOutput(name, a, b, equal=False, differing=None)
    alike = a.format == b.format
    if a.codes is None or b.codes is None:
        equal = alike and a.sha256 == b.sha256
        return ComparedOutput(name, a, b, equal, 0 if equal else None)
    where = np.flatnonzero(_differs(a.codes.ravel(), b.codes.ravel()))
    first = tuple(_element(int(index), a.codes, b.codes.reshape(a.shape)) for index in where[:SHOWN])
    return ComparedOutput(name, a, b, alike and not where.size, int(where.size), first)


def _differs(a: Codes, b: Codes) -> NDArray[np.bool_]:
    """Return which elements differ; codes of different widths are compared as numbers, from the last bit on."""
    different: NDArray[np.bool_] = (a != b) if a.dtype == b.dtype else a.astype(np.uint64) != b.astype(np.uint64)
    return different


def _element(position: int, a: Codes, b: Codes) -> ElementDifference:
    index = tuple(int(index_part) for index_part in np.unravel_index(position, a.shape))
    return ElementDifference(index, int(a[index]), int(b[index]))


# Which lines of one program are which of another: by what they say, by their instruction, by their position.
#
# What both programs begin and end with is put aside; runs of equal lines are found in the rest (difflib), and the
# lines between them are paired so that those that have most in common meet, in their order (the alignment of Needleman
# and Wunsch). A line that is gone from one place and stands at another has moved.

Lines = Sequence[LineStatement]


class LinePair(NamedTuple):
    """A line of each program, None for a line without a match; a moved line is listed at its position in the second."""

    first: LineStatement | None
    second: LineStatement | None
    moved: bool = False


Key = tuple[str, ...]
Pairing = Callable[[Lines, Lines], Iterator[LinePair]]

_MOST_PAIRS = 20_000
"""Maximum number of line pairs between equal runs compared one by one; beyond it, names of values are ignored."""

_POPULAR = 2000
"""Number of lines above which difflib ignores frequent lines as anchors: it would take quadratic time."""

_LEAST_LIKENESS = 0.4
"""Minimum similarity, at most 1, of two lines that may be versions of one line."""

_OTHER_INSTRUCTION = 0.6
"""Factor on the similarity if the instructions differ."""

_SHORTEST_MOVED = 3
"""Minimum number of tokens of a line that may have moved: a brace matches too easily."""


def matched(first: Lines, second: Lines) -> tuple[LinePair, ...]:
    """Return every line of both programs once, with its match in the other, in program order."""
    return tuple(_with_moves(list(_aligned(first, second))))


def _aligned(first: Lines, second: Lines) -> Iterator[LinePair]:
    """Yield pairs, starting with those of equal lines."""
    start = _common(first, second)
    yield from map(LinePair, first[:start], second[:start])
    first, second = first[start:], second[start:]
    behind = _common(first[::-1], second[::-1])
    ends = first[len(first) - behind :], second[len(second) - behind :]
    first, second = first[: len(first) - behind], second[: len(second) - behind]
    keys = [[line.tokens for line in lines] for lines in (first, second)]
    yield from _between_runs(keys, first, second, _alike)
    yield from map(LinePair, *ends)


def _common(first: Lines, second: Lines) -> int:
    """Return the number of equal lines at both beginnings."""
    pairs = zip(first, second, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a.tokens != b.tokens), min(len(first), len(second)))


def _between_runs(keys: Sequence[Sequence[Key]], first: Lines, second: Lines, pairing: Pairing) -> Iterator[LinePair]:
    """Yield the pairs of runs with equal keys, and between them those of `pairing`."""
    matcher = SequenceMatcher(None, keys[0], keys[1], autojunk=max(map(len, keys)) > _POPULAR)
    for tag, a, a_end, b, b_end in matcher.get_opcodes():
        if tag == "equal":
            yield from map(LinePair, first[a:a_end], second[b:b_end])
        else:
            yield from pairing(first[a:a_end], second[b:b_end])


def _alike(first: Lines, second: Lines) -> Iterator[LinePair]:
    """Yield the pairs of two stretches without equal runs."""
    if len(first) * len(second) <= _MOST_PAIRS:
        yield from _most_alike(first, second)
        return
    yield from _between_runs(
        [[line.without_names() for line in lines] for lines in (first, second)], first, second, _by_position
    )


def _by_position(first: Lines, second: Lines) -> Iterator[LinePair]:
    """Yield pairs by position if both have the same sequence of instructions; otherwise no line matches."""
    if [line.instruction for line in first] == [line.instruction for line in second]:
        yield from map(LinePair, first, second)
    else:
        yield from (LinePair(line, None) for line in first)
        yield from (LinePair(None, line) for line in second)


def _most_alike(first: Lines, second: Lines) -> Iterator[LinePair]:
    """Yield the pairs, in order, with the largest total similarity."""
    bags = [[Counter(line.tokens) for line in lines] for lines in (first, second)]
    likeness = [
        [_likeness(a, b, bag, other) for b, other in zip(second, bags[1], strict=True)]
        for a, bag in zip(first, bags[0], strict=True)
    ]
    best = [[0.0] * (len(second) + 1) for _ in range(len(first) + 1)]  # of what is left from line a, line b
    for a in reversed(range(len(first))):
        for b in reversed(range(len(second))):
            best[a][b] = max(best[a + 1][b], best[a][b + 1], best[a + 1][b + 1] + likeness[a][b])
    a = b = 0
    while a < len(first) and b < len(second):
        if likeness[a][b] and best[a][b] == best[a + 1][b + 1] + likeness[a][b]:
            yield LinePair(first[a], second[b])
            a, b = a + 1, b + 1
        elif best[a][b] == best[a + 1][b]:
            yield LinePair(first[a], None)
            a += 1
        else:
            yield LinePair(None, second[b])
            b += 1
    yield from (LinePair(line, None) for line in first[a:])
    yield from (LinePair(None, line) for line in second[b:])


def _likeness(first: LineStatement, second: LineStatement, bag: Counter[str], other: Counter[str]) -> float:
    """Return the share of common tokens of two lines, cubed so that one good match outweighs two poor ones."""
    shared = 2 * (bag & other).total() / (bag.total() + other.total())
    if first.instruction != second.instruction:
        shared *= _OTHER_INSTRUCTION
    return shared**3 if shared >= _LEAST_LIKENESS else 0.0


def _with_moves(pairs: list[LinePair]) -> Iterator[LinePair]:
    """Yield the pairs; an equal removed and added line become one pair."""
    gone: dict[Key, list[LineStatement]] = {}
    for line, other, _ in pairs:
        if line is not None and other is None and len(line.tokens) >= _SHORTEST_MOVED:
            gone.setdefault(line.tokens, []).append(line)
    moved = {
        other.line: gone[other.tokens].pop(0)
        for line, other, _ in pairs
        if line is None and other is not None and gone.get(other.tokens)
    }
    taken = {line.line for line in moved.values()}
    for line, other, _ in pairs:
        if line is None and other is not None and other.line in moved:
            yield LinePair(moved[other.line], other, moved=True)
        elif other is not None or (line is not None and line.line not in taken):
            yield LinePair(line, other)


class ComparisonError(CastsimError):
    """A side of a comparison cannot be compared: it is refused, fails, or lacks data that the other has."""

    kind = "cannot be compared"
    exit_code = 2


class LineChange(StrEnum):
    """Kind of change of a line."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"
    RENAMED = "renamed"
    MOVED = "moved"
    CYCLES = "cycles"


ChangeName: TypeAlias = Annotated[LineChange, ("enum", tuple(LineChange)), ("type", "string")]


@record
class LineThatDiffers(Keys):
    """A line that differs in text or cycles."""

    a: LineStatement | None = apart()
    b: LineStatement | None = apart()
    cost_a: SourceLineCost | None = apart()
    cost_b: SourceLineCost | None = apart()
    line_a: Line | None = derived("Line of A; null if A lacks the line.", lambda own: own.a and own.a.line)
    line_b: Line | None = derived("Line of B; null if B lacks the line.", lambda own: own.b and own.b.line)
    change: ChangeName = says(
        "Kind of change: `renamed` means equal but for names of values, `cycles` means equal text with other cycles."
    )
    cycles_a: Cycles | None = derived(
        "Cycles of A from start to end of its executions, added up; null if it takes none, or they are unknown.",
        lambda own: own.cost_a and own.cost_a.cycles,
    )
    cycles_b: Cycles | None = derived("Cycles of B.", lambda own: own.cost_b and own.cost_b.cycles)
    causes_a: dict[CauseName, Cycles] | None = derived(
        "Cycles that pipes spent on it in A, by cause; null as `cycles_a`, and if a JSON result lacks them.",
        lambda own: own.cost_a and own.cost_a.causes,
    )
    causes_b: dict[CauseName, Cycles] | None = derived(
        "Cycles of B by cause.", lambda own: own.cost_b and own.cost_b.causes
    )
    text_a: str | None = derived(
        "The line of A without surrounding blanks, or its instructions if a side is a JSON result.",
        lambda own: own.a and own.a.text,
    )
    text_b: str | None = derived("Text of the line in B.", lambda own: own.b and own.b.text)

    @property
    def spent(self) -> tuple[int | None, int | None]:
        """Pipe cycles of both sides without waits for other pipes: no line spends more than the run has.

        If a side comes from JSON, which lacks them, these are `cycles_a` and `cycles_b`.
        """
        costs = self.cost_a, self.cost_b
        if any(cost is not None and cost.causes is None for cost in costs):
            return self.cycles_a, self.cycles_b
        a, b = (None if cost is None or cost.causes is None else occupied(cost.causes) for cost in costs)
        return a, b

    @property
    def effect(self) -> int:
        """Number of additional cycles on the second side."""
        a, b = self.spent
        return (b or 0) - (a or 0)


@record
class PipeThatDiffers(Keys):
    """A pipe whose cycles differ."""

    pipe: Name = says("The pipe.")
    causes_a: dict[CauseName, Cycles] = says("Its cycles in A by cause, without zeros; empty if A has no such pipe.")
    causes_b: dict[CauseName, Cycles] = says("Cycles of the pipe in B by cause.")


def _equal(comparison: Difference) -> bool:
    return comparison.cycles_a == comparison.cycles_b and comparison.outputs_equal


@record
class Difference(CommandDocument, name="diff", version=2):
    """Comparison of two runs. Nothing differs if `equal` is true and `lines` is empty."""

    equal: bool = derived("Whether cycles and outputs are the same; the text of the programs is ignored.", _equal)
    cycles_a: Cycles | None = derived("Cycles of A; null if none are modelled.", "a.cycles")
    cycles_b: Cycles | None = derived("Cycles of B; null if none are modelled.", "b.cycles")
    slowdown_percent: Percent | None = derived(
        "Percentage of additional cycles in B, negative for fewer; null without cycles, or if only A takes none.",
        lambda own: None if own.slowdown is None else float(own.slowdown),
    )
    lines: tuple[LineThatDiffers, ...] = says("The lines that differ in text or cycles, in the order of the programs.")
    outputs: tuple[ComparedOutput, ...] = says("All outputs; empty if no values were computed.")
    pipes: tuple[PipeThatDiffers, ...] = says("The pipes whose cycles differ.")
    a: ComparedSide = says("Side A.")
    b: ComparedSide = says("Side B.")
    by_text: bool = apart()
    """Whether lines were matched by the text of both programs, not by the instructions that a JSON result names."""

    def __repr__(self) -> str:
        cycles = f"{self.cycles_a} -> {self.cycles_b} cycles"
        unequal = sum(not output.equal for output in self.outputs)
        return f"<Difference {cycles}, {len(self.lines)} lines, {unequal} of {len(self.outputs)} outputs differ>"

    @property
    def outputs_equal(self) -> bool:
        """Whether all outputs are equal to the bit; also if none were computed."""
        return all(output.equal for output in self.outputs)

    @property
    def slowdown(self) -> Fraction | None:
        """Percentage of additional cycles on side B, exactly; None if one lacks cycles, or only A takes 0."""
        a, b = self.cycles_a, self.cycles_b
        if a is None or b is None or (a == 0 and b):
            return None
        return Fraction(100 * (b - a), a) if a else Fraction(0)

    def within(self, percent: float | Fraction) -> bool:
        """Return whether the outputs are equal and the second side is slower by at most a given percentage."""
        a, b = self.cycles_a, self.cycles_b
        if a is None or b is None:
            return False
        return self.outputs_equal and 100 * (b - a) <= Fraction(percent) * a


def by_effect(lines: Sequence[LineThatDiffers]) -> list[LineThatDiffers]:
    """Return lines by the difference of their pipe cycles; equal ones keep their order."""
    return sorted(lines, key=lambda line: -abs(line.effect))


def difference(a: ComparedSide, b: ComparedSide) -> Difference:
    """Compare two runs.

    Raises:
        ComparisonError: only one side has cycles or outputs; or neither
            has any, and their texts differ.
    """
    _check(a, b)
    by_text = a.source is not None and b.source is not None
    first, second = (a.source or (), b.source or ()) if by_text else (a.executed, b.executed)
    lines = tuple(_lines(matched(first, second), a.lines, b.lines))
    comparison = Difference(lines, compared(a.outputs, b.outputs), tuple(_pipes(a, b)), a, b, by_text)
    if a.cycles is None and not a.values and (lines or a.target != b.target):
        raise ComparisonError(
            f"the cycles of {_both(a, b)} are not modelled and no values were computed, so nothing can be compared",
            legal=("--in NAME=random:1",),
        )
    return comparison


def _check(a: ComparedSide, b: ComparedSide) -> None:
    for has, lacks in ((a, b), (b, a)):
        if has.cycles is not None and lacks.cycles is None:
            why = f": {lacks.result.untimed}" if lacks.result is not None else ""
            raise ComparisonError(f"{lacks.file} on {lacks.target} has no cycles{why}")
        if has.values and not lacks.values:
            raise ComparisonError(
                f"{lacks.file} has no outputs, unlike {has.file}", legal=("--timing-only",)
            )  # fmt: skip


def _both(a: ComparedSide, b: ComparedSide) -> str:
    return a.file if a.file == b.file else f"{a.file} and {b.file}"


def _pipes(a: ComparedSide, b: ComparedSide) -> Iterator[PipeThatDiffers]:
    for pipe in dict.fromkeys((*a.pipes, *b.pipes)):
        first, second = (
            {cause: side.pipes[pipe][cause] for cause in Cause if side.pipes.get(pipe, {}).get(cause)}
            for side in (a, b)
        )
        if first != second:
            yield PipeThatDiffers(pipe, first, second)


def _lines(
    pairs: Sequence[LinePair], first: Mapping[int, SourceLineCost], second: Mapping[int, SourceLineCost]
) -> Iterator[LineThatDiffers]:
    renamed = _renamings(pairs)
    for pair in pairs:
        a, b = pair.first, pair.second
        cost_a, cost_b = (None if a is None else first.get(a.line)), (None if b is None else second.get(b.line))
        change = _text_change(pair, renamed)
        if change is None and _cycles_differ(cost_a, cost_b):
            change = LineChange.CYCLES
        if change is not None:
            yield LineThatDiffers(a, b, cost_a, cost_b, change)


def _text_change(pair: LinePair, renamed: set[tuple[str, str]]) -> LineChange | None:
    a, b = pair.first, pair.second
    if a is None:
        return LineChange.ADDED
    if b is None:
        return LineChange.REMOVED
    if pair.moved:
        return LineChange.MOVED
    if a.tokens == b.tokens:
        return None
    if a.without_names() == b.without_names() and renamed.issuperset(zip(a.values, b.values, strict=True)):
        return LineChange.RENAMED
    return LineChange.CHANGED


def _renamings(pairs: Iterable[LinePair]) -> set[tuple[str, str]]:
    """Return the names of values with their names on the other side, if the mapping is one to one."""
    met: set[tuple[str, str]] = set()
    for a, b, _ in pairs:
        if a is not None and b is not None and a.without_names() == b.without_names():
            met.update(zip(a.values, b.values, strict=True))
    first, second = (Counter(names[side] for names in met) for side in (0, 1))
    return {names for names in met if first[names[0]] == 1 == second[names[1]]}


def _cycles_differ(a: SourceLineCost | None, b: SourceLineCost | None) -> bool:
    """Return whether the cycles of a line differ; unknown cycles do not."""
    first, second = (0 if cost is None else cost.cycles for cost in (a, b))
    return None not in (first, second) and first != second
