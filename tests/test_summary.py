"""`--summary`: whatever a command has to say fits one screen of 24 lines and 80 columns."""

from __future__ import annotations

import re

import pytest
from command_output import document_of, out_of
from expected_files import ROOT

from castsim.__main__ import main
from castsim.commands.outcome import SCREEN, one_screen

REPORTS = [
    ("run", "programs/a5_f32_to_i16_both_routes.pto", "--in", "src=random:0"),
    ("run", "programs/tpc_f32_exp_gaudi2.tpc", "--timing-only"),
    ("run", "programs/kernels/quantise_rows_fp8_a5.pto", "--timing-only"),
    ("expand", "programs/a5_f32_to_i16_both_routes.pto"),
    ("targets",),
    ("targets", "a5"),
    ("targets", "--diff", "gaudi2", "gaudi"),
    ("cast", "f32", "i16", "40000", "1", "2", "3", "nan", "--target", "all"),
    ("scratch", "f32", "i16", "--rows", "0:300:100", "--cols", "0:256:32", "--row-stride", "256:512:64", "--sweep"),
    ("lower", "f32", "i8", "--target", "a5", "--spec", "tosa"),
    ("conform", "--spec", "tosa", "--target", "a5", "--src", "f32", "--dst", "i8"),
    ("graph", "programs/casts_and_rescales.mlir", "--target", "a5", "--in", "arg0=random:1", "--in", "arg1=random:2"),
    ("accuracy", "--target", "a2a3"),
    ("check", "programs/f32_to_f16.pto"),
    ("lint", "programs/tpc_f32_exp_gaudi2.tpc"),
    ("latency", "add.f16 V10, V2, V3", "mul.f16 V4, V10, V5", "--target", "gaudi2"),
    ("builtin", "--target", "gaudi2"),
    ("compiled", "--target", "gaudi2", "--table"),
    ("schema",),
    ("manual",),
]
"""Command lines whose reports are long, and some that are short."""


@pytest.mark.parametrize("words", REPORTS, ids=" ".join)
def test_every_report_fits_a_screen(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", "80")
    status = main([*words, "--summary"])
    out, err = capsys.readouterr()
    assert status in (0, 1), err
    assert out.count("\n") <= SCREEN == 24


def test_what_fits_is_left_as_it_is() -> None:
    short = "".join(f"line {number}\n" for number in range(SCREEN - 1))
    assert one_screen(short) == short


@pytest.mark.parametrize("lines", [24, 25, 100, 12_345])
def test_the_beginning_and_the_end_stay(lines: int) -> None:
    text = [f"line {number}" for number in range(lines)]
    shown = one_screen("\n".join(text) + "\n").splitlines()
    kept = [line for line in shown if line.startswith("line ")]
    assert len(shown) < SCREEN
    assert kept[0] == text[0]
    assert kept[-1] == text[-1]
    assert f"... {lines - len(kept):,} lines left out; without --summary they are printed" in shown


@pytest.mark.parametrize("words", [("--summary", "targets", "a5"), ("targets", "a5", "--summary")])
def test_it_stands_before_or_after_the_command(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert out_of(capsys, list(words)).count("\n") < SCREEN


def test_a_summary_has_the_largest_gains_that_were_asked_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    words = ["run", str(ROOT / "programs" / "f32_to_f16_pipelined.pto"), "--timing-only", "--what-if", "all"]
    found = document_of(capsys, *words)["what_if"]
    gains = sorted((entry["gained_cycles"] for entry in found), reverse=True)[:3]
    assert main([*words, "--summary"]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("cycles gained without")]
    assert [int(gain.replace(",", "")) for gain in re.findall(r"([\d,]+) \(", line)] == gains
    assert "cycles gained" not in out_of(capsys, [words[0], words[1], "--timing-only", "--summary"])
