"""Every timing fact of A5 that only other operations than casts have changes the cycles of some of them."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest
from a5_cases import A5
from function_works import lanewise, tile, work_cycles, work_of

from castsim.execution.tiles import ResolvedTileOp
from castsim.targets.options import with_options
from castsim.targets.vector_function import VectorFunctionTarget

TABLES = ("loads", "division", "special_function")
PRECISE = with_options(A5, {"division_algorithm": "high_precision"})


def with_table(table: str, changes: dict[str, object], target: VectorFunctionTarget = A5) -> VectorFunctionTarget:
    """The target with other values in one timing table."""
    facts = getattr(target.timing, table).model_copy(update=changes)
    return target.model_copy(update={"timing": target.timing.model_copy(update={table: facts})})


@pytest.mark.parametrize(
    ("table", "changes", "work"),
    [
        ("loads", {"per_cycle": 1}, lanewise("tadd", "f32", 3, 320, 32)),
        ("loads", {"second_load_cycles": Decimal(4)}, lanewise("tadd", "f32", 1, 64)),
        ("loads", {"post_update_cycles": Decimal(4)}, lanewise("texp", "f32", 1, 64)),
        ("special_function", {"ports": 1}, lanewise("texp", "f32", 1, 640)),
        ("special_function", {"port_cycles": {"f32": Decimal(5), "f16": Decimal(8)}}, lanewise("texp", "f32", 1, 640)),
        ("special_function", {"port_cycles": {"f32": Decimal(4), "f16": Decimal(9)}}, lanewise("texp", "f16", 1, 1280)),
    ],
    ids=str,
)  # fmt: skip
def test_timing_fact_is_read(table: str, changes: dict[str, object], work: ResolvedTileOp) -> None:
    assert work_cycles(work, with_table(table, changes)) > work_cycles(work)


def test_division_facts_are_read() -> None:
    known = A5.timing.division.trip_cycles
    for fmt in known:
        if fmt[0] == "i":  # no instruction divides integers
            divided = lanewise("tdiv", fmt, 1, 128)
            slower = with_table("division", {"trip_cycles": {**known, fmt: known[fmt] + 10}})
            assert work_cycles(divided, slower) > work_cycles(divided)
            continue
        work = lanewise("trecip", fmt, 1, 128)
        slower = with_table("division", {"trip_cycles": {**known, fmt: known[fmt] + 10}}, PRECISE)
        assert work_cycles(work, slower) > work_cycles(work, PRECISE) > work_cycles(work)
        sooner = with_table("division", {"overlap_cycles": Decimal(10)}, PRECISE)
        assert work_cycles(work, sooner) == work_cycles(work, PRECISE) - 2


def test_the_floor_of_two_loads_is_read() -> None:
    work = lanewise("tadd", "f32", 20, 1280, 32)
    floor = A5.timing.memory_floor["two_loads"]
    for key in ("start_cycles", "trip_cycles"):
        slower = floor.model_copy(update={key: getattr(floor, key) + 1})
        timing = A5.timing.model_copy(update={"memory_floor": {"two_loads": slower}})
        assert work_cycles(work, A5.model_copy(update={"timing": timing})) > work_cycles(work)


# Where each instruction stands in a chain: an operation that has it.
USERS: dict[str, ResolvedTileOp] = {
    kernel.instructions[0]: lanewise(kernel.mnemonic, "f32", 1, 64)
    for kernel in A5.tile_operations
    if kernel.structure == "elementwise"
}
ROW = tile("f32", 4, 640)
COLUMN = tile("f32", 4, 8, (4, 1))
USERS |= {
    "vcmp": work_of("tcmp", tile("i8", 1, 64), tile("f32", 1, 64), tile("f32", 1, 64)),
    "vsel": lanewise("tsel", "i8", 1, 256),
    "pintlv": lanewise("tsel", "f32", 1, 128),
    "vcadd": work_of("trowsum", COLUMN, ROW),
    "vcmax": work_of("trowmax", COLUMN, ROW),
    "vcmin": work_of("trowmin", COLUMN, ROW),
    "vintlv_lanes": work_of("trowprod", COLUMN, ROW),
    "sdiv": lanewise("tdivs", "i32", 1, 64),
    "vci": replace(work_of("tci", tile("i32", 1, 64)), names_tmp=True),
    "vgather2": work_of("tgather", tile("f32", 1, 64), tile("f32", 1, 64), tile("i32", 1, 64)),
    "vsqz": replace(work_of("tgather.mask", tile("f32", 1, 64), tile("f32", 1, 128)), pattern="0101"),
    "vbitsort": work_of("tsort32", tile("f32", 1, 128), tile("f32", 1, 64), tile("u32", 1, 64)),
    "vmrgsort4": replace(
        work_of("tmrgsort", tile("f32", 1, 512), tile("f32", 1, 512)), scalars=((16, tile("i32", 1, 8).format),)
    ),
    "vscatter": work_of("ttrans", tile("f32", 64, 8), tile("f32", 8, 64)),
}


def with_arithmetic(mnemonic: str, **changes: object) -> VectorFunctionTarget:
    row = A5.arithmetic[mnemonic].model_copy(update=changes)
    return A5.model_copy(update={"arithmetic": {**A5.arithmetic, mnemonic: row}})


# Instructions of micro programs alone: see test_every_number.py.
@pytest.mark.parametrize("mnemonic", [name for name in A5.arithmetic if name in USERS])
def test_every_latency_of_the_table_is_read(mnemonic: str) -> None:
    row, work = A5.arithmetic[mnemonic], USERS[mnemonic]
    slower = with_arithmetic(mnemonic, latency_32=row.latency_32 + 20, latency_16=row.latency_16 + 20)
    assert work_cycles(work, slower) >= work_cycles(work) + 20


@pytest.mark.parametrize(
    "mnemonic", [name for name, row in A5.arithmetic.items() if row.held is not None and name in USERS]
)
def test_every_time_for_which_a_port_is_held_is_read(mnemonic: str) -> None:
    others = {
        "pintlv": lanewise("tsel", "f32", 1, 640),
        "vscatter": work_of("tconcat", tile("f32", 1, 128), tile("f32", 1, 64), tile("f32", 1, 64)),
    }
    work = others.get(mnemonic, USERS[mnemonic])
    assert work_cycles(work, with_arithmetic(mnemonic, held=Decimal(90))) > work_cycles(work)


@pytest.mark.parametrize("mnemonic", [name for name, row in A5.arithmetic.items() if row.again is not None])
def test_every_distance_of_accumulations_is_read(mnemonic: str) -> None:
    by_row = {"vadd": "trowsum", "vmax": "trowmax", "vmin": "trowmin"}
    work = work_of(by_row[mnemonic], COLUMN, ROW)
    assert work_cycles(work, with_arithmetic(mnemonic, again=Decimal(9))) > work_cycles(work)


def test_options_of_the_kernels_are_read() -> None:
    column = work_of("tcolexpandmul", tile("f32", 4, 640), tile("f32", 4, 640), tile("f32", 1, 640))
    pad = work_of("tfillpad", tile("f32", 4, 640), tile("f32", 4, 640, (4, 300)))
    for work in (column, pad):
        branched = with_options(A5, {"expansion_select": "serialising"})
        assert work_cycles(work, branched) > work_cycles(work) + 4 * A5.timing.branch.cycles
    wide = lanewise("tsel", "f32", 10, 640)
    assert work_cycles(wide, with_options(A5, {"predicate_interleave": "overlapped"})) < work_cycles(wide)
