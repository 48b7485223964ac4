"""The scalar arguments that the programs of programs/ are run with: those of the command that stands with each."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from castsim.commands.option_parsers import assignments, scalar


def command(path: Path) -> list[str]:
    """The command that heads the expected report of a program, or stands at the end of the comment that heads it."""
    report = path.with_suffix(".expected")
    if report.exists():
        return report.read_text().splitlines()[0].split()
    head: list[str] = []
    for line in path.read_text().splitlines():
        if not line.startswith("//"):
            break
        head += line.removeprefix("//").split()
    return head[head.index("castsim") :]


def argument_words(path: Path) -> list[str]:
    """The words `--arg NAME=VALUE ...` of the command."""
    return [word for pair in pairwise(command(path)) if pair[0] == "--arg" for word in pair]


def scalars(path: Path) -> dict[str, int | float]:
    """The values of the arguments by name."""
    texts = argument_words(path)[1::2]
    return {argument: scalar(argument, value) for argument, value in assignments("--arg", texts).items()}
