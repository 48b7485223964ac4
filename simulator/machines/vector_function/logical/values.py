"""Logical registers and masks as physical ones.

An element of w bits stands in the low bits of a container of c >= w bits, the containers of a register one after the
other: what unpacking loads and conversions with part EVEN or P0 leave behind, and packing stores take.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from castsim.isa.pto.micro.types import lane_bits
from castsim.isa.pto.value_types import REGISTER_BITS
from castsim.machines.vector_function.logical.emitter import Place, Pred, Reg

_PHYSICAL = {"bf16_pair": "u32", "hif8_pair": "u16"}


def physical(element: str) -> str:
    """Return the element by which instructions know a logical element: pairs of 16 and 32 bits are integers."""
    return _PHYSICAL.get(element, element)


def per_register(container: int) -> int:
    """Return how many containers a register has."""
    return REGISTER_BITS // container


def register_count(lanes: int, container: int) -> int:
    """Return how many registers hold so many containers."""
    return -(-lanes // per_register(container))


@dataclass(frozen=True, slots=True)
class Vector:
    """A logical register: its lanes and element, the bits of its containers, its registers, the place behind it."""

    lanes: int
    element: str
    container: int
    regs: tuple[Reg, ...]
    home: Place
    _others: dict[int, Vector] = field(default_factory=dict)

    @property
    def width(self) -> int:
        """Bits of an element."""
        return lane_bits(self.element)

    def kept(self, container: int, make: Callable[[], Vector]) -> Vector:
        """Return the same lanes in other containers, made once."""
        if container not in self._others:
            self._others[container] = make()
        return self._others[container]


@dataclass(frozen=True, slots=True)
class LogicalMask:
    """A logical mask: one bit a container, none beyond its lanes; its predicates are made when they are wanted.

    `make` makes those for containers of a width.
    """

    lanes: int
    home: Place
    make: Callable[[int], tuple[Pred, ...]]
    _made: dict[int, tuple[Pred, ...]] = field(default_factory=dict)

    def at(self, container: int) -> tuple[Pred, ...]:
        """Return the predicates for containers of a width."""
        if container not in self._made:
            self._made[container] = self.make(container)
        return self._made[container]


Logical = Vector | LogicalMask
