"""Layout of text reports: one style of table, and rendering for a terminal or for a pipe."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from functools import wraps
from io import StringIO
from itertools import pairwise
from operator import gt
from textwrap import wrap
from typing import Literal, ParamSpec, TextIO

from rich.box import Box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Column, Table
from rich.text import Text

from castsim.files import is_coloured
from castsim.isa.dataclass import replace
from castsim.isa.errors import escaped

_Given = ParamSpec("_Given")

PIPED_WIDTH = 100
"""Columns of a report that does not go to a terminal, unless COLUMNS sets another number."""

# Nothing but a line of dashes below the heading, in ASCII: also readable in mails and logs.
_RULED = Box("    \n    \n -- \n    \n    \n    \n    \n    \n", ascii=True)


_WORDY = 16
"""Minimum width of a text of several words, if it is that long, before a table is broken."""

_LONGEST_WORD = 200
"""Maximum number of columns of a word that is not wrapped: longer ones are names that are rarely read."""


class FittingTable(Table):
    """A table that cuts no number or word on a narrow terminal, and repeats its keys in every part.

    Its keys are the first columns, as many as identify its rows, and the texts after them. If its columns do not
    fit side by side, headings of several words are wrapped. If that is not enough, the keys are shown with as
    many of the others as fit, and again below with the next ones. A column that is still too wide exceeds the edge.
    """

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Lay out one table or several."""
        least, groups = self._fitted(console, options)
        for number, group in enumerate(groups):
            part = copy(self)
            part.columns = [
                replace(self.columns[column_number], _index=index) for index, column_number in enumerate(group)
            ]
            for column, column_number in zip(part.columns, group, strict=True):
                column.min_width = least[column_number]
                if cell_len(str(column.header)) > least[column_number]:
                    column.header = "\n".join(wrap(str(column.header), least[column_number], break_on_hyphens=False))
            if number:
                part.title = None
                yield Text()
            width = max(options.max_width, _width(least[index] for index in group))
            self._widen(part, console, options.update(max_width=width))
            yield from Table.__rich_console__(part, console, options.update(max_width=width))

    @staticmethod
    def _widen(part: Table, console: Console, options: ConsoleOptions) -> None:
        """Give the columns their widths if one of them would get less than its minimum, which rich does not keep."""
        least = [column.min_width or 1 for column in part.columns]
        room = options.max_width - _width([0] * len(least))
        whole = [
            min(room, max(width, *(Measurement.get(console, options, cell).maximum for cell in column.cells), 0))
            for width, column in zip(least, part.columns, strict=True)
        ]
        if any(map(gt, least, _collapsed(whole, [0] * len(least), room))):
            for column, width in zip(part.columns, _collapsed(whole, least, room), strict=True):
                column.width = width

    def _keys(self, widths: Sequence[int], room: int) -> int:
        """Return the number of key columns: those that identify the most rows, and texts after them in half the width.

        An empty first cell repeats that of the row above.
        """
        columns = [[getattr(cell, "plain", str(cell)) for cell in column.cells] for column in self.columns]
        rows = [list(row) for row in zip(*columns, strict=True)]
        for above, row in pairwise(rows):
            row[0] = row[0] or above[0]
        counts = range(1, max(2, len(self.columns)))
        keys = max(counts, key=lambda count: (len({tuple(row[:count]) for row in rows}), -count))
        while keys < len(self.columns) - 1 and self.columns[keys].justify == "left":
            if 2 * _width(widths[: keys + 1]) > room:
                break
            keys += 1
        return keys

    def _fitted(self, console: Console, options: ConsoleOptions) -> tuple[list[int], list[list[int]]]:
        """Return the minimum width of every column, and the indices of columns shown side by side."""
        bodies = [self._least(console, options, column) for column in self.columns]
        headings = [str(column.header) for column in self.columns]
        whole = list(map(max, bodies, map(cell_len, headings)))
        broken = list(map(max, bodies, map(_longest_word, headings)))
        if _width(whole) <= options.max_width:
            return whole, [list(range(len(whole)))]
        keys = range(self._keys(broken, options.max_width))
        groups, closer = (list(_groups(least, options.max_width, keys)) for least in (whole, broken))
        return (broken, closer) if len(closer) < len(groups) else (whole, groups)

    def _least(self, console: Console, options: ConsoleOptions, column: Column) -> int:
        """Return the minimum width of a column's rows: a word, or a whole number with its unit."""
        cells = [Measurement.get(console, options.update(max_width=1 << 16), cell) for cell in column.cells]
        widest = max((cell.maximum for cell in cells), default=0)
        word = max((cell.minimum for cell in cells), default=0)
        body = widest if column.no_wrap else max(word, min(widest, _WORDY))
        return min(body, _LONGEST_WORD)


def _collapsed(widths: Sequence[int], least: Sequence[int], room: int) -> list[int]:
    """Return widths that fit into `room` if their minimums do: the widest is reduced first."""
    result = list(widths)
    while sum(result) > room and any(map(gt, result, least)):
        widest = max((index for index, width in enumerate(result) if width > least[index]), key=result.__getitem__)
        result[widest] -= 1
    return result


def _longest_word(heading: str) -> int:
    return max(map(cell_len, heading.split()), default=0)


def _width(columns: Iterable[int]) -> int:
    """Return the width of a table with columns of these widths, including the separating blanks."""
    widths = list(columns)
    return sum(widths) + 2 * max(len(widths) - 1, 0)


def _groups(least: Sequence[int], width: int, keys: Sequence[int]) -> Iterator[list[int]]:
    """Yield groups of column indices shown side by side, each with the keys."""
    if _width(least) <= width:
        yield list(range(len(least)))
        return
    group = [*keys]
    for number in range(len(keys), len(least)):
        if len(group) > len(keys) and _width(least[column_number] for column_number in (*group, number)) > width:
            yield group
            group = [*keys]
        group.append(number)
    if group:
        yield group


def table(*headings: str, title: str | None = None, rows: Iterable[Iterable[RenderableType]] = ()) -> FittingTable:
    """Return a table; columns whose heading begins with `>` are aligned right."""
    result = FittingTable(
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
        right, text = heading.startswith(">"), heading.removeprefix(">")
        result.add_column(
            text, justify="right" if right else "left", no_wrap=right, overflow="fold", min_width=len(text)
        )
    for row in rows:
        result.add_row(*row)
    return result


def composed(parts: Callable[_Given, Iterator[RenderableType]]) -> Callable[_Given, RenderableType]:
    """Turn a generator of a report's parts into a function that returns the report, the parts one below the other."""

    @wraps(parts)
    def report(*args: _Given.args, **kwargs: _Given.kwargs) -> RenderableType:
        return Group(*parts(*args, **kwargs))

    return report


class Indented(Padding):
    """A renderable indented on the left; unlike other padding, it cuts no line that is wider than the terminal."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Lay out the renderable."""
        room = options.update(max_width=max(1, options.max_width - self.left), height=None)
        for line in Segment.split_lines(console.render(self.renderable, room)):
            yield from (Segment(" " * self.left), *line, Segment.line())


def indented(renderable: RenderableType) -> Padding:
    """Return a renderable indented by two columns."""
    return Indented(renderable, (0, 0, 0, 2))


def noted(report: RenderableType, note: str) -> RenderableType:
    """Return a report followed by a line."""
    return Group(report, Text(), Text(note))


def height(renderable: RenderableType, width: int) -> int:
    """Return the number of lines of a renderable on a terminal of `width` columns."""
    console = Console(file=StringIO(), width=width, highlight=False, markup=False, emoji=False)
    return len(console.render_lines(renderable, pad=False))


def width_of(stream: TextIO) -> int:
    """Return the columns available on a stream."""
    fallback = PIPED_WIDTH if not stream.isatty() else 80
    return shutil.get_terminal_size((fallback, 24)).columns if stream.isatty() or "COLUMNS" in os.environ else fallback


def pieces(report: RenderableType, stream: TextIO) -> list[str]:
    """Return a report as `rendered` does, in pieces that must not be cut: sentences, and rows of tables."""
    texts: list[str] = []
    for part in _parts(report):
        text = rendered(part, stream).removesuffix("\n")
        if not isinstance(part.renderable if isinstance(part, Padding) else part, Table):
            texts.append(text)
            continue
        lines = text.split("\n")
        column = len(lines[0]) - len(lines[0].lstrip()) + len((lines[0].split() or [""])[0])
        for number, line in enumerate(lines):
            if number > 1 and not line[:column].strip() and line.strip():  # wrapped, or below the same first cell
                texts[-1] += f"\n{line}"
            else:
                texts.append(line)
    return texts


def _parts(report: RenderableType) -> Iterator[RenderableType]:
    """Yield the parts of a report; texts are split into lines."""
    if isinstance(report, Group):
        for child in report.renderables:
            yield from _parts(child)
    elif isinstance(report, Text):
        for line in report.split("\n", allow_blank=True):
            line.no_wrap = report.no_wrap
            yield line
    elif isinstance(report, Padding) and isinstance(report.renderable, Text | Group):
        for part in _parts(report.renderable):
            yield type(report)(part, (report.top, report.right, report.bottom, report.left))
    else:
        yield report


class _Escaped:
    """A laid-out renderable with its control characters escaped."""

    def __init__(self, renderable: RenderableType) -> None:
        self._renderable = renderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        for segment in console.render(self._renderable, options):
            yield segment if segment.control else Segment(escaped(segment.text), segment.style)


def rendered(renderable: RenderableType, stream: TextIO) -> str:
    """Return the text of a report for a stream, coloured if `is_coloured` is set, without trailing blanks.

    The caller writes the text in one call, because rich itself would end the program when a pipe breaks.
    """
    coloured = is_coloured(stream)
    buffer = StringIO()
    console = Console(
        file=buffer,
        width=width_of(stream),
        force_terminal=coloured,
        no_color=not coloured,
        color_system=_color_system(stream) if coloured else None,
        highlight=False,
        markup=False,
        emoji=False,
        soft_wrap=False,
    )
    # A text that must not be wrapped, such as a listing, is not cut either; nor is a table that is still too wide.
    soft_wrap = isinstance(renderable, Text) and bool(renderable.no_wrap)
    console.print(_Escaped(renderable), soft_wrap=soft_wrap, crop=False)
    return "\n".join(line.rstrip() for line in buffer.getvalue().split("\n"))


def _color_system(stream: TextIO) -> Literal["auto", "standard"]:
    """Return the colour system for rich: detected on a terminal, elsewhere the 16 colours that always work."""
    return "auto" if stream.isatty() else "standard"
