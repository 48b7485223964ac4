"""Loops in which groups of pipes drift apart: no flag or barrier makes one of them wait for another.

The queue of a slower group grows from trip to trip, so the whole state never repeats. But each group is in the same
place of its own trip again and again: what repeats is the state without the trips that the slower groups have not
begun. Skipped are then so many trips of the fastest group, and so many fewer of the others; what they are still owed,
they execute behind the loop, alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from castsim.execution.dataflow.operations import Barrier, SetFlag, WaitFlag
from castsim.execution.dataflow.survey import ALL_PIPES
from castsim.execution.tree import Block, Loop, Lowered, Node, Operation, elements

_LARGEST = 4096
"""Operations of a trip up to which it is looked at."""


@dataclass(frozen=True, slots=True)
class Groups:
    """The groups of pipes of a loop that nothing ties together, and what a trip has of each.

    `pattern` is the group of every execution of a trip; work of the scalar unit alone counts as one more group.
    `operations` are all of a trip, `entries` those of every pipe, `scalar` those of the scalar unit by group.
    """

    pipes: tuple[frozenset[str], ...]
    pattern: tuple[int, ...]
    operations: int
    entries: dict[str, int]
    scalar: tuple[int, ...]


def groups_of(loop: Loop, scalar: str, shortest: int) -> Groups | None:
    """Return the groups of a loop that may drift apart, None if all are tied or it cannot be told trip by trip.

    It cannot if the scalar unit waits or is waited for, if a trip is very long, or holds a loop of more than `shortest`
    operations, of which trips may be skipped themselves; nor if flags tie a pipe that has no work in the loop.
    """
    executed = _executed(loop.body, shortest)
    if executed is None or sum(len(each) for each in executed) > _LARGEST:
        return None
    tied: dict[str, str] = {}
    for operations in executed:
        first = None
        for operation in operations:
            names = _together(operation, scalar)
            if names is None:
                return None
            for name in names:
                _tie(tied, name, first or name)
                first = name
    roots = sorted({_root(tied, name) for name in tied})
    if len(roots) < 2:
        return None
    entries = dict.fromkeys(tied, 0)
    scalars, pattern = [0] * (len(roots) + 1), []
    for operations in executed:
        own = [operation.pipe for operation in operations if operation.pipe in tied]
        for name in own:
            entries[name] += 1
        pattern.append(roots.index(_root(tied, own[0])) if own else len(roots))
        scalars[pattern[-1]] += len(operations) - len(own)
    if not all(entries.values()):
        return None  # a flag to or from a pipe without work here piles up or is used up, so no trip is like another
    pipes = tuple(frozenset(name for name in tied if _root(tied, name) == root) for root in roots)
    return Groups(pipes, tuple(pattern), sum(map(len, executed)), entries, tuple(scalars))


def _executed(node: Node, shortest: int) -> list[Sequence[Operation]] | None:
    """Return the operations of all executions of a node, None if a loop in it is long."""
    if isinstance(node, Lowered):
        operations = _operations(node.body, shortest)
        return None if operations is None else [operations]
    found: list[Sequence[Operation]] = []
    if isinstance(node, Loop):
        inner = _executed(node.body, shortest)
        if inner is None or node.trips * sum(map(len, inner)) > shortest:
            return None
        return inner * node.trips
    for item in node.items if isinstance(node, Block) else ():
        more = _executed(item, shortest)
        if more is None or len(found) > _LARGEST:
            return None
        found += more
    return found


def _operations(node: Node, shortest: int) -> list[Operation] | None:
    """Return the operations of an instruction, None if there are more than `shortest`."""
    if isinstance(node, Block):
        found: list[Operation] = []
        for item in node.items:
            more = _operations(item, shortest)
            if more is None or len(found) + len(more) > shortest:
                return None
            found += more
        return found
    if isinstance(node, Loop):
        body = _operations(node.body, shortest)
        return None if body is None or len(body) * node.trips > shortest else body * node.trips
    assert not isinstance(node, Lowered)
    return [node]


def _together(operation: Operation, scalar: str) -> tuple[str, ...] | None:
    """Return the pipes that an operation ties together, None if the scalar unit is one of them."""
    names: tuple[str, ...] = (operation.pipe,)
    if isinstance(operation, SetFlag):
        names = (operation.pipe, operation.waiter)
    elif isinstance(operation, WaitFlag):
        names = (operation.pipe, operation.signaller)
    elif operation.pipe == ALL_PIPES:
        return None
    elif operation.pipe == scalar:
        return ()
    elif isinstance(operation, Barrier):
        return names
    return None if scalar in names or ALL_PIPES in names else names


def _root(tied: dict[str, str], name: str) -> str:
    while tied[name] != name:
        name = tied[name]
    return name


def _tie(tied: dict[str, str], name: str, other: str) -> None:
    tied.setdefault(name, name)
    tied.setdefault(other, other)
    tied[_root(tied, name)] = _root(tied, other)


def restricted(loop: Loop, pipes: frozenset[str], trips: int) -> Loop:
    """Return so many trips of what a loop does on some pipes, with the scalar unit's work for that."""
    steps = iter(loop.steps)
    kept: list[tuple[int, ...]] = []
    body = _restricted(loop.body, pipes, steps, kept)
    assert isinstance(body, Block)
    return Loop(trips, body, tuple(kept))


def _restricted(
    node: Node, pipes: frozenset[str], steps: Iterator[tuple[int, ...]], kept: list[tuple[int, ...]]
) -> Node | None:
    if isinstance(node, Block):
        items = [_restricted(item, pipes, steps, kept) for item in node.items]
        return Block(tuple(item for item in items if item is not None))
    if isinstance(node, Loop):
        body = _restricted(node.body, pipes, steps, kept)
        assert isinstance(body, Block)
        return restricted(node, pipes, node.trips) if body.items else None
    own = [next(steps) for _ in elements(node)]
    if any(not isinstance(each, Lowered) and each.pipe in pipes for each in elements(node)):
        kept += own
        return node
    return None
