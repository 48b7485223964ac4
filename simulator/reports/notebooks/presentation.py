"""What every kind of result gives a notebook: HTML that is safe on any page, and its tables as frames."""

from __future__ import annotations

import html
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from castsim.execution.timing import Cause, share
from castsim.isa.errors import ReadError, escaped
from castsim.reports import notebooks
from castsim.reports.numbers import CAUSE_COLOURS, grouped

if TYPE_CHECKING:
    import pandas
    import polars
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from castsim.execution.outcomes import Frame


# Columns of the tables that become frames.

Column: TypeAlias = "NDArray[np.int64] | NDArray[np.float64] | NDArray[np.bool_] | Sequence[str | None]"
"""The values of a column, row by row: numbers as arrays, NaN where one is missing, or words, None where one is."""

Columns: TypeAlias = Mapping[str, Column]
"""Columns by name, of one length."""


def integers(values: Iterable[int]) -> NDArray[np.int64]:
    """Return a column of whole numbers."""
    return np.fromiter(values, np.int64)


def numbers(values: Iterable[float | None]) -> NDArray[np.float64]:
    """Return a column of numbers, NaN for None."""
    return np.fromiter((np.nan if value is None else value for value in values), np.float64)


# Columns as frames of pandas or polars.

LIBRARIES = ("pandas", "polars")
"""Libraries of frames, the one that is taken first in front."""


def frame_of(made: Callable[[], Columns], library: str | None) -> Frame:
    """Return columns as a frame of a library, None: of the one that is installed, pandas of both.

    Raises:
        ReadError: another library, or it is not installed; before anything is made.
    """
    if library not in (None, *LIBRARIES):
        raise ReadError(f"unknown library of frames '{library}'", legal=LIBRARIES)
    wanted = LIBRARIES if library is None else (library,)
    found = next((name for name in wanted if find_spec(name) is not None), None)
    if found is None:
        named = " or ".join(wanted)
        install = "pip install polars" if library == "polars" else "pip install 'castsim[notebook]'"
        raise ReadError(f"frames need the package {named}", legal=(install,))
    return _pandas_frame(made()) if found == "pandas" else _polars_frame(made())


def _pandas_frame(columns: Columns) -> pandas.DataFrame:
    """Return columns as a frame: words as strings, of which missing ones are `NA`; missing numbers are NaN."""
    import pandas  # noqa: PLC0415 - of an extra

    return pandas.DataFrame(
        {
            name: values if isinstance(values, np.ndarray) else pandas.array(list(values), dtype="string")
            for name, values in columns.items()
        }
    )


def _polars_frame(columns: Columns) -> polars.DataFrame:
    """Return columns as a frame; missing words and numbers are null."""
    import polars  # noqa: PLC0415 - nobody needs both libraries

    return polars.DataFrame(
        [
            polars.Series(name, values, nan_to_null=True)
            if isinstance(values, np.ndarray)
            else polars.Series(name, list(values), polars.String)
            for name, values in columns.items()
        ]
    )


class Presentation(ABC):
    """One result as HTML and as frames; made with the result."""

    @abstractmethod
    def __init__(self, result: object) -> None: ...

    @abstractmethod
    def html(self) -> str:
        """Return one element of HTML."""

    @abstractmethod
    def tables(self) -> Mapping[str, Callable[[], Columns]]:
        """Return what makes the columns of each table, by its name; the first is the one meant without a name."""

    def frame(self, table: str | None, library: str | None) -> Frame:
        """Return a table as a frame.

        Raises:
            ReadError: no such table or library, or it is not installed.
        """
        tables = self.tables()
        name = next(iter(tables)) if table is None else table
        if name not in tables:
            raise ReadError(f"no table '{name}'", legal=tables)
        return frame_of(tables[name], library)


class DrawnPresentation(Presentation):
    """One that draws its result, too."""

    @abstractmethod
    def draw(self, figure: Figure) -> None:
        """Draw the result into an empty figure."""

    def plot(self) -> Figure:
        """Return the result drawn.

        Raises:
            ReadError: matplotlib is not installed.
        """
        figure = notebooks.empty_figure()
        self.draw(figure)
        return figure


# The kinds of results that notebooks show; the module of a kind is imported once a result of it is shown.

_ROOM = "castsim.reports.notebooks"

_KINDS = {
    "castsim.running.program_runs.Result": "runs:RunPresentation",
    "castsim.running.estimating.cast_estimates.Estimate": "answers:EstimatePresentation",
    "castsim.running.estimating.cast_estimates.Estimates": "answers:EstimatesPresentation",
    "castsim.lowering.lowering_answers.Answer": "answers:LoweringPresentation",
    "castsim.lowering.conformance.Matrix": "answers:ConformancePresentation",
    "castsim.evidence.accuracy_assessment.AccuracyTables": "answers:AccuracyPresentation",
}
"""What presents which class of results."""


def presentation_of(result: object) -> Presentation:
    """Return what presents a result, of one of the classes above or derived from one."""
    places = (_KINDS.get(f"{each.__module__}.{each.__qualname__}") for each in type(result).__mro__)
    module, _, name = next(filter(None, places)).partition(":")
    made: type[Presentation] = getattr(import_module(f"{_ROOM}.{module}"), name)
    return made(result)


def plot_of(result: object) -> Figure:
    """Return a result drawn, of one of the classes above that are.

    Raises:
        ReadError: matplotlib is not installed.
        EngineError: cycles are to be drawn, and the result has none.
    """
    made = presentation_of(result)
    assert isinstance(made, DrawnPresentation)
    return made.plot()


# HTML of results: text that stays text, tables, bars and lanes as SVG, in colours that suit light and dark pages.

# Colours that are told apart on light and on dark pages, by colour-blind readers too.
#
# Those of eight things are of Okabe and Ito, "Color Universal Design" (2008), without black; causes have fixed ones, so
# that drawings can be compared.

SERIES = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#b8a900", "#999999")
"""Colours of things in the order in which they appear; the last is for all that are left."""


def cause_colour(cause: Cause) -> str:
    """Return the colour of a cause."""
    return CAUSE_COLOURS[cause][0]


def colours_of(names: Iterable[str]) -> dict[str, str]:
    """Return a colour for each different name, in the order of their first appearance."""
    known = dict.fromkeys(names)
    return {name: SERIES[min(number, len(SERIES) - 1)] for number, name in enumerate(known)}


def meanings(colours: Mapping[str, str]) -> dict[str, str]:
    """Return the name behind each colour; of several names of one colour only that there are others."""
    found: dict[str, str] = {}
    for name, colour in colours.items():
        found[colour] = "others" if colour in found else name
    return found


WIDTH = 640
"""Pixels of a drawing."""

_LABEL = 64
"""Pixels for the name of a lane."""

_LANE = 18
"""Pixels from lane to lane."""

_BORDER = "border-bottom:1px solid rgba(128,128,128,.35);padding:.1em .7em .1em 0;background:none;color:inherit"
_RIGHT = f"{_BORDER};text-align:right;font-variant-numeric:tabular-nums"
_LEFT = f"{_BORDER};text-align:left"


def short(result: object) -> str:
    """Return the short form of a result without the name of its class."""
    return repr(result)[1:-1].partition(" ")[2]


def text(words: object) -> str:
    """Return words as HTML that shows them, with nothing in them that opens an element or turns the line around."""
    return html.escape(escaped(str(words)), quote=True)


def line(words: object, *, bold: bool = False, dim: bool = False) -> str:
    """Return a line of words."""
    style = f"{'font-weight:bold;' if bold else ''}{'opacity:.7;' if dim else ''}margin:.15em 0"
    return f'<div style="{style}">{text(words)}</div>'


def whole(*parts: str) -> str:
    """Return the parts as the one element that a notebook shows."""
    return f'<div style="color:inherit;line-height:1.4">{"".join(parts)}</div>'


def program_text(source: str) -> str:
    """Return a program, folded away."""
    shown = f'<pre style="background:none;color:inherit">{text(source)}</pre>'
    return f"<details><summary>program</summary>{shown}</details>"


def table(heads: Sequence[str], rows: Iterable[Sequence[object]], numbers: Sequence[str] = ()) -> str:
    """Return a table; the columns `numbers` stand flush right, and cells that are `Markup` go in as they are."""
    styles = [_RIGHT if head in numbers else _LEFT for head in heads]
    head = "".join(f'<th style="{style}">{text(name)}</th>' for style, name in zip(styles, heads, strict=True))
    body = "".join(_row(styles, row) for row in rows)
    return (
        '<table style="border-collapse:collapse;margin:.4em 0;background:none;font-size:inherit">'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )


def _row(styles: Sequence[str], row: Sequence[object]) -> str:
    cells = (f'<td style="{style}">{_cell(cell)}</td>' for style, cell in zip(styles, row, strict=True))
    return f"<tr>{''.join(cells)}</tr>"


@dataclass(frozen=True, slots=True)
class Markup:
    """HTML that is finished."""

    html: str


def _cell(cell: object) -> str:
    return cell.html if isinstance(cell, Markup) else text(cell)


def cause_bar(causes: Mapping[Cause, int], total: int, width: int = 320) -> Markup:
    """Return the cycles of a pipe as a bar whose parts are its causes; their words appear on hovering."""
    parts, behind = [], 0
    for cause in Cause:
        cycles = causes.get(cause, 0)
        if cycles and total:
            title = f"{cause}: {grouped(cycles)} cycles, {share(cycles, total)}"
            parts.append(
                f'<rect x="{width * behind / total:.2f}" y="1" width="{width * cycles / total:.2f}" height="12" '
                f'fill="{cause_colour(cause)}"><title>{text(title)}</title></rect>'
            )
        behind += cycles
    return Markup(_svg(width, 14, parts, "cycles by cause"))


def legend(colours: Mapping[str, str]) -> str:
    """Return what colours mean."""
    parts = [
        f'<span style="white-space:nowrap;margin-right:1em"><span style="display:inline-block;width:.8em;height:.8em;'
        f'background:{colour}"></span> {text(name)}</span>'
        for colour, name in meanings(colours).items()
    ]
    return f'<div style="font-size:90%">{"".join(parts)}</div>'


@dataclass(frozen=True, slots=True)
class Mark:
    """Cycles [start, end) of a lane, in a colour, and what is said on hovering."""

    lane: str
    start: int
    end: int
    colour: str
    title: str


def lanes(names: Sequence[str], marks: Iterable[Mark], start: int, end: int) -> str:
    """Return marks between two cycles as SVG, a lane each name; tiny ones of a colour join where nobody sees a gap."""
    scale = (WIDTH - _LABEL) / max(end - start, 1)
    drawn = [_lane(number, name) for number, name in enumerate(names)]
    place = {name: number * _LANE for number, name in enumerate(names)}
    for mark in _joined(marks, 1 / scale):
        left = _LABEL + (max(mark.start, start) - start) * scale
        width = max((min(mark.end, end) - max(mark.start, start)) * scale, 0.5)
        drawn.append(
            f'<rect x="{left:.2f}" y="{place[mark.lane] + 3}" width="{width:.2f}" height="{_LANE - 6}" '
            f'fill="{mark.colour}" fill-opacity=".8"><title>{text(mark.title)}</title></rect>'
        )
    bottom = len(names) * _LANE + 12
    drawn.append(_words(_LABEL, bottom, f"cycle {grouped(start)}"))
    drawn.append(_words(WIDTH, bottom, grouped(end), anchor="end"))
    return _svg(WIDTH, bottom + 6, drawn, "timeline")


def _joined(marks: Iterable[Mark], gap: float) -> Iterable[Mark]:
    """Yield marks, one for all of a lane and colour between which nobody would see anything."""
    opened: dict[tuple[str, str], tuple[Mark, int, int]] = {}
    for mark in sorted(marks, key=lambda each: each.start):
        key = mark.lane, mark.colour
        known = opened.get(key)
        tiny = mark.end - mark.start < gap
        if known is not None and tiny and mark.start - known[1] < gap:
            opened[key] = known[0], max(known[1], mark.end), known[2] + 1
            continue
        if known is not None:
            yield _one(*known)
        opened[key] = mark, mark.end, 1
    for known in opened.values():
        yield _one(*known)


def _one(mark: Mark, end: int, count: int) -> Mark:
    title = mark.title if count == 1 else f"{mark.title}, and {count - 1} more"
    return Mark(mark.lane, mark.start, end, mark.colour, title)


def _lane(number: int, name: str) -> str:
    y = number * _LANE + _LANE // 2
    ruled = f'<line x1="{_LABEL}" x2="{WIDTH}" y1="{y}" y2="{y}" stroke="currentColor" stroke-opacity=".2"/>'
    return _words(0, y + 4, name) + ruled


def _words(x: int, y: int, words: str, anchor: str = "start") -> str:
    return f'<text x="{x}" y="{y}" font-size="11" fill="currentColor" text-anchor="{anchor}">{text(words)}</text>'


def _svg(width: int, height: int, parts: Iterable[str], label: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" aria-label="{text(label)}">{"".join(parts)}</svg>'
    )
