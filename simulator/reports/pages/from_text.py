"""Blocks made of what a section of the text report prints: its lines and its tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table as TextTable
from rich.text import Text as StyledText

from castsim.reports.pages.blocks import Block, Line, Listing, PageTable, Text

_TONES = (("yellow", "warning"), ("red", "warning"), ("bold", "strong"), ("dim", "dim"))
"""The tone of a line by what its style has in its name."""


def text_blocks(parts: Iterable[RenderableType]) -> Iterator[Block]:
    """Yield what a section prints as blocks: lines that follow each other are one."""
    lines: list[Line] = []
    for part in _flat(parts):
        if isinstance(part, StyledText) and part.no_wrap and "\n" in part.plain.strip():
            if lines:
                yield Text(tuple(lines))
                lines = []
            yield Listing("", part.plain.rstrip("\n"))
            continue
        if isinstance(part, StyledText):
            lines += (Line(text, _tone(part)) for text in part.plain.splitlines() if text.strip())
            continue
        if not isinstance(part, TextTable):
            raise TypeError(f"no block for a {type(part).__name__}")
        if lines:
            yield Text(tuple(lines))
            lines = []
        yield _table(part)
    if lines:
        yield Text(tuple(lines))


def _flat(parts: Iterable[RenderableType]) -> Iterator[RenderableType]:
    """Yield what stands in groups and in indentations."""
    for part in parts:
        if isinstance(part, Padding):
            yield from _flat((part.renderable,))
        elif isinstance(part, Group):
            yield from _flat(part.renderables)
        elif isinstance(part, str):
            yield StyledText(part)
        else:
            yield part


def _tone(text: StyledText) -> str:
    styles = " ".join([str(text.style), *(str(span.style) for span in text.spans)])
    return next((tone for name, tone in _TONES if name in styles), "plain")


def _table(found: TextTable) -> PageTable:
    columns = found.columns
    rows = zip(*(map(_plain, column.cells) for column in columns), strict=True)
    numbers = tuple(number for number, column in enumerate(columns) if column.justify == "right")
    return PageTable("", tuple(_plain(column.header) for column in columns), tuple(rows), numbers)


def _plain(cell: RenderableType) -> str:
    return (cell.plain if isinstance(cell, StyledText) else str(cell)).strip()
