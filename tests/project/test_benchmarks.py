"""The benchmarks run, on arrays, programs and kernels too small to mean anything, and write what they say."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks import __main__ as casts
from benchmarks import kernels as benchmark
from benchmarks import prefill
from benchmarks.cases import HEADLINE, MODES, Case, source_codes, target_pairs
from benchmarks.checking import BASE_SECONDS, MICROSECONDS, TEXTS
from benchmarks.contestants import array_library
from benchmarks.table import rows_from
from kit.measured_record import read, rows
from kit.paths import ROOT

from castsim import check_text, run
from castsim.isa.tpc import parser
from castsim.machines.strided import strided_lowering as strided
from castsim.machines.vector_function import function_lowering as vector_function
from castsim.machines.vliw import plans
from castsim.numerics.blocks import code_dtype
from castsim.numerics.codec import decode_to_float64
from castsim.numerics.tiers import convert_codes
from castsim.running.synchronisation import race_detector


@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_rows_in_any_order_give_the_same(target: str, tmp_path: Path) -> None:
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


# ------------------------------------------------------------------------------------- casts, programs and descriptions


def calls(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, work: Callable[[], object]) -> int:
    """Return how often a function is called during some work."""
    made, before = [0], getattr(owner, name)

    def counted(*given: Any, **named: Any) -> Any:
        made[0] += 1
        return before(*given, **named)

    monkeypatch.setattr(owner, name, counted)
    work()
    monkeypatch.setattr(owner, name, before)
    return made[0]


def test_a_bundle_that_is_repeated_is_read_and_prepared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    text = TEXTS["bundles, repeated"][1](650)
    different = 6  # of the trip ld_tnsr, mul, add and convert, and the halt of two slots
    assert calls(monkeypatch, parser, "read_in_slot", lambda: check_text("k.tpc", text)) == different
    assert calls(monkeypatch, plans, "prepared", lambda: check_text("k.tpc", text)) == different


def test_latencies_are_compared_once_for_writers_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    def made(bundles: int) -> int:
        text = TEXTS["bundles, repeated"][1](bundles)
        return calls(monkeypatch, plans.OperandPlan, "needed", lambda: check_text("k.tpc", text))

    assert made(1300) <= 2.2 * made(650)  # not with the square of the text


@pytest.mark.parametrize(("chip", "owner"), [("A2/A3", strided), ("A5", vector_function)])
@pytest.mark.parametrize(("operation", "lowering"), [("tcvt", "lower_cast"), ("tadd", "lower_work")])
def test_what_is_repeated_is_lowered_once(
    monkeypatch: pytest.MonkeyPatch, operation: str, lowering: str, chip: str, owner: Any
) -> None:
    text = TEXTS[f"{operation}, repeated, {chip}"][1](200)
    assert calls(monkeypatch, owner, lowering, lambda: check_text("k.pto", text)) == 1


def test_accesses_far_apart_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    text = TEXTS["tcvt, all different, A2/A3"][1](400)
    assert calls(monkeypatch, race_detector, "hazard_between", lambda: check_text("k.pto", text)) < 400 * 200


def test_a_refusal_of_a_repeated_bundle_points_to_its_own_place() -> None:
    text = "// castsim: target gaudi2\n" + "nop; add.i32 S2, S0, 1; nop; nop\n" * 3 + "nop; halt; halt; nop\n"
    assert [each.line for each in check_text("k.tpc", text) if "never read: S2" in each.message] == [2, 3, 4]


def test_the_page_states_the_bound_that_the_benchmark_holds() -> None:
    words = f"at most {BASE_SECONDS} s plus {MICROSECONDS / 1000:g} ms per statement"
    assert words in " ".join((ROOT / "docs" / "inputs-outputs.md").read_text(encoding="utf-8").split())


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


def test_small_run_of_casts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.timing.SAMPLE_NS", 1000)
    monkeypatch.setattr(casts, "HEADLINE", (Case("f32", "e4m3fn"), Case("f32", "hif8"), Case("f16", "i8")))
    monkeypatch.setattr(casts, "find_spec", lambda name: None)
    out, record = tmp_path / "out.json", tmp_path / "record.json"
    assert casts.main(
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
    monkeypatch.setattr(casts, "_free_bytes", lambda: 1000)
    assert casts.measure((Case("f32", "f16"),), [1 << 20], 1) == []


def test_all_pairs_of_all_targets_in_both_directions() -> None:
    pairs = {(case.src, case.dst) for case in target_pairs()}
    assert {("f32", "hif8"), ("hif8", "f32"), ("f32", "bf16"), ("i4", "f16")} <= pairs
    assert all((dst, src) in pairs for src, dst in pairs)
    for case in (*HEADLINE, *MODES, *target_pairs()):
        assert source_codes(case, 100).shape == (100,)


def test_libraries_do_the_same_cast() -> None:
    """What is timed beside castsim gives castsim's values, where the library has the semantics."""
    for case in (Case("f32", "e4m3fn"), Case("f32", "hif8"), Case("f16", "i8"), Case("i8", "f16"), Case("hif8", "f32")):
        codes, (src, dst) = source_codes(case, 500), case.formats
        codes = codes[np.isfinite(decode_to_float64(codes, src))]
        found = array_library(case, codes)
        assert found is not None
        theirs = np.asarray(found[1]()).view(code_dtype(dst))
        assert np.array_equal(theirs, convert_codes(codes, src, dst, case.policy)), case
