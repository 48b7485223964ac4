"""`castsim calibrate`: planted numbers come back from noisy rows, and rows that cannot determine them are refused."""

from __future__ import annotations

import random
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace

import jsonschema
import numpy as np
import pytest
from kit.command_output import document_of, err_of

from castsim.__main__ import main
from castsim.isa.errors import ReadError
from castsim.targets.description import with_facts
from castsim.targets.loader import load_target
from castsim.tools.accuracy.accuracy_assessment import assess_row
from castsim.tools.accuracy.measured_rows import read_table
from castsim.tools.calibrate.calibration import Calibration, FittedParameter, _check_determined
from castsim.tools.reference.schema import form_schema

pytest.importorskip("scipy")

NOISE = 0.02
HEADER = "op,dtype,rows,cols,measured_cycles"
LOADS: list[tuple[object, ...]] = [("tload", "f32", rows, cols) for rows in (8, 16, 32, 64) for cols in (64, 128, 256)]
PLANTS = {
    "a2a3": {"load.startup_cycles": "310", "load.bytes_per_cycle": "57.3"},
    "a5": {"load.startup_cycles": "420", "load.bytes_per_cycle": "71.5"},
}


def table(path: Path, rows: list[tuple[object, ...]], header: str = HEADER) -> Path:
    path.write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n")
    return path


def facts_of(facts: dict[str, str]) -> dict[str, int | Decimal]:
    return {f"timing.{path}": int(text) if text.isdigit() else Decimal(text) for path, text in facts.items()}


def planted(folder: Path, base: str, facts: dict[str, str], seed: int, asked: list[tuple[object, ...]]) -> None:
    """Write rows.csv: operations of a made-up chip, the cycles of each off by noise."""
    chip, noise = with_facts(load_target(base), facts_of(facts)), random.Random(seed)
    empty = read_table(table(folder / "empty.csv", [(*row, 1) for row in asked])).rows
    cycles = [max(1, round(assess_row(chip, row).simulated_cycles * noise.gauss(1, NOISE))) for row in empty]
    table(folder / "rows.csv", [(*row, each) for row, each in zip(asked, cycles, strict=True)])


@pytest.mark.parametrize("base", PLANTS)
@pytest.mark.parametrize("seed", [1, 2])
def test_planted_numbers_come_back(base, seed, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    planted(tmp_path, base, PLANTS[base], seed, LOADS)
    words = ["calibrate", "--target", base, "--data", "rows.csv", "--out", "my_chip.toml", "--fit", "timing.load.*"]
    found = document_of(capsys, *words)
    jsonschema.validate(found, form_schema(Calibration))
    assert found["residual_percent"] < 100 * NOISE * 2 < found["residual_before_percent"]
    derived = load_target("my_chip.toml")
    for each in found["parameters"]:
        name = each["path"].rpartition(".")[2]
        # Four standard errors as the noise of the rows makes them: the least squares of a line in the bytes.
        assert abs(each["value"] - float(PLANTS[base][f"load.{name}"])) <= 4 * each["standard_error"]
        assert each["standard_error"] < 0.1 * each["value"]
        assert float(getattr(derived.timing.load, name)) == each["value"]
    assert derived.timing.load.status == "fitted"
    assert "12 rows of rows.csv, residual" in derived.timing.load.source
    assert main(["accuracy", "--target", "my_chip.toml", "--data", "rows.csv"]) == 0
    assert "the file already exists; choose another name" in err_of(capsys, words)


SIZES = [(rows, 64) for rows in (1, 2, 4, 8, 16, 32, 64, 128)]
"""Of 1 to 128 repeats of f32: startups are seen in short rows, slopes in long ones."""


@pytest.mark.parametrize("seed", [3, 4])
@pytest.mark.parametrize(
    ("base", "operations", "facts"),
    [
        ("a2a3", [("tadds", "f32")], {"vector.vadds.startup_cycles": "26", "vector.vadds.repeat_cycles": "1.75"}),
        ("a2a3", [("texp", "f32")], {"vector.vexp.startup_cycles": "9", "vector.vexp.repeat_cycles": "3.4"}),
        ("a2a3", [("tstore", "f32")], {"store.startup_cycles": "402", "store.bytes_per_cycle": "31"}),
        ("a5", [("tstore", "f32")], {"store.startup_cycles": "150", "store.bytes_per_cycle": "48"}),
        (
            "a2a3",
            [("tload", "f16"), ("tstore", "f16"), ("tmuls", "f32")],
            {"load.bytes_per_cycle": "38", "store.bytes_per_cycle": "129", "vector.vmuls.repeat_cycles": "2.25"},
        ),
        ("a5", [("tadd", "f32")], {"loops.setup_cycles": "40"}),
    ],
    ids=lambda value: "+".join(value) if isinstance(value, dict) else "",
)
def test_startups_slopes_and_bandwidths_come_back(base, operations, facts, seed, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    edits = facts_of(facts)
    planted(tmp_path, base, facts, seed, [(*operation, *size) for operation in operations for size in SIZES])
    words = [word for path in edits for word in ("--fit", path)]
    found = document_of(capsys, "calibrate", "--target", base, "--data", "rows.csv", *words, "--out", "my_chip.toml")
    assert {each["path"] for each in found["parameters"]} == set(edits)
    assert found["residual_percent"] < 100 * NOISE * 2
    for each in found["parameters"]:
        assert each["standard_error"] < 0.15 * each["value"]
        assert abs(each["value"] - float(edits[each["path"]])) <= 4 * each["standard_error"] + 0.01


def warnings_of(rows, tmp_path, monkeypatch, capsys, *words):
    monkeypatch.chdir(tmp_path)
    table(tmp_path / "rows.csv", rows)
    (tmp_path / "my_chip.toml").unlink(missing_ok=True)
    fit = ["--fit", "timing.load.startup_cycles", "--fit", "timing.load.bytes_per_cycle", *words]
    command = ["calibrate", "--target", "a2a3", "--data", "rows.csv", "--out", "my_chip.toml", *fit]
    return document_of(capsys, *command)["warnings"]


def test_rows_that_do_not_fit_the_model_are_warned_of(tmp_path, monkeypatch, capsys):
    sizes = [(rows, rows * 128 * 4) for rows in (1, 4, 16, 64)]
    line = [("tload", "f32", rows, 128, round(300 + size / 50) + more) for rows, size in sizes for more in (-2, 2)]
    assert warnings_of(line, tmp_path, monkeypatch, capsys) == []
    bent = [(*row[:4], row[4] + row[2] ** 2 // 8) for row in line]
    (said,) = warnings_of(bent, tmp_path, monkeypatch, capsys)
    assert said.startswith("the rows do not fit the model: ")
    assert "rows that measure the same again scatter by" in said
    assert (
        ", where measurements usually scatter by 3.00 %; line "
        in warnings_of([*bent[::2], ("tload", "f32", 8, 128, 1500)], tmp_path, monkeypatch, capsys)[0]
    )


def test_numbers_that_rows_hardly_determine_are_warned_of(tmp_path, monkeypatch, capsys):
    rows = [("tload", "f32", rows, 64, cycles) for rows, cycles in ((1, 300), (2, 310), (4, 280), (8, 330), (12, 310))]
    said = warnings_of(rows, tmp_path, monkeypatch, capsys)
    assert any(each.startswith("the rows hardly determine timing.load.bytes_per_cycle: ") for each in said)


@pytest.mark.parametrize("operation", ["tadd", "tcvt"])
def test_targets_without_tiles_are_refused(operation, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    table(tmp_path / "rows.csv", [(operation, "f32", "bf16", 4, 64, 300)], "op,src,dst,rows,cols,measured_cycles")
    error = err_of(capsys, ["calibrate", "--target", "gaudi2", "--data", "rows.csv", "--out", "my_chip.toml"])
    assert "gaudi2 runs bundles of instructions" in error
    assert "legal: a2a3, a5" in error
    if operation == "tadd":
        assert "rows.csv:2:6: " in err_of(capsys, ["accuracy", "--target", "gaudi2", "--data", "rows.csv"], 1)


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
    assert "timing.load.startup_cycles and timing.load.bytes_per_cycle cannot be distinguished" in said
    assert "a row of tload f32 with" in said
    assert "--fix timing.load." in said


def test_what_always_adds_is_named_together(tmp_path, monkeypatch, capsys):
    said = refusal([(*row, 500) for row in LOADS], tmp_path, monkeypatch, capsys)
    assert "timing.scalar.issue_cycles and timing.load.startup_cycles cannot be distinguished" in said
    assert "--fix timing.scalar.issue_cycles" in said


def test_a_limit_that_small_steps_do_not_reach_is_named_alone():
    numbers = (
        FittedParameter("timing.a.cycles", Decimal(5), Decimal(1), 0),
        FittedParameter("timing.b.most", Decimal(9), Decimal(1), 0),
    )
    rows = (SimpleNamespace(body="a program"),) * 2
    model = SimpleNamespace(jacobian=np.array([[1.0, 0.0], [2.0, 0.0]]), parameters=numbers, rows=rows)
    with pytest.raises(ReadError, match=r"parameters: timing\.b\.most moves no row enough; no longer or shorter row"):
        _check_determined(model)


@pytest.mark.parametrize(
    ("rows", "words", "expected"),
    [
        ([("tload", "f32", 16, 64, "12us")], (), "rows.csv:2:17"),
        ([("tload", "f32", 16, 64, 0)], (), "measured_cycles '0' is not a positive integer"),
        ([("tload", "f32", 64, 256, 3)], ("--fit", "timing.load.startup_cycles"), "rows.csv:2:18"),
        ([("tload", "f32", 64, 256)], (), "4 cells, the header names 5 columns"),
        ([("tloda", "f32", 64, 256, 9)], (), "rows.csv:2:1: unknown operation 'tloda'"),
        ([(*LOADS[0], 300)], ("--fit", "timing.lod.*"), "a2a3 has no such number"),
        ([(*LOADS[0], 300)], ("--fit", "timing.store.startup_cycles"), "no row of the table depends on"),
        ([(*LOADS[0], 300)], ("--bounds", "timing.load.startup_cycles=5"), "expected a range of numbers"),
        ([(*LOADS[0], 300)], ("--bounds", "timing.load.startup_cycles=9..2"), "is not a range of values"),
        ([(*LOADS[0], 300)], ("--out", "my_chip.txt"), "a target description is a .toml file"),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(rows, words, expected, tmp_path, monkeypatch, capsys):
    assert expected in refusal(rows, tmp_path, monkeypatch, capsys, *words)


def test_bounds_hold_and_are_said(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    planted(tmp_path, "a2a3", PLANTS["a2a3"], 3, LOADS)
    words = ["--fit", "timing.load.*", "--bounds", "timing.load.startup_cycles=0..280", "--out", "my_chip.toml"]
    first, _ = document_of(capsys, "calibrate", "--target", "a2a3", "--data", "rows.csv", *words)["parameters"]
    assert (first["value"], first["at_bound"], first["standard_error"]) == (280, True, None)
    assert "(at its bound)" in (tmp_path / "my_chip.toml").read_text()


def test_without_scipy_one_line_names_the_extra(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("castsim.tools.calibrate.calibration.installed", lambda name: False)
    said = refusal([(*LOADS[0], 300)], tmp_path, monkeypatch, capsys)
    assert "[calibrate]'" in said
