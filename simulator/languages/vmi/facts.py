"""The facts about a function that decide the instructions of its logical registers: divisors and containers.

Source: docs/reference/micro.md section 9.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import gcd

from castsim.isa.dataclass import dataclass, field
from castsim.isa.pto import program as pto
from castsim.isa.pto.types import lane_bits
from castsim.isa.pto.value_types import (
    DialectOperation,
    MicroOperation,
    PointerType,
    ScalarType,
    Type,
)
from castsim.languages.vmi.operations import LEGACY, LogicalMaskType, LogicalVectorType

Key = tuple[int, str, int]
"""The node that defines a value, the value's role there, and its number."""
_MOST_ROUNDS = 8
_DEFAULT = 32
WIDEST = 64
_MADE_TO_ORDER = ("pset", "create_mask", "create_group_mask")


@dataclass(slots=True)
class FunctionFacts:
    """Static facts about the values of a function: divisors, constants, and widths of containers.

    Loads and stores of whole registers need aligned addresses; if alignment is unknown, slower ones are used.
    The containers of a logical register are as wide as its widest companion requires: registers of one
    operation share one width. A conversion to 64 bits, a reinterpretation in other widths, and a gather of its indices
    do not connect widths.
    """

    known: dict[str, int] = field(default_factory=dict)
    """Constants in the text."""
    accesses: dict[int, int] = field(default_factory=dict)
    """A divisor of the address of an access in bytes."""
    strides: dict[int, int] = field(default_factory=dict)
    """A divisor of the stride of an access in elements."""
    _divisors: dict[str, int] = field(default_factory=dict)
    """0 means that the value is 0, which every number divides."""
    _parents: dict[Key, Key] = field(default_factory=dict)
    _widths: dict[Key, int] = field(default_factory=dict)
    _names: dict[str, Key] = field(default_factory=dict)
    _ordered: set[Key] = field(default_factory=set)
    """Masks that are created in any width on demand."""

    def container(self, node: pto.Operation, role: str = "result", number: int = 0) -> int:
        """Return the bits of the containers of a value."""
        return self._widths.get(self._root((id(node), role, number)), _DEFAULT)

    def see(self, body: Sequence[pto.Operation]) -> Sequence[str]:
        """Process a region; return its yielded values."""
        for node in body:
            match node:
                case pto.Yield():
                    return node.values
                case pto.For():
                    self._loop(node)
                case pto.If():
                    self._branch(node)
                case pto.Section():
                    for name, outer in zip(node.carried, node.initial, strict=True):
                        self._set(name, self._of(outer), self.known.get(outer))
                    self.see(node.body)
                case DialectOperation():
                    self._access(node)
                    self._operation(node)
                case _:
                    self._scalar(node)
        return ()

    def _scalar(self, node: pto.Operation) -> None:
        match node:
            case pto.Constant() if isinstance(node.value, int):
                self.known[node.result], self._divisors[node.result] = int(node.value), abs(int(node.value))
            case pto.Arith():
                self._set(node.result, self._quotient(node))
            case pto.Convert():
                self._set(node.result, self._of(node.operand) if "index_cast" in node.operation else 1)
            case pto.AddPointer():
                self._set(node.result, gcd(self._of(node.pointer), self._of(node.offset) * element_bytes(node.type)))
            case MicroOperation():
                for name in node.results:
                    self._set(name, self._of(node.operands[0]) if node.mnemonic == "castptr" else 1)

    def _loop(self, node: pto.For) -> None:
        self._set(node.variable, gcd(self._of(node.lower), self._of(node.step)))
        self._define(node, "carried", node.carried, node.result_types)
        self._tie_all(node, "carried", node.initial)
        divisors = [self._of(name) for name in node.initial]
        for number in range(_MOST_ROUNDS + 1):
            for name, divisor in zip(node.carried, divisors, strict=True):
                self._set(name, divisor)
            yielded = self.see(node.body)
            self._tie_all(node, "carried", yielded)
            further = [gcd(factor, self._of(name)) for factor, name in zip(divisors, yielded, strict=True)]
            if further == divisors:
                break
            divisors = further if number < _MOST_ROUNDS - 1 else [1] * len(divisors)
        for name, divisor in zip(node.results, divisors, strict=True):
            self._set(name, divisor)
        self._define(node, "result", node.results, node.result_types)
        self._tie_all(node, "carried", node.results)

    def _branch(self, node: pto.If) -> None:
        divisors = [0] * len(node.results)
        self._define(node, "result", node.results, node.result_types)
        for region in (node.then_body, node.else_body):
            yielded = self.see(region)
            self._tie_all(node, "result", yielded)
            divisors[: len(yielded)] = [
                gcd(factor, self._of(name)) for factor, name in zip(divisors, yielded, strict=True)
            ]
        for name, divisor in zip(node.results, divisors, strict=True):
            self._set(name, divisor)

    # ---------------------------------------------------------------------------------------------------- divisors

    def _of(self, name: str) -> int:
        """Return a divisor of a value; addresses count bytes."""
        return self._divisors.get(name, 1)

    def _set(self, name: str, divisor: int, value: int | None = None) -> None:
        self._divisors[name] = divisor
        if value is None:
            self.known.pop(name, None)
        else:
            self.known[name] = value

    def _quotient(self, node: pto.Arith) -> int:
        """Return a divisor of a result."""
        if not node.operands:  # a number of the core
            return 1
        near, far = self._of(node.operands[0]), self._of(node.operands[-1])
        if node.operation == "muli":
            return near * far
        if node.operation in ("addi", "subi", "select", "minsi", "minui", "maxsi", "maxui"):
            return gcd(*map(self._of, node.operands[1:] if node.operation == "select" else node.operands))
        if node.operation == "shli" and node.operands[1] in self.known:
            return near << self.known[node.operands[1]]
        return 1

    def _access(self, node: DialectOperation) -> None:
        """Record the divisors of an access."""
        operands = list(zip(node.operands, node.operand_types, strict=True))
        scalars = [self._of(name) for name, kind in operands if isinstance(kind, ScalarType)]
        for name, kind in operands:
            if isinstance(kind, PointerType):
                self.accesses[id(node)] = gcd(self._of(name), (scalars[0] if scalars else 0) * element_bytes(kind))
                self.strides[id(node)] = scalars[1] if len(scalars) > 1 else 0

    # -------------------------------------------------------------------------------------------------- containers

    def _define(self, node: pto.Operation, role: str, names: Iterable[str], kinds: Iterable[Type]) -> None:
        for number, (name, kind) in enumerate(zip(names, kinds, strict=True)):
            if not isinstance(kind, LogicalVectorType | LogicalMaskType):
                self._names.pop(name, None)
                continue
            key = self._names[name] = id(node), role, number
            self._widths.setdefault(key, lane_bits(kind.element) if isinstance(kind, LogicalVectorType) else 8)

    def _operation(self, node: DialectOperation) -> None:
        self._define(node, "result", node.results, node.result_types)
        if node.mnemonic in _MADE_TO_ORDER:
            self._ordered.add((id(node), "result", 0))
            return
        tied = [self._names[name] for name in (*node.operands, *node.results) if name in self._names]
        for other in [] if _unties(node) else tied[1:]:
            self._tie(tied[0], other)

    def _tie_all(self, node: pto.Operation, role: str, names: Iterable[str]) -> None:
        for number, name in enumerate(names):
            if name in self._names and (id(node), role, number) in self._widths:
                self._tie((id(node), role, number), self._names[name])

    def _tie(self, first: Key, other: Key) -> None:
        near, far = self._root(first), self._root(other)
        if near != far and not {first, other} & self._ordered:
            self._parents[far] = near
            self._widths[near] = max(self._widths[near], self._widths[far])

    def _root(self, key: Key) -> Key:
        while key in self._parents:
            key = self._parents[key]
        return key


def _unties(node: DialectOperation) -> bool:
    """Return whether the operands of an operation may have other containers than its result."""
    kinds = (*node.operand_types, *node.result_types)
    widths = {lane_bits(kind.element) for kind in kinds if isinstance(kind, LogicalVectorType)}
    if node.mnemonic in ("vcvt", *LEGACY):
        return WIDEST in widths and len(widths) > 1
    return node.mnemonic == "vgather" or (node.mnemonic == "vinterpret_cast" and len(widths) > 1)


def element_bytes(kind: PointerType) -> int:
    """Return the bytes of an element at a pointer."""
    return lane_bits(kind.element) // 8
