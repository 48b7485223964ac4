"""Loads of logical registers: rows of whole registers, unaligned ones, blocks, single elements, gathers."""

from __future__ import annotations

from dataclasses import dataclass

from castsim.isa.pto.micro.types import lane_bits
from castsim.isa.pto.value_types import AlignType, LogicalVectorType, ScalarType, Type
from castsim.machines.vector_function.logical.addresses import Address
from castsim.machines.vector_function.logical.emitter import I16, INDEX, Emitter, Reg, Use, vector
from castsim.machines.vector_function.logical.masks import Masks
from castsim.machines.vector_function.logical.shapes import Shapes
from castsim.machines.vector_function.logical.values import Vector, per_register, physical, register_count
from castsim.targets.dataflow import BLOCK_BYTES

_UNPACKED_ALIGNMENT = 16
_FEW = 4
"""Slots that are loaded one by one; more are gathered."""
_UNPACKING = {(8, 16): "UNPK_B8", (16, 32): "UNPK_B16", (32, 64): "UNPK_B32", (8, 32): "UNPK4"}
"""Distribution modes by the widths of elements in memory and of containers."""


def loaded_container(width: int, container: int) -> int:
    """Return the containers that a load can fill, the widest up to those wanted."""
    return max([width, *(c for w, c in _UNPACKING if w == width and c <= container)])


@dataclass(slots=True)
class Loads:
    """Makes loads; `far` is the width of elements in memory, where unpacking makes wider ones of them."""

    out: Emitter
    masks: Masks
    shapes: Shapes

    def row(self, kind: LogicalVectorType, place: Address, container: int) -> Vector:
        """Load elements that stand one after the other."""
        far, near = place.width, lane_bits(kind.element)
        held = loaded_container(far, container)
        alignment = BLOCK_BYTES if held == far else _UNPACKED_ALIGNMENT
        element = physical(kind.element) if far == near else f"u{far}"
        if place.is_aligned(alignment):
            regs = self._aligned(element, kind.lanes, place, held)
        else:
            held, regs = far, self._unaligned(element, kind.lanes, place)
        if far == near:
            return self.shapes.within(self.shapes.made(kind.lanes, kind.element, held, tuple(regs)), container)
        while held < near:
            none = self.shapes.same_number(held, 0)
            regs = [each for reg in regs for each in self.shapes.spread(reg, none, held)]
            held *= 2
        found = tuple(self.out.as_element(reg, physical(kind.element)) for reg in regs)
        return self.shapes.within(self.shapes.made(kind.lanes, kind.element, held, found), container)

    def _aligned(self, element: str, lanes: int, place: Address, held: int) -> list[Reg]:
        words = {} if held == place.width else {"dist": _UNPACKING[place.width, held]}
        size = per_register(held)
        return [
            self.out.register("vlds", place.further(number * size).operands(), element, **words)
            for number in range(register_count(lanes, held))
        ]

    def _unaligned(self, element: str, lanes: int, place: Address) -> list[Reg]:
        pointer, kind = place.moved()
        (state,), _ = self.out.micro("vldas", [(pointer, kind)], [("a", AlignType())])
        found = []
        for _ in range(register_count(lanes, place.width)):
            results: list[tuple[str, Type]] = [("v", vector(element)), ("a", AlignType()), ("p", kind)]
            (name, state, pointer), home = self.out.micro("vldus", [(pointer, kind), (state, AlignType())], results)
            found.append(Reg(name, element, home))
        return found

    # --------------------------------------------------------------------------------------------- rows apart

    def rows(
        self, kind: LogicalVectorType, place: Address, groups: int, stride: str, divisor: int, container: int
    ) -> Vector:  # fmt: skip
        """Load rows that stand `stride` of the pointer's elements apart; `divisor` divides that."""
        size, known = kind.lanes // groups, place.scalars.known(stride)
        if known is not None and known == size * place.unit:
            return self.row(kind, place, container)
        if size == 1 and groups > _FEW and place.unit == 1 and place.width == lane_bits(kind.element) <= 32:
            return self._gathered_slots(kind, place, stride, container)
        held = min(32, container)
        if size == 1 and place.width == lane_bits(kind.element) <= 32:
            places = [place.row(number, stride, divisor) for number in range(groups)]
            return self._spread_slots(kind, places, 1, container)
        part = LogicalVectorType(size, kind.element)
        parts = [self.row(part, place.row(number, stride, divisor), held) for number in range(groups)]
        return self.shapes.within(self._joined(kind, parts, size, held), container)

    def _joined(self, kind: LogicalVectorType, parts: list[Vector], size: int, container: int) -> Vector:
        """Put logical registers of `size` lanes behind each other."""
        lanes, found = per_register(container), list[Reg]()
        for number in range(register_count(kind.lanes, container)):
            start = number * lanes
            whole: Reg | None = None
            for group in range(start // size, -(-min(start + lanes, kind.lanes) // size)):
                first = group * size - start  # the lane of the group's first element in this register
                inside = range(max(first, 0), min(first + size, lanes))
                lane = inside.start
                while lane < inside.stop:
                    source, by = divmod(lane - first, lanes)
                    here = min(inside.stop, lane + lanes - by)
                    moved = self.shapes.shifted(parts[group].regs[source], by - lane, container)
                    whole = self.shapes.chosen(moved, whole, self.masks.between(lane, here, container), container)
                    lane = here
            assert whole is not None
            found.append(whole)
        return self.shapes.made(kind.lanes, kind.element, container, tuple(found))

    def _gathered_slots(self, kind: LogicalVectorType, place: Address, stride: str, container: int) -> Vector:
        """Gather single elements, in containers of 32 bits."""
        scalars, i32 = place.scalars, ScalarType("i32")
        known = scalars.known(stride)
        step = (
            self.out.constant(known, i32) if known is not None else self.out.converted("index_cast", stride, INDEX, i32)
        )
        indices = []
        for number in range(register_count(kind.lanes, 32)):
            lanes = self.shapes.lane_numbers(32, number * per_register(32))
            indices.append(self.out.register("vmuls", [lanes.use, (step, i32), self.masks.whole(32).use], "u32"))
        preds = [pred.use for pred in self.masks.range(kind.lanes, 32)]
        return self.gathered(kind, place.moved(), indices, preds, 32, container)

    def gathered(
        self, kind: LogicalVectorType, pointer: Use, indices: list[Reg], preds: list[Use], bits: int, container: int
    ) -> Vector:  # fmt: skip
        """Gather elements that lanes of `bits` name, counted in elements of the pointer."""
        regs = tuple(
            self.out.as_element(
                self.out.register("vgather2", [pointer, index.use, pred], f"u{bits}"), physical(kind.element)
            )
            for index, pred in zip(indices, preds, strict=True)
        )
        return self.shapes.within(self.shapes.made(kind.lanes, kind.element, bits, regs), container)

    # ----------------------------------------------------------------------------------------- blocks, one element

    def blocks(self, kind: LogicalVectorType, place: Address, stride: Use, container: int) -> Vector:
        """Load blocks of 32 bytes that stand so many blocks apart."""
        name, _ = stride
        known, pointer = place.scalars.known(name), place.moved()
        element, size = physical(kind.element), lane_bits(kind.element)
        step = name if known is None else self.out.constant(known, I16)
        found = []
        for number, pred in enumerate(self.masks.range(kind.lanes, size)):
            if known is not None:
                first = self.out.constant(8 * number * known, I16)
            else:
                first = self.out.arith("muli", (name, self.out.constant(8 * number, I16)), I16)
            operands = [pointer, (step, I16), (first, I16), self.out.as_bits(pred, min(32, size)).use]
            found.append(self.out.register("vsldb", operands, element))
        return self.shapes.within(self.shapes.made(kind.lanes, kind.element, size, tuple(found)), container)

    def one(self, kind: LogicalVectorType, place: Address, container: int) -> Vector:
        """Load one element into all lanes."""
        reg = self._one(kind, place)
        held = container if place.width == lane_bits(kind.element) else lane_bits(kind.element)
        count = register_count(kind.lanes, held)
        return self.shapes.within(self.shapes.made(kind.lanes, kind.element, held, (reg,) * count), container)

    def _one(self, kind: LogicalVectorType, place: Address) -> Reg:
        word = f"BRC_B{place.width}"
        return self.out.register("vlds", place.operands(), physical(kind.element), dist=word)

    def one_a_group(
        self, kind: LogicalVectorType, place: Address, groups: int, stride: str, divisor: int, container: int
    ) -> Vector:  # fmt: skip
        """Load one element a group into all its lanes."""
        places = [place.row(number, stride, divisor) for number in range(groups)]
        return self._spread_slots(kind, places, kind.lanes // groups, container)

    def _spread_slots(self, kind: LogicalVectorType, places: list[Address], size: int, container: int) -> Vector:
        held = min(32, container)
        slots, lanes, found = [self._one(kind, place) for place in places], per_register(held), list[Reg]()
        for number in range(register_count(kind.lanes, held)):
            start = number * lanes
            whole: Reg | None = None
            for group in range(start // size, -(-min(start + lanes, kind.lanes) // size)):
                first = group * size - start
                mask = self.masks.between(max(first, 0), min(first + size, lanes), held)
                whole = self.shapes.chosen(slots[group], whole, mask, held)
            assert whole is not None
            found.append(whole)
        return self.shapes.within(self.shapes.made(kind.lanes, kind.element, held, tuple(found)), container)
