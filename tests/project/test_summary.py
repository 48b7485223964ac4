"""`--summary`: whatever a command has to say fits one screen of 24 lines and 80 columns."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from kit.command_output import document_of, out_of
from kit.paths import PROGRAMS
from makers.expected_files import ROOT
from rich.console import Group
from rich.text import Text

from castsim.__main__ import main
from castsim.commands.outcome import SCREEN, one_screen
from castsim.reports.terminal import indented, pieces, rendered, table

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
    short = [f"line {number}" for number in range(SCREEN - 1)]
    assert one_screen(short) == "\n".join(short) + "\n"


@pytest.mark.parametrize("lines", [24, 25, 100, 12_345])
def test_the_beginning_and_the_end_stay(lines: int) -> None:
    text = [f"line {number}" for number in range(lines)]
    shown = one_screen(text).splitlines()
    kept = [line for line in shown if line.startswith("line ")]
    assert len(shown) < SCREEN
    assert kept[0] == text[0]
    assert kept[-1] == text[-1]
    assert f"... {lines - len(kept):,} lines omitted; run without --summary to see them" in shown


def sentence(number: int, words: int) -> str:
    return f"Sentence {number} has {words} words, " + " ".join(f"name_{number}_{word}" for word in range(words)) + "."


@pytest.mark.parametrize("words", [2, 20, 40])
@pytest.mark.parametrize("width", [40, 80])
def test_no_sentence_is_cut_however_long_its_names_are(words: int, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every piece that is shown is whole: a sentence, also an indented one, and a row whose cells are wrapped."""
    monkeypatch.setenv("COLUMNS", str(width))
    rows = table(">line", "what it does")
    for number in range(60):
        rows.add_row(str(number), f"begins {number} " + "and goes on " * words + f"ends {number}")
    sentences = [sentence(number, words) for number in range(60)]
    parts = [Text("\n".join(sentences[:20])), rows, *(indented(Text(each)) for each in sentences[20:])]
    shown = one_screen(pieces(Group(*parts), io.StringIO()))
    assert shown.count("\n") <= max(SCREEN, rendered(Text(sentences[0]), io.StringIO()).count("\n") + 10)
    joined = " ".join(shown.split())
    for number, whole in enumerate(sentences):
        assert (f"Sentence {number} has" in joined) == (whole in joined), number
    assert sentences[0] in joined
    for number in range(60):
        assert (f"begins {number} " in joined) == (f"ends {number}" in joined.replace("  ", " ")), number


def test_a_run_with_long_names_cuts_no_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    path = tmp_path / f"{'kernel_with_a_name_' * 10}.pto"
    path.write_text((PROGRAMS / "a5_f32_to_i16_both_routes.pto").read_text())
    words = ["run", str(path), "--in", "src=random:0"]
    assert main([*words, "--summary"]) == 0
    short = " ".join(capsys.readouterr().out.replace("\\\n", " ").split())
    for end in ("(undocumented clock)", "busy)", "cycles"):
        assert end in short
    assert ("Trust: " in short) == ("held-out rows)" in short)


@pytest.mark.parametrize("words", [("--summary", "targets", "a5"), ("targets", "a5", "--summary")])
def test_it_stands_before_or_after_the_command(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert out_of(capsys, list(words)).count("\n") < SCREEN


def test_a_summary_has_the_largest_gains_that_were_asked_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    words = ["run", str(PROGRAMS / "f32_to_f16_pipelined.pto"), "--timing-only", "--what-if", "all"]
    found = document_of(capsys, *words)["what_if"]
    gains = sorted((entry["gained_cycles"] for entry in found), reverse=True)[:3]
    assert main([*words, "--summary"]) == 0
    shown = capsys.readouterr().out.splitlines()
    rows = shown[next(number for number, line in enumerate(shown) if line.startswith("lifted ")) + 2 :]
    assert [int(row.split()[2].replace(",", "")) for row in rows[:3]] == gains
