"""Lines, comments and words of TPC assembly.

Comments are `//` to the end of the line and `/* */`, which may span lines; they are blanked out, so that every column
stays what it was. Comments that begin with `castsim:` are declarations and are handed on. Source: docs/reference/tpc.md
section 7.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

from castsim.isa.errors import ReadError, Span
from castsim.isa.spans import SourceText

_COMMENT = re.compile(r"//(?P<line>[^\n]*)|/\*.*?\*/|(?P<open>/\*)", re.DOTALL)
_DECLARATION = re.compile(r"\s*castsim\s*:", re.IGNORECASE)
_WORD = re.compile(
    r"\s*(?P<text>"
    r"%?[iIuU](?:8|16|32)_-?(?:0?[xX][0-9A-Fa-f]+|\d+)\b"  # a typed immediate: the minus sign belongs to it
    r"|%?(?:[fF](?:32|16)|[bB][fF]16)_[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?\b"
    r"|%?[A-Za-z_.$][\w.$]*"
    r"|(?:[-+]\s*)?(?:0[xX][0-9A-Fa-f]+[uU]?|0[bB][01]+[uU]?"
    r"|(?:\d+\.\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+)(?:[bB][fF]|[fFhH])?|\d+[uU]?)"
    r"|<=|>=|==|!=|[<>=!,]"
    r"|\S)"
)


@dataclass(frozen=True, slots=True)
class Word:
    """A word or sign; `column` counts from 0, `spaced` says whether white space precedes it."""

    text: str
    line: int
    column: int
    spaced: bool


@dataclass(frozen=True, slots=True)
class Comment:
    """A declaration found in a comment: its text after `castsim:`, line and column counted from 0."""

    text: str
    line: int
    column: int


class AssemblySource:
    """A text split into lines, with comments blanked out, able to point at any place in it.

    Raises:
        ReadError: a comment that is opened and never closed.
    """

    __slots__ = ("_starts", "_text", "comments", "file", "lines")

    def __init__(self, text: str, file: str) -> None:
        self.file = file
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        self._text = SourceText(file, text)
        self.comments: list[Comment] = []
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self.lines = _COMMENT.sub(self._blank, text).split("\n")

    def _blank(self, match: re.Match[str]) -> str:
        line = bisect_right(self._starts, match.start()) - 1
        column = match.start() - self._starts[line]
        if match["open"]:
            raise ReadError("the comment is not closed", span=self.span(line, column, 2), legal=("*/",))
        if match["line"] is not None:
            declared = _DECLARATION.match(match["line"])
            if declared:
                self.comments.append(Comment(match["line"][declared.end() :], line, column + 2 + declared.end()))
        return re.sub(r"[^\n]", " ", match.group())

    def span(self, line: int, column: int, length: int = 1) -> Span:
        """Return the place of some characters; line and column count from 0."""
        return Span.within(self._text, self._starts[line] + column, length)

    def error(self, message: str, line: int, column: int, length: int = 1, legal: Iterable[str] = ()) -> ReadError:
        """Return (not raise) the refusal of what stands at a place."""
        return ReadError(message, span=self.span(line, column, length), legal=legal)

    def words(self, line: int, start: int, end: int) -> list[Word]:
        """Split part of a line into words and signs."""
        found = []
        text = self.lines[line]
        position = start
        while match := _WORD.match(text, position, end):
            found.append(Word(match["text"], line, match.start("text"), match.start("text") > position))
            position = match.end()
        return found

    def word_span(self, word: Word) -> Span:
        """Return the place of a word."""
        return self.span(word.line, word.column, len(word.text))
