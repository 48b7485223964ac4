"""Calls replaced by the bodies of the functions called, so that what follows sees one function without calls.

The values of a body are renamed: one call's tiles are not another's. Operands stand for the callee's arguments, what
it returns for the results of the call.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import Enum

from castsim.isa.errors import IllegalError, LimitError, ReadError, Span
from castsim.isa.pto.lexer import closest
from castsim.isa.pto.program import Call, Function, Operation, Program, Return, Type, nodes
from castsim.isa.pto.types import format_type

_VALUES = frozenset(
    (
        "result", "results", "operand", "operands", "source", "slot", "offset", "offsets", "sizes", "valid", "address",
        "valid_row", "valid_col", "pointer", "shape", "strides", "view", "inputs", "outputs", "dst", "src", "tmp",
        "tile", "rows", "cols", "variable", "lower", "upper", "step", "carried", "initial", "condition", "values",
        "base", "value", "arguments", "number",
    )
)  # fmt: skip
"""Fields of operations that hold names of values, where they hold text."""

_REGIONS = frozenset(("body", "then_body", "else_body", "before", "after"))
_DEEPEST = 64
_MOST = 1_000_000
"""Operations that calls may become: calls within calls multiply."""

Names = Mapping[str, str]


def calls(body: Sequence[Operation]) -> Iterator[Call]:
    """Yield the calls of a region and of the regions in it."""
    yield from (node for node in nodes(body) if isinstance(node, Call))


def inlined(program: Program, function: Function) -> Function:
    """Return the function with every call replaced by what it calls; itself if it calls nothing.

    Raises:
        ReadError: no such function, operands or results of other types.
        IllegalError: a function without a body, or one that calls itself.
        CastsimError: one that could not be read.
    """
    if next(calls(function.body or ()), None) is None:
        return function
    body = _Inliner(program).body(function.body or (), {}, (function.name,))
    return replace(function, body=body)


@dataclass(slots=True)
class _Inliner:
    program: Program
    count: int = 0
    left: int = _MOST
    functions: dict[str, Function] = field(init=False)

    def __post_init__(self) -> None:
        self.functions = {function.name: function for function in self.program.functions}

    def body(
        self, body: Sequence[Operation], names: Names, active: tuple[str, ...], prefix: str = ""
    ) -> tuple[Operation, ...]:
        """Return a region with its values renamed and its calls replaced; `active` are the functions around it."""
        known = dict(names)
        found: list[Operation] = []
        for node in body:
            self.left -= 1
            if self.left < 0:
                raise LimitError(f"calls make more than {_MOST} operations", span=node.span)
            if isinstance(node, Call):
                found += self._call(node, known, active, prefix)
            else:
                found.append(self._renamed(node, known, active, prefix))
        return tuple(found)

    def _call(self, node: Call, known: dict[str, str], active: tuple[str, ...], prefix: str) -> tuple[Operation, ...]:
        callee = self._callee(node, active)
        self.count += 1
        inner = f"{callee.name}.{self.count}."
        operands = [known.get(name, prefix + name) for name in node.operands]
        given = {argument.name: operand for argument, operand in zip(callee.arguments, operands, strict=True)}
        *body, last = self.body(callee.body or (), given, (*active, callee.name), inner)
        assert isinstance(last, Return)
        known.update(zip(node.results, last.values, strict=True))
        return tuple(body)

    def _callee(self, node: Call, active: tuple[str, ...]) -> Function:
        """Return the function that is called.

        Raises:
            ReadError, IllegalError: it cannot be.
        """
        for refused in self.program.refused:
            if refused.name == node.callee:
                raise refused.error
        callee = self.functions.get(node.callee)
        if callee is None:
            near = [f"@{name}" for name in closest(node.callee, self.functions)]
            raise ReadError(f"no function @{node.callee}", span=node.span, legal=near)
        if callee.body is None:
            raise IllegalError(
                f"@{callee.name} is declared here without a body; what it does is unknown", span=node.span
            )
        if callee.name not in active and len(active) > _DEEPEST:
            raise IllegalError(f"calls are nested more than {_DEEPEST} deep", span=node.span)
        if callee.name in active:
            path = " calls ".join(f"@{name}" for name in (*active, callee.name))
            raise IllegalError(f"calls are recursive: {path}", span=node.span)
        _check_types(node.operand_types, tuple(one.type for one in callee.arguments), "takes", callee.name, node.span)
        _check_types(node.result_types, callee.result_types, "returns", callee.name, node.span)
        return callee

    def _renamed(self, node: Operation, known: dict[str, str], active: tuple[str, ...], prefix: str) -> Operation:
        changed: dict[str, object] = {}
        for each in fields(node):
            held = getattr(node, each.name)
            if each.name in _REGIONS:
                changed[each.name] = self.body(held, known, active, prefix)
            elif each.name in _VALUES and isinstance(held, str) and not isinstance(held, Enum):
                changed[each.name] = known.get(held, prefix + held)
            elif each.name in _VALUES and isinstance(held, tuple):
                changed[each.name] = tuple(known.get(name, prefix + name) for name in held)
        return replace(node, **changed)  # type: ignore[arg-type]


def _check_types(given: Sequence[Type], wanted: Sequence[Type], verb: str, name: str, span: Span) -> None:
    if tuple(given) != tuple(wanted):
        shown = ", ".join(format_type(kind) for kind in wanted) or "nothing"
        raise ReadError(f"@{name} {verb} {shown}", span=span)
