"""The page of a search of tile shapes: the answer, cycles against bytes of the buffer, the ranking."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from castsim.reports.documents import Json, shortened
from castsim.reports.pages.answer_pages import (
    titled_section,
)
from castsim.reports.pages.blocks import (
    Block,
    Figure,
    Figures,
    Line,
    Packed,
    Page,
    PageSection,
    PageTable,
    ResultsView,
    Text,
)
from castsim.tools.tune.candidates import TuningRow
from castsim.tools.tune.report import answer_lines, choices_text, command_of, tuning_document
from castsim.tools.tune.studies import Tuning

_MOST_ROWS = 3000
"""Maximum number of points on a page, the simulated ones first; `--json` has all."""


def page_of(tuning: Tuning) -> Page:
    """Return the page of a search."""
    document = tuning_document(tuning)
    tried = [row for row in tuning.rows if not row.reason]
    figures = Figures(tuple(_tune_page_figures(tuning)))
    sections = [titled_section("Summary", figures, *_tune_page_told(tuning, len(tried)))]
    if tried:
        sections.append(titled_section("Points", _view(tuning, tried[:_MOST_ROWS])))
    if tuning.misfits:
        sections.append(PageSection("refused", "Does not run", (_misfits(tuning),)))
    file = tuning.study.source.file
    subtitle = f"castsim tune {Path(file).name}: {', '.join(axis.name for axis in tuning.study.space.axes)}"
    result = shortened(document, "rows", _MOST_ROWS)
    return Page("tune", f"{file}: tile shapes and choices", subtitle, tuple(sections), result)


def _tune_page_figures(tuning: Tuning) -> Iterator[Figure]:
    best = tuning.best
    if best is not None:
        yield Figure("best", best.cycles, "cycles", choices_text(best))
        yield Figure("bytes of the buffer", best.buffer_bytes)
        if best.cycles_per_element is not None:
            yield Figure("cycles per element", best.cycles_per_element)
    yield Figure(
        "points", len(tuning.rows), note=f"{tuning.left_out} left out by conditions" if tuning.left_out else ""
    )
    yield Figure("simulated", len(tuning.simulated))
    whole = best is not None and not tuning.unsettled
    yield Figure("on the front", len(tuning.pareto), note="proven to be all of it" if whole else "")


def _tune_page_told(tuning: Tuning, tried: int) -> Iterator[Block]:
    lines = [Line(text, "strong" if number == 0 else "plain") for number, text in enumerate(answer_lines(tuning))]
    if tried > _MOST_ROWS:
        lines.append(Line(f"The page shows the first {_MOST_ROWS} of {tried} points; --json has all.", "dim"))
    yield Text(tuple(lines))


def _view(tuning: Tuning, rows: list[TuningRow]) -> ResultsView:
    columns: dict[str, Json] = {
        "rows": [row.as_json() for row in rows],
        "commands": [command_of(tuning, row) if row.cycles is not None else "" for row in rows],
    }
    caption = "No simulated point has fewer cycles or bytes than one on the front, and no more of the other."
    return ResultsView("tuning", caption, Packed(columns))


def _misfits(tuning: Tuning) -> PageTable:
    rows = tuple((choices_text(row), row.reason) for row in tuning.misfits[:_MOST_ROWS])
    return PageTable("", ("choices", "reason"), rows)
