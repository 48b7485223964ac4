"""Loads and stores of logical registers.

Source: docs/reference/micro.md section 9.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import gcd

from castsim.isa.dataclass import dataclass
from castsim.isa.errors import IllegalError
from castsim.isa.pto import program as pto
from castsim.isa.pto.types import lane_bits
from castsim.isa.pto.value_types import (
    AlignType,
    MaskType,
    PointerType,
    ScalarType,
    Type,
    vector,
)
from castsim.languages.vmi.facts import WIDEST, element_bytes
from castsim.languages.vmi.logical_registers import (
    I16,
    I32,
    LogicalBuilder,
    LogicalMask,
    LogicalRegister,
    per_register,
    physical,
    register_count,
)
from castsim.languages.vmi.types import LogicalVectorType
from castsim.targets.dataflow import BLOCK_BYTES
from castsim.tools.micro_builder.micro_builder import INDEX, Pred, Reg, Use


@dataclass(frozen=True, slots=True)
class Address:
    """Elements of `width` bits from a pointer on; `divisor` divides the address in bytes."""

    out: LogicalBuilder
    pointer: str
    kind: PointerType
    offset: str
    width: int
    divisor: int

    @property
    def unit(self) -> int:
        """Number of the pointer's elements per element of this address."""
        return self.width // lane_bits(self.kind.element)

    def further(self, elements: int) -> Address:
        """Return the address advanced by some elements."""
        offset = self.out.plus(self.offset, elements * self.unit)
        return self._at(offset, gcd(self.divisor, abs(elements) * self.width // 8))

    def row(self, number: int, stride: str, divisor: int) -> Address:
        """Return the address of a row: rows are `stride` pointer elements apart, a multiple of `divisor`."""
        offset = self.out.sum(self.offset, self.out.times(stride, number))
        return self._at(offset, gcd(self.divisor, number * divisor * element_bytes(self.kind)))

    def _at(self, offset: str, divisor: int) -> Address:
        return Address(self.out, self.pointer, self.kind, offset, self.width, divisor)

    def is_aligned(self, number: int) -> bool:
        """Return whether the address is known to be a multiple of a number of bytes."""
        return self.divisor % number == 0

    def operands(self) -> list[Use]:
        """Return pointer and offset."""
        return [(self.pointer, self.kind), (self.offset, INDEX)]

    def moved(self) -> Use:
        """Return a pointer to the address."""
        if self.out.known.get(self.offset) == 0:
            return self.pointer, self.kind
        name = self.out.fresh("p")
        self.out.add(pto.AddPointer(name, self.pointer, self.offset, self.kind, span=self.out.span))
        return name, self.kind


_UNPACKED_ALIGNMENT = 16
_FEW = 4
"""Maximum number of slots that are loaded one by one; more are gathered."""
_UNPACKING = {(8, 16): "UNPK_B8", (16, 32): "UNPK_B16", (32, 64): "UNPK_B32", (8, 32): "UNPK4"}
_PACKING = {(8, 16): "PK_B16", (16, 32): "PK_B32", (32, 64): "PK_B64", (8, 32): "PK4_B32"}
"""Distribution modes by the widths of elements in memory and of containers."""
_ALIGN = AlignType()


def _widest(modes: Iterable[tuple[int, int]], width: int, container: int) -> int:
    """Return the widest containers up to those wanted that an access can fill from, or empty into, memory."""
    return max([width, *(c for w, c in modes if w == width and c <= container)])


class LogicalAccesses(LogicalBuilder):
    """Writer of loads and stores; lanes of a store without mask bit leave memory unchanged."""

    __slots__ = ()

    def as_logical(self, kind: LogicalVectorType, width: int, regs: Iterable[Reg], container: int) -> LogicalRegister:
        """Return registers with containers of `container` bits as a logical register with containers of a width."""
        return self.within(self.made(kind.lanes, kind.element, width, regs), container)

    def merged(
        self, lanes: int, size: int, container: int, of_group: Callable[[int, int, int, Reg | None], Reg | None]
    ) -> list[Reg]:
        """Return the registers of groups of `size` adjacent lanes.

        `of_group` merges the lanes of a group into a register, given its index, its first lane and the register so far.
        """
        count, regs = per_register(container), list[Reg]()
        for number in range(register_count(lanes, container)):
            start, whole = number * count, None
            for group in range(start // size, -(-min(start + count, lanes) // size)):
                whole = of_group(group, group * size - start, count, whole)
            assert whole is not None
            regs.append(whole)
        return regs

    # ------------------------------------------------------------------------------------------------------- loads

    def load_row(self, kind: LogicalVectorType, address: Address, container: int) -> LogicalRegister:
        """Load contiguous elements; unpacking widens memory elements of `place.width` bits."""
        far, near = address.width, lane_bits(kind.element)
        width = _widest(_UNPACKING, far, container)
        element = physical(kind.element) if far == near else f"u{far}"
        if address.is_aligned(BLOCK_BYTES if width == far else _UNPACKED_ALIGNMENT):
            words = {} if width == far else {"dist": _UNPACKING[far, width]}
            regs = [
                self.register("vlds", address.further(number * per_register(width)).operands(), element, **words)
                for number in range(register_count(kind.lanes, width))
            ]
        else:
            width, regs = far, self._unaligned(element, register_count(kind.lanes, far), address)
        while width < near:
            none = self.same_number(width, 0)
            regs = [half for reg in regs for half in self.spread(reg, none, width)]
            width *= 2
        if far != near:
            regs = [self.as_element(reg, physical(kind.element)) for reg in regs]
        return self.as_logical(kind, width, regs, container)

    def _unaligned(self, element: str, count: int, address: Address) -> list[Reg]:
        pointer, kind = address.moved()
        (state,), _ = self.micro("vldas", [(pointer, kind)], [("a", _ALIGN)])
        regs = []
        for _ in range(count):
            results: list[tuple[str, Type]] = [("v", vector(element)), ("a", _ALIGN), ("p", kind)]
            (name, state, pointer), home = self.micro("vldus", [(pointer, kind), (state, _ALIGN)], results)
            regs.append(Reg(name, element, home))
        return regs

    def load_rows(
        self, kind: LogicalVectorType, address: Address, groups: int, stride: str, divisor: int, container: int
    ) -> LogicalRegister:
        """Load rows that are `stride` pointer elements apart; `divisor` divides the stride."""
        size = kind.lanes // groups
        if self.known.get(stride) == size * address.unit:
            return self.load_row(kind, address, container)
        single = size == 1 and address.width == lane_bits(kind.element) <= 32
        if single and groups > _FEW and address.unit == 1:
            step = self.as_integer(stride, I32)
            indices = [self.strided_numbers(32, n, step) for n in range(register_count(kind.lanes, 32))]
            preds = [pred.use for pred in self.leading(kind.lanes, kind.lanes, 32)]
            return self.gathered(kind, address.moved(), indices, preds, 32, container)
        if single:
            return self.load_slots(kind, address, groups, stride, divisor, container)
        width, part = min(32, container), LogicalVectorType(size, kind.element)
        parts = [self.load_row(part, address.row(number, stride, divisor), width) for number in range(groups)]

        def joined(group: int, first: int, lanes: int, whole: Reg | None) -> Reg | None:
            lane, end = max(first, 0), min(first + size, lanes)
            while lane < end:
                source, by = divmod(lane - first, lanes)
                here = min(end, lane + lanes - by)
                moved = self.shifted(parts[group].regs[source], by - lane, width)
                whole = self.chosen(moved, whole, self.between(lane, here, width), width)
                lane = here
            return whole

        return self.as_logical(kind, width, self.merged(kind.lanes, size, width, joined), container)

    def gathered(
        self, kind: LogicalVectorType, pointer: Use, indices: list[Reg], preds: list[Use], bits: int, container: int
    ) -> LogicalRegister:
        """Gather elements whose indices, in pointer elements, are in lanes of `bits`."""
        regs = [
            self.as_element(self.register("vgather2", [pointer, index.use, pred], f"u{bits}"), physical(kind.element))
            for index, pred in zip(indices, preds, strict=True)
        ]
        return self.as_logical(kind, bits, regs, container)

    def load_one(self, kind: LogicalVectorType, address: Address, container: int) -> LogicalRegister:
        """Load one element into all lanes."""
        reg = self._broadcast(kind, address)
        width = container if address.width == lane_bits(kind.element) else lane_bits(kind.element)
        return self.as_logical(kind, width, [reg] * register_count(kind.lanes, width), container)

    def _broadcast(self, kind: LogicalVectorType, address: Address) -> Reg:
        return self.register("vlds", address.operands(), physical(kind.element), dist=f"BRC_B{address.width}")

    def load_slots(
        self, kind: LogicalVectorType, address: Address, groups: int, stride: str, divisor: int, container: int
    ) -> LogicalRegister:
        """Load one element per group into all its lanes."""
        width, size = min(32, container), kind.lanes // groups
        places = [address.row(number, stride, divisor) for number in range(groups)]
        slots = [self._broadcast(kind, slot_address) for slot_address in places]

        def spread(group: int, first: int, lanes: int, whole: Reg | None) -> Reg:
            mask = self.between(max(first, 0), min(first + size, lanes), width)
            return self.chosen(slots[group], whole, mask, width)

        return self.as_logical(kind, width, self.merged(kind.lanes, size, width, spread), container)

    # ------------------------------------------------------------------------------------------------------ stores

    def store_row(self, value: LogicalRegister, address: Address, mask: LogicalMask | None) -> None:
        """Store contiguous elements."""
        if not address.is_aligned(BLOCK_BYTES):
            self._store_unaligned(value, address, mask)
            return
        value = self.within(value, _widest(_PACKING, value.width, value.container))
        for number, pred in enumerate(self.active(mask, value.lanes, value.container)):
            self._store(value, number, address.further(number * per_register(value.container)), pred)

    def _store(self, value: LogicalRegister, number: int, address: Address, pred: Pred) -> None:
        """Store one register."""
        container, words = value.container, {}
        if container != value.width:
            words["dist"] = _PACKING[value.width, container]
        elif container > 32:
            words["dist"] = "NORM_B32"
            for mnemonic in ("pdintlv_b32", "pintlv_b32"):  # both lanes of each container of 64
                (low, _), home = self.micro(mnemonic, [pred.use] * 2, [("m", MaskType(32))] * 2)
                pred = Pred(low, 32, home)
        mask = self.as_bits(pred, min(32, container))
        reg = self.as_element(value.regs[number], physical(value.element))
        self.micro("vsts", [reg.use, *address.operands(), mask.use], (), **words)

    def _store_unaligned(self, value: LogicalRegister, address: Address, mask: LogicalMask | None) -> None:
        if value.width == WIDEST and mask is not None:
            raise IllegalError("a masked store of 64 bits needs an aligned address", legal=("multiples of 32 bytes",))
        value, size = self.within(value, value.width), per_register(value.width)
        if mask is not None:  # lanes are scattered to where they would go
            _check_unit(address)
            for number, pred in enumerate(mask.at(value.width)):
                index = self.lane_numbers(value.width, 0)
                self._scatter(value, number, address.further(number * size), index, pred)
            return
        pointer, kind = address.moved()
        (state,), _ = self.micro("init_align", (), [("a", _ALIGN)])
        for number, reg in enumerate(value.regs):
            count = self.scalar(min(value.lanes - number * size, size) * address.unit, I32)
            uses: list[Use] = [(state, _ALIGN), count, reg.use, (pointer, kind)]
            (state, pointer), _ = self.micro("vstus", uses, [("a", _ALIGN), ("p", kind)])
        self.micro("vstas", [(state, _ALIGN), (pointer, kind), self.scalar(0, I32)])

    def _scatter(self, value: LogicalRegister, number: int, address: Address, index: Reg, pred: Pred) -> None:
        reg, mask = self.as_element(value.regs[number], f"u{value.width}"), self.as_bits(pred, value.width)
        self.micro("vscatter", [reg.use, address.moved(), index.use, mask.use])

    def store_rows(
        self, value: LogicalRegister, address: Address, groups: int, stride: str, divisor: int, mask: LogicalMask | None
    ) -> None:
        """Store rows that are `stride` pointer elements apart; `divisor` divides the stride."""
        size, distance = value.lanes // groups, self.known.get(stride)
        if distance == size * address.unit:
            self.store_row(value, address, mask)
        elif size == 1:
            self._store_slots(value, address, stride, divisor, mask)
        else:
            value = self.within(value, _widest(_PACKING, value.width, value.container))
            apart = distance is not None and distance >= size * address.unit
            for group in range(groups):
                self._store_lanes(value, address.row(group, stride, divisor), group * size, size, mask, apart=apart)

    def _store_lanes(
        self, value: LogicalRegister, address: Address, start: int, size: int, mask: LogicalMask | None, *, apart: bool
    ) -> None:
        """Store lanes `start` to `start` + `size` - 1, the first of them at an address.

        With rows `apart` a register that begins before the row can begin before it in memory, too.
        """
        lanes, lane = per_register(value.container), start
        while lane < start + size:
            number, first = divmod(lane, lanes)
            last = min(first + start + size - lane, lanes)
            here = address.further(lane - start)
            pred = self.between(first, last, value.container)
            if mask is not None:
                pred = self.logic("pand", mask.at(value.container)[number], pred, value.container)
            before = here.further(-first)
            if (first == 0 or apart) and before.is_aligned(BLOCK_BYTES):
                self._store(value, number, before, pred)
            else:
                _check_unit(here)
                if value.container != value.width:
                    legal = ("multiples of 32 bytes",)
                    raise IllegalError("rows of these lanes need aligned addresses", legal=legal)
                self._scatter(value, number, here, self.lane_numbers(value.width, -first), pred)
            lane += last - first

    def _store_slots(
        self, value: LogicalRegister, address: Address, stride: str, divisor: int, mask: LogicalMask | None
    ) -> None:
        """Store one element per row: all by one scatter if lanes can count that far, otherwise one by one."""
        _check_unit(address)
        value = self.within(value, value.width)
        width, preds, distance = value.width, self.active(mask, value.lanes, value.width), self.known.get(stride)
        if width == 32 or (distance is not None and 0 <= distance * (value.lanes - 1) < 1 << width - 1):
            step = self.as_integer(stride, ScalarType(f"i{width}"))
            for number, pred in enumerate(preds):
                self._scatter(value, number, address, self.strided_numbers(width, number, step), pred)
            return
        none = self.same_number(width, 0)
        for slot in range(value.lanes):
            number, lane = divmod(slot, per_register(width))
            pred = self.logic("pand", preds[number], self.between(lane, lane + 1, width), width)
            self._scatter(value, number, address.row(slot, stride, divisor), none, pred)

    # ------------------------------------------------------------------------------------------------------ blocks

    def load_blocks(self, kind: LogicalVectorType, address: Address, stride: Use, container: int) -> LogicalRegister:
        """Load blocks of 32 bytes at a distance in blocks."""
        pointer, element, size = address.moved(), physical(kind.element), lane_bits(kind.element)
        step, regs = self._block_step(stride), []
        for number, pred in enumerate(self.leading(kind.lanes, kind.lanes, size)):
            first = self._first_block(stride, number)
            operands = [pointer, step, first, self.as_bits(pred, min(32, size)).use]
            regs.append(self.register("vsldb", operands, element))
        return self.as_logical(kind, size, regs, container)

    def store_blocks(self, value: LogicalRegister, address: Address, stride: Use) -> None:
        """Store blocks of 32 bytes at a distance in blocks."""
        value = self.within(value, value.width)
        step = self._block_step(stride)
        for number, pred in enumerate(self.leading(value.lanes, value.lanes, value.width)):
            first = self._first_block(stride, number)
            mask = self.as_bits(pred, min(32, value.width))
            reg = self.as_element(value.regs[number], physical(value.element))
            self.micro("vsstb", [reg.use, address.moved(), step, first, mask.use])

    def _block_step(self, stride: Use) -> Use:
        name, _ = stride
        return self.scalar(self.known[name], I16) if name in self.known else (name, I16)

    def _first_block(self, stride: Use, number: int) -> Use:
        """Return the index of the block in which the n-th register begins."""
        name, _ = stride
        if name in self.known:
            return self.scalar(8 * number * self.known[name], I16)
        return self.arith("muli", (name, self.constant(8 * number, I16)), I16), I16


def _check_unit(address: Address) -> None:
    if address.unit != 1 or address.width > 32:
        raise IllegalError("no instruction stores this", legal=("a pointer to the elements of the register",))
