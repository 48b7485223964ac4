"""The types of logical registers and masks: reading and writing (docs/reference/micro.md section 9.1)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from castsim.isa.pto.tile_types import FieldText
from castsim.isa.pto.value_types import LogicalMaskType, LogicalVectorType

_VECTOR = re.compile(r"(\d{1,9})x(\S+)")
_MASK = re.compile(r"(\d{1,9})(?:x(pred|b8|b16|b32))?")
MOST_LANES = 65536
"""Lanes of a logical register: 256 KiB of bytes fill the buffer four times over."""


def read_logical_vector(
    fields: list[FieldText], read_element: Callable[[FieldText], str], spelling: Callable[[FieldText, str], str]
) -> LogicalVectorType:
    """Read the parameters of `!pto.vmi.vreg<256xf32>`.

    Raises:
        ReadError: malformed, an unknown element, or a number of lanes that no program has.
    """
    if len(fields) > 1:
        raise fields[1].error("a logical register has a number of lanes with its element type and nothing more")
    match = _VECTOR.fullmatch(fields[0].text)
    if match is None:
        raise fields[0].error(f"'{fields[0].text[:40]}' is not LANESxTYPE", ("256xf32", "128xf16"))
    field = fields[0].part(match.start(2), match.group(2))
    element = read_element(field)
    if element in ("i4", "f64", "e8m0"):
        raise field.error(f"{field.text} is not an element of a logical register", ("f32", "f16", "i8"))
    _check_lanes(fields[0], int(match.group(1)))
    return LogicalVectorType(int(match.group(1)), element, spelling(field, element))


def read_logical_mask(fields: list[FieldText]) -> LogicalMaskType:
    """Read the parameter of `!pto.vmi.mask<256xpred>`.

    Raises:
        ReadError: no such mask.
    """
    match = _MASK.fullmatch(fields[0].text)
    if len(fields) > 1 or match is None:
        raise fields[-1].error(f"'{fields[-1].text[:40]}' is not LANES or LANESxpred", ("256xpred", "256"))
    _check_lanes(fields[0], int(match.group(1)))
    return LogicalMaskType(int(match.group(1)), match.group(2) or "")


def _check_lanes(field: FieldText, lanes: int) -> None:
    if not 1 <= lanes <= MOST_LANES:
        raise field.error(f"{lanes} lanes", (f"1 to {MOST_LANES}",))


def format_logical(kind: LogicalVectorType | LogicalMaskType, spellings: Mapping[str, str]) -> str:
    """Return the canonical spelling; `spellings` are those of elements, by their formats."""
    if isinstance(kind, LogicalMaskType):
        return f"!pto.vmi.mask<{kind.lanes}{f'x{kind.granularity}' if kind.granularity else ''}>"
    spelling = kind.spelling or spellings[kind.element]
    known = spelling.startswith("!") or spelling not in ("hif8", "f4E2M1x2", "f4E1M2x2")
    return f"!pto.vmi.vreg<{kind.lanes}x{spelling if known else f'!pto.{spelling}'}>"
