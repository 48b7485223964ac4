"""Estimates: equal to simulations of what is lowered, for shipped and for other facts, single shapes and arrays."""

from __future__ import annotations

import json
import os
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.engine_trees import a2a3

from castsim import estimate, run
from castsim.__main__ import main
from castsim.engines import simulate
from castsim.execution.timing import Cause
from castsim.isa.errors import CastsimError, IllegalError, ReadError, ScratchError, TileError
from castsim.isa.formats import Saturation, format_named
from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS
from castsim.isa.tpc.program import Slot
from castsim.machines.mechanisms import lowerer_of
from castsim.targets.description import with_options
from castsim.targets.loader import load_target
from castsim.targets.vector_function import VectorFunctionTarget
from castsim.targets.vliw import VliwTarget
from castsim.tools.estimate.cast_estimates import (
    SCALAR,
    CastShape,
    Estimate,
    Estimates,
    OperandPlacement,
    TileCastRequest,
    of_timing,
    timed_alone,
)
from castsim.tools.estimate.command import _LIMITS
from castsim.tools.estimate.operation_estimates import estimate_tile_operation
from castsim.tools.estimate.tile_estimates import TileEstimator, estimate_load, estimator_of
from castsim.tools.estimate.vliw_estimate import KernelEstimator
from castsim.tools.tpc_compiler.c_table import path_of

EXAMPLES = 5000 if "CASTSIM_THOROUGH" in os.environ else 250
A5 = load_target("a5")
assert isinstance(A5, VectorFunctionTarget)
BUNDLES = ("goya", "gaudi", "gaudib", "greco", "gaudi2")


def changed(**facts: dict[str, Any]) -> VectorFunctionTarget:
    """A5 with other timing facts: `launch={"startup_cycles": 3}`."""
    assert isinstance(A5, VectorFunctionTarget)
    update = {name: getattr(A5.timing, name).model_copy(update=values) for name, values in facts.items()}
    return A5.model_copy(update={"timing": A5.timing.model_copy(update=update)})


CHANGED: dict[str, tuple[Any, ...]] = {
    "a2a3": tuple(
        a2a3(**facts)  # type: ignore[arg-type]
        for facts in (
            {},
            {"vconv": (0, 1, 0)},
            {"vconv": (3, 1, 1)},
            {"vconv": (40, 7, 3)},
            {"vconv": (9, 2, 14), "vector_head": "always"},
            {"control_write_cycles": 30},
            {"issue_cycles": 5},
            {"synchronisation_cycles": 17},
            {"vconv": (2, 4, 0), "control_write_cycles": 2},
            {"vconv": (9, 1, 15)},
            {"vconv": (2, 3, 12), "control_write_cycles": 7},
        )
    ),
    "a5": (
        A5,
        A5,
        changed(launch={"startup_cycles": 0, "drain_cycles": 0}, access={"load_cycles": 30, "store_cycles": 1}),
        changed(port={"occupancy_cycles": {"vcvt": Decimal(2), "vtrc": Decimal(3), "vintlv": Decimal(1)}}),
        changed(loops={"turnaround_cycles": Decimal("0.25"), "turnaround_hidden_cycles": Decimal(0)}),
        changed(memory_path={"trip_cycles": Decimal("4.75")}, store_barrier={"cycles": Decimal("0.5")}),
        changed(branch={"cycles": Decimal("1.5")}, port={"store_cycles": Decimal("3.5")}),
        changed(scalar={"control_write_cycles": 40}, unpack_head={"waits": 5}),
    ),
}
"""The shipped facts and others: heads and tails of nothing; memory path, stores, converts or the scalar unit decide."""


@st.composite
def shapes(draw: st.DrawFn, name: str) -> CastShape:
    """A tile of up to some hundred repeats or trips, any valid region, strides of whole blocks for every format."""
    cols = 64 * draw(st.integers(1, 12) | st.integers(1, 300 if name == "a2a3" else 120))
    rows = draw(st.integers(1, 4) | st.integers(1, max(4, (40_000 if name == "a2a3" else 30_000) // cols)))
    further = st.sampled_from((0, 0, 0, 1, 2, 20)).map(lambda blocks: cols + 64 * blocks)
    stride = draw(further)
    dst_stride = draw(further if name == "a2a3" else st.just(stride) | st.sampled_from((cols, cols + 64)))
    valid_rows = draw(st.just(rows) | st.integers(0, rows))
    valid_cols = draw(
        st.just(cols) | st.integers(0, cols // 2).map(lambda half: 2 * half + (name == "a5") * (half & 1))
    )
    return CastShape(rows, stride, dst_stride, valid_rows, valid_cols, cols)


def simulated(target: Any, request: TileCastRequest, shape: CastShape) -> Estimate:
    """The reference: the cast placed, lowered, simulated."""
    lowerer = lowerer_of(target)
    return timed_alone(target, lowerer.cast(OperandPlacement.of(target, lowerer, request).cast(lowerer, shape)), "cast")


@pytest.mark.parametrize("name", CHANGED)
@settings(max_examples=EXAMPLES, deadline=None)
@given(data=st.data(), saturation=st.sampled_from((None, *Saturation)), scratch=st.booleans())
def test_an_estimate_is_the_simulation_of_the_cast(
    name: str, data: st.DataObject, saturation: Saturation | None, scratch: bool
) -> None:
    shape, target = data.draw(shapes(name)), data.draw(st.sampled_from(CHANGED[name]))
    rule = data.draw(st.sampled_from(target.casts))
    request = TileCastRequest(format_named(rule.src), format_named(rule.dst), None, saturation, scratch)
    arguments: dict[str, Any] = {
        "target": target,
        "saturation": saturation,
        "scratch": scratch,
        "row_stride": shape.src_stride,
        "dst_row_stride": shape.dst_stride,
        "valid_rows": shape.valid_rows,
        "valid_cols": shape.valid_cols,
    }
    try:
        expected = simulated(target, request, shape)
    except CastsimError as error:
        with pytest.raises(type(error)):
            estimate(rule.src, rule.dst, shape.rows, shape.cols, **arguments)
        return
    assert estimate(rule.src, rule.dst, shape.rows, shape.cols, **arguments) == expected


@pytest.mark.parametrize("steps", ["plain", "scaled", "via_i32", "chunked", "chunked_masked"])
def test_shipped_facts_have_a_closed_form_for_every_sequence(steps: str) -> None:
    src, dst = {
        "plain": ("f32", "f16"),
        "scaled": ("i32", "f16"),
        "via_i32": ("f32", "i16"),
        "chunked": ("f16", "i16"),
        "chunked_masked": ("f16", "i8"),
    }[steps]
    found = estimator_of("a2a3", src, dst, None, "off", steps not in ("plain", "scaled"))
    assert isinstance(found, TileEstimator)
    assert found.is_closed(CastShape(64, 128, 128, 64, 100, 128), SCALAR)


def test_tiles_that_cannot_lie_apart_are_simulated_with_their_conflicts() -> None:
    """38 KiB and 150 KiB of a buffer of 192: the destination begins in the first 64 KiB, in the source's banks.

    With a repeat in every cycle, writes meet the reads of later repeats.
    """
    target = a2a3(vconv=(9, 1, 15))
    made = estimator_of(target, "f32", "f32", None, None, False)
    assert isinstance(made, TileEstimator)
    shape = CastShape(150, 64, 256, 150, 64, 64)
    assert not made.is_closed(shape, SCALAR)
    found = estimate("f32", "f32", 150, 64, dst_row_stride=256, target=target)
    assert found == simulated(
        target, TileCastRequest(format_named("f32"), format_named("f32"), None, None, False), shape
    )
    assert found.causes[Cause.BANK_CONFLICT] > 0


def test_the_published_cast() -> None:
    """pto-isa tests/costmodel/st tcvt: f32 -> f16, 4 x 64: 33 cycles, of which 10 lie around the machine."""
    found = estimate("f32", "f16", 4, 64, target="a2a3")
    assert abs(found.cycles + 10 - 33) <= 1
    assert found.causes == {Cause.EMPTY: 2, Cause.BUSY: 4, Cause.DRAIN: 16}
    assert found.bound_by is Cause.DRAIN


def test_shipped_facts_have_a_closed_form_for_every_pair() -> None:
    for rule in A5.casts:
        made = estimator_of("a5", rule.src, rule.dst, None, None, False)
        assert isinstance(made, TileEstimator)
        for shape in (
            CastShape(8, 256, 256, 8, 256, 256),
            CastShape(8, 256, 256, 8, 31, 256),
            CastShape(8, 640, 640, 8, 600, 640),
        ):
            assert made.is_closed(shape, SCALAR), (rule.src, rule.dst)


@pytest.mark.parametrize("rows", [1, 2, 7, 100, 240])
@pytest.mark.parametrize("cols", [96, 128, 200, 384])
def test_loads_that_meet_stores(rows: int, cols: int) -> None:
    """The padded f32 -> f16 kernel loads 512 bytes per trip: every block group twice.

    Source: docs/reference/a5.md section 8.
    """
    request = TileCastRequest(format_named("f32"), format_named("f16"), None, None, False)
    stride = (cols + 127) // 64 * 64
    rows = min(rows, 200_000 // (6 * stride))
    shape = CastShape(rows, stride, stride, rows, cols, stride)
    found = estimate("f32", "f16", shape.rows, shape.cols, valid_cols=cols, target="a5")
    assert found == simulated(A5, request, shape)


CUT = {"saturation": "off", "scratch": True}
ARRAYS: list[tuple[str, str, str, dict[str, Any]]] = [
    ("f32", "f16", "a2a3", {}), ("i32", "f16", "a2a3", {}), ("f16", "i8", "a2a3", CUT), ("f32", "i16", "a2a3", CUT),
    ("f32", "bf16", "a5", {}), ("f32", "e4m3fn", "a5", {}), ("bf16", "f32", "a5", {}), ("bf16", "e2m1", "a5", {}),
    ("e4m3fn", "f32", "a5", {}), *(("f32", "i16", name, {}) for name in BUNDLES),
]  # fmt: skip


@pytest.mark.parametrize(("src", "dst", "target", "more"), ARRAYS)
def test_arrays_give_what_single_shapes_give_and_say_what_is_refused(
    src: str, dst: str, target: str, more: dict[str, Any]
) -> None:
    rng = np.random.default_rng(9)
    rows, cols = rng.integers(0, 40, (16, 8)), 64 * rng.integers(1, 6, 8)
    rows[0], rows[1], cols[0], cols[1] = 1 << 20, -4, 63, 0
    valid = np.where(rng.random((16, 8)) < 0.4, cols, np.minimum(2 * rng.integers(0, 200, (16, 8)), cols))
    found = estimate(src, dst, rows, cols, target=target, valid_cols=valid, row_stride=cols + 64, **more)
    assert isinstance(found, Estimates)
    assert found.cycles.shape == found.bound_by.shape == (16, 8)
    assert found.cycles.dtype == np.float64
    for place in np.ndindex(16, 8):
        width = int(cols[place[1]])
        given = {"target": target, "valid_cols": int(valid[place]), "row_stride": width + 64, **more}
        try:
            one = estimate(src, dst, int(rows[place]), width, **given)
        except (TileError, ScratchError) as error:
            assert np.isnan(found.cycles[place]), place
            assert found.reasons[place] == error.message
            assert found.bound_by[place] is None
            assert not any(causes[place] for causes in found.causes.values())
        else:
            assert (found.cycles[place], found.bound_by[place]) == (one.cycles, one.bound_by)
            assert found.reasons[place] is None
            assert {cause: row[place] for cause, row in found.causes.items() if row[place]} == one.causes
    assert 0 < np.isnan(found.cycles).sum() < found.cycles.size / 2


def test_arrays_hold_simulated_shapes_too_and_may_be_longer_than_a_chunk() -> None:
    target = a2a3(vconv=(9, 1, 15))
    rows = np.resize(np.array([4, 150, 1]), 40_000)
    found = estimate("f32", "f32", rows, 64, dst_row_stride=256, target=target)
    for count in (4, 150, 1):
        one = estimate("f32", "f32", count, 64, dst_row_stride=256, target=target)
        assert set(found.cycles[rows == count].tolist()) == {one.cycles}
    assert (sum(found.causes.values()) == found.cycles).all()


def test_numpy_integers_are_single_shapes() -> None:
    assert estimate("f32", "f16", np.int64(4), np.uint8(64), target="a2a3") == estimate(
        "f32", "f16", 4, 64, target="a2a3"
    )


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"cols": 60}, TileError, "not a multiple of 32"),
        ({"rows": -1}, TileError, "rows -1 is negative"),
        ({"valid_cols": 65}, TileError, "65 valid columns"),
        ({"valid_rows": 5}, TileError, "valid region 5 x 64"),
        ({"rows": 4000}, TileError, "the buffer has 196608"),
        ({"rows": 4.0}, ReadError, "not 4.0"),
        ({"rows": np.array([4.0])}, ReadError, "rows: must be integers, not float64"),
        ({"rows": None}, ReadError, "rows and cols must be integers or arrays of integers, not None"),
        ({"rows": np.array([4]), "cols": None}, ReadError, "not None"),
        ({"rows": np.ones(2, int), "cols": np.ones(3, int)}, ReadError, "shapes (2,), (3,) do not broadcast"),
        ({"rounding": "up"}, ReadError, "rounding mode 'up'"),
        ({"saturation": "yes"}, ReadError, "saturation 'yes'"),
        ({"dst": "i8"}, IllegalError, "f32"),
        ({"dst": "f17"}, ReadError, "f17"),
        ({"target": "a9"}, ReadError, "a9"),
        (
            {"rows": 128, "cols": 192, "valid_cols": 100, "dst": "i16", "scratch": True, "saturation": "off"},
            ScratchError,
            "bytes too few",
        ),
        ({"target": "goya", "dst": "i32", "rounding": "up"}, ReadError, "rounding mode 'up'"),
        ({"target": "goya", "dst": "f32"}, IllegalError, "is not a conversion"),
        ({"target": "goya", "dst": "e4m3fn"}, IllegalError, "e4m3fn"),
        ({"target": "goya", "dst": "i32", "valid_cols": 65}, TileError, "4 x 65"),
    ],
)
def test_what_is_refused(arguments: dict[str, Any], error: type[CastsimError], message: str) -> None:
    with pytest.raises(error) as caught:
        estimate(**{"src": "f32", "dst": "f16", "rows": 4, "cols": 64, "target": "a2a3", **arguments})
    assert message in str(caught.value)


def test_where_every_shape_fits_cycles_are_integers() -> None:
    found = estimate("f32", "f16", [4, 8], 64, target="a2a3")
    assert found.cycles.dtype == np.int64
    assert found.reasons.tolist() == [None, None]


@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_a_tile_without_rows_is_refused_as_where_it_is_simulated(target: str) -> None:
    with pytest.raises(TileError, match="of 0 rows and 64 columns is empty"):
        estimate("f32", "f16", 0, 64, target=target)
    assert "of 0 rows and 64 columns is empty" in estimate("f32", "f16", [4, 0], 64, target=target).reasons[1]


@pytest.mark.parametrize(
    ("target", "operation", "element", "cols"),
    [
        ("a2a3", "tcmp", "f16", 64),  # compares 256 bytes of a row at once, whatever it holds
        ("a2a3", "tcmps", "f32", 40),
        ("a2a3", "tquant", "f32", 72),  # takes scratch; its bytes fill no block
        ("a2a3", "tsort32", "f32", 72),  # pads its rows in scratch
        ("a5", "tcmp", "f32", 72),  # has a byte of bits per element, in a tile of the same shape
        ("a5", "tpack", "i32", 8),
        ("a5", "tquant", "f32", 72),
    ],
)
def test_operands_of_any_width_find_tiles(target: str, operation: str, element: str, cols: int) -> None:
    one, several = (estimate_tile_operation(operation, element, rows, cols, target=target).cycles for rows in (1, 5))
    assert 0 < one < several


@pytest.mark.parametrize("control", [0, 1, 7, 100])
def test_a_slow_scalar_unit_is_counted_from_the_launch_on(control: int) -> None:
    """What it does before the launch is no part of the published cycles, what it restores is.

    Source: docs/reference/a5.md section 6.2.
    """
    slow = changed(scalar={"control_write_cycles": control})
    for src, dst in {(rule.src, rule.dst) for rule in A5.casts}:
        found = estimate(src, dst, 2, 64, target=slow)
        assert sum(found.causes.values()) == found.cycles, (src, dst)
        if control < 10:  # the function is longer than whatever is restored under it
            assert found == estimate(src, dst, 2, 64, target=A5)


@pytest.mark.parametrize("name", CHANGED)
def test_causes_of_other_operations_add_up_too(name: str) -> None:
    counted = 0
    for operation in VECTOR_OPERATIONS:
        for element in ("f32", "f16", "i32"):
            for rows, cols, valid_cols in ((4, 64, 64), (3, 128, 70), (0, 64, 64)):
                try:
                    found = estimate_tile_operation(
                        operation, element, rows, cols, target=name, valid_cols=valid_cols, scratch=True
                    )
                except CastsimError:
                    continue
                counted += 1
                assert sum(found.causes.values()) == found.cycles, (operation, element, rows, cols, valid_cols)
    assert counted > 50
    load = estimate_load("f32", 16, 64, target=name)
    assert sum(load.causes.values()) == load.cycles


def estimator(name: str, src: str, dst: str) -> KernelEstimator:
    found = estimator_of(name, src, dst, None, None, False)
    assert isinstance(found, KernelEstimator)
    return found


def pairs(name: str) -> list[tuple[str, str]]:
    """Every pair to which an instruction or a chain of the generation leads."""
    target, found = load_target(name), []
    assert isinstance(target, VliwTarget)
    for src in target.elements.formats:
        for dst in target.elements.formats:
            try:
                found += [(src, dst)] if path_of(src, dst, target).hops else []
            except IllegalError:
                continue
    return found


@pytest.mark.parametrize("name", BUNDLES)
def test_an_estimate_is_the_simulation_of_the_bundles(name: str) -> None:
    target = load_target(name)
    for number, (src, dst) in enumerate(pairs(name)):
        made = estimator(name, src, dst)
        kernel = made.kernel
        for steps in (1, 2 + number % 3, kernel.stages, kernel.stages + 1, kernel.stages + 20):
            timing = simulate(made.tree(steps), target, record_operations=False)
            expected = of_timing(timing)
            found = estimate(src, dst, 1, steps * kernel.elements, target=name)
            assert (found.cycles, found.bound_by, found.causes) == (timing.total, expected.bound_by, expected.causes)


@pytest.mark.parametrize("name", BUNDLES)
def test_steps_do_not_meet_in_a_slot(name: str) -> None:
    for src, dst in pairs(name):
        kernel = estimator(name, src, dst).kernel
        taken = [
            (slot, place % kernel.interval) for (slot, _), place in zip(kernel.instructions, kernel.places, strict=True)
        ]
        assert len(set(taken)) == len(taken)
        assert kernel.interval >= max(sum(own is slot for own, _ in taken) for slot in Slot)


def test_the_loop_is_that_of_the_program_made_by_hand() -> None:
    """programs/tpc_f32_i32_pipelined_goya.tpc: 48 vectors, one per bundle, converted after 4 and stored after 11."""
    kernel = estimator("goya", "f32", "i32").kernel
    assert (kernel.interval, kernel.places) == (1, (0, 4, 11))
    program = run("programs/tpc_f32_i32_pipelined_goya.tpc", timing_only=True)
    assert estimate("f32", "i32", 48, 64, target="goya").cycles == program.cycles == 66


def test_rows_that_do_not_follow_each_other_begin_steps_of_their_own() -> None:
    kernel = estimator("goya", "f32", "i32").kernel
    together = estimate("f32", "i32", 10, 32, target="goya").cycles
    apart = estimate("f32", "i32", 10, 32, row_stride=64, target="goya").cycles
    assert apart - together == (10 - 5) * kernel.interval


def test_rounding_goes_by_the_chips_words_and_the_abstract_ones() -> None:
    assert estimate("f32", "i32", 4, 64, target="goya", rounding="rhne") == estimate(
        "f32", "i32", 4, 64, target="goya", rounding="rint"
    )


# ---------------------------------------------------------------------------------------- `castsim estimate`, options


def test_the_command_answers_as_the_library(capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["estimate", "f32", "f16", "16x256", "--target", "a2a3", "--valid", "15x256", "--json", "-"]
    assert main(argv) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["cycles"] == estimate("f32", "f16", 16, 256, valid_rows=15, target="a2a3").cycles
    assert sum(answer["causes"].values()) == sum(each["cycles"] for each in answer["shares"]) == answer["cycles"]
    assert (answer["target"], answer["src"], answer["rows"], answer["cols"]) == ("a2a3", "f32", 16, 256)
    assert main(argv[:-2]) == 0
    report = capsys.readouterr().out
    assert report.startswith(f"{answer['cycles']} cycles = ")
    assert "\nLimited by throughput\n" in report
    assert _LIMITS.keys() == {*Cause}


@pytest.mark.parametrize(
    ("argv", "code", "message"),
    [
        (("f32", "f16", "16by2"), 2, "'16by2' is not a tile shape"),
        (("f32", "f16", "0x2"), 2, "'0x2' is not a tile shape"),
        (("f32", "f17", "1x16"), 2, "unknown format 'f17'"),
        (("f32", "u64", "16x256"), 1, "a2a3 has no cast f32 -> u64"),
        (("f32", "f16", "16x256", "--option", "foo=1"), 2, "a2a3 has no option 'foo'"),
        (("f32", "f16", "16x256", "--valid", "3"), 2, "--valid '3' is not a tile shape"),
        (("f32", "f16", "16x256", "--row-stride", "x"), 2, "--row-stride x"),
        (("f32", "f16", "16x256", "--rounding", "bad"), 2, "unknown rounding mode 'bad'"),
    ],
)
def test_what_cannot_be_estimated(
    argv: tuple[str, ...], code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["estimate", *argv, "--target", "a2a3"]) == code
    assert message in capsys.readouterr().err


def test_an_estimate_takes_options_of_the_target() -> None:
    options = {"f32_to_f16": "line"}
    chip = with_options(load_target("a2a3"), options)
    for target in ("a2a3", load_target("a2a3")):
        for rows in (16, np.array([16, 32])):
            found = estimate("f32", "f16", rows, 256, target=target, options=options)
            assert np.array_equal(found.cycles, estimate("f32", "f16", rows, 256, target=chip).cycles)
            assert not np.array_equal(found.cycles, estimate("f32", "f16", rows, 256, target="a2a3").cycles)
    with pytest.raises(ReadError, match="no option 'foo'"):
        estimate("f32", "f16", 16, 256, target="a2a3", options={"foo": 1})
