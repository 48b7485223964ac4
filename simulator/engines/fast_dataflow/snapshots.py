"""The state of a machine relative to now, as far as anything later depends on it.

Two snapshots whose parts agree lead to the same future, so many cycles apart. Three parts need not agree in full:

* A pipe that stands idle, or a flag, may simply not have changed in between: it is *frozen*.
* The scalar unit runs ahead of the pipes or falls back behind them. While no pipe has had to wait for it, how far it
  has fallen back does not matter, as long as it falls back further and further. Its times are the `soft` part.
* In a loop of nothing but scalar work no pipe changes at all, and only the soft part moves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from simulator.engines.fast_dataflow.executions import at, over
from simulator.engines.fast_dataflow.function_snapshots import function_state
from simulator.engines.fast_dataflow.layout import (
    ARRIVING,
    BANK_FREE,
    BANKS,
    E_ARRIVAL,
    E_BEHIND,
    E_DUE,
    E_END,
    E_EXECUTION,
    E_INDEX,
    E_KNOWN,
    E_NEXT,
    E_OPERATION,
    E_PENDING,
    E_WRITTEN,
    EXECUTION,
    FLAG_SCALAR,
    FLAG_SIGNALS,
    FLAG_VERSION,
    FLAG_WAITER,
    FREE,
    FUNCTION,
    GROUPED,
    INDEX,
    ISSUED,
    MARKER,
    N_EXECUTION,
    N_FIRST,
    N_KIND,
    N_LAST,
    N_NEXT,
    NEVER,
    NO_TIME,
    NONE,
    NOW,
    O_KIND,
    P_ACTION,
    P_BEGAN,
    P_BEGAN_AT,
    P_BEGAN_INDEX,
    P_BLOCK,
    P_CURRENT,
    P_CURSOR,
    P_DEMANDS,
    P_DRAIN_END,
    P_DRAINING,
    P_FLIGHT,
    P_LATEST,
    P_LATEST_END,
    P_LOCAL,
    P_PASSED,
    P_QUEUE,
    P_REQUEST,
    P_STATUS,
    P_STEP,
    P_STREAM,
    P_VERSION,
    P_WAKE,
    PERIOD,
    PIPES,
    PORT_FREE,
    SCALAR_END,
    SPACE_FIRST,
    STALE,
    TRANSFER,
    URGENT,
    VECTOR,
    W_ENTRY,
    W_TIME,
    WORKING,
    WRITE_COUNT,
    WRITE_HEAD,
    WRITE_MASK,
    WRITE_WIDTH,
    WRITES_AT,
    X_END,
    X_NEEDS,
    X_OPEN,
    Cells,
)

State = tuple[object, ...]


class Account(NamedTuple):
    """What the account of a pipe and its later operations depend on: cycles since now, operations since the latest."""

    cursor: int
    local: int
    drain_end: int
    draining: int
    latest_end: int
    latest: int
    flight: State


@dataclass(frozen=True, slots=True)
class Idle:
    """A pipe that stands idle; `oldest` is the index of the oldest operation that its account may still charge."""

    version: int
    state: Account
    oldest: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A machine before a trip; `hard` must agree, `idle` and `flags` (version, state) must agree or be frozen.

    `oldest` is the index of the oldest operation of which something may still change. All times and numbers of what
    was executed are those of the whole program, skipped trips included; `row` and `index` those of what was executed.
    """

    hard: State
    idle: tuple[Idle | None, ...]
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


class Look:
    """Takes the state of a machine apart; `shifts` says for each followed space how far its accesses have moved."""

    def __init__(self, m: Cells, flags: Iterable[int], shifts: dict[int, int]) -> None:
        self._m = m
        self._flags = tuple(flags)
        self._shifts = shifts
        self._now = int(m[NOW])
        self.soft: list[int] = []
        self.oldest = int(m[INDEX])

    def hard(self) -> State:
        """Return what must agree."""
        m, now, pipes = self._m, self._now, range(1, self._m[PIPES])
        ring, mask = int(m[WRITES_AT]), int(m[WRITE_MASK])
        writes = [ring + ((int(m[WRITE_HEAD]) + k) & mask) * WRITE_WIDTH for k in range(m[WRITE_COUNT])]
        return (
            int(m[URGENT]),
            self._ports(),
            tuple((int(m[w + W_TIME]) - now, self._index(int(m[w + W_ENTRY]))) for w in writes),
            tuple(int(m[flag + FLAG_WAITER]) for flag in self._flags),
            tuple(int(m[P_DEMANDS + p]) for p in pipes),
            tuple(self._space(space) for space in self._shifts),
            None if self._is_closed() else self._execution(int(m[EXECUTION])),
            tuple(None if self.is_idle(p) else self._pipe(p) for p in pipes),
        )

    def _ports(self) -> State:
        """Return ports and banks that are not free yet, or groups with what they serve in their latest cycle."""
        m, now = self._m, self._now
        first, last = sorted((int(m[PORT_FREE]), int(m[BANK_FREE])))
        if m[GROUPED]:
            between = last - first
            groups = range(int(m[PORT_FREE]), int(m[PORT_FREE]) + int(m[PERIOD]))
            return tuple((k, int(m[k]) - now, int(m[k + between])) for k in groups if m[k] >= now)
        end = last + 2 * int(m[BANKS])
        return tuple((k, int(free) - now) for k, free in enumerate(m[first:end]) if free > now)

    def idle(self) -> tuple[Idle | None, ...]:
        """Return the state of every pipe that stands idle."""
        m = self._m
        found: list[Idle | None] = []
        for p in range(1, m[PIPES]):
            if self.is_idle(p):
                oldest, self.oldest = self.oldest, int(m[INDEX])
                state = self._account(p)
                found.append(Idle(int(m[P_VERSION + p]), state, self.oldest))
                self.oldest = oldest
            else:
                found.append(None)
        return tuple(found)

    def flags(self) -> tuple[tuple[int, State], ...]:
        """Return version and signals of every flag."""
        m = self._m
        found = []
        for flag in self._flags:
            cycles = [int(m[n + N_FIRST]) - self._now for n in chain(m, m[flag + FLAG_SIGNALS], N_NEXT)]
            if m[flag + FLAG_SCALAR]:
                self.soft += cycles
                cycles = [0] * len(cycles)
            found.append((int(m[flag + FLAG_VERSION]), tuple(cycles)))
        return tuple(found)

    def is_idle(self, p: int) -> bool:
        """Whether a pipe has nothing to do, and all it has done has ended."""
        m = self._m
        return (
            m[P_STATUS + p] == FREE
            and m[P_WAKE + p] == NEVER
            and m[P_ACTION + p] == NONE
            and all(m[e + E_KNOWN] and m[e + E_END] <= self._now for e in chain(m, m[P_FLIGHT + p], E_NEXT))
        )

    def _is_closed(self) -> bool:
        m = self._m
        return m[EXECUTION] == NONE or bool(m[at(m, m[EXECUTION]) + X_OPEN] & ISSUED)

    # ------------------------------------------------------------------------------------------------------- pipes

    def _account(self, p: int) -> Account:
        m, now = self._m, self._now
        flight = tuple(self._in_flight(e) for e in chain(m, m[P_FLIGHT + p], E_NEXT))
        return Account(
            int(m[P_CURSOR + p]) - now,
            int(m[P_LOCAL + p]) - now,
            self._time(m[P_DRAIN_END + p]),
            self._index(int(m[P_DRAINING + p])),
            self._time(m[P_LATEST_END + p]),
            self._index(int(m[P_LATEST + p])),
            flight,
        )

    def _pipe(self, p: int) -> State:
        """Return the state of a pipe that has something to do."""
        m, now = self._m, self._now
        current = int(m[P_CURRENT + p])
        began = int(m[P_BEGAN_AT + p]) == now and m[P_BEGAN + p] != NONE
        wake = int(m[P_WAKE + p])
        if m[P_STATUS + p] == ARRIVING:
            self.soft.append(wake - now)  # an arrival
            wake = NEVER
        return (
            int(m[P_STATUS + p]),
            NEVER if wake == NEVER else max(wake - now, 0),
            NEVER if m[P_REQUEST + p] == NEVER else int(m[P_REQUEST + p]) - now,
            self._account(p),
            tuple(self._queued(e) for e in chain(m, m[P_QUEUE + p], E_NEXT)),
            tuple(self._action(e) for e in chain(m, m[P_ACTION + p], E_NEXT)),
            None if current == NONE else self._current(p, current),
            (int(m[EXECUTION] - m[P_BEGAN + p]), int(m[INDEX] - m[P_BEGAN_INDEX + p])) if began else None,
        )

    def _time(self, cycle: int) -> int:
        return NO_TIME if cycle == NO_TIME else int(cycle) - self._now

    def _index(self, e: int) -> int:
        """Return how many operations were issued since that of an entry."""
        if e == NONE:
            return NONE
        index = int(self._m[e + E_INDEX])
        if index == NONE:  # of a marker
            return NONE
        self.oldest = min(self.oldest, index)
        return int(self._m[INDEX]) - index

    def _entry(self, e: int) -> State:
        m = self._m
        if m[e + E_OPERATION] == MARKER:
            return (MARKER,)
        return (int(m[e + E_OPERATION]), self._index(e), self._execution(int(m[e + E_EXECUTION])))

    def _queued(self, e: int) -> State:
        if self._m[e + E_OPERATION] != MARKER:
            self.soft.append(int(self._m[e + E_ARRIVAL]) - self._now)
        return self._entry(e)

    def _action(self, e: int) -> State:
        m, due = self._m, int(self._m[e + E_DUE])
        behind = int(m[e + E_BEHIND])
        return (
            self._entry(e),
            NEVER if due == NEVER else max(due - self._now, 0),
            int(m[INDEX]) - behind if due == NEVER else 0,
        )

    def _in_flight(self, e: int) -> State:
        m, now = self._m, self._now
        if m[e + E_KNOWN]:
            return (self._entry(e), int(m[e + E_END]) - now, int(m[e + E_KNOWN]) - now)
        return (self._entry(e), int(m[e + E_PENDING]), int(m[e + E_DUE]) - now, max(int(m[e + E_WRITTEN]) - now, 0))

    def _current(self, p: int, e: int) -> State:
        """Return how far a pipe has come with its operation."""
        m, now = self._m, self._now
        kind = m[m[e + E_OPERATION] + O_KIND]
        known = bool(m[e + E_KNOWN])
        progress: State = ()
        if m[P_STATUS + p] == WORKING and not known:
            if kind == TRANSFER:
                passed = max(int(m[P_PASSED + p]) - now, NONE)
                progress = (int(m[P_STEP + p]), int(m[P_BLOCK + p]), int(m[P_STREAM + p]) - now, passed)
            elif kind == FUNCTION:
                progress = function_state(m, p, now)
        if kind == VECTOR and m[P_STATUS + p] == WORKING:
            progress = (int(m[P_STEP + p]), int(m[e + E_DUE]) - now, int(m[e + E_PENDING]))
        return (self._entry(e), known, progress)

    # -------------------------------------------------------------------------------------- executions and accesses

    def _execution(self, x: int, *, needs: bool = True) -> State:
        """Return the state of an execution: what is open, its end as far as it is known, whom it waits for."""
        m = self._m
        row = at(m, x)
        end = int(m[row + X_END]) - self._now
        if m[row + X_OPEN] & SCALAR_END:
            self.soft.append(end)
            end = 0
        waits: list[State] = []
        for n in sorted(chain(m, m[row + X_NEEDS], N_NEXT) if needs else (), key=lambda n: int(m[n + N_FIRST])):
            if not m[n + N_KIND] & STALE:
                waits.append(self._execution(int(m[n + N_EXECUTION]), needs=False))
        return (int(m[EXECUTION]) - x, int(m[row + X_OPEN]), max(end, 0), tuple(waits))

    def _space(self, space: int) -> State:
        """Return the accesses in flight, as far as they can delay anything."""
        m, shift = self._m, self._shifts[space]
        found = []
        for n in chain(m, m[space + SPACE_FIRST], N_NEXT):
            if m[n + N_KIND] & STALE or over(m, int(m[n + N_EXECUTION]), self._now):
                continue
            place = (int(m[n + N_FIRST]) - shift, int(m[n + N_LAST]) - shift, int(m[n + N_KIND]))
            found.append((place, self._execution(int(m[n + N_EXECUTION]), needs=False)))
        return tuple(found)


def chain(m: Cells, row: int, following: int) -> Iterator[int]:
    """Yield the rows of a list, of which each holds the address of the next in its cell `following`."""
    row = int(row)
    while row != NONE:
        yield row
        row = int(m[row + following])
