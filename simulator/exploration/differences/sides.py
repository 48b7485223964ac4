"""One side of a comparison: what is known of a program that ran, whether just now or as its JSON tells."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from castsim.execution.npy import digest
from castsim.isa.codes import Codes
from castsim.isa.formats import Format
from castsim.numerics import codes_from_array
from castsim.running import Result
from castsim.running.launches import written_launches
from castsim.running.source_lines import causes_by_line, listed, source_lines
from castsim.timing import Cause

# The lines of a program as a comparison sees them: what is written in each, without blanks and comments.

DIRECTIVE = "// castsim:"
"""How a comment begins that declares something, and is compared like a statement."""

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|//.*|->|[\w.$%@#!^]+|\S')
_VALUE = re.compile(r"%[\w.$]+")


@dataclass(frozen=True, slots=True)
class Statement:
    """A line of a program: its number from 1, what it says as tokens, and its text without blanks around it."""

    line: int
    tokens: tuple[str, ...]
    text: str

    @property
    def instruction(self) -> str:
        """Its mnemonic: the first word that is no result."""
        if "=" in self.tokens and self.tokens[0].startswith("%"):
            behind = self.tokens.index("=") + 1
            return self.tokens[behind] if behind < len(self.tokens) else ""
        return self.tokens[0]

    @property
    def values(self) -> tuple[str, ...]:
        """The names of the values in it, in their order."""
        return tuple(token for token in self.tokens if _VALUE.fullmatch(token))

    def without_names(self) -> tuple[str, ...]:
        """Return its tokens with all names of values alike."""
        return tuple("%" if _VALUE.fullmatch(token) else token for token in self.tokens)


def statements(source: str) -> tuple[Statement, ...]:
    """Return the lines of a program that say something, in their order; comments and blanks do not count."""
    return tuple(_statements(source))


def statement(line: int, text: str) -> Statement | None:
    """Return a line as a statement; None if it says nothing."""
    stripped = text.strip()
    tokens = _TOKEN.findall(stripped)
    if tokens and tokens[-1].startswith("//") and not stripped.startswith(DIRECTIVE):
        tokens.pop()
    if stripped.startswith(DIRECTIVE):
        tokens = [DIRECTIVE, *_TOKEN.findall(stripped.removeprefix(DIRECTIVE))]
    return Statement(line, tuple(tokens), stripped) if tokens else None


def _statements(source: str) -> Iterator[Statement]:
    for number, text in enumerate(source.split("\n"), 1):
        found = statement(number, text)
        if found is not None:
            yield found


@dataclass(frozen=True, slots=True)
class LineCost:
    """The cost of a line of the source; None where it is not known.

    `cycles` are those from start to end of the executions of its instructions, added up; inside of a launch of vector
    instructions those of the launch that went to the line. `causes` are the cycles that pipes spent on it.
    """

    cycles: int | None
    causes: Mapping[Cause, int] | None


@dataclass(frozen=True, slots=True)
class LineSpan:
    """Cycles [start, end) of one execution of an instruction; of very many, `executions` may stand together."""

    line: int
    text: str
    pipe: str
    start: int
    end: int
    executions: int = 1


@dataclass(frozen=True, slots=True)
class SideOutput:
    """An output array: `codes` of its format in its shape, None where only the digest is known."""

    name: str
    format: Format
    shape: tuple[int, ...]
    sha256: str
    codes: Codes | None


@dataclass(frozen=True, slots=True, repr=False)
class Side:
    """A program that ran: its cycles, its lines, its outputs.

    `cycles` is None where no cycles are modelled; `megahertz` is the frequency of the target. `source` are the lines of
    the text, None where it is not known, `executed` those of the instructions that were executed. `result` is the run
    itself, None if it comes from a document, which has `recorded` spans then.
    """

    file: str
    entry: str | None
    target: str
    cycles: int | None
    seconds: float | None
    pipes: Mapping[str, Mapping[Cause, int]]
    lines: Mapping[int, LineCost]
    source: tuple[Statement, ...] | None
    executed: tuple[Statement, ...]
    outputs: tuple[SideOutput, ...]
    result: Result | None = None
    recorded: Sequence[LineSpan] = field(default_factory=tuple)

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


def side_of(result: Result, source: str, *, values: bool) -> Side:
    """Return a run as a side, with its outputs if `values`; `source` is the text of the program, empty of a binary."""
    loaded, timed = result.loaded, not result.untimed
    cycles = result.timing.total if timed else None
    shown = result.outputs if values else {}
    return Side(
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


def by_line(found: Iterator[tuple[int, str]]) -> tuple[Statement, ...]:
    """Return the instructions of each line as one statement, each named once, in the order of the lines."""
    names: dict[int, list[str]] = {}
    for line, name in found:
        held = names.setdefault(line, [])
        if name not in held:
            held.append(name)
    made = (statement(line, "; ".join(held)) for line, held in sorted(names.items()))
    return tuple(each for each in made if each is not None)


def _executed(result: Result) -> tuple[Statement, ...]:
    """Return what the document of the run tells of its instructions."""
    tree = result.loaded.tree
    numbers = dict.fromkeys(execution.instruction for execution in result.timing.executions)
    ours = (tree.instructions[number] for number in numbers if listed(tree.instructions[number]))
    return by_line((each.span.line, each.name) for each in ours)


def _costs(result: Result) -> dict[int, LineCost]:
    tree, timing = result.loaded.tree, result.timing
    causes = causes_by_line(tree, timing)
    cycles: dict[int, int] = {}
    for line in source_lines(tree, timing):
        cycles[line.span.line] = cycles.get(line.span.line, 0) + line.cycles
    found = {line: LineCost(spent, causes.get(line, {})) for line, spent in cycles.items()}
    for launches in written_launches(tree, result.loaded.target):
        for inside in launches.lines:
            if inside.number is not None and inside.number not in found:
                found[inside.number] = LineCost(inside.cycles, dict(inside.causes))
    return found


def _output(name: str, array: Codes, fmt: Format) -> SideOutput:
    return SideOutput(name, fmt, array.shape, digest(array), codes_from_array(array, fmt))
