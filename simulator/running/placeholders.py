"""What stands in for opaque operations, and how much of a run's time rests on that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

from castsim.execution.dataflow.operations import Placeholder
from castsim.execution.tree import Block, Loop, Lowered, Node, Role, Tree


@dataclass(frozen=True, slots=True)
class PlaceholderUse:
    """One opaque operation by its name: on which pipe, how often it is executed, and the cycles of each time."""

    name: str
    pipe: str
    executions: int
    cycles: int


@dataclass(frozen=True, slots=True)
class Placeholders:
    """All of a run; `without` is what it takes if every one takes no cycle, `total` what it took."""

    uses: tuple[PlaceholderUse, ...]
    total: int
    without: int

    @property
    def resting(self) -> int:
        """Cycles of the total that are there because of placeholders."""
        return self.total - self.without


def placeholders_of(tree: Tree, total: int, timed: Callable[[Tree], int]) -> Placeholders | None:
    """Return the placeholders of a tree that takes `total` cycles, None if it has none; `timed` times a tree."""
    if all(each.role is not Role.OPAQUE for each in tree.instructions):
        return None
    found = _count(tree.root, {})
    uses = tuple(PlaceholderUse(each.kind, each.pipe, times, each.cycles) for each, times in found.items())
    without = total
    if any(use.cycles for use in uses):
        root = _without(tree.root, {})
        assert isinstance(root, Block)
        without = timed(replace(tree, root=root))
    return Placeholders(uses, total, without)


def _count(node: Node, known: dict[int, Counter[Placeholder]]) -> Counter[Placeholder]:
    """Return how often each placeholder is executed."""
    if isinstance(node, Placeholder):
        return Counter((node,))
    if isinstance(node, Loop):
        inner = _count(node.body, known)
        return Counter({each: times * node.trips for each, times in inner.items()})
    if not isinstance(node, Block | Lowered):
        return Counter()
    if id(node) not in known:
        found: Counter[Placeholder] = Counter()
        for item in node.items if isinstance(node, Block) else (node.body,):
            found.update(_count(item, known))
        known[id(node)] = found
    return known[id(node)]


def _without(node: Node, known: dict[int, Node]) -> Node:
    """Return a node whose placeholders take no cycle."""
    if id(node) not in known:
        changed: Node = node
        if isinstance(node, Placeholder):
            changed = replace(node, cycles=0)
        elif isinstance(node, Block):
            changed = replace(node, items=tuple(_without(item, known) for item in node.items))
        elif isinstance(node, Loop | Lowered):
            body = _without(node.body, known)
            assert isinstance(body, Block)
            changed = replace(node, body=body)
        known[id(node)] = changed
    return known[id(node)]
