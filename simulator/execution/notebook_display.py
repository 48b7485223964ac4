"""What results can do in a notebook: show themselves as HTML, become frames, draw themselves.

How is known above, in `castsim.reports.notebooks`, which `castsim` hands on when a result is first looked at; neither
pandas nor polars nor matplotlib is imported before it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, Literal, TypeVar, overload

import castsim

if TYPE_CHECKING:
    from typing import TypeAlias

    import pandas
    import polars
    from matplotlib.figure import Figure

    Frame: TypeAlias = pandas.DataFrame | polars.DataFrame

TableName = TypeVar("TableName", bound=str)
"""The names of the tables that a kind of result has."""


class NotebookMixin(Generic[TableName]):
    """A result that notebooks show, and that becomes frames."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        """Return what a notebook shows: one element of HTML with nothing to load, in the colours of the page."""
        return castsim.presentation_of(self).html()

    @overload
    def to_frame(self, table: TableName | None = None, *, library: Literal["pandas"]) -> pandas.DataFrame: ...

    @overload
    def to_frame(self, table: TableName | None = None, *, library: Literal["polars"]) -> polars.DataFrame: ...

    @overload
    def to_frame(self, table: TableName | None = None, *, library: None = None) -> Frame: ...

    def to_frame(self, table: TableName | None = None, *, library: Literal["pandas", "polars"] | None = None) -> Frame:
        """Return a table of the result as a frame; numbers are int64 or float64, words are strings.

        Args:
            table: its name; None takes the first that the class has.
            library: `pandas` or `polars`; None takes the one that is installed, pandas of both.

        Raises:
            ReadError: no such table or library, or it is not installed: the extra `notebook` brings pandas.
            EngineError: the table tells cycles, which the result does not have.
            LimitError: more rows than a frame should hold.
        """
        return castsim.presentation_of(self).frame(table, library)


class PlotMixin(NotebookMixin[TableName]):
    """A result that is drawn, too."""

    __slots__ = ()

    def plot(self) -> Figure:
        """Draw the result, see its class: a figure of matplotlib, which notebooks show and `savefig` writes to a file.

        Raises:
            ReadError: matplotlib is not installed; the extra `notebook` brings it.
            EngineError: cycles are to be drawn, and the result has none.
        """
        return castsim.plot_of(self)
