"""Where the time of a launch went: spans of one cause after the other, from its launch to its end."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from castsim.execution.dataflow.timing import TICKS
from castsim.timing import Cause


@dataclass(frozen=True, slots=True)
class Span:
    """The cycles up to `until`, counted from the launch, went to `cause`, on behalf of a line (0: of none)."""

    cause: Cause
    until: int
    line: int


@dataclass(slots=True)
class LineUse:
    """What a line of a launch did: how often it was executed, how long its executions waited from their dispatch on.

    `texts` are what reports call its instructions. `waits` are ticks by cause and by the line that was waited for (0:
    none); executions wait beside each other, so that these overlap.
    """

    executions: int = 0
    waits: dict[tuple[Cause, int], int] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)

    def execute(self, text: str) -> None:
        """Count an execution."""
        self.executions += 1
        if text not in self.texts:
            self.texts.append(text)

    def wait(self, cause: Cause, behind: int, ticks: int) -> None:
        """Add ticks of waiting."""
        if ticks > 0:
            key = cause, behind
            self.waits[key] = self.waits.get(key, 0) + ticks


@dataclass(frozen=True, slots=True)
class ScopeTiming:
    """A launch: its cycles, and its spans without a gap; `facts` are the paths of the facts that it rests on.

    `uses` are those of its lines that execute something.
    """

    cycles: int
    spans: tuple[Span, ...]
    facts: frozenset[str]
    uses: Mapping[int, LineUse] = field(default_factory=dict)

    @property
    def causes(self) -> Mapping[Cause, int]:
        """Cycles by cause; they add up to `cycles`."""
        found: defaultdict[Cause, int] = defaultdict(int)
        for (_, cause), cycles in self.by_line.items():
            found[cause] += cycles
        return found

    @property
    def by_line(self) -> Mapping[tuple[int, Cause], int]:
        """Cycles by line and cause."""
        found: defaultdict[tuple[int, Cause], int] = defaultdict(int)
        before = 0
        for span in self.spans:
            found[span.line, span.cause] += span.until - before
            before = span.until
        return found


@dataclass(slots=True)
class Account:
    """Spans so far, and the uses of lines; `now` is the tick up to which time is accounted for."""

    now: int = 0
    spans: list[Span] = field(default_factory=list)
    uses: defaultdict[int, LineUse] = field(default_factory=lambda: defaultdict(LineUse))

    def spend(self, cause: Cause, until: int, line: int = 0) -> None:
        """Account for the time up to tick `until`; a whole cycle counts once it has passed."""
        self.now = max(self.now, until)
        self.settle(cause, self.now // TICKS, line)

    def settle(self, cause: Cause, cycle: int, line: int = 0) -> None:
        """Account for the cycles before `cycle`."""
        before = self.spans[-1].until if self.spans else 0
        if cycle <= before:
            return
        if self.spans and (self.spans[-1].cause, self.spans[-1].line) == (cause, line):
            self.spans.pop()
        self.spans.append(Span(cause, cycle, line))
