"""What is known of the errors of simulated cycles: intervals by kind of operation, and which operations were measured.

Intervals are a record of `castsim accuracy --record`, which simulates every shipped measurement; nothing is simulated
here.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any

from castsim.targets.cells import SHIPPED
from castsim.targets.format_spellings import format_of
from castsim.targets.loader import load_target, target_names
from castsim.targets.schema import SourceKind

INTERVALS = "residual_intervals.csv"
"""The file of `Residuals`."""

POOLED = "any"
"""All rows of a target: they stand for kinds with too few of their own."""

_KINDS: Mapping[str, Any] = {"int": int, "float": float, "str": str}

CAST, LOAD, STORE, SCOPE = "cast", "load", "store", "vector function"
"""Kinds of operations beside those of tile operations (`castsim.isa.pto.vector_operations.Kind`)."""


@dataclass(frozen=True, slots=True)
class Residuals:
    """Errors of a kind of operation on a target, over `rows` published rows simulated by facts not fitted to them.

    `refitted` of them are fitted rows, each predicted by facts fitted without its operation (of casts, its kernel). A
    residual is (measured - simulated) / simulated; mean, median and maximum are of absolute residuals, in percent. In
    `low` to `high` percent of the simulated cycles lie `share` percent of all rows that are left out while it is
    determined: one operation, one width, one source at a time, `held` percent of them did at least.
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
    """An operation on element types of which cycles were measured; `unfitted` says that no fact was fitted to some."""

    source_kind: SourceKind
    unfitted: bool


def residuals_of(target: str, kind: str, *, pooled: bool = True) -> Residuals | None:
    """Return what is known of a kind of operation, if `pooled` otherwise of all; None if too few rows were measured."""
    own = _intervals().get(target, {})
    return own.get(kind) or (own.get(POOLED) if pooled else None)


def intervals(target: str) -> tuple[Residuals, ...]:
    """Return what is known of all kinds of operations of a target."""
    return tuple(_intervals().get(target, {}).values())


def measured_operation(target: str, operation: str, src: str, dst: str) -> MeasuredOperation | None:
    """Return what the cycles of an operation were read off, the strongest source; None if they were not.

    Without formats, of a transfer, which moves bytes, those of any.
    """
    return _operations(target).get((operation, src, dst)) if target in target_names() else None


def read_intervals(path: Path) -> list[Residuals]:
    """Return the rows of a record."""
    read: Mapping[str, Any] = {each.name: _KINDS[str(each.type)] for each in fields(Residuals)}
    with path.open(encoding="utf-8", newline="") as file:
        return [Residuals(**{name: read[name](text) for name, text in row.items()}) for row in csv.DictReader(file)]


@lru_cache(1)
def _intervals() -> Mapping[str, Mapping[str, Residuals]]:
    found: dict[str, dict[str, Residuals]] = {}
    for row in read_intervals(SHIPPED / INTERVALS):
        found.setdefault(row.target, {})[row.kind] = row
    return found


@lru_cache
def _operations(name: str) -> Mapping[tuple[str, str, str], MeasuredOperation]:
    """Return the measured operations of a target by mnemonic and formats, from rows that say how long programs take."""
    target, order = load_target(name), list(SourceKind)
    rows: dict[tuple[str, str, str], dict[SourceKind, bool]] = {}
    for table in target.measurements:
        with (SHIPPED / table.file).open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                if "program" in row or not target.times_programs(row.get("convention") or None):
                    continue
                src, dst = (format_of(row.get("dtype") or row[column]).name for column in ("src", "dst"))
                operation, kind = (row.get("op") or "tcvt").lower(), SourceKind(row["source_kind"])
                for key in ((operation, src, dst), (operation, "", "")):
                    own = rows.setdefault(key, {})
                    own[kind] = own.get(kind, False) or row["fitted"] == "no"
    return {
        key: MeasuredOperation(kind, own[kind]) for key, own in rows.items() for kind in [min(own, key=order.index)]
    }
