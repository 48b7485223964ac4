"""Results in notebooks: short HTML, frames of pandas or polars, figures of matplotlib; a module per kind of result.

Only the module of the kind that is shown is loaded, and a library only once something of it is asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from castsim.reports.notebooks.presentation import Presentation

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from castsim.running import Result

_DRAWN = 100_000
"""Operations that a figure shows at the most."""

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


def timeline_of(result: Result, start: int, end: int | None) -> Figure:
    """Return the operations of a run in cycles [start, end), drawn; `end` None is the end of the run.

    Raises:
        ReadError: the cycles are none of the run's, or matplotlib is not installed.
        EngineError: the run has no cycles.
    """
    from castsim.reports.notebooks.figures import empty_figure, operation_lanes  # noqa: PLC0415 - matplotlib
    from castsim.reports.notebooks.operations import shown_window  # noqa: PLC0415 - as above

    figure = empty_figure()
    operation_lanes(figure, shown_window(result, start, end, _DRAWN), repr(result))
    return figure
