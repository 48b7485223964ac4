"""Which modules run which mechanism; the only place that knows all of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from simulator.execution import Lowerer
from simulator.tree import Tree
from targets import Target

Bytes = NDArray[np.uint8]


class Compute(Protocol):
    """Runs all operations of a tree on the buffer and the global memory, both changed in place."""

    def __call__(self, tree: Tree, buffer: Bytes, arguments: Mapping[str, Bytes], *, shortcuts: bool = True) -> None:
        """See `simulator.strided.values.compute`."""


def lowerer_of(target: Target) -> Lowerer:
    """Return the lowering of the target's mechanism."""
    from simulator.strided.lowerer import StridedLowerer  # noqa: PLC0415 - only the mechanism in use is loaded

    return StridedLowerer(target)


def compute_of(target: Target) -> Compute:
    """Return what computes the values of the target's operations."""
    from simulator.strided.values import compute  # noqa: PLC0415 - only the mechanism in use is loaded

    return compute
