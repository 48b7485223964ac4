"""How wide the containers of every logical register of a function are: as its widest companion needs them.

Registers that meet in an operation share one width; a conversion to 64 bits, a reinterpretation in other widths, and
a gather of its indices do not tie.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from castsim.isa.pto import program as pto
from castsim.isa.pto.micro.types import lane_bits
from castsim.isa.pto.value_types import LogicalMaskType, LogicalVectorType, Type
from castsim.isa.pto.vmi.forms import LEGACY
from castsim.isa.pto.vmi.nodes import VmiOperation

Key = tuple[int, str, int]
"""The node that defines a value, what it is there, and its number."""
_DEFAULT = 32
_MADE_TO_ORDER = ("pset", "create_mask", "create_group_mask")
_WIDEST = 64


@dataclass(slots=True)
class Containers:
    """Widths by value."""

    _parents: dict[Key, Key] = field(default_factory=dict)
    _widths: dict[Key, int] = field(default_factory=dict)
    _names: dict[str, Key] = field(default_factory=dict)
    _ordered: set[Key] = field(default_factory=set)
    """Masks that are made for whatever width is wanted."""

    def of(self, node: pto.Operation, what: str = "result", number: int = 0) -> int:
        """Return the bits of the containers of a value."""
        return self._widths.get(self._root((id(node), what, number)), _DEFAULT)

    def see(self, body: Sequence[pto.Operation]) -> list[str]:
        """Take in a region; return what it yields."""
        for node in body:
            match node:
                case pto.Yield():
                    return list(node.values)
                case VmiOperation():
                    self._operation(node)
                case pto.For():
                    self._loop(node)
                case pto.If():
                    for number, kind in enumerate(node.result_types):
                        self._define(node, "result", number, kind, node.results[number])
                    for region in (node.then_body, node.else_body):
                        self._tie_all(node, "result", self.see(region))
                case pto.Section():
                    self.see(node.body)
        return []

    def _loop(self, node: pto.For) -> None:
        for number, (name, kind) in enumerate(zip(node.carried, node.result_types, strict=True)):
            self._define(node, "carried", number, kind, name)
        self._tie_all(node, "carried", list(node.initial))
        self._tie_all(node, "carried", self.see(node.body))
        for number, (name, kind) in enumerate(zip(node.results, node.result_types, strict=True)):
            self._define(node, "result", number, kind, name)
        self._tie_all(node, "carried", list(node.results))

    def _tie_all(self, node: pto.Operation, what: str, names: list[str]) -> None:
        for number, name in enumerate(names):
            if name in self._names and (id(node), what, number) in self._parents:
                self._tie((id(node), what, number), self._names[name])

    def _define(self, node: pto.Operation, what: str, number: int, kind: Type, name: str) -> None:
        if not isinstance(kind, LogicalVectorType | LogicalMaskType):
            self._names.pop(name, None)
            return
        key = id(node), what, number
        self._parents[key] = key
        self._widths[key] = lane_bits(kind.element) if isinstance(kind, LogicalVectorType) else 8
        self._names[name] = key

    def _operation(self, node: VmiOperation) -> None:
        for number, (name, kind) in enumerate(zip(node.results, node.result_types, strict=True)):
            self._define(node, "result", number, kind, name)
        if node.mnemonic in _MADE_TO_ORDER:
            self._ordered.add((id(node), "result", 0))
            return
        tied = [self._names[name] for name in (*node.operands, *node.results) if name in self._names]
        if _unties(node):
            tied = tied[-1:]
        for other in tied[1:]:
            self._tie(tied[0], other)

    def _tie(self, one: Key, other: Key) -> None:
        if {one, other} & self._ordered:
            return
        near, far = self._root(one), self._root(other)
        if near != far:
            self._parents[far] = near
            self._widths[near] = max(self._widths[near], self._widths[far])

    def _root(self, key: Key) -> Key:
        while self._parents.get(key, key) != key:
            key = self._parents[key]
        return key


def _unties(node: VmiOperation) -> bool:
    """Whether the operands of an operation may have other containers than its result."""
    if node.mnemonic == "vgather":
        return True
    if node.mnemonic not in ("vcvt", "vinterpret_cast", *LEGACY):
        return False
    kinds = [kind for kind in (*node.operand_types, *node.result_types) if isinstance(kind, LogicalVectorType)]
    widths = [lane_bits(kind.element) for kind in kinds]
    if node.mnemonic == "vinterpret_cast":
        return len(set(widths)) > 1
    return _WIDEST in widths and len(set(widths)) > 1
