"""`castsim calibrate`: planted numbers come back from noisy rows, and rows that cannot determine them are refused."""

from __future__ import annotations

import importlib.util
import json
import random
import sys
from pathlib import Path

import jsonschema
import pytest

from castsim.__main__ import main
from castsim.evidence.accuracy import read_table
from castsim.evidence.accuracy.assessment import assess_row
from castsim.reports.schemas.conform import Calibrated
from castsim.reports.schemas.registry import form_schema
from castsim.targets import load_target

pytest.importorskip("scipy")

NOISE = 0.02
HEADER = "op,dtype,rows,cols,measured_cycles"
LOADS = [("tload", "f32", rows, cols) for rows in (8, 16, 32, 64) for cols in (64, 128, 256)]
PLANTS = {
    "a2a3": {"startup_cycles": "310", "bytes_per_cycle": "57.3"},
    "a5": {"startup_cycles": "420", "bytes_per_cycle": "71.5"},
}


def table(path: Path, rows: list[tuple[object, ...]], header: str = HEADER) -> Path:
    path.write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n")
    return path


def planted(folder: Path, base: str, facts: dict[str, str], seed: int) -> Path:
    """Return loads of a made-up chip, each off by noise."""
    facts_text = "\n".join(f"{name} = {value}" for name, value in facts.items())
    text = f'base = "{base}"\nname = "plant"\n[timing.load]\n{facts_text}\nsource = "made up"\nstatus = "assumed"\n'
    (folder / "plant.toml").write_text(text)
    chip = load_target(folder / "plant.toml")
    empty = read_table(table(folder / "empty.csv", [(*row, 1) for row in LOADS])).rows
    noise = random.Random(seed)
    cycles = [round(assess_row(chip, row).simulated_cycles * noise.gauss(1, NOISE)) for row in empty]
    return table(folder / "rows.csv", [(*row, each) for row, each in zip(LOADS, cycles, strict=True)])


@pytest.mark.parametrize("base", PLANTS)
@pytest.mark.parametrize("seed", [1, 2])
def test_planted_numbers_come_back(base, seed, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    planted(tmp_path, base, PLANTS[base], seed)
    words = ["calibrate", "--target", base, "--data", "rows.csv", "--out", "my_chip.toml", "--fit", "timing.load.*"]
    assert main([*words, "--json", "-"]) == 0
    found = json.loads(capsys.readouterr().out)
    jsonschema.validate(found, form_schema(Calibrated))
    assert found["residual_percent"] < 100 * NOISE * 2 < found["residual_before_percent"]
    derived = load_target("my_chip.toml")
    for each in found["parameters"]:
        name = each["path"].rpartition(".")[2]
        # Four standard errors as the noise of the rows makes them: the least squares of a line in the bytes.
        assert abs(each["value"] - float(PLANTS[base][name])) <= 4 * each["standard_error"]
        assert each["standard_error"] < 0.1 * each["value"]
        assert float(getattr(derived.timing.load, name)) == each["value"]
    assert derived.timing.load.status == "fitted"
    assert "12 rows of rows.csv, residual" in derived.timing.load.source
    assert main(["accuracy", "--target", "my_chip.toml", "--data", "rows.csv"]) == 0
    capsys.readouterr()
    assert main(words) == 2
    assert "exists already" in capsys.readouterr().err


def refusal(rows, tmp_path, monkeypatch, capsys, *words, header=HEADER):
    monkeypatch.chdir(tmp_path)
    table(tmp_path / "rows.csv", rows, header)
    code = main(["calibrate", "--target", "a2a3", "--data", "rows.csv", "--out", "my_chip.toml", *words])
    assert code in (1, 2)
    assert not (tmp_path / "my_chip.toml").exists()
    return " ".join(capsys.readouterr().err.split())


def test_rows_of_one_size_cannot_tell_startup_from_bandwidth(tmp_path, monkeypatch, capsys):
    rows = [("tload", "f32", 16, 64, cycles) for cycles in (300, 305, 310)]
    said = refusal(rows, tmp_path, monkeypatch, capsys, "--fit", "timing.load.*")
    assert "timing.load.startup_cycles and timing.load.bytes_per_cycle cannot be told apart" in said
    assert "a row of tload f32 with" in said
    assert "--fix timing.load." in said


def test_what_always_adds_is_named_together(tmp_path, monkeypatch, capsys):
    said = refusal([(*row, 500) for row in LOADS], tmp_path, monkeypatch, capsys)
    assert "timing.scalar.issue_cycles and timing.load.startup_cycles cannot be told apart" in said
    assert "--fix timing.scalar.issue_cycles" in said


@pytest.mark.parametrize(
    ("rows", "words", "expected"),
    [
        ([("tload", "f32", 16, 64, "12us")], (), "rows.csv:2:17"),
        ([("tload", "f32", 16, 64, 0)], (), "measured_cycles '0' is not a positive integer"),
        ([("tload", "f32", 64, 256, 3)], ("--fit", "timing.load.startup_cycles"), "rows.csv:2:18"),
        ([("tload", "f32", 64, 256)], (), "4 cells, the header names 5 columns"),
        ([(*LOADS[0], 300)], ("--fit", "timing.lod.*"), "a2a3 has no such number"),
        ([(*LOADS[0], 300)], ("--fit", "timing.store.startup_cycles"), "no row of the table depends on"),
        ([(*LOADS[0], 300)], ("--bounds", "timing.load.startup_cycles=5"), "not a range of numbers"),
        ([(*LOADS[0], 300)], ("--bounds", "timing.load.startup_cycles=9..2"), "is no range of values"),
        ([(*LOADS[0], 300)], ("--out", "my_chip.txt"), "a target description is a .toml file"),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(rows, words, expected, tmp_path, monkeypatch, capsys):
    assert expected in refusal(rows, tmp_path, monkeypatch, capsys, *words)


def test_bounds_hold_and_are_said(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    planted(tmp_path, "a2a3", PLANTS["a2a3"], 3)
    words = ["--fit", "timing.load.*", "--bounds", "timing.load.startup_cycles=0..280", "--json", "-"]
    assert main(["calibrate", "--target", "a2a3", "--data", "rows.csv", "--out", "my_chip.toml", *words]) == 0
    first, _ = json.loads(capsys.readouterr().out)["parameters"]
    assert (first["value"], first["at_bound"], first["standard_error"]) == (280, True, None)
    assert "(at its bound)" in (tmp_path / "my_chip.toml").read_text()


def test_without_scipy_one_line_names_the_extra(tmp_path, monkeypatch, capsys):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "scipy" else find(name, *rest))
    monkeypatch.delitem(sys.modules, "castsim.evidence.calibration.least_squares", raising=False)
    monkeypatch.delattr("castsim.evidence.calibration.least_squares", raising=False)
    said = refusal([(*LOADS[0], 300)], tmp_path, monkeypatch, capsys)
    assert "pip install 'castsim[calibrate]'" in said
