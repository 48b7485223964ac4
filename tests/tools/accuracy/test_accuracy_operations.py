"""A5's vector operations against published cycles, with parameters of one public model, and its public test kernels."""

from __future__ import annotations

import csv
import os
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from statistics import fmean, median

import pytest
from kit.a5_benchmark import BenchmarkRow, benchmark, simulated
from kit.paths import VECTORS

from castsim.isa.errors import CastsimError, IllegalError, ReadError
from castsim.targets.description import with_options
from castsim.targets.loader import SHIPPED, load_target
from castsim.targets.vector_function import VectorFunctionTarget
from castsim.tools.accuracy.accuracy_assessment import IN_PLACE, SHAPE, Accuracy, AssessedRow, assess
from castsim.tools.accuracy.measured_rows import read_table
from castsim.tools.estimate.operation_estimates import estimate_tile_operation

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


def test_the_constants_are_those_of_the_published_model() -> None:
    """None is fitted to an operation, a type or a shape here: they are the rounded values of docs/reference/a5.md
    section 6.3.
    """
    timing = A5.timing
    found = {
        "K": timing.launch.startup_cycles + timing.loops.setup_cycles + timing.access.load_cycles
        + timing.access.store_cycles + timing.launch.drain_cycles - 2 * timing.chain.forwarding_cycles,
        "e": timing.loops.setup_cycles, "post": timing.loads.post_update_cycles,
        "ldx": timing.loads.second_load_cycles, "g0": timing.loops.turnaround_cycles,
        "km2": timing.memory_floor["two_loads"].start_cycles, "cm2": timing.memory_floor["two_loads"].trip_cycles,
        "cm1": timing.memory_path.trip_cycles, "hp32": timing.division.trip_cycles["f32"],
        "hp16": timing.division.trip_cycles["f16"], "hpo": timing.division.overlap_cycles,
        "occ_sfu_fp32": timing.special_function.port_cycles["f32"],
        "occ_sfu_fp16": timing.special_function.port_cycles["f16"], "fwd": timing.chain.forwarding_cycles,
        "lat_vsqrt_fp32": A5.arithmetic["vsqrt"].latency_32, "lat_vsqrt_fp16": A5.arithmetic["vsqrt"].latency_16,
    }  # fmt: skip
    assert {name: float(value) for name, value in found.items()} == {
        "K": 48, "e": 2, "post": 1, "ldx": 1, "g0": 5, "km2": 38.5, "cm2": 2.06, "cm1": 1.33, "hp32": 346.7,
        "hp16": 170, "hpo": 8, "occ_sfu_fp32": 4, "occ_sfu_fp16": 8, "fwd": 3, "lat_vsqrt_fp32": 17,
        "lat_vsqrt_fp16": 22,
    }  # fmt: skip


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


Errors = dict[str, list[float]]


def varied(table: str, key: str, step: Decimal) -> VectorFunctionTarget:
    """A5 with one parameter a step away."""
    timing = A5.timing
    facts = timing.memory_floor["two_loads"] if table == "two_loads" else getattr(timing, table)
    changed = facts.model_copy(update={key: getattr(facts, key) + step})
    update = {"memory_floor": {"two_loads": changed}} if table == "two_loads" else {table: changed}
    return A5.model_copy(update={"timing": timing.model_copy(update=update)})


def by_operation(target: VectorFunctionTarget) -> Errors:
    groups: Errors = {}
    for row in assess(target, read_table(FILE)).rows:
        if not wide_select(row):
            groups.setdefault(row.row.label, []).append(abs(row.error))
    return groups


@lru_cache
def shipped_errors() -> Errors:
    return by_operation(A5)


def mean(errors_of: Errors, without: str | None = None) -> float:
    return fmean(error for label, found in errors_of.items() if label != without for error in found)


@pytest.mark.parametrize(
    ("table", "key", "step"),
    [
        ("loads", "second_load_cycles", Decimal("0.5")),
        ("loads", "post_update_cycles", Decimal("0.5")),
        ("two_loads", "start_cycles", Decimal(1)),
        ("two_loads", "trip_cycles", Decimal("0.04")),
        *(
            [
                ("memory_path", "trip_cycles", Decimal("0.04")),
                ("loops", "turnaround_cycles", Decimal("0.25")),
                ("loops", "setup_cycles", Decimal("0.5")),
                ("loops", "row_loop_cycles", Decimal("0.5")),
                ("division", "overlap_cycles", Decimal(1)),
                ("launch", "startup_cycles", Decimal("0.5")),
            ]
            if os.environ.get("CASTSIM_THOROUGH") == "1"
            else []
        ),
    ],
)
def test_no_operation_drives_a_parameter(table: str, key: str, step: Decimal) -> None:
    """Whichever operation is left out, the others choose the shipped value or find none much better.

    The values come from the published fit, rounded; a step away nothing gains more than 0.05 percentage points.
    """
    shipped = shipped_errors()
    for there in (varied(table, key, step), varied(table, key, -step)):
        away = by_operation(there)
        for label in shipped:
            assert mean(away, label) >= mean(shipped, label) - 0.05, (label, there)


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
            found.append((row, simulated(row, A5)))
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
        assert abs(simulated(row, older) / row.cycles - 1) < 0.04
        assert simulated(row, A5) < row.cycles / 4
    one = next(row for row in benchmark() if row.operation == "tadds" and row.vectors == 1)
    assert simulated(one, older) == simulated(one, A5)
