"""From `.pto` text to tokens, and from an offset in the text to a place in the file.

A whole type (`!pto.tile_buf<vec, 4x256xf32>`) and a whole dialect attribute (`#pto<round_mode ROUND>`) are one token
each: neither nests angle brackets, and one token keeps `4x256xf32` and the blank inside the attribute out of the
grammar. Comments run from `//` to the end of the line; white space is free. Source: docs/reference/pto.md section 3.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum
from itertools import accumulate, compress, islice, repeat
from operator import sub

from castsim.isa.errors import ReadError, SourceText, Span, too_many_statements


class TokenKind(Enum):
    """The kind of a token; its text distinguishes words and punctuation further."""

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


# '-' belongs to a name, except where it begins the arrow '->'. Possessive, as what may be given back has to be kept: a
# hundred bytes for every character of a long word.
_NAME = r"(?:[\w.$]++|-(?!>))++"

_PATTERNS: tuple[tuple[TokenKind, str], ...] = (
    (TokenKind.VALUE, rf"%{_NAME}(?:[#:]\d+)?"),
    (TokenKind.PUNCTUATION, r"->|[{}()\[\]<>=:,]"),
    (TokenKind.WORD, rf"[A-Za-z_](?:{_NAME})?"),
    (TokenKind.TYPE, r"![A-Za-z_][\w.$]*(?:\s*+<[^<>]*+>)?"),
    (TokenKind.NUMBER, r"-?(?:0x[0-9A-Fa-f]+|\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)"),
    (TokenKind.ATTRIBUTE, rf"\#[A-Za-z_](?:{_NAME})?(?:\s*+<[^<>]*+>)?"),
    (TokenKind.STRING, r'"(?:[^"\\\n]++|\\[^\n])*+"'),
    (TokenKind.SYMBOL, rf"@{_NAME}"),
    (TokenKind.BLOCK, rf"\^{_NAME}"),
    (TokenKind.END, r"\Z"),
    (TokenKind.UNKNOWN, r"."),
)
# Possessive, so that a file that ends in white space or a comment is not scanned again from every character of it.
_SKIP = r"(?:\s++|//[^\n]*+)*+"
_SKIPPED = re.compile(_SKIP, re.ASCII)
_TOKEN = re.compile("|".join(f"({pattern})" for _, pattern in _PATTERNS), re.ASCII)
_PIECE = re.compile(f"{_SKIP}(?:{'|'.join(pattern for _, pattern in _PATTERNS)})", re.ASCII)
"""A token and what is skipped before it: the pieces of a text leave nothing of it out."""
_BLANKS = " \t\n\r\f\v"
_PER_STATEMENT = 40  # a cast has about 20 tokens, a partition of a view of five dimensions 50
_AROUND = 100_000  # arguments and attributes of functions
_KINDS = tuple(kind for kind, _ in _PATTERNS)


class PtoSource(SourceText):
    """A text under its file name, able to name, and to raise an error at, the place of any offset in it."""

    __slots__ = ()

    def span(self, start: int, length: int = 1) -> Span:
        """Return the place of `length` characters from offset `start`, cut at the end of the line."""
        return Span.within(self, start, length)

    def error(self, message: str, start: int, length: int = 1, legal: Iterable[str] = ()) -> ReadError:
        """Return (not raise) the refusal of what stands at offset `start`."""
        return ReadError(message, span=self.span(start, length), legal=legal)


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of one file in three parallel lists, the last token being the end of the file (empty text).

    `unknown` are the numbers of those that begin with a character that begins no token.
    """

    kinds: list[TokenKind]
    texts: list[str]
    starts: list[int]
    unknown: list[int]


def tokenize(source: PtoSource) -> Tokens:
    """Split a text into tokens.

    Raises:
        ReadError: a character that begins no token, or a string that does not end on its line.
    """
    tokens = scan(source)
    for index in tokens.unknown:
        raise unknown_character(source, tokens.starts[index])
    return tokens


def scan(source: PtoSource, most_statements: int | None = None) -> Tokens:
    """Split a text into tokens, those included that are none, for readers that refuse them where they stand.

    Raises:
        LimitError: more tokens than so many statements can have; no statement is near that long.
    """
    most = None if most_statements is None else _PER_STATEMENT * most_statements + _AROUND
    pieces = _pieces(source.text, most)
    bare = list(map(str.lstrip, pieces, repeat(_BLANKS)))
    # Most tokens of a program are there many times: what differs is looked at once, and equal texts become one object.
    texts_of = {text: _without_comments(text) for text in set(bare)}
    texts = list(map(texts_of.__getitem__, bare))
    starts = list(map(sub, accumulate(map(len, pieces)), map(len, texts)))
    if "" not in texts_of.values():
        raise too_many_statements(most_statements or 0, source.span(starts[-1]), "statements' words and signs")
    count = texts.index("") + 1  # behind a text that ends in blanks the end is found twice
    del texts[count:], starts[count:]
    kind_of = {text: _kind(text) for text in set(texts_of.values())}
    if "loc" in kind_of:
        texts, starts = _without_locations(texts, starts)
    kinds = list(map(kind_of.__getitem__, texts))
    unknown: list[int] = []
    if TokenKind.UNKNOWN in kind_of.values():
        unknown = [index for index, kind in enumerate(kinds) if kind is TokenKind.UNKNOWN]
    return Tokens(kinds, texts, starts, unknown)


def _without_locations(texts: list[str], starts: list[int]) -> tuple[list[str], list[int]]:
    """Leave out `loc(...)` behind statements and the aliases `#loc1 = loc(...)`: where a program was written first.

    One whose parentheses do not close stays, to be refused where it stands.
    """
    kept = [True] * len(texts)
    index = 0
    while index < len(texts):
        end = _end_of_location(texts, index) if texts[index] == "loc" else index
        if end > index:
            is_alias = texts[index - 1] == "=" and texts[index - 2].startswith("#")
            first = index - 2 if is_alias else index
            kept[first:end] = [False] * (end - first)
        index = max(end, index + 1)
    return list(compress(texts, kept)), list(compress(starts, kept))


def _end_of_location(texts: list[str], start: int) -> int:
    """Return the token behind the location that begins at `start`, `start` if none does."""
    depth = 0
    for index in range(start + 1, len(texts)):
        depth += (texts[index] == "(") - (texts[index] == ")")
        if depth <= 0:
            return index + 1 if texts[index] == ")" else start
    return start


def _pieces(text: str, most: int | None) -> list[str]:
    """Return all pieces of a text, the end among them, or `most` if there are more."""
    if most is None or len(text) < most:
        return _PIECE.findall(text)
    return [match[0] for match in islice(_PIECE.finditer(text), most)]


def _without_comments(text: str) -> str:
    skipped = _SKIPPED.match(text) if text.startswith("//") else None
    return text[skipped.end() :] if skipped else text


def _kind(text: str) -> TokenKind:
    match = _TOKEN.match(text)
    assert match is not None and match.lastindex is not None  # one alternative always matches
    return _KINDS[match.lastindex - 1]


def unknown_character(source: PtoSource, start: int) -> ReadError:
    """Return (not raise) the refusal of a character that begins no token."""
    character = source.text[start]
    if character == '"':
        return source.error("the string does not end on its line", start)
    if character == "/":
        return source.error("unexpected '/'; a comment begins with two", start, legal=("//",))
    if character in "%!#@^":
        return source.error(f"a name must follow '{character}'", start)
    return source.error(f"unexpected character {character!r}", start)


# Suggestions for misspelt words.


def closest(word: str, legal: Iterable[str], *, everything_up_to: int = 12) -> tuple[str, ...]:
    """Return the legal words nearest to `word`, best first.

    If none is near, the whole list is the help, as long as it has at most `everything_up_to` words.
    """
    words = tuple(dict.fromkeys(legal))
    folded = word.lower()
    near = [candidate for candidate in words if candidate.lower() == folded]
    # Long garbage is near to nothing, and comparing it would cost time for every word.
    if len(word) <= 64:
        near.extend(get_close_matches(word, words, n=3, cutoff=0.6))
    if near:
        return tuple(dict.fromkeys(near))
    return words if len(words) <= everything_up_to else ()
