"""Reader of typed values: integer expressions over names, lists, formats and numbers in other languages' notation."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from fractions import Fraction
from functools import lru_cache
from typing import NoReturn, TypeVar

from castsim.isa.errors import ReadError, SourceText, Span
from castsim.isa.formats import Format, Overflow, Rounding, Saturation, format_named

Value = int | str
"""The value of a name: an integer, or a word."""

LONGEST = 400
"""Maximum number of characters of an expression."""
LARGEST = 2**63
"""Bound on the magnitude of intermediate values."""

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
    """Rewriter of dotted names into single names."""

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """Return the name, or the node itself if it is none."""
        owner = self.visit(node.value)
        return ast.Name(f"{owner.id}.{node.attr}", ast.Load()) if isinstance(owner, ast.Name) else node


class Expression:
    """A parsed expression; `names` are the names that it uses, in alphabetical order.

    With `dotted`, names may have dots, such as `args.rows`.

    Raises:
        ReadError: it is not an expression; the error has the position within `span`.
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
        names_used = (node for node in ast.walk(self._root) if isinstance(node, ast.Name) and id(node) not in called)
        self.names = tuple(sorted({node.id for node in names_used}))
        self._check(self._root)

    def value(self, names: Mapping[str, Value]) -> Value:
        """Return its value; a condition is 1 or 0.

        Raises:
            ReadError: a name has no value, a division by zero, a number out of range, or a misplaced word.
        """
        return self._value(self._root, names)

    def _check(self, node: ast.expr) -> None:
        """Reject everything other than integer arithmetic."""
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
        for child in inner:
            self._check(child)

    def _value(self, node: ast.expr, names: Mapping[str, Value]) -> Value:
        match node:
            case ast.Constant(value=value):
                return value if isinstance(value, str) else self._limited(int(str(value)))
            case ast.Name(id=name):
                if name not in names:
                    self._refuse(f"'{name}' is undefined", tuple(names))
                return names[name]
            case ast.BinOp(left=left, op=op, right=right):
                first, second = self._integer(left, names), self._integer(right, names)
                if second == 0 and isinstance(op, ast.FloorDiv | ast.Mod):
                    self._refuse(f"'{ast.unparse(node)}' divides by zero")
                return self._limited(_ARITHMETIC[type(op)](first, second))
            case ast.UnaryOp(op=op, operand=operand):
                first = self._integer(operand, names)
                return int(not first) if isinstance(op, ast.Not) else -first if isinstance(op, ast.USub) else first
            case ast.BoolOp(op=op, values=values):
                results = (bool(self._integer(part, names)) for part in values)
                return int(all(results) if isinstance(op, ast.And) else any(results))
            case ast.Compare(left=left, ops=ops, comparators=others):
                return self._compared([left, *others], ops, names)
            case ast.Call(func=ast.Name(id=name), args=args):
                return _FUNCTIONS[name](*(self._integer(argument, names) for argument in args))
        raise TypeError(f"{type(node).__name__} has passed the check")

    def _compared(self, nodes: list[ast.expr], ops: list[ast.cmpop], names: Mapping[str, Value]) -> int:
        values = [self._value(node, names) for node in nodes]
        for first, op, second in zip(values, ops, values[1:], strict=False):
            if type(first) is not type(second) and not isinstance(op, ast.Eq | ast.NotEq):
                self._refuse(f"{first!r} and {second!r} cannot be compared")
            if not _COMPARISONS[type(op)](first, second):
                return 0
        return 1

    def _integer(self, node: ast.expr, names: Mapping[str, Value]) -> int:
        value = self._value(node, names)
        if isinstance(value, str):
            self._refuse(f"'{value}' is a word, not an integer")
        return value

    def _limited(self, value: int) -> int:
        if abs(value) >= LARGEST:
            self._refuse("the number is wider than 63 bits")
        return value

    def _refuse(self, message: str, legal: tuple[str, ...] = _LEGAL) -> NoReturn:
        raise ReadError(f"{message} in '{self.text}'", span=self.span, legal=legal)


# Lists of values as they are typed: `8..64`, `8..64:8`, `8..64*2`, `128,256`, `RINT,FLOOR`.

LEGAL = ("8..64", "8..64:8 (step 8)", "8..64*2 (doubling)", "128,256,512", "RINT,FLOOR")
"""Forms of a list."""
MOST = 100_000
"""Maximum number of values of one list."""

_WORD = re.compile(r"[A-Za-z_][\w.+/-]*", re.ASCII)
_INTEGER = re.compile(r"-?(?:0[xX][0-9a-fA-F]{1,16}|\d{1,19})", re.ASCII)
_RANGE = re.compile(r"(\d{1,19})\s*\.\.\s*(\d{1,19})\s*(?:([:*])\s*(\d{1,19}))?", re.ASCII)


def read_values(source: SourceText, start: int, end: int) -> tuple[Value, ...]:
    """Return the distinct values between two offsets of a text, in order.

    Raises:
        ReadError: a malformed value or range, an empty range or list, or too many values; the error carries its place.
    """
    values: dict[Value, None] = {}
    for item in re.finditer(r"[^,]+|(?<=,)(?=,|\Z)", source.text[start:end] or " "):
        text = item[0].strip()
        offset = start + item.start() + len(item[0]) - len(item[0].lstrip())
        span = Span.within(source, min(offset, max(start, end - 1)), max(1, len(text)))
        values |= dict.fromkeys(_item(text, span))
        if len(values) > MOST:
            raise ReadError(f"more than {MOST} values", span=span, legal=LEGAL)
    return tuple(values)


def read_value(text: str, span: Span) -> Value:
    """Return one value: an integer or a word.

    Raises:
        ReadError: it is neither.
    """
    text = text.strip()
    if _INTEGER.fullmatch(text):
        value = int(text, 16 if "x" in text.lower() else 10)
        if abs(value) < LARGEST:
            return value
    if _WORD.fullmatch(text):
        return text
    raise ReadError(f"'{text}' must be an integer or a word", span=span, legal=("16", "0x10", "RINT"))


def _item(text: str, span: Span) -> range | tuple[Value, ...]:
    if ".." not in text:
        if not text:
            raise ReadError("missing value", span=span, legal=LEGAL)
        return (read_value(text, span),)
    given = _RANGE.fullmatch(text)
    if given is None:
        raise ReadError(f"'{text}' is not a range", span=span, legal=LEGAL)
    first, last, sign, by = int(given[1]), int(given[2]), given[3], int(given[4] or 1)
    if last < first:
        raise ReadError(f"the range {text} is empty: it ends below its start", span=span, legal=(f"{last}..{first}",))
    if by == 0 or (sign == "*" and (by == 1 or first == 0)):
        raise ReadError(f"the range {text} never reaches its end", span=span, legal=LEGAL)
    if sign == "*":
        items = [first]
        while items[-1] * by <= last:
            items.append(items[-1] * by)
        return tuple(items)
    if (last - first) // by >= MOST:
        raise ReadError(f"the range {text} has more than {MOST} values", span=span, legal=LEGAL)
    return range(first, last + 1, by)


# Formats and numbers as other languages write them: types of C, ONNX and libraries, hexadecimal floats.

_WORDS = {"char": "i8", "uchar": "u8", "short": "i16", "ushort": "u16", "int": "i32", "uint": "u32"}
_SMALL_FLOAT = re.compile(r"(?:(?:float|fp)\d_?|f8(?=\w+fnuz))(u?e\d+m\d\w*)")
_HEXADECIMAL = re.compile(r"([+-]?)0x([0-9a-f]*)(?:\.([0-9a-f]*))?p([+-]?\d+)", re.ASCII | re.IGNORECASE)
_LONGEST_TEXT, _LARGEST_EXPONENT = 1000, 20_000


@lru_cache(maxsize=256)
def format_spelled(text: str) -> Format:
    """Return the format with a name in castsim or elsewhere.

    It accepts the names of `format_named` and also `torch.bfloat16`, `fp16_t`, `int4b_t`, `fp8e4m3_t`, `float8e4m3fn`,
    `float4_e2m1x2_t`, and C's `char`, `short`, `int` with `u` for unsigned ones, of 8, 16 and 32 bits.

    Raises:
        ReadError: the format does not exist.
    """
    name = text.strip().lower().removeprefix("torch.").removesuffix("_t")
    small = _SMALL_FLOAT.fullmatch(name)
    bits = re.fullmatch(r"(u?int\d+)b", name)
    others = (name, _WORDS.get(name), small and small[1].removeprefix("u"), bits and bits[1])
    try:
        return format_named(text)
    except ReadError:
        for other in others:
            with suppress(ReadError):
                if other:
                    return format_named(other)
        raise


def hexadecimal_float(text: str) -> Fraction | float | None:
    """Return the exact number of `0x1.8p+3`; None for a text that is not a hexadecimal float of C99.

    Raises:
        ReadError: it has no digits, or too many.
    """
    match = _HEXADECIMAL.fullmatch(text.strip())
    if match is None:
        return None
    digits, fraction = match[2] + (match[3] or ""), match[3] or ""
    if not digits or len(text) > _LONGEST_TEXT or abs(int(match[4])) > _LARGEST_EXPONENT:
        raise ReadError(f"'{text[:40]}' is not a hexadecimal float", legal=("0x1.8p+3",))
    number = int(digits, 16) * Fraction(2) ** (int(match[4]) - 4 * len(fraction))
    if match[1] != "-":
        return number
    return -number if number else -0.0


# Modes by the words that people type.

_Mode = TypeVar("_Mode", Rounding, Overflow, Saturation)


def mode_named(kind: type[_Mode], text: str, what: str) -> _Mode:
    """Return the mode of a kind with a name, in any case.

    Raises:
        ReadError: no value has this name; `what` describes it in the message.
    """
    try:
        return kind(text.lower())
    except ValueError:
        raise ReadError(f"unknown {what} '{text}'", legal=[str(member) for member in kind]) from None
