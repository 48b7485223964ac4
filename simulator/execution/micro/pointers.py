"""Where an instruction or a transfer of a micro program reads or writes."""

from __future__ import annotations

from dataclasses import dataclass, replace

from castsim.isa.pto.micro.types import lane_bits


@dataclass(frozen=True, slots=True)
class Pointer:
    """A byte address in the buffer, or in an argument's global memory; offsets count elements."""

    argument: str | None
    address: int
    element: str

    @property
    def size(self) -> int:
        """Bytes of an element; two elements of 4 bits are one of 8."""
        return lane_bits(self.element) // 8

    def moved(self, elements: int) -> Pointer:
        """Return the pointer so many elements further on."""
        return self.shifted(elements * self.size)

    def shifted(self, count: int) -> Pointer:
        """Return the pointer so many bytes further on."""
        return replace(self, address=self.address + count)
