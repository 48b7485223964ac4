"""What the pipes do in a cycle, asked of an engine when somebody wants to know."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping

from castsim.engines import observe
from castsim.execution.tree import Tree
from castsim.targets import Target
from castsim.timing import Cause, IgnoresBlocks


class PipeStates(IgnoresBlocks):
    """The causes of every pipe's cycles; an observer of one run."""

    def __init__(self, tree: Tree, target: Target) -> None:
        self._segments: dict[str, list[tuple[int, int, Cause]]] = {}
        self.until: int | None = None
        """No end: the whole run is heard."""
        observe(tree, target, self)
        for each in self._segments.values():
            each.sort(key=lambda segment: segment[:2])
        self._starts = {pipe: [start for start, _, _ in each] for pipe, each in self._segments.items()}

    def progress(self, cycle: int, operations: int) -> None:
        """Not shown."""

    def segment(self, pipe: str, start: int, end: int, cause: Cause, operation: int | None) -> None:
        """Keep it."""
        del operation
        self._segments.setdefault(pipe, []).append((start, end, cause))

    def block(self, cycle: int, pipe: str, operation: int, address: int, write: bool, asked: int) -> None:
        """Not shown."""

    def at(self, pipe: str, cycle: int) -> Cause:
        """Return the cause that a pipe spends a cycle on; it has nothing to do outside of the run."""
        place = bisect_right(self._starts.get(pipe, []), cycle) - 1
        if place < 0:
            return Cause.EMPTY
        _, end, cause = self._segments[pipe][place]
        return cause if cycle < end else Cause.EMPTY

    def all(self, cycle: int) -> Mapping[str, Cause]:
        """Return what every pipe spends a cycle on."""
        return {pipe: self.at(pipe, cycle) for pipe in self._segments}
