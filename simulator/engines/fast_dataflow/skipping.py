"""Skipping the trips of a loop that do what earlier ones did.

The machine itself never jumps: a run with skipped trips is the run of a shorter loop, in which everything behind the
skipped trips is later by `offset` than the machine's own clock says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from castsim.engines.fast_dataflow.codes import ISSUED, NO_TIME, NONE, SCALAR_PIPE, STALE, WIDTH
from castsim.engines.fast_dataflow.encoding import Encoder
from castsim.engines.fast_dataflow.executions import execution_of, over
from castsim.engines.fast_dataflow.pipes import free_entry, note_latest
from castsim.engines.fast_dataflow.records import Jump, RecordShift, Stretch
from castsim.engines.fast_dataflow.relative import aged, shift
from castsim.engines.fast_dataflow.report import causes_of
from castsim.engines.fast_dataflow.snapshots import PipeState, QueueOffsets, Snapshot, StateInspection
from castsim.engines.fast_dataflow.state import AccountRow, ExecutionRow, MachineState, chain
from castsim.engines.fast_dataflow.tokens import Frame
from castsim.timing import Cause


@dataclass(frozen=True, slots=True)
class StateMatch:
    """What two snapshots of one future have in common: `frozen` pipes and `still` flags have not changed in between.

    `oldest` is the index of the oldest operation of which something may still change.
    """

    oldest: int
    frozen: list[int]
    still: list[int]


@dataclass(slots=True)
class Skipper:
    """Skips trips: holds how much later everything is, and what to add to the machine's own sums."""

    encoder: Encoder
    offset: int = 0
    executions: list[Stretch] = field(default_factory=list)
    operations: list[Stretch] = field(default_factory=list)
    _causes: list[int] = field(default_factory=list)
    _finished: int = 0
    _executed: int = 0
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
        return [each + more for each, more in zip(own, self._causes, strict=True)]

    def finished(self, m: MachineState) -> int:
        """Return how many operations have ended."""
        return m.finished + self._finished

    def progress(self, m: MachineState) -> tuple[int, int]:
        """Return the cycle that the run has reached, and how many operations have ended."""
        self._close_segment(m)
        return self._latest, self.finished(m)

    def _close_segment(self, m: MachineState) -> None:
        """Record the latest end since this was asked last."""
        if m.latest != NO_TIME:
            self._segments.append(m.latest + self.offset)
            self._latest = max(self._latest, self._segments[-1])
            m.latest = NO_TIME

    # ------------------------------------------------------------------------------------------------------- looks

    def look(self, m: MachineState, frame: Frame) -> None:
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

    def _snapshot(self, m: MachineState, frame: Frame, lag: QueueOffsets | None = None) -> Snapshot:
        self._close_segment(m)
        steps = frame.steps or {}
        spaces = self.encoder.spaces.values()
        issuer = m.issuer
        look = StateInspection(
            m, self.encoder.flags.values(), {space: frame.trip * steps.get(space, 0) for space in spaces}, lag
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
            finished=self.finished(m),
            causes=tuple(self._sums(m)),
            remaining=tuple(m.pipes[p].remaining for p in range(m.pipe_count)),
            segment=len(self._segments),
        )

    def _try(self, m: MachineState, frame: Frame, before: Snapshot, after: Snapshot) -> bool:
        """Skip as many periods as possible if the two snapshots agree; return whether any were skipped."""
        found = self._agreement(frame, before, after)
        times = self._times(m, frame, before, after, found.oldest) if found else 0
        if found is None or times < 1:
            return False
        self._jump(m, frame, before, after, times, found)
        return True

    def _agreement(self, frame: Frame, before: Snapshot, after: Snapshot) -> StateMatch | None:
        """Return in what two snapshots agree, None if they lead to different futures."""
        frozen, oldest = [], after.oldest
        for p, (one, two) in enumerate(zip(before.idle, after.idle, strict=True), 1):
            if one is None or two is None:
                continue
            if one.version == two.version or _stood_still(before, after, one.state, two.state):
                frozen.append(p)
            elif one.state == two.state:
                oldest = min(oldest, two.oldest)
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

        What was begun before now must have ended while trips still repeat, so some periods stay; and the run must come
        to its limit, if it does, outside what is skipped.
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
        self, m: MachineState, frame: Frame, before: Snapshot, after: Snapshot, times: int, found: StateMatch
    ) -> None:
        """Account for so many more repetitions of what was executed between the snapshots."""
        step = RecordShift(after.now - before.now, after.clock - before.clock, after.executions - before.executions)
        issued = [one - two for one, two in zip(before.remaining, after.remaining, strict=True)]
        self._pass(m, before, after, times, found, issued)
        self._move(m, frame, times * (after.trip - before.trip))
        frame.trip += times * (after.trip - before.trip)
        self._executed += times * step.executions
        open_one = self._open_execution(m) is not None
        first, end = (after.row - 1, after.row - 1) if open_one else (before.row, after.row)
        _note(self.executions, Jump(first, end, times, step))
        _note(self.operations, Jump(before.index, after.index, times, step))

    def _move(self, m: MachineState, frame: Frame, trips: int) -> None:
        """Move the accesses that are not over to where those of so many trips later are."""
        for space, step in (frame.steps or {}).items():
            for access in chain(m.nodes, m.spaces[space].first) if step else ():
                if not access.kind & STALE and not over(m, access.execution, m.now):
                    access.first += trips * step
                    access.last += trips * step

    def _pass(
        self,
        m: MachineState,
        before: Snapshot,
        after: Snapshot,
        times: int,
        found: StateMatch,
        issued: Sequence[int],
    ) -> None:
        """Let the time of so many repetitions pass; `issued` are the operations of each pipe that one of them skips."""
        later = times * (after.now - before.now)
        self._leave_behind(m, later, found.frozen, found.still, before.row)
        # The scalar unit falls back by what its own period is shorter.
        fallen = later - times * (after.clock - before.clock)
        m.issuer.clock -= fallen
        m.accounts[SCALAR_PIPE].cursor -= fallen
        m.maximum -= later
        segments = self._segments[before.segment : after.segment]
        if segments:
            self._segments.append(max(segments) + later)
            self._latest = max(self._latest, self._segments[-1])
        self._causes = [
            more + times * (two - one) for more, one, two in zip(self._causes, before.causes, after.causes, strict=True)
        ]
        self._finished += times * (after.finished - before.finished)
        for p, count in enumerate(issued):
            m.pipes[p].remaining -= times * count
            m.issuer.remaining -= times * count
        self.offset += later

    def _leave_behind(self, m: MachineState, later: int, frozen: list[int], still: list[int], row: int) -> None:
        """Move what has stood still since before the period into the past, in which it is."""
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


def _stood_still(before: Snapshot, after: Snapshot, one: PipeState, two: PipeState) -> bool:
    """Whether the account of an idle pipe is what it was: all that the pipe did was to come to barriers."""
    if one.flight or two.flight:
        return False
    passed, issued = after.now - before.now, after.index - before.index
    return two.local == one.local - passed and two.account == aged(one.account, AccountRow, passed, issued)


def _retire_all(m: MachineState, p: int) -> None:
    """Forget the operations in flight on a pipe, which have all ended, but for the last one to do so."""
    pipe = m.pipes[p]
    e = pipe.in_flight
    while e != NONE:
        following = m.entries[e].next
        note_latest(m, p, e)
        free_entry(m, e)
        e = following
    pipe.in_flight = pipe.in_flight_end = NONE


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


def _note(jumps: list[Stretch], jump: Jump) -> None:
    """Append a jump; those inside what it repeats become part of it."""
    inner: list[Stretch] = []
    while jumps and jumps[-1].first >= jump.first:
        inner.insert(0, jumps.pop())
    jumps.append(Jump(jump.first, jump.end, jump.times, jump.shift, tuple(inner)))
