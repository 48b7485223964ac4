"""Pages without a browser: one file that asks for nothing, has the figures of the JSON, and keeps names as text."""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from core.reports.html_pages import (
    GRAPHS,
    SAMPLES,
    blocks,
    data_of,
    elements,
    graph_command,
    intervals,
    long_program,
    run_command,
    run_page,
    unpacked,
)
from kit.command_output import err_of, file_of, out_of
from kit.sample_arguments import scalars
from makers.expected_files import PROGRAMS, ROOT

from castsim.__main__ import main
from castsim.engines import observe
from castsim.execution.timing import Cause
from castsim.reports.documents import document
from castsim.reports.pages.blocks import json_for_html, page_html
from castsim.reports.pages.run_page import cast_blocks
from castsim.reports.pages.run_timeline import run_timeline
from castsim.reports.run_outcomes import CastLine
from castsim.reports.views.recording import SegmentRecorder, Window, operation_segments
from castsim.running.program_loading import load
from castsim.running.program_runs import Result, run_loaded
from castsim.targets.loader import target_names
from castsim.tools.lowering.conformance import conform
from castsim.tools.lowering.page import conform_page

KINDS = [
    "f32_to_f16_pipelined.pto",
    "f32_to_i32_barriers.pto",
    "kernels/softmax_prepare_a5.pto",
    "micro/f32_to_f16_parts.pto",
    "tpc_f32_i8_quantise_gaudi2.tpc",
    "tpc_f32_i32_pipelined_stale_goya.tpc",
]
CHECKED = SAMPLES if os.environ.get("CASTSIM_THOROUGH") else [PROGRAMS / name for name in KINDS]
LOADS = re.compile(r"url\(|@import|\bfetch\(|XMLHttpRequest|WebSocket|\.src\s*=|import\(|Worker\(")


@pytest.fixture(autouse=True)
def at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def timed(path: Path) -> Result:
    found = load(path, None, None, scalars(path))
    inputs = {} if path.suffix == ".pto" else dict.fromkeys(found.arguments, "random:1")
    return run_loaded(found, inputs if found.tree is None else {}, timing_only=True)


@pytest.mark.parametrize("path", CHECKED, ids=lambda path: path.name)
def test_figures_are_those_of_the_json(path: Path, tmp_path: Path) -> None:
    data, document, text, code = run_page(run_command(path), tmp_path)
    assert code == 0
    assert len(text.encode()) < 3_000_000
    assert {key: document[key] for key in data["result"] if key != "schema_version"} == {
        key: value for key, value in data["result"].items() if key != "schema_version"
    }
    if document["total_cycles"] is None:
        return
    (answer,) = (each["text"] for each in blocks(data, "text", "summary")[0]["lines"] if each["tone"] == "answer")
    assert answer.startswith(f"{document['total_cycles']:,} cycles, ")
    (bars,) = blocks(data, "bars", "causes")
    for place, pipe in enumerate(bars["names"]):
        causes = {each["tone"]: each["values"][place] for each in bars["series"] if each["values"][place]}
        assert causes == document["pipes"][pipe]["causes"]
    (listing,) = blocks(data, "program", "program")
    assert all((row["cycles"] or 0) <= document["total_cycles"] for row in listing["rows"])  # pipes work at once
    assert all("constant" in row["text"] for row in listing["rows"] if row["folds"])
    (lanes,) = blocks(data, "lanes", "timeline")
    assert (lanes["start"], lanes["end"]) == (0, document["total_cycles"])
    if not lanes["notes"]:  # every cycle is shown
        for pipe, found in document["pipes"].items():
            cycles: Counter[str] = Counter()
            for start, end, tone, _ in intervals(lanes, pipe):
                cycles[tone] += end - start
            assert cycles == Counter({tone: sum_ for tone, sum_ in found["causes"].items() if tone != "empty"}), pipe


@pytest.mark.parametrize("name", GRAPHS)
def test_figures_of_graphs_are_those_of_the_json(name: str, tmp_path: Path) -> None:
    data, document, _, _ = run_page(graph_command(name), tmp_path)
    assert data["kind"] == "graph"
    assert blocks(data, "text", "summary")[0]["lines"][-2]["text"].startswith(f"{document['total_cycles']:,} cycles, ")
    (lanes,) = blocks(data, "lanes", "timeline")
    stages = [each for row in lanes["rows"] for each in intervals(lanes, row)]
    assert [end - start for start, end, _, _ in stages] == [
        each["cycles"] for node in document["nodes"] for each in node["programs"]
    ]
    (drawn,) = blocks(data, "diagram", "graph")
    assert {each["name"]: each["word"] for each in drawn["nodes"] if each["word"]} == {
        node["name"]: node["verdict"] for node in document["nodes"]
    }
    (bars,) = blocks(data, "bars", "nodes")
    assert bars["names"] == [node["name"] for node in document["nodes"]]
    assert sum(bars["series"][0]["values"]) == document["total_cycles"]
    assert len(blocks(data, "histogram", "outputs")) == len(document["outputs"])


@pytest.mark.parametrize("path", [PROGRAMS / name for name in KINDS], ids=lambda path: path.name)
def test_the_page_asks_for_nothing(path: Path, tmp_path: Path) -> None:
    _, _, text, _ = run_page(run_command(path), tmp_path)
    found = elements(text)
    policies = [attrs["content"] for tag, attrs in found.found if attrs.get("http-equiv") == "Content-Security-Policy"]
    assert policies == ["default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"]
    for tag, attrs in found.found:
        assert tag not in ("img", "iframe", "object", "embed", "base", "form", "video", "audio")
        assert "src" not in attrs
        assert (attrs.get("href") or "#")[:5] in ("#", "#cont", "data:")
    ours = [each for tag, attrs, each in found.texts if tag in ("script", "style") and "type" not in attrs]
    own = [each for each in ours if "ZRender" not in each]
    assert own
    assert not any(LOADS.search(each) for each in own if "echarts=" not in each[:200])


def test_texts_get_into_the_page_as_text_only() -> None:
    for script in (ROOT / "simulator" / "reports" / "pages").glob("*.js"):
        text = script.read_text()
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text), (
            script
        )


def test_data_end_no_element() -> None:
    text = "</script><!--<script>&\u2028\u2029\x1b[2J\u202egnp.exe\udc80"
    made = json_for_html([text, {text: 1}])
    assert not re.search("[<>&\u2028\u2029\x1b\u202e]", made)
    made.encode()  # no half of a surrogate pair is left


def hostile(tmp_path: Path) -> Path:
    """A program whose names and comments try everything."""
    source = (PROGRAMS / "f32_to_f16.pto").read_text()
    path = tmp_path / "a\"b'<img src=x onerror=alert(1)>\x1b[2J\u202e.pto"
    path.write_text("// </script><script>alert('x')</script> <!-- \u202e \x1b]0;t\x07 &amp; \u2028 \n" + source)
    return path


def test_a_hostile_program_stays_text(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert main(["run", str(hostile(tmp_path)), "--timing-only", "--html", str(page), "--quiet"]) == 0
    text = page.read_text()
    found = elements(text)
    assert [tag for tag, _ in found.found].count("script") == 3
    assert "img" not in [tag for tag, _ in found.found]
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e\u2028]", text)
    data = data_of(text)
    assert blocks(data, "program", "program")[0]["rows"][0]["text"].startswith(
        "// </script><script>alert('x')</script> <!--"
    )
    assert "\\u202e" in data["title"]


def test_bad_destinations_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = str(PROGRAMS / "f32_to_f16.pto")
    run = ["run", program, "--timing-only", "--quiet"]
    same, both = str(tmp_path / "same"), str(tmp_path / "both")
    for argv, words in (
        ([*run, "--html", str(tmp_path / "none" / "page.html")], "no such folder"),
        ([*run, "--html", str(tmp_path)], "it is a folder"),
        ([*run, "--html", "-"], "--html needs a file"),
        ([*run, "--html", program], "name the same file"),
        ([*run, "--html", same, "--trace", same], "name the same file"),
        ([*run, "--html", both, "--json", both], "name the same file"),
        ([*run, "--html", same, "--all-entries"], "--html applies to one function"),
        ([*run, "--html", same, "--window", "0:99999999"], "the run ends at cycle"),
    ):
        assert words in err_of(capsys, argv)
    assert not Path(same).exists()


def test_what_was_there_is_replaced_whole_or_kept(tmp_path: Path) -> None:
    program, page = str(PROGRAMS / "f32_to_f16.pto"), tmp_path / "page.html"
    page.write_text("old")
    assert main(["run", program, "--timing-only", "--quiet", "--html", str(page), "--max-cycles", "3"]) != 0
    assert page.read_text() == "old"
    assert main(["run", program, "--timing-only", "--quiet", "--html", str(page)]) == 0
    assert page.read_text().startswith("<!DOCTYPE html>")
    assert [each.name for each in tmp_path.iterdir()] == ["page.html"]


def test_a_window_shows_its_cycles(tmp_path: Path) -> None:
    argv = [*run_command(PROGRAMS / KINDS[0]), "--window", "1000:3000"]
    data, document, _, _ = run_page(argv, tmp_path)
    (lanes,) = blocks(data, "lanes", "timeline")
    assert (lanes["start"], lanes["end"]) == (1000, 3000)
    whole = run_page(run_command(PROGRAMS / KINDS[0]), tmp_path)[0]
    (all_lanes,) = blocks(whole, "lanes", "timeline")
    for pipe in document["pipes"]:
        inside = [
            (max(s, 1000), min(e, 3000), tone) for s, e, tone, _ in intervals(all_lanes, pipe) if e > 1000 > s - 2000
        ]
        assert [each[:3] for each in intervals(lanes, pipe)] == inside


@pytest.mark.parametrize("path", CHECKED, ids=lambda path: path.name)
def test_whole_operations_take_the_cycles_that_the_event_engine_tells(path: Path) -> None:
    result = timed(path)
    if result.untimed or result.cycles > 100_000:
        return
    recorder = SegmentRecorder(Window(0, result.cycles))
    observe(result.loaded.tree, result.loaded.target, recorder)
    pipes = {each.index: each.pipe for each in result.timing.operations}
    told: dict[int, Counter[Cause]] = {}
    begun: dict[int, int] = {}
    for each in recorder.segments:
        if each.operation is not None and pipes[each.operation] == each.pipe:
            told.setdefault(each.operation, Counter())[each.cause] += each.end - each.start
            begun[each.operation] = min(each.start, begun.get(each.operation, each.start))
    made: dict[int, Counter[Cause]] = {}
    first: dict[int, int] = {}
    last: dict[str, int] = {}
    for each in operation_segments(result.timing, 0, result.cycles):
        assert each.operation is not None
        assert each.start >= last.get(each.pipe, 0)
        last[each.pipe] = each.end
        made.setdefault(each.operation, Counter())[each.cause] += each.end - each.start
        first.setdefault(each.operation, each.start)
    if result.loaded.target.has_tiles:
        assert made == told
        assert first == begun


@pytest.mark.parametrize("path", [p for p in CHECKED if p.suffix == ".pto"], ids=lambda path: path.name)
def test_the_critical_path_has_every_cycle_once(path: Path) -> None:
    result = timed(path)
    if result.untimed:
        return
    shown = run_timeline(result)
    edges = [(step.start, step.end) for step in shown.path]
    assert edges[0][0] == 0
    assert edges[-1][1] == max(row.end for row in shown.timeline.rows)
    assert all(one[1] == two[0] and one[0] < one[1] for one, two in pairwise(edges))
    for step in shown.path:
        if step.row is not None:  # nobody is on it for longer than it lives
            assert step.row.dispatched <= step.start
            assert step.end <= step.row.end


def test_the_critical_path_of_a_hand_counted_chain() -> None:
    result = timed(PROGRAMS / "a5_f16_to_f32_one_trip.pto")
    rows = [step.row.pipe for step in run_timeline(result).path if step.row is not None]
    main_pipes = [pipe for pipe in rows if pipe != "S"]
    assert main_pipes == sorted(main_pipes, key=["MTE2", "V", "MTE3"].index)
    assert set(main_pipes) == {"MTE2", "V", "MTE3"}


@pytest.mark.parametrize("name", ["tpc_u8_f32_dequantise_greco.tpc", "tpc_f32_i32_pipelined_goya.tpc"])
def test_bundles_take_every_cycle_and_stand_still_as_the_engine_says(name: str, tmp_path: Path) -> None:
    data, document, _, _ = run_page(run_command(PROGRAMS / name), tmp_path)
    table = blocks(data, "table", "path")[-1]
    assert sum(row[3] for row in table["rows"]) == document["total_cycles"]
    causes = document["pipes"]["VPU"]["causes"]
    stalls = sum(cycles for cause, cycles in causes.items() if cause not in ("busy", "empty", "drain"))
    assert sum(row[4] or 0 for row in table["rows"]) == stalls
    assert (stalls > 0) == ("u8" in name)


def test_the_chain_that_binds_is_marked_where_it_ran(tmp_path: Path) -> None:
    """The file says that MAC is visible after 6 bundles and MOV after 4; links begin where their bundles issue."""
    path = PROGRAMS / "tpc_f32_i8_quantise_gaudi2.tpc"
    data, document, _, _ = run_page(run_command(path), tmp_path)
    chain = blocks(data, "table", "path")[0]
    lines = path.read_text().splitlines()
    for line, producer, register, reader, consumer, distance, taken, nops in chain["rows"]:
        for number, name in ((line, producer), (reader, consumer)):
            assert name.split(".")[0] in lines[number - 1]
        assert register in lines[line - 1]
        assert register in lines[reader - 1]
        assert distance == {"mac": 6, "mov": 4}.get(producer.split(".")[0], distance)
        assert distance <= taken
        between = lines[line : reader - 1]
        assert nops == sum(each.startswith("nop; nop; nop; nop") for each in between)
    assert {row[1] for row in chain["rows"]} >= {"mac.f32"}
    issued = {(each["line"], each["start_cycle"]) for each in document["instructions"]}
    marked = list(intervals(blocks(data, "lanes", "timeline")[0], "binding chain"))
    assert len(marked) == 4 * len(chain["rows"])  # trips
    for k, (start, end, tone, item) in enumerate(marked):
        row = chain["rows"][k % len(chain["rows"])]
        assert tone == "chain"
        assert item >= 0
        assert {(row[0], start), (row[3], end)} <= issued


def test_offers_are_diffs_that_hold(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (PROGRAMS / "f32_to_i8_own_barriers.pto").read_text()
    kernel, changed = tmp_path / "kernel.pto", tmp_path / "out.json"
    kernel.write_text(text)
    run = ["run", str(kernel), "--in", "src=random:1"]
    data, document, _, _ = run_page(run, tmp_path, advised=True)
    offers = blocks(data, "folded", "summary")
    assert 1 <= len(offers) <= 3
    title, diff = offers[0]["title"], offers[0]["blocks"][0]["text"]
    subprocess.run(["patch", "-p0", str(kernel)], input=diff + "\n", text=True, check=True, capture_output=True)
    assert main([*run, "--json", str(changed), "--quiet"]) == 0
    cycles = json.loads(changed.read_text())["total_cycles"]
    assert title.startswith(f"{cycles} cycles ({100 * (1 - cycles / document['total_cycles']):.1f} % fewer, ")
    data, _, _, _ = run_page([*run, "--sync", "program"], tmp_path, advised=True)
    assert blocks(data, "text", "summary")[-1]["lines"][0]["text"] == "Changes are not tried on a run with --sync."
    capsys.readouterr()


@pytest.mark.parametrize(
    "found",
    [
        '{"schema_version": 1, "findings": [1]}',
        '{"schema_version": 1, "findings": {"a": 1}}',
        '{"schema_version": 1, "file": 3, "out": null, "program": []}',
        '{"schema_version": 1, "targets": [], "specifications": [[]]}',
        '{"schema_version": 9, "findings": []}',
    ],
)
def test_look_ups_with_other_values_are_refused(found: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = file_of(tmp_path / "found.json", found)
    said = err_of(capsys, ["view", str(path), "--no-open", "--out", str(tmp_path / "page.html")], 2)
    assert "found.json" in said
    assert "internal" not in said
    assert not (tmp_path / "page.html").exists()


@pytest.mark.parametrize(
    "words",
    [
        ["targets"],
        *(["targets", name] for name in (*target_names(), "tosa", "onnx", "exact")),
        ["targets", "--diff", "a5", "a2a3"],
        ["targets", "--diff", "gaudi", "gaudi2"],
        ["targets", "a2a3", "f32", "i16"],
        ["targets", "gaudi2", "f32", "bf16"],
        ["targets", "onnx", "f32", "e8m0"],
        ["scratch", "f32", "i16", "--rows", "4", "--cols", "200", "--audit"],
        ["scratch", "f32", "i16", "--rows", "0:4", "--cols", "0:9", "--sweep"],
        ["scratch", "all", "--rows", "4", "--cols", "200"],
        ["scratch", "programs/f32_to_i16_partial.pto"],
        ["scratch", "programs/f32_to_i8_own_barriers.pto"],
        ["advise", "programs/f32_to_i8_own_barriers.pto"],
        ["check", "programs/f32_to_f16.pto"],
        ["scratch", "f32", "i16", "--rows", "4", "--cols", "200", "--row-stride", "256"],
        ["check", "programs/f32_to_f16.pto", "nosuch.pto"],
        ["expand", "programs/a5_bf16_to_e2m1.pto"],
    ],
    ids=" ".join,
)
def test_pages_of_look_ups_are_views_of_their_json(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`view` makes the same page of the JSON; its sentence is printed first; nothing in it is written as in Python."""
    data, document, text, code = run_page(words, tmp_path)
    assert data["result"] == document
    assert main(["view", str(tmp_path / "run.json"), "--no-open", "--out", str(tmp_path / "view.html"), "--quiet"]) == 0
    assert (tmp_path / "view.html").read_text() == text
    capsys.readouterr()
    assert main(words) == code
    printed = " ".join(capsys.readouterr().out.split())
    (sentence,) = data["sections"][0]["blocks"][0]["lines"]
    assert words[0] in ("check", "expand", "advise") or printed.startswith(sentence["text"])
    cells = [cell for table in blocks(data, "table") for row in table["rows"] for cell in row if isinstance(cell, str)]
    assert [cell for cell in cells if re.search(r"\b(None|True|False|null)\b|[{}\[]'|Decimal|<\w+\.", cell)] == []
    if data["kind"] != "accuracy":  # which draws
        assert len(text.encode()) <= 150_000
    assert "it is a folder" in err_of(capsys, [*words, "--html", str(tmp_path)])


def test_casts_are_shown_as_the_json_counts_them() -> None:
    cast = CastLine(
        line=3, op="tcvt", src="f32", dst="i8", elements=100, rounded=40, clamped=7, wrapped=0, overflow=0, nan=3
    )
    (bars,) = map(document, cast_blocks([cast]))
    assert {each["name"]: each["values"] for each in bars["series"]} == {
        "exact": [50], "rounded": [40], "clamped": [7], "NaN lost": [3],
    }  # fmt: skip
    assert list(cast_blocks([])) == []


def test_histograms_count_every_value(tmp_path: Path) -> None:
    path = PROGRAMS / "f16_to_i8_wrap.pto"
    data, document, _, _ = run_page([*run_command(path), "--out", str(tmp_path / "out")], tmp_path)
    (found,) = blocks(data, "histogram", "outputs")
    (output,) = document["outputs"]
    values = np.load(output["file"])
    marks = dict(found["marks"])
    assert marks["values"] == values.size == sum(found["counts"])
    assert marks["saturated"] == np.count_nonzero((values == 127) | (values == -128))
    assert marks["zero"] == np.count_nonzero(values == 0)
    edges = found["edges"]
    for k, count in enumerate(found["counts"]):
        last = k == len(found["counts"]) - 1
        above = values <= edges[k + 1] if last else values < edges[k + 1]
        assert count == np.count_nonzero((values >= edges[k]) & above)


def test_bytes_of_operations_are_those_of_the_program(tmp_path: Path) -> None:
    data, _, _, _ = run_page(run_command(PROGRAMS / KINDS[0]), tmp_path)
    (lanes,) = blocks(data, "lanes", "timeline")
    columns = unpacked(lanes)["operations"]
    at, written = 0, []
    for place, instruction in zip(columns["places"], columns["instruction"], strict=True):
        shape = columns["templates"][place] if place >= 0 else []
        addresses = columns["addresses"][at : at + len(shape)]
        at += len(shape)
        if columns["instructions"][instruction]["text"].startswith("tload"):
            written += [
                (address, each[2]) for each, address in zip(shape, addresses, strict=True) if each[1] == "writes"
            ]
    assert written[:2] == [(0, 16 * 512 * 4), (32768, 16 * 512 * 4)]
    assert len(written) == 32


Capture = pytest.CaptureFixture[str]
TILES, PIPELINED = "programs/f32_to_f16.pto", "programs/f32_to_f16_pipelined.pto"
TUNED = "programs/tuning/f32_to_bf16_tiles.pto"
COMMANDS = {
    "run": ["run", PIPELINED, "--timing-only"],
    "lower": ["lower", "f32", "i16", "--spec", "onnx", "--target", "gaudi"],
    "conform": ["conform", "--spec", "tosa", "--target", "a5", "a2a3", "--src", "i16", "--dst", "f16"],
    "accuracy": ["accuracy", "--target", "a2a3"],
    "cross-validation": ["accuracy", "--target", "a2a3", "--cross-validate", "pair"],
    "tune": ["tune", TUNED],
    "diff": ["diff", TILES, "--timing-only", "--target-b", "a5"],
}
MOST_BYTES = 3_000_000


Made = tuple[dict[str, Any], dict[str, Any], str, int]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Made]:
    """Make the page of a command once: data, JSON, text, exit code."""

    @cache
    def find(name: str) -> Made:
        return run_page(COMMANDS[name], tmp_path_factory.mktemp(name))

    return find


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "cross-validation"])
def test_a_page_is_one_file_with_the_json_of_the_command(name: str, made: Callable[[str], Made]) -> None:
    data, document, text, code = made(name)
    assert code == (1 if name == "diff" else 0)
    assert data["kind"] == name
    assert data["result"].items() <= document.items()
    assert {*document} - {*data["result"]} <= {"schema_version"}
    assert len(text.encode()) < MOST_BYTES
    found = elements(text).found
    assert not [attrs for _, attrs in found if {"src", "srcset", "action"} & set(attrs)]
    assert {attrs["href"] for _, attrs in found if "href" in attrs} == {"#content", "data:,"}
    assert len(re.findall(r"http-equiv=\"Content-Security-Policy\"", text)) == 1


def view(data: dict[str, Any], kind: str) -> dict[str, Any]:
    (block,) = blocks(data, kind)
    return unpacked(block)


def test_the_front_is_that_of_all_pairs_compared(made: Callable[[str], Made]) -> None:
    data, document, _, _ = made("tune")
    found = view(data, "tuning")
    assert found["rows"] == document["rows"]
    points = [(row["cycles"], row["buffer_bytes"]) for row in found["rows"]]
    for row in found["rows"]:
        cycles, size = row["cycles"], row["buffer_bytes"]
        better = [c for c, b in points if c <= cycles and b <= size and (c, b) != (cycles, size)]
        assert not (row["pareto"] and better)
    commands = [command.split() for command in found["commands"]]
    chosen = [{word for word in words if "=" in word} for words in commands]
    assert chosen == [{f"{name}={value}" for name, value in row["choices"].items()} for row in found["rows"]]


def test_the_command_of_a_point_gives_its_cycles(made: Callable[[str], Made], tmp_path: Path) -> None:
    found = view(made("tune")[0], "tuning")
    document = tmp_path / "run.json"
    words = found["commands"][4].split()[1:]
    assert main([*words, "--json", str(document), "--quiet"]) == 0
    assert json.loads(document.read_text())["total_cycles"] == found["rows"][4]["cycles"]


def test_measured_rows_are_those_of_the_json(made: Callable[[str], Made]) -> None:
    data, document, _, _ = made("accuracy")
    rows = view(data, "measurements")["rows"]
    for row, entry in zip(rows, document["rows"], strict=True):
        low, simulated = entry["measured_cycles"], entry["simulated_cycles"]
        nearest = min(max(simulated, low), entry["measured_high"] or low)
        assert (row["measured"], row["simulated"]) == (nearest, simulated)
        assert row["error"] == entry["error_percent"] == pytest.approx(100 * (simulated / nearest - 1))
        assert row["reason"] == (entry["reason"] or "")
        if row["public"] is not None:
            assert row["public_error"] == pytest.approx(100 * (row["public"] / low - 1))
            assert row["public_error"] == pytest.approx(entry["public_model_error_percent"], abs=1e-4)


def test_cells_of_a_matrix_have_their_answer_and_command(made: Callable[[str], Made]) -> None:
    data, document, _, _ = made("conform")
    found = view(data, "conformance")
    assert found["cells"] == document["cells"]
    for cell, cast, command in zip(found["cells"], found["casts"], found["commands"], strict=True):
        assert cast.startswith(f"{cell['src']} -> {cell['dst']}")
        assert command.startswith(f"castsim lower {cell['src']} {cell['dst']} --spec tosa@1.1")
        assert command.endswith(f" --target {cell['target']}")
    (bars,) = blocks(data, "bars", "summary")
    for series in bars["series"]:
        assert series["values"] == [
            sum(each["way"] == series["name"] and each["target"] == target for each in document["cells"])
            for target in bars["names"]
        ]


def test_the_page_of_the_largest_matrix_is_small() -> None:
    """As many casts as ONNX has, all of them refuted, on seven targets."""
    found = conform("tosa", ["a5"], src="i32", dst="f32")
    (refuted,) = (entry for entry in found.entries if entry.counterexample is not None)
    casts, targets = found.casts[:1] * 859, tuple(f"t{number}" for number in range(7))
    entries = tuple(replace(refuted, cycles_per_element=n / 7) for n in range(len(casts) * len(targets)))
    large = replace(found, casts=casts, targets=targets, entries=entries, origins=found.origins[:1] * len(entries))
    assert len(page_html(conform_page(large))) < MOST_BYTES


def test_timelines_of_a_difference_have_one_axis(made: Callable[[str], Made]) -> None:
    data, document, _, _ = made("diff")
    both = blocks(data, "lanes", "timelines")
    assert [block["start"] for block in both] == [0, 0]
    assert {block["end"] for block in both} == {max(document["cycles_a"], document["cycles_b"])}
    wanted = {(line.get("line_a"), line.get("line_b")): line for line in document["lines"]}
    shown = {(line.get("line_a"), line.get("line_b")): line for line in view(data, "changes")["lines"]}
    assert shown.keys() == wanted.keys()
    assert all(wanted[key].items() <= shown[key].items() for key in wanted)  # by effect, with what each line spent


def test_a_result_of_json_has_a_timeline_too(tmp_path: Path) -> None:
    before = tmp_path / "before.json"
    assert main(["run", PIPELINED, "--timing-only", "--json", str(before), "--quiet"]) == 0
    data, _, _, code = run_page(["diff", str(before), PIPELINED, "--timing-only"], tmp_path)
    assert code == 0
    first, _ = blocks(data, "lanes", "timelines")
    columns = unpacked(first)
    ends: dict[str, int] = {}
    for entry in json.loads(before.read_text())["instructions"]:
        ends[entry["pipe"]] = max(ends.get(entry["pipe"], 0), entry["end_cycle"])
    for row, name in enumerate(first["rows"]):
        assert min(columns["gap"][row]) >= 0
        assert min(columns["length"][row]) > 0
        assert sum(columns["gap"][row]) + sum(columns["length"][row]) == ends[name]


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "cross-validation"])
@pytest.mark.parametrize("file", ["missing/page.html", "-", "folder", "same"])
def test_a_page_that_cannot_be_is_refused_before_anything_is_done(
    name: str, file: str, tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "folder").mkdir()
    page = file if file == "-" else str(tmp_path / file)
    document = ["--json", page] if file == "same" else []
    assert main([*COMMANDS[name], "--html", page, *document]) == 2
    told = capsys.readouterr()
    assert "--html" in told.err
    assert not told.out
    assert [each.name for each in tmp_path.iterdir() if each.suffix in (".html", ".partial")] == []


def test_a_page_never_replaces_what_is_read(tmp_path: Path, capsys: Capture) -> None:
    program = tmp_path / "k.pto"
    text = (ROOT / TUNED).read_text()
    program.write_text(text)
    for words in (["tune", str(program)], ["diff", TILES, str(program), "--timing-only"]):
        assert "name the same file" in err_of(capsys, [*words, "--html", str(program)])
    assert program.read_text() == text


def test_a_page_replaces_an_older_one(tmp_path: Path, capsys: Capture) -> None:
    page = file_of(tmp_path / "page.html", "old")
    assert f"html: written to {page}" in out_of(capsys, [*COMMANDS["lower"], "--html", str(page)])
    assert data_of(page.read_text())["kind"] == "lower"
    assert [each.name for each in tmp_path.iterdir()] == ["page.html"]


# Pages of long programs, and of answers without a chart.


def test_the_page_of_a_long_program_is_small_and_soon_there(tmp_path: Path) -> None:
    path, page = long_program(tmp_path), tmp_path / "page.html"
    words = [sys.executable, "-m", "castsim", "run", str(path), "--timing-only", "--quiet", "--html", str(page)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(words, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 15  # 8 s on the machine of pages.json
    assert page.stat().st_size < 2_000_000
    (listing,) = blocks(data_of(page.read_text()), "program", "program")
    assert [row["text"] for row in listing["rows"]] == path.read_text().split("\n")
    (line,) = blocks(data_of(page.read_text()), "text", "summary")[1]["lines"]
    assert "castsim advise" in line["text"]


@pytest.mark.parametrize(
    ("argv", "charts"),
    [
        (["lower", "f32", "i16", "--spec", "onnx", "--target", "gaudi"], False),
        (["check", "programs/f32_to_f16.pto"], False),
        (["run", "programs/f32_to_f16.pto", "--timing-only"], True),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_only_a_page_with_a_chart_has_the_chart_library(argv: list[str], charts: bool, tmp_path: Path) -> None:
    _, _, text, _ = run_page(argv, tmp_path)
    assert ("ZRender" in text) == charts
    assert charts or len(text.encode()) <= 150_000


def test_copies_of_an_instruction_have_one_row(tmp_path: Path) -> None:
    argv = ["run", "programs/pto_cpp/f32_to_f16_pipelined.cpp", "--in", "src=random:1"]
    data, document, _, _ = run_page(argv, tmp_path)
    rows = [row for table in blocks(data, "table", "causes") for row in table["rows"] if isinstance(row[0], int)]
    assert len({tuple(row[:3]) for row in rows}) == len(rows)
    executions = Counter((each["line"], each["pipe"]) for each in document["instructions"])
    for line, _, pipe, times, *_ in rows:
        assert times <= executions[line, pipe]
    assert sum(row[3] for row in rows if row[2] == "V" and "tcvt" in row[1]) == 32
