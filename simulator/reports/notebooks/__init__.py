"""Results in notebooks: short HTML, frames of pandas or polars, figures of matplotlib; a module per kind of result.

Only the module of the kind that is shown is loaded, and a library only once something of it is asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from castsim.reports.notebooks.presentation import DrawnPresentation, Presentation

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from castsim.running import Result

_KINDS = {
    "castsim.running.runs.Result": "runs:RunPresentation",
    "castsim.estimating.estimates.Estimate": "estimates:EstimatePresentation",
    "castsim.estimating.estimates.Estimates": "estimates:EstimatesPresentation",
    "castsim.planning.lowering_answers.answer.Answer": "lowerings:LoweringPresentation",
    "castsim.planning.conformance.matrix.Matrix": "conformance:ConformancePresentation",
    "castsim.evidence.accuracy.tables.AccuracyTables": "accuracy:AccuracyPresentation",
}
"""What presents which class of results."""


def presentation_of(result: object) -> Presentation:
    """Return what presents a result, of one of the classes above or derived from one."""
    places = (_KINDS.get(f"{each.__module__}.{each.__qualname__}") for each in type(result).__mro__)
    module, _, name = next(filter(None, places)).partition(":")
    made: type[Presentation] = getattr(import_module(f"{__name__}.{module}"), name)
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


def timeline_of(result: Result, start: int, end: int | None) -> Figure:
    """Return the operations of a run in cycles [start, end), drawn; `end` None is the end of the run.

    Raises:
        ReadError: the cycles are none of the run's, or matplotlib is not installed.
        EngineError: the run has no cycles.
    """
    from castsim.reports.notebooks.runs import RunPresentation  # noqa: PLC0415 - as the modules of all kinds

    return RunPresentation(result).timeline(start, end)
