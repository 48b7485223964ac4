"""The conversions of the micro level: type pairs of `vcvt`, and which attributes each must and must not have.

An attribute is either required or forbidden; there are no defaults. Source: docs/reference/micro.md section 3.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from castsim.isa.errors import IllegalError
from castsim.isa.formats import format_named
from castsim.isa.modes import Rounding
from castsim.isa.pto.micro.micro_words import SATURATIONS
from castsim.isa.pto.types import element_spelling
from castsim.isa.pto.value_types import REGISTER_BITS

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

HALVES = ("EVEN", "ODD")
QUARTERS = ("P0", "P1", "P2", "P3")
TRUNCATED = ("f16", "bf16", "f32")
"""Element formats of `vtrc`."""
TRUNCATIONS = ("R", "A", "F", "C", "Z")
"""Letters of `vtrc`."""

_ALIASES: Mapping[str, str] = {
    **{f"ROUND_{letter}": letter for letter in ROUNDINGS},
    "RS_ENABLE": "SAT",
    "RS_DISABLE": "NOSAT",
    **{f"PART_{part}": part for part in (*HALVES, *QUARTERS)},
}


def plain_word(word: str) -> str:
    """Return the short word for a rounding, saturation or part (`ROUND_R` is `R`); other words stay as they are."""
    return _ALIASES.get(word, word)


@dataclass(frozen=True, slots=True)
class Conversion:
    """A legal pair of formats, by their own names.

    `roundings`, `saturations` and `parts` are the words that the attribute may have; none: the attribute is forbidden.
    """

    src: str
    dst: str
    roundings: tuple[str, ...]
    saturations: tuple[str, ...]
    parts: tuple[str, ...]

    @property
    def mask_width(self) -> int:
        """Lane width of the mask: that of the source element, 32 for those of 64 bits."""
        return min(32, element_bits(self.src))

    @property
    def source_lanes(self) -> int:
        """N of the source register's type; 4-bit formats count bytes."""
        return REGISTER_BITS // element_bits(self.src)

    @property
    def destination_lanes(self) -> int:
        """N of the result's type."""
        return REGISTER_BITS // element_bits(self.dst)

    @property
    def words(self) -> Mapping[str, tuple[str, ...]]:
        """The legal words of each attribute, by the attribute's name; none: forbidden."""
        return {"rnd": self.roundings, "sat": self.saturations, "part": self.parts}


def element_bits(name: str) -> int:
    """Bits that an element of a register type occupies: two elements of a 4-bit format share a byte."""
    return format_named(name).storage_bits


_ANY = tuple(ROUNDINGS)
_TO_FP8_FROM_F32 = ("R", "A", "H", "Z")
_TO_FLOAT = ("R", "A", "F", "C", "Z")
_TO_HIF8 = ("A", "H")
_NO: tuple[str, ...] = ()
_Row = tuple[str, str, tuple[str, ...], bool, tuple[str, ...]]

_ROWS: tuple[_Row, ...] = (
    ("f32", "f16 bf16 i16 i64", _ANY, True, HALVES),
    ("f32", "i32", _ANY, True, _NO),
    ("f32", "e4m3fn e5m2", _TO_FP8_FROM_F32, True, QUARTERS),
    ("f32", "hif8", _TO_HIF8, True, QUARTERS),
    ("f16", "f32", _NO, False, HALVES),
    ("f16", "i32", _ANY, False, HALVES),
    ("f16", "i16", _ANY, True, _NO),
    ("f16", "i8 u8", _ANY, True, HALVES),
    ("f16", "e4m3fn e5m2", _TO_FLOAT, True, HALVES),
    ("f16", "hif8", _TO_HIF8, True, HALVES),
    ("bf16", "f32", _NO, False, HALVES),
    ("bf16", "i32", _ANY, True, HALVES),
    ("bf16", "f16", _ANY, True, _NO),
    ("bf16", "e4m3fn e5m2", _TO_FLOAT, True, HALVES),
    ("bf16", "e1m2 e2m1", _TO_FLOAT, False, QUARTERS),
    ("u8", "f16 u16", _NO, False, HALVES),
    ("u8", "u32", _NO, False, QUARTERS),
    ("i8", "f16 i16", _NO, False, HALVES),
    ("i8", "i32", _NO, False, QUARTERS),
    ("u16", "u8", _NO, True, HALVES),
    ("u16", "u32", _NO, False, HALVES),
    ("i16", "f16", _ANY, False, _NO),
    ("i16", "f32 i32 u32", _NO, False, HALVES),
    ("i16", "u8", _NO, True, HALVES),
    ("u32", "u16 i16", _NO, True, HALVES),
    ("u32", "u8", _NO, True, QUARTERS),
    ("i32", "f32", _ANY, False, _NO),
    ("i32", "i16 u16", _NO, True, HALVES),
    ("i32", "u8", _NO, True, QUARTERS),
    ("i32", "i64", _NO, False, HALVES),
    ("i64", "f32", _ANY, False, HALVES),
    ("i64", "i32", _NO, True, HALVES),
    ("e4m3fn", "f32", _NO, False, QUARTERS),
    ("e5m2", "f32", _NO, False, QUARTERS),
    ("hif8", "f32", _NO, False, QUARTERS),
    ("e1m2", "bf16", _NO, False, QUARTERS),
    ("e2m1", "bf16", _NO, False, QUARTERS),
)
"""Source, destinations, words of `rnd`, whether there is a `sat`, words of `part`."""

CONVERSIONS: Mapping[tuple[str, str], Conversion] = {
    (src, dst): Conversion(src, dst, roundings, SATURATIONS if saturates else _NO, parts)
    for src, destinations, roundings, saturates, parts in _ROWS
    for dst in destinations.split()
}
"""The 51 legal pairs, by the names of their formats (signless integers are signed)."""


def destinations_of(src: str) -> tuple[str, ...]:
    """Return the formats into which a source converts."""
    return tuple(dst for first, dst in CONVERSIONS if first == src)


def conversion(src: str, dst: str) -> Conversion:
    """Return a pair.

    Raises:
        IllegalError: there is no such conversion; names those of this source.
    """
    found = CONVERSIONS.get((src, dst))
    if found is None:
        legal = map(element_spelling, destinations_of(src))
        raise IllegalError(f"vcvt has no conversion {src} -> {dst}{_detour(src, dst)}", legal=legal)
    return found


def _detour(src: str, dst: str) -> str:
    if src == dst:
        return "; vtrc rounds to integral values of the same format" if src in TRUNCATED else ""
    between = [middle for middle in destinations_of(src) if (middle, dst) in CONVERSIONS]
    return f"; by way of {', '.join(between)} it is two" if between else ""


def check_attributes(pair: Conversion, attributes: Mapping[str, str]) -> None:
    """Reject an attribute of `vcvt` that is missing, forbidden, or has a word that the pair lacks.

    Args:
        pair: the conversion.
        attributes: `rnd`, `sat`, `part` as written, in any of their spellings.

    Raises:
        IllegalError: as said; lists the legal words.
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
    """Reject a mask of another lane width than the source has.

    Raises:
        IllegalError: as said.
    """
    if width != pair.mask_width:
        raise IllegalError(
            f"the mask of vcvt {pair.src} -> {pair.dst} is b{width}", legal=(f"!pto.mask<b{pair.mask_width}>",)
        )


def check_truncation(name: str, letter: str) -> None:
    """Reject a format or a letter that `vtrc` lacks.

    Raises:
        IllegalError: as said.
    """
    if name not in TRUNCATED:
        raise IllegalError(f"vtrc does not take {name}", legal=TRUNCATED)
    if plain_word(letter) not in TRUNCATIONS:
        raise IllegalError(f"vtrc has no rounding {letter}", legal=TRUNCATIONS)


def undocumented_rounding(pair: Conversion, letter: str) -> str | None:
    """Return why the meaning of a rounding is not documented for a pair that the verifier lets through; else None.

    Source: docs/reference/micro.md section 3.1.
    """
    plain = plain_word(letter)
    if plain == "H" and pair.dst != "hif8":
        return "H is documented for hif8 only"
    if plain == "O" and (pair.src, pair.dst) != ("f32", "f16"):
        return "O is documented for f32 -> f16 only"
    return None
