"""Accuracy in one call: the tables that come with the targets, or one's own, against the simulation."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from castsim.evidence.accuracy.assessment import (
    Accuracy,
    AssessedRow,
    Curve,
    Statistics,
    assess_all,
    predicted,
    simulated,
)
from castsim.evidence.accuracy.table import read_table
from castsim.execution.distribution import Workers
from castsim.execution.notebook_display import PlotMixin
from castsim.isa.errors import ReadError
from castsim.targets import Target, load_target, target_names
from castsim.targets.csv_tables import SHIPPED
from castsim.timing import ProgressCallback


@dataclass(frozen=True, slots=True, repr=False)
class AccuracyTables(PlotMixin[Literal["rows", "curves"]]):
    """Simulated against measured cycles, table by table.

    `plot` draws simulated over measured cycles, and how many rows have which error. Frames, errors in percent of the
    measured cycles, positive where the simulation is slower:

    - `rows`: a row per measured operation: `target`, `file`, `line` and what it is; the tile that was simulated for it;
      `measured_cycles`, `simulated_cycles`, `error_percent`; `public_model_cycles` and `public_model_error_percent`,
      missing where the table does not tell them; the `reason` of a known deviation.
    - `curves`: a row per operation, pair of types and shape class: `mean_percent`, `median_percent` and `max_percent`
      of the absolute errors of its `rows`, and the same of the public model.
    """

    tables: tuple[Accuracy, ...]
    """A target and a table each, at least one."""

    def __repr__(self) -> str:
        names = ", ".join(dict.fromkeys(each.target.name for each in self.tables))
        found = self.simulation
        return f"<AccuracyTables {names}: {found.rows:,} rows, mean absolute error {found.mean:.2f} %>"

    @property
    def rows(self) -> tuple[AssessedRow, ...]:
        """The measured rows of all tables, each with the cycles simulated for it."""
        return tuple(row for each in self.tables for row in each.rows)

    @property
    def curves(self) -> tuple[Curve, ...]:
        """The curves of all tables: statistics per operation, pair of types and shape class."""
        return tuple(curve for each in self.tables for curve in each.curves)

    @property
    def simulation(self) -> Statistics:
        """Absolute errors of the simulation over all rows, in percent."""
        return simulated(self.rows)

    @property
    def public_model(self) -> Statistics | None:
        """Absolute errors of the public model over the rows that state it, in percent; None if none does."""
        return predicted(self.rows)


def accuracy(
    target: str | Path | Target | None = None,
    *,
    data: str | Path | None = None,
    workers: int = 1,
    scheduler: str | None = None,
    ledger: str | Path | None = None,
    progress: ProgressCallback = lambda *_: None,
) -> AccuracyTables:
    """Simulate operations whose cycles have been measured, and compare.

        castsim.accuracy("a5").simulation.mean

    Args:
        target: a chip; None takes all with measurements, or with `data` the one whose own tables have most of its
            columns.
        data: a CSV of measurements with the columns src, dst (or dtype), rows, cols, measured_cycles, and more as far
            as known; None takes the tables that come with the target.
        workers: processes.
        scheduler: address of a Dask scheduler whose workers are to simulate instead.
        ledger: a file in which every row is kept as soon as it is done: the same call goes on from there. It stays.
        progress: is told how many rows are done.

    Returns:
        A row per measurement: measured and simulated cycles and their deviation; mean, median and maximum of all.

    Raises:
        ReadError: unknown target, one without measurements, a table that cannot be read; with its place. The ledger is
            about something else; the scheduler does not answer.
        IllegalError, TileError: a row whose operation or tile the target does not take; with its place.
        EngineError: a worker has another castsim; workers die again and again.
    """
    own = None if data is None else read_table(Path(data))
    chosen = load_target(target) if isinstance(target, str | Path) else target
    if own is not None:
        measured = [(_guessed(own.columns) if chosen is None else chosen, own)]
    else:
        targets = measured_targets() if chosen is None else [chosen]
        measured = [(each, read_table(path)) for each in targets for path in _shipped(each)]
    kept = None if ledger is None else Path(ledger)
    return AccuracyTables(assess_all(measured, Workers(workers, scheduler), kept, progress))


def measured_targets() -> list[Target]:
    """Return the targets that come with measurements."""
    return [target for target in map(load_target, target_names()) if target.measurements]


def _shipped(target: Target) -> list[Path]:
    """Return the tables that come with a target."""
    if not target.measurements:
        names = [measured.name for measured in measured_targets()]
        raise ReadError(f"no measurements come with {target.name}; name some by --data", legal=names)
    return [SHIPPED / table.file for table in target.measurements]


def _guessed(columns: tuple[str, ...]) -> Target:
    """Return the target one of whose own tables shares most columns with another."""
    targets = measured_targets()
    shared = [max(len({*columns} & {*read_table(path).columns}) for path in _shipped(target)) for target in targets]
    best = [target for target, count in zip(targets, shared, strict=True) if count == max(shared)]
    if len(best) > 1:
        raise ReadError("the columns do not identify the target; name it by --target", legal=[one.name for one in best])
    return best[0]
