"""Reports on terminals of several widths: no digit, row label or unit that the widest one shows is lost."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from makers.expected_files import ROOT
from project.test_summary import REPORTS

from castsim.__main__ import main

WIDEST = 200
WIDTHS = (60, 80, 120)
NUMBER = re.compile(r"(?<![\w.,])[+-]?\d[\d,]*(?:\.\d+)?(?: %)?(?![\w.])")
QUOTED = "source"
"""The column of the lines of the text, which only wide terminals show."""


def shown(words: tuple[str, ...], width: int, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        patch.setenv("COLUMNS", str(width))
        assert main(list(words)) in (0, 1)
    return capsys.readouterr().out


def numbers(text: str) -> Counter[str]:
    """Count the numbers of a report, lines that are wrapped taken together."""
    return Counter(NUMBER.findall(re.sub(r"\s+", " ", text)))


def without_source(text: str) -> str:
    """Return a report without what stands in the column of the source lines."""
    lines, cut = [], None
    for line in text.splitlines():
        if line.endswith(f" {QUOTED}") and line.lstrip().startswith("line "):
            cut = len(line) - len(QUOTED)
        elif not line.strip():
            cut = None
        lines.append(line if cut is None else line[:cut])
    return "\n".join(lines)


@pytest.mark.parametrize(
    "words", [words for words in REPORTS if words[0] not in ("schema", "manual", "expand")], ids=" ".join
)
def test_no_number_is_lost_on_a_narrow_terminal(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    wide = numbers(without_source(shown(words, WIDEST, capsys)))
    for width in WIDTHS:
        narrow = shown(words, width, capsys)
        found = numbers(without_source(narrow))
        lost = wide - found
        assert not lost, (width, lost)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(
    "words", [words for words in REPORTS if words[0] in ("run", "targets", "cast", "accuracy")], ids=" ".join
)
def test_tables_keep_within_the_width(words: tuple[str, ...], width: int, capsys: pytest.CaptureFixture[str]) -> None:
    for line in shown(words, width, capsys).splitlines():
        if re.fullmatch(r" *-{10,}", line):
            assert len(line) <= width
