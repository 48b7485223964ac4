"""The page of a search of tile shapes: the answer, cycles against bytes of the buffer, the ranking."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from castsim.exploration.tuning import Row, Tuning
from castsim.reports.documents import Document, Json
from castsim.reports.pages.blocks import Block, Figure, Figures, Line, Packed, Page, Section, Table, Text, View
from castsim.reports.tuning import command_of, row_entry, tuning_document
from castsim.reports.tuning_text import answer_lines, choices_text

_MOST_ROWS = 3000
"""Points that a page shows, those that were simulated first; `--json` has all."""


def tune_page(found: Tuning) -> Page:
    """Return the page of a search."""
    document = tuning_document(found)
    tried = [row for row in found.rows if not row.reason]
    sections = [Section("summary", "Summary", (Figures(tuple(_figures(found))), *_told(found, len(tried))))]
    if tried:
        sections.append(Section("points", "Points", (_view(found, tried[:_MOST_ROWS]),)))
    if found.misfits:
        sections.append(Section("refused", "Does not run", (_misfits(found),)))
    file = found.study.source.file
    return Page(
        kind="tune",
        title=f"{file}: tile shapes and choices",
        subtitle=f"castsim tune {Path(file).name}: {', '.join(axis.name for axis in found.study.space.axes)}",
        sections=tuple(sections),
        result=_kept(document),
    )


def _figures(found: Tuning) -> Iterator[Figure]:
    best = found.best
    if best is not None:
        yield Figure("best", best.cycles, "cycles", choices_text(best))
        yield Figure("bytes of the buffer", best.buffer_bytes)
        if best.cycles_per_element is not None:
            yield Figure("cycles per element", best.cycles_per_element)
    yield Figure("points", len(found.rows), note=f"{found.left_out} left out by conditions" if found.left_out else "")
    yield Figure("simulated", len(found.simulated))
    whole = best is not None and not found.unsettled
    yield Figure("on the front", len(found.pareto), note="proven to be all of it" if whole else "")


def _told(found: Tuning, tried: int) -> Iterator[Block]:
    lines = [Line(text, "strong" if number == 0 else "plain") for number, text in enumerate(answer_lines(found))]
    if tried > _MOST_ROWS:
        lines.append(Line(f"The page shows the first {_MOST_ROWS} of {tried} points; --json has all.", "dim"))
    yield Text(tuple(lines))


def _view(found: Tuning, rows: list[Row]) -> View:
    front = {row.number for row in found.pareto}
    columns: dict[str, Json] = {
        "rows": [row_entry(row, front) for row in rows],
        "commands": [command_of(found, row) if row.cycles is not None else "" for row in rows],
    }
    caption = "No simulated point has fewer cycles or bytes than one on the front, and no more of the other."
    return View("tuning", caption, Packed(columns))


def _misfits(found: Tuning) -> Table:
    rows = tuple((choices_text(row), row.reason) for row in found.misfits[:_MOST_ROWS])
    return Table("", ("choices", "reason"), rows)


def _kept(document: Document) -> Document:
    """Return the JSON of a search without its points where they are many."""
    rows = document["rows"]
    long = isinstance(rows, list) and len(rows) > _MOST_ROWS
    return {key: value for key, value in document.items() if key != "rows" or not long}
