"""Scalar expressions of TIR: numbers where they are known, else `arith` operations.

Whole numbers are computed as `index`, of 64 bits; unsigned results are cut to their width, signed ones of 32 bits are
assumed not to overflow. Truth values are `i1`.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partialmethod
from importlib import import_module
from typing import Any

import ml_dtypes
import numpy as np

from castsim.isa.dataclass import dataclass, field
from castsim.isa.errors import IllegalError

# The text of a micro program while it is written: values and their types, constants, regions, places of statements.

INDEX = "index"


@dataclass(frozen=True, slots=True)
class TextValue:
    """A value of the text: its name with the percent sign, and its type as written there."""

    name: str
    kind: str

    @property
    def element(self) -> str:
        """Element type of a register or of a pointer."""
        inner = self.kind[self.kind.index("<") + 1 : -1]
        return inner.partition("x")[2] if self.kind.startswith("!pto.vreg") else inner.rpartition(", ")[0]

    @property
    def bits(self) -> int:
        """Width of a lane; for a mask the width of its type."""
        if self.kind.startswith("!pto.mask"):
            return int(self.kind[len("!pto.mask<b") : -1])
        return bits_of(self.element)


Number = int | bool | TextValue
"""The value of a scalar expression: a known number, or a value of type index, i1 or floating-point."""

_NUMPY: Mapping[str, Any] = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
_WIDTHS = {"f32": 32, "f16": 16, "bf16": 16, "f8E4M3FN": 8, "f8E5M2": 8, "!pto.f4E2M1x2": 8}


def bits_of(element: str) -> int:
    """Return the width of an element type."""
    return _WIDTHS[element] if element in _WIDTHS else int(element.lstrip("ui"))


def register(element: str) -> str:
    """Return the type of a register of this element."""
    return f"!pto.vreg<{2048 // bits_of(element)}x{element}>"


def mask(bits: int) -> str:
    """Return the type of a mask."""
    return f"!pto.mask<b{min(bits, 32)}>"


def pointer(element: str, space: str) -> str:
    """Return the type of a pointer into `ub` or `gm`."""
    return f"!pto.ptr<{element}, {space}>"


Place = str | None
"""`FILE:LINE` of the Python source, where it is known."""


@dataclass(slots=True)
class StatementRegion:
    """Lines of a region, each with its place, and the known values of pure operations in it."""

    lines: list[tuple[str, Place]] = field(default_factory=list)
    known: dict[str, TextValue] = field(default_factory=dict)


@dataclass(slots=True)
class FunctionText:
    """The body of a function: output goes to the innermost region; constants are at its head."""

    place: Place = None
    near: Place = None
    regions: list[StatementRegion] = field(default_factory=lambda: [StatementRegion()])
    constants: dict[tuple[str, str], TextValue] = field(default_factory=dict)
    count: int = 0

    def at(self, location: object) -> None:
        """Set the current place; a statement without a place is near the last one with a place."""
        self.near, self.place = self.place or self.near, None if location is None else str(location)

    @property
    def where(self) -> Place:
        """The place in the form of messages."""
        return self.place or (self.near and f"near {self.near}")

    def name(self, letter: str = "v") -> str:
        """Return an unused name."""
        self.count += 1
        return f"%{letter}{self.count}"

    def line(self, text: str) -> None:
        """Emit a line."""
        self.regions[-1].lines.append((text, self.place))

    def put(self, text: str, *kinds: str) -> tuple[TextValue, ...]:
        """Emit an operation with results of these types."""
        results = tuple(TextValue(self.name(), kind) for kind in kinds)
        self.line(f"{', '.join(result.name for result in results)} = {text}")
        return results

    def one(self, text: str, kind: str) -> TextValue:
        """Emit an operation with one result."""
        return self.put(text, kind)[0]

    def once(self, text: str, kind: str) -> TextValue:
        """Return the result of a pure operation, which is emitted if no enclosing region has it."""
        for region in self.regions:
            if text in region.known:
                return region.known[text]
        self.regions[-1].known[text] = value = self.one(text, kind)
        return value

    def constant(self, value: float, kind: str) -> TextValue:
        """Return a constant; floats are written by their bits."""
        if kind in _NUMPY:
            bits = bits_of(kind)
            word = f"0x{int(np.asarray(value, _NUMPY[kind]).view(f'u{bits // 8}')):0{bits // 4}X}"
        else:
            word = str(value).lower() if kind == "i1" else str(int(value))
        name = f"%c{'m' if word[0] == '-' else ''}{word.lstrip('-')}_{kind}"
        return self.constants.setdefault((word, kind), TextValue(name, kind))

    def named(self, value: Number) -> TextValue:
        """Return a number as a value."""
        if isinstance(value, TextValue):
            return value
        return self.constant(value, "i1" if isinstance(value, bool) else INDEX)

    @contextmanager
    def region(self) -> Iterator[StatementRegion]:
        """Emit the following output to a separate region, which is returned."""
        self.regions.append(StatementRegion())
        try:
            yield self.regions[-1]
        finally:
            self.regions.pop()

    def enclose(self, head: str, region: StatementRegion, end: str = "}") -> None:
        """Emit a region between a head and an end."""
        self.line(head)
        self.regions[-1].lines += [(f"  {line}", location) for line, location in region.lines]
        self.line(end)

    def choose(self, head: str, yes: StatementRegion, no: StatementRegion) -> None:
        """Emit two regions, of which the head chooses one; an empty second one is omitted."""
        self.enclose(head, yes, "} else {" if no.lines else "}")
        if no.lines:
            self.regions[-1].lines.pop()
            self.enclose("} else {", no)

    def heads(self) -> list[str]:
        """Return the lines of the constants."""
        return [f"{value.name} = arith.constant {word} : {kind}" for (word, kind), value in self.constants.items()]


def names(values: Sequence[TextValue]) -> str:
    """Return values as operands."""
    return ", ".join(value.name for value in values)


def kinds(values: Sequence[TextValue]) -> str:
    """Return the types of values."""
    return ", ".join(value.kind for value in values)


ELEMENTS = {
    "float32": "f32", "float16": "f16", "bfloat16": "bf16", "float8_e4m3": "f8E4M3FN", "float8_e4m3fn": "f8E4M3FN",
    "float8_e5m2": "f8E5M2", "float8_e8m0fnu": "ui8", "float4_e2m1fn": "!pto.f4E2M1x2",
    "float4_e2m1fnx2": "!pto.f4E2M1x2", "bool": "i8",
    **{f"{sign}int{bits}": f"{'ui' if sign else 'i'}{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}  # fmt: skip
"""Element types of `.pto` by those of TIR."""

_INTEGERS: Mapping[str, tuple[str, Callable[[int, int], int]]] = {
    "Add": ("addi", lambda a, b: a + b), "Sub": ("subi", lambda a, b: a - b), "Mul": ("muli", lambda a, b: a * b),
    "FloorDiv": ("floordivsi", lambda a, b: a // b), "Min": ("minsi", min), "Max": ("maxsi", max),
    "Div": ("divsi", lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)),
    "Mod": ("remsi", lambda a, b: abs(a) % abs(b) * (-1 if a < 0 else 1)), "FloorMod": ("", lambda a, b: a % b),
    "bitwise_and": ("andi", lambda a, b: a & b), "bitwise_or": ("ori", lambda a, b: a | b),
    "bitwise_xor": ("xori", lambda a, b: a ^ b), "shift_left": ("shli", lambda a, b: a << b),
    "shift_right": ("shrsi", lambda a, b: a >> b),
}  # fmt: skip
_FLOATS = {"Add": "addf", "Sub": "subf", "Mul": "mulf", "Div": "divf", "Min": "minimumf", "Max": "maximumf"}
_NEUTRAL = {"Add": 0, "Sub": 0, "Mul": 1, "FloorDiv": 1, "Div": 1}
"""The second operand that leaves the first as it is."""
_FUNCTIONS = {
    "sqrt": "sqrt", "fabs": "absf", "floor": "floor", "ceil": "ceil", "trunc": "trunc", "round": "round",
    "nearbyint": "roundeven", "rint": "roundeven", "fma": "fma", "copysign": "copysign", "isnan": "isnan",
    "isinf": "isinf", "isfinite": "isfinite",
}  # fmt: skip
"""Functions of scalars that are exact."""
_LANES = re.compile(r"(?<!fn)x\d+$")
"""The number of lanes that ends the type of a vector of scalars; elements of two values end so too."""
_COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "EQ": operator.eq, "NE": operator.ne, "LT": operator.lt, "LE": operator.le, "GT": operator.gt, "GE": operator.ge
}  # fmt: skip


def refused(
    what: str, location: str | None, why: str = "is not supported", legal: tuple[str, ...] = ()
) -> IllegalError:
    """Return the error for a construct, with its line of the Python source if that is known."""
    return IllegalError(f"{location + ': ' if location else ''}{what} {why}", legal=legal)


def name_of(call: Any) -> str:
    """Return the name of a call's function."""
    return str(getattr(call.op, "name", call.op))


def nodes_of(*trees: Any) -> list[Any]:
    """Return every node of statements and expressions."""
    nodes: list[Any] = []
    for tree in trees:
        import_module("tvm.tirx.stmt_functor").post_order_visit(tree, nodes.append)
    return nodes


def element_of(dtype: Any) -> str:
    """Return the element type of a register type or of an element type."""
    word = str(dtype)
    return ELEMENTS.get(word) or ELEMENTS[word.rpartition("x")[0]]


def _type_of(e: Any) -> str:
    """Return the type of a scalar, or of a lane of a vector of them."""
    return _LANES.sub("", str(e.dtype))


def _is_float(dtype: str) -> bool:
    return dtype.startswith(("float", "bfloat"))


class ScalarTranslator:
    """Expressions, with the values of variables and of mutable scalars and registers."""

    text: FunctionText
    lane: int = 0
    """The selected lane of a vector of scalars."""
    variables: dict[Any, Any]
    cells: dict[tuple[Any, int], Any]

    def number(self, e: Any) -> Number:
        """Return the value of a scalar expression.

        Raises:
            IllegalError: it has no counterpart.
        """
        kind = type(e).__name__
        if kind in _INTEGERS:
            return self.binary(kind, self.number(e.a), self.number(e.b), _type_of(e))
        if kind in _COMPARISONS:
            return self.compared(kind, self.number(e.a), self.number(e.b), _type_of(e.a))
        handler: Callable[[Any], Number] | None = getattr(self, f"_of_{kind.lower()}", None)
        if handler is None:
            raise refused(kind, self.text.where)
        return handler(e)

    def _of_intimm(self, e: Any) -> Number:
        return bool(e.value) if str(e.dtype) == "bool" else int(e.value)

    def _of_floatimm(self, e: Any) -> Number:
        return self.text.constant(float(e.value), element_of(e.dtype))

    def _of_var(self, e: Any) -> Number:
        if e not in self.variables:
            raise refused(f"scalar {e.name}", self.text.where, "needs a value", (f"--arg {e.name}=32",))
        value: Number | float = self.variables[e]
        return self.text.constant(value, element_of(e.dtype)) if isinstance(value, float) else value

    def _of_and(self, e: Any, stops: bool = False) -> Number:
        a = self.number(e.a)
        if a is stops:
            return a
        b = self.number(e.b)
        for fixed, other in ((a, b), (b, a)):
            if isinstance(fixed, bool):
                return fixed if fixed == stops else other
        return self.pure(f"arith.{'ori' if stops else 'andi'}", self.text.named(a), self.text.named(b))

    _of_or = partialmethod(_of_and, stops=True)

    def _of_not(self, e: Any) -> Number:
        value = self.number(e.a)
        return self.pure("arith.xori", value, self.text.named(True)) if isinstance(value, TextValue) else not value

    def _of_select(self, e: Any) -> Number:
        return self._selected(e.condition, e.true_value, e.false_value)

    def _of_cast(self, e: Any) -> Number:
        return self._converted(self.number(e.value), _type_of(e.value), _type_of(e))

    def _of_ramp(self, e: Any) -> Number:
        step = self.binary("Mul", self.number(e.stride), self.lane, "int64")
        return self.binary("Add", self.number(e.base), step, "int64")

    def _of_broadcast(self, e: Any) -> Number:
        return self.number(e.value)

    def _of_bufferload(self, e: Any) -> Number:
        number: Number = self.loaded(e)
        return number

    def loaded(self, e: Any) -> Any:
        """Return a mutable scalar or register, or an element that the scalar unit loads."""
        raise NotImplementedError

    def loads(self, e: Any) -> bool:
        """Return whether the scalar unit loads for an expression."""
        raise NotImplementedError

    def _of_call(self, e: Any) -> Number:
        dtype, name = str(e.dtype), name_of(e).removeprefix("tirx.").removeprefix("tl.")
        if name == "if_then_else":
            return self._selected(*e.args)
        if name == "infinity":
            return self.text.constant(float("inf"), element_of(dtype))
        if (
            name not in _INTEGERS
            and name not in _FUNCTIONS
            and name not in ("bitwise_not", "clamp", "likely", "reinterpret")
        ):
            raise refused(name, self.text.where)
        values = [self.number(argument) for argument in e.args]
        if name in _INTEGERS:
            return self.binary(name, values[0], values[1], dtype)
        if name == "bitwise_not":
            return self.binary("bitwise_xor", values[0], -1, dtype)
        if name == "clamp":
            return self.binary("Min", self.binary("Max", values[0], values[1], dtype), values[2], dtype)
        if name == "reinterpret":
            return self._reinterpreted(values[0], str(e.args[0].dtype), dtype)
        if name == "likely":
            return values[0]
        given = [self.text.named(value) for value in values]
        kind = "i1" if name.startswith("is") else given[0].kind
        return self.text.once(f"math.{_FUNCTIONS[name]} {names(given)} : {given[0].kind}", kind)

    def pure(self, operation: str, a: TextValue, b: TextValue) -> TextValue:
        """Emit an operation of two operands of one type, which is that of its result."""
        return self.text.once(f"{operation} {a.name}, {b.name} : {a.kind}", a.kind)

    def binary(self, kind: str, a: Number, b: Number, dtype: str) -> Number:
        """Return the result of an operation on two numbers."""
        if _is_float(dtype):
            return self.pure(f"arith.{_FLOATS[kind]}", self.text.named(a), self.text.named(b))
        operation, fold = _INTEGERS[kind]
        if not isinstance(a, TextValue) and not isinstance(b, TextValue):
            return self._cut(fold(a, b), dtype)
        if b == _NEUTRAL.get(kind, a):
            return a
        if kind in ("Add", "Mul") and a == _NEUTRAL[kind]:
            return b
        if kind == "Mul" and 0 in (a, b):
            return 0
        if kind == "FloorMod":
            whole = self.binary("Mul", self.binary("FloorDiv", a, b, "int64"), b, "int64")
            return self.binary("Sub", a, whole, dtype)
        return self._cut(self.pure(f"arith.{operation}", self.text.named(a), self.text.named(b)), dtype)

    def compared(self, kind: str, a: Number, b: Number, dtype: str) -> Number:
        """Return the result of a comparison of two numbers."""
        if not isinstance(a, TextValue) and not isinstance(b, TextValue):
            return _COMPARISONS[kind](a, b)
        order, plain = kind.lower(), kind in ("EQ", "NE")
        word = f"cmpf {'u' if kind == 'NE' else 'o'}" if _is_float(dtype) else f"cmpi {'' if plain else 's'}"
        first, second = self.text.named(a), self.text.named(b)
        return self.text.once(f"arith.{word}{order}, {first.name}, {second.name} : {first.kind}", "i1")

    def _selected(self, condition: Any, yes: Any, no: Any) -> Number:
        chosen = self.number(condition)
        if not isinstance(chosen, TextValue):
            return self.number(yes if chosen else no)
        if not self.loads(yes) and not self.loads(no):
            a, b = self.text.named(self.number(yes)), self.text.named(self.number(no))
            return self.text.once(f"arith.select {chosen.name}, {a.name}, {b.name} : {a.kind}", a.kind)
        regions, ends = [], []  # an element may lie outside where the condition does not hold
        for side in (yes, no):
            with self.text.region() as region:
                ends.append(self.text.named(self.number(side)))
            region.lines.append((f"scf.yield {ends[-1].name} : {ends[-1].kind}", None))
            regions.append(region)
        result = TextValue(self.text.name(), ends[0].kind)
        self.text.choose(f"{result.name} = scf.if {chosen.name} -> ({result.kind}) {{", *regions)
        return result

    def _cut(self, value: Number, dtype: str, *, signed: bool = False) -> Number:
        """Return a whole number cut to the range of its type; signed ones are assumed in range unless `signed`."""
        if dtype == "bool" or dtype.endswith("64") or not (dtype.startswith("uint") or signed):
            return value
        bits = int(dtype.lstrip("uint"))
        if not isinstance(value, TextValue):
            return _low_bits(value, dtype)
        if dtype[0] == "u":
            return self.pure("arith.andi", value, self.text.constant((1 << bits) - 1, INDEX))
        return self._cast(value, "index_cast", f"i{bits}", "index_cast", INDEX)

    def _cast(self, value: TextValue, *steps: str) -> TextValue:
        """Convert by operations, each followed by its result type."""
        for operation, kind in zip(steps[::2], steps[1::2], strict=True):
            value = self.text.once(f"arith.{operation} {value.name} : {value.kind} to {kind}", kind)
        return value

    def _converted(self, value: Number, source: str, dtype: str) -> Number:
        """Return a scalar as one of another type."""
        if source == dtype:
            return value
        if _is_float(dtype):
            kind = element_of(dtype)
            if _is_float(source):
                return self._cast(self.text.named(value), "extf" if kind == "f32" else "truncf", kind)
            if not isinstance(value, TextValue):
                return self.text.constant(float(value), kind)
            widening = {"i1": ("extui", "i64"), "i64": ()}.get(value.kind, ("index_cast", "i64"))
            return self._cast(value, *widening, "sitofp", kind)
        if _is_float(source):
            return self._cut(self._cast(self.text.named(value), "fptosi", "i64", "index_cast", INDEX), dtype)
        if dtype == "bool":
            return self.compared("NE", value, 0, source)
        if source == "bool":
            if not isinstance(value, TextValue):
                return int(value)
            return self._cast(value, "extui", "i64", "index_cast", INDEX)
        narrower = int(dtype.lstrip("uint")) < int(source.lstrip("uint"))
        return self._cut(value, dtype, signed=narrower or source[0] == "u" or dtype[0] == "u")

    def _reinterpreted(self, value: Number, source: str, dtype: str) -> Number:
        if _is_float(source) == _is_float(dtype):
            return self._cut(value, dtype, signed=True)
        if _is_float(dtype):
            return self._cast(self.as_scalar(value, f"i{dtype.lstrip('bfloat')}"), "bitcast", element_of(dtype))
        whole = self._cast(self.text.named(value), "bitcast", f"i{source.lstrip('bfloat')}", "index_cast", INDEX)
        return self._cut(whole, dtype)

    def as_scalar(self, value: Number, kind: str) -> TextValue:
        """Return a scalar of an element type, as an operand of a vector operation."""
        plain = kind.lstrip("u") if kind[0] in "ui" else kind
        if not isinstance(value, TextValue):
            whole = plain[0] == "i" and plain != INDEX
            return self.text.constant(_low_bits(int(value), f"int{plain[1:]}") if whole else value, plain)
        if value.kind == plain:
            return value
        if value.kind == INDEX:
            return self._cast(value, "index_cast", *((plain,) if plain[0] == "i" else ("i64", "sitofp", plain)))
        if plain in ("f16", "bf16") and value.kind == "f32":
            return self._cast(value, "truncf", plain)
        raise refused(f"a scalar of type {value.kind} for lanes of {kind}", self.text.where)

    def scalar_load(self, base: TextValue, offset: Number, dtype: str) -> Number:
        """Return an element of memory, loaded by the scalar unit."""
        element = element_of(dtype)
        plain = element.lstrip("u")
        at, offset = self.pointed(base, plain, base.kind.rpartition(", ")[2][:-1]), self.text.named(offset)
        loaded = self.text.one(f"pto.load_scalar {at.name}[{offset.name}] : {at.kind} -> {plain}", plain)
        if plain[0] != "i":
            return loaded
        return self._cast(loaded, "index_castui" if element[0] == "u" else "index_cast", INDEX)

    def pointed(self, base: TextValue, element: str, space: str) -> TextValue:
        """Return a pointer with another element type."""
        kind = pointer(element, space)
        if base.kind == kind:
            return base
        return self.text.once(f"pto.castptr {base.name} : {base.kind} -> {kind}", kind)


def _low_bits(value: int, dtype: str) -> int:
    """Return the low bits of a known number, as a number of its type."""
    bits = int(dtype.lstrip("uint"))
    low = value & ((1 << bits) - 1)
    return low - (1 << bits) if dtype[0] == "i" and low >> (bits - 1) else low
