"""`castsim verify --substitutions`: whether what stands in for instructions gives what the machine model gives.

`castsim lower` tries all codes of 32 bits with such functions; here they are compared on all codes, once.
"""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from castsim.commands.outcome import Outcome
from castsim.evidence.verification import substitutions
from castsim.evidence.verification.substitutions import Asked, SubstitutionRecord
from castsim.execution.distribution.distributing import Workers
from castsim.isa.errors import ReadError
from castsim.reports.documents import VERSIONS
from castsim.reports.progress import stage_progress

if TYPE_CHECKING:
    from castsim.planning.substitution import Substitute

_OTHERS = ("rounding", "overflow", "tier", "against", "exhaustive", "structured", "samples", "seed", "matrix",
           "lowering", "spec")  # fmt: skip
"""Options that mean nothing for substitutions."""


def execute(options: Namespace, path: Path | None, workers: Workers) -> Outcome:
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
        substitutions.verify_substitutions(record, asked, save, progress, workers)

    def text(_: int) -> Any:
        from castsim.reports.verify import substitutions_text  # noqa: PLC0415 - rich, only if printed

        return substitutions_text(record, path)

    document = {**record.document(), "schema_version": VERSIONS["verify-substitutions"]}
    return Outcome(document, text, code=1 if record.mismatches else 0)


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
