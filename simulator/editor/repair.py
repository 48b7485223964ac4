"""What a repair is, and a text with it."""

from __future__ import annotations

from dataclasses import dataclass

from castsim.editor.document import Text


@dataclass(frozen=True, slots=True)
class Edit:
    """What is to stand for columns `column` to `end` (exclusive) of a line, all from 1; it may have several lines."""

    line: int
    column: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Repair:
    """A repair: its title, edits of lines of the text as it is, and whether it is the one to be taken."""

    title: str
    edits: tuple[Edit, ...]
    preferred: bool = False


def line_before(line: int, text: str, like: str) -> Edit:
    """Return the insertion of a line before another, indented as the line `like`."""
    indent = like[: len(like) - len(like.lstrip())]
    return Edit(line, 1, 1, f"{indent}{text}\n")


def repaired(text: Text, edits: tuple[Edit, ...]) -> Text:
    """Return a text with edits."""
    lines = list(text.lines)
    for edit in sorted(edits, key=lambda one: (one.line, one.column), reverse=True):
        old = lines[edit.line - 1]
        lines[edit.line - 1] = old[: edit.column - 1] + edit.text + old[edit.end - 1 :]
    return text.with_lines("\n".join(lines).split("\n"))
