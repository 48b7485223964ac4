"""The command `estimate`: estimate the cycles of one cast without a program."""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from castsim.commands.option_parsers import assignments, integer_from
from castsim.commands.outcome import CommandOutcome
from castsim.execution.timing import Cause, share
from castsim.isa.errors import ReadError
from castsim.isa.value_expressions import format_spelled
from castsim.reports.cycle_evidence import CycleInterval, Share
from castsim.reports.documents import CommandDocument, Document, says
from castsim.reports.numbers import PLACEMENTS, causes_of, clock, duration, grouped
from castsim.reports.schemas.keys import CauseName, Cycles, Elements, Seconds
from castsim.reports.terminal import composed, table
from castsim.targets.description import with_options
from castsim.targets.loader import Target, load_target
from castsim.tools.estimate.cast_estimates import Estimate
from castsim.tools.estimate.tile_estimates import estimate

_SHAPE = re.compile(r"([0-9]{1,9})[xX]([0-9]{1,9})")


class EstimateDocument(CommandDocument, name="estimate"):
    """The cycles of one cast alone, without a program."""

    target: str = says("Name of the target.")
    src: str = says("Name of the source format.")
    dst: str = says("Name of the destination format.")
    rows: Elements = says("Rows of both tiles.")
    cols: Elements = says("Columns of both tiles.")
    cycles: Cycles = says("Cycles of the cast.")
    seconds: Seconds = says("Time of the cast at the target's clock.")
    placement: str = says("Placement of its tiles in the buffer: apart or consecutive; empty without tiles.")
    bound_by: CauseName = says("The cause of most of these cycles.")
    causes: dict[CauseName, Cycles] = says("The cycles of each cause; they add up to `cycles`.", causes_of)
    shares: list[Share] = says("The cycles by evidence; they add up to `cycles`.", "trust.shares")
    interval: CycleInterval | None = says(
        "The interval of measured cycles; null if too few rows were measured.", "trust.interval"
    )


def execute(options: Namespace) -> CommandOutcome:
    """Estimate the cast.

    Raises:
        ReadError: an option is wrong. IllegalError, TileError, ScratchError: the target does not have such a cast.
    """
    target = with_options(load_target(options.target), assignments("--option", options.options))
    rows, cols = _shape(options.shape)
    valid_rows, valid_cols = (None, None) if options.valid is None else _shape(options.valid, "--valid ")
    src, dst = format_spelled(options.src).name, format_spelled(options.dst).name
    answer = estimate(
        src, dst, rows, cols, target=target, rounding=options.rounding, saturation=options.saturation,
        scratch=options.scratch, valid_rows=valid_rows, valid_cols=valid_cols,
        row_stride=_stride("--row-stride", options.row_stride),
        dst_row_stride=_stride("--dst-row-stride", options.dst_row_stride),
    )  # fmt: skip
    seconds = _seconds(answer, target)
    document = EstimateDocument.of(answer, target=target, src=src, dst=dst, rows=rows, cols=cols, seconds=seconds)
    return CommandOutcome(document, lambda _: estimate_text(answer, target, document))


def _shape(text: str, option: str = "") -> tuple[int, int]:
    """Return rows and columns.

    Raises:
        ReadError: the text does not have the form ROWSxCOLS.
    """
    extents = _SHAPE.fullmatch(text.strip())
    if extents is None or "0" in (extents[1].strip("0") or "0", extents[2].strip("0") or "0"):
        raise ReadError(f"{option}'{text[:40]}' is not a tile shape", legal=(f"{option}16x256",))
    return int(extents[1]), int(extents[2])


def _stride(option: str, text: str | None) -> int | None:
    return None if text is None else integer_from(option, text)


def _seconds(estimate: Estimate, target: Target) -> float:
    return estimate.cycles / (target.frequency.megahertz * 10**6)


_LIMITS = {
    Cause.BUSY: "throughput",
    Cause.FILL: "pipeline start-up (fill)",
    Cause.DRAIN: "pipeline latency (drain)",
    Cause.OPERAND_WAIT: "waiting for operands",
    Cause.FLAG_WAIT: "waiting for flags",
    Cause.BARRIER: "waiting at barriers",
    Cause.DEPENDENCE: "dependences between instructions",
    Cause.STORE_BARRIER: "barriers after stores",
    Cause.BANK_CONFLICT: "bank conflicts",
    Cause.PORT: "the ports of the buffer",
    Cause.INITIATION_INTERVAL: "the initiation interval of instructions",
    Cause.LOOP_TURNAROUND: "loop turnaround",
    Cause.SERIALISING_BRANCH: "serialising branches",
    Cause.MEMORY_LATENCY: "memory latency",
    Cause.MEMORY_BANDWIDTH: "memory bandwidth",
    Cause.EMPTY: "cycles without work",
}
"""Limiting resource of a cast, by the cause of most of its cycles."""


@composed
def estimate_text(estimate: Estimate, target: Target, document: Document) -> Iterator[RenderableType]:
    """Yield the cycles, their limit, the evidence for them, and a table of causes."""
    time = duration(_seconds(estimate, target))
    yield Text.assemble((f"{grouped(estimate.cycles)} cycles", "bold"), f" = {time} at {clock(target)}")
    shape = f"{document['rows']} x {document['cols']} elements"
    yield Text(f"{document['src']} -> {document['dst']}, {shape}, on {target.name}")
    limit = _LIMITS[estimate.bound_by]
    yield Text(f"Limited by {limit}", style="bold yellow")
    if estimate.placement:
        yield Text(f"Tiles: {estimate.placement} ({PLACEMENTS[estimate.placement]})")
    yield Text(f"Trust: {estimate.trust.sentence()}")
    yield Text()
    causes = causes_of(estimate).items()
    rows = ((str(cause), grouped(cycles), share(cycles, estimate.cycles)) for cause, cycles in causes)
    yield table("cause", ">cycles", ">share", rows=rows)
