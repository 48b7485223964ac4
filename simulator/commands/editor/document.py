"""An open text: what is asked for beside it, its target, and its places as castsim and as clients count them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from lsprotocol.types import Position, Range

from castsim.execution.input_data import choose_target
from castsim.isa.errors import CastsimError
from castsim.machines.vliw import chosen_target
from castsim.running.loaded import LoadRequest
from castsim.targets import Target, load_target


@dataclass(frozen=True, slots=True)
class Settings:
    """What the editor asks for beyond a text: a target by name or path, values of scalar arguments."""

    target: str | None = None
    args: Mapping[str, int | float] = field(default_factory=dict)

    def request(self) -> LoadRequest:
        """Return what a program is loaded by.

        Raises:
            ReadError, TargetDataError: the target cannot be read.
        """
        target: Target | None = None if self.target is None else load_target(self.target)
        return LoadRequest(target, args=self.args)


@dataclass(frozen=True)
class EditedText:
    """One version of a text. `name` is what messages call it, `language` one of `checking.LANGUAGES`."""

    name: str
    language: str
    text: str
    version: int = 0

    @cached_property
    def lines(self) -> list[str]:
        """Its lines, without their ends."""
        return self.text.split("\n")

    def with_lines(self, lines: list[str]) -> EditedText:
        """Return another version of the text."""
        return EditedText(self.name, self.language, "\n".join(lines), self.version)


def normalised(text: str) -> str:
    """Return a text with `\\n` at the ends of all lines, as `castsim.check_text` reads it."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


# The target of a text, also of one that cannot be read as a whole.

_ARCHITECTURE = re.compile(r'pto\.target_arch\s*=\s*"([^"\n]*)"')


def target_of_text(text: EditedText, settings: Settings) -> Target | None:
    """Return the target that is asked for, else the one that a text names; None if it cannot be told."""
    try:
        asked = settings.request().target
        if text.language == "pto":
            named = _ARCHITECTURE.search(text.text)
            return choose_target(named and named[1], asked)
        return chosen_target(text.text, text.name, asked)
    except CastsimError:
        return None


# Places in a text as castsim counts them (lines from 1, columns in code points from 1) and as clients do.


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
