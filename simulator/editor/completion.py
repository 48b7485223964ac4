"""What may stand where the cursor is: operations, types, modes, registers, values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from castsim.editor.completion_assembly import assembly_suggestions
from castsim.editor.completion_item import CompletionItem
from castsim.editor.completion_tiles import tile_suggestions
from castsim.editor.document import Settings, Text

TRIGGERS = (".", "%", "!", "#", "<", "=", '"')
"""Characters behind which clients ask by themselves."""

_TYPED = re.compile(r'[%!#@]?[\w.$]*$|"\w*$')

_SHAPE = re.compile(r"^(?:\d+x)+")
"""Extents, which are written in one word with the element behind them."""


def completions(text: Text, line: int, column: int, settings: Settings) -> list[Completed]:
    """Return what may stand at a place, line and column from 1, of which the beginning is typed already."""
    before = text.lines[line - 1][: column - 1]
    typed = _TYPED.search(before)
    start = "" if typed is None else _SHAPE.sub("", typed[0].lstrip('"'))
    ahead = before[: len(before) - len(start)]
    if text.language == "c":
        return []
    if text.language == "pto":
        found: Iterable[CompletionItem] = tile_suggestions(text, line, ahead, start)
    else:
        found = assembly_suggestions(text, ahead, start, settings)
    return list(_matching(found, start))


@dataclass(frozen=True, slots=True)
class Completed(CompletionItem):
    """A suggestion, and how many characters of it stand before the cursor."""

    typed: int = 0


def _matching(found: Iterable[CompletionItem], start: str) -> Iterator[Completed]:
    seen = set()
    for one in found:
        if one.text.lower().startswith(start.lower()) and one.text not in seen:
            seen.add(one.text)
            yield Completed(one.text, one.kind, one.detail, one.about, len(start))
