"""Loops with a known number of trips: several trips at once.

The body is written out for some trips and scheduled modulo an interval. What the first rounds lack stands before the
loop, what the last ones lack behind it, both scheduled with the code around them. A loop whose iterator something reads
is left as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from castsim.isa.tpc import Comparison, Immediate, LabelUse
from castsim.isa.tpc.matching import read_instruction
from castsim.isa.tpc.text import AssemblySource
from castsim.machines.vliw.structure import holds, signed
from castsim.tpc_compiler.scheduling.blocks import Block, BlockLoop, Shape
from castsim.tpc_compiler.scheduling.cross_block_latency import Schedule, place_all
from castsim.tpc_compiler.scheduling.modulo import ModuloSchedule, Trip
from castsim.tpc_compiler.scheduling.operations import Operation, Operations
from castsim.tpc_compiler.scheduling.placing import Placed, Placer, Policy
from castsim.tpc_compiler.scheduling.values import copies, mark_fresh, renamed, without_unread

_UNROLLED = (1, 2, 3, 4, 5, 6, 8)
_MOST_OPERATIONS = 96
"""Instructions of a body written out."""
_INTERVALS = 24
"""Intervals tried for one body."""
_MOST_TRIPS = 1 << 20

NewPlacer = Callable[[Shape], Placer]


@dataclass(frozen=True, slots=True)
class Pipelined:
    """A text with loops that begin a trip before the last one has ended. `fixed` are blocks that have their places."""

    blocks: tuple[Block, ...]
    fixed: dict[Block, Placed]
    shape: Shape
    schedule: Schedule

    @property
    def static(self) -> int:
        """The bundles of the text."""
        return sum(each.length for each in self.schedule)


def pipelined(
    blocks: Sequence[Block], most: int | None, operations: Operations, placer: NewPlacer
) -> Iterator[Pipelined]:
    """Yield the text with more and more loops pipelined, in no more than so many bundles (None: in any number)."""
    current = _placed(tuple(blocks), {}, operations, placer)
    done: set[str] = set()
    while True:
        loop = next(
            (each for each in _eligible(current.shape, operations) if _label(current.shape, each) not in done), None
        )
        if loop is None:
            return
        done.add(_label(current.shape, loop))
        found = _best(current, loop, most, operations, placer)
        if found is not None:
            current = found
            yield current


def _placed(
    blocks: tuple[Block, ...], fixed: dict[Block, Placed], operations: Operations, placer: NewPlacer
) -> Pipelined:
    shape = Shape(list(blocks), operations.target)
    without_unread(shape, operations)
    own = {
        block: Placed({key: each.places[key] for key in block.operations}, each.length) for block, each in fixed.items()
    }
    schedule = place_all(shape, placer(shape), [Policy()] * len(blocks), own)
    return Pipelined(blocks, fixed, shape, schedule)


# ----------------------------------------------------------------------------------------------------- which loops


def _eligible(shape: Shape, operations: Operations) -> Iterator[BlockLoop]:
    """Yield the loops of one block with a known number of trips, whose iterators nothing reads."""
    read = {name for block in shape.blocks for each in block.all for name in operations.touched(each).reads}
    for loop in shape.loops:
        inner = shape.blocks[loop.start : loop.end]
        full = [block for block in inner if block.all]
        end = shape.blocks[loop.head].end
        label = _label(shape, loop)
        plain = len(full) == 1 and full[0].end is None and not any(block.labels for block in inner)
        used = [each for block in shape.blocks for each in block.all if LabelUse(label) in each.instruction.operands]
        alone = plain and len(used) == 1 and shape.iterator(loop) not in read
        if alone and end is not None and end.instruction.predicate is None and _trips(end) is not None:
            yield loop


def _label(shape: Shape, loop: BlockLoop) -> str:
    end = shape.blocks[loop.head].end
    assert end is not None
    label = end.instruction.operand("end")
    assert isinstance(label, LabelUse)
    return label.name


def _trips(loop: Operation) -> int | None:
    """Return the trips of a loop with immediates, None for others, for no trip and for very many."""
    start, bound, step = (loop.instruction.operand(role) for role in ("start", "bound", "step"))
    compare = loop.instruction.operand("compare")
    if not (isinstance(start, Immediate) and isinstance(bound, Immediate) and isinstance(step, Immediate)):
        return None
    assert isinstance(compare, Comparison)
    value, trips = start.signed, 0
    while holds(compare, value, bound.signed):
        value, trips = signed((value + step.value) & 0xFFFFFFFF), trips + 1
        if trips > _MOST_TRIPS:
            return None
    return trips or None


# -------------------------------------------------------------------------------------------------- one loop


def _best(
    current: Pipelined, loop: BlockLoop, most: int | None, operations: Operations, placer: NewPlacer
) -> Pipelined | None:
    """Return the text with one loop in the shortest way that fits, None if there is none shorter than now."""
    shape = current.shape
    end = shape.blocks[loop.head].end
    assert end is not None
    trips = _trips(end)
    assert trips is not None
    body = next(block for block in shape.blocks[loop.start : loop.end] if block.all)
    own = sum(each.length for each in current.schedule[loop.start : loop.end])
    best, shortest = None, current.static - own + own * trips
    for times in _UNROLLED:
        if trips % times or len(body.operations) * times > _MOST_OPERATIONS:
            continue
        trip = _trip(body, times, operations, placer(shape))
        least = max(trip.least_interval(), operations.target.loop_rules.body_bundles)
        for interval in range(least, least + _INTERVALS):
            if interval * (trips // times) >= shortest:
                break
            found = _at_interval(current, loop, trip, interval, trips // times, operations, placer)
            if found is None or (most is not None and found.static > most):
                continue
            kernel = sum(each.length for each in found.schedule[loop.start : loop.end])
            total = found.static - kernel + kernel * _rounds(found, loop)
            if total < shortest:
                best, shortest = found, total
            break
    return best


def _rounds(found: Pipelined, loop: BlockLoop) -> int:
    end = found.shape.blocks[loop.head].end
    assert end is not None
    return _trips(end) or 0


def _trip(body: Block, times: int, operations: Operations, placer: Placer) -> Trip:
    """Return some trips of a body as one."""
    written = Block([], [copies(each) for _ in range(times) for each in body.operations])
    mark_fresh(written, operations)
    return Trip(renamed(written.operations, operations), placer)


def _at_interval(
    current: Pipelined,
    loop: BlockLoop,
    trip: Trip,
    interval: int,
    rounds: int,
    operations: Operations,
    placer: NewPlacer,
) -> Pipelined | None:
    """Return the text with a loop pipelined at an interval; None if there is no such schedule."""
    places = ModuloSchedule(trip, interval).places()
    if places is None:
        return None
    stages = 1 + max(place for place, _ in places.values()) // interval
    if rounds < stages:
        return None
    order = sorted(places, key=lambda each: (places[each][0] % interval, trip.operations.index(each)))
    stage = {each: places[each][0] // interval for each in order}
    before = [copies(each) for number in range(stages - 1) for each in order if stage[each] <= number]
    behind = [copies(each) for number in range(stages - 1) for each in order if stage[each] > number]
    kernel = Block([], list(order))
    fixed = {kernel: Placed({each: (places[each][0] % interval, places[each][1]) for each in order}, interval)}
    blocks = list(current.blocks)
    old = blocks[loop.head]
    head = Block(old.labels, [*old.operations, *before], _loop(old.end, rounds - stages + 1, operations))
    label = _label(current.shape, loop)
    following = blocks[loop.end]
    rest = Block([each for each in following.labels if each != label], following.operations, following.end)
    outside = any(other.end == loop.end for other in current.shape.loops if other is not loop)
    if rest.labels or outside:
        tail = [Block([label], behind), rest]
    else:
        tail = [Block([label], [*behind, *rest.operations], rest.end)]
    for block in (head, tail[0]):
        _rename(block, operations)
    blocks[loop.head : loop.end + 1] = [head, kernel, *tail]
    return _placed(tuple(blocks), {**current.fixed, **fixed}, operations, placer)


def _rename(block: Block, operations: Operations) -> None:
    changed = renamed(block.all, operations)
    if block.end is not None:
        block.end = changed.pop()
    block.operations = changed


def _loop(end: Operation | None, rounds: int, operations: Operations) -> Operation:
    """Return the LOOP of so many rounds."""
    assert end is not None
    label = end.instruction.operand("end")
    text = f"loop 0, {rounds}, 1, <, {label}"
    source = AssemblySource(text, "<loop>")
    slots = read_instruction(source, source.words(0, 0, len(text)), operations.target.dialect)
    return Operation(slots, end.span)
