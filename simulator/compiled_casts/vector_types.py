"""Vector types of TPC-C: `float64` is 64 elements of f32, `short128` 128 of i16; and which casts C makes by itself."""

from __future__ import annotations

import re
from dataclasses import dataclass

from isa.errors import IllegalError, ReadError
from isa.formats import FORMATS, format_named
from targets.tpc_compiler import CType, c_types
from targets.vliw import VliwTarget

_SPELLED = re.compile(r"([a-z]+?)(\d*)")
_FLOAT_LIKE = re.compile(r"(minifloat|minihalf|bfloat|float|half)(\d*)")


@dataclass(frozen=True, slots=True)
class VectorType:
    """Elements of one format; `elements` None leaves their number open."""

    element: str
    elements: int | None = None

    @property
    def bits(self) -> int:
        """Width of an element."""
        return bits_of(self.element)

    @property
    def name(self) -> str:
        """The C name, `short128`; of a scalar, and without a number of elements, that of the element, `short`."""
        c_name = next((row.name for row in c_types() if row.element == self.element), self.element)
        return f"{c_name}{'' if self.elements in (None, 1) else self.elements}"


def bits_of(element: str) -> int:
    """Return the width of an element type; `i1` is one bit of a vector predicate."""
    return 1 if element == "i1" else FORMATS[element].bits


def is_float(element: str) -> bool:
    """Whether an element type is a float."""
    return "f" in element


def is_signed(element: str) -> bool:
    """Whether an element type has negative numbers."""
    return not element.startswith("u") and element != "i1"


def vector_type(text: str) -> VectorType:
    """Return the type that a text names: a C vector type (`bfloat128`) or a format (`bf16`).

    Raises:
        ReadError: it names none.
    """
    found = _FLOAT_LIKE.fullmatch(text) or _SPELLED.fullmatch(text)
    rows = {row.name: row for row in c_types()}
    if found and found[1] in rows and (found[2] or found[1] not in FORMATS):
        count = int(found[2]) if found[2] else None
        if count == 0:
            raise ReadError(f"'{text}' has no elements", legal=(f"{found[1]}128",))
        return VectorType(rows[found[1]].element, count)
    if text == "i1":
        return VectorType(text)
    try:
        name = format_named(text).name
    except ReadError:
        legal = (*(f"{name}N" for name in rows), "or a format: f32, bf16, i16, ...")
        raise ReadError(f"'{text}' is no vector type of TPC-C and no format", legal=legal) from None
    return VectorType(name)


def native_elements(element: str, target: VliwTarget) -> int:
    """Return how many elements a vector register holds."""
    return target.registers.vector_bytes * 8 // bits_of(element)


def registers_of(kind: VectorType, target: VliwTarget) -> int:
    """Return how many vector registers a type fills.

    Raises:
        IllegalError: not whole registers.
    """
    native = native_elements(kind.element, target)
    assert kind.elements is not None
    if kind.elements < native or kind.elements % native:
        raise IllegalError(
            f"{kind.name}: {kind.elements} elements of {kind.element} do not fill vector registers",
            legal=[f"{native * count} elements" for count in (1, 2, 4)],
        )
    return kind.elements // native


def matched(src: VectorType, dst: VectorType, target: VliwTarget) -> tuple[VectorType, VectorType]:
    """Give both types of a conversion the same number of elements; where none is named, one register of the narrower.

    Raises:
        IllegalError: they have different numbers.
    """
    if src.elements is not None and dst.elements is not None and src.elements != dst.elements:
        raise IllegalError(
            f"a conversion keeps the number of elements: {src.name} has {src.elements}, {dst.name} {dst.elements}",
            legal=[
                f"{VectorType(src.element, count).name} -> {VectorType(dst.element, count).name}"
                for count in (src.elements, dst.elements)
                if all(count >= native_elements(each.element, target) for each in (src, dst) if each.element != "i1")
            ],
        )
    count = src.elements or dst.elements
    if count is None:
        count = max(native_elements(kind.element, target) for kind in (src, dst) if kind.element != "i1")
    return VectorType(src.element, count), VectorType(dst.element, count)


def promotes(src: str, dst: str) -> bool:
    """Whether C converts by itself: the destination stands behind the source in the order of promotions."""
    ranks = {row.element: row.promotion for row in c_types()}
    return src in ranks and dst in ranks and ranks[src] < ranks[dst]


def promotions_of(src: str) -> tuple[CType, ...]:
    """Return the types that C promotes to by itself."""
    return tuple(row for row in c_types() if promotes(src, row.element))
