"""The places of flags and barriers, block by block.

A loop counts as one item of the block around it, and a flag between two items is set behind the first and waited for
before the second, so set and wait always pair in one block. Inside, a loop is planned on its own; what one trip must
leave alone until another has finished becomes a flag that is set once before the loop, waited for at the top of each
trip, set again behind the last such instruction of the trip, and waited for once more behind the loop.

A wait holds for everything its signaller did, and had waited for, before the signal. A flag is left out where others
of the same trip already keep the order, or those from the trip before to a third pipe and from there on. An order that
leads through a third pipe first and from there to the next trip is not used: the tool was observed to set V -> MTE2
beside MTE3 -> MTE2 around a loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from castsim.execution.byte_sets import common_bytes
from castsim.execution.tree import Block, Instruction, Loop
from castsim.synchronisation.flags.knowledge import Knowledge
from castsim.synchronisation.flags.touches import Rows, Touch, slices, touches
from castsim.synchronisation.hazards import contended_spaces, hazard_between
from castsim.targets.dataflow import DataflowTarget

Pair = tuple[str, str]
"""Signaller and waiter."""


@dataclass(slots=True)
class PlannedFlag:
    """Set behind item `after`, waited for before item `before` of the same block."""

    pair: Pair
    after: int
    before: int
    event: int = -1


@dataclass(slots=True)
class BackEdge:
    """Waited for at the top of every trip, set behind item `after` of the body, both also once around the loop."""

    pair: Pair
    after: int
    event: int = -1


@dataclass(slots=True)
class LoopPlan:
    """The plan of a loop: its body, and what one trip waits for of those before it."""

    body: BlockPlan
    back_edges: list[BackEdge] = field(default_factory=list)
    drain_at_top: bool = False
    """A barrier on all pipes at the top of each trip stands for the back edges that found no event id."""


@dataclass(slots=True)
class BlockPlan:
    """The plan of a block: `barriers` and `drains` are items with a vector or a full barrier before them."""

    flags: list[PlannedFlag] = field(default_factory=list)
    barriers: set[int] = field(default_factory=set)
    drains: set[int] = field(default_factory=set)
    loops: dict[int, LoopPlan] = field(default_factory=dict)


def plan_program(root: Block, instructions: Sequence[Instruction], target: DataflowTarget) -> BlockPlan:
    """Plan a whole program; event ids are not chosen yet."""
    contended = frozenset(contended_spaces(root, instructions, target.pipes.vector))
    return _Planner((), target, instructions, contended).plan(root, ()).body


@dataclass(slots=True)
class _Planner:
    """Plans one block; `trips` are those of the loops around it, outermost first."""

    trips: tuple[int, ...]
    target: DataflowTarget
    instructions: Sequence[Instruction]
    contended: frozenset[str]
    """The address spaces that are looked at."""
    found: BlockPlan = field(default_factory=BlockPlan)
    latest: dict[str, dict[Touch, int]] = field(default_factory=dict)
    """Per space the last item in which each touch has occurred."""
    known: Knowledge = field(default_factory=Knowledge)

    def plan(self, block: Block, rows: Rows) -> LoopPlan:
        """Plan the block; the back edges are those of the innermost loop around it."""
        items: list[list[Touch]] = []
        for number, (item, below) in enumerate(slices(block, rows)):
            here = [t for t in touches(item, below, self.instructions) if t.access.space in self.contended]
            items.append(here)
            self._order(number, here)
            for touch in here:
                self.latest.setdefault(touch.access.space, {})[touch] = number
            if isinstance(item, Loop):
                inner = _Planner((*self.trips, item.trips), self.target, self.instructions, self.contended)
                self.found.loops[number] = inner.plan(item.body, (*below, item.steps))
        edges = self._back_edges(items) if self.trips and self.trips[-1] > 1 else {}
        return LoopPlan(self.found, [BackEdge(pair, after) for pair, after in edges.items()])

    def _order(self, number: int, here: Iterable[Touch]) -> None:
        """Plan what item `number` waits for of the items before it, the latest of them first."""
        needs: dict[Pair, int] = {}
        for touch in here:
            for earlier, item in self.latest.get(touch.access.space, {}).items():
                pair = (earlier.pipe, touch.pipe)
                if not self._matters(earlier, touch) or item <= needs.get(pair, -1):
                    continue
                if item <= self.known.of(touch.pipe, number, earlier.pipe):
                    continue
                if common_bytes(earlier.access, touch.access, moves=touch.moves_against(earlier, self.trips)):
                    needs[pair] = item
        for (signaller, waiter), item in sorted(needs.items(), key=lambda need: -need[1]):
            if item <= self.known.of(waiter, number, signaller):
                continue
            if signaller == waiter:
                self.found.barriers.add(number)
                self.known.drain(waiter, number)
            else:
                self.found.flags.append(PlannedFlag((signaller, waiter), item, number))
                self.known.learn(waiter, number, signaller, item)

    def _matters(self, earlier: Touch, later: Touch) -> bool:
        """Whether these two would have to be kept apart if they met."""
        hazard = hazard_between(earlier.access, later.access)
        if hazard is None or earlier.pipe != later.pipe:
            return hazard is not None
        # Every other pipe does one thing after the other.
        return later.pipe == self.target.pipes.vector and hazard in self.target.synchronisation.inserted_barriers

    def _back_edges(self, items: Sequence[Iterable[Touch]]) -> dict[Pair, int]:
        """Return per pair of pipes the item of a trip that later trips wait for; add vector barriers between trips."""
        edges: dict[Pair, int] = {}
        apart: list[tuple[int, int]] = []
        earlier_trips = Knowledge()
        waits: dict[int, list[PlannedFlag]] = {}
        for flag in self.found.flags:
            waits.setdefault(flag.before, []).append(flag)
        for number, here in enumerate(items):
            for flag in waits.get(number, ()):
                earlier_trips.learn(flag.pair[1], number, flag.pair[0], flag.after, itself=False)
            for touch in here:
                for earlier, item in self.latest[touch.access.space].items():
                    pair = (earlier.pipe, touch.pipe)
                    # What this trip waits for of its own comes behind the same item of earlier trips.
                    known = self.known.of(touch.pipe, number, earlier.pipe)
                    if item <= max(known, earlier_trips.of(touch.pipe, number, earlier.pipe)):
                        continue
                    if not self._matters(earlier, touch) or not self._meets(earlier, touch):
                        continue
                    if pair[0] == pair[1]:
                        apart.append((item, number))
                    else:
                        edges[pair] = item
                        earlier_trips.always.setdefault(touch.pipe, {})[earlier.pipe] = item
        for item, number in apart:
            # A barrier lies between the two behind the one in its trip, or before the other in the next.
            if not any(barrier <= number or barrier > item for barrier in self.found.barriers):
                self.found.barriers.add(number)
        return edges

    def _meets(self, earlier: Touch, later: Touch) -> bool:
        """Whether `later` touches the same bytes in some trip after that of `earlier`."""
        trips, step = self.trips[-1], later.steps[-1]
        moves = list(later.moves_against(earlier, self.trips))
        if moves:
            moves[-1] = (trips - 1, moves[-1][1])
        moves.append((trips - 1, step))
        return common_bytes(earlier.access, later.access, step, moves) is not None
