"""Estimates of TPC casts: loops of one pair, equal to simulations of their bundles, against a program made by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from castsim import estimate, run
from castsim.engines import simulate
from castsim.estimating import of_timing
from castsim.estimating.tile_estimates import estimator_of
from castsim.estimating.vliw_estimate import KernelEstimator
from castsim.isa.errors import CastsimError, IllegalError, ReadError, TileError
from castsim.isa.tpc import Slot
from castsim.targets import load_target
from castsim.targets.vliw import VliwTarget
from castsim.tpc_compiler.c_table import path_of

TARGETS = ("goya", "gaudi", "gaudib", "greco", "gaudi2")


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


@pytest.mark.parametrize("name", TARGETS)
def test_an_estimate_is_the_simulation_of_the_bundles(name: str) -> None:
    target = load_target(name)
    for number, (src, dst) in enumerate(pairs(name)):
        made = estimator(name, src, dst)
        kernel = made.kernel
        for steps in (1, 2 + number % 3, kernel.stages, kernel.stages + 1, kernel.stages + 20):
            simulated = simulate(made.tree(steps), target, record_operations=False)
            expected = of_timing(simulated)
            found = estimate(src, dst, 1, steps * kernel.elements, target=name)
            assert (found.cycles, found.bound_by, found.causes) == (simulated.total, expected.bound_by, expected.causes)


@pytest.mark.parametrize("name", TARGETS)
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


@pytest.mark.parametrize("name", TARGETS)
def test_arrays_give_what_single_shapes_give(name: str) -> None:
    rng = np.random.default_rng(4)
    rows, cols = rng.integers(0, 50, 60), rng.integers(1, 400, 60)
    valid = np.where(rng.random(60) < 0.5, cols, cols // 2)
    found = estimate("f32", "i16", rows, cols, target=name, valid_cols=valid)
    for place in range(60):
        one = estimate("f32", "i16", int(rows[place]), int(cols[place]), target=name, valid_cols=int(valid[place]))
        assert (found.cycles[place], found.bound_by[place]) == (one.cycles, one.bound_by)
        assert {cause: row[place] for cause, row in found.causes.items() if row[place]} == one.causes


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"rounding": "up"}, ReadError, "rounding mode 'up'"),
        ({"dst": "f32"}, IllegalError, "converts nothing"),
        ({"dst": "e4m3fn"}, IllegalError, "e4m3fn"),
        ({"valid_cols": 65}, TileError, "4 x 65"),
    ],
)
def test_what_is_refused(arguments: dict[str, Any], error: type[CastsimError], message: str) -> None:
    with pytest.raises(error) as caught:
        estimate(**{"src": "f32", "dst": "i32", "rows": 4, "cols": 64, "target": "goya", **arguments})
    assert message in str(caught.value)


def test_rounding_goes_by_the_chips_words_and_the_abstract_ones() -> None:
    assert estimate("f32", "i32", 4, 64, target="goya", rounding="rhne") == estimate(
        "f32", "i32", 4, 64, target="goya", rounding="rint"
    )
