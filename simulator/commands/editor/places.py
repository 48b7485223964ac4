"""Places in a text as castsim counts them (lines from 1, columns in code points from 1) and as clients do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lsprotocol.types import Position, Range


@dataclass(frozen=True, slots=True)
class TextPlaces:
    """The lines of a text; `units` is the length of a string as the client counts, in UTF-16 units by default."""

    lines: Sequence[str]
    units: Callable[[str], int]

    def position(self, line: int, column: int) -> Position:
        """Return the position of a column in a line, both from 1."""
        number = min(line, len(self.lines)) - 1
        return Position(number, self.units(self.lines[number][: column - 1]))

    def range(self, line: int, column: int, end: int) -> Range:
        """Return the range from a column to another of the same line, that one exclusive."""
        return Range(self.position(line, column), self.position(line, max(end, column)))

    def place(self, position: Position) -> tuple[int, int]:
        """Return line and column, both from 1, of a position."""
        number = min(position.line, len(self.lines) - 1)
        column, passed = 0, 0
        for character in self.lines[number]:
            if passed >= position.character:
                break
            passed += self.units(character)
            column += 1
        return number + 1, column + 1
