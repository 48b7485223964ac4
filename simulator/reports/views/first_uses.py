"""The first use of bytes by the rest of a program, found without running it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from castsim.execution.tree import Access, Block, Deltas, Loop, Lowered, Node, Tree, accesses, width

_Moved = Sequence[Deltas] | None


class ReadAhead:
    """Looks for the first access to each block of one address space, from some instruction execution on.

    Loops are unrolled only as long as they may touch a block of which nothing is known yet.
    """

    def __init__(self, tree: Tree, space: str, block: int) -> None:
        self._tree = tree
        self._space = space
        self._block = block
        self._counts: dict[int, int] = {}
        self._open = np.zeros(0, np.bool_)
        self._read = np.zeros(0, np.bool_)

    def first_is_read(self, executions: int, asked: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return those of the `asked` blocks that are read before they are written, behind the first `executions`.

        An instruction that does both reads first.
        """
        self._open, self._read = asked.copy(), np.zeros_like(asked)
        self._walk(self._tree.root, None, executions)
        return self._read

    def _walk(self, node: Node, moved: _Moved, skip: int) -> int:
        """Look at all executions in `node` but the first `skip`; return how many are still to be skipped behind it."""
        count = self._count(node)
        if skip >= count:
            return skip - count
        if not self._open.any():
            return 0
        if isinstance(node, Block):
            start = 0
            for item in node.items:
                end = start + width(item)
                skip = self._walk(item, None if moved is None else moved[start:end], skip)
                start = end
        elif isinstance(node, Loop):
            self._walk_loop(node, moved, skip)
            return 0
        elif isinstance(node, Lowered):
            self._see(accesses(node, moved))
        return skip

    def _walk_loop(self, loop: Loop, moved: _Moved, skip: int) -> None:
        done, skip = divmod(skip, self._count(loop.body))
        for looked, trip in enumerate(range(done, loop.trips)):
            # Looking at the rest costs as much as a trip, so it is not done in every one.
            if looked & (looked - 1) == 0 and not self._touches(loop, moved, trip):
                return
            skip = self._walk(loop.body, _advanced(moved, loop, trip), skip)

    def _see(self, touched: Sequence[Access]) -> None:
        for write in (False, True):
            for access in touched:
                if access.space == self._space and access.write == write:
                    part = slice(access.start // self._block, -(-access.end // self._block))
                    if not write:
                        self._read[part] |= self._open[part]
                    self._open[part] = False

    def _touches(self, loop: Loop, moved: _Moved, trip: int) -> bool:
        """Whether an access of the trips from `trip` on may meet an open block; the extents are hulls."""
        return any(
            self._open[low // self._block : -(-high // self._block)].any()
            for low, high in self._loop_extents(loop, moved, trip)
        )

    def _extents(self, node: Node, moved: _Moved) -> Iterator[tuple[int, int]]:
        """Yield the hull of what each access touches in all trips around it."""
        if isinstance(node, Block):
            start = 0
            for item in node.items:
                end = start + width(item)
                yield from self._extents(item, None if moved is None else moved[start:end])
                start = end
        elif isinstance(node, Loop):
            yield from self._loop_extents(node, moved, 0)
        elif isinstance(node, Lowered):
            yield from ((each.start, each.end) for each in accesses(node, moved) if each.space == self._space)

    def _loop_extents(self, loop: Loop, moved: _Moved, trip: int) -> Iterator[tuple[int, int]]:
        """Addresses are affine in the trip, so first and last one bound the others."""
        ends = (self._extents(loop.body, _advanced(moved, loop, each)) for each in (trip, loop.trips - 1))
        for one, other in zip(*ends, strict=True):
            yield min(one[0], other[0]), max(one[1], other[1])

    def _count(self, node: Node) -> int:
        """Return the number of instructions that `node` executes."""
        if isinstance(node, Lowered):
            return 1
        if id(node) not in self._counts:
            count = 0
            if isinstance(node, Loop):
                count = node.trips * self._count(node.body)
            elif isinstance(node, Block):
                count = sum(map(self._count, node.items))
            self._counts[id(node)] = count
        return self._counts[id(node)]


def _advanced(moved: _Moved, loop: Loop, trip: int) -> _Moved:
    """Return the distance that the elements of the body move in a trip, `moved` of it by loops around."""
    if moved is None:
        return [tuple(trip * step for step in row) for row in loop.steps]
    return [
        tuple(delta + trip * step for delta, step in zip(before, row, strict=True))
        for before, row in zip(moved, loop.steps, strict=True)
    ]
