"""The command `castsim advise`: its document, what it writes, and what it refuses."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import jsonschema
import pytest
from advice_programs import PROGRAMS, row_loop

import castsim
from castsim.__main__ import main
from castsim.reports.schemas import registry

PADDED = PROGRAMS / "a5_f32_to_e4m3fn_padded.pto"
WRAP = PROGRAMS / "f16_to_i8_wrap.pto"
RANGE = ["--range", "src=-100:100", "--tries", "2"]


def test_the_document_is_what_its_schema_says(tmp_path: Path) -> None:
    path = tmp_path / "advice.json"
    assert main(["advise", str(PADDED), "--quiet", "--json", str(path)]) == 0
    document = json.loads(path.read_text())
    jsonschema.Draft202012Validator(registry.schema_of("advise")).validate(document)
    offer = document["offers"][0]
    assert (offer["number"], offer["how"], offer["cycles"]) == (1, "proven", document["cycles"] - offer["gained"])
    assert offer["gained_percent"] == pytest.approx(100 * offer["gained"] / document["cycles"], abs=0.01)


def test_the_answer_is_a_diff_that_patch_applies(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if shutil.which("patch") is None:
        pytest.skip("there is no `patch`")
    kernel = tmp_path / "kernel.pto"
    kernel.write_text(row_loop())
    assert main(["advise", str(kernel)]) == 0
    answer = capsys.readouterr().out
    cycles = castsim.advise(kernel).offers[0].cycles
    subprocess.run(["patch", str(kernel)], input=answer, text=True, check=True, capture_output=True)
    assert castsim.run(kernel, timing_only=True).cycles == cycles
    assert f"{cycles:,} with change 1" in " ".join(answer.split())


def test_a_proven_change_is_written(tmp_path: Path) -> None:
    out = tmp_path / "faster.pto"
    assert main(["advise", str(PADDED), "--apply", "1", "-o", str(out), "--quiet"]) == 0
    assert castsim.run(out, timing_only=True).cycles < castsim.run(PADDED, timing_only=True).cycles


def test_a_change_that_is_only_tried_has_to_be_allowed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "narrow.pto"
    words = ["advise", str(WRAP), *RANGE, "--apply", "1", "-o", str(out)]
    assert main(words) == 2
    assert "--apply 1 --tried" in capsys.readouterr().err
    assert not out.exists()
    assert main([*words, "--tried"]) == 0
    assert out.exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--apply", "9", "-o", "x.pto"], "1 to 2"),
        (["--apply", "1"], "--apply 1 -o FILE"),
        (["-o", "x.pto"], "--apply 1 -o FILE"),
        (["--apply", "0", "-o", "x.pto"], "not a positive integer"),
        (["--range", "src=8"], "LO:HI"),
        (["--range", "src=8:1"], "--range src=1:8"),
        (["--range", "src=nan:1"], "LO:HI"),
        (["--range", "nosuch=0:1"], "no tensor argument 'nosuch'"),
        (["--in", "nosuch=zeros"], "no tensor argument 'nosuch'"),
        (["--tries", "none"], "not a positive integer"),
        (["--apply", "1", "-o", "nosuch/folder/x.pto"], "nosuch/folder/x.pto"),
    ],
)
def test_what_cannot_be_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["advise", str(PADDED), *words]) == 2
    assert said in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_program_with_an_error_is_refused_at_its_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "kernel.pto"
    path.write_text(row_loop().replace("pto.tcvt", "pto.tcvtt"))
    assert main(["advise", str(path)]) != 0
    assert f"{path}:" in capsys.readouterr().err


def test_binaries_and_graphs_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    binary = tmp_path / "k.bin"
    binary.write_bytes(bytes(64))
    assert main(["advise", str(binary)]) == 2
    assert main(["advise", str(PROGRAMS / "quantise_half.onnx")]) == 2
    assert "castsim disasm" in capsys.readouterr().err


def test_names_that_steer_a_terminal_stay_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "kernel.pto"
    path.write_text("// \x1b[31m <script> \u202e\n" + row_loop())
    assert main(["advise", str(path)]) == 0
    assert "\x1b" not in capsys.readouterr().out
