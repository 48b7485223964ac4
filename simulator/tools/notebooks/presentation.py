"""Presentation of results in notebooks: blocks to show, and tables as frames."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, Union, cast, get_args, get_origin

import numpy as np

from castsim.execution.timing import Cause
from castsim.isa.dataclass import dataclass
from castsim.isa.errors import ReadError, installed, missing_package
from castsim.reports.documents import Keys, keys_of
from castsim.reports.numbers import CAUSE_COLOURS, TONES
from castsim.reports.numbers import SERIES as SHADES
from castsim.reports.pages.blocks import Block, notebook_html
from castsim.tools import notebooks

if TYPE_CHECKING:
    import pandas
    import polars
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from castsim.execution.outcomes import Frame


# Columns of the tables that become frames.

Column: TypeAlias = "NDArray[np.int64] | NDArray[np.float64] | NDArray[np.bool_] | Sequence[str | None]"
"""The values of a column, row by row: arrays of numbers with NaN for missing ones, or words with None."""

Columns: TypeAlias = Mapping[str, Column]
"""Columns by name, of equal length."""


def integers(values: Iterable[int]) -> NDArray[np.int64]:
    """Return a column of integers."""
    return np.fromiter(values, np.int64)


def numbers(values: Iterable[float | None]) -> NDArray[np.float64]:
    """Return a column of numbers, NaN for None."""
    return np.fromiter((np.nan if value is None else value for value in values), np.float64)


def record_columns(form: type[Keys], records: Sequence[Any], *names: str, before: str = "") -> Columns:
    """Return the named keys of records as columns, all without names; a percentage has its unit in its name.

    The columns of an object in a record begin with its name. Numbers that may be missing are floating point.
    """
    result: dict[str, Column] = {}
    keys = keys_of(form)
    for name in names or keys:
        meaning, hint, converted = keys[name]
        kinds = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
        kind, *units = get_args(kinds[0]) if get_origin(kinds[0]) is Annotated else (kinds[0],)
        values: list[Any] = [None if entry is None else getattr(entry, name) for entry in records]
        heading = f"{before}{meaning.key or name}"
        if isinstance(kind, type) and issubclass(kind, Keys):
            result |= record_columns(kind, values, before=f"{heading}_")
            continue
        if ("unit", "percent") in units and not heading.endswith("_percent"):
            heading += "_percent"
        if kind not in (int, float):
            result[heading] = [cast(str | None, converted(value)) for value in values]
        elif kind is int and len(kinds) == 1:
            result[heading] = integers(values)
        else:
            result[heading] = numbers(values)
    return result


# Columns as frames of pandas or polars.

LIBRARIES = ("pandas", "polars")
"""Supported data-frame libraries, the preferred one first."""


def frame_of(column_source: Callable[[], Columns], library: str | None) -> Frame:
    """Return columns as a frame of a library; None uses the installed one, pandas if both are.

    Raises:
        ReadError: the library is unknown or not installed; raised before any work.
    """
    if library not in (None, *LIBRARIES):
        raise ReadError(f"unknown data-frame library '{library}'", legal=LIBRARIES)
    wanted = LIBRARIES if library is None else (library,)
    chosen = next((name for name in wanted if installed(name)), None)
    if chosen is None:
        named = " or ".join(wanted)
        if library == "polars":
            raise ReadError("a frame needs the package polars, which is not installed", legal=("pip install polars",))
        raise missing_package("a frame", named, "notebook")
    return _pandas_frame(column_source()) if chosen == "pandas" else _polars_frame(column_source())


def _pandas_frame(columns: Columns) -> pandas.DataFrame:
    """Return columns as a pandas frame: words as strings with `NA` for missing ones; missing numbers are NaN."""
    import pandas  # noqa: PLC0415 - of an extra

    return pandas.DataFrame(
        {
            name: values if isinstance(values, np.ndarray) else pandas.array(list(values), dtype="string")
            for name, values in columns.items()
        }
    )


def _polars_frame(columns: Columns) -> polars.DataFrame:
    """Return columns as a polars frame; missing words and numbers are null."""
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
    """Presentation of one result as HTML and as frames; created with the result."""

    @abstractmethod
    def __init__(self, result: object) -> None: ...

    more = "are in to_frame()"
    """Reference to the rows that its HTML leaves out."""

    @abstractmethod
    def blocks(self) -> Iterable[Block]:
        """Yield the blocks that a notebook shows, the same as in the pages and texts of commands."""

    def html(self) -> str:
        """Return the HTML of one element."""
        return notebook_html(self.blocks(), self.more)

    @abstractmethod
    def tables(self) -> Mapping[str, Callable[[], Columns]]:
        """Return functions that build each table's columns, by name; the first is the default."""

    def frame(self, table: str | None, library: str | None) -> Frame:
        """Return a table as a frame.

        Raises:
            ReadError: the table or library does not exist, or the library is not installed.
        """
        tables = self.tables()
        name = next(iter(tables)) if table is None else table
        if name not in tables:
            raise ReadError(f"no table '{name}'", legal=tables)
        return frame_of(tables[name], library)


class DrawnPresentation(Presentation):
    """Presentation that also draws its result."""

    @abstractmethod
    def draw(self, figure: Figure) -> None:
        """Draw the result into an empty figure."""

    def plot(self) -> Figure:
        """Return a figure of the result.

        Raises:
            ReadError: matplotlib is not installed.
        """
        figure = notebooks.empty_figure()
        self.draw(figure)
        return figure


# The kinds of results that notebooks show; the module of a kind is imported once a result of it is shown.

_ROOM = "castsim.tools.notebooks"

_KINDS = {
    "castsim.running.program_runs.Result": "runs:RunPresentation",
    "castsim.tools.estimate.cast_estimates.Estimate": "answers:EstimatePresentation",
    "castsim.tools.estimate.cast_estimates.Estimates": "answers:EstimatesPresentation",
    "castsim.tools.lowering.lowering_answers.Answer": "answers:LoweringPresentation",
    "castsim.tools.lowering.conformance.Matrix": "answers:ConformancePresentation",
    "castsim.tools.accuracy.accuracy_assessment.AccuracyTables": "answers:AccuracyPresentation",
}
"""Presentation class for each class of results."""


def presentation_of(result: object) -> Presentation:
    """Return the presentation of a result, whose class is one of the above or derived from one."""
    places = (_KINDS.get(f"{base.__module__}.{base.__qualname__}") for base in type(result).__mro__)
    module, _, name = next(filter(None, places)).partition(":")
    presentation: type[Presentation] = getattr(import_module(f"{_ROOM}.{module}"), name)
    return presentation(result)


def plot_of(result: object) -> Figure:
    """Return a figure of a result that can be drawn.

    Raises:
        ReadError: matplotlib is not installed.
        EngineError: the figure shows cycles, and the result has none.
    """
    presentation = presentation_of(result)
    assert isinstance(presentation, DrawnPresentation)
    return presentation.plot()


# Colours, the same as on pages.

SERIES = tuple(light for light, _, _ in SHADES)
"""Colours of names in order of their first appearance; the last colour is for all remaining names."""

HATCHING = {light: hatch for light, _, hatch in (*TONES.values(), *SHADES)}
"""The hatching of each colour, as matplotlib writes it."""


def cause_colour(cause: Cause) -> str:
    """Return the colour of a cause."""
    return CAUSE_COLOURS[cause][0]


def colours_of(names: Iterable[str]) -> dict[str, str]:
    """Return a colour for each different name, in the order of their first appearance."""
    distinct = dict.fromkeys(names)
    return {name: SERIES[min(number, len(SERIES) - 1)] for number, name in enumerate(distinct)}


def meanings(colours: Mapping[str, str]) -> dict[str, str]:
    """Return the name of each colour; for a colour with several names, a remark that there are others."""
    meaning_of: dict[str, str] = {}
    for name, colour in colours.items():
        meaning_of[colour] = "others" if colour in meaning_of else name
    return meaning_of


@dataclass(frozen=True, slots=True)
class ShownOperation:
    """Cycles [start, end) from the first work of a pipe for an operation to its last effect; for waits, only work.

    `name` is the instruction's, which decides its colour; `title` is the full description.
    """

    pipe: str
    start: int
    end: int
    name: str
    title: str


@dataclass(frozen=True, slots=True)
class ShownWindow:
    """Operations in cycles [start, end), in issue order; `cut` describes missing ones, '' if none are missing."""

    start: int
    end: int
    pipes: tuple[str, ...]
    operations: tuple[ShownOperation, ...]
    cut: str


def short(result: object) -> str:
    """Return the short form of a result without its class name."""
    return repr(result)[1:-1].partition(" ")[2]
