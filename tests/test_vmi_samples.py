"""The sample programs of logical registers: outputs against NumPy, totals derived by hand from the facts of the A5."""

from __future__ import annotations

import csv
import math
import tomllib
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from micro_expected import transfer
from numpy.typing import NDArray

from castsim.__main__ import main
from castsim.running import run

ROOT = Path(__file__).parents[1]
PROGRAMS = ROOT / "programs" / "micro" / "logical"
RNG = np.random.default_rng(29)
HALVES = (RNG.normal(size=256) * 100).astype(np.float16)
FLOATS = np.concatenate([RNG.uniform(-40, 40, 250), [0.5, 1.5, -2.5, 1e30, -1e30, 0.0]]).astype(np.float32)


def dequantised(x: NDArray[np.float16]) -> NDArray[np.float32]:
    return x[:200].astype(np.float32) * np.float32(0.25)


def quantised(x: NDArray[np.float32]) -> NDArray[np.int8]:
    return np.rint(x * np.float32(0.25)).clip(-128, 127).astype(np.int8)


CASES = {"dequantise_tail": (HALVES, dequantised), "quantise_int8": (FLOATS, quantised)}


@pytest.mark.parametrize("name", CASES)
def test_outputs_are_those_of_numpy(name: str) -> None:
    given, model = CASES[name]
    result = run(PROGRAMS / f"{name}.pto", inputs={"x": given}, args={"scale": 0.25})
    assert result.outputs["y"].tobytes() == model(given).tobytes()
    assert not result.loaded.executed.warnings


def facts() -> tuple[dict, dict[str, dict[str, str]]]:
    """Facts of the shipped files: times, and rows of instructions."""
    timing = tomllib.loads((ROOT / "targets" / "a5.toml").read_text(), parse_float=Fraction)["timing"]
    with (ROOT / "targets" / "a5_arithmetic.csv").open(encoding="utf-8", newline="") as rows:
        return timing, {row["mnemonic"]: row for row in csv.DictReader(rows)}


def derived(name: str) -> int:
    """Four loads, two a cycle; four converts in a row behind the first; the way of the last one to the end."""
    timing, rows = facts()
    saved = timing["chain"]["forwarding_cycles"]
    vcvt = timing["chain"]["latency_cycles"]["vcvt"] - saved
    forward = timing["micro"]["forwarding"]["cycles"]
    vlds, vsts = timing["access"]["load_cycles"] - saved, timing["access"]["store_cycles"]
    to_store = {each: Fraction(rows[each]["latency_32"]) - saved for each in ("vmul", "vmaxs")}
    serial = 3 * timing["port"]["occupancy_cycles"]["vcvt"]
    between, size, stored = {
        "dequantise_tail": (vcvt + to_store["vmul"], 256 * 2, 200 * 4),
        "quantise_int8": (forward["vmul"] + vcvt + forward["vmins"] + to_store["vmaxs"], 256 * 4, 256),
    }[name]
    launch = timing["launch"]["startup_cycles"] + vlds + serial + between + vsts + timing["launch"]["drain_cycles"]
    loaded = timing["scalar"]["issue_cycles"] + transfer(timing["load"])(size)
    return loaded + math.floor(launch + Fraction(1, 2)) + transfer(timing["store"])(stored)


@pytest.mark.parametrize("engine", ["fast", "event"])
@pytest.mark.parametrize("name", CASES)
def test_totals_follow_from_the_facts(name: str, engine: str) -> None:
    result = run(PROGRAMS / f"{name}.pto", args={"scale": 0.25}, timing_only=True, engine=engine)
    assert result.cycles == derived(name)


@pytest.mark.parametrize("name", CASES)
def test_the_expanded_sample_gives_the_same(name: str, tmp_path: Path) -> None:
    micro = tmp_path / "micro.pto"
    assert main(["expand", str(PROGRAMS / f"{name}.pto"), "-o", str(micro), "--quiet"]) == 0
    given, model = CASES[name]
    result = run(micro, inputs={"x": given}, args={"scale": 0.25})
    assert result.outputs["y"].tobytes() == model(given).tobytes()
    assert result.cycles == derived(name)
