"""Traces, timelines and windows of them, against the table of the run and the rules of their formats.

Rules of the Trace Event Format, from its description: an event has `ph`, `pid` and, for slices, `tid`, `ts`, `dur` and
`name`; slices of one thread are disjoint or nested; `M` events name processes and threads; a counter has numeric
series; the two ends of a flow share category, name and id. What a window shows is what the whole run shows of it.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cache
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from kit import fast_programs
from kit.bundle_trees import Mix, random_target, random_tree
from kit.command_output import file_of, out_of
from kit.paths import PROGRAMS
from kit.sample_arguments import argument_words, scalars
from makers.expected_reports import derivation_facts

from castsim import run
from castsim.__main__ import main
from castsim.engines import observe, simulate
from castsim.execution.timing import Timing
from castsim.execution.tree import Tree, accesses, instances
from castsim.files import whole_file
from castsim.isa.errors import EngineError
from castsim.reports.sections.kernel import buffer_maps
from castsim.reports.views.perfetto import counters, perfetto_text
from castsim.reports.views.recording import SegmentRecorder, Window
from castsim.reports.views.timeline import Timeline, dependences, make_timeline, pipeline_lines
from castsim.running.loaded import RunOptions
from castsim.running.program_loading import load
from castsim.running.program_runs import Result
from castsim.targets.loader import Target, load_target

LONG = ("f32_to_bf16_rows",)
UNSCHEDULED = "sequential"
SAMPLES = sorted(
    path
    for path in (*PROGRAMS.rglob("*.pto"), *PROGRAMS.rglob("*.tpc"))
    if path.stem not in LONG and path.parent.name != UNSCHEDULED
)
SYNCHRONISES = ("set_flag", "wait_flag", "barrier", "pipe_barrier")
Event = dict[str, Any]


@cache
def result(path: Path) -> Result:
    return run(path, args=scalars(path), timing_only=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("traces")


def written(folder: Path, path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return trace and report of one run of the command."""
    trace, report = folder / f"{path.stem}.trace.json", folder / f"{path.stem}.json"
    if not trace.exists():
        options = ["--timing-only", "--quiet", "--trace", str(trace), "--json", str(report)]
        assert main(["run", str(path), *argument_words(path), *options]) in (0, 1)
    return json.loads(trace.read_text()), json.loads(report.read_text())


def threads_of(events: list[Event]) -> dict[int, str]:
    return {e["tid"]: e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "thread_name"}


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_the_format_is_kept(path: Path, folder: Path) -> None:
    document, report = written(folder, path)
    events = document["traceEvents"]
    threads = threads_of(events)
    assert document["otherData"]["total_cycles"] == report["total_cycles"]
    assert len(set(threads.values())) == len(threads)
    by_thread: dict[int, list[Event]] = {}
    for event in events:
        assert event["pid"] >= 1
        assert event.get("tid", 1) >= 1
        assert event["ph"] in ("X", "M", "s", "f", "C")
        assert isinstance(event["name"], str)
        if event["ph"] == "M":
            continue
        assert isinstance(event["ts"], int)
        assert event["ts"] >= 0
        if event["ph"] == "C":
            assert all(isinstance(value, int) for value in event["args"].values())
            continue
        assert event["tid"] in threads
        if event["ph"] == "X":
            assert event["dur"] >= 0
            by_thread.setdefault(event["tid"], []).append(event)
    for mine in by_thread.values():
        spans = sorted((e["ts"], e["ts"] + e["dur"]) for e in mine if e["dur"])
        assert all(one[1] <= two[0] for one, two in pairwise(spans))
    for number, mine in by_thread.items():
        if threads[number] in report["pipes"]:  # every cycle of a pipe but the idle ones, by its cause
            spent: Counter[str] = Counter()
            for event in mine:
                spent.update({event["args"]["cause"].replace(" ", "_"): event["dur"]} if event["dur"] else {})
            causes = report["pipes"][threads[number]]["causes"]
            assert spent == {cause: cycles for cause, cycles in causes.items() if cycles and cause != "empty"}
    flows = Counter((e["cat"], e["name"], e["id"], e["ph"]) for e in events if e["ph"] in "sf")
    assert all(count == 1 and flows[(*key[:3], "f" if key[3] == "s" else "s")] == 1 for key, count in flows.items())


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_every_execution_is_that_of_the_table(path: Path, folder: Path) -> None:
    document, report = written(folder, path)
    events, threads = document["traceEvents"], threads_of(document["traceEvents"])
    slices = [event for event in events if event.get("cat") == "instruction"]
    executions, instructions = result(path).timing.executions, result(path).loaded.tree.instructions
    for event in slices:
        execution = executions[event["args"]["execution"]]
        assert (event["ts"], event["ts"] + event["dur"]) == (execution.start, execution.end)
        assert event["name"] == instructions[execution.instruction].text
        assert re.fullmatch(r"(.*) instructions( \(\d+\))?", threads[event["tid"]])
    assert len({event["args"]["execution"] for event in slices}) == len(slices)
    # Each row of the table that is an execution and no mere synchronisation or empty bundle has its slice.
    drawn = Counter((e["args"]["line"], e["ts"], e["ts"] + e["dur"]) for e in slices)
    done = {operation.execution for operation in result(path).timing.operations}
    mute = {(executions[n].start, executions[n].end) for n in range(len(executions)) if n not in done}
    for row in report["instructions"]:
        where = (row["start_cycle"], row["end_cycle"])
        if row["op"] not in SYNCHRONISES and where not in mute:
            assert drawn[row["line"], *where], row


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_waits_are_no_part_of_executions(path: Path, folder: Path) -> None:
    document, report = written(folder, path)
    events, threads = document["traceEvents"], threads_of(document["traceEvents"])
    executions = result(path).timing.executions
    stalls = {(threads[e["tid"]], e["name"]): [] for e in events if e.get("cat") == "stall"}
    for event in events:
        if event.get("cat") == "stall":
            stalls[threads[event["tid"]], event["name"]].append((event["ts"], event["ts"] + event["dur"]))
    causes = {cause.replace("_", " ") for pipe in report["pipes"].values() for cause in pipe["causes"]} | {"issue"}
    assert {name for _, name in stalls} <= causes
    for event in (event for event in events if event.get("cat") == "wait"):
        assert event["dur"] > 0
        assert event["name"] in causes
        assert event["ts"] + event["dur"] <= executions[event["args"]["execution"]].start
        pipe = threads[event["tid"]].removesuffix(" waits")
        assert pipe in report["pipes"]
        if event["name"] != "issue":
            assert any(a <= event["ts"] and event["ts"] + event["dur"] <= b for a, b in stalls[pipe, event["name"]])


def test_a_cast_behind_a_load_waits_for_its_flag(folder: Path) -> None:
    # As programs/f32_to_f16.expected derives it: the first of four repeats starts once the load has ended; the cycles
    # of the control write and of the issue, which went out while the pipe waited, count to the cast.
    facts: dict[str, Any] = derivation_facts("a2a3")
    loaded = facts["issue"] + facts["load"](4 * 64 * 4)
    start = loaded - facts["control"] - facts["issue"]
    end = loaded + facts["vconv_f322f16"](1) + 3 + facts["drain"]
    sent = 3 * facts["issue"]  # behind the load and the set and the wait of the flag
    document, _ = written(folder, PROGRAMS / "f32_to_f16.pto")
    mine = [e for e in document["traceEvents"] if e.get("args", {}).get("instruction", "").startswith("tcvt")]
    found = {(e["cat"], e["name"], e["ts"], e["ts"] + e["dur"]) for e in mine if e["cat"] in ("instruction", "wait")}
    assert found == {("instruction", "tcvt f32 -> f16 RINT", start, end), ("wait", "flag wait", sent, start)}


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_a_timeline_executes_when_the_operations_do(
    path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    timing = result(path).timing
    end = min(timing.total, 400)
    monkeypatch.setenv("COLUMNS", "600")
    options = ["--timing-only", "--timeline", "--window", f"0:{end}"]
    assert main(["run", str(path), *argument_words(path), *options]) in (0, 1)
    rows = re.findall(r"^\[(\d+)\] (?:\S+(?: LOAD| STORE)?) +(.*)$", capsys.readouterr().out, re.MULTILINE)
    lines = {int(number): cells for number, cells in rows}
    assert lines
    retired = 0
    for operation in timing.operations:
        retired = max(retired, operation.end)
        if operation.index in lines:
            assert re.fullmatch(r"[ .]*D?=*e*E?-*R?[ .]*", lines[operation.index][:end])
            assert retired >= end or lines[operation.index][retired] == "R"
        if operation.index not in lines or operation.name.startswith(SYNCHRONISES) or not operation.causes:
            continue
        cells = lines[operation.index][:end]
        executes = [cycle for cycle, letter in enumerate(cells) if letter in "eE"]
        inside = range(operation.start, min(operation.end, end))
        # R goes before E and E before D where cycles coincide; a bundle is dispatched in its first cycle.
        assert {*executes} <= {*inside}
        assert {*inside} - {*executes} <= {operation.start, operation.end - 1}


# ------------------------------------- views of runs, read back by rules written from the descriptions of their formats


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


def test_links_are_written_through(tmp_path: Path) -> None:
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
    out = out_of(capsys, ["run", str(PROGRAMS / "f32_to_f16.pto"), "--timing-only", "--timeline", "--window", "0:30"])
    _, _, view = out.partition("timeline: ")
    said = " ".join(view.split())
    assert "D dispatched, = waiting, e executing, E executed, - waiting to retire, R retired" in said
    # What no terminal of the width has room for is marked.
    cut = [line for line in view.splitlines() if line.endswith("...")]
    assert bool(cut) == (columns == "50")
    assert all(len(line) <= int(columns) for line in view.splitlines())
    assert ("set ctrl (tcvt f32 -> f16 RINT)" in said) == (not cut)


def test_views_leave_the_engine_of_the_report_alone(tmp_path: Path) -> None:
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
    path = file_of(tmp_path / "empty.pto", "func.func @k() attributes {pto.entry} {\nreturn\n}\n")
    files = ["--trace", str(tmp_path / "t.json")]
    out = out_of(capsys, ["run", str(path), "--target", "a2a3", "--timing-only", "--timeline", *files])
    assert "trace: no cycles written" in out
    assert "timeline: no cycles" in out


THOROUGH = bool(os.environ.get("CASTSIM_THOROUGH"))
NAMES = sorted(path.name for path in SAMPLES if path.parent == PROGRAMS)
SEEDS = 2000 if THOROUGH else 20


@dataclass(frozen=True)
class Run:
    """A program with its timing and what the event engine tells of the whole run."""

    tree: Tree
    target: Target
    timing: Timing
    whole: SegmentRecorder

    def view(self, window: Window) -> Timeline:
        recorder = SegmentRecorder(window)
        recorder.issued = observe(self.tree, self.target, recorder)
        return make_timeline("x", self.tree, self.timing, recorder, window)

    def clipped(self, window: Window) -> Timeline:
        """The window, from what was heard of the whole run."""
        return make_timeline("x", self.tree, self.timing, self.whole, window)

    def document(self, view: Timeline) -> list[Event]:
        sizes = {name: memory.capacity_bytes for name, memory in getattr(self.target, "memories", {}).items()}
        amounts = counters(self.tree, self.timing, view, sizes)
        made = perfetto_text(view, dependences(self.tree, view), amounts, self.target.name)
        events: list[Event] = json.loads("".join(made))["traceEvents"]
        return events


def run_of(tree: Tree, target: Target) -> Run:
    whole = SegmentRecorder(Window())
    simulate(tree, target, whole, engine="event")
    return Run(tree, target, simulate(tree, target), whole)


@cache
def sample(name: str) -> Run:
    loaded = load(PROGRAMS / name, None, None, {})
    tree = loaded.issue({}, RunOptions(values=False, max_cycles=10**6)).loaded.tree
    return run_of(tree, loaded.target)


def windows(total: int, random: Random) -> Iterator[Window]:
    """The whole run, its first and last cycles, and some in between."""
    yield Window(0, total)
    yield Window(0, min(total, 100))
    yield Window(max(0, total - 50), total)
    for length in (1, 40, 400):
        start = random.randrange(total)
        yield Window(start, min(total, start + length))


def drawn(name: str) -> list[Window]:
    return list(windows(sample(name).timing.total, Random(name)))


# ------------------------------------------------------------------------------------------- a run that is given up


def same(run: Run, window: Window) -> None:
    """The engine that stops tells what the one that goes on does."""
    cut, clipped = run.view(window), run.clipped(window)
    for field in fields(Timeline):
        assert getattr(cut, field.name) == getattr(clipped, field.name), field.name


@pytest.mark.parametrize("name", NAMES)
def test_samples_given_up_behind_the_window(name: str) -> None:
    for window in drawn(name):
        same(sample(name), window)


@pytest.mark.parametrize("kind", ["strided", "functions", "bundles"])
def test_random_programs_given_up_behind_the_window(kind: str) -> None:
    shown = 0
    for seed in range(SEEDS):
        random = Random(seed)
        if kind == "bundles":
            target = random_target(random, load_target(random.choice(("goya", "gaudi", "greco"))))
            tree = random_tree(random, Mix(items=4, trips=3))
        else:
            tree, target = getattr(fast_programs, kind)(seed, small=True)
        try:
            run = run_of(tree, target)
        except EngineError:  # a deadlock
            continue
        if not run.timing.total:
            continue
        inside = all(each.start >= 0 for lowered, moved in instances(tree) for each in accesses(lowered, moved))
        for window in windows(run.timing.total, random):
            same(run, window)
            shown += 1
            if inside:
                cut, clipped = run.view(window), run.clipped(window)
                assert run.document(cut) == run.document(clipped)
                check_trace(run, window)
    assert shown > SEEDS


def test_the_engine_stops_behind_the_window() -> None:
    run = sample("f32_to_f16_pipelined.pto")
    heard: list[int] = []

    class Ears(SegmentRecorder):
        def segment(self, *what: Any) -> None:
            heard.append(what[1])
            super().segment(*what)

    observe(run.tree, run.target, Ears(Window(0, 100)))
    # A load of 16 rows of 2048 bytes at 128 bytes per cycle is under way in cycle 100, and finished.
    assert max(heard) < 1000 < run.timing.total


def test_too_many_segments_end_the_view_early() -> None:
    run = sample("f32_to_f16_pipelined.pto")
    recorder = SegmentRecorder(Window(), limit=500)
    recorder.issued = observe(run.tree, run.target, recorder)
    view = make_timeline("x", run.tree, run.timing, recorder, Window())
    assert view.cut == view.end < run.timing.total
    assert len(recorder.segments) <= 625
    # Pipes that wait for long tell of it late; nothing before the cut may be missing.
    assert view.segments == run.clipped(Window(0, view.cut)).segments


# --------------------------------------------------------------------------------------------------------- perfetto


def flows(events: list[Event]) -> Counter[tuple[Any, ...]]:
    starts = {event["id"]: event for event in events if event["ph"] == "s"}
    ends = {event["id"]: event for event in events if event["ph"] == "f"}
    assert starts.keys() == ends.keys()
    return Counter(
        (start["name"], start["tid"], start["ts"], ends[number]["tid"], ends[number]["ts"])
        for number, start in starts.items()
    )


def spans(events: list[Event]) -> dict[int, tuple[int, int]]:
    found = [event for event in events if event.get("cat") == "instruction"]
    made = {event["args"]["execution"]: (event["ts"], event["ts"] + event["dur"]) for event in found}
    assert len(made) == len(found)
    return made


def waits(events: list[Event]) -> list[tuple[int, str, int, int]]:
    """What instructions wait for: execution, cause, first cycle, and that behind the last."""
    found = [event for event in events if event.get("cat") == "wait"]
    return sorted((e["args"]["execution"], e["name"], e["ts"], e["ts"] + e["dur"]) for e in found)


def counted(events: list[Event], name: str, cycle: int) -> int:
    """The value that a counter holds in a cycle: the last one given."""
    known = [event for event in events if event["ph"] == "C" and event["name"] == name and event["ts"] <= cycle]
    return known[-1]["args"]["value"] if known else 0


def check_trace(run: Run, window: Window) -> None:
    events, whole = run.document(run.view(window)), run.document(run.clipped(Window()))
    start, end = window.start, window.end or 0
    last = end if end == run.timing.total else end - 1

    def inside(cycle: int) -> bool:
        return start <= cycle <= last

    slices = [event for event in events if event["ph"] == "X"]
    for event in events:
        if event in slices:
            assert start <= event["ts"] <= event["ts"] + event.get("dur", 0) <= end
        elif event["ph"] != "M":
            assert inside(event["ts"]), event
    check_sums(run, window, events, slices)
    on = [(each["tid"], each["ts"], each["ts"] + max(each["dur"], 1)) for each in slices]
    for event in events:
        if event["ph"] in ("s", "f"):
            assert any(tid == event["tid"] and first <= event["ts"] < behind for tid, first, behind in on), event
    assert flows(events) == Counter(
        {flow: count for flow, count in flows(whole).items() if inside(flow[2]) and inside(flow[4])}
    )
    clipped = {number: (max(begin, start), min(stop, end)) for number, (begin, stop) in spans(whole).items()}
    zero = {number for number, (begin, stop) in spans(whole).items() if begin == stop and inside(begin)}
    left = {number: span for number, span in clipped.items() if span[0] < span[1] or number in zero}
    assert spans(events) == left
    cut = [(number, why, max(begin, start), min(stop, end)) for number, why, begin, stop in waits(whole)]
    assert waits(events) == [each for each in cut if each[2] < each[3]]
    for name in {event["name"] for event in whole if event["ph"] == "C"}:
        for cycle in {start, last, *(each["ts"] for each in (*whole, *events) if each["ph"] == "C")}:
            if inside(cycle):
                assert counted(events, name, cycle) == counted(whole, name, cycle), (name, cycle)


def check_sums(run: Run, window: Window, events: list[Event], slices: list[Event]) -> None:
    """The slices of a thread do not overlap, and add up to what the whole run says of those cycles."""
    threads = {e["tid"]: e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
    threads = {number: pipe for number, pipe in threads.items() if pipe in run.timing.pipes}
    for number, pipe in threads.items():
        own = sorted((e["ts"], e["ts"] + e["dur"]) for e in slices if e["tid"] == number and e["dur"])
        assert all(one[1] <= two[0] for one, two in pairwise(own))
        spent: Counter[str] = Counter()
        for event in slices:
            if event["tid"] == number and event["dur"]:
                spent[event["args"]["cause"]] += event["dur"]
        told: Counter[str] = Counter()
        for segment in run.whole.segments:
            cycles = min(segment.end, window.end or 0) - max(segment.start, window.start)
            if segment.pipe == pipe and cycles > 0 and str(segment.cause) != "empty":
                told[str(segment.cause)] += cycles
        assert spent == told


@pytest.mark.parametrize("name", NAMES)
def test_a_trace_is_cut_to_its_window(name: str) -> None:
    for window in drawn(name)[1:]:
        check_trace(sample(name), window)


@pytest.mark.parametrize("name", ["f32_to_f16_pipelined.pto", "f32_to_bf16_rows.pto", "kernels/rms_norm_a2a3.pto"])
def test_no_byte_is_in_use_twice(name: str) -> None:
    """A buffer that is written again while its last reader ends holds no more bytes than the map of it says."""
    program = load(PROGRAMS / name, None, None, {"eps": 1e-6} if "rms" in name else {})
    run = run_of(program.tree, program.target)
    maps = {each.name: each.peak_bytes for each in buffer_maps(run.tree, run.timing, run.target)}
    tracks = counters(run.tree, run.timing, run.view(Window()), {"ub": run.target.memories["ub"].capacity_bytes})
    peaks = {track.of: max(value for _, value in track.values) for track in tracks if track.unit == "bytes"}
    assert peaks == {"ub": maps["ub"]}


# ------------------------------------------------------------------------------------------ windows of the view as text


ROW = re.compile(r"\[(\d+)\] ")


def letters(view: Timeline) -> tuple[dict[int, str], str]:
    """The cells of every row, of a view as wide as it needs, and what is said above."""
    length = view.end - view.start
    lines = list(pipeline_lines(view, 400 + length))
    ruler = next(line for line in lines if re.fullmatch(r" *[0-9]+", line) and len(line.strip()) == length)
    margin = len(ruler) - length
    rows = {int(found[1]): line[margin : margin + length] for line in lines if (found := ROW.match(line))}
    return rows, "\n".join(lines[: lines.index(ruler)])


@pytest.mark.parametrize("name", NAMES)
def test_rows_are_those_to_which_something_happens(name: str) -> None:
    run = sample(name)
    for window in drawn(name):
        length = (window.end or 0) - window.start
        if length < 20 or length > 2000:
            continue
        rows, said = letters(run.view(window))
        wide = Window(max(0, window.start - 300), min(run.timing.total, (window.end or 0) + 300))
        around, _ = letters(run.view(wide))
        offset = window.start - wide.start
        parts = {number: cells[offset : offset + length] for number, cells in around.items()}
        acting = {number: cells for number, cells in parts.items() if re.search("[DeER]|=-", cells)}
        assert rows == acting
        # Every operation that is there all the time, and nothing but waits, is counted.
        counts = {where: int(count) for count, where in re.findall(r"(\d+) (in a queue|to retire)", said)}
        assert all(count > 0 for count in counts.values())
        waiting = Counter(
            "in a queue" if operation.end >= (window.end or 0) else "to retire"
            for operation in run.view(window).rows
            if operation.index not in rows
        )
        assert counts == waiting


def test_conversions_with_store_barriers_execute() -> None:
    run = sample("a5_f32_to_e4m3fn_padded.pto")
    conversion = next(each for each in run.timing.operations if each.pipe == "V" and each.name.startswith("f32 ->"))
    assert "store barrier" in map(str, conversion.causes)
    rows, _ = letters(run.view(Window(conversion.start, conversion.end + 1)))
    assert rows[conversion.index] == "e" * (conversion.end - conversion.start - 1) + "ER"
    events = run.document(run.view(Window(0, run.timing.total)))
    # Its control writes come before, so the instruction begins no later than it.
    assert any(begin <= conversion.start and end == conversion.end for begin, end in spans(events).values())


def test_a_refused_window_leaves_no_file(tmp_path: Path) -> None:
    path = file_of(tmp_path / "trace.json", "before")
    program = str(PROGRAMS / "f32_to_f16.pto")
    assert main(["run", program, "--timing-only", "--trace", str(path), "--window", "0:99999"]) == 2
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]
