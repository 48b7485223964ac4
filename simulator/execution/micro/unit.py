"""What the walk through a micro program hands to a vector unit, and what it gets back."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from castsim.execution.walk.dependence import Scalar
from castsim.isa.pto.micro.nodes import MicroOperation
from castsim.isa.pto.micro.types import lane_bits
from castsim.isa.pto.program import For, Section


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


Value = Scalar | Pointer | object
"""A scalar or pointer, which the walk computes; all else, registers and masks, is the vector unit's."""


@dataclass(frozen=True, slots=True)
class Issue:
    """One executed vector instruction: its operands in the order of the text, registers as the unit gave them.

    `address` is the first byte of the buffer that it reads or writes, None if it does neither. `updates` tells that it
    also hands on a pointer.
    """

    node: MicroOperation
    operands: tuple[Value, ...]
    address: int | None = None
    updates: bool = False


class VectorUnit(Protocol):
    """Executes vector instructions in program order.

    What a unit does with them is its own: compute values, record what is issued, or both. Loops are announced, so that
    whoever counts cycles sees the program's own.
    """

    def enter(self, scope: Section) -> None:
        """Begin a launch of a vector function."""
        ...

    def leave(self) -> None:
        """End it."""
        ...

    def loop(self, loop: For, trips: int) -> None:
        """Begin a loop of so many trips inside of a vecscope."""
        ...

    def trip(self, loop: For) -> None:
        """End a trip of the innermost loop."""
        ...

    def execute(self, issue: Issue) -> tuple[Value, ...]:
        """Execute an instruction; return its results that are registers, masks and alignment states.

        Raises:
            IllegalError, TileError: the unit does not have it, or it reaches beyond the buffer.
        """
        ...


class PathOnly:
    """A unit that computes nothing: the path of a program does not rest on registers."""

    def enter(self, scope: Section) -> None:
        """Do nothing."""

    def leave(self) -> None:
        """Do nothing."""

    def loop(self, loop: For, trips: int) -> None:
        """Do nothing."""

    def trip(self, loop: For) -> None:
        """Do nothing."""

    def execute(self, issue: Issue) -> tuple[Value, ...]:
        """Return a result of nothing for each that there is."""
        return (None,) * len(issue.node.results)
