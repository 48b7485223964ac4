"""Cycles of the public test kernels of A5, operation by operation (vendor's simulator; `vectors/a5_benchmark.csv`)."""

from __future__ import annotations

import csv
from pathlib import Path
from statistics import fmean

from a5_benchmark import BenchmarkRow, benchmark, simulated

from castsim.isa.errors import CastsimError
from castsim.targets import load_target
from castsim.targets.loader import SHIPPED
from castsim.targets.options import with_options
from castsim.targets.vector_function import VectorFunctionTarget

A5 = load_target(SHIPPED / "a5.toml")

RULE = (
    "tadd", "tsub", "tmul", "tmax", "tmin", "tand", "tabs", "tnot", "trelu", "tneg", "tshls", "tshrs", "tlog", "tdiv",
    "tadds", "tcolexpandadd", "tcolexpandsub", "tcolexpandmul", "tcolexpandmax", "tcolexpandmin", "tcolexpanddiv",
    "tcolexpandexpdif",
)  # fmt: skip
"""Operations under one rule (docs/reference/a5.md section 9), none of whose rows was fitted."""

FITTED = ("trowargmax", "trowargmin", "tconcatidx", "tfillpad")
"""Operations whose given rows decided a fact of `timing.paced`."""

OTHERS = (
    "taxpy", "tcmp", "tcolexpand", "tconcat", "tpartadd", "tpartmul", "tpartmax", "tpartmin", "trecip", "tsels",
    "tgather", "ttrans", *FITTED,
)  # fmt: skip


def older_text(row: BenchmarkRow) -> bool:
    """Whether a scalar operation ran the older text of the library, with a scalar select in every trip of several."""
    return row.operation in ("tadds", "trecip") and row.vectors > 1


def timed(operations: tuple[str, ...]) -> list[tuple[BenchmarkRow, int]]:
    """Return rows of operations with their simulated cycles; without those of high precision, which is an option."""
    assert isinstance(A5, VectorFunctionTarget)
    found = []
    for row in benchmark():
        if row.operation not in operations or row.cycles is None or older_text(row) or "_hp_" in row.case:
            continue
        try:
            found.append((row, simulated(row, A5)))
        except CastsimError:
            continue  # a type or a pitch that the text form refuses
    return found


def errors(operations: tuple[str, ...]) -> list[tuple[BenchmarkRow, float]]:
    return [(row, cycles / row.cycles - 1) for row, cycles in timed(operations) if row.cycles]


def test_operations_under_the_row_rule() -> None:
    found = sorted(abs(error) for _, error in errors(RULE))
    assert len(found) >= 70
    assert fmean(found) <= 0.02
    assert found[int(0.95 * len(found))] <= 0.05


def test_other_operations() -> None:
    """At most a tenth of the rows are missed by more than a tenth, each for a reason that is stated."""
    found = errors(OTHERS)
    assert len(found) >= 90
    assert fmean(abs(error) for _, error in found) <= 0.10
    missed = {(row.operation, row.case) for row, error in found if abs(error) > 0.10}
    assert len(missed) <= len(found) // 10
    with (Path(__file__).parent / "vectors" / "a5_benchmark_missed.csv").open(newline="", encoding="utf-8") as file:
        stated = {(row["operation"], row["case"]): row["reason"] for row in csv.DictReader(file)}
    assert missed == stated.keys()
    assert all(stated.values())


def test_rows_of_the_older_text() -> None:
    """Option scalar_tail: selects in each trip of rows of several; its facts were fitted to these rows."""
    assert isinstance(A5, VectorFunctionTarget)
    older = with_options(A5, {"scalar_tail": "selected"})
    several = (row for row in benchmark() if row.operation == "tadds" and row.vectors > 1)
    rows = [row for row in several if row.src in ("f32", "i32")]
    assert len(rows) == 2
    for row in rows:
        assert row.cycles is not None
        assert abs(simulated(row, older) / row.cycles - 1) < 0.04
        assert simulated(row, A5) < row.cycles / 4
    one = next(row for row in benchmark() if row.operation == "tadds" and row.vectors == 1)
    assert simulated(one, older) == simulated(one, A5)
