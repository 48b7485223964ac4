"""The shared parts of one machine's pipes, and the state of each pipe, with its queue and its started operations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator
from typing import Any, Protocol

from simpy import Environment, Event
from simpy.events import EventPriority

from castsim.execution.pipe_operations import BLOCK, FlagWait, operation_name
from castsim.execution.timing import Cause, Execution, Listener, Observer, OperationTiming, PipeTiming
from castsim.execution.transfer_timing import SharedMemory, latency_ahead
from castsim.execution.tree import Operation
from castsim.isa.dataclass import dataclass, field
from castsim.targets.dataflow import DataflowTarget

# The order of events within a cycle.

_AFTER_CONTROL = 2
"""First event priority of buffer requests: simpy itself uses 0 and 1, which belong to control."""


class At(Event):
    """An event `delay` cycles from now, in which operation `index` requests blocks.

    Among the requests of one cycle the lowest operation index goes first.
    """

    def __init__(self, env: Environment, delay: int, index: int) -> None:
        # As simpy's own Timeout does it, but with a priority, which Timeout does not take.
        self.env = env
        self.callbacks = []
        self._ok = True
        self._value = None
        env.schedule(self, EventPriority(_AFTER_CONTROL + index), delay)


# The cycles of one pipe, spent in order on causes.


class PipeAccount:
    """The attribution of a pipe's cycles: `cursor` is the first open cycle; adjacent equal cycles form one segment."""

    def __init__(self, pipe: str, observer: Observer | None) -> None:
        self.cursor = 0
        self.causes: dict[Cause, int] = {}
        self.pipe = pipe
        self._observer = observer
        self._open: tuple[int, Cause, int | None] | None = None

    def charge(self, cause: Cause, until: int, operation: int | None = None) -> int:
        """Attribute the cycles up to `until` to `cause`, on behalf of an operation; return their number."""
        cycles = until - self.cursor
        if cycles <= 0:
            return 0
        self.causes[cause] = self.causes.get(cause, 0) + cycles
        if self._observer is not None and (self._open is None or self._open[1:] != (cause, operation)):
            self._report(self._observer)
            self._open = (self.cursor, cause, operation)
        self.cursor = until
        return cycles

    def close(self) -> PipeTiming:
        """Report the last segment and return the sums."""
        if self._observer is not None:
            self._report(self._observer)
        return PipeTiming(dict(self.causes))

    def _report(self, observer: Observer) -> None:
        if self._open is not None:
            start, cause, operation = self._open
            observer.segment(self.pipe, start, self.cursor, cause, operation)


# What the engine remembers of operations and instruction executions while they are in flight.

Steps = Generator[Event, Any, None]
"""A simpy process, or part of one."""


_BEFORE_ALL = (-1, -1)


@dataclass(slots=True, eq=False)
class CompletionCycle:
    """An event that ends in cycle `end`; `known` becomes True as soon as that cycle is certain."""

    end: int = 0
    known: bool = False
    signal: Event | None = None

    def settle(self) -> None:
        """Mark `end` as final and notify the waiting callers."""
        self.known = True
        if self.signal is not None:
            self.signal.succeed()

    def over(self, now: int) -> bool:
        """Return whether it has ended by `now`."""
        return self.known and self.end <= now


@dataclass(slots=True, eq=False)
class ExecutionRecord(CompletionCycle):
    """One executed instruction: `open` operations have not ended, `issued` tells whether all were issued.

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

    def begin(self, cycle: int, entry: QueueEntry) -> None:
        """Record that one of its pipe operations starts in `cycle`; the first one counts, or of equals the first issue.

        Waits are not the instruction's own time: a cast that is issued early and waits for an operand lasts as long as
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
class QueueEntry(CompletionCycle):
    """One operation in flight: in a queue from `arrival`, at work from `start`.

    `pipe` is the one that executes it. `pending` counts repeats whose results are not in the buffer yet. `causes` is
    None if operations are not recorded.
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

    def begin(self, cycle: int) -> None:
        """Record that its pipe starts to work for it in `cycle`."""
        self.start = cycle
        self.execution.begin(cycle, self)


def await_end(env: Environment, completion: CompletionCycle) -> Steps:
    """Wait until the cycle in which `completion` ends."""
    if not completion.known:
        if completion.signal is None:
            completion.signal = env.event()
        yield completion.signal
    if completion.end > env.now:
        yield env.timeout(completion.end - env.now)


# Which cause every cycle of every pipe goes to, and what is reported in the end.
#
# Rules beyond the obvious:
#
# * Waiting is charged to the operation that waits, at the head of its queue; a pipe without one is `empty`.
# * A cycle in which a vector pipe only finishes earlier work is `drain` up to the nominal end of that work and `bank
# conflict` after it, even if a flag is awaited or the queue is empty. A barrier or operand wait is charged as such:
# what it waits for is usually that very drain.

_PROGRESS_INTERVAL = 256
"""Operations between two calls of `Listener.progress`."""


class PipeCycles(PipeAccount):
    """The cycles of one pipe, which are also attributed to its operations."""

    def spend(self, cause: Cause, until: int, entry: QueueEntry | None) -> None:
        """Attribute the cycles up to `until` to `cause`, on behalf of `entry`."""
        cycles = self.charge(cause, until, None if entry is None else entry.index)
        # What the scalar unit spends on sending an operation is not among the operation's own cycles.
        if cycles and entry is not None and entry.causes is not None and entry.pipe == self.pipe:
            entry.causes[cause] = entry.causes.get(cause, 0) + cycles


class ExecutionTotals:
    """Executions and operations of the whole run; `latest` is the end of the last effect so far."""

    def __init__(self, listener: Listener | None, record_operations: bool) -> None:
        self.executions: list[ExecutionRecord] = []
        self.latest = 0
        self.finished = 0
        self.record_operations = record_operations
        self._operations: list[OperationTiming] = []
        self._listener = listener

    def finish(self, entry: QueueEntry, end: int) -> None:
        """Record that `entry` ends in cycle `end`."""
        entry.end = end
        entry.settle()
        entry.execution.close_one(end)
        self.latest = max(self.latest, end)
        self.finished += 1
        if entry.causes is not None:
            name = operation_name(entry.operation)
            self._operations.append(
                OperationTiming(entry.index, entry.execution_index, entry.pipe, name, entry.start, end, entry.causes)
            )
        if self._listener is not None and self.finished % _PROGRESS_INTERVAL == 0:
            self._listener.progress(self.latest, self.finished)

    def operations(self) -> tuple[OperationTiming, ...]:
        """Return the recorded operations in issue order."""
        return tuple(sorted(self._operations, key=lambda operation: operation.index))

    def executed(self) -> tuple[Execution, ...]:
        """Return the executions in program order."""
        return tuple(Execution(record.instruction, record.start, record.end) for record in self.executions)


# Ports of the unified buffer, block by block: what all bankings share. A mechanism says who waits for whom.

Cell = tuple[int, int]
"""Port and bank that a block needs."""


class Pattern:
    """Blocks at fixed distances, such as those of one repeat: their cells depend only on the first block's number."""

    def __init__(self, cells: tuple[Cell, ...], distances: tuple[int, ...], write: bool) -> None:
        self.distances = distances
        self.write = write
        self._cells = cells
        self._known: dict[int, tuple[Cell, ...]] = {}

    def at(self, block: int) -> tuple[Cell, ...]:
        """Return the cells of the pattern that starts at `block`."""
        phase = block % len(self._cells)
        cells = self._known.get(phase)
        if cells is None:
            cells = tuple(self._cells[(phase + distance) % len(self._cells)] for distance in self.distances)
            self._known[phase] = cells
        return cells


class BufferPorts(ABC):
    """The ports; `cells` are port and bank of every block, for reads and for writes, repeated cyclically."""

    def __init__(self, cells: dict[bool, tuple[Cell, ...]], observer: Observer | None) -> None:
        self._observer = observer
        self._cells = cells
        self._patterns: dict[tuple[tuple[int, ...], bool], Pattern] = {}

    def pattern(self, offsets: tuple[int, ...], write: bool) -> Pattern:
        """Return the pattern of blocks at these byte offsets, multiples of the block size."""
        key = (offsets, write)
        if key not in self._patterns:
            self._patterns[key] = Pattern(self._cells[write], tuple(offset // BLOCK for offset in offsets), write)
        return self._patterns[key]

    @abstractmethod
    def grant(self, now: int, pattern: Pattern, block: int, entry: QueueEntry) -> int:
        """Request the blocks of a pattern at `now`; return the cycle in which the last one passes."""

    def _tell(self, cycle: int, now: int, address: int, write: bool, entry: QueueEntry) -> None:
        if self._observer is not None:
            self._observer.block(cycle, entry.pipe, entry.index, address, write, now)


# Flags between pipes: counters, one per ordered pair of pipes and event id.
#
# Source: docs/reference/a2a3.md sections 6.4 and 7.

Key = tuple[str, str, int]
"""Signaller, waiter, event id."""


class Flags:
    """Signals that were set and not yet consumed, each with its cycle.

    A flag has one signaller, which sets it in order, and one waiter, which consumes in order; so the k-th wait gets
    the k-th signal, and a signal of the scalar unit may be entered ahead of its time.
    """

    def __init__(self) -> None:
        self._set: dict[Key, deque[int]] = {}
        self._waiters: dict[Key, Callable[[int], object]] = {}

    def fire(self, key: Key, cycle: int) -> bool:
        """Set the flag in `cycle`; return whether its waiter was already waiting."""
        waiter = self._waiters.pop(key, None)
        if waiter is None:
            self._set.setdefault(key, deque()).append(cycle)
            return False
        waiter(cycle)
        return True

    def take(self, key: Key) -> int | None:
        """Consume the oldest signal and return its cycle, None if there is none."""
        signals = self._set.get(key)
        return signals.popleft() if signals else None

    def wait(self, key: Key, waiter: Callable[[int], object]) -> None:
        """Call `waiter` with the cycle of the next signal, which is thereby consumed."""
        self._waiters[key] = waiter


@dataclass(frozen=True, slots=True)
class PipeWait:
    """The reason for a pipe's wait: `entry` is the operation at its head.

    `flag` is set if it awaits a flag, `needed` if it awaits the bytes of an earlier execution, neither at a barrier.
    """

    entry: QueueEntry
    flag: FlagWait | None = None
    needed: ExecutionRecord | None = None


@dataclass(frozen=True, slots=True)
class DrainMarker:
    """A queue entry that causes no delay: `reached` is called with the cycle in which all earlier ones have ended."""

    reached: Callable[[int], None]


class VectorPipeModel(Protocol):
    """The vector pipe, which each mechanism adds."""

    def check(self, operation: object) -> None:
        """Reject an operation of the vector pipe that the unit cannot execute.

        Raises:
            IllegalError: it belongs to another mechanism, or the target lacks its timing row.
        """

    def run(self, pipe: PipeProcess, entry: QueueEntry) -> Steps:
        """Execute the operation of `entry`; return when the pipe can accept the next one."""


@dataclass(slots=True, eq=False)
class DataflowRun:
    """One run: clock, target, vector unit, buffer ports, flags, and the records of events."""

    env: Environment
    target: DataflowTarget
    shared: SharedMemory | None
    vector: VectorPipeModel
    ports: BufferPorts
    flags: Flags
    ledger: ExecutionTotals
    facts: set[str] = field(default_factory=set)
    memory_free: int = 0
    """The tick from which on the core's part of shared memory is free."""


class PipeProcess:
    """One in-order pipe. `remaining` is the number of operations that the scalar unit has yet to send.

    `drain_end` is the cycle from which its started operations should no longer occupy it. `answered` is when memory can
    answer the transfer at its head, requested while earlier ones stream; without overlap it stays 0.
    """

    def __init__(self, name: str, machine: DataflowRun, remaining: int, observer: Observer | None) -> None:
        self.name = name
        self.machine = machine
        self.account = PipeCycles(name, observer)
        self.queue: deque[QueueEntry | DrainMarker] = deque()
        self.remaining = remaining
        self.current: QueueEntry | None = None
        self.wait: PipeWait | None = None
        self.wakeup: Event | None = None
        self.waited = False
        """Whether it was idle until the scalar unit sent its operation."""
        self.free = 0
        """The cycle in which it finished the previous operation."""
        self.in_flight: list[QueueEntry] = []
        self._draining: QueueEntry | None = None
        self.drain_end = 0
        self._latest: QueueEntry | None = None
        self.answered = 0
        self._reach = latency_ahead(machine.target, name)
        self._behind = Cause.MEMORY_LATENCY if name == machine.target.pipes.store else Cause.DRAIN

    def push(self, item: QueueEntry | DrainMarker) -> None:
        """Append to the queue."""
        self.queue.append(item)
        if self.wakeup is not None:
            self.wakeup.succeed()
            self.wakeup = None

    def retire(self) -> list[QueueEntry]:
        """Remove the operations that have ended by now; return the others."""
        now = int(self.machine.env.now)
        for entry in self.in_flight:
            if entry.over(now) and (self._latest is None or entry.end > self._latest.end):
                self._latest = entry
        self.in_flight = [entry for entry in self.in_flight if not entry.over(now)]
        return self.in_flight

    def ask_from(self, cycle: int) -> None:
        """Record that the operations from the head on request memory in `cycle` at the earliest."""
        if self._reach:
            self.answered = max(self.answered, cycle + self._reach)

    @property
    def working(self) -> bool:
        """Whether it executes an operation that does not wait for another pipe, and so ends soon."""
        return self.current is not None and self.wait is None

    def pause(self, until: int) -> None:
        """Attribute the cycles up to `until`, in which nothing more happens to a pipe that does not work; report."""
        if self.wait is None:
            self.rest(Cause.EMPTY, until, None)
        else:
            self.rest(Cause.OPERAND_WAIT if self.wait.flag is None else Cause.FLAG_WAIT, until, self.wait.entry)
        self.account.close()

    def note_drain(self, entry: QueueEntry, end: int) -> None:
        """Record that the pipe should finish `entry` in cycle `end`."""
        if end >= self.drain_end:
            self._draining, self.drain_end = entry, end

    def rest(self, cause: Cause, until: int, entry: QueueEntry | None) -> None:
        """Attribute cycles without new work: first the remaining earlier work, then `cause`."""
        if self._draining is not None and cause in (Cause.EMPTY, Cause.FLAG_WAIT):
            self.account.spend(self._behind, min(until, self.drain_end), self._draining)
            self._spend_late_writes(until)
        self.account.spend(cause, until, entry)

    def _spend_late_writes(self, until: int) -> None:
        """Attribute the cycles that the buffer delayed beyond the nominal drain."""
        if self.account.cursor >= until:
            return
        unknown = next((entry for entry in self.retire() if not entry.known), None)
        if unknown is not None:
            self.account.spend(Cause.BANK_CONFLICT, until, unknown)
            return
        ended = [*self.in_flight, *([self._latest] if self._latest else [])]
        latest = max(ended, key=lambda entry: entry.end, default=None)
        if latest is not None:
            self.account.spend(Cause.BANK_CONFLICT, min(until, latest.end), latest)
