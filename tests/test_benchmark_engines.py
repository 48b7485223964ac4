"""The engines' benchmark runs, on programs too short to mean anything, and writes what it says."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from benchmarks import engine_sections, start_up
from benchmarks import engines as benchmark
from benchmarks.engine_cases import every_program, tile_cast

from castsim.engines import simulate
from castsim.execution.tree import Loop

SHORT = {
    "_SAMPLES": {"tpc_f32_exp_gaudi2.tpc": ()}, "_COUNTS": (10,), "_TRIPS": (100,), "_TRACED": (16,),
    "_NUMBERS": 1024,
}  # fmt: skip
"""Sections on programs that take no time."""


def test_small_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmark, "_CALLS", 1)
    monkeypatch.setattr(benchmark.start_up, "CALLS", 1)
    monkeypatch.setattr(benchmark.start_up, "STARTS", (("--help",), ("cast", "--help")))
    monkeypatch.setattr(benchmark, "_ESTIMATED", (("a2a3", "f32", "f16"),))
    monkeypatch.setattr(benchmark, "compiling_seconds", lambda: 12.3)  # minutes, and tests of compiled code do it
    programs = every_program()[:: len(every_program()) - 1]
    monkeypatch.setattr(benchmark, "every_program", lambda: programs)
    for name, short in SHORT.items():
        monkeypatch.setattr(engine_sections, name, short)
    page, data = tmp_path / "engines.md", tmp_path / "engines.json"
    assert benchmark.main(["--largest", "100", "--markdown", str(page), "--json", str(data)]) == 0
    found = json.loads(data.read_text())
    assert {row["count"] for row in found["rows"] if row["form"] == "row"} == {1, 10, 100}
    loops = {row["count"] for row in found["rows"] if row["form"] == "loop" and row["engine"] == "fast"}
    assert loops == {10**power for power in range(2, 10)}
    assert all(row["seconds"] > 0 for row in found["rows"])
    each = {row["count"] for row in found["rows"] if row["form"] == "loop" and row["engine"] != "fast"}
    assert each == {100}
    assert all(row["bytes"] > 1 << 20 for row in found["memory"])
    assert [row["command"] for row in found["commands"]] == ["castsim --help", "castsim cast --help"]
    text = page.read_text()
    assert "it was ready after 12.3 s here" in text
    assert all(program.name in text for program in programs)
    assert "| a2a3 f32 -> f16 |" in text
    assert all(f"\n## {title}\n" in text for title, _ in engine_sections.SECTIONS.values())
    assert all(f"| {words} " in text for words in ("tpc_f32_exp_gaudi2.tpc |", "16 | 34 | fast |", "1,024 |"))


def test_start_up_alone_replaces_its_section(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start_up, "STARTS", (("--help",), ("no such command",)))
    page = tmp_path / "engines.md"
    page.write_text(f"# Engines\n\nfirst\n\n{start_up.TITLE}\n\nformer\n\n## Last\n\nkept\n")
    assert (
        start_up.main(["--calls", "1", "--against", f"itself={sys.executable} -m castsim", "--markdown", str(page)])
        == 0
    )
    text = page.read_text()
    assert text.startswith("# Engines\n\nfirst\n\n## Start-up")
    assert text.endswith("\n\n## Last\n\nkept\n")
    assert "former" not in text
    assert "| command | itself | this version |" in text
    row, unknown = (line.split(" | ") for line in text.splitlines() if line.startswith("| `castsim"))
    assert all(10 < int(cell.strip(" |")) < 60_000 for cell in row[1:])
    assert [cell.strip(" |") for cell in unknown[1:]] == ["-", "-"]


def test_programs_are_what_they_are_called() -> None:
    for program in every_program():
        tree = program.loop(7)
        (loop,) = tree.root.items
        assert isinstance(loop, Loop)
        straight, looped = (simulate(each, program.target).total for each in (program.straight(7), program.loop(7)))
        assert straight == looped > 0
    assert tile_cast("a2a3", "f32", "i32", 4, 64).blocks == 64  # 4 x 64 x (4 + 4) bytes


def test_the_exponent_of_a_square_is_two() -> None:
    rows = [benchmark.Row("x", "row", count, "event", 1e-6 * count**2, 0) for count in (10, 100, 1000)]
    assert benchmark.exponent(rows) == pytest.approx(2)
    assert benchmark.exponent(rows[:2]) is None  # one of them takes less than a millisecond
