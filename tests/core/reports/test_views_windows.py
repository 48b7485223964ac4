"""Windows of views: everything shown lies in them, and is what the view of the whole run shows of those cycles."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cache
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from kit import fast_programs
from kit.bundle_trees import Mix, random_target, random_tree
from kit.paths import PROGRAMS

from castsim.engines import observe, simulate
from castsim.execution.timing import Timing
from castsim.execution.tree import Tree, accesses, instances
from castsim.isa.errors import EngineError
from castsim.reports.sections.kernel import buffer_maps
from castsim.reports.views.perfetto import counters, perfetto_text
from castsim.reports.views.recording import SegmentRecorder, Window
from castsim.reports.views.timeline import Timeline, dependences, make_timeline, pipeline_lines
from castsim.running.loaded import RunOptions
from castsim.running.program_loading import load
from castsim.targets.loader import Target, load_target

THOROUGH = bool(os.environ.get("CASTSIM_THOROUGH"))
LONG = () if THOROUGH else ("f32_to_bf16_rows.pto",)
"""Samples of which the event engine takes seconds."""
NAMES = sorted(path.name for path in PROGRAMS.iterdir() if path.suffix in (".pto", ".tpc") and path.name not in LONG)
SEEDS = 2000 if THOROUGH else 20
Event = dict[str, Any]


@dataclass(frozen=True)
class Run:
    """A program with its timing and what the event engine tells of the whole run."""

    tree: Tree
    target: Target
    timing: Timing
    whole: SegmentRecorder

    def view(self, window: Window) -> Timeline:
        """The window, from an engine that stops behind it."""
        recorder = SegmentRecorder(window)
        recorder.issued = observe(self.tree, self.target, recorder)
        return make_timeline("x", self.tree, self.timing, recorder, window)

    def clipped(self, window: Window) -> Timeline:
        """The window, from what was heard of the whole run."""
        return make_timeline("x", self.tree, self.timing, self.whole, window)

    def document(self, view: Timeline) -> list[Event]:
        """The events of the trace."""
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
    """Both ends of every arrow."""
    starts = {event["id"]: event for event in events if event["ph"] == "s"}
    ends = {event["id"]: event for event in events if event["ph"] == "f"}
    assert starts.keys() == ends.keys()
    return Counter(
        (start["name"], start["tid"], start["ts"], ends[number]["tid"], ends[number]["ts"])
        for number, start in starts.items()
    )


def spans(events: list[Event]) -> dict[int, tuple[int, int]]:
    """The cycles of every execution by its number."""
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
