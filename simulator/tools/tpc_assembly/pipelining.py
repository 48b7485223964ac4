"""Software pipelining of loops with a known number of trips.

The body is unrolled for some trips and scheduled modulo an interval. Prologue and epilogue are before and after the
loop, both scheduled with the code around them. An induction variable replaces an iterator that the body reads; a loop
whose iterator is read after it is left unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product

from castsim.isa.dataclass import dataclass, replace
from castsim.isa.tpc.program import File, Immediate, LabelUse, Register, Slot
from castsim.machines.vliw.control import LoopShape, innermost, trips_of
from castsim.tools.tpc_compiler.placing import (
    BasicBlock,
    BlockGraph,
    Entering,
    PlacedBlock,
    PlacementPolicy,
    Placer,
    copies,
    is_jump,
    rename_values,
    renamed,
    without_unread,
)
from castsim.tools.tpc_compiler.scheduled_operations import OperationLookup, ScheduledOperation
from castsim.tools.tpc_compiler.virtual_registers import widened, written_as

# Blocks that follow each other: what each finds under way, and empty bundles where a way back is too short.

_MOST_ROUNDS = 2000

Schedule = list[PlacedBlock]
"""The blocks of a text in bundles."""


def place_all(
    shape: BlockGraph,
    placer: Placer,
    policies: Sequence[PlacementPolicy],
    fixed: Mapping[BasicBlock, PlacedBlock] | None = None,
) -> Schedule:
    """Place every block by its policy, except those with fixed places; keep all distances between blocks."""
    placed: list[PlacedBlock | None] = [None] * len(shape.blocks)
    for number, block in enumerate(shape.blocks):
        if fixed is not None and block in fixed:
            placed[number] = fixed[block]
            continue
        entering = list(entering_block(shape, placed, number, placer))
        placed[number] = placer.place(block, entering, policies[number])
    blocks = [placement for placement in placed if placement is not None]
    settle(shape, blocks, placer)
    return blocks


def entering_block(
    shape: BlockGraph, placed: Sequence[PlacedBlock | None], number: int, placer: Placer
) -> Iterator[Entering]:
    """Yield the instructions in flight at the beginning of a block, on every path through placed blocks."""
    reach = placer.distances.reach
    first = [(step.first, 0, step.first, step.first >= number) for step in shape.into[number]]
    waiting, seen = list(first), set(first)
    while waiting:
        block, gap, pad, back = waiting.pop()
        own = placed[block]
        if own is None:
            continue
        for operation, (bundle, slot) in own.places.items():
            if gap + own.length - bundle < reach:
                yield Entering(operation, slot, gap + own.length - bundle, pad)
        if gap + own.length >= reach:
            continue
        for step in shape.into[block]:
            behind = step.first >= block and not back
            state = (step.first, gap + own.length, step.first if behind else pad, back or behind)
            if state not in seen:
                seen.add(state)
                waiting.append(state)


def settle(shape: BlockGraph, schedule: Schedule, placer: Placer) -> None:
    """Lengthen blocks until every distance holds on every path, and loops have their minimum length."""
    for _ in range(_MOST_ROUNDS):
        missing = _too_near(shape, schedule, placer) or _too_short(shape, schedule, placer)
        if missing is None:
            return
        if missing.in_front:
            schedule[missing.block].postpone(missing.bundles)
        else:
            schedule[missing.block].delay(shape.blocks[missing.block].end, missing.bundles)


@dataclass(frozen=True, slots=True)
class _Missing:
    """Bundles that a block lacks: `in_front` of it, or before the instruction that ends it."""

    block: int
    bundles: int
    in_front: bool = False


def _too_near(shape: BlockGraph, schedule: Schedule, placer: Placer) -> _Missing | None:
    """Return a block that must become longer, and by how many bundles; None if all distances hold."""
    reach, needed = placer.distances.reach, placer.distances.needed
    for number, own in enumerate(schedule):
        early = [(operation, bundle, slot) for operation, (bundle, slot) in own.places.items() if bundle < reach]
        for entrance in entering_block(shape, schedule, number, placer):
            for operation, bundle, slot in early:
                distance = entrance.gap + bundle
                wanted = needed(entrance.operation, entrance.slot, operation, slot)
                if wanted is not None and distance < wanted:
                    return _between(shape, schedule, entrance, number, wanted - distance)
                if distance in placer.distances.barred(entrance.operation, entrance.slot, operation, slot):
                    return _between(shape, schedule, entrance, number, 1)
    return None


def _between(shape: BlockGraph, schedule: Schedule, entering: Entering, number: int, bundles: int) -> _Missing:
    """Return the place of bundles between an instruction and a later block: before that block if the instruction ends
    the block to be lengthened, or is in its delay bundles.
    """
    end, places = shape.blocks[entering.pad].end, schedule[entering.pad].places
    if end is not None and entering.operation in places and places[entering.operation][0] >= places[end][0]:
        return _Missing(number, bundles, in_front=True)
    return _Missing(entering.pad, bundles)


def _too_short(shape: BlockGraph, schedule: Schedule, placer: Placer) -> _Missing | None:
    """Return the last block of a loop body that must become longer, in the form of `_too_near`."""
    rules = placer.operations.target.loop_rules
    starts = first_bundles(schedule)
    for loop in shape.loops:
        wanted = rules.body_bundles - (starts[loop.end] - starts[loop.start])
        for block in range(loop.start, loop.end):
            end = shape.blocks[block].end
            if end is not None and is_jump(end) and innermost(shape.loops, block) is loop:
                bundle = starts[block] + schedule[block].places[end][0]
                goal = starts[shape.goal(end)]
                wanted = max(wanted, rules.jump_before_end - (starts[loop.end] - bundle))
                wanted = max(wanted, rules.target_before_end - (starts[loop.end] - goal))
            wanted = max(wanted, _iterator_reads(shape, schedule, placer, loop, block, starts))
        if wanted > 0:
            return _Missing(loop.end - 1, wanted)
    return None


def _iterator_reads(
    shape: BlockGraph, schedule: Schedule, placer: Placer, loop: LoopShape, block: int, starts: Sequence[int]
) -> int:
    """Return how much longer the body must be for the reads of its iterator by the VPU, 0 or less if it may stay."""
    rules = placer.operations.target.loop_rules
    name = shape.iterator(loop)
    places = [
        starts[block] + bundle
        for operation, (bundle, slot) in schedule[block].places.items()
        if slot is Slot.VPU and name in placer.operations.touched(operation).reads
    ]
    return max((rules.iterator_at_end + 1 - (starts[loop.end] - bundle) for bundle in places), default=0)


def first_bundles(schedule: Schedule) -> list[int]:
    """Return the number of the first bundle of every block, and of the end."""
    starts = [0]
    for placed in schedule:
        starts.append(starts[-1] + placed.length)
    return starts


# Modulo scheduling: one trip of a loop in bundles such that a new trip can begin every so many bundles.
#
# Iterative modulo scheduling: instructions are placed in order of their distance to the end; one that finds no place
# takes one and sends others back to the queue. Every distance between instructions of one trip and of two successive
# trips is kept, those between the last reader of a register and the next trip's write of it among them.

_BUDGET = 8
"""Placements per instruction before an interval is given up."""
_MOST_POSITIONS = 250_000
"""Places looked at before no more loops of a text are pipelined: some seconds."""
_POSITIONS_OF_TEXT = 20
"""Places looked at that placing an instruction of the whole text counts for."""


@dataclass(slots=True)
class SearchBudget:
    """The rest of a search's budget, counted in examined places, so that results are equal on every machine."""

    positions: int = _MOST_POSITIONS


@dataclass(frozen=True, slots=True)
class TripDependence:
    """A dependence on another instruction, of the same trip or (`trips` 1) of the previous one."""

    other: int
    trips: int


class LoopTrip:
    """The instructions of one trip, with their dependences."""

    def __init__(self, operations: Sequence[ScheduledOperation], placer: Placer) -> None:
        self.operations = operations
        self.placer = placer
        count = len(operations)
        self.before: list[list[TripDependence]] = [[] for _ in range(count)]
        self.behind: list[list[TripDependence]] = [[] for _ in range(count)]
        for first in range(count):
            for second in range(count):
                if self.needed(first, self._slot(first), second, self._slot(second)) is not None:
                    trips = 0 if first < second else 1
                    for distance in {trips, 1}:
                        self.before[second].append(TripDependence(first, distance))
                        self.behind[first].append(TripDependence(second, distance))
        self.heights = self._heights()
        self.barring = self._barring()

    def _barring(self) -> list[list[int]]:
        """Return for every instruction the others that rules of issue keep from some distances to it, in any slots."""
        neighbours: list[list[int]] = [[] for _ in self.operations]
        distances = self.placer.distances
        for number, first in enumerate(self.operations):
            for other, second in enumerate(self.operations) if distances.begins(first) else ():
                pairs = product(first.slots, second.slots)
                if any(distances.barred(first, slot, second, second_slot) for slot, second_slot in pairs):
                    neighbours[number].append(other)
                    neighbours[other].append(number)
        return [list(dict.fromkeys(others)) for others in neighbours]

    def needed(self, first: int, slot: Slot, second: int, second_slot: Slot) -> int | None:
        """Return the smallest distance between two instructions; see `Distances.needed`."""
        return self.placer.distances.needed(self.operations[first], slot, self.operations[second], second_slot)

    def _slot(self, number: int) -> Slot:
        return next(iter(self.operations[number].slots))

    def _heights(self) -> list[int]:
        heights = [0] * len(self.operations)
        for number in range(len(self.operations) - 1, -1, -1):
            for edge in self.behind[number]:
                if edge.trips == 0:
                    needed = self.needed(number, self._slot(number), edge.other, self._slot(edge.other)) or 0
                    heights[number] = max(heights[number], heights[edge.other] + needed)
        return heights

    def least_interval(self) -> int:
        """Return the smallest interval that the slots and the cycles of dependences allow."""
        slots = [next(iter(operation.slots)) for operation in self.operations if len(operation.slots) == 1]
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
        """Return the dependences: the earlier instruction, the later one, its trip, and the smallest distance."""
        edges = []
        for second, before in enumerate(self.before):
            for first in {edge.other for edge in before}:
                pairs = product(self.operations[first].slots, self.operations[second].slots)
                needed = min(
                    self.needed(first, first_slot, second, second_slot) or 0 for first_slot, second_slot in pairs
                )
                edges.append((first, second, 0 if first < second else 1, needed))
        return edges

    def _consistent(self, edges: Sequence[tuple[int, int, int, int]], interval: int) -> bool:
        """Return whether places at an interval can keep all dependences, slots aside (Bellman and Ford)."""
        places = [0] * len(self.operations)
        for _ in range(len(places) + 1):
            changed = False
            for first, second, trips, needed in edges:
                bundle = places[first] + needed - trips * interval
                if bundle > places[second]:
                    places[second], changed = bundle, True
            if not changed:
                return True
        return False


class ModuloSchedule:
    """Places one trip at one interval."""

    def __init__(self, trip: LoopTrip, interval: int, budget: SearchBudget) -> None:
        self._trip = trip
        self._interval = interval
        self._budget = budget
        self._places: dict[int, tuple[int, Slot]] = {}
        self._rows: list[set[int]] = [set() for _ in range(interval)]
        """The placed instructions of each bundle of the interval."""
        self._last: dict[int, int] = {}

    def places(self) -> dict[ScheduledOperation, tuple[int, Slot]] | None:
        """Return bundle and slot of every instruction, from bundle 0 on; None if none were found."""
        trip = self._trip
        waiting = set(range(len(trip.operations)))
        for _ in range(_BUDGET * len(trip.operations)):
            if not waiting or self._budget.positions <= 0:
                break
            number = max(waiting, key=lambda candidate: (trip.heights[candidate], -candidate))
            waiting.discard(number)
            waiting |= self._put(number)
        if waiting:
            return None
        start = min(bundle for bundle, _ in self._places.values())
        return {trip.operations[number]: (bundle - start, slot) for number, (bundle, slot) in self._places.items()}

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
        self._remove(lost)
        self._places[number], self._last[number] = (at, slot), at
        self._rows[at % self._interval].add(number)
        late = self._violated(number)
        self._remove(late)
        return lost | late

    def _remove(self, numbers: set[int]) -> None:
        for number in numbers:
            bundle, _ = self._places.pop(number)
            self._rows[bundle % self._interval].discard(number)

    def _earliest(self, number: int, slot: Slot) -> int:
        earliest = 0
        for edge in self._trip.before[number]:
            if edge.other in self._places and edge.other != number:
                bundle, own = self._places[edge.other]
                needed = self._trip.needed(edge.other, own, number, slot) or 0
                earliest = max(earliest, bundle + needed - edge.trips * self._interval)
        return earliest

    def _violated(self, number: int) -> set[int]:
        """Return the placed instructions that are too close before or after one."""
        bundle, slot = self._places[number]
        violated = set()
        for edge in self._trip.behind[number]:
            if edge.other in self._places and edge.other != number:
                other, own = self._places[edge.other]
                needed = self._trip.needed(number, slot, edge.other, own) or 0
                if other + edge.trips * self._interval - bundle < needed:
                    violated.add(edge.other)
        return violated

    def _rivals(self, number: int, slot: Slot, at: int) -> set[int]:
        """Return the placed instructions that conflict with this one in their places."""
        trip = self._trip
        self._budget.positions -= 1
        same = {other: self._places[other][1] for other in self._rows[at % self._interval] if other != number}
        rivals = {other for other, own in same.items() if own is slot}
        rest = [(trip.operations[other], own) for other, own in same.items() if other not in rivals]
        if not trip.placer.room.shared_by([*rest, (trip.operations[number], slot)]):
            rivals |= set(same)
        return rivals | self._barred(number, slot, at)

    def _barred(self, number: int, slot: Slot, at: int) -> set[int]:
        """Return the instructions at distances that issue rules bar."""
        barred, operations = self._trip.placer.distances.barred, self._trip.operations
        conflicts = set()
        for other in self._trip.barring[number]:
            if other not in self._places:
                continue
            bundle, own = self._places[other]
            behind = barred(operations[other], own, operations[number], slot)
            ahead = barred(operations[number], slot, operations[other], own)
            near = any((at - bundle - distance) % self._interval == 0 for distance in behind)
            if near or any((bundle - at - distance) % self._interval == 0 for distance in ahead):
                conflicts.add(other)
        return conflicts - {number}


_UNROLLED = (1, 2, 3, 4, 5, 6, 8)
_MOST_OPERATIONS = 96
"""Instructions of a body written out."""
_INTERVALS = 24
"""Maximum number of intervals tried for one body."""
_MOST_TRIPS = 1 << 20

NewPlacer = Callable[[BlockGraph], Placer]


@dataclass(frozen=True, slots=True)
class PipelinedText:
    """A text with loops that begin a trip before the previous one has ended. `fixed` are blocks with fixed places."""

    blocks: tuple[BasicBlock, ...]
    fixed: dict[BasicBlock, PlacedBlock]
    shape: BlockGraph
    schedule: Schedule

    @property
    def static(self) -> int:
        """The bundles of the text."""
        return sum(placed.length for placed in self.schedule)


def pipelined(
    blocks: Sequence[BasicBlock], most: int | None, operations: OperationLookup, placer: NewPlacer
) -> Iterator[PipelinedText]:
    """Yield the text with more and more loops pipelined, in at most a number of bundles (None: in any number)."""
    current = _placed(_with_inductions(blocks, operations), {}, operations, placer)
    done: set[str] = set()
    budget = SearchBudget()
    while budget.positions > 0:
        loop = next(
            (
                eligible
                for eligible in _eligible(current.shape, operations)
                if _label(current.shape, eligible) not in done
            ),
            None,
        )
        if loop is None:
            return
        done.add(_label(current.shape, loop))
        candidate = _best(current, loop, most, operations, placer, budget)
        if candidate is not None:
            current = candidate
            yield current


def _placed(
    blocks: tuple[BasicBlock, ...], fixed: dict[BasicBlock, PlacedBlock], operations: OperationLookup, placer: NewPlacer
) -> PipelinedText:
    shape = BlockGraph(list(blocks), operations.target)
    without_unread(shape, operations)
    own = {
        block: PlacedBlock({key: placement.places[key] for key in block.operations}, placement.length)
        for block, placement in fixed.items()
    }
    schedule = place_all(shape, placer(shape), [PlacementPolicy()] * len(blocks), own)
    return PipelinedText(blocks, fixed, shape, schedule)


# ----------------------------------------------------------------------------------------------------- which loops


def _eligible(shape: BlockGraph, operations: OperationLookup) -> Iterator[LoopShape]:
    """Yield the loops of one block with a known number of trips and an iterator that is never read."""
    read = {name for block in shape.blocks for operation in block.all for name in operations.touched(operation).reads}
    for loop in shape.loops:
        inner = shape.blocks[loop.start : loop.end]
        full = [block for block in inner if block.all]
        end = shape.head(loop)
        label = _label(shape, loop)
        plain = len(full) == 1 and full[0].end is None and not any(block.labels for block in inner)
        used = [
            operation
            for block in shape.blocks
            for operation in block.all
            if LabelUse(label) in operation.instruction.operands
        ]
        alone = plain and len(used) == 1 and shape.iterator(loop) not in read
        if alone and end.instruction.predicate is None and _trips(end) is not None:
            yield loop


def _with_inductions(blocks: Sequence[BasicBlock], operations: OperationLookup) -> tuple[BasicBlock, ...]:
    """Return blocks in which variables count the trips of loops whose iterators only their bodies read."""
    shape = BlockGraph(list(blocks), operations.target)
    updated = list(blocks)
    for loop in shape.loops:
        inner, end = shape.blocks[loop.start : loop.end], shape.head(loop)
        cell, full = shape.iterator(loop), [block for block in inner if block.all]
        start, step = (end.instruction.operand(role) for role in ("start", "step"))
        touched = {
            number: [operations.touched(operation) for operation in block.all] for number, block in enumerate(blocks)
        }
        readers = {number for number, own in touched.items() if any(cell in touch.reads for touch in own)}
        others = [other for other in shape.loops if shape.iterator(other) == cell]
        alone = all(any(other.holds(number) for other in others) for number in readers)
        if len(full) != 1 or full[0].end is not None or _trips(end) is None or not alone:
            continue
        body = shape.blocks.index(full[0])
        if body not in readers or any(cell in touch.writes for touch in touched[body]):
            continue
        assert isinstance(start, Immediate) and isinstance(step, Immediate)
        counter, iterator = operations.names.fresh(File.S, "trip"), Register(File.S, int(cell.removeprefix(File.S)))
        register = Register(File.S, counter.base)
        first, later = (
            written_as(text, "<loop>", widened(operations.target.dialect))
            for text in (f"mov.i32 {register}, {start.value}", f"add.i32 {register}, {register}, {step.value}")
        )
        head = updated[loop.head]
        began, counts = (ScheduledOperation(operation.slots, end.span) for operation in (first, later))
        updated[loop.head] = BasicBlock(head.labels, [*head.operations, began], head.end)
        changed = [_reading(operation, iterator, register) for operation in full[0].operations]
        updated[body] = BasicBlock(full[0].labels, [*changed, counts])
    return tuple(updated)


def _reading(operation: ScheduledOperation, old: Register, new: Register) -> ScheduledOperation:
    """Return an instruction that reads another register."""
    slots = {
        slot: replace(
            instruction, operands=tuple(new if operand == old else operand for operand in instruction.operands)
        )
        for slot, instruction in operation.slots.items()
    }
    return ScheduledOperation(slots, operation.span, operation.fresh)


def _label(shape: BlockGraph, loop: LoopShape) -> str:
    label = shape.head(loop).instruction.operand("end")
    assert isinstance(label, LabelUse)
    return label.name


def _trips(loop: ScheduledOperation) -> int | None:
    """Return the trips of a loop with immediates, None for others, for no trip and for very many."""
    start, bound, step = (loop.instruction.operand(role) for role in ("start", "bound", "step"))
    if not (isinstance(start, Immediate) and isinstance(bound, Immediate) and isinstance(step, Immediate)):
        return None
    trips = trips_of(loop.instruction, start.value, bound.value, step.value, _MOST_TRIPS + 1)
    return trips if 0 < trips <= _MOST_TRIPS else None


# -------------------------------------------------------------------------------------------------- one loop


def _best(
    current: PipelinedText,
    loop: LoopShape,
    most: int | None,
    operations: OperationLookup,
    placer: NewPlacer,
    budget: SearchBudget,
) -> PipelinedText | None:
    """Return the text with one loop in the shortest form that fits, None if none is shorter than the current one."""
    shape = current.shape
    trips = _trips(shape.head(loop))
    assert trips is not None
    body = next(block for block in shape.blocks[loop.start : loop.end] if block.all)
    own = sum(placed.length for placed in current.schedule[loop.start : loop.end])
    best, shortest = None, current.static - own + own * trips
    for times in _UNROLLED:
        if trips % times or len(body.operations) * times > _MOST_OPERATIONS:
            continue
        budget.positions -= (len(body.operations) * times) ** 2
        trip = _trip(body, times, operations, placer(shape))
        least = max(trip.least_interval(), operations.target.loop_rules.body_bundles)
        for interval in range(least, least + _INTERVALS):
            if interval * (trips // times) >= shortest or budget.positions <= 0:
                break
            places = ModuloSchedule(trip, interval, budget).places()
            candidate = None
            if places is not None:
                budget.positions -= _POSITIONS_OF_TEXT * sum(len(block.all) for block in current.blocks)
                candidate = _at_interval(current, loop, trip, places, interval, trips // times, operations, placer)
            if candidate is None or (most is not None and candidate.static > most):
                continue
            kernel = sum(placed.length for placed in candidate.schedule[loop.start : loop.end])
            total = candidate.static - kernel + kernel * (_trips(candidate.shape.head(loop)) or 0)
            if total < shortest:
                best, shortest = candidate, total
            break
    return best


def _trip(body: BasicBlock, times: int, operations: OperationLookup, placer: Placer) -> LoopTrip:
    """Return some trips of a body as one."""
    written = BasicBlock([], [copies(operation) for _ in range(times) for operation in body.operations])
    return LoopTrip(renamed(written.operations, operations), placer)


def _at_interval(
    current: PipelinedText,
    loop: LoopShape,
    trip: LoopTrip,
    places: Mapping[ScheduledOperation, tuple[int, Slot]],
    interval: int,
    rounds: int,
    operations: OperationLookup,
    placer: NewPlacer,
) -> PipelinedText | None:
    """Return the text with a loop pipelined at an interval; None if the loop has fewer rounds than stages."""
    stages = 1 + max(bundle for bundle, _ in places.values()) // interval
    if rounds < stages:
        return None
    stage = {operation: bundle // interval for operation, (bundle, _) in places.items()}
    # In a bundle the earlier trips first: what they read there, a later trip may overwrite.
    order = sorted(
        places,
        key=lambda operation: (places[operation][0] % interval, -stage[operation], trip.operations.index(operation)),
    )
    before = [copies(scheduled) for number in range(stages - 1) for scheduled in order if stage[scheduled] <= number]
    behind = [copies(scheduled) for number in range(stages - 1) for scheduled in order if stage[scheduled] > number]
    kernel = BasicBlock([], list(order))
    fixed = {
        kernel: PlacedBlock(
            {scheduled: (places[scheduled][0] % interval, places[scheduled][1]) for scheduled in order}, interval
        )
    }
    blocks = list(current.blocks)
    old = blocks[loop.head]
    end = _loop(current.shape.head(loop), rounds - stages + 1, operations)
    head = BasicBlock(old.labels, [*old.operations, *before], end)
    label = _label(current.shape, loop)
    following = blocks[loop.end]
    rest = BasicBlock([name for name in following.labels if name != label], following.operations, following.end)
    outside = any(other.end == loop.end for other in current.shape.loops if other is not loop)
    if rest.labels or outside:
        tail = [BasicBlock([label], behind), rest]
    else:
        tail = [BasicBlock([label], [*behind, *rest.operations], rest.end)]
    for block in (head, tail[0]):
        rename_values(block, operations)
    blocks[loop.head : loop.end + 1] = [head, kernel, *tail]
    return _placed(tuple(blocks), {**current.fixed, **fixed}, operations, placer)


def _loop(end: ScheduledOperation, rounds: int, operations: OperationLookup) -> ScheduledOperation:
    """Return the LOOP of so many rounds."""
    text = f"loop 0, {rounds}, 1, <, {end.instruction.operand('end')}"
    return ScheduledOperation(written_as(text, "<loop>", operations.target.dialect).slots, end.span)
