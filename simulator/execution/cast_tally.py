"""Where a program casts, and what casts that come register by register did to their numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from castsim.execution.outcomes import Judge, Outcomes
from castsim.isa.codes import Codes

_BATCH = 1 << 14
"""Elements that are judged at a time: judging those of one register costs more than converting them."""


@dataclass(frozen=True, slots=True)
class CastPlace:
    """A cast of the source: its line, the instruction as reports print it, and the formats that it casts between.

    `number` keeps apart casts of one line that are reported on their own, None where a line has one row.
    """

    line: int
    op: str
    src: str
    dst: str
    number: int | None = None


@dataclass(slots=True)
class CastBatch:
    """Executions of one cast whose outcomes are told by one judge; some wait for others before they are judged."""

    judge: Judge
    found: Outcomes
    _before: list[Codes] = field(default_factory=list)
    _after: list[Codes] = field(default_factory=list)
    _waiting: int = 0

    def add(self, before: Codes, after: Codes) -> None:
        """Take in the codes of one execution, arrays of one size that nothing writes to later."""
        self._before.append(before)
        self._after.append(after)
        self._waiting += before.size
        if self._waiting >= _BATCH:
            self.finish()

    def finish(self) -> None:
        """Judge what waits."""
        if self._waiting:
            self.found.add(self.judge.count(np.concatenate(self._before), np.concatenate(self._after)))
        self._before.clear()
        self._after.clear()
        self._waiting = 0


@dataclass(slots=True)
class CastTally:
    """The outcomes of casts by their places, in the order in which each was first executed."""

    _found: dict[CastPlace, Outcomes] = field(default_factory=dict)
    _batches: list[CastBatch] = field(default_factory=list)

    def batch(self, place: CastPlace, judge: Judge) -> CastBatch:
        """Return what takes in further executions of a cast; those of one place are counted together."""
        made = CastBatch(judge, self._found.setdefault(place, Outcomes()))
        self._batches.append(made)
        return made

    def finish(self) -> Mapping[CastPlace, Outcomes]:
        """Return the outcomes of all executions, in the order of lines."""
        for each in self._batches:
            each.finish()
        return dict(sorted(self._found.items(), key=lambda entry: entry[0].line))
