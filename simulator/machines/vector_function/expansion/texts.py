"""How types are written, and how an operation is refused."""

from __future__ import annotations

from castsim.isa.errors import IllegalError
from castsim.isa.pto.micro.types import lane_bits
from castsim.isa.pto.types import format_type
from castsim.isa.pto.value_types import REGISTER_BITS, MaskType, PointerType, VectorType


def vector(element: str) -> str:
    """Return the type of a register of such lanes."""
    return format_type(VectorType(REGISTER_BITS // lane_bits(element), element))


def mask(width: int) -> str:
    """Return the type of a predicate for lanes of `width` bits."""
    return format_type(MaskType(width))


_SPELLINGS = {"hif8": "!pto.hif8", "e2m1": "!pto.f4E2M1x2", "e1m2": "!pto.f4E1M2x2"}
"""Elements that the vendor's tools know as types of the dialect alone."""


def near(element: str) -> str:
    """Return the type of a pointer into the buffer."""
    return format_type(PointerType(element, "ub", _SPELLINGS.get(element, "")))


def far(kind: PointerType) -> str:
    """Return the type of an argument's pointer as one into global memory.

    4-bit elements keep their spelling: in the other one, an argument is an array of bytes.
    """
    spelling = _SPELLINGS["hif8"] if kind.element == "hif8" else kind.spelling
    return format_type(PointerType(kind.element, "gm", spelling))


def unwritten(what: str) -> IllegalError:
    """Return the refusal of an operation for what its lowering has."""
    return IllegalError(f"its lowering has {what}, which expand does not write as vector instructions")
