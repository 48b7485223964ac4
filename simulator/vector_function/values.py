"""What vector functions compute: register by register, or a whole tile at once where that is proven the same.

Nothing here knows time. Operations run in program order.
"""

from __future__ import annotations

from collections.abc import Mapping

from simulator.dataflow.operations import Transfer
from simulator.dataflow.values import Bytes, execute_transfer
from simulator.tree import Tree, instances, operations
from simulator.vector_function.machine import execute_function
from simulator.vector_function.operations import VectorFunction
from simulator.vector_function.whole_tile import WholeTile, convert_whole


def compute(tree: Tree, buffer: Bytes, arguments: Mapping[str, Bytes], *, shortcuts: bool = True) -> None:
    """Run all operations of a tree on the buffer and the global memory, both changed in place.

    Args:
        tree: what the machine issues.
        buffer: the unified buffer.
        arguments: global memory by argument name.
        shortcuts: whether to convert whole tiles at once where lowering proved that it is the same.
    """
    for lowered, deltas in instances(tree):
        unmoved = deltas is None or not any(map(any, deltas))
        if shortcuts and unmoved and isinstance(lowered.shortcut, WholeTile):
            convert_whole(lowered.shortcut, buffer)
            continue
        for operation in operations(lowered, deltas):
            if isinstance(operation, VectorFunction):
                execute_function(operation, buffer)
            elif isinstance(operation, Transfer):
                execute_transfer(operation, buffer, arguments)
