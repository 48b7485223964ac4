"""Modulo scheduling: one trip of a loop in bundles such that a new trip can begin every so many bundles.

Iterative modulo scheduling: instructions are placed in order of their distance to the end; one that finds no place
takes one and sends others back to the queue. Every distance between instructions of one trip and of two successive
trips is kept, those between the last reader of a register and the next trip's write of it among them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from castsim.isa.tpc import Slot
from castsim.tpc_compiler.scheduling.operations import Operation
from castsim.tpc_compiler.scheduling.placing import Placer

_BUDGET = 8
"""Placements per instruction before an interval is given up."""


@dataclass(frozen=True, slots=True)
class Edge:
    """A dependence on another instruction, of the same trip or (`trips` 1) of the one before."""

    other: int
    trips: int


class Trip:
    """The instructions of one trip, with what depends on what."""

    def __init__(self, operations: Sequence[Operation], placer: Placer) -> None:
        self.operations = operations
        self.placer = placer
        count = len(operations)
        self.before: list[list[Edge]] = [[] for _ in range(count)]
        self.behind: list[list[Edge]] = [[] for _ in range(count)]
        for first in range(count):
            for second in range(count):
                if self.needed(first, self._slot(first), second, self._slot(second)) is not None:
                    trips = 0 if first < second else 1
                    for distance in {trips, 1}:
                        self.before[second].append(Edge(first, distance))
                        self.behind[first].append(Edge(second, distance))
        self.heights = self._heights()

    def needed(self, first: int, slot: Slot, second: int, second_slot: Slot) -> int | None:
        """Return the smallest distance between two instructions, as `Distances.needed`."""
        return self.placer.distances.needed(self.operations[first], slot, self.operations[second], second_slot)

    def _slot(self, number: int) -> Slot:
        return next(iter(self.operations[number].slots))

    def _heights(self) -> list[int]:
        found = [0] * len(self.operations)
        for number in range(len(self.operations) - 1, -1, -1):
            for edge in self.behind[number]:
                if edge.trips == 0:
                    needed = self.needed(number, self._slot(number), edge.other, self._slot(edge.other)) or 0
                    found[number] = max(found[number], found[edge.other] + needed)
        return found

    def least_interval(self) -> int:
        """Return the smallest interval that the slots and the circles of dependences allow."""
        slots = [next(iter(each.slots)) for each in self.operations if len(each.slots) == 1]
        low = max([1, -(-len(self.operations) // len(Slot)), *(slots.count(slot) for slot in Slot)])
        edges = self._edges()
        if self._consistent(edges, low):
            return low
        high = 2 * low
        while not self._consistent(edges, high):
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._consistent(edges, middle) else (middle, high)
        return high

    def _edges(self) -> list[tuple[int, int, int, int]]:
        """Return the dependences: what must come first, what behind it, in which trip, how far at least."""
        found = []
        for second, before in enumerate(self.before):
            for first in {edge.other for edge in before}:
                pairs = product(self.operations[first].slots, self.operations[second].slots)
                needed = min(self.needed(first, one, second, two) or 0 for one, two in pairs)
                found.append((first, second, 0 if first < second else 1, needed))
        return found

    def _consistent(self, edges: Sequence[tuple[int, int, int, int]], interval: int) -> bool:
        """Whether places at an interval can keep all dependences, slots aside (Bellman and Ford)."""
        places = [0] * len(self.operations)
        for _ in range(len(places) + 1):
            changed = False
            for first, second, trips, needed in edges:
                place = places[first] + needed - trips * interval
                if place > places[second]:
                    places[second], changed = place, True
            if not changed:
                return True
        return False


class ModuloSchedule:
    """Places one trip at one interval."""

    def __init__(self, trip: Trip, interval: int) -> None:
        self._trip = trip
        self._interval = interval
        self._places: dict[int, tuple[int, Slot]] = {}
        self._last: dict[int, int] = {}

    def places(self) -> dict[Operation, tuple[int, Slot]] | None:
        """Return bundle and slot of every instruction, from bundle 0 on; None if none were found."""
        trip = self._trip
        waiting = set(range(len(trip.operations)))
        for _ in range(_BUDGET * len(trip.operations)):
            if not waiting:
                break
            number = max(waiting, key=lambda each: (trip.heights[each], -each))
            waiting.discard(number)
            waiting |= self._put(number)
        if waiting:
            return None
        start = min(place for place, _ in self._places.values())
        return {trip.operations[number]: (place - start, slot) for number, (place, slot) in self._places.items()}

    def _put(self, number: int) -> set[int]:
        """Place an instruction; return those that lose their places."""
        slots = list(self._trip.operations[number].slots)
        chosen: tuple[int, Slot] | None = None
        for slot in slots:
            first = self._earliest(number, slot)
            free = (at for at in range(first, first + self._interval) if not self._rivals(number, slot, at))
            at = next(free, None)
            if at is not None and (chosen is None or at < chosen[0]):
                chosen = at, slot
        if chosen is None:
            chosen = max(self._earliest(number, slots[0]), self._last.get(number, -1) + 1), slots[0]
        at, slot = chosen
        lost = self._rivals(number, slot, at)
        for other in lost:
            del self._places[other]
        self._places[number], self._last[number] = (at, slot), at
        late = self._violated(number)
        for other in late:
            del self._places[other]
        return lost | late

    def _earliest(self, number: int, slot: Slot) -> int:
        found = 0
        for edge in self._trip.before[number]:
            if edge.other in self._places and edge.other != number:
                place, own = self._places[edge.other]
                needed = self._trip.needed(edge.other, own, number, slot) or 0
                found = max(found, place + needed - edge.trips * self._interval)
        return found

    def _violated(self, number: int) -> set[int]:
        """Return the placed instructions that stand too near behind one, or before which it stands too near."""
        place, slot = self._places[number]
        found = set()
        for edge in self._trip.behind[number]:
            if edge.other in self._places and edge.other != number:
                other, own = self._places[edge.other]
                needed = self._trip.needed(number, slot, edge.other, own) or 0
                if other + edge.trips * self._interval - place < needed:
                    found.add(edge.other)
        return found

    def _rivals(self, number: int, slot: Slot, at: int) -> set[int]:
        """Return the placed instructions that cannot stand where they do beside this one."""
        trip = self._trip
        same = {
            other: own
            for other, (place, own) in self._places.items()
            if other != number and (place - at) % self._interval == 0
        }
        found = {other for other, own in same.items() if own is slot}
        rest = [(trip.operations[other], own) for other, own in same.items() if other not in found]
        if not trip.placer.room.shared_by([*rest, (trip.operations[number], slot)]):
            found |= set(same)
        return found | self._barred(number, slot, at)

    def _barred(self, number: int, slot: Slot, at: int) -> set[int]:
        """Return the instructions at distances that issue rules bar."""
        barred, operations = self._trip.placer.distances.barred, self._trip.operations
        found = set()
        for other, (place, own) in self._places.items():
            behind = barred(operations[other], own, operations[number], slot)
            ahead = barred(operations[number], slot, operations[other], own)
            near = any((at - place - distance) % self._interval == 0 for distance in behind)
            if near or any((place - at - distance) % self._interval == 0 for distance in ahead):
                found.add(other)
        return found - {number}
