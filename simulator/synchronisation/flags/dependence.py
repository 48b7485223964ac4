"""Which operations of a listing depend on each other, found without comparing each with each."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from castsim.synchronisation.flags.removing import Buffer, Element, ElementKind
from castsim.targets.dataflow import Pipes

ACCUMULATOR = "acc"
"""The memory in which also two reads of different pipes are kept apart."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What the tool goes by: the pipes, and from how many bytes on a dense result needs no vector barrier.

    `literal` keeps all that was seen in a region that may not be executed (option `flags_past_regions`).
    """

    pipes: Pipes
    exempt_bytes: int | None = None
    literal: bool = False


def dependences(now: Element, front: Element, rules: Rules) -> list[tuple[Buffer, Buffer]]:
    """Return the pairs of operands over which `now` depends on `front`, an operation that comes before it."""
    if now.pipe == front.pipe == rules.pipes.scalar:
        return []
    sides = [(now.reads, front.writes), (now.writes, front.reads)]
    if not now.pipe == front.pipe == rules.pipes.load:
        sides.append((now.writes, front.writes))
    found = [(mine, theirs) for a, b in sides for mine in a for theirs in b if mine.overlaps(theirs)]
    if now.pipe != front.pipe:
        found += [
            (mine, theirs)
            for mine in now.reads
            for theirs in front.reads
            if mine.space == ACCUMULATOR and mine.overlaps(theirs)
        ]
    return found


def needs_no_barrier(pairs: Sequence[tuple[Buffer, Buffer]], now: Element, front: Element, rules: Rules) -> bool:
    """Whether a vector operation may follow another one closely although it depends on it.

    It may if all that they have in common is what the first one wrote and the second reads, exactly the same bytes,
    without gaps, and so many that the first ones are there by then.
    """
    if rules.exempt_bytes is None or not now.pipe == front.pipe == rules.pipes.vector:
        return False
    return all(
        mine.ranges is not None
        and mine.ranges == theirs.ranges
        and any(mine.ranges == read.ranges for read in now.reads)
        and any(theirs.ranges == wrote.ranges and wrote.filled >= rules.exempt_bytes for wrote in front.writes)
        for mine, theirs in pairs
    )


Places = dict[str, list[int]]
"""Numbers of operations, in order, by their pipe."""


@dataclass(slots=True)
class Uses:
    """Where each buffer is read and where it is written."""

    elements: Sequence[Element]
    rules: Rules
    _readers: dict[Buffer, Places] = field(default_factory=dict)
    _writers: dict[Buffer, Places] = field(default_factory=dict)
    _near: dict[Buffer, tuple[Buffer, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for number, element in enumerate(self.elements):
            if element.kind is ElementKind.OPERATION:
                for places, buffers in ((self._readers, element.reads), (self._writers, element.writes)):
                    for buffer in dict.fromkeys(buffers):
                        places.setdefault(buffer, {}).setdefault(element.pipe, []).append(number)

    def of(self, now: Element) -> Touching:
        """Return the operations that an operation depends on wherever they come before it, as `dependences` has it."""
        pipes, found = self.rules.pipes, Touching({})
        alone = frozenset((now.pipe,)) if now.pipe == pipes.scalar else frozenset[str]()
        rewriting = alone | ({now.pipe} if now.pipe == pipes.load else frozenset[str]())
        for buffer in dict.fromkeys(now.reads):
            for other in self._overlapping(buffer):
                found.add(self._writers.get(other), alone)
                if buffer.space == ACCUMULATOR:
                    found.add(self._readers.get(other), {now.pipe})
        for buffer in dict.fromkeys(now.writes):
            for other in self._overlapping(buffer):
                found.add(self._readers.get(other), alone)
                found.add(self._writers.get(other), rewriting)
        return found

    def _overlapping(self, buffer: Buffer) -> tuple[Buffer, ...]:
        if buffer not in self._near:
            known = dict.fromkeys((*self._readers, *self._writers))
            self._near[buffer] = tuple(other for other in known if buffer.overlaps(other))
        return self._near[buffer]


@dataclass(frozen=True, slots=True)
class Touching:
    """Numbers of operations in order, by pipe; some may occur twice."""

    places: dict[str, list[list[int]]]

    def add(self, places: Places | None, without: AbstractSet[str]) -> None:
        """Add operations, but for those on some pipes."""
        for pipe, numbers in (places or {}).items():
            if pipe not in without:
                self.places.setdefault(pipe, []).append(numbers)

    def last_before(self, position: int, ordered: AbstractSet[str]) -> int:
        """Return the last of them before a position, but for those on pipes that are `ordered`; -1 for none."""
        return max((self._before(places, position) for places in self._lists(ordered)), default=-1)

    def any_within(self, start: int, end: int, ordered: AbstractSet[str] = frozenset()) -> bool:
        """Whether one of them, on a pipe that is not `ordered`, is among the elements from `start` to before `end`."""
        return any(self._before(places, end) >= start for places in self._lists(ordered))

    def _lists(self, ordered: AbstractSet[str]) -> Iterator[list[int]]:
        for pipe, lists in self.places.items():
            if pipe not in ordered:
                yield from lists

    def _before(self, places: list[int], position: int) -> int:
        index = bisect_left(places, position)
        return places[index - 1] if index else -1
