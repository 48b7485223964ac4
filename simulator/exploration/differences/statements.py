"""The lines of a program as a comparison sees them: what is written in each, without blanks and comments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

DIRECTIVE = "// castsim:"
"""How a comment begins that declares something, and is compared like a statement."""

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|//.*|->|[\w.$%@#!^]+|\S')
_VALUE = re.compile(r"%[\w.$]+")


@dataclass(frozen=True, slots=True)
class Statement:
    """A line of a program: its number from 1, what it says as tokens, and its text without blanks around it."""

    line: int
    tokens: tuple[str, ...]
    text: str

    @property
    def instruction(self) -> str:
        """Its mnemonic: the first word that is no result."""
        if "=" in self.tokens and self.tokens[0].startswith("%"):
            behind = self.tokens.index("=") + 1
            return self.tokens[behind] if behind < len(self.tokens) else ""
        return self.tokens[0]

    @property
    def values(self) -> tuple[str, ...]:
        """The names of the values in it, in their order."""
        return tuple(token for token in self.tokens if _VALUE.fullmatch(token))

    def without_names(self) -> tuple[str, ...]:
        """Return its tokens with all names of values alike."""
        return tuple("%" if _VALUE.fullmatch(token) else token for token in self.tokens)


def statements(source: str) -> tuple[Statement, ...]:
    """Return the lines of a program that say something, in their order; comments and blanks do not count."""
    return tuple(_statements(source))


def statement(line: int, text: str) -> Statement | None:
    """Return a line as a statement; None if it says nothing."""
    stripped = text.strip()
    tokens = _TOKEN.findall(stripped)
    if tokens and tokens[-1].startswith("//") and not stripped.startswith(DIRECTIVE):
        tokens.pop()
    if stripped.startswith(DIRECTIVE):
        tokens = [DIRECTIVE, *_TOKEN.findall(stripped.removeprefix(DIRECTIVE))]
    return Statement(line, tuple(tokens), stripped) if tokens else None


def _statements(source: str) -> Iterator[Statement]:
    for number, text in enumerate(source.split("\n"), 1):
        found = statement(number, text)
        if found is not None:
            yield found
