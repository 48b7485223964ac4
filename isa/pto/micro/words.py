"""The words of micro operations: patterns, comparisons, parts, roundings, barriers, and other names of the same.

Source: docs/reference/micro.md section 1.4.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from castsim.isa.pto.attributes import ENDPOINTS
from castsim.isa.pto.micro.forms import ROWS
from castsim.isa.pto.micro.types import lane_bits
from castsim.isa.pto.types import format_type
from castsim.isa.pto.value_types import AlignType, MaskType, PointerType, ScalarType, Type, VectorType

PATTERNS = ("PAT_ALL", "PAT_ALLF", *(f"PAT_VL{n}" for n in (1, 2, 3, 4, 8, 16, 32, 64, 128)), "PAT_M3", "PAT_M4",
            "PAT_H", "PAT_Q")  # fmt: skip
ROUNDINGS = ("R", "A", "F", "C", "Z", "O", "H")
SATURATIONS = ("SAT", "NOSAT")
PARTS = ("EVEN", "ODD", "P0", "P1", "P2", "P3")
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
HALVES = ("LOWER", "HIGHER")
BARRIERS = (
    "VV_ALL", "VST_VLD", "VLD_VST", "VST_VST", "VS_ALL", "VST_LD", "VLD_ST", "VST_ST", "SV_ALL", "ST_VLD", "LD_VST",
    "ST_VST",
)  # fmt: skip
PIPES = tuple(f"PIPE_{name}" for name in ("S", "V", "M", "MTE1", "MTE2", "MTE3", "FIX", "ALL"))

LEGAL: Mapping[str, tuple[str, ...]] = {
    "pattern": PATTERNS,
    "rnd": ROUNDINGS,
    "sat": SATURATIONS,
    "part": PARTS,
    "cmp": COMPARISONS,
    "half": HALVES,
    "order": ("ASC", "DESC"),
    "position": ("LOWEST", "HIGHEST"),
    "barrier": BARRIERS,
    "pipe": PIPES,
    "domain": ("DDR", "ALL", "UB"),
    "register": ("AR",),
    "mode": ("POST_UPDATE", "NO_POST_UPDATE"),
}
"""What may stand for each kind of word; distribution modes differ from operation to operation."""

SYNONYMS: Mapping[str, Mapping[str, str]] = {
    "rnd": {f"ROUND_{word}": word for word in ROUNDINGS},
    "sat": {"RS_ENABLE": "SAT", "RS_DISABLE": "NOSAT"},
    "part": {f"PART_{word}": word for word in PARTS},
    "half": {"UPPER": "HIGHER", "PART_LOWER": "LOWER", "PART_HIGHER": "HIGHER"},
    "order": {"ORDER_ASC": "ASC", "ORDER_DESC": "DESC"},
    "dist": {f"ONEPT_B{bits}": f"1PT_B{bits}" for bits in (8, 16, 32)},
    "pipe": {name: pipe.value for name, pipe in ENDPOINTS.items()},
    "position": {"POS_LOWEST": "LOWEST", "POS_HIGHEST": "HIGHEST"},
}
"""Other names of words, by their kind."""

WRITTEN: Mapping[str, str] = {"half": "part", "cmp": "cmp_mode"}
"""The keys by which dictionaries call words of these kinds."""


NUMBERS = ("id", "turn")
"""Kinds of words that are numbers."""


def short(kind: str, word: str) -> str:
    """Return the short name of a word."""
    return SYNONYMS.get(kind, {}).get(word, word)


# The notation of `castsim.isa.pto.micro.forms` taken apart: operands, words and results of an operation's forms.

_PIECE = re.compile(r'"(\w+)"(\??)|\{([\w ]+)\}(\??)|\(([\w ]+)\)|P\[([Ii])\]|([A-Za-z])(\??)')
_SHOWN = {
    "V": "!pto.vreg<64xf32>", "U": "!pto.vreg<..>", "X": "!pto.vreg<..>", "M": "!pto.mask<..>", "m": "!pto.mask<..>",
    "k": "!pto.mask<..>", "P": "!pto.ptr<T, ub>", "G": "!pto.ptr<T, gm>", "Q": "!pto.ptr<T, ub|gm>", "T": "T",
    "I": "index", "N": "i32", "L": "i64", "B": "i1", "S": "i64", "A": "!pto.align",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Form:
    """One way to write an operation.

    `items` are operand letters and the kinds of words in quotes, in the order of the text; `offset` is the number of
    the operand in brackets, `offset_typed` whether its type is written. `optional` results may be left out.
    """

    items: tuple[str, ...]
    offset: int | None
    offset_typed: bool
    keys: tuple[str, ...]
    groups: tuple[str, ...]
    results: tuple[str, ...]
    optional: int
    free: frozenset[str]
    """Kinds of words that may be left out."""

    @property
    def operands(self) -> tuple[str, ...]:
        """The letters of the operands."""
        return tuple(item for item in self.items if len(item) == 1)

    @property
    def words(self) -> tuple[str, ...]:
        """The kinds of the words between the operands."""
        return tuple(item for item in self.items if len(item) > 1)

    def spelling(self, name: str) -> str:
        """Return an example of the text."""
        shown, number = [], 0
        for item in self.items:
            if len(item) > 1:
                shown.append(f'"{item.upper()}"')
                continue
            value = f"%{chr(97 + number)}"
            if number == self.offset:
                shown[-1] += f"[{value}]"
            else:
                shown.append(value)
            number += 1
        text = f"pto.{name}" + (f" {', '.join(shown)}" if shown else "")
        text += "".join(f" {group}(..)" for group in self.groups)
        if self.keys:
            text += f" {{{', '.join(f'{WRITTEN.get(key, key)} = ..' for key in self.keys)}}}"
        kinds = [_SHOWN[letter] for number, letter in enumerate(self.operands) if self._typed(number)]
        results = [_SHOWN[letter] for letter in self.results[: len(self.results) - self.optional]]
        arrow = " -> " if kinds and results else ""
        types = f" : {', '.join(kinds)}{arrow}{', '.join(results)}" if kinds or results else ""
        names = ", ".join(f"%r{number or ''}" for number in range(len(results)))
        return f"{names} = {text}{types}" if results else f"{text}{types}"

    def _typed(self, number: int) -> bool:
        return number != self.offset or self.offset_typed


@lru_cache(maxsize=256)
def forms_of(name: str) -> tuple[Form, ...]:
    """Return the forms of an operation."""
    return tuple(_read(text) for text in ROWS[name].forms)


def _read(text: str) -> Form:
    left, _, right = text.partition(">")
    items: list[str] = []
    keys: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    free: set[str] = set()
    offset, typed = None, False
    for word, word_free, dictionary, dictionary_free, group, index, letter, _ in _PIECE.findall(left):
        if word:
            items.append(word)
            free |= {word} if word_free else set()
        elif dictionary:
            keys = tuple(dictionary.split())
            free |= set(keys) if dictionary_free else set()
        elif group:
            groups = tuple(group.split())
        elif index:
            items += ("P", "I")
            offset, typed = sum(len(item) == 1 for item in items) - 1, index == "I"
        else:
            items.append(letter)
    found = [(letter, mark) for *_, letter, mark in _PIECE.findall(right)]
    optional = sum(mark == "?" for _, mark in found)
    results = tuple(letter for letter, _ in found)
    return Form(tuple(items), offset, typed, keys, groups, results, optional, frozenset(free))


# Whether operands and results of given types fit a form of a micro operation.
#
# Source: docs/reference/micro.md section 1.3.

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
