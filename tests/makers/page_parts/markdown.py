"""Text in Markdown: tables, code, lists."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence


def code(text: object) -> str:
    """Return text as code; '' stays empty."""
    plain = str(text)
    return f"`{plain}`" if plain else ""


def codes(words: Iterable[object], separator: str = " ") -> str:
    """Return words as code, one behind the other."""
    return separator.join(map(code, words))


def table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(_cell(cell) for cell in line)} |" for line in lines) + "\n"


def csv_text(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table as CSV."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([headings, *rows])
    return out.getvalue()


def first_sentence(docstring: str | None) -> str:
    """Return what a docstring says first."""
    paragraph = (docstring or "").strip().split("\n\n")[0]
    return " ".join(paragraph.split())


def prose(text: str) -> str:
    """Return prose in one line, in which nothing but code in backticks means something to Markdown."""
    parts = " ".join(text.split()).split("`")
    for place in range(0, len(parts), 2):
        for mark in "*_<[":
            parts[place] = parts[place].replace(mark, f"\\{mark}")
    return "`".join(parts)


def _cell(cell: object) -> str:
    """Return a cell in one line; a bar within code needs a backslash too, which tables take away."""
    return re.sub(r"(?<!\\)\|", r"\\|", " ".join(str(cell).split()))
