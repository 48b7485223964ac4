"""Rows of measurements simulated by several: processes, or the workers of a cluster; what is done is kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from castsim.evidence.accuracy.assessment import Accuracy, AssessedRow, assess_row
from castsim.evidence.accuracy.table import MeasuredRow, MeasuredTable
from castsim.execution.distribution import (
    Computed,
    Group,
    HandedTargets,
    Keeping,
    Task,
    Workers,
    about_installation,
    digest,
    facts_digest,
    here,
    resumed,
)
from castsim.targets import Target, load_target, target_names
from castsim.timing import ProgressCallback

_TOGETHER = 16
"""Rows that are handed out together."""

Measured = Sequence[tuple[Target, MeasuredTable]]


@dataclass(frozen=True, slots=True)
class Assessing:
    """Simulates rows, each with the name of its target; `targets` are those that are not as they are shipped."""

    targets: HandedTargets

    def __call__(self, group: Group[tuple[str, MeasuredRow]]) -> list[AssessedRow]:
        """Return the rows, simulated; errors as `castsim.evidence.accuracy.assess`."""
        return [assess_row(self.targets.get(name) or load_target(name), row) for name, row in group.items]


def assess_all(
    measured: Measured, workers: Workers, ledger: Path | None, progress: ProgressCallback
) -> tuple[Accuracy, ...]:
    """Simulate the rows of tables, each for its target.

    Raises:
        ReadError: the ledger is about something else; as `castsim.execution.distribution.distributed`.
        EngineError: as there.
        IllegalError, TileError: a row whose operation or tile a target does not take; with its place in the file.
    """
    items = [(target.name, row) for target, table in measured for row in table.rows]
    run = Assessing(HandedTargets({target.name: target for target, _ in measured if not _is_shipped(target)}))
    found: dict[int, Computed[AssessedRow]] = {}
    keeping = None if ledger is None else _keeping(ledger, measured, [row for _, row in items])
    for one in resumed(Task("accuracy", run, here(None, workers)), items, workers, keeping, _TOGETHER):
        found[one.number] = one
        progress("rows", len(found), len(items))
    results, start = [], 0
    for target, table in measured:
        part = [found[number] for number in range(start, start + len(table.rows))]
        rows = tuple(replace(one.result, row=row) for one, row in zip(part, table.rows, strict=True))
        results.append(Accuracy(target, table, rows, tuple(one.origin for one in part)))
        start += len(table.rows)
    return tuple(results)


def _is_shipped(target: Target) -> bool:
    return target.name in target_names() and load_target(target.name) is target


def _keeping(ledger: Path, measured: Measured, rows: Sequence[MeasuredRow]) -> Keeping[AssessedRow]:
    """Return where and how simulated rows are kept."""

    def write(one: AssessedRow) -> object:
        return [
            one.convention, one.simulated_rows, one.simulated_cols, one.simulated_cycles, one.reason,
            one.convention_meaning,
        ]  # fmt: skip

    def read(number: int, held: object) -> AssessedRow:
        if not isinstance(held, list):
            raise TypeError(f"{held!r} is not a list")
        convention, height, width, cycles, reason, meaning = held
        return AssessedRow(
            rows[number], str(convention), int(height), int(width), int(cycles), str(reason), str(meaning)
        )

    about = {
        **about_installation(),
        "set of targets": digest(*((target.name, facts_digest(target)) for target, _ in measured)),
        "table": digest(*(sorted(row.cells.items()) for row in rows)),
    }
    return Keeping(ledger, about, write, read)
