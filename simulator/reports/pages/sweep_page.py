"""The page of a sweep: cycles by size on each route, where routes cross, heat maps."""

from __future__ import annotations

from pathlib import Path

from castsim.exploration.sweeps.summary import Heat, Summary, summary
from castsim.reports.documents import Document
from castsim.reports.pages.blocks import (
    Block,
    Figure,
    Figures,
    Line,
    Matrix,
    Page,
    Plot,
    PlotLine,
    Section,
    Table,
    Text,
)


def sweep_page(path: Path, html: str) -> tuple[Page, Document]:
    """Return the page of a file of results, and the JSON document of the same.

    Raises:
        ReadError: the file is none.
    """
    found = summary(path)
    result: Document = {
        "report": str(path),
        "html": html,
        "rows": found.rows,
        "failed": found.failed,
        "crossings": [
            {"what": each.what, "below": each.below, "above": each.above, "x": float(each.x)}
            for each in found.crossings
        ],
    }
    figures = Figures((Figure("points", found.rows), Figure("failed", found.failed)))
    sections = (
        Section("summary", "Summary", (figures,)),
        Section("cycles", "Cycles by size", _plots(found)),
        Section("crossings", "Where routes cross", (_crossings(found),)),
        Section("heat", "Heat maps", tuple(_heat(each, found) for each in found.heats)),
    )
    page = Page("sweep", path.name, "castsim sweep", tuple(each for each in sections if each.blocks), result)
    return page, result


def _plots(found: Summary) -> tuple[Block, ...]:
    """Return a plot for each thing that routes do, each with a line a route."""
    blocks: list[Block] = []
    for what in dict.fromkeys(route.what for route in found.routes):
        routes = [route for route in found.routes if route.what == what]
        lines = tuple(PlotLine(route.how or route.name, route.points) for route in routes)
        positive = all(x > 0 and y > 0 for line in lines for x, y in line.points)
        blocks.append(Plot(f"{what}: fewest cycles of each size", found.x or "point", "cycles", lines, positive))
    return tuple(blocks)


def _crossings(found: Summary) -> Block:
    rows = tuple((each.what, each.below, each.above, each.x) for each in found.crossings)
    if not rows:
        return Text((Line("None: of any two routes, one takes no more cycles at any size that both have.", "dim"),))
    caption = "Break-even sizes: the route that is faster below, and the one from there on"
    return Table(caption, ("what", "faster below", "faster from there on", found.x or "size"), rows, (3,))


def _heat(heat: Heat, found: Summary) -> Matrix:
    unit = "cycles per element" if found.x == "elements" else "cycles"
    cells = tuple((column, row, value, f"{value:.4g} {unit}") for column, row, value in heat.cells)
    caption = f"{heat.name}: {unit}, {found.keys[0]} across, {found.keys[1]} down"
    return Matrix(caption, tuple(map(str, heat.columns)), tuple(map(str, heat.rows)), cells)
