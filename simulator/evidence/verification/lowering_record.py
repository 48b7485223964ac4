"""The record of lowered casts that were run again: which cells are done, what was found, on which sources."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self

import castsim.planning
from castsim.evidence.verification.kept import (
    SCHEMA_VERSION,
    KeptRecord,
    oracle_digest,
    read_workers,
    workers_document,
)
from castsim.evidence.verification.lowering import SAMPLES, Checked, check_cell
from castsim.evidence.verification.sources import digest_of, file_digest
from castsim.execution.distribution.distributing import ALONE, HandedTargets, Workers, distributed, handed_targets, here
from castsim.execution.distribution.origins import Origins, ResultOrigin, Task
from castsim.isa.errors import ReadError
from castsim.planning.conformance import Cell
from castsim.targets import Specification
from castsim.timing import ProgressCallback


@dataclass(slots=True)
class LoweringRecord(KeptRecord):
    """Cells of one specification and what running them again gave; a cell that nothing leads to has no result."""

    KIND: ClassVar[str] = "castsim lowering record"

    spec: str
    version: str
    samples: int
    seed: int
    cells: list[Cell]
    done: dict[Cell, Checked | None] = field(default_factory=dict)
    sources: str = ""
    runs: list[dict[str, Any]] = field(default_factory=list)
    computed_by: dict[Cell, ResultOrigin] = field(default_factory=dict)

    @property
    def wrong(self) -> list[Checked]:
        """The cells whose claim does not stand."""
        return [checked for checked in self.done.values() if checked is not None and not checked.good]

    @property
    def checked(self) -> list[Checked]:
        """The cells that were run."""
        return [checked for checked in self.done.values() if checked is not None]

    def document(self) -> dict[str, Any]:
        """Return the record as JSON."""
        found, origins = self.checked, Origins()
        places = {cell: origins.place(by) for cell, by in self.computed_by.items()}
        return {
            "schema_version": SCHEMA_VERSION,
            "kind": self.KIND,
            "specification": self.spec,
            "version": self.version,
            "samples": self.samples,
            "seed": self.seed,
            "complete": len(self.done) == len(self.cells),
            "cells": len(self.cells),
            "cells_without_a_way": sum(one is None for one in self.done.values()),
            "programs_run": sum(one.inputs != "counterexample" for one in found),
            "counterexamples_run": sum(one.inputs == "counterexample" for one in found),
            "programs_with_options": sum(bool(one.options) for one in found),
            "codes": sum(one.codes for one in found),
            "wrong": len(self.wrong),
            "planner_sha256": self.sources,
            "runs": self.runs,
            **workers_document(origins),
            "results": [
                {**asdict(cell), "number": n, "result": _result(self.done[cell]), "computed_by": places.get(cell)}
                for n, cell in enumerate(self.cells)
                if cell in self.done
            ],
            "missing": [{**asdict(cell), "number": n} for n, cell in enumerate(self.cells) if cell not in self.done],
        }

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a record.

        Raises:
            ReadError: it is missing or no such record; the planner has changed since.
        """
        found = super(LoweringRecord, cls).load(path)
        if found.sources != planner_digest():
            raise ReadError(f"record '{path}' is stale, start a new one: the planner has changed since")
        return found

    @classmethod
    def of_document(cls, held: Mapping[str, Any]) -> Self:
        """See `KeptRecord`."""
        done = {_cell(row): _checked(row) for row in held["results"]}
        rows = [*held["results"], *held["missing"]]
        if all("number" in row for row in rows):  # not in records from before workers did cells in any order
            rows.sort(key=lambda row: int(row["number"]))
        workers = read_workers(held)
        by = {_cell(row): workers[row["computed_by"]] for row in held["results"] if row.get("computed_by") is not None}
        return cls(
            spec=held["specification"],
            version=held["version"],
            samples=held["samples"],
            seed=held["seed"],
            cells=[_cell(row) for row in rows],
            done=done,
            sources=held["planner_sha256"],
            runs=held["runs"],
            computed_by=by,
        )


def verify_lowering(
    record: LoweringRecord,
    spec: Specification,
    save: Callable[[], None] | None,
    progress: ProgressCallback = lambda *_: None,
    workers: Workers = ALONE,
) -> None:
    """Run every cell of a record that is not done yet.

    Raises:
        ReadError, EngineError: as `castsim.execution.distribution.distributed`.
        IllegalError: no oracle.
    """
    record.sources = planner_digest()
    record.note_run()
    left = [cell for cell in record.cells if cell not in record.done]
    handed = HandedTargets() if workers.scheduler is None else handed_targets({cell.target for cell in left})
    run = partial(
        check_cell, spec=spec, version=record.version, samples=record.samples, seed=record.seed, targets=handed
    )
    beside = oracle_digest
    for number, done in enumerate(distributed(Task("verification", run, here(beside, workers), beside), left, workers)):
        record.done[done.piece] = done.result
        record.computed_by[done.piece] = done.origin
        if save is not None:
            save()
        label = left[min(number + 1, len(left) - 1)]
        progress(f"{label.src} -> {label.dst} on {label.target}", len(record.done), len(record.cells))


def started(spec: Specification, version: str, cells: Iterable[Cell], samples: int | None, seed: int) -> LoweringRecord:
    """Return a record with nothing done."""
    return LoweringRecord(spec.name, version, SAMPLES if samples is None else samples, seed, list(cells))


def planner_digest() -> str:
    """Return one SHA-256 over the modules of the planner, comments and docstrings left out."""
    folder = Path(castsim.planning.__file__).parent
    return digest_of({path.name: file_digest(path) for path in sorted(folder.glob("*.py"))})


def _result(one: Checked | None) -> dict[str, Any] | None:
    return None if one is None else {name: value for name, value in asdict(one).items() if name != "cell"}


def _cell(row: Mapping[str, Any]) -> Cell:
    attributes = tuple((str(name), str(value)) for name, value in row["attributes"])
    return Cell(str(row["src"]), str(row["dst"]), attributes, str(row["target"]))


def _checked(row: Mapping[str, Any]) -> Checked | None:
    held = row["result"]
    if held is None:
        return None
    options = tuple((str(name), value) for name, value in held.get("options", ()))
    return Checked(cell=_cell(row), **{**held, "chain": tuple(held["chain"]), "options": options})
