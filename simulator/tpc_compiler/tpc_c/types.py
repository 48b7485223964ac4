"""The types of TPC-C: scalars, vectors of each generation, predicates, coordinates, aggregates, pointers, arrays.

Source: the vendor's clang (Sema), by the facts page `docs/reference/tpc.md`; sizes are those of the registers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from castsim.isa.formats import FORMATS

VECTOR_BITS = 2048
"""Bits of a V register."""
GENERATIONS = ("goya", "gaudi", "gaudib", "greco", "gaudi2")
"""From the oldest to the newest."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """A number in an S register, or a truth value in an SP register (`bool`)."""

    name: str

    def __str__(self) -> str:
        return _SCALAR_NAMES[self.name]

    @property
    def bits(self) -> int:
        """Bits of a value; a truth value has one."""
        return 1 if self.name == "bool" else FORMATS[self.name].bits

    @property
    def is_float(self) -> bool:
        """Whether it is a floating-point type."""
        return "f" in self.name

    @property
    def signed(self) -> bool:
        """Whether it is a signed integer."""
        return self.name.startswith("i")


@dataclass(frozen=True, slots=True)
class Vector:
    """One V register of elements."""

    element: Scalar

    def __str__(self) -> str:
        return _VECTOR_NAMES[self.element.name]

    @property
    def lanes(self) -> int:
        """Elements that it holds."""
        return VECTOR_BITS // self.element.bits


@dataclass(frozen=True, slots=True)
class Group:
    """An aggregate of two or four vectors, whose members are v1 .. v4: registers D and A."""

    members: tuple[Vector, ...]

    def __str__(self) -> str:
        first = self.members[0]
        if len(set(self.members)) > 1:
            return "_".join(map(str, self.members)) + "_pair_t"
        return f"{_STEMS[first.element.name]}{first.lanes * len(self.members)}"


@dataclass(frozen=True, slots=True)
class Mask:
    """A VP register as a predicate of so many lanes."""

    lanes: int

    def __str__(self) -> str:
        return f"bool{self.lanes}"


@dataclass(frozen=True, slots=True)
class Index:
    """Five coordinates in an I register."""

    def __str__(self) -> str:
        return "int5"


@dataclass(frozen=True, slots=True)
class TensorType:
    """A tensor: a number that is known when the kernel is compiled."""

    def __str__(self) -> str:
        return "tensor"


@dataclass(frozen=True, slots=True)
class Void:
    """No value."""

    def __str__(self) -> str:
        return "void"


@dataclass(frozen=True, slots=True)
class Pointer:
    """An address: of global memory (an AD register) or of local memory (an S register)."""

    to: CType
    space: str

    def __str__(self) -> str:
        words = {"global": " __global__", "local": " __local__"}
        return f"{self.to}{words.get(self.space, '')} *"


@dataclass(frozen=True, slots=True)
class Array:
    """So many values of one type."""

    of: CType
    count: int

    def __str__(self) -> str:
        return f"{self.of}[{self.count}]"


CType = Scalar | Vector | Group | Mask | Index | TensorType | Void | Pointer | Array

VOID, INDEX, TENSOR = Void(), Index(), TensorType()
BOOL, INT, UNSIGNED, FLOAT = Scalar("bool"), Scalar("i32"), Scalar("u32"), Scalar("f32")

_SCALAR_NAMES = {
    "i32": "int", "u32": "unsigned int", "i16": "short", "u16": "unsigned short", "i8": "char", "u8": "unsigned char",
    "f32": "float", "bf16": "bf16", "f16": "half", "f8_143": "minifloat", "f8_152": "minihalf", "bool": "bool",
    "i4": "int4", "u4": "uint4",
}  # fmt: skip
_STEMS = {
    "f32": "float", "i32": "int", "u32": "uint", "i16": "short", "u16": "ushort", "i8": "char", "u8": "uchar",
    "bf16": "bfloat", "f16": "half", "f8_143": "minifloat", "f8_152": "minihalf", "i4": "nibble", "u4": "unibble",
}  # fmt: skip
_VECTOR_NAMES = {name: f"{stem}{VECTOR_BITS // FORMATS[name].bits}" for name, stem in _STEMS.items()}

SCALARS = {
    "int": "i32", "long": "i32", "short": "i16", "char": "i8", "float": "f32", "bool": "bool", "_Bool": "bool",
    "int32_t": "i32", "uint32_t": "u32", "int16_t": "i16", "uint16_t": "u16", "int8_t": "i8", "uint8_t": "u8",
    "bf16": "bf16", "bfloat": "bf16", "half": "f16", "minifloat": "f8_143", "minihalf": "f8_152", "f8": "f8_143",
    "h8": "f8_152", "uint": "u32", "ushort": "u16", "uchar": "u8", "size_t": "u32",
}  # fmt: skip
"""Names of scalar types that are one word."""
SHORT = {
    "f32": "f32", "bf16": "bf16", "f16": "f16", "f8": "f8_143", "h8": "f8_152", "i32": "i32", "u32": "u32",
    "i16": "i16", "u16": "u16", "i8": "i8", "u8": "u8", "i4": "i4", "u4": "u4",
}  # fmt: skip
"""Types as names of intrinsics spell them."""
FIRST = {"bf16": "gaudi", "f16": "gaudib", "f8_143": "gaudi2", "f8_152": "gaudi2", "i4": "greco", "u4": "greco"}
"""The generation from which on an element exists; the others are in all."""


def vector_of(name: str) -> Vector:
    """Return the vector type of an element, `f32`."""
    return Vector(Scalar(name))


def group_of(name: str, count: int) -> Vector | Group:
    """Return so many vectors of an element: one vector, a pair, a quad."""
    return vector_of(name) if count == 1 else Group((vector_of(name),) * count)


def _named() -> dict[str, CType]:
    found: dict[str, CType] = {"void": VOID, "int5": INDEX, "tensor": TENSOR}
    found |= {name: Scalar(element) for name, element in SCALARS.items()}
    found |= {f"bool{lanes}": Mask(lanes) for lanes in (64, 128, 256)}
    for element, name in _VECTOR_NAMES.items():
        held = vector_of("i8" if element == "i4" else "u8" if element == "u4" else element)
        found[name] = held
        for count in (2, 4):
            found[f"{_STEMS[element]}{held.lanes * count}"] = Group((held,) * count)
        found[f"{name}_pair_t"] = Group((held,) * 2)
    return found


_NAMED = _named()
_MIXED = re.compile(rf"({'|'.join(_VECTOR_NAMES.values())})_({'|'.join(_VECTOR_NAMES.values())})(_pair_t)?")


def type_named(name: str) -> CType | None:
    """Return the type of a name that is one word, None if it names none."""
    found = _NAMED.get(name)
    if found is None and (match := _MIXED.fullmatch(name)) is not None:
        one, two = _NAMED[match[1]], _NAMED[match[2]]
        assert isinstance(one, Vector) and isinstance(two, Vector)
        return Group((one, two))
    return found


def names_in(text: str) -> Iterator[str]:
    """Yield the names of types in a text that C itself does not have."""
    for word in sorted(set(re.findall(r"[A-Za-z_]\w*", text))):
        if word not in ("int", "long", "short", "char", "float", "_Bool", "void") and type_named(word) is not None:
            yield word


def first_generation(kind: CType) -> str:
    """Return the generation from which on there are values of a type."""
    elements = {Vector: lambda k: [k.element], Group: lambda k: [m.element for m in k.members]}
    found = elements[type(kind)](kind) if type(kind) in elements else [kind] if isinstance(kind, Scalar) else []
    return max((FIRST.get(each.name, "goya") for each in found), key=GENERATIONS.index, default="goya")


def promoted(kind: Scalar) -> Scalar:
    """Return the type in which C computes with a scalar."""
    return INT if not kind.is_float and kind.bits < 32 else kind


def common(one: Scalar, two: Scalar) -> Scalar:
    """Return the type of the result of an operator on two scalars: C's usual conversions."""
    one, two = promoted(one), promoted(two)
    order = [INT, UNSIGNED, *(Scalar(n) for n in ("f8_152", "f8_143", "f16", "bf16", "f32"))]
    return max(one, two, key=order.index)
