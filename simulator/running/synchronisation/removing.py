"""Removal of redundant flags (docs/reference/pto.md section 5.4).

A pair is removed if, on the way from its set to its wait, the same two pipes meet over another pair. Programs with
gathers or scatters keep all pairs.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from enum import Enum

from castsim.isa.dataclass import dataclass, field
from castsim.targets.dataflow import Pipes

# A program as the vendor's tool numbers it: operations, and where loops and branches begin and end.
#
# Nothing here depends on a value: loops are listed once, and so are both parts of every branch
# (docs/reference/pto.md section 5.1).

Range = tuple[int, int]
"""Bytes of a memory: the first, and the end."""


class ElementKind(Enum):
    """The kind of an element."""

    OPERATION = "operation"
    LOOP_BEGIN = "loop begin"
    LOOP_END = "loop end"
    IF_BEGIN = "if begin"
    THEN_END = "then end"
    ELSE_BEGIN = "else begin"
    ELSE_END = "else end"
    IF_END = "if end"


@dataclass(frozen=True, slots=True)
class OperandBytes:
    """The bytes of an operand: an argument of the kernel, a tile, or ranges of one.

    `space` is the memory, `root` the owner of the bytes: the name of an argument, the number of an allocation. `ranges`
    are the bytes if their addresses are known before the run. `filled` counts the bytes of the valid elements
    of a tile without gaps between them; it is 0 for any other, and if unknown from the text.
    """

    space: str
    root: str | int
    ranges: tuple[Range, ...] | None = None
    filled: int = 0

    def overlaps(self, other: OperandBytes) -> bool:
        """Return whether two operands may share bytes: within one root they do unless known to be disjoint."""
        if self.space != other.space:
            return False
        if self.ranges is None or other.ranges is None:
            return self.root == other.root
        return any(a < d and c < b for a, b in self.ranges for c, d in other.ranges)


@dataclass(slots=True, eq=False)
class LoopSpan:
    """A loop: the indices of its two elements."""

    begin: int
    end: int = -1


@dataclass(slots=True, eq=False)
class BranchSpan:
    """A branch: the indices of its five elements, which it has even without an else part."""

    begin: int
    then_end: int = -1
    else_begin: int = -1
    else_end: int = -1
    end: int = -1

    @property
    def parts(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """The first element and the end of the then part and of the else part."""
        return (self.begin + 1, self.then_end), (self.else_begin + 1, self.else_end)


@dataclass(slots=True, eq=False)
class FlagPair:
    """A flag, set after element `set_at` and waited for before element `wait_at`.

    `loop` is the loop whose next trip waits for it (None: the same trip), `buffers` the common buffers of the two
    operations. `event` is its id; `drained` tells that none was left and a barrier replaces it.
    """

    number: int
    signaller: str
    waiter: str
    set_at: int
    wait_at: int
    loop: LoopSpan | None = None
    buffers: frozenset[OperandBytes] = frozenset()
    event: int = -1
    at_loop: bool = False
    """Whether the first set and the last wait of a carried pair are at its loop instead of the function's ends."""
    drained: bool = False

    @property
    def pipes(self) -> tuple[str, str]:
        """The signalling and the waiting pipe."""
        return self.signaller, self.waiter


@dataclass(frozen=True, slots=True)
class Set:
    """The set of a pair."""

    pair: FlagPair


@dataclass(frozen=True, slots=True)
class FlagPairWait:
    """The wait of a pair."""

    pair: FlagPair


@dataclass(frozen=True, slots=True)
class Hold:
    """A barrier of one pipe."""

    pipe: str


Mark = Set | FlagPairWait | Hold


@dataclass(slots=True, eq=False)
class MarkedElement:
    """One element: its kind, and the marks before and after it.

    An operation has a pipe and the bytes that it `reads` and `writes`. `block` is the index of the innermost region
    that contains the element itself; the ends of a loop belong to the region around it.
    """

    kind: ElementKind
    block: int
    pipe: str = ""
    reads: tuple[OperandBytes, ...] = ()
    writes: tuple[OperandBytes, ...] = ()
    gathers: bool = False
    """Whether the operation is a gather or scatter, which makes the program keep all its flags."""
    region: LoopSpan | BranchSpan | None = None
    before: list[Mark] = field(default_factory=list)
    after: list[Mark] = field(default_factory=list)


@dataclass(slots=True)
class ElementListing:
    """The elements of a program in the order of its text."""

    elements: list[MarkedElement] = field(default_factory=list)
    _open: list[int] = field(default_factory=lambda: [0])
    _blocks: int = 0

    def operation(
        self,
        pipe: str,
        reads: Sequence[OperandBytes] = (),
        writes: Sequence[OperandBytes] = (),
        *,
        gathers: bool = False,
    ) -> int:
        """Add an operation; return its index."""
        element = MarkedElement(ElementKind.OPERATION, self._open[-1], pipe, tuple(reads), tuple(writes), gathers)
        return self._add(element)

    def begin_loop(self) -> LoopSpan:
        """Add the head of a loop."""
        loop = LoopSpan(len(self.elements))
        self._mark(ElementKind.LOOP_BEGIN, loop)
        self._enter()
        return loop

    def end_loop(self, loop: LoopSpan) -> None:
        """Add the end of a loop."""
        self._open.pop()
        loop.end = self._mark(ElementKind.LOOP_END, loop)

    def begin_branch(self) -> BranchSpan:
        """Add the head of a branch, and begin its then part."""
        branch = BranchSpan(len(self.elements))
        self._mark(ElementKind.IF_BEGIN, branch)
        self._enter()
        return branch

    def turn(self, branch: BranchSpan) -> None:
        """End the then part of a branch, and begin its else part."""
        self._open.pop()
        branch.then_end = self._mark(ElementKind.THEN_END, branch)
        branch.else_begin = self._mark(ElementKind.ELSE_BEGIN, branch)
        self._enter()

    def end_branch(self, branch: BranchSpan) -> None:
        """Add the end of a branch."""
        self._open.pop()
        branch.else_end = self._mark(ElementKind.ELSE_END, branch)
        branch.end = self._mark(ElementKind.IF_END, branch)

    def _mark(self, kind: ElementKind, region: LoopSpan | BranchSpan) -> int:
        return self._add(MarkedElement(kind, self._open[-1], region=region))

    def _add(self, element: MarkedElement) -> int:
        self.elements.append(element)
        return len(self.elements) - 1

    def _enter(self) -> None:
        self._blocks += 1
        self._open.append(self._blocks)


# Event ids for planned flags (docs/reference/pto.md section 5.5).
#
# An id of a pair of pipes is taken from where its flag is set to where it is waited for; a flag that the next trip of
# a loop waits for takes it for the whole function. An id that was never used is preferred to one that is free again.
# Where none is free, a flag joins another one that guards the same buffers; failing that, flags of loops take their
# ids for their loops only; failing that, a barrier on all pipes does the work of the flag.

_Pipes = tuple[str, str]
_Life = tuple[int, int]


def assign_events(
    elements: list[MarkedElement], pairs: list[FlagPair], ids_of: Callable[[_Pipes], int]
) -> list[FlagPair]:
    """Assign an id to every pair, of `ids_of` its pipes, or join or drain it; return the remaining pairs."""
    by_pipes: dict[_Pipes, list[FlagPair]] = {}
    for element in elements:
        for mark in element.before:
            if isinstance(mark, FlagPairWait):
                by_pipes.setdefault(mark.pair.pipes, []).append(mark.pair)
    kept: list[FlagPair] = []
    for pipes, waiting in by_pipes.items():
        kept += _Assignment(elements, len(elements), ids_of(pipes)).assign(waiting)
    left = {pair.number for pair in kept}
    return [pair for pair in pairs if pair.number in left]


@dataclass(slots=True)
class _Assignment:
    """The ids of one pair of pipes; `lives` are the pairs with each id."""

    elements: list[MarkedElement]
    count: int
    ids: int
    lives: dict[int, list[tuple[_Life, FlagPair]]] = field(default_factory=dict)
    ends: dict[int, int] = field(default_factory=dict)
    """The end of each id's last lifetime."""

    def assign(self, waiting: list[FlagPair]) -> list[FlagPair]:
        """Give ids to pairs in the order of their waits; return those that are left, and the drained ones."""
        kept: list[FlagPair] = []
        for pair in waiting:
            if self._take(pair):
                kept.append(pair)
            elif not self._join(pair, kept):
                return self._again([*kept, *waiting[waiting.index(pair) :]])
        return kept

    def _again(self, waiting: list[FlagPair]) -> list[FlagPair]:
        """Start over with flags of loops that hold their ids for their loops only."""
        self.lives.clear()
        self.ends.clear()
        for pair in waiting:
            pair.event, pair.at_loop = -1, pair.loop is not None
        for pair in waiting:
            if not self._take(pair):
                pair.drained = True
                self.elements[pair.set_at].after.remove(Set(pair))
        for lives in self.lives.values():
            for _, pair in lives:
                # With an id of its own, a flag of a loop is set and waited for at the ends of the function.
                pair.at_loop &= len(lives) > 1
        return waiting

    def _life(self, pair: FlagPair) -> _Life:
        if pair.loop is None:
            return 2 * pair.set_at + 1, 2 * pair.wait_at
        return (2 * pair.loop.begin, 2 * pair.loop.end + 1) if pair.at_loop else (-1, 2 * self.count)

    def _take(self, pair: FlagPair) -> bool:
        """Give a pair the lowest unused id, or else the lowest free one; return whether there is one."""
        life = self._life(pair)
        free = (n for n in sorted(self.lives) if self._free(n, life))
        event = next((n for n in range(self.ids) if n not in self.lives), next(free, -1))
        if event < 0:
            return False
        pair.event = event
        self.lives.setdefault(event, []).append((life, pair))
        self.ends[event] = max(life[1], self.ends.get(event, life[1]))
        return True

    def _free(self, event: int, life: _Life) -> bool:
        return life[0] > self.ends[event] or not any(_meet(life, other) for other, _ in self.lives[event])

    def _join(self, pair: FlagPair, kept: list[FlagPair]) -> bool:
        """Join a pair to an earlier one at the same position that guards the same buffers.

        The flag of both is set at the later one's set, and waited for at the earlier one's wait.
        """
        block = self.elements[pair.set_at].block
        for other in kept:
            same = other.loop is pair.loop and other.buffers == pair.buffers
            places = (other.set_at, other.wait_at, pair.wait_at)
            together = all(self.elements[index].block == block for index in places)
            if not same or not together or (pair.loop is None and other.wait_at <= pair.set_at):
                continue
            if other.set_at < pair.set_at:
                self.elements[other.set_at].after.remove(Set(other))
                self.elements[pair.set_at].after.append(Set(other))
                other.set_at = pair.set_at
            self.elements[pair.set_at].after.remove(Set(pair))
            self.elements[pair.wait_at].before.remove(FlagPairWait(pair))
            return True
        return False


def _meet(life: _Life, other: _Life) -> bool:
    return life[0] <= other[1] and other[0] <= life[1]


def remove_needless(elements: list[MarkedElement], pairs: list[FlagPair]) -> list[FlagPair]:
    """Remove the redundant pairs; return the remaining ones."""
    if any(element.gathers for element in elements):
        return pairs
    alike = Counter(pair.pipes for pair in pairs)
    carried = sorted((p for p in pairs if p.loop), key=lambda p: (_end(p), p.number), reverse=True)
    forward = sorted((p for p in pairs if not p.loop), key=lambda p: p.number, reverse=True)
    gone: set[int] = set()
    for pair in (*carried, *forward):
        if alike[pair.pipes] > 1 and _Way(elements, pair).needless():
            gone.add(pair.number)
            alike[pair.pipes] -= 1
            elements[pair.set_at].after.remove(Set(pair))
            elements[pair.wait_at].before.remove(FlagPairWait(pair))
    return [pair for pair in pairs if pair.number not in gone]


def _end(pair: FlagPair) -> int:
    return pair.loop.end if pair.loop else -1


@dataclass(slots=True)
class _Way:
    """The way from the set of a pair to its wait, and the sets of other pairs of the same pipes passed on it."""

    elements: list[MarkedElement]
    pair: FlagPair
    passed: set[int] = field(default_factory=set)

    def needless(self) -> bool:
        """Return whether another pair is set and waited for on the way."""
        pair, elements = self.pair, self.elements
        behind = elements[pair.set_at].after
        here = elements[pair.wait_at].before
        last = here[: here.index(FlagPairWait(pair))]
        if self._met(behind[behind.index(Set(pair)) + 1 :]):
            return True
        if pair.loop is None:
            return self._through(pair.set_at + 1, pair.wait_at) or self._met(last)
        loop = pair.loop
        if self._through(pair.set_at + 1, loop.end) or self._through(loop.begin + 1, pair.wait_at):
            return True
        return self._met(last)

    def _through(self, start: int, end: int) -> bool:
        """Go from element `start` to before `end`; loops on the way may run no trip and are passed by."""
        position = start
        while position < end:
            element = self.elements[position]
            if self._met(element.before):
                return True
            if (
                element.kind is ElementKind.LOOP_BEGIN
                and isinstance(element.region, LoopSpan)
                and element.region.end < end
            ):
                position = element.region.end
            elif element.kind is ElementKind.IF_BEGIN and isinstance(element.region, BranchSpan):
                if element.region.end < end:
                    if all(self._apart(*part) for part in element.region.parts):
                        return True
                    position = element.region.end
                elif element.region.else_begin < end:
                    # Whoever goes into the else part does not go through the then part.
                    position = element.region.else_begin
            elif element.kind is ElementKind.THEN_END and isinstance(element.region, BranchSpan):
                # Whoever comes from inside the then part does not go through the else part.
                position = element.region.else_end
            if self._met(self.elements[position].after):
                return True
            position += 1
        return False

    def _apart(self, start: int, end: int) -> bool:
        return _Way(self.elements, self.pair, set(self.passed))._through(start, end)

    def _met(self, marks: list[Mark]) -> bool:
        """Pass marks in their order; return whether the wait of a passed set is among them."""
        for mark in marks:
            if isinstance(mark, Hold) or mark.pair is self.pair or mark.pair.pipes != self.pair.pipes:
                continue
            if isinstance(mark, Set):
                self.passed.add(mark.pair.number)
            elif mark.pair.number in self.passed:
                return True
        return False


# Which operations of a listing depend on each other, found without comparing each with each.

ACCUMULATOR = "acc"
"""The memory in which even two reads of different pipes are kept apart."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of the tool: the pipes, and the bytes from which a dense result needs no vector barrier.

    `literal` keeps everything seen in a region that may not be executed (option `flags_past_regions`).
    """

    pipes: Pipes
    exempt_bytes: int | None = None
    literal: bool = False


def dependences(now: MarkedElement, front: MarkedElement, rules: Rules) -> list[tuple[OperandBytes, OperandBytes]]:
    """Return the pairs of operands that make `now` depend on `front`, an earlier operation."""
    if now.pipe == front.pipe == rules.pipes.scalar:
        return []
    sides = [(now.reads, front.writes), (now.writes, front.reads)]
    if not now.pipe == front.pipe == rules.pipes.load:
        sides.append((now.writes, front.writes))
    pairs = [(mine, theirs) for a, b in sides for mine in a for theirs in b if mine.overlaps(theirs)]
    if now.pipe != front.pipe:
        pairs += [
            (mine, theirs)
            for mine in now.reads
            for theirs in front.reads
            if mine.space == ACCUMULATOR and mine.overlaps(theirs)
        ]
    return pairs


def needs_no_barrier(
    pairs: Sequence[tuple[OperandBytes, OperandBytes]], now: MarkedElement, front: MarkedElement, rules: Rules
) -> bool:
    """Return whether a vector operation needs no barrier after an operation that it depends on.

    This is so if they share only bytes that the first one wrote and the second reads, exactly the same bytes, without
    gaps, and enough of them that the first ones are complete by then.
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
"""Indices of operations, in order, by pipe."""

_PAGE = 512
"""Bytes of a page, by which operands with bytes in common are looked for."""

_MOST_PAGES = 1024
"""Maximum number of pages of an operand that is found by them; larger ones are compared with all operands."""


class _Operands:
    """Operands in an order, found by the pages that they touch."""

    def __init__(self, operands: Iterable[OperandBytes]) -> None:
        self._operands = tuple(operands)
        self._by_page: dict[tuple[str, object, int | None], list[int]] = {}
        self._large: list[int] = []
        for number, operand in enumerate(self._operands):
            keys = self._pages(operand)
            if keys is None:
                self._large.append(number)
            for key in keys or ():
                self._by_page.setdefault(key, []).append(number)

    def overlapping(self, operand: OperandBytes) -> tuple[OperandBytes, ...]:
        """Return the operands that may share bytes with another one, in their order."""
        keys = self._pages(operand)
        if keys is None:
            near: Iterable[OperandBytes] = self._operands
        else:
            numbers = {*self._large}.union(*(self._by_page.get(key, ()) for key in keys))
            near = (self._operands[number] for number in sorted(numbers))
        return tuple(other for other in near if operand.overlaps(other))

    @staticmethod
    def _pages(operand: OperandBytes) -> list[tuple[str, object, int | None]] | None:
        """Return the root, shared by operands without known bytes, and the pages of known bytes; None: too many."""
        pages = [range(start // _PAGE, max(start, end - 1) // _PAGE + 1) for start, end in operand.ranges or ()]
        if sum(own.stop - own.start for own in pages) > _MOST_PAGES:
            return None
        return [(operand.space, operand.root, None), *((operand.space, None, page) for own in pages for page in own)]


@dataclass(slots=True)
class Uses:
    """The reads and writes of each buffer."""

    elements: Sequence[MarkedElement]
    rules: Rules
    _readers: dict[OperandBytes, Places] = field(default_factory=dict)
    _writers: dict[OperandBytes, Places] = field(default_factory=dict)
    _near: dict[OperandBytes, tuple[OperandBytes, ...]] = field(default_factory=dict)
    _known: _Operands = field(init=False)

    def __post_init__(self) -> None:
        for number, element in enumerate(self.elements):
            if element.kind is ElementKind.OPERATION:
                for places, buffers in ((self._readers, element.reads), (self._writers, element.writes)):
                    for buffer in dict.fromkeys(buffers):
                        places.setdefault(buffer, {}).setdefault(element.pipe, []).append(number)
        self._known = _Operands(dict.fromkeys((*self._readers, *self._writers)))

    def of(self, now: MarkedElement) -> Touching:
        """Return the earlier operations that an operation depends on, by `dependences`."""
        pipes, touching = self.rules.pipes, Touching({})
        alone = frozenset((now.pipe,)) if now.pipe == pipes.scalar else frozenset[str]()
        rewriting = alone | ({now.pipe} if now.pipe == pipes.load else frozenset[str]())
        for buffer in dict.fromkeys(now.reads):
            for other in self._overlapping(buffer):
                touching.add(self._writers.get(other), alone)
                if buffer.space == ACCUMULATOR:
                    touching.add(self._readers.get(other), {now.pipe})
        for buffer in dict.fromkeys(now.writes):
            for other in self._overlapping(buffer):
                touching.add(self._readers.get(other), alone)
                touching.add(self._writers.get(other), rewriting)
        return touching

    def _overlapping(self, buffer: OperandBytes) -> tuple[OperandBytes, ...]:
        if buffer not in self._near:
            self._near[buffer] = self._known.overlapping(buffer)
        return self._near[buffer]


@dataclass(frozen=True, slots=True)
class Touching:
    """Indices of operations in order, by pipe; some may occur twice."""

    places: dict[str, list[list[int]]]

    def add(self, places: Places | None, without: AbstractSet[str]) -> None:
        """Add operations, except those on some pipes."""
        for pipe, numbers in (places or {}).items():
            if pipe not in without:
                self.places.setdefault(pipe, []).append(numbers)

    def last_before(self, position: int, ordered: AbstractSet[str]) -> int:
        """Return the last of them before a position, ignoring pipes that are `ordered`; -1 for none."""
        return max((last_before(places, position) for places in self._lists(ordered)), default=-1)

    def any_within(self, start: int, end: int, ordered: AbstractSet[str] = frozenset()) -> bool:
        """Whether any of them, on a pipe that is not `ordered`, is among the elements from `start` to before `end`."""
        return any(last_before(places, end) >= start for places in self._lists(ordered))

    def _lists(self, ordered: AbstractSet[str]) -> Iterator[list[int]]:
        for pipe, lists in self.places.items():
            if pipe not in ordered:
                yield from lists


def last_before(numbers: Sequence[int], position: int) -> int:
    """Return the last of ordered indices before a position, -1 for none."""
    index = bisect_left(numbers, position)
    return numbers[index - 1] if index else -1
