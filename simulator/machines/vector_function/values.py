"""What vector functions compute: register by register, or a whole tile at once where that is proven the same.

Nothing here knows time. Operations run in program order.
"""

from __future__ import annotations

from collections.abc import Mapping

from castsim.execution.dataflow.cast_counts import CastCounts
from castsim.execution.dataflow.values import Bytes, Follower, compute_tree
from castsim.execution.tree import Operation, Tree
from castsim.machines.vector_function.machine import execute_function
from castsim.machines.vector_function.operations import VectorFunction
from castsim.machines.vector_function.whole_tile import WholeTile, convert_whole


def compute(
    tree: Tree,
    buffer: Bytes,
    arguments: Mapping[str, Bytes],
    *,
    shortcuts: bool = True,
    follower: Follower | None = None,
    counts: CastCounts | None = None,
) -> None:
    """Run a tree as `compute_tree` does; `shortcuts` False goes operation by operation even where proofs exist."""

    def whole_tile(shortcut: object, buffer: Bytes) -> bool:
        if not shortcuts or not isinstance(shortcut, WholeTile):
            return False
        convert_whole(shortcut, buffer)
        return True

    def execute(operation: Operation, buffer: Bytes) -> None:
        if isinstance(operation, VectorFunction):
            execute_function(operation, buffer)

    compute_tree(tree, buffer, arguments, whole_tile, execute, follower, counts)
