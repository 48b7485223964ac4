"""Latencies that bind a program of bundles: who waits for whom, what that costs, and where none binds.

Distances are those of docs/reference/tpc.md section 6.1: a product of f32 is read after 6 bundles, a load after 4.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from castsim import run
from castsim.__main__ import main
from castsim.exploration.lifted_limits import what_if
from castsim.machines.vliw.latency_bound import LatencyBound

PROGRAMS = Path(__file__).parent.parent / "programs"
TRIPS = 64


def bound(path: Path, target: str | None = None) -> LatencyBound:
    found = run(path, target, timing_only=True)
    latencies = found.loaded.latencies(found.timing)
    assert latencies is not None
    return latencies


def products(folder: Path, empty: int, registers: tuple[int, ...], target: str) -> Path:
    """Write a loop of products, one a bundle on each register in turn, so many empty bundles behind them."""
    lines = [f"// castsim: target {target}", f"nop; loop 0, {TRIPS}, 1, <, End; nop; nop", "nop; nop; nop; nop"]
    lines += [f"nop; nop; mul.f32 V{each}, V{each}, V9; nop" for each in registers]
    lines += ["nop; nop; nop; nop"] * empty + ["End:", "nop; halt; halt; nop"]
    path = folder / "products.tpc"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("target", ["gaudi2", "goya", "greco"])
def test_a_product_that_needs_the_one_before_waits_from_trip_to_trip(target: str, tmp_path: Path) -> None:
    latencies = bound(products(tmp_path, 5, (1,), target))
    assert latencies.binds
    (link,) = latencies.links
    assert (link.distance, link.register, link.producer.span.line, link.consumer.span.line) == (6, "V1", 4, 4)
    assert (latencies.length, latencies.trips) == (6, TRIPS)
    assert latencies.gained == 5 * TRIPS  # one bundle of the six has work


@pytest.mark.parametrize("target", ["gaudi2", "goya", "greco"])
def test_six_products_in_turn_hide_the_latency(target: str, tmp_path: Path) -> None:
    latencies = bound(products(tmp_path, 0, (1, 2, 3, 4, 5, 6), target))
    assert not latencies.binds
    assert latencies.gained == 0


def test_empty_bundles_that_no_result_asks_for_are_no_latency(tmp_path: Path) -> None:
    latencies = bound(products(tmp_path, 12, (1,), "gaudi2"))
    assert latencies.gained == 5 * TRIPS
    assert latencies.cycles < latencies.total / 2


@pytest.mark.parametrize(
    ("name", "producer", "consumer", "register", "lines", "distance"),
    [
        # Comments of the programs: "MAC.f32 is visible after 6", "load after 4".
        ("tpc_f32_i8_quantise_gaudi2", "mac", "convert", "V7", (30, 36), 6),
        ("tpc_f32_i8_quantise_goya", "mac", "convert", "V7", (30, 36), 6),
        ("tpc_u8_f32_dequantise_greco", "ld_tnsr", "convert", "V8", (15, 19), 4),
    ],
)
def test_the_headline_names_the_chain(
    name: str, producer: str, consumer: str, register: str, lines: tuple[int, int], distance: int,
    capsys: pytest.CaptureFixture[str], tmp_path: Path,
) -> None:  # fmt: skip
    path, page = PROGRAMS / f"{name}.tpc", tmp_path / "page.html"
    assert main(["run", str(path), "--timing-only", "--html", str(page)]) == 0
    head = capsys.readouterr().out.partition("\n\n")[0].splitlines()
    head = head[next(number for number, line in enumerate(head) if line.startswith("Latency binds: ")) :]
    (following,) = (line for line in head if line.startswith("next: "))
    assert head[0].startswith(f"Latency binds: {producer}")
    assert head[0].endswith(f"({register}, lines {lines[0]} -> {lines[1]}, {distance} bundles)")
    assert head[1].startswith("latencies cost ")
    assert "castsim advise" in following
    assert "--what-if latency" in following
    assert all(len(line) <= 80 for line in (*head[:2], following))
    assert f"({register}, lines {lines[0]} -\\u003e {lines[1]}, {distance} bundles)" in page.read_text()
    assert main(["run", str(path), "--timing-only", "--what-if", "latency", "--json", "-"]) == 0
    document = json.loads(capsys.readouterr().out)
    longest = document["latency_bound"]["longest"]
    assert (longest["producer_line"], longest["consumer_line"]) == lines
    assert (longest["through"], longest["distance_bundles"]) == (register, distance)
    assert longest["consumer"].startswith(consumer)
    (gain,) = document["what_if"]
    assert gain["gained_cycles"] == document["latency_bound"]["gained_cycles"] >= document["total_cycles"] / 5
    busiest = max(pipe["busy_cycles"] for pipe in document["pipes"].values())
    assert gain["total_cycles"] >= busiest


@pytest.mark.parametrize("name", ["tpc_f32_f8_143_gaudi2", "tpc_f32_bf16_packed_gaudi2", "tpc_f32_i32_pipelined_goya"])
def test_a_pipe_that_works_most_of_the_time_stays_the_headline(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(PROGRAMS / f"{name}.tpc"), "--timing-only", "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["latency_bound"] is None
    assert main(["run", str(PROGRAMS / f"{name}.tpc"), "--timing-only"]) == 0
    assert "Latency binds" not in capsys.readouterr().out


def test_tiles_have_no_such_limit(capsys: pytest.CaptureFixture[str]) -> None:
    path = PROGRAMS / "f32_to_f16.pto"
    assert "latency" not in {gain.name for gain in what_if(path)}
    assert main(["run", str(path), "--timing-only", "--json", "-"]) == 0
    assert "latency_bound" not in json.loads(capsys.readouterr().out)
