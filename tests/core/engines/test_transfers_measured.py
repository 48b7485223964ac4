"""Transfers against what chips and the vendor's simulator took: single ones, on one core and on many, whole kernels.

Expected values are the published ones, and exact arithmetic on the figures of docs/reference/a2a3.md section 6.3 and
docs/reference/a5.md section 8.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from math import ceil, floor
from statistics import fmean

import pytest
from kit.engine_trees import load, lowered, program, singly, store
from kit.paths import TESTS
from tools.accuracy.test_accuracy_operations import RULE, timed

from castsim.engines import simulate
from castsim.execution.pipe_operations import (
    FlagSignal,
    FlagWait,
    PipeBarrier,
    Placeholder,
    ScalarWork,
    Transfer,
)
from castsim.execution.transfer_timing import SharedMemory, moved_bytes, touched_bytes
from castsim.execution.tree import Access, Block, GlobalSpace, Tree, loop_of
from castsim.isa.errors import CastsimError
from castsim.isa.formats import format_named
from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS
from castsim.targets.description import with_cores, with_options
from castsim.targets.loader import SHIPPED, Target, load_target
from castsim.tools.accuracy.accuracy_assessment import assess_row
from castsim.tools.accuracy.measured_rows import MeasuredRow, read_table

HERE = TESTS
A2A3, A5 = load_target("a2a3"), load_target("a5")
SIMULATOR = with_options(A5, {"transfer_sharing": "simulator"})
with (SHIPPED / "measured_transfers.csv").open(newline="", encoding="utf-8") as _file:
    MEASURED = tuple(csv.DictReader(_file))
ENGINES = pytest.mark.parametrize("engine", ["event", "fast"])


def alone(transfer: Transfer, target: Target, engine: str = "event") -> int:
    """Cycles of a transfer without the one that issues it."""
    return simulate(singly(transfer), target, engine=engine).total - 1


@ENGINES
@pytest.mark.parametrize("row", [row for row in MEASURED if row["target"] == "a2a3" and row["cores"] == "1"])
def test_fitted_points_of_chips(row: Mapping[str, str], engine: str) -> None:
    make = load if row["direction"] == "load" else store
    found = alone(make(0, int(row["bytes"])), with_cores(A2A3, row["cores"]), engine)
    assert found == pytest.approx(float(row["measured_cycles"]), rel=0.005)


def tiles_on_all_cores(size: int, buffers: int, **options: str) -> float:
    """Cycles between two tiles of a kernel on 48 cores: two loads and a store of a third of the bytes, many times."""
    target = with_options(A2A3, {"cores": 48, **options})
    third, steps = size // 3, []
    for k in range(buffers):
        steps += [FlagSignal("MTE3", "MTE2", k)]
    for k in range(40):
        buffer = k % buffers
        steps += [FlagWait("MTE2", "MTE3", buffer), load(0, third), load(0, third), FlagSignal("MTE2", "MTE3", buffer)]
        steps += [FlagWait("MTE3", "MTE2", buffer), store(0, third), FlagSignal("MTE3", "MTE2", buffer)]
    stores = [each.end for each in simulate(singly(*steps), target).operations if each.name == "store y"]
    return (stores[-1] - stores[-21]) / 20


def test_global_memory_of_48_cores() -> None:
    """Double buffered, one total for both directions explains a kernel; without, cores would have to be out of step."""
    rows = {
        (int(row["bytes"]), float(row["measured_cycles"]), "past L2" in row["source"]): row["source"]
        for row in MEASURED
        if row["target"] == "a2a3" and row["direction"] == "both"
    }
    assert len(rows) == 4
    for (size, measured, past), source in rows.items():
        options = {"global_memory": "past_l2"} if past else {}
        found = tiles_on_all_cores(size, 2 if "double" in source else 1, **options)
        assert found / measured - 1 == pytest.approx(0, abs=0.05 if "double" in source else 0.36)


# What one core has to itself is the start-up and rate of its own path; of the total, an equal part.
PATHS = (
    (A2A3, load, 207, Fraction(57), 1610),
    (A2A3, store, 198, Fraction(85), 1610),
    (A5, load, 90, Fraction(50), 3100),
    (A5, store, 180, Fraction(115, 2), 3100),
)


@ENGINES
@pytest.mark.parametrize("cores", [1, 2, 7, 14, 15, 33, 48])
@pytest.mark.parametrize("size", [32, 1000, 4096, 60000])
def test_the_longer_of_own_path_and_part_of_the_total_counts(size: int, cores: int, engine: str) -> None:
    for chip, make, startup, rate, total in PATHS:
        last = floor((-(-size // 32) - 1) * 32 / rate)
        least = 0 if chip is A2A3 else 13 if make is load else 10
        own = max(least, floor(size / rate + Fraction(1, 2)), last + 1)
        # GB/s over 1.85 GHz are bytes a cycle.
        part = ceil(size * cores * Fraction(185, 100 * total)) if cores > 1 else 0
        found = alone(make(0, size), with_cores(chip, cores), engine) - startup
        # Without a bottleneck in memory the last block still takes its turn.
        assert max(own, part) <= found <= max(own, part) + 1


def streams(loads: int, stores: int, size: int = 16384) -> list[Transfer]:
    """So many loads and stores, all asked for at once."""
    return [load(0, size)] * loads + [store(0, size)] * stores


@ENGINES
@pytest.mark.parametrize("cores", [28, 48, 64, 72])
def test_loads_and_stores_share_one_total(cores: int, engine: str) -> None:
    """Two directions at once take as long as all their bytes at the total; each gets half while both have some."""
    target = with_cores(A5, cores)
    part = Fraction(16384 * cores * 185, 310_000)
    both = simulate(singly(*streams(8, 8)), target, engine=engine)
    assert 0 <= both.total - 16 * part <= 280  # and the latencies of the first load and the last store
    ends = {pipe: max(each.end for each in both.operations if each.pipe == pipe) for pipe in ("MTE2", "MTE3")}
    assert ends["MTE2"] == pytest.approx(ends["MTE3"] - 180, rel=0.06)
    # Loads that outlast the stores have the total to themselves then, up to the rate of their path.
    uneven = simulate(singly(*streams(12, 4)), target, engine=engine)
    stored = max(each.end for each in uneven.operations if each.pipe == "MTE3") - 180
    assert stored == pytest.approx(8 * part, rel=0.05)
    rate = 16384 / part
    assert uneven.total == pytest.approx(stored + (16 * 16384 - stored * rate) / min(50, rate), rel=0.02)
    causes = {str(cause): cycles for cause, cycles in both.pipes["MTE2"].causes.items() if cycles}
    assert causes["busy"] == 8 * 328
    assert causes["memory bandwidth"] == pytest.approx(ends["MTE2"] - 8 * 328 - 91, abs=2)


def copying(tiles: int) -> Tree:
    """A load and a store of adjacent tiles of 16 KiB, in a loop."""
    x, y = (Access(GlobalSpace.of(name), 0, 16384, write=name == "y") for name in "xy")
    return program(*loop_of(tiles, lambda k: Block((
        lowered(0, load(0, 16384), accesses=(x.shifted(16384 * k),)),
        lowered(1, store(16384, 16384), accesses=(y.shifted(16384 * k),)),
    ))))  # fmt: skip


@pytest.mark.parametrize(
    ("touched", "options", "terabytes"),
    [
        (512, {}, "3.1"),
        (512, {"global_memory": "slower"}, "1.42"),
        (32, {"global_memory": "slower"}, "1.42"),
        (512, {"global_memory": "slower", "working_set": "resident"}, "1.42"),
        (64, {"global_memory": "slower", "working_set": "resident"}, "5.4"),
        # 96 of the 160 MiB between all and nothing are left: 60 % at 5.4, 40 % at 1.42 TB/s.
        (128, {"global_memory": "slower", "working_set": "resident"}, 1 / (0.6 / 5.4 + 0.4 / 1.42)),
    ],
)
def test_what_a_launch_touches_on_all_cores_decides_where_it_is(touched: int, options: dict, terabytes: float) -> None:
    tree = copying(touched * 2**20 // 2**15 // 64)
    target = with_options(A5, {"cores": 64, **options})
    assert moved_bytes(tree) == touched_bytes(tree) == touched * 2**20 // 64
    found = SharedMemory.of(tree, target)
    assert found is not None
    assert float(found.total) == pytest.approx(1000 * float(terabytes), rel=1e-6)
    times = [simulate(tree, target, engine=engine).total for engine in ("fast", "event") if touched < 128]
    for cycles in times:
        assert touched * 2**20 / cycles * 1.85 / 1000 == pytest.approx(float(terabytes), rel=0.05)


LAUNCHES = read_table(SHIPPED / "a5_measured_launches.csv").rows


@pytest.mark.parametrize("row", LAUNCHES, ids=lambda row: f"{row.label} {row.name}")
def test_launches_on_silicon(row: MeasuredRow) -> None:
    """Memory bounds them, or the launch interval, which is longer for a kernel with three arguments."""
    error = assess_row(A5, row).error
    assert abs(error) <= 12 or (row.label, row.cells["micros"]) == ("launch MXFP4", "8.61")


def test_the_older_convention_belongs_to_the_judged_rows() -> None:
    assert alone(load(0, 65536), A2A3.measured_as("transfers")) == 776
    assert alone(load(0, 65536), A2A3) == 207 + 1150


SHARING = {  # start-up and bytes per cycle of loads, then of stores; least cycles of each
    "pair": ((90, 50, 13), (180, Fraction(115, 2), 10)),
    "alone": ((90, 100, 13), (180, 115, 10)),
    "simulator": ((440, 31, 0), (0, 31, 0)),
}


@ENGINES
@pytest.mark.parametrize("sharing", SHARING)
@pytest.mark.parametrize("size", [32, 500, 640, 8192, 30000])
def test_how_transfers_share(sharing: str, size: int, engine: str) -> None:
    target = with_options(A5, {"transfer_sharing": sharing})
    for make, (startup, rate, least) in zip((load, store), SHARING[sharing], strict=True):
        last = floor((-(-size // 32) - 1) * 32 / Fraction(rate))
        stream = max(least, floor(size / Fraction(rate) + Fraction(1, 2)), last + 1)
        assert alone(make(0, size), target, engine) == startup + stream


def apart(width: int, bursts: int, pitch: int) -> Transfer:
    return Transfer("MTE2", True, "x", 0, pitch, 0, -(-width // 32) * 32, bursts, width)


@ENGINES
@pytest.mark.parametrize(
    ("width", "moved"), [(32, 64), (96, 192), (127, 254), (128, 128), (160, 256), (256, 256), (320, 384)]
)
def test_rows_that_lie_apart_move_in_whole_transactions(width: int, moved: int, engine: str) -> None:
    """A row below 128 bytes at half the rate, a longer one as so many transactions of 128."""
    assert alone(apart(width, 200, 4096), A5, engine) == 90 + floor(Fraction(200 * moved, 50) + Fraction(1, 2))
    assert alone(apart(width, 200, width), A5, engine) == 90 + floor(Fraction(200 * width, 50) + Fraction(1, 2))
    assert alone(apart(width, 1, 4096), A5, engine) == 90 + max(13, floor(Fraction(width, 50) + Fraction(1, 2)))


LOADS = {
    1: "tabs tnot trelu tneg tlog tadds tmaxs tmins tshls tshrs trecip tcmps ttrans",
    2: "tadd tsub tmul tmax tmin tand tdiv taxpy tpartadd tpartmul tpartmax tpartmin tcmp",
}
"""Operations of the benchmark that castsim has, by the tiles of the source's shape that their kernels load."""


def rows_of_kernels() -> Iterator[tuple[dict[str, str], Sequence[tuple[int, int]], tuple[int, int]]]:
    """Yield rows of the benchmark, with rows and row bytes of what is loaded and of what is stored."""
    with (HERE / "vectors" / "a5_benchmark.csv").open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            operation, height, width = row["operation"], int(row["valid_rows"]), int(row["valid_cols"])
            count = next((n for n, names in LOADS.items() if operation in names.split()), 0)
            expands = operation.startswith("tcolexpand") and operation != "tcolexpand"
            if count or expands or operation == "texpands":
                line = -(-width * format_named(row["src"]).storage_bits // 8)
                loads = [(height, line), (1, line)] if expands else [(height, line)] * count
                result = -(-width // 8) if operation.startswith("tcmp") else line
                yield row, loads, (height, result)


def kernel(operation: str, loads: Sequence[tuple[int, int]], vector: int, result: tuple[int, int]) -> int:
    """Cycles of a kernel: loads, so many cycles of the vector pipe, a store, each behind the other."""
    steps = [apart(line, height, line) for height, line in loads]
    flags = [FlagSignal("MTE2", "V", 0), FlagWait("V", "MTE2", 0)]
    done = [FlagSignal("V", "MTE3", 0), FlagWait("MTE3", "V", 0)]
    height, line = result
    out = Transfer("MTE3", False, "y", 0, line, 0, -(-line // 32) * 32, height, line)
    assert SIMULATOR.kernel_launch is not None
    found = simulate(singly(*steps, *flags, Placeholder("op", "V", vector), *done, out), SIMULATOR)
    return found.total + SIMULATOR.kernel_launch.of([VECTOR_OPERATIONS[operation].kind])


def off(row: dict[str, str], cycles: int) -> float:
    """How far a kernel with so many cycles of the vector pipe is from the published one, as a share of that."""
    loads, result = SHAPES[row["operation"], row["case"]]
    return abs(kernel(row["operation"], loads, cycles, result) / int(row["kernel_ticks"]) - 1)


SHAPES = {(row["operation"], row["case"]): (loads, result) for row, loads, result in rows_of_kernels()}


def test_whole_kernels_with_the_published_vector_cycles() -> None:
    """Nothing but transfers and launch is judged; rates and latency were read off other rows, the launch off these."""
    errors: dict[str, list[float]] = {}
    for row, _, _ in rows_of_kernels():
        errors.setdefault(row["operation"], []).append(off(row, int(row["simd_cycles"])))
    every = [error for found in errors.values() for error in found]
    assert len(every) >= 150
    assert fmean(every) <= 0.07
    plain = [error for operation in ("tadd", "tabs", "tnot", "tdiv", "tlog", "taxpy") for error in errors[operation]]
    assert fmean(plain) <= 0.06


def test_whole_kernels_with_simulated_vector_cycles() -> None:
    errors: dict[bool, list[float]] = {True: [], False: []}
    published = {(row["operation"], row["case"]): row for row, _, _ in rows_of_kernels()}
    for row, cycles in timed(RULE):
        errors["colexpand" in row.operation].append(off(published[row.operation, row.case], cycles))
    assert fmean((*errors[True], *errors[False])) <= 0.07
    assert len(errors[False]) >= 50
    assert fmean(errors[False]) <= 0.08
    assert fmean(errors[True]) <= 0.05


def test_rates_of_the_simulator() -> None:
    """Differences of published kernels that differ in one amount only; three rows are those that the rate is of."""
    for row in MEASURED:
        if row["target"] == "a5":
            error = int(row["bytes"]) / 31 / float(row["measured_cycles"]) - 1
            assert abs(error) < (0.01 if row["fitted"] == "yes" else 0.19), row


@pytest.mark.parametrize("cores", [0, -1, 49, "x", "", "1.5", True, "٣", 10**30])
def test_cores_that_are_none_are_refused(cores: int | str) -> None:
    with pytest.raises(CastsimError) as caught:
        with_cores(A2A3, cores)
    assert tuple(caught.value.legal) == ("1 to 48",)


@ENGINES
def test_successive_transfers_overlap_but_for_their_bytes(engine: str) -> None:
    """5000 bytes are 100 cycles of a load; of a store 86.96, rounded up. Each is issued a cycle after the other."""
    loads = simulate(singly(*[load(0, 5000) for _ in range(4)]), A5, engine=engine)
    assert [operation.end for operation in loads.operations] == [191, 291, 391, 491]
    stores = simulate(singly(*[store(0, 5000) for _ in range(3)]), A5, engine=engine)
    assert [operation.end for operation in stores.operations] == [1 + 87 + 180, 1 + 174 + 180, 1 + 261 + 180]
    pipe = {str(cause): cycles for cause, cycles in stores.pipes["MTE3"].causes.items() if cycles}
    assert pipe == {"empty": 1, "busy": 261, "memory latency": 180}


@ENGINES
def test_memory_is_asked_as_soon_as_a_transfer_could_begin(engine: str) -> None:
    """A load issued 50 cycles after another, whose 13 cycles of bytes end at 104, is answered at 51 + 1 + 90."""
    late = [ScalarWork("arithmetic") for _ in range(50)]
    delayed = simulate(singly(load(0, 32), *late, load(64, 32)), A5, engine=engine)
    assert [operation.end for operation in delayed.operations if operation.pipe == "MTE2"] == [104, 52 + 90 + 13]
    # Behind a barrier, or a flag, memory is asked no earlier.
    fenced = simulate(singly(load(0, 5000), PipeBarrier("MTE2"), load(64, 5000)), A5, engine=engine)
    assert fenced.total == 191 + 90 + 100
    flagged = (load(0, 5000), Placeholder("op", "V", 150), FlagSignal("V", "MTE2", 0), FlagWait("MTE2", "V", 0))
    signalled = simulate(singly(*flagged, load(64, 5000)), A5, engine=engine)
    assert signalled.total == 2 + 150 + 90 + 100  # the placeholder is issued second, and ends at 152


@ENGINES
def test_a_flag_behind_a_store_waits_for_memory(engine: str) -> None:
    flag = FlagSignal("MTE3", "MTE2", 0), FlagWait("MTE2", "MTE3", 0)
    timing = simulate(singly(store(0, 5000), *flag, load(0, 5000)), A5, engine=engine)
    assert timing.total == 1 + 87 + 180 + 90 + 100


def test_a_target_without_cores_says_so() -> None:
    with pytest.raises(CastsimError, match="no source documents"):
        with_options(load_target("goya"), {"cores": 2})
