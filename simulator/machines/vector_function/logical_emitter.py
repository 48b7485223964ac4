"""Instructions of a function with logical registers: names, constants, masks, and registers in other containers.

Source: docs/reference/micro.md section 9.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from castsim.isa.dataclass import dataclass, field
from castsim.isa.errors import NOWHERE, Span
from castsim.isa.pto import program as pto
from castsim.isa.pto.statement_forms import FLOATS
from castsim.isa.pto.types import lane_bits
from castsim.isa.pto.value_types import REGISTER_BITS, MaskType, MicroOperation, ScalarType, Type, vector

Use = tuple[str, Type]
"""A value and its type."""
INDEX, I16, I32 = ScalarType("index"), ScalarType("i16"), ScalarType("i32")


@dataclass(eq=False, slots=True)
class OperationRun:
    """A run of operations with insertion points for later ones."""

    items: list[pto.Operation | OperationRun] = field(default_factory=list)

    def flat(self) -> tuple[pto.Operation, ...]:
        """Return the operations in order."""
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


# Logical registers and masks as physical ones.
#
# An element of w bits stands in the low bits of a container of c >= w bits, the containers of a register one after the
# other: what unpacking loads and conversions with part EVEN or P0 leave behind, and packing stores take.

_PHYSICAL = {"bf16_pair": "u32", "hif8_pair": "u16"}


def physical(element: str) -> str:
    """Return the instruction element for a logical element: pairs of 16 and 32 bits are integers."""
    return _PHYSICAL.get(element, element)


def per_register(container: int) -> int:
    """Return the number of containers per register."""
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
    others: dict[int, LogicalRegister] = field(default_factory=dict)
    """The register's lanes in other containers, by container width."""

    @property
    def width(self) -> int:
        """Bits of an element."""
        return lane_bits(self.element)


@dataclass(frozen=True, slots=True)
class LogicalMask:
    """A logical mask: one bit per container, none beyond its lanes; `make` returns predicates for a container width."""

    make: Callable[[int], tuple[Pred, ...]]
    _made: dict[int, tuple[Pred, ...]] = field(default_factory=dict)

    def at(self, container: int) -> tuple[Pred, ...]:
        """Return the predicates for containers of a width."""
        if container not in self._made:
            self._made[container] = self.make(container)
        return self._made[container]


Logical = LogicalRegister | LogicalMask

_PATTERNS = (1, 2, 3, 4, 8, 16, 32, 64, 128)
"""The numbers of leading lanes that a pattern names."""


@dataclass(slots=True)
class VectorEmitter:
    """Writer of the vector instructions and scalar arithmetic of one function."""

    taken: set[str]
    known: dict[str, int]
    """The scalars whose values are constant in the text."""
    head: OperationRun = field(default_factory=OperationRun)
    """The insertion point of constants, before everything else."""
    scope: OperationRun = field(default_factory=OperationRun)
    """The insertion point at the beginning of the vecscope."""
    current: OperationRun = field(default_factory=OperationRun)
    span: Span = NOWHERE
    _numbers: dict[str, int] = field(default_factory=dict)
    constants: dict[tuple[str, str], str] = field(default_factory=dict)
    _elements: dict[tuple[str, str], Reg] = field(default_factory=dict)
    _widths: dict[tuple[str, int], Pred] = field(default_factory=dict)
    _origins: dict[str, Reg] = field(default_factory=dict)
    """The registers that other registers reinterpret."""
    _masks: dict[tuple[str, int, int], Pred] = field(default_factory=dict)
    """Predicates that are made once in a vecscope: kind, container, number."""
    _indices: dict[tuple[str, int, int], Reg] = field(default_factory=dict)
    """Registers that are made once in a vecscope: kind, bits, number."""

    # -------------------------------------------------------------------------------------------------- operations

    def fresh(self, stem: str) -> str:
        """Return an unused name."""
        while True:
            number = self._numbers.get(stem, 0)
            self._numbers[stem] = number + 1
            name = f"{stem}{number}" if number else stem
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
        home = OperationRun()
        self.current.items.append(home)
        return home

    @contextmanager
    def at(self, place: OperationRun) -> Iterator[None]:
        """Insert new operations at a given point inside the block."""
        before, self.current = self.current, place
        try:
            yield
        finally:
            self.current = before

    def micro(
        self, mnemonic: str, operands: Iterable[Use], results: Sequence[tuple[str, Type]] = (), **words: str
    ) -> tuple[list[str], OperationRun]:
        """Create a vector instruction; return the names of its results and the insertion point after it."""
        uses, kinds = list(operands), tuple(kind for _, kind in results)
        names = [self.fresh(stem) for stem, _ in results]
        node = MicroOperation(
            mnemonic, tuple(name for name, _ in uses), tuple(kind for _, kind in uses), tuple(names), kinds,
            tuple(sorted(words.items())), span=self.span,
        )  # fmt: skip
        return names, self.add(node)

    def registers(self, mnemonic: str, operands: Iterable[Use], *elements: str, **words: str) -> list[Reg]:
        """Create an instruction whose results are registers of the given elements."""
        names, home = self.micro(mnemonic, operands, [("v", vector(element)) for element in elements], **words)
        return [Reg(name, element, home) for name, element in zip(names, elements, strict=True)]

    def register(self, mnemonic: str, operands: Iterable[Use], element: str, **words: str) -> Reg:
        """Create an instruction with one register as its result."""
        return self.registers(mnemonic, operands, element, **words)[0]

    def predicate(self, mnemonic: str, operands: Iterable[Use], bits: int, **words: str) -> Pred:
        """Create an instruction with one predicate as its result."""
        (name,), home = self.micro(mnemonic, operands, [("m", MaskType(bits))], **words)
        return Pred(name, bits, home)

    def as_element(self, reg: Reg, element: str) -> Reg:
        """Return the same bytes as lanes of another element."""
        reg = self._origins.get(reg.name, reg)
        if reg.element == element:
            return reg
        if (reg.name, element) not in self._elements:
            with self.at(reg.home):
                cast = self._elements[reg.name, element] = self.register("vbitcast", [reg.use], element)
            self._origins[cast.name] = reg
        return self._elements[reg.name, element]

    def as_bits(self, pred: Pred, bits: int) -> Pred:
        """Return the same bits as a mask for lanes of another width."""
        if pred.bits == bits:
            return pred
        if (pred.name, bits) not in self._widths:
            with self.at(pred.home):
                self._widths[pred.name, bits] = self.predicate("pbitcast", [pred.use], bits)
        return self._widths[pred.name, bits]

    # ----------------------------------------------------------------------------------------------------- scalars

    def constant(self, value: float, kind: ScalarType) -> str:
        """Return the name of a constant; an integer of a float type is a bit pattern."""
        text = f"0x{value:X}" if isinstance(value, int) and kind.name in FLOATS else repr(value)
        key = text, kind.name
        if key not in self.constants:
            plain = "".join(each if each.isalnum() else "_" for each in text.replace("-", "m"))
            self.constants[key] = self.fresh(f"c{plain}" if kind == INDEX else f"c{plain}_{kind.name}")
            self.head.items.append(pto.Constant(self.constants[key], value, kind, span=self.span))
        return self.constants[key]

    def scalar(self, value: float, kind: ScalarType) -> Use:
        """Return a constant with its type."""
        return self.constant(value, kind), kind

    @contextmanager
    def isolated(self) -> Iterator[None]:
        """Create the constants of a region that sees none from outside; they are in `head` at its end."""
        outer = self.head, self.constants
        self.head, self.constants = OperationRun(), {}
        try:
            yield
        finally:
            self.head, self.constants = outer

    def arith(self, operation: str, operands: Sequence[str], kind: ScalarType, stem: str = "n") -> str:
        """Create scalar arithmetic."""
        name = self.fresh(stem)
        self.add(pto.Arith(name, operation, tuple(operands), kind, span=self.span))
        return name

    def converted(self, operation: str, operand: str, source: ScalarType, result: ScalarType) -> str:
        """Create a scalar conversion; return the value itself if the types are equal."""
        if source == result:
            return operand
        name = self.fresh("n")
        self.add(pto.Convert(name, operation, operand, source, result, span=self.span))
        return name

    def as_integer(self, name: str, kind: ScalarType) -> Use:
        """Return an index as an integer of a type, a constant if it is one in the text."""
        value = self.known.get(name)
        return (self.converted("index_cast", name, INDEX, kind), kind) if value is None else self.scalar(value, kind)

    def as_index(self, use: Use) -> str:
        """Return an integer as an index."""
        name, kind = use
        assert isinstance(kind, ScalarType)
        if name in self.known:
            return self.index(self.known[name])
        return self.converted("index_cast", name, kind, INDEX)

    def index(self, value: int) -> str:
        """Return a constant of type index."""
        name = self.constant(value, INDEX)
        self.known[name] = value
        return name

    def plus(self, name: str, more: int) -> str:
        """Return an index plus a number."""
        if more == 0:
            return name
        if name in self.known:
            return self.index(self.known[name] + more)
        return self.arith("addi", (name, self.index(more)), INDEX)

    def times(self, name: str, factor: int) -> str:
        """Return an index multiplied by a number."""
        if name in self.known or factor == 0:
            return self.index(self.known.get(name, 0) * factor)
        return name if factor == 1 else self.arith("muli", (name, self.index(factor)), INDEX)

    def sum(self, one: str, other: str) -> str:
        """Return the sum of two indices."""
        for name, further in ((one, other), (other, one)):
            if name in self.known:
                return self.plus(further, self.known[name])
        return self.arith("addi", (one, other), INDEX)

    # -------------------------------------------------------------------------------- masks of lanes that are fixed

    def begin_scope(self) -> None:
        """Begin a vecscope, which has its own masks and indices."""
        self.scope = OperationRun()
        self._masks.clear()
        self._indices.clear()

    def _mask(self, key: tuple[str, int, int], make: Callable[[], Pred]) -> Pred:
        if key not in self._masks:
            with self.at(self.scope):
                self._masks[key] = make()
        return self._masks[key]

    def whole(self, bits: int) -> Pred:
        """Return the predicate of all lanes of a width."""
        return self._mask(("every", bits, 0), lambda: self.predicate(f"pset_b{bits}", (), bits, pattern="PAT_ALL"))

    def every(self, container: int) -> Pred:
        """Return the predicate of all containers: 64-bit ones use the type of 32 bits."""
        if container <= 32:
            return self.whole(container)
        return self._mask(("every", container, 0), lambda: self.spread_mask(self.whole(32), "LOWER"))

    def first(self, count: int, container: int) -> Pred:
        """Return the predicate of the first containers of a register, with `count` no more than there are."""
        if count >= per_register(container):
            return self.every(container)
        if container > 32:
            return self._mask(("first", container, count), lambda: self.spread_mask(self.first(count, 32), "LOWER"))
        return self._mask(("first", container, count), lambda: self._first(count, container))

    def _first(self, count: int, bits: int) -> Pred:
        if count in _PATTERNS or count <= 0:
            pattern = f"PAT_VL{count}" if count in _PATTERNS else "PAT_ALLF"
            return self.predicate(f"pset_b{bits}", (), bits, pattern=pattern)
        return self._counted(self.constant(count, I32), bits)[0]

    def between(self, start: int, end: int, container: int) -> Pred:
        """Return the predicate of containers `start` to `end` - 1 of a register."""
        if start <= 0:
            return self.first(end, container)
        return self._mask(
            (f"from {start}", container, end),
            lambda: self.logic("pxor", self.first(end, container), self.first(start, container), container),
        )

    def leading(self, count: int, lanes: int, container: int) -> tuple[Pred, ...]:
        """Return the predicates of the first `count` lanes of a logical register."""
        size = per_register(container)
        return tuple(self.first(count - n * size, container) for n in range(register_count(lanes, container)))

    def active(self, mask: LogicalMask | None, lanes: int, container: int) -> tuple[Pred, ...]:
        """Return the active containers of a register: those of its mask, otherwise all lanes."""
        return self.leading(lanes, lanes, container) if mask is None else mask.at(container)

    def logic(self, mnemonic: str, one: Pred, other: Pred, container: int) -> Pred:
        """Combine two predicates of containers of a width, bit by bit."""
        bits = min(32, container)
        operands = [self.as_bits(each, bits).use for each in (one, other, self.every(container))]
        return self.predicate(mnemonic, operands, bits)

    def spread_mask(self, pred: Pred, half: str, bits: int = 32) -> Pred:
        """Widen half of a predicate to containers of twice the width; `bits` are those of its type."""
        return self.predicate("punpack", [pred.use], bits, half=half)

    def _counted(self, count: str, bits: int) -> tuple[Pred, str]:
        """Make `plt`; return the predicate, and how many lanes are left."""
        kinds: list[tuple[str, Type]] = [("m", MaskType(bits)), ("n", I32)]
        (name, left), home = self.micro(f"plt_b{bits}", [(count, I32)], kinds)
        return Pred(name, bits, home), left

    # ----------------------------------------------------------------------------------------------- logical masks

    def _made_here(self, make: Callable[[int], tuple[Pred, ...]]) -> LogicalMask:
        """Return a mask whose predicates are made at the current insertion point."""
        home = self.place()

        def made(container: int) -> tuple[Pred, ...]:
            with self.at(home):
                return make(container)

        return LogicalMask(made)

    def counting(self, lanes: int, count: str, number: int | None) -> LogicalMask:
        """Return the mask of the first `count` lanes (an index); `number` is its value if it is constant."""
        if number is not None:
            leading = min(max(number, 0), lanes)
            return LogicalMask(lambda container: self.leading(leading, lanes, container))
        narrow = self.converted(
            "index_cast", self.arith("minsi", (count, self.constant(lanes, INDEX)), INDEX), INDEX, I32
        )
        return self._made_here(
            lambda container: tuple(self._countdown(narrow, register_count(lanes, container), container))
        )

    def _countdown(self, left: str, count: int, container: int) -> Iterator[Pred]:
        """Yield the predicates of `count` registers, of whose lanes the first `left` are active."""
        for _ in range(count):
            pred, further = self._counted(left, min(32, container))
            if container > 32:
                pred = self.spread_mask(pred, "LOWER")
                further = self.arith("subi", (left, self.constant(per_register(container), I32)), I32)
            yield pred
            left = further

    def group_mask(self, groups: int, size: int, count: str, number: int | None) -> LogicalMask:
        """Return the mask of the first `count` lanes of every group."""
        narrow = ""
        if number is None:
            most, none = self.constant(size, INDEX), self.constant(0, INDEX)
            least = self.arith("maxsi", (self.arith("minsi", (count, most), INDEX), none), INDEX)
            narrow = self.converted("index_cast", least, INDEX, I32)
        lanes = groups * size
        return self._made_here(
            lambda container: tuple(
                self._of_groups(lanes, size, n * per_register(container), container, narrow, number)
                for n in range(register_count(lanes, container))
            )
        )

    def _of_groups(self, total: int, size: int, start: int, container: int, count: str, number: int | None) -> Pred:
        """Create the predicate of one register, which begins at lane `start`."""
        lanes = per_register(container)
        if number is not None and number >= size:
            return self.first(total - start, container)
        union: Pred | None = None
        for group in range(start // size, -(-min(start + lanes, total) // size)):
            first = group * size - start
            if number is not None:
                piece = self.between(first, min(first + max(number, 0), lanes), container)
            else:
                last = self.arith("addi", (count, self.constant(first, I32)), I32)
                (high,) = self._countdown(last, 1, container)
                piece = self.logic("pxor", high, self.first(first, container), container) if first > 0 else high
            union = piece if union is None else self.logic("por", union, piece, container)
        assert union is not None
        return union

    def given_mask(self, lanes: int, container: int, preds: tuple[Pred, ...]) -> LogicalMask:
        """Return a mask of predicates that exist for containers of one width."""
        return self._made_here(lambda wanted: self._repacked(preds, container, wanted)[: register_count(lanes, wanted)])

    def _repacked(self, preds: tuple[Pred, ...], container: int, wanted: int) -> tuple[Pred, ...]:
        while container < wanted:
            container *= 2
            bits = min(32, container)
            preds = tuple(self.spread_mask(each, half, bits) for each in preds for half in ("LOWER", "HIGHER"))
        while container > wanted:
            container //= 2
            bits, packed = min(32, container), list[Pred]()
            for number, pred in enumerate(preds):
                half = self.predicate("ppack", [pred.use], bits, half="HIGHER" if number % 2 else "LOWER")
                packed.append(self.logic("por", packed.pop(), half, container) if number % 2 else half)
            preds = tuple(packed)
        return preds

    # --------------------------------------------------------------------------------------------- logical registers

    def made(self, lanes: int, element: str, container: int, regs: Iterable[Reg]) -> LogicalRegister:
        """Return a logical register of the physical registers that its lanes need."""
        needed = tuple(regs)[: register_count(lanes, container)]
        return LogicalRegister(lanes, element, container, needed, self.place())

    def within(self, value: LogicalRegister, container: int) -> LogicalRegister:
        """Return the same lanes in containers of a width, cached."""
        if value.container == container:
            return value
        if container not in value.others:
            value.others[container] = self._moved_within(value, container)
        return value.others[container]

    def _moved_within(self, value: LogicalRegister, container: int) -> LogicalRegister:
        with self.at(value.home):
            regs, current = value.regs, value.container
            while current < container:
                regs = tuple(each for reg in regs for each in self.spread(reg, reg, current))
                current *= 2
                regs = regs[: register_count(value.lanes, current)]
            while current > container:
                current //= 2
                regs = tuple(self.parted(low, high, current)[0] for low, high in pairs_of(regs))
            element = physical(value.element)
            return self.made(value.lanes, value.element, container, [self.as_element(reg, element) for reg in regs])

    def spread(self, one: Reg, other: Reg, bits: int) -> list[Reg]:
        """Interleave the lanes of two registers into two registers."""
        kind = f"u{min(32, bits)}"
        return self.registers("vintlv", [self.as_element(each, kind).use for each in (one, other)], kind, kind)

    def parted(self, one: Reg, other: Reg, bits: int) -> list[Reg]:
        """Return the even lanes of two registers end to end, and the odd ones."""
        kind = f"u{bits}"
        return self.registers("vdintlv", [self.as_element(each, kind).use for each in (one, other)], kind, kind)

    # ------------------------------------------------------------------------------------------------------- lanes

    def kept(self, key: tuple[str, int, int], make: Callable[[], Reg]) -> Reg:
        """Return a register that is created once, at the head of the vecscope."""
        if key not in self._indices:
            with self.at(self.scope):
                self._indices[key] = make()
        return self._indices[key]

    def lane_numbers(self, bits: int, start: int) -> Reg:
        """Return the register whose lane i holds `start` + i, created at the head of the vecscope."""
        kind = ScalarType(f"i{bits}")

        def make() -> Reg:
            first = self.scalar(signed(start, bits), kind)
            return self.as_element(self.register("vci", [first], kind.name, order="ASC"), f"u{bits}")

        return self.kept(("lanes", bits, start), make)

    def same_number(self, bits: int, number: int) -> Reg:
        """Return the register with one number in all lanes, created at the head of the vecscope."""
        kind, wrapped = ScalarType(f"i{bits}"), signed(number, bits)
        return self.kept(("same", bits, number), lambda: self.register("vbr", [self.scalar(wrapped, kind)], f"u{bits}"))

    def group_numbers(self, bits: int, start: int, size: int) -> Reg:
        """Return the register whose lane i is (start + i) div size minus start div size, created at the head."""
        start %= size
        return self.kept((f"groups of {size}", bits, start), lambda: self._group_numbers(bits, start, size))

    def _group_numbers(self, bits: int, start: int, size: int) -> Reg:
        lanes, kind = per_register(bits), f"u{bits}"
        if start == 0 and size >= lanes:
            return self.same_number(bits, 0)
        if start == 0 and size & (size - 1) == 0:
            amount = self.scalar(size.bit_length() - 1, I16)
            return self.register("vshrs", [self.lane_numbers(bits, 0).use, amount, self.whole(bits).use], kind)
        numbers, group, first = self.same_number(bits, 0), 1, size - start
        while first < lanes:
            below = self.as_bits(self.first(first, bits), bits)
            numbers = self.register("vsel", [numbers.use, self.same_number(bits, group).use, below.use], kind)
            group, first = group + 1, first + size
        return numbers

    def strided_numbers(self, bits: int, register: int, step: Use) -> Reg:
        """Return the indices of the lanes of a logical register's n-th register, each multiplied by a scalar."""
        lanes = self.lane_numbers(bits, register * per_register(bits))
        return self.register("vmuls", [lanes.use, step, self.whole(bits).use], lanes.element)

    def picked(self, reg: Reg, index: Reg, bits: int) -> Reg:
        """Return the lanes that an index selects."""
        kind = f"u{bits}"
        lanes = self.register("vselr", [self.as_element(reg, kind).use, index.use], kind)
        return self.as_element(lanes, reg.element)

    def shifted(self, reg: Reg, by: int, bits: int) -> Reg:
        """Return the register whose lane i is lane i + `by`; lanes beyond the end are undefined."""
        return reg if by == 0 else self.picked(reg, self.lane_numbers(bits, by), bits)

    def chosen(self, one: Reg, other: Reg | None, mask: Pred, bits: int) -> Reg:
        """Return the lanes of `one` where the mask is set, otherwise those of `other`, if there is one."""
        if other is None:
            return one
        kind = f"u{bits}"
        operands = [self.as_element(each, kind).use for each in (one, other)]
        return self.as_element(self.register("vsel", [*operands, self.as_bits(mask, bits).use], kind), one.element)


def pairs_of(regs: Sequence[Reg]) -> Iterator[tuple[Reg, Reg]]:
    """Yield pairs of neighbouring registers; a last one without neighbour is paired with itself."""
    return zip(regs[::2], (*regs[1::2], regs[-1]), strict=False)


def signed(number: int, bits: int) -> int:
    """Return a number modulo 2^bits, as signed."""
    half = 1 << bits - 1
    return (number + half) % (2 * half) - half
