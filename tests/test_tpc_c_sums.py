"""The order of sums in loops with `loop_unroll(n)`: that of the source, or n sums added from the last to the first."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from castsim.__main__ import main

pytest.importorskip("pcpp")
KERNEL = """void main(tensor a, tensor b, tensor y)
{
    int5 at = {0};
    float64 total = 0.5f;
    #pragma loop_unroll(4)
    for (int row = 0; row < 12; row++)
    {
        at[1] = row;
        total = v_f32_mac_b(v_f32_ld_tnsr_b(at, a), v_f32_ld_tnsr_b(at, b), total);
    }
    at[1] = 0;
    v_f32_st_tnsr(at, y, total);
}
"""
A, B = (np.random.default_rng(seed).standard_normal((12, 64)).astype(np.float32) for seed in (1, 2))


def added(start: np.ndarray, rows: range) -> np.ndarray:
    """Fused products and sums, each rounded once; a product of two f32 is exact in f64, and so are these sums."""
    for row in rows:
        exact = A[row].astype(np.float64) * B[row].astype(np.float64) + start.astype(np.float64)
        start = exact.astype(np.float32)
    return start


def model(order: str) -> np.ndarray:
    first, zero = np.full(64, 0.5, np.float32), np.zeros(64, np.float32)
    if order == "source":
        return added(first, range(12))
    sums = [added(zero if place else first, range(place, 12, 4)) for place in range(4)]
    total = sums[3]
    for each in (sums[2], sums[1], sums[0]):
        total = total + each
    return total


def ran(folder: Path, order: str, text: str = KERNEL) -> np.ndarray:
    (folder / "sum.c").write_text(text, encoding="utf-8")
    for name, array in (("a", A), ("b", B)):
        np.save(folder / f"{name}.npy", array)
    words = ["run", str(folder / "sum.c"), "--target", "gaudi2", "--tensor", "a=f32[64,12]", "--tensor", "b=f32[64,12]",
             "--tensor", "y=f32[64]", "--index-space", "1", "--in", f"a={folder / 'a.npy'}",
             "--in", f"b={folder / 'b.npy'}", "--out", str(folder), "--quiet"]  # fmt: skip
    assert main([*words, "--accumulators", order]) == 0
    return np.asarray(np.load(folder / "y.npy"))


@pytest.mark.parametrize("order", ["source", "split"])
def test_sums_are_those_of_the_order(order: str, tmp_path: Path) -> None:
    assert not np.array_equal(model("source"), model("split"))
    np.testing.assert_array_equal(ran(tmp_path, order), model(order))


def test_without_the_promise_nothing_is_split(tmp_path: Path) -> None:
    text = KERNEL.replace("    #pragma loop_unroll(4)\n", "")
    np.testing.assert_array_equal(ran(tmp_path, "split", text), model("source"))


def test_a_sum_that_the_loop_also_reads_is_not_split(tmp_path: Path) -> None:
    text = KERNEL.replace("        at[1] = row;\n", "        at[1] = row;\n        float64 seen = total;\n")
    np.testing.assert_array_equal(ran(tmp_path, "split", text), model("source"))


def test_another_order_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "sum.c").write_text(KERNEL, encoding="utf-8")
    assert main(["run", str(tmp_path / "sum.c"), "--target", "gaudi2", "--accumulators", "tree"]) == 2
    told = capsys.readouterr().err
    assert "--accumulators tree" in told
    assert "split" in told
