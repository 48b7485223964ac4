"""The report of a run as data and as JSON."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from simulator.reports.buffers import BufferUse, buffer_use
from simulator.reports.exposed import finding_entry, stale_entry
from simulator.reports.facts import NamedFact, doubtful_facts
from simulator.reports.lines import SourceLine, bookkeeping, inserted, listed, source_lines
from simulator.reports.losses import Loss, lost_most
from simulator.reports.operations import OperationNote, operation_entry, operation_notes
from simulator.reports.pipes import causes_of
from simulator.reports.races import race_entry
from simulator.reports.synchronisation import synchronisation_document
from simulator.reports.what_if import what_if_entries
from simulator.running import Loaded, Result
from simulator.timing import repeated
from targets import Target
from targets.dataflow import DataflowTarget

if TYPE_CHECKING:
    from simulator.vliw.lint import Finding
    from simulator.what_if import Gain

_LISTED = 1 << 16
"""Executions up to which the JSON document lists every one."""


@dataclass(frozen=True, slots=True)
class Output:
    """One output array: `sha256` is the digest of its elements in C order, little-endian, as its `.npy` holds them."""

    name: str
    file: str | None
    format: str
    shape: tuple[int, ...]
    sha256: str


@dataclass(frozen=True, slots=True)
class RunReport:
    """What a run found: its result, and what a reader wants derived from it."""

    result: Result
    seconds: float
    lines: tuple[SourceLine, ...]
    bookkeeping: tuple[int, int]
    inserted: tuple[int, int]
    lost_most: Loss | None
    """Where most cycles went that no pipe worked; None if there are none."""
    buffers: tuple[BufferUse, ...]
    outputs: tuple[Output, ...]
    facts: tuple[NamedFact, ...]
    operations: tuple[OperationNote, ...] = ()
    findings: tuple[Finding, ...] | None = None
    """What the linter found; None if it was not asked."""
    show_synchronisation: bool = False
    """Whether the text lists the program with what was inserted."""
    gains: tuple[Gain, ...] = ()
    """What lifting limits would gain; empty if it was not asked."""

    @classmethod
    def of(
        cls,
        result: Result,
        files: Mapping[str, Path],
        read: Iterable[str] = (),
        findings: tuple[Finding, ...] | None = None,
        *,
        show_synchronisation: bool = False,
        gains: tuple[Gain, ...] = (),
    ) -> Self:
        """Derive the report; `files` says where outputs were written, `read` which further facts the run rested on."""
        loaded, timing = result.loaded, result.timing
        target = loaded.target
        return cls(
            result=result,
            seconds=float(Fraction(timing.total, target.frequency.megahertz * 10**6)),
            lines=source_lines(loaded.tree, timing),
            bookkeeping=bookkeeping(loaded.tree, timing),
            inserted=inserted(loaded.tree, timing),
            lost_most=lost_most(loaded.tree, timing, _scalar_pipe(target)),
            buffers=buffer_use(loaded.tree, target),
            outputs=tuple(_output(result, name, files.get(name)) for name in result.outputs),
            facts=doubtful_facts(target, {*timing.facts, *read, *_more_facts(loaded)}),
            operations=operation_notes(loaded.tree, target),
            findings=findings,
            show_synchronisation=show_synchronisation,
            gains=gains,
        )


def _scalar_pipe(target: Target) -> str | None:
    """Return the pipe that issues for all others."""
    return target.pipes.scalar if isinstance(target, DataflowTarget) else None


def _more_facts(loaded: Loaded) -> tuple[str, ...]:
    """Return the facts that no engine reads, and this run rests on."""
    return ("frequency",) if loaded.synchronised is None else ("frequency", "synchronisation")


def run_document(report: RunReport) -> dict[str, Any]:
    """Return the report as JSON; units are in the names, a file is null if it was not written.

    Tile programs add `synchronisation` and `races`, those with vector operations `operations`; exposed pipelines add
    `stale_reads`, a lint run adds `lint`.
    """
    result = report.result
    document = {
        "program": result.loaded.file,
        "entry": result.loaded.entry,
        "target": result.loaded.target.name,
        "engine": result.engine,
        "total_cycles": result.cycles,
        "seconds": report.seconds,
        "pipes": {
            name: {"busy_cycles": pipe.busy, "causes": {str(c): cycles for c, cycles in causes_of(pipe).items()}}
            for name, pipe in result.pipes.items()
        },
        "lost_most": None if report.lost_most is None else report.lost_most.entry(),
        "instructions": _instructions(result),
        "outputs": [
            {
                "name": output.name,
                "file": output.file,
                "format": output.format,
                "shape": list(output.shape),
                "sha256": output.sha256,
            }
            for output in report.outputs
        ],
        "facts_assumed": [
            {"name": fact.name, "status": fact.status, "value": fact.value, "source": fact.source, "note": fact.note}
            for fact in report.facts
        ],
        "warnings": list(result.warnings),
    }
    if isinstance(result.loaded.target, DataflowTarget):
        document["synchronisation"] = synchronisation_document(result.loaded)
    if result.races is not None:
        document["races"] = [race_entry(found) for found in result.races]
    if report.operations:
        document["operations"] = [operation_entry(note) for note in report.operations]
    if result.stale_reads is not None:
        document["stale_reads"] = [stale_entry(found) for found in result.stale_reads]
    if report.gains:
        document["what_if"] = what_if_entries(report.gains)
    if report.findings is not None:
        document["lint"] = [finding_entry(found) for found in report.findings]
    return document


def digest(array: NDArray[Any]) -> str:
    """Return the SHA-256 of an array's elements in C order, little-endian."""
    plain = np.ascontiguousarray(array)
    codes = plain.view(f"u{plain.dtype.itemsize}") if plain.ndim else plain.reshape(1).view(f"u{plain.dtype.itemsize}")
    return hashlib.sha256(codes.astype(codes.dtype.newbyteorder("<"), copy=False).tobytes()).hexdigest()


def _output(result: Result, name: str, file: Path | None) -> Output:
    array = result.outputs[name]
    fmt = result.loaded.arguments[name].format.name
    return Output(name, None if file is None else str(file), fmt, array.shape, digest(array))


def _instructions(result: Result) -> list[dict[str, Any]]:
    """Return one entry per execution in program order, of what `listed` lets through.

    Where there are very many, one entry stands for all copies that an engine has skipped.
    """
    named = [
        {"line": instruction.span.line, "op": instruction.text.split(" ", 1)[0], "pipe": instruction.pipe}
        if listed(instruction)
        else None
        for instruction in result.loaded.tree.instructions
    ]
    executions = result.timing.executions
    if len(executions) > _LISTED:
        return [
            {
                **entry,
                "start_cycle": execution.start,
                "end_cycle": execution.end,
                "executions": times,
                "last_end_cycle": last.end,
            }
            for execution, last, times in repeated(executions)
            if (entry := named[execution.instruction]) is not None
        ]
    return [
        {**entry, "start_cycle": execution.start, "end_cycle": execution.end}
        for execution in executions
        if (entry := named[execution.instruction]) is not None
    ]
