"""What is known of errors: shipped records fit code and tables, intervals hold, rows are told apart by evidence."""

from __future__ import annotations

import csv
from collections import defaultdict
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from kit.command_output import document_of, err_of, out_of
from kit.paths import ROOT

from castsim.isa.errors import ReadError
from castsim.targets.description import SourceKind
from castsim.targets.loader import INTERVALS, load_target, measured_operation, read_intervals
from castsim.tools.accuracy.accuracy_assessment import AccuracyTables, accuracy
from castsim.tools.accuracy.left_out import WIDEST, Residual, intervals_of, kind_of, residuals, write_record
from castsim.tools.accuracy.measured_rows import KERNEL, LAUNCH, read_table

TARGETS = ROOT / "targets"


@cache
def shipped() -> AccuracyTables:
    return accuracy()


@cache
def of_target(name: str) -> list[Residual]:
    return residuals([each for each in shipped().tables if each.target.name == name])


def test_the_shipped_records_are_those_of_code_and_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`castsim accuracy --record targets` writes them anew."""
    again = "castsim.tools.accuracy.left_out.residuals"  # a minute for each chip, so only once
    monkeypatch.setattr(again, lambda found: of_target(found[0].target.name))
    write_record(tmp_path, shipped().tables)
    assert (tmp_path / INTERVALS).read_text() == (TARGETS / INTERVALS).read_text()


def test_which_operations_were_measured_is_what_the_tables_hold() -> None:
    """As `accuracy` reads them: the strongest source of an operation on its types, and whether any row is unfitted."""
    order = list(SourceKind)
    found: dict[tuple[str, ...], set[tuple[SourceKind, bool]]] = defaultdict(set)
    for table in shipped().tables:
        for row in (each.row for each in table.rows if table.target.times_programs(each.row.convention)):
            whole = row.body is None and not row.addresses and row.operation not in (LAUNCH, KERNEL)
            if whole and row.source_kind is not None:
                key = (table.target.name, row.operation, row.src.name, row.dst.name)
                found[key].add((row.source_kind, not row.fitted))
    assert len(found) > 80
    for key, rows in found.items():
        known, strongest = measured_operation(*key), min((kind for kind, _ in rows), key=order.index)
        assert known is not None
        assert (known.source_kind, known.unfitted) == (strongest, (strongest, True) in rows)
    assert measured_operation("a2a3", "tcvt", "i64", "i32") is None


def together() -> list[tuple[str, tuple[str, ...]]]:
    """Targets and the kinds that have one share and level: all where there is an interval of all, else each alone."""
    found: dict[str, list[str]] = {}
    for row in read_intervals(TARGETS / INTERVALS):
        found.setdefault(row.target, []).append(row.kind)
    return [
        (name, each)
        for name, kinds in found.items()
        for each in ([tuple(kinds)] if "any" in kinds else [(kind,) for kind in kinds])
    ]


@pytest.mark.parametrize(("name", "those"), together())
def test_intervals_hold_the_rows_left_out_and_are_narrow(name: str, those: tuple[str, ...]) -> None:
    """By numpy: one level serves whatever is left out, and gives the shipped bounds of all rows."""
    of_kind = {row.kind: row for row in read_intervals(TARGETS / INTERVALS) if row.target == name}
    stated = {kind: of_kind[kind] for kind in those}
    (share,) = {row.share for row in stated.values()}
    rows = [row for row in of_target(name) if "any" in those or row.kind in those]
    kinds, percents = np.array([row.kind for row in rows]), np.array([row.percent for row in rows])

    def shortest(some: np.ndarray, level: int) -> tuple[float, float]:
        ordered = np.sort(some)
        count = min(len(ordered), int(np.ceil((len(ordered) + 1) * level / 100)))
        first = np.argmin(ordered[count - 1 :] - ordered[: len(ordered) - count + 1])
        return ordered[first], ordered[first + count - 1]

    def tried(level: int, left_out: str) -> tuple[float, float]:
        groups, held, widths = np.array([str(getattr(row, left_out)) for row in rows]), [], []
        for group in set(groups):
            kept = groups != group
            if np.sum(kept) < 8:
                continue
            for kind in set(kinds[~kept]):
                own = percents[kept & (kinds == kind)]
                low, high = shortest(own if own.size >= 8 else percents[kept], level)
                out = percents[~kept & (kinds == kind)]
                held += [*((low <= out) & (out <= high))]
                widths += [high - low] * out.size
        return (100 * np.mean(held), np.median(widths)) if held else (100, 0)  # nothing is left to determine it by

    for level in range(share, 100):
        trials = [tried(level, what) for what in ("operation", "width", "source")]
        if min(held for held, _ in trials) >= share:
            break
    assert min(held for held, _ in trials) >= share
    assert max(width for _, width in trials) <= WIDEST * np.median(np.abs(percents))
    for kind, row in stated.items():
        low, high = shortest(percents if kind == "any" else percents[kinds == kind], level)
        assert (row.low, row.high) == (pytest.approx(low, abs=0.011), pytest.approx(high, abs=0.011))
        assert row.low <= low
        assert row.high >= high
    for kind, row in stated.items():
        sizes = np.abs(percents if kind == "any" else percents[kinds == kind])
        assert row.rows == sizes.size
        assert row.median == pytest.approx(np.median(sizes), abs=0.01)
        assert row.mean == pytest.approx(np.mean(sizes), abs=0.01)


def test_fitted_rows_have_no_say_unless_they_are_predicted_without_themselves() -> None:
    for name in ("a2a3", "a5"):
        tables = [table for table in shipped().tables if table.target.name == name]
        programs = [
            row
            for table in tables
            for row in table.unfitted
            if table.target.times_programs(row.row.convention) and row.row.operation != LAUNCH
        ]
        found = sorted(row.percent for row in of_target(name) if not row.refitted)
        errors = sorted(100 * (row.row.measured_cycles / row.simulated_cycles - 1) for row in programs)
        assert found == pytest.approx(errors)
    assert not any(row.refitted for row in of_target("a2a3") if row.kind in ("cast", "row expansion"))
    assert sum(row.refitted for row in of_target("a2a3") if row.operation == "trowmax") == 40
    assert {row.refitted for row in of_target("a5")} == {True, False}
    assert all(row.refitted == (row.kind == "cast") for row in of_target("a5"))


def test_scattered_or_few_rows_get_no_interval() -> None:
    alike = [Residual("cast", 5 + k % 3, str(k), 16 + 16 * (k % 2)) for k in range(40)]
    assert [row.share for row in intervals_of("chip", alike)] == [90, 90]
    assert intervals_of("chip", alike[:7]) == []
    wild = [Residual("cast", 4.0**k, str(k)) for k in range(12)]
    assert intervals_of("chip", wild) == []


def test_every_shipped_row_says_whether_it_was_fitted_and_what_it_was_read_off() -> None:
    for target in ("a2a3", "a5"):
        for table in load_target(target).measurements:
            for row in read_table(TARGETS / table.file).rows:
                assert row.cells["fitted"] in ("yes", "no"), row.span
                assert row.source_kind is not None, row.span
                assert kind_of(row)


HEADER = "src,dst,rows,cols,measured_cycles,fitted,source_kind,convention"
GOOD = "f32,f16,4,64,33,no,silicon,"


@pytest.mark.parametrize(
    ("line", "said", "column"),
    [
        ("f32,f16,4,64,-33,no,silicon,", "measured_cycles '-33' is not a positive integer", 14),
        ("f32,f16,4,64,0,no,silicon,", "measured_cycles '0' is not a positive integer", 14),
        ("f32,f16,4,64,26.004,no,silicon,", "measured_cycles '26.004' is not a positive integer", 14),
        ("f32,f16,4,64,12 us,no,silicon,", "measured_cycles '12 us' is not a positive integer", 14),
        ("f32,f16,4,64,99999999999,no,silicon,", "more than any simulation may take", 14),
        ("f32,f16,4,64,33,perhaps,silicon,", "fitted 'perhaps' is not a legal value", 17),
        ("f32,f16,4,64,33,no,rumour,", "source_kind 'rumour' is not a legal value", 20),
        ("f32,f16,4,64,33,no,assumption,", "source_kind 'assumption' is not a legal value", 20),
    ],
)
def test_malformed_rows_are_placed(tmp_path: Path, line: str, said: str, column: int) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(f"{HEADER}\n{GOOD}\n{line}\n")
    with pytest.raises(ReadError) as caught:
        read_table(path)
    assert said in caught.value.message
    assert (caught.value.span.line, caught.value.span.column) == (3, column)


def test_an_unknown_convention_is_placed_at_its_cell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(f"op,{HEADER}\nTADD,f32,f32,64,64,160,no,silicon,whole\n")
    assert f"{path}:2:35: " in err_of(capsys, ["accuracy", "--target", "a2a3", "--data", str(path)], 1)


def test_documents_and_texts_quote_unfitted_rows_first(capsys: pytest.CaptureFixture[str]) -> None:
    document = document_of(capsys, "accuracy", "--target", "a2a3")
    assert next(key for key in document if key in ("unfitted", "fitted", "mean")) == "unfitted"
    groups = defaultdict(list)
    for table in load_target("a2a3").measurements:
        with (TARGETS / table.file).open() as file:
            for row in csv.DictReader(file):
                groups[row["fitted"]].append(row)
    assert document["unfitted"]["rows"] <= len(groups["no"])
    errors = [abs(row["error_percent"]) for row in document["rows"] if not row["fitted"]]
    assert document["unfitted"]["mean"] == pytest.approx(np.mean(errors), abs=1e-3)
    assert document["unfitted"]["median"] == pytest.approx(np.median(errors), abs=1e-3)
    assert sum(each["rows"] for each in document["by_source"]) == len(document["rows"])
    assert {each["source_kind"] for each in document["by_source"]} <= {str(kind) for kind in SourceKind}
    text = out_of(capsys, ["accuracy", "--target", "a2a3"])
    assert text.index("held out, ") < text.index(" fitted, ")
    assert "Errors of the held-out rows" in text
