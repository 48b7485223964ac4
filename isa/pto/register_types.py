"""The types of vector registers, masks and alignment states: reading and writing.

Source: docs/reference/micro.md section 1.2.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from castsim.isa.errors import ReadError
from castsim.isa.pto.lexer import PtoSource
from castsim.isa.pto.packed import element_format
from castsim.isa.pto.tile_types import FieldText
from castsim.isa.pto.value_types import (
    REGISTER_BITS,
    AlignType,
    LogicalMaskType,
    LogicalVectorType,
    MaskType,
    VectorType,
)

_VECTOR = re.compile(r"(\d{1,9})x(\S+)")
_MASKS = {f"b{bits}": bits for bits in (8, 16, 32)}


def lane_bits(element: str) -> int:
    """Return the bits that an element takes in a register and in memory: two of 4 bits make one of 8."""
    return max(8, element_format(element).bits)


def read_vector(
    fields: list[FieldText], read_element: Callable[[FieldText], str], spelling: Callable[[FieldText, str], str]
) -> VectorType:
    """Read the parameters of `!pto.vreg<64xf32>`.

    Raises:
        ReadError: malformed, an unknown element, or not 2048 bits.
    """
    if len(fields) > 1:
        raise fields[1].error("a vector register has a number of lanes with its element type and nothing more")
    match = _VECTOR.fullmatch(fields[0].text)
    if match is None:
        raise fields[0].error(f"'{fields[0].text[:40]}' is not LANESxTYPE", ("64xf32", "128xf16", "256xi8"))
    field = fields[0].part(match.start(2), match.group(2))
    element = read_element(field)
    if element in ("i4", "f64"):
        raise field.error(f"{field.text} is not an element of a vector register", ("f32", "f16", "i8"))
    lanes, wanted = int(match.group(1)), REGISTER_BITS // lane_bits(element)
    if lanes != wanted:
        given = f"{lanes} lanes of {field.text} have {lanes * lane_bits(element)}"
        legal = (f"!pto.vreg<{wanted}x{field.text}>",)
        raise fields[0].error(f"a vector register has {REGISTER_BITS} bits, {given}", legal)
    return VectorType(lanes, element, spelling(field, element))


def read_mask(fields: list[FieldText]) -> MaskType:
    """Read the parameter of `!pto.mask<b32>`.

    Raises:
        ReadError: no such mask.
    """
    text = fields[0].text
    if len(fields) > 1 or text not in _MASKS:
        raise fields[-1].error(f"a mask is for lanes of 8, 16 or 32 bits, not '{text[:40]}'", _MASKS)
    return MaskType(_MASKS[text])


def read_align(source: PtoSource, start: int, text: str) -> AlignType:
    """Read `!pto.align`.

    Raises:
        ReadError: it has parameters.
    """
    if text != "!pto.align":
        raise source.error("type '!pto.align' has no parameters", start, len(text), ("!pto.align",))
    return AlignType()


def format_micro(kind: VectorType | MaskType | AlignType, spellings: Mapping[str, str]) -> str:
    """Return the canonical spelling; `spellings` are those of elements, by their formats.

    Raises:
        ReadError: the element format has no spelling in `.pto`.
    """
    if isinstance(kind, AlignType):
        return "!pto.align"
    if isinstance(kind, MaskType):
        return f"!pto.mask<b{kind.bits}>"
    if kind.element not in spellings:
        raise ReadError(f"format '{kind.element}' has no spelling in .pto", legal=spellings)
    return f"!pto.vreg<{kind.lanes}x{of_dialect(kind.spelling or spellings[kind.element])}>"


def of_dialect(spelling: str) -> str:
    """Return the spelling of an element with the prefix that it has as a type of the dialect."""
    return f"!pto.{spelling}" if spelling in ("hif8", "f4E2M1x2", "f4E1M2x2") else spelling


# The types of logical registers and masks: reading and writing (docs/reference/micro.md section 9.1).

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
