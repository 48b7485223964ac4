"""The dependences between the operations of a window: flags and the bytes of buffers and tensors, by the tree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from castsim.execution.dataflow.pipe_operations import SetFlag, WaitFlag
from castsim.execution.tree import Access, Tree, accesses, instances, operations
from castsim.reports.views.recording import PipeSegment
from castsim.reports.views.timeline import DrawnOperation, Timeline
from castsim.timing import WAITING, Cause


@dataclass(frozen=True, slots=True)
class Dependence:
    """`consumer` needs what `producer` did; both are operation numbers, `why` names the flag or the bytes."""

    producer: int
    consumer: int
    why: str


def dependences(tree: Tree, timeline: Timeline) -> tuple[Dependence, ...]:
    """Return the dependences between operations of the window, those of flags first.

    A wait depends on the set that it consumes: sets and waits of one flag pair up in order. An instruction that reads
    bytes depends on the last one that wrote any of them; its first operation on the pipe of its main work stands for
    it, as the operation that ends last does for the writer. Programs of bundles name no bytes, so they have none.
    """
    return (*_of_flags(tree, timeline), *_of_bytes(tree, timeline))


def _of_flags(tree: Tree, timeline: Timeline) -> Iterator[Dependence]:
    shown = {row.index for row in timeline.rows}
    last = max(shown, default=-1)
    sets: dict[tuple[str, str, int], list[int]] = {}
    waits: dict[tuple[str, str, int], list[int]] = {}
    index = 0
    for lowered, _ in instances(tree):
        if index > last:
            break
        for operation in operations(lowered, None):  # no loop moves a flag
            if isinstance(operation, SetFlag):
                sets.setdefault((operation.pipe, operation.waiter, operation.event), []).append(index)
            elif isinstance(operation, WaitFlag):
                waits.setdefault((operation.signaller, operation.pipe, operation.event), []).append(index)
            index += 1
    for key, consumers in waits.items():
        for producer, consumer in zip(sets.get(key, ()), consumers, strict=False):
            if producer in shown and consumer in shown:
                yield Dependence(producer, consumer, f"flag {key[0]} -> {key[1]} id {key[2]}")


def _of_bytes(tree: Tree, timeline: Timeline) -> Iterator[Dependence]:
    shown = {row.index for row in timeline.rows}
    spans = {span.execution: span for span in timeline.spans}
    written: dict[str, list[tuple[Access, int]]] = {}
    last = max(spans, default=-1)
    for number, (lowered, deltas) in enumerate(instances(tree)):
        if number > last:
            break
        if number not in spans:
            continue
        touched = accesses(lowered, deltas)
        consumer = spans[number].first
        for access in (each for each in touched if not each.write):
            for writer, who in reversed(written.get(access.space, ())):
                if _overlap(writer, access):
                    producer = spans[who].last
                    if producer in shown and consumer in shown:
                        yield Dependence(producer, consumer, f"{access.space} bytes {_common(writer, access)}")
                    break
        for access in (each for each in touched if each.write):
            known = written.setdefault(access.space, [])
            known[:] = [(old, who) for old, who in known if old.start < access.start or old.end > access.end]
            known.append((access, number))


def _overlap(one: Access, other: Access) -> bool:
    """Whether the extents meet; rows in between that only one of them touches count as met."""
    return one.start < other.end and other.start < one.end


def _common(one: Access, other: Access) -> str:
    return f"{max(one.start, other.start)} .. {min(one.end, other.end) - 1}"


# The critical path of a window: the operations one behind the other that take all of its cycles.
#
# It is followed backwards from the operation that ends last. An operation begins to work when whatever it needed ended
# last: the operation before it on its pipe, the setting of the flag that it waited for, what wrote its bytes, or all
# of
# the operations before a barrier. Where all that had ended earlier, the cycles between belong to the issue: it had not
# been sent yet. Nothing of this is a rule of time; it is read off the cycles that the engines tell.


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
