"""Reading operations on logical registers: one reader for all (docs/reference/micro.md section 9.2)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from castsim.isa.pto.attributes import enum_value, read_attributes
from castsim.isa.pto.lexer import TokenKind, closest
from castsim.isa.pto.micro.micro_words import LEGAL, short
from castsim.isa.pto.program import Operation
from castsim.isa.pto.statement_reader import PtoReader, Statement
from castsim.isa.pto.types import format_type
from castsim.isa.pto.value_types import PointerType, ScalarType, Type, VmiOperation
from castsim.isa.pto.vmi.vmi_forms import COUNTS, DISTRIBUTIONS, PREFIX, ROWS, SYNONYMOUS, SYNONYMS, Row, letter_of
from castsim.isa.pto.vmi.vmi_rules import check
from castsim.isa.warning_text import WarningKind

Use = tuple[str, int]
_NUMBER = re.compile(r"(\d{1,9})(?: : \w+)?")
_WORDS = {
    "rounding": LEGAL["rnd"], "saturate": LEGAL["sat"], "cmp_mode": LEGAL["cmp"], "order": LEGAL["order"],
    "dist_mode": DISTRIBUTIONS, "pattern": LEGAL["pattern"],
}  # fmt: skip
_KINDS = {"rounding": "rnd", "saturate": "sat", "cmp_mode": "cmp"}
_NAMES = {"V": "a logical register", "K": "a logical mask", "P": "a pointer", "S": "a scalar"}


@dataclass(slots=True)
class _Text:
    """An operation as it is written: uses of values, which of them is in brackets, words with their tokens, types."""

    uses: list[Use] = field(default_factory=list)
    offset_at: int | None = None
    words: dict[str, tuple[str, int]] = field(default_factory=dict)
    types: list[tuple[Type, int]] = field(default_factory=list)
    results: list[tuple[Type, int]] = field(default_factory=list)


def read_vmi(reader: PtoReader, statement: Statement) -> Operation:
    """Read one operation on logical registers.

    Raises:
        ReadError: operands, words, types or results that it is not written with.
        IllegalError: well-formed, and there is no such conversion, element or shape.
    """
    mnemonic = statement.operation.removeprefix(PREFIX)
    mnemonic = SYNONYMOUS.get(mnemonic, mnemonic)
    row = ROWS[mnemonic]
    text = _read_text(reader, statement, row)
    operands = _typed_operands(reader, statement, text)
    _check_operands(reader, statement, row, text, operands)
    results = tuple(kind for kind, _ in text.results)
    if "".join(map(letter_of, results)) != row.result:
        index = text.results[0][1] if text.results else statement.index
        wanted = _NAMES[row.result] if row.result else "nothing"
        raise reader.error(f"{statement.name} gives {wanted}", index, (row.example,))
    found = VmiOperation(
        mnemonic,
        tuple(name for name, _ in text.uses),
        operands,
        statement.define(reader, results),
        results,
        tuple(sorted((key, word) for key, (word, _) in text.words.items())),
        text.offset_at,
        span=statement.span,
    )
    check(reader, found, {key: index for key, (_, index) in text.words.items()})
    return found


def _read_text(reader: PtoReader, statement: Statement, row: Row) -> _Text:
    text = _Text()
    while reader.kinds[reader.position] in (TokenKind.VALUE, TokenKind.STRING, TokenKind.ATTRIBUTE):
        index = reader.position
        if reader.kinds[index] is TokenKind.VALUE:
            text.uses.append(reader.operand())
            if reader.take("["):
                text.offset_at = len(text.uses)
                text.uses.append(reader.operand())
                reader.expect("]")
        else:
            _word(reader, statement, row, text, row.word, reader.texts[index], index)
            reader.position += 1
        if not reader.take(","):
            break
    for key, attribute in read_attributes(reader).items():
        plain = SYNONYMS.get(key, key) if key not in row.keys else key
        if plain not in row.keys and "." in key:
            message = f"attribute {key} of {statement.name} is not known and has no effect"
            reader.warn(WarningKind.ATTRIBUTE, message, reader.span(attribute.key_index))
            continue
        if plain not in row.keys:
            raise reader.error(f"{statement.name} has no attribute '{key}'", attribute.key_index,
                               closest(key, row.keys, everything_up_to=8))  # fmt: skip
        _word(reader, statement, row, text, plain, attribute.text, attribute.value_index)
    if row.word and row.word not in text.words:
        raise reader.error(f"{statement.name} needs its {row.word}", statement.index, (row.example,))
    reader.expect(":")
    if reader.kinds[reader.position] in (TokenKind.TYPE, TokenKind.WORD):
        text.types = reader.types()
    if reader.take("->"):
        text.results = reader.types()
    elif not text.uses:
        text.types, text.results = [], text.types
    return text


def _word(
    reader: PtoReader, statement: Statement, row: Row, text: _Text, key: str, written: str, index: int
) -> None:  # fmt: skip
    """Take in a word or number under its short name."""
    if not key:
        raise reader.error(f"{statement.name} has no word here", index, (row.example,))
    if key in text.words:
        raise reader.error(f"{key} is given twice", index)
    if key in COUNTS:
        match = _NUMBER.fullmatch(written)
        if match is None or int(match.group(1)) == 0:
            raise reader.error(f"{key} of {statement.name} is a number above zero, not {written[:40]}", index, ("8",))
        text.words[key] = match.group(1), index
        return
    if key == "reassoc":
        text.words[key] = "", index
        return
    plain = enum_value(written) if written.startswith("#pto") and "<" in written else written.strip('"')
    plain = short(_KINDS.get(key, key), plain)
    if plain not in _WORDS[key]:
        raise reader.error(f"unknown {key} '{plain[:40]}' of {statement.name}", index, _WORDS[key])
    text.words[key] = plain, index


def _typed_operands(reader: PtoReader, statement: Statement, text: _Text) -> tuple[Type, ...]:
    """Return the types of all operands; the offset's, and those of all scalars of an access, may be left out."""
    defined = [reader.definition(use).type for use in text.uses]
    scalars = {place for place, kind in enumerate(defined) if isinstance(kind, ScalarType)}
    offsets = set() if text.offset_at is None else {text.offset_at}
    if not any(isinstance(kind, PointerType) for kind in defined):
        scalars = set()
    for free in (set[int](), offsets, scalars):
        shown = [place for place in range(len(defined)) if place not in free]
        if len(shown) == len(text.types):
            for place, (kind, index) in zip(shown, text.types, strict=True):
                reader.check_use(text.uses[place], kind, index)
            written = {place: kind for place, (kind, _) in zip(shown, text.types, strict=True)}
            return tuple(written.get(place, kind) for place, kind in enumerate(defined))
    index = text.types[-1][1] if text.types else statement.index
    raise reader.error(f"{len(text.uses)} operands with {len(text.types)} types", index)


def _check_operands(
    reader: PtoReader, statement: Statement, row: Row, text: _Text, operands: tuple[Type, ...]
) -> None:  # fmt: skip
    """Reject operands of other kinds than the operation has."""
    if row.fits("".join(map(letter_of, operands))):
        return
    given = ", ".join(format_type(kind) for kind in operands)
    index = text.types[0][1] if text.types else statement.index
    raise reader.error(f"{statement.name} does not take ({given})", index, (row.example,))
