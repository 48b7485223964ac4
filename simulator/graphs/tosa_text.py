"""From TOSA text in MLIR form to tokens, types and attribute values.

Types of tensors, arrays and dialect types are one token each, dense values another: what stands inside has a grammar
of its own. Forms: MLIR language reference; TOSA dialect documentation.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any, NoReturn

import numpy as np

from castsim.graphs.model import GraphTensor
from castsim.isa.codes import Codes
from castsim.isa.errors import ReadError, Span
from castsim.isa.formats import FORMATS, FloatFormat, Format, IntFormat
from castsim.isa.pto.lexer import PtoSource
from castsim.numerics import abstract_policy, code_dtype, convert_codes
from castsim.numerics.unpack import code_bits


class TosaTokenKind(Enum):
    """The kind of a token."""

    TYPE = "type"
    DENSE = "dense value"
    VALUE = "value name"
    SYMBOL = "symbol name"
    STRING = "string"
    ATTRIBUTE = "attribute"
    NUMBER = "number"
    WORD = "word"
    PUNCTUATION = "punctuation"
    UNKNOWN = "unknown character"
    END = "end of file"


_PATTERNS = (
    (TosaTokenKind.TYPE, r"tensor\s*<[^<>]*(?:<[^<>]*>[^<>]*)*>|![A-Za-z_][\w.$]*(?:<[^<>]*>)?"),
    (TosaTokenKind.DENSE, r"dense\s*<[^<>]*>|array\s*<[^<>]*>"),
    (TosaTokenKind.VALUE, r"%[\w.$-]+"),
    (TosaTokenKind.SYMBOL, r"@(?:[\w.$-]+|\"[^\"\n]*\")"),
    (TosaTokenKind.STRING, r'"(?:[^"\\\n]++|\\[^\n])*+"'),
    (TosaTokenKind.ATTRIBUTE, r"#[A-Za-z_][\w.$]*(?:\s*<[^<>]*>)?"),
    (TosaTokenKind.NUMBER, r"-?(?:0x[0-9A-Fa-f]+|\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)"),
    (TosaTokenKind.WORD, r"[A-Za-z_][\w.$]*"),
    (TosaTokenKind.PUNCTUATION, r"->|[{}()\[\]<>=:,]"),
    (TosaTokenKind.END, r"\Z"),
    (TosaTokenKind.UNKNOWN, r"."),
)
_TOKEN = re.compile(r"(?:\s++|//[^\n]*+)*+(?:" + "|".join(f"({pattern})" for _, pattern in _PATTERNS) + ")", re.ASCII)

ELEMENTS = {
    "i1": "bool", "i4": "i4", "i8": "i8", "i16": "i16", "i32": "i32", "i48": "i48", "i64": "i64",
    "f16": "f16", "bf16": "bf16", "f32": "f32", "f8E4M3FN": "e4m3fn", "f8E5M2": "e5m2",
}  # fmt: skip
"""Element types of TOSA by their spelling in MLIR."""
_INDEX = "index"
"""Element type of the constants of shapes."""

# Possessive, so that a type that does not end well is not tried again from each of its extents.
_TENSOR = re.compile(r"tensor\s*+<((?:\s*+(?:\d++|\?)\s*+x)*+)\s*+([^\s,>]++)\s*+>", re.DOTALL | re.ASCII)
_SHAPE = re.compile(r"!tosa\.shape<\s*(\d+)\s*>")
_LONGEST = 18
"""Digits of an extent: what has more is larger than any tensor."""

MOST_EXTENTS, LOG2_MOST_ELEMENTS = 32, 63
"""Rank and size of the largest tensors of TOSA: MAX_RANK and MAX_LOG2_SIZE of level NONE."""


@dataclass(frozen=True, slots=True)
class TensorType:
    """A tensor's element format and extents (None: dynamic). A `!tosa.shape` is one of i64."""

    format: Format
    shape: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class TosaAttribute:
    """The value of an attribute, and the number of the token that is its name."""

    value: Any
    index: int


class TosaReader:
    """A position in the tokens of one file."""

    def __init__(self, source: PtoSource) -> None:
        self.source = source
        self.kinds: list[TosaTokenKind] = []
        self.texts: list[str] = []
        self.starts: list[int] = []
        self.position = 0
        for match in _TOKEN.finditer(source.text):
            index = match.lastindex or 1
            kind, start = _PATTERNS[index - 1][0], match.start(index)
            if kind is TosaTokenKind.UNKNOWN:
                raise source.error(f"unexpected character {source.text[start]!r}", start)
            self.kinds.append(kind)
            self.texts.append(match.group(index))
            self.starts.append(start)
            if kind is TosaTokenKind.END:
                break

    def span(self, index: int | None = None) -> Span:
        """Return the place of a token, by default the next one."""
        place = self.position if index is None else index
        return self.source.span(self.starts[place], max(1, len(self.texts[place])))

    def error(self, message: str, index: int | None = None, legal: Iterable[str] = ()) -> ReadError:
        """Return (not raise) the refusal of a token."""
        return ReadError(message, span=self.span(index), legal=legal)

    def unexpected(self, expected: str, legal: Iterable[str] = ()) -> NoReturn:
        """Reject the next token."""
        text = self.texts[self.position]
        found = "the end of the file" if self.kinds[self.position] is TosaTokenKind.END else f"'{text[:40]}'"
        raise self.error(f"expected {expected}, found {found}", legal=legal)

    def at(self, text: str) -> bool:
        """Whether the next token is this one."""
        return self.texts[self.position] == text

    def take(self, text: str) -> bool:
        """Go past the next token if it is this one."""
        found = self.at(text) and self.kinds[self.position] is not TosaTokenKind.END
        self.position += found
        return found

    def expect(self, text: str) -> None:
        """Go past this token, or reject what stands there."""
        if not self.take(text):
            self.unexpected(f"'{text}'")

    def next_of(self, kind: TosaTokenKind, what: str) -> str:
        """Return the next token's text if it is of a kind, or reject it."""
        if self.kinds[self.position] is not kind:
            self.unexpected(what)
        self.position += 1
        return self.texts[self.position - 1]

    def type(self, *, constant: bool = False) -> TensorType:
        """Read a tensor or shape type; that of a constant may be one of `index`."""
        index = self.position
        text = self.next_of(TosaTokenKind.TYPE, "a tensor type")
        shape = _SHAPE.fullmatch(text)
        if shape:
            if len(shape.group(1)) > _LONGEST:
                raise self.error("an extent is too long", index)
            return TensorType(FORMATS["i64"], (int(shape.group(1)),))
        match = _TENSOR.fullmatch(text)
        if match is None:
            raise self.error(f"'{text[:60]}' is not a ranked tensor type", index, ("tensor<4x8xf32>", "!tosa.shape<2>"))
        dims = [part.strip() for part in match.group(1).split("x") if part.strip()]
        if any(len(part) > _LONGEST for part in dims):
            raise self.error("an extent is too long", index)
        element = "i64" if constant and match.group(2) == _INDEX else match.group(2)
        if element not in ELEMENTS:
            raise self.error(f"element type '{element[:40]}' is not one of TOSA's", index, ELEMENTS)
        extents = tuple(None if part == "?" else int(part) for part in dims)
        self._check_size(extents, index)
        return TensorType(FORMATS[ELEMENTS[element]], extents)

    def _check_size(self, extents: tuple[int | None, ...], index: int) -> None:
        if len(extents) > MOST_EXTENTS:
            raise self.error(f"a tensor of rank {len(extents)}", index, (f"up to {MOST_EXTENTS}",))
        count = math.prod(1 if extent is None else extent for extent in extents)
        if count >> LOG2_MOST_ELEMENTS:
            raise self.error(f"a tensor of {count} elements", index, (f"fewer than 2^{LOG2_MOST_ELEMENTS}",))

    def types(self) -> list[TensorType]:
        """Read one type, or a list in parentheses."""
        if not self.take("("):
            return [self.type()]
        found: list[TensorType] = []
        while not self.take(")"):
            if found:
                self.expect(",")
            found.append(self.type())
        return found

    def attributes(self) -> dict[str, TosaAttribute]:
        """Read `{name = value, ...}`, the opening brace included."""
        self.expect("{")
        found: dict[str, TosaAttribute] = {}
        while not self.take("}"):
            if found:
                self.expect(",")
            index = self.position
            kind = self.kinds[index]
            name = (
                self.next_of(kind, "a name")
                if kind in (TosaTokenKind.WORD, TosaTokenKind.STRING)
                else self.unexpected("a name")
            )
            name = name.strip('"')
            if name in found:
                raise self.error(f"'{name}' is given twice", index)
            found[name] = TosaAttribute(self._value() if self.take("=") else True, index)
        return found

    def _value(self) -> Any:
        kind, text, index = self.kinds[self.position], self.texts[self.position], self.position
        if kind is TosaTokenKind.DENSE:
            self.position += 1
            return self._array(text, index) if text.startswith("array") else self._dense(text, index)
        if kind is TosaTokenKind.STRING:
            self.position += 1
            return text[1:-1]
        if kind is TosaTokenKind.ATTRIBUTE:
            self.position += 1
            inner = re.search(r"<\s*([^<>]*?)\s*>", text)
            return inner.group(1) if inner else text
        if kind is TosaTokenKind.NUMBER:
            self.position += 1
            if self.take(":"):
                self.next_of(TosaTokenKind.WORD, "a type")
            return self._number(text, index)
        if kind in (TosaTokenKind.WORD, TosaTokenKind.TYPE):
            self.position += 1
            return {"true": True, "false": False}.get(text, text)
        if not self.at("["):
            self.unexpected("a value of an attribute")
        return self._list()

    def _list(self) -> list[Any]:
        self.expect("[")
        found: list[Any] = []
        while not self.take("]"):
            if found:
                self.expect(",")
            if self.at("["):
                raise self.error("lists within lists are not an attribute of these operators")
            found.append(self._value())
        return found

    def _array(self, text: str, index: int) -> list[Any]:
        inner = text[text.index("<") + 1 : -1]
        element, colon, values = inner.partition(":")
        if element.strip() not in ELEMENTS:
            raise self.error(f"element type '{element.strip()[:20]}' is not one of TOSA's", index, ELEMENTS)
        parts = [part.strip() for part in values.split(",")] if colon and values.strip() else []
        return [self._number(part, index) for part in parts]

    def _dense(self, text: str, index: int) -> GraphTensor:
        self.expect(":")
        kind = (
            self.type(constant=True)
            if self.kinds[self.position] is TosaTokenKind.TYPE
            else self.unexpected("the type of the dense value")
        )
        if None in kind.shape:
            raise self.error("a constant of dynamic shape", index)
        inner = text[text.index("<") + 1 : -1].strip()
        parts = [part for part in re.split(r"[\s,\[\]]+", inner) if part]
        if parts and parts[0].startswith('"'):
            raise self.error("dense values as a string of bytes are not read; write them as numbers", index)
        values = [self._number(part, index) for part in parts]
        extents = tuple(extent or 0 for extent in kind.shape)
        size = math.prod(extents)
        if len(values) not in (1, size):
            raise self.error(f"{len(values)} values for {size} elements", index)
        codes = self._codes(values, kind.format, index)
        if len(values) == size:
            return GraphTensor(kind.format, codes.reshape(extents))
        try:
            return GraphTensor(kind.format, np.broadcast_to(codes, extents))  # one element in memory
        except ValueError:
            raise self.error(f"a tensor of {size} elements is larger than any memory", index) from None

    def _number(self, text: str, index: int) -> int | float | bool:
        if text in ("true", "false"):
            return text == "true"
        try:
            if len(text) <= _LONGEST * 2:
                return (
                    int(text, 16 if "x" in text else 10)
                    if re.fullmatch(r"-?(?:0x[0-9A-Fa-f]+|\d+)", text)
                    else float(text)
                )
        except ValueError:
            pass
        raise self.error(f"'{text[:40]}' is not a number", index)

    def _codes(self, values: list[int | float | bool], fmt: Format, index: int) -> Codes:
        """Return the codes of numbers; a whole number for a float is its bits, as MLIR prints what has no decimal."""
        codes = np.empty(len(values), code_dtype(fmt))
        rounded = [place for place, value in enumerate(values) if isinstance(value, float)]
        if rounded and not isinstance(fmt, IntFormat):
            wide, numbers = FORMATS["f64"], np.array([values[place] for place in rounded], np.float64)
            codes[rounded] = convert_codes(numbers.view(np.uint64), wide, fmt, abstract_policy(wide, fmt))
        else:
            rounded = []
        for place in sorted(set(range(len(values))) - set(rounded)):
            codes[place] = self._code(values[place], fmt, index)
        return codes

    def _code(self, value: int | float, fmt: Format, index: int) -> int:
        """Return the code of an integer of an integer format, or of the bits of a float."""
        if isinstance(fmt, IntFormat):
            low = fmt.minimum if not fmt.boolean else 0
            if not isinstance(value, int) or not low <= value <= max(fmt.maximum, (1 << fmt.bits) - 1):
                raise self.error(f"{value} is not a value of {fmt.name}", index, (f"{low} to {fmt.maximum}",))
            # A number written without its sign means the same bits; a code of i48 has its sign in the upper ones too.
            number = value - (1 << fmt.bits) if value > fmt.maximum and fmt.signed else value
            return int(number) & ((1 << code_bits(fmt)) - 1)
        assert isinstance(fmt, FloatFormat)
        assert isinstance(value, int)  # other numbers are rounded all together
        if not 0 <= value < 1 << fmt.bits:
            raise self.error(f"bits {value:#x} do not fit {fmt.name}", index)
        return value
