"""Where a program is to stop: in front of lines, at a cycle, when a condition comes true."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from castsim.running.stepping.conditions import Condition


@dataclass(slots=True)
class Breakpoint:
    """One breakpoint. `line` and `step` are None for those that are not about a line or one step.

    A condition beside a line holds at that line; one alone stops where it comes true, having been false before the
    operation that came last.
    """

    number: int
    text: str
    line: int | None = None
    step: int | None = None
    condition: Condition | None = None
    hits: int = 0


@dataclass(slots=True)
class Breakpoints:
    """All breakpoints by number; a number is not used twice."""

    lines: Sequence[int]
    """The line of every step."""
    held: dict[int, Breakpoint] = field(default_factory=dict)
    _count: int = 0

    def add(
        self, text: str, *, line: int | None = None, step: int | None = None, condition: Condition | None = None
    ) -> Breakpoint:
        """Return a new breakpoint."""
        self._count += 1
        made = Breakpoint(self._count, text, line, step, condition)
        self.held[made.number] = made
        return made

    def __iter__(self) -> Iterator[Breakpoint]:
        return iter(self.held.values())

    @property
    def watches(self) -> bool:
        """Whether any must be looked at before every operation."""
        return any(each.line is None and each.condition is not None for each in self)
