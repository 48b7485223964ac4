"""What the help of a command says is what the command does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from simulator.__main__ import main

Capture = pytest.CaptureFixture[str]
PROGRAMS = Path(__file__).parent.parent / "programs"
TILES, ASSEMBLY = str(PROGRAMS / "f32_to_f16.pto"), str(PROGRAMS / "tpc_f32_f8_143_gaudi2.tpc")
QUANTISE = str(PROGRAMS / "quantise_block.onnx")


def shown(capsys: Capture, command: str) -> dict[str, str]:
    """Return what the help says of each option, in one line."""
    assert main([command, "--help"]) == 0
    found: dict[str, list[str]] = {}
    words: list[str] = []
    for line in capsys.readouterr().out.partition("options:")[2].splitlines():
        if line.startswith("  --"):
            words = found.setdefault(line.split()[0], [])
        elif not line.strip():
            words = []
        words.append(line.strip())
    return {option: " ".join(lines) for option, lines in found.items()}


@pytest.mark.parametrize(
    ("words", "option"),
    [
        *((f"run {TILES}", option) for option in ("--engine", "--sync", "--races", "--report", "--pipeline")),
        ("cast f32 f16 1", "--overflow"),
        ("cast f32 f16 1 --target a5", "--saturation"),
        *(("verify f16 i8", option) for option in ("--overflow", "--tier")),
        (f"graph {QUANTISE} --target a5", "--engine"),
        *(("compiled f32 u16 1 --target gaudi", option) for option in ("--form", "--rounding", "--reading", "--order")),
        ("lower f16 i8 --target a5", "--spec"),
    ],
)
def test_the_words_of_an_option_are_the_same_in_its_help_and_in_its_refusal(
    words: str, option: str, capsys: Capture
) -> None:
    assert main([*words.split(), option, "zz", "--json", "-"]) == 2
    (error,) = json.loads(capsys.readouterr().out)["errors"]
    assert "zz" in error["message"]
    told = shown(capsys, words.split(maxsplit=1)[0])[option]
    assert [word for word in error["legal"] if word != "PATH.toml" and word not in told] == []
