"""Execution of a sweep and its results: missing chunks are computed, then all rows written."""

from __future__ import annotations

from functools import partial
from itertools import combinations, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from castsim.execution.timing import ProgressCallback
from castsim.files import LEDGER, whole_file
from castsim.isa.dataclass import dataclass, replace
from castsim.isa.errors import ReadError
from castsim.tools.distribution.distributing import Ledger, LedgerLabels, Workers, distributed
from castsim.tools.distribution.origins import Task
from castsim.tools.sweep.points import (
    FAILED,
    SweepWork,
    axes_of,
    check_values,
    chunk_rows,
    pa,
    pc,
    pq,
    reason_of,
    results_table,
    schema_of,
    unpacked,
    work_of,
)
from castsim.tools.sweep.specification import Crossing, SweepSpecification, is_argument

if TYPE_CHECKING:
    from collections.abc import Sequence


# From the ledger to the Parquet file: chunk by chunk in the order of the points, under its final name once whole.

ROW_GROUP = 1 << 17
"""Maximum number of rows in a row group, and in memory."""


def write_results(work: SweepWork, ledger: Ledger, path: Path) -> tuple[int, int]:
    """Write the results of a finished sweep; return the number of rows, and the number of failed ones.

    Raises:
        ReadError: the file cannot be written, or the ledger has changed.
    """
    schema = schema_of(work)
    rows = failed = 0
    try:
        with whole_file(path, synchronised=True) as file, pq.ParquetWriter(file, schema, compression="zstd") as writer:
            waiting: list[pa.Table] = []
            for number in range(work.chunks):
                table = _rows(ledger, number, schema)
                rows += table.num_rows
                failed += sum(table["status"].to_numpy() == FAILED)
                waiting.append(table)
                if sum(batch.num_rows for batch in waiting) >= ROW_GROUP:
                    _flush(writer, waiting)
            _flush(writer, waiting)
    except OSError as error:
        raise ReadError(
            f"--out {path}: {reason_of(error)}", legal=("--out FILE in a folder that can be written",)
        ) from None
    return rows, int(failed)


def _rows(ledger: Ledger, number: int, schema: pa.Schema) -> pa.Table:
    """Return the rows of a chunk.

    Raises:
        ReadError: the ledger has no rows of this sweep.
    """
    try:
        return unpacked(ledger.results(number)).cast(schema)
    except (ValueError, pa.ArrowException) as error:  # other columns, or other types
        message = error.message if isinstance(error, ReadError) else "rows of another table"
        raise ReadError(f"{ledger.path}: chunk {number}: {message}", legal=(ledger.again,)) from None


def _flush(writer: pq.ParquetWriter, waiting: list[pa.Table]) -> None:
    if waiting:
        writer.write_table(pa.concat_tables(waiting), row_group_size=ROW_GROUP * 2)
        waiting.clear()


BOOK = LedgerLabels("sweep", "--out")
_FEW = 4
"""Number of chunks that finish before processes would have started."""


_Figures = tuple[Path, int, int, int, int, str, str]


def carry_out(specification: SweepSpecification, path: Path, workers: Workers, progress: ProgressCallback) -> _Figures:
    """Execute a sweep; parameters and errors are those of `castsim.sweep`. Return the fields of `Sweep` after path."""
    work = work_of(specification)
    with Ledger(path.with_name(path.name + LEDGER), work.about(), BOOK) as ledger:
        resumed = len(ledger.pieces)
        left = [number for number in range(work.chunks) if number not in ledger.pieces]
        done = work.grid.combinations - sum(stop - start for start, stop in map(work.span, left))
        progress(str(work.mode), done, work.grid.combinations)
        who = replace(workers, count=1) if len(left) <= _FEW else workers
        for chunk in distributed(task_of(work), left, who):
            ledger.add(chunk.piece, chunk.result)
            start, stop = work.span(chunk.piece)
            done += stop - start
            progress(str(work.mode), done, work.grid.combinations)
        rows_written, failed = write_results(work, ledger, path)
        identity = work.identity
        return ledger.path, rows_written, failed, work.chunks, resumed, identity.version, identity.facts_digest


def task_of(work: SweepWork) -> Task[int, bytes]:
    """Return the task whose pieces are the chunks of a sweep."""
    return Task("sweep", partial(chunk_rows, work), work.identity.installation)


# What the results of a sweep show: cycles by size on each route, where routes cross, cycles over two keys.

MOST_ROUTES = 24
"""Maximum number of routes that are drawn, those with the most points."""
MOST_POINTS = 400
"""Maximum number of points of a route."""
MOST_FIELDS = 40
"""Maximum number of values of a heat map's key."""

_SIZE = "elements"


@dataclass(frozen=True, slots=True)
class Route:
    """Points that differ only in size: the task `what`, the method `how`, and (size, fewest cycles) by size."""

    what: str
    how: str
    points: tuple[tuple[float, float], ...]

    @property
    def name(self) -> str:
        """Task and method in words."""
        return " ".join(part for part in (self.what, self.how) if part)


@dataclass(frozen=True, slots=True)
class Heat:
    """Cycles over two keys: `cells` are (column, row, cycles for each element or, of a program, cycles)."""

    name: str
    columns: tuple[float, ...]
    rows: tuple[float, ...]
    cells: tuple[tuple[int, int, float], ...]


@dataclass(frozen=True, slots=True)
class Summary:
    """The results of a sweep in short; `x` is the meaning of the size."""

    rows: int
    failed: int
    x: str
    routes: tuple[Route, ...]
    left_out: int
    crossings: tuple[Crossing, ...]
    keys: tuple[str, ...]
    heats: tuple[Heat, ...]


def summary(path: Path) -> Summary:
    """Return the summary of a file of results.

    Raises:
        ReadError: the file is not one of results.
    """
    axes = axes_of(path)
    table = results_table(path, [*axes, "cycles", "status"])
    whole = table.num_rows
    table = table.filter(pc.equal(table["status"], "ok"))
    check_values(path, table)
    keys = _numeric(table, axes)
    x = _SIZE if "cols" in axes else keys[0] if keys else ""
    if x == _SIZE:
        table = table.append_column(_SIZE, pc.multiply(table["rows"], table["cols"]))
    elif not x:
        table = table.append_column("", pa.array([0] * table.num_rows, pa.int64()))
    what = [name for name in ("src", "dst", "program") if name in axes]
    how = [name for name in axes if name not in (*what, *keys) and table[name].null_count < table.num_rows]
    routes = _routes(table, what, how, x)
    return Summary(
        whole, whole - table.num_rows, x, tuple(routes[:MOST_ROUTES]), max(0, len(routes) - MOST_ROUTES),
        _crossings(routes), tuple(keys), _heats(table, [*what, *how], keys, x),
    )  # fmt: skip


def _numeric(table: pa.Table, axes: Sequence[str]) -> list[str]:
    """Return the keys of heat maps."""
    if "cols" in axes:
        return ["cols", "rows"]
    numbers = [name for name in axes if is_argument(name) and not pa.types.is_string(table[name].type)]
    return sorted(numbers, key=lambda name: -len(table[name].unique()))[:2]


def _routes(table: pa.Table, what: Sequence[str], how: Sequence[str], x: str) -> list[Route]:
    """Return all routes, those with the most points first."""
    routes = []
    for rows in _fewest_cycles(table, [*what, *how], [x]):
        points = sorted((row[x], row["cycles_min"]) for row in rows)
        every = max(1, -(-len(points) // MOST_POINTS))
        routes.append(Route(_words(rows[0], what), _words(rows[0], how), tuple(points[::every])))
    return sorted(routes, key=lambda route: (-len(route.points), route.name))


def _fewest_cycles(table: pa.Table, columns: Sequence[str], keys: Sequence[str]) -> list[list[dict[str, Any]]]:
    """Return the fewest cycles by some keys, among rows that agree in some columns."""
    groups: dict[tuple[object, ...], list[dict[str, Any]]] = {}
    for row in table.group_by([*columns, *keys]).aggregate([("cycles", "min")]).to_pylist():
        groups.setdefault(tuple(row[name] for name in columns), []).append(row)
    return list(groups.values())


def _words(given: dict[str, object], names: Sequence[str]) -> str:
    if list(names) == ["src", "dst"]:
        return f"{given['src']} -> {given['dst']}"
    plain = ("program", "target")
    return " ".join(
        str(given[name]) if name in plain else f"{name}={given[name]}" for name in names if given[name] is not None
    )


def _crossings(routes: Sequence[Route]) -> tuple[Crossing, ...]:
    """Return the sizes at which, of two routes for one task, the other one becomes faster."""
    crossings = []
    for route, other in combinations(routes[:MOST_ROUTES], 2):
        if route.what != other.what:
            continue
        both = dict(other.points)
        signs = [(x, cycles - both[x]) for x, cycles in route.points if x in both and cycles != both[x]]
        for (_, before), (x, after) in pairwise(signs):
            if (before < 0) != (after < 0):
                faster, slower = (route, other) if before < 0 else (other, route)
                crossings.append(Crossing(route.what, faster.how, slower.how, x))
    return tuple(crossings)


def _heats(table: pa.Table, columns: Sequence[str], keys: Sequence[str], x: str) -> tuple[Heat, ...]:
    if len(keys) < 2:
        return ()
    heats = []
    for rows in sorted(_fewest_cycles(table, columns, keys), key=lambda rows: -len(rows))[:6]:
        cells = []
        for row in rows:
            cost = row["cycles_min"] / (row["rows"] * row["cols"]) if x == _SIZE else row["cycles_min"]
            cells.append((row[keys[0]], row[keys[1]], cost))
        across, down = (_thinned({cell[position] for cell in cells}) for position in (0, 1))
        kept = [(across.index(a), down.index(b), value) for a, b, value in cells if a in across and b in down]
        pair = [name for name in ("src", "dst", "program") if name in columns]
        name = " ".join((_words(rows[0], pair), _words(rows[0], [name for name in columns if name not in pair])))
        heats.append(Heat(name.strip(), tuple(across), tuple(down), tuple(sorted(kept))))
    return tuple(heats)


def _thinned(values: set[float]) -> list[float]:
    ordered = sorted(values)
    return ordered[:: max(1, -(-len(ordered) // MOST_FIELDS))]
