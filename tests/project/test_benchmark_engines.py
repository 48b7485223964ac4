"""The engines' benchmark runs, on programs too short to mean anything, and writes what it says."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from benchmarks import engine_sections, start_up
from benchmarks import engines as benchmark
from benchmarks.engine_cases import every_program, tile_cast
from kit.measured_record import read, write

from castsim.engines import simulate
from castsim.execution.tree import Loop

SHORT = {
    "_SAMPLES": {"tpc_f32_exp_gaudi2.tpc": ()}, "_COUNTS": (10,), "_TRACED": (16,), "_NUMBERS": 1024,
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
    page, data = tmp_path / "record.json", tmp_path / "engines.json"
    assert benchmark.main(["--largest", "100", "--record", str(page), "--json", str(data)]) == 0
    found = json.loads(data.read_text())
    assert {row["count"] for row in found["rows"] if row["form"] == "row"} == {1, 10, 100}
    loops = {row["count"] for row in found["rows"] if row["form"] == "loop" and row["engine"] == "fast"}
    assert loops == {10**power for power in range(2, 10)}
    assert all(row["seconds"] > 0 for row in found["rows"])
    each = {row["count"] for row in found["rows"] if row["form"] == "loop" and row["engine"] != "fast"}
    assert each == {100}
    assert all(row["bytes"] > 1 << 20 for row in found["memory"])
    assert [row["command"] for row in found["commands"]] == ["castsim --help", "castsim cast --help"]
    record = read(page)
    assert any("it was ready after 12.3 s here" in words for words in record["text"])
    tables = {section["title"]: section["tables"][0]["rows"] for section in record["sections"]}
    assert {row[0] for row in tables["Instructions in a row"]} == {program.name for program in programs}
    assert tables["estimate()"][0][0] == "a2a3 f32 -> f16"
    assert {title for title, _ in engine_sections.SECTIONS.values()} <= tables.keys()
    assert "tpc_f32_exp_gaudi2.tpc" in {row[0] for row in tables["Without numba"]}
    assert [16, 34, "fast"] in [row[:3] for row in tables["Traces"]]
    assert tables["What bounds f32 -> f64"][0][0] == 1024


def test_start_up_alone_replaces_its_section(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start_up, "STARTS", (("--help",), ("no such command",)))
    record = tmp_path / "engines.json"
    write(record, f"# Engines\n\nfirst\n\n{start_up.TITLE}\n\nformer\n\n## Last\n\nkept\n")
    assert (
        start_up.main(["--calls", "1", "--against", f"itself={sys.executable} -m castsim", "--record", str(record)])
        == 0
    )
    found = read(record)
    section, last = found["sections"]
    assert (found["title"], found["text"], last["text"]) == ("Engines", ["first"], ["kept"])
    assert section["title"] == start_up.TITLE.removeprefix("## ")
    assert "former" not in section["text"]
    assert section["tables"][0]["columns"] == ["command", "itself", "this version", "in imports of numpy"]
    row, unknown = section["tables"][0]["rows"]
    assert all(10 < cell < 60_000 for cell in row[1:-1])
    assert 0.05 < row[-1] < 100
    assert unknown[1:] == [None, None, None]


def test_programs_are_what_they_are_called() -> None:
    for program in every_program():
        tree = program.loop(7)
        (loop,) = tree.root.items
        assert isinstance(loop, Loop)
        straight, looped = (simulate(each, program.target).total for each in (program.straight(7), program.loop(7)))
        assert straight == looped > 0
    assert tile_cast("a2a3", "f32", "i32", 4, 64).blocks == 64  # 4 x 64 x (4 + 4) bytes
