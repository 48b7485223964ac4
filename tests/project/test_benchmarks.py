"""The benchmarks run, on arrays, programs and kernels too small to mean anything, and write what they say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks import prefill
from benchmarks.checking import BASE_SECONDS, MICROSECONDS, TEXTS
from kit.paths import ROOT

from castsim import check_text, run
from castsim.isa.tpc import parser
from castsim.machines.strided import strided_lowering as strided
from castsim.machines.vector_function import function_lowering as vector_function
from castsim.machines.vliw import plans
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
