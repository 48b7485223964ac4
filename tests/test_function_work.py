"""Kernels of A5's vector operations: their structure is that of the published table, operation by operation."""

from __future__ import annotations

import pytest
from a5_cases import A5
from function_works import function_of, lanewise, tile, with_kind, work_of
from published_model_a5 import KERNELS

from castsim.execution.dataflow.pipe_operations import ControlWrite
from castsim.execution.tiles import ResolvedTileOp
from castsim.isa.errors import IllegalError
from castsim.machines.vector_function.function_lowering import kernel_variant, lower_work
from castsim.machines.vector_function.function_operations import Compute, CountDown, Load, Nest, StoreLanes
from castsim.targets.vector_function import VectorFunctionTarget

ROWS, COLS = 4, 320
NO_FUNCTION = ("TLOAD", "TSTORE", "TRESHAPE")
KINDS = {"1D_POST_UPDATE": 0, "1D_NO_POST_UPDATE": 1, "2D_NO_POST_UPDATE": 0, "2D_POST_UPDATE": 4}
ELEMENTWISE = [
    row for row in KERNELS
    if (rule := A5.tile_operation(row["op"].split()[0].lower())) is not None
    and rule.structure == "elementwise"
    and "high_precision" not in row["op"]
]  # fmt: skip


def name(row: dict[str, str]) -> str:
    return f"{row['op']} {row['variant']}"


def kernel_case(row: dict[str, str]) -> tuple[ResolvedTileOp, VectorFunctionTarget]:
    """An operation that runs the kernel of a row, and the target with the kind under which it does."""
    op, variant = row["op"].lower(), row["variant"]
    if row in ELEMENTWISE:
        padding = 0 if variant.startswith("1D") else 16
        return lanewise(op, "f32", ROWS, COLS, padding), with_kind(KINDS[variant])
    if op == "tsel":
        return lanewise(op, "i8" if variant == "2D_DEFAULT" else "f32", ROWS, COLS * 2, 64), A5
    if op.startswith("trowexpand"):
        cols = COLS if variant.startswith("2D") else 32
        full = tile("f32", 8, cols)
        vector = tile("f32", 8, 1, layout="col_major") if "column-major" in variant else tile("f32", 8, 8)
        return work_of(op, full, full, vector), A5
    if op.startswith("trow"):
        return work_of(op, tile("f32", ROWS, 8, (ROWS, 1)), tile("f32", ROWS, COLS)), A5
    if op == "tcolexpandmul":
        full = tile("f32", ROWS, COLS + 16, (ROWS, COLS + 16 * ("D_POST" in variant)))
        return work_of(op, full, full, tile("f32", 1, COLS + 16, (1, full.valid_cols))), A5
    if op == "tfillpad":
        return work_of(op, tile("f32", 8, COLS), tile("f32", 8, COLS, (ROWS, 100))), A5
    return work_of(op, tile("f32", 8, COLS, (ROWS, COLS)), tile("f32", 8, COLS, (8, 100))), A5


CASES = [row for row in KERNELS if row["op"] not in NO_FUNCTION and "high_precision" not in row["op"]]


def mnemonics(text: str) -> list[str]:
    """The instructions of a cell: what stands in brackets is commentary."""
    return [word.split()[0] for word in text.split(";") if word.strip()]


def predicates(nest: Nest) -> int:
    made = [item for item in nest.trip if isinstance(item, CountDown)]
    masks = [item for item in nest.trip if isinstance(item, Load) and item.distribution.startswith("MASK")]
    split = [item for item in nest.trip if isinstance(item, Compute) and item.mnemonic in ("pintlv", "punpack")]
    return len(made) + len(masks) + len(split)


def data_loads(operations: tuple[object, ...]) -> list[Load]:
    return [item for item in operations if isinstance(item, Load) and not item.distribution.startswith("MASK")]


@pytest.mark.parametrize("row", CASES, ids=name)
def test_trip_is_that_of_the_table(row: dict[str, str]) -> None:
    work, target = kernel_case(row)
    nest = function_of(work, target).nests[0]
    computed = [item.mnemonic for item in nest.trip if isinstance(item, Compute)]
    assert [word for word in computed if word not in ("pintlv", "punpack")] == mnemonics(row["compute_per_trip"])
    assert len(data_loads(nest.trip)) == int(row["loads_per_trip"].split()[0])
    assert len(data_loads(nest.row)) == int(row["loads_per_row"].split()[0])
    assert sum(isinstance(item, StoreLanes) for item in nest.trip) == int(row["stores_per_trip"])
    assert predicates(nest) == int(row["pred_ops_per_trip"].split()[0])
    if row["op"] != "TFILLPAD":
        assert sum(isinstance(item, StoreLanes) for item in nest.close) == int(row["stores_per_row"])
    if row["m2_post"]:
        assert nest.post_update == (row["m2_post"] == "1")


@pytest.mark.parametrize("row", CASES, ids=name)
def test_load_and_store_modes_are_those_of_the_table(row: dict[str, str]) -> None:
    work, target = kernel_case(row)
    nest = function_of(work, target).nests[0]
    modes = {load.distribution.partition("_B")[0] for load in data_loads((*nest.row, *nest.trip))}
    stated = row["load_modes"] + " " + row["loads_per_row"]
    wanted = {mode for mode in ("NORM", "BLK", "BRC") if mode in stated} | ({"BRC"} if "unaligned" in stated else set())
    assert modes == wanted
    stores = [item for item in (*nest.trip, *nest.close) if isinstance(item, StoreLanes)]
    assert {item.distribution.partition("_B")[0] for item in stores} == {row["store_mode"].split(";")[0]}


@pytest.mark.parametrize("row", ELEMENTWISE, ids=name)
@pytest.mark.parametrize(("fmt", "per_trip"), [("f32", 64), ("f16", 128), ("i8", 256)])
def test_trips_of_elementwise_kernels(row: dict[str, str], fmt: str, per_trip: int) -> None:
    """256 bytes per trip; flat over rows and columns, or row by row."""
    flat = row["variant"].startswith("1D")
    for rows, cols in ((1, 1) if flat else (2, 256), (3, 320), (7, 832)):
        work = lanewise(row["op"].lower(), fmt, rows, cols, 0 if flat else 32)
        if row["op"] in ("TDIVS",) and fmt == "i8":
            continue  # integers take a scalar loop
        (nest,) = function_of(work, with_kind(KINDS[row["variant"]])).nests
        assert nest.elements == per_trip
        if flat:
            assert (nest.row_loop, nest.rows, nest.trips) == (False, 1, -(-rows * cols // per_trip))
        else:
            assert (nest.row_loop, nest.rows, nest.trips) == (True, rows, -(-cols // per_trip))


@pytest.mark.parametrize("row", [row for row in CASES if row["lat_fp32"]], ids=name)
def test_latencies_and_ports_are_those_of_the_table(row: dict[str, str]) -> None:
    names = mnemonics(row["compute_per_trip"])
    for kind, bits in (("fp32", 32), ("fp16", 16)):
        stated = [int(word) for word in row[f"lat_{kind}"].split(";") if word]
        if stated and row["variant"] != "pairs then remainder":
            assert [int(A5.latency(mnemonic, bits) or 0) for mnemonic in names] == stated
        ports = [int(word) for word in row[f"port_cycles_{kind}"].split(";") if word]
        special = [mnemonic for mnemonic in names if A5.arithmetic[mnemonic].port == "special"]
        held = A5.timing.special_function.port_cycles["f32" if bits == 32 else "f16"]
        assert [held] * len(special) == ports


def test_reductions_accumulate_at_the_stated_distance() -> None:
    for row in KERNELS:
        if "at least" in row["loop_carried"]:
            accumulate = mnemonics(row["compute_per_trip"])[-1]
            assert A5.arithmetic[accumulate].again == int(row["loop_carried"].split("at least ")[1].split()[0])
            reduce = mnemonics(row["compute_per_trip"])[0]
            assert (A5.arithmetic[reduce].port, A5.arithmetic[reduce].held) == ("serial", 1)


def test_nests_of_fillpad() -> None:
    """Copied: srcRows x ceil(srcCols/E); columns: srcRows x ceil((dstCols-srcCols)/E); rows: ceil(padRows*cols/E)."""
    work = work_of("tfillpad", tile("f32", 8, 320, (6, 320)), tile("f32", 8, 320, (4, 100)))
    copy, columns, rows = function_of(work).nests
    assert (copy.rows, copy.trips) == (4, 2)
    assert (columns.rows, columns.trips) == (4, -(-220 // 64))
    assert (rows.row_loop, rows.trips) == (False, 2 * 320 // 64)
    assert len([item for item in columns.close if isinstance(item, StoreLanes)]) == 1
    function = function_of(work)
    assert function.operand(columns.writes or 0) == work.dst.address + 400
    assert function.operand(rows.writes or 0) == work.dst.address + 4 * 320 * 4
    in_place = work_of("tfillpad_inplace", tile("f32", 8, 320), tile("f32", 8, 320, (8, 100)))
    (only,) = function_of(in_place).nests
    assert data_loads(only.trip) == []


def test_wide_selects_take_pairs_then_what_is_left() -> None:
    """floor(vectors/2) pairs per row, then one more vector per row if the count is odd; the tail is in either."""
    for cols, pairs, left in ((64, 0, 1), (128, 1, 0), (320, 2, 1), (640, 5, 0), (100, 1, 0), (130, 1, 1), (1, 0, 1)):
        nests = function_of(lanewise("tsel", "f32", 3, -(-cols // 8) * 8, 64, valid_cols=cols)).nests
        trips = [nest.trips for nest in nests]
        assert trips == [count for count in (pairs, left) if count], cols
        assert sum(nest.count for nest in nests) == cols


def test_sixteen_bit_sums_narrow_under_their_own_control_bits() -> None:
    work = work_of("trowsum", tile("i16", 4, 16, (4, 1)), tile("i16", 4, 256))
    items = lower_work(A5, work).items
    values = [item.value for item in items if isinstance(item, ControlWrite)]
    assert values == [1 << 60, 1 << 60 | 1 << 59, 1 << 60 | 1 << 59, 1 << 60]  # 60 is set from the start
    (nest,) = function_of(work).nests
    assert [item.mnemonic for item in nest.close if isinstance(item, Compute)] == ["vcvt"]
    assert len(lower_work(A5, work_of("trowsum", tile("f16", 4, 16, (4, 1)), tile("f16", 4, 256))).items) == 1


def test_eight_bit_row_maxima_convert_both_halves() -> None:
    (nest,) = function_of(work_of("trowmax", tile("i8", 4, 32, (4, 1)), tile("i8", 4, 512))).nests
    computed = [item.mnemonic for item in nest.trip if isinstance(item, Compute)]
    assert computed == ["vcvt", "vcvt", "vcmax", "vcmax", "vmax", "vcvt", "vmax"]


def test_pairs_of_rows_are_summed_until_one_is_left() -> None:
    """Seven rows: 3 pairs and the odd one onto the first sum, 1 pair and the odd one onto it: into the destination."""
    work = work_of("tcolsum", tile("f32", 1, 128), tile("f32", 7, 128), tmp=tile("f32", 4, 128), binary=True)
    function = function_of(work)
    shapes = [(nest.rows, nest.trips, nest.writes is None) for nest in function.nests]
    assert shapes == [(3, 2, False), (1, 2, False), (1, 2, True), (1, 2, True)]
    assert work.tmp is not None
    pair = function.nests[0]
    assert function.operand(pair.writes or 0) == work.tmp.address
    first, second = data_loads(pair.trip)
    assert (function.operand(first.operand), function.operand(second.operand)) == (0, 512)
    assert first.steps == second.steps == (1024, 256)


def test_the_broadcast_operand_may_be_either() -> None:
    full, vector = tile("f32", 8, 320), tile("f32", 8, 8)
    for sources in ((full, vector), (vector, full)):
        work = work_of("trowexpandsub", full, *sources)
        (nest,) = function_of(work).nests
        (once,) = data_loads(nest.row)
        spread = next(one for one in work.sources if one.cols == 8)
        assert function_of(work).operand(once.operand) == spread.address


@pytest.mark.parametrize(
    ("dst", "sources", "variant"),
    [
        (tile("f32", 4, 64), [tile("f32", 4, 64)], "1D_POST_UPDATE"),
        (tile("f32", 4, 64, (4, 63)), [tile("f32", 4, 64, (4, 63))], "2D_NO_POST_UPDATE"),
        (tile("f32", 1, 64, (1, 63)), [tile("f32", 1, 96, (1, 63))], "1D_POST_UPDATE"),
        (tile("f32", 4, 64), [tile("f32", 4, 96, (4, 64))], "2D_NO_POST_UPDATE"),
    ],
    ids=["full", "padded", "one row", "one padded"],
)
def test_variant_by_the_tiles(dst: object, sources: list[object], variant: str) -> None:
    """All tiles ValidCol = Cols, or all tiles Rows = 1."""
    assert kernel_variant(A5, work_of("texp", dst, *sources)) == variant


def test_validated_operations() -> None:
    validated = {rule.mnemonic: rule.validated for rule in A5.tile_operations}
    assert validated["tadd"] == ("f32",)
    assert validated["tsel"] == ("i8",)
    assert "f16" in validated["texp"]
    assert not validated["tmax"]
    assert not validated["trowsum"]


def test_operations_without_a_kernel_are_refused() -> None:
    fewer = A5.model_copy(update={"tile_operations": (A5.tile_operation("texp"),)})
    with pytest.raises(IllegalError, match="no kernel of pto") as caught:
        lower_work(fewer, lanewise("tlog", "f32", 1, 64))
    assert caught.value.legal == ("texp",)
