"""A program as the vendor's tool numbers it: operations, and where loops and branches begin and end.

Nothing here depends on a value: loops are listed once, and so are both parts of every branch
(docs/reference/pto.md section 5.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

Range = tuple[int, int]
"""Bytes of a memory: the first, and the first one behind the last."""


class ElementKind(Enum):
    """What an element is."""

    OPERATION = "operation"
    LOOP_BEGIN = "loop begin"
    LOOP_END = "loop end"
    IF_BEGIN = "if begin"
    THEN_END = "then end"
    ELSE_BEGIN = "else begin"
    ELSE_END = "else end"
    IF_END = "if end"


@dataclass(frozen=True, slots=True)
class Buffer:
    """What an operand stands for: an argument of the kernel, a tile, or stretches of bytes of one.

    `space` is the memory, `root` what the bytes belong to: the name of an argument, the number of an allocation.
    `ranges` are the bytes if their addresses are known before the program runs. `filled` counts the bytes of the valid
    elements of a tile without gaps between them; it is 0 for any other, and where the text does not tell.
    """

    space: str
    root: str | int
    ranges: tuple[Range, ...] | None = None
    filled: int = 0

    def overlaps(self, other: Buffer) -> bool:
        """Whether both may be the same bytes: what is not known to be apart within one root is not."""
        if self.space != other.space:
            return False
        if self.ranges is None or other.ranges is None:
            return self.root == other.root
        return any(a < d and c < b for a, b in self.ranges for c, d in other.ranges)


@dataclass(slots=True, eq=False)
class LoopSpan:
    """A loop: the numbers of its two elements."""

    begin: int
    end: int = -1


@dataclass(slots=True, eq=False)
class BranchSpan:
    """A branch: the numbers of its five elements, which it has also without an else part."""

    begin: int
    then_end: int = -1
    else_begin: int = -1
    else_end: int = -1
    end: int = -1

    @property
    def parts(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """First element and the one behind the last, of the then part and of the else part."""
        return (self.begin + 1, self.then_end), (self.else_begin + 1, self.else_end)


@dataclass(slots=True, eq=False)
class Pair:
    """A flag: set behind element `set_at`, waited for before element `wait_at`.

    `loop` is the loop whose next trip waits for it (None: the same trip does), `buffers` what the two operations
    have in common. `event` is its id; `drained` says that there was none left, and a barrier does its work.
    """

    number: int
    signaller: str
    waiter: str
    set_at: int
    wait_at: int
    loop: LoopSpan | None = None
    buffers: frozenset[Buffer] = frozenset()
    event: int = -1
    at_loop: bool = False
    """Whether the first set and the last wait of a carried pair stand at its loop instead of the function's ends."""
    drained: bool = False

    @property
    def pipes(self) -> tuple[str, str]:
        """Who signals and who waits."""
        return self.signaller, self.waiter


@dataclass(frozen=True, slots=True)
class Set:
    """The set of a pair."""

    pair: Pair


@dataclass(frozen=True, slots=True)
class Wait:
    """The wait of a pair."""

    pair: Pair


@dataclass(frozen=True, slots=True)
class Hold:
    """A barrier of one pipe."""

    pipe: str


Mark = Set | Wait | Hold


@dataclass(slots=True, eq=False)
class Element:
    """One element: what it is, and the marks before and after it.

    An operation has a pipe and what it `reads` and `writes`. `block` is the number of the innermost region that the
    element itself stands in; the ends of a loop stand in the region around it.
    """

    kind: ElementKind
    block: int
    pipe: str = ""
    reads: tuple[Buffer, ...] = ()
    writes: tuple[Buffer, ...] = ()
    gathers: bool = False
    """Whether the program then keeps all its flags: the operation is a gather or scatter."""
    region: LoopSpan | BranchSpan | None = None
    before: list[Mark] = field(default_factory=list)
    after: list[Mark] = field(default_factory=list)


@dataclass(slots=True)
class Listing:
    """The elements of a program in the order of its text."""

    elements: list[Element] = field(default_factory=list)
    _open: list[int] = field(default_factory=lambda: [0])
    _blocks: int = 0

    def operation(
        self, pipe: str, reads: Sequence[Buffer] = (), writes: Sequence[Buffer] = (), *, gathers: bool = False
    ) -> int:
        """Add an operation; return its number."""
        element = Element(ElementKind.OPERATION, self._open[-1], pipe, tuple(reads), tuple(writes), gathers)
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
        return self._add(Element(kind, self._open[-1], region=region))

    def _add(self, element: Element) -> int:
        self.elements.append(element)
        return len(self.elements) - 1

    def _enter(self) -> None:
        self._blocks += 1
        self._open.append(self._blocks)
