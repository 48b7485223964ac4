"""The executions of a program that stand for all of them, loops shortened.

Of a loop with more than `SLOTS` trips the first `SLOTS` are followed, one behind the other. Flags and barriers in the
body connect two trips by their distance alone, once the first trip has consumed what was set before the loop; so two
of the followed trips stand for all that are as far apart, the first and the last followed ones for all that are
farther apart still. Seen from behind the loop the followed trips are the last ones. Byte addresses are compared for
all trips that a pair of followed ones stands for, not only for those. What remains: a program that keeps instructions
apart only from a certain distance of `SLOTS` trips or more on is reported although nothing may be wrong with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count

from castsim.execution.byte_sets import Move
from castsim.execution.dataflow.pipe_operations import PATH_ONLY, Idle
from castsim.execution.tree import Block, Instruction, Loop, Lowered, Node
from castsim.synchronisation.races.race_findings import Rows, Touch, slices

SLOTS = 4
"""Trips of a loop that are followed."""


@dataclass(frozen=True, slots=True)
class FollowedTrip:
    """One followed trip of an execution of a loop: `entry` numbers the execution, `slot` the followed trip."""

    entry: int
    slot: int
    trips: int

    @property
    def exact(self) -> bool:
        """Whether the followed trips are all there are."""
        return self.trips <= SLOTS


@dataclass(frozen=True, slots=True)
class Instance:
    """One followed execution of an instruction: `number` counts them in program order."""

    number: int
    lowered: Lowered
    touches: tuple[Touch, ...]
    path: tuple[FollowedTrip, ...]


def unfold(root: Block, instructions: Sequence[Instruction]) -> Iterator[Instance]:
    """Yield the followed executions in program order; of what only decides the path there are none."""
    numbers, entries, idle = count(), count(), Idle(PATH_ONLY)

    def walk(node: Node, rows: Rows, path: tuple[FollowedTrip, ...]) -> Iterator[Instance]:
        if idle(node):
            return
        if isinstance(node, Lowered):
            yield Instance(next(numbers), node, _touches(node, rows, instructions), path)
        elif isinstance(node, Loop):
            entry = next(entries)
            for slot in range(min(node.trips, SLOTS)):
                yield from walk(node.body, (*rows, node.steps), (*path, FollowedTrip(entry, slot, node.trips)))
        elif isinstance(node, Block):
            for item, below in slices(node, rows):
                yield from walk(item, below, path)

    return walk(root, (), ())


def _touches(node: Lowered, rows: Rows, instructions: Sequence[Instruction]) -> tuple[Touch, ...]:
    pipe = instructions[node.instruction].pipe
    return tuple(
        Touch(pipe, access, tuple(row[0][number] for row in rows)) for number, access in enumerate(node.accesses)
    )


def distance(first: Instance, one: Touch, second: Instance, other: Touch) -> tuple[int, tuple[Move, ...]]:
    """Return the offset that loops give `other` against `one`, which comes first in the program.

    Returns:
        A number of bytes, and further moves of which every combination occurs in some pair of trips that these two
        executions stand for.
    """
    relation = _Relation()
    depth = 0
    for mine, theirs in zip(first.path, second.path, strict=False):
        if mine.entry != theirs.entry:
            break
        relation.common(mine, theirs, one.steps[depth], other.steps[depth])
        depth += 1
        if mine.slot != theirs.slot:
            break
    for turn, step in zip(first.path[depth:], one.steps[depth:], strict=True):
        relation.left(turn, step)
    for turn, step in zip(second.path[depth:], other.steps[depth:], strict=True):
        relation.entered(turn, step)
    return relation.shift, tuple(move for move in relation.moves if move[1] and move[0] > 1)


class _Relation:
    def __init__(self) -> None:
        self.shift = 0
        self.moves: list[Move] = []

    def common(self, mine: FollowedTrip, theirs: FollowedTrip, one: int, other: int) -> None:
        """Take in a loop around both."""
        apart = theirs.slot - mine.slot
        if mine.exact:
            self.shift += other * theirs.slot - one * mine.slot
            return
        self.shift += other * apart
        pairs = mine.trips - apart
        if apart < SLOTS - 1 or one == other:
            self.moves.append((pairs, other if apart == SLOTS - 1 else other - one))
        else:
            # Any trip far enough from the last against any far enough from the first: some of them too close together.
            self.moves += [(pairs, other), (pairs, -one)]

    def left(self, turn: FollowedTrip, step: int) -> None:
        """Take in a loop that is over before the second execution; its trips count from the last one."""
        if turn.exact:
            self.shift -= step * turn.slot
        elif turn.slot:
            self.shift -= step * (turn.trips - SLOTS + turn.slot)
        else:
            self.moves.append((turn.trips - SLOTS + 1, -step))

    def entered(self, turn: FollowedTrip, step: int) -> None:
        """Take in a loop that begins behind the first execution; its trips count from the first one."""
        self.shift += step * turn.slot
        if not turn.exact and turn.slot == SLOTS - 1:
            self.moves.append((turn.trips - SLOTS + 1, step))
