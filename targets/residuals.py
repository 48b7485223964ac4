"""What is known of the errors of simulated cycles: intervals by kind of operation, and which operations were measured.

Both are records of `castsim accuracy --record`, which simulates every shipped measurement; nothing is simulated here.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from castsim.targets.schema import SourceKind

INTERVALS = "residual_intervals.csv"
"""The file of `Residuals`."""

OPERATIONS = "measured_pairs.csv"
"""The file of `MeasuredOperation`s."""

POOLED = "any"
"""All rows of a target: they stand for kinds with too few of their own."""

CAST, LOAD, STORE, SCOPE = "cast", "load", "store", "vector function"
"""Kinds of operations beside those of tile operations (`castsim.isa.pto.vector_operations.Kind`)."""


@dataclass(frozen=True, slots=True)
class Residuals:
    """Errors of a kind of operation on a target, over `rows` published rows simulated by facts not fitted to them.

    `refitted` of them are fitted rows, each predicted by facts fitted without its operation (of casts, its kernel). A
    residual is (measured - simulated) / simulated; mean, median and maximum are of absolute residuals, in percent. In
    `low` to `high` percent of the simulated cycles lie `share` percent of all rows that are left out while it is
    determined: one operation, one width, one source at a time, `held` percent of the target's did at least.
    """

    target: str
    kind: str
    rows: int
    refitted: int
    mean: float
    median: float
    maximum: float
    share: int
    low: float
    high: float
    held: float

    def around(self, cycles: float) -> tuple[float, float]:
        """Return the interval of simulated cycles."""
        return cycles * (1 + self.low / 100), cycles * (1 + self.high / 100)


@dataclass(frozen=True, slots=True)
class MeasuredOperation:
    """An operation on element types of which cycles were measured: how many rows, and how many were not fitted."""

    target: str
    operation: str
    src: str
    dst: str
    source_kind: SourceKind
    rows: int
    unfitted: int


Row = TypeVar("Row", Residuals, MeasuredOperation)


def residuals_of(target: str, kind: str, *, pooled: bool = True) -> Residuals | None:
    """Return what is known of a kind of operation, if `pooled` otherwise of all; None if too few rows were measured."""
    own = _intervals().get(target, {})
    return own.get(kind) or (own.get(POOLED) if pooled else None)


def intervals(target: str) -> tuple[Residuals, ...]:
    """Return what is known of all kinds of operations of a target."""
    return tuple(_intervals().get(target, {}).values())


def measured_operation(target: str, operation: str, src: str, dst: str) -> MeasuredOperation | None:
    """Return the measurements of an operation, those of the strongest source; None if there are none.

    Without formats, of a transfer, which moves bytes, those of any.
    """
    return _operations().get((target, operation, src, dst))


def read_records(path: Path, of: type[Row]) -> list[Row]:
    """Return the rows of a record."""
    kinds: Mapping[str, Any] = {"int": int, "float": float, "str": str, "SourceKind": SourceKind}
    read = {each.name: kinds[str(each.type)] for each in fields(of)}
    with path.open(encoding="utf-8", newline="") as file:
        return [of(**{name: read[name](text) for name, text in row.items()}) for row in csv.DictReader(file)]


@lru_cache(1)
def _intervals() -> Mapping[str, Mapping[str, Residuals]]:
    found: dict[str, dict[str, Residuals]] = {}
    for row in read_records(Path(__file__).parent / INTERVALS, Residuals):
        found.setdefault(row.target, {})[row.kind] = row
    return found


@lru_cache(1)
def _operations() -> Mapping[tuple[str, str, str, str], MeasuredOperation]:
    found: dict[tuple[str, str, str, str], MeasuredOperation] = {}
    for row in read_records(Path(__file__).parent / OPERATIONS, MeasuredOperation):
        found.setdefault((row.target, row.operation, row.src, row.dst), row)
        found.setdefault((row.target, row.operation, "", ""), row)
    return found
