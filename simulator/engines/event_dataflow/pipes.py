"""One machine: what its pipes share, and the state of each pipe, with its queue and the operations it has started."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from simpy import Environment, Event

from castsim.engines.event_dataflow.accounting import Account, Ledger
from castsim.engines.event_dataflow.flags import Flags
from castsim.engines.event_dataflow.ports import BufferPorts
from castsim.engines.event_dataflow.records import Entry, ExecutionRecord, Steps
from castsim.execution.dataflow.operations import WaitFlag
from castsim.execution.dataflow.transfer_plan import latency_ahead
from castsim.targets.dataflow import DataflowTarget
from castsim.timing import Cause, Observer


@dataclass(frozen=True, slots=True)
class Wait:
    """The reason for which a pipe stands still: `entry` is the operation at its head.

    `flag` is set if it awaits a flag, `needed` if it awaits the bytes of an earlier execution, neither at a barrier.
    """

    entry: Entry
    flag: WaitFlag | None = None
    needed: ExecutionRecord | None = None


@dataclass(frozen=True, slots=True)
class DrainMarker:
    """Stands in a queue without delaying it: `reached` is called with the cycle in which all before it has ended."""

    reached: Callable[[int], None]


class VectorUnit(Protocol):
    """The part that a mechanism adds: the vector pipe."""

    def check(self, operation: object) -> None:
        """Reject an operation of the vector pipe that the unit cannot execute.

        Raises:
            IllegalError: it is of another mechanism, or needs a timing row that the target does not have.
        """

    def run(self, pipe: PipeProcess, entry: Entry) -> Steps:
        """Execute the operation of `entry`; returns when the pipe can take the next one."""


@dataclass(slots=True, eq=False)
class DataflowRun:
    """One run: clock, target, vector unit, buffer ports, flags, and the records of what happened."""

    env: Environment
    target: DataflowTarget
    vector: VectorUnit
    ports: BufferPorts
    flags: Flags
    ledger: Ledger
    facts: set[str] = field(default_factory=set)


class PipeProcess:
    """One in-order pipe. `remaining` counts the operations that the scalar unit has yet to send.

    `drain_end` is the cycle from which on what it has started should keep it no longer. `answered` is when memory can
    answer the transfer at its head, asked while earlier ones stream; where nothing overlaps it stays 0.
    """

    def __init__(self, name: str, machine: DataflowRun, remaining: int, observer: Observer | None) -> None:
        self.name = name
        self.machine = machine
        self.account = Account(name, observer)
        self.queue: deque[Entry | DrainMarker] = deque()
        self.remaining = remaining
        self.current: Entry | None = None
        self.wait: Wait | None = None
        self.wakeup: Event | None = None
        self.waited = False
        """Whether it had nothing to do until the scalar unit sent its operation."""
        self.free = 0
        """When it was done with the operation before."""
        self.in_flight: list[Entry] = []
        self._draining: Entry | None = None
        self.drain_end = 0
        self._latest: Entry | None = None
        self.answered = 0
        self._reach = latency_ahead(machine.target, name)
        self._behind = Cause.MEMORY_LATENCY if name == machine.target.pipes.store else Cause.DRAIN

    def push(self, item: Entry | DrainMarker) -> None:
        """Append to the queue."""
        self.queue.append(item)
        if self.wakeup is not None:
            self.wakeup.succeed()
            self.wakeup = None

    def retire(self) -> list[Entry]:
        """Forget the operations that have ended by now; return those still at it."""
        now = int(self.machine.env.now)
        for entry in self.in_flight:
            if entry.over(now) and (self._latest is None or entry.end > self._latest.end):
                self._latest = entry
        self.in_flight = [entry for entry in self.in_flight if not entry.over(now)]
        return self.in_flight

    def ask_from(self, cycle: int) -> None:
        """Record that memory is asked by what stands at the head, and all behind it, in `cycle` at the earliest."""
        if self._reach:
            self.answered = max(self.answered, cycle + self._reach)

    @property
    def working(self) -> bool:
        """Whether it is about an operation that does not wait for another pipe: one that ends soon."""
        return self.current is not None and self.wait is None

    def pause(self, until: int) -> None:
        """Account for the cycles up to `until`, in which nothing more happens to a pipe that does not work; report."""
        if self.wait is None:
            self.rest(Cause.EMPTY, until, None)
        else:
            self.rest(Cause.OPERAND_WAIT if self.wait.flag is None else Cause.FLAG_WAIT, until, self.wait.entry)
        self.account.close()

    def note_drain(self, entry: Entry, end: int) -> None:
        """Record that the pipe should have no more to do for `entry` in cycle `end`."""
        if end >= self.drain_end:
            self._draining, self.drain_end = entry, end

    def rest(self, cause: Cause, until: int, entry: Entry | None) -> None:
        """Account for cycles without new work: first what is left of earlier work, then `cause`."""
        if self._draining is not None and cause in (Cause.EMPTY, Cause.FLAG_WAIT):
            self.account.spend(self._behind, min(until, self.drain_end), self._draining)
            self._spend_late_writes(until)
        self.account.spend(cause, until, entry)

    def _spend_late_writes(self, until: int) -> None:
        """Charge what the buffer kept back beyond the nominal drain."""
        if self.account.cursor >= until:
            return
        unknown = next((entry for entry in self.retire() if not entry.known), None)
        if unknown is not None:
            self.account.spend_excess(self.drain_end, until, unknown.held, unknown)
            return
        ended = [*self.in_flight, *([self._latest] if self._latest else [])]
        latest = max(ended, key=lambda entry: entry.end, default=None)
        if latest is not None:
            self.account.spend_excess(self.drain_end, min(until, latest.end), latest.held, latest)
