"""How text reports look: one style of table, and rendering for a terminal or for a pipe."""

from __future__ import annotations

import os
import shutil
from io import StringIO
from typing import TextIO

from rich.box import Box
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

PIPED_WIDTH = 100
"""Columns of a report that does not go to a terminal, unless COLUMNS says otherwise."""

# Nothing but a line of dashes below the heading, in ASCII: also readable in mails and logs.
_RULED = Box("    \n    \n -- \n    \n    \n    \n    \n    \n", ascii=True)


def table(*headings: str, title: str | None = None, numbers: tuple[str, ...] = ()) -> Table:
    """Return an empty table; the columns in `numbers` are aligned right."""
    made = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=_RULED,
        header_style="bold",
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    for heading in headings:
        right = heading in numbers
        made.add_column(
            heading, justify="right" if right else "left", no_wrap=right, overflow="fold", min_width=len(heading)
        )
    return made


def indented(renderable: RenderableType) -> Padding:
    """Return something two columns further right."""
    return Padding(renderable, (0, 0, 0, 2))


def width_of(stream: TextIO) -> int:
    """Return the columns available on a stream."""
    fallback = PIPED_WIDTH if not stream.isatty() else 80
    return shutil.get_terminal_size((fallback, 24)).columns if stream.isatty() or "COLUMNS" in os.environ else fallback


def rendered(renderable: RenderableType, stream: TextIO) -> str:
    """Return the text of a report for a stream, coloured for a terminal unless NO_COLOR is set, no trailing blanks.

    The text is written by the caller in one go, because rich itself would end the program when a pipe breaks.
    """
    plain = not stream.isatty() or bool(os.environ.get("NO_COLOR"))
    buffer = StringIO()
    console = Console(
        file=buffer,
        width=width_of(stream),
        force_terminal=not plain,
        color_system=None if plain else "auto",
        highlight=False,
        markup=False,
        emoji=False,
        soft_wrap=False,
    )
    # A text that must not be wrapped, such as a listing, is not cut either.
    console.print(renderable, soft_wrap=isinstance(renderable, Text) and bool(renderable.no_wrap))
    return "\n".join(line.rstrip() for line in buffer.getvalue().split("\n"))
