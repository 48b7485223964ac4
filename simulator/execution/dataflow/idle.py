"""Instructions that do nothing which some question is about, and loops of nothing but such."""

from __future__ import annotations

from castsim.execution.dataflow.operations import Barrier, ScalarWork, SetFlag, WaitFlag
from castsim.execution.tree import Block, Loop, Lowered, Node

Kinds = tuple[type, ...]

PATH_ONLY: Kinds = (ScalarWork,)
"""Operations that touch no byte and order nothing."""

NO_VALUES: Kinds = (ScalarWork, SetFlag, WaitFlag, Barrier)
"""Operations that compute no value."""


class Idle:
    """Tells what in a tree consists of some kinds of operations alone; each node is looked at once."""

    def __init__(self, kinds: Kinds) -> None:
        self._kinds = kinds
        self._known: dict[int, bool] = {}

    def __call__(self, node: Node) -> bool:
        """Whether nothing in `node` is of another kind. The tree must outlive this object."""
        if isinstance(node, Loop):
            return self(node.body)
        if isinstance(node, Lowered):
            return not node.accesses and node.shortcut is None and self(node.body)
        if not isinstance(node, Block):
            return isinstance(node, self._kinds)
        found = self._known.get(id(node))
        if found is None:
            found = self._known[id(node)] = all(map(self, node.items))
        return found
