"""A5 casts against the published cycles: margins, fits that leave rows out, scopes of vector instructions."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from statistics import fmean

import pytest
from kit.command_output import document_of, file_of

from castsim.isa.errors import CastsimError, ReadError
from castsim.targets.description import with_facts
from castsim.targets.loader import SHIPPED, load_target
from castsim.tools.accuracy.accuracy_assessment import assess, assess_row, simulated
from castsim.tools.accuracy.left_out import CrossValidation, LeftOut, cross_validate
from castsim.tools.accuracy.measured_rows import MeasuredTable, read_table
from castsim.tools.estimate.tile_estimates import estimate

MEAN, LARGEST = 0.65, 2.5
"""Percent; a worsening beyond fails. Reached: 0.63 and 2.47. The best published model: 0.81 and 5.1."""


def test_shipped_facts_keep_the_margins() -> None:
    errors = [abs(row.error) for row in assess(A5, TABLE).rows]
    assert len(errors) == 85
    assert fmean(errors) <= MEAN
    assert max(errors) <= LARGEST


def test_all_that_passes_the_port_shares_one_latency() -> None:
    latencies, port = A5.timing.chain.latency_cycles, ("vcvt", "vtrc", "punpack")
    assert len({latencies[name] for name in port}) == 1
    # The others are the vendor model's for its logic instructions.
    assert {latencies[name] for name in latencies if name not in (*port, "vintlv")} == {6}


A5 = load_target("a5")
TABLE = read_table(SHIPPED / "a5_measured_casts.csv")
PAIR_MEAN, PAIR_LARGEST = 1.3, 4.9
"""Percent asked for, of pairs and of shapes left out."""


@pytest.fixture(scope="module", params=[LeftOut.PAIR, LeftOut.SHAPE], ids=str)
def found(request: pytest.FixtureRequest) -> CrossValidation:
    return cross_validate(A5, TABLE, request.param)


def test_what_is_left_out_is_predicted_as_well_as_asked_for(found: CrossValidation) -> None:
    errors = simulated(found.rows)
    assert errors.rows == 85
    assert errors.mean <= PAIR_MEAN
    assert errors.maximum <= PAIR_LARGEST


def test_every_row_is_left_out_once_and_predicted_by_the_facts_of_its_fold(found: CrossValidation) -> None:
    spans = [row.row.span.line for fold in found.folds for row in fold.rows]
    assert sorted(spans) == sorted(row.span.line for row in TABLE.rows)
    moves = {fact.facts[0]: fact.facts for fact in A5.free_facts}
    fold = found.folds[-1]
    changed = with_facts(A5, {path: value for name, value in fold.facts.items() for path in moves[name]})
    for row in fold.rows:
        cols = row.simulated_cols + (0 if row.row.path == "1D" else row.row.cols - row.row.valid_cols)
        again = estimate(
            row.row.src.name, row.row.dst.name, row.simulated_rows, cols,
            target=changed, valid_cols=row.simulated_cols,
        )  # fmt: skip
        assert row.simulated_cycles == again.cycles


def test_fits_know_nothing_of_what_is_left_out(tmp_path: Path) -> None:
    lines = (SHIPPED / "a5_measured_casts.csv").read_text().splitlines()
    small = [lines[0], *(line for line in lines[1:] if line.startswith(("bf16,fp16", "fp32,bf16", "fp16,hif8")))]
    cells = [line.split(",") for line in small]
    place = cells[0].index("measured_cycles")
    for row in cells[1:]:
        if row[0] == "fp32":
            row[place] = str(2 * int(row[place]))
    facts = []
    for number, text in enumerate((small, [",".join(row) for row in cells])):
        path = file_of(tmp_path / f"{number}.csv", "\n".join(text) + "\n")
        folds = cross_validate(A5, read_table(path), LeftOut.PAIR).folds
        facts.append(next(fold.facts for fold in folds if fold.name == "f32 -> bf16"))
    assert facts[0] == facts[1]


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_unsampled_rows_of_unpacking_kernels_give_the_public_lines() -> None:
    """The public formula of a 1D curve is the least-squares line through 1, 5 and 10 trips, one or two of which the
    sample leaves out: lines through simulated cycles must come close to it (docs/reference/a5.md section 6.2, rule 9).
    """
    curves = {("bf16", "f32", 64): (81, None), ("e2m1", "bf16", 256): (91, 99), ("e4m3fn", "f32", 128): (85, 120)}
    for (src, dst, per_trip), (first, last) in curves.items():
        cycles = [estimate(src, dst, 1, n * per_trip, target=A5).cycles for n in (1, 5, 10)]
        mean_n, mean = Decimal(16) / 3, Decimal(sum(cycles)) / 3
        slope = sum((n - mean_n) * (c - mean) for n, c in zip((1, 5, 10), cycles, strict=True)) / sum(
            (n - mean_n) ** 2 for n in (1, 5, 10)
        )
        line = [mean + (n - mean_n) * slope for n in (1, 10)]
        assert abs(line[0] - first) <= Decimal("2.5"), (src, line)
        assert last is None or abs(line[1] - last) <= Decimal("2.5"), (src, line)


def test_json_and_text(capsys: pytest.CaptureFixture[str]) -> None:
    table = str(SHIPPED / "a5_measured_casts.csv")
    found = document_of(capsys, "accuracy", "--target", "a5", "--data", table, "--cross-validate", "kernel")
    assert [fold["rows"] for fold in found["folds"]] == [5, 10, 10, 5, 12, 15, 10, 18]
    errors = [abs(row["error_percent"]) for fold in found["folds"] for row in fold["predictions"]]
    assert found["mean"] == pytest.approx(fmean(errors), abs=1e-3)
    assert found["max"] == pytest.approx(max(errors), abs=1e-3)


def test_constants_of_conventions_come_back_from_rows_of_other_operations() -> None:
    """Planted in the cycles; what only one operation decides stays at the value of other sources, and is said to."""
    added, drain = "measured_conventions.complete.added_cycles", "timing.vector_pipe.tail_cycles"
    chip = load_target("a2a3")
    planted = with_facts(chip, {added: 9, f"{added}_of.tcvt": 13, drain: 16})
    lines = read_table(SHIPPED / "a2a3_measured_lines.csv").rows
    formulas = read_table(SHIPPED / "a2a3_measured_formulas.csv").rows
    kept = [row for row in lines if row.operation in ("tcvt", "tadd", "trelu")]
    kept += [row for row in formulas if row.operation in ("tcolmax", "tcolsum")][::5]
    rows = tuple(replace(row, measured_cycles=assess_row(planted, row).simulated_cycles) for row in kept)
    found = cross_validate(chip, MeasuredTable("planted.csv", (), rows, 0), LeftOut.OPERATION)
    assert {fold.name for fold in found.folds} == {"tcvt", "tadd", "trelu", "tcolmax", "tcolsum"}
    for fold in found.folds:
        assert (fold.facts[added], fold.facts[drain]) == (9, 16)
        alone = fold.name == "tcvt"
        assert fold.undecided == ((f"{added}_of.tcvt",) if alone else ())
        assert {row.simulated_cycles - row.row.measured_cycles for row in fold.rows} == {-13 if alone else 0}


FILE = SHIPPED / "a5_measured_scopes.csv"
PUBLIC_MEAN = 4.64
"""Percent by which VfSimulator is off in the mean over its 21 programs, of which these are 11."""

HEADER = "case,dtype,loops,trips,unroll,measured_cycles,program\n"


def test_the_mean_error_is_below_that_of_the_public_model() -> None:
    found = assess(A5, read_table(FILE))
    (curve,) = found.curves
    assert curve.simulated.rows == 11
    assert curve.simulated.mean < PUBLIC_MEAN
    assert all(row.reason for row in found.rows if abs(row.error) > 4.64)


def test_barriers_and_pairs_of_loads_take_about_what_the_cycle_simulator_printed() -> None:
    """One barrier and eight were fitted, the others not; the public models are off by up to 10 %."""
    found = assess(A5, read_table(SHIPPED / "a5_measured_probes.csv"))
    assert [row.row.cells["case"] for row in found.unfitted] == ["pset_vadd_i16", "norm_pairs"]
    assert all(abs(row.error) <= 10 for row in found.rows)


def test_a_table_of_ones_own(tmp_path: Path) -> None:
    file = file_of(tmp_path / "mine.csv", HEADER + "copy,fp32,1,10,1,60,a=vlds A; b=vcvt a; vsts B b\n")
    (row,) = assess(A5, read_table(file)).rows
    # start 22, loop 2, load 6, vcvt 4.5, store 9, drain 12, nine more trips; rounded half up
    assert row.simulated_cycles == 65


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("a=vlds A; ?", "is not an instruction"),
        ("a=vlds", "does not name a buffer"),
        ("mem_bar VST", "does not name a barrier"),
        ("a=vlds A; b=vnothing a", "no latency"),
    ],
)
def test_refusals_name_the_cell(tmp_path: Path, program: str, message: str) -> None:
    file = file_of(tmp_path / "mine.csv", HEADER + f"bad,fp32,1,10,1,60,{program}\n")
    with pytest.raises(CastsimError, match=message) as error:
        assess(A5, read_table(file))
    span = error.value.span
    assert span and (span.line, span.column) == (2, len("bad,fp32,1,10,1,60,") + 1)


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    file = file_of(tmp_path / "mine.csv", "case,dtype,program\nx,fp32,a=vlds A\n")
    with pytest.raises(ReadError, match="no column trips, measured_cycles"):
        read_table(file)
