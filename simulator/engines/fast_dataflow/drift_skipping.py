"""Skipping trips of loops in which groups of pipes drift apart (`drifting`): a period for each group.

Two snapshots agree if they do but for the trips that a group has not begun and that stand in its queues, and if each
of these is there long before it is taken. The fastest group has done more trips in between than the others; so many
times more are skipped for each as fit into the loop of the fastest. The others, which must all fall behind alike, are
owed the rest: they execute it alone, behind the loop. The scalar unit has issued all that long before, so it is put
back to where it was.

Requests of one cycle are served in the order of the program. So a slower group must be behind the faster ones for
certain: then it goes first, however far behind.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate

from castsim.engines.fast_dataflow.records import Copy, Jump, Part, Parts, RecordShift, Stretch, parts_of
from castsim.engines.fast_dataflow.skipping import QueueOffsets, Skipper, Snapshot, StateMatch, rows_of
from castsim.engines.fast_dataflow.state import MachineState, chain, entries_of
from castsim.engines.fast_dataflow.state_codes import MARKER, NONE, SCALAR_PIPE, WIDTH
from castsim.engines.fast_dataflow.tokens import Aside, Frame

# What is reported of a loop whose pipes drifted apart: the trips of each group of pipes repeat for themselves.
#
# What was executed lies in runs of trips: first whole trips, then such of the groups that had fallen behind. Each
# group (and the scalar unit, where an execution is nothing but its work) has executed all of its trips in their order,
# with jumps of its own; the program's order is that of whole trips.


@dataclass(frozen=True, slots=True)
class TripRun:
    """Executed records from `first` to before `end`: trips that consist of records of the groups in `pattern`."""

    first: int
    end: int
    pattern: tuple[int, ...]

    def places_of(self, group: int) -> tuple[int, ...]:
        """Return where the records of a group stand in a trip."""
        return tuple(place for place, each in enumerate(self.pattern) if each == group)

    def before(self, row: int, group: int) -> int:
        """Return how many records of a group this has before a row."""
        trips, place = divmod(min(max(row, self.first), self.end) - self.first, len(self.pattern))
        return trips * len(self.places_of(group)) + self.pattern[:place].count(group)


@dataclass(frozen=True, slots=True)
class _GroupRows:
    """The rows of one group by their number among them."""

    group: int
    runs: tuple[TripRun, ...]

    def starts(self) -> list[int]:
        """Return how many rows lie before each run, and in all."""
        return [0, *accumulate(run.before(run.end, self.group) for run in self.runs)]

    def number(self, row: int) -> int:
        """Return how many rows of the group lie before a row."""
        return sum(run.before(row, self.group) for run in self.runs)

    def row(self, starts: Sequence[int], number: int) -> int:
        """Return a row by its number."""
        at = bisect_right(starts, number) - 1
        run = self.runs[at]
        places = run.places_of(self.group)
        trip, place = divmod(number - starts[at], len(places))
        return run.first + trip * len(run.pattern) + places[place]


@dataclass(frozen=True, slots=True)
class Weave:
    """The records of such a loop: `runs` of trips, the jumps of each group in the numbers of its own records.

    `pattern` are the groups of a whole trip's records, for each of which the scalar unit, waiting for nothing, takes
    `cost` cycles; everything behind is later by `offset` cycles.
    """

    runs: tuple[TripRun, ...]
    pattern: tuple[int, ...]
    jumps: tuple[tuple[Jump, ...], ...]
    cost: int
    offset: int

    @property
    def first(self) -> int:
        """The first record."""
        return self.runs[0].first

    @property
    def end(self) -> int:
        """The first record behind."""
        return self.runs[-1].end

    def total(self) -> RecordShift:
        """Return how much later everything behind is than it was executed."""
        return RecordShift(self.offset, self.offset, self.part(RecordShift()).length - (self.end - self.first))

    def part(self, offset: RecordShift) -> Part:
        """Return all trips in the program's order, later by `offset`."""
        return _Woven(self, offset)


class _Woven:
    """The trips of a loop in the program's order."""

    def __init__(self, weave: Weave, offset: RecordShift) -> None:
        self._weave = weave
        self._offset = offset
        self._pattern = weave.pattern
        self._rows = [_GroupRows(group, weave.runs) for group in range(len(weave.jumps))]
        self._starts = [rows.starts() for rows in self._rows]
        self._parts = [
            Parts(parts_of(0, starts[-1], jumps, offset), 1, RecordShift())
            for starts, jumps in zip(self._starts, weave.jumps, strict=True)
        ]
        self._places = [[k for k, each in enumerate(self._pattern) if each == rows.group] for rows in self._rows]
        self._rank = [self._pattern[:place].count(group) for place, group in enumerate(self._pattern)]
        group = self._pattern[0]
        self.length: int = self._parts[group].length // len(self._places[group]) * len(self._pattern)

    def find(self, index: int, shift: RecordShift) -> tuple[int, RecordShift]:
        """Return the row of a record and how much later it is than executed."""
        trip, place = divmod(index, len(self._pattern))
        group = self._pattern[place]
        number, later = self._parts[group].find(trip * len(self._places[group]) + self._rank[place], shift)
        return self._rows[group].row(self._starts[group], number), self._opened(later, index, shift)

    def walk(self, shift: RecordShift) -> Iterator[tuple[int, RecordShift]]:
        """Yield all records in order."""
        walks = [part.walk(shift) for part in self._parts]
        for index in range(self.length):
            group = self._pattern[index % len(self._pattern)]
            number, later = next(walks[group])
            yield self._rows[group].row(self._starts[group], number), self._opened(later, index, shift)

    def repeated(self, first: Copy, last: Copy, times: int) -> Iterator[tuple[int, Copy, Copy, int]]:
        """Yield every executed row with its first and its last copy, and how many there are."""
        for rows, starts, part in zip(self._rows, self._starts, self._parts, strict=True):
            for number, one, other, copies in part.repeated((first[0], 0), (last[0], 0), times):
                begin, end = self._index(rows.group, one[1]), self._index(rows.group, other[1])
                yield (
                    rows.row(starts, number),
                    (self._opened(one[0], begin, first[0]), first[1] + begin),
                    (self._opened(other[0], end, last[0]), last[1] + end),
                    copies,
                )

    def _index(self, group: int, number: int) -> int:
        """Return the number among all records of one of a group."""
        trip, place = divmod(number, len(self._places[group]))
        return trip * len(self._pattern) + self._places[group][place]

    def _opened(self, later: RecordShift, index: int, shift: RecordShift) -> RecordShift:
        """Add when the scalar unit opened a record: so many trips behind that in the same place of the first."""
        trip, place = divmod(index, len(self._pattern))
        cycles = shift.scalar + self._offset.scalar + trip * self._weave.cost
        return replace(later, opened=(self._weave.first + place, cycles))


def jumps_of(group: int, runs: tuple[TripRun, ...], jumps: Sequence[Stretch]) -> tuple[Jump, ...]:
    """Return those jumps over rows that concern a group, in the numbers of its own records."""
    rows = _GroupRows(group, runs)
    found = []
    for jump in jumps:
        first, end = rows.number(jump.first), rows.number(jump.end)
        if first < end and isinstance(jump, Jump):  # nothing is woven inside
            found.append(Jump(first, end, jump.times, jump.shift, jumps_of(group, runs, jump.inner)))
    return tuple(found)


_APART = 4
"""Trips by which pipes must be apart to be looked at for longer."""


@dataclass(frozen=True, slots=True)
class _Look:
    """A snapshot without the trips by which each group is behind (`lags`).

    By pipe: entries that are `queued`, and of these `settled` for now; index of the `head` of the queue, and of the
    `oldest` operation at work.
    """

    snapshot: Snapshot
    lags: tuple[int, ...]
    queued: tuple[int, ...]
    settled: tuple[int, ...]
    head: tuple[int, ...]
    oldest: tuple[int, ...]


@dataclass(slots=True)
class _Drift:
    """A loop whose groups drift: its first execution, looks by what must agree, then jumps and trips on the way."""

    first: int
    seen: dict[object, list[_Look]] = field(default_factory=dict)
    jumps: tuple[Jump, ...] = ()
    runs: list[TripRun] = field(default_factory=list)
    later: int = 0
    cost: int = 0
    clock: int = 0
    cursor: int = 0
    significant: int = 0
    spent: tuple[int, ...] = ()


@dataclass(slots=True)
class DriftSkipper(Skipper):
    """Skips trips, also where pipes drift apart. `drifted`: whether any were; `read`: rows that looks have read."""

    drifted: bool = False
    read: int = 0

    def look(self, m: MachineState, frame: Frame) -> None:
        """Compare the machine before a trip with what it was before earlier trips; skip what would repeat."""
        trip = frame.trip
        if trip == 0 and frame.groups is not None:
            frame.drift = _Drift(m.issuer.execution + 1)
        rows = rows_of(m)
        if not frame.is_worth(rows):
            return
        self.read += rows
        if frame.is_in_window():
            Skipper.look(self, m, frame)
        if frame.groups is None:
            return
        if frame.trip != trip or m.interlocked or m.recording or not isinstance(frame.drift, _Drift):
            frame.groups = None  # what was skipped is not known trip by trip
            return
        self._look_apart(m, frame, frame.drift)

    def _look_apart(self, m: MachineState, frame: Frame, drift: _Drift) -> None:
        """Do the same group by group."""
        lags = self._lags(m, frame)
        if not any(lags):
            return
        frame.drifts = frame.drifts or max(lags) >= _APART
        if frame.opens_window() and not frame.drifts:
            drift.seen = {}
        after = self._look(m, frame, lags)
        phases = tuple((frame.trip - lag) % frame.turn for lag in lags)
        seen = drift.seen.setdefault((after.snapshot.hard, phases), [])
        for before in reversed(seen):
            found = self._agreement_apart(frame, before, after)
            if found is None:
                continue
            times = self._times(m, frame, before.snapshot, after.snapshot, found.oldest)
            if times >= 1:
                self._jump_apart(m, frame, drift, before, after, times, found)
                return
        seen.append(after)

    # -------------------------------------------------------------------------------------------------- what it sees

    def _numbers(self, frame: Frame, group: int) -> list[int]:
        """Return the pipes of a group."""
        assert frame.groups is not None
        return [p for p, name in enumerate(self.encoder.pipes) if name in frame.groups.pipes[group]]

    def _entries(self, frame: Frame, p: int) -> int:
        """Return how many operations of a trip go to a pipe."""
        assert frame.groups is not None
        return frame.groups.entries.get(self.encoder.pipes[p], 0)

    def _lags(self, m: MachineState, frame: Frame) -> tuple[int, ...]:
        """Return how many whole trips stand in all the queues of each group."""
        assert frame.groups is not None
        found = []
        for group in range(len(frame.groups.pipes)):
            whole = (m.pipes[p].queued // self._entries(frame, p) for p in self._numbers(frame, group))
            found.append(min(frame.trip, *whole))
        return tuple(found)

    def _look(self, m: MachineState, frame: Frame, lags: tuple[int, ...]) -> _Look:
        groups, count = frame.groups, m.pipe_count
        assert groups is not None
        trips = [0] * count
        for group, behind in enumerate(lags):
            for p in self._numbers(frame, group):
                trips[p] = behind
        lag = QueueOffsets(
            tuple(trip * groups.operations for trip in trips),
            tuple(trip * len(groups.pattern) for trip in trips),
            tuple(trip * self._entries(frame, p) for p, trip in enumerate(trips)),
        )
        queues = [[*chain(m.entries, pipe.queue)] for pipe in m.pipes[:count]]
        index = m.issuer.index
        return _Look(
            self._snapshot(m, frame, lag),
            lags,
            tuple(len(queue) for queue in queues),
            tuple(
                sum(each.operation == MARKER or each.arrival + m.pipes[p].reach <= m.now for each in queue)
                for p, queue in enumerate(queues)
            ),
            tuple(queue[0].index if queue else index for queue in queues),
            tuple(self._oldest(m, p) for p in range(count)),
        )

    def _oldest(self, m: MachineState, p: int) -> int:
        """Return the index of the oldest operation of a pipe that is not over, of the next to be issued if none is."""
        return min((entry.index for entry in entries_of(m, p) if entry.index != NONE), default=m.issuer.index)

    # ------------------------------------------------------------------------------------------------- what it skips

    def _agreement_apart(self, frame: Frame, before: _Look, after: _Look) -> StateMatch | None:
        """Return in what two looks agree, None if they lead to different futures."""
        groups, one, two = frame.groups, before.snapshot, after.snapshot
        assert groups is not None
        trips, issued = two.trip - one.trip, one.index
        grown = [now - then for then, now in zip(before.lags, after.lags, strict=True)]
        # Groups that fall behind do so together: else they could change places once the others have done.
        if len({*grown, 0}) != 2 or not all(0 <= each < trips and each % frame.turn == 0 for each in grown):
            return None
        for group, more in enumerate(grown):
            own = trips - more
            for p in self._numbers(frame, group):
                entries = self._entries(frame, p)
                if after.queued[p] - before.queued[p] != more * entries:
                    return None
                if (before.lags[group] or after.lags[group]) and before.settled[p] < 2 * own * entries:
                    return None
                if issued - before.lags[group] * groups.operations - before.oldest[p] > own * groups.operations:
                    return None
        for group, more in enumerate(grown):
            ahead = [p for g, less in enumerate(grown) if less < more for p in self._numbers(frame, g)]
            first = min((before.oldest[p] for p in ahead), default=None)
            if first is not None and any(after.head[p] >= first for p in self._numbers(frame, group)):
                return None
        return self._agreement(frame, one, two)

    def _jump_apart(
        self,
        m: MachineState,
        frame: Frame,
        drift: _Drift,
        before: _Look,
        after: _Look,
        times: int,
        found: StateMatch,
    ) -> None:
        """Account for so many more repetitions, of which every group has done its own trips."""
        groups, one, two = frame.groups, before.snapshot, after.snapshot
        assert groups is not None
        trips = two.trip - one.trip
        issued = [0] * m.pipe_count
        jumps = []
        step = RecordShift(two.now - one.now, two.clock - one.clock)
        for group, (then, now) in enumerate(zip((*before.lags, 0), (*after.lags, 0), strict=True)):
            rows = groups.pattern.count(group)
            jumps.append(Jump((one.trip - then) * rows, (two.trip - now) * rows, times, step))
            for p in self._numbers(frame, group) if group < len(groups.pipes) else ():
                issued[p] = (trips - now + then) * self._entries(frame, p)
        self._pass(m, one, two, times, found, issued)
        drift.jumps, drift.later, drift.cost = tuple(jumps), times * step.pipes, step.scalar // trips
        frame.owed = tuple(times * (now - then) for then, now in zip(before.lags, after.lags, strict=True))
        frame.trip += times * trips
        frame.steps = None  # it is not looked at any more
        frame.context = None
        drift.seen = {}
        self.drifted = True

    # ------------------------------------------------------------------------------------------------ behind the loop

    def turn_aside(self, m: MachineState, aside: Aside) -> None:
        """Begin with trips that some groups execute alone, or go on behind them."""
        drift, groups, row = aside.frame.drift, aside.frame.groups, m.issuer.execution + 1
        assert isinstance(drift, _Drift)
        assert groups is not None
        if drift.runs:
            drift.runs[-1] = TripRun(drift.runs[-1].first, row, drift.runs[-1].pattern)
        else:
            drift.runs.append(TripRun(drift.first, row, groups.pattern))
            account = m.accounts[SCALAR_PIPE]
            drift.clock, drift.cursor = m.issuer.clock + self.offset, account.cursor + self.offset
            drift.significant, drift.spent = m.issuer.significant, tuple(self._sums(m)[:WIDTH])
        if aside.groups:
            drift.runs.append(TripRun(row, row, tuple(each for each in groups.pattern if each in aside.groups)))
        else:
            self._rejoin(m, aside.frame, drift)

    def _rejoin(self, m: MachineState, frame: Frame, drift: _Drift) -> None:
        """Put the scalar unit back to where it was, and weave the executions of all groups."""
        groups, issuer = frame.groups, m.issuer
        assert groups is not None
        if issuer.significant != drift.significant or issuer.clock > m.now:
            m.late = 1  # something had to wait for the scalar unit, so it is done again without skipping
        issuer.clock = drift.clock - self.offset
        m.accounts[SCALAR_PIPE].cursor = drift.cursor - self.offset
        for cause, spent in enumerate(drift.spent):
            self._causes[cause] = spent - m.causes[SCALAR_PIPE * WIDTH + cause]
        self._finished -= sum(owed * groups.scalar[group] for group, owed in enumerate(frame.owed))
        runs = tuple(drift.runs)
        own: list[Stretch] = []
        while self.executions and self.executions[-1].first >= drift.first:
            own.insert(0, self.executions.pop())
        offset = drift.later + sum(jump.total().pipes for jump in own)
        jumps = tuple((jump, *jumps_of(group, runs, own)) for group, jump in enumerate(drift.jumps))
        self.executions.append(Weave(runs, groups.pattern, jumps, drift.cost, offset))
