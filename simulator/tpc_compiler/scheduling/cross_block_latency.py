"""Blocks that follow each other: what each finds under way, and empty bundles where a way back is too short."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from castsim.isa.tpc import Slot
from castsim.tpc_compiler.scheduling.blocks import Block, BlockLoop, Shape, is_jump
from castsim.tpc_compiler.scheduling.placing import Entering, Placed, Placer, Policy

_MOST_ROUNDS = 2000

Schedule = list[Placed]
"""The blocks of a text in bundles."""


def place_all(
    shape: Shape, placer: Placer, policies: Sequence[Policy], fixed: Mapping[Block, Placed] | None = None
) -> Schedule:
    """Place every block, each by its policy but those that have their places; keep all distances between blocks."""
    placed: list[Placed | None] = [None] * len(shape.blocks)
    for number, block in enumerate(shape.blocks):
        if fixed is not None and block in fixed:
            placed[number] = fixed[block]
            continue
        entering = list(entering_block(shape, placed, number, placer))
        placed[number] = placer.place(block, entering, policies[number])
    found = [each for each in placed if each is not None]
    settle(shape, found, placer)
    return found


def entering_block(shape: Shape, placed: Sequence[Placed | None], number: int, placer: Placer) -> Iterator[Entering]:
    """Yield what may be under way at the beginning of a block, on every path through blocks that have been placed."""
    reach = placer.distances.reach
    first = [(step.first, 0, step.first, step.first >= number) for step in shape.into[number]]
    waiting, seen = list(first), set(first)
    while waiting:
        block, gap, pad, back = waiting.pop()
        own = placed[block]
        if own is None:
            continue
        for operation, (place, slot) in own.places.items():
            if gap + own.length - place < reach:
                yield Entering(operation, slot, gap + own.length - place, pad)
        if gap + own.length >= reach:
            continue
        for step in shape.into[block]:
            behind = step.first >= block and not back
            state = (step.first, gap + own.length, step.first if behind else pad, back or behind)
            if state not in seen:
                seen.add(state)
                waiting.append(state)


def settle(shape: Shape, schedule: Schedule, placer: Placer) -> None:
    """Lengthen blocks until every distance holds on every path, and loops are as long as they must be."""
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
    """Bundles that a block lacks: `in_front` of it, or before what ends it."""

    block: int
    bundles: int
    in_front: bool = False


def _too_near(shape: Shape, schedule: Schedule, placer: Placer) -> _Missing | None:
    """Return a block that must become longer, and by how many bundles; None if all distances hold."""
    reach, needed = placer.distances.reach, placer.distances.needed
    for number, own in enumerate(schedule):
        early = [(operation, place, slot) for operation, (place, slot) in own.places.items() if place < reach]
        for each in entering_block(shape, schedule, number, placer):
            for operation, place, slot in early:
                distance = each.gap + place
                wanted = needed(each.operation, each.slot, operation, slot)
                if wanted is not None and distance < wanted:
                    return _between(shape, schedule, each, number, wanted - distance)
                if distance in placer.distances.barred(each.operation, each.slot, operation, slot):
                    return _between(shape, schedule, each, number, 1)
    return None


def _between(shape: Shape, schedule: Schedule, entering: Entering, number: int, bundles: int) -> _Missing:
    """Return where bundles between an instruction and a later block go: in front of that block if the instruction ends
    the block to be lengthened, or stands in the delay bundles there.
    """
    end, places = shape.blocks[entering.pad].end, schedule[entering.pad].places
    if end is not None and entering.operation in places and places[entering.operation][0] >= places[end][0]:
        return _Missing(number, bundles, in_front=True)
    return _Missing(entering.pad, bundles)


def _too_short(shape: Shape, schedule: Schedule, placer: Placer) -> _Missing | None:
    """Return the last block of a loop body that must become longer, as `_too_near`."""
    rules = placer.operations.target.loop_rules
    starts = first_bundles(schedule)
    for loop in shape.loops:
        wanted = rules.body_bundles - (starts[loop.end] - starts[loop.start])
        for block in range(loop.start, loop.end):
            end = shape.blocks[block].end
            if end is not None and is_jump(end) and _innermost(shape, block) is loop:
                place = starts[block] + schedule[block].places[end][0]
                goal = starts[shape.goal(end)]
                wanted = max(wanted, rules.jump_before_end - (starts[loop.end] - place))
                wanted = max(wanted, rules.target_before_end - (starts[loop.end] - goal))
            wanted = max(wanted, _iterator_reads(shape, schedule, placer, loop, block, starts))
        if wanted > 0:
            return _Missing(loop.end - 1, wanted)
    return None


def _iterator_reads(
    shape: Shape, schedule: Schedule, placer: Placer, loop: BlockLoop, block: int, starts: Sequence[int]
) -> int:
    """Return how much longer the body must be for the reads of its iterator by the VPU, 0 or less if it may stay."""
    rules = placer.operations.target.loop_rules
    name = shape.iterator(loop)
    places = [
        starts[block] + place
        for operation, (place, slot) in schedule[block].places.items()
        if slot is Slot.VPU and name in placer.operations.touched(operation).reads
    ]
    return max((rules.iterator_at_end + 1 - (starts[loop.end] - place) for place in places), default=0)


def _innermost(shape: Shape, block: int) -> BlockLoop | None:
    return max((loop for loop in shape.loops if loop.holds(block)), key=lambda loop: loop.depth, default=None)


def first_bundles(schedule: Schedule) -> list[int]:
    """Return the number of the first bundle of every block, and of the end."""
    found = [0]
    for placed in schedule:
        found.append(found[-1] + placed.length)
    return found
