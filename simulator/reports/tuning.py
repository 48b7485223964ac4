"""The outcome of a search of tile shapes and choices as JSON."""

from __future__ import annotations

import shlex
from pathlib import Path

from castsim.exploration.tuning_candidates import Kind, Row
from castsim.exploration.tuning_studies import Tuning
from castsim.reports.documents import Document

_KINDS = {Kind.TILE: "tile", Kind.ARGUMENT: "arg", Kind.OPTION: "option"}


def tuning_document(found: Tuning) -> Document:
    """Return all that was found, rows in the order of the ranking."""
    front = {row.number for row in found.pareto}
    best = found.best
    return {
        "program": found.study.source.file,
        "space": [
            {"name": axis.name, "kind": axis.kind.value, "values": list(axis.values)} for axis in found.study.space.axes
        ],
        "conditions": [condition.text for condition in found.study.space.conditions],
        "combinations": found.study.space.combinations,
        "left_out": found.left_out,
        "points": len(found.rows),
        "simulated": len(found.simulated),
        "refused": len(found.misfits),
        "best_is_proven": best is not None and not found.faster_possible,
        "pareto_is_proven": best is not None and not found.unsettled,
        "best": None if best is None else row_entry(best, front),
        "command": None if best is None else command_of(found, best),
        "outputs_equal": None if not found.study.inputs else not found.differing,
        "differing": [{"choices": dict(row.choices), "outputs": list(names)} for row, names in found.differing],
        "rows": [row_entry(row, front) for row in found.rows],
    }


def row_entry(row: Row, front: set[int]) -> Document:
    """Return a row as JSON; `front` are the numbers of those on the front."""
    return {
        "choices": dict(row.choices),
        "cycles": row.cycles,
        "at_least": row.at_least,
        "cycles_per_element": row.cycles_per_element,
        "buffer_bytes": row.buffer_bytes,
        "bound_by": row.bound_by,
        "pareto": row.number in front,
        "outputs": dict(row.outputs),
        "reason": row.reason or None,
    }


def command_of(found: Tuning, row: Row) -> str:
    """Return the command that runs a point."""

    study = found.study
    words = ["castsim", "run", study.source.file]
    for kind, option in _KINDS.items():
        words += [word for name, value in study.chosen(row.choices, kind).items()
                  for word in (f"--{option}", f"{name}={value}")]  # fmt: skip
    words += [word for name, given in study.args.items() for word in ("--arg", f"{name}={given}")]
    words += [word for name, given in study.options.items() for word in ("--option", f"{name}={given}")]
    target = next(iter(study.chosen(row.choices, Kind.TARGET).values()), study.target)
    if target is not None:
        words += ["--target", str(target) if isinstance(target, str | Path | int | float) else target.name]
    words += ["--entry", study.entry] if study.entry else []
    words += ["--sync", study.sync] if study.sync != "insert" else []
    given = [
        word for name, value in study.inputs.items() if isinstance(value, str) for word in ("--in", f"{name}={value}")
    ]
    return shlex.join([*words, *(given or ["--timing-only"])])
