"""The execution of `castsim verify --lowering`: planned casts are run again from the text of their programs."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

from castsim.commands.option_values import integer_from
from castsim.commands.outcome import Outcome
from castsim.evidence.verification.lowering_record import LoweringRecord, started, verify_lowering
from castsim.execution.distribution import Workers
from castsim.isa.errors import ReadError
from castsim.planning.conformance.matrix import chosen_cells
from castsim.reports.lowering_record import lowering_document, lowering_text
from castsim.reports.stage_progress import stage_progress
from castsim.specifications import parse_specification


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
    spec, version, _ = parse_specification(options.spec or "tosa")
    src, dst = options.pair or (None, None)
    names = [name for text in options.target for name in text.split(",")]
    chosen, cells = chosen_cells(spec, names, version=version, src=src, dst=dst)
    if options.resume and path is not None:
        record = LoweringRecord.load(path)
        spec = parse_specification(record.spec)[0]
    else:
        samples = None if options.samples is None else integer_from("--samples", options.samples)
        seed = 0 if options.seed is None else integer_from("--seed", options.seed, least=0)
        record = started(spec, chosen, cells, samples, seed)
    with stage_progress(quiet=options.quiet) as progress:
        verify_lowering(record, spec, None if path is None else lambda: record.save(path), progress, workers)

    def text(_: int) -> Any:
        return lowering_text(record, path)

    return Outcome(lowering_document(record), text, code=1 if record.wrong else 0)
