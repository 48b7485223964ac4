"""Where an access goes: a pointer, an offset, rows or blocks apart, and what is known of their alignment."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from castsim.isa.pto import program as pto
from castsim.isa.pto.micro.types import lane_bits
from castsim.isa.pto.value_types import PointerType, ScalarType
from castsim.machines.vector_function.logical.divisors import Divisors
from castsim.machines.vector_function.logical.emitter import INDEX, Emitter, Use


@dataclass(frozen=True, slots=True)
class Scalars:
    """Scalar arithmetic of addresses: constants where the text gives them."""

    out: Emitter
    facts: Divisors

    def known(self, name: str) -> int | None:
        """Return the value of a scalar that the text gives."""
        return self.facts.constants.get(name)

    def as_index(self, use: Use) -> str:
        """Return a whole number as an index."""
        name, kind = use
        assert isinstance(kind, ScalarType)
        if name in self.facts.constants:
            return self.constant(self.facts.constants[name])
        return self.out.converted("index_cast", name, kind, INDEX)

    def constant(self, value: int) -> str:
        """Return a constant of type index."""
        name = self.out.constant(value, INDEX)
        self.facts.constants[name] = value
        return name

    def plus(self, name: str, more: int) -> str:
        """Return an index and a number more."""
        if more == 0:
            return name
        known = self.known(name)
        if known is not None:
            return self.constant(known + more)
        return self.out.arith("addi", (name, self.constant(more)), INDEX)

    def times(self, name: str, factor: int) -> str:
        """Return an index so many times."""
        known = self.known(name)
        if known is not None or factor == 0:
            return self.constant((known or 0) * factor)
        return name if factor == 1 else self.out.arith("muli", (name, self.constant(factor)), INDEX)

    def sum(self, one: str, other: str) -> str:
        """Return the sum of two indices."""
        for name, further in ((one, other), (other, one)):
            known = self.known(name)
            if known is not None:
                return self.plus(further, known)
        return self.out.arith("addi", (one, other), INDEX)


@dataclass(frozen=True, slots=True)
class Address:
    """Elements of `width` bits from a pointer on; `unit` is how many of the pointer's elements make one.

    `divisor` divides the address in bytes.
    """

    scalars: Scalars
    pointer: str
    kind: PointerType
    offset: str
    width: int
    divisor: int

    @property
    def unit(self) -> int:
        """How many of the pointer's elements one of these is."""
        return self.width // lane_bits(self.kind.element)

    def further(self, elements: int) -> Address:
        """Return the address so many elements on."""
        offset = self.scalars.plus(self.offset, elements * self.unit)
        return self._at(offset, gcd(self.divisor, abs(elements) * self.width // 8))

    def row(self, number: int, stride: str, divisor: int) -> Address:
        """Return the address of a row: rows are `stride` of the pointer's elements apart, which `divisor` divides."""
        offset = self.scalars.sum(self.offset, self.scalars.times(stride, number))
        return self._at(offset, gcd(self.divisor, number * divisor * lane_bits(self.kind.element) // 8))

    def _at(self, offset: str, divisor: int) -> Address:
        return Address(self.scalars, self.pointer, self.kind, offset, self.width, divisor)

    def is_aligned(self, number: int) -> bool:
        """Whether the address is a multiple of so many bytes for all that is known."""
        return self.divisor % number == 0

    def operands(self) -> list[Use]:
        """Return pointer and offset."""
        return [(self.pointer, self.kind), (self.offset, INDEX)]

    def moved(self) -> Use:
        """Return a pointer to the address."""
        if self.scalars.known(self.offset) == 0:
            return self.pointer, self.kind
        out = self.scalars.out
        name = out.fresh("p")
        out.add(pto.AddPointer(name, self.pointer, self.offset, self.kind, span=out.span))
        return name, self.kind
