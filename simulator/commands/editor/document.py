"""An open text, and what is known of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

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
