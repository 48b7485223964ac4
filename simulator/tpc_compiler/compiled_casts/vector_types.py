"""Vector types of TPC-C: `float64` is 64 elements of f32, `short128` 128 of i16; and which casts C makes by itself."""

from __future__ import annotations

import re
from dataclasses import dataclass

from castsim.isa.errors import IllegalError, ReadError
from castsim.isa.formats import FORMATS, IntFormat, format_named
from castsim.targets.tpc_compiler import CType, c_types
from castsim.targets.vliw import VliwTarget

_SPELLED = re.compile(r"([a-z]+?)(\d*)", re.ASCII)
_MOST_DIGITS = 6
_FLOAT_LIKE = re.compile(r"(minifloat|minihalf|bfloat|float|half)(\d*)", re.ASCII)


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
    if element == "i1":
        return False
    fmt = FORMATS[element]
    return not isinstance(fmt, IntFormat) or fmt.signed


def vector_type(text: str) -> VectorType:
    """Return the type that a text names: a C vector type (`bfloat128`) or a format (`bf16`).

    Raises:
        ReadError: it names none.
        IllegalError: a format with an exponent bias of its own.
    """
    found = _FLOAT_LIKE.fullmatch(text) or _SPELLED.fullmatch(text)
    rows = {row.name: row for row in c_types()}
    if found and found[1] in rows and (found[2] or found[1] not in FORMATS):
        if len(found[2]) > _MOST_DIGITS:
            raise ReadError(f"'{text[:40]}' has more elements than any chip's registers", legal=(f"{found[1]}128",))
        count = int(found[2]) if found[2] else None
        if count == 0:
            raise ReadError(f"'{text}' has no elements", legal=(f"{found[1]}128",))
        return VectorType(rows[found[1]].element, count)
    if text == "i1":
        return VectorType(text)
    try:
        name = format_named(text).name
        if name not in FORMATS:
            message = f"'{text}': a register of the chip holds the exponent bias, a type of TPC-C does not name it"
            raise IllegalError(message, legal=(name.partition("@")[0],))
    except ReadError:
        legal = (*(f"{name}N" for name in rows), "or a format: f32, bf16, i16, ...")
        raise ReadError(f"'{text}' is neither a vector type of TPC-C nor a format", legal=legal) from None
    return VectorType(name)


def native_elements(element: str, target: VliwTarget) -> int:
    """Return the number of elements in a vector register."""
    return target.registers.vector_bytes * 8 // bits_of(element)


def registers_of(kind: VectorType, target: VliwTarget) -> int:
    """Return the number of vector registers that a type fills.

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
        IllegalError: they have different numbers; more elements than all vector registers hold.
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
        natives = [native_elements(kind.element, target) for kind in (src, dst) if kind.element != "i1"]
        count = max(natives, default=native_elements("i1", target))
    for kind in (src, dst):
        most = native_elements(kind.element, target) * target.registers.V
        if count > most:
            whole = VectorType(kind.element, native_elements(kind.element, target))
            asked = VectorType(kind.element, count)
            raise IllegalError(f"{asked.name}: all vector registers hold {most} elements", legal=(whole.name,))
    return VectorType(src.element, count), VectorType(dst.element, count)


def one_register(src: VectorType, dst: VectorType, target: VliwTarget) -> tuple[VectorType, VectorType]:
    """Give both types of a conversion of one register to one their numbers of elements.

    A predicate has as many as the other type.

    Raises:
        IllegalError: a type is named with another number.
    """
    found = []
    for kind, other in ((src, dst), (dst, src)):
        count = native_elements(other.element if kind.element == "i1" else kind.element, target)
        if kind.elements not in (None, count):
            whole = VectorType(kind.element, count).name
            message = f"lane order converts one register to one: {kind.name} is not one register"
            raise IllegalError(message, legal=(whole, kind.element))
        found.append(VectorType(kind.element, count))
    return found[0], found[1]


def promotes(src: str, dst: str) -> bool:
    """Whether C converts by itself: the destination stands behind the source in the order of promotions."""
    ranks = {row.element: row.promotion for row in c_types()}
    return src in ranks and dst in ranks and ranks[src] < ranks[dst]


def promotions_of(src: str) -> tuple[CType, ...]:
    """Return the types that C promotes to by itself."""
    return tuple(row for row in c_types() if promotes(src, row.element))
