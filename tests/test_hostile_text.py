"""What files and names hold reaches no terminal raw, and no message shows a line of any length."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.text import Text

from castsim.__main__ import main
from castsim.isa.errors import ReadError, Span, escaped
from castsim.isa.terminal_colours import is_coloured
from castsim.reports.bars import bars
from castsim.reports.terminal import rendered, table

Capture = pytest.CaptureFixture[str]

ROOT = Path(__file__).parent.parent
STEERING = [
    *(chr(n) for n in (*range(9), *range(0xB, 0x20), *range(0x7F, 0xA0))),
    *"\u061c\u200e\u200f\u202e\u2066\u2069",
]


class Stream(io.StringIO):
    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


@pytest.mark.parametrize("character", STEERING)
def test_every_character_that_steers_is_escaped_and_no_other(character: str) -> None:
    shown = escaped(f"é{character}日\t\n")
    assert character not in shown
    assert shown == f"é{character.encode('unicode_escape').decode()}日\t\n".replace("\\r", "\\x0d")
    assert escaped(shown) == shown


def test_errors_are_escaped_everywhere() -> None:
    span = Span("a\x1b[2J.pto", 3, 5, "ab\x9bc\u202edef", 2)
    error = ReadError("no '\x1b]0;title\x07'", span=span, legal=("x\x7f", "y"))
    shown = error.render()
    assert not any(character in shown for character in STEERING)
    _, source, caret, legal = shown.split("\n")
    assert source == "  ab\\x9bc\\u202edef"
    assert caret.index("^") == source.index("\\u202e")  # column 5 is that character
    assert caret.count("^") == len("\\u202ed")
    assert legal == "  legal: x\\x7f, y"


@pytest.mark.parametrize("column", [1, 99, 5_000, 9_999, 10_000, 10_001])
def test_long_lines_are_cut_around_the_caret(column: int) -> None:
    text = "".join(chr(ord("a") + n % 26) for n in range(10_000))
    _, source, caret = ReadError("bad", span=Span("f", 1, column, text, 50_000)).render().split("\n")
    assert len(source) <= 2 + 200 + 6
    assert len(caret) <= len(source) + 1
    place = caret.index("^")
    assert column > len(text) or source[place:].startswith(text[column - 1 : column + 3])
    assert source.startswith("  ...") == (column > 101)
    assert source.endswith("...") == (column < 9_900)


def test_reports_are_escaped_but_keep_their_colours() -> None:
    made = table("name")
    made.add_row("[bold red]x[/nope] \x1b[31m\x9b\u202e")
    for terminal in (False, True):
        shown = rendered(made, Stream(terminal))
        assert "[bold red]x[/nope] \\x1b[31m\\x9b\\u202e" in shown
    assert "\x1b" in rendered(Text("warning", style="bold red"), Stream(True)) or not is_coloured(Stream(True))


def test_titles_of_progress_are_plain_text() -> None:
    shown = bars()
    task = shown.add_task("[bold]x[/nope]\x1b[2J\n\x07", total=1)
    text = shown.columns[0](shown.tasks[task])
    assert isinstance(text, Text)
    assert text.plain == "[bold]x[/nope]\\x1b[2J \\x07"
    assert not text.spans


def test_json_on_standard_output_is_json_without_controls(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "a.toml"
    path.write_text('base = "a2a3"\ntitle = "x\\u001b[31m\\u007f\\u009b\\u202e"\n', encoding="utf-8")
    main(["targets", str(path), "--json", "-"])
    out = capsys.readouterr().out
    assert not any(character in out for character in STEERING)
    held = json.loads(out)
    assert "x\x1b[31m\x7f\x9b\u202e" in (str(value) if isinstance(value, str) else "" for value in held.values())


def test_a_name_of_a_file_is_escaped_in_errors(capsys: Capture) -> None:
    assert main(["run", "no\x1b[31m.pto"]) == 2
    assert "no\\x1b[31m.pto" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("variables", "terminal", "coloured"),
    [
        ({}, False, False),
        ({}, True, True),
        ({"FORCE_COLOR": "1"}, False, True),
        ({"FORCE_COLOR": "0"}, False, False),
        ({"FORCE_COLOR": ""}, False, False),
        ({"CLICOLOR_FORCE": "1"}, False, True),
        ({"CLICOLOR_FORCE": "0"}, False, False),
        ({"CLICOLOR": "0"}, True, False),
        ({"CLICOLOR": "1"}, False, False),
        ({"NO_COLOR": "1"}, True, False),
        ({"NO_COLOR": ""}, True, True),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, False, False),
    ],
)
def test_colour(variables: dict[str, str], terminal: bool, coloured: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert ("\x1b[" in rendered(Text("x", style="bold"), Stream(terminal))) == coloured
