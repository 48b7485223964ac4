"""What the engine remembers of operations and instruction executions while they are in flight."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

from simpy import Environment, Event

from castsim.execution.tree import Operation
from castsim.timing import Cause

Steps = Generator[Event, Any, None]
"""A simpy process, or part of one."""


_BEFORE_ALL = (-1, -1)


@dataclass(slots=True, eq=False)
class Completion:
    """Something that ends in cycle `end`; `known` becomes True as soon as that cycle is certain."""

    end: int = 0
    known: bool = False
    signal: Event | None = None

    def settle(self) -> None:
        """Declare `end` final and tell who asked."""
        self.known = True
        if self.signal is not None:
            self.signal.succeed()

    def over(self, now: int) -> bool:
        """Return whether it has ended by `now`."""
        return self.known and self.end <= now


@dataclass(slots=True, eq=False)
class ExecutionRecord(Completion):
    """One executed instruction: `open` operations have not ended, `issued` says whether all were issued.

    `needs` are the earlier executions whose bytes it waits for. `start` is when the scalar unit began it, later moved
    by the time that its first pipe operation spent in the queue, `queued`; `begun` are cycle and index of that.
    """

    instruction: int = 0
    start: int = 0
    begun: tuple[int, int] | None = None
    open: int = 0
    issued: bool = False
    needs: tuple[ExecutionRecord, ...] = ()
    queued: int = 0

    def begin(self, cycle: int, entry: Entry) -> None:
        """Record that one of its pipe operations starts in `cycle`; the first one counts, of equals that issued first.

        What an instruction waits for is not its own time: a cast issued early and held by an operand lasts as long as
        one that finds its operand ready, from a control write issued just in time to the end.
        """
        if self.begun is None or (cycle, entry.index) < self.begun:
            self.start += cycle - entry.arrival - self.queued
            self.queued = cycle - entry.arrival
            self.begun = (cycle, entry.index)

    def start_at(self, cycle: int) -> None:
        """Record that it starts in `cycle`, whatever else begins in it."""
        self.start = cycle
        self.begun = _BEFORE_ALL

    def close_one(self, end: int) -> None:
        """Record that one operation ends in cycle `end`."""
        self.end = max(self.end, end)
        self.open -= 1
        if self.issued and self.open == 0:
            self.settle()

    def close_issue(self) -> None:
        """Record that all its operations were issued."""
        self.issued = True
        if self.open == 0:
            self.settle()


@dataclass(slots=True, eq=False)
class Entry(Completion):
    """One operation on its way: in a queue from `arrival`, at work from `start`.

    `pipe` is the one that executes it. `pending` counts its repeats whose results are not in the buffer, `held` is
    the longest that a held port kept one of its writes. `causes` is None if operations are not recorded.
    """

    operation: Operation = field(kw_only=True)
    pipe: str = field(kw_only=True)
    index: int = field(kw_only=True)
    execution: ExecutionRecord = field(kw_only=True)
    execution_index: int = field(kw_only=True)
    causes: dict[Cause, int] | None = field(kw_only=True)
    arrival: int = 0
    start: int = 0
    pending: int = 0
    held: int = 0

    def begin(self, cycle: int) -> None:
        """Record that its pipe starts to work for it in `cycle`."""
        self.start = cycle
        self.execution.begin(cycle, self)


def await_end(env: Environment, completion: Completion) -> Steps:
    """Wait until the cycle in which `completion` ends."""
    if not completion.known:
        if completion.signal is None:
            completion.signal = env.event()
        yield completion.signal
    if completion.end > env.now:
        yield env.timeout(completion.end - env.now)
