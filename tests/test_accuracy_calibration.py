"""The time of A5 casts against the published cycles: within margins, and not by fitting every pair on its own."""

from __future__ import annotations

import calibration_a5
import pytest
from calibration_a5 import FITTED, FITTED_ELSEWHERE, PORT, Calibration

MEAN, LARGEST = 0.65, 2.5
"""Percent; a worsening beyond fails. Reached: 0.63 and 2.47. The best published model: 0.81 and 5.1."""

# Percent of the rows left out when the facts are fitted without them: mean and maximum reached, rounded up, with all
# pairs that run the same functions left out together (their rows are twins, one would give away the other).
LEFT_OUT = {
    (("bf16", "f16"),): (0.3, 0.8),
    (("bf16", "f32"), ("f16", "f32")): (1.4, 2.6),
    (("bf16", "e1m2"), ("bf16", "e2m1")): (0.8, 1.6),
    (("f16", "hif8"),): (0.9, 1.6),
    (("f32", "bf16"), ("f32", "f16")): (1.1, 2.0),
    (("f32", "e4m3fn"), ("f32", "e5m2"), ("f32", "hif8")): (0.5, 1.6),
    (("e1m2", "bf16"), ("e2m1", "bf16")): (3.6, 8.3),
    (("e4m3fn", "f32"), ("e5m2", "f32"), ("hif8", "f32")): (0.9, 1.6),
}
ONE_PAIR_MEAN, ONE_PAIR_LARGEST = 1.4, 3.1
"""The same with a single pair left out."""


@pytest.fixture(scope="module")
def calibration() -> Calibration:
    return Calibration()


def test_shipped_facts_keep_the_margins(calibration: Calibration) -> None:
    errors = calibration.errors(calibration_a5.shipped_facts())
    assert len(errors) == 85
    assert sum(errors) / len(errors) <= MEAN
    assert max(errors) <= LARGEST


def test_shipped_facts_are_the_fit(calibration: Calibration) -> None:
    assert calibration.fit() == calibration_a5.shipped_facts()


def test_few_parameters_are_fitted_and_several_kinds_of_pairs_share_each(calibration: Calibration) -> None:
    assert len(FITTED) + len(FITTED_ELSEWHERE) <= 18
    shipped = calibration_a5.shipped_facts()
    for key, grid in FITTED.items():
        changed = {**shipped, key: shipped[key] + 8 * grid}
        affected = {
            pair
            for pair in calibration.pairs
            if calibration.errors(changed, (pair,)) != calibration.errors(shipped, (pair,))
        }
        assert len(affected) >= 2, key


def test_all_that_passes_the_port_shares_one_latency() -> None:
    latencies = calibration_a5.A5.timing.chain.latency_cycles
    assert len({latencies[name] for name in PORT}) == 1
    # The others are the vendor model's for its logic instructions.
    assert {latencies[name] for name in latencies if name not in (*PORT, "vintlv")} == {6}


def test_pairs_left_out_of_the_fit_are_still_met(calibration: Calibration) -> None:
    for pair in calibration.pairs:
        errors = calibration.left_out((pair,))
        assert sum(errors) / len(errors) <= ONE_PAIR_MEAN, pair
        assert max(errors) <= ONE_PAIR_LARGEST, pair


def test_kernels_left_out_of_the_fit_are_still_met(calibration: Calibration) -> None:
    assert dict.fromkeys(map(calibration.twins, calibration.pairs)).keys() == LEFT_OUT.keys()
    for pairs, (mean, largest) in LEFT_OUT.items():
        errors = calibration.left_out(pairs)
        assert sum(errors) / len(errors) <= mean, pairs
        assert max(errors) <= largest, pairs
