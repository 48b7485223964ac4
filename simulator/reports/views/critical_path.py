"""The critical path of a window: the operations one behind the other that take all of its cycles.

It is followed backwards from the operation that ends last. An operation begins to work when whatever it needed ended
last: the operation before it on its pipe, the setting of the flag that it waited for, what wrote its bytes, or all of
the operations before a barrier. Where all that had ended earlier, the cycles between belong to the issue: it had not
been sent yet. Nothing of this is a rule of time; it is read off the cycles that the engines tell.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from castsim.reports.views.dependences import Dependence
from castsim.reports.views.recording import PipeSegment
from castsim.reports.views.timeline import DrawnOperation, Timeline
from castsim.timing import WAITING, Cause


@dataclass(frozen=True, slots=True)
class PathStep:
    """Cycles [start, end) of the path: those of `row`, or of issue before it if `row` is None."""

    start: int
    end: int
    row: DrawnOperation | None


@dataclass(frozen=True, slots=True)
class _Known:
    """An operation with the cycles of its pipe: it works from `begin` on, and the pipe is its own until `released`."""

    row: DrawnOperation
    begin: int
    released: int
    at_barrier: bool


def critical_path(timeline: Timeline, found: Iterable[Dependence]) -> tuple[PathStep, ...]:
    """Return the path in order of its cycles; its steps share no cycle, and leave out none up to the last end.

    `found` are the dependences of the window.
    """
    known = _known(timeline)
    if not known:
        return ()
    needs: dict[int, list[int]] = {}
    for each in found:
        needs.setdefault(each.consumer, []).append(each.producer)
    before, barriers = _before_on_pipe(known), _last_before(known)
    current: _Known | None = max(known.values(), key=lambda each: (each.row.end, each.row.index))
    cycle = min(max(each.row.end for each in known.values()), timeline.end)
    steps: list[PathStep] = []
    while current is not None and cycle > timeline.start:
        begin = max(timeline.start, min(current.begin, cycle))
        if begin < cycle:
            steps.append(PathStep(begin, cycle, current.row))
        cycle, index = begin, current.row.index
        ended = [(known[each].row.end, each) for each in needs.get(index, ()) if each in known and each < index]
        if current.at_barrier and index in barriers:
            ended.append((known[barriers[index]].row.end, barriers[index]))
        if index in before:
            ended.append((known[before[index]].released, before[index]))
        possible = [each for each in ended if each[0] <= cycle]
        if not possible:
            break
        last = max(possible, key=lambda each: each[0])[0]
        # Of what ended in the same cycle, the operation before it on its pipe comes last and is taken.
        current = known[next(number for end, number in reversed(possible) if end == last)]
        if last < cycle:
            steps.append(PathStep(max(last, timeline.start), cycle, None))
            cycle = max(last, timeline.start)
    if cycle > timeline.start:
        start = timeline.start
        if steps and steps[-1].row is None:
            cycle = steps.pop().end
        steps.append(PathStep(start, cycle, None))
    return tuple(reversed(steps))


def _known(timeline: Timeline) -> Mapping[int, _Known]:
    own = timeline.by_operation()
    return {row.index: _cycles(row, own.get(row.index, ())) for row in timeline.rows}


def _cycles(row: DrawnOperation, segments: Sequence[PipeSegment]) -> _Known:
    work = [each for each in segments if each.cause not in WAITING]
    waits = len(work) < len(segments)
    released = max((each.end for each in segments), default=row.end)
    begin = work[0].start if work and not (waits and row.start == row.end) else released
    return _Known(row, begin, released, any(each.cause is Cause.BARRIER for each in segments))


def _before_on_pipe(known: Mapping[int, _Known]) -> Mapping[int, int]:
    """Return for each operation the one before it on its pipe."""
    last: dict[str, int] = {}
    found: dict[int, int] = {}
    for index in sorted(known):
        pipe = known[index].row.pipe
        if pipe in last:
            found[index] = last[pipe]
        last[pipe] = index
    return found


def _last_before(known: Mapping[int, _Known]) -> Mapping[int, int]:
    """Return for each operation the one before it, on any pipe, that ended last."""
    found: dict[int, int] = {}
    last: int | None = None
    for index in sorted(known):
        if last is not None:
            found[index] = last
        if last is None or known[index].row.end >= known[last].row.end:
            last = index
    return found
