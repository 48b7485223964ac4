"""Attribute dictionaries, and the enumerations that stand in them.

An attribute value is kept as canonical text: single blanks, `#pto<round_mode RINT>` for both spellings of a dialect
attribute. Source: docs/reference/pto.md sections 1.1, 3 and 3.1.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache

from castsim.isa.errors import WarningKind
from castsim.isa.modes import Saturation
from castsim.isa.pto.lexer import TokenKind, closest
from castsim.isa.pto.program import Pipe, RoundMode
from castsim.isa.pto.statement_reader import PtoReader

ROUND_MODES: dict[str, RoundMode] = {mode.name: mode for mode in RoundMode}
SATURATIONS: dict[str, Saturation] = {mode.name: mode for mode in Saturation}
PIPES: dict[str, Pipe] = {pipe.value: pipe for pipe in Pipe}
EVENTS: dict[str, int] = {f"EVENT_ID{number}": number for number in range(8)}
LAYOUTS = ("nd", "dn", "nz")
ENDPOINTS: dict[str, Pipe] = {
    "TLOAD": Pipe.MTE2,
    "TSTORE_VEC": Pipe.MTE3,
    "TSTORE_ACC": Pipe.FIX,
    "TMOV_M2L": Pipe.MTE1,
    "TMOV_M2B": Pipe.MTE1,
    "TVEC": Pipe.V,
    "TVECWAIT_EVENT": Pipe.V,
    "TMATMUL": Pipe.M,
    "TMOV_M2V": Pipe.V,
    "TMOV_M2S": Pipe.FIX,
    "TMOV_V2M": Pipe.FIX,
}
"""Event endpoint -> the pipe it stands for (docs/reference/pto.md section 3.4)."""

_MODE_NAMES = ("round_mode", "saturation_mode")
# The front end prints these three with a blank, all others with a dot.
_BLANK_FORM = ("round_mode", "saturation_mode", "cmp", "quant_type", "quant_scale_alg", "mx_group_axis")
_DIALECT = re.compile(r"#pto(?:\.([A-Za-z_]\w*)\s*<\s*(\S*)\s*>|\s*<\s*([A-Za-z_]\w*)\s+(\S+)\s*>)")
_BARE_KEY = re.compile(r"[A-Za-z_][\w.$]*", re.ASCII)
_INTEGER = re.compile(r"-?(?:0x[0-9A-Fa-f]+|\d+)")


@dataclass(slots=True)
class Attribute:
    """One entry: its canonical value text (empty for a unit attribute) and the tokens of key and value."""

    text: str
    key_index: int
    value_index: int


Attributes = dict[str, Attribute]


def read_attributes(reader: PtoReader, into: Attributes | None = None) -> Attributes:
    """Read `{key = value, ...}` if it stands here, adding to `into`.

    Raises:
        ReadError: malformed value, or a key given twice.
    """
    found: Attributes = {} if into is None else into
    if reader.take("{"):
        reader.nest()
        if not reader.take("}"):
            _read_entry(reader, found)
            while reader.take(","):
                _read_entry(reader, found)
            if not reader.take("}"):
                reader.unexpected("',' or '}'", (",", "}"))
        reader.unnest()
    return found


def sorted_texts(attributes: Attributes) -> tuple[tuple[str, str], ...]:
    """Return the pairs of key and value text, by key."""
    return tuple(sorted((key, attribute.text) for key, attribute in attributes.items()))


def format_attributes(pairs: tuple[tuple[str, str], ...]) -> str:
    """Return `{key = value, ...}` as the parser reads it, the empty text for no attributes."""
    if not pairs:
        return ""
    entries = []
    for key, text in pairs:
        name = key if _BARE_KEY.fullmatch(key) else f'"{key}"'
        entries.append(f"{name} = {text}" if text else name)
    return f"{{{', '.join(entries)}}}"


def enum_word(reader: PtoReader, attribute: Attribute, name: str, legal: Collection[str]) -> str:
    """Return VALUE of `#pto<NAME VALUE>`, which must be one of `legal`; that of a mode may have the prefix CAST_.

    Raises:
        ReadError: another kind of attribute (the real spellings are given), or an unknown value.
    """
    match = _DIALECT.fullmatch(attribute.text)
    if match is None or (match.group(1) or match.group(3)) != name:
        spellings = tuple(f"#pto<{name} {word}>" if name in _BLANK_FORM else f"#pto.{name}<{word}>" for word in legal)
        found = f"found {attribute.text}" if attribute.text else "no value is given"
        raise reader.error(f"expected a value of {name}, {found}", attribute.value_index, spellings)
    word = enum_value(attribute.text)
    bare = word.removeprefix("CAST_") if name in _MODE_NAMES else word
    if bare in legal:
        return bare
    raise reader.error(f"unknown {name} '{word}'", attribute.value_index, legal)


@lru_cache(1024)
def enum_value(text: str) -> str:
    """Return VALUE of the text `#pto<NAME VALUE>` of an attribute that has been read."""
    match = _DIALECT.fullmatch(text)
    assert match is not None
    value: str = match.group(2) if match.group(1) else match.group(4)
    return value


def rounding_from(reader: PtoReader, attribute: Attribute) -> RoundMode:
    """Return the mode of `rmode = #pto<round_mode X>`."""
    return ROUND_MODES[enum_word(reader, attribute, "round_mode", ROUND_MODES)]


def saturation_from(reader: PtoReader, attribute: Attribute) -> Saturation:
    """Return the mode of `sat_mode = #pto<saturation_mode X>`."""
    return SATURATIONS[enum_word(reader, attribute, "saturation_mode", SATURATIONS)]


def layout_from(reader: PtoReader, attribute: Attribute) -> str:
    """Return the layout of `layout = #pto.layout<x>`."""
    return enum_word(reader, attribute, "layout", LAYOUTS)


def check_keys(reader: PtoReader, attributes: Attributes, legal: tuple[str, ...], owner: str) -> None:
    """Reject unknown keys; a key of another dialect (with a dot) only brings a warning, as it has no effect here."""
    for key, attribute in attributes.items():
        if key in legal:
            continue
        if "." in key:
            message = f"attribute {key} of {owner} is not known and has no effect"
            reader.warn(WarningKind.ATTRIBUTE, message, reader.span(attribute.key_index))
            continue
        raise reader.error(f"{owner} has no attribute '{key}'", attribute.key_index, closest(key, legal))


def _read_entry(reader: PtoReader, found: Attributes) -> None:
    key_index = reader.position
    if reader.kinds[key_index] not in (TokenKind.WORD, TokenKind.STRING):
        reader.unexpected("an attribute name")
    reader.position += 1
    key = reader.texts[key_index]
    if reader.kinds[key_index] is TokenKind.STRING:
        key = key[1:-1]
    if not key:
        raise reader.error("an attribute name is empty", key_index)
    if key in found:
        raise reader.error(f"attribute '{key}' is given twice", key_index)
    if reader.take("="):
        value_index = reader.position
        found[key] = Attribute(read_value(reader), key_index, value_index)
    else:
        found[key] = Attribute("", key_index, key_index)


def read_value(reader: PtoReader) -> str:
    """Read an attribute value and return it as canonical text."""
    index = reader.position
    kind, text = reader.kinds[index], reader.texts[index]
    if text in ("[", "{"):
        return _read_nested(reader)
    if text == "(" or kind in (TokenKind.PUNCTUATION, TokenKind.VALUE, TokenKind.BLOCK, TokenKind.END):
        reader.unexpected("an attribute value")
    reader.position += 1
    if kind is TokenKind.ATTRIBUTE:
        return _canonical(text)
    if kind is TokenKind.NUMBER and reader.take(":"):
        return f"{text} : {reader.next_of(TokenKind.WORD, 'a type')}"
    if kind is TokenKind.WORD and reader.at("<"):
        raise reader.error(f"attribute value '{text}<...>' is not supported", index)
    return " ".join(text.split()) if kind is TokenKind.TYPE else text


def _read_nested(reader: PtoReader) -> str:
    reader.nest()
    if reader.take("["):
        text = f"[{', '.join(reader.listed(lambda: read_value(reader), ']'))}]"
    else:
        text = format_attributes(sorted_texts(read_attributes(reader))) or "{}"
    reader.unnest()
    return text


@lru_cache(1024)
def _canonical(text: str) -> str:
    """Bring both spellings of a dialect attribute to one."""
    match = _DIALECT.fullmatch(text)
    if match is None:
        return " ".join(text.split())
    name, word = (match.group(1), match.group(2)) if match.group(1) else (match.group(3), match.group(4))
    return f"#pto<{name} {word}>" if name in _BLANK_FORM else f"#pto.{name}<{word}>"
