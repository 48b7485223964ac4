"""A5's vector operations and casts against published cycles: margins, fits that leave rows out, public test kernels."""

from __future__ import annotations

import csv
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from statistics import fmean, median

import pytest
from kit.a5_benchmark import BenchmarkRow, benchmark
from kit.a5_benchmark import simulated as benchmark_cycles
from kit.command_output import document_of, file_of
from kit.paths import VECTORS

from castsim.isa.errors import CastsimError, IllegalError, ReadError
from castsim.targets.description import with_facts, with_options
from castsim.targets.loader import SHIPPED, load_target
from castsim.targets.vector_function import VectorFunctionTarget
from castsim.tools.accuracy.accuracy_assessment import (
    IN_PLACE,
    SHAPE,
    Accuracy,
    AssessedRow,
    assess,
    assess_row,
    simulated,
)
from castsim.tools.accuracy.left_out import CrossValidation, LeftOut, cross_validate
from castsim.tools.accuracy.measured_rows import MeasuredTable, read_table
from castsim.tools.estimate.operation_estimates import estimate_tile_operation
from castsim.tools.estimate.tile_estimates import estimate

A5 = load_target("a5")
FILE = SHIPPED / "a5_measured_operations.csv"

MEAN, LARGEST = 0.735, 14.6
"""Percent, without TSEL on 32 bits; a worsening beyond fails. Reached: 0.73 and 14.57. Asked for: 0.8 at most."""

NOTED = 2.0
"""Percent beyond which a row has a stated reason."""

# Mean errors in percent that the sheet gives for the published model, per operation (docs/reference/a5.md section 9).
PUBLISHED_MODEL = {
    "tadd": 0.43, "tsub": 0.43, "tmul": 0.33, "tmins": 0.36, "tneg": 0.58, "texp": 0.29, "tsqrt": 0.29, "tdivs": 0.92,
    "trecip": 0.98, "trsqrt": 0.34, "trecip high_precision": 1.27, "tsel TSel_b16_8": 2.0,
}  # fmt: skip


@pytest.fixture(scope="module")
def accuracy() -> Accuracy:
    return assess(A5, read_table(FILE))


def errors(rows: list[AssessedRow]) -> list[float]:
    return [abs(row.error) for row in rows]


def wide_select(row: AssessedRow) -> bool:
    return row.row.operation == "tsel" and row.row.src.name == "f32"


def test_every_published_row_is_simulated(accuracy: Accuracy) -> None:
    assert len(accuracy.rows) == 303
    assert accuracy.table.skipped == 0
    assert len([row for row in accuracy.rows if wide_select(row)]) == 4


def test_margins(accuracy: Accuracy) -> None:
    found = errors([row for row in accuracy.rows if not wide_select(row)])
    assert fmean(found) <= MEAN
    assert median(found) == 0
    assert max(found) <= LARGEST


def test_no_operation_is_much_worse_than_in_the_published_model(accuracy: Accuracy) -> None:
    groups: dict[str, list[AssessedRow]] = {}
    for row in accuracy.rows:
        if not wide_select(row):
            groups.setdefault(row.row.label, []).append(row)
    assert groups.keys() == PUBLISHED_MODEL.keys()
    for label, rows in groups.items():
        assert fmean(errors(rows)) <= PUBLISHED_MODEL[label] + 0.73, label


def test_rows_that_deviate_have_a_stated_reason(accuracy: Accuracy) -> None:
    assert [row.row.cells for row in accuracy.rows if abs(row.error) > NOTED and not row.reason] == []
    casts = assess(A5, read_table(SHIPPED / "a5_measured_casts.csv"))
    assert [row.row.cells for row in casts.rows if abs(row.error) > NOTED + 0.2 and not row.reason] == []
    scopes, single = (assess(A5, read_table(SHIPPED / f"a5_measured_{name}.csv")) for name in ("scopes", "kernels"))
    assert [row.row.cells for row in single.rows if abs(row.error) > NOTED and not row.reason] == []
    launches = assess(A5, read_table(SHIPPED / "a5_measured_launches.csv"))
    for note in A5.accuracy_notes:
        tables = (accuracy, casts, scopes, single, launches)
        concerned = [row for table in tables for row in table.rows if note.reason in row.reason]
        assert any(abs(row.error) > NOTED for row in concerned), note.where


def test_nothing_is_claimed_as_validated_without_published_rows() -> None:
    with FILE.open(newline="") as file:
        published = {(row["op"].lower(), row["dtype"]) for row in csv.DictReader(file)}
    spelled = {"f32": "fp32", "f16": "fp16", "i8": "int8"}
    serves = {("tmuls", "f32"): ("tneg", "fp32")}  # TMULS by -1 is TNEG
    for rule in A5.tile_operations:
        for fmt in rule.validated:
            key = rule.mnemonic, fmt
            assert serves.get(key, (rule.mnemonic, spelled.get(fmt))) in published, key
    claimed = {rule.mnemonic for rule in A5.tile_operations if rule.validated}
    assert claimed == {operation for operation, _ in published} | {"tmuls"}


def test_tiles_that_do_not_fit_side_by_side_are_taken_in_place(accuracy: Accuracy) -> None:
    large = [row for row in accuracy.rows if row.convention == IN_PLACE]
    assert large
    for row in accuracy.rows:
        tiles = {"tadd": 3, "tsub": 3, "tmul": 3, "tsel": 3}.get(row.row.operation, 2)
        size = tiles * row.row.rows * row.row.cols * row.row.src.storage_bits // 8
        assert (row.convention == IN_PLACE) == (size > 262_144)
        assert row.convention in (IN_PLACE, SHAPE)


def test_own_measurements_of_operations(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(
        "op,dtype,rows,cols,measured_cycles,op_params,impl_kind\n"
        "TEXP,float,1,64,60,,\n"
        "trecip,half,1,128,200,high_precision,1D_NO_POST_UPDATE\n"
        "TMATMUL,half,16,16,9,,\n"
    )
    table = read_table(path)
    assert (len(table.rows), table.skipped) == (2, 1)
    exp, recip = assess(A5, table).rows
    assert exp.simulated_cycles == estimate_tile_operation("texp", "f32", 1, 64, target="a5").cycles
    # 48 around the chain, 2 less without a loop; a trip of 170 and 8 less, no post-update.
    assert recip.simulated_cycles == 48 - 2 - 8 + 170
    assert recip.row.label == "trecip high_precision"


def test_operations_that_cannot_run(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("op,dtype,rows,cols,measured_cycles\nTEXP,fp32,1,64,60\nTEXP,int32,1,64,60\n")
    with pytest.raises(IllegalError, match="texp does not take i32") as caught:
        assess(A5, read_table(path))
    assert caught.value.span.line == 3
    with pytest.raises(ReadError, match="unknown operation 'texq'") as unknown:
        estimate_tile_operation("texq", "f32", 1, 64, target=A5)
    assert "texp" in unknown.value.legal


def test_a_row_of_one_vector_turns_only_where_the_region_is_known_at_run_time() -> None:
    """435 is published for 64 rows; the profiled rows of static regions show 1 to 4 a row."""
    shape = {"rows": 64, "cols": 128, "valid_cols": 64, "target": A5}
    assert estimate_tile_operation("tadd", "f32", **shape, runtime_valid=True).cycles == 435
    assert estimate_tile_operation("tadd", "f32", **shape).cycles < 200


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
            found.append((row, benchmark_cycles(row, A5)))
        except CastsimError:
            continue  # a type or a pitch that the text form refuses
    return found


def errors_of(operations: tuple[str, ...]) -> list[tuple[BenchmarkRow, float]]:
    return [(row, cycles / row.cycles - 1) for row, cycles in timed(operations) if row.cycles]


def test_operations_under_the_row_rule() -> None:
    found = sorted(abs(error) for _, error in errors_of(RULE))
    assert len(found) >= 70
    assert fmean(found) <= 0.02
    assert found[int(0.95 * len(found))] <= 0.05


def test_other_operations() -> None:
    found = errors_of(OTHERS)
    assert len(found) >= 90
    assert fmean(abs(error) for _, error in found) <= 0.10
    missed = {(row.operation, row.case) for row, error in found if abs(error) > 0.10}
    assert len(missed) <= len(found) // 10
    with (VECTORS / "a5_benchmark_missed.csv").open(newline="", encoding="utf-8") as file:
        stated = {(row["operation"], row["case"]): row["reason"] for row in csv.DictReader(file)}
    assert missed == stated.keys()
    assert all(stated.values())


def test_rows_of_the_older_text() -> None:
    assert isinstance(A5, VectorFunctionTarget)
    older = with_options(A5, {"scalar_tail": "selected"})
    several = (row for row in benchmark() if row.operation == "tadds" and row.vectors > 1)
    rows = [row for row in several if row.src in ("f32", "i32")]
    assert len(rows) == 2
    for row in rows:
        assert row.cycles is not None
        assert abs(benchmark_cycles(row, older) / row.cycles - 1) < 0.04
        assert benchmark_cycles(row, A5) < row.cycles / 4
    one = next(row for row in benchmark() if row.operation == "tadds" and row.vectors == 1)
    assert benchmark_cycles(one, older) == benchmark_cycles(one, A5)


CAST_MEAN, CAST_LARGEST = 0.65, 2.5
"""Percent; a worsening beyond fails. Reached: 0.63 and 2.47. The best published model: 0.81 and 5.1."""


def test_shipped_facts_keep_the_margins() -> None:
    errors = [abs(row.error) for row in assess(A5, TABLE).rows]
    assert len(errors) == 85
    assert fmean(errors) <= CAST_MEAN
    assert max(errors) <= CAST_LARGEST


def test_all_that_passes_the_port_shares_one_latency() -> None:
    latencies, port = A5.timing.chain.latency_cycles, ("vcvt", "vtrc", "punpack")
    assert len({latencies[name] for name in port}) == 1
    # The others are the vendor model's for its logic instructions.
    assert {latencies[name] for name in latencies if name not in (*port, "vintlv")} == {6}


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


SCOPES = SHIPPED / "a5_measured_scopes.csv"
PUBLIC_MEAN = 4.64
"""Percent by which VfSimulator is off in the mean over its 21 programs, of which these are 11."""

HEADER = "case,dtype,loops,trips,unroll,measured_cycles,program\n"


def test_the_mean_error_is_below_that_of_the_public_model() -> None:
    found = assess(A5, read_table(SCOPES))
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
