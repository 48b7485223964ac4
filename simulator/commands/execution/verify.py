"""The execution of `castsim verify`."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

from castsim.commands.execution.workers import workers_of
from castsim.commands.option_parsers import integer_from, take_words
from castsim.commands.outcome import Outcome
from castsim.commands.output import tell
from castsim.evidence.verification import EXHAUSTIVE, SAMPLES, STRUCTURED, VerificationRecord, required_parts, verify
from castsim.evidence.verification.comparison import probe
from castsim.evidence.verification.planning import plan
from castsim.isa.errors import ReadError
from castsim.isa.modes import Overflow, Rounding
from castsim.reports.progress import verification_progress
from castsim.reports.verify import verify_document


def execute(options: Namespace) -> Outcome:
    """Compare, and keep a record if asked for.

    Raises:
        ReadError: what was typed; a record that cannot be read, written, or does not fit.
        IllegalError: a mode that the pair does not have, codes that cannot be tried, no oracle.
        EngineError: workers that are others, or die.
        KeyboardInterrupt: interrupted; the record is saved.
    """
    path, workers = _record_path(options), workers_of(options)
    if options.substitutions:
        from castsim.commands.execution import verify_substitutions  # noqa: PLC0415 - loads the planner

        return verify_substitutions.execute(options, path, workers)
    if options.lowering:
        from castsim.commands.execution import verify_lowering  # noqa: PLC0415 - as above

        return verify_lowering.execute(options, path, workers)
    if options.spec is not None or options.target:
        raise ReadError("--spec and --target belong to --lowering, --target also to --substitutions")
    record = _resumed(options, path) if options.resume and path else _started(options)
    record.begin_run()
    try:
        if path is not None:
            record.save(path)  # now, so that a long run does not end with nowhere to write
        with verification_progress(record, quiet=options.quiet) as observer:
            verify(
                record,
                workers=workers.count,
                scheduler=workers.scheduler,
                save=None if path is None else lambda: record.save(path),
                observer=observer,
            )
    except KeyboardInterrupt:
        _tell_interrupted(record, path)
        raise

    def text(_: int) -> Any:
        from castsim.reports.verify import verify_text  # noqa: PLC0415 - rich, only if printed

        return verify_text(record, path)

    document = {} if options.json is None else verify_document(record, path)  # its digests take a while
    return Outcome(document, text, code=1 if record.mismatches else 0)


def _record_path(options: Namespace) -> Path | None:
    if options.record is None:
        if options.resume:
            raise ReadError("--resume continues a record; name it with --record FILE")
        return None
    path = Path(options.record)
    if options.resume and not path.exists():
        raise ReadError(f"record '{path}' does not exist; leave out --resume to start it")
    if path.exists() and not options.resume:
        raise ReadError(f"record '{path}' already exists; continue it with --resume, or name another --record")
    return path


def _started(options: Namespace) -> VerificationRecord:
    """Return a new record of what is asked for, after trying one code of each part."""
    if options.matrix:
        _check_alone("--matrix", options)
        return VerificationRecord.of(required_parts())
    parts = _requested(options)
    for part in parts:
        probe(part)
    return VerificationRecord.of(parts)


def _resumed(options: Namespace, path: Path) -> VerificationRecord:
    """Return the record to go on with.

    Raises:
        ReadError: it holds other parts than asked for, or the sources have changed since.
    """
    record = VerificationRecord.load(path)
    held = [one.part for one in record.progress]
    if options.pair:
        wanted = list(_requested(options))
    elif options.matrix:
        _check_alone("--matrix", options)
        wanted = list(required_parts())
    else:
        _check_alone("--resume without SRC and DST", options)
        wanted = held
    if set(wanted) != set(held):
        other = next(iter(sorted(set(wanted) ^ set(held), key=str)))
        raise ReadError(f"record '{path}' is about other parts than those requested, such as {other}")
    changed = record.changed_files()
    if changed:
        raise ReadError(
            f"record '{path}' is stale, start a new one: its sources have changed since: {', '.join(changed)}"
        )
    return record


def _check_alone(what: str, options: Namespace) -> None:
    """Reject options that choose what is compared."""
    given = [f"--{name}" for name in ("rounding", "overflow", "tier", "against", "samples", "seed")
             if getattr(options, name)]  # fmt: skip
    given += [f"--{name}" for name in ("exhaustive", "structured") if getattr(options, name)]
    given += ["SRC DST"] if options.pair else []
    if given:
        raise ReadError(f"{what} already determines what is compared; it excludes {', '.join(given)}")


def _requested(options: Namespace) -> tuple[Any, ...]:
    pair = list(options.pair)
    roundings = take_words(pair, options.rounding, [mode.value for mode in Rounding])
    overflows = take_words(pair, options.overflow, [policy.value for policy in Overflow])
    if len(pair) != 2:
        number = f"{len(pair)} argument{'' if len(pair) == 1 else 's'}"
        raise ReadError(f"verify takes two formats, not {number}", legal=("verify SRC DST", "verify --matrix"))
    chosen = {EXHAUSTIVE: options.exhaustive, STRUCTURED: options.structured, SAMPLES: options.samples is not None}
    kinds = [kind for kind, given in chosen.items() if given]
    if len(kinds) > 1:
        raise ReadError(f"--{kinds[0]} and --{kinds[1]} exclude each other")
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


def _tell_interrupted(record: VerificationRecord, path: Path | None) -> None:
    checked = sum(one.checked for one in record.progress)
    total = sum(one.size for one in record.progress)
    kept = f"saved in {path}; continue with --resume" if path is not None else "not saved: no --record FILE was given"
    if path is not None and not path.exists():  # interrupted before the first save
        kept = f"{path} is not written yet"
    tell(f"{checked} of {total} codes tried, {record.mismatches} mismatches; {kept}")
