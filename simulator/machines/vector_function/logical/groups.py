"""Reductions of groups of lanes to one slot each, and slots in all lanes of their groups."""

from __future__ import annotations

from dataclasses import dataclass

from castsim.isa.formats import FORMATS, FloatFormat, IntFormat
from castsim.isa.pto.value_types import BLOCK_BITS, REGISTER_BITS, LogicalVectorType, ScalarType
from castsim.machines.vector_function.logical.emitter import Emitter, Pred, Reg
from castsim.machines.vector_function.logical.masks import Masks
from castsim.machines.vector_function.logical.shapes import Shapes
from castsim.machines.vector_function.logical.values import LogicalMask, Vector, per_register, physical, register_count

_BLOCKS = REGISTER_BITS // BLOCK_BITS
_COMBINE = {"vcadd": "vadd", "vcmax": "vmax", "vcmin": "vmin"}
_OF_BLOCKS = {"vcadd": "vcgadd", "vcmax": "vcgmax", "vcmin": "vcgmin"}


@dataclass(slots=True)
class Groups:
    """Makes the instructions of operations on groups."""

    out: Emitter
    masks: Masks
    shapes: Shapes

    # -------------------------------------------------------------------------------------------------- reductions

    def reduction(self, name: str, source: Vector, mask: LogicalMask | None, groups: int, container: int) -> Vector:
        """Make `vcadd`, `vcmax` or `vcmin` of groups."""
        source, size = self.shapes.within(source, min(32, source.container)), source.lanes // groups
        span = size * source.container
        preds = self.masks.within(mask, source.lanes, source.container)
        given = None if mask is None else preds
        if span % REGISTER_BITS == 0:
            regs, held = self._of_registers(name, source, given, groups), source.container
        elif span in (BLOCK_BITS, 2 * BLOCK_BITS, 4 * BLOCK_BITS):
            regs, held = self._of_blocks(name, source, preds, groups, span // BLOCK_BITS), source.width
        elif size & (size - 1) == 0:
            regs, held = self._of_neighbours(name, source, given, size), source.container
        else:
            regs, held = self._one_by_one(name, source, preds, groups), source.container
        made = self.shapes.made(groups, source.element, held, tuple(regs))
        return self.shapes.within(made, container)

    def _combined(self, name: str, one: Reg, other: Reg, bits: int) -> Reg:
        return self.out.register(_COMBINE[name], [one.use, other.use, self.masks.whole(bits).use], one.element)

    def _reduced(self, instruction: str, reg: Reg, pred: Pred, bits: int) -> Reg:
        return self.out.register(instruction, [reg.use, self.out.as_bits(pred, bits).use], reg.element)

    def _neutral(self, name: str, source: Vector, preds: tuple[Pred, ...] | None) -> list[Reg]:
        """Return registers whose inactive lanes change nothing; None: all are active."""
        if preds is None:
            return list(source.regs)
        scalar = _neutral(name, source.element)
        kind = ScalarType(f"i{source.width}" if isinstance(FORMATS[source.element], IntFormat) else source.element)
        none = self.out.register("vbr", [(self.out.constant(scalar, kind), kind)], source.element)
        return [self.shapes.chosen(reg, none, pred, source.width) for reg, pred in zip(source.regs, preds, strict=True)]

    def _of_registers(self, name: str, source: Vector, preds: tuple[Pred, ...] | None, groups: int) -> list[Reg]:
        """Reduce groups that are whole registers: these combined, the rest by one instruction each."""
        each = len(source.regs) // groups
        regs = list(source.regs) if each == 1 else self._neutral(name, source, preds)
        slots = []
        for group in range(groups):
            first, *rest = regs[group * each : (group + 1) * each]
            for other in rest:
                first = self._combined(name, first, other, source.width)
            pred = preds[group] if preds is not None and each == 1 else self.masks.every(source.container)
            slots.append(self._reduced(name, first, pred, source.width))
        return self._placed(slots, 1, groups, source.container)

    def _of_blocks(
        self, name: str, source: Vector, preds: tuple[Pred, ...], groups: int, blocks: int
    ) -> list[Reg]:  # fmt: skip
        """Reduce groups of one, two or four blocks of 32 bytes; a result has as many lanes as a register has groups."""
        found = []
        for reg, pred in zip(source.regs, preds, strict=True):
            part, left = self._reduced(_OF_BLOCKS[name], reg, pred, source.width), blocks
            while left > 1:
                pieces = self.shapes.parted(part, part, source.width)
                low, high = (self.out.as_element(piece, source.element) for piece in pieces)
                part, left = self._combined(name, low, high, source.width), left // 2
            found.append(part)
        return self._placed(found, _BLOCKS // blocks, groups, source.width)

    def _placed(self, parts: list[Reg], each: int, lanes: int, container: int) -> list[Reg]:
        """Put the first `each` containers of every register behind each other."""
        size, found = per_register(container), list[Reg]()
        for number in range(register_count(lanes, container)):
            whole: Reg | None = None
            for place in range(0, size, each):
                part = (number * size + place) // each
                if part >= len(parts):
                    break
                moved = self._moved(parts[part], each, place, container)
                mask = self.masks.between(place, place + each, container)
                whole = self.shapes.chosen(moved, whole, mask, container)
            assert whole is not None
            found.append(whole)
        return found

    def _moved(self, part: Reg, each: int, place: int, container: int) -> Reg:
        """Return a register whose first containers stand from `place` on."""
        if each > 1 or place == 0:
            return self.shapes.shifted(part, -place, container)
        kind = f"u{container}"
        mask = self.masks.whole(container).use
        return self.out.as_element(
            self.out.register("vdup", [self.out.as_element(part, kind).use, mask], kind), part.element
        )

    def _of_neighbours(self, name: str, source: Vector, preds: tuple[Pred, ...] | None, size: int) -> list[Reg]:
        """Reduce neighbours pair by pair: the even lanes of two registers with the odd ones."""
        regs = self._neutral(name, source, preds)
        while size > 1:
            pairs = zip(regs[::2], (*regs[1::2], regs[-1]), strict=False)
            halves = [self.shapes.parted(one, other, source.container) for one, other in pairs]
            regs = []
            for both in halves:
                one, other = (self.out.as_element(half, source.element) for half in both)
                regs.append(self._combined(name, one, other, source.width))
            size //= 2
        return regs

    def _one_by_one(self, name: str, source: Vector, preds: tuple[Pred, ...], groups: int) -> list[Reg]:
        """Reduce every group by instructions of its own: groups that registers do not hold evenly."""
        lanes, size = per_register(source.container), source.lanes // groups
        slots = []
        for group in range(groups):
            first, last, whole = group * size, (group + 1) * size, None
            for number in range(first // lanes, -(-last // lanes)):
                start = number * lanes
                inside = self.masks.between(max(first - start, 0), min(last - start, lanes), source.container)
                pred = self.masks.logic("pand", preds[number], inside, source.container)
                part = self._reduced(name, source.regs[number], pred, source.width)
                whole = part if whole is None else self._combined(name, whole, part, source.width)
            assert whole is not None
            slots.append(whole)
        return self._placed(slots, 1, groups, source.container)

    # -------------------------------------------------------------------------------------------------- broadcasts

    def broadcast(self, source: Vector, kind: LogicalVectorType, container: int) -> Vector:
        """Make `vbrc` of slots: lane i is slot i div the lanes of a group."""
        held = min(32, container)
        source = self.shapes.within(source, held)
        lanes, size = per_register(held), kind.lanes // source.lanes
        regs = []
        for number in range(register_count(kind.lanes, held)):
            start = number * lanes
            first, last = start // size, min((start + lanes - 1) // size, source.lanes - 1)
            whole: Reg | None = None
            for place in range(first // lanes, last // lanes + 1):
                index = self._index(held, start, size, first - place * lanes)
                part = self.shapes.picked(source.regs[place], index, held)
                below = self.masks.first(place * lanes * size - start, held) if whole is not None else None
                whole = part if whole is None or below is None else self.shapes.chosen(whole, part, below, held)
            assert whole is not None
            regs.append(self.out.as_element(whole, physical(kind.element)))
        return self.shapes.within(self.shapes.made(kind.lanes, kind.element, held, tuple(regs)), container)

    def _index(self, bits: int, start: int, size: int, first: int) -> Reg:
        """Return the register of the slots of lanes, the slot of lane 0 being number `first`."""
        if size >= per_register(bits) and start % size + per_register(bits) <= size:
            return self.shapes.same_number(bits, first)
        numbers = self.shapes.group_numbers(bits, start, size)
        if first == 0:
            return numbers
        return self.shapes.added(numbers, first, bits)


def _neutral(name: str, element: str) -> int:
    """Return what changes no sum, maximum or minimum: a number of integers, a bit pattern of floats."""
    fmt = FORMATS[element]
    if isinstance(fmt, IntFormat):
        most = fmt.maximum if fmt.signed else -1
        return {"vcadd": 0, "vcmax": fmt.minimum, "vcmin": most}[name]
    assert isinstance(fmt, FloatFormat)
    infinity, sign = fmt.exponent_mask << fmt.fraction_bits, 1 << fmt.bits - 1
    return {"vcadd": sign, "vcmax": infinity | sign, "vcmin": infinity}[name]
