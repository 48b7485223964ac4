"""The pages of a planned cast and of a conformance matrix."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

from castsim.reports.documents import shortened
from castsim.reports.pages.answer_pages import (
    titled_section,
)
from castsim.reports.pages.blocks import (
    Bars,
    Figure,
    Figures,
    Line,
    Listing,
    Packed,
    Page,
    ResultsView,
    Series,
    Text,
    text_blocks,
)
from castsim.reports.targets import specification_words
from castsim.tools.lowering.conform import cast_text, cell_text, conform_document, legend_lines
from castsim.tools.lowering.conformance import ConformanceEntry, Matrix
from castsim.tools.lowering.lowering_answers import Answer, setting_text
from castsim.tools.lowering.planner import PlanKind
from castsim.tools.lowering.report import answer_document, lower_text

if TYPE_CHECKING:
    pass

# The page of a conformance matrix: the ways of each target, and a matrix whose cells tell how, or where it fails.

_TONES = {
    PlanKind.NATIVE: "sound",
    PlanKind.OPTIONS: "optional",
    PlanKind.CHAIN: "chained",
    PlanKind.COPY: "mixed",
    PlanKind.NONE_FOUND: "bad",
    PlanKind.IMPOSSIBLE: "impossible",
}

_MOST_CELLS = 1000
"""Maximum number of cells for which the page contains the matrix's JSON too; the matrix itself has all cells."""


def conform_page(matrix: Matrix) -> Page:
    """Return the page of a matrix."""
    document = conform_document(matrix)
    casts = [cast_text(cast, entry) for number, cast in enumerate(matrix.casts) for entry in matrix.row(number)]
    columns = {
        "cells": document["cells"],
        "casts": casts,
        "answers": [cell_text(entry) for entry in matrix.entries],
        "commands": [_command(matrix, entry) for entry in matrix.entries],
    }
    sections = (
        titled_section("Summary", _conform_page_figures(matrix), _ways(matrix)),
        titled_section("Matrix", ResultsView("conformance", "", Packed(columns))),
        titled_section("Legend", _legend(matrix)),
    )
    title = f"Casts of {specification_words(f'{matrix.spec.name}@{matrix.version}')}"
    subtitle = f"castsim conform on {', '.join(matrix.targets)}"
    return Page("conform", title, subtitle, sections, shortened(document, "cells", _MOST_CELLS))


def _conform_page_figures(matrix: Matrix) -> Figures:
    impossible = _count(matrix, PlanKind.IMPOSSIBLE)
    failing = impossible + _count(matrix, PlanKind.NONE_FOUND)
    sampled = sum(not entry.proven for entry in matrix.entries if not entry.kind.fails)
    return Figures(
        (
            Figure("casts", len(matrix.casts)),
            Figure("targets", len(matrix.targets)),
            Figure("conform", len(matrix.entries) - failing, note=f"of {len(matrix.entries)} cells"),
            Figure("none found", failing - impossible),
            Figure("impossible", impossible),
            Figure("rest on samples", sampled, note="of those that conform"),
        )
    )


def _ways(matrix: Matrix) -> Bars:
    series = tuple(
        Series(kind.value, tuple(_count(matrix, kind, target) for target in matrix.targets), _TONES[kind])
        for kind in PlanKind
    )
    return Bars("How the targets do the casts", "cells", matrix.targets, series)


def _count(matrix: Matrix, kind: PlanKind, target: str | None = None) -> int:
    return sum(entry.kind is kind and target in (None, entry.cell.target) for entry in matrix.entries)


def _legend(matrix: Matrix) -> Text:
    options = (Line(f"Options given to all targets: {setting_text(matrix.options)}"),) if matrix.options else ()
    return Text((*(Line(line) for line in legend_lines(matrix)), *options))


def _command(matrix: Matrix, entry: ConformanceEntry) -> str:
    """Return the command that plans a single cell."""
    cell = entry.cell
    spec = ":".join([f"{matrix.spec.name}@{matrix.version}", *(f"{name}={value}" for name, value in cell.attributes)])
    options = [word for name, value in matrix.options for word in ("--option", f"{name}={value}")]
    words = ("castsim", "lower", cell.src, cell.dst, "--spec", spec, "--target", cell.target, *options)
    return shlex.join(words)


# The page of a planned cast: the answer, the chain, where others fail, the program.


def page_of(result: Answer | Matrix, out: str | None = None) -> Page:
    """Return the page of a planned cast, whose program is in the file `out`, or of a conformance matrix."""
    return lower_page(result, out) if isinstance(result, Answer) else conform_page(result)


def lower_page(answer: Answer, out: str | None) -> Page:
    """Return the page of an answer; `out` is the file with its program."""
    target, demand = answer.plan.target, answer.plan.demand
    report = text_blocks([lower_text(answer, None if out == "-" else out)])
    sections = [titled_section("Summary", Figures(tuple(_figures(answer))), *report)]
    if answer.text is not None:
        sections.append(titled_section("Program", Listing("", answer.text.rstrip("\n"))))
    title = f"{demand.src.name} -> {demand.dst.name} on {target.name}"
    subtitle = f"castsim lower, as {specification_words(demand.label)} asks; target {target.name} ({target.title})"
    return Page("lower", title, subtitle, tuple(sections), answer_document(answer, out))


def _figures(answer: Answer) -> Iterator[Figure]:
    plan = answer.plan
    yield Figure("way", answer.kind.value, note=f"{len(plan.chain)} instructions" if len(plan.chain) > 1 else "")
    yield Figure("verdict", plan.verdict.value, note="" if plan.claim == plan.verdict.value else plan.claim)
    if plan.evidence is not None:
        yield Figure("codes tried", plan.evidence.codes, note=f"by {plan.evidence.method.value}")
    if plan.cost is not None:
        per, cost = plan.cost.cycles_per_element, plan.cost
        yield Figure("cycles per element", per, note=f"{cost.cycles} cycles for {cost.elements} elements")
