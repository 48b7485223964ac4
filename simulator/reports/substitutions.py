"""A record of substitutions that were tried on all codes, as text."""

from __future__ import annotations

from pathlib import Path

from rich.console import Group, RenderableType
from rich.text import Text

from castsim.evidence.verification.substitutions import SubstitutionRecord
from castsim.reports.terminal import indented, table


def substitutions_text(record: SubstitutionRecord, path: Path | None) -> RenderableType:
    """Return the report on a record: a line per instruction, then the sums."""
    numbers = ("codes", "of", "differ")
    rows = table("instruction", "replaced by", *numbers, numbers=numbers)
    for trial in record.trials:
        identity = trial.identity
        rows.add_row(identity.name, identity.shape, str(trial.tried), str(trial.codes), str(trial.mismatches))
    done = sum(trial.done for trial in record.trials)
    summary = f"{done} of {len(record.trials)} substitutions tried on all codes, {record.mismatches} results differ"
    first = [
        Text(f"{trial.identity.name}: the first code that differs is 0x{trial.first[0]:08x}")
        for trial in record.trials
        if trial.first
    ]
    kept = [] if path is None else [Text(f"recorded in {path}")]
    return Group(indented(rows), Text(""), *first, Text(summary), *kept)
