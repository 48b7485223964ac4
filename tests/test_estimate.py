"""Estimates of A2/A3 casts: equal to simulations of the lowered cast, for shipped and for other facts, one or many."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
from engine_trees import a2a3
from estimated_casts import simulated
from hypothesis import given, settings
from hypothesis import strategies as st

from castsim import estimate
from castsim.estimating import Estimates
from castsim.estimating.cast_estimates import SCALAR, CastShape, TileCastRequest
from castsim.estimating.operation_estimates import estimate_tile_operation
from castsim.estimating.tile_estimates import TileEstimator, estimator_of
from castsim.isa.errors import CastsimError, IllegalError, ReadError, ScratchError, TileError
from castsim.isa.formats import format_named
from castsim.isa.modes import Saturation
from castsim.targets import load_target
from castsim.targets.strided_repeat import StridedRepeatTarget
from castsim.timing import Cause

EXAMPLES = 5000 if "CASTSIM_THOROUGH" in os.environ else 250
A2A3 = load_target("a2a3")
assert isinstance(A2A3, StridedRepeatTarget)
RULES = A2A3.casts

FACTS: tuple[dict[str, Any], ...] = (
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
"""Changes of the shipped facts: heads and tails of nothing, a scalar unit that falls behind."""

TARGETS = tuple(a2a3(**facts) for facts in FACTS)


@st.composite
def shapes(draw: st.DrawFn) -> CastShape:
    """A tile of up to some hundred repeats, any valid region, strides of whole blocks for every format."""
    cols = 64 * draw(st.integers(1, 12) | st.integers(1, 300))
    rows = draw(st.integers(1, 4) | st.integers(1, max(4, 40_000 // cols)))
    stride, dst_stride = (cols + 64 * draw(st.sampled_from((0, 0, 0, 1, 2, 20))) for _ in range(2))
    valid_rows = draw(st.just(rows) | st.integers(0, rows))
    valid_cols = draw(st.just(cols) | st.integers(0, cols // 2).map(lambda half: 2 * half))
    return CastShape(rows, stride, dst_stride, valid_rows, valid_cols, cols)


def keywords(shape: CastShape) -> dict[str, int]:
    return {
        "row_stride": shape.src_stride,
        "dst_row_stride": shape.dst_stride,
        "valid_rows": shape.valid_rows,
        "valid_cols": shape.valid_cols,
    }


@settings(max_examples=EXAMPLES, deadline=None)
@given(
    shape=shapes(),
    target=st.sampled_from(TARGETS),
    rule=st.sampled_from(RULES),
    saturation=st.sampled_from((None, *Saturation)),
    scratch=st.booleans(),
)
def test_an_estimate_is_the_simulation_of_the_cast(
    shape: CastShape, target: StridedRepeatTarget, rule: Any, saturation: Saturation | None, scratch: bool
) -> None:
    request = TileCastRequest(format_named(rule.src), format_named(rule.dst), None, saturation, scratch)
    arguments = {"target": target, "saturation": saturation, "scratch": scratch, **keywords(shape)}
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
    estimator = estimator_of("a2a3", src, dst, None, "off", steps not in ("plain", "scaled"))
    assert isinstance(estimator, TileEstimator)
    assert estimator.is_closed(CastShape(64, 128, 128, 64, 100, 128), SCALAR)


def test_tiles_that_cannot_lie_apart_are_simulated_with_their_conflicts() -> None:
    """38 KiB and 150 KiB of a buffer of 192: the destination begins in the first 64 KiB, in the source's banks.

    With a repeat in every cycle, writes meet the reads of later repeats.
    """
    target = a2a3(vconv=(9, 1, 15))
    estimator = estimator_of(target, "f32", "f32", None, None, False)
    assert isinstance(estimator, TileEstimator)
    shape = CastShape(150, 64, 256, 150, 64, 64)
    assert not estimator.is_closed(shape, SCALAR)
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


@pytest.mark.parametrize(
    ("src", "dst", "scratch"), [("f32", "f16", False), ("i32", "f16", False), ("f16", "i8", True), ("f32", "i16", True)]
)
def test_arrays_give_what_single_shapes_give(src: str, dst: str, scratch: bool) -> None:
    rng = np.random.default_rng(9)
    rows, cols = rng.integers(1, 40, (40, 10)), 64 * rng.integers(1, 6, 10)
    valid = np.minimum(rng.integers(0, 200, (40, 10)) * 2, cols)
    found = estimate(
        src, dst, rows, cols, target="a2a3", valid_cols=valid, row_stride=cols + 64, saturation="off", scratch=scratch
    )
    assert isinstance(found, Estimates)
    assert found.cycles.shape == found.bound_by.shape == (40, 10)
    for place in np.ndindex(40, 10):
        one = estimate(
            src,
            dst,
            int(rows[place]),
            int(cols[place[1]]),
            target="a2a3",
            valid_cols=int(valid[place]),
            row_stride=int(cols[place[1]]) + 64,
            saturation="off",
            scratch=scratch,
        )
        assert (found.cycles[place], found.bound_by[place]) == (one.cycles, one.bound_by)
        assert {cause: row[place] for cause, row in found.causes.items() if row[place]} == one.causes


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
        ({"rows": 4, "cols": 60}, TileError, "not a multiple of 32"),
        ({"rows": -1, "cols": 64}, TileError, "rows -1 is negative"),
        ({"rows": 4, "cols": 64, "valid_cols": 65}, TileError, "65 valid columns"),
        ({"rows": 4, "cols": 64, "valid_rows": 5}, TileError, "valid region 5 x 64"),
        ({"rows": 4000, "cols": 64}, TileError, "the buffer has 196608"),
        ({"rows": 4.0, "cols": 64}, ReadError, "not 4.0"),
        ({"rows": np.array([4.0]), "cols": 64}, ReadError, "rows: integers are wanted, not float64"),
        ({"rows": 4, "cols": 64, "rounding": "up"}, ReadError, "rounding mode 'up'"),
        ({"rows": 4, "cols": 64, "saturation": "yes"}, ReadError, "saturation 'yes'"),
        ({"rows": 4, "cols": 64, "dst": "i8"}, IllegalError, "f32"),
        ({"rows": 4, "cols": 64, "dst": "f17"}, ReadError, "f17"),
        ({"rows": 4, "cols": 64, "target": "a9"}, ReadError, "a9"),
        (
            {"rows": 128, "cols": 192, "valid_cols": 100, "dst": "i16", "scratch": True, "saturation": "off"},
            ScratchError,
            "bytes missing",
        ),
    ],
)
def test_what_is_refused(arguments: dict[str, Any], error: type[CastsimError], message: str) -> None:
    with pytest.raises(error) as caught:
        estimate(**{"src": "f32", "dst": "f16", "target": "a2a3", **arguments})
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("src", "dst", "target"), [("f32", "f16", "a2a3"), ("bf16", "e2m1", "a5"), ("f32", "i16", "gaudi")]
)
def test_of_many_shapes_the_refused_are_nan_and_say_why(src: str, dst: str, target: str) -> None:
    rows, cols = np.array([16, 3, -4, 1 << 20, 8, 16])[:, None], np.array([64, 63, 0, 128])
    found = estimate(src, dst, rows, cols, target=target)
    assert found.cycles.dtype == np.float64
    for place in np.ndindex(found.cycles.shape):
        shape = int(rows[place[0], 0]), int(cols[place[1]])
        try:
            alone = estimate(src, dst, *shape, target=target)
        except (TileError, ScratchError) as error:
            assert np.isnan(found.cycles[place]), shape
            assert found.reasons[place] == error.message
            assert found.bound_by[place] is None
            assert not any(causes[place] for causes in found.causes.values())
        else:
            assert (found.cycles[place], found.bound_by[place]) == (alone.cycles, alone.bound_by)
            assert found.reasons[place] is None
            assert {cause: causes[place] for cause, causes in found.causes.items() if causes[place]} == alone.causes


def test_where_every_shape_fits_cycles_are_integers() -> None:
    found = estimate("f32", "f16", [4, 8], 64, target="a2a3")
    assert found.cycles.dtype == np.int64
    assert found.reasons.tolist() == [None, None]


@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_a_tile_without_rows_is_refused_as_where_it_is_simulated(target: str) -> None:
    with pytest.raises(TileError, match="of 0 rows and 64 columns has no element"):
        estimate("f32", "f16", 0, 64, target=target)
    assert "of 0 rows and 64 columns has no element" in estimate("f32", "f16", [4, 0], 64, target=target).reasons[1]


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
