"""What is known of addresses before a program runs: constants, and numbers by which others can be divided.

Loads and stores of whole registers need aligned addresses; where alignment is not known, slower ones are chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import gcd

from castsim.isa.pto import program as pto
from castsim.isa.pto.micro.nodes import MicroOperation
from castsim.isa.pto.micro.types import lane_bits
from castsim.isa.pto.value_types import PointerType, ScalarType
from castsim.isa.pto.vmi.nodes import VmiOperation

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
        """Take in a region; return what it yields."""
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
        """Note the divisors of an access: of its address in bytes, of its stride in elements."""
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
