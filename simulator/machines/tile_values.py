"""What the operations of a tile program make of bytes: the walk that all mechanisms share, with the parts of one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from castsim.execution.dataflow.buffer_values import Bytes, CastCounts, Follower, compute_tree
from castsim.execution.tree import Operation, Tree

_Shortcut = TypeVar("_Shortcut")
_Work = TypeVar("_Work", bound=Operation)


@dataclass(frozen=True, slots=True)
class TileValues(Generic[_Shortcut, _Work]):
    """Computes the values of a mechanism's trees; see `castsim.machines.mechanisms.ComputeValues`."""

    shortcut: type[_Shortcut]
    """What an instruction carries if a whole tile at once is proven to give what its operations give."""
    convert_whole: Callable[[_Shortcut, Bytes], object]
    """Converts that tile in the buffer."""
    work: type[_Work]
    """The operations of the vector unit."""
    execute: Callable[[_Work, Bytes], object]
    """Runs one of them on the buffer."""

    def __call__(
        self,
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
            if not shortcuts or not isinstance(shortcut, self.shortcut):
                return False
            self.convert_whole(shortcut, buffer)
            return True

        def execute(operation: Operation, buffer: Bytes) -> None:
            if isinstance(operation, self.work):
                self.execute(operation, buffer)

        compute_tree(tree, buffer, arguments, whole_tile, execute, follower, counts)
