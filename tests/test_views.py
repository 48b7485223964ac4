"""Views of runs, read back by rules written from the descriptions of their formats."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from castsim.__main__ import main
from castsim.files import whole_file

PROGRAMS = Path(__file__).parent.parent / "programs"


def shown(tmp_path: Path, *options: str) -> None:
    assert main(["run", *options, "--timing-only", "--quiet"]) == 0


# --------------------------------------------------------------------------------------------------------- perfetto


def test_flows_follow_flags_and_bytes(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    shown(tmp_path, str(PROGRAMS / "f32_to_f16.pto"), "--trace", str(path))
    names = {event["name"] for event in json.loads(path.read_text())["traceEvents"] if event["ph"] == "s"}
    # The load fills 4 x 64 x 4 bytes, the cast reads them and leaves 4 x 64 x 2 for the store.
    assert any(name.startswith("flag MTE2 -> V") for name in names)
    assert any(name.startswith("flag V -> MTE3") for name in names)
    assert sum(name.startswith("ub bytes") for name in names) == 2


def test_buffer_counter_adds_up(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    shown(tmp_path, str(PROGRAMS / "f32_to_f16.pto"), "--trace", str(path))
    values = [
        e["args"]["value"] for e in json.loads(path.read_text())["traceEvents"] if e["name"] == "ub in use (bytes)"
    ]
    # 1024 bytes of f32 come with the load, 512 of f16 while the cast runs, then only those, then nothing.
    assert values == [1024, 1536, 512, 0]


# -------------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--timeline", "--window", "5"], "not of the form A:B"),
        (["--timeline", "--window", "9:9"], "nothing happens between"),
        (["--timeline", "--window", "0:99999"], "the run ends in cycle"),
        (["--timeline", "--window", "9999:"], "the run ends in cycle"),
        (["--window", "0:9"], "nothing to show"),
        (["--trace", "/nowhere/at/all.json"], "cannot be written"),
        (["--kanata", "/"], "cannot be written"),
        (["--trace", ""], "--trace '': an empty string is not a file name"),
        (["--kanata", ""], "--kanata '': an empty string is not a file name"),
    ],
)
def test_bad_views_are_refused(options: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(PROGRAMS / "f32_to_f16.pto"), "--timing-only", *options]) == 2
    assert said in capsys.readouterr().err


def test_a_refused_window_leaves_no_file(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text("before")
    program = str(PROGRAMS / "f32_to_f16.pto")
    assert main(["run", program, "--timing-only", "--trace", str(path), "--window", "0:99999"]) == 2
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_links_are_written_through(tmp_path: Path) -> None:
    """A link stays one; what it points to, there already or not, gets the trace."""
    program = str(PROGRAMS / "f32_to_f16.pto")
    (tmp_path / "elsewhere").mkdir()
    for name in ("old.json", "new.json"):
        goal, link = tmp_path / "elsewhere" / name, tmp_path / name
        if name == "old.json":
            goal.write_text("before")
        link.symlink_to(Path("elsewhere") / name)
        shown(tmp_path, program, "--trace", str(link))
        assert link.is_symlink()
        assert not goal.is_symlink()
        assert json.loads(goal.read_text())["traceEvents"]
    assert sorted(path.name for path in (tmp_path / "elsewhere").iterdir()) == ["new.json", "old.json"]


def test_a_pipe_takes_a_trace(tmp_path: Path) -> None:
    """As the shell's >(...) hands it over: a link to a pipe that has no name in the file system."""
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as pipe:
        with os.fdopen(writing, "wb"):
            shown(tmp_path, str(PROGRAMS / "f32_to_f16.pto"), "--trace", f"/dev/fd/{writing}", "--window", "0:30")
        assert json.loads(pipe.read())["otherData"]["end_cycle"] == 30


def test_a_link_into_nowhere_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    round_about = tmp_path / "round.json"
    round_about.symlink_to(round_about)
    (tmp_path / "gone.json").symlink_to(tmp_path / "missing" / "file.json")
    for link in (round_about, tmp_path / "gone.json"):
        assert main(["run", str(PROGRAMS / "f32_to_f16.pto"), "--timing-only", "--trace", str(link)]) == 2
        assert "cannot be written" in capsys.readouterr().err
        assert link.is_symlink()


def test_nothing_is_half_written_through_a_link(tmp_path: Path) -> None:
    goal, link = tmp_path / "goal", tmp_path / "link"
    goal.write_text("before")
    link.symlink_to(goal)
    with pytest.raises(ZeroDivisionError), whole_file(link) as file:
        file.write(b"half")
        raise ZeroDivisionError
    assert goal.read_text() == "before"
    assert sorted(tmp_path.iterdir()) == [goal, link]


@pytest.mark.parametrize("columns", ["50", "100", "180"])
def test_no_line_is_cut(columns: str, capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert main(["run", str(PROGRAMS / "f32_to_f16.pto"), "--timing-only", "--timeline", "--window", "0:30"]) == 0
    out = capsys.readouterr().out
    _, _, view = out.partition("timeline: ")
    said = " ".join(view.split())
    assert "D dispatched, = waiting, e executing, E executed, - waiting to retire, R retired" in said
    # What no terminal of the width has room for is marked.
    cut = [line for line in view.splitlines() if line.endswith("...")]
    assert bool(cut) == (columns == "50")
    assert all(len(line) <= int(columns) for line in view.splitlines())
    assert ("set ctrl (tcvt f32 -> f16 RINT)" in said) == (not cut)


def test_views_leave_the_engine_of_the_report_alone(tmp_path: Path) -> None:
    """The figures are those of the engine asked for, fast by default; the view of either is the same."""
    program = str(PROGRAMS / "f32_to_f16_pipelined.pto")
    reports, traces = [], []
    for engine in ((), ("--engine", "fast"), ("--engine", "event")):
        report, trace = tmp_path / "report.json", tmp_path / "trace.json"
        shown(tmp_path, program, *engine, "--trace", str(trace), "--window", "900:1500", "--json", str(report))
        reports.append(json.loads(report.read_text()))
        traces.append(trace.read_bytes())
    assert [report["engine"] for report in reports] == ["fast", "fast", "event"]
    assert traces[0] == traces[1] == traces[2]


def test_a_program_without_cycles_has_empty_views(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "empty.pto"
    path.write_text("func.func @k() attributes {pto.entry} {\nreturn\n}\n")
    files = ["--trace", str(tmp_path / "t.json"), "--kanata", str(tmp_path / "t.kanata")]
    assert main(["run", str(path), "--target", "a2a3", "--timing-only", "--timeline", *files]) == 0
    out = capsys.readouterr().out
    assert "trace: no cycles written" in out
    assert "kanata: no cycles written" in out
    assert "timeline: no cycles" in out
