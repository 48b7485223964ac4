"""The kinds of results that notebooks show; the module of a kind is imported once a result of it is shown."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from castsim.reports.notebooks.presentation import DrawnPresentation, Presentation

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_ROOM = "castsim.reports.notebooks"

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
