"""Registers in other containers, moved to other lanes, and put together."""

from __future__ import annotations

from dataclasses import dataclass, field

from castsim.isa.pto.value_types import ScalarType
from castsim.machines.vector_function.logical.emitter import I16, Emitter, Pred, Reg
from castsim.machines.vector_function.logical.masks import Masks
from castsim.machines.vector_function.logical.values import Vector, per_register, physical, register_count


@dataclass(slots=True)
class Shapes:
    """Makes registers of the lanes of others."""

    out: Emitter
    masks: Masks
    _indices: dict[tuple[str, int, int], Reg] = field(default_factory=dict)

    def forget(self) -> None:
        """Begin another vecscope."""
        self._indices.clear()

    def made(self, lanes: int, element: str, container: int, regs: tuple[Reg, ...]) -> Vector:
        """Return a logical register made of registers, of those that its lanes need."""
        regs = regs[: register_count(lanes, container)]
        return Vector(lanes, element, container, regs, self.out.place())

    def typed(self, value: Vector, element: str) -> list[Reg]:
        """Return the registers as lanes of an element."""
        return [self.out.as_element(reg, element) for reg in value.regs]

    # ------------------------------------------------------------------------------------------------- containers

    def within(self, value: Vector, container: int) -> Vector:
        """Return the same lanes in containers of a width."""
        if value.container == container:
            return value
        return value.kept(container, lambda: self._changed(value, container))

    def _changed(self, value: Vector, container: int) -> Vector:
        with self.out.at(value.home):
            regs, current = value.regs, value.container
            while current < container:
                regs = tuple(each for reg in regs for each in self.spread(reg, reg, current))
                current *= 2
                regs = regs[: register_count(value.lanes, current)]
            while current > container:
                current //= 2
                pairs = zip(regs[::2], (*regs[1::2], regs[-1]), strict=False)
                regs = tuple(self.parted(low, high, current)[0] for low, high in pairs)
            element = physical(value.element)
            return self.made(
                value.lanes, value.element, container, tuple(self.out.as_element(reg, element) for reg in regs)
            )

    def spread(self, one: Reg, other: Reg, bits: int) -> list[Reg]:
        """Interleave the lanes of two registers: two registers."""
        kind = f"u{min(32, bits)}"
        return self.out.registers("vintlv", [self.out.as_element(each, kind).use for each in (one, other)], kind, kind)

    def parted(self, one: Reg, other: Reg, bits: int) -> list[Reg]:
        """Return the even lanes of two registers end to end, and the odd ones."""
        kind = f"u{bits}"
        return self.out.registers("vdintlv", [self.out.as_element(each, kind).use for each in (one, other)], kind, kind)

    # ------------------------------------------------------------------------------------------------------- lanes

    def lane_numbers(self, bits: int, start: int) -> Reg:
        """Return the register whose lane i of so many bits is `start` + i, kept at the head of the vecscope."""
        return self._kept(("lanes", bits, start), lambda: self._lane_numbers(bits, start))

    def _lane_numbers(self, bits: int, start: int) -> Reg:
        kind = ScalarType(f"i{bits}")
        first = self.out.constant(_signed(start, bits), kind)
        found = self.out.register("vci", [(first, kind)], kind.name, order="ASC")
        return self.out.as_element(found, f"u{bits}")

    def same_number(self, bits: int, number: int) -> Reg:
        """Return the register of one number in all lanes, kept at the head of the vecscope."""
        kind, wrapped = ScalarType(f"i{bits}"), _signed(number, bits)
        return self._kept(
            ("same", bits, number),
            lambda: self.out.register("vbr", [(self.out.constant(wrapped, kind), kind)], f"u{bits}"),
        )

    def group_numbers(self, bits: int, start: int, size: int) -> Reg:
        """Return the register whose lane i is (start + i) div size less start div size, kept at the head."""
        return self._kept(
            (f"groups of {size}", bits, start % size), lambda: self._group_numbers(bits, start % size, size)
        )

    def _group_numbers(self, bits: int, start: int, size: int) -> Reg:
        lanes = per_register(bits)
        if start == 0 and size >= lanes:
            return self.same_number(bits, 0)
        kind = f"u{bits}"
        if start == 0 and size & (size - 1) == 0:
            amount = self.out.constant(size.bit_length() - 1, I16)
            operands = [self.lane_numbers(bits, 0).use, (amount, I16), self.masks.whole(bits).use]
            return self.out.register("vshrs", operands, kind)
        found, group, first = self.same_number(bits, 0), 1, size - start
        while first < lanes:
            below = self.out.as_bits(self.masks.first(first, bits), bits)
            found = self.out.register("vsel", [found.use, self.same_number(bits, group).use, below.use], kind)
            group, first = group + 1, first + size
        return found

    def _kept(self, key: tuple[str, int, int], make: object) -> Reg:
        if key not in self._indices:
            assert callable(make)
            with self.out.at(self.out.scope):
                self._indices[key] = make()
        return self._indices[key]

    def picked(self, reg: Reg, index: Reg, bits: int) -> Reg:
        """Return the lanes that an index names."""
        kind = f"u{bits}"
        picked = self.out.register("vselr", [self.out.as_element(reg, kind).use, index.use], kind)
        return self.out.as_element(picked, reg.element)

    def added(self, numbers: Reg, number: int, bits: int) -> Reg:
        """Return lane numbers and a number more."""
        kind = ScalarType(f"i{bits}")
        more = self.out.constant(_signed(number, bits), kind)
        return self.out.register("vadds", [numbers.use, (more, kind), self.masks.whole(bits).use], f"u{bits}")

    def shifted(self, reg: Reg, by: int, bits: int) -> Reg:
        """Return the register whose lane i is lane i + `by`; lanes from beyond are not defined."""
        return reg if by == 0 else self.picked(reg, self.lane_numbers(bits, by), bits)

    def chosen(self, one: Reg, other: Reg | None, mask: Pred, bits: int) -> Reg:
        """Return the lanes of `one` where the mask is set, else those of `other`, if there is one."""
        if other is None:
            return one
        kind = f"u{bits}"
        operands = [self.out.as_element(each, kind).use for each in (one, other)]
        found = self.out.register("vsel", [*operands, self.out.as_bits(mask, bits).use], kind)
        return self.out.as_element(found, one.element)


def _signed(number: int, bits: int) -> int:
    """Return a number modulo 2^bits, as signed."""
    half = 1 << bits - 1
    return (number + half) % (2 * half) - half
