"""The types of logical registers and masks (docs/reference/micro.md section 9.1)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from castsim.isa.dataclass import dataclass, field
from castsim.isa.pto.types import FieldText, ReadType, element_spelling, of_dialect, read_lanes
from castsim.isa.pto.value_types import DialectType


@dataclass(frozen=True, slots=True)
class LogicalVectorType(DialectType):
    """`!pto.vmi.vreg<256xf32>`: any number of lanes; elements as in `VectorType`, and pairs of bf16 and hif8."""

    lanes: int
    element: str
    spelling: str = field(default="", compare=False, repr=False)
    """Spelling of the element type, as in a pointer type."""

    @property
    def text(self) -> str:
        """The type as in a program."""
        element = of_dialect(self.spelling) if self.spelling else element_spelling(self.element)
        return f"!pto.vmi.vreg<{self.lanes}x{element}>"


@dataclass(frozen=True, slots=True)
class LogicalMaskType(DialectType):
    """`!pto.vmi.mask<256xpred>`: one bit per lane; `granularity` is the text after the `x`."""

    lanes: int
    granularity: str = field(default="", compare=False, repr=False)

    @property
    def text(self) -> str:
        """The type as in a program."""
        return f"!pto.vmi.mask<{self.lanes}{f'x{self.granularity}' if self.granularity else ''}>"


_MASK = re.compile(r"(\d{1,9})(?:x(pred|b8|b16|b32))?")
MOST_LANES = 65536
"""Maximum number of lanes of a logical register: 256 KiB of bytes fill the buffer four times over."""


def _read_vector(
    fields: list[FieldText], read_element: Callable[[FieldText], str], spelling: Callable[[FieldText, str], str]
) -> LogicalVectorType:
    """Read the parameters of `!pto.vmi.vreg<256xf32>`.

    Raises:
        ReadError: the type is malformed, has an unknown element, or an implausible number of lanes.
    """
    examples = ("256xf32", "128xf16")
    lanes, element_field, element = read_lanes(
        fields, read_element, "a logical register", examples, ("i4", "f64", "e8m0")
    )
    _check_lanes(fields[0], lanes)
    return LogicalVectorType(lanes, element, spelling(element_field, element))


def _read_mask(fields: list[FieldText], *_: object) -> LogicalMaskType:
    """Read the parameter of `!pto.vmi.mask<256xpred>`.

    Raises:
        ReadError: the mask does not exist.
    """
    match = _MASK.fullmatch(fields[0].text)
    if len(fields) > 1 or match is None:
        raise fields[-1].error(f"'{fields[-1].text[:40]}' is not LANES or LANESxpred", ("256xpred", "256"))
    _check_lanes(fields[0], int(match.group(1)))
    return LogicalMaskType(int(match.group(1)), match.group(2) or "")


def _check_lanes(field: FieldText, lanes: int) -> None:
    if not 1 <= lanes <= MOST_LANES:
        raise field.error(f"{lanes} lanes", (f"1 to {MOST_LANES}",))


READERS: Mapping[str, ReadType] = {"pto.vmi.vreg": _read_vector, "pto.vmi.mask": _read_mask}
"""Readers of the parameters, by the name of the type."""

TYPES = tuple(f"!{name}" for name in READERS)
