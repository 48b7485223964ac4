"""A kernel that finds the greatest of many numbers, of sorts, merges and gathers by pattern, against Python's sort."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from castsim import run

KERNEL = Path(__file__).parent / "vectors" / "pto_own" / "top_k.pto"


@pytest.mark.parametrize("name", ["a2a3", "a5"])
@pytest.mark.parametrize("seed", range(4))
def test_the_greatest_and_where_they_stand(name: str, seed: int) -> None:
    """Many equal numbers among them: of those the earlier stand first."""
    rng = np.random.default_rng(seed)
    given = rng.standard_normal((1, 1024)).astype("<f4")
    if seed % 2:
        given = rng.integers(-20, 20, (1, 1024)).astype("<f4")
        given[0, rng.integers(0, 1024, 5)] = -np.inf
    made = run(KERNEL, name, inputs={"in": given})
    order = sorted(range(1024), key=lambda place: (-float(given[0, place]), place))[:64]
    assert made.outputs["places"].view("<i4").reshape(-1).tolist() == order
    assert np.array_equal(made.outputs["values"].view("<f4").reshape(-1), given[0, order])
    assert not made.races
    assert made.cycles == run(KERNEL, name, inputs={"in": given}, engine="event").cycles
