"""Pages of lowered casts, conformance, accuracy, tuning and differences, without a browser."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from expected_files import ROOT
from html_pages import blocks, data_of, elements, run_page, unpacked

from castsim.__main__ import main
from castsim.planning.conformance import conform
from castsim.reports.pages.blocks import page_html
from castsim.reports.pages.page_of_result import conform_page

Capture = pytest.CaptureFixture[str]
TILES, PIPELINED = "programs/f32_to_f16.pto", "programs/f32_to_f16_pipelined.pto"
TUNED = "programs/tuning/f32_to_bf16_tiles.pto"
COMMANDS = {
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


@pytest.fixture(autouse=True)
def at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


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
        assert (row["measured"], row["simulated"]) == (entry["measured_cycles"], entry["simulated_cycles"])
        assert row["error"] == pytest.approx(100 * (row["simulated"] / row["measured"] - 1))
        assert row["reason"] == (entry["reason"] or "")
        if row["public"] is not None:
            assert row["public_error"] == pytest.approx(100 * (row["public"] / row["measured"] - 1))
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
    """On every pipe the executions follow each other, the last one ending where it does in the JSON."""
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
        assert main([*words, "--html", str(program)]) == 2
        assert "name the same file" in capsys.readouterr().err
    assert program.read_text() == text


def test_a_page_replaces_an_older_one(tmp_path: Path, capsys: Capture) -> None:
    page = tmp_path / "page.html"
    page.write_text("old")
    assert main([*COMMANDS["lower"], "--html", str(page)]) == 0
    assert f"html: written to {page}" in capsys.readouterr().out
    assert data_of(page.read_text())["kind"] == "lower"
    assert [each.name for each in tmp_path.iterdir()] == ["page.html"]
