"""Lists within one cell of a table or one text of a description."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator

LIST_SEPARATOR = ";"
"""Between the items of a cell of a CSV table."""


def _listed(cell: object) -> object:
    """Split a cell into its items; an empty one has none."""
    if cell is None or cell == "":
        return ()
    return tuple(cell.split(LIST_SEPARATOR)) if isinstance(cell, str) else cell


def _words(text: object) -> object:
    """Split a text into its words; an empty one has none."""
    if text is None:
        return ()
    return tuple(text.split()) if isinstance(text, str) else text


Listed = Annotated[tuple[str, ...], BeforeValidator(_listed)]
"""Items that a CSV cell separates by `;`."""

Words = Annotated[tuple[str, ...], BeforeValidator(_words)]
"""Words that a text separates by blanks."""
