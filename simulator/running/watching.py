"""What follows the values of a run, operation by operation, and alters nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from castsim.execution.dataflow.values import Follower
    from castsim.execution.micro import MicroMemory, VectorUnit
    from castsim.machines.vliw.machine import VliwCore

    Bytes = NDArray[np.uint8]


class Watch(Protocol):
    """Is told of a run's memories and of every operation just before its values are computed, in program order."""

    def tiles(self, buffer: Bytes, arguments: Mapping[str, Bytes], follower: Follower | None) -> Follower:
        """Begin to follow a tile program; return what follows it in place of `follower`, which it asks in turn."""
        ...

    def micro(self, unit: VectorUnit, memory: MicroMemory) -> VectorUnit:
        """Begin to follow a program of vector instructions; return the unit that stands before `unit`."""
        ...

    def bundle(self, core: VliwCore, index: int) -> None:
        """Hear that a core is about to issue a bundle of its program."""
        ...

    def finish(self) -> None:
        """Hear that the last operation has been executed."""
        ...
