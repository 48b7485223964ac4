"""Readers of what studies of many runs take and leave: sweeps, ledgers, tables of results, traces, measurements."""

from __future__ import annotations

import json
import tempfile
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path

from castsim.isa.errors import CastsimError

_POINTS = 64
"""Points of a grid that are expanded."""


@cache
def _folder() -> Path:
    """A folder for readers that take paths; in memory where there is one."""
    shared = Path("/dev/shm")
    folder = tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else None, prefix="fuzz")
    _kept.append(folder)
    return Path(folder.name)


_kept: list[tempfile.TemporaryDirectory[str]] = []


def file(name: str, data: bytes) -> Path:
    path = _folder() / name
    path.write_bytes(data)
    return path


def read_sweep(data: bytes) -> None:
    """Read a specification and expand the first points of its grid; what it says in one form is said again."""
    from castsim.tools.sweep.points import work_of  # noqa: PLC0415 - likewise
    from castsim.tools.sweep.specification import read_specification  # noqa: PLC0415 - only for sweeps

    found = read_specification(file("s.toml", data))
    grid = found.grid
    points = grid.kept(0, min(grid.combinations, _POINTS))
    assert all(len(places) == len(points) for places in grid.places(points).values())
    work = work_of(found)
    assert work.canonical() == work_of(read_specification(_folder() / "s.toml")).canonical()
    assert work.span(work.chunks - 1)[1] == grid.combinations


def read_rows(data: bytes) -> None:
    """Draw the results of a sweep, and read them as a frame."""
    from castsim.tools.sweep.page import sweep_page  # noqa: PLC0415 - likewise
    from castsim.tools.sweep.points import results_table  # noqa: PLC0415 - needs pyarrow

    path = file("r.parquet", data)
    _, document = sweep_page(path, "r.html")
    assert document["rows"] == results_table(path).num_rows
    json.dumps(document, allow_nan=False)


ABOUT = {"specification": "0" * 64, "program": "1" * 64}
"""What the ledgers of the seeds are about."""


def read_sweep_ledger(data: bytes) -> None:
    """Open the ledger of a sweep and read its chunks; opened again, it keeps the same."""
    from castsim.tools.distribution.distributing import Ledger  # noqa: PLC0415 - only for sweeps
    from castsim.tools.sweep.points import unpacked  # noqa: PLC0415 - likewise
    from castsim.tools.sweep.results import BOOK  # noqa: PLC0415 - needs pyarrow

    path = file("r.ledger", data)
    with Ledger(path, ABOUT, BOOK) as ledger:
        found = {number: ledger.results(number) for number in ledger.pieces}
    with Ledger(path, ABOUT, BOOK) as ledger:
        assert {number: ledger.results(number) for number in ledger.pieces} == found
    for rows in found.values():
        unpacked(rows)


def read_tune_ledger(data: bytes) -> None:
    """Open the ledger of a search, add a row, and find it again."""
    from castsim.tools.tune.candidates import TuningRow  # noqa: PLC0415 - likewise
    from castsim.tools.tune.studies import TuningLedger  # noqa: PLC0415 - likewise

    path = file("t.ledger", data)
    new = TuningRow(1, {"R": 10**6}, cycles=5, elements=2)
    with TuningLedger.opened(path, ABOUT) as ledger:
        before = dict(ledger.rows)
        for (simulated, _), row in before.items():
            assert ledger.known(row, simulated=simulated) == row
            assert row.cycles_per_element is None or row.cycles_per_element >= 0
        ledger.add(new, simulated=True)
    with TuningLedger.opened(path, ABOUT) as again:
        assert again.known(new, simulated=True) == new
        assert len(again.rows) - len(before) in (0, 1)


def read_trace(data: bytes) -> None:
    """Read a trace as `castsim view` does, of itself and beside a program."""
    from castsim.tools.diff.comparing import read_object  # noqa: PLC0415 - likewise
    from castsim.tools.traces.command import check_trace  # noqa: PLC0415 - only for traces

    assert isinstance(check_trace(read_object(data, "t.json"), "t.json"), str)


def read_measurements(data: bytes) -> None:
    """Read a table of measured cycles and compare its first row with targets."""
    from castsim.targets.loader import load_target  # noqa: PLC0415 - likewise
    from castsim.tools.accuracy.accuracy_assessment import assess  # noqa: PLC0415 - only for tables
    from castsim.tools.accuracy.measured_rows import read_table  # noqa: PLC0415 - likewise

    table = read_table(file("m.csv", data))
    assert table.rows
    first = replace(table, rows=table.rows[:1])
    for name in ("a2a3", "a5"):
        with suppress(CastsimError):
            assess(load_target(name), first)


def read_lookup_table(data: bytes) -> None:
    """Take a `.csv` file for the table of a kernel; it has as many elements as the table."""
    from castsim.isa.errors import Span  # noqa: PLC0415 - only for tables
    from castsim.isa.tpc.program import TableDeclaration  # noqa: PLC0415 - likewise
    from castsim.machines.vliw.assembled import declared_codes  # noqa: PLC0415 - likewise

    path, fmt = file("l.csv", data), ("f32", "i8", "bf16")[len(data) % 3]
    text = f"// castsim: table t 1 {fmt} [8] = {path.name}"
    table = TableDeclaration("t", False, 1, fmt, (8,), path.name, span=Span("k.tpc", 1, 1, text))
    codes = declared_codes(table, path.parent)
    assert codes is not None and codes.size == 8
