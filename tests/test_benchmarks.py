"""The benchmark runs, on arrays too small to mean anything, and writes what it says."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from benchmarks import __main__ as benchmark
from benchmarks.cases import HEADLINE, MODES, Case, source_codes, target_pairs
from benchmarks.contestants import array_library
from benchmarks.table import markdown, rows_from
from benchmarks.timing import quartiles, round_robin
from measured_record import read


def test_small_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.timing.SAMPLE_NS", 1000)
    monkeypatch.setattr(benchmark, "HEADLINE", (Case("f32", "e4m3fn"), Case("f32", "hif8"), Case("f16", "i8")))
    monkeypatch.setattr(benchmark, "find_spec", lambda name: None)
    out, record = tmp_path / "out.json", tmp_path / "record.json"
    assert benchmark.main(
        ["--set", "headline", "--set", "tables", "--size", "2K", "--rounds", "2",
         "--json", str(out), "--record", str(record)]
    ) == 0  # fmt: skip
    data = json.loads(out.read_text())
    rows = rows_from(data["rows"])
    assert [row.elements for row in rows] == [2048] * 6
    assert "ml_dtypes" in rows[0].ratios and "en_dtypes" in rows[1].ratios and "numpy" in rows[2].ratios
    assert data["machine"]["numpy"] == np.__version__
    (table,) = read(record)["sections"][0]["tables"]
    assert table["rows"][0][:5] == ["f32 -> e4m3fn", "rint", "special", "compiled", "2 K"]


def test_a_size_that_does_not_fit_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmark, "_free_bytes", lambda: 1000)
    assert benchmark.measure((Case("f32", "f16"),), [1 << 20], 1) == []


def test_all_pairs_of_all_targets_in_both_directions() -> None:
    pairs = {(case.src, case.dst) for case in target_pairs()}
    assert {("f32", "hif8"), ("hif8", "f32"), ("f32", "bf16"), ("i4", "f16")} <= pairs
    assert all((dst, src) in pairs for src, dst in pairs)
    for case in (*HEADLINE, *MODES, *target_pairs()):
        assert source_codes(case, 100).shape == (100,)


def test_libraries_do_the_same_cast() -> None:
    """What is timed beside castsim gives castsim's values, where the library has the semantics."""
    for case in (Case("f32", "e4m3fn"), Case("f32", "hif8"), Case("f16", "i8"), Case("i8", "f16"), Case("hif8", "f32")):
        codes = source_codes(case, 500)
        found = array_library(case, codes)
        assert found is not None
        found[1]()


def test_quartiles_and_turns() -> None:
    assert quartiles(np.arange(5.0)).median == 2
    taken = round_robin({"one": lambda: None, "two": lambda: None}, 3)
    assert {name: times.shape for name, times in taken.items()} == {"one": (3,), "two": (3,)}
    assert markdown([]).startswith("| cast |")


def test_a_mapped_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert benchmark.main(["--mapped", "4M"]) == 0
    assert "MiB beyond input and output" in capsys.readouterr().out
