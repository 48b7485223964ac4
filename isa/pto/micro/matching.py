"""Whether operands and results of given types fit a form of a micro operation.

Source: docs/reference/micro.md section 1.3.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from castsim.isa.pto.micro.form import Form
from castsim.isa.pto.micro.forms import ROWS
from castsim.isa.pto.micro.types import lane_bits
from castsim.isa.pto.types import format_type
from castsim.isa.pto.value_types import AlignType, MaskType, PointerType, ScalarType, Type, VectorType

_WHOLE = ("index", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
_KINDS = {
    "V": "a vector register", "U": "a vector register", "X": "a vector register", "M": "a mask", "m": "a mask",
    "k": "a mask", "P": "a UB pointer", "G": "a pointer to global memory", "Q": "a pointer", "T": "a scalar",
    "I": "an index", "N": "a whole number", "L": "an i64", "B": "an i1", "S": "a scalar", "A": "an alignment state",
}  # fmt: skip
_SAME = frozenset("VUXmk")


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Why a form does not fit: a sentence, what would be legal, and the operand or result that is wrong.

    `depth` is how far the operands fitted.
    """

    text: str
    depth: int
    operand: int | None = None
    result: int | None = None
    legal: tuple[str, ...] = ()


def kind_of(letter: str, kind: Type) -> bool:
    """Whether a type is of the kind of a letter."""
    match letter:
        case "V" | "U" | "X":
            return isinstance(kind, VectorType)
        case "M" | "m" | "k":
            return isinstance(kind, MaskType)
        case "P":
            return isinstance(kind, PointerType) and kind.space == "ub"
        case "G":
            return isinstance(kind, PointerType) and kind.space != "ub"
        case "Q":
            return isinstance(kind, PointerType)
        case "A":
            return isinstance(kind, AlignType)
        case "I" | "N":
            return isinstance(kind, ScalarType) and kind.name in _WHOLE
        case "L" | "B":
            return isinstance(kind, ScalarType) and kind.name == {"L": "i64", "B": "i1"}[letter]
        case _:
            return isinstance(kind, ScalarType)


def mismatch(name: str, form: Form, operands: tuple[Type, ...], results: tuple[Type, ...]) -> Mismatch | None:
    """Return the first thing in which types differ from a form, None if nothing does."""
    wanted = form.operands
    if len(operands) != len(wanted):
        return Mismatch(f"{len(wanted)} operands, not {len(operands)}", min(len(operands), len(wanted)) - 1)
    least = len(form.results) - form.optional
    if not least <= len(results) <= len(form.results):
        count = str(least) if not form.optional else f"{least} or {len(form.results)}"
        return Mismatch(f"{count} result{'s' * (len(form.results) != 1)}, not {len(results)}", len(wanted))
    seen: dict[str, Type] = {}
    for depth, (letter, kind, number, is_result) in enumerate(_pairs(form, operands, results)):
        text, legal = _problem(name, letter, kind, seen)
        if text:
            place = (None, number) if is_result else (number, None)
            return Mismatch(text, depth, place[0], place[1], legal)
        seen.setdefault(letter, kind)
        if isinstance(kind, VectorType):
            seen.setdefault("register", kind)
    return None


def _pairs(form: Form, operands: tuple[Type, ...], results: tuple[Type, ...]) -> Iterator[tuple[str, Type, int, bool]]:
    """Yield letters with types; masks and scalars that follow a register come behind all registers."""
    taken = [*zip(form.operands, operands, range(len(operands)), strict=True)]
    given = [*zip(form.results, results, range(len(results)), strict=False)]
    both = [*((*each, False) for each in taken), *((*each, True) for each in given)]
    yield from (each for each in both if each[0] not in "MT")
    yield from (each for each in both if each[0] in "MT")


def _problem(name: str, letter: str, kind: Type, seen: dict[str, Type]) -> tuple[str, tuple[str, ...]]:
    """Say what is wrong with one type and what would be right; the empty text if nothing is."""
    if not kind_of(letter, kind):
        return f"expected {_KINDS[letter]}, not {format_type(kind)}", ()
    if letter in _SAME and letter in seen and seen[letter] != kind:
        wanted = format_type(seen[letter])
        return f"registers and masks of one kind have one type: {wanted} and {format_type(kind)}", (wanted,)
    register = seen.get("register")
    if isinstance(kind, MaskType) and letter == "M":
        bits = _mask_bits(name, register)
        if bits is not None and kind.bits != bits:
            return f"a mask of b{kind.bits} for lanes of b{bits}", (f"!pto.mask<b{bits}>",)
    if letter == "T" and isinstance(kind, ScalarType) and isinstance(register, VectorType):
        same = kind.name == register.element or (
            kind.name[0] in "iu" and register.element[0] in "iu" and kind.name[1:] == register.element[1:]
        )
        if not same:
            return f"the scalar is of the element type {register.element}, not {kind.name}", (register.element,)
    return "", ()


def _mask_bits(name: str, register: Type | None) -> int | None:
    """Return the width that a mask must have: that of the name, else of the register; 64 bits take two of b32."""
    if ROWS[name].width is not None:
        return ROWS[name].width
    return min(32, lane_bits(register.element)) if isinstance(register, VectorType) else None
