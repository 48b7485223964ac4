"""Violations of the order of a program: races, mismatched flags, unwritten bytes.

The program is followed through its flags and barriers without times, so a finding may occur at some speed of the pipes,
even if this run would not show it. Trips of loops are not unrolled; see `race_detector` for the assumptions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from itertools import count

from castsim.execution.pipe_operations import PATH_ONLY, Idle
from castsim.execution.tree import (
    Access,
    Block,
    Deltas,
    Instruction,
    Loop,
    Lowered,
    Move,
    Node,
    elements,
    widened,
    width,
)
from castsim.isa.dataclass import dataclass
from castsim.isa.errors import EngineError, RaceError, Span
from castsim.targets.dataflow import Hazard

STOP = "stop"
REPORT = "report"
IGNORE = "ignore"

MODES = (STOP, REPORT, IGNORE)
"""Treatment of findings: reject the program, run it and report them, or do not check."""


# The findings of the detector, in words and as data.

_SHOWN = 5
"""Findings that a refusal spells out."""


class RaceKind(StrEnum):
    """The kind of a finding."""

    DEADLOCK = "deadlock"
    UNMATCHED = "unmatched flag"
    PENDING_TWICE = "flag pending twice"
    RACE = "race"
    MISSING_BARRIER = "missing barrier"
    UNWRITTEN = "nothing wrote"
    CONTROL = "control state"
    UNFINISHED = "unfinished at the end"


@dataclass(frozen=True, slots=True)
class RaceRegion:
    """Bytes [start, end) of an address space; those of the first trips if loops move them."""

    space: str
    start: int
    end: int

    def __str__(self) -> str:
        return f"{self.space} bytes {self.start} .. {self.end - 1}"


@dataclass(frozen=True, slots=True)
class RaceFinding:
    """A violation of the order.

    `spans` are the positions of the instructions in program order, the finding belongs to the last; `pipes` are
    those of the instructions, or signaller and waiter of a flag. `missing` is the correction.
    """

    kind: RaceKind
    message: str
    spans: tuple[Span, ...]
    pipes: tuple[str, ...]
    region: RaceRegion | None = None
    missing: str = ""

    @property
    def sentence(self) -> str:
        """The finding with its remedy."""
        return f"{self.kind}: {self.message}" + (f"; missing: {self.missing}" if self.missing else "")


def refusal(findings: Sequence[RaceFinding]) -> RaceError | EngineError:
    """Return the error that rejects a program for its findings, of which there is at least one."""
    spelt = [finding.sentence for finding in findings[:_SHOWN]]
    more = len(findings) - len(spelt)
    message = "\n  ".join(spelt) + (f"\n  and {more} more" if more else "")
    span = findings[0].spans[-1]
    if findings[0].kind is RaceKind.DEADLOCK:
        return EngineError(message, span=span)
    return RaceError(message, span=span, legal=("--races report", "--races ignore"))


# The bytes that each part of a tree touches, by pipe; a loop as a whole touches what all of its trips do.

Rows = tuple[Sequence[Deltas], ...]
"""Steps of the addressed elements of a node in each loop around it, outermost first."""


@dataclass(frozen=True, slots=True)
class Touch:
    """Bytes that an instruction on `pipe` touches in the first trips of all loops around it.

    `steps` gives the movement by each of those loops per trip, outermost first.
    """

    pipe: str
    access: Access
    steps: tuple[int, ...]


def touches(node: Node, rows: Rows, instructions: Sequence[Instruction]) -> dict[Touch, None]:
    """Return the distinct touches of a node in program order."""
    return dict.fromkeys(_touches(node, rows, instructions))


def slices(block: Block, rows: Rows) -> Iterator[tuple[Node, Rows]]:
    """Yield the items of a block with their own steps."""
    start = 0
    for item in block.items:
        end = start + width(item)
        yield item, tuple(row[start:end] for row in rows)
        start = end


def _touches(node: Node, rows: Rows, instructions: Sequence[Instruction]) -> Iterator[Touch]:
    if isinstance(node, Lowered):
        yield from (touch for touch in touches_of(node, rows, instructions) if touch.access.start < touch.access.end)
    elif isinstance(node, Loop):
        for inner in touches(node.body, (*rows, node.steps), instructions):
            yield Touch(inner.pipe, widened(inner.access, node.trips, inner.steps[-1]), inner.steps[:-1])
    elif isinstance(node, Block):
        for item, below in slices(node, rows):
            yield from _touches(item, below, instructions)


def touches_of(node: Lowered, rows: Rows, instructions: Sequence[Instruction]) -> tuple[Touch, ...]:
    """Return the bytes that an instruction touches, one entry for each access."""
    pipe = instructions[node.instruction].pipe
    return tuple(
        Touch(pipe, access, tuple(row[0][number] for row in rows)) for number, access in enumerate(node.accesses)
    )


# The accesses that may depend on each other, and the hazards between them.


def hazard_between(first: Access, second: Access) -> Hazard | None:
    """Return the hazard between two accesses in program order, None if both only read; bytes are not compared."""
    if first.write:
        return Hazard.WRITE_AFTER_WRITE if second.write else Hazard.READ_AFTER_WRITE
    return Hazard.WRITE_AFTER_READ if second.write else None


def contended_spaces(root: Block, instructions: Sequence[Instruction], vector: str) -> tuple[str, ...]:
    """Return the address spaces in which any dependence is possible.

    Excluded are those that are only read, and global memory that one pipe alone touches, one instruction at a time;
    the pipe `vector` does not wait for the end of one before it starts the next.
    """
    uses: dict[str, tuple[set[str], set[bool]]] = {}
    for element in elements(root):
        if isinstance(element, Lowered):
            for access in element.accesses:
                pipes, writes = uses.setdefault(access.space, (set(), set()))
                pipes.add(instructions[element.instruction].pipe)
                writes.add(access.write)
    return tuple(
        space for space, (pipes, writes) in uses.items() if True in writes and (len(pipes) > 1 or vector in pipes)
    )


# The executions of a program that stand for all of them, loops shortened.
#
# Of a loop with more than `SLOTS` trips the first `SLOTS` are followed, one behind the other. Flags and barriers in
# the body connect two trips by their distance alone, once the first trip has consumed what was set before the loop; so
# two of the followed trips stand for all that are as far apart, the first and the last followed ones for all that are
# farther apart still. Seen from behind the loop the followed trips are the last ones. Byte addresses are compared for
# all trips that a pair of followed ones stands for, not only for those. What remains: a program that keeps
# instructions apart only from a certain distance of `SLOTS` trips or more on is reported although nothing may be wrong
# with it.

SLOTS = 4
"""Number of followed trips of a loop."""


@dataclass(frozen=True, slots=True)
class FollowedTrip:
    """One followed trip of an execution of a loop: `entry` numbers the execution, `slot` the followed trip."""

    entry: int
    slot: int
    trips: int

    @property
    def exact(self) -> bool:
        """Whether all trips are followed."""
        return self.trips <= SLOTS


@dataclass(frozen=True, slots=True)
class Instance:
    """One followed execution of an instruction: `number` counts them in program order."""

    number: int
    lowered: Lowered
    touches: tuple[Touch, ...]
    path: tuple[FollowedTrip, ...]


def unfold(root: Block, instructions: Sequence[Instruction]) -> Iterator[Instance]:
    """Yield the followed executions in program order; reads that only decide the path have none."""
    numbers, entries, idle = count(), count(), Idle(PATH_ONLY)

    def walk(node: Node, rows: Rows, path: tuple[FollowedTrip, ...]) -> Iterator[Instance]:
        if idle(node):
            return
        if isinstance(node, Lowered):
            yield Instance(next(numbers), node, touches_of(node, rows, instructions), path)
        elif isinstance(node, Loop):
            entry = next(entries)
            for slot in range(min(node.trips, SLOTS)):
                yield from walk(node.body, (*rows, node.steps), (*path, FollowedTrip(entry, slot, node.trips)))
        elif isinstance(node, Block):
            for item, below in slices(node, rows):
                yield from walk(item, below, path)

    return walk(root, (), ())


def distance(first: Instance, touch: Touch, second: Instance, other: Touch) -> tuple[int, tuple[Move, ...]]:
    """Return the offset of `other` relative to `touch`, which comes first in the program, due to loops.

    Returns:
        A number of bytes, and additional moves of which every combination occurs in some pair of trips that these two
            executions represent.
    """
    relation = _Relation()
    depth = 0
    for mine, theirs in zip(first.path, second.path, strict=False):
        if mine.entry != theirs.entry:
            break
        relation.common(mine, theirs, touch.steps[depth], other.steps[depth])
        depth += 1
        if mine.slot != theirs.slot:
            break
    for turn, step in zip(first.path[depth:], touch.steps[depth:], strict=True):
        relation.left(turn, step)
    for turn, step in zip(second.path[depth:], other.steps[depth:], strict=True):
        relation.entered(turn, step)
    return relation.shift, tuple(move for move in relation.moves if move[1] and move[0] > 1)


class _Relation:
    def __init__(self) -> None:
        self.shift = 0
        self.moves: list[Move] = []

    def common(self, mine: FollowedTrip, theirs: FollowedTrip, step: int, other: int) -> None:
        """Process a loop around both executions."""
        apart = theirs.slot - mine.slot
        if mine.exact:
            self.shift += other * theirs.slot - step * mine.slot
            return
        self.shift += other * apart
        pairs = mine.trips - apart
        if apart < SLOTS - 1 or step == other:
            self.moves.append((pairs, other if apart == SLOTS - 1 else other - step))
        else:
            # Any trip far enough from the last against any far enough from the first: some of them too close together.
            self.moves += [(pairs, other), (pairs, -step)]

    def left(self, turn: FollowedTrip, step: int) -> None:
        """Process a loop that ends before the second execution; its trips count from the last one."""
        if turn.exact:
            self.shift -= step * turn.slot
        elif turn.slot:
            self.shift -= step * (turn.trips - SLOTS + turn.slot)
        else:
            self.moves.append((turn.trips - SLOTS + 1, -step))

    def entered(self, turn: FollowedTrip, step: int) -> None:
        """Process a loop that begins after the first execution; its trips count from the first one."""
        self.shift += step * turn.slot
        if not turn.exact and turn.slot == SLOTS - 1:
            self.moves.append((turn.trips - SLOTS + 1, step))
