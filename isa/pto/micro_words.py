"""The words of micro operations: patterns, comparisons, parts, roundings, conversions, and their synonyms.

Source: docs/reference/micro.md section 1.4.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from castsim.isa.dataclass import dataclass
from castsim.isa.errors import IllegalError
from castsim.isa.formats import Rounding, format_named
from castsim.isa.pto.micro_forms import ROWS
from castsim.isa.pto.statement_forms import ENDPOINTS, values_text
from castsim.isa.pto.types import element_spelling, format_type, lane_bits
from castsim.isa.pto.value_types import (
    AlignType,
    MaskType,
    MicroOperation,
    PointerType,
    ScalarType,
    Type,
    VectorType,
)
from castsim.isa.reading import table_rows

PATTERNS = ("PAT_ALL", "PAT_ALLF", *(f"PAT_VL{n}" for n in (1, 2, 3, 4, 8, 16, 32, 64, 128)), "PAT_M3", "PAT_M4",
            "PAT_H", "PAT_Q")  # fmt: skip
ROUNDINGS: Mapping[str, Rounding] = {
    "R": Rounding.RINT,
    "A": Rounding.ROUND,
    "F": Rounding.FLOOR,
    "C": Rounding.CEIL,
    "Z": Rounding.TRUNC,
    "O": Rounding.ODD,
    "H": Rounding.HYBRID,
}
"""The letters of `rnd`."""
SATURATIONS = ("SAT", "NOSAT")
PARITIES = ("EVEN", "ODD")
QUARTERS = ("P0", "P1", "P2", "P3")
PARTS = (*PARITIES, *QUARTERS)
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
HALVES = ("LOWER", "HIGHER")
BARRIERS = (
    "VV_ALL", "VST_VLD", "VLD_VST", "VST_VST", "VS_ALL", "VST_LD", "VLD_ST", "VST_ST", "SV_ALL", "ST_VLD", "LD_VST",
    "ST_VST",
)  # fmt: skip
PIPES = tuple(f"PIPE_{name}" for name in ("S", "V", "M", "MTE1", "MTE2", "MTE3", "FIX", "ALL"))

LEGAL: Mapping[str, tuple[str, ...]] = {
    "pattern": PATTERNS,
    "rnd": tuple(ROUNDINGS),
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
    "atomic": ("ADD", "MAX", "MIN"),
}
"""The legal words of each kind; distribution modes depend on the operation."""

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
"""The dictionary keys of words of these kinds."""


NUMBERS = ("id", "turn")
"""Kinds of words that are numbers."""


def short(kind: str, word: str) -> str:
    """Return the short name of a word."""
    return SYNONYMS.get(kind, {}).get(word, word)


# The notation of `castsim.isa.pto.micro_forms` taken apart: operands, words and results of an operation's forms.

_PIECE = re.compile(r'"(\w+)"(\??)|\{([\w ]+)\}(\??)|\(([\w ]+)\)|P\[([Ii])\]|([A-Za-z])(\??)')
_SHOWN = {
    "V": "!pto.vreg<64xf32>", "U": "!pto.vreg<..>", "X": "!pto.vreg<..>", "M": "!pto.mask<..>", "m": "!pto.mask<..>",
    "k": "!pto.mask<..>", "P": "!pto.ptr<T, ub>", "G": "!pto.ptr<T, gm>", "Q": "!pto.ptr<T, ub|gm>", "T": "T",
    "I": "index", "N": "i32", "L": "i64", "B": "i1", "S": "i64", "A": "!pto.align",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class MicroForm:
    """One way to write an operation.

    `items` are operand letters and the kinds of words in quotes, in text order; `offset` is the index of
    the operand in brackets, `offset_typed` whether its type is written. `optional` results may be omitted.
    """

    items: tuple[str, ...]
    offset: int | None
    offset_typed: bool
    keys: tuple[str, ...]
    groups: tuple[str, ...]
    results: tuple[str, ...]
    optional: int
    free: frozenset[str]
    """Kinds of optional words."""

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
def forms_of(name: str) -> tuple[MicroForm, ...]:
    """Return the forms of an operation."""
    return tuple(_read(text) for text in ROWS[name].forms)


def _read(text: str) -> MicroForm:
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
    pieces = [(letter, mark) for *_, letter, mark in _PIECE.findall(right)]
    optional = sum(mark == "?" for _, mark in pieces)
    results = tuple(letter for letter, _ in pieces)
    return MicroForm(tuple(items), offset, typed, keys, groups, results, optional, frozenset(free))


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
class FormMismatch:
    """The mismatch of a form: a sentence, the legal alternatives, and the wrong operand or result.

    `depth` is the number of operands that fitted.
    """

    text: str
    depth: int
    operand: int | None = None
    result: int | None = None
    legal: tuple[str, ...] = ()


def kind_of(letter: str, kind: Type) -> bool:
    """Return whether a type is of a letter's kind."""
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


def is_of_element(scalar: str, element: str) -> bool:
    """Return whether a scalar type matches the elements of a register; the sign of integers is ignored."""
    return scalar == element or (scalar[0] in "iu" and element[0] in "iu" and scalar[1:] == element[1:])


def mismatch(name: str, form: MicroForm, operands: tuple[Type, ...], results: tuple[Type, ...]) -> FormMismatch | None:
    """Return the first difference between types and a form, None if there is none."""
    wanted = form.operands
    if len(operands) != len(wanted):
        return FormMismatch(f"{len(wanted)} operands, not {len(operands)}", min(len(operands), len(wanted)) - 1)
    least = len(form.results) - form.optional
    if not least <= len(results) <= len(form.results):
        count = str(least) if not form.optional else f"{least} or {len(form.results)}"
        return FormMismatch(f"{count} result{'s' * (len(form.results) != 1)}, not {len(results)}", len(wanted))
    seen: dict[str, Type] = {}
    for depth, (letter, kind, number, is_result) in enumerate(_pairs(form, operands, results)):
        text, legal = _problem(name, letter, kind, seen)
        if text:
            position = (None, number) if is_result else (number, None)
            return FormMismatch(text, depth, position[0], position[1], legal)
        seen.setdefault(letter, kind)
        if isinstance(kind, VectorType):
            seen.setdefault("register", kind)
    return None


def _pairs(
    form: MicroForm, operands: tuple[Type, ...], results: tuple[Type, ...]
) -> Iterator[tuple[str, Type, int, bool]]:
    """Yield letters with types; masks and scalars that follow a register come after all registers."""
    taken = [*zip(form.operands, operands, range(len(operands)), strict=True)]
    given = [*zip(form.results, results, range(len(results)), strict=False)]
    both = [*((*pair, False) for pair in taken), *((*pair, True) for pair in given)]
    yield from (pair for pair in both if pair[0] not in "MT")
    yield from (pair for pair in both if pair[0] in "MT")


def _problem(name: str, letter: str, kind: Type, seen: dict[str, Type]) -> tuple[str, tuple[str, ...]]:
    """Return the error of one type with its correction; empty if there is none."""
    if not kind_of(letter, kind):
        return f"expected {_KINDS[letter]}, not {format_type(kind)}", ()
    if letter in _SAME and letter in seen and seen[letter] != kind:
        wanted = format_type(seen[letter])
        return f"registers and masks of one kind must have the same type: {wanted} and {format_type(kind)}", (wanted,)
    register = seen.get("register")
    if isinstance(kind, MaskType) and letter == "M":
        bits = _mask_bits(name, register)
        if bits is not None and kind.bits != bits:
            return f"a b{kind.bits} mask for b{bits} lanes", (f"!pto.mask<b{bits}>",)
    if (
        letter == "T"
        and isinstance(kind, ScalarType)
        and isinstance(register, VectorType)
        and not is_of_element(kind.name, register.element)
    ):
        return f"the scalar must have the element type {register.element}, not {kind.name}", (register.element,)
    return "", ()


def _mask_bits(name: str, register: Type | None) -> int | None:
    """Return the required width of a mask: that of the name, or else of the register; 64 bits take two of b32."""
    if ROWS[name].width is not None:
        return ROWS[name].width
    return min(32, lane_bits(register.element)) if isinstance(register, VectorType) else None


# Distribution modes of vector loads and stores, as the verifier knows them: names, widths and masks.
#
# What they do with bytes, and which addresses they take, is for the unit. Source: docs/reference/micro.md section 4.


@dataclass(frozen=True, slots=True)
class Distribution:
    """A mode: `lanes` are the permitted element widths in bits of value or pointer; empty: any.

    `mask` is the lane width of a store's mask, None if it is that of the value; `masked` tells whether a store
    uses its mask at all.
    """

    lanes: tuple[int, ...] = ()
    mask: int | None = None
    masked: bool = True
    supported: bool = True


_ANY = Distribution()

LOADS: Mapping[str, Distribution] = {
    "NORM": _ANY,
    # They are named for what is read: a register of any elements holds it (newer kernels of the vendor).
    **{f"BRC_B{w}": Distribution((8, 16, 32, 64)) for w in (8, 16, 32)},
    "BRC_BLK": _ANY,
    **{f"UNPK_B{w}": Distribution((w, 2 * w)) for w in (8, 16, 32)},
    **dict.fromkeys(("UNPK4", "UNPK4_B8"), Distribution((8, 32))),
    **{f"US_B{w}": Distribution((w,)) for w in (8, 16)},
    **{f"DS_B{w}": Distribution((w,)) for w in (8, 16)},
    **{f"E2B_B{w}": Distribution((w,)) for w in (16, 32)},
    "SPLT2CHN": Distribution((8, 16)),
    **{f"SPLT2CHN_B{w}": Distribution((w,)) for w in (8, 16)},
    **dict.fromkeys(("SPLT4CHN", "SPLT4CHN_B8"), Distribution((8,))),
}
"""Modes of `vlds`."""

PAIR_LOADS: Mapping[str, Distribution] = {
    **{f"DINTLV_B{w}": Distribution((w,)) for w in (8, 16, 32)},
    **dict.fromkeys(("BDINTLV", "BDINTLV_BLK"), _ANY),
}
"""Modes of `vldsx2`."""

STORES: Mapping[str, Distribution] = {
    "NORM": _ANY,
    "NORM_B8": Distribution((8,), 8),
    "NORM_B16": Distribution((16,), 16),
    "NORM_B32": Distribution((32, 64), 32),
    **{f"1PT_B{w}": Distribution((w,), masked=False) for w in (8, 16, 32)},
    "PK_B16": Distribution((16, 8), 16),
    "PK_B32": Distribution((32, 16), 32),
    "PK_B64": Distribution((64, 32), 32),
    "PK4_B32": Distribution((32, 8), 32),
    "MRG4CHN_B8": Distribution((8,), 32, supported=False),
    "MRG2CHN_B8": Distribution((8,), 16, supported=False),
    "MRG2CHN_B16": Distribution((16,), 32, supported=False),
}
"""Modes of `vsts`."""

PAIR_STORES: Mapping[str, Distribution] = {f"INTLV_B{w}": Distribution((w,)) for w in (8, 16, 32)}
"""Modes of `vstsx2`."""

MASK_LOADS: Mapping[str, Distribution] = dict.fromkeys(("NORM", "US", "DS"), _ANY)
"""Modes of `plds` and `pldi`."""

MASK_STORES: Mapping[str, Distribution] = dict.fromkeys(("NORM", "PK"), _ANY)
"""Modes of `psts` and `psti`."""

OF_OPERATION: Mapping[str, Mapping[str, Distribution]] = {
    "vlds": LOADS,
    "vldsx2": PAIR_LOADS,
    "vsts": STORES,
    "vstsx2": PAIR_STORES,
    **dict.fromkeys(("plds", "pldi"), MASK_LOADS),
    **dict.fromkeys(("psts", "psti"), MASK_STORES),
}
"""The modes of each operation that has any."""


# Writing micro operations as their rows tell, in one canonical form each.


def micro_text(node: MicroOperation) -> str:
    """Return the text of an operation, without its results."""
    form = _form_of(node)
    plain = len(node.operands) - sum(count for _, count in node.groups)
    items = _items(node, form, node.operands[:plain])
    text = f"pto.{node.mnemonic}" + (f" {', '.join(items)}" if items else "")
    types = [(number, format_type(kind)) for number, kind in enumerate(node.operand_types)]
    shown = [kind for number, kind in types if number < plain and (number != form.offset or form.offset_typed)]
    start = plain
    for name, count in node.groups:
        text += f" {name}({values_text(node.operands[start : start + count])})"
        kinds = [kind for _, kind in types[start : start + count]]
        prefix = f"{name} " if name in ("loop", "pad") else ""
        shown += [f"{prefix}{kinds[0]}", *kinds[1:]]
        start += count
    entries = [f'{WRITTEN.get(key, key)} = "{node.word(key)}"' for key in form.keys if node.word(key) is not None]
    if entries:
        text += f" {{{', '.join(entries)}}}"
    return text + _types(shown, node.result_types)


def _form_of(node: MicroOperation) -> MicroForm:
    plain = node.operand_types[: len(node.operands) - sum(count for _, count in node.groups)]
    return next(
        form for form in forms_of(node.mnemonic) if mismatch(node.mnemonic, form, plain, node.result_types) is None
    )


def _items(node: MicroOperation, form: MicroForm, operands: tuple[str, ...]) -> list[str]:
    items: list[str] = []
    number = 0
    for item in form.items:
        if len(item) > 1:
            word = node.word(item)
            items += [] if word is None else [word if item in NUMBERS else f'"{word}"']
        else:
            if number == form.offset:
                items[-1] += f"[%{operands[number]}]"
            else:
                items.append(f"%{operands[number]}")
            number += 1
    return items


def _types(shown: list[str], results: tuple[Type, ...]) -> str:
    given = ", ".join(map(format_type, results))
    if not shown:
        return f" : {given}" if results else ""
    return f" : {', '.join(shown)}" + (f" -> {given}" if results else "")


# The conversions of the micro level: type pairs of `vcvt`, and which attributes each must and must not have.
#
# An attribute is either required or forbidden; there are no defaults. Source: docs/reference/micro.md section 3.1.

TRUNCATED = ("f16", "bf16", "f32")
"""Element formats of `vtrc`."""
TRUNCATIONS = ("R", "A", "F", "C", "Z")
"""Letters of `vtrc`."""

_ALIASES: Mapping[str, str] = {**SYNONYMS["rnd"], **SYNONYMS["sat"], **SYNONYMS["part"]}


def plain_word(word: str) -> str:
    """Return the short word for a rounding, saturation or part (`ROUND_R` is `R`); other words are unchanged."""
    return _ALIASES.get(word, word)


@dataclass(frozen=True, slots=True)
class Conversion:
    """A legal pair of formats, by name.

    `roundings`, `saturations` and `parts` are the attribute's legal words; empty: the attribute is forbidden.
    """

    src: str
    dst: str
    roundings: tuple[str, ...]
    saturations: tuple[str, ...]
    parts: tuple[str, ...]

    @property
    def mask_width(self) -> int:
        """The lane width of the mask: that of the source element, 32 for those of 64 bits."""
        return min(32, element_bits(self.src))

    @property
    def words(self) -> Mapping[str, tuple[str, ...]]:
        """The legal words of each attribute, by the attribute's name; empty: forbidden."""
        return {"rnd": self.roundings, "sat": self.saturations, "part": self.parts}


def element_bits(name: str) -> int:
    """Bits that an element of a register type occupies: two elements of a 4-bit format share a byte."""
    return format_named(name).storage_bits


def _words(cell: str) -> tuple[str, ...]:
    return () if cell == "-" else tuple(cell.split())


CONVERSIONS: Mapping[tuple[str, str], Conversion] = {
    (row["src"], dst): Conversion(
        row["src"], dst, _words(row["rnd"]), SATURATIONS if row["sat"] == "yes" else (), _words(row["part"])
    )
    for row in table_rows(Path(__file__).with_name("micro_conversions.csv"))
    for dst in row["dst"].split()
}
"""The 51 legal pairs, by the names of their formats (signless integers are signed)."""

INTERFACE_CONVERSIONS: Mapping[tuple[str, str], Conversion] = {
    ("bf16", "e8m0"): Conversion("bf16", "e8m0", ("R", "A", "F", "C", "Z", "O"), SATURATIONS, PARITIES),
    ("e8m0", "bf16"): Conversion("e8m0", "bf16", (), (), PARITIES),
    ("f16", "bf16"): Conversion("f16", "bf16", ("R", "A", "F", "C", "Z"), SATURATIONS, ()),
}
"""Pairs that the verifier rejects and another vendor text has: a target supports them only with an option.

Their attributes are assumed to equal those of their neighbours: other pairs of 16 and 8 bits, and the reverse pair.
"""


def destinations_of(src: str) -> tuple[str, ...]:
    """Return the destination formats of a source."""
    return tuple(dst for first, dst in CONVERSIONS if first == src)


def conversion(src: str, dst: str) -> Conversion:
    """Return a pair.

    IllegalError: the conversion does not exist; the message names those of this source.
        IllegalError: there is no such conversion; the message names those of this source.
    """
    row = CONVERSIONS.get((src, dst)) or INTERFACE_CONVERSIONS.get((src, dst))
    if row is None:
        legal = map(element_spelling, destinations_of(src))
        raise IllegalError(f"vcvt has no conversion {src} -> {dst}{detour(src, dst)}", legal=legal)
    return row


def detour(src: str, dst: str) -> str:
    """Return how a pair without a conversion is converted in two steps, as the end of a message; empty if it is not."""
    if src == dst:
        return "; vtrc rounds to integral values of the same format" if src in TRUNCATED else ""
    between = [middle for middle in destinations_of(src) if (middle, dst) in CONVERSIONS]
    return f"; by way of {', '.join(between)} it takes two instructions" if between else ""


def check_attributes(pair: Conversion, attributes: Mapping[str, str]) -> None:
    """Reject an attribute of `vcvt` that is missing, forbidden, or has a word that the pair lacks.

    Args:
        pair: the conversion.
        attributes: `rnd`, `sat`, `part` as written, in any of their spellings.

    Raises:
        IllegalError: an attribute is wrong; the message lists the legal words.
    """
    named = f"vcvt {pair.src} -> {pair.dst}"
    for name, legal in pair.words.items():
        word = attributes.get(name)
        if word is None and legal:
            raise IllegalError(f"{named} needs {name}", legal=legal)
        if word is None:
            continue
        if not legal:
            allowed = [f"{other} = {' | '.join(words)}" for other, words in pair.words.items() if words]
            raise IllegalError(f"{named} takes no {name}", legal=allowed or ["no attributes"])
        if plain_word(word) not in legal:
            raise IllegalError(f"{named} has no {name} = {word}", legal=legal)
    for name in attributes:
        if name not in pair.words:
            raise IllegalError(f"vcvt has no attribute '{name}'", legal=pair.words)


def check_mask(pair: Conversion, width: int) -> None:
    """Reject a mask of another lane width than the source's.

    Raises:
        IllegalError: the widths differ.
    """
    if width != pair.mask_width:
        raise IllegalError(
            f"the mask of vcvt {pair.src} -> {pair.dst} is b{width}", legal=(f"!pto.mask<b{pair.mask_width}>",)
        )


def check_truncation(name: str, letter: str) -> None:
    """Reject a format or a letter that `vtrc` lacks.

    Raises:
        IllegalError: the format or letter does not exist.
    """
    if name not in TRUNCATED:
        raise IllegalError(f"vtrc does not take {name}", legal=TRUNCATED)
    if plain_word(letter) not in TRUNCATIONS:
        raise IllegalError(f"vtrc has no rounding {letter}", legal=TRUNCATIONS)


def undocumented_rounding(pair: Conversion, letter: str) -> str | None:
    """Return why a rounding that the verifier accepts is undocumented for a pair; otherwise None.

    Source: docs/reference/micro.md section 3.1.
    """
    plain = plain_word(letter)
    if plain == "H" and pair.dst != "hif8":
        return "H is documented only for hif8"
    if plain == "O" and (pair.src, pair.dst) not in (("f32", "f16"), ("bf16", "e8m0")):
        return "O is documented only for f32 -> f16"
    return None
