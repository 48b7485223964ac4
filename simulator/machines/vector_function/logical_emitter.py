"""Builder of instructions: fresh names, constants, and insertion points after definitions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from castsim.isa.errors import NOWHERE, Span
from castsim.isa.pto import program as pto
from castsim.isa.pto.types import lane_bits
from castsim.isa.pto.value_types import REGISTER_BITS, MaskType, MicroOperation, ScalarType, Type, VectorType

Use = tuple[str, Type]
"""A value and its type."""
INDEX, I16, I32 = ScalarType("index"), ScalarType("i16"), ScalarType("i32")


@dataclass(eq=False, slots=True)
class OperationRun:
    """A run of operations, and of places for operations that come later."""

    items: list[pto.Operation | OperationRun] = field(default_factory=list)

    def flat(self) -> tuple[pto.Operation, ...]:
        """Return the operations in their order."""
        return tuple(self._operations())

    def _operations(self) -> Iterator[pto.Operation]:
        for item in self.items:
            if isinstance(item, OperationRun):
                yield from item._operations()
            else:
                yield item


@dataclass(frozen=True, slots=True)
class Reg:
    """A register: its name, the element of its type, and the insertion point after its definition."""

    name: str
    element: str
    home: OperationRun = field(compare=False, repr=False)

    @property
    def use(self) -> Use:
        """The register with its type."""
        return self.name, vector(self.element)


@dataclass(frozen=True, slots=True)
class Pred:
    """A predicate: its name, the lane width of its type, and the insertion point after its definition."""

    name: str
    bits: int
    home: OperationRun = field(compare=False, repr=False)

    @property
    def use(self) -> Use:
        """The predicate with its type."""
        return self.name, MaskType(self.bits)


def vector(element: str) -> VectorType:
    """Return the type of a register of an element."""
    return VectorType(REGISTER_BITS // lane_bits(element), element)


@dataclass(slots=True)
class FunctionEmitter:
    """Makes the operations of one function."""

    taken: set[str]
    head: OperationRun = field(default_factory=OperationRun)
    """The insertion point of constants, before everything else."""
    scope: OperationRun = field(default_factory=OperationRun)
    """At the beginning of the vecscope."""
    current: OperationRun = field(default_factory=OperationRun)
    span: Span = NOWHERE
    _numbers: dict[str, int] = field(default_factory=dict)
    _constants: dict[tuple[int | float, str], str] = field(default_factory=dict)
    _casts: dict[tuple[str, str | int], Reg | Pred] = field(default_factory=dict)
    _origins: dict[str, Reg] = field(default_factory=dict)
    """The registers that other registers reinterpret."""

    def fresh(self, stem: str) -> str:
        """Return a name that nothing has yet."""
        while True:
            number = self._numbers.get(stem, 0)
            self._numbers[stem] = number + 1
            name = f"{stem}.{number}"
            if name not in self.taken:
                self.taken.add(name)
                return name

    def add(self, node: pto.Operation) -> OperationRun:
        """Add an operation at the current insertion point; return the point after it."""
        home = OperationRun()
        self.current.items += [node, home]
        return home

    def place(self) -> OperationRun:
        """Return an insertion point here for later use."""
        found = OperationRun()
        self.current.items.append(found)
        return found

    @contextmanager
    def at(self, place: OperationRun) -> Iterator[None]:
        """Insert new operations at a given point meanwhile."""
        before, self.current = self.current, place
        try:
            yield
        finally:
            self.current = before

    def constant(self, value: float, kind: ScalarType) -> str:
        """Return the name of a constant; an integer of a float type is a bit pattern."""
        key = value, kind.name
        if key not in self._constants:
            name = self.fresh("k")
            self._constants[key] = name
            self.head.items.append(pto.Constant(name, value, kind, span=self.span))
        return self._constants[key]

    def inner_constants(self) -> tuple[OperationRun, dict[tuple[int | float, str], str]]:
        """Begin a region that sees no constants from outside; return those that there are."""
        outer = self.head, self._constants
        self.head, self._constants = OperationRun(), {}
        return outer

    def restore_constants(self, outer: tuple[OperationRun, dict[tuple[int | float, str], str]]) -> None:
        """End such a region."""
        self.head, self._constants = outer

    def arith(self, operation: str, operands: Sequence[str], kind: ScalarType) -> str:
        """Make scalar arithmetic."""
        name = self.fresh("n")
        self.add(pto.Arith(name, operation, tuple(operands), kind, span=self.span))
        return name

    def converted(self, operation: str, operand: str, source: ScalarType, result: ScalarType) -> str:
        """Make a scalar conversion; the value itself if the types are equal."""
        if source == result:
            return operand
        name = self.fresh("n")
        self.add(pto.Convert(name, operation, operand, source, result, span=self.span))
        return name

    def micro(
        self, mnemonic: str, operands: Iterable[Use], results: Sequence[tuple[str, Type]] = (), **words: str
    ) -> tuple[list[str], OperationRun]:
        """Create a vector instruction; return the names of its results and the insertion point after it."""
        uses = list(operands)
        names = [self.fresh(stem) for stem, _ in results]
        node = MicroOperation(
            mnemonic,
            tuple(name for name, _ in uses),
            tuple(kind for _, kind in uses),
            tuple(names),
            tuple(kind for _, kind in results),
            tuple(sorted(words.items())),
            span=self.span,
        )
        return names, self.add(node)

    def registers(self, mnemonic: str, operands: Iterable[Use], *elements: str, **words: str) -> list[Reg]:
        """Create an instruction whose results are registers of the given elements."""
        names, home = self.micro(mnemonic, operands, [("v", vector(element)) for element in elements], **words)
        return [Reg(name, element, home) for name, element in zip(names, elements, strict=True)]

    def register(self, mnemonic: str, operands: Iterable[Use], element: str, **words: str) -> Reg:
        """Make an instruction with one register as its result."""
        return self.registers(mnemonic, operands, element, **words)[0]

    def predicate(self, mnemonic: str, operands: Iterable[Use], bits: int, **words: str) -> Pred:
        """Make an instruction with one predicate as its result."""
        (name,), home = self.micro(mnemonic, operands, [("m", MaskType(bits))], **words)
        return Pred(name, bits, home)

    def as_element(self, reg: Reg, element: str) -> Reg:
        """Return the same bytes as lanes of another element."""
        reg = self._origins.get(reg.name, reg)
        if reg.element == element:
            return reg
        key = reg.name, element
        if key not in self._casts:
            with self.at(reg.home):
                found = self.register("vbitcast", [reg.use], element)
            self._casts[key] = found
            self._origins[found.name] = reg
        known = self._casts[key]
        assert isinstance(known, Reg)
        return known

    def as_bits(self, pred: Pred, bits: int) -> Pred:
        """Return the same bits as a mask for lanes of another width."""
        if pred.bits == bits:
            return pred
        key = pred.name, bits
        if key not in self._casts:
            with self.at(pred.home):
                self._casts[key] = self.predicate("pbitcast", [pred.use], bits)
        found = self._casts[key]
        assert isinstance(found, Pred)
        return found


# Logical registers and masks as physical ones.
#
# An element of w bits stands in the low bits of a container of c >= w bits, the containers of a register one after the
# other: what unpacking loads and conversions with part EVEN or P0 leave behind, and packing stores take.

_PHYSICAL = {"bf16_pair": "u32", "hif8_pair": "u16"}


def physical(element: str) -> str:
    """Return the instruction element for a logical element: pairs of 16 and 32 bits are integers."""
    return _PHYSICAL.get(element, element)


def per_register(container: int) -> int:
    """Return how many containers a register has."""
    return REGISTER_BITS // container


def register_count(lanes: int, container: int) -> int:
    """Return the number of registers for a number of containers."""
    return -(-lanes // per_register(container))


@dataclass(frozen=True, slots=True)
class LogicalRegister:
    """A logical register: lanes, element, container bits, physical registers, and the insertion point after it."""

    lanes: int
    element: str
    container: int
    regs: tuple[Reg, ...]
    home: OperationRun
    _others: dict[int, LogicalRegister] = field(default_factory=dict)

    @property
    def width(self) -> int:
        """Bits of an element."""
        return lane_bits(self.element)

    def kept(self, container: int, make: Callable[[], LogicalRegister]) -> LogicalRegister:
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
    home: OperationRun
    make: Callable[[int], tuple[Pred, ...]]
    _made: dict[int, tuple[Pred, ...]] = field(default_factory=dict)

    def at(self, container: int) -> tuple[Pred, ...]:
        """Return the predicates for containers of a width."""
        if container not in self._made:
            self._made[container] = self.make(container)
        return self._made[container]


Logical = LogicalRegister | LogicalMask


# Predicates of logical masks: all lanes, the first, those of groups, and changes of containers.

_PATTERNS = (1, 2, 3, 4, 8, 16, 32, 64, 128)


@dataclass(slots=True)
class Masks:
    """Factory of predicates; independent ones are created once at the head of the vecscope."""

    out: FunctionEmitter
    _fixed: dict[tuple[str, int, int], Pred] = field(default_factory=dict)

    def forget(self) -> None:
        """Begin another vecscope."""
        self._fixed.clear()

    # ------------------------------------------------------------------------------------------------ fixed lanes

    def whole(self, bits: int) -> Pred:
        """Return the predicate of all lanes of a width."""
        return self._kept(("every", bits, 0), lambda: self.out.predicate(f"pset_b{bits}", (), bits, pattern="PAT_ALL"))

    def every(self, container: int) -> Pred:
        """Return the predicate of all containers: 64 bits have the type of 32."""
        if container <= 32:
            return self.whole(container)
        return self._kept(("every", container, 0), lambda: self._spread(self.whole(32), "LOWER"))

    def first(self, count: int, container: int) -> Pred:
        """Return the predicate of the first containers of a register, with `count` no more than there are."""
        if count >= per_register(container):
            return self.every(container)
        if container > 32:
            return self._kept(("first", container, count), lambda: self._spread(self.first(count, 32), "LOWER"))
        return self._kept(("first", container, count), lambda: self._first(count, container))

    def _first(self, count: int, bits: int) -> Pred:
        pattern = f"PAT_VL{count}" if count in _PATTERNS else "PAT_ALLF"
        if count in _PATTERNS or count <= 0:
            return self.out.predicate(f"pset_b{bits}", (), bits, pattern=pattern)
        return self._counted(self.out.constant(count, I32), bits)[0]

    def between(self, start: int, end: int, container: int) -> Pred:
        """Return the predicate of containers `start` to `end` - 1 of a register."""
        if start <= 0:
            return self.first(end, container)
        key = f"from {start}", container, end
        return self._kept(
            key, lambda: self._logic("pxor", self.first(end, container), self.first(start, container), container)
        )  # fmt: skip

    def range(self, lanes: int, container: int) -> tuple[Pred, ...]:
        """Return the predicates of the lanes of a logical register."""
        size = per_register(container)
        return tuple(self.first(lanes - n * size, container) for n in range(register_count(lanes, container)))

    def _kept(self, key: tuple[str, int, int], make: object) -> Pred:
        if key not in self._fixed:
            assert callable(make)
            with self.out.at(self.out.scope):
                self._fixed[key] = make()
        return self._fixed[key]

    # ------------------------------------------------------------------------------------------------ instructions

    def _counted(self, count: str, bits: int) -> tuple[Pred, str]:
        """Make `plt`; return the predicate, and how many lanes are left."""
        kinds: list[tuple[str, Type]] = [("m", MaskType(bits)), ("n", I32)]
        (name, left), home = self.out.micro(f"plt_b{bits}", [(count, I32)], kinds)
        return Pred(name, bits, home), left

    def _spread(self, pred: Pred, half: str, bits: int = 32) -> Pred:
        """Create containers of twice the width from half of a predicate; `bits` are those of its type."""
        return self.out.predicate("punpack", [pred.use], bits, half=half)

    def _logic(self, mnemonic: str, one: Pred, other: Pred, container: int) -> Pred:
        bits = min(32, container)
        operands = [self.out.as_bits(each, bits).use for each in (one, other, self.every(container))]
        return self.out.predicate(mnemonic, operands, bits)

    def logic(self, mnemonic: str, one: Pred, other: Pred, container: int) -> Pred:
        """Combine two predicates of containers of a width, bit by bit."""
        return self._logic(mnemonic, one, other, container)

    # ----------------------------------------------------------------------------------------------- logical masks

    def within(self, mask: LogicalMask | None, lanes: int, container: int) -> tuple[Pred, ...]:
        """Return the active containers of a register: those of its mask, else all lanes."""
        return self.range(lanes, container) if mask is None else mask.at(container)

    def counting(self, lanes: int, count: str, known: int | None) -> LogicalMask:
        """Return the mask of the first `count` lanes (an index); `known` is its value where the text gives it."""
        if known is not None:
            return LogicalMask(lanes, self.out.place(), lambda c: self._padded(min(max(known, 0), lanes), lanes, c))
        least = self.out.arith("minsi", (count, self.out.constant(lanes, INDEX)), INDEX)
        narrow = self.out.converted("index_cast", least, INDEX, I32)
        home = self.out.place()

        def make(container: int) -> tuple[Pred, ...]:
            with self.out.at(home):
                return tuple(self._countdown(narrow, register_count(lanes, container), container))

        return LogicalMask(lanes, home, make)

    def _padded(self, count: int, lanes: int, container: int) -> tuple[Pred, ...]:
        size = per_register(container)
        return tuple(self.first(count - n * size, container) for n in range(register_count(lanes, container)))

    def _countdown(self, left: str, count: int, container: int) -> list[Pred]:
        found: list[Pred] = []
        for _ in range(count):
            pred, further = self._counted(left, min(32, container))
            if container > 32:
                pred = self._spread(pred, "LOWER")
                further = self.out.arith("subi", (left, self.out.constant(per_register(container), I32)), I32)
            found.append(pred)
            left = further
        return found

    def of_groups(self, groups: int, size: int, count: str, known: int | None) -> LogicalMask:
        """Return the mask of the first `count` lanes of every group."""
        narrow = ""
        if known is None:
            most, none = self.out.constant(size, INDEX), self.out.constant(0, INDEX)
            least = self.out.arith("maxsi", (self.out.arith("minsi", (count, most), INDEX), none), INDEX)
            narrow = self.out.converted("index_cast", least, INDEX, I32)
        home, lanes = self.out.place(), groups * size

        def make(container: int) -> tuple[Pred, ...]:
            with self.out.at(home):
                return tuple(
                    self._of_groups(groups, size, n * per_register(container), container, narrow, known)
                    for n in range(register_count(lanes, container))
                )

        return LogicalMask(lanes, home, make)

    def _of_groups(self, groups: int, size: int, start: int, container: int, count: str, known: int | None) -> Pred:
        """Make the predicate of one register, which begins at lane `start`."""
        lanes, total = per_register(container), groups * size
        if known is not None and known >= size:
            return self.first(total - start, container)
        found: Pred | None = None
        for group in range(start // size, -(-min(start + lanes, total) // size)):
            first = group * size - start
            if known is not None:
                piece = self.between(first, min(first + max(known, 0), lanes), container)
            else:
                last = self.out.arith("addi", (count, self.out.constant(first, I32)), I32)
                (high,) = self._countdown(last, 1, container)
                piece = self._logic("pxor", high, self.first(first, container), container) if first > 0 else high
            found = piece if found is None else self._logic("por", found, piece, container)
        assert found is not None
        return found

    def given(self, lanes: int, container: int, preds: tuple[Pred, ...]) -> LogicalMask:
        """Return a mask of predicates that exist for containers of one width."""
        home = self.out.place()

        def make(wanted: int) -> tuple[Pred, ...]:
            with self.out.at(home):
                return self._changed(preds, container, wanted, register_count(lanes, wanted))

        return LogicalMask(lanes, home, make)

    def _changed(self, preds: tuple[Pred, ...], container: int, wanted: int, count: int) -> tuple[Pred, ...]:
        while container < wanted:
            container *= 2
            bits = min(32, container)
            preds = tuple(self._spread(each, half, bits) for each in preds for half in ("LOWER", "HIGHER"))
        while container > wanted:
            container //= 2
            packed = []
            for low, high in zip(preds[::2], (*preds[1::2], None), strict=False):
                first = self._packed(low, "LOWER", container)
                second = None if high is None else self._packed(high, "HIGHER", container)
                packed.append(first if second is None else self._logic("por", first, second, container))
            preds = tuple(packed)
        return preds[:count]

    def _packed(self, pred: Pred, half: str, bits: int) -> Pred:
        return self.out.predicate("ppack", [pred.use], min(32, bits), half=half)


# Registers in other containers, moved to other lanes, and put together.


@dataclass(slots=True)
class RegisterShapes:
    """Makes registers of the lanes of others."""

    out: FunctionEmitter
    masks: Masks
    _indices: dict[tuple[str, int, int], Reg] = field(default_factory=dict)

    def forget(self) -> None:
        """Begin another vecscope."""
        self._indices.clear()

    def made(self, lanes: int, element: str, container: int, regs: tuple[Reg, ...]) -> LogicalRegister:
        """Return a logical register from the physical registers that its lanes need."""
        regs = regs[: register_count(lanes, container)]
        return LogicalRegister(lanes, element, container, regs, self.out.place())

    def typed(self, value: LogicalRegister, element: str) -> list[Reg]:
        """Return the registers as lanes of an element."""
        return [self.out.as_element(reg, element) for reg in value.regs]

    # ------------------------------------------------------------------------------------------------- containers

    def within(self, value: LogicalRegister, container: int) -> LogicalRegister:
        """Return the same lanes in containers of a width."""
        if value.container == container:
            return value
        return value.kept(container, lambda: self._changed(value, container))

    def _changed(self, value: LogicalRegister, container: int) -> LogicalRegister:
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
        """Return the register whose lane i holds `start` + i, created at the head of the vecscope."""
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
        """Return the register whose lane i is (start + i) div size less start div size, created at the head."""
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
        """Return the register whose lane i is lane i + `by`; lanes beyond the end are undefined."""
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
