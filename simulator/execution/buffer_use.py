"""The bytes of each on-chip buffer that a program touches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from castsim.execution.tree import Access, Block, Deltas, Loop, Lowered, Node, Tree, width
from castsim.targets import Target

Reach = tuple[int, int]
"""The distances by which loops move an address down and up, in bytes."""


@dataclass(frozen=True, slots=True)
class BufferUse:
    """Bytes [start, end) of a buffer lie between the first and the last byte touched."""

    name: str
    start: int
    end: int
    capacity: int


def buffer_use(tree: Tree, target: Target) -> tuple[BufferUse, ...]:
    """Return the touched range of every buffer of the target that the program touches at all; loops stay rolled."""
    ranges: dict[str, Reach] = {}
    for _, access, (down, up) in moved_accesses(tree.root):
        start, end = access.start + down, access.end + up
        low, high = ranges.get(access.space, (start, end))
        ranges[access.space] = (min(low, start), max(high, end))
    return tuple(
        BufferUse(name, *ranges[name], memory.capacity_bytes)
        for name, memory in target.memories.items()
        if name in ranges
    )


def moved_accesses(root: Block) -> Iterator[tuple[tuple[int, int], Access, Reach]]:
    """Yield every access of a program with how far loops move it, named by (instruction, number of the operand)."""
    yield from _accesses(root, None)


def _accesses(node: Node, reach: Sequence[tuple[Reach, ...]] | None) -> Iterator[tuple[tuple[int, int], Access, Reach]]:
    """Yield the accesses below `node`; `reach` has one entry per addressed element, None for no surrounding loop."""
    if isinstance(node, Block):
        start = 0
        for item in node.items:
            end = start + width(item)
            yield from _accesses(item, None if reach is None else reach[start:end])
            start = end
    elif isinstance(node, Loop):
        yield from _accesses(node.body, _widened(reach, node.steps, node.trips))
    elif isinstance(node, Lowered):
        spans = reach[0] if reach is not None else ((0, 0),) * len(node.accesses)
        for number, (access, span) in enumerate(zip(node.accesses, spans, strict=True)):
            yield (node.instruction, number), access, span


def _widened(reach: Sequence[tuple[Reach, ...]] | None, steps: Sequence[Deltas], trips: int) -> list[tuple[Reach, ...]]:
    moves = [tuple((min(0, step * (trips - 1)), max(0, step * (trips - 1))) for step in row) for row in steps]
    if reach is None:
        return moves
    return [
        tuple((low + down, high + up) for (low, high), (down, up) in zip(outer, inner, strict=True))
        for outer, inner in zip(reach, moves, strict=True)
    ]
