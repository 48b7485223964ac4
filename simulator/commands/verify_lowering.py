"""`castsim verify --lowering` and `--substitutions`: planned casts, and what stands in for instructions, tried again.

Planned casts are run from the text of their programs. `castsim lower` tries all codes of 32 bits with functions instead
of instructions; here they are compared with the machine model on all codes, once.
"""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from castsim.commands.option_parsers import integer_from
from castsim.commands.outcome import CommandOutcome
from castsim.evidence.verification import lowering
from castsim.evidence.verification.lowering import Asked, LoweringRecord, SubstitutionRecord, started, verify_lowering
from castsim.execution.distribution.distributing import Workers
from castsim.isa.errors import ReadError
from castsim.lowering.conformance import Cell, prepared
from castsim.lowering.specifications.acceptance import parse_specification
from castsim.reports.documents import VERSIONS
from castsim.reports.lower import lowering_document
from castsim.reports.lower_text import lowering_text
from castsim.reports.progress import stage_progress
from castsim.targets import Specification

if TYPE_CHECKING:
    from castsim.lowering.substitution import Substitute


_SPEC = "tosa"
"""The specification, unless another is named."""


def execute_lowering(options: Namespace, path: Path | None, workers: Workers) -> CommandOutcome:
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

    return CommandOutcome(
        lowering_document(record), lambda _: lowering_text(record, path), code=1 if record.wrong else 0
    )


def _cells(options: Namespace, spec: Specification, version: str | None) -> tuple[str, list[Cell]]:
    """Return the version in force and the cells that are asked for."""
    src, dst = options.pair or (None, None)
    names = [name for text in options.target for name in text.split(",")]
    asked = prepared(spec, names, version, src, dst, {})
    return asked.version, list(asked.cells)


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


_OTHERS = ("rounding", "overflow", "tier", "against", "exhaustive", "structured", "samples", "seed", "matrix",
           "lowering", "spec")  # fmt: skip
"""Options that mean nothing for substitutions."""


def execute_substitutions(options: Namespace, path: Path | None, workers: Workers) -> CommandOutcome:
    """Try substitutions on all codes; the exit code is 1 if one gives another result.

    Raises:
        ReadError: what was typed; a record that cannot be read, written, or does not fit.
        IllegalError: a cast without such arithmetic.
        KeyboardInterrupt: interrupted; the record holds everything done so far.
    """
    given = [f"--{name}" for name in _OTHERS if getattr(options, name)]
    if given or len(options.pair) not in (0, 2):
        other = ", ".join(given) or "one of them"
        raise ReadError(f"--substitutions takes both SRC and DST or neither, not {other}")
    asked = _asked(options)
    wanted = asked.substitutes()
    if options.resume and path is not None:
        record = _resumed(path, wanted)
    else:
        record = SubstitutionRecord.of(substitute.identity for substitute in wanted)
    with stage_progress(quiet=options.quiet) as progress:
        save = None if path is None else lambda: record.save(path)
        lowering.verify_substitutions(record, asked, save, progress, workers)

    def text(_: int) -> Any:
        from castsim.reports.verify import substitutions_text  # noqa: PLC0415 - rich, only if printed

        return substitutions_text(record, path)

    document = {**record.document(), "schema_version": VERSIONS["verify-substitutions"]}
    return CommandOutcome(document, text, code=1 if record.mismatches else 0)


def _asked(options: Namespace) -> Asked:
    names = tuple(name for text in options.target for name in text.split(","))
    return Asked((options.pair[0], options.pair[1]) if options.pair else None, names)


def _resumed(path: Path, wanted: list[Substitute]) -> SubstitutionRecord:
    """Return the record to go on with, what is asked for added.

    Raises:
        ReadError: the sources or the facts of a target have changed since.
    """
    record = SubstitutionRecord.load(path)
    changed = record.changed_files()
    if changed:
        raise ReadError(
            f"record '{path}' is stale, start a new one: its sources have changed since: {', '.join(changed)}"
        )
    today = {(one.identity.name, one.identity.format): one.identity for one in wanted}
    for trial in record.trials:
        held = trial.identity
        if today.get((held.name, held.format), held) != held:
            raise ReadError(f"record '{path}' is stale, start a new one: other facts decide '{held.name}' now")
    record.extend(one.identity for one in wanted)
    return record
