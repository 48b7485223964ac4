"""Operations lane by lane: arithmetic, comparison, selection, scalars in all lanes, conversions."""

from __future__ import annotations

from dataclasses import dataclass

from castsim.isa.errors import IllegalError
from castsim.isa.formats import FORMATS, FloatFormat, IntFormat
from castsim.isa.pto.micro_words import CONVERSIONS, plain_word
from castsim.isa.pto.tile_types import lane_bits
from castsim.isa.pto.value_types import LogicalVectorType, ScalarType, VmiOperation
from castsim.isa.pto.vmi_operations import How, Route, Step, conversion_formats, conversion_words, route_of
from castsim.machines.vector_function.logical.emitter import (
    Emitter,
    LogicalMask,
    Masks,
    Reg,
    Shapes,
    Use,
    Vector,
    per_register,
    physical,
    register_count,
)

_WIDEST = 64


@dataclass(slots=True)
class Lanewise:
    """Makes the instructions of operations that keep lanes apart."""

    out: Emitter
    masks: Masks
    shapes: Shapes

    def operation(
        self, node: VmiOperation, sources: list[Vector], scalar: Use | None, mask: LogicalMask | None, container: int
    ) -> Vector:  # fmt: skip
        """Make arithmetic of registers, and of registers with a scalar."""
        first = sources[0]
        _check_width(node, first)
        given, letter = [self.shapes.within(source, container) for source in sources], node.word("rounding")
        kinds = [physical(source.element) for source in given]
        regs = []
        for number, mask_use in enumerate(self._governing(first, mask, container)):
            operands = [
                self.out.as_element(each.regs[number], kind).use for each, kind in zip(given, kinds, strict=True)
            ]
            operands += [] if scalar is None else [scalar]
            words = {} if letter is None else {"rnd": letter}
            regs.append(self.out.register(node.mnemonic, [*operands, mask_use], kinds[0], **words))
        return self.shapes.made(first.lanes, first.element, container, tuple(regs))

    def _governing(self, value: Vector, mask: LogicalMask | None, container: int) -> list[Use]:
        """Return the mask of every register of an operation: all lanes where the text has none."""
        bits = min(32, value.width)
        if mask is None:
            return [self.masks.whole(bits).use] * register_count(value.lanes, container)
        return [self.out.as_bits(pred, bits).use for pred in mask.at(container)]

    def comparison(
        self, node: VmiOperation, sources: list[Vector], scalar: Use | None, mask: LogicalMask | None, container: int
    ) -> LogicalMask:  # fmt: skip
        """Make `vcmp` or `vcmps`: no bit beyond the lanes."""
        first, word = sources[0], node.word("cmp_mode")
        assert word is not None
        given = [self.shapes.within(source, container) for source in sources]
        bits, found = min(32, first.width), []
        for number, pred in enumerate(self.masks.within(mask, first.lanes, container)):
            operands = [self.out.as_element(each.regs[number], each.element).use for each in given]
            operands += [] if scalar is None else [scalar]
            operands.append(self.out.as_bits(pred, bits).use)
            found.append(self.out.predicate(node.mnemonic, operands, bits, cmp=word))
        return self.masks.given(first.lanes, container, tuple(found))

    def selection(self, node: VmiOperation, sources: list[Vector], mask: LogicalMask, container: int) -> Vector:
        """Make `vsel`."""
        _check_width(node, sources[0])
        one, other = (self.shapes.within(source, container) for source in sources)
        pairs = zip(one.regs, other.regs, mask.at(container), strict=True)
        regs = tuple(self.shapes.chosen(a, b, pred, one.width) for a, b, pred in pairs)
        return self.shapes.made(one.lanes, one.element, container, regs)

    def zeroed(self, value: Vector, mask: LogicalMask) -> Vector:
        """Return a register with 0 where the mask has no bit."""
        kind, regs = f"u{value.width}", []
        for reg, pred in zip(value.regs, mask.at(value.container), strict=True):
            use = self.out.as_element(reg, kind).use
            kept = self.out.register("vand", [use, use, self.out.as_bits(pred, value.width).use], kind)
            regs.append(self.out.as_element(kept, reg.element))
        return self.shapes.made(value.lanes, value.element, value.container, tuple(regs))

    # ------------------------------------------------------------------------------------------------------ scalars

    def broadcast(self, kind: LogicalVectorType, scalar: Use, container: int) -> Vector:
        """Make `vbrc` of a scalar: one register serves all lanes."""
        if lane_bits(kind.element) == _WIDEST:
            raise IllegalError("64 bits in all lanes have no instruction", legal=("i32",))
        reg = self.out.register("vbr", [scalar], physical(kind.element))
        return self.shapes.made(kind.lanes, kind.element, container, (reg,) * register_count(kind.lanes, container))

    def numbered(self, kind: LogicalVectorType, scalar: Use, order: str, container: int) -> Vector:
        """Make `vci`: integers in lanes as wide as their containers, floats in lanes of their own width."""
        fmt, bits = FORMATS[kind.element], lane_bits(kind.element)
        own = bits if isinstance(fmt, FloatFormat) else min(32, container)
        size, regs = per_register(own), []
        for number in range(register_count(kind.lanes, own)):
            first, lane = self._first(scalar, number * size, order, own if isinstance(fmt, IntFormat) else None)
            made = self.out.register("vci", [(first, lane)], lane.name, order=order)
            regs.append(self.out.as_element(made, physical(kind.element)))
        return self.shapes.within(self.shapes.made(kind.lanes, kind.element, own, tuple(regs)), container)

    def _first(self, scalar: Use, lanes: int, order: str, bits: int | None) -> tuple[str, ScalarType]:
        """Return the number of a register's first lane, as an integer of `bits` or as the float it is."""
        name, kind = scalar
        assert isinstance(kind, ScalarType)
        wide = kind if bits is None else ScalarType(f"i{bits}")
        if bits is not None and int(kind.name[1:]) != bits:
            name = self.out.converted("extsi", name, ScalarType(f"i{kind.name[1:]}"), wide)
        if lanes == 0:
            return name, wide
        step = self.out.constant(float(lanes) if bits is None else lanes, wide)
        verb = ("add" if order == "ASC" else "sub") + ("f" if bits is None else "i")
        return self.out.arith(verb, (name, step), wide), wide

    # -------------------------------------------------------------------------------------------------- conversions

    def conversion(self, node: VmiOperation, source: Vector, mask: LogicalMask | None, container: int) -> Vector:
        """Make a conversion of one or several steps."""
        found, words = route_of(node), conversion_words(node)
        own, _ = conversion_formats(node)
        element = node.result_types[0]
        assert isinstance(element, LogicalVectorType)
        value = Vector(source.lanes, own, source.container, source.regs, source.home)
        if value.container < lane_bits(own):
            value = self.shapes.within(value, lane_bits(own))
        if mask is not None and found.steps[0].how is not How.CONVERT:
            value, mask = self.zeroed(value, mask), None
        for step in found.steps:
            value = self._step(step, found, words, value, mask)
            mask = None
        value = Vector(value.lanes, element.element, value.container, value.regs, self.out.place())
        kept = tuple(self.out.as_element(reg, physical(element.element)) for reg in value.regs)
        value = Vector(value.lanes, element.element, value.container, kept, value.home)
        return self.shapes.within(value, container)

    def _step(
        self, step: Step, found: Route, words: dict[str, str], value: Vector, mask: LogicalMask | None
    ) -> Vector:  # fmt: skip
        widths = lane_bits(step.src), lane_bits(step.dst)
        pairs = step.dst in ("e2m1", "e1m2") or step.src in ("e2m1", "e1m2")
        container = max(*widths, value.container, 32 if pairs else 0)
        value = self.shapes.within(value, container)
        regs = self.shapes.typed(value, step.src)
        if step.how is How.CLAMP and words.get("saturate") == "SAT":
            regs = [self._clamped(reg, step.src, step.dst) for reg in regs]
        if step.how is not How.CONVERT:
            regs = [self.out.as_element(reg, step.dst) for reg in regs]
        else:
            regs = self._converted(step, found, words, value, regs, mask)
        return self.shapes.made(value.lanes, step.dst, container, tuple(regs))

    def _converted(
        self, step: Step, found: Route, words: dict[str, str], value: Vector, regs: list[Reg], mask: LogicalMask | None
    ) -> list[Reg]:  # fmt: skip
        pair, given = CONVERSIONS[step.src, step.dst], {}
        if pair.roundings:
            letter = plain_word(words.get("rounding", found.default()))
            given["rnd"] = found.rounding_of(step, letter)
        if pair.saturations:
            given["sat"] = plain_word(words["saturate"])
        if pair.parts:
            given["part"] = pair.parts[0]
        bits, preds = pair.mask_width, [self.masks.whole(pair.mask_width)] * len(regs)
        if mask is not None:
            preds = [self.out.as_bits(pred, bits) for pred in mask.at(value.container)]
        return [
            self.out.register("vcvt", [reg.use, pred.use], step.dst, **given)
            for reg, pred in zip(regs, preds, strict=True)
        ]

    def _clamped(self, reg: Reg, src: str, dst: str) -> Reg:
        """Bring integers into the range of others."""
        near, far = FORMATS[src], FORMATS[dst]
        assert isinstance(near, IntFormat) and isinstance(far, IntFormat)
        (low, high), (least, most) = _range(near), _range(far)
        kind = ScalarType(f"i{near.bits}")
        mask = self.masks.whole(near.bits).use
        if high > most:
            reg = self.out.register("vmins", [reg.use, (self.out.constant(most, kind), kind), mask], src)
        if low < least:
            reg = self.out.register("vmaxs", [reg.use, (self.out.constant(least, kind), kind), mask], src)
        return reg

    def reinterpretation(self, source: Vector, kind: LogicalVectorType, container: int) -> Vector:
        """Return the same bits as other elements; of another width they stand without gaps."""
        width = lane_bits(kind.element)
        if source.width != width:
            source = self.shapes.within(source, source.width)
        regs = tuple(self.out.as_element(reg, physical(kind.element)) for reg in source.regs)
        held = source.container if source.width == width else width
        return self.shapes.within(self.shapes.made(kind.lanes, kind.element, held, regs), container)


def _range(fmt: IntFormat) -> tuple[int, int]:
    return (-(1 << fmt.bits - 1), (1 << fmt.bits - 1) - 1) if fmt.signed else (0, (1 << fmt.bits) - 1)


def _check_width(node: VmiOperation, value: Vector) -> None:
    if value.width == _WIDEST:
        raise IllegalError(f"pto.vmi.{node.mnemonic} of 64 bits has no instruction", span=node.span, legal=("32 bits",))
