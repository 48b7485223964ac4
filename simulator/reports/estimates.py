"""The estimate of one cast, and what reports of estimates and runs share: evidence for cycles, and times."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from castsim.execution.timing import share
from castsim.reports.documents import CommandDocument, Document, Keys, says
from castsim.reports.numbers import causes_of, grouped
from castsim.reports.schemas.keys import CauseName, Cycles, Elements, Seconds
from castsim.reports.terminal import composed, table
from castsim.running.estimating.cast_estimates import Estimate, Standing
from castsim.targets.description import SourceKind, Status
from castsim.targets.loader import Target

CLOCKS = {Status.ASSUMED: "assumed", Status.VENDOR_MODEL: "vendor model", Status.FITTED: "fitted"}
"""The evidence for a clock that no document states."""


def clock(target: Target) -> str:
    """Return the frequency in words, with its evidence where no document states it."""
    status = target.frequency.status
    return f"{target.frequency.megahertz:,} MHz{f' ({CLOCKS[status]})' if status in CLOCKS else ''}"


_UNITS = (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9))
_MOST_WHOLE = 1000


def duration(seconds: float) -> str:
    """Return a time in the largest unit in which it is at least 1, by four digits: clocks are not known better."""
    unit, scale = next(((unit, scale) for unit, scale in _UNITS if seconds >= scale), _UNITS[-1])
    number = seconds / scale
    return f"{number:,.0f} {unit}" if number >= _MOST_WHOLE else f"{number:.4g} {unit}"


class RestShare(Keys):
    """Cycles that rest on one sort of evidence."""

    basis: SourceKind
    """What the figures were read off that these cycles were compared with, or else the weakest of their facts."""
    standing: Standing
    """How they were compared: with rows that no fact was fitted to, with such as were fitted, or not at all."""
    cycles: Cycles = says("How many they are.")
    operations: list[str] = says("On what they are spent, most first.")


class IntervalEntry(Keys):
    """Where measured cycles lie, by the errors of measured rows that were not fitted."""

    share: int = says("In how many percent of the cases.")
    covered: Cycles = says("The cycles of which this is told: those of kinds of operations with such rows.")
    low: Cycles = says("The lower end for these.")
    high: Cycles = says("The upper end.")
    rows: int = says("The number of these rows.")


class EstimateDocument(CommandDocument, name="estimate"):
    """The cycles of one cast alone, without a program."""

    target: str = says("Name of the target.")
    src: str = says("Name of the source format.")
    dst: str = says("Name of the destination format.")
    rows: Elements = says("Rows of both tiles.")
    cols: Elements = says("Columns of both tiles.")
    cycles: Cycles = says("Cycles of the cast.")
    seconds: Seconds = says("The same as a time at the target's clock.")
    bound_by: CauseName = says("The cause of most of these cycles.")
    causes: dict[CauseName, Cycles] = says("The cycles of each cause; they add up to `cycles`.", causes_of)
    shares: list[RestShare] = says("The cycles by evidence; they add up to `cycles`.", "trust.shares")
    interval: IntervalEntry | None = says(
        "The interval of measured cycles; null if too few rows were measured.", "trust.interval"
    )


def estimated_seconds(estimate: Estimate, target: Target) -> float:
    """Return the time of an estimated cast at the target's clock."""
    return estimate.cycles / (target.frequency.megahertz * 10**6)


@composed
def estimate_text(estimate: Estimate, target: Target, document: Document) -> Iterator[RenderableType]:
    """Yield the cycles, what bounds them, what they rest on, and a table of causes."""
    time = duration(estimated_seconds(estimate, target))
    yield Text.assemble((f"{grouped(estimate.cycles)} cycles", "bold"), f" = {time} at {clock(target)}")
    shape = f"{document['rows']} x {document['cols']} elements"
    yield Text(f"{document['src']} -> {document['dst']}, {shape}, on {target.name}")
    yield Text(f"bound by {estimate.bound_by}", style="bold yellow")
    yield Text(f"Trust: {estimate.trust.sentence()}")
    yield Text()
    causes = table("cause", "cycles", "share", numbers=("cycles", "share"))
    for cause, cycles in causes_of(estimate).items():
        causes.add_row(str(cause), grouped(cycles), share(cycles, estimate.cycles))
    yield causes
