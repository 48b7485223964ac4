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


def near(element: str) -> str:
    """Return the type of a pointer into the buffer."""
    return format_type(PointerType(element, "ub"))


def unwritten(what: str) -> IllegalError:
    """Return the refusal of an operation for what its lowering has."""
    return IllegalError(f"its lowering has {what}, which expand does not write as vector instructions")
