"""Causes of an estimate add up to its cycles: every target, single shapes and arrays, closed forms and simulations."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from castsim import estimate
from castsim.estimating.operation_estimates import estimate_tile_operation
from castsim.estimating.tile_estimates import estimate_load
from castsim.isa.errors import CastsimError, IllegalError
from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS
from castsim.targets import load_target, target_names
from castsim.targets.vector_function import VectorFunctionTarget
from castsim.targets.vliw import VliwTarget
from castsim.tpc_compiler.c_table import path_of

EXAMPLES = 3000 if "CASTSIM_THOROUGH" in os.environ else 60
CHIPS = target_names()
asked: Any = estimate
"""Whose extents may be of either kind."""


@cache
def pairs(name: str) -> tuple[tuple[str, str], ...]:
    """Every pair that a target converts."""
    target = load_target(name)
    if not isinstance(target, VliwTarget):
        return tuple(dict.fromkeys((rule.src, rule.dst) for rule in target.casts))
    found = []
    for src in target.elements.formats:
        for dst in target.elements.formats:
            try:
                found += [(src, dst)] if path_of(src, dst, target).hops else []
            except IllegalError:
                continue
    return tuple(found)


@st.composite
def shapes(draw: st.DrawFn) -> dict[str, int]:
    """A tile with any valid region, also none, and strides of whole blocks."""
    cols = 64 * draw(st.integers(1, 12))
    rows = draw(st.integers(1, 60))
    return {
        "rows": rows,
        "cols": cols,
        "row_stride": cols + 64 * draw(st.integers(0, 2)),
        "dst_row_stride": cols + 64 * draw(st.integers(0, 2)),
        "valid_rows": draw(st.just(rows) | st.integers(0, rows)),
        "valid_cols": 2 * draw(st.just(cols // 2) | st.integers(0, cols // 2)),
    }


@pytest.mark.parametrize("name", CHIPS)
@settings(max_examples=EXAMPLES, deadline=None)
@given(data=st.data(), shape=shapes(), scratch=st.booleans())
def test_causes_of_a_cast_add_up_to_its_cycles(
    name: str, data: st.DataObject, shape: dict[str, int], scratch: bool
) -> None:
    src, dst = data.draw(st.sampled_from(pairs(name)))
    try:
        found = asked(src, dst, **shape, target=name, scratch=scratch)
    except CastsimError:
        assume(False)
    assert sum(found.causes.values()) == found.cycles
    assert all(cycles > 0 for cycles in found.causes.values())
    twice = {key: np.array([value, value]) for key, value in shape.items()}
    many = asked(src, dst, **twice, target=name, scratch=scratch)
    assert (sum(many.causes.values()) == many.cycles).all()
    assert many.cycles.tolist() == [found.cycles] * 2


@pytest.mark.parametrize("name", [name for name in CHIPS if isinstance(load_target(name), VectorFunctionTarget)])
@pytest.mark.parametrize("control", [0, 1, 7, 100])
def test_a_slow_scalar_unit_is_counted_from_the_launch_on(name: str, control: int) -> None:
    """What it does before the launch is no part of the published cycles, what it restores is.

    Source: docs/reference/a5.md section 6.2.
    """
    target = load_target(name)
    assert isinstance(target, VectorFunctionTarget)
    scalar = target.timing.scalar.model_copy(update={"control_write_cycles": control})
    changed = target.model_copy(update={"timing": target.timing.model_copy(update={"scalar": scalar})})
    for src, dst in pairs(name):
        found = estimate(src, dst, 2, 64, target=changed)
        assert sum(found.causes.values()) == found.cycles, (src, dst)
        if control < 10:  # the function is longer than whatever is restored under it
            assert found == estimate(src, dst, 2, 64, target=target)


@pytest.mark.parametrize("name", [name for name in CHIPS if not isinstance(load_target(name), VliwTarget)])
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
