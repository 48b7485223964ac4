"""Views of runs, read back by rules written from the descriptions of their formats."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from castsim.__main__ import main
from castsim.engines import simulate
from castsim.files import whole_file
from castsim.reports.views.recording import SegmentRecorder, Window
from castsim.reports.views.timeline import Timeline, make_timeline
from castsim.running import load
from castsim.running.loaded import RunOptions
from castsim.timing import Timing

PROGRAMS = Path(__file__).parent.parent / "programs"
SAMPLES = (
    "f32_to_f16.pto",
    "f32_to_f16_pipelined.pto",
    "f16_to_i8_wrap.pto",
    "a5_f32_to_i8_by_steps.pto",
    "tpc_f32_i32_pipelined_goya.tpc",
    "tpc_u8_f32_dequantise_greco.tpc",
)
EMPTY = "empty"


def timed(name: str, window: Window) -> tuple[Timing, Timeline]:
    loaded = load(PROGRAMS / name, None, None, {})
    tree = loaded.issue({}, RunOptions(values=False, max_cycles=10**6)).loaded.tree
    recorder = SegmentRecorder(window)
    timing = simulate(tree, loaded.target, recorder, engine="event")
    return timing, make_timeline(name, tree, timing, recorder, window)


def shown(tmp_path: Path, *options: str) -> None:
    assert main(["run", *options, "--timing-only", "--quiet"]) == 0


# ------------------------------------------------------------------------------------------------------------- text

ROW = re.compile(r"\[(\d+)\] +(\S+(?: LOAD| STORE)?) +(.*)")
LIFE = re.compile(r"[ .]*(D?=*e*E?-*R?)[ .]*")


def text_rows(text: str) -> dict[int, tuple[int, str]]:
    """Return first column and letters of every operation; panels are joined."""
    lines = text.splitlines()
    head = next(number for number, line in enumerate(lines) if line.startswith("timeline: "))
    found: dict[int, tuple[int, str]] = {}
    start = width = margin = 0
    for line in lines[head + 1 :]:
        ruler = re.fullmatch(r"( +)([0-9]+)", line)
        if ruler and len(ruler[2]) > 1 and set(ruler[2]) <= set("0123456789") and "0123456789".find(ruler[2][1]) >= 0:
            if found and width:
                start += width
            margin, width = len(ruler[1]), len(ruler[2])
            continue
        row = ROW.match(line)
        if row:
            cells = line[margin : margin + width]
            index = int(row[1])
            first, before = found.get(index, (start, ""))
            found[index] = (first, before + cells)
    return found


@pytest.mark.parametrize("name", SAMPLES)
def test_text_view_draws_every_life(name: str, capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    monkeypatch.setenv("COLUMNS", "250")
    timing, _ = timed(name, Window())
    end = min(timing.total, 120)
    assert main(["run", str(PROGRAMS / name), "--timing-only", "--timeline", "--window", f"0:{end}"]) in (0, 1)
    rows = text_rows(capsys.readouterr().out)
    assert rows
    retired = 0
    for operation in timing.operations:
        retired = max(retired, operation.end)
        if operation.index not in rows:
            assert operation.start >= end - 1 or operation.end < 0
            continue
        first, cells = rows[operation.index]
        assert first == 0
        assert LIFE.fullmatch(cells), cells
        if retired < end:
            assert cells[retired] == "R"
        if "E" in cells:
            assert cells.index("E") == operation.end - 1
        elif operation.end <= end and operation.causes and "busy" in map(str, operation.causes):
            assert {"flag wait", "barrier"} & set(map(str, operation.causes)), cells


# --------------------------------------------------------------------------------------------------------- perfetto


@pytest.mark.parametrize("name", SAMPLES)
def test_trace_accounts_for_every_cycle(name: str, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    shown(tmp_path, str(PROGRAMS / name), "--trace", str(path))
    document = json.loads(path.read_text())
    events = document["traceEvents"]
    timing, _ = timed(name, Window())
    assert document["otherData"]["total_cycles"] == timing.total
    assert "cycle" in document["otherData"]["time_unit"]
    assert {event["ph"] for event in events} <= {"X", "M", "s", "f", "C"}
    threads = {e["tid"]: e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
    threads = {number: pipe for number, pipe in threads.items() if pipe in timing.pipes}
    assert list(threads.values()) == list(timing.pipes)
    slices = [event for event in events if event["ph"] == "X"]
    for number, pipe in threads.items():
        own = sorted((e["ts"], e["ts"] + e["dur"]) for e in slices if e["tid"] == number and e["dur"])
        assert all(one[1] <= two[0] for one, two in pairwise(own)), "slices of a thread overlap"
        spent: Counter[str] = Counter()
        for event in slices:
            if event["tid"] == number and event["dur"]:
                spent[event["args"]["cause"]] += event["dur"]
        causes = {str(cause): cycles for cause, cycles in timing.pipes[pipe].causes.items() if cycles}
        causes.pop(EMPTY, None)
        assert spent == causes
    check_flows(events, slices)
    assert all(event["args"]["value"] >= 0 for event in events if event["ph"] == "C")


def check_flows(events: list[dict[str, Any]], slices: list[dict[str, Any]]) -> None:
    """An arrow has one start and one end, the end not before the start, and both lie in or at a slice."""
    starts = {event["id"]: event for event in events if event["ph"] == "s"}
    ends = {event["id"]: event for event in events if event["ph"] == "f"}
    assert starts.keys() == ends.keys()
    for number, start in starts.items():
        end = ends[number]
        assert end["bp"] == "e"
        assert start["ts"] <= end["ts"]
        for side in (start, end):
            assert any(
                each["tid"] == side["tid"] and each["ts"] <= side["ts"] <= each["ts"] + each["dur"] for each in slices
            ), side


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


def test_window_cuts_slices(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    shown(tmp_path, str(PROGRAMS / "f32_to_f16.pto"), "--trace", str(path), "--window", "100:300")
    slices = [event for event in json.loads(path.read_text())["traceEvents"] if event["ph"] == "X" and event["dur"]]
    assert slices
    assert all(event["ts"] >= 100 and event["ts"] + event["dur"] <= 300 for event in slices)


# ----------------------------------------------------------------------------------------------------------- kanata


@pytest.mark.parametrize("name", SAMPLES)
def test_kanata_log_is_well_formed(name: str, tmp_path: Path) -> None:
    path = tmp_path / "run.kanata"
    shown(tmp_path, str(PROGRAMS / name), "--kanata", str(path))
    timing, _ = timed(name, Window())
    lines = path.read_text().splitlines()
    assert lines[0] == "Kanata\t0004"
    assert lines[1].startswith("C=\t")
    cycle = int(lines[1].split("\t")[1])
    known: dict[int, int] = {}
    stages: dict[tuple[int, int], tuple[str, int]] = {}
    spent: dict[tuple[int, str], int] = {}
    retired: dict[int, int] = {}
    for line in lines[2:]:
        command, *fields = line.split("\t")
        if command == "C":
            assert int(fields[0]) > 0
            cycle += int(fields[0])
            continue
        number = int(fields[0])
        if command == "I":
            assert number == len(known), "file numbers count up"
            known[number] = int(fields[1])
            continue
        assert number in known
        assert number not in retired
        if command == "S":
            lane = int(fields[1])
            assert (number, lane) not in stages
            stages[number, lane] = (fields[2], cycle)
        elif command == "E":
            stage, since = stages.pop((number, int(fields[1])))
            assert stage == fields[2]
            key = (number, stage if fields[1] == "0" else "stall")
            spent[key] = spent.get(key, 0) + cycle - since
        elif command == "R":
            assert not any(each == number for each, _ in stages)
            retired[number] = cycle
        elif command == "W":
            assert int(fields[1]) in known
        else:
            assert command == "L"
            assert fields[1] in ("0", "1")
    assert retired.keys() == known.keys()
    assert not stages
    check_against(timing, known, spent, retired)


def check_against(
    timing: Timing, known: dict[int, int], spent: dict[tuple[int, str], int], retired: dict[int, int]
) -> None:
    """Times of the log are those of the run."""
    number_of = {index: number for number, index in known.items()}
    latest = 0
    for operation in timing.operations:
        latest = max(latest, operation.end)
        number = number_of[operation.index]
        assert retired[number] == latest
        causes = set(map(str, operation.causes))
        if causes and not causes & {"flag wait", "barrier"}:
            assert spent.get((number, "Ex"), 0) == operation.end - operation.start
    assert sum(cycles for (_, what), cycles in spent.items() if what == "stall") >= 0


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
