"""Logical registers: loads (rows, unaligned ones, blocks, single elements, gathers) and operations lane by lane."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import gcd

from castsim.isa.errors import IllegalError
from castsim.isa.formats import FORMATS, FloatFormat, IntFormat
from castsim.isa.pto import program as pto
from castsim.isa.pto.micro_words import CONVERSIONS, plain_word
from castsim.isa.pto.types import lane_bits
from castsim.isa.pto.value_types import (
    AlignType,
    LogicalVectorType,
    MicroOperation,
    PointerType,
    ScalarType,
    Type,
    VmiOperation,
)
from castsim.isa.pto.vmi_operations import (
    ConversionRoute,
    How,
    RouteStep,
    conversion_formats,
    conversion_words,
    route_of,
)
from castsim.machines.vector_function.logical_emitter import (
    I16,
    INDEX,
    FunctionEmitter,
    LogicalMask,
    LogicalRegister,
    Masks,
    Reg,
    RegisterShapes,
    Use,
    per_register,
    physical,
    register_count,
    vector,
)
from castsim.targets.dataflow import BLOCK_BYTES

# What is known of addresses before a program runs: constants, and numbers by which others can be divided.
#
# Loads and stores of whole registers need aligned addresses; where alignment is not known, slower ones are chosen.

_MOST_ROUNDS = 8


@dataclass(slots=True)
class Divisors:
    """Facts by name while a function is walked, and by access when it has been: an address's divisor in bytes."""

    divisors: dict[str, int] = field(default_factory=dict)
    """0: the value is 0, which every number divides."""
    constants: dict[str, int] = field(default_factory=dict)
    accesses: dict[int, int] = field(default_factory=dict)
    strides: dict[int, int] = field(default_factory=dict)

    def see(self, body: Sequence[pto.Operation]) -> list[str]:
        """Process a region; return its yielded values."""
        for node in body:
            if isinstance(node, pto.Yield):
                return list(node.values)
            self._see(node)
        return []

    def of(self, name: str) -> int:
        """Return a number by which a value can be divided; addresses count bytes."""
        return self.divisors.get(name, 1)

    def _see(self, node: pto.Operation) -> None:
        match node:
            case pto.Constant() if isinstance(node.value, int):
                self.constants[node.result], self.divisors[node.result] = int(node.value), abs(int(node.value))
            case pto.Arith():
                self._arith(node)
            case pto.Convert():
                self._set(node.result, self.of(node.operand) if "index_cast" in node.operation else 1)
            case pto.AddPointer():
                self._set(node.result, gcd(self.of(node.pointer), self.of(node.offset) * _size(node.type)))
            case MicroOperation():
                for name in node.results:
                    self._set(name, self.of(node.operands[0]) if node.mnemonic == "castptr" else 1)
            case VmiOperation():
                self._access(node)
            case pto.For() | pto.If() | pto.Section():
                self._regions(node)

    def _regions(self, node: pto.For | pto.If | pto.Section) -> None:
        if isinstance(node, pto.For):
            self._loop(node)
        elif isinstance(node, pto.If):
            yielded = [self.see(region) for region in (node.then_body, node.else_body)]
            for number, name in enumerate(node.results):
                self._set(name, gcd(*(self.of(each[number]) for each in yielded if number < len(each)), 0))
        else:
            for name, outer in zip(node.carried, node.initial, strict=True):
                self._set(name, self.of(outer))
                if outer in self.constants:
                    self.constants[name] = self.constants[outer]
            self.see(node.body)

    def _set(self, name: str, divisor: int) -> None:
        self.divisors[name] = divisor
        self.constants.pop(name, None)

    def _arith(self, node: pto.Arith) -> None:
        if not node.operands:  # a number of the core
            self._set(node.result, 1)
            return
        near, far = self.of(node.operands[0]), self.of(node.operands[-1])
        if node.operation == "muli":
            self._set(node.result, near * far)
        elif node.operation in ("addi", "subi", "select", "minsi", "minui", "maxsi", "maxui"):
            given = node.operands[1:] if node.operation == "select" else node.operands
            self._set(node.result, gcd(*(self.of(name) for name in given)))
        elif node.operation == "shli" and node.operands[1] in self.constants:
            self._set(node.result, near << self.constants[node.operands[1]])
        else:
            self._set(node.result, 1)

    def _loop(self, node: pto.For) -> None:
        self._set(node.variable, gcd(self.of(node.lower), self.of(node.step)))
        found = [self.of(name) for name in node.initial]
        for _ in range(_MOST_ROUNDS):
            for name, divisor in zip(node.carried, found, strict=True):
                self._set(name, divisor)
            further = [gcd(one, self.of(name)) for one, name in zip(found, self.see(node.body), strict=True)]
            if further == found:
                break
            found = further
        else:
            found = [1] * len(found)
            for name in node.carried:
                self._set(name, 1)
            self.see(node.body)
        for name, divisor in zip(node.results, found, strict=True):
            self._set(name, divisor)

    def _access(self, node: VmiOperation) -> None:
        """Record the divisors of an access: of its address in bytes, of its stride in elements."""
        place = next((n for n, kind in enumerate(node.operand_types) if isinstance(kind, PointerType)), None)
        if place is None:
            return
        pointer = node.operand_types[place]
        assert isinstance(pointer, PointerType)
        scalars = [
            name for name, kind in zip(node.operands, node.operand_types, strict=True) if isinstance(kind, ScalarType)
        ]
        offset = self.of(scalars[0]) if scalars else 0
        self.accesses[id(node)] = gcd(self.of(node.operands[place]), offset * _size(pointer))
        self.strides[id(node)] = self.of(scalars[1]) if len(scalars) > 1 else 0


def _size(kind: PointerType) -> int:
    return lane_bits(kind.element) // 8


# Where an access goes: a pointer, an offset, rows or blocks apart, and what is known of their alignment.


@dataclass(frozen=True, slots=True)
class AddressArithmetic:
    """Scalar arithmetic of addresses: constants where the text gives them."""

    out: FunctionEmitter
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
        """Return an index multiplied by a number."""
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

    scalars: AddressArithmetic
    pointer: str
    kind: PointerType
    offset: str
    width: int
    divisor: int

    @property
    def unit(self) -> int:
        """The number of the pointer's elements per element here."""
        return self.width // lane_bits(self.kind.element)

    def further(self, elements: int) -> Address:
        """Return the address a number of elements later."""
        offset = self.scalars.plus(self.offset, elements * self.unit)
        return self._at(offset, gcd(self.divisor, abs(elements) * self.width // 8))

    def row(self, number: int, stride: str, divisor: int) -> Address:
        """Return the address of a row: rows are `stride` of the pointer's elements apart, which `divisor` divides."""
        offset = self.scalars.sum(self.offset, self.scalars.times(stride, number))
        return self._at(offset, gcd(self.divisor, number * divisor * lane_bits(self.kind.element) // 8))

    def _at(self, offset: str, divisor: int) -> Address:
        return Address(self.scalars, self.pointer, self.kind, offset, self.width, divisor)

    def is_aligned(self, number: int) -> bool:
        """Whether the address is known to be a multiple of a number of bytes."""
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

    out: FunctionEmitter
    masks: Masks
    shapes: RegisterShapes

    def row(self, kind: LogicalVectorType, place: Address, container: int) -> LogicalRegister:
        """Load contiguous elements."""
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
    ) -> LogicalRegister:  # fmt: skip
        """Load rows that are `stride` of the pointer's elements apart; `divisor` divides the stride."""
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

    def _joined(
        self, kind: LogicalVectorType, parts: list[LogicalRegister], size: int, container: int
    ) -> LogicalRegister:
        """Concatenate logical registers of `size` lanes."""
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

    def _gathered_slots(self, kind: LogicalVectorType, place: Address, stride: str, container: int) -> LogicalRegister:
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
    ) -> LogicalRegister:  # fmt: skip
        """Gather elements that lanes of `bits` name, counted in elements of the pointer."""
        regs = tuple(
            self.out.as_element(
                self.out.register("vgather2", [pointer, index.use, pred], f"u{bits}"), physical(kind.element)
            )
            for index, pred in zip(indices, preds, strict=True)
        )
        return self.shapes.within(self.shapes.made(kind.lanes, kind.element, bits, regs), container)

    # ----------------------------------------------------------------------------------------- blocks, one element

    def blocks(self, kind: LogicalVectorType, place: Address, stride: Use, container: int) -> LogicalRegister:
        """Load blocks of 32 bytes at a distance in blocks."""
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

    def one(self, kind: LogicalVectorType, place: Address, container: int) -> LogicalRegister:
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
    ) -> LogicalRegister:  # fmt: skip
        """Load one element a group into all its lanes."""
        places = [place.row(number, stride, divisor) for number in range(groups)]
        return self._spread_slots(kind, places, kind.lanes // groups, container)

    def _spread_slots(
        self, kind: LogicalVectorType, places: list[Address], size: int, container: int
    ) -> LogicalRegister:
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


# Operations lane by lane: arithmetic, comparison, selection, scalars in all lanes, conversions.

_WIDEST = 64


@dataclass(slots=True)
class Lanewise:
    """Makes the instructions of operations that keep lanes apart."""

    out: FunctionEmitter
    masks: Masks
    shapes: RegisterShapes

    def operation(
        self, node: VmiOperation, sources: list[LogicalRegister], scalar: Use | None,
        mask: LogicalMask | None, container: int
    ) -> LogicalRegister:  # fmt: skip
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

    def _governing(self, value: LogicalRegister, mask: LogicalMask | None, container: int) -> list[Use]:
        """Return the mask of every register of an operation: all lanes where the text has none."""
        bits = min(32, value.width)
        if mask is None:
            return [self.masks.whole(bits).use] * register_count(value.lanes, container)
        return [self.out.as_bits(pred, bits).use for pred in mask.at(container)]

    def comparison(
        self, node: VmiOperation, sources: list[LogicalRegister], scalar: Use | None,
        mask: LogicalMask | None, container: int
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

    def selection(
        self, node: VmiOperation, sources: list[LogicalRegister], mask: LogicalMask, container: int
    ) -> LogicalRegister:
        """Make `vsel`."""
        _check_width(node, sources[0])
        one, other = (self.shapes.within(source, container) for source in sources)
        pairs = zip(one.regs, other.regs, mask.at(container), strict=True)
        regs = tuple(self.shapes.chosen(a, b, pred, one.width) for a, b, pred in pairs)
        return self.shapes.made(one.lanes, one.element, container, regs)

    def zeroed(self, value: LogicalRegister, mask: LogicalMask) -> LogicalRegister:
        """Return a register with 0 where the mask has no bit."""
        kind, regs = f"u{value.width}", []
        for reg, pred in zip(value.regs, mask.at(value.container), strict=True):
            use = self.out.as_element(reg, kind).use
            kept = self.out.register("vand", [use, use, self.out.as_bits(pred, value.width).use], kind)
            regs.append(self.out.as_element(kept, reg.element))
        return self.shapes.made(value.lanes, value.element, value.container, tuple(regs))

    # ------------------------------------------------------------------------------------------------------ scalars

    def broadcast(self, kind: LogicalVectorType, scalar: Use, container: int) -> LogicalRegister:
        """Make `vbrc` of a scalar: one register serves all lanes."""
        if lane_bits(kind.element) == _WIDEST:
            raise IllegalError("no instruction copies 64 bits to all lanes", legal=("i32",))
        reg = self.out.register("vbr", [scalar], physical(kind.element))
        return self.shapes.made(kind.lanes, kind.element, container, (reg,) * register_count(kind.lanes, container))

    def numbered(self, kind: LogicalVectorType, scalar: Use, order: str, container: int) -> LogicalRegister:
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

    def conversion(
        self, node: VmiOperation, source: LogicalRegister, mask: LogicalMask | None, container: int
    ) -> LogicalRegister:
        """Make a conversion of one or several steps."""
        found, words = route_of(node), conversion_words(node)
        own, _ = conversion_formats(node)
        element = node.result_types[0]
        assert isinstance(element, LogicalVectorType)
        value = LogicalRegister(source.lanes, own, source.container, source.regs, source.home)
        if value.container < lane_bits(own):
            value = self.shapes.within(value, lane_bits(own))
        if mask is not None and found.steps[0].how is not How.CONVERT:
            value, mask = self.zeroed(value, mask), None
        for step in found.steps:
            value = self._step(step, found, words, value, mask)
            mask = None
        value = LogicalRegister(value.lanes, element.element, value.container, value.regs, self.out.place())
        kept = tuple(self.out.as_element(reg, physical(element.element)) for reg in value.regs)
        value = LogicalRegister(value.lanes, element.element, value.container, kept, value.home)
        return self.shapes.within(value, container)

    def _step(
        self, step: RouteStep, found: ConversionRoute, words: dict[str, str], value: LogicalRegister,
        mask: LogicalMask | None
    ) -> LogicalRegister:  # fmt: skip
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
        self, step: RouteStep, found: ConversionRoute, words: dict[str, str], value: LogicalRegister,
        regs: list[Reg], mask: LogicalMask | None
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

    def reinterpretation(self, source: LogicalRegister, kind: LogicalVectorType, container: int) -> LogicalRegister:
        """Return the same bits as other elements; those of another width are contiguous."""
        width = lane_bits(kind.element)
        if source.width != width:
            source = self.shapes.within(source, source.width)
        regs = tuple(self.out.as_element(reg, physical(kind.element)) for reg in source.regs)
        held = source.container if source.width == width else width
        return self.shapes.within(self.shapes.made(kind.lanes, kind.element, held, regs), container)


def _range(fmt: IntFormat) -> tuple[int, int]:
    return (-(1 << fmt.bits - 1), (1 << fmt.bits - 1) - 1) if fmt.signed else (0, (1 << fmt.bits) - 1)


def _check_width(node: VmiOperation, value: LogicalRegister) -> None:
    if value.width == _WIDEST:
        raise IllegalError(f"pto.vmi.{node.mnemonic} cannot use 64-bit elements", span=node.span, legal=("32 bits",))
