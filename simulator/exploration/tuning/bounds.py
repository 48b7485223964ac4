"""A lower bound of a kernel's cycles, from what each of its instructions keeps its pipes occupied.

A pipe does one thing at a time. What an instruction alone keeps it busy, and what a transfer waits for memory, it takes
wherever else it stands: other instructions add waiting, nothing takes these cycles away.
The sum over all executions is therefore spent on every pipe, and the kernel takes at least as long as the largest sum.
Fill and drain are left out: instructions that follow each other share them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from castsim.engines import simulate
from castsim.execution.dataflow.operations import Barrier, SetFlag, WaitFlag
from castsim.execution.tree import Block, Loop, Lowered, Node, Tree
from castsim.targets import Target
from castsim.timing import Cause

_OCCUPIED = (Cause.BUSY, Cause.MEMORY_LATENCY)
"""Causes of which an instruction has as many cycles in company as alone."""
_REMEMBERED = 1 << 14
"""Instructions that a memory holds."""


class Bounds:
    """Lower bounds of kernels on one target; instructions that were met before are not timed again."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._known: dict[Block, Counter[str]] = {}

    def of(self, tree: Tree) -> int:
        """Return cycles that a program takes at least.

        Raises:
            IllegalError, EngineError: an instruction that cannot be timed.
        """
        work: Counter[str] = Counter()
        for lowered, times in _grouped(tree.root):
            for pipe, cycles in self._alone(tree, lowered).items():
                work[pipe] += times * cycles
        return max(work.values(), default=0)

    def _alone(self, tree: Tree, lowered: Lowered) -> Counter[str]:
        """Return how long one instruction occupies each pipe."""
        try:
            known = self._known.get(lowered.body)
        except TypeError:  # some machines keep tables in their operations, which have no hash
            return self._timed(tree, lowered)
        if known is None:
            known = self._timed(tree, lowered)
            if len(self._known) < _REMEMBERED:
                self._known[lowered.body] = known
        return known

    def _timed(self, tree: Tree, lowered: Lowered) -> Counter[str]:
        alone = Lowered(0, lowered.body, lowered.accesses)
        only = Tree(Block((alone,)), (tree.instructions[lowered.instruction],), interlocked=False)
        timing = simulate(only, self._target, record_operations=False)
        return Counter(
            {pipe: sum(each.causes.get(cause, 0) for cause in _OCCUPIED) for pipe, each in timing.pipes.items()}
        )


def _grouped(root: Block) -> Iterator[tuple[Lowered, int]]:
    """Yield the instructions that do work with how often each is executed; one object counts once."""
    times: Counter[int] = Counter()
    first: dict[int, Lowered] = {}
    for lowered, count in _instructions(root, 1):
        times[id(lowered.body)] += count
        first.setdefault(id(lowered.body), lowered)
    for key, lowered in first.items():
        yield lowered, times[key]


def _instructions(node: Node, times: int) -> Iterator[tuple[Lowered, int]]:
    if isinstance(node, Block):
        for item in node.items:
            yield from _instructions(item, times)
    elif isinstance(node, Loop):
        yield from _instructions(node.body, times * node.trips)
    elif isinstance(node, Lowered) and not all(map(_orders, node.body.items)):
        yield node, times


def _orders(node: Node) -> bool:
    """Whether an operation only orders others: alone it might wait forever."""
    return isinstance(node, SetFlag | WaitFlag | Barrier)
