"""Synchronisation of programs without any: the flags and barriers that the vendor's tool inserts.

`insert` takes a function and returns one with flags and barriers. The rules are those of PTOAS with
--enable-insert-sync (docs/reference/pto.md section 5). They depend only on the text, not on trip counts, conditions or
scalars, so a program has the same flags in every run.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

from castsim.execution.interpreter.interpreter import Executed
from castsim.execution.interpreter.lowerer import Lowerer, order_text
from castsim.execution.tree import issued
from castsim.isa.dataclass import dataclass, field, replace
from castsim.isa.errors import Span
from castsim.isa.pto import program as pto
from castsim.running.synchronisation.removing import (
    BranchSpan,
    ElementKind,
    ElementListing,
    FlagPair,
    FlagPairWait,
    Hold,
    LoopSpan,
    Mark,
    MarkedElement,
    Rules,
    Set,
    Touching,
    Uses,
    assign_events,
    dependences,
    last_before,
    needs_no_barrier,
    remove_needless,
)
from castsim.running.synchronisation.sync_reading import ElementReading, read
from castsim.targets.dataflow import DataflowTarget

INSERT = "insert"
"""Mode that inserts the flags of the vendor's tool into programs without flags."""

BARRIERS = "barriers"
"""Mode that inserts a barrier on all pipes before every operation, another mode of the vendor's tool."""

INTERLOCK = "interlock"
"""Mode in which instructions wait for each other's bytes without flags, as if the hardware enforced it.

The engines consider all bytes from the first to the last of an access.
"""

PROGRAM = "program"
"""The mode that keeps a program's own synchronisation, even barriers alone; a program without any is interlocked."""

MODES = (INSERT, INTERLOCK, BARRIERS, PROGRAM)
"""The treatment of programs without flags; programs with flags are unchanged in all modes."""


# A function with its flags and barriers put in, and where each of them stands in the source.

# Where flags and barriers have to stand, by the rules of the vendor's tool (docs/reference/pto.md section 5.2).
#
# For every operation the tool goes back over the elements before it, and at the end of every loop once more over the
# trip before. It keeps the pipes that are known to be ordered before the operation, directly or because whom it waits
# for had waited for them; a flag is put where an operation on any other pipe shares bytes with it.


def place_flags(listing: ElementListing, rules: Rules) -> list[FlagPair]:
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
class _BackwardState:
    """The state of a backward scan from an operation: pipes `ordered` before it, pairs whose wait was `seen`."""

    ordered: set[str] = field(default_factory=set)
    seen: set[int] = field(default_factory=set)

    def copy(self) -> _BackwardState:
        return _BackwardState(set(self.ordered), set(self.seen))


@dataclass(slots=True)
class _Scan:
    """The scan of one operation: its dependences, and the loop whose previous trip is scanned, if any.

    `start` is the first scanned element; `nested` tells that the result matters to another scan.
    """

    number: int
    element: MarkedElement
    touching: Touching
    state: _BackwardState
    loop: LoopSpan | None = None
    start: int = 0
    nested: bool = False
    again: tuple[int, int] = (0, 0)
    """Elements that are looked at, with the same state, when this scan is done."""

    def matters(self, position: int) -> bool:
        """Return whether elements before a position, or those of `again`, may still need a flag or barrier."""
        ordered = self.state.ordered
        touching = self.touching
        return touching.any_within(self.start, position, ordered) or touching.any_within(*self.again, ordered)

    def inside(self) -> _Scan:
        """Return the scan of a region that may not be executed, with a separate state."""
        return _Scan(self.number, self.element, self.touching, self.state.copy(), self.loop, nested=True)


@dataclass(slots=True)
class _Scanner:
    elements: list[MarkedElement]
    rules: Rules
    pairs: list[FlagPair] = field(default_factory=list)
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
        self._scan_from(_Scan(number, element, self.uses.of(element), _BackwardState()), number, 0)

    def close(self, loop: LoopSpan) -> None:
        """Look, for every operation of a loop, at the trip before."""
        for number in range(loop.begin + 1, loop.end):
            element = self.elements[number]
            if element.kind is not ElementKind.OPERATION:
                continue
            touching = self.uses.of(element)
            if touching.any_within(loop.begin, loop.end):
                state, start = _BackwardState(), loop.begin + 1
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
        hold = -1 if pipe in ordered else last_before(self.holds.get(pipe, ()), position)
        return max(last_before(self.stops, position), hold, scan.touching.last_before(position, ordered))

    def _loop(self, scan: _Scan, region: LoopSpan | BranchSpan | None) -> int:
        """Scan a loop that may run no trip: the waits that it has seen stay, its order does not."""
        assert isinstance(region, LoopSpan)
        inner = scan.inside()
        self._scan(inner, region.end, region.begin + 1)
        self._remember(scan, inner.state.seen)
        return region.begin

    def _branch(self, scan: _Scan, region: LoopSpan | BranchSpan | None) -> int:
        """Scan both parts of a branch; a pipe is ordered if both order it."""
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
        """Store the pairs seen in a region that may not be executed, if they are valid without it."""
        if self.rules.literal:
            scan.state.seen |= seen
            return
        pipes = {scan.element.pipe, *scan.state.ordered}
        scan.state.seen |= {number for number in seen if self.pairs[number].waiter in pipes}

    def _update(self, scan: _Scan, marks: list[Mark]) -> None:
        """Update the state by the marks at one position, in order."""
        state, pipe = scan.state, scan.element.pipe
        for mark in marks:
            if isinstance(mark, Hold):
                if mark.pipe == pipe:
                    state.ordered.add(pipe)
            elif mark.pair.waiter == pipe or mark.pair.waiter in state.ordered:
                if isinstance(mark, FlagPairWait):
                    state.seen.add(mark.pair.number)
                elif mark.pair.number in state.seen:
                    state.ordered.add(mark.pair.signaller)

    def _order(self, scan: _Scan, position: int) -> None:
        """Insert a flag or barrier between two operations, if nothing orders them yet."""
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
            pair = FlagPair(len(self.pairs), front.pipe, now.pipe, position, scan.number, scan.loop,
                        frozenset(buffer for both in pairs for buffer in both))  # fmt: skip
            self.pairs.append(pair)
            front.after.append(Set(pair))
            now.before.append(FlagPairWait(pair))
            _include(self.stops, position)
            _include(self.stops, scan.number)
        scan.state.ordered.add(front.pipe)


def _include(numbers: list[int], number: int) -> None:
    index = bisect_left(numbers, number)
    if index == len(numbers) or numbers[index] != number:
        insort(numbers, number)


# What stands before and after each element once the flags have their ids (docs/reference/pto.md section 5.6).

Order = pto.SetFlag | pto.WaitFlag | pto.Barrier

DRAIN = pto.Barrier(pto.Pipe.ALL, inserted=True)
"""A barrier on all pipes."""

HINT = "pto.auto_sync_tail_hint"
"""Attribute of a function that requests another end than a barrier on all pipes."""

_TAILS: dict[str, tuple[Order, ...]] = {
    "mte3-to-s-event0": (
        pto.SetFlag(pto.Pipe.MTE3, pto.Pipe.S, 0, inserted=True),
        pto.WaitFlag(pto.Pipe.MTE3, pto.Pipe.S, 0, inserted=True),
    )
}


@dataclass(frozen=True, slots=True)
class Emitted:
    """The insertions at the start and the end of a function, and around each of its elements."""

    start: tuple[Order, ...]
    before: tuple[tuple[Order, ...], ...]
    after: tuple[tuple[Order, ...], ...]
    end: tuple[Order, ...]


def emit(elements: list[MarkedElement], target: DataflowTarget, tail: tuple[Order, ...]) -> Emitted:
    """Return the insertions into a program; equal marks at one place are merged."""
    carried = [
        m.pair for e in elements for m in e.before if isinstance(m, FlagPairWait) and m.pair.loop and not m.pair.drained
    ]
    around = [pair for pair in carried if not pair.at_loop]
    before, after = [], []
    for element in elements:
        first, last = list(_orders(element.before, target)), list(_orders(element.after, target))
        if element.kind is ElementKind.LOOP_BEGIN:
            first += [_set(pair) for pair in carried if pair.at_loop and pair.loop is element.region]
        elif element.kind is ElementKind.LOOP_END:
            last[:0] = [_wait(pair) for pair in carried if pair.at_loop and pair.loop is element.region]
        before.append(_once(first))
        after.append(_once(last))
    start, end = _once(_set(pair) for pair in around), _once([*(_wait(pair) for pair in around), *tail])
    return Emitted(start, tuple(before), tuple(after), end)


def tail_of(function: pto.Function) -> tuple[Order, ...]:
    """Return the synchronisation at the end of a function."""
    hint = next((text.strip('"') for key, text in function.attributes if key == HINT), "")
    return _TAILS.get(hint, (DRAIN,))


def _once(orders: Iterable[Order]) -> tuple[Order, ...]:
    return tuple(dict.fromkeys(orders))


def _orders(marks: list[Mark], target: DataflowTarget) -> Iterable[Order]:
    for mark in marks:
        if isinstance(mark, Hold):
            # The tool leaves out barriers of a vector pipe that keeps the order by itself.
            if mark.pipe != target.pipes.vector or target.synchronisation.inserted_barriers:
                yield pto.Barrier(_pipe(mark.pipe), inserted=True)
        elif mark.pair.drained:
            yield DRAIN
        else:
            yield _set(mark.pair) if isinstance(mark, Set) else _wait(mark.pair)


def _set(pair: FlagPair) -> pto.SetFlag:
    return pto.SetFlag(_pipe(pair.signaller), _pipe(pair.waiter), pair.event, inserted=True)


def _wait(pair: FlagPair) -> pto.WaitFlag:
    return pto.WaitFlag(_pipe(pair.signaller), _pipe(pair.waiter), pair.event, inserted=True)


def _pipe(name: str) -> pto.Pipe:
    return pto.Pipe(f"PIPE_{name}")


# Flags out of branches and loops: a set and its wait never stand on one path only (docs/reference/pto.md section 5.3).
#
# What belongs to the next trip of a loop stays inside it; barriers stay where they are.


def move_flags(elements: list[MarkedElement]) -> None:
    """Move waits before, and sets after, the branches and loops that do not contain their other half."""
    for element in elements:
        if element.kind is ElementKind.IF_BEGIN:
            assert isinstance(element.region, BranchSpan)
            for start, end in element.region.parts:
                _move(elements, start, end, (element.region.begin, element.region.end))
    for element in elements:
        if element.kind is ElementKind.LOOP_END:
            assert isinstance(element.region, LoopSpan)
            _move(elements, element.region.begin + 1, element.region.end, (element.region.begin, element.region.end))


def _move(elements: list[MarkedElement], start: int, end: int, ends: tuple[int, int]) -> None:
    """Move marks that leave the elements from `start` to before `end` to the two ends of their region."""
    first, last = ends
    loop = elements[last].region if elements[last].kind is ElementKind.LOOP_END else None

    def leaves(mark: Mark) -> bool:
        """Return whether the other half of a mark is elsewhere, and not in the next trip of this loop."""
        if isinstance(mark, Hold) or (loop is not None and mark.pair.loop is loop):
            return False
        other = mark.pair.set_at if isinstance(mark, FlagPairWait) else mark.pair.wait_at
        return not start <= other < end

    for element in elements[start:end]:
        for mark in [mark for mark in element.before if leaves(mark)]:
            element.before.remove(mark)
            elements[first].before.append(mark)
            _pair(mark).wait_at = first
        for mark in [mark for mark in element.after if leaves(mark)]:
            element.after.remove(mark)
            elements[last].after.insert(0, mark)
            _pair(mark).set_at = last
        if loop is not None:
            # The tool puts what stays into its new list from the front.
            element.after.reverse()


def _pair(mark: Mark) -> FlagPair:
    assert not isinstance(mark, Hold)
    return mark.pair


class Place(StrEnum):
    """The place of an inserted instruction relative to its source line."""

    BEFORE = "before"
    AFTER = "after"
    BEHIND = "behind"
    """After the end of the loop or branch that begins there."""
    AT_END = "end"


@dataclass(frozen=True, slots=True)
class Insert:
    """An inserted instruction and its position."""

    node: Order
    place: Place

    @property
    def span(self) -> Span:
        """The position of the source line that it belongs to."""
        return self.node.span

    @property
    def text(self) -> str:
        """Its spelling in a program."""
        return order_text(self.node)


@dataclass(frozen=True, slots=True)
class SynchronisedFunction:
    """A function with synchronisation, and the insertions in text order."""

    function: pto.Function
    inserts: tuple[Insert, ...]


def insert(function: pto.Function, lowerer: Lowerer, target: DataflowTarget) -> SynchronisedFunction:
    """Insert flags and barriers into a function without flags; see the package for the rules."""
    reading = read(function, lowerer, target.pipes)
    return _SynchronisationWriter(reading, plan(reading.listing, target, tail_of(function))).function(function)


def insert_barriers(function: pto.Function, lowerer: Lowerer, target: DataflowTarget) -> SynchronisedFunction:
    """Insert a barrier on all pipes before every operation and at the end: the simplest mode of the tool."""
    reading = read(function, lowerer, target.pipes)
    before = tuple((DRAIN,) if e.kind is ElementKind.OPERATION else () for e in reading.listing.elements)
    return _SynchronisationWriter(reading, Emitted((), before, ((),) * len(before), (DRAIN,))).function(function)


def plan(listing: ElementListing, target: DataflowTarget, tail: tuple[Order, ...] = (DRAIN,)) -> Emitted:
    """Return the insertions around the elements of a program; for a single operation, only the end."""
    elements: list[MarkedElement] = listing.elements
    facts = target.synchronisation
    if len(elements) > 1:
        regions = any(element.kind is not ElementKind.OPERATION for element in elements)
        literal = regions and target.option("flags_past_regions") == "literal"
        pairs = place_flags(listing, Rules(target.pipes, facts.unordered_bytes, literal))
        move_flags(elements)
        assign_events(elements, remove_needless(elements, pairs), lambda pipes: _ids(target, pipes))
    return emit(elements, target, tail if elements else ())


def _ids(target: DataflowTarget, pipes: tuple[str, str]) -> int:
    """Return how many event ids the tool uses of a pair of pipes."""
    if set(pipes) == {target.pipes.scalar, target.pipes.vector}:
        return min(target.pipes.event_ids, target.synchronisation.scalar_event_ids)
    return target.pipes.event_ids


@dataclass(slots=True)
class _SynchronisationWriter:
    reading: ElementReading
    emitted: Emitted
    inserts: list[Insert] = field(default_factory=list)

    def function(self, function: pto.Function) -> SynchronisedFunction:
        """Return the function with everything put in."""
        body = function.body or ()
        operations: list[pto.Operation] = []
        if body:
            self._put(self.emitted.start, Place.BEFORE, body[0].span, operations)
        ended = [node for node in body if isinstance(node, pto.Return)][:1]
        operations += self._region(body[: body.index(ended[0])] if ended else body)
        last = ended[0].span if ended else body[-1].span if body else function.span
        self._put(self.emitted.end, Place.AT_END, last, operations)
        return SynchronisedFunction(replace(function, body=(*operations, *ended)), tuple(self.inserts))

    def _region(self, body: Sequence[pto.Operation]) -> tuple[pto.Operation, ...]:
        operations: list[pto.Operation] = []
        for node in body:
            first, last = self.reading.places.get(id(node), (-1, -1))
            if first >= 0:
                self._put(self.emitted.before[first], Place.BEFORE, node.span, operations)
            operations.append(pto.with_regions(node, self._region))
            if last >= 0:
                position = Place.AFTER if first == last else Place.BEHIND
                self._put(self.emitted.after[last], position, node.span, operations)
        return tuple(operations)

    def _put(self, orders: Iterable[Order], position: Place, span: Span, operations: list[pto.Operation]) -> None:
        """Append inserted instructions; a barrier directly after an equal one is omitted."""
        for order in orders:
            last = operations[-1] if operations else None
            if isinstance(order, pto.Barrier) and isinstance(last, pto.Barrier) and last.inserted and last == order:
                continue
            node = replace(order, span=span)
            operations.append(node)
            self.inserts.append(Insert(node, position))


# How often each inserted instruction is executed.


@dataclass(frozen=True, slots=True)
class Note:
    """An inserted instruction: its spelling in a program, its position, and its number of executions."""

    text: str
    place: Place
    span: Span
    times: int


@dataclass(frozen=True, slots=True)
class Synchronised:
    """The insertions into a program, in text order, and the function with them."""

    notes: tuple[Note, ...]
    function: pto.Function


def noted(plan: SynchronisedFunction, executed: Executed) -> Synchronised:
    """Return the insertions into a function that was walked afterwards."""
    times: Counter[int] = Counter()
    for count, lowered in issued(executed.tree.root):
        times[lowered.instruction] += count
    return Synchronised(tuple(_note(inserted, executed.numbers, times) for inserted in plan.inserts), plan.function)


def _note(inserted: Insert, numbers: Mapping[int, int], times: Mapping[int, int]) -> Note:
    return Note(inserted.text, inserted.place, inserted.span, times.get(numbers.get(id(inserted.node), -1), 0))
