"""Finding the loop again: consecutive trips whose operations differ only by a constant step become one `Loop`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from castsim.execution.tree import Block, Deltas, Loop, Lowered, Node, elements, width
from castsim.execution.vector_operations import TileEffect


def address_steps(first: Block, second: Block) -> tuple[Deltas, ...] | None:
    """Return how each element's addresses move from `first` to `second`, None if they differ in anything else."""
    if len(first.items) != len(second.items):
        return None
    steps: list[Deltas] = []
    for one, two in zip(first.items, second.items, strict=True):
        found = _node_steps(one, two)
        if found is None:
            return None
        steps += found
    return tuple(steps)


def fold(trips: Iterable[Block]) -> Iterator[Node]:
    """Yield the trips of a loop as nodes: runs of equal trips as `Loop`, the others as they are."""
    run: list[Block] = []
    steps: tuple[Deltas, ...] | None = None
    count = 0
    for trip in trips:
        found = address_steps(run[-1], trip) if run else None
        if run and found is not None and steps in (None, found):
            steps, count = found, count + 1
            run = [run[0], trip]
            continue
        yield from _run(run[:1], steps, count)
        run, steps, count = [trip], None, 1
    yield from _run(run[:1], steps, count)


def _run(first: list[Block], steps: tuple[Deltas, ...] | None, count: int) -> Iterator[Node]:
    if first and steps is not None:
        yield Loop(count, first[0], steps)
    elif first:
        yield from first[0].items


def _node_steps(one: Node, two: Node) -> list[Deltas] | None:
    if one is two:
        return [(0,) * len(element.addresses) for element in elements(one)]
    if type(one) is not type(two) or width(one) != width(two):
        return None
    if isinstance(one, Block) and isinstance(two, Block):
        found = address_steps(one, two)
        return None if found is None else list(found)
    if isinstance(one, Loop) and isinstance(two, Loop):
        found = address_steps(one.body, two.body) if (one.trips, one.steps) == (two.trips, two.steps) else None
        return None if found is None else list(found)
    if isinstance(one, Lowered) and isinstance(two, Lowered):
        if one.instruction != two.instruction or len(one.accesses) != len(two.accesses):
            return None
        own = tuple(b.start - a.start for a, b in zip(one.accesses, two.accesses, strict=True))
        same = all(a.shifted(d) == b for a, b, d in zip(one.accesses, two.accesses, own, strict=True))
        same &= _same_effect(one, two, own)
        found = address_steps(one.body, two.body) if same else None
        return None if found is None else [own, *found]
    assert not isinstance(one, Block | Loop | Lowered) and not isinstance(two, Block | Loop | Lowered)
    deltas = tuple(after - before for before, after in zip(one.addresses, two.addresses, strict=True))
    return [deltas] if one.shifted(deltas) == two else None


def _same_effect(one: Lowered, two: Lowered, deltas: Deltas) -> bool:
    """Whether two executions compute the same on moved tiles; operations tell it, except where an effect does."""
    return not isinstance(one.shortcut, TileEffect) or one.shortcut.moved(deltas) == two.shortcut
