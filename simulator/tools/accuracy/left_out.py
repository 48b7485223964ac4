"""Cross-validation: rows of a table are left out in turn, and predicted by free facts fitted to the rest.

The free facts of a target are those that its own measured rows decide (`free_facts` of the description). Each fit
begins at the values of other sources and so ignores the rows left out: coordinate descent on the mean error of
the remaining rows, plus a little of their largest, on coarse grids first and on the grid of each fact last.
"""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from enum import StrEnum
from math import ceil, floor, inf
from pathlib import Path
from statistics import fmean, median

from castsim.execution.interpreter.lowerer import LoweredInstruction
from castsim.execution.timing import ProgressCallback
from castsim.isa.dataclass import astuple, dataclass, fields, replace
from castsim.isa.errors import CastsimError, ReadError
from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS
from castsim.machines.mechanisms import CastAsked, lowerer_of, tiles_of
from castsim.reports.documents import CommandDocument, Keys, apart, derived, record, says
from castsim.reports.schemas.keys import Cycles, Name, Percent
from castsim.targets.description import with_values
from castsim.targets.loader import CAST, INTERVALS, LOAD, POOLED, SCOPE, STORE, Residuals, Target, TileTarget
from castsim.tools.accuracy.accuracy_assessment import (
    Accuracy,
    AssessedRow,
    ErrorsOfRows,
    assess_row,
    shape_of,
)
from castsim.tools.accuracy.measured_rows import CAST as CAST_OPERATION
from castsim.tools.accuracy.measured_rows import KERNEL, LAUNCH, TRANSFERS, MeasuredRow, MeasuredTable
from castsim.tools.accuracy.measured_rows import SCOPE as SCOPE_OPERATION
from castsim.tools.estimate.cast_estimates import CastShape, OperandPlacement, TileCastRequest, timed_alone

WEIGHT_OF_LARGEST = 0.02
"""Weight of the largest error in the objective of a fit, in addition to the mean."""

SCALES = (16, 4, 2, 1)
"""Steps of a descent, in steps of each fact's grid."""

_NEGLIGIBLE = 1e-9
"""Largest gain in percent that counts as none."""

_LARGE = 16
"""Cycles by which a fact is changed to see which rows it affects."""

Values = tuple[Decimal, ...]
"""A value for each free fact, in the order of the description."""


class LeftOut(StrEnum):
    """The unit that is left out together."""

    PAIR = "pair"
    """A pair of types."""
    KERNEL = "kernel"
    """All pairs whose rows have the same simulations: one would reveal the other."""
    SHAPE = "shape"
    """All rows of one shape class with equal numbers of rows and trips."""
    OPERATION = "operation"
    """All rows of one operation."""
    WIDTH = "width"
    """All rows whose source elements have the same number of bits."""
    SOURCE = "source"
    """All rows of one table with the same kind of source."""


class PredictedRow(Keys):
    """A published figure, and the prediction of facts fitted without it."""

    src: str = says("Name of the source format.", "row.src")
    dst: str = says("Name of the destination format.", "row.dst")
    path: str = says("Class of the shape.", "row.path")
    measured_cycles: Cycles = says("The published figure.", "row.measured_cycles")
    simulated_rows: int = says("Rows simulated.")
    simulated_cols: int = says("Columns simulated.")
    simulated_cycles: Cycles = says("The simulation's figure.")
    error_percent: Percent = says(
        "Error relative to the published figure; positive if the simulation is higher.", "error"
    )


@record
class FittedFacts(ErrorsOfRows):
    """The facts fitted to all rows, and their errors."""

    facts: Mapping[Name, Decimal] = says("The facts by path.")
    rows: tuple[AssessedRow, ...] = apart()
    """The rows with their predictions."""


@record
class Fold(ErrorsOfRows, title="FoldEntry"):
    """A held-out part: the facts fitted to all other rows, and their errors on the part."""

    facts: Mapping[Name, Decimal] = says("The facts by path.")
    name: str = says("The left-out group.", key="left_out")
    rows: tuple[AssessedRow, ...] = apart()
    row_count: int = derived("Number of rows in the left-out group.", lambda own: len(own.rows), key="rows")
    predictions: list[PredictedRow] = derived("The left-out rows with their predictions.", "rows")
    undecided: tuple[str, ...] = apart(default=())
    """Facts that affect rows left out and no other row: they keep the values of other sources."""


@record
class CrossValidation(CommandDocument, ErrorsOfRows, name="accuracy-cross-validation", title="CrossValidated"):
    """With `--cross-validate`: every published figure predicted by facts fitted without it."""

    target: Target = says("Name of the target.")
    table: MeasuredTable = apart()
    file: str = derived("The table.", "table.file")
    left_out: str = says("Kind of the groups that are left out.")
    row_count: int = derived("Number of rows.", lambda own: len(own.rows), key="rows")
    nothing_left_out: FittedFacts = says("The fit to all rows.")
    folds: tuple[Fold, ...] = says("One entry for each left-out group.")

    @property
    def fitted(self) -> Mapping[str, Decimal]:
        """The facts fitted to all rows."""
        return self.nothing_left_out.facts

    @property
    def rows(self) -> tuple[AssessedRow, ...]:
        """Every row as predicted by the fold that leaves it out."""
        return tuple(row for fold in self.folds for row in fold.rows)


def cross_validate(
    target: Target, table: MeasuredTable, left_out: LeftOut, progress: ProgressCallback = lambda *_: None
) -> CrossValidation:
    """Leave out one group of rows after another.

    Raises:
        ReadError: the target has no free facts, or no rows of the table remain.
        IllegalError, TileError: the target cannot run a row (with position).
    """
    if (chip := tiles_of(target)) is None or not chip.free_facts:
        raise ReadError(f"{target.name} has no free facts to cross-validate")
    model = _FactModel(chip, table.rows)
    groups = model.groups(left_out)
    if len(groups) == 1:
        raise ReadError(f"'{table.file}' has only one {left_out}, so no rows remain to fit to")
    every = frozenset(range(len(table.rows)))
    progress("all rows", 0, len(groups) + 1)
    fitted = model.fit(every)
    folds = []
    for done, (name, out) in enumerate(groups.items(), 1):
        progress(f"without {name}", done, len(groups) + 1)
        values = model.fit(every - out)
        folds.append(Fold(model.named(values), name, model.predicted(values, out), model.undecided(out)))
    whole = FittedFacts(model.named(fitted), model.predicted(fitted, every))
    return CrossValidation(target, table, left_out, whole, tuple(folds))


def together(tables: Sequence[MeasuredTable]) -> MeasuredTable:
    """Return several tables, at least one, joined."""
    rows = tuple(row for table in tables for row in table.rows)
    files = ", ".join(table.file for table in tables)
    return MeasuredTable(files, tables[0].columns, rows, sum(table.skipped for table in tables))


class _FactModel:
    """The rows of a table as functions of the free facts."""

    def __init__(self, target: TileTarget, rows: Sequence[MeasuredRow]) -> None:
        self._target = target
        self._rows = rows
        self._free = target.free_facts
        self._start: Values = tuple(fact.start for fact in self._free)
        self._adding = tuple(".added_cycles" in fact.facts[0] for fact in self._free)
        """Facts that only add to the simulated cycles."""
        self._shapes = [shape_of(target, row) for row in rows]
        self._lowered = [
            _lowered(target, row, shape) if row.operation == CAST_OPERATION and row.convention is None else None
            for row, shape in zip(rows, self._shapes, strict=True)
        ]
        self._targets: dict[Values, Target] = {}
        self._known: dict[tuple[int, Values], int] = {}
        self._asks: list[tuple[bool, ...]] = [()] * len(rows)
        """For each row, the facts that affect it when changed by a large amount; empty: not yet determined."""
        self._first = self._simulations()

    def groups(self, left_out: LeftOut) -> Mapping[str, frozenset[int]]:
        """Return the indices of the rows that are left out together, by group name."""
        pairs = [f"{row.src.name} -> {row.dst.name}" for row in self._rows]
        simulations: dict[str, set[int]] = {}
        for pair, first in zip(pairs, self._first, strict=True):
            simulations.setdefault(pair, set()).add(first)
        members: dict[str, set[int]] = {}
        for number, (row, pair) in enumerate(zip(self._rows, pairs, strict=True)):
            if left_out is LeftOut.PAIR:
                name = pair
            elif left_out is LeftOut.OPERATION:
                name = row.operation
            elif left_out is LeftOut.WIDTH:
                name = f"{row.src.storage_bits} bits"
            elif left_out is LeftOut.SOURCE:
                name = f"{row.source_kind or 'unknown'} ({Path(row.span.file).name})"
            elif left_out is LeftOut.KERNEL:
                name = ", ".join(other for other in simulations if simulations[other] == simulations[pair])
            else:
                name = f"{row.path} {row.outer_trips or row.valid_rows} x {row.inner_trips or row.valid_cols}"
            members.setdefault(name, set()).add(number)
        return {name: frozenset(numbers) for name, numbers in members.items()}

    def named(self, values: Values) -> Mapping[str, Decimal]:
        """Return values by the path of each fact, the first of those that change together."""
        return {fact.facts[0]: value for fact, value in zip(self._free, values, strict=True)}

    def undecided(self, out: frozenset[int]) -> tuple[str, ...]:
        """Return the facts that affect some rows and no others."""
        asks = [self._asks[self._first[number]] for number in sorted(out)]
        kept = [self._asks[self._first[number]] for number in range(len(self._rows)) if number not in out]
        return tuple(
            fact.facts[0]
            for index, fact in enumerate(self._free)
            if any(ask[index] for ask in asks) and not any(ask[index] for ask in kept)
        )

    def predicted(self, values: Values, numbers: Collection[int]) -> tuple[AssessedRow, ...]:
        """Return rows with the cycles predicted by values."""
        return tuple(
            AssessedRow(
                row=self._rows[number],
                target=self._target.name,
                convention=convention,
                simulated_rows=valid_rows,
                simulated_cols=valid_cols,
                simulated_cycles=self._simulated(values, number),
                reason="",
            )
            for number, (convention, _, _, valid_rows, valid_cols) in enumerate(self._shapes)
            if number in numbers
        )

    def fit(self, kept: frozenset[int]) -> Values:
        """Return the values that best fit some rows, starting from those of other sources."""
        values = self._start
        best = self._loss(values, kept)
        for scale in SCALES:
            before = inf
            while best < before:
                before = best
                for index, fact in enumerate(self._free):
                    for step in (fact.step * scale, -fact.step * scale):
                        values, best = self._descend(values, best, index, step, kept)
        return values

    def _descend(
        self, values: Values, best: float, fact_index: int, step: Decimal, kept: frozenset[int]
    ) -> tuple[Values, float]:
        """Move along one fact as long as the error falls."""
        while values[fact_index] + step >= 0:
            tried = (*values[:fact_index], values[fact_index] + step, *values[fact_index + 1 :])
            loss = self._loss(tried, kept)
            if loss >= best - _NEGLIGIBLE:
                break
            values, best = tried, loss
        return values, best

    def _loss(self, values: Values, kept: frozenset[int]) -> float:
        errors = [self._error(values, number) for number in sorted(kept)]
        return fmean(errors) + WEIGHT_OF_LARGEST * max(errors)

    def _error(self, values: Values, number: int) -> float:
        """Return the absolute error of a row in percent; facts without effect on it keep their start values."""
        first = self._first[number]
        asked = tuple(
            value if asks else start for value, asks, start in zip(values, self._asks[first], self._start, strict=True)
        )
        measured = self._rows[number].measured_cycles
        return 100 * abs(self._simulated(asked, first) - measured) / measured

    def _simulations(self) -> list[int]:
        """Return for each row the first one with the same simulation: no large change of a fact separates them."""
        firsts: dict[object, int] = {}
        numbers = []
        for number, row in enumerate(self._rows):
            usual = self._simulated(self._start, number)
            moved = [
                self._simulated(
                    (*self._start[:fact_index], self._start[fact_index] + _LARGE, *self._start[fact_index + 1 :]),
                    number,
                )
                for fact_index in range(len(self._free))
            ]
            key = (row.operation, row.src.bits, row.dst.bits, *self._shapes[number], usual, *moved)
            numbers.append(firsts.setdefault(key, number))
            self._asks[number] = tuple(cycles != usual for cycles in moved)
        return numbers

    def _simulated(self, values: Values, number: int) -> int:
        """Return the cycles; a convention's additional cycles do not concern the machine, which therefore runs once."""
        row, around = self._rows[number], 0
        if row.convention is not None:
            around = self._edited(values).cycles_around(row.convention, row.operation)
            triples = zip(self._adding, self._start, values, strict=True)
            values = tuple(start if adds else value for adds, start, value in triples)
        if (number, values) not in self._known:
            lowered, chip = self._lowered[number], self._edited(values)
            if lowered is not None:
                cycles = timed_alone(chip, lowered, CAST_OPERATION).cycles
            else:
                cycles = assess_row(chip, row).simulated_cycles
                cycles -= chip.cycles_around(row.convention, row.operation) if row.convention is not None else 0
            self._known[number, values] = cycles
        return self._known[number, values] + around

    def _edited(self, values: Values) -> Target:
        """Return the target with values; those on an integer grid are integers."""
        if values not in self._targets:
            edits: dict[str, Decimal | int] = {
                path: value if fact.step % 1 else int(value)
                for fact, value in zip(self._free, values, strict=True)
                for path in fact.facts
            }
            self._targets[values] = with_values(self._target, edits)
        return self._targets[values]


def _lowered(target: TileTarget, row: MeasuredRow, shape: tuple[str, int, int, int, int]) -> LoweredInstruction:
    """Return the instructions of a row, which do not depend on the free facts."""
    _, rows, cols, valid_rows, valid_cols = shape
    lowerer = lowerer_of(target)
    request = TileCastRequest.of(CastAsked(row.src, row.dst, None, None, scratch=False))
    extents = CastShape(rows, cols, cols, valid_rows, valid_cols, cols)
    try:
        return lowerer.cast(OperandPlacement.of(target, lowerer, request).cast(lowerer, extents))
    except CastsimError as error:
        error.span = row.span
        raise


# The record of residuals: the shipped measurements simulated, and intervals for what has not been measured.
#
# Of each kind of operation the interval is the shortest that holds a level of its residuals. It must prove itself: it
# is determined without one operation, one width, one source after the other, and the rows left out must lie within it
# in the stated share. Of the shares that are tried the largest holds at which the intervals are also narrow, at most
# `WIDEST` median residuals: of all kinds together, or else of each by itself; where there is none, no interval is
# stated.

SHARES = (90, 85, 80, 75, 70, 65, 60, 55, 50)
"""Percentages of rows for which an interval may be stated."""

WIDEST = 3
"""Maximum median width of the intervals, in median residuals."""

_FEWEST = 8
"""Minimum number of rows for a kind to have its own interval."""

_KINDS: Mapping[str, str] = {
    CAST_OPERATION: CAST,
    SCOPE_OPERATION: SCOPE,
    **dict(zip(TRANSFERS, (LOAD, STORE), strict=True)),
    LAUNCH: LAUNCH,
}


@dataclass(frozen=True, slots=True)
class Residual:
    """The error of one row in percent of the simulated cycles, and the unit left out together with it."""

    kind: str
    percent: float
    operation: str
    width: int = 0
    source: str = ""
    refitted: bool = False

    @property
    def groups(self) -> Mapping[str, object]:
        """Its group for each unit."""
        return {"operation": self.operation, "width": self.width, "source": self.source}


@dataclass(frozen=True, slots=True)
class IntervalTrial:
    """Intervals tested on rows left out: the smallest coverage, the largest median width; median absolute residual."""

    held: float
    width: float
    residual: float


def interval_rows(accuracies: Sequence[Accuracy]) -> list[Residuals]:
    """Return the intervals for assessed shipped tables."""
    targets = dict.fromkeys(table.target.name for table in accuracies)
    return [
        row
        for name in targets
        for row in intervals_of(name, residuals([table for table in accuracies if table.target.name == name]))
    ]


def write_record(folder: Path, accuracies: Sequence[Accuracy]) -> None:
    """Write the record into the folder of the descriptions, with which it ships."""
    with (folder / INTERVALS).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([field.name for field in fields(Residuals)])
        writer.writerows(map(astuple, interval_rows(accuracies)))


def kind_of(row: MeasuredRow) -> str:
    """Return the kind of operation that a row measures."""
    return _KINDS.get(row.operation) or str(VECTOR_OPERATIONS[row.operation].kind)


def residuals(accuracies: Sequence[Accuracy]) -> list[Residual]:
    """Return the residuals of a target's held-out rows, and of fitted ones that can be predicted.

    If only casts decide the free facts, fitted casts are predicted without their kernel; if conventions are among
    these facts, all fitted rows without their operation. Facts that no other row decides cannot be predicted.
    """
    rows = [_residual(assessed) for accuracy in accuracies for assessed in _of_programs(accuracy, accuracy.unfitted)]
    target = accuracies[0].target
    every = any("measured_conventions" in fact.facts[0] for fact in target.free_facts)
    kept = [[assessed.row for assessed in _of_programs(accuracy, accuracy.rows)] for accuracy in accuracies]
    kept = [own for own in kept if every or all(row.fitted and row.operation == CAST_OPERATION for row in own)]
    if target.free_facts and any(kept):
        table = replace(accuracies[0].table, rows=tuple(row for own in kept for row in own))
        folds = cross_validate(target, table, LeftOut.OPERATION if every else LeftOut.KERNEL)
        predicted = [row for fold in folds.folds if not fold.undecided for row in fold.rows]
        rows += [_residual(assessed, refitted=True) for assessed in predicted if assessed.row.fitted]
    return rows


def intervals_of(target: str, rows: Sequence[Residual]) -> list[Residuals]:
    """Return the intervals of a target by kind, and that of all its rows for kinds with too few rows.

    All have one share; if none is valid for the kinds together, each kind with enough rows has its own or none.
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


def _stated(rows: Sequence[Residual]) -> tuple[int, int, IntervalTrial] | None:
    """Return the largest share that is valid at narrow intervals, with level and trial; None if the rows are too few or
    too scattered.
    """
    if len(rows) < _FEWEST:
        return None
    for share in SHARES:
        level, trial = _level(rows, share)
        if trial.held >= share and trial.width <= WIDEST * trial.residual:
            return share, level, trial
    return None


def _row(target: str, kind: str, own: Sequence[Residual], share: int, level: int, trial: IntervalTrial) -> Residuals:
    sizes = [abs(row.percent) for row in own]
    low, high = interval([row.percent for row in own], level)
    return Residuals(
        target, kind, len(own), sum(row.refitted for row in own),
        round(fmean(sizes), 2), round(median(sizes), 2), round(max(sizes), 2),
        share, floor(low * 100) / 100, ceil(high * 100) / 100, round(trial.held, 1),  # bounds that hold no less
    )  # fmt: skip


def trial_of(rows: Sequence[Residual], level: int) -> IntervalTrial:
    """Leave out one group after another, and test the intervals of the others on its rows; empty if no kind has enough
    rows.
    """
    covered, widths = [], []
    for what in rows[0].groups:
        inside, across = [], []
        for group in dict.fromkeys(row.groups[what] for row in rows):
            others = [row for row in rows if row.groups[what] != group]
            if len(others) < _FEWEST:
                continue
            kept = {kind: own for kind, own in _by_kind(others).items() if len(own) >= _FEWEST}
            intervals = {
                kind: interval([row.percent for row in kept.get(kind, others)], level) for kind in _by_kind(rows)
            }
            for row in (residual for residual in rows if residual.groups[what] == group):
                low, high = intervals[row.kind]
                inside.append(low <= row.percent <= high)
                across.append(high - low)
        if inside:
            covered.append(100 * fmean(inside))
            widths.append(median(across))
    return IntervalTrial(min(covered, default=0), max(widths, default=0), median(abs(row.percent) for row in rows))


def interval(percents: Sequence[float], level: int) -> tuple[float, float]:
    """Return the range that contains `level` percent of further rows: the shortest stretch of so many order statistics,
    counting one more for the further row.
    """
    ordered = sorted(percents)
    count = min(len(ordered), ceil((len(ordered) + 1) * level / 100))
    return min(zip(ordered, ordered[count - 1 :], strict=False), key=lambda ends: ends[1] - ends[0])


def _of_programs(accuracy: Accuracy, rows: Iterable[AssessedRow]) -> list[AssessedRow]:
    """Return the rows about the duration of programs; launches and kernels on all cores are about memory."""
    return [
        row
        for row in rows
        if row.row.operation not in (LAUNCH, KERNEL) and accuracy.target.times_programs(row.row.convention)
    ]


def _level(rows: Sequence[Residual], share: int) -> tuple[int, IntervalTrial]:
    """Return the lowest level whose intervals cover the share of the rows left out, or the highest; and its trial."""
    for level in range(share, 100):
        trial = trial_of(rows, level)
        if trial.held >= share:
            break
    return level, trial


def _by_kind(rows: Iterable[Residual]) -> dict[str, list[Residual]]:
    groups: dict[str, list[Residual]] = {}
    for row in rows:
        groups.setdefault(row.kind, []).append(row)
    return groups


def _residual(assessed: AssessedRow, *, refitted: bool = False) -> Residual:
    row = assessed.row
    percent = 100 * (row.measured_cycles - assessed.simulated_cycles) / assessed.simulated_cycles
    pair = f" {row.src.name} -> {row.dst.name}" if row.operation == CAST_OPERATION else ""
    source = f"{row.source_kind} {Path(row.span.file).name}"
    return Residual(kind_of(row), percent, row.operation + pair, row.src.storage_bits, source, refitted)
