"""Instructions as they are made: fresh names, constants, and places behind definitions where more may be put."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from castsim.isa.located import NOWHERE
from castsim.isa.pto import program as pto
from castsim.isa.pto.micro.nodes import MicroOperation
from castsim.isa.pto.micro.types import lane_bits
from castsim.isa.pto.value_types import REGISTER_BITS, MaskType, ScalarType, Type, VectorType
from castsim.isa.spans import Span

Use = tuple[str, Type]
"""A value and its type."""
INDEX, I16, I32 = ScalarType("index"), ScalarType("i16"), ScalarType("i32")


@dataclass(eq=False, slots=True)
class Place:
    """A run of operations, and of places for operations that come later."""

    items: list[pto.Operation | Place] = field(default_factory=list)

    def flat(self) -> tuple[pto.Operation, ...]:
        """Return the operations in their order."""
        return tuple(self._operations())

    def _operations(self) -> Iterator[pto.Operation]:
        for item in self.items:
            if isinstance(item, Place):
                yield from item._operations()
            else:
                yield item


@dataclass(frozen=True, slots=True)
class Reg:
    """A register: its name, the element of its type, and the place behind its definition."""

    name: str
    element: str
    home: Place = field(compare=False, repr=False)

    @property
    def use(self) -> Use:
        """The register with its type."""
        return self.name, vector(self.element)


@dataclass(frozen=True, slots=True)
class Pred:
    """A predicate: its name, the lane width of its type, and the place behind its definition."""

    name: str
    bits: int
    home: Place = field(compare=False, repr=False)

    @property
    def use(self) -> Use:
        """The predicate with its type."""
        return self.name, MaskType(self.bits)


def vector(element: str) -> VectorType:
    """Return the type of a register of an element."""
    return VectorType(REGISTER_BITS // lane_bits(element), element)


@dataclass(slots=True)
class Emitter:
    """Makes the operations of one function."""

    taken: set[str]
    head: Place = field(default_factory=Place)
    """Ahead of all else: the constants."""
    scope: Place = field(default_factory=Place)
    """At the beginning of the vecscope."""
    current: Place = field(default_factory=Place)
    span: Span = NOWHERE
    _numbers: dict[str, int] = field(default_factory=dict)
    _constants: dict[tuple[int | float, str], str] = field(default_factory=dict)
    _casts: dict[tuple[str, str | int], Reg | Pred] = field(default_factory=dict)
    _origins: dict[str, Reg] = field(default_factory=dict)
    """What a register is but another element of."""

    def fresh(self, stem: str) -> str:
        """Return a name that nothing has yet."""
        while True:
            number = self._numbers.get(stem, 0)
            self._numbers[stem] = number + 1
            name = f"{stem}.{number}"
            if name not in self.taken:
                self.taken.add(name)
                return name

    def add(self, node: pto.Operation) -> Place:
        """Put an operation where things go now; return a place behind it."""
        home = Place()
        self.current.items += [node, home]
        return home

    def place(self) -> Place:
        """Return a place here for what comes later."""
        found = Place()
        self.current.items.append(found)
        return found

    @contextmanager
    def at(self, place: Place) -> Iterator[None]:
        """Put what is made meanwhile into a place."""
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

    def inner_constants(self) -> tuple[Place, dict[tuple[int | float, str], str]]:
        """Begin a region that sees no constants from outside; return those that there are."""
        outer = self.head, self._constants
        self.head, self._constants = Place(), {}
        return outer

    def restore_constants(self, outer: tuple[Place, dict[tuple[int | float, str], str]]) -> None:
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
    ) -> tuple[list[str], Place]:
        """Make a vector instruction; return the names of its results, and the place behind it."""
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
        """Make an instruction whose results are registers of these elements."""
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
