"""Compares bit by bit what a tier makes of many codes with what the independent oracle makes of them, or two tiers
with each other. Without --rounding and --overflow under every mode that the pair has, without a set of codes on all
codes of a source of up to 16 bits, else on the structured set (which decides all codes) where that is quick, else on
a million samples, shared among the modes. Sources of 64 bits cannot be tried on all codes.
--against oracle needs the source checkout. The exit code is 1 if anything differs, 130 after Ctrl-C: then the record
holds everything done so far, and --resume goes on from there, also without SRC and DST.

With --lowering the casts of a specification that `castsim lower` plans for a target are run again from the text of
their programs, on all codes of up to 16 bits or --samples N of wider ones, and judged by the oracle; so are the
counterexamples of those that it refuses.

examples:
  castsim verify bf16 e4m3fn
  castsim verify f32 e5m2 --tier table --against reference --exhaustive --record e5m2.json
  castsim verify --record e5m2.json --resume --workers 2
  castsim verify --matrix --record f32.json
  castsim verify --lowering --spec tosa --target a5 gaudi2 --record lowering.json
  castsim verify f16 i8 --lowering --spec tosa
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from simulator.commands.outcome import Outcome
    from simulator.verification import Record

SUMMARY = "prove a cast: a tier against the independent oracle, or two tiers against each other"


def declare(parser: ArgumentParser) -> None:
    """Add the arguments of `verify`."""
    add = parser.add_argument
    add("pair", metavar="SRC DST", nargs="*", help="formats to cast from and to; not with --matrix")
    add("--rounding", metavar="M", action="append", default=[], help="rounding mode; default: all deterministic ones")
    add("--overflow", metavar="O", action="append", default=[], help="saturate, wrap or special; default: both legal")
    add(
        "--tier",
        metavar="T",
        help="what is judged: default, the tier that casts take by themselves (default), "
        "reference, table, compiled or generic",
    )
    add("--against", metavar="T", help="what it is compared with: oracle (default), or a tier as above")
    add("--exhaustive", action="store_true", help="all codes of the source")
    add("--structured", action="store_true", help="every sign, exponent and kept bits, with six kinds of dropped bits")
    add("--samples", metavar="N", help="N pseudo-random codes, half of them near rounding boundaries")
    add("--seed", metavar="S", help="seed of samples and of stochastic rounding; default: 0")
    add("--record", metavar="FILE", help="keep progress and findings in FILE")
    add("--resume", action="store_true", help="go on with the record")
    add("--workers", metavar="N", default="1", help="processes to use; default: 1")
    add("--lowering", action="store_true", help="run lowered casts again and judge them by the oracle")
    add("--spec", metavar="S", help="with --lowering: specification; default: tosa")
    add("--target", metavar="T", nargs="+", action="extend", default=[], help="with --lowering: targets; default: all")
    add("--matrix", action="store_true", help="the shipped proofs: f32 to eleven formats in all modes")


def execute(options: Namespace) -> Outcome:
    """Compare, and keep a record if asked for.

    Raises:
        ReadError: what was typed; a record that cannot be read, written, or does not fit.
        IllegalError: a mode that the pair does not have, codes that cannot be tried, no oracle.
        KeyboardInterrupt: interrupted; the record is saved.
    """
    from isa.errors import ReadError  # noqa: PLC0415
    from simulator.commands.outcome import Outcome  # noqa: PLC0415
    from simulator.reports.verify import verify_document  # noqa: PLC0415
    from simulator.reports.verify_progress import watching  # noqa: PLC0415
    from simulator.verification import verify  # noqa: PLC0415

    path = _record_path(options)
    if options.lowering:
        return _lowering(options, path)
    if options.spec is not None or options.target:
        raise ReadError("--spec and --target belong to --lowering")
    workers = _number("--workers", options.workers, least=1)
    record = _resumed(options, path) if options.resume and path else _started(options)
    record.begin_run()
    try:
        if path is not None:
            record.save(path)  # now, so that a long run does not end with nowhere to write
        with watching(record, quiet=options.quiet) as observer:
            verify(record, workers=workers, save=None if path is None else lambda: record.save(path), observer=observer)
    except KeyboardInterrupt:
        _tell_interrupted(record, path)
        raise

    def text(_: int) -> Any:
        from simulator.reports.verify_text import verify_text  # noqa: PLC0415 - rich, only if printed

        return verify_text(record, path)

    return Outcome(verify_document(record, path), text, code=1 if record.mismatches else 0)


def _lowering(options: Namespace, path: Path | None) -> Outcome:
    """Run lowered casts again; the exit code is 1 if a claim does not stand."""
    from isa.errors import ReadError  # noqa: PLC0415
    from simulator.commands.outcome import Outcome  # noqa: PLC0415
    from simulator.conformance.matrix import chosen_cells  # noqa: PLC0415
    from simulator.reports.stages import watching  # noqa: PLC0415
    from simulator.specifications import parse_specification  # noqa: PLC0415
    from simulator.verification.lowering_record import LoweringRecord, started, verify_lowering  # noqa: PLC0415

    given = [f"--{name}" for name in ("rounding", "overflow", "tier", "against", "exhaustive", "structured", "matrix")
             if getattr(options, name)]  # fmt: skip
    if given or len(options.pair) not in (0, 2):
        raise ReadError(f"--lowering takes SRC and DST or none of them, and not {', '.join(given) or 'one of them'}")
    spec, version, _ = parse_specification(options.spec or "tosa")
    src, dst = options.pair or (None, None)
    names = [name for text in options.target for name in text.split(",")]
    chosen, cells = chosen_cells(spec, names, version=version, src=src, dst=dst)
    if options.resume and path is not None:
        record = LoweringRecord.load(path)
        spec = parse_specification(record.spec)[0]
    else:
        samples = None if options.samples is None else _number("--samples", options.samples, least=1)
        seed = 0 if options.seed is None else _number("--seed", options.seed, least=0)
        record = started(spec, chosen, cells, samples, seed)
    with watching(quiet=options.quiet) as heard:
        verify_lowering(record, spec, None if path is None else lambda: record.save(path), heard)

    def text(_: int) -> Any:
        from simulator.reports.lowering import lowering_text  # noqa: PLC0415 - rich, only if printed

        return lowering_text(record, path)

    document = {key: value for key, value in record.document().items() if key != "schema_version"}
    return Outcome(document, text, code=1 if record.wrong else 0)


def _number(option: str, text: str, *, least: int) -> int:
    from isa.errors import ReadError  # noqa: PLC0415

    text = text.strip()
    if not text.isdecimal() or int(text) < least:
        raise ReadError(f"{option} {text}: not an integer of at least {least}")
    return int(text)


def _record_path(options: Namespace) -> Path | None:
    from pathlib import Path  # noqa: PLC0415

    from isa.errors import ReadError  # noqa: PLC0415

    if options.record is None:
        if options.resume:
            raise ReadError("--resume goes on with a record; name it by --record FILE")
        return None
    path = Path(options.record)
    if options.resume and not path.exists():
        raise ReadError(f"record '{path}' does not exist; without --resume it is started")
    if path.exists() and not options.resume:
        raise ReadError(f"record '{path}' exists; --resume goes on with it, another --record keeps it")
    return path


def _started(options: Namespace) -> Record:
    """Return a new record of what is asked for, after trying one code of each part."""
    from simulator.verification import Record, required_parts  # noqa: PLC0415
    from simulator.verification.comparison import probe  # noqa: PLC0415

    if options.matrix:
        _check_alone("--matrix", options)
        return Record.of(required_parts())
    parts = _requested(options)
    for part in parts:
        probe(part)
    return Record.of(parts)


def _resumed(options: Namespace, path: Path) -> Record:
    """Return the record to go on with.

    Raises:
        ReadError: it holds other parts than asked for, or the sources have changed since.
    """
    from isa.errors import ReadError  # noqa: PLC0415
    from simulator.verification import Record, required_parts  # noqa: PLC0415

    record = Record.load(path)
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
        raise ReadError(f"record '{path}' is about other parts than asked for, such as {other}")
    changed = record.changed_files()
    if changed:
        raise ReadError(
            f"record '{path}' is stale, start a new one: its sources have changed since: {', '.join(changed)}"
        )
    return record


def _check_alone(what: str, options: Namespace) -> None:
    """Refuse options that choose what is compared."""
    from isa.errors import ReadError  # noqa: PLC0415

    given = [f"--{name}" for name in ("rounding", "overflow", "tier", "against", "samples", "seed")
             if getattr(options, name)]  # fmt: skip
    given += [f"--{name}" for name in ("exhaustive", "structured") if getattr(options, name)]
    given += ["SRC DST"] if options.pair else []
    if given:
        raise ReadError(f"{what} settles what is compared; not with {', '.join(given)}")


def _requested(options: Namespace) -> tuple[Any, ...]:
    from isa.errors import ReadError  # noqa: PLC0415
    from isa.modes import Overflow, Rounding  # noqa: PLC0415
    from simulator.commands.cast import take_words  # noqa: PLC0415
    from simulator.verification import EXHAUSTIVE, SAMPLES, STRUCTURED  # noqa: PLC0415
    from simulator.verification.planning import plan  # noqa: PLC0415

    pair = list(options.pair)
    roundings = take_words(pair, options.rounding, [mode.value for mode in Rounding])
    overflows = take_words(pair, options.overflow, [policy.value for policy in Overflow])
    if len(pair) != 2:
        raise ReadError(
            f"verify takes two formats, not {len(pair)} arguments", legal=("verify SRC DST", "verify --matrix")
        )
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
        count=None if options.samples is None else _number("--samples", options.samples, least=1),
        seed=0 if options.seed is None else _number("--seed", options.seed, least=0),
    )


def _tell_interrupted(record: Record, path: Path | None) -> None:
    checked = sum(one.checked for one in record.progress)
    total = sum(one.size for one in record.progress)
    kept = f"saved in {path}; go on with --resume" if path is not None else "not kept: there was no --record FILE"
    if path is not None and not path.exists():  # interrupted before the first save
        kept = f"{path} is not written yet"
    print(f"{checked} of {total} codes tried, {record.mismatches} mismatches; {kept}", file=sys.stderr)
