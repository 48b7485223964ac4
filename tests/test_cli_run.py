"""`castsim run`: outputs, cycles, options, and the JSON document."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_programs import LOOP, TCVT, TLOAD, TSTORE, changed, written

from castsim.__main__ import main
from castsim.reports.documents import VERSIONS
from castsim.targets import load_target

Capture = pytest.CaptureFixture[str]
A2A3 = load_target("a2a3")


def document(capsys: Capture, *argv: str) -> dict[str, Any]:
    assert main(["run", *argv, "--json", "-"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def inputs(folder: Path) -> np.ndarray[Any, np.dtype[np.float32]]:
    array = np.random.default_rng(7).normal(0, 300, (4, 64)).astype(np.float32)
    np.save(folder / "x.npy", array)
    return array


# ------------------------------------------------------------------------------------------------------- outputs


def test_outputs_are_written_and_their_digest_is_that_of_the_file(tmp_path: Path, capsys: Capture) -> None:
    expected = inputs(tmp_path).astype(np.float16)  # NumPy converts to nearest even, as RINT does
    found = document(capsys, written(tmp_path), "--in", f"x={tmp_path / 'x.npy'}", "--out", str(tmp_path / "out"))
    (output,) = found["outputs"]
    assert list(output) == ["name", "file", "format", "shape", "sha256"]
    assert (output["name"], output["format"], output["shape"]) == ("y", "f16", [4, 64])
    assert output["file"] == str(tmp_path / "out" / "y.npy")
    written_array = np.load(output["file"])
    assert written_array.dtype == np.float16
    np.testing.assert_array_equal(written_array, expected)
    assert output["sha256"] == hashlib.sha256(expected.astype("<f2").tobytes()).hexdigest()
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["y.npy"]


def test_without_out_nothing_is_written_and_the_report_says_how(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert main(["run", path, "--in", "%x=zeros"]) == 0
    assert "not written; --out DIR writes DIR/NAME.npy" in capsys.readouterr().out
    assert [file.name for file in tmp_path.iterdir()] == ["kernel.pto"]
    assert document(capsys, path, "--in", "x=zeros")["outputs"][0]["file"] is None


def test_codes_of_formats_without_a_dtype_are_unsigned_integers(tmp_path: Path, capsys: Capture) -> None:
    path = written(tmp_path, changed("f16", "bf16"))
    values = np.array([1.0, -2.0, 0.5, 3.0] * 64, np.float32).reshape(4, 64)
    np.save(tmp_path / "x.npy", values)
    document(capsys, path, "--in", f"x={tmp_path / 'x.npy'}", "--out", str(tmp_path))
    codes = np.load(tmp_path / "y.npy")
    np.testing.assert_array_equal(codes, (values.view(np.uint32) >> 16).astype(np.uint16))  # exact in bf16


def test_random_inputs_are_reproducible(tmp_path: Path, capsys: Capture) -> None:
    path = written(tmp_path)
    digests = [document(capsys, path, "--in", f"x=random:{s}")["outputs"][0]["sha256"] for s in (1, 1, 2)]
    assert digests[0] == digests[1] != digests[2]
    drawn = np.random.default_rng(2).uniform(-100, 100, (4, 64)).astype(np.float32).astype(np.float16)
    assert digests[2] == hashlib.sha256(drawn.tobytes()).hexdigest()


def test_timing_only_computes_nothing_and_changes_no_cycle(tmp_path: Path, capsys: Capture) -> None:
    path = written(tmp_path)
    full, timed = document(capsys, path, "--in", "x=zeros"), document(capsys, path, "--timing-only")
    assert timed["outputs"] == []
    assert "casts" not in timed
    del full["casts"]
    assert {**timed, "outputs": None, "facts_assumed": None} == {**full, "outputs": None, "facts_assumed": None}


# --------------------------------------------------------------------------------------------------------- JSON


def test_the_shape_of_the_document(tmp_path: Path, capsys: Capture) -> None:
    path = written(tmp_path)
    found = document(capsys, path, "--in", "x=zeros")
    assert list(found) == [
        "schema_version", "program", "entry", "target", "engine", "total_cycles", "seconds", "pipes", "lost_most",
        "instructions",
        "outputs", "casts", "facts_assumed", "trust", "warnings", "synchronisation", "races",
    ]  # fmt: skip
    assert (found["schema_version"], found["program"], found["entry"]) == (VERSIONS["run"], path, "narrow")
    assert (found["target"], found["engine"], found["warnings"]) == ("a2a3", "fast", [])
    assert found["seconds"] == pytest.approx(found["total_cycles"] / (A2A3.frequency.megahertz * 1e6))


def test_causes_add_up_to_the_total(tmp_path: Path, capsys: Capture) -> None:
    found = document(capsys, written(tmp_path, LOOP), "--in", "x=zeros")
    assert set(found["pipes"]) >= {"S", "V", "MTE2", "MTE3"}
    for pipe in found["pipes"].values():
        assert list(pipe) == ["busy_cycles", "causes"]
        assert sum(pipe["causes"].values()) == found["total_cycles"]
        assert 0 not in pipe["causes"].values()
        assert pipe["busy_cycles"] == pipe["causes"].get("busy", 0)


def test_instructions_are_executions_of_tile_instructions(tmp_path: Path, capsys: Capture) -> None:
    found = document(capsys, written(tmp_path), "--in", "x=zeros")
    assert all(list(entry) == ["line", "op", "pipe", "start_cycle", "end_cycle"] for entry in found["instructions"])
    assert [(entry["line"], entry["op"], entry["pipe"]) for entry in found["instructions"]] == [
        (TLOAD, "tload", "MTE2"),
        (TCVT, "tcvt", "V"),
        (TSTORE, "tstore", "MTE3"),
    ]
    cast = found["instructions"][1]
    # Published: 33 by pto-isa tests/costmodel/st tcvt, f32->f16 4x64, of which 10 are of measuring it from outside.
    outside = A2A3.measured_conventions["complete"].added_cycles_of["tcvt"]
    assert cast["end_cycle"] - cast["start_cycle"] == pytest.approx(33 - outside, abs=1)
    assert found["total_cycles"] == max(entry["end_cycle"] for entry in found["instructions"])


def test_loops_and_index_arithmetic_are_no_instructions(tmp_path: Path, capsys: Capture) -> None:
    found = document(capsys, written(tmp_path, LOOP), "--timing-only")
    assert [entry["op"] for entry in found["instructions"]] == ["tload", "tcvt"] * 4 + ["tstore"]
    assert found["pipes"]["S"]["causes"]["loop_turnaround"] == 4 * A2A3.timing.scalar.loop_turnaround_cycles


# ------------------------------------------------------------------------------------------------------ options


def test_an_option_changes_the_run_and_only_that_run(tmp_path: Path, capsys: Capture) -> None:
    values = np.full((4, 64), np.nan, np.float32)
    np.save(tmp_path / "x.npy", values)
    path = written(tmp_path, changed("f16", "i32"))

    def result(*extra: str) -> int:
        document(capsys, path, "--in", f"x={tmp_path / 'x.npy'}", "--out", str(tmp_path), *extra)
        return int(np.load(tmp_path / "y.npy")[0, 0])

    assert result("--option", "nan_to_integer=maximum") == 2**31 - 1
    assert result("--option", "nan_to_integer=minimum") == -(2**31)
    assert result() == 0  # the default, as options.nan_to_integer in a2a3.toml says


def test_options_with_numbers(tmp_path: Path, capsys: Capture) -> None:
    np.save(tmp_path / "x.npy", np.full((4, 64), np.inf, np.float32))
    path = written(tmp_path)
    for value, expected in (("0", 65504.0), ("1", np.inf)):  # CTRL[48]: 0 clamps infinities of f16 results, 1 keeps
        option = f"float_saturation_off_at_start={value}"
        document(capsys, path, "--in", f"x={tmp_path / 'x.npy'}", "--out", str(tmp_path), "--option", option)
        assert np.load(tmp_path / "y.npy")[0, 0] == expected


def test_assumed_facts_are_those_the_run_rested_on(tmp_path: Path, capsys: Capture) -> None:
    floats = {fact["name"]: fact for fact in document(capsys, written(tmp_path), "--timing-only")["facts_assumed"]}
    whole = {
        f["name"] for f in document(capsys, written(tmp_path, changed("f16", "i32")), "--timing-only")["facts_assumed"]
    }
    assert all(list(fact) == ["name", "status", "value", "source", "note"] for fact in floats.values())
    assert {fact["status"] for fact in floats.values()} <= {"assumed", "fitted", "vendor-model"}
    assert floats["timing.load"]["value"]["startup_cycles"] == A2A3.timing.load.startup_cycles
    assert floats["timing.load"]["source"] == A2A3.timing.load.source
    assert "timing.load" in floats
    assert "timing.vector.vconv_f322f16" not in floats | dict.fromkeys(whole)  # measured, not assumed
    assert "options.nan_to_integer" in whole - set(floats)  # only a cast to an integer reads it


# -------------------------------------------------------------------------------------------------- scalar arguments

ROWS = changed("    %rows = arith.constant 4 : index\n", "").replace(
    "%y: !pto.ptr<f16>)", "%y: !pto.ptr<f16>, %rows: index)"
)


@pytest.mark.parametrize("value", ["4", "0x4", "+4"])
def test_scalar_arguments(value: str, tmp_path: Path, capsys: Capture) -> None:
    found = document(capsys, written(tmp_path, ROWS), "--in", "x=zeros", "--arg", f"rows={value}")
    assert found["outputs"][0]["shape"] == [4, 64]


def test_a_wrong_scalar_argument_is_refused_at_its_use(tmp_path: Path, capsys: Capture) -> None:
    assert main(["run", written(tmp_path, ROWS), "--in", "x=zeros", "--arg", "rows=-4"]) == 1
    assert "%vx: shape [-4, 64] has a negative entry" in capsys.readouterr().err


def test_standard_input_as_program(tmp_path: Path) -> None:
    with Path(written(tmp_path)).open() as file:
        command = [sys.executable, "-m", "castsim", "run", "-", "--timing-only", "--json", "-"]
        done = subprocess.run(command, stdin=file, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["entry"] == "narrow"
