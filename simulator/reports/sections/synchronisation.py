"""Inserted flags and barriers: as data, and as a listing of the entry function in which they stand."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from castsim.reports.documents import Document
from castsim.reports.run_report import RunReport
from castsim.reports.section import ReportSection
from castsim.running import Loaded
from castsim.synchronisation.flags import Note, Place

MARK = "+"
"""What stands in place of the line number of an inserted instruction."""


def _data(report: RunReport) -> Document:
    """Return who synchronises, and every inserted instruction with line, place and executions."""
    loaded = report.result.loaded
    if not loaded.target.has_tiles:
        return {}
    return {"synchronisation": _synchronisation(loaded)}


def _synchronisation(loaded: Loaded) -> Document:
    if loaded.synchronised is None:
        return {"by": "interlock" if loaded.tree.interlocked else "program", "inserted": []}
    return {
        "by": "insertion",
        "inserted": [
            {"line": note.span.line, "place": str(note.place), "text": note.text, "executions": note.times}
            for note in _notes(loaded)
        ],
    }


def _text(report: RunReport, width: int) -> Iterator[RenderableType]:
    """Yield the listing if it was asked for, or why there is none."""
    del width
    if not report.show_synchronisation:
        return
    loaded = report.result.loaded
    if loaded.synchronised is None:
        reason = (
            "the instructions wait for each other's bytes" if loaded.tree.interlocked else "the program has its own"
        )
        yield Text(f"synchronisation: nothing inserted, {reason}")
        yield Text()
        return
    yield Text(f"synchronisation: lines marked {MARK} are inserted", style="bold")
    for number, line in synchronisation_listing(loaded):
        style = "green" if number == MARK else "dim"
        yield Text(f"{number:>5}  {line}", style=style, no_wrap=True, overflow="ignore")
    yield Text()


def synchronisation_listing(loaded: Loaded) -> list[tuple[str, str]]:
    """Return the lines of the entry function, each with its number, or with `MARK` if it was inserted."""
    lines = loaded.source.splitlines()
    first, last = _function(lines, loaded.entry)
    above: dict[int, list[str]] = {}
    below: dict[int, list[str]] = {}
    for note in _notes(loaded):
        line = note.span.line
        spelt = _indented(note.text if note.times == 1 else f"{note.text}  // {note.times} times", lines[line - 1])
        match note.place:
            case Place.BEFORE | Place.AT_END:
                above.setdefault(line, []).append(spelt)
            case Place.AFTER:
                below.setdefault(line, []).append(spelt)
            case Place.BEHIND:
                below.setdefault(_closing(lines, line), []).append(spelt)
    return [row for number in range(first, last + 1) for row in _rows(number, lines[number - 1], above, below)]


def _rows(
    number: int, line: str, above: dict[int, list[str]], below: dict[int, list[str]]
) -> Iterator[tuple[str, str]]:
    yield from ((MARK, text) for text in above.get(number, ()))
    yield str(number), line
    yield from ((MARK, text) for text in below.get(number, ()))


def _notes(loaded: Loaded) -> tuple[Note, ...]:
    return () if loaded.synchronised is None else loaded.synchronised.notes


def _indented(text: str, line: str) -> str:
    return " " * (len(line) - len(line.lstrip())) + text


def _function(lines: list[str], name: str) -> tuple[int, int]:
    """Return the first and the last line of a function."""
    first = next(n for n, line in enumerate(lines, 1) if "func.func" in line and f"@{name}(" in line.replace(" (", "("))
    return first, _closing(lines, first)


def _closing(lines: list[str], start: int) -> int:
    """Return the line of the brace that closes the last region opened in line `start`, or in the first one after."""
    depth = 0
    for number in range(start, len(lines) + 1):
        code = lines[number - 1].split("//")[0]
        depth += code.count("{") - code.count("}")
        if depth <= 0 and "}" in code and (number > start or not code.rstrip().endswith("{")):
            return number
    return len(lines)


SECTION = ReportSection(_text, _data, options=("--sync", "--show-sync"))
