"""The record of residuals: the shipped measurements simulated, and intervals for what has not been measured.

Of each kind of operation the interval is the shortest that holds a level of its residuals. It must prove itself: it is
determined without one operation, one width, one source after the other, and the rows left out must lie within it in
the stated share. Of the shares that are tried the largest holds at which the intervals are also narrow, at most
`WIDEST` median residuals: of all kinds together, or else of each by itself; where there is none, no interval is stated.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, fields, replace
from math import ceil, floor
from pathlib import Path
from statistics import fmean, median

from castsim.evidence.accuracy.assessment import Accuracy, AssessedRow
from castsim.evidence.accuracy.cross_validation import LeftOut, cross_validate
from castsim.evidence.accuracy.scopes import SCOPE as SCOPE_OPERATION
from castsim.evidence.accuracy.table import CAST as CAST_OPERATION
from castsim.evidence.accuracy.table import TRANSFERS, MeasuredRow
from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS
from castsim.targets.loader import CAST, INTERVALS, LOAD, POOLED, SCOPE, STORE, Residuals

SHARES = (90, 85, 80, 75, 70, 65, 60, 55, 50)
"""Percent of the rows that an interval may be stated to hold."""

WIDEST = 3
"""Median residuals that the median width of the intervals may have."""

_FEWEST = 8
"""Rows from which on a kind has an interval of its own."""

_KINDS: Mapping[str, str] = {
    CAST_OPERATION: CAST,
    SCOPE_OPERATION: SCOPE,
    **dict(zip(TRANSFERS, (LOAD, STORE), strict=True)),
}


@dataclass(frozen=True, slots=True)
class Residual:
    """The error of one row in percent of the simulated cycles, and what is left out together with it."""

    kind: str
    percent: float
    operation: str
    width: int = 0
    source: str = ""
    refitted: bool = False

    @property
    def groups(self) -> Mapping[str, object]:
        """The group that it belongs to, by what is left out."""
        return {"operation": self.operation, "width": self.width, "source": self.source}


@dataclass(frozen=True, slots=True)
class Trial:
    """Intervals tried on rows left out: the least percent held, the largest median width; median absolute residual."""

    held: float
    width: float
    residual: float


def record(found: Sequence[Accuracy]) -> list[Residuals]:
    """Return the intervals of assessed shipped tables."""
    targets = dict.fromkeys(each.target.name for each in found)
    return [
        row
        for name in targets
        for row in intervals_of(name, residuals([each for each in found if each.target.name == name]))
    ]


def write_record(folder: Path, found: Sequence[Accuracy]) -> None:
    """Write the record into a folder: that of the descriptions, to ship it."""
    with (folder / INTERVALS).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([each.name for each in fields(Residuals)])
        writer.writerows(map(astuple, record(found)))


def kind_of(row: MeasuredRow) -> str:
    """Return the kind of operation that a row measures."""
    return _KINDS.get(row.operation) or str(VECTOR_OPERATIONS[row.operation].kind)


def residuals(found: Sequence[Accuracy]) -> list[Residual]:
    """Return the residuals of a target's rows that were not fitted, and of fitted ones that can be predicted.

    Where only casts decide the free facts, fitted casts are predicted without their kernel; where conventions are among
    these facts, all fitted rows without their operation. What no other row decides cannot be predicted.
    """
    rows = [_residual(each) for accuracy in found for each in _of_programs(accuracy, accuracy.unfitted)]
    target = found[0].target
    every = any("measured_conventions" in fact.facts[0] for fact in target.free_facts)
    kept = [[each.row for each in _of_programs(accuracy, accuracy.rows)] for accuracy in found]
    kept = [own for own in kept if every or all(row.fitted and row.operation == CAST_OPERATION for row in own)]
    if target.free_facts and any(kept):
        table = replace(found[0].table, rows=tuple(row for own in kept for row in own))
        folds = cross_validate(target, table, LeftOut.OPERATION if every else LeftOut.KERNEL)
        predicted = [row for fold in folds.folds if not fold.undecided for row in fold.rows]
        rows += [_residual(each, refitted=True) for each in predicted if each.row.fitted]
    return rows


def intervals_of(target: str, rows: Sequence[Residual]) -> list[Residuals]:
    """Return the intervals of a target by kind, and that of all its rows for kinds with too few.

    All are of one share; where none holds for the kinds together, each kind with rows enough has its own or none.
    """
    if (together := _stated(rows)) is not None:
        share, level, trial = together
        kinds = {POOLED: list(rows), **_by_kind(rows)}
        return [
            _row(target, kind, own, share, level, trial) for kind, own in sorted(kinds.items()) if len(own) >= _FEWEST
        ]
    return [
        _row(target, kind, own, *stated)
        for kind, own in sorted(_by_kind(rows).items())
        if (stated := _stated(own)) is not None
    ]


def _stated(rows: Sequence[Residual]) -> tuple[int, int, Trial] | None:
    """Return the largest share that holds at narrow intervals, with their level and trial; None if too few rows, or too
    scattered ones, were measured.
    """
    if len(rows) < _FEWEST:
        return None
    for share in SHARES:
        level, trial = _level(rows, share)
        if trial.held >= share and trial.width <= WIDEST * trial.residual:
            return share, level, trial
    return None


def _row(target: str, kind: str, own: Sequence[Residual], share: int, level: int, trial: Trial) -> Residuals:
    sizes = [abs(row.percent) for row in own]
    return Residuals(
        target, kind, len(own), sum(row.refitted for row in own),
        round(fmean(sizes), 2), round(median(sizes), 2), round(max(sizes), 2),
        share, *_outwards(interval([row.percent for row in own], level)), round(trial.held, 1),
    )  # fmt: skip


def trial_of(rows: Sequence[Residual], level: int) -> Trial:
    """Leave out one group after the other, and try the intervals of the others on its rows; where no kind has rows
    enough left, there is nothing to try.
    """
    held, widths = [], []
    for what in rows[0].groups:
        inside, across = [], []
        for group in dict.fromkeys(row.groups[what] for row in rows):
            others = [row for row in rows if row.groups[what] != group]
            if len(others) < _FEWEST:
                continue
            kept = {kind: own for kind, own in _by_kind(others).items() if len(own) >= _FEWEST}
            found = {kind: interval([row.percent for row in kept.get(kind, others)], level) for kind in _by_kind(rows)}
            for row in (each for each in rows if each.groups[what] == group):
                low, high = found[row.kind]
                inside.append(low <= row.percent <= high)
                across.append(high - low)
        if inside:
            held.append(100 * fmean(inside))
            widths.append(median(across))
    return Trial(min(held, default=0), max(widths, default=0), median(abs(row.percent) for row in rows))


def interval(percents: Sequence[float], level: int) -> tuple[float, float]:
    """Return where `level` percent of further rows lie: the shortest stretch of as many order statistics, one more
    counted for the further row.
    """
    ordered = sorted(percents)
    count = min(len(ordered), ceil((len(ordered) + 1) * level / 100))
    return min(zip(ordered, ordered[count - 1 :], strict=False), key=lambda ends: ends[1] - ends[0])


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


def _by_kind(rows: Iterable[Residual]) -> dict[str, list[Residual]]:
    found: dict[str, list[Residual]] = {}
    for row in rows:
        found.setdefault(row.kind, []).append(row)
    return found


def _residual(assessed: AssessedRow, *, refitted: bool = False) -> Residual:
    row = assessed.row
    percent = 100 * (row.measured_cycles - assessed.simulated_cycles) / assessed.simulated_cycles
    pair = f" {row.src.name} -> {row.dst.name}" if row.operation == CAST_OPERATION else ""
    source = f"{row.source_kind} {Path(row.span.file).name}"
    return Residual(kind_of(row), percent, row.operation + pair, row.src.storage_bits, source, refitted)


def _outwards(bounds: tuple[float, float]) -> tuple[float, float]:
    """Return bounds with two decimals that hold no less."""
    return floor(bounds[0] * 100) / 100, ceil(bounds[1] * 100) / 100
