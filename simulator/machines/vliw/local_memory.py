"""Vector and scalar local memory: bytes, their bounds, and which of them something has written."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from castsim.isa.errors import Span, TileError

Bytes = NDArray[np.uint8]


class LocalMemory:
    """One local memory of a core, zero at start."""

    def __init__(self, name: str, capacity: int) -> None:
        self.name = name
        self.capacity = capacity
        self.bytes: Bytes = np.zeros(capacity, np.uint8)
        self.written: NDArray[np.bool_] = np.zeros(capacity, np.bool_)

    def check(self, address: int, size: int, alignment: int, span: Span) -> None:
        """Reject an access outside the memory or at an odd place.

        Raises:
            TileError: names address, size, bounds and alignment.
        """
        if address + size > self.capacity:
            raise TileError(
                f"{self.name.upper()} address {address:#x}: {size} bytes there end beyond the {self.capacity} bytes of "
                "the memory",
                span=span,
                legal=(f"0x0 .. {self.capacity - size:#x}",),
            )
        if address % alignment:
            down = address - address % alignment
            raise TileError(
                f"{self.name.upper()} address {address:#x} is not a multiple of {alignment}",
                span=span,
                legal=(f"{down:#x}", f"{down + alignment:#x}"),
            )

    def load(self, address: int, size: int) -> Bytes:
        """Return a copy of some bytes."""
        return self.bytes[address : address + size].copy()

    def store(self, address: int, data: Bytes, mask: NDArray[np.bool_] | None = None) -> None:
        """Write bytes, only those under a mask if there is one."""
        place = slice(address, address + data.size)
        if mask is None:
            self.bytes[place] = data
            self.written[place] = True
        else:
            self.bytes[place][mask] = data[mask]
            self.written[place] |= mask

    def is_written(self, address: int, size: int) -> bool:
        """Whether all of some bytes have been written or declared."""
        return bool(self.written[address : address + size].all())
