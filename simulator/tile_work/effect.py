"""What a vector operation does to the bytes of the buffer, as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from simulator.tiles import Tile, TileWork


@dataclass(frozen=True, slots=True)
class TileEffect:
    """The action of one vector operation: what all operations that it is lowered to compute together.

    The value path always runs it whole and skips those operations, which carry time and byte streams only.
    """

    work: TileWork

    def moved(self, deltas: Sequence[int]) -> TileEffect:
        """Return the effect on moved tiles; `deltas` belong to the accesses of `work_accesses`, in bytes."""
        if not any(deltas):
            return self
        work, remaining = self.work, iter(deltas)

        def shifted(tile: Tile) -> Tile:
            return replace(tile, address=tile.address + next(remaining))

        dst = shifted(work.dst)
        sources = tuple(shifted(source) for source in work.sources)
        tmp = mask = None
        if work.tmp is not None:
            tmp = shifted(work.tmp)
            next(remaining)  # tmp is read and written: two accesses that move together
        if work.mask is not None:
            mask = shifted(work.mask)
        return replace(self, work=replace(work, dst=dst, sources=sources, tmp=tmp, mask=mask))

    def apply(self, buffer: NDArray[np.uint8]) -> None:
        """Run the operation on the unified buffer."""
        raise NotImplementedError
