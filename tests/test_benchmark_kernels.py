"""The benchmark of whole kernels runs, on small ones, and its large kernel computes the same in any order of rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from benchmarks import kernels as benchmark
from benchmarks import prefill
from measured_record import read, rows

from castsim import run


def test_small_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmark, "FUNCTIONS", 3)
    record = tmp_path / "kernels.json"
    monkeypatch.setattr(
        benchmark, "_apart", lambda target, rows, table: benchmark.prefill_run(target, rows, table=table)
    )
    assert benchmark.main(["--lines", "50", "--rows", "16", "--rounds", "1", "--record", str(record)]) == 0
    reading, large = (rows(section["tables"][0]) for section in read(record)["sections"])
    assert reading[0]["what"] == "castsim: parse and check"
    assert ("a5", "named by a table") in {(row["target"], row["rows"]) for row in large}


@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_rows_in_any_order_give_the_same(target: str, tmp_path: Path) -> None:
    """The residual sum is one rounding of the product and the sum each, whatever order the rows are taken in."""
    rng = np.random.default_rng(0)
    shape = (32, prefill.COLUMNS)
    x = (rng.standard_normal(shape).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    inputs = {"x": x, "residual": rng.standard_normal(shape).astype(np.float32)}
    inputs["gamma"] = np.ones((1, prefill.COLUMNS), np.float32)
    found = []
    for table in (False, True):
        file = tmp_path / "k.pto"
        file.write_text(prefill.kernel(target, rows=32, table=table))
        order = {"order": np.array([1, 0], np.int32)} if table else {}
        found.append(run(file, inputs=inputs | order, args=prefill.ARGUMENTS).outputs)
    wide = (x.astype(np.uint32) << 16).view(np.float32)
    assert np.array_equal(found[0]["mixed"], wide * np.float32(prefill.ARGUMENTS["gain"]) + inputs["residual"])
    for name in found[0]:
        assert found[0][name].tobytes() == found[1][name].tobytes(), name
