"""A conformance matrix as JSON, and the words of its cells."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from castsim.execution.distribution.origins import Origins
from castsim.isa.formats import format_named
from castsim.planning import Counterexample, PlanKind, Verdict
from castsim.planning.conformance import ConformanceEntry, Matrix
from castsim.planning.conformance.matrix import LoweredMatrix, changed
from castsim.planning.counterexample import TracedValue
from castsim.planning.lowering_answers.answer import setting_text
from castsim.reports.documents import VERSIONS, Document, document, numbered
from castsim.reports.lower import code_text, counterexample_document, number_text
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
