"""Calls as lines tell them: operands, scalars, attributes, and which instruction each is.

Source of modes and types: asc-devkit @0da921b9 (casts.csv).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from castsim.isa.dataclass import dataclass
from castsim.isa.errors import IllegalError, Span
from castsim.isa.pto.strided_statements import STRIDED_ROWS
from castsim.isa.reading import table_rows


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor as an instruction uses it: its byte address, the bytes of its buffer, its strides in blocks."""

    element: str
    address: int
    low: int
    high: int
    block: int
    repeat: int

    @classmethod
    def of(cls, word: str) -> Operand:
        """Read `u,ELEMENT,ADDRESS,LOW,HIGH,BLOCK,REPEAT`."""
        _, element, *numbers = word.split(",")
        return cls(element, *map(int, numbers))


@dataclass(frozen=True, slots=True)
class Words:
    """Operands, the destination first; scalars as element type and code; attributes."""

    operands: tuple[Operand, ...]
    scalars: tuple[tuple[str, int], ...]
    attributes: Mapping[str, str]

    @classmethod
    def of(cls, words: Sequence[str]) -> Words:
        """Read the words of a line."""
        scalars = [word.split(",")[1:] for word in words if word[0] == "s"]
        return cls(
            tuple(Operand.of(word) for word in words if word[0] == "u"),
            tuple((element, int(code, 16)) for element, code in scalars),
            dict(word.split(",")[1:] for word in words if word[0] == "a"),
        )


MODES = ("NONE", "RINT", "FLOOR", "CEIL", "ROUND", "TRUNC", "ODD", "HYBRID", "EVEN", "ZERO")
"""The rounding modes of AscendC by their numbers, which are not those of PTO."""

LETTERS = {"NONE": "", "RINT": "r", "FLOOR": "f", "CEIL": "c", "ROUND": "a", "TRUNC": "z", "ODD": "o"}
"""The last letter of an instruction on A2/A3."""

_ANY = "any"
_NOTHING = "nothing is issued"


@dataclass(frozen=True, slots=True)
class Conversion:
    """A pair of types on one chip.

    `modes` are the legal ones (`any`: the mode is ignored), `stem` is the instruction's name without its letter, `none`
    what CAST_NONE is.
    """

    modes: tuple[str, ...]
    stem: str
    none: str


def _table() -> Mapping[tuple[bool, str, str], Conversion]:
    conversions = {}
    for row in table_rows(Path(__file__).with_name("casts.csv")):
        for a5, chip in ((False, "a2a3"), (True, "a5")):
            if row[f"{chip}_modes"]:
                modes = tuple(row[f"{chip}_modes"].split())
                stem = row["a2a3_instructions"] if not a5 else ""
                conversions[a5, row["from"], row["to"]] = Conversion(modes, stem, row[f"{chip}_none"])
    return conversions


CONVERSIONS = _table()
"""By whether the chip is an A5, source and destination."""


def conversion(words: Words, a5: bool, span: Span) -> tuple[str, str]:
    """Return the instruction of a Cast on A2/A3 (the A5's is `cast`), and its mode.

    Raises:
        IllegalError: the chip has no such pair, or issues nothing for the mode.
    """
    to, source = (operand.element for operand in words.operands)
    chip = "A5" if a5 else "A2/A3"
    row = CONVERSIONS.get((a5, source, to))
    if row is None:
        destinations = [destination for own, origin, destination in CONVERSIONS if (own, origin) == (a5, source)]
        raise IllegalError(f"Cast from {source} to {to} is not on {chip}", span=span, legal=sorted(destinations))
    number = int(words.attributes["mode"])
    mode = MODES[number] if number < len(MODES) else "UNKNOWN"
    ignored = row.modes[0] in (_ANY, "scale")
    if mode == "NONE" and not ignored and mode not in row.modes and a5 and row.none == "as RINT":
        mode = "RINT"
    if not ignored and mode not in row.modes:
        what = f"CAST_{mode} from {source} to {to}"
        why = f"{what}: the library issues nothing and leaves the destination as it was"
        raise IllegalError(
            f"Cast by {why}" if mode == "NONE" or row.none == _NOTHING else f"{what} is not on {chip}",
            span=span, legal=[f"RoundMode::CAST_{word}" for word in row.modes],
        )  # fmt: skip
    if a5:
        return "cast", mode
    return row.stem + ("" if ignored or len(row.modes) == 1 else LETTERS[mode]), ""


def check_elements(call: str, mnemonic: str, words: Words, span: Span) -> None:
    """Refuse a call on elements that its instruction does not have on A2/A3.

    Raises:
        IllegalError: it has no such instruction, or none for them.
    """
    row = STRIDED_ROWS.get(mnemonic)
    if row is None:
        raise IllegalError(f"{call} is not on A2/A3", span=span, legal=("--target a5",))
    elements = [operand.element for operand in words.operands]
    forms = [pointers for form in row.forms if len(pointers := re.sub("[^DSBOR]", "", form)) == len(elements)]
    fitting = not forms
    for form in forms:
        to, given = ({element for own, element in zip(form, elements, strict=True) if own == letter} for letter in "DS")
        fitting |= any((not to or to == {d}) and (not given or given == {s}) for d, s in row.elements)
    if not fitting:
        have = ", ".join(d if d == s else f"{s} to {d}" for d, s in row.elements)
        own = " and ".join(sorted(set(elements)))
        raise IllegalError(f"{call} of {own} is not on A2/A3; it takes {have}", span=span)
