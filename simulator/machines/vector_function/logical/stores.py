"""Stores of logical registers: rows, packed where containers are wider, unaligned ones, blocks, slots."""

from __future__ import annotations

from dataclasses import dataclass

from castsim.isa.errors import IllegalError
from castsim.isa.pto.value_types import AlignType, MaskType, ScalarType
from castsim.machines.vector_function.logical.addresses import Address
from castsim.machines.vector_function.logical.emitter import I16, I32, INDEX, Emitter, Pred, Reg, Use
from castsim.machines.vector_function.logical.masks import Masks
from castsim.machines.vector_function.logical.shapes import Shapes
from castsim.machines.vector_function.logical.values import (
    LogicalMask,
    Vector,
    per_register,
    physical,
)
from castsim.targets.dataflow import BLOCK_BYTES

_ALIGN = AlignType()
_PACKING = {(8, 16): "PK_B16", (16, 32): "PK_B32", (32, 64): "PK_B64", (8, 32): "PK4_B32"}
"""Distribution modes by the widths of elements in memory and of containers."""


def stored_container(width: int, container: int) -> int:
    """Return the containers from which a store can take elements, the widest up to those that there are."""
    return max([width, *(c for w, c in _PACKING if w == width and c <= container)])


@dataclass(slots=True)
class Stores:
    """Makes stores; lanes without mask bit leave memory as it is."""

    out: Emitter
    masks: Masks
    shapes: Shapes

    def row(self, value: Vector, place: Address, mask: LogicalMask | None) -> None:
        """Store elements one after the other."""
        if not place.is_aligned(BLOCK_BYTES):
            self._unaligned_row(value, place, mask)
            return
        value = self.shapes.within(value, stored_container(value.width, value.container))
        size = per_register(value.container)
        for number, pred in enumerate(self.masks.within(mask, value.lanes, value.container)):
            self._store(value, value.regs[number], place.further(number * size), pred)

    def _store(self, value: Vector, reg: Reg, place: Address, pred: Pred) -> None:
        """Store one register."""
        container, words = value.container, {}
        if container != value.width:
            words["dist"] = _PACKING[value.width, container]
        elif container > 32:
            words["dist"] = "NORM_B32"
            pred = self._both_halves(pred)
        mask = self.out.as_bits(pred, min(32, container))
        reg = self.out.as_element(reg, physical(value.element))
        self.out.micro("vsts", [reg.use, *place.operands(), mask.use], (), **words)

    def _both_halves(self, pred: Pred) -> Pred:
        """Return the mask of 32-bit lanes of containers of 64: both lanes of each."""
        (low, _), home = self.out.micro("pdintlv_b32", [pred.use, pred.use], [("m", MaskType(32)), ("m", MaskType(32))])
        kinds = [("m", MaskType(32)), ("m", MaskType(32))]
        uses = [(low, MaskType(32))] * 2
        (both, _), home = self.out.micro("pintlv_b32", uses, kinds)
        return Pred(both, 32, home)

    # ------------------------------------------------------------------------------------------------ any address

    def _unaligned_row(self, value: Vector, place: Address, mask: LogicalMask | None) -> None:
        if value.width == 64 and mask is not None:
            raise IllegalError("a masked store of 64 bits needs an aligned address", legal=("multiples of 32 bytes",))
        value = self.shapes.within(value, value.width)
        if mask is not None:
            self._scattered_row(value, place, mask)
            return
        pointer, kind = place.moved()
        (state,), _ = self.out.micro("init_align", (), [("a", _ALIGN)])
        left = value.lanes
        for reg in value.regs:
            count = self.out.constant(min(left, per_register(value.width)) * place.unit, I32)
            uses: list[Use] = [(state, _ALIGN), (count, I32), reg.use, (pointer, kind)]
            (state, pointer), _ = self.out.micro("vstus", uses, [("a", _ALIGN), ("p", kind)])
            left -= per_register(value.width)
        rest = [(state, _ALIGN), (pointer, kind), (self.out.constant(0, I32), I32)]
        self.out.micro("vstas", rest)

    def _scattered_row(self, value: Vector, place: Address, mask: LogicalMask) -> None:
        """Scatter lanes to where they would go."""
        self._check_unit(place)
        size = per_register(value.width)
        for number, pred in enumerate(mask.at(value.width)):
            index = self.shapes.lane_numbers(value.width, 0)
            self._scatter(value, number, place.further(number * size), index, pred)

    def _scatter(self, value: Vector, number: int, place: Address, index: Reg, pred: Pred) -> None:
        kind = f"u{value.width}"
        reg = self.out.as_element(value.regs[number], kind)
        mask = self.out.as_bits(pred, value.width)
        self.out.micro("vscatter", [reg.use, place.moved(), index.use, mask.use])

    def _check_unit(self, place: Address) -> None:
        if place.unit != 1 or place.width > 32:
            raise IllegalError("such a store has no instructions", legal=("a pointer to the elements of the register",))

    # -------------------------------------------------------------------------------------------------- rows apart

    def rows(
        self, value: Vector, place: Address, groups: int, stride: str, divisor: int, mask: LogicalMask | None
    ) -> None:  # fmt: skip
        """Store rows that stand `stride` of the pointer's elements apart; `divisor` divides that."""
        size, known = value.lanes // groups, place.scalars.known(stride)
        if known is not None and known == size * place.unit:
            self.row(value, place, mask)
            return
        if size == 1:
            self._slots(value, place, stride, divisor, mask)
            return
        container = stored_container(value.width, value.container)
        value = self.shapes.within(value, container)
        apart = known is not None and known >= size * place.unit
        for group in range(groups):
            self._row_of(value, place.row(group, stride, divisor), group * size, size, mask, apart=apart)

    def _row_of(
        self, value: Vector, place: Address, start: int, size: int, mask: LogicalMask | None, *, apart: bool
    ) -> None:  # fmt: skip
        """Store lanes `start` to `start` + `size` - 1, the first of them at an address.

        With rows `apart` a register that begins before the row can begin before it in memory, too.
        """
        lanes, lane = per_register(value.container), start
        while lane < start + size:
            number, first = divmod(lane, lanes)
            last = min(first + start + size - lane, lanes)
            here = place.further(lane - start)
            pred = self.masks.between(first, last, value.container)
            if mask is not None:
                pred = self.masks.logic("pand", mask.at(value.container)[number], pred, value.container)
            before = here.further(-first)
            if (first == 0 or apart) and before.is_aligned(BLOCK_BYTES):
                self._store(value, value.regs[number], before, pred)
            else:
                self._piece(value, number, here, first, pred)
            lane += last - first

    def _piece(self, value: Vector, number: int, place: Address, first: int, pred: Pred) -> None:
        """Scatter lanes from `first` on to an address."""
        self._check_unit(place)
        if value.container != value.width:
            raise IllegalError("rows of such lanes need aligned addresses", legal=("multiples of 32 bytes",))
        self._scatter(value, number, place, self.shapes.lane_numbers(value.width, -first), pred)

    def _slots(self, value: Vector, place: Address, stride: str, divisor: int, mask: LogicalMask | None) -> None:
        """Store one element a row: all by one scatter where lanes can count as far, else each by one."""
        self._check_unit(place)
        value, scalars = self.shapes.within(value, value.width), place.scalars
        preds, known = self.masks.within(mask, value.lanes, value.width), scalars.known(stride)
        counts = known is not None and 0 <= known * (value.lanes - 1) < 1 << value.width - 1
        if counts or value.width == 32:
            kind = ScalarType(f"i{value.width}")
            step = self.out.constant(known, kind) if known is not None else scalars.out.converted(
                "index_cast", stride, INDEX, kind
            )  # fmt: skip
            for number, pred in enumerate(preds):
                lanes = self.shapes.lane_numbers(value.width, number * per_register(value.width))
                index = self.out.register(
                    "vmuls", [lanes.use, (step, kind), self.masks.whole(value.width).use], lanes.element
                )  # fmt: skip
                self._scatter(value, number, place, index, pred)
            return
        size, none = per_register(value.width), self.shapes.same_number(value.width, 0)
        for slot in range(value.lanes):
            number, lane = divmod(slot, size)
            only = self.masks.between(lane, lane + 1, value.width)
            pred = self.masks.logic("pand", preds[number], only, value.width)
            self._scatter(value, number, place.row(slot, stride, divisor), none, pred)

    # ------------------------------------------------------------------------------------------------------ blocks

    def blocks(self, value: Vector, place: Address, stride: Use) -> None:
        """Store blocks of 32 bytes that stand so many blocks apart."""
        value = self.shapes.within(value, value.width)
        name, _ = stride
        known = place.scalars.known(name)
        step = name if known is None else self.out.constant(known, I16)
        for number, pred in enumerate(self.masks.range(value.lanes, value.width)):
            if known is not None:
                first = self.out.constant(8 * number * known, I16)
            else:
                first = self.out.arith("muli", (name, self.out.constant(8 * number, I16)), I16)
            mask = self.out.as_bits(pred, min(32, value.width))
            reg = self.out.as_element(value.regs[number], physical(value.element))
            self.out.micro("vsstb", [reg.use, place.moved(), (step, I16), (first, I16), mask.use])
