"""Estimates of A5 casts: equal to simulations of the lowered vector function, for shipped and for other facts."""

from __future__ import annotations

import os
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from estimated_casts import simulated
from hypothesis import given, settings
from hypothesis import strategies as st

from castsim import estimate
from castsim.estimating.cast_estimates import SCALAR, CastShape, TileCastRequest
from castsim.estimating.tile_estimates import TileEstimator, estimator_of
from castsim.isa.errors import CastsimError
from castsim.isa.formats import format_named
from castsim.isa.modes import Saturation
from castsim.targets import load_target
from castsim.targets.vector_function import VectorFunctionTarget

EXAMPLES = 5000 if "CASTSIM_THOROUGH" in os.environ else 250
A5 = load_target("a5")
assert isinstance(A5, VectorFunctionTarget)


def changed(**facts: dict[str, Any]) -> VectorFunctionTarget:
    """A5 with other timing facts: `launch={"startup_cycles": 3}`."""
    assert isinstance(A5, VectorFunctionTarget)
    update = {name: getattr(A5.timing, name).model_copy(update=values) for name, values in facts.items()}
    return A5.model_copy(update={"timing": A5.timing.model_copy(update=update)})


TARGETS = (
    A5,
    A5,
    changed(launch={"startup_cycles": 0, "drain_cycles": 0}, access={"load_cycles": 30, "store_cycles": 1}),
    changed(port={"occupancy_cycles": {"vcvt": Decimal(2), "vtrc": Decimal(3), "vintlv": Decimal(1)}}),
    changed(loops={"turnaround_cycles": Decimal("0.25"), "turnaround_hidden_cycles": Decimal(0)}),
    changed(memory_path={"trip_cycles": Decimal("4.75")}, store_barrier={"cycles": Decimal("0.5")}),
    changed(branch={"cycles": Decimal("1.5")}, port={"store_cycles": Decimal("3.5")}),
    changed(scalar={"control_write_cycles": 40}, unpack_head={"waits": 5}),
)
"""The shipped facts and others: memory path, stores, branches, converts or the scalar unit decide."""


@st.composite
def shapes(draw: st.DrawFn) -> CastShape:
    """A tile of up to some hundred trips, any valid region, strides of whole blocks for every format."""
    cols = 64 * draw(st.integers(1, 12) | st.integers(1, 120))
    rows = draw(st.integers(1, 4) | st.integers(1, max(4, 30_000 // cols)))
    stride = cols + 64 * draw(st.sampled_from((0, 0, 0, 1, 2, 20)))
    dst_stride = draw(st.just(stride) | st.sampled_from((cols, cols + 64)))
    valid_rows = draw(st.just(rows) | st.integers(0, rows))
    valid_cols = draw(st.just(cols) | st.integers(0, cols))
    return CastShape(rows, stride, dst_stride, valid_rows, valid_cols, cols)


@settings(max_examples=EXAMPLES, deadline=None)
@given(
    shape=shapes(),
    target=st.sampled_from(TARGETS),
    rule=st.sampled_from(A5.casts),
    saturation=st.sampled_from((None, *Saturation)),
)
def test_an_estimate_is_the_simulation_of_the_cast(
    shape: CastShape, target: VectorFunctionTarget, rule: Any, saturation: Saturation | None
) -> None:
    arguments: dict[str, Any] = {
        "target": target,
        "saturation": saturation,
        "row_stride": shape.src_stride,
        "dst_row_stride": shape.dst_stride,
        "valid_rows": shape.valid_rows,
        "valid_cols": shape.valid_cols,
    }
    request = TileCastRequest(format_named(rule.src), format_named(rule.dst), None, saturation, False)
    try:
        expected = simulated(target, request, shape)
    except CastsimError as error:
        with pytest.raises(type(error)):
            estimate(rule.src, rule.dst, shape.rows, shape.cols, **arguments)
        return
    assert estimate(rule.src, rule.dst, shape.rows, shape.cols, **arguments) == expected


def test_shipped_facts_have_a_closed_form_for_every_pair() -> None:
    for rule in A5.casts:
        estimator = estimator_of("a5", rule.src, rule.dst, None, None, False)
        assert isinstance(estimator, TileEstimator)
        for shape in (
            CastShape(8, 256, 256, 8, 256, 256),
            CastShape(8, 256, 256, 8, 31, 256),
            CastShape(8, 640, 640, 8, 600, 640),
        ):
            assert estimator.is_closed(shape, SCALAR), (rule.src, rule.dst)


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


@pytest.mark.parametrize(
    ("src", "dst"), [("f32", "bf16"), ("f32", "e4m3fn"), ("bf16", "f32"), ("bf16", "e2m1"), ("e4m3fn", "f32")]
)
def test_arrays_give_what_single_shapes_give(src: str, dst: str) -> None:
    rng = np.random.default_rng(9)
    rows, cols = rng.integers(1, 30, (20, 10)), 64 * rng.integers(1, 6, 10)
    valid = np.where(rng.random((20, 10)) < 0.4, cols, np.minimum(rng.integers(0, 400, (20, 10)), cols))
    found = estimate(src, dst, rows, cols, target="a5", valid_cols=valid)
    for place in np.ndindex(20, 10):
        one = estimate(src, dst, int(rows[place]), int(cols[place[1]]), target="a5", valid_cols=int(valid[place]))
        assert (found.cycles[place], found.bound_by[place]) == (one.cycles, one.bound_by)
        assert {cause: row[place] for cause, row in found.causes.items() if row[place]} == one.causes
