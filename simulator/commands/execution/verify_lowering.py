"""The execution of `castsim verify --lowering`: planned casts are run again from the text of their programs."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

from castsim.commands.option_parsers import integer_from
from castsim.commands.outcome import Outcome
from castsim.evidence.verification.lowering_record import LoweringRecord, started, verify_lowering
from castsim.execution.distribution.distributing import Workers
from castsim.isa.errors import ReadError
from castsim.planning.conformance import Cell
from castsim.planning.conformance.matrix import chosen_cells
from castsim.reports.lower import lowering_document
from castsim.reports.lower_text import lowering_text
from castsim.reports.progress import stage_progress
from castsim.specifications import parse_specification
from castsim.targets import Specification

_SPEC = "tosa"
"""The specification, unless another is named."""


def execute(options: Namespace, path: Path | None, workers: Workers) -> Outcome:
    """Run lowered casts again; the exit code is 1 if a claim does not stand.

    Raises:
        ReadError: what was typed; a record that cannot be read, written, or does not fit.
        KeyboardInterrupt: interrupted; the record holds everything done so far.
    """
    given = [f"--{name}" for name in ("rounding", "overflow", "tier", "against", "exhaustive", "structured", "matrix")
             if getattr(options, name)]  # fmt: skip
    if given or len(options.pair) not in (0, 2):
        raise ReadError(f"--lowering takes both SRC and DST or neither, not {', '.join(given) or 'one of them'}")
    resumed = LoweringRecord.load(path) if options.resume and path is not None else None
    spec, version, attributes = parse_specification(options.spec or (_SPEC if resumed is None else resumed.spec))
    if attributes:
        raise ReadError("the matrix goes through all attributes; name the specification and its version only")
    samples = None if options.samples is None else integer_from("--samples", options.samples)
    seed = None if options.seed is None else integer_from("--seed", options.seed, least=0)
    if resumed is None:
        record = started(spec, *_cells(options, spec, version), samples, seed or 0)
    else:
        record = resumed
        other = _other_than(record, options, spec, version, samples, seed)
        if other is not None:
            raise ReadError(f"record '{path}' is about other {other} than asked for; --resume alone continues it")
    with stage_progress(quiet=options.quiet) as progress:
        verify_lowering(record, spec, None if path is None else lambda: record.save(path), progress, workers)

    def text(_: int) -> Any:
        return lowering_text(record, path)

    return Outcome(lowering_document(record), text, code=1 if record.wrong else 0)


def _cells(options: Namespace, spec: Specification, version: str | None) -> tuple[str, list[Cell]]:
    """Return the version in force and the cells that are asked for."""
    src, dst = options.pair or (None, None)
    names = [name for text in options.target for name in text.split(",")]
    return chosen_cells(spec, names, version=version, src=src, dst=dst)


def _other_than(
    record: LoweringRecord,
    options: Namespace,
    spec: Specification,
    version: str | None,
    samples: int | None,
    seed: int | None,
) -> str | None:
    """Return what a record has otherwise than was asked for, None if it fits; what was not typed is the record's."""
    if (spec.name, version or record.version) != (record.spec, record.version):
        return "specifications or versions"
    if samples not in (None, record.samples) or seed not in (None, record.seed):
        return "samples"
    if options.pair or options.target:
        _, cells = _cells(options, spec, record.version)
        return None if set(cells) == set(record.cells) else "casts or targets"
    return None
