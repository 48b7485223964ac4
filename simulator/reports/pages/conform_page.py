"""The page of a conformance matrix: the ways of each target, and a matrix whose cells tell how, or where it fails."""

from __future__ import annotations

import shlex

from castsim.planning import PlanKind
from castsim.planning.conformance import ConformanceEntry, Matrix
from castsim.planning.lowering_answers.answer import setting_text
from castsim.reports.conform import cast_text, cell_text, conform_document
from castsim.reports.conform_text import LEGEND_LINES
from castsim.reports.documents import Document
from castsim.reports.pages.blocks import Bars, Figure, Figures, Line, Packed, Page, Section, Series, Text, View

_TONES = {
    PlanKind.NATIVE: "sound",
    PlanKind.OPTIONS: "first",
    PlanKind.CHAIN: "serialising_branch",
    PlanKind.COPY: "mixed",
    PlanKind.NONE_FOUND: "bad",
    PlanKind.IMPOSSIBLE: "bad",
}

_MOST_CELLS = 1000
"""Cells up to which the page holds the JSON of the matrix too; the matrix itself has all."""


def conform_page(found: Matrix) -> Page:
    """Return the page of a matrix."""
    document = conform_document(found)
    casts = [cast_text(cast, entry) for number, cast in enumerate(found.casts) for entry in found.row(number)]
    columns = {
        "cells": document["cells"],
        "casts": casts,
        "answers": [cell_text(entry) for entry in found.entries],
        "commands": [_command(found, entry) for entry in found.entries],
    }
    matrix = View("conformance", "", Packed(columns))
    return Page(
        kind="conform",
        title=f"Casts of {found.spec.name}@{found.version}",
        subtitle=f"castsim conform on {', '.join(found.targets)}",
        sections=(
            Section("summary", "Summary", (_figures(found), _ways(found))),
            Section("matrix", "Matrix", (matrix,)),
            Section("legend", "Legend", (_legend(found),)),
        ),
        result=_kept(document, len(found.entries)),
    )


def _figures(found: Matrix) -> Figures:
    impossible = _count(found, PlanKind.IMPOSSIBLE)
    failing = impossible + _count(found, PlanKind.NONE_FOUND)
    sampled = sum(not entry.proven for entry in found.entries if not entry.kind.fails)
    return Figures(
        (
            Figure("casts", len(found.casts)),
            Figure("targets", len(found.targets)),
            Figure("conform", len(found.entries) - failing, note=f"of {len(found.entries)} cells"),
            Figure("none found", failing - impossible),
            Figure("impossible", impossible),
            Figure("rest on samples", sampled, note="of those that conform"),
        )
    )


def _ways(found: Matrix) -> Bars:
    series = tuple(
        Series(kind.value, tuple(_count(found, kind, target) for target in found.targets), _TONES[kind])
        for kind in PlanKind
    )
    return Bars("How the targets do the casts", "cells", found.targets, series)


def _count(found: Matrix, kind: PlanKind, target: str | None = None) -> int:
    return sum(entry.kind is kind and target in (None, entry.cell.target) for entry in found.entries)


def _legend(found: Matrix) -> Text:
    options = (Line(f"Options given to all targets: {setting_text(found.options)}"),) if found.options else ()
    return Text((*(Line(each) for each in LEGEND_LINES), *options))


def _command(found: Matrix, entry: ConformanceEntry) -> str:
    """Return the command that plans a cell by itself."""
    cell = entry.cell
    spec = ":".join([f"{found.spec.name}@{found.version}", *(f"{name}={value}" for name, value in cell.attributes)])
    options = [word for name, value in found.options for word in ("--option", f"{name}={value}")]
    words = ("castsim", "lower", cell.src, cell.dst, "--spec", spec, "--target", cell.target, *options)
    return shlex.join(words)


def _kept(document: Document, cells: int) -> Document:
    """Return the JSON of a matrix without its cells where they are many."""
    return {key: value for key, value in document.items() if key != "cells" or cells <= _MOST_CELLS}
