"""Time of A5's vector operations: the published model where it speaks, small cases by hand where it does not.

Facts in cycles, as in targets/a5.toml: start-up 22, loop set-up 2, row loop 0.5, post-update 1 per load, second load 1,
load to use 9 - 3, instruction to use its latency - 3, store 9, drain 12. Results are rounded half up.
"""

from __future__ import annotations

import pytest
from a5_cases import A5
from function_times import timed
from function_works import function_of, lanewise, tile, with_kind, work_cycles, work_of
from published_model_a5 import KERNELS, Inputs, cycles, precise_division
from test_function_work import ELEMENTWISE, KINDS, name

from castsim.estimating.operation_estimates import estimate_tile_operation
from castsim.execution.tiles import ResolvedTileOp
from castsim.execution.tree import Block
from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS
from castsim.targets.options import with_options
from castsim.timing import Cause

USE, END = 6, 9 + 12
ONE_TRIP, LOOP, ROWS = 22, 24, 24.5
SHAPES = [
    (1, 1),
    (1, 2),
    (1, 5),
    (1, 20),
    (2, 1),
    (2, 2),
    (2, 10),
    (3, 3),
    (3, 20),
    (10, 1),
    (10, 2),
    (10, 10),
    (20, 20),
]


def rounded(exact: float) -> int:
    return int(exact + 0.5)


# ------------------------------------------------------------------------------------------------ the published model


@pytest.mark.parametrize("row", ELEMENTWISE, ids=name)
def test_elementwise_kernels_take_the_time_of_the_published_model(row: dict[str, str]) -> None:
    """Equal but for the memory floors, which meet the ports of the buffer here: up to 3 cycles or 2.5 %."""
    flat = row["variant"].startswith("1D")
    for fmt, bits in (("f32", 32), ("f16", 16)):
        kernel = Inputs.of(row, bits)
        if not kernel.latencies:
            continue  # the sheet has no latency
        for rows, trips in SHAPES:
            if flat != (rows == 1):
                continue
            work = lanewise(row["op"].lower(), fmt, rows, trips * 2048 // bits, 0 if flat else 16)
            wanted, found = cycles(kernel, rows, trips), work_cycles(work, with_kind(KINDS[row["variant"]]))
            bound_by_memory = not kernel.ports and trips > 3
            allowed = max(3, wanted * 0.025) if bound_by_memory else 0
            assert abs(found - wanted) <= allowed, (fmt, rows, trips)


@pytest.mark.parametrize("fmt", ["f32", "f16"])
@pytest.mark.parametrize("row", [row for row in KERNELS if "high_precision" in row["op"]], ids=name)
def test_high_precision_division_takes_the_time_of_the_published_model(row: dict[str, str], fmt: str) -> None:
    bits = 32 if fmt == "f32" else 16
    kernel = Inputs(int(row["m2_ld"]), 1, int(row["m2_post"]), (), (), row["variant"].startswith("1D"))
    target = with_options(with_kind(KINDS[row["variant"]]), {"division_algorithm": "high_precision"})
    for rows, trips in SHAPES:
        if kernel.flat != (rows == 1) or rows * trips > 100:
            continue
        work = lanewise("trecip", fmt, rows, trips * 2048 // bits, 0 if kernel.flat else 16)
        # A row loop takes 0.5 here, as fitted to the casts, and 1 there.
        found, wanted = work_cycles(work, target), precise_division(kernel, bits, rows, trips)
        assert found == wanted or (rows > 1 and found == wanted - 1), (rows, trips)


def test_selects_of_bytes_take_the_time_of_the_published_model() -> None:
    row = next(row for row in KERNELS if row["op"] == "TSEL" and row["m2_f"])
    kernel = Inputs.of(row, 32)
    for rows, trips in SHAPES:
        if rows == 1 or trips < 10:
            found = work_cycles(lanewise("tsel", "i8", rows, trips * 256, 0 if rows == 1 else 128))
            # Two cycles per trip hide 1.5 of the turnaround here, 1.25 there.
            assert abs(found - cycles(kernel, rows, trips)) <= 1 + rows / 4, (rows, trips)


# ----------------------------------------------------------------------------------------------------- cases by hand


def reduced(rows: int) -> object:
    return tile("f32", rows, 8, (rows, 1))


@pytest.mark.parametrize(
    ("work", "exact"),
    [
        # Load to store without an instruction between them.
        (work_of("tmov", tile("f32", 1, 64), tile("f32", 1, 64)), ONE_TRIP + USE + END),
        # Three rows of one trip; rows of two: a turnaround of 5 between them, 1.33 on the memory path.
        (work_of("tmov", tile("f32", 3, 64), tile("f32", 3, 64)), ROWS + 2 + USE + END),
        (work_of("tmov", tile("f32", 3, 128), tile("f32", 3, 128)), ROWS + 2 * 7 + 1 + USE + 1.33 + END),
        # One row of four trips: sums 22 - 3, then accumulations 3 apart, the last one 7 - 3 before the store.
        (work_of("trowsum", reduced(1), tile("f32", 1, 256)), LOOP + 1 + USE + 19 + 3 * 3 + 4 + END),
        # Maxima: 16 - 3, 2 apart, 6 - 3.
        (work_of("trowmax", reduced(1), tile("f32", 1, 256)), LOOP + 1 + USE + 13 + 3 * 2 + 3 + END),
        # Rows overlap: the second begins two trips and a turnaround after the first.
        (work_of("trowsum", reduced(2), tile("f32", 2, 128)), ROWS + 1 + 7 + USE + 19 + 3 + 4 + END),
        # Single trips per row: one cycle each.
        (work_of("trowsum", reduced(8), tile("f32", 8, 64)), ROWS + 1 + 7 + USE + 19 + 4 + END),
        # Two vectors of four rows: four trips and a turnaround, then accumulations 3 apart.
        (work_of("tcolsum", tile("f32", 1, 128), tile("f32", 4, 128)), ROWS + 9 + USE + 3 * 3 + 4 + END),
        # The element of the row is loaded before the first trip, whose own load is one cycle later.
        (work_of("trowexpandmul", tile("f32", 4, 64), tile("f32", 4, 64), tile("f32", 4, 8)),
         ROWS + 3 + 1 + USE + 5 + END),
        # Narrow rows: a flat loop with two loads per trip, 2.06 cycles per trip at least (38.5 and 41.2 for 20).
        (work_of("trowexpandmul", tile("f32", 4, 32), tile("f32", 4, 32), tile("f32", 4, 8)),
         LOOP + 3 + 1 + USE + 5 + END),
        # A column vector's element is loaded, then copied to all lanes.
        (work_of("trowexpandmul", tile("f32", 8, 32), tile("f32", 8, 32), tile("f32", 8, 1, layout="col_major")),
         LOOP + 7 + 1 + USE + 3 + 5 + END),
        # exp(a - v): 7 - 3, then 16 - 3 at two ports of 4 cycles; two rows of one trip.
        (work_of("tcolexpandexpdif", tile("f32", 2, 64), tile("f32", 2, 64), tile("f32", 1, 64)),
         ROWS + 2 + 1 + 1 + USE + 4 + 13 + END),
        # Copy two rows, two pads with a flush each, four vectors below: one store per cycle from the first row on.
        (work_of("tfillpad", tile("f32", 4, 128), tile("f32", 4, 128, (2, 64))), ROWS + USE + 2 + 4 + 4 - 1 + END),
        # A mask for two vectors is split (7.5 - 3); two selects (6 - 3), two stores.
        (lanewise("tsel", "f32", 1, 128), ONE_TRIP + USE + 4.5 + 3 + 1 + END),
        # Such trips do not overlap: load 9 and select 6 apart.
        (lanewise("tsel", "f32", 1, 384), LOOP + 2 * 15 + USE + 4.5 + 3 + 1 + END),
        # Mask, then the one operand a cycle later.
        (lanewise("tsels", "i8", 1, 256), ONE_TRIP + 1 + USE + 3 + END),
        # Scalar elements: 20 cycles each, 17 until the store of the last.
        (lanewise("tdivs", "i32", 1, 64), LOOP + 63 * 20 + USE + 17 + END),
    ],
)  # fmt: skip
def test_small_cases_by_hand(work: ResolvedTileOp, exact: float) -> None:
    assert work_cycles(work) == rounded(exact)


def test_selects_that_serialise() -> None:
    """2n + 1 branches of 39.5 per row; the last trip's loads are under way meanwhile."""
    work = work_of("tcolexpandmul", tile("f32", 3, 128), tile("f32", 3, 128), tile("f32", 1, 128))
    target = with_options(A5, {"expansion_select": "serialising"})
    assert work_cycles(work, target) == rounded(ROWS + 2 + 3 * 5 * 39.5 + END)


# ----------------------------------------------------------------------------------------------------- of all of them


@pytest.mark.parametrize("operation", [rule.mnemonic for rule in A5.tile_operations])
def test_more_rows_or_columns_never_take_less(operation: str) -> None:
    types = A5.tile_operation(operation).types
    fmt = "f32" if "f32" in types else types[-1]
    found = {}
    for rows in (1, 2, 5):
        for cols in (64, 128, 320, 704):
            found[rows, cols] = estimate_tile_operation(operation, fmt, rows, cols, target=A5).cycles
    assert min(found.values()) >= ONE_TRIP + 12
    for (rows, cols), taken in found.items():
        assert all(other >= taken - 3 for (r, c), other in found.items() if r >= rows and c >= cols), (rows, cols)


@pytest.mark.parametrize("operation", ["tadd", "texp", "trowsum", "trowexpandmul", "tcolsum", "tfillpad", "tsel"])
def test_every_cycle_has_its_cause_and_runs_are_reproducible(operation: str) -> None:
    for rows, cols in ((1, 64), (3, 320)):
        first = estimate_tile_operation(operation, "f32", rows, cols, target=A5)
        assert estimate_tile_operation(operation, "f32", rows, cols, target=A5) == first
    function = function_of(lanewise("tadd", "f32", 20, 640, 32))
    timing = timed(Block((function,)))
    for pipe in timing.pipes.values():
        assert sum(pipe.causes.values()) == timing.total
    assert timing.pipes["V"].causes[Cause.MEMORY_BANDWIDTH] > 0
    assert {"timing.memory_floor.two_loads", "timing.loads", "arithmetic.vadd"} <= timing.facts


def test_a_tail_costs_nothing() -> None:
    """Rule 8: the same trips take the same time."""
    for operation in ("tadd", "tmuls", "texp", "trowsum"):
        full = estimate_tile_operation(operation, "f32", 3, 224, target=A5, valid_cols=192).cycles
        assert estimate_tile_operation(operation, "f32", 3, 224, target=A5, valid_cols=129).cycles == full


def test_loops_move_every_tile() -> None:
    function = function_of(lanewise("tsel", "f32", 3, 320))
    deltas = tuple(range(32, 32 * len(function.addresses) + 32, 32))
    moved = function.shifted(deltas)
    assert moved.addresses == tuple(a + b for a, b in zip(function.addresses, deltas, strict=True))
    assert function.shifted((0,) * len(deltas)) is function


def test_waits_of_the_last_trip_are_told() -> None:
    def causes(work: ResolvedTileOp) -> dict[Cause, int]:
        (operation,) = [one for one in timed(Block((function_of(work),))).operations if one.pipe == "V"]
        return dict(operation.causes)

    # Twenty exponentials, sent one per cycle, pass two ports of 4 cycles: the last one at 4 * 9 + 1 instead of 19.
    assert causes(lanewise("texp", "f32", 1, 1280))[Cause.PORT] == 37 - 19
    # Four sums of a row, ready one per cycle, are accumulated 3 cycles apart.
    assert causes(work_of("trowsum", reduced(1), tile("f32", 1, 256)))[Cause.DEPENDENCE] == 3 * 3 - 3
    assert Cause.PORT not in causes(lanewise("tadd", "f32", 1, 1280))


LEGAL = [(rule.mnemonic, fmt) for rule in A5.tile_operations for fmt in (*rule.types, *rule.library_types)]


@pytest.mark.parametrize(("operation", "fmt"), LEGAL)
def test_every_legal_operation_takes_time(operation: str, fmt: str) -> None:
    """On every element type, full tiles and tiles with a ragged edge; scratch only where the text demands it.

    Sorted lists and boxes are whole pairs, and a block quantisation has no edge: all of its groups are valid.
    """
    chip = with_options(A5, {"library_types": "accept"})
    ragged = {"tmrgsort": 272, "tquant.mx": 384, "tmov.zz": 258}.get(operation, 259)
    for rows, cols, valid_cols in ((1, 128, 128), (5, 384, ragged)):
        found = estimate_tile_operation(operation, fmt, rows, cols, target=chip, valid_cols=valid_cols)
        assert found.cycles >= ONE_TRIP + 12
        assert sum(found.causes.values()) >= found.cycles


def test_every_operation_of_the_text_has_a_kernel() -> None:
    assert {rule.mnemonic for rule in A5.tile_operations} == set(VECTOR_OPERATIONS)
