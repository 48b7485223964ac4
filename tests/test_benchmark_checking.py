"""Checks of long programs: work that does not grow with what is repeated, and the bound that the pages state."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from benchmarks.checking import BASE_SECONDS, MICROSECONDS, TEXTS

from castsim import check_text
from castsim.isa.tpc import parser
from castsim.machines.strided import strided_lowering as strided
from castsim.machines.vector_function import function_lowering as vector_function
from castsim.machines.vliw import plans
from castsim.synchronisation import race_detector

ROOT = Path(__file__).parent.parent


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
def test_a_cast_that_is_repeated_is_lowered_once(monkeypatch: pytest.MonkeyPatch, chip: str, owner: Any) -> None:
    text = TEXTS[f"tcvt, repeated, {chip}"][1](200)
    assert calls(monkeypatch, owner, "lower_cast", lambda: check_text("k.pto", text)) == 1


@pytest.mark.parametrize("owner", [strided, vector_function])
def test_a_sum_that_is_repeated_is_lowered_once(monkeypatch: pytest.MonkeyPatch, owner: Any) -> None:
    text = TEXTS[f"tadd, repeated, {'A2/A3' if owner is strided else 'A5'}"][1](200)
    assert calls(monkeypatch, owner, "lower_work", lambda: check_text("k.pto", text)) == 1


def test_accesses_far_apart_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    text = TEXTS["tcvt, all different, A2/A3"][1](400)
    assert calls(monkeypatch, race_detector, "hazard_between", lambda: check_text("k.pto", text)) < 400 * 200


def test_a_refusal_of_a_repeated_bundle_points_to_its_own_place() -> None:
    text = "// castsim: target gaudi2\n" + "nop; add.i32 S2, S0, 1; nop; nop\n" * 3 + "nop; halt; halt; nop\n"
    assert [each.line for each in check_text("k.tpc", text) if "leaves in S2" in each.message] == [2, 3, 4]


def test_the_page_states_the_bound_that_the_benchmark_holds() -> None:
    words = f"within {BASE_SECONDS} s and another {MICROSECONDS / 1000:g} ms for each statement"
    assert words in " ".join((ROOT / "docs" / "inputs-outputs.md").read_text(encoding="utf-8").split())
