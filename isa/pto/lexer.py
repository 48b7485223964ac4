"""From `.pto` text to tokens, and from an offset in the text to a place in the file.

A whole type (`!pto.tile_buf<vec, 4x256xf32>`) and a whole dialect attribute (`#pto<round_mode ROUND>`) are one token
each: neither nests angle brackets, and one token keeps `4x256xf32` and the blank inside the attribute out of the
grammar. Comments run from `//` to the end of the line; white space is free. Source: pto_assembly.md section 3.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

from isa.errors import ReadError, Span


class Kind(Enum):
    """What a token is; the text tells words and punctuation apart further."""

    VALUE = "value name"
    TYPE = "type"
    ATTRIBUTE = "attribute"
    STRING = "string"
    SYMBOL = "symbol name"
    NUMBER = "number"
    WORD = "word"
    BLOCK = "block label"
    PUNCTUATION = "punctuation"
    UNKNOWN = "unknown character"
    END = "end of file"


_IDENTIFIER = r"(?:[\w.$]|-(?!>))"  # '-' belongs to a name, except where it begins the arrow '->'

_PATTERNS: tuple[tuple[Kind, str], ...] = (
    (Kind.VALUE, rf"%{_IDENTIFIER}+(?:[#:]\d+)?"),
    (Kind.PUNCTUATION, r"->|[{}()\[\]<>=:,]"),
    (Kind.WORD, rf"[A-Za-z_]{_IDENTIFIER}*"),
    (Kind.TYPE, r"![A-Za-z_][\w.$]*(?:\s*+<[^<>]*+>)?"),
    (Kind.NUMBER, r"-?(?:0x[0-9A-Fa-f]+|\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)"),
    (Kind.ATTRIBUTE, rf"\#[A-Za-z_]{_IDENTIFIER}*(?:\s*+<[^<>]*+>)?"),
    (Kind.STRING, r'"(?:[^"\\\n]|\\[^\n])*+"'),
    (Kind.SYMBOL, rf"@{_IDENTIFIER}+"),
    (Kind.BLOCK, rf"\^{_IDENTIFIER}+"),
    (Kind.END, r"\Z"),
    (Kind.UNKNOWN, r"."),
)
# Possessive, so that a file that ends in white space or a comment is not scanned again from every character of it.
_SKIP = r"(?:\s++|//[^\n]*+)*+"
_TOKEN = re.compile(f"{_SKIP}(?:{'|'.join(f'({pattern})' for _, pattern in _PATTERNS)})", re.ASCII)
_KINDS: tuple[Kind | None, ...] = (None, *(kind for kind, _ in _PATTERNS))


@dataclass(frozen=True, slots=True)
class Source:
    """A text under its file name, able to name the place of any offset in it."""

    file: str
    text: str
    _line_starts: list[int] = field(default_factory=list, repr=False, compare=False)

    def span(self, start: int, length: int = 1) -> Span:
        """Return the place of `length` characters from offset `start`, cut at the end of the line."""
        starts = self._line_starts
        if not starts:
            starts.append(0)
            starts.extend(match.end() for match in re.finditer("\n", self.text))
        line = bisect_right(starts, start)
        first = starts[line - 1]
        last = starts[line] - 1 if line < len(starts) else len(self.text)
        text = self.text[first:last].rstrip("\r")
        column = start - first + 1
        return Span(self.file, line, column, text, max(1, min(length, len(text) - column + 1)))

    def error(self, message: str, start: int, length: int = 1, legal: Iterable[str] = ()) -> ReadError:
        """Return (not raise) the refusal of what stands at offset `start`."""
        return ReadError(message, span=self.span(start, length), legal=legal)


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of one file in three parallel lists, the last token being the end of the file (empty text)."""

    kinds: list[Kind]
    texts: list[str]
    starts: list[int]


def tokenize(source: Source) -> Tokens:
    """Split a text into tokens.

    Raises:
        ReadError: a character that begins no token, or a string that does not end on its line.
    """
    kinds: list[Kind] = []
    texts: list[str] = []
    starts: list[int] = []
    for match in _TOKEN.finditer(source.text):
        index = match.lastindex or 0
        kind = _KINDS[index]
        assert kind is not None  # one alternative always matches
        start = match.start(index)
        if kind is Kind.UNKNOWN:
            raise _unknown(source, start)
        kinds.append(kind)
        texts.append(match.group(index))
        starts.append(start)
        if kind is Kind.END:
            break
    return Tokens(kinds, texts, starts)


def _unknown(source: Source, start: int) -> ReadError:
    character = source.text[start]
    if character == '"':
        return source.error("the string does not end on its line", start)
    if character == "/":
        return source.error("unexpected '/'; a comment begins with two", start, legal=("//",))
    if character in "%!#@^":
        return source.error(f"a name must follow '{character}'", start)
    return source.error(f"unexpected character {character!r}", start)
