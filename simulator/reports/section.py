"""The contract of a report section: its data, its text and its options, in one place."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from rich.console import RenderableType

    from castsim.reports.documents import Document
    from castsim.reports.run_report import RunReport
    from castsim.targets import Target

Data: TypeAlias = "Callable[[RunReport], Document]"
"""Makes the keys that a section adds to the JSON document of a run; none if it has nothing to say."""

Lines: TypeAlias = "Callable[[RunReport, int], Iterable[RenderableType]]"
"""Makes what a section prints on a terminal of some columns."""


def no_data(report: RunReport) -> Document:
    """Return no keys: for sections that only print."""
    del report
    return {}


def no_refusal(target: Target) -> None:
    """Accept every target."""
    del target


@dataclass(frozen=True, slots=True)
class ReportSection:
    """A part of the report of a run, the constant `SECTION` of a module in `castsim.reports.sections`.

    `data` and `text` look at a finished run; `text` imports rich itself. `options` are those of `castsim run` that it
    answers to. `refusal` gives, before anything runs, the reason for which a target has nothing that it could show. One
    `of_time` shows nothing, and has only nulls as data, where no cycles are known.
    """

    text: Lines
    data: Data = no_data
    options: tuple[str, ...] = ()
    refusal: Callable[[Target], str | None] = no_refusal
    of_time: bool = False
