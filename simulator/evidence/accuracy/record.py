"""The record of residuals: the shipped measurements simulated, and intervals for what has not been measured.

An interval must prove itself: it is determined without one operation on its types after the other, and the rows left
out must lie within it in the stated share. Of the shares that are tried the largest holds at which the intervals are
also narrow, at most `WIDEST` median residuals; where there is none, no interval is stated.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from math import ceil, floor
from pathlib import Path
from statistics import fmean, median

from castsim.evidence.accuracy.assessment import Accuracy, AssessedRow
from castsim.evidence.accuracy.cross_validation import LeftOut, cross_validate
from castsim.evidence.accuracy.scopes import SCOPE as SCOPE_OPERATION
from castsim.evidence.accuracy.table import CAST as CAST_OPERATION
from castsim.evidence.accuracy.table import LOAD as LOAD_OPERATION
from castsim.evidence.accuracy.table import MeasuredRow
from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS
from castsim.targets.residuals import (
    CAST,
    INTERVALS,
    LOAD,
    OPERATIONS,
    POOLED,
    SCOPE,
    MeasuredOperation,
    Residuals,
    Row,
)
from castsim.targets.schema import SourceKind

SHARES = (90, 80, 75, 67, 60, 50)
"""Percent of the rows that an interval may be stated to hold."""

WIDEST = 3
"""Median residuals that the median width of the intervals may have."""

_FEWEST = 8
"""Rows from which on a kind has an interval of its own."""

_KINDS: Mapping[str, str] = {CAST_OPERATION: CAST, LOAD_OPERATION: LOAD, SCOPE_OPERATION: SCOPE}


@dataclass(frozen=True, slots=True)
class Residual:
    """The error of one row in percent of the simulated cycles; `unit` is what is left out together with it."""

    kind: str
    unit: tuple[str, str, str]
    percent: float
    refitted: bool = False


@dataclass(frozen=True, slots=True)
class Trial:
    """Intervals of a level tried on rows left out: percent held, median width, median absolute residual."""

    held: float
    width: float
    residual: float


def record(found: Sequence[Accuracy]) -> tuple[list[MeasuredOperation], list[Residuals]]:
    """Return both records of assessed shipped tables, sorted."""
    targets = dict.fromkeys(each.target.name for each in found)
    intervals = [
        row
        for name in targets
        for row in intervals_of(name, residuals(each for each in found if each.target.name == name))
    ]
    return measured(found), intervals


def write_record(folder: Path, found: Sequence[Accuracy]) -> None:
    """Write both records into a folder: that of the descriptions, to ship them."""
    operations, intervals = record(found)
    _write(folder / OPERATIONS, MeasuredOperation, operations)
    _write(folder / INTERVALS, Residuals, intervals)


def kind_of(row: MeasuredRow) -> str:
    """Return the kind of operation that a row measures."""
    return _KINDS.get(row.operation) or str(VECTOR_OPERATIONS[row.operation].kind)


def measured(found: Iterable[Accuracy]) -> list[MeasuredOperation]:
    """Return which operations were measured, of several sources the strongest first."""
    order, count = list(SourceKind), dict[tuple[str, str, str, str, SourceKind], list[bool]]()
    for accuracy in found:
        for row in (each.row for each in _of_programs(accuracy, accuracy.rows)):
            kind = row.source_kind or SourceKind.DOCUMENT
            key = (accuracy.target.name, row.operation, row.src.name, row.dst.name, kind)
            count.setdefault(key, []).append(row.fitted)
    rows = [MeasuredOperation(*key, len(each), each.count(False)) for key, each in count.items()]
    return sorted(rows, key=lambda row: (*astuple(row)[:4], order.index(row.source_kind)))


def residuals(found: Iterable[Accuracy]) -> list[Residual]:
    """Return the residuals of a target's rows that were not fitted, and of fitted casts that can be predicted.

    What a cost model computed was measured nowhere, and has no say.
    """
    rows = []
    for accuracy in found:
        rows += [
            _residual(each)
            for each in _of_programs(accuracy, accuracy.unfitted)
            if each.row.source_kind is not SourceKind.VENDOR_MODEL
        ]
        fitted = [row.row for row in accuracy.rows if row.row.fitted]
        casts = all(row.operation == CAST_OPERATION for row in fitted)
        if fitted and casts and len(fitted) == len(accuracy.rows) and accuracy.target.free_facts:
            folds = cross_validate(accuracy.target, accuracy.table, LeftOut.KERNEL)
            rows += [_residual(row, refitted=True) for row in folds.rows]
    return rows


def intervals_of(target: str, rows: Sequence[Residual]) -> list[Residuals]:
    """Return the intervals of a target by kind, all of one share; none if too few rows, or too scattered ones, were
    measured.
    """
    rows = _pooled(rows)
    if not rows:
        return []
    for share in SHARES:
        level, trial = _level(rows, share)
        if trial.held >= share and trial.width <= WIDEST * trial.residual:
            break
    else:
        return []
    return [
        Residuals(
            target, kind, len(own), sum(row.refitted for row in own),
            round(fmean(sizes), 2), round(median(sizes), 2), round(max(sizes), 2),
            share, *_outwards(interval([row.percent for row in own], level)), round(trial.held, 1),
        )
        for kind, own in sorted(_by_kind(rows).items())
        for sizes in [[abs(row.percent) for row in own]]
    ]  # fmt: skip


def trial_of(rows: Sequence[Residual], level: int) -> Trial:
    """Leave out one operation on its types after the other, and try the intervals of the others on its rows."""
    held, widths = [], []
    for unit in dict.fromkeys(row.unit for row in rows):
        kept = _by_kind(row for row in rows if row.unit != unit)
        pool = [row for own in kept.values() for row in own]
        for row in (each for each in rows if each.unit == unit):
            low, high = interval([each.percent for each in kept.get(row.kind) or pool], level)
            held.append(low <= row.percent <= high)
            widths.append(high - low)
    return Trial(100 * fmean(held), median(widths), median(abs(row.percent) for row in rows))


def interval(percents: Sequence[float], level: int) -> tuple[float, float]:
    """Return where `level` percent of further rows lie: order statistics, with as much left out on either side."""
    ordered = sorted(percents)
    outside = (len(ordered) + 1) * (100 - level) / 200
    return ordered[max(0, floor(outside) - 1)], ordered[min(len(ordered), ceil(len(ordered) + 1 - outside)) - 1]


def _of_programs(accuracy: Accuracy, rows: Iterable[AssessedRow]) -> list[AssessedRow]:
    """Return the rows that say how long programs take."""
    return [each for each in rows if accuracy.target.times_programs(each.row.convention)]


def _level(rows: Sequence[Residual], share: int) -> tuple[int, Trial]:
    """Return the lowest level whose intervals hold the share of the rows left out, or the highest; and its trial."""
    for level in range(share, 100):
        trial = trial_of(rows, level)
        if trial.held >= share:
            break
    return level, trial


def _pooled(rows: Sequence[Residual]) -> list[Residual]:
    """Return rows, those of kinds with too few of them as one kind; without it, if it has too few itself."""
    counts = {kind: len(own) for kind, own in _by_kind(rows).items()}
    made = [
        row if counts[row.kind] >= _FEWEST else Residual(POOLED, row.unit, row.percent, row.refitted) for row in rows
    ]
    few = len(_by_kind(made).get(POOLED, [])) < _FEWEST
    return [row for row in made if not (few and row.kind == POOLED)]


def _by_kind(rows: Iterable[Residual]) -> dict[str, list[Residual]]:
    found: dict[str, list[Residual]] = {}
    for row in rows:
        found.setdefault(row.kind, []).append(row)
    return found


def _residual(assessed: AssessedRow, *, refitted: bool = False) -> Residual:
    row = assessed.row
    percent = 100 * (row.measured_cycles - assessed.simulated_cycles) / assessed.simulated_cycles
    return Residual(kind_of(row), (row.operation, row.src.name, row.dst.name), percent, refitted)


def _outwards(bounds: tuple[float, float]) -> tuple[float, float]:
    """Return bounds with two decimals that hold no less."""
    return floor(bounds[0] * 100) / 100, ceil(bounds[1] * 100) / 100


def _write(path: Path, of: type[Row], rows: Sequence[Row]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([each.name for each in fields(of)])
        writer.writerows([str(value) for value in astuple(row)] for row in rows)
