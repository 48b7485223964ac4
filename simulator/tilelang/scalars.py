"""Scalar expressions of TIR: numbers where they are known, else `arith` operations.

Whole numbers are computed as `index`, of 64 bits; unsigned results are cut to their width, signed ones of 32 bits are
taken not to overflow. Truth values are `i1`.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

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
        """Width of a lane; of a mask the one that its type names."""
        if self.kind.startswith("!pto.mask"):
            return int(self.kind[len("!pto.mask<b") : -1])
        return bits_of(self.element)


Number = int | bool | TextValue
"""What a scalar expression comes to: a number that is known, or a value of type index, i1 or a float's."""

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
    """Lines of a region, each with its place, and the values of pure operations that are known in it."""

    lines: list[tuple[str, Place]] = field(default_factory=list)
    known: dict[str, TextValue] = field(default_factory=dict)


@dataclass(slots=True)
class FunctionText:
    """The body of a function: what is put goes into the innermost region; constants stand at its head."""

    place: Place = None
    near: Place = None
    regions: list[StatementRegion] = field(default_factory=lambda: [StatementRegion()])
    constants: dict[tuple[str, str], TextValue] = field(default_factory=dict)
    count: int = 0

    def at(self, place: object) -> None:
        """Go on at a place; what has none of its own is near the last that had one."""
        self.near, self.place = self.place or self.near, None if place is None else str(place)

    @property
    def where(self) -> Place:
        """The place, as messages say it."""
        return self.place or (self.near and f"near {self.near}")

    def name(self, letter: str = "v") -> str:
        """Return a name that is not in use."""
        self.count += 1
        return f"%{letter}{self.count}"

    def line(self, text: str) -> None:
        """Put a line."""
        self.regions[-1].lines.append((text, self.place))

    def put(self, text: str, *kinds: str) -> tuple[TextValue, ...]:
        """Put an operation with results of these types."""
        results = tuple(TextValue(self.name(), kind) for kind in kinds)
        self.line(f"{', '.join(each.name for each in results)} = {text}")
        return results

    def one(self, text: str, kind: str) -> TextValue:
        """Put an operation with one result."""
        return self.put(text, kind)[0]

    def once(self, text: str, kind: str) -> TextValue:
        """Return the result of a pure operation, which is put where none of the regions around has it."""
        for region in self.regions:
            if text in region.known:
                return region.known[text]
        self.regions[-1].known[text] = found = self.one(text, kind)
        return found

    def constant(self, value: float, kind: str) -> TextValue:
        """Return a constant; floats are written by their bits."""
        if kind == "f32":
            word = f"0x{struct.unpack('<I', struct.pack('<f', value))[0]:08X}"
        elif kind in ("f16", "bf16"):
            whole = struct.pack("<e", value) if kind == "f16" else _bf16(value)
            word = f"0x{struct.unpack('<H', whole)[0]:04X}"
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
        """Put what follows into a region of its own, which is handed back."""
        self.regions.append(StatementRegion())
        try:
            yield self.regions[-1]
        finally:
            self.regions.pop()

    def enclose(self, head: str, region: StatementRegion, end: str = "}") -> None:
        """Put a region between a head and an end."""
        self.line(head)
        self.regions[-1].lines += [(f"  {line}", place) for line, place in region.lines]
        self.line(end)

    def choose(self, head: str, yes: StatementRegion, no: StatementRegion) -> None:
        """Put two regions, of which the head chooses one; the second is left out if it is empty."""
        self.enclose(head, yes, "} else {" if no.lines else "}")
        if no.lines:
            self.regions[-1].lines.pop()
            self.enclose("} else {", no)

    def heads(self) -> list[str]:
        """Return the lines of the constants."""
        return [f"{value.name} = arith.constant {word} : {kind}" for (word, kind), value in self.constants.items()]


def _bf16(value: float) -> bytes:
    whole = struct.unpack("<I", struct.pack("<f", value))[0]
    return struct.pack("<H", (whole + 0x7FFF + (whole >> 16 & 1)) >> 16 & 0xFFFF)


def names(values: Sequence[TextValue]) -> str:
    """Return values as operands."""
    return ", ".join(each.name for each in values)


def kinds(values: Sequence[TextValue]) -> str:
    """Return the types of values."""
    return ", ".join(each.kind for each in values)


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
_FUNCTIONS = {
    "sqrt": "sqrt", "fabs": "absf", "floor": "floor", "ceil": "ceil", "trunc": "trunc", "round": "round",
    "nearbyint": "roundeven", "rint": "roundeven", "fma": "fma", "copysign": "copysign", "isnan": "isnan",
    "isinf": "isinf", "isfinite": "isfinite",
}  # fmt: skip
"""Functions of scalars that are exact."""
_LANES = re.compile(r"(?<!fn)x\d+$")
"""The number of lanes that ends the type of a vector of scalars; elements of two values end so too."""
_ORDERS = {"EQ": "eq", "NE": "ne", "LT": "lt", "LE": "le", "GT": "gt", "GE": "ge"}
_COMPARISONS = {
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
}  # fmt: skip


def refused(what: str, place: str | None, why: str = "is not supported", legal: tuple[str, ...] = ()) -> IllegalError:
    """Return the refusal of a construct, with its line of the Python source where that is known."""
    return IllegalError(f"{place + ': ' if place else ''}{what} {why}", legal=legal)


def name_of(call: Any) -> str:
    """Return the name of what a call calls."""
    return str(getattr(call.op, "name", call.op))


def element_of(dtype: Any) -> str:
    """Return the element type of a register's or an element's type."""
    word = str(dtype)
    return ELEMENTS.get(word) or ELEMENTS[word.rpartition("x")[0]]


class ScalarTranslator:
    """Expressions, with the values of variables and of mutable scalars and registers."""

    text: FunctionText
    lane: int = 0
    """Which lane of a vector of scalars is followed."""
    variables: dict[Any, Any]
    cells: dict[tuple[Any, int], Any]

    def number(self, e: Any) -> Number:
        """Return what a scalar expression comes to.

        Raises:
            IllegalError: it has no counterpart.
        """
        kind, dtype = type(e).__name__, _LANES.sub("", str(e.dtype))
        if kind == "IntImm":
            return bool(e.value) if dtype == "bool" else int(e.value)
        if kind == "FloatImm":
            return self.text.constant(float(e.value), element_of(dtype))
        if kind in _INTEGERS:
            return self._binary(kind, self.number(e.a), self.number(e.b), dtype)
        if kind in _ORDERS:
            return self._compared(_ORDERS[kind], self.number(e.a), self.number(e.b), _LANES.sub("", str(e.a.dtype)))
        handler: Callable[[Any], Number] | None = getattr(self, f"_of_{kind.lower()}", None)
        if handler is None:
            raise refused(kind, self.text.where)
        return handler(e)

    def _of_var(self, e: Any) -> Number:
        if e not in self.variables:
            raise refused(f"scalar {e.name}", self.text.where, "needs a value", (f"--arg {e.name}=32",))
        found: Number | float = self.variables[e]
        return self.text.constant(found, element_of(e.dtype)) if isinstance(found, float) else found

    def _of_and(self, e: Any) -> Number:
        return self._logical(e, stops=False)

    def _of_or(self, e: Any) -> Number:
        return self._logical(e, stops=True)

    def _of_not(self, e: Any) -> Number:
        value = self.number(e.a)
        return self._pure("arith.xori", value, self.text.named(True)) if isinstance(value, TextValue) else not value

    def _of_select(self, e: Any) -> Number:
        return self._selected(e.condition, e.true_value, e.false_value)

    def _of_cast(self, e: Any) -> Number:
        return self.converted(self.number(e.value), *(_LANES.sub("", str(each.dtype)) for each in (e.value, e)))

    def _of_ramp(self, e: Any) -> Number:
        step = self._binary("Mul", self.number(e.stride), self.lane, "int64")
        return self._binary("Add", self.number(e.base), step, "int64")

    def _of_broadcast(self, e: Any) -> Number:
        return self.number(e.value)

    def _of_bufferload(self, e: Any) -> Number:
        found: Number = self.loaded(e)
        return found

    def loaded(self, e: Any) -> Any:
        """Return a mutable scalar or register, or an element that the scalar unit loads."""
        raise NotImplementedError

    def _of_call(self, e: Any) -> Number:
        dtype, name = str(e.dtype), name_of(e).removeprefix("tirx.").removeprefix("tl.")
        if name in _INTEGERS:
            return self._binary(name, self.number(e.args[0]), self.number(e.args[1]), dtype)
        if name == "bitwise_not":
            return self._binary("bitwise_xor", self.number(e.args[0]), -1, dtype)
        if name == "clamp":
            value, low, high = (self.number(each) for each in e.args)
            return self._binary("Min", self._binary("Max", value, low, dtype), high, dtype)
        if name == "if_then_else":
            return self._selected(*e.args)
        if name == "likely":
            return self.number(e.args[0])
        if name == "reinterpret":
            return self._reinterpreted(self.number(e.args[0]), str(e.args[0].dtype), dtype)
        if name == "infinity":
            return self.text.constant(float("inf"), element_of(dtype))
        if name in _FUNCTIONS:
            values = [self.text.named(self.number(each)) for each in e.args]
            kind = "i1" if name.startswith("is") else values[0].kind
            return self.text.once(f"math.{_FUNCTIONS[name]} {names(values)} : {values[0].kind}", kind)
        raise refused(name, self.text.where)

    def _pure(self, operation: str, a: TextValue, b: TextValue) -> TextValue:
        return self.text.once(f"{operation} {a.name}, {b.name} : {a.kind}", a.kind)

    def _binary(self, kind: str, a: Number, b: Number, dtype: str) -> Number:
        if dtype.startswith(("float", "bfloat")):
            return self._pure(f"arith.{_FLOATS[kind]}", self.text.named(a), self.text.named(b))
        operation, fold = _INTEGERS[kind]
        if not isinstance(a, TextValue) and not isinstance(b, TextValue):
            return self.cut(fold(a, b), dtype)
        if (kind in ("Add", "Sub") and b == 0) or (kind in ("Mul", "FloorDiv", "Div") and b == 1):
            return a
        if (kind == "Add" and a == 0) or (kind == "Mul" and a == 1):
            return b
        if kind == "Mul" and 0 in (a, b):
            return 0
        if kind == "FloorMod":
            whole = self._binary("Mul", self._binary("FloorDiv", a, b, "int64"), b, "int64")
            return self._binary("Sub", a, whole, dtype)
        return self.cut(self._pure(f"arith.{operation}", self.text.named(a), self.text.named(b)), dtype)

    def _compared(self, order: str, a: Number, b: Number, dtype: str) -> Number:
        if not isinstance(a, TextValue) and not isinstance(b, TextValue):
            return bool(_COMPARISONS[order](a, b))
        first, second = self.text.named(a), self.text.named(b)
        if dtype.startswith(("float", "bfloat")):
            word = f"arith.cmpf {'u' if order == 'ne' else 'o'}{order}"
        else:
            word = f"arith.cmpi {order if order in ('eq', 'ne') else 's' + order}"
        return self.text.once(f"{word}, {first.name}, {second.name} : {first.kind}", "i1")

    def _logical(self, e: Any, *, stops: bool) -> Number:
        a = self.number(e.a)
        if isinstance(a, bool):
            return a if a == stops else self.number(e.b)
        b = self.number(e.b)
        if isinstance(b, bool):
            return b if b == stops else a
        return self._pure(f"arith.{'ori' if stops else 'andi'}", self.text.named(a), self.text.named(b))

    def _selected(self, condition: Any, yes: Any, no: Any) -> Number:
        chosen = self.number(condition)
        if not isinstance(chosen, TextValue):
            return self.number(yes if chosen else no)
        if self.loads(yes) or self.loads(no):  # which may lie outside where the condition does not hold
            return self._either_side(chosen, yes, no)
        a, b = self.text.named(self.number(yes)), self.text.named(self.number(no))
        return self.text.once(f"arith.select {chosen.name}, {a.name}, {b.name} : {a.kind}", a.kind)

    def _either_side(self, condition: TextValue, *sides: Any) -> TextValue:
        """Put an `scf.if` that computes one of two expressions."""
        regions, ends = [], []
        for side in sides:
            with self.text.region() as region:
                ends.append(self.text.named(self.number(side)))
            region.lines.append((f"scf.yield {ends[-1].name} : {ends[-1].kind}", None))
            regions.append(region)
        result = TextValue(self.text.name(), ends[0].kind)
        self.text.choose(f"{result.name} = scf.if {condition.name} -> ({result.kind}) {{", *regions)
        return result

    def loads(self, e: Any) -> bool:
        """Whether the scalar unit loads for an expression."""
        raise NotImplementedError

    def cut(self, value: Number, dtype: str, *, signed: bool = False) -> Number:
        """Return a whole number within the range of its type; signed ones are in it unless `signed` says otherwise."""
        if dtype == "bool" or not (dtype.startswith("uint") or signed):
            return value
        bits = int(dtype.lstrip("uint"))
        if bits == 64:
            return value
        if not isinstance(value, TextValue):
            return self.known_cut(value, dtype)
        if dtype[0] == "u":
            return self._pure("arith.andi", value, self.text.constant((1 << bits) - 1, INDEX))
        return self._cast("index_cast", self._cast("index_cast", value, f"i{bits}"), INDEX)

    @staticmethod
    def known_cut(value: int, dtype: str) -> int:
        """Return the low bits of a number that is known, as one of its type."""
        bits = int(dtype.lstrip("uint"))
        low = value & ((1 << bits) - 1)
        return low - (1 << bits) if dtype[0] == "i" and low >> (bits - 1) else low

    def _cast(self, operation: str, value: TextValue, kind: str) -> TextValue:
        return self.text.once(f"arith.{operation} {value.name} : {value.kind} to {kind}", kind)

    def converted(self, value: Number, source: str, dtype: str) -> Number:
        """Return a scalar as one of another type."""
        floats = ("float", "bfloat")
        if source == dtype:
            return value
        if dtype.startswith(floats):
            kind = element_of(dtype)
            if not source.startswith(floats):
                if not isinstance(value, TextValue):
                    return self.text.constant(float(value), kind)
                if value.kind == "i1":
                    value = self._cast("extui", value, "i64")
                whole = value if value.kind == "i64" else self._cast("index_cast", value, "i64")
                return self._cast("sitofp", whole, kind)
            value = self.text.named(value)
            return self._cast("extf" if kind == "f32" else "truncf", value, kind)
        if source.startswith(floats):
            return self.cut(self._cast("index_cast", self._cast("fptosi", self.text.named(value), "i64"), INDEX), dtype)
        if dtype == "bool":
            return self._compared("ne", value, 0, source)
        if source == "bool":
            if not isinstance(value, TextValue):
                return int(value)
            return self._cast("index_cast", self._cast("extui", value, "i64"), INDEX)
        narrower = int(dtype.lstrip("uint")) < int(source.lstrip("uint"))
        return self.cut(value, dtype, signed=narrower or source[0] == "u" or dtype[0] == "u")

    def _reinterpreted(self, value: Number, source: str, dtype: str) -> Number:
        floats = ("float", "bfloat")
        if source.startswith(floats) == dtype.startswith(floats):
            return self.cut(value, dtype, signed=True)
        if dtype.startswith(floats):
            whole = self.as_scalar(value, f"i{dtype.lstrip('bfloat')}")
            return self._cast("bitcast", whole, element_of(dtype))
        whole = self._cast("bitcast", self.text.named(value), f"i{source.lstrip('bfloat')}")
        return self.cut(self._cast("index_cast", whole, INDEX), dtype)

    def as_scalar(self, value: Number, kind: str) -> TextValue:
        """Return a scalar of an element type, as an operand of a vector operation."""
        plain = kind.lstrip("u") if kind[0] in "ui" else kind
        if isinstance(value, TextValue):
            if value.kind == plain:
                return value
            if value.kind == INDEX and plain[0] == "i":
                return self._cast("index_cast", value, plain)
            if value.kind == INDEX:
                return self._cast("sitofp", self._cast("index_cast", value, "i64"), plain)
            if plain in ("f16", "bf16") and value.kind == "f32":
                return self._cast("truncf", value, plain)
            raise refused(f"a scalar of type {value.kind} for lanes of {kind}", self.text.where)
        if plain[0] == "i" and plain != INDEX:
            return self.text.constant(self.known_cut(int(value), f"int{plain[1:]}"), plain)
        return self.text.constant(value, plain)

    def scalar_load(self, base: TextValue, offset: Number, dtype: str) -> Number:
        """Return an element of memory, loaded by the scalar unit."""
        element = element_of(dtype)
        plain = element.lstrip("u")
        space = base.kind.rpartition(", ")[2][:-1]
        typed = self.pointed(base, plain, space)
        loaded = self.text.one(
            f"pto.load_scalar {typed.name}[{self.text.named(offset).name}] : {typed.kind} -> {plain}", plain
        )
        if plain[0] != "i":
            return loaded
        return self._cast("index_castui" if element[0] == "u" else "index_cast", loaded, INDEX)

    def pointed(self, base: TextValue, element: str, space: str) -> TextValue:
        """Return a pointer with another element type."""
        kind = pointer(element, space)
        if base.kind == kind:
            return base
        return self.text.once(f"pto.castptr {base.name} : {base.kind} -> {kind}", kind)
