"""Where flags and barriers have to stand, by the rules of the vendor's tool (docs/reference/pto.md section 5.2).

For every operation the tool goes back over the elements before it, and at the end of every loop once more over the trip
before. It keeps the pipes that are known to be ordered before the operation, directly or because whom it waits for
had waited for them; a flag is put where an operation on any other pipe shares bytes with it.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import dataclass, field

from castsim.synchronisation.flags.dependence import Rules, Touching, Uses, dependences, needs_no_barrier
from castsim.synchronisation.flags.elements import (
    BranchSpan,
    Element,
    ElementKind,
    Hold,
    Listing,
    LoopSpan,
    Mark,
    Pair,
    Set,
    Wait,
)


def place_flags(listing: Listing, rules: Rules) -> list[Pair]:
    """Put sets, waits and barriers of single pipes before and after the elements of a program; return the pairs."""
    scanner = _Scanner(listing.elements, rules)
    for number, element in enumerate(listing.elements):
        if element.kind is ElementKind.OPERATION:
            scanner.order(number)
        elif element.kind is ElementKind.LOOP_END:
            assert isinstance(element.region, LoopSpan)
            scanner.close(element.region)
    return scanner.pairs


@dataclass(slots=True)
class _State:
    """What is known while going back from an operation: pipes `ordered` before it, pairs whose wait was `seen`."""

    ordered: set[str] = field(default_factory=set)
    seen: set[int] = field(default_factory=set)

    def copy(self) -> _State:
        return _State(set(self.ordered), set(self.seen))


@dataclass(slots=True)
class _Scan:
    """One operation, what it depends on, and the loop whose trip before is looked at, if any.

    `start` is the first element that is looked at; `nested` tells that what is learnt matters to another scan.
    """

    number: int
    element: Element
    touching: Touching
    state: _State
    loop: LoopSpan | None = None
    start: int = 0
    nested: bool = False
    again: tuple[int, int] = (0, 0)
    """Elements that are looked at, with the same state, when this scan is done."""

    def matters(self, position: int) -> bool:
        """Whether a flag or barrier may still be needed for elements before a position, or for those of `again`."""
        ordered = self.state.ordered
        touching = self.touching
        return touching.any_within(self.start, position, ordered) or touching.any_within(*self.again, ordered)

    def inside(self) -> _Scan:
        """Return the scan of a region that may not be executed, with a state of its own."""
        return _Scan(self.number, self.element, self.touching, self.state.copy(), self.loop, nested=True)


@dataclass(slots=True)
class _Scanner:
    elements: list[Element]
    rules: Rules
    pairs: list[Pair] = field(default_factory=list)
    uses: Uses = field(init=False)
    stops: list[int] = field(init=False)
    """Elements that every scan must look at, in order: ends and beginnings of regions, and operations with flags."""
    holds: dict[str, list[int]] = field(default_factory=dict)
    """Operations with a barrier of a pipe before them, in order."""

    def __post_init__(self) -> None:
        self.uses = Uses(self.elements, self.rules)
        self.stops = [n for n, element in enumerate(self.elements) if element.kind is not ElementKind.OPERATION]

    def order(self, number: int) -> None:
        """Look at everything before an operation."""
        element = self.elements[number]
        self._scan_from(_Scan(number, element, self.uses.of(element), _State()), number, 0)

    def close(self, loop: LoopSpan) -> None:
        """Look, for every operation of a loop, at the trip before."""
        for number in range(loop.begin + 1, loop.end):
            element = self.elements[number]
            if element.kind is not ElementKind.OPERATION:
                continue
            touching = self.uses.of(element)
            if touching.any_within(loop.begin, loop.end):
                state, start = _State(), loop.begin + 1
                # Of a branch around the operation, the trip before is looked at as a whole.
                first = _Scan(number, element, touching, state, start=start, again=(start, loop.end))
                self._scan_from(first, number, start)
                self._scan_from(_Scan(number, element, touching, state, loop, start), loop.end, number)

    def _scan_from(self, scan: _Scan, end: int, start: int) -> None:
        self._update(scan, self.elements[end].before)
        self._scan(scan, end, start)

    def _scan(self, scan: _Scan, end: int, start: int) -> None:
        """Go back from before element `end` to element `start`."""
        position = self._next(scan, end)
        while position >= start:
            element = self.elements[position]
            if element.kind is ElementKind.OPERATION:
                self._update(scan, element.after)
                self._order(scan, position)
                self._update(scan, element.before)
            elif element.kind is ElementKind.LOOP_END:
                position = self._loop(scan, element.region)
            elif element.kind is ElementKind.IF_END:
                position = self._branch(scan, element.region)
            elif element.kind is ElementKind.ELSE_BEGIN:
                # Whoever comes from inside the else part has not been through the then part.
                assert isinstance(element.region, BranchSpan)
                position = element.region.begin
            position = self._next(scan, position)

    def _next(self, scan: _Scan, position: int) -> int:
        """Return the last element before a position that can matter, -1 for none."""
        ordered, pipe = scan.state.ordered, scan.element.pipe
        if not scan.nested and not scan.matters(position):
            return -1
        hold = -1 if pipe in ordered else _last(self.holds.get(pipe, ()), position)
        return max(_last(self.stops, position), hold, scan.touching.last_before(position, ordered))

    def _loop(self, scan: _Scan, region: LoopSpan | BranchSpan | None) -> int:
        """Go through a loop that may run no trip: what its waits have seen stays, the order does not."""
        assert isinstance(region, LoopSpan)
        inner = scan.inside()
        self._scan(inner, region.end, region.begin + 1)
        self._remember(scan, inner.state.seen)
        return region.begin

    def _branch(self, scan: _Scan, region: LoopSpan | BranchSpan | None) -> int:
        """Go through both parts of a branch: ordered is what either part orders."""
        assert isinstance(region, BranchSpan)
        ordered: list[set[str]] = []
        seen: set[int] = set()
        for start, end in region.parts:
            inner = scan.inside()
            self._scan(inner, end, start)
            ordered.append(inner.state.ordered)
            seen |= inner.state.seen
        scan.state.ordered |= ordered[0] & ordered[1]
        self._remember(scan, seen)
        return region.begin

    def _remember(self, scan: _Scan, seen: set[int]) -> None:
        """Keep what was seen in a region that may not be executed, if it holds although none of it was."""
        if self.rules.literal:
            scan.state.seen |= seen
            return
        pipes = {scan.element.pipe, *scan.state.ordered}
        scan.state.seen |= {number for number in seen if self.pairs[number].waiter in pipes}

    def _update(self, scan: _Scan, marks: list[Mark]) -> None:
        """Learn from the marks at one place, in their order."""
        state, pipe = scan.state, scan.element.pipe
        for mark in marks:
            if isinstance(mark, Hold):
                if mark.pipe == pipe:
                    state.ordered.add(pipe)
            elif mark.pair.waiter == pipe or mark.pair.waiter in state.ordered:
                if isinstance(mark, Wait):
                    state.seen.add(mark.pair.number)
                elif mark.pair.number in state.seen:
                    state.ordered.add(mark.pair.signaller)

    def _order(self, scan: _Scan, position: int) -> None:
        """Put a flag or barrier between an operation and another one, if nothing orders them yet."""
        now, front = scan.element, self.elements[position]
        if front.pipe in scan.state.ordered or (position == scan.number and scan.loop is None):
            return
        pairs = dependences(now, front, self.rules)
        if not pairs:
            return
        if front.pipe == now.pipe:
            if scan.loop is None and needs_no_barrier(pairs, now, front, self.rules):
                return
            now.before.append(Hold(now.pipe))
            _include(self.holds.setdefault(now.pipe, []), scan.number)
        else:
            pair = Pair(len(self.pairs), front.pipe, now.pipe, position, scan.number, scan.loop,
                        frozenset(buffer for both in pairs for buffer in both))  # fmt: skip
            self.pairs.append(pair)
            front.after.append(Set(pair))
            now.before.append(Wait(pair))
            _include(self.stops, position)
            _include(self.stops, scan.number)
        scan.state.ordered.add(front.pipe)


def _last(numbers: Sequence[int], position: int) -> int:
    """Return the last of ordered numbers before a position, -1 for none."""
    index = bisect_left(numbers, position)
    return numbers[index - 1] if index else -1


def _include(numbers: list[int], number: int) -> None:
    index = bisect_left(numbers, number)
    if index == len(numbers) or numbers[index] != number:
        insort(numbers, number)
