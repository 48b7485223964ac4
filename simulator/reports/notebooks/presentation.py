"""What every kind of result gives a notebook."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from castsim.isa.errors import ReadError
from castsim.reports import notebooks
from castsim.reports.notebooks.columns import Columns

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from castsim.execution.notebook_display import Frame


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
    return notebooks.pandas_frame(made()) if found == "pandas" else notebooks.polars_frame(made())


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
    "castsim.estimating.cast_estimates.Estimate": "estimates:EstimatePresentation",
    "castsim.estimating.cast_estimates.Estimates": "estimates:EstimatesPresentation",
    "castsim.planning.lowering_answers.answer.Answer": "lowerings:LoweringPresentation",
    "castsim.planning.conformance.matrix.Matrix": "conformance:ConformancePresentation",
    "castsim.evidence.accuracy_assessment.AccuracyTables": "accuracy:AccuracyPresentation",
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
