"""Mistakes that a first program has: the message names the mistake, and what is legal is what the author may mean."""

from __future__ import annotations

from pathlib import Path

import pytest

from castsim.__main__ import main

PROGRAMS = Path(__file__).resolve().parent.parent / "programs"
TILES, ASSEMBLY = PROGRAMS / "f32_to_f16.pto", PROGRAMS / "tpc_f32_i16_quantise_greco.tpc"


@pytest.mark.parametrize(
    ("program", "right", "wrong", "code", "words", "legal"),
    [
        (TILES, "pto.tcvt", "pto.tcast", 1, "unknown operation pto.tcast", "pto.tcvt"),
        (TILES, "%dst: !pto.ptr<f16>", "%dst: !pto.ptr<f8>", 2, "unknown element type 'f8'", "f8E4M3FN, f8E5M2"),
        (TILES, '"a3"', '"a6"', 2, ":2:38: error: the program is for 'a6', which no shipped target", "a2a3, a3, a5"),
        (ASSEMBLY, "target greco", "target grecco", 2, ":3:13: error: unknown target 'grecco'", "a2a3, a5, gaudi"),
        (ASSEMBLY, "target greco", "target a5", 1, ":3:13: error: a5 does not run .tpc programs", "gaudi, gaudi2"),
        (ASSEMBLY, "target greco", "target tosa", 1, ":3:13: error: tosa is a specification", "a2a3, a5, gaudi"),
        (ASSEMBLY, "st_tnsr 0x1", "st_tnsr 0x3", 1, "tensor 3 is not declared", "0 (x), 1 (y)"),
    ],
)
def test_check_names_the_mistake(
    program: Path,
    right: str,
    wrong: str,
    code: int,
    words: str,
    legal: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = program.read_text()
    assert right in text
    broken = tmp_path / program.name
    broken.write_text(text.replace(right, wrong))
    assert main(["check", str(broken)]) == code
    said = capsys.readouterr().out
    assert words in said
    assert f"legal: {legal}" in said or f", {legal}" in said


def test_a_placeholder_is_never_what_was_meant(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(TILES), "--in", "src=nofile.npy"]) == 2
    said = capsys.readouterr().err
    assert "file 'nofile.npy' does not exist\n" in said
    assert "legal: FILE.npy, random:SEED, zeros" in said


def test_a_program_without_choices_is_told_how_to_have_some(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tune", str(TILES)]) == 2
    said = capsys.readouterr().err
    assert "nothing to tune: the program proposes no values" in said
    assert "help: // castsim: parameter R = 16 in 8..64" in said
