"""The points of a space of choices: the kernel with these choices, loaded, bounded, simulated."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from itertools import product
from math import prod
from pathlib import Path

from castsim.engines import simulate
from castsim.execution.input_data import digest
from castsim.execution.pipe_operations import FlagSignal, FlagWait, PipeBarrier
from castsim.execution.run_limits import DEFAULT_LIMITS, MAX_CYCLES, Limits
from castsim.execution.timing import Cause, Timing, occupied
from castsim.execution.tree import Block, Lowered, Node, Tree, buffer_use, issued
from castsim.isa.dataclass import dataclass, field, replace
from castsim.isa.errors import CastsimError, EngineError, ReadError, SourceText, Span
from castsim.isa.formats import Codes
from castsim.isa.pto.lexer import with_values
from castsim.isa.reading import Language, Source
from castsim.isa.value_expressions import LEGAL, Expression, Value, read_values
from castsim.reports.documents import Keys, TextOrNull, apart, derived, record, says
from castsim.reports.schemas.keys import Bytes, Cycles, Name, Sha256
from castsim.running.loaded import Loaded, LoadedProgram
from castsim.running.program_loading import load
from castsim.running.program_runs import run_loaded
from castsim.targets.description import with_options
from castsim.targets.loader import Target

__all__ = ["Points", "Study", "TuningRow", "refused"]


# The points to try: choices by name, the values of each, and conditions between them.

MOST_POINTS = 1_000_000
"""Maximum number of combinations of all values, before conditions."""

Choices = Mapping[str, Value | float]
"""A point: the value of each choice."""

_NAMED = re.compile(r"\s*%?([A-Za-z_][\w.-]*)\s+in\b\s*", re.ASCII)
_NEXT = re.compile(r",(?=\s*%?[A-Za-z_][\w.-]*\s+in\b)", re.ASCII)


class ChoiceKind(Enum):
    """The subject of a choice."""

    TILE = "tile"
    ARGUMENT = "arg"
    OPTION = "option"
    TARGET = "target"


@dataclass(frozen=True, slots=True)
class ChoiceAxis:
    """A choice with its values; `span` is its position in an option, None if the program or Python defines it."""

    kind: ChoiceKind
    name: str
    values: tuple[Value | float, ...]
    span: Span | None = None


def read_axes(kind: ChoiceKind, text: str) -> tuple[ChoiceAxis, ...]:
    """Return the choices of `NAME in VALUES, NAME in VALUES`.

    Raises:
        ReadError: the text is malformed; the error has the position within the option.
    """
    option = f"--{kind.value}"
    source = SourceText(option, text)
    legal = tuple(f"{option} 'R in {form}'" for form in ("8..64", "8..64:8", "8..64*2", "128,256"))
    axes: list[ChoiceAxis] = []
    begin = 0
    for end in (*(match.start() for match in _NEXT.finditer(text)), len(text)):
        head = _NAMED.match(text, begin, end)
        if head is None:
            span = Span.within(source, min(begin, max(0, len(text) - 1)), max(1, end - begin))
            raise ReadError(f"{option} {text[:60]}: expected NAME in VALUES", span=span, legal=legal)
        values = read_values(source, head.end(), end)
        axes.append(ChoiceAxis(kind, head[1], values, Span.within(source, head.start(1), len(head[1]))))
        begin = end + 1
    return tuple(axes)


def read_condition(text: str) -> Expression:
    """Return a condition on the choices.

    Raises:
        ReadError: the text is not an expression, or has only numbers; the error has the position within the option.
    """
    condition = Expression(text, Span("--where", 1, 1, text, max(1, len(text))))
    if not condition.names:
        span = Span("--where", 1, 1, text, max(1, len(text)))
        raise ReadError(f"'{text}' does not use any of the choices", span=span, legal=("R*C*4 <= 65536",))
    return condition


@dataclass(frozen=True, slots=True)
class Space:
    """All points: every combination of values that meets every condition.

    `fixed` are names with a single value that conditions may also use.
    """

    axes: tuple[ChoiceAxis, ...]
    conditions: tuple[Expression, ...] = ()
    fixed: Choices = field(default_factory=dict)

    @classmethod
    def of(
        cls, axes: Sequence[ChoiceAxis], conditions: Sequence[Expression] = (), fixed: Choices | None = None
    ) -> Space:
        """Return a checked space.

        Raises:
            ReadError: no choice, a duplicate name, a condition on an unknown name, or too many combinations.
        """
        if not axes:
            raise ReadError(
                "nothing to tune: give a parameter several values, such as --tile 'R in 8,16,32'",
                legal=("// castsim: parameter R = 16 in 8..64", "--tile 'R in 8..64'", "--arg 'rows in 64,128'"),
            )
        names = [axis.name for axis in axes]
        for index, axis in enumerate(axes):
            if axis.name in names[:index]:
                raise ReadError(f"--{axis.kind.value}: '{axis.name}' is given twice", span=axis.span)
            if not axis.values:
                raise ReadError(f"--{axis.kind.value}: '{axis.name}' has no values", span=axis.span, legal=LEGAL)
        given = dict(fixed or {})
        for condition in conditions:
            for name in condition.names:
                if name not in (*names, *given):
                    span = Span("--where", 1, condition.text.find(name) + 1, condition.text, len(name))
                    raise ReadError(f"'{name}' is not one of the choices", span=span, legal=(*names, *given))
        size = prod(len(axis.values) for axis in axes)
        if size > MOST_POINTS:
            raise ReadError(
                f"{size} combinations are more than {MOST_POINTS}", legal=("fewer values, such as 8..64*2",)
            )
        return cls(tuple(axes), tuple(conditions), given)

    @property
    def combinations(self) -> int:
        """Number of combinations of values, ignoring conditions."""
        return prod(len(axis.values) for axis in self.axes)

    def points(self) -> Iterator[Choices]:
        """Yield the points, the last choice varying fastest.

        Raises:
            ReadError: a condition has no value, for example after a division by zero.
        """
        names = [axis.name for axis in self.axes]
        for values in product(*(axis.values for axis in self.axes)):
            choices = dict(zip(names, values, strict=True))
            if all(self._holds(condition, choices) for condition in self.conditions):
                yield choices

    def _holds(self, condition: Expression, choices: Choices) -> bool:
        values = {**self.fixed, **choices}
        return bool(condition.value({name: value for name, value in values.items() if not isinstance(value, float)}))


# A lower bound of a kernel's cycles, from what each of its instructions keeps its pipes occupied.
#
# A pipe does one thing at a time. What an instruction alone keeps it busy, and what a transfer waits for memory, it
# takes wherever else it stands: other instructions add waiting, nothing takes these cycles away. The sum over all
# executions is therefore spent on every pipe, and the kernel takes at least as long as the largest sum. Fill and drain
# are left out: instructions that follow each other share them.

_OCCUPIED = (Cause.BUSY, Cause.MEMORY_LATENCY)
"""Causes whose cycles for an instruction are the same alone and among others."""
_REMEMBERED = 1 << 14
"""Maximum number of instructions in the cache."""


class Bounds:
    """Lower bounds of kernels on one target; repeated instructions are not timed again."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._known: dict[Block, Counter[str]] = {}

    def of(self, tree: Tree) -> int:
        """Return a lower bound of a program's cycles.

        Raises:
            IllegalError, EngineError: an instruction cannot be timed.
        """
        work: Counter[str] = Counter()
        for lowered, times in _grouped(tree.root):
            for pipe, cycles in self._alone(tree, lowered).items():
                work[pipe] += times * cycles
        return max(work.values(), default=0)

    def _alone(self, tree: Tree, lowered: Lowered) -> Counter[str]:
        """Return how long one instruction alone occupies each pipe."""
        try:
            timed = self._known.get(lowered.body)
        except TypeError:  # some machines keep tables in their operations, which have no hash
            return self._timed(tree, lowered)
        if timed is None:
            timed = self._timed(tree, lowered)
            if len(self._known) < _REMEMBERED:
                self._known[lowered.body] = timed
        return timed

    def _timed(self, tree: Tree, lowered: Lowered) -> Counter[str]:
        alone = Lowered(0, lowered.body, lowered.accesses)
        only = Tree(Block((alone,)), (tree.instructions[lowered.instruction],), interlocked=False)
        timing = simulate(only, self._target, record_operations=False)
        return Counter(
            {
                pipe: sum(pipe_timing.causes.get(cause, 0) for cause in _OCCUPIED)
                for pipe, pipe_timing in timing.pipes.items()
            }
        )


def _grouped(root: Block) -> Iterator[tuple[Lowered, int]]:
    """Yield the working instructions with their numbers of executions; one object counts once."""
    times: Counter[int] = Counter()
    first: dict[int, Lowered] = {}
    for count, lowered in issued(root):
        if not all(map(_orders, lowered.body.items)):
            times[id(lowered.body)] += count
            first.setdefault(id(lowered.body), lowered)
    for key, lowered in first.items():
        yield lowered, times[key]


def _orders(node: Node) -> bool:
    """Return whether an operation only orders others: alone it might wait forever."""
    return isinstance(node, FlagSignal | FlagWait | PipeBarrier)


def _cycles_per_element(row: TuningRow) -> float | None:
    return row.cycles / row.elements if row.cycles is not None and row.elements else None


@record
class TuningRow(Keys):
    """A point of the space."""

    number: int = apart()
    """Its place in the order of the space, from 1."""
    choices: Mapping[Name, int | float | str] = says("The value of each choice.")
    cycles: Cycles | None = says("Cycles; null if it was not simulated or fails.", default=None)
    at_least: Cycles = says("A lower bound of the cycles; 0 if none is known.", default=0)
    elements: int | None = apart(default=None)
    """Number of elements of the outputs."""
    cycles_per_element: float | None = derived(
        "Cycles per element of the outputs; null without cycles.", _cycles_per_element
    )
    buffer_bytes: Bytes | None = says(
        "Size of the range of the tile buffer that the program touches; null if it is unknown.", default=None
    )
    bound_by: str | None = says("The pipe with most cycles of work; null without cycles.", default=None)
    pareto: bool = says("Whether no simulated point has fewer cycles or bytes and no more of the other.", default=False)
    outputs: Mapping[Name, Sha256] = says(
        "Digest of the elements of each output; empty if no values were computed.", default_factory=dict
    )
    reason: TextOrNull = says("The reason why it fails; null if it does not, or was not tried.", default="")


@dataclass(frozen=True, slots=True)
class Study:
    """A kernel, its space, and everything common to all points."""

    source: Source
    space: Space
    target: str | Path | Target | None = None
    entry: str | None = None
    args: Mapping[str, int | float] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    inputs: Mapping[str, Codes | str] = field(default_factory=dict)
    sync: str = "insert"
    engine: str | None = None
    max_cycles: int = MAX_CYCLES
    limits: Limits = DEFAULT_LIMITS

    def chosen(self, choices: Choices, kind: ChoiceKind) -> dict[str, Value | float]:
        """Return the choices of one kind."""
        return {axis.name: choices[axis.name] for axis in self.space.axes if axis.kind is kind}

    def load(self, choices: Choices) -> LoadedProgram:
        """Return the kernel with these choices.

        Raises:
            CastsimError: see `castsim.running.program_loading.load`.
        """
        tiles = {
            name: value for name, value in self.chosen(choices, ChoiceKind.TILE).items() if not isinstance(value, float)
        }
        source = replace(self.source, text=with_values(self.source.text, self.source.file, tiles))
        given = {
            name: value
            for name, value in self.chosen(choices, ChoiceKind.ARGUMENT).items()
            if not isinstance(value, str)
        }
        options = {name: str(value) for name, value in self.chosen(choices, ChoiceKind.OPTION).items()}
        target = next((str(value) for value in self.chosen(choices, ChoiceKind.TARGET).values()), self.target)
        changes = {**self.options, **options}
        return load(
            source, target, self.entry, {**self.args, **given},
            lambda plain: with_options(plain, changes), sync=self.sync, limits=self.limits,
        )  # fmt: skip


class Points:
    """Evaluator that loads, bounds and simulates the points of a study."""

    def __init__(self, study: Study) -> None:
        self._study = study
        self._bounds: dict[str, Bounds] = {}

    def bounded(self, row: TuningRow) -> TuningRow:
        """Return a row with the results that need no simulation of the kernel.

        Raises:
            CastsimError: the kernel does not accept these choices.
        """
        loaded = self._study.load(row.choices)
        tree = loaded.tree
        if tree is None or loaded.untimed or loaded.language != Language.TILES.value:
            return row
        key = repr([value for kind in (ChoiceKind.TARGET, ChoiceKind.OPTION)
                    for value in self._study.chosen(row.choices, kind).items()])  # fmt: skip
        bounds = self._bounds.setdefault(key, Bounds(loaded.target))
        return replace(_sized(row, loaded), at_least=bounds.of(tree))

    def simulated(self, row: TuningRow) -> TuningRow:
        """Return a row with its simulated cycles.

        Raises:
            CastsimError, EngineError: see `castsim.run`.
        """
        study = self._study
        result = run_loaded(
            study.load(row.choices), study.inputs, engine=study.engine, timing_only=not study.inputs,
            max_cycles=study.max_cycles, limits=study.limits,
        )  # fmt: skip
        outputs = {name: digest(output) for name, output in result.outputs.items()}
        return replace(
            _sized(row, result.loaded), cycles=result.cycles, bound_by=_bound_by(result.timing), outputs=outputs
        )


def refused(row: TuningRow, error: CastsimError | EngineError) -> TuningRow:
    """Return the row of a point that does not run."""
    origin = f"{error.span}: " if error.span else ""
    return replace(row, reason=f"{origin}{error.message}", cycles=None)


def _sized(row: TuningRow, loaded: LoadedProgram | Loaded) -> TuningRow:
    tree = loaded.tree
    if tree is None:
        return row
    used = [buffer.touched for buffer in buffer_use(tree, loaded.target)]
    elements = sum(prod(use.shape) for use in loaded.arguments.values() if use.stored)
    return replace(row, buffer_bytes=sum(used), elements=elements)


def _bound_by(timing: Timing) -> str | None:
    """Return the pipe that spends most cycles on its own work, the first if equal."""
    return max(timing.pipes, key=lambda name: occupied(timing.pipes[name].causes), default=None)
