"""Integer expressions over names, for parameters of programs and conditions between them; nothing else is evaluated."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import NoReturn

from castsim.isa.errors import ReadError, Span

Value = int | str
"""The value of a name: an integer, or a word."""

LONGEST = 400
"""Characters of an expression."""
LARGEST = 2**63
"""Magnitude that no intermediate value may reach."""

_LEGAL = ("integers, names, + - * // %, == != < <= > >=, and or not, min() max(), parentheses",)
_ARITHMETIC: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARISONS: Mapping[type[ast.cmpop], Callable[[Value, Value], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_FUNCTIONS: Mapping[str, Callable[..., int]] = {"min": min, "max": max}


class _Joined(ast.NodeTransformer):
    """Makes one name of names with dots between them."""

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """Return the name, or what stands there if it is none."""
        owner = self.visit(node.value)
        return ast.Name(f"{owner.id}.{node.attr}", ast.Load()) if isinstance(owner, ast.Name) else node


class Expression:
    """An expression that has been read; `names` are those that it uses, in alphabetical order.

    With `dotted`, names may have dots, such as `args.rows`.

    Raises:
        ReadError: it is none; carries its place within `span`.
    """

    def __init__(self, text: str, span: Span, *, dotted: bool = False) -> None:
        self.text = text.strip()
        self.span = span
        if len(text) > LONGEST:
            raise ReadError(f"the expression is longer than {LONGEST} characters", span=span, legal=_LEGAL)
        try:
            self._root = ast.parse(self.text, mode="eval").body
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            raise ReadError(f"'{self.text}' is not an expression", span=span, legal=_LEGAL) from None
        if dotted:
            self._root = _Joined().visit(self._root)
        called = {id(node.func) for node in ast.walk(self._root) if isinstance(node, ast.Call)}
        found = (node for node in ast.walk(self._root) if isinstance(node, ast.Name) and id(node) not in called)
        self.names = tuple(sorted({node.id for node in found}))
        self._check(self._root)

    def value(self, names: Mapping[str, Value]) -> Value:
        """Return its value; a condition is 1 or 0.

        Raises:
            ReadError: a name without a value, a division by zero, a number out of range, a word where none can stand.
        """
        return self._value(self._root, names)

    def _check(self, node: ast.expr) -> None:
        """Reject whatever is not integer arithmetic."""
        match node:
            case ast.Constant(value=value) if type(value) in (int, str):
                return
            case ast.Name():
                return
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
                inner = [left, right]
            case ast.UnaryOp(op=ast.USub() | ast.UAdd() | ast.Not(), operand=operand):
                inner = [operand]
            case ast.BoolOp(values=values):
                inner = values
            case ast.Compare(left=left, ops=ops, comparators=others) if all(type(op) in _COMPARISONS for op in ops):
                inner = [left, *others]
            case ast.Call(func=ast.Name(id=name), args=[_, _, *_], keywords=[]) if name in _FUNCTIONS:
                inner = node.args
            case _:
                self._refuse(f"'{ast.unparse(node)}' is not allowed in an expression")
        for each in inner:
            self._check(each)

    def _value(self, node: ast.expr, names: Mapping[str, Value]) -> Value:
        match node:
            case ast.Constant(value=value):
                return value if isinstance(value, str) else self._limited(int(str(value)))
            case ast.Name(id=name):
                if name not in names:
                    self._refuse(f"'{name}' has no value", tuple(names))
                return names[name]
            case ast.BinOp(left=left, op=op, right=right):
                one, two = self._integer(left, names), self._integer(right, names)
                if two == 0 and isinstance(op, ast.FloorDiv | ast.Mod):
                    self._refuse(f"'{ast.unparse(node)}' divides by zero")
                return self._limited(_ARITHMETIC[type(op)](one, two))
            case ast.UnaryOp(op=op, operand=operand):
                one = self._integer(operand, names)
                return int(not one) if isinstance(op, ast.Not) else -one if isinstance(op, ast.USub) else one
            case ast.BoolOp(op=op, values=values):
                results = (bool(self._integer(each, names)) for each in values)
                return int(all(results) if isinstance(op, ast.And) else any(results))
            case ast.Compare(left=left, ops=ops, comparators=others):
                return self._compared([left, *others], ops, names)
            case ast.Call(func=ast.Name(id=name), args=args):
                return _FUNCTIONS[name](*(self._integer(each, names) for each in args))
        raise TypeError(f"{type(node).__name__} has passed the check")

    def _compared(self, nodes: list[ast.expr], ops: list[ast.cmpop], names: Mapping[str, Value]) -> int:
        values = [self._value(node, names) for node in nodes]
        for one, op, two in zip(values, ops, values[1:], strict=False):
            if type(one) is not type(two) and not isinstance(op, ast.Eq | ast.NotEq):
                self._refuse(f"{one!r} and {two!r} have no order")
            if not _COMPARISONS[type(op)](one, two):
                return 0
        return 1

    def _integer(self, node: ast.expr, names: Mapping[str, Value]) -> int:
        value = self._value(node, names)
        if isinstance(value, str):
            self._refuse(f"'{value}' is a word, not an integer")
        return value

    def _limited(self, value: int) -> int:
        if abs(value) >= LARGEST:
            self._refuse("the number has more than 63 bits")
        return value

    def _refuse(self, message: str, legal: tuple[str, ...] = _LEGAL) -> NoReturn:
        raise ReadError(f"{message} in '{self.text}'", span=self.span, legal=legal)
