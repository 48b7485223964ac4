"""What is said of the word under the pointer: operations, values, types, modes, registers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from castsim.editor.cycles import LineCycles
from castsim.editor.document import Settings, Text
from castsim.editor.hover_assembly import assembly_hover
from castsim.editor.hover_tiles import tile_hover

_WORD = re.compile(r"[%!@#]?[\w.$]+(?:-(?!>)[\w.$]+)*")


@dataclass(frozen=True, slots=True)
class Hover:
    """Markdown on a word, from column to column of its line, from 1, the end exclusive."""

    text: str
    column: int
    end: int


def hover(text: Text, line: int, column: int, settings: Settings, cycles: Sequence[LineCycles] = ()) -> Hover | None:
    """Return what is known of the word at a place; None if nothing is. `cycles` are those of the text's lines."""
    if text.language == "c":
        return None
    written = text.lines[line - 1]
    found = next((one for one in _WORD.finditer(written) if one.start() < column <= one.end() + 1), None)
    if found is None or "//" in written[: found.start()]:
        return None
    of_language = tile_hover if text.language == "pto" else assembly_hover
    said = of_language(text, line, found[0], settings)
    if said is None:
        return None
    own = next((one for one in cycles if one.line == line), None)
    if own is not None and said.of_operation:
        said.parts.append(f"In this program: {own.label}\n\n```\n{own.about}\n```")
    return Hover("\n\n".join(said.parts), found.start() + 1, found.end() + 1)
