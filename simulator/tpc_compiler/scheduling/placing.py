"""Places in bundles for the instructions of a block: one after the other, or by list scheduling.

List scheduling takes, bundle by bundle, the instruction with the longest way to the end of the block among those whose
operands are there. Distances to what earlier blocks issued are kept on every path.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from castsim.isa.tpc import Slot
from castsim.tpc_compiler.scheduling.blocks import Block, is_jump
from castsim.tpc_compiler.scheduling.distances import Distances
from castsim.tpc_compiler.scheduling.operations import Operation, Operations
from castsim.tpc_compiler.scheduling.room import Occupant, Room


@dataclass(slots=True)
class Placed:
    """A block in bundles: for each instruction its bundle and slot, and the number of bundles with delay bundles."""

    places: dict[Operation, tuple[int, Slot]] = field(default_factory=dict)
    length: int = 0

    def delay(self, end: Operation | None, bundles: int) -> None:
        """Put empty bundles at the end, before what ends the block."""
        self.length += bundles
        if end is not None and end in self.places:
            first = self.places[end][0]
            for operation, (place, slot) in self.places.items():
                if place >= first and (operation is end or place > first):
                    self.places[operation] = place + bundles, slot

    def postpone(self, bundles: int) -> None:
        """Put empty bundles at the beginning."""
        self.length += bundles
        self.places = {operation: (place + bundles, slot) for operation, (place, slot) in self.places.items()}


@dataclass(frozen=True, slots=True)
class Entering:
    """An instruction of an earlier block, so many bundles before the first one of a block.

    `pad` is the block that is to become longer if that is too near.
    """

    operation: Operation
    slot: Slot
    gap: int
    pad: int


@dataclass(frozen=True, slots=True)
class Policy:
    """The way of placing: `one` instruction a bundle in order, at least `apart` bundles from each other; else a list.

    A list takes no instruction that stands `window` or more behind the first one that waits.
    """

    one: bool = False
    apart: int = 1
    window: int | None = None


class Placer:
    """Places the blocks of one text."""

    def __init__(self, operations: Operations, distances: Distances) -> None:
        self.operations = operations
        self.distances = distances
        self.room = Room(operations)
        self._target = operations.target

    def place(self, block: Block, entering: Sequence[Entering], policy: Policy) -> Placed:
        """Return a block in bundles."""
        run = _Run(self, block.operations, entering, policy)
        placed = run.placed()
        if block.end is not None:
            self._place_end(block, placed, run, policy)
        return placed

    # ------------------------------------------------------------------------------------------------- end of block

    def _place_end(self, block: Block, placed: Placed, run: _Run, policy: Policy) -> None:
        """Place what ends a block; others may follow it into its delay bundles."""
        end = block.end
        assert end is not None
        slot = next(iter(end.slots))
        delay = 0
        if end.mnemonic != "halt":
            rules = self._target.jump_rules if is_jump(end) else self._target.loop_rules
            delay = rules.delay_bundles
        free = 0 if policy.one else delay
        at = max(0, placed.length - free - (0 if policy.one or not is_jump(end) else 1))
        at = max(at, placed.length) if policy.one else at
        while not self._end_fits(block, placed, run, (end, slot), at):
            at += 1
        placed.places[end] = at, slot
        placed.length = max(placed.length, at + 1 + delay)

    def _end_fits(self, block: Block, placed: Placed, run: _Run, end: Occupant, at: int) -> bool:
        allowed = self._target.jump_rules.delay_slots if is_jump(end[0]) else tuple(s.name.lower() for s in Slot)
        beside = [(other, slot) for other, (place, slot) in placed.places.items() if place == at]
        if not self.room.shared_by([*beside, end]) or at < run.entered(end[0], end[1]):
            return False
        for other, (place, slot) in placed.places.items():
            needed = self.distances.needed(other, slot, *end)
            if needed is not None and place + needed > at:
                return False
            if place > at and (end[0].mnemonic == "halt" or slot.name.lower() not in allowed):
                return False
        return True

    # --------------------------------------------------------------------------------------------------- what clashes

    def clashes(self, one: Occupant, at: int, others: Mapping[Operation, tuple[int, Slot]]) -> bool:
        """Whether an issue rule bars an instruction from a bundle, given where others stand."""
        begins = self.distances.begins(one[0])
        for other, (place, slot) in others.items():
            if at > place and self.distances.begins(other):
                if at - place in self.distances.barred(other, slot, *one):
                    return True
            elif begins and place > at and place - at in self.distances.barred(*one, other, slot):
                return True
        return False

    def related(self, block: Sequence[Operation]) -> dict[Operation, list[Operation]]:
        """Return, for each instruction, the earlier ones that it must follow, in the order of the text."""
        found: dict[Operation, list[Operation]] = {}
        by_name: dict[str, list[int]] = {}
        for place, operation in enumerate(block):
            touched = self.operations.touched(operation)
            names = touched.reads | touched.writes
            if self.operations.has_state(operation):
                names |= {"state"}
            near = sorted({other for name in names for other in by_name.get(name, ())})
            slot = next(iter(operation.slots))
            found[operation] = [
                block[other]
                for other in near
                if self.distances.needed(block[other], next(iter(block[other].slots)), operation, slot) is not None
            ]
            for name in names:
                by_name.setdefault(name, []).append(place)
        return found


class _Run:
    """Places the instructions of one block."""

    def __init__(
        self, placer: Placer, operations: Sequence[Operation], entering: Sequence[Entering], policy: Policy
    ) -> None:
        self._placer = placer
        self._operations = operations
        self._entering = entering
        self._policy = policy
        self._before = placer.related(operations)
        self._places: dict[Operation, tuple[int, Slot]] = {}
        self._bundles: dict[int, list[Occupant]] = {}
        self._entered: dict[Occupant, int] = {}

    def placed(self) -> Placed:
        """Return the places."""
        if self._policy.one:
            self._in_order()
        else:
            self._by_list()
        length = 1 + max((place for place, _ in self._places.values()), default=-1)
        return Placed(self._places, length)

    def entered(self, operation: Operation, slot: Slot) -> int:
        """Return the first bundle that is far enough behind all earlier blocks."""
        key = operation, slot
        if key not in self._entered:
            needed = self._placer.distances.needed
            wanted = [
                distance - each.gap
                for each in self._entering
                if (distance := needed(each.operation, each.slot, operation, slot)) is not None
            ]
            self._entered[key] = max([0, *wanted])
        return self._entered[key]

    def _earliest(self, operation: Operation, slot: Slot) -> int:
        found = self.entered(operation, slot)
        for other in self._before[operation]:
            place, own = self._places[other]
            needed = self._placer.distances.needed(other, own, operation, slot)
            found = max(found, place + (needed or 0))
        return found

    def _free(self, operation: Operation, slot: Slot, at: int) -> bool:
        if not self._placer.room.shared_by([*self._bundles.get(at, ()), (operation, slot)]):
            return False
        if self._placer.clashes((operation, slot), at, self._places):
            return False
        barred = self._placer.distances.barred
        return not any(at + each.gap in barred(each.operation, each.slot, operation, slot) for each in self._entering)

    def _put(self, operation: Operation, slot: Slot, at: int) -> None:
        self._places[operation] = at, slot
        self._bundles.setdefault(at, []).append((operation, slot))

    def _in_order(self) -> None:
        at = -self._policy.apart
        for operation in self._operations:
            slot = next(iter(operation.slots))
            at = max(at + self._policy.apart, self._earliest(operation, slot))
            while not self._free(operation, slot, at):
                at += 1
            self._put(operation, slot, at)

    def _by_list(self) -> None:
        heights = self._heights()
        load = _load_of_slots(self._operations)
        number = {operation: place for place, operation in enumerate(self._operations)}
        waiting = list(self._operations)
        at = 0
        while waiting:
            progress = True
            while progress and waiting:
                progress = False
                for operation in self._ready(waiting, number, heights):
                    slots = sorted(operation.slots, key=lambda slot: (load[slot], slot))
                    fitting = (s for s in slots if self._earliest(operation, s) <= at and self._free(operation, s, at))
                    slot = next(fitting, None)
                    if slot is not None:
                        self._put(operation, slot, at)
                        waiting.remove(operation)
                        progress = True
            at += 1

    def _ready(
        self, waiting: list[Operation], number: Mapping[Operation, int], heights: Mapping[Operation, int]
    ) -> list[Operation]:
        window = self._policy.window
        limit = len(number) if window is None else number[waiting[0]] + window
        ready = [
            operation
            for operation in waiting
            if number[operation] < limit and all(other in self._places for other in self._before[operation])
        ]
        return sorted(ready, key=lambda operation: (-heights[operation], number[operation]))

    def _heights(self) -> dict[Operation, int]:
        """Return how far each instruction is from the end of the block, in bundles."""
        found = dict.fromkeys(self._operations, 0)
        for operation in reversed(self._operations):
            slot = next(iter(operation.slots))
            for other in self._before[operation]:
                needed = self._placer.distances.needed(other, next(iter(other.slots)), operation, slot)
                found[other] = max(found[other], found[operation] + (needed or 0))
        return found


def _load_of_slots(operations: Sequence[Operation]) -> dict[Slot, int]:
    """Return how many instructions can stand in one slot only, by slot."""
    alone = [next(iter(operation.slots)) for operation in operations if len(operation.slots) == 1]
    return {slot: alone.count(slot) for slot in Slot}


def bundles_of(placed: Placed) -> Iterator[list[Occupant]]:
    """Yield what each bundle of a block holds."""
    found: list[list[Occupant]] = [[] for _ in range(placed.length)]
    for operation, (place, slot) in placed.places.items():
        found[place].append((operation, slot))
    yield from found
