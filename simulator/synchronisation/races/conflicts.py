"""Accesses to the same bytes that nothing keeps in order.

Of each access the latest execution per pipe is remembered: whoever waits for it has waited for those before it on the
same pipe. Global memory that the program only reads, or that one pipe alone touches, is not followed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from castsim.execution.byte_sets import Bytes, common_bytes
from castsim.execution.tree import Instruction, Tree
from castsim.synchronisation.flags.touches import Touch
from castsim.synchronisation.hazards import contended_spaces, hazard_between
from castsim.synchronisation.races.clocks import Clock
from castsim.synchronisation.races.findings import Finding, RaceKind, RaceRegion
from castsim.synchronisation.races.unrolling import Instance, distance
from castsim.targets.dataflow import DataflowTarget, Hazard

_VERBS = {True: "writes", False: "reads"}


@dataclass(frozen=True, slots=True)
class _Record:
    instance: Instance
    touch: Touch
    count: int


_PAGE, _MOST_PAGES = 512, 128
"""Bytes of a page, and how many an access may touch to be listed under each of them."""


class _Accesses:
    """The latest accesses to one memory, in the order in which they first came; found by the pages that they touch."""

    def __init__(self) -> None:
        self._numbers: dict[object, int] = {}
        self._records: list[_Record] = []
        self._by_page: dict[int | None, list[int]] = {None: []}  # None: those that may be anywhere

    def put(self, key: object, record: _Record) -> None:
        """Remember an access, instead of an earlier one with its key."""
        number = self._numbers.setdefault(key, len(self._records))
        if number < len(self._records):
            self._records[number] = record
            return
        self._records.append(record)
        for page in _pages(record.touch) or (None,):
            self._by_page.setdefault(page, []).append(number)

    def near(self, touch: Touch) -> list[_Record]:
        """Return the accesses that may have bytes in common with another one."""
        pages = _pages(touch)
        if pages is None:
            return list(self._records)
        found = {number for page in (None, *pages) for number in self._by_page.get(page, ())}
        return [self._records[number] for number in sorted(found)]


def _pages(touch: Touch) -> range | None:
    """Return the pages that an access touches, None where a loop moves it or there are many."""
    first, last = touch.access.start // _PAGE, touch.access.end // _PAGE
    return None if any(touch.steps) or last - first >= _MOST_PAGES else range(first, last + 1)


class Conflicts:
    """The latest accesses, and what was found; `numbers` are the places of the pipes in a clock."""

    def __init__(self, tree: Tree, target: DataflowTarget, numbers: Mapping[str, int]) -> None:
        self._instructions = tree.instructions
        self._vector = target.pipes.vector
        self._required = target.synchronisation.required_barriers
        self._unordered = target.synchronisation.unordered_bytes
        self._numbers = numbers
        self._told: set[tuple[int, int, RaceKind]] = set()
        self._latest = {space: _Accesses() for space in contended_spaces(tree.root, tree.instructions, self._vector)}

    def start(self, instance: Instance, pipe: str, known: Clock, count: int) -> Iterator[Finding]:
        """Take in an execution that starts on `pipe` as number `count`; yield what it may overtake."""
        followed = [touch for touch in instance.touches if touch.access.space in self._latest]
        for touch in followed:
            for record in self._latest[touch.access.space].near(touch):
                hazard = hazard_between(record.touch.access, touch.access)
                if hazard is None or known[self._numbers[record.touch.pipe]] >= record.count:
                    continue
                if record.touch.pipe == pipe and (
                    pipe != self._vector or hazard not in self._required or self._follows(record, instance, touch)
                ):
                    continue
                yield from self._compare(record, instance, touch, hazard)
        for touch in followed:
            self._latest[touch.access.space].put(_key(instance, touch), _Record(instance, touch, count))

    def _follows(self, record: _Record, instance: Instance, touch: Touch) -> bool:
        """Whether a vector instruction may follow closely: it reads exactly the bytes that were written, and many."""
        wrote = record.touch
        start, end = wrote.access.start, wrote.access.end
        if self._unordered is None or not wrote.access.write or wrote.access.runs or end - start < self._unordered:
            return False
        if (touch.access.start, touch.access.end) != (start, end) or not _move_alike(record, instance, touch):
            return False
        return any(
            (each.access.space, each.access.start, each.access.end) == (wrote.access.space, start, end)
            and not (each.access.write or each.access.runs)
            and each.steps == touch.steps
            for each in instance.touches
        )

    def _compare(self, record: _Record, instance: Instance, touch: Touch, hazard: Hazard) -> Iterator[Finding]:
        """Compare bytes with an access that may not have ended."""
        kind = RaceKind.MISSING_BARRIER if record.touch.pipe == touch.pipe else RaceKind.RACE
        pair = (record.instance.lowered.instruction, instance.lowered.instruction, kind)
        if pair in self._told:
            return
        found = _meet(record, instance, touch)
        if found is not None:
            self._told.add(pair)
            yield self._finding(record, instance, touch, (kind, hazard, RaceRegion(touch.access.space, *found)))

    def _finding(
        self, record: _Record, instance: Instance, touch: Touch, what: tuple[RaceKind, Hazard, RaceRegion]
    ) -> Finding:
        kind, hazard, region = what
        first = self._instructions[record.instance.lowered.instruction]
        second = self._instructions[instance.lowered.instruction]
        verb = "write" if record.touch.access.write else "read"
        message = (
            f"{second.text} ({second.span}) on {touch.pipe} {_VERBS[touch.access.write]} {region} while {first.text} "
            f"({first.span}) on {record.touch.pipe}{_when(record.instance, instance)} may still {verb} them ({hazard})"
        )
        pipes = (record.touch.pipe, touch.pipe)
        spans = (first.span, second.span)
        return Finding(kind, message, spans, pipes, region, self._missing(first, second, pipes))

    def _missing(self, first: Instruction, second: Instruction, pipes: tuple[str, str]) -> str:
        one, other = pipes
        if one == other:
            return f"barrier {one} before line {second.span.line}"
        return (
            f"set_flag {one} -> {other} after line {first.span.line} and wait_flag {one} -> {other} before line "
            f"{second.span.line}, or a barrier on all pipes"
        )


def _move_alike(record: _Record, instance: Instance, touch: Touch) -> bool:
    """Whether no loop moves two accesses apart: none moves either, or they are in the same trip and move together."""
    if not any(record.touch.steps) and not any(touch.steps):
        return True
    return record.touch.steps == touch.steps and record.instance.path == instance.path


def _when(first: Instance, second: Instance) -> str:
    """Say in which trip the first of two executions is, seen from the second."""
    for mine, theirs in zip(first.path, second.path, strict=False):
        if mine.entry != theirs.entry:
            break
        if mine.slot != theirs.slot:
            return " of an earlier trip"
    return ""


def _meet(record: _Record, instance: Instance, touch: Touch) -> Bytes | None:
    """Return bytes that both touch; the order in the program says how loops move them."""
    if not any(record.touch.steps) and not any(touch.steps):
        return common_bytes(record.touch.access, touch.access)
    if record.instance.number <= instance.number:
        shift, moves = distance(record.instance, record.touch, instance, touch)
        return common_bytes(record.touch.access, touch.access, shift, moves)
    shift, moves = distance(instance, touch, record.instance, record.touch)
    return common_bytes(touch.access, record.touch.access, shift, moves)


def _key(instance: Instance, touch: Touch) -> object:
    """Return the key that tells accesses apart: where loops move it, also the trip."""
    return (touch, instance.path) if any(touch.steps) else touch
