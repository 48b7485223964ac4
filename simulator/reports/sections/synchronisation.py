"""Inserted flags and barriers: as data, and as a listing of the entry function in which they stand."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from castsim.reports.documents import Document
from castsim.reports.run_report import RunReport
from castsim.reports.section import ReportSection
from castsim.running import Loaded
from castsim.synchronisation.flags import Place

MARK = "+"
"""What stands in place of the line number of an inserted instruction."""

_Inserted = dict[tuple[str, int, Place], int]
"""How often an instruction is executed, by its text, line and place, in program order."""


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
            {"line": line, "place": str(place), "text": text, "executions": times}
            for (text, line, place), times in _inserted(loaded).items()
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
    for (text, line, place), times in _inserted(loaded).items():
        spelt = text if times == 1 else f"{text}  // {times} times"
        match place:
            case Place.BEFORE:
                above.setdefault(line, []).append(_indented(spelt, lines[line - 1]))
            case Place.TOP:
                below.setdefault(line, []).append(_indented(spelt, lines[line - 1], deeper=2))
            case Place.AFTER:
                below.setdefault(line, []).append(_indented(spelt, lines[line - 1]))
            case Place.AFTER_LOOP:
                below.setdefault(_closing(lines, line), []).append(_indented(spelt, lines[line - 1]))
            case Place.AT_END:
                end = _return(lines, first, last)
                above.setdefault(end, []).append(_indented(spelt, lines[end - 1]))
    return [row for number in range(first, last + 1) for row in _rows(number, lines[number - 1], above, below)]


def _rows(
    number: int, line: str, above: dict[int, list[str]], below: dict[int, list[str]]
) -> Iterator[tuple[str, str]]:
    yield from ((MARK, text) for text in above.get(number, ()))
    yield str(number), line
    yield from ((MARK, text) for text in below.get(number, ()))


def _inserted(loaded: Loaded) -> _Inserted:
    """Return the inserted instructions in program order; the same one at the same place is one entry."""
    found: _Inserted = {}
    if loaded.synchronised is not None:
        for note in loaded.synchronised.notes:
            text = loaded.tree.instructions[note.instruction].spelling
            key = (text, note.span.line, note.place)
            found[key] = found.get(key, 0) + note.times
    return found


def _indented(text: str, line: str, deeper: int = 0) -> str:
    return " " * (len(line) - len(line.lstrip()) + deeper) + text


def _function(lines: list[str], name: str) -> tuple[int, int]:
    """Return the first and the last line of a function."""
    first = next(n for n, line in enumerate(lines, 1) if "func.func" in line and f"@{name}(" in line.replace(" (", "("))
    return first, _closing(lines, first)


def _return(lines: list[str], first: int, last: int) -> int:
    """Return the line of a function's `return`, or that of its end."""
    words = ("return", "func.return")
    return next((n for n in range(last, first, -1) if lines[n - 1].strip().split(" ")[0] in words), last)


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
