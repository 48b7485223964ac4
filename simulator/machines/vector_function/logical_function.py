"""A function with logical registers as one with vector registers, which does the same (docs/reference/micro.md 9)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace

from castsim.isa.errors import CastsimError, IllegalError
from castsim.isa.pto import program as pto
from castsim.isa.pto.micro_forms import SCOPES, logical_operations
from castsim.isa.pto.program import REGION_FIELDS
from castsim.isa.pto.value_types import LogicalMaskType, LogicalVectorType, MaskType, MicroOperation, Type, VmiOperation
from castsim.machines.vector_function.logical_emitter import (
    FunctionEmitter,
    Logical,
    LogicalMask,
    LogicalRegister,
    Masks,
    OperationRun,
    Pred,
    Reg,
    RegisterShapes,
    physical,
    register_count,
    vector,
)
from castsim.machines.vector_function.logical_loads import Divisors
from castsim.machines.vector_function.logical_operations import Containers, LogicalOperations

# Instructions whose results nothing uses, and that do nothing else: taken out.

_PURE = frozenset(("vbitcast", "pbitcast", "vbr", "vci", "vshrs", "pset_b8", "pset_b16", "pset_b32"))
"""What lowering makes ahead of knowing whether it will be wanted."""


def without_unused(body: tuple[pto.Operation, ...]) -> tuple[pto.Operation, ...]:
    """Return a function's body without such instructions."""
    while True:
        used = Counter(_used(body))
        smaller = _kept(body, used)
        if smaller == body:
            return body
        body = smaller


def _kept(body: Sequence[pto.Operation], used: Counter[str]) -> tuple[pto.Operation, ...]:
    found: list[pto.Operation] = []
    for node in body:
        match node:
            case MicroOperation() if node.mnemonic in _PURE and not any(used[name] for name in node.results):
                continue
            case pto.For() | pto.Section():
                found.append(replace(node, body=_kept(node.body, used)))
            case pto.If():
                then_body, else_body = (_kept(region, used) for region in (node.then_body, node.else_body))
                found.append(replace(node, then_body=then_body, else_body=else_body))
            case _:
                found.append(node)
    return tuple(found)


def _used(body: Sequence[pto.Operation]) -> Iterator[str]:
    """Yield the names of values that vector instructions, loops and conditions use."""
    for node in body:
        match node:
            case MicroOperation():
                yield from node.operands
            case pto.Yield():
                yield from node.values
            case pto.For():
                yield from node.initial
                yield from _used(node.body)
            case pto.Section():
                yield from node.initial
                yield from _used(node.body)
            case pto.If():
                yield from _used(node.then_body)
                yield from _used(node.else_body)


def lower_function(function: pto.Function) -> pto.Function:
    """Return the function with every operation on logical registers as vector instructions; itself if it has none.

    Raises:
        IllegalError: an operation for which there are no instructions; carries its place.
    """
    body = function.body or ()
    if next(logical_operations(body), None) is None:
        return function
    containers, facts = Containers(), Divisors()
    containers.see(body)
    facts.see(body)
    out = FunctionEmitter({*(each.name for each in function.arguments), *_names(body)})
    masks = Masks(out)
    operations = LogicalOperations(out, masks, RegisterShapes(out, masks), containers, facts)
    lowering = _Lowering(out, operations, containers)
    whole = lowering.region(body)
    return replace(function, body=without_unused((*out.head.flat(), *whole)))


def _names(body: Sequence[pto.Operation]) -> Iterator[str]:
    """Yield every text in the nodes of a region: among them all names of values."""
    for node in body:
        for each in fields(node):
            held = getattr(node, each.name)
            if isinstance(held, str):
                yield held
            elif isinstance(held, tuple) and held and isinstance(held[0], str):
                yield from held
            elif isinstance(held, tuple) and held and each.name in REGION_FIELDS:
                yield from _names(held)


@dataclass(slots=True)
class _Lowering:
    """A walk through the regions of a function."""

    out: FunctionEmitter
    operations: LogicalOperations
    containers: Containers
    values: dict[str, Logical] = field(default_factory=dict)

    def region(self, body: Sequence[pto.Operation], owner: pto.Operation | None = None, what: str = "") -> tuple[
        pto.Operation, ...
    ]:  # fmt: skip
        """Return a region; what it yields has the containers of the owner's results."""
        place = OperationRun()
        with self.out.at(place):
            for node in body:
                self.out.span = node.span
                try:
                    self._step(node, owner, what)
                except CastsimError as error:
                    raise error.at(node.span) from None
        return place.flat()

    def _step(self, node: pto.Operation, owner: pto.Operation | None, what: str) -> None:
        match node:
            case VmiOperation():
                found = self.operations.make(node, [self.values.get(name) for name in node.operands])
                if found is not None:
                    self.values[node.results[0]] = found
            case pto.Section():
                self._section(node)
            case pto.For():
                self._loop(node)
            case pto.If():
                self._branch(node)
            case pto.While() if next(logical_operations((node,)), None) is not None:
                raise IllegalError("logical registers in scf.while: known, not modelled", legal=("scf.for",))
            case pto.Yield() if owner is not None:
                names, kinds = self._flat(owner, what, node.values, node.types)
                self.out.add(replace(node, values=names, types=kinds))
            case _:
                self.out.add(node)

    def _section(self, node: pto.Section) -> None:
        if node.kind not in SCOPES:
            self.out.add(replace(node, body=self.region(node.body)))
            return
        self.out.scope = OperationRun()
        self.operations.forget()
        outer = self.out.inner_constants() if node.kind == "strict_vecscope" else None
        body = self.region(node.body)
        inner = self.out.head.flat() if outer is not None else ()
        if outer is not None:
            self.out.restore_constants(outer)
        self.out.add(replace(node, body=(*inner, *self.out.scope.flat(), *body)))

    def _loop(self, node: pto.For) -> None:
        initial, kinds = self._flat(node, "carried", node.initial, node.result_types)
        carried, home = self._fresh(node, "carried", node.carried), OperationRun()
        self._bind(node, "carried", node.carried, carried, home)
        body = self.region(node.body, node, "carried")
        results = self._fresh(node, "carried", node.results)
        again = replace(
            node, body=(*home.flat(), *body), carried=_joined(carried), initial=initial, results=_joined(results),
            result_types=kinds,
        )  # fmt: skip
        self.out.add(again)
        self._bind(node, "carried", node.results, results, self.out.place())

    def _branch(self, node: pto.If) -> None:
        then_body = self.region(node.then_body, node, "result")
        else_body = self.region(node.else_body, node, "result")
        results = self._fresh(node, "result", node.results)
        kinds = tuple(
            each for number, kind in enumerate(node.result_types) for each in self._kinds(node, "result", number, kind)
        )
        self.out.add(
            replace(node, then_body=then_body, else_body=else_body, results=_joined(results), result_types=kinds)
        )
        self._bind(node, "result", node.results, results, self.out.place())

    # ------------------------------------------------------------------------------ values that cross regions

    def _kinds(self, node: pto.Operation, what: str, number: int, kind: Type) -> tuple[Type, ...]:
        """Return the types of the registers or masks that a value becomes, its own if it is neither."""
        container = self.containers.of(node, what, number)
        if isinstance(kind, LogicalVectorType):
            return (vector(physical(kind.element)),) * register_count(kind.lanes, container)
        if isinstance(kind, LogicalMaskType):
            return (MaskType(min(32, container)),) * register_count(kind.lanes, container)
        return (kind,)

    def _flat(
        self, node: pto.Operation, what: str, names: Sequence[str], kinds: Sequence[Type]
    ) -> tuple[tuple[str, ...], tuple[Type, ...]]:
        """Return values as registers, in the containers of those that they become."""
        flat: list[str] = []
        types: list[Type] = []
        for number, (name, kind) in enumerate(zip(names, kinds, strict=True)):
            container, value = self.containers.of(node, what, number), self.values.get(name)
            types += self._kinds(node, what, number, kind)
            if isinstance(kind, LogicalVectorType) and isinstance(value, LogicalRegister):
                held = self.operations.shapes.within(value, container)
                flat += (self.out.as_element(reg, physical(kind.element)).name for reg in held.regs)
            elif isinstance(kind, LogicalMaskType) and isinstance(value, LogicalMask):
                flat += (self.out.as_bits(pred, min(32, container)).name for pred in value.at(container))
            else:
                flat.append(name)
        return tuple(flat), tuple(types)

    def _fresh(self, node: pto.For | pto.If, what: str, names: Sequence[str]) -> list[tuple[str, ...]]:
        """Return the names of what values become."""
        found = []
        for number, (name, kind) in enumerate(zip(names, node.result_types, strict=True)):
            logical = isinstance(kind, LogicalVectorType | LogicalMaskType)
            count = len(self._kinds(node, what, number, kind))
            found.append(tuple(self.out.fresh("v") for _ in range(count)) if logical else (name,))
        return found

    def _bind(
        self, node: pto.For | pto.If, what: str, names: Sequence[str], flat: list[tuple[str, ...]], home: OperationRun
    ) -> None:  # fmt: skip
        for number, (name, kind, parts) in enumerate(zip(names, node.result_types, flat, strict=True)):
            container = self.containers.of(node, what, number)
            if isinstance(kind, LogicalVectorType):
                regs = tuple(Reg(part, physical(kind.element), home) for part in parts)
                self.values[name] = LogicalRegister(kind.lanes, kind.element, container, regs, home)
            elif isinstance(kind, LogicalMaskType):
                preds = tuple(Pred(part, min(32, container), home) for part in parts)
                with self.out.at(home):
                    self.values[name] = self.operations.masks.given(kind.lanes, container, preds)


def _joined(parts: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(name for each in parts for name in each)
