"""The state of a machine relative to now, as far as anything later depends on it.

What of a row must agree follows from the types of its fields (`relative`); this module says which rows count. Two
snapshots whose parts agree lead to the same future, so many cycles apart. Three parts need not agree in full:

* A pipe that stands idle, or a flag, may simply not have changed in between: it is *frozen*.
* The scalar unit runs ahead of the pipes or falls back behind them. While no pipe has had to wait for it, how far it
  has fallen back does not matter, as long as it falls back further and further. Its times are the `soft` part.
* In a loop of nothing but scalar work no pipe changes at all, and only the soft part moves.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from castsim.engines.fast_dataflow.codes import (
    ARRIVING,
    EXPECTED,
    FREE,
    FUNCTION,
    ISSUED,
    MARKER,
    NEVER,
    NONE,
    SCALAR_END,
    STALE,
    TRANSFER,
    VECTOR,
    WORKING,
)
from castsim.engines.fast_dataflow.executions import execution_of, over
from castsim.engines.fast_dataflow.function_state import (
    FrontEndRow,
    FunctionRow,
    PendingStoreRow,
    StoreQueueRow,
    TripRow,
)
from castsim.engines.fast_dataflow.relative import State, relative
from castsim.engines.fast_dataflow.state import AccountRow, EntryRow, MachineState, NodeRow, PipeRow, ProgressRow, chain
from castsim.execution.dataflow.timing import NO_TICK, TICKS


class PipeState(NamedTuple):
    """The part of a pipe on which its account and future depend: cycles since now, operations since the latest."""

    account: State
    local: int
    flight: State


@dataclass(frozen=True, slots=True)
class IdlePipe:
    """A pipe that stands idle; `oldest` is the index of the oldest operation that its account may still charge."""

    version: int
    state: PipeState
    oldest: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A machine before a trip; `hard` must agree, `idle` and `flags` (version, state) must agree or be frozen.

    `oldest` is the index of the oldest operation of which something may still change. All times and numbers of what
    was executed are those of the whole program, skipped trips included; `row` and `index` those of what was executed.
    """

    hard: State
    idle: tuple[IdlePipe | None, ...]
    flags: tuple[tuple[int, State], ...]
    soft: tuple[int, ...]
    significant: int
    now: int
    clock: int
    trip: int
    row: int
    index: int
    oldest: int
    executions: int
    finished: int
    causes: tuple[int, ...]
    remaining: tuple[int, ...]
    segment: int


@dataclass(frozen=True, slots=True)
class QueueOffsets:
    """How far pipes are behind, by number: operations, executions, and as many entries at the end of their queues.

    A state is that of a machine whose pipes are so much further back in the program, without these entries.
    """

    operations: tuple[int, ...]
    executions: tuple[int, ...]
    entries: tuple[int, ...]


class StateInspection:
    """Takes the state of a machine apart; `shifts` says for each followed space how far its accesses have moved."""

    def __init__(
        self, m: MachineState, flags: Iterable[int], shifts: dict[int, int], lag: QueueOffsets | None = None
    ) -> None:
        self._m = m
        nothing = (0,) * m.pipe_count
        self._lag = lag or QueueOffsets(nothing, nothing, nothing)
        self._flags = [m.flags[flag] for flag in flags]
        self._shifts = shifts
        self._now = m.now
        self.soft: list[int] = []
        self.oldest = m.issuer.index

    def hard(self) -> State:
        """Return the fields that must agree."""
        m, now, pipes = self._m, self._now, range(1, self._m.pipe_count)
        results = [m.results[(m.result_head + k) & m.result_mask] for k in range(m.result_count)]
        closed = m.issuer.execution == NONE or execution_of(m, m.issuer.execution).open & ISSUED
        return (
            m.issuer.urgent,
            self._ports(),
            tuple((result.time - now, self._since(result.entry)) for result in results),
            tuple(flag.waiter for flag in self._flags),
            tuple(m.pipes[p].demands for p in pipes),
            tuple(self._space(space) for space in self._shifts),
            None if closed else self._execution(m.issuer.execution),
            tuple(None if self.is_idle(p) else self._pipe(p) for p in pipes),
        )

    def _ports(self) -> State:
        """Return ports and banks that are not free yet, or groups with what they serve in their latest cycle."""
        m, now = self._m, self._now
        if m.ports.grouped:
            groups = range(m.ports.period)
            return tuple((k, m.port_free[k] - now, m.bank_free[k]) for k in groups if m.port_free[k] >= now)
        taken = [(k, free - now) for k, free in enumerate(m.port_free) if free > now]
        return (tuple(taken), tuple((k, free - now) for k, free in enumerate(m.bank_free) if free > now))

    def idle(self) -> tuple[IdlePipe | None, ...]:
        """Return the state of every pipe that stands idle."""
        m = self._m
        found: list[IdlePipe | None] = []
        for p in range(1, m.pipe_count):
            if self.is_idle(p):
                oldest, self.oldest = self.oldest, m.issuer.index
                state = self._standing(p)
                found.append(IdlePipe(m.pipes[p].version, state, self.oldest))
                self.oldest = oldest
            else:
                found.append(None)
        return tuple(found)

    def flags(self) -> tuple[tuple[int, State], ...]:
        """Return version and signals of every flag."""
        found = []
        reach = max(self._m.pipes[p].reach for p in range(self._m.pipe_count))
        for flag in self._flags:
            cycles = [node.first - self._now for node in chain(self._m.nodes, flag.signals)]
            if flag.from_scalar:
                self.soft += [cycle + reach for cycle in cycles]
                cycles = [0] * len(cycles)
            found.append((flag.version, tuple(cycles)))
        return tuple(found)

    def is_idle(self, p: int) -> bool:
        """Whether a pipe has nothing to do, and all it has done has ended."""
        pipe = self._m.pipes[p]
        return (
            pipe.status == FREE
            and pipe.wake == NEVER
            and pipe.action == NONE
            and self._m.accounts[p].drain_end <= self._now
            and all(entry.known and entry.end <= self._now for entry in chain(self._m.entries, pipe.in_flight))
        )

    # ------------------------------------------------------------------------------------------------------- pipes

    def _standing(self, p: int) -> PipeState:
        m, pipe = self._m, self._m.pipes[p]
        account = relative(m.accounts[p], AccountRow, self._now, self._since)
        flight = tuple(self._in_flight(entry) for entry in chain(m.entries, pipe.in_flight))
        return PipeState(account, pipe.local - self._now, flight)

    def _pipe(self, p: int) -> State:
        """Return the state of a pipe that has something to do."""
        m, now, pipe = self._m, self._now, self._m.pipes[p]
        began = pipe.began_at == now and pipe.began != NONE
        wake = pipe.wake
        if pipe.status == ARRIVING:
            self.soft.append(wake - now + pipe.reach)  # an arrival
            wake = NEVER
        return (
            relative(pipe, PipeRow, now, self._since),
            NEVER if wake == NEVER else wake - now,
            self._standing(p),
            tuple(self._queued(entry) for entry in self._queue(p)),
            tuple(self._action(entry) for entry in chain(m.entries, pipe.action)),
            None if pipe.current == NONE else self._current(p, m.entries[pipe.current]),
            (
                m.issuer.execution - self._lag.executions[p] - pipe.began,
                m.issuer.index - self._lag.operations[p] - pipe.began_index,
            )
            if began
            else None,
        )

    def _queue(self, p: int) -> Iterable[EntryRow]:
        """Return the queue of a pipe without the entries by which it is behind."""
        pipe = self._m.pipes[p]
        return islice(chain(self._m.entries, pipe.queue), pipe.queued - self._lag.entries[p])

    def _pipe_of(self, entry: EntryRow) -> int:
        return 0 if entry.operation == MARKER else self._m.operations[entry.operation].pipe

    def _since(self, e: int) -> int:
        """Return how many operations were issued since that of an entry."""
        return NONE if e == NONE else self._index(self._m.entries[e])

    def _index(self, entry: EntryRow) -> int:
        if entry.index == NONE:  # of a marker
            return NONE
        index = entry.index + self._lag.operations[self._pipe_of(entry)]
        self.oldest = min(self.oldest, index)
        return self._m.issuer.index - index

    def _entry(self, entry: EntryRow) -> State:
        if entry.operation == MARKER:
            return (MARKER,)
        behind = self._lag.executions[self._pipe_of(entry)]
        return (entry.operation, self._index(entry), self._execution(entry.execution, behind=behind))

    def _queued(self, entry: EntryRow) -> State:
        if entry.operation != MARKER:
            self.soft.append(entry.arrival - self._now + self._m.pipes[self._pipe_of(entry)].reach)
        return self._entry(entry)

    def _action(self, entry: EntryRow) -> State:
        waits = entry.due == NEVER
        due = NEVER if waits else entry.due - self._now
        behind = entry.behind + self._lag.operations[self._pipe_of(entry)]
        return (self._entry(entry), due, self._m.issuer.index - behind if waits else 0)

    def _in_flight(self, entry: EntryRow) -> State:
        now = self._now
        if entry.known:
            return (self._entry(entry), entry.end - now, entry.known - now)
        return (self._entry(entry), entry.pending, entry.due - now, max(entry.written - now, 0))

    def _current(self, p: int, entry: EntryRow) -> State:
        """Return how far a pipe has come with its operation."""
        m, now = self._m, self._now
        progress: State = ()
        if m.pipes[p].status == WORKING:
            operation = m.operations[entry.operation]
            if operation.kind == VECTOR:
                progress = (m.progress[p].step, m.progress[p].block, entry.due - now, entry.pending)
            elif operation.kind == TRANSFER and not entry.known:
                progress = relative(m.progress[p], ProgressRow, now, self._since)
            elif operation.kind == FUNCTION and not entry.known:
                progress = self._function(m.functions[operation.row])
        return (self._entry(entry), bool(entry.known), progress)

    def _function(self, function: FunctionRow) -> State:
        """Return the state on which the rest of the running function depends.

        A function is at the same place in the same tick after its launch, or it is not the same state: so the trips it
        has sent and the stores it has written need not be compared, only what is still to come.
        """
        m, now, front, stores = self._m, self._now, self._m.front_end, self._m.store_queue
        first, tick = max(0, front.row_state), now * TICKS
        registers = m.registers[first : first + 2 * function.registers]
        return (
            relative(front, FrontEndRow, now, self._since),
            NONE if front.unreleased == NONE else m.trips[front.unreleased].store,
            relative(stores, StoreQueueRow, now, self._since),
            tuple(relative(m.trips[k], TripRow, now, self._since) for k in range(front.first_flight, front.flights)),
            tuple(self._store(m.pending[k]) for k in range(stores.first, stores.count)),
            tuple(time if time == NO_TICK else time - tick for time in registers),
            tuple(max(time - tick, -TICKS) for time in m.special[: function.special_ports]),
        )

    def _store(self, store: PendingStoreRow) -> State:
        if store.ready == EXPECTED:  # nothing else is known of it
            return (store.address, store.size)
        return relative(store, PendingStoreRow, self._now, self._since)

    # -------------------------------------------------------------------------------------- executions and accesses

    def _execution(self, x: int, *, needs: bool = True, behind: int = 0) -> State:
        """Return the state of an execution: what is open, its end as far as it is known, whom it waits for.

        Its pipe is so many executions `behind`.
        """
        m = self._m
        execution = execution_of(m, x)
        end = execution.end - self._now
        if execution.open & SCALAR_END:
            self.soft.append(end)
            end = 0
        waits: list[State] = []
        for need in sorted(chain(m.nodes, execution.needs) if needs else (), key=_place):
            if not need.kind & STALE:
                waits.append(self._execution(need.execution, needs=False))
        return (m.issuer.execution - behind - x, execution.open, max(end, 0), tuple(waits))

    def _space(self, space: int) -> State:
        """Return the accesses in flight, as far as they can delay anything."""
        m, shift = self._m, self._shifts[space]
        found = []
        for node in chain(m.nodes, m.spaces[space].first):
            if node.kind & STALE or over(m, node.execution, self._now):
                continue
            place = (node.first - shift, node.last - shift, node.kind)
            found.append((place, self._execution(node.execution, needs=False)))
        return tuple(found)


def rows_of(m: MachineState) -> int:
    """Return how many rows a snapshot reads, but for a few: entries that are queued, and accesses in flight."""
    return m.live + sum(m.pipes[p].queued for p in range(1, m.pipe_count))


def _place(need: NodeRow) -> int:
    return need.first
