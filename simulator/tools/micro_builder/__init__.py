"""Builder of micro operations, for the expansion of tile operations and the lowering of logical registers.

It makes names, constants, registers, predicates and insertion points.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from castsim.isa.dataclass import dataclass, field
from castsim.isa.errors import NOWHERE, Span
from castsim.isa.pto.program import Arith, Constant, Convert, Operation
from castsim.isa.pto.statement_forms import FLOATS
from castsim.isa.pto.value_types import MaskType, MicroOperation, ScalarType, Type, vector

Use = tuple[str, Type]
"""A value and its type."""
INDEX = ScalarType("index")


@dataclass(eq=False, slots=True)
class OperationRun:
    """A run of operations with insertion points for later ones."""

    items: list[Operation | OperationRun] = field(default_factory=list)

    def flat(self) -> tuple[Operation, ...]:
        """Return the operations in order."""
        return tuple(self._operations())

    def _operations(self) -> Iterator[Operation]:
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


@dataclass(slots=True)
class MicroBuilder:
    """Builder of the vector instructions and scalar arithmetic of one function."""

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
    """Predicates that are created once in a vecscope: kind, container, number."""
    _constant_registers: dict[tuple[str, int, int], Reg] = field(default_factory=dict)
    """Registers that are created once in a vecscope: kind, bits, number."""

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

    def add(self, node: Operation) -> OperationRun:
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
    def at(self, run: OperationRun) -> Iterator[None]:
        """Insert new operations at a given point inside the block."""
        before, self.current = self.current, run
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
            plain = "".join(character if character.isalnum() else "_" for character in text.replace("-", "m"))
            self.constants[key] = self.fresh(f"c{plain}" if kind == INDEX else f"c{plain}_{kind.name}")
            self.head.items.append(Constant(self.constants[key], value, kind, span=self.span))
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
        self.add(Arith(name, operation, tuple(operands), kind, span=self.span))
        return name

    def converted(self, operation: str, operand: str, source: ScalarType, result: ScalarType) -> str:
        """Create a scalar conversion; return the value itself if the types are equal."""
        if source == result:
            return operand
        name = self.fresh("n")
        self.add(Convert(name, operation, operand, source, result, span=self.span))
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

    def sum(self, left: str, right: str) -> str:
        """Return the sum of two indices."""
        for name, further in ((left, right), (right, left)):
            if name in self.known:
                return self.plus(further, self.known[name])
        return self.arith("addi", (left, right), INDEX)

    # ----------------------------------------------------------------------------------------------------- vecscopes

    def begin_scope(self) -> None:
        """Begin a vecscope, which has its own predicates and registers."""
        self.scope = OperationRun()
        self._masks.clear()
        self._constant_registers.clear()

    def predicate_once(self, key: tuple[str, int, int], make: Callable[[], Pred]) -> Pred:
        """Return a predicate that is created once, at the head of the vecscope."""
        if key not in self._masks:
            with self.at(self.scope):
                self._masks[key] = make()
        return self._masks[key]

    def register_once(self, key: tuple[str, int, int], make: Callable[[], Reg]) -> Reg:
        """Return a register that is created once, at the head of the vecscope."""
        if key not in self._constant_registers:
            with self.at(self.scope):
                self._constant_registers[key] = make()
        return self._constant_registers[key]

    def whole(self, bits: int) -> Pred:
        """Return the predicate of all lanes of a width."""
        return self.predicate_once(
            ("every", bits, 0), lambda: self.predicate(f"pset_b{bits}", (), bits, pattern="PAT_ALL")
        )
