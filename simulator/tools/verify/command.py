"""The command `verify`: prove a cast against the independent oracle, or compare two implementations."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from castsim.commands.option_parsers import integer_from, options_as, take_words
from castsim.commands.outcome import CommandOutcome
from castsim.isa.dataclass import dataclass
from castsim.isa.errors import ReadError
from castsim.isa.formats import Overflow, Rounding
from castsim.reports.progress import stage_progress
from castsim.tools.distribution.distributing import workers_of
from castsim.tools.verify.comparison import probe
from castsim.tools.verify.inputs import EXHAUSTIVE, SAMPLES, STRUCTURED
from castsim.tools.verify.report import (
    lowering_document,
    lowering_text,
    substitutions_text,
    verification_progress,
    verify_document,
    verify_text,
)
from castsim.tools.verify.running import VerificationRecord, plan, required_parts, verify

if TYPE_CHECKING:
    from castsim.targets.specification import Specification
    from castsim.tools.distribution.distributing import Workers
    from castsim.tools.lowering.conformance import Cell
    from castsim.tools.lowering.samples import Substitute
    from castsim.tools.verify.lowering import LoweringRecord
    from castsim.tools.verify.substitutions import SubstitutionRecord


@dataclass(frozen=True, slots=True)
class VerifyOptions:
    """The options of `castsim verify`, as typed."""

    pair: tuple[str, ...] = ()
    rounding: tuple[str, ...] = ()
    overflow: tuple[str, ...] = ()
    tier: str | None = None
    against: str | None = None
    exhaustive: bool = False
    structured: bool = False
    samples: str | None = None
    seed: str | None = None
    record: str | None = None
    resume: bool = False
    lowering: bool = False
    substitutions: bool = False
    spec: str | None = None
    target: tuple[str, ...] = ()
    matrix: bool = False
    quiet: bool = False
    json: str | None = None


def execute(options: Namespace) -> CommandOutcome:
    """Compare, and keep a record if asked for.

    Raises:
        ReadError: an option is wrong, or a record cannot be read or written, or does not fit.
        IllegalError: the pair lacks a mode, the codes cannot be tried, or there is no oracle.
        EngineError: a worker runs another version or dies.
        KeyboardInterrupt: the verification was interrupted; the record is saved.
    """
    asked, workers = options_as(VerifyOptions, options), workers_of(options.workers, options.scheduler)
    path = _record_path(options.record, resume=options.resume)
    if asked.substitutions or asked.lowering:
        execution = _execute_substitutions if asked.substitutions else _execute_lowering
        return execution(asked, path, workers)
    if options.spec is not None or options.target:
        raise ReadError("--spec applies only to --lowering, --target to --lowering and --substitutions")
    record = _resumed(asked, path) if asked.resume and path else _started(asked)
    record.begin_run()
    try:
        if path is not None:
            record.save(path)  # now, so that a long run does not end with nowhere to write
        with verification_progress(record, quiet=options.quiet, json=options.json) as observer:
            verify(
                record,
                workers=workers.count,
                scheduler=workers.scheduler,
                save=None if path is None else lambda: record.save(path),
                observer=observer,
            )
    except KeyboardInterrupt:
        raise KeyboardInterrupt(_interruption(record, path)) from None

    document = {} if options.json is None else verify_document(record, path)  # its digests take a while
    return CommandOutcome(document, lambda _: verify_text(record, path), code=1 if record.mismatches else 0)


def _record_path(name: str | None, *, resume: bool) -> Path | None:
    if name is None:
        if resume:
            raise ReadError("--resume continues a record; name it with --record FILE")
        return None
    path = Path(name)
    if resume and not path.exists():
        raise ReadError(f"record '{path}' does not exist; leave out --resume to start it")
    if path.exists() and not resume:
        raise ReadError(f"record '{path}' already exists; continue it with --resume, or name another --record")
    return path


def _started(options: VerifyOptions) -> VerificationRecord:
    """Return a new record of the request, after trying one code of each part."""
    if options.matrix:
        _check_alone("--matrix", options)
        return VerificationRecord.of(required_parts())
    parts = _requested(options)
    for part in parts:
        probe(part)
    return VerificationRecord.of(parts)


def _resumed(options: VerifyOptions, path: Path) -> VerificationRecord:
    """Return the record to continue.

    Raises:
        ReadError: the record has other parts than requested, or the sources have changed since.
    """
    record = VerificationRecord.load(path)
    recorded = [part_progress.part for part_progress in record.progress]
    if options.pair:
        wanted = list(_requested(options))
    elif options.matrix:
        _check_alone("--matrix", options)
        wanted = list(required_parts())
    else:
        _check_alone("--resume without SRC and DST", options)
        wanted = recorded
    if set(wanted) != set(recorded):
        other = next(iter(sorted(set(wanted) ^ set(recorded), key=str)))
        raise ReadError(f"record '{path}' covers parts that were not requested, such as {other}")
    _refuse_stale(record, path)
    return record


def _refuse_stale(record: VerificationRecord | SubstitutionRecord, path: Path) -> None:
    """Reject a record whose sources have changed since then (ReadError)."""
    changed = record.changed_files()
    if changed:
        raise ReadError(
            f"record '{path}' is stale, start a new one: its sources have changed since: {', '.join(changed)}"
        )


def _check_alone(what: str, options: VerifyOptions) -> None:
    """Reject options that choose what to compare."""
    given = [f"--{name}" for name in ("rounding", "overflow", "tier", "against", "samples", "seed")
             if getattr(options, name)]  # fmt: skip
    given += [f"--{name}" for name in ("exhaustive", "structured") if getattr(options, name)]
    given += ["SRC DST"] if options.pair else []
    if given:
        raise ReadError(f"{what} already determines what is compared; leave out {', '.join(given)}")


def _requested(options: VerifyOptions) -> tuple[Any, ...]:
    pair = list(options.pair)
    roundings = take_words(pair, list(options.rounding), [mode.value for mode in Rounding])
    overflows = take_words(pair, list(options.overflow), [policy.value for policy in Overflow])
    if len(pair) != 2:
        number = f"{len(pair)} argument{'' if len(pair) == 1 else 's'}"
        raise ReadError(f"verify takes two formats, not {number}", legal=("verify SRC DST", "verify --matrix"))
    chosen = {EXHAUSTIVE: options.exhaustive, STRUCTURED: options.structured, SAMPLES: options.samples is not None}
    kinds = [kind for kind, given in chosen.items() if given]
    if len(kinds) > 1:
        raise ReadError(f"--{kinds[0]} and --{kinds[1]} cannot be combined")
    return plan(
        *pair,
        roundings=roundings,
        overflows=overflows,
        tier=options.tier,
        against=options.against,
        inputs=kinds[0] if kinds else None,
        count=None if options.samples is None else integer_from("--samples", options.samples),
        seed=0 if options.seed is None else integer_from("--seed", options.seed, least=0),
    )


def _interruption(record: VerificationRecord, path: Path | None) -> str:
    """Return the progress of an interrupted verification, and whether it can be continued."""
    total = sum(part_progress.size for part_progress in record.progress)
    hint = f"saved in {path}: continue with --resume" if path is not None else "nothing was saved: pass --record FILE"
    if path is not None and not path.exists():  # interrupted before the first save
        hint = f"{path} is not written yet"
    return f"{record.checked:,} of {total:,} codes tried, {record.mismatches} mismatches; {hint}"


# `--lowering` and `--substitutions`: planned casts, and what stands in for instructions, tried again. Planned casts are
# run from the text of their programs. `castsim lower` tries all codes of 32 bits with functions instead of
# instructions; here they are compared with the machine model on all codes, once.

_SPEC = "tosa"
"""The default specification."""


def _execute_lowering(options: VerifyOptions, path: Path | None, workers: Workers) -> CommandOutcome:
    """Run lowered casts again; the exit code is 1 if a claim fails.

    Raises:
        ReadError: an option is wrong, or a record cannot be read or written, or does not fit.
        KeyboardInterrupt: the run was interrupted; the record contains everything done so far.
    """
    from castsim.running.acceptance import parse_specification  # noqa: PLC0415 - loads the planner
    from castsim.tools.verify.lowering import LoweringRecord, started, verify_lowering  # noqa: PLC0415 - as above

    given = [f"--{name}" for name in ("rounding", "overflow", "tier", "against", "exhaustive", "structured", "matrix")
             if getattr(options, name)]  # fmt: skip
    if given or len(options.pair) not in (0, 2):
        raise ReadError(f"--lowering takes both SRC and DST or neither, not {', '.join(given) or 'one of them'}")
    resumed = LoweringRecord.load(path) if options.resume and path is not None else None
    spec, version, attributes = parse_specification(options.spec or (_SPEC if resumed is None else resumed.spec))
    if attributes:
        raise ReadError("the matrix covers all attributes; give only the specification and its version")
    samples = None if options.samples is None else integer_from("--samples", options.samples)
    seed = None if options.seed is None else integer_from("--seed", options.seed, least=0)
    if resumed is None:
        record = started(spec, *_cells(options, spec, version), samples, seed or 0)
    else:
        record = resumed
        other = _other_than(record, options, spec, version, samples, seed)
        if other is not None:
            raise ReadError(f"record '{path}' covers different {other}; continue it with --resume alone")
    with stage_progress(options.quiet, options.json) as progress:
        verify_lowering(record, spec, None if path is None else lambda: record.save(path), progress, workers)

    return CommandOutcome(
        lowering_document(record), lambda _: lowering_text(record, path), code=1 if record.wrong else 0
    )


def _cells(options: VerifyOptions, spec: Specification, version: str | None) -> tuple[str, list[Cell]]:
    """Return the version in force and the requested cells."""
    from castsim.tools.lowering.conformance import prepared  # noqa: PLC0415 - as above

    src, dst = options.pair or (None, None)
    names = [name for text in options.target for name in text.split(",")]
    asked = prepared(spec, names, version, src, dst, {})
    return asked.version, list(asked.cells)


def _other_than(
    record: LoweringRecord,
    options: VerifyOptions,
    spec: Specification,
    version: str | None,
    samples: int | None,
    seed: int | None,
) -> str | None:
    """Return the difference between a record and the request, None if they agree; the record fills in other options."""
    if (spec.name, version or record.version) != (record.spec, record.version):
        return "specifications or versions"
    if samples not in (None, record.samples) or seed not in (None, record.seed):
        return "samples"
    if options.pair or options.target:
        _, cells = _cells(options, spec, record.version)
        return None if set(cells) == set(record.cells) else "casts or targets"
    return None


_NOT_OF_SUBSTITUTIONS = (
    "rounding", "overflow", "tier", "against", "exhaustive", "structured", "samples", "seed", "matrix",
    "lowering", "spec",
)  # fmt: skip
"""Options that do not apply to substitutions."""


def _execute_substitutions(options: VerifyOptions, path: Path | None, workers: Workers) -> CommandOutcome:
    """Try substitutions on all codes; the exit code is 1 if any result differs.

    Raises:
        ReadError: an option is wrong, or a record cannot be read or written, or does not fit.
        IllegalError: the cast has no substitutions.
        KeyboardInterrupt: the run was interrupted; the record contains everything done so far.
    """
    from castsim.tools.verify.substitutions import (  # noqa: PLC0415 - as above
        Asked,
        SubstitutionRecord,
        verify_substitutions,
    )

    given = [f"--{name}" for name in _NOT_OF_SUBSTITUTIONS if getattr(options, name)]
    if given or len(options.pair) not in (0, 2):
        other = ", ".join(given) or "one of them"
        raise ReadError(f"--substitutions takes both SRC and DST or neither, not {other}")
    names = tuple(name for text in options.target for name in text.split(","))
    asked = Asked((options.pair[0], options.pair[1]) if options.pair else None, names)
    wanted = asked.substitutes()
    if options.resume and path is not None:
        record = _resumed_substitutions(path, wanted)
    else:
        record = SubstitutionRecord.of(substitute.identity for substitute in wanted)
    with stage_progress(options.quiet, options.json) as progress:
        save = None if path is None else lambda: record.save(path)
        verify_substitutions(record, asked, save, progress, workers)

    document = {**record.document(), "schema_version": record.FORM.VERSION}
    return CommandOutcome(document, lambda _: substitutions_text(record, path), code=1 if record.mismatches else 0)


def _resumed_substitutions(path: Path, wanted: list[Substitute]) -> SubstitutionRecord:
    """Return the record to continue, with the requested parts added.

    Raises:
        ReadError: the sources or the facts of a target have changed since.
    """
    from castsim.tools.verify.substitutions import SubstitutionRecord  # noqa: PLC0415 - as above

    record = SubstitutionRecord.load(path)
    _refuse_stale(record, path)
    today = {(substitute.identity.name, substitute.identity.format): substitute.identity for substitute in wanted}
    for trial in record.trials:
        identity = trial.identity
        if today.get((identity.name, identity.format), identity) != identity:
            raise ReadError(
                f"record '{path}' is stale, start a new one: the facts behind '{identity.name}' have changed"
            )
    record.extend(substitute.identity for substitute in wanted)
    return record
