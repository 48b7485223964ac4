"""Skipping of loop trips that repeat earlier ones.

The machine itself never jumps: a run with skipped trips is the run of a shorter loop, in which everything after the
skipped trips is later by `offset` than the machine's own clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple

from castsim.engines.fast_dataflow.encoding import Encoder, Frame
from castsim.engines.fast_dataflow.execution_rows import ExecutionRows, Jump, RecordShift, RunRecords
from castsim.engines.fast_dataflow.pipe_steps import execution_of, free_entry, note_latest, over
from castsim.engines.fast_dataflow.state import (
    ARRIVING,
    BEGUN,
    CAUSES,
    FREE,
    ISSUED,
    MARKER,
    NEVER,
    NO_TIME,
    NONE,
    SCALAR_END,
    SCALAR_PIPE,
    STALE,
    TRANSFER,
    VECTOR,
    WIDTH,
    WORKING,
    AccountRow,
    EntryRow,
    ExecutionRow,
    MachineState,
    PipeRow,
    ProgressRow,
    State,
    aged,
    chain,
    relative,
    shift,
)
from castsim.execution.pipe_operations import operation_name
from castsim.execution.timing import Cause, Execution, OperationTiming
from castsim.execution.transfer_timing import TICKS
from castsim.isa.dataclass import dataclass, field
from castsim.machines.vector_function.function_timing import words_of_cycle

# The state of a machine relative to now, as far as anything later depends on it.
#
# What of a row must agree follows from the types of its fields (`relative`); this module says which rows count. Two
# snapshots whose parts agree lead to the same future, so many cycles apart. Three parts need not agree in full:
#
# * A pipe that stands idle, or a flag, may simply not have changed in between: it is *frozen*.
# * The scalar unit runs ahead of the pipes or falls back behind them. While no pipe has had to wait for it, how far it
#   has fallen back does not matter, as long as it falls back further and further. Its times are the `soft` part.
# * In a loop of nothing but scalar work no pipe changes at all, and only the soft part moves.


class PipeState(NamedTuple):
    """The part of a pipe that decides its attribution and future: cycles since now, operations since the latest."""

    account: State
    local: int
    flight: State


@dataclass(frozen=True, slots=True)
class IdlePipe:
    """An idle pipe; `oldest` is the index of the oldest operation to which cycles may still be attributed."""

    version: int
    state: PipeState
    oldest: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The machine before a trip; `hard` must agree, `idle` and `flags` (version, state) must agree or be frozen.

    `oldest` is the index of the oldest operation that may still change. All times and numbers of executed operations
    are those of the whole program, with skipped trips; `row` and `index` those of what was executed.
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
    operations: int
    finished: int
    causes: tuple[int, ...]
    remaining: tuple[int, ...]
    segment: int


class StateInspection:
    """Inspection of a machine's state; `shifts` is the movement of accesses for each followed space."""

    def __init__(self, m: MachineState, flags: Iterable[int], shifts: dict[int, int]) -> None:
        self._m = m
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
            max(m.memory_free - now * TICKS, 0),
            self._ports(),
            tuple((result.time - now, self._since(m.entries[result.entry].index)) for result in results),
            tuple(flag.waiter for flag in self._flags),
            tuple(m.pipes[p].demands for p in pipes),
            tuple(self._space(space) for space in self._shifts),
            None if closed else self._execution(m.issuer.execution),
            tuple(None if self.is_idle(p) else self._pipe(p) for p in pipes),
        )

    def _ports(self) -> State:
        """Return ports and banks that are not free yet, or groups with the load of their latest cycle."""
        m, now = self._m, self._now
        if m.ports.grouped:
            ports, since = m.ports, now - m.ports.launched
            groups = range(ports.period)
            served = tuple((k, m.port_free[k] - now, m.bank_free[k]) for k in groups if m.port_free[k] >= now)
            if ports.launch == NONE or since * words_of_cycle(ports.period) >= m.functions[ports.launch].accesses:
                return served
            return (served, ports.launch, since)
        taken = [(k, free - now) for k, free in enumerate(m.port_free) if free > now]
        return (tuple(taken), tuple((k, free - now) for k, free in enumerate(m.bank_free) if free > now))

    def idle(self) -> tuple[IdlePipe | None, ...]:
        """Return the state of every idle pipe."""
        m = self._m
        pipes: list[IdlePipe | None] = []
        for p in range(1, m.pipe_count):
            if self.is_idle(p):
                oldest, self.oldest = self.oldest, m.issuer.index
                state = self._standing(p)
                pipes.append(IdlePipe(m.pipes[p].version, state, self.oldest))
                self.oldest = oldest
            else:
                pipes.append(None)
        return tuple(pipes)

    def flags(self) -> tuple[tuple[int, State], ...]:
        """Return version and signals of every flag."""
        states = []
        reach = max(self._m.pipes[p].reach for p in range(self._m.pipe_count))
        for flag in self._flags:
            cycles = [node.first - self._now for node in chain(self._m.nodes, flag.signals)]
            if flag.from_scalar:
                self.soft += [cycle + reach for cycle in cycles]
                cycles = [0] * len(cycles)
            states.append((flag.version, tuple(cycles)))
        return tuple(states)

    def is_idle(self, p: int) -> bool:
        """Return whether a pipe has nothing to do, and all its operations have ended."""
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
            tuple(self._queued(entry) for entry in chain(m.entries, pipe.queue)),
            tuple(self._action(entry) for entry in chain(m.entries, pipe.action)),
            None if pipe.current == NONE else self._current(p, m.entries[pipe.current]),
            (m.issuer.execution - pipe.began, m.issuer.index - pipe.began_index) if began else None,
        )

    def _since(self, index: int) -> int:
        """Return how many operations were issued since that of an index."""
        if index == NONE:
            return NONE
        self.oldest = min(self.oldest, index)
        return self._m.issuer.index - index

    def _entry(self, entry: EntryRow) -> State:
        if entry.operation == MARKER:
            return (MARKER,)
        return (entry.operation, self._since(entry.index), self._execution(entry.execution))

    def _queued(self, entry: EntryRow) -> State:
        if entry.operation != MARKER:
            reach = self._m.pipes[self._m.operations[entry.operation].pipe].reach
            self.soft.append(entry.arrival - self._now + reach)
        return self._entry(entry)

    def _action(self, entry: EntryRow) -> State:
        waits = entry.due == NEVER
        due = NEVER if waits else entry.due - self._now
        return (self._entry(entry), due, self._m.issuer.index - entry.behind if waits else 0)

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
        return (self._entry(entry), bool(entry.known), progress)

    # -------------------------------------------------------------------------------------- executions and accesses

    def _execution(self, x: int, *, needs: bool = True) -> State:
        """Return the state of an execution: open operations, its end as far as known, its needs."""
        m = self._m
        execution = execution_of(m, x)
        end = execution.end - self._now
        if execution.open & SCALAR_END:
            self.soft.append(end)
            end = 0
        waits: list[State] = []
        for need in sorted(chain(m.nodes, execution.needs) if needs else (), key=attrgetter("first")):
            if not need.kind & STALE:
                waits.append(self._execution(need.execution, needs=False))
        return (m.issuer.execution - x, execution.open, max(end, 0), tuple(waits))

    def _space(self, space: int) -> State:
        """Return the accesses in flight, as far as they can delay anything."""
        m, shift = self._m, self._shifts[space]
        intervals = []
        for node in chain(m.nodes, m.spaces[space].first):
            if node.kind & STALE or over(m, node.execution, self._now):
                continue
            interval = (node.first - shift, node.last - shift, node.kind)
            intervals.append((interval, self._execution(node.execution, needs=False)))
        return tuple(intervals)


def rows_of(m: MachineState) -> int:
    """Return the approximate number of rows that a snapshot reads: queued entries, and accesses in flight."""
    return m.live + sum(m.pipes[p].queued for p in range(1, m.pipe_count))


# From the columns of a finished machine to the timing that every engine reports.


def causes_of(cells: Sequence[int], index: int) -> Mapping[Cause, int]:
    """Return the cycles by cause from `index` on, without zeros."""
    return {cause: cells[index + k] for k, cause in enumerate(CAUSES) if cells[index + k]}


def executions(rows: ExecutionRows, jumps: Sequence[Jump]) -> RunRecords[Execution]:
    """Return all executions in program order."""

    def make(x: int, shift: RecordShift) -> Execution:
        origin = rows.origins[x]
        if origin & BEGUN:
            start = int(rows.starts[x]) + shift.pipes
        else:
            start = int(rows.starts[x]) + shift.scalar
        end = int(rows.ends[x]) + (shift.scalar if origin & SCALAR_END else shift.pipes)
        return Execution(int(rows.instructions[x]), start, end)

    return RunRecords(rows.count, jumps, make)


def operations(encoder: Encoder, jumps: Sequence[Jump]) -> RunRecords[OperationTiming]:
    """Return all recorded operations in issue order."""
    m = encoder.memory.machine
    entries = [NONE] * m.issuer.index
    for e in range(encoder.memory.size("entries")):
        if m.entries[e].index != NONE:
            entries[m.entries[e].index] = e
    names = [operation_name(operation) for operation in encoder.operations]

    def make(index: int, shift: RecordShift) -> OperationTiming:
        entry = m.entries[entries[index]]
        operation = m.operations[entry.operation]
        later = shift.scalar if operation.pipe == SCALAR_PIPE else shift.pipes
        return OperationTiming(
            index=index + shift.operations,
            execution=entry.execution + shift.executions,
            pipe=encoder.pipes[operation.pipe],
            name=names[entry.operation],
            start=entry.start + later,
            end=entry.end + later,
            causes=causes_of(m.operation_causes, index * WIDTH),
        )

    return RunRecords(len(entries), jumps, make)


@dataclass(frozen=True, slots=True)
class StateMatch:
    """The agreement of two equivalent snapshots: `frozen` pipes and `still` flags have not changed in between.

    `oldest` is the index of the oldest operation that may still change.
    """

    oldest: int
    frozen: list[int]
    still: list[int]


@dataclass(slots=True)
class Skipper:
    """Skipper of trips: it stores how much later everything is, and the additions to the machine's own sums."""

    encoder: Encoder
    offset: int = 0
    executions: list[Jump] = field(default_factory=list)
    operations: list[Jump] = field(default_factory=list)
    _causes: list[int] = field(default_factory=list)
    _finished: int = 0
    _executed: int = 0
    _issued: int = 0
    _latest: int = 0
    _segments: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._causes = [0] * (len(self.encoder.pipes) * WIDTH)

    # ------------------------------------------------------------------------------------------------------- sums

    def total(self, m: MachineState) -> int:
        """Return the end of the last effect so far."""
        self._close_segment(m)
        return max(self._latest, m.issuer.clock + self.offset)

    def causes(self, m: MachineState, p: int) -> Mapping[Cause, int]:
        """Return the cycles of a pipe by cause."""
        return causes_of(self._sums(m), p * WIDTH)

    def _sums(self, m: MachineState) -> list[int]:
        """Return the cycles of all pipes by cause."""
        own = m.causes[: len(self._causes)]
        return [cells + more for cells, more in zip(own, self._causes, strict=True)]

    def finished(self, m: MachineState) -> int:
        """Return how many operations have ended."""
        return m.finished + self._finished

    def progress(self, m: MachineState) -> tuple[int, int]:
        """Return the cycle that the run has reached, and the number of finished operations."""
        self._close_segment(m)
        return self._latest, self.finished(m)

    def _close_segment(self, m: MachineState) -> None:
        """Record the latest end since the previous call."""
        if m.latest != NO_TIME:
            self._segments.append(m.latest + self.offset)
            self._latest = max(self._latest, self._segments[-1])
            m.latest = NO_TIME

    # ------------------------------------------------------------------------------------------------------- looks

    def look(self, m: MachineState, frame: Frame) -> None:
        """Compare the machine before a trip with earlier ones; skip the trips that would repeat."""
        if not frame.is_worth(rows_of(m)):
            return
        if frame.opens_window() or not isinstance(frame.context, dict):
            frame.context = {}
        seen: dict[object, list[Snapshot]] = frame.context
        after = self._snapshot(m, frame)
        for before in reversed(seen.get(after.hard, ())):
            if self._try(m, frame, before, after):
                frame.context = {}
                return
        seen.setdefault(after.hard, []).append(after)

    def _snapshot(self, m: MachineState, frame: Frame) -> Snapshot:
        self._close_segment(m)
        steps = frame.steps.spaces or {}
        spaces = self.encoder.spaces.values()
        issuer = m.issuer
        look = StateInspection(
            m, self.encoder.flags.values(), {space: frame.trip * steps.get(space, 0) for space in spaces}
        )
        hard, idle, flags = look.hard(), look.idle(), look.flags()
        return Snapshot(
            hard=hard,
            idle=idle,
            flags=flags,
            soft=(issuer.clock - m.now, *look.soft),
            significant=issuer.significant,
            now=m.now + self.offset,
            clock=issuer.clock + self.offset,
            trip=frame.trip,
            row=issuer.execution + 1,
            index=issuer.index,
            oldest=look.oldest,
            executions=issuer.execution + 1 + self._executed,
            operations=issuer.index + self._issued,
            finished=self.finished(m),
            causes=tuple(self._sums(m)),
            remaining=tuple(m.pipes[p].remaining for p in range(m.pipe_count)),
            segment=len(self._segments),
        )

    def _try(self, m: MachineState, frame: Frame, before: Snapshot, after: Snapshot) -> bool:
        """Skip as many periods as possible if the two snapshots agree; return whether any were skipped."""
        match = self._agreement(frame, before, after)
        times = self._times(m, frame, before, after, match.oldest) if match else 0
        if match is None or times < 1:
            return False
        self._jump(m, frame, before, after, times, match)
        return True

    def _agreement(self, frame: Frame, before: Snapshot, after: Snapshot) -> StateMatch | None:
        """Return the agreement of two snapshots, None if they lead to different futures."""
        frozen, oldest = [], after.oldest
        for p, (earlier, later) in enumerate(zip(before.idle, after.idle, strict=True), 1):
            if earlier is None or later is None:
                continue
            if earlier.version == later.version or _stood_still(before, after, p):
                frozen.append(p)
            elif earlier.state == later.state:
                oldest = min(oldest, later.oldest)
            else:
                return None
        if len(after.flags) != len(before.flags):
            return None
        still = []
        for flag, one_flag, two_flag in zip(self.encoder.flags.values(), before.flags, after.flags, strict=True):
            if one_flag[0] == two_flag[0]:
                still.append(flag)
            elif one_flag[1] != two_flag[1]:
                return None
        return StateMatch(oldest, frozen, still) if _scalar_unit_agrees(before, after, frame) else None

    def _times(self, m: MachineState, frame: Frame, before: Snapshot, after: Snapshot, oldest: int) -> int:
        """Return how many periods can be skipped.

        Operations begun before now must have ended while trips still repeat, so some periods stay; the run must meet
        its limit, if it does, outside the skipped trips.
        """
        period, issued = after.trip - before.trip, after.index - before.index
        stay = 2 + (after.index - oldest) // max(1, issued)
        times = (frame.loop.trips - after.trip) // period - stay
        limit = m.maximum + self.offset
        for reached, step in ((after.now, after.now - before.now), (after.clock, after.clock - before.clock)):
            if step:
                times = min(times, (limit - reached) // step - stay)
        return times

    def _jump(
        self, m: MachineState, frame: Frame, before: Snapshot, after: Snapshot, times: int, match: StateMatch
    ) -> None:
        """Add a number of repetitions of what was executed between the snapshots."""
        step = RecordShift(
            pipes=after.now - before.now,
            scalar=after.clock - before.clock,
            executions=after.executions - before.executions,
            operations=after.operations - before.operations,
        )
        issued = [old - new for old, new in zip(before.remaining, after.remaining, strict=True)]
        later = times * step.pipes
        self._leave_behind(m, later, match.frozen, match.still, before.row)
        # The scalar unit falls back by what its own period is shorter.
        fallen = later - times * step.scalar
        m.issuer.clock -= fallen
        m.accounts[SCALAR_PIPE].cursor -= fallen
        m.maximum -= later
        segments = self._segments[before.segment : after.segment]
        if segments:
            self._segments.append(max(segments) + later)
            self._latest = max(self._latest, self._segments[-1])
        self._causes = [
            more + times * (new - old) for more, old, new in zip(self._causes, before.causes, after.causes, strict=True)
        ]
        self._finished += times * (after.finished - before.finished)
        for p, count in enumerate(issued):
            m.pipes[p].remaining -= times * count
            m.issuer.remaining -= times * count
        self.offset += later
        self._move(m, frame, times * (after.trip - before.trip))
        frame.trip += times * (after.trip - before.trip)
        self._executed += times * step.executions
        self._issued += times * step.operations
        open_one = self._open_execution(m) is not None
        first, end = (after.row - 1, after.row - 1) if open_one else (before.row, after.row)
        _note(self.executions, Jump(first, end, times, step))
        _note(self.operations, Jump(before.index, after.index, times, step))

    def _move(self, m: MachineState, frame: Frame, trips: int) -> None:
        """Move the accesses that are not over to where those of so many trips later are."""
        for space, step in (frame.steps.spaces or {}).items():
            for access in chain(m.nodes, m.spaces[space].first) if step else ():
                if not access.kind & STALE and not over(m, access.execution, m.now):
                    access.first += trips * step
                    access.last += trips * step

    def _leave_behind(self, m: MachineState, later: int, frozen: list[int], still: list[int], row: int) -> None:
        """Move everything unchanged since before the period into the past."""
        for p in frozen:
            _retire_all(m, p)
            m.pipes[p].local -= later
            shift(m.accounts[p], AccountRow, later)
        for flag in still:
            for signal in chain(m.nodes, m.flags[flag].signals):
                signal.first -= later
        for space in self.encoder.spaces.values():
            for access in chain(m.nodes, m.spaces[space].first):
                x = access.execution
                if not access.kind & STALE and x < row and over(m, x, m.now):
                    access.kind |= STALE
                    access.execution = NONE
        open_one = self._open_execution(m)
        if open_one is not None:
            open_one.start -= later
            open_one.end -= later

    def _open_execution(self, m: MachineState) -> ExecutionRow | None:
        """Return the row of the execution that the loop is part of, if it is part of one."""
        latest = m.issuer.execution
        if latest == NONE or execution_of(m, latest).open & ISSUED:
            return None
        return execution_of(m, latest)


def _stood_still(before: Snapshot, after: Snapshot, p: int) -> bool:
    """Return whether the attribution of an idle pipe is unchanged: the pipe only reached barriers of all pipes.

    Its own operations that take no time, such as flags, have the time at which it became idle.
    """
    idle = before.idle[p - 1], after.idle[p - 1]
    if idle[0] is None or idle[1] is None or before.remaining[p] != after.remaining[p]:
        return False
    earlier, later = idle[0].state, idle[1].state
    if earlier.flight or later.flight:
        return False
    passed, issued = after.now - before.now, after.index - before.index
    return later.local == earlier.local - passed and later.account == aged(earlier.account, AccountRow, passed, issued)


def _retire_all(m: MachineState, p: int) -> None:
    """Remove the operations in flight on a pipe, which have all ended, except the last one to end."""
    pipe = m.pipes[p]
    e = pipe.in_flight
    while e != NONE:
        following = m.entries[e].next
        note_latest(m, p, e)
        free_entry(m, e)
        e = following
    pipe.in_flight = pipe.in_flight_end = NONE


def _scalar_unit_agrees(before: Snapshot, after: Snapshot, frame: Frame) -> bool:
    """Return whether the scalar unit's future operations delay the pipes as since `before`."""
    earlier, later = before.soft, after.soft
    if earlier[0] == later[0] and [max(time, 0) for time in earlier] == [max(time, 0) for time in later]:
        return True
    if before.significant != after.significant:
        return False
    if all(b <= a for a, b in zip(earlier, later, strict=True)):
        return True
    # Nothing but scalar work: no pipe has done anything, nor has time passed for them.
    return (
        not frame.steps.spaces
        and before.now == after.now
        and all(
            first is None or second is None or first.version == second.version
            for first, second in zip(before.idle, after.idle, strict=True)
        )
        and all(a[0] == b[0] for a, b in zip(before.flags, after.flags, strict=True))
    )


def _note(jumps: list[Jump], jump: Jump) -> None:
    """Append a jump; those inside its repeated part become part of it."""
    inner: list[Jump] = []
    while jumps and jumps[-1].first >= jump.first:
        inner.insert(0, jumps.pop())
    jumps.append(Jump(jump.first, jump.end, jump.times, jump.shift, tuple(inner)))
