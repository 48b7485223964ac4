"""Two runs side by side: what differs in cycles, line by line, and in outputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from castsim.exploration.differences.matching import Pair, matched
from castsim.exploration.differences.outputs import OutputDifference, compared
from castsim.exploration.differences.sides import LineCost, Side
from castsim.exploration.differences.statements import Statement
from castsim.isa.errors import CastsimError
from castsim.timing import WAITING, Cause


class ComparisonError(CastsimError):
    """A side of a comparison cannot be compared: it is refused, fails, or lacks what the other one has."""

    kind = "cannot be compared"
    exit_code = 2


class Change(StrEnum):
    """What became of a line."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"
    RENAMED = "renamed"
    MOVED = "moved"
    CYCLES = "cycles"


@dataclass(frozen=True, slots=True)
class LineDifference:
    """A line that differs; `a` and `b` are its statements on the two sides, None where it does not stand.

    A line is `renamed` if it says the same with other names of values, one for one in the whole program; `cycles` are
    the only difference of a line with that change.
    """

    change: Change
    a: Statement | None
    b: Statement | None
    cost_a: LineCost | None
    cost_b: LineCost | None

    @property
    def line_a(self) -> int | None:
        """Its number on the first side, from 1."""
        return None if self.a is None else self.a.line

    @property
    def line_b(self) -> int | None:
        """Its number on the second side, from 1."""
        return None if self.b is None else self.b.line

    @property
    def cycles_a(self) -> int | None:
        """Cycles from start to end of its executions, added up; None where nothing of it takes any."""
        return None if self.cost_a is None else self.cost_a.cycles

    @property
    def cycles_b(self) -> int | None:
        """The same on the second side."""
        return None if self.cost_b is None else self.cost_b.cycles

    @property
    def spent(self) -> tuple[int | None, int | None]:
        """Pipe cycles of both sides, waits for other pipes left out: no line spends more than the run has.

        Where a side comes from JSON, which does not tell them, `cycles_a` and `cycles_b`.
        """
        costs = self.cost_a, self.cost_b
        if any(cost is not None and cost.causes is None for cost in costs):
            return self.cycles_a, self.cycles_b
        a, b = (None if cost is None or cost.causes is None else _occupied(cost.causes) for cost in costs)
        return a, b

    @property
    def effect(self) -> int:
        """By how many of them the second side has more."""
        a, b = self.spent
        return (b or 0) - (a or 0)


@dataclass(frozen=True, slots=True)
class PipeDifference:
    """A pipe whose cycles differ, by cause; empty on a side that has no such pipe."""

    pipe: str
    causes_a: Mapping[Cause, int]
    causes_b: Mapping[Cause, int]


@dataclass(frozen=True, slots=True, repr=False)
class Difference:
    """The outcome of `castsim.diff`: the two sides, and what differs between them.

    `lines` holds the lines that differ in text or cycles, in the order of the programs, `pipes` the pipes that differ,
    `outputs` every output. `by_text` tells that lines were matched by the text of both programs, not by the
    instructions that a JSON result names.
    """

    a: Side
    b: Side
    pipes: tuple[PipeDifference, ...]
    lines: tuple[LineDifference, ...]
    outputs: tuple[OutputDifference, ...]
    by_text: bool

    def __repr__(self) -> str:
        cycles = f"{self.cycles_a} -> {self.cycles_b} cycles"
        unequal = sum(not each.equal for each in self.outputs)
        return f"<Difference {cycles}, {len(self.lines)} lines, {unequal} of {len(self.outputs)} outputs differ>"

    @property
    def cycles_a(self) -> int | None:
        """Cycles of the first side; None where none are modelled."""
        return self.a.cycles

    @property
    def cycles_b(self) -> int | None:
        """Cycles of the second side; None where none are modelled."""
        return self.b.cycles

    @property
    def outputs_equal(self) -> bool:
        """Whether all outputs are the same to the bit; also where none were computed."""
        return all(each.equal for each in self.outputs)

    @property
    def equal(self) -> bool:
        """Whether cycles and outputs are the same; the text does not count."""
        return self.cycles_a == self.cycles_b and self.outputs_equal

    @property
    def slowdown(self) -> Fraction | None:
        """Percent by which the second side takes more cycles, exactly; negative if it takes fewer.

        None if it has no cycles, or the first takes 0 and the second does not.
        """
        a, b = self.cycles_a, self.cycles_b
        if a is None or b is None or (a == 0 and b):
            return None
        return Fraction(100 * (b - a), a) if a else Fraction(0)

    @property
    def slowdown_percent(self) -> float | None:
        """The same as a float."""
        return None if self.slowdown is None else float(self.slowdown)

    def within(self, percent: float | Fraction) -> bool:
        """Return whether the outputs are equal and the second side is at most so many percent slower."""
        a, b = self.cycles_a, self.cycles_b
        if a is None or b is None:
            return False
        return self.outputs_equal and 100 * (b - a) <= Fraction(percent) * a


def by_effect(lines: Sequence[LineDifference]) -> list[LineDifference]:
    """Return lines by how much their pipe cycles differ, those of equal effect as they stand."""
    return sorted(lines, key=lambda line: -abs(line.effect))


def _occupied(causes: Mapping[Cause, int]) -> int:
    return sum(cycles for cause, cycles in causes.items() if cause not in WAITING)


def difference(a: Side, b: Side) -> Difference:
    """Compare two runs.

    Raises:
        ComparisonError: cycles or outputs of one of them are not known, and those of the other one are; or neither
            has any, and their texts differ.
    """
    _check(a, b)
    by_text = a.source is not None and b.source is not None
    first, second = (a.source or (), b.source or ()) if by_text else (a.executed, b.executed)
    lines = tuple(_lines(matched(first, second), a.lines, b.lines))
    found = Difference(a, b, tuple(_pipes(a, b)), lines, compared(a.outputs, b.outputs), by_text)
    if a.cycles is None and not a.values and (lines or a.target != b.target):
        raise ComparisonError(
            f"no cycles of {_both(a, b)} are modelled, and without values nothing is left to compare",
            legal=("--in NAME=random:1",),
        )
    return found


def _check(a: Side, b: Side) -> None:
    for has, lacks in ((a, b), (b, a)):
        if has.cycles is not None and lacks.cycles is None:
            why = f": {lacks.result.untimed}" if lacks.result is not None else ""
            raise ComparisonError(f"{lacks.file} on {lacks.target} has no cycles{why}")
        if has.values and not lacks.values:
            raise ComparisonError(
                f"{lacks.file} has no outputs, and {has.file} has some", legal=("--timing-only",)
            )  # fmt: skip


def _both(a: Side, b: Side) -> str:
    return a.file if a.file == b.file else f"{a.file} and {b.file}"


def _pipes(a: Side, b: Side) -> Iterator[PipeDifference]:
    for pipe in dict.fromkeys((*a.pipes, *b.pipes)):
        first, second = (
            {cause: side.pipes[pipe][cause] for cause in Cause if side.pipes.get(pipe, {}).get(cause)}
            for side in (a, b)
        )
        if first != second:
            yield PipeDifference(pipe, first, second)


def _lines(
    pairs: Sequence[Pair], first: Mapping[int, LineCost], second: Mapping[int, LineCost]
) -> Iterator[LineDifference]:
    renamed = _renamings(pairs)
    for pair in pairs:
        a, b = pair.first, pair.second
        cost_a, cost_b = (None if a is None else first.get(a.line)), (None if b is None else second.get(b.line))
        change = _text_change(pair, renamed)
        if change is None and _cycles_differ(cost_a, cost_b):
            change = Change.CYCLES
        if change is not None:
            yield LineDifference(change, a, b, cost_a, cost_b)


def _text_change(pair: Pair, renamed: set[tuple[str, str]]) -> Change | None:
    a, b = pair.first, pair.second
    if a is None:
        return Change.ADDED
    if b is None:
        return Change.REMOVED
    if pair.moved:
        return Change.MOVED
    if a.tokens == b.tokens:
        return None
    if a.without_names() == b.without_names() and renamed.issuperset(zip(a.values, b.values, strict=True)):
        return Change.RENAMED
    return Change.CHANGED


def _renamings(pairs: Iterable[Pair]) -> set[tuple[str, str]]:
    """Return the names of values with their names on the other side, where each has one and no other."""
    met: set[tuple[str, str]] = set()
    for a, b, _ in pairs:
        if a is not None and b is not None and a.without_names() == b.without_names():
            met.update(zip(a.values, b.values, strict=True))
    first, second = (Counter(names[side] for names in met) for side in (0, 1))
    return {names for names in met if first[names[0]] == 1 == second[names[1]]}


def _cycles_differ(a: LineCost | None, b: LineCost | None) -> bool:
    """Whether the cycles of a line differ; those that are not known do not."""
    first, second = (0 if cost is None else cost.cycles for cost in (a, b))
    return None not in (first, second) and first != second
