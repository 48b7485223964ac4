"""Reader of TOSA text: a function of `tosa.cast`, `tosa.rescale`, `tosa.identity`, `tosa.reshape` and constants.

Both the pretty form (`%1 = tosa.cast %0 : (tensor<4xf32>) -> tensor<4xi8>`) and the generic one
(`"tosa.cast"(%0) : ...`) are read, with properties in `<{...}>` or attributes in `{...}`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import numpy as np

from castsim.isa.dataclass import dataclass, field
from castsim.isa.errors import CastsimError, ErrorList, IllegalError, ReadError, Span
from castsim.isa.formats import FORMATS, Codes, FloatFormat, Format, IntFormat, code_bits
from castsim.isa.pto.lexer import PtoSource
from castsim.numerics.blocks import code_dtype
from castsim.numerics.policy import abstract_policy
from castsim.numerics.tiers import convert_codes
from castsim.targets.loader import load_specification
from castsim.tools.graphs.model import Graph, GraphInput, GraphLanguage, GraphNode, GraphTensor
from castsim.tools.graphs.tosa_operators import DOUBLE_ROUND, INEXACT_ROUND, SINGLE_ROUND

# Tokens, types and attribute values. Types, arrays and dialect types are one token each, dense values another: what
# stands inside has a grammar of its own. Forms: MLIR language reference; TOSA dialect documentation.


_Item = TypeVar("_Item")


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
"""Maximum number of digits of an extent; more digits exceed any tensor."""

MOST_EXTENTS, LOG2_MOST_ELEMENTS = 32, 63
"""Rank and size of the largest tensors of TOSA: MAX_RANK and MAX_LOG2_SIZE of level NONE."""


@dataclass(frozen=True, slots=True)
class TosaTensorType:
    """A tensor's element format and extents (None: dynamic). A `!tosa.shape` is one of i64."""

    format: Format
    shape: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class TosaAttribute:
    """The value of an attribute, and the index of its name's token."""

    value: Any
    index: int


class TosaReader:
    """A position in the tokens of a file."""

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
        """Return the position of a token, by default of the next one."""
        token_index = self.position if index is None else index
        return self.source.span(self.starts[token_index], max(1, len(self.texts[token_index])))

    def error(self, message: str, index: int | None = None, legal: Iterable[str] = ()) -> ReadError:
        """Return (do not raise) an error about a token."""
        return ReadError(message, span=self.span(index), legal=legal)

    def unexpected(self, expected: str, legal: Iterable[str] = ()) -> NoReturn:
        """Reject the next token."""
        text = self.texts[self.position]
        actual = "the end of the file" if self.kinds[self.position] is TosaTokenKind.END else f"'{text[:40]}'"
        raise self.error(f"expected {expected}, found {actual}", legal=legal)

    def at(self, text: str) -> bool:
        """Return whether the next token has this text."""
        return self.texts[self.position] == text

    def take(self, text: str) -> bool:
        """Skip the next token if it has this text."""
        is_there = self.at(text) and self.kinds[self.position] is not TosaTokenKind.END
        self.position += is_there
        return is_there

    def expect(self, text: str) -> None:
        """Skip the next token, which must have this text."""
        if not self.take(text):
            self.unexpected(f"'{text}'")

    def next_of(self, kind: TosaTokenKind, what: str) -> str:
        """Return the text of the next token, which must be of a kind."""
        if self.kinds[self.position] is not kind:
            self.unexpected(what)
        self.position += 1
        return self.texts[self.position - 1]

    def listed(self, end: str, read: Callable[[], _Item]) -> list[_Item]:
        """Return a comma-separated list up to a closing token; the opening one is already consumed."""
        items: list[_Item] = []
        while not self.take(end):
            if items:
                self.expect(",")
            items.append(read())
        return items

    def type(self, *, constant: bool = False) -> TosaTensorType:
        """Read a tensor or shape type; in a constant the element type may be `index`."""
        index = self.position
        text = self.next_of(TosaTokenKind.TYPE, "a tensor type")
        shape = _SHAPE.fullmatch(text)
        if shape:
            if len(shape.group(1)) > _LONGEST:
                raise self.error("an extent is too long", index)
            return TosaTensorType(FORMATS["i64"], (int(shape.group(1)),))
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
        return TosaTensorType(FORMATS[ELEMENTS[element]], extents)

    def _check_size(self, extents: tuple[int | None, ...], index: int) -> None:
        if len(extents) > MOST_EXTENTS:
            raise self.error(f"a tensor of rank {len(extents)}", index, (f"up to {MOST_EXTENTS}",))
        count = math.prod(1 if extent is None else extent for extent in extents)
        if count >> LOG2_MOST_ELEMENTS:
            raise self.error(f"a tensor of {count} elements", index, (f"fewer than 2^{LOG2_MOST_ELEMENTS}",))

    def types(self) -> list[TosaTensorType]:
        """Read one type, or a list in parentheses."""
        return self.listed(")", self.type) if self.take("(") else [self.type()]

    def attributes(self) -> dict[str, TosaAttribute]:
        """Read `{name = value, ...}`, the opening brace included."""
        self.expect("{")
        attributes_read: dict[str, TosaAttribute] = {}
        while not self.take("}"):
            if attributes_read:
                self.expect(",")
            index = self.position
            kind = self.kinds[index]
            name = (
                self.next_of(kind, "a name")
                if kind in (TosaTokenKind.WORD, TosaTokenKind.STRING)
                else self.unexpected("a name")
            )
            name = name.strip('"')
            if name in attributes_read:
                raise self.error(f"'{name}' is given twice", index)
            attributes_read[name] = TosaAttribute(self._value() if self.take("=") else True, index)
        return attributes_read

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
        if not self.take("["):
            self.unexpected("a value of an attribute")
        return self.listed("]", self._item)

    def _item(self) -> Any:
        if self.at("["):
            raise self.error("attributes cannot be nested lists")
        return self._value()

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
            raise self.error("dense values cannot be a byte string; write them as numbers", index)
        values = [self._number(part, index) for part in parts]
        extents = tuple(extent or 0 for extent in kind.shape)
        size = math.prod(extents)
        if len(values) not in (1, size):
            raise self.error(f"{len(values)} values, but {size} elements", index)
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
        """Return the codes of numbers; an integer for a float is its bits, as MLIR prints values without decimals."""
        codes = np.empty(len(values), code_dtype(fmt))
        rounded = [position for position, value in enumerate(values) if isinstance(value, float)]
        if rounded and not isinstance(fmt, IntFormat):
            wide, numbers = FORMATS["f64"], np.array([values[position] for position in rounded], np.float64)
            codes[rounded] = convert_codes(numbers.view(np.uint64), wide, fmt, abstract_policy(wide, fmt))
        else:
            rounded = []
        for position in sorted(set(range(len(values))) - set(rounded)):
            codes[position] = self._code(values[position], fmt, index)
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


# The attributes that operators of TOSA have in text: which must be there, which may, and what they are.
#
# RESCALE of TOSA 1.0 takes multiplier, shift and zero points as operands and has five attributes without a default
# (tosa.xml; the TOSA dialect of MLIR). Older text has some of these operands as attributes, `double_round` in place of
# `rounding_mode`, and no signedness. Names with a dialect before a dot say nothing about the operator; MLIR lets them
# stand anywhere, and they are not looked at.

RESCALE = "tosa.rescale"
OPERANDS = ("input", "multiplier", "shift", "input_zp", "output_zp")
"""Operands of RESCALE in order; all but the first may be attributes."""


@dataclass(frozen=True, slots=True)
class _Rule:
    """The legal values of an attribute: a test, and their spelling."""

    accepts: Callable[[Any], bool]
    shown: tuple[str, ...]


def _is_integer(value: Any) -> bool:
    return type(value) is int


def _are_integers(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_is_integer, value))


_MODES = (SINGLE_ROUND, INEXACT_ROUND, DOUBLE_ROUND)
_FLAG = _Rule(lambda value: isinstance(value, bool), ("true", "false"))
_MODE = _Rule(lambda value: value in _MODES, _MODES)
_ZERO_POINT = _Rule(_is_integer, ("0 : i32",))
_VALUES = _Rule(lambda value: isinstance(value, GraphTensor), ("dense<1> : tensor<1xi32>",))
_RULES = {
    "scale32": _FLAG, "per_channel": _FLAG, "double_round": _FLAG, "input_unsigned": _FLAG, "output_unsigned": _FLAG,
    "rounding_mode": _MODE, "input_zp": _ZERO_POINT, "output_zp": _ZERO_POINT,
    "multiplier": _Rule(_are_integers, ("array<i32: 1073741824>",)), "shift": _Rule(_are_integers, ("array<i8: 31>",)),
    "new_shape": _Rule(lambda value: value == [] or _are_integers(value), ("array<i64: 4, 8>",)),
    "values": _VALUES, "value": _VALUES,
}  # fmt: skip


def checked_attributes(
    reader: TosaReader, operator: str, index: int, operands: int, given: Mapping[str, TosaAttribute]
) -> dict[str, Any]:
    """Return the values of an operator's attributes by name; `index` is the position of its name.

    Raises:
        ReadError: an attribute is unknown, missing or of the wrong kind; the error has its position.
    """
    own = {name: attribute for name, attribute in given.items() if "." not in name}
    required, optional = _names(operator, operands, own)
    legal = (*required, *optional)
    for name, attribute in own.items():
        if name not in legal:
            form = f" with {operands} operands" if name in _RULES else ""
            raise reader.error(
                f"{operator} has no attribute '{name}'{form}", attribute.index, legal or ("no attributes",)
            )
        rule = _RULES[name]
        if not rule.accepts(attribute.value):
            shown_value = f"'{attribute.value}'" if isinstance(attribute.value, str | int | float) else "this"
            raise reader.error(
                f"{shown_value} is not a value of {name} of {operator}", attribute.index, _shown(name, rule)
            )
    for name in required:
        if name not in own:
            raise reader.error(f"{operator} needs attribute '{name}'", index, _shown(name, _RULES[name]))
    return {name: own_attribute.value for name, own_attribute in own.items()}


def check_operand_types(
    reader: TosaReader,
    operands: list[tuple[TosaTensorType, int]],
    result: TosaTensorType,
    attributes: Mapping[str, Any],
) -> None:
    """Reject operands of a RESCALE whose element types do not fit the others and `scale32`.

    Raises:
        ReadError: a type does not fit; the error has the operand's position.
    """
    source = operands[0][0].format.name
    wanted = (source, "i32" if attributes["scale32"] else "i16", "i8", source, result.format.name)
    why = {"multiplier": f" with scale32 = {str(attributes['scale32']).lower()}"}
    for name, (kind, index), element in zip(OPERANDS, operands, wanted, strict=False):
        if kind.format.name != element:
            raise reader.error(f"{name} of {kind.format.name}{why.get(name, '')}", index, (element,))


def _names(operator: str, operands: int, given: Mapping[str, TosaAttribute]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the attributes that an operator needs, and those that it may have."""
    if operator == RESCALE:
        flags = ("scale32", "per_channel")
        signs = ("input_unsigned", "output_unsigned")
        if "double_round" in given and "rounding_mode" not in given:
            return (*OPERANDS[operands:], *flags, "double_round"), signs
        return (*OPERANDS[operands:], "scale32", "rounding_mode", "per_channel", *signs), ()
    if operator in ("tosa.const", "tosa.const_shape"):
        return ("value" if "value" in given and "values" not in given else "values",), ()
    if operator == "tosa.reshape" and operands == 1:
        return ("new_shape",), ()
    return (), ("input_unsigned",) if operator == "tosa.cast" else ()


def _shown(name: str, rule: _Rule) -> tuple[str, ...]:
    return tuple(f"{name} = {text}" for text in rule.shown)


OPERATORS = ("tosa.cast", "tosa.rescale", "tosa.identity", "tosa.reshape", "tosa.const", "tosa.const_shape")
"""Supported operators; the constants become values of the graph."""

_CONSTANTS = ("tosa.const", "tosa.const_shape")
_RETURNS = ("return", "func.return")
_OPERANDS = {
    "tosa.cast": (1, 1), "tosa.identity": (1, 1), "tosa.reshape": (1, 2), RESCALE: (1, len(OPERANDS)),
    "tosa.const": (0, 0), "tosa.const_shape": (0, 0),
}  # fmt: skip
"""Fewest and most operands: `rescale` and `reshape` had attributes in place of some."""


def read_tosa(text: str, path: Path, version: str | None = None) -> Graph:
    """Read the only function, or the first one, of a text.

    Raises:
        ReadError: the text is malformed; the error has the position.
        IllegalError: an operator is not supported; the error names it and its position.
    """
    reader = TosaReader(PtoSource(str(path), text))
    in_module = False
    if reader.at("module") or reader.at("builtin.module"):
        reader.position += 1
        if reader.kinds[reader.position] is TosaTokenKind.SYMBOL:
            reader.position += 1
        if reader.take("attributes"):
            reader.attributes()
        reader.expect("{")
        in_module = True
    function = _Function(reader)
    function.read()
    if reader.at("func.func"):
        raise reader.error("a graph must have exactly one function")
    if in_module:
        reader.expect("}")
    if reader.kinds[reader.position] is not TosaTokenKind.END:
        reader.unexpected("the end of the file")
    return Graph(
        file=str(path),
        name=function.name,
        language=GraphLanguage.TOSA,
        spec="tosa",
        version=version or load_specification("tosa").versions.default,
        inputs=tuple(function.inputs),
        constants=function.constants,
        nodes=tuple(function.nodes),
        outputs=tuple(function.outputs),
    )


class _FollowUpError(ReadError):
    """A use of a value whose definition could not be read: an error only because of that one."""


@dataclass
class _Function:
    """The part of a function that has been read; `known` are the types of its values."""

    reader: TosaReader
    name: str = ""
    inputs: list[GraphInput] = field(default_factory=list)
    constants: dict[str, GraphTensor] = field(default_factory=dict)
    nodes: list[GraphNode] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    known: dict[str, TosaTensorType] = field(default_factory=dict)
    errors: ErrorList = field(default_factory=ErrorList)
    forgotten: set[str] = field(default_factory=set)
    """Values whose definition cannot be read."""

    def read(self) -> None:
        """Read from `func.func` to its closing brace.

        Raises:
            ReadError, IllegalError: the first operation that cannot be read; carries the errors of the others.
        """
        reader = self.reader
        reader.expect("func.func")
        if reader.at("private") or reader.at("public"):
            reader.position += 1
        self.name = reader.next_of(TosaTokenKind.SYMBOL, "the name of the function")[1:].strip('"')
        self._arguments()
        declared = self._results()
        if reader.take("attributes"):
            reader.attributes()
        reader.expect("{")
        while not any(reader.at(word) for word in _RETURNS):
            start = reader.position
            try:
                self._operation()
            except CastsimError as error:
                self._leave(start, error)
        self.errors.raise_found()
        self._return(declared)
        reader.expect("}")

    def _leave(self, start: int, error: CastsimError) -> None:
        """Store the error of the operation that begins at a token, and continue at the next one.

        Raises:
            CastsimError: there is no next operation.
        """
        reader = self.reader
        if not isinstance(error, _FollowUpError):
            self.errors.take(error)
        if reader.kinds[start] is TosaTokenKind.VALUE:
            self.forgotten.add(reader.texts[start][1:])
        for index in range(start + 1, len(reader.kinds) - 1):
            defines = reader.kinds[index] is TosaTokenKind.VALUE and reader.texts[index + 1] == "="
            if defines or reader.texts[index] in _RETURNS:
                reader.position = index
                return
        self.errors.raise_found()

    def _arguments(self) -> None:
        self.reader.expect("(")
        self.inputs = self.reader.listed(")", self._argument)

    def _argument(self) -> GraphInput:
        index = self.reader.position
        name = self.reader.next_of(TosaTokenKind.VALUE, "an argument")[1:]
        self.reader.expect(":")
        kind = self._described_type()
        self._define(name, kind, index)
        shape = tuple(f"{name}.{k}" if extent is None else extent for k, extent in enumerate(kind.shape))
        return GraphInput(name, kind.format, shape)

    def _described_type(self) -> TosaTensorType:
        """Read a type, and ignore attributes after it."""
        kind = self.reader.type()
        if self.reader.at("{"):
            self.reader.attributes()
        return kind

    def _results(self) -> list[TosaTensorType]:
        reader = self.reader
        if not reader.take("->"):
            return []
        if not reader.take("("):
            return [reader.type()]
        return reader.listed(")", self._described_type)

    def _operation(self) -> None:
        reader = self.reader
        if reader.kinds[reader.position] is not TosaTokenKind.VALUE:
            reader.unexpected("an operation with a result, or return")
        result_index = reader.position
        result = reader.next_of(TosaTokenKind.VALUE, "a result")[1:]
        reader.expect("=")
        name_index = reader.position
        quoted = reader.kinds[name_index] is TosaTokenKind.STRING
        name = reader.next_of(TosaTokenKind.STRING if quoted else TosaTokenKind.WORD, "an operator").strip('"')
        span = reader.span(name_index)
        if name not in OPERATORS:
            raise IllegalError(f"operator {name} is not supported", span=span, legal=OPERATORS)
        operands = self._operands()
        given: dict[str, TosaAttribute] = {}
        if reader.take("<"):
            given |= reader.attributes()
            reader.expect(">")
        if reader.at("{"):
            for key, attribute in reader.attributes().items():
                if key in given:
                    raise reader.error(f"'{key}' is given twice", attribute.index)
                given[key] = attribute
        kind = self._signature([operand for operand, _ in operands])
        self._check_count(name, operands, span)
        attributes = checked_attributes(reader, name, name_index, len(operands), given)
        if name == RESCALE:
            check_operand_types(reader, [(self.known[operand], index) for operand, index in operands], kind, attributes)
        if name in _CONSTANTS:
            self._constant(result, kind, attributes, span)
        else:
            self._node(name, result, kind, [operand for operand, _ in operands], attributes, span)
        self._define(result, kind, result_index)

    def _check_count(self, name: str, operands: list[tuple[str, int]], span: Span) -> None:
        fewest, most = _OPERANDS[name]
        if not fewest <= len(operands) <= most:
            legal = f"{fewest} to {most}" if fewest < most else str(fewest)
            raise ReadError(f"{name} has {len(operands)} operands", span=span, legal=(legal,))

    def _operands(self) -> list[tuple[str, int]]:
        """Read names of values, each with the index of its token."""
        reader = self.reader
        bracketed = reader.take("(")
        operands: list[tuple[str, int]] = []
        while reader.kinds[reader.position] is TosaTokenKind.VALUE or (operands and reader.at(",")):
            if operands:
                reader.expect(",")
            index = reader.position
            name = reader.next_of(TosaTokenKind.VALUE, "an operand")[1:]
            if name in self.forgotten:
                raise _FollowUpError(f"the definition of %{name} cannot be read")
            if name not in self.known:
                raise reader.error(f"%{name} is not defined", index, [f"%{other}" for other in self.known])
            operands.append((name, index))
        if bracketed:
            reader.expect(")")
        return operands

    def _signature(self, operands: list[str]) -> TosaTensorType:
        """Read `: (types) -> type` and return the result's; constants may give the result alone."""
        reader = self.reader
        reader.expect(":")
        index = reader.position
        types = reader.types()
        if not reader.take("->"):
            if operands or len(types) != 1:
                reader.unexpected("'->' and the type of the result")
            return types[0]
        if len(types) != len(operands):
            raise reader.error(f"{len(types)} types, but {len(operands)} operands", index)
        for name, kind in zip(operands, types, strict=True):
            if kind.format != self.known[name].format or not _agree(kind.shape, self.known[name].shape):
                raise reader.error(f"%{name} has a different type where it is defined", index)
        results = reader.types()
        if len(results) != 1:
            raise reader.error(f"{len(results)} results; expected one", index)
        return results[0]

    def _constant(self, name: str, kind: TosaTensorType, attributes: dict[str, Any], span: Span) -> None:
        values: GraphTensor = next(iter(attributes.values()))
        if not _agree(values.shape, kind.shape):
            raise ReadError("the values and the result have different shapes", span=span)
        self.constants[name] = values

    def _node(
        self, name: str, result: str, kind: TosaTensorType, operands: list[str], attributes: dict[str, Any], span: Span
    ) -> None:
        same_shape = name in ("tosa.cast", "tosa.rescale", "tosa.identity")
        if same_shape and not _agree(self.known[operands[0]].shape, kind.shape):
            raise ReadError("the result and the operand have different shapes", span=span)
        if name in ("tosa.identity", "tosa.reshape") and self.known[operands[0]].format != kind.format:
            raise ReadError("the result and the operand have different element types", span=span)
        self.nodes.append(
            GraphNode(f"%{result}", name, tuple(operands), (result,), attributes, span, ((kind.format, kind.shape),))
        )

    def _return(self, declared: list[TosaTensorType]) -> None:
        reader = self.reader
        index = reader.position
        reader.position += 1
        self.outputs = [name for name, _ in self._operands()]
        if self.outputs:
            reader.expect(":")
            for output_number in range(len(self.outputs)):
                if output_number:
                    reader.expect(",")
                reader.type()
        if len(declared) != len(self.outputs):
            raise reader.error(f"{len(self.outputs)} results returned, but {len(declared)} declared", index)
        for name, kind in zip(self.outputs, declared, strict=True):
            if kind.format != self.known[name].format or not _agree(kind.shape, self.known[name].shape):
                raise reader.error(f"%{name} does not have the type that the function declares", index)

    def _define(self, name: str, kind: TosaTensorType, index: int) -> None:
        if name in self.known:
            raise self.reader.error(f"%{name} is defined already", index)
        self.known[name] = kind


def _agree(left: tuple[int | None, ...], other: tuple[int | None, ...]) -> bool:
    """Return whether two shapes may be the same; None agrees with every extent."""
    return len(left) == len(other) and all(None in (a, b) or a == b for a, b in zip(left, other, strict=True))
