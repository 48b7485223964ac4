"""What every kind of result gives a notebook: safe HTML, its tables as frames, and figures of matplotlib."""

from __future__ import annotations

import html
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from io import BytesIO
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from castsim.execution.timing import WAITING, Cause, OperationTiming, share
from castsim.isa.errors import ReadError, escaped
from castsim.reports.numbers import CAUSE_COLOURS, grouped

if TYPE_CHECKING:
    import pandas
    import polars
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from castsim.execution.outcomes import Frame
    from castsim.running import Result


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
        figure = empty_figure()
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


# Figures of matplotlib: made without its global state, shown by notebooks whether or not they have set it up.

# The operations of a run that a drawing shows: those that occupy their pipe in some cycles.

_WAITS = (Cause.FLAG_WAIT, Cause.BARRIER)
"""Causes of operations that do nothing but wait, and work for a moment at the end."""

READ = 1_000_000
"""Operations that are looked at for a drawing, from the first on."""


@dataclass(frozen=True, slots=True)
class ShownOperation:
    """Cycles [start, end) from the first work of a pipe for an operation to its last effect; of waits only their work.

    `name` is that of the instruction, by which it has its colour; `title` says all of it.
    """

    pipe: str
    start: int
    end: int
    name: str
    title: str


@dataclass(frozen=True, slots=True)
class ShownWindow:
    """The operations in cycles [start, end), in issue order; `cut` says in words what is missing, '' if nothing is."""

    start: int
    end: int
    pipes: tuple[str, ...]
    operations: tuple[ShownOperation, ...]
    cut: str


def shown_window(result: Result, start: int, end: int | None, most: int) -> ShownWindow:
    """Return what cycles [start, end) of a run show, of at most so many operations.

    `end` None is the end of the run, or of the operations where there are more.

    Raises:
        ReadError: the cycles are none of the run's.
        EngineError: the run has no cycles.
    """
    total = result.cycles
    last = total if end is None else end
    if not 0 <= start < last <= total and (start, last) != (0, 0):
        raise ReadError(f"no cycles {start} to {last}: the run takes {total}", legal=(f"0 to {total}",))
    found: list[ShownOperation] = []
    behind = _IssuedOperations(result)
    for operation in behind:
        if len(found) == most:
            behind.cut = True
            break
        if operation.start < last and operation.end > start:
            shown = _shown(result, operation)
            if shown.start < last:
                found.append(shown)
    cut = ""
    if behind.cut:
        last = last if end is not None else max((each.end for each in found), default=last)
        cut = f"the first {grouped(len(found))} operations drawn, of {grouped(len(result.timing.operations))} in all"
    working = {each.pipe for each in found}
    pipes = tuple(pipe for pipe in result.pipes if pipe in working)
    return ShownWindow(start, last, pipes, tuple(found), cut)


class _IssuedOperations:
    """The operations that occupy a pipe, in issue order; `cut` tells whether there were more than are looked at."""

    def __init__(self, result: Result) -> None:
        self._result = result
        self.cut = False

    def __iter__(self) -> Iterator[OperationTiming]:
        for number, operation in enumerate(self._result.timing.operations):
            if number == READ:
                self.cut = True
                return
            if operation.end > operation.start and any(cause not in WAITING for cause in operation.causes):
                yield operation


def _shown(result: Result, operation: OperationTiming) -> ShownOperation:
    instruction = result.loaded.tree.instructions[result.timing.executions[operation.execution].instruction]
    place = "inserted" if instruction.inserted else f"line {instruction.span.line}"
    spent = ", ".join(f"{cause} {grouped(cycles)}" for cause, cycles in operation.causes.items() if cycles)
    title = (
        f"{instruction.text} ({place}), {operation.name} on {operation.pipe}: "
        f"cycles {grouped(operation.start)} to {grouped(operation.end)} ({spent})"
    )
    start = operation.start
    if any(operation.causes.get(cause) for cause in _WAITS):
        start = operation.end - sum(cycles for cause, cycles in operation.causes.items() if cause not in WAITING)
    return ShownOperation(operation.pipe, start, operation.end, instruction.name, title)


try:
    from matplotlib.colors import ListedColormap
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch
except ImportError:
    raise ReadError("drawing needs the package matplotlib", legal=("pip install 'castsim[notebook]'",)) from None

_INCH = 0.32
"""Height of a lane."""

_FEW = 50
"""Operations of a row and colour up to which their ends are drawn."""

_DOTS = 90
"""Dots per inch of a picture in a notebook."""


class NotebookFigure(Figure):
    """A figure that a notebook shows as a picture, on white so that its words are read on dark pages too."""

    def _repr_png_(self) -> bytes:
        made = BytesIO()
        self.savefig(made, format="png", dpi=_DOTS, bbox_inches="tight", facecolor="white")
        return made.getvalue()


def empty_figure() -> NotebookFigure:
    """Return a figure without axes."""
    return NotebookFigure(layout="constrained")


def plain(words: str) -> str:
    """Return words for a figure, in which nothing is taken for a formula or steers what shows it."""
    return escaped(words).replace("$", r"\$")


def bar_axes(figure: Figure, names: Sequence[str], title: str) -> Axes:
    """Return axes for a row per name, the first on top, over cycles."""
    figure.set_size_inches(9, 1.4 + _INCH * max(len(names), 2))
    axes = figure.subplots()
    axes.set_yticks(range(len(names)), [plain(name) for name in names])
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_xlabel("cycles")
    axes.set_title(plain(title), fontsize="medium", loc="left", wrap=True)
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def keyed(axes: Axes, colours: Mapping[str, str]) -> None:
    """Say beside the axes what colours mean."""
    handles = [Patch(color=colour, label=plain(name)) for colour, name in meanings(colours).items()]
    if handles:
        axes.legend(handles=handles, loc="upper left", bbox_to_anchor=(1, 1), frameon=False, fontsize="small")


def cause_bars(figure: Figure, rows: Mapping[str, Mapping[Cause, int]], title: str) -> None:
    """Draw the cycles of each row as a bar whose parts are its causes."""
    axes = bar_axes(figure, [*rows], title)
    present = [cause for cause in Cause if any(causes.get(cause) for causes in rows.values())]
    left = [0] * len(rows)
    for cause in present:
        widths = [causes.get(cause, 0) for causes in rows.values()]
        axes.barh(range(len(rows)), widths, left=left, color=cause_colour(cause), height=0.7)
        left = [behind + width for behind, width in zip(left, widths, strict=True)]
    keyed(axes, {str(cause): cause_colour(cause) for cause in present})


def operation_lanes(figure: Figure, window: ShownWindow, title: str) -> None:
    """Draw operations from their start to their end, a row per pipe, coloured by instruction."""
    axes = bar_axes(figure, window.pipes, f"{title}\n{window.cut}" if window.cut else title)
    colours = colours_of(each.name for each in window.operations)
    for row, pipe in enumerate(window.pipes):
        for name, colour in colours.items():
            spans = [
                (each.start, each.end - each.start)
                for each in window.operations
                if each.pipe == pipe and each.name == name
            ]
            if spans:
                seams = 0.4 if len(spans) < _FEW else 0  # many would hide what lies between them
                axes.broken_barh(spans, (row - 0.35, 0.7), facecolors=colour, edgecolors="white", linewidth=seams)
    axes.set_xlim(window.start, max(window.end, window.start + 1))
    keyed(axes, colours)


def curve_axes(figure: Figure, title: str, across: str, up: str) -> Axes:
    """Return axes for curves or points."""
    figure.set_size_inches(7, 4)
    axes = figure.subplots()
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    axes.set_title(plain(title), fontsize="medium", loc="left", wrap=True)
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def verdict_grid(
    figure: Figure,
    grid: NDArray[np.int64],
    rows: Sequence[str],
    cols: Sequence[str],
    colours: Mapping[str, str],
    title: str,
) -> None:
    """Draw a square for each element of `grid`, in the colour of which it is the number."""
    figure.set_size_inches(3.5 + 0.6 * len(cols), 1.6 + 0.2 * len(rows))
    axes = figure.subplots()
    axes.imshow(grid, ListedColormap([*colours.values()]), vmin=-0.5, vmax=len(colours) - 0.5, aspect="auto")
    axes.set_xticks(range(len(cols)), [plain(name) for name in cols], rotation=45, ha="right")
    axes.set_yticks(range(len(rows)), [plain(name) for name in rows], fontsize="small")
    axes.set_xticks([place - 0.5 for place in range(1, len(cols))], minor=True)
    axes.set_yticks([place - 0.5 for place in range(1, len(rows))], minor=True)
    axes.grid(which="minor", color="white", linewidth=1)
    axes.tick_params(which="minor", length=0)
    axes.set_title(plain(title), fontsize="medium", loc="left", wrap=True)
    keyed(axes, colours)


def compared(figure: Figure, groups: Mapping[str, tuple[Sequence[tuple[int, int]], str]], title: str) -> None:
    """Draw pairs of measured and predicted cycles beside the distribution of errors; with a colour for each group."""
    figure.set_size_inches(10, 4)
    points, errors = figure.subplots(1, 2)
    ends = [cycles for pairs, _ in groups.values() for pair in pairs for cycles in pair]
    points.plot([min(ends), max(ends)], [min(ends), max(ends)], color="grey", linewidth=0.8)
    for name, (pairs, colour) in groups.items():
        points.plot(*zip(*pairs, strict=True), ".", color=colour, alpha=0.5, label=name)
    points.set(xscale="log", yscale="log", xlabel="measured cycles", ylabel="predicted cycles")
    found = {
        name: [100 * (predicted - measured) / measured for measured, predicted in pairs]
        for name, (pairs, _) in groups.items()
    }
    every = [abs(error) for each in found.values() for error in each]
    most = max(1.0, sorted(every)[int(0.98 * (len(every) - 1))])
    clipped = [[min(max(error, -most), most) for error in each] for each in found.values()]
    errors.hist(clipped, bins=31, range=(-most, most), color=[colour for _, colour in groups.values()], label=[*found])
    errors.set(xlabel="error in % of the measured cycles, the rarest at the ends", ylabel="rows")
    for axes in (points, errors):
        axes.legend(frameon=False, fontsize="small")
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle(plain(title), fontsize="medium", x=0.01, ha="left")
