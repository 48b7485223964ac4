"""What every kind of result gives a notebook."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from castsim.isa.errors import ReadError
from castsim.reports import notebooks
from castsim.reports.notebooks.columns import Columns
from castsim.reports.notebooks.frames import frame_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from castsim.execution.notebook_display import Frame


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
