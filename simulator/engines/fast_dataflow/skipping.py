"""Skipping the trips of a loop that do what earlier ones did.

The machine itself never jumps: a run with skipped trips is the run of a shorter loop, in which everything behind the
skipped trips is later by `offset` than the machine's own clock says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from simulator.engines.fast_dataflow.encoding import Encoder
from simulator.engines.fast_dataflow.executions import at, over
from simulator.engines.fast_dataflow.layout import (
    CAUSES_AT,
    CLOCK,
    E_END,
    E_NEXT,
    EXECUTION,
    FINISHED,
    FLAG_SIGNALS,
    INDEX,
    ISSUED,
    LATEST,
    MAXIMUM,
    N_EXECUTION,
    N_FIRST,
    N_KIND,
    N_NEXT,
    NO_TIME,
    NONE,
    NOW,
    P_CURSOR,
    P_DRAIN_END,
    P_FLIGHT,
    P_FLIGHT_END,
    P_LATEST,
    P_LATEST_END,
    P_LOCAL,
    P_REMAINING,
    PIPES,
    RECORDING,
    REMAINING,
    SCALAR_PIPE,
    SIGNIFICANT,
    SPACE_FIRST,
    STALE,
    WIDTH,
    X_END,
    X_OPEN,
    X_START,
    Cells,
)
from simulator.engines.fast_dataflow.pipes import free_entry
from simulator.engines.fast_dataflow.records import Jump, Shift
from simulator.engines.fast_dataflow.report import causes_of
from simulator.engines.fast_dataflow.snapshots import Account, Look, Snapshot, chain
from simulator.engines.fast_dataflow.tokens import Frame
from simulator.timing import Cause


@dataclass(slots=True)
class Skipper:
    """What was skipped so far: how much later everything is, and what to add to the machine's own sums."""

    encoder: Encoder
    offset: int = 0
    executions: list[Jump] = field(default_factory=list)
    operations: list[Jump] = field(default_factory=list)
    _causes: list[int] = field(default_factory=list)
    _finished: int = 0
    _executed: int = 0
    _latest: int = 0
    _segments: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._causes = [0] * (len(self.encoder.pipes) * WIDTH)

    # ------------------------------------------------------------------------------------------------------- sums

    def total(self, m: Cells) -> int:
        """Return the end of the last effect so far."""
        self._close_segment(m)
        return max(self._latest, int(m[CLOCK]) + self.offset)

    def causes(self, m: Cells, p: int) -> Mapping[Cause, int]:
        """Return the cycles of a pipe by cause."""
        return causes_of(self._sums(m), p * WIDTH)

    def _sums(self, m: Cells) -> list[int]:
        """Return the cycles of all pipes by cause."""
        end = CAUSES_AT + len(self._causes)
        return [int(own) + more for own, more in zip(m[CAUSES_AT:end], self._causes, strict=True)]

    def finished(self, m: Cells) -> int:
        """Return how many operations have ended."""
        return int(m[FINISHED]) + self._finished

    def progress(self, m: Cells) -> tuple[int, int]:
        """Return the cycle that the run has reached, and how many operations have ended."""
        self._close_segment(m)
        return self._latest, self.finished(m)

    def _close_segment(self, m: Cells) -> None:
        """Note the latest end since this was asked last."""
        latest = int(m[LATEST])
        if latest != NO_TIME:
            self._segments.append(latest + self.offset)
            self._latest = max(self._latest, self._segments[-1])
            m[LATEST] = NO_TIME

    # ------------------------------------------------------------------------------------------------------- looks

    def look(self, m: Cells, frame: Frame) -> None:
        """Compare the machine before a trip with what it was before earlier trips; skip what would repeat."""
        if frame.opens_window() or not isinstance(frame.context, dict):
            frame.context = {}
        seen: dict[object, list[Snapshot]] = frame.context
        after = self._snapshot(m, frame)
        for before in reversed(seen.get(after.hard, ())):
            if self._try(m, frame, before, after):
                frame.context = {}
                return
        seen.setdefault(after.hard, []).append(after)

    def _snapshot(self, m: Cells, frame: Frame) -> Snapshot:
        self._close_segment(m)
        steps = frame.steps or {}
        spaces = self.encoder.spaces.values()
        look = Look(m, self.encoder.flags.values(), {space: frame.trip * steps.get(space, 0) for space in spaces})
        hard, idle, flags = look.hard(), look.idle(), look.flags()
        return Snapshot(
            hard=hard,
            idle=idle,
            flags=flags,
            soft=(int(m[CLOCK] - m[NOW]), *look.soft),
            significant=int(m[SIGNIFICANT]),
            now=int(m[NOW]) + self.offset,
            clock=int(m[CLOCK]) + self.offset,
            trip=frame.trip,
            row=int(m[EXECUTION]) + 1,
            index=int(m[INDEX]),
            oldest=look.oldest,
            executions=int(m[EXECUTION]) + 1 + self._executed,
            finished=self.finished(m),
            causes=tuple(self._sums(m)),
            remaining=tuple(int(m[P_REMAINING + p]) for p in range(m[PIPES])),
            segment=len(self._segments),
        )

    def _try(self, m: Cells, frame: Frame, before: Snapshot, after: Snapshot) -> bool:
        """Skip as many periods as possible if the two snapshots agree; return whether any were skipped."""
        frozen, oldest = [], after.oldest
        for p, (one, two) in enumerate(zip(before.idle, after.idle, strict=True), 1):
            if one is None or two is None:
                continue
            if one.version == two.version or _stood_still(before, after, one.state, two.state):
                frozen.append(p)
            elif one.state == two.state:
                oldest = min(oldest, two.oldest)
            else:
                return False
        if len(after.flags) != len(before.flags):
            return False
        still = []
        for flag, one_flag, two_flag in zip(self.encoder.flags.values(), before.flags, after.flags, strict=True):
            if one_flag[0] == two_flag[0]:
                still.append(flag)
            elif one_flag[1] != two_flag[1]:
                return False
        if not _scalar_unit_agrees(before, after, frame):
            return False
        times = self._times(m, frame, before, after, oldest)
        if times < 1:
            return False
        self._jump(m, frame, before, after, times, frozen, still)
        return True

    def _times(self, m: Cells, frame: Frame, before: Snapshot, after: Snapshot, oldest: int) -> int:
        """Return how many periods can be skipped.

        What was begun before now must have ended while trips still repeat, so some periods stay; and the run must come
        to its limit, if it does, outside what is skipped.
        """
        period, issued = after.trip - before.trip, after.index - before.index
        stay = 2 + (after.index - oldest) // max(1, issued)
        times = (frame.loop.trips - after.trip) // period - stay
        limit = int(m[MAXIMUM]) + self.offset
        for reached, step in ((after.now, after.now - before.now), (after.clock, after.clock - before.clock)):
            if step:
                times = min(times, (limit - reached) // step - stay)
        return times

    def _jump(
        self,
        m: Cells,
        frame: Frame,
        before: Snapshot,
        after: Snapshot,
        times: int,
        frozen: list[int],
        still: list[int],
    ) -> None:
        """Account for so many more repetitions of what was executed between the snapshots."""
        shift = Shift(after.now - before.now, after.clock - before.clock, after.executions - before.executions)
        later = times * shift.pipes
        self._leave_behind(m, later, frozen, still, before.row)
        # The scalar unit falls back by what its own period is shorter.
        fallen = times * (shift.pipes - shift.scalar)
        m[CLOCK] -= fallen
        m[P_CURSOR + SCALAR_PIPE] -= fallen
        m[MAXIMUM] -= later
        frame.trip += times * (after.trip - before.trip)
        segments = self._segments[before.segment : after.segment]
        if segments:
            self._segments.append(max(segments) + later)
            self._latest = max(self._latest, self._segments[-1])
        self._causes = [
            more + times * (two - one) for more, one, two in zip(self._causes, before.causes, after.causes, strict=True)
        ]
        self._finished += times * (after.finished - before.finished)
        self._executed += times * shift.executions
        for p, (one, two) in enumerate(zip(before.remaining, after.remaining, strict=True)):
            m[P_REMAINING + p] -= times * (one - two)
            m[REMAINING] -= times * (one - two)
        self.offset += later
        open_one = self._open_execution(m) is not None
        first, end = (after.row - 1, after.row - 1) if open_one else (before.row, after.row)
        _note(self.executions, Jump(first, end, times, shift))
        _note(self.operations, Jump(before.index, after.index, times, shift))

    def _leave_behind(self, m: Cells, later: int, frozen: list[int], still: list[int], row: int) -> None:
        """Move what has stood still since before the period into the past, in which it is."""
        for p in frozen:
            _retire_all(m, p)
            for cell in (P_CURSOR, P_LOCAL):
                m[cell + p] -= later
            for cell in (P_DRAIN_END, P_LATEST_END):
                m[cell + p] -= later if m[cell + p] != NO_TIME else 0
        for flag in still:
            for n in chain(m, m[flag + FLAG_SIGNALS], N_NEXT):
                m[n + N_FIRST] -= later
        for space in self.encoder.spaces.values():
            for n in chain(m, m[space + SPACE_FIRST], N_NEXT):
                x = int(m[n + N_EXECUTION])
                if not m[n + N_KIND] & STALE and x < row and over(m, x, int(m[NOW])):
                    m[n + N_KIND] |= STALE
                    m[n + N_EXECUTION] = NONE
        open_one = self._open_execution(m)
        if open_one is not None:
            m[open_one + X_START] -= later
            m[open_one + X_END] -= later

    def _open_execution(self, m: Cells) -> int | None:
        """Return the row of the execution that the loop is part of, if it is part of one."""
        if m[EXECUTION] == NONE or m[at(m, int(m[EXECUTION])) + X_OPEN] & ISSUED:
            return None
        return at(m, int(m[EXECUTION]))


def _stood_still(before: Snapshot, after: Snapshot, one: Account, two: Account) -> bool:
    """Whether the account of an idle pipe is what it was: all that the pipe did was to come to barriers."""
    if one.flight or two.flight:
        return False
    passed, issued = after.now - before.now, after.index - before.index
    return two == Account(
        one.cursor - passed,
        one.local - passed,
        one.drain_end if one.drain_end == NO_TIME else one.drain_end - passed,
        one.draining if one.draining == NONE else one.draining + issued,
        one.latest_end if one.latest_end == NO_TIME else one.latest_end - passed,
        one.latest if one.latest == NONE else one.latest + issued,
        (),
    )


def _retire_all(m: Cells, p: int) -> None:
    """Forget the operations in flight on a pipe, which have all ended, but for the last one to do so."""
    for e in list(chain(m, m[P_FLIGHT + p], E_NEXT)):
        if m[e + E_END] > m[P_LATEST_END + p]:
            m[P_LATEST_END + p] = m[e + E_END]
            m[P_LATEST + p] = e if m[RECORDING] else NONE
        free_entry(m, e)
    m[P_FLIGHT + p] = m[P_FLIGHT_END + p] = NONE


def _scalar_unit_agrees(before: Snapshot, after: Snapshot, frame: Frame) -> bool:
    """Whether what the scalar unit does from now on delays the pipes as it has done since `before`."""
    one, two = before.soft, after.soft
    if one[0] == two[0] and [max(time, 0) for time in one] == [max(time, 0) for time in two]:
        return True
    if before.significant != after.significant:
        return False
    if all(b <= a for a, b in zip(one, two, strict=True)):
        return True
    # Nothing but scalar work: no pipe has done anything, nor has time passed for them.
    return (
        not frame.steps
        and before.now == after.now
        and all(
            one is None or two is None or one.version == two.version
            for one, two in zip(before.idle, after.idle, strict=True)
        )
        and all(a[0] == b[0] for a, b in zip(before.flags, after.flags, strict=True))
    )


def _note(jumps: list[Jump], jump: Jump) -> None:
    """Append a jump; those inside what it repeats become part of it."""
    inner: list[Jump] = []
    while jumps and jumps[-1].first >= jump.first:
        inner.insert(0, jumps.pop())
    jumps.append(Jump(jump.first, jump.end, jump.times, jump.shift, tuple(inner)))
