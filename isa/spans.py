"""Places in a source text: offsets into the one text, from which line and column are made on demand."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Self

SHOWN = 200
"""Characters of a source line that a listing shows at most."""


class SourceText:
    """A text under its file name, able to name the place of any offset in it; its first line may have any number."""

    __slots__ = ("_first_line", "_starts", "file", "text")

    def __init__(self, file: str, text: str, first_line: int = 1) -> None:
        self.file = file
        self.text = text
        self._first_line = first_line
        self._starts: list[int] = []

    def place(self, offset: int) -> tuple[int, int]:
        """Return the number of the line that holds an offset, and the offset at which that line begins."""
        index = bisect_right(self._line_starts(), offset) - 1
        return self._first_line + index, self._starts[index]

    def line_end(self, offset: int) -> int:
        """Return the offset behind the last character of the line that holds an offset."""
        starts = self._line_starts()
        index = bisect_right(starts, offset)
        end = starts[index] - 1 if index < len(starts) else len(self.text)
        begin = starts[index - 1]
        while end > begin and self.text[end - 1] == "\r":
            end -= 1
        return end

    def _line_starts(self) -> list[int]:
        if not self._starts:
            self._starts = [0, *(match.end() for match in re.finditer("\n", self.text))]
        return self._starts


class Span:
    """A place in a source text.

    `line` and `column` count from 1; `length` is the number of characters to underline, cut at the end of the line;
    `text` is the whole source line, so that a message can be printed after the file is gone. A span holds the text it
    is in and two numbers: a program of one long line costs that line once, however many spans it has.
    """

    __slots__ = ("_length", "_offset", "_source")

    def __init__(self, file: str, line: int, column: int, text: str = "", length: int = 1) -> None:
        self._source = SourceText(file, text, line)
        self._offset = column - 1
        self._length = length

    @classmethod
    def within(cls, source: SourceText, offset: int, length: int = 1) -> Self:
        """Return the place of `length` characters from an offset of a text."""
        span = cls.__new__(cls)
        span._source = source
        span._offset = offset
        span._length = length
        return span

    @property
    def file(self) -> str:
        """Name of the file."""
        return self._source.file

    @property
    def line(self) -> int:
        """Number of the line."""
        return self._source.place(self._offset)[0]

    @property
    def column(self) -> int:
        """Number of the first character in its line."""
        return self._offset - self._source.place(self._offset)[1] + 1

    @property
    def length(self) -> int:
        """Number of characters, at least 1, none of them beyond the end of the line where the line is known."""
        if not self._source.text:
            return self._length
        return max(1, min(self._length, self._source.line_end(self._offset) - self._offset))

    @property
    def text(self) -> str:
        """The source line."""
        return self._source.text[self._source.place(self._offset)[1] : self._source.line_end(self._offset)]

    def excerpt(self, most: int = SHOWN) -> str:
        """Return the source line without the blanks around it; of one that is long, `most` characters from here on."""
        begin, end = self._source.place(self._offset)[1], self._source.line_end(self._offset)
        if end - begin > most:
            begin, end = self._offset, min(end, self._offset + most)
        return self._source.text[begin:end].strip()

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"

    def __repr__(self) -> str:
        return f"Span({self.file!r}, {self.line}, {self.column}, {self.excerpt()!r}, {self.length})"

    def _key(self) -> tuple[str, int, int, int]:
        return self.file, self.line, self.column, self.length

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Span) and self._key() == other._key() and self.text == other.text

    def __hash__(self) -> int:
        return hash(self._key())


# The base of all parts of a program that have a place in its source.

NOWHERE = Span("<none>", 1, 1)
"""The place of a part that no source holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Located:
    """Anything with a place in the source."""

    span: Span = field(default=NOWHERE, compare=False, repr=False)
