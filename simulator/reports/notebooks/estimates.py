"""Estimates in a notebook, of one shape and of many."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from castsim.estimating import Estimate, Estimates
from castsim.reports import notebooks
from castsim.reports.documents import identifier
from castsim.reports.notebooks.colours import SERIES, cause_colour
from castsim.reports.notebooks.columns import Column, Columns, integers, numbers
from castsim.reports.notebooks.markup import cause_bar, legend, line, short, table, whole
from castsim.reports.notebooks.presentation import DrawnPresentation
from castsim.reports.numbers import grouped
from castsim.reports.pipes import share
from castsim.timing import Cause

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SHOWN = 10
"""Shapes that HTML lists."""


class EstimatePresentation(DrawnPresentation):
    """The estimate of one shape: its causes."""

    def __init__(self, result: object) -> None:
        assert isinstance(result, Estimate)
        self._result = result

    def tables(self) -> Mapping[str, Callable[[], Columns]]:
        """Return the causes."""
        return {"causes": self._causes}

    def _causes(self) -> Columns:
        found = self._present()
        return {
            "cause": [identifier(cause) for cause in found],
            "cycles": integers(found.values()),
            "share": numbers(cycles / self._result.cycles for cycles in found.values()),
        }

    def _present(self) -> dict[Cause, int]:
        return {cause: self._result.causes[cause] for cause in Cause if self._result.causes.get(cause)}

    def html(self) -> str:
        """Return the cycles, and their causes as a bar and in a table."""
        result, found = self._result, self._present()
        rows = [(str(cause), grouped(cycles), share(cycles, result.cycles)) for cause, cycles in found.items()]
        return whole(
            line(f"{grouped(result.cycles)} cycles, bound by {result.bound_by}", bold=True),
            cause_bar(found, result.cycles).html,
            legend({str(cause): cause_colour(cause) for cause in found}),
            table(("cause", "cycles", "share"), rows, ("cycles", "share")),
        )

    def draw(self, figure: Figure) -> None:
        """Draw the causes as the parts of one bar."""
        title = f"{grouped(self._result.cycles)} cycles, bound by {self._result.bound_by}"
        notebooks.cause_bars(figure, {"estimate": self._result.causes}, title)


class EstimatesPresentation(DrawnPresentation):
    """The estimates of many shapes, one below the other in C order."""

    def __init__(self, result: object) -> None:
        assert isinstance(result, Estimates)
        self._result = result

    def tables(self) -> Mapping[str, Callable[[], Columns]]:
        """Return the shapes."""
        return {"shapes": self._shapes}

    def _shapes(self) -> Columns:
        result = self._result
        bounds = result.bound_by.ravel().tolist()
        parts: dict[str, Column] = {
            identifier(cause): result.causes[cause].ravel() for cause in Cause if cause in result.causes
        }
        return {
            "shape": np.arange(result.cycles.size, dtype=np.int64),
            "cycles": result.cycles.ravel(),
            "bound_by": [None if bound is None else identifier(bound) for bound in bounds],
            **parts,
            "reason": [None if reason is None else str(reason) for reason in result.reasons.ravel().tolist()],
        }

    def html(self) -> str:
        """Return how many there are, and the first of them."""
        result = self._result
        rows = []
        for number, cycles in enumerate(result.cycles.ravel()[:_SHOWN].tolist()):
            index = ", ".join(map(str, map(int, np.unravel_index(number, result.cycles.shape))))
            bound, reason = result.bound_by.flat[number], result.reasons.flat[number]
            causes = {cause: int(found.flat[number]) for cause, found in result.causes.items()}
            refused = reason is not None
            rows.append(
                (index, "", "refused", reason)
                if refused
                else (index, grouped(int(cycles)), str(bound), cause_bar(causes, int(cycles)))
            )
        left = result.cycles.size - len(rows)
        return whole(
            line(short(result), bold=True),
            table(("index", "cycles", "bound by", "causes"), rows, ("index", "cycles")),
            legend({str(cause): cause_colour(cause) for cause in Cause if cause in result.causes}),
            line(f"{grouped(left)} more: to_frame()", dim=True) if left else "",
        )

    def draw(self, figure: Figure) -> None:
        """Draw cycles over the last index, a line for each value of those before it; refused shapes are gaps."""
        axes = notebooks.curve_axes(figure, short(self._result), "index of the shape", "cycles")
        for number, (name, cycles) in enumerate(self._curves()):
            axes.plot(
                np.arange(cycles.size), cycles, marker=".", color=SERIES[number % len(SERIES)], label=name or None
            )
        if self._result.cycles.ndim > 1:
            axes.legend(title="indices before it", frameon=False, fontsize="small")

    def _curves(self) -> Iterator[tuple[str, np.typing.NDArray[np.float64]]]:
        """Yield the cycles along the last index, each with the indices before it."""
        cycles = np.atleast_1d(np.asarray(self._result.cycles, np.float64))
        for index in np.ndindex(cycles.shape[:-1]):
            yield ", ".join(map(str, index)), cycles[index]
