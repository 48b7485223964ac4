"""Discrete-event engine of chips whose pipes pass tiles through one buffer, on simpy: all but the vector unit.

The scalar unit issues in program order, each pipe is a FIFO process, transfers move block by block, blocks meet at the
ports of the buffer, and every cycle is attributed (`event_pipes`). A mechanism adds its vector unit and its banks.
Semantics: docs/reference/a2a3.md section 6.4 (pipes, flags) and 7 (barriers).

Order within a cycle: first all control (arrivals, flags, barriers), then the buffer requests, in
the order of their operations. A request has no effect before the following cycle, so this order is total.
"""

from __future__ import annotations

import sys
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import ClassVar

from simpy import Environment

from castsim.engines.event_pipes import (
    At,
    BufferPorts,
    CompletionCycle,
    DataflowRun,
    DrainMarker,
    ExecutionRecord,
    ExecutionTotals,
    Flags,
    PipeCycles,
    PipeProcess,
    PipeWait,
    QueueEntry,
    Steps,
    VectorPipeModel,
    await_end,
)
from castsim.execution.pipe_operations import (
    ALL_PIPES,
    BLOCK,
    LOOK_AHEAD,
    FlagSignal,
    FlagWait,
    PipeBarrier,
    Placeholder,
    Rest,
    ScalarElementAccess,
    ScalarWork,
    Standstill,
    Survey,
    Transfer,
    cost_of,
    explain_deadlock,
    explain_limit,
)
from castsim.execution.timing import Cause, IgnoresBlocks, Listener, Observer, Timing, Watcher
from castsim.execution.transfer_timing import (
    NO_TICK,
    TICKS,
    SharedMemory,
    TransferPlan,
    cycle_from,
    let_through,
    memory_served,
    next_request,
    stream_start,
    transfer_end,
)
from castsim.execution.tree import Access, Operation, Tree, accesses, instances, operations
from castsim.isa.dataclass import dataclass
from castsim.isa.errors import EngineError
from castsim.targets.dataflow import DataflowTarget

# Which earlier instructions an instruction has to wait for, in programs that synchronise nothing themselves.
#
# Per address space a map of disjoint intervals holds the last writer and the readers since. What a writer replaced it
# waited for itself, so the map is enough: what waits for the last writer waits for all before it.

_FIRST_SWEEP = 64
"""Intervals of a space before ended instructions are looked for."""


@dataclass(slots=True)
class _Interval:
    end: int
    writer: ExecutionRecord | None
    readers: list[ExecutionRecord]


class _Space:
    """One address space: `_starts` is sorted and parallel to `_intervals`, which do not overlap."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._intervals: list[_Interval] = []
        self._sweep_at = _FIRST_SWEEP

    def conflicts(self, access: Access) -> Iterable[ExecutionRecord]:
        """Yield who touched the bytes in a conflicting way."""
        for interval in self._intervals[self._overlapping(access)]:
            if interval.writer is not None:
                yield interval.writer
            if access.write:
                yield from interval.readers

    def enter(self, access: Access, execution: ExecutionRecord, now: int) -> None:
        """Record who touches the bytes now."""
        self._split(access.start)
        self._split(access.end)
        overlapping = self._overlapping(access)
        if access.write:
            self._starts[overlapping] = [access.start]
            self._intervals[overlapping] = [_Interval(access.end, execution, [])]
        else:
            self._add_reader(access, overlapping, execution, now)
        if len(self._starts) > self._sweep_at:
            self._sweep(now)

    def _add_reader(self, access: Access, overlapping: slice, execution: ExecutionRecord, now: int) -> None:
        starts, intervals = [], []
        position = access.start
        placed = zip(self._starts[overlapping], self._intervals[overlapping], strict=True)
        for start, interval in placed:
            if position < start:
                starts.append(position)
                intervals.append(_Interval(start, None, [execution]))
            interval.readers = [*(reader for reader in interval.readers if not reader.over(now)), execution]
            starts.append(start)
            intervals.append(interval)
            position = interval.end
        if position < access.end:
            starts.append(position)
            intervals.append(_Interval(access.end, None, [execution]))
        self._starts[overlapping] = starts
        self._intervals[overlapping] = intervals

    def _overlapping(self, access: Access) -> slice:
        first = max(0, bisect_right(self._starts, access.start) - 1)
        if first < len(self._starts) and self._intervals[first].end <= access.start:
            first += 1
        return slice(first, max(first, bisect_left(self._starts, access.end)))

    def _split(self, position: int) -> None:
        """Make no interval cross `position`."""
        index = bisect_left(self._starts, position) - 1
        if index < 0 or self._intervals[index].end <= position:
            return
        left = self._intervals[index]
        self._starts.insert(index + 1, position)
        self._intervals.insert(index + 1, _Interval(left.end, left.writer, list(left.readers)))
        left.end = position

    def _sweep(self, now: int) -> None:
        """Remove intervals that nothing can still wait for."""
        kept = [
            (start, interval)
            for start, interval in zip(self._starts, self._intervals, strict=True)
            if not all(record.over(now) for record in (interval.writer, *interval.readers) if record is not None)
        ]
        self._starts = [start for start, _ in kept]
        self._intervals = [interval for _, interval in kept]
        self._sweep_at = max(_FIRST_SWEEP, 2 * len(kept))


class Scoreboard:
    """The bytes in flight, in the address spaces that are followed."""

    def __init__(self, tree: Tree) -> None:
        self._spaces = {space: _Space() for space in Survey(tree).followed_spaces()}

    def enter(self, execution: ExecutionRecord, accesses: tuple[Access, ...], now: int) -> tuple[ExecutionRecord, ...]:
        """Record the accesses of the next execution in program order; return the earlier ones that it must wait for."""
        followed = [
            (self._spaces[access.space], access)
            for access in accesses
            if access.space in self._spaces and access.start < access.end
        ]
        needs = {id(record): record for space, access in followed for record in space.conflicts(access)}
        for space, access in followed:
            space.enter(access, execution, now)
        return tuple(record for record in needs.values() if not record.over(now))


# The scalar unit: executes control in program order and sends everything else to the queues.
#
# Its time depends on nothing but the flags and barriers that it waits for itself, so it runs ahead of the simulation's
# clock, and only as far as some pipe needs it: otherwise the queues would come to hold the whole program.


class Issuer:
    """The scalar unit. `clock` is the cycle in which it starts its next operation."""

    def __init__(
        self,
        tree: Tree,
        machine: DataflowRun,
        pipes: Mapping[str, PipeProcess],
        observer: Observer | None,
        max_cycles: int,
    ) -> None:
        self.name = machine.target.pipes.scalar
        self.clock = 0
        self.issued = 0
        self.wait: PipeWait | None = None
        self.beyond: QueueEntry | None = None
        """The operation that ran into the cycle limit."""
        self.account = PipeCycles(self.name, observer)
        self.watcher: Watcher | None = None
        """The watcher of the beginning of the run, if any: later operations are not issued."""
        self._machine = machine
        self._pipes = pipes
        self._remaining = sum(pipe.remaining for pipe in pipes.values())
        self._max_cycles = max_cycles
        self._demanding: set[str] = set()
        self._undrained = 0
        self._drained_at = 0
        self._costs: dict[object, tuple[int, Cause]] = {}
        self._entries = self._draw(tree)

    def demand(self, pipe: PipeProcess) -> None:
        """Continue until `pipe` has work, or its flag."""
        if pipe.remaining or pipe.wait is not None:
            self._demanding.add(pipe.name)
        self.advance()

    def advance(self, *, eager: bool = False) -> bool:
        """Continue while a pipe demands it, or only scalar work is left; return whether there was anything.

        If it is eager, it issues everything that the watcher listens to.
        """
        before = self.issued
        while self._ready() and (eager or self._demanding or not self._remaining):
            entry = next(self._entries, None)
            if entry is None:
                break
            self._issue(entry)
        return self.issued > before

    def pause(self, until: int) -> None:
        """Attribute the cycles up to `until`, in which nothing more happens, and report."""
        if self.wait is None:
            self.account.spend(Cause.EMPTY, until, None)
        else:
            self.account.spend(Cause.BARRIER if self.wait.flag is None else Cause.FLAG_WAIT, until, self.wait.entry)
        self.account.close()

    def run_on(self, count: int) -> list[Operation]:
        """Issue up to `count` operations that no pipe demands; return the next ones that the scalar unit cannot reach.

        This only explains a failed run: the machine would have issued them.
        """
        for _ in range(count):
            if self.wait is not None or self.beyond is not None:
                break
            entry = next(self._entries, None)
            if entry is None:
                break
            self._issue(entry)
        return [entry.operation for entry in islice(self._entries, count)]

    def _draw(self, tree: Tree) -> Iterator[QueueEntry]:
        """Yield the operations of the program in order."""
        ledger = self._machine.ledger
        scoreboard = Scoreboard(tree) if tree.interlocked else None
        index = 0
        for number, (lowered, deltas) in enumerate(instances(tree)):
            execution = ExecutionRecord(instruction=lowered.instruction, start=self.clock, end=self.clock)
            ledger.executions.append(execution)
            if scoreboard is not None:
                touched = accesses(lowered, deltas)
                execution.needs = scoreboard.enter(execution, touched, int(self._machine.env.now))
            for operation in operations(lowered, deltas):
                execution.open += 1
                yield QueueEntry(
                    operation=operation,
                    pipe=self.name if operation.pipe == ALL_PIPES else operation.pipe,
                    index=index,
                    execution=execution,
                    execution_index=number,
                    causes={} if ledger.record_operations else None,
                )
                index += 1
            execution.close_issue()

    def _ready(self) -> bool:
        """Return whether it can continue, and has a listener."""
        until = None if self.watcher is None else self.watcher.until
        return self.wait is None and self.beyond is None and (until is None or self.clock < until)

    def _issue(self, entry: QueueEntry) -> None:
        self.issued += 1
        entry.start = self.clock
        cycles, cause = self._cost(entry.operation)
        self.clock += cycles
        self.account.spend(cause, self.clock, entry)
        if self.clock > self._max_cycles:
            self.beyond = entry
        elif entry.pipe == self.name:
            self._execute(entry)
        else:
            entry.arrival = self.clock
            pipe = self._pipes[entry.pipe]
            pipe.remaining -= 1
            self._remaining -= 1
            if pipe.wait is None:  # else it wants a flag of the scalar unit
                self._demanding.discard(entry.pipe)
            pipe.push(entry)

    def _cost(self, operation: Operation) -> tuple[int, Cause]:
        """Return the scalar unit's cycles for an operation, which are the same for all of a kind."""
        kind: object = operation.kind if isinstance(operation, ScalarWork | ScalarElementAccess) else type(operation)
        if isinstance(operation, Placeholder):
            kind = (Placeholder, operation.pipe, operation.cycles)
        cost = self._costs.get(kind)
        if cost is None:
            cycles, cause, facts = cost_of(operation, self._machine.target)
            self._machine.facts.update(facts)
            cost = self._costs[kind] = (cycles, cause)
        return cost

    def _execute(self, entry: QueueEntry) -> None:
        """Execute a scalar operation's effect after its cycles."""
        operation = entry.operation
        flags = self._machine.flags
        match operation:
            case FlagSignal():
                if flags.fire((operation.pipe, operation.waiter, operation.event), self.clock):
                    self._demanding.discard(operation.waiter)
                self._machine.ledger.finish(entry, self.clock)
            case FlagWait():
                key = (operation.signaller, operation.pipe, operation.event)
                self.wait = PipeWait(entry, flag=operation)
                cycle = flags.take(key)
                if cycle is None:
                    flags.wait(key, self._signalled)
                else:
                    self._resume(Cause.FLAG_WAIT, cycle)
            case PipeBarrier(pipe) if pipe == ALL_PIPES:
                self.wait = PipeWait(entry)
                self._undrained = len(self._pipes)
                for name in self._pipes:
                    self._pipes[name].push(DrainMarker(self._drained))
            case _:
                self._machine.ledger.finish(entry, self.clock)

    def _signalled(self, cycle: int) -> None:
        self._resume(Cause.FLAG_WAIT, cycle)
        self.advance()

    def _drained(self, cycle: int) -> None:
        self._drained_at = max(self._drained_at, cycle)
        self._undrained -= 1
        if self._undrained == 0:
            self._resume(Cause.BARRIER, self._drained_at)
            self.advance()

    def _resume(self, cause: Cause, cycle: int) -> None:
        """End the wait in `cycle`, or at once if that is past."""
        if self.wait is None:
            return
        entry, self.wait = self.wait.entry, None
        self.clock = max(self.clock, cycle)
        self.account.spend(cause, self.clock, entry)
        self._machine.ledger.finish(entry, self.clock)


# A transfer between global memory and the unified buffer, block by block (`execution.transfer_timing`).


def run_transfer(pipe: PipeProcess, entry: QueueEntry, operation: Transfer) -> Steps:
    """Execute `operation`; return when it has ended, or when its stream has, if the next one may overlap the rest."""
    machine, env = pipe.machine, pipe.machine.env
    plan = TransferPlan.of(operation, machine.target, machine.shared)
    machine.facts.update(plan.facts)
    start = int(env.now)
    entry.begin(start)
    pipe.retire()
    stream = stream_start(start, plan.ahead, pipe.answered)
    pattern = machine.ports.pattern((0,), operation.load)
    asked, passed, served = -1, -1, NO_TICK
    for number, (delay, block) in enumerate(_blocks(operation, plan)):
        if (request := next_request(stream + delay, served)) != asked:
            asked = request
            yield At(env, asked - int(env.now), entry.index)
        passed = max(passed, machine.ports.grant(asked, pattern, block, entry))
        if plan.turns:
            served = machine.memory_free = memory_served(asked, machine.memory_free, number, plan.blocks, plan.turns)
    due = stream + plan.streaming
    moved = max(due, cycle_from(served))
    machine.memory_free = max(machine.memory_free, cycle_from(served) * TICKS)
    stream_end = transfer_end(moved, passed)
    end = stream_end + plan.behind
    machine.ledger.finish(entry, end)
    pipe.account.spend(Cause.MEMORY_LATENCY, stream, entry)
    pipe.account.spend(Cause.BUSY, due, entry)
    pipe.account.spend(Cause.MEMORY_BANDWIDTH, moved, entry)
    pipe.account.spend(Cause.BANK_CONFLICT, stream_end, entry)
    if plan.overlaps:
        pipe.in_flight.append(entry)
        pipe.note_drain(entry, end)
        end = stream_end
    pipe.account.spend(Cause.MEMORY_LATENCY, end, entry)
    yield env.timeout(end - int(env.now))


def run_placeholder(pipe: PipeProcess, entry: QueueEntry, operation: Placeholder) -> Steps:
    """Occupy the pipe for the assumed time of `operation`, which requests no blocks."""
    env = pipe.machine.env
    start = int(env.now)
    entry.begin(start)
    end = start + operation.cycles
    pipe.machine.ledger.finish(entry, end)
    pipe.account.spend(Cause.BUSY, end, entry)
    yield env.timeout(operation.cycles)


def _blocks(operation: Transfer, plan: TransferPlan) -> Iterator[tuple[int, int]]:
    """Yield every block's number with the cycles after which the rate has passed all earlier bytes."""
    for burst in range(operation.bursts):
        first = (operation.ub_address + burst * operation.ub_pitch) // BLOCK
        before = burst * operation.burst_bytes
        for block in range(-(-operation.burst_bytes // BLOCK)):
            yield let_through(before + block * BLOCK, plan.rate, plan.per), first + block


# The process behind every pipe: take what stands at the head of the queue and execute it.


def serve(pipe: PipeProcess, issuer: Issuer) -> Steps:
    """Execute the operations of `pipe` in sequence, forever."""
    env = pipe.machine.env
    while True:
        if not pipe.queue:
            issuer.demand(pipe)
        if not pipe.queue:
            pipe.wakeup = env.event()
            yield pipe.wakeup
        item = pipe.queue.popleft()
        if isinstance(item, DrainMarker):
            _after_retirement(pipe, item.reached)
            continue
        pipe.current = item
        pipe.waited = item.arrival > pipe.free
        if item.arrival > env.now:
            yield env.timeout(item.arrival - int(env.now))
        pipe.rest(Cause.EMPTY, int(env.now), None)
        yield from _execute(pipe, issuer, item)
        pipe.free = int(env.now)
        pipe.current = None


def _execute(pipe: PipeProcess, issuer: Issuer, entry: QueueEntry) -> Steps:
    operation = entry.operation
    entry.start = int(pipe.machine.env.now)
    match operation:
        case FlagSignal():
            _after_retirement(pipe, _signal(pipe, entry, operation))
        case FlagWait():
            yield from _await_flag(pipe, issuer, entry, operation)
        case PipeBarrier():
            yield from _await_retirement(pipe, entry)
        case _:
            pipe.ask_from(entry.arrival)
            yield from _await_operands(pipe, entry)
            yield from _work(pipe, entry)


def _work(pipe: PipeProcess, entry: QueueEntry) -> Steps:
    match entry.operation:
        case Transfer() as transfer:
            return run_transfer(pipe, entry, transfer)
        case Placeholder() as placeholder:
            return run_placeholder(pipe, entry, placeholder)
    return pipe.machine.vector.run(pipe, entry)


def _await_operands(pipe: PipeProcess, entry: QueueEntry) -> Steps:
    """Wait until the earlier instructions whose bytes this one needs have ended."""
    for needed in entry.execution.needs:
        pipe.wait = PipeWait(entry, needed=needed)
        yield from await_end(pipe.machine.env, needed)
    pipe.wait = None
    # Ended instructions must not keep their predecessors, and those theirs, in memory.
    entry.execution.needs = ()
    now = int(pipe.machine.env.now)
    if now > entry.start:
        pipe.ask_from(now)
    pipe.rest(Cause.OPERAND_WAIT, now, entry)


def _await_flag(pipe: PipeProcess, issuer: Issuer, entry: QueueEntry, operation: FlagWait) -> Steps:
    machine = pipe.machine
    key = (operation.signaller, operation.pipe, operation.event)
    cycle = machine.flags.take(key)
    if cycle is None:
        pipe.wait = PipeWait(entry, flag=operation)
        signal = machine.env.event()
        machine.flags.wait(key, signal.succeed)
        if operation.signaller == machine.target.pipes.scalar:
            issuer.demand(pipe)
        cycle = yield signal
        pipe.wait = None
    if cycle > machine.env.now:
        yield machine.env.timeout(cycle - int(machine.env.now))
    now = int(machine.env.now)
    pipe.ask_from(cycle)
    pipe.rest(Cause.FLAG_WAIT, now, entry)
    machine.ledger.finish(entry, now)


def _await_retirement(pipe: PipeProcess, entry: QueueEntry) -> Steps:
    env = pipe.machine.env
    for earlier in pipe.retire():
        yield from await_end(env, earlier)
    pipe.ask_from(int(env.now))
    pipe.rest(Cause.BARRIER, int(env.now), entry)
    pipe.machine.ledger.finish(entry, int(env.now))


def _signal(pipe: PipeProcess, entry: QueueEntry, operation: FlagSignal) -> Callable[[int], None]:
    def fire(cycle: int) -> None:
        pipe.machine.ledger.finish(entry, cycle)
        pipe.machine.flags.fire((operation.pipe, operation.waiter, operation.event), cycle)

    return fire


def _after_retirement(pipe: PipeProcess, action: Callable[[int], None]) -> None:
    """Call `action` once everything started on the pipe has ended; the pipe itself continues immediately."""
    env = pipe.machine.env
    earlier = tuple(pipe.retire())
    if earlier:
        env.process(_later(pipe, earlier, action))
    else:
        action(int(env.now))


def _later(pipe: PipeProcess, earlier: tuple[CompletionCycle, ...], action: Callable[[int], None]) -> Steps:
    for completion in earlier:
        yield from await_end(pipe.machine.env, completion)
    action(int(pipe.machine.env.now))


# Why a simulation cannot go on, in words: who waits for whom, or where the cycle limit struck.


def deadlock(tree: Tree, issuer: Issuer, pipes: Mapping[str, PipeProcess]) -> EngineError | None:
    """Return the error that names every wait, None if nothing waits."""
    if not _waits(issuer, pipes):
        return None
    unreached = issuer.run_on(LOOK_AHEAD)

    def queued(signal: FlagSignal) -> int | None:
        pipe = pipes.get(signal.pipe)
        for item in pipe.queue if pipe is not None else ():
            if isinstance(item, QueueEntry) and item.operation == signal:
                return item.execution.instruction
        return None

    return explain_deadlock(tree, _waits(issuer, pipes), Rest(issuer.name, queued, unreached))


def _waits(issuer: Issuer, pipes: Mapping[str, PipeProcess]) -> list[Standstill]:
    """Return all waits and their reasons."""
    named = [(pipe.name, pipe.wait) for pipe in pipes.values()] + [(issuer.name, issuer.wait)]
    return [_standstill(name, wait) for name, wait in named if wait is not None]


def _standstill(name: str, wait: PipeWait) -> Standstill:
    needed = None if wait.needed is None else wait.needed.instruction
    return Standstill(name, wait.entry.index, wait.entry.execution.instruction, wait.flag, needed)


def limit(tree: Tree, issuer: Issuer, pipes: Mapping[str, PipeProcess], max_cycles: int) -> EngineError:
    """Return the error of a run that exceeds its limit."""
    open_entries: list[QueueEntry] = []
    if issuer.beyond is not None:
        open_entries.append(issuer.beyond)
    else:
        for pipe in pipes.values():
            started = [entry for entry in (pipe.current, *pipe.in_flight) if entry is not None]
            open_entries += [entry for entry in started if not entry.over(max_cycles)]
    reached = min(open_entries, key=lambda entry: entry.index, default=None)
    return explain_limit(tree, max_cycles, None if reached is None else reached.execution.instruction)


class DataflowSimulation:
    """A run of `tree` on `target`, which can be started once by `run`; a mechanism adds its `VECTOR_UNIT` and `PORTS`.

    Raises:
        IllegalError: the target lacks a pipe, a timing row or an instruction latency of the tree.
    """

    VECTOR_UNIT: ClassVar[Callable[..., VectorPipeModel]]
    PORTS: ClassVar[Callable[..., BufferPorts]]

    def __init__(
        self, tree: Tree, target: DataflowTarget, observer: Listener | None = None, *, record_operations: bool = True
    ) -> None:
        survey, vector = Survey(tree), type(self).VECTOR_UNIT(target)
        survey.check(target, vector.check)
        self._tree = tree
        self._listener = observer
        details = self._observer = observer if isinstance(observer, Observer) else None
        self._machine = DataflowRun(
            env=Environment(),
            target=target,
            shared=SharedMemory.of(tree, target),
            vector=vector,
            ports=type(self).PORTS(target.banks, None if isinstance(details, IgnoresBlocks) else details),
            flags=Flags(),
            ledger=ExecutionTotals(observer, record_operations),
        )
        counts = survey.operations
        working = (target.pipes.vector, target.pipes.load, target.pipes.store)
        touched = [name for name in target.pipes.others if counts[name]]
        self._pipes = {name: PipeProcess(name, self._machine, counts[name], details) for name in (*working, *touched)}

    def run(self, max_cycles: int) -> Timing:
        """Simulate to the end and return cycles and causes.

        Raises:
            EngineError: deadlock, or the end lies beyond `max_cycles`.
        """
        machine = self._machine
        issuer = self._start(max_cycles)
        while issuer.beyond is None and machine.env.peek() <= max_cycles:
            machine.env.step()
        total = max(machine.ledger.latest, issuer.clock)
        idle = machine.env.peek() == float("inf")
        if issuer.beyond is None and idle:
            stuck = deadlock(self._tree, issuer, self._pipes)
            if stuck is not None:
                raise stuck
        if issuer.beyond is not None or not idle or total > max_cycles:
            raise limit(self._tree, issuer, self._pipes, max_cycles)
        return self._timing(issuer, total)

    def watch(self, watcher: Watcher) -> int:
        """Simulate as far as the watcher listens; return the number of issued operations.

        Working pipes then finish their operations. Waiting ones continue to wait, so
        the cause of their remaining cycles is known.
        """
        env = self._machine.env
        issuer = self._start(sys.maxsize)
        issuer.watcher = watcher
        again = True
        while again:
            while env.peek() <= _last(watcher):
                env.step()
            again = issuer.advance(eager=True)
        while env.peek() < float("inf") and any(
            pipe.working and pipe.account.cursor < _last(watcher) for pipe in self._pipes.values()
        ):
            env.step()
        end = _last(watcher)
        if env.peek() == float("inf"):
            end = min(end, max(self._machine.ledger.latest, issuer.clock))
        issuer.pause(end)
        for pipe in self._pipes.values():
            pipe.pause(end)
        return issuer.issued

    def _start(self, max_cycles: int) -> Issuer:
        """Set the pipes going."""
        issuer = Issuer(self._tree, self._machine, self._pipes, self._observer, max_cycles)
        for pipe in self._pipes.values():
            self._machine.env.process(serve(pipe, issuer))
        return issuer

    def _timing(self, issuer: Issuer, total: int) -> Timing:
        machine = self._machine
        issuer.account.spend(Cause.EMPTY, total, None)
        pipes = {issuer.name: issuer.account.close()}
        for name, pipe in self._pipes.items():
            pipe.rest(Cause.EMPTY, total, None)
            pipes[name] = pipe.account.close()
        if self._listener is not None:
            self._listener.progress(total, machine.ledger.finished)
        return Timing(total, pipes, machine.ledger.executed(), machine.ledger.operations(), frozenset(machine.facts))


def _last(watcher: Watcher) -> int:
    """Return the cycle until which the watcher listens; the value for the end exceeds the cycles of any run."""
    return sys.maxsize if watcher.until is None else watcher.until
