"""A conformance matrix as JSON, as a table for the terminal, and as a page in Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from rich.console import Group, RenderableType
from rich.text import Text

from castsim.execution.distribution.origins import Origins
from castsim.isa.formats import format_named
from castsim.planning import Counterexample, PlanKind, Verdict
from castsim.planning.conformance import ConformanceEntry, LoweredMatrix, Matrix, changed
from castsim.planning.demand import TracedValue
from castsim.planning.lowering_answers import options_text, setting_text
from castsim.reports.documents import VERSIONS, Document, document, numbered
from castsim.reports.lower import code_text, counterexample_document, number_text
from castsim.reports.specification import specification_words
from castsim.reports.terminal import indented, table
from castsim.specifications import SpecifiedCast

SAMPLED = "~"
"""Marks a verdict that rests on samples."""


def conform_document(found: Matrix) -> Document:
    """Return a matrix as JSON, one entry per cell."""
    origins = Origins()
    return {
        "schema_version": VERSIONS["conform"],
        "specification": found.spec.name,
        "version": found.version,
        **document(found, "targets"),
        "options": dict(found.options),
        "cells": [
            {**_cell_document(entry), "computed_by": origins.place(by)}
            for entry, by in zip(found.entries, found.origins, strict=True)
        ],
        "totals": [
            {
                "target": target,
                "way": kind.value,
                "cells": sum(entry.kind is kind for entry in found.entries if entry.cell.target == target),
            }
            for target in found.targets
            for kind in PlanKind
        ],
        "workers": origins.documents(),
    }


def lowered_matrix_document(found: LoweredMatrix, files: Sequence[str | None]) -> Document:
    """Return a matrix of one target as JSON, each cell with its program and the file that it was written to."""
    whole = conform_document(found.matrix)
    cells = [_cell_document(entry) for entry in found.matrix.entries]
    origins = Origins()
    return {
        **whole,
        "schema_version": VERSIONS.get("lower-matrix", 1),
        "cells": [
            {**cell, "computed_by": origins.place(by), "program": each.program, "file": file}
            for cell, by, each, file in zip(cells, found.matrix.origins, found.cells, files, strict=True)
        ],
    }


def _cell_document(entry: ConformanceEntry) -> Document:
    cell = entry.cell
    return {
        **document(cell, "src", "dst"),
        "attributes": numbered(dict(cell.attributes)),
        "target": cell.target,
        **document(entry, "kind", "verdict", "path", kind="way"),
        "instructions": [
            {"instruction": name, "options": options}
            for name, options in zip(entry.instructions, entry.options, strict=True)
        ],
        **document(entry, "method", "proven"),
        "options": dict(entry.settings),
        "native_with_options": None if entry.native is None else dict(entry.native),
        "cycles_per_element": entry.cycles_per_element,
        "counterexample": counterexample_document(entry.counterexample, format_named(cell.dst)),
    }


def cast_text(cast: SpecifiedCast, entry: ConformanceEntry) -> str:
    """Return the name of a row."""
    attributes = "".join(f", {name}={value}" for name, value in changed(cast))
    return f"{entry.cell.src} -> {entry.cell.dst}{attributes}"


def cell_text(entry: ConformanceEntry) -> str:
    """Return a cell in words: how, what has to be asked for, with which options, at what cost; or where it fails."""
    if entry.kind is PlanKind.IMPOSSIBLE:
        return "impossible: no elements of the width"
    if entry.kind is PlanKind.NONE_FOUND:
        return "no chain found" if entry.counterexample is None else f"no: {_failure(entry.counterexample)}"
    marks = f" with options {setting_text(entry.settings)}" if entry.settings else ""
    marks += "" if entry.verdict is Verdict.EXACT else " (within tolerance)"
    marks += "" if entry.proven else SAMPLED
    if entry.kind is PlanKind.COPY:
        return f"copy{marks}"
    cost = "" if entry.cycles_per_element is None else f", {entry.cycles_per_element:.3f}"
    cost += "" if entry.native is None else f"; or native with options {setting_text(entry.native)}"
    return f"{_done(entry)}{marks}{cost}"


def _done(entry: ConformanceEntry) -> str:
    asked = [option for option in entry.options if option]
    if entry.kind in (PlanKind.NATIVE, PlanKind.OPTIONS):
        return asked[0] if asked else "native"
    return "; ".join(
        f"{name} ({option})" if option else name for name, option in zip(entry.instructions, entry.options, strict=True)
    )


def _failure(found: Counterexample) -> str:
    required, result = found.required, found.result
    right = []
    if required.lowest is not None and required.highest is not None:
        low, high = number_text(required.lowest[1]), number_text(required.highest[1])
        right.append(low if low == high else f"{low} to {high}")
    right += ["NaN"] if required.nan else []
    values = [number_text(traced.value) for traced in _changing(found)]
    if values[-1] in right:  # a boolean that is true, but not 1
        values[-1] = code_text(result.code, result.format)
    return f"{' -> '.join(values)}, not {' or '.join(right)}"


def _changing(found: Counterexample) -> list[TracedValue]:
    """Return the input and every value that differs from the one before it, the result in any case."""
    values = found.values
    kept = [traced for before, traced in pairwise(values) if number_text(before.value) != number_text(traced.value)]
    return [values[0], *(kept or [values[-1]])]


# A conformance matrix as a table for the terminal, and as a page in Markdown.

LEGEND_LINES = (
    "native: one instruction.",
    "`saturation ON`, `rounding TRUNC` and the like: one instruction with these modes.",
    "Several instructions: a chain, with its modes.",
    "copy: no bit changes.",
    "with options NAME=VALUE: conforms if `castsim run` is given these options of the target, which a program or its "
    "launcher can set; or native with options: with these, one instruction does it instead of the chain.",
    "The number is the cost of the whole program, loads and stores included, in simulated cycles per element.",
    "(within tolerance): conforms, but does not always give the nearest result.",
    "~: the verdict rests on samples; `castsim lower` and --prove try all 32-bit codes.",
    "no: none found in chains of up to four steps, with or without options, which proves nothing of longer ones; shown "
    "are a value on which the closest chain fails, what it becomes, and the correct result.",
    "impossible: the target has no elements of that width.",
)
LEGEND = " ".join(LEGEND_LINES)


def conform_text(found: Matrix) -> RenderableType:
    """Return the matrix for the terminal: a line per cell, cast by cast."""
    rows = table("cast", "target", "answer")
    for number, cast in enumerate(found.casts):
        for place, entry in enumerate(found.row(number)):
            rows.add_row(cast_text(cast, entry) if place == 0 else "", entry.cell.target, cell_text(entry))
    return Group(Text(_head(found)), indented(rows), Text(""), *map(Text, _notes(found)), Text(""), _totals(found))


def conform_summary(found: Matrix) -> RenderableType:
    """Return how many casts each target does in which way."""
    return Group(Text(_head(found)), _totals(found), Text("without --summary: every cast on every target", style="dim"))


def _head(found: Matrix) -> str:
    options = f" with {setting_text(found.options)}" if found.options else ""
    return f"Casts of {specification_words(f'{found.spec.name}@{found.version}')} on the targets{options}"


def _notes(found: Matrix) -> tuple[str, ...]:
    """Return the notes on the table: the legend, and the parts of the specification that are not in it."""
    if found.spec.rescale is None:
        return (LEGEND,)
    return LEGEND, f"RESCALE of {found.spec.name} is not in the table: it is not a cast; `castsim graph` runs it."


def _totals(found: Matrix) -> RenderableType:
    rows = table("target", *(kind.value for kind in PlanKind), numbers=tuple(kind.value for kind in PlanKind))
    for target in found.targets:
        rows.add_row(target, *(str(_count(found, target, kind)) for kind in PlanKind))
    return indented(rows)


def _command(found: Matrix) -> str:
    options = f" {options_text(found.options)}" if found.options else ""
    return f"castsim conform --spec {found.spec.name}@{found.version}{options} --markdown"


def _count(found: Matrix, target: str, kind: PlanKind) -> int:
    return sum(entry.kind is kind for entry in found.entries if entry.cell.target == target)


def markdown_text(found: Matrix) -> RenderableType:
    """Return the page for the terminal, as it stands."""
    return Text(conform_markdown(found).rstrip("\n"), no_wrap=True)


def conform_markdown(found: Matrix) -> str:
    """Return the matrix as a page."""
    lines = [
        f"# {_head(found)}: conformance",
        "",
        f"Written by `{_command(found)}`; a test keeps it current.",
        "",
        *(line for note in _notes(found) for line in (note, "")),
        f"| target | {' | '.join(kind.value for kind in PlanKind)} |",
        f"|---|{'---:|' * len(PlanKind)}",
        *(
            f"| {target} | {' | '.join(str(_count(found, target, kind)) for kind in PlanKind)} |"
            for target in found.targets
        ),
        "",
        f"| cast | {' | '.join(found.targets)} |",
        f"|---|{'---|' * len(found.targets)}",
    ]
    for number, cast in enumerate(found.casts):
        entries = found.row(number)
        cells = " | ".join(cell_text(entry) for entry in entries)
        lines.append(f"| {cast_text(cast, entries[0])} | {cells} |")
    return "\n".join(lines) + "\n"
